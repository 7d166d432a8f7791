"""Translation sets: one vocabulary for both sides, nothing lost in it, and batches of the training part."""

import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tformer_book.translation.data.translation import (
    KINDS,
    TranslationSet,
    near_duplicates,
    number_pairs,
    translation_set,
)
from tformer_lib.data import BOS, EOS, PAD
from tformer_lib.data.buckets import padding_share

SETS = [(kind, language) for kind in KINDS for language in ("fr", "de")]
SMALL = TranslationSet([("one day", "ein Tag"), ("two days", "zwei Tage")], [], [("a day", "ein Tag")], 300)


@pytest.fixture(scope="module")
def sets():
    return {of: translation_set(*of) for of in SETS}


def test_numbers():
    assert number_pairs("de")[47] == ("forty-seven", "siebenundvierzig")
    assert number_pairs("fr", upper=100)[-1] == ("ninety-nine", "quatre-vingt-dix-neuf")
    assert [len(number_pairs("de", upper=n)) for n in (1, 30)] == [1, 30]
    for upper in (0, 1_000_001):
        with pytest.raises(ValueError, match=f"between 1 and 1,000,000, got {upper}"):
            number_pairs("de", upper=upper)
    with pytest.raises(ValueError, match="got 'en'"):
        number_pairs("en")


@pytest.mark.parametrize("of", SETS)
def test_every_pair_comes_back_from_its_tokens(sets, of):
    data = sets[of]
    assert (len(data.validation), len(data.test)) == (500, 500)
    for part in (data.train[::17], data.validation, data.test):
        source, target = data.encode(part)
        assert source.dtype == target.dtype == torch.int64
        assert target[:, 0].eq(data.bos_id).all()
        for ids, other, pair in zip(source, target, part, strict=True):
            assert (data.decode(ids), data.decode(other)) == pair
            assert ids[-1] in (data.pad_id, data.eos_id)
            assert (ids == data.eos_id).sum() == (other == data.eos_id).sum() == 1


@pytest.mark.parametrize("of", SETS)
def test_near_duplicates_are_there_for_numbers_only(sets, of):
    data = sets[of]
    share = near_duplicates(data.train, data.test)
    if of[0] == "numbers":
        assert share > 0.9  # each number has neighbours
    else:
        assert share == near_duplicates(data.train, data.test, side="other") == 0
    assert near_duplicates(data.train, data.train[:50], side="both") == 1


@pytest.mark.parametrize("of", SETS)
def test_buckets_save_padding_and_read_every_pair(sets, of):
    data = sets[of]
    epoch = data.batches(1, tokens=1_500).steps_per_epoch
    batches = list(data.batches(epoch, tokens=1_500))
    assert padding_share(batches) < 0.15
    assert padding_share(data.batches(epoch, tokens=1_500, bucketed=False)) > 0.2
    read = sorted((data.decode(s), data.decode(t)) for batch in batches for s, t in zip(*batch, strict=True))
    assert read == sorted(data.train)
    sizes = [target.numel() for _, target in batches]
    assert max(sizes) <= 1_500
    assert sum(sizes) / len(sizes) > 1_250


def test_batches_of_a_seed_are_the_same_in_each_pass():
    data = SMALL
    one, other = data.batches(5, tokens=20, seed=1), data.batches(5, tokens=20, seed=1)
    assert len(one) == 5
    for first, second in zip([*one, *one], [*other, *other], strict=True):
        assert torch.equal(first[0], second[0])
        assert torch.equal(first[1], second[1])


def test_statistics(sets):
    numbers = sets["phrases", "de"].statistics()
    assert numbers["pairs, train"] > 9_000
    assert numbers["pairs, test"] == numbers["pairs, validation"] == 500
    assert numbers["vocabulary"] == 2_000
    assert numbers["padding, in buckets"] < 0.12 < 0.4 < numbers["padding, without"]
    small = SMALL.statistics(tokens=50)
    assert small["pairs, train"] == 2
    assert small["English: mean words"] == small["other: most words"] == 2
    assert small["English: distinct words"] == 4
    lengths = [len(SMALL.tokenizer.encode(text)) for text in ("ein Tag", "zwei Tage")]
    assert small["other: mean tokens"] == sum(lengths) / 2
    assert small["other: most tokens"] == max(lengths)


def test_vocabulary():
    assert (SMALL.pad_id, SMALL.bos_id, SMALL.eos_id) == (PAD, BOS, EOS)
    assert SMALL.tokenizer.special_tokens == {"[PAD]": PAD, "[BOS]": BOS, "[EOS]": EOS}
    assert SMALL.vocab_size == SMALL.tokenizer.vocab_size <= 300
    assert len(SMALL.tokenizer.encode(" Tag")) < 4  # learnt from both sides
    assert len(SMALL.tokenizer.encode(" day")) < 4


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), min_size=1, max_size=5))
def test_any_text_there_and_back(pairs):
    source, target = SMALL.encode(pairs)
    assert [(SMALL.decode(s), SMALL.decode(t)) for s, t in zip(source, target, strict=True)] == pairs


def test_decode_stops_at_the_first_end():
    ids = SMALL.tokenizer.encode("ein Tag")
    assert SMALL.decode([BOS, *ids, EOS, *ids, EOS, PAD]) == "ein Tag"
    assert SMALL.decode([BOS, EOS]) == ""
    assert SMALL.decode(torch.tensor([*ids, PAD])) == "ein Tag"


def test_samples(sets):
    data = sets["interface", "fr"]
    few = data.samples(5, seed=1)
    assert few == data.samples(5, seed=1) != data.samples(5, seed=2)
    assert set(few) <= set(data.test)
    assert set(data.samples(5, part="train")) <= set(data.train)
    with pytest.raises(
        ValueError, match="the test part has 500 pairs: n must lie between 1 and that, got 501"
    ):
        data.samples(501)
    with pytest.raises(ValueError, match="'train', 'validation', 'test', got 'dev'"):
        data.samples(1, part="dev")


def test_the_same_in_another_process(sets):
    script = (
        "from tformer_book.translation.data.translation import translation_set;"
        "s = translation_set('interface', 'de');"
        "print(ascii(s.samples(3))); print(s.encode(s.test)[1].sum().item());"
        "print(sum(t.sum().item() for _, t in s.batches(20)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    data = sets["interface", "de"]
    tokens = data.encode(data.test)[1].sum().item()
    read = sum(target.sum().item() for _, target in data.batches(20))
    assert run.stdout.splitlines() == [ascii(data.samples(3)), str(tokens), str(read)]


def test_sizes_can_be_chosen():
    data = translation_set("numbers", "de", vocab_size=300, held_out=50, seed=2)
    assert data.vocab_size == 300
    assert (len(data.train), len(data.validation), len(data.test)) == (9_900, 50, 50)


def test_errors():
    with pytest.raises(ValueError, match="kind is one of 'numbers', 'phrases', 'interface', got 'news'"):
        translation_set("news", "de")
    with pytest.raises(ValueError, match=r'"fr" \(French\) or "de" \(German\), got \'es\''):
        translation_set("phrases", "es")
    with pytest.raises(ValueError, match="vocab_size is too small"):
        TranslationSet(SMALL.train, [], [], 200)
    with pytest.raises(ValueError, match="no pairs to train on"):
        TranslationSet([], [], [])
    with pytest.raises(ValueError, match="no pairs to encode"):
        SMALL.encode([])
    with pytest.raises(ValueError, match="a batch is to have 3 at most"):
        SMALL.batches(1, tokens=3)
