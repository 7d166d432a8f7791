"""Number words: nothing is lost in splitting, and what is held out stays out."""

import random

import pytest
import torch
from num2words import num2words

from tformer_book.kit.data.number_words import (
    NumberWords,
    Vocabulary,
    english_parts,
    german_inventory,
    german_parts,
    number_word,
    pad,
    split_german,
    split_numbers,
)
from tformer_lib.data import BOS, EOS, PAD

NUMBERS = [*range(10_000), *random.Random(0).sample(range(10_000, 1_000_000), 2_000), 999_999]


def test_the_swap():
    assert english_parts(47) == ["forty", "seven"]
    assert german_parts(47) == ["sieben", "und", "vierzig"]
    assert english_parts(4721) == ["four", "thousand", "seven", "hundred", "and", "twenty", "one"]
    assert german_parts(4721) == ["vier", "tausend", "sieben", "hundert", "ein", "und", "zwanzig"]


def test_german_parts_join_to_the_word():
    for n in NUMBERS:
        assert "".join(german_parts(n)) == num2words(n, lang="de")


def test_english_parts_are_the_word_without_comma_and_hyphen():
    for n in NUMBERS:
        assert " ".join(english_parts(n)) == num2words(n).replace(",", "").replace("-", " ")


def test_the_last_german_parts_are_unit_und_tens():
    units = {"ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"}
    tens = {num2words(n, lang="de") for n in range(20, 100, 10)}
    for n in NUMBERS:
        if n % 100 > 20 and n % 10:
            unit, und, ten = german_parts(n)[-3:]
            assert (unit in units, und, ten in tens) == (True, "und", True), n


def test_no_two_numbers_share_their_words():
    assert len({tuple(german_parts(n)) for n in NUMBERS}) == len(NUMBERS)
    assert len({tuple(english_parts(n)) for n in NUMBERS}) == len(NUMBERS)


def test_the_inventory_is_small_and_longest_first():
    inventory = german_inventory()
    assert len(inventory) == len(set(inventory)) == 20 + 8 + 4
    assert [len(part) for part in inventory] == sorted(map(len, inventory), reverse=True)


@pytest.mark.parametrize("word", ["siebenundvierzigfach", "quatre", "million"])
def test_a_word_that_cannot_be_split_says_where(word):
    with pytest.raises(ValueError, match=rf"cannot split '{word}'"):
        split_german(word)


@pytest.mark.parametrize("number", [-1, 1_000_000])
def test_numbers_out_of_range(number):
    with pytest.raises(ValueError, match=f"0 to 999,999, got {number}"):
        number_word(number, "de")


def test_vocabulary_there_and_back():
    vocabulary = Vocabulary(["zwei", "eins", "zwei"])
    assert vocabulary.words == ["<pad>", "<bos>", "<eos>", "eins", "zwei"]
    assert len(vocabulary) == 5
    ids = vocabulary.encode(["zwei", "eins"])
    assert ids == [4, 3]
    assert vocabulary.decode([BOS, *ids, EOS, 4, PAD]) == ["zwei", "eins"]
    assert vocabulary.decode(torch.tensor([PAD, 4])) == ["zwei"]
    with pytest.raises(ValueError, match="not in the vocabulary: 'drei', 'vier'"):
        vocabulary.encode(["eins", "drei", "vier"])


def test_the_split_is_disjoint_complete_and_decided_by_the_seed():
    train, held_out = split_numbers(1000, 100, seed=3)
    assert sorted(train + held_out) == list(range(1000))
    assert (len(train), len(held_out)) == (900, 100)
    assert split_numbers(1000, 100, seed=3) == (train, held_out)
    assert split_numbers(1000, 100, seed=4)[1] != held_out


@pytest.mark.parametrize("n_held_out", [0, 10, 11])
def test_the_split_leaves_something_on_both_sides(n_held_out):
    with pytest.raises(ValueError, match=f"between 0 and upper=10, got {n_held_out}"):
        split_numbers(10, n_held_out)


@pytest.mark.parametrize("upper", [50, 1_000, 10_000, 1_000_000])
def test_the_vocabulary_covers_every_number(upper):
    data = NumberWords(upper=upper, n_held_out=10)
    numbers = [n for n in NUMBERS if n < upper]
    source, target = data.encode(numbers)
    assert source.shape[0] == target.shape[0] == len(numbers)
    for n, s, t in zip(numbers[::50], source[::50], target[::50], strict=True):
        assert data.english.decode(s) == english_parts(n)
        assert data.german.decode(t) == german_parts(n)
        assert t[0] == BOS


def test_batches_never_hold_a_held_out_number_and_repeat_with_the_seed():
    data = NumberWords(upper=200, n_held_out=100)
    forbidden = {tuple(english_parts(n)) for n in data.held_out}
    first, again = list(data.batches(5, 32, seed=1)), list(data.batches(5, 32, seed=1))
    assert len(first) == 5
    for (source, target), (source_2, target_2) in zip(first, again, strict=True):
        assert torch.equal(source, source_2)
        assert torch.equal(target, target_2)
        assert not forbidden & {tuple(data.english.decode(row)) for row in source}


def test_nothing_to_encode():
    with pytest.raises(ValueError, match="no numbers"):
        NumberWords(upper=50, n_held_out=10).encode([])


def test_pad():
    assert pad([[3, 4], [5]]).tolist() == [[3, 4], [5, PAD]]
