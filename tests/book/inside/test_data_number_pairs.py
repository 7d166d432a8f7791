"""Pairs of numbers that differ in one word, and batches with an end token."""

import pytest
import torch

from tformer_book.inside.data.number_pairs import (
    BLANK,
    DIGITS,
    SLOTS,
    full_numbers,
    number_batches,
    number_pairs,
    with_end,
    words_read,
    words_written,
)
from tformer_book.kit.data.number_words import NumberWords, german_parts
from tformer_lib.data import EOS, PAD

DATA = NumberWords(10_000, 1_000)
NUMBERS = full_numbers(DATA.held_out)


def test_full_numbers_have_all_slots():
    assert 7347 in full_numbers(range(10_000))
    assert len(full_numbers(range(10_000))) == 9 * 9 * 8 * 9
    for n in NUMBERS:
        words = words_read(n)
        assert len(words) == len(SLOTS)
        assert (words[1], words[3], words[4], words[7]) == ("thousand", "hundred", "and", "end")
    assert words_read(7347)[5:7] == ["forty", "seven"]
    assert words_written(7347)[4:] == ["hundert", "sieben", "und", "vierzig"]


@pytest.mark.parametrize("kind", DIGITS)
def test_pairs_differ_in_one_word_and_are_asked_for_it(kind):
    pairs = number_pairs(DATA, kind, NUMBERS, seed=1)
    value, place, asked = DIGITS[kind]
    differs = pairs.clean_source != pairs.corrupted_source
    assert differs.sum(dim=1).eq(1).all()
    assert differs[:, place].all()
    assert pairs.target.shape == (len(NUMBERS), asked)
    for i, (a, b) in enumerate(zip(pairs.clean, pairs.corrupted, strict=True)):
        assert DATA.german.words[pairs.right[i]] == german_parts(a)[asked - 1]
        assert DATA.german.words[pairs.wrong[i]] == german_parts(b)[asked - 1]
        assert german_parts(a)[: asked - 1] == german_parts(b)[: asked - 1]
        assert (a - b) % value == 0
    assert full_numbers(pairs.corrupted) == pairs.corrupted
    assert number_pairs(DATA, kind, NUMBERS, seed=2).corrupted != pairs.corrupted


def test_a_blank_takes_the_words_place():
    pairs = number_pairs(DATA, "tens", NUMBERS[:5], blank=True)
    assert pairs.corrupted_source[:, 5].eq(BLANK).all()
    assert pairs.clean_source.ne(BLANK).all()


def test_swapped_pairs_measure_the_negative_difference():
    pairs = number_pairs(DATA, "units", NUMBERS[:4])
    logits = torch.randn(4, 5, len(DATA.german))
    torch.testing.assert_close(pairs.swapped().difference(logits), -pairs.difference(logits))
    assert pairs.swapped().clean == pairs.corrupted
    assert pairs.difference(logits)[0] == logits[0, -1, pairs.right[0]] - logits[0, -1, pairs.wrong[0]]


def test_sources_end_where_their_words_do():
    source, _ = DATA.encode([3, 7347])
    longer = with_end(source)
    assert longer[0, :3].tolist() == [source[0, 0], EOS, PAD]
    assert longer[1, -1] == EOS


def test_batches_blank_out_words_only():
    plain = list(number_batches(DATA, 2, 16, seed=3))
    holes = list(number_batches(DATA, 2, 16, seed=3, blanks=0.3))
    for (a, target), (b, same) in zip(plain, holes, strict=True):
        assert torch.equal(target, same)
        hit = b == BLANK
        assert torch.equal(a[~hit], b[~hit])
        assert (a[hit] > EOS).all()
        assert 0.15 < hit.sum() / (a > EOS).sum() < 0.45


@pytest.mark.parametrize("numbers", [[], [47], [7300], [7313]])
def test_numbers_without_all_slots_are_refused(numbers):
    with pytest.raises(ValueError, match="four digits"):
        number_pairs(DATA, "tens", numbers)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="tens or units"):
        number_pairs(DATA, "hundreds", [7347])
