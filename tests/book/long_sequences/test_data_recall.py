"""Associative recall: pairs, then questions with one answer."""

import pytest
import torch

from tformer_book.long_sequences.data.recall import associative_recall, recall_batches
from tformer_lib.core.tokens import IGNORED

SIZES = {"n_keys": 30, "n_values": 5}


def drawn(seed=0, pairs=12, queries=7):
    return associative_recall(40, pairs, queries, **SIZES, generator=torch.Generator().manual_seed(seed))


def test_each_answer_is_the_value_of_the_one_pair_with_that_key():
    batch = drawn()
    for keys, values, answers, distances in zip(*(x.tolist() for x in batch), strict=True):
        assert len(set(keys[:12])) == 12
        assert len(set(keys[12:])) == 7
        assert all(1 <= value <= 5 for value in values[:12])
        assert set(values[12:]) == {0}
        assert set(answers[:12]) == {IGNORED}
        assert set(distances[:12]) == {0}
        for place in range(12, 19):
            pair = keys.index(keys[place])
            assert pair < 12
            assert answers[place] == values[pair]
            assert distances[place] == place - pair


def test_all_keys_values_and_pairs_are_used():
    batch = associative_recall(500, 6, 3, **SIZES, generator=torch.Generator().manual_seed(1))
    assert batch.keys.unique().numel() == 30
    assert batch.answers.unique().tolist() == [IGNORED, 1, 2, 3, 4, 5]
    asked = (torch.arange(9) - batch.distances)[:, 6:]
    assert asked.unique().tolist() == list(range(6))


def test_seeds():
    assert all(torch.equal(a, b) for a, b in zip(drawn(3), drawn(3), strict=True))
    assert not torch.equal(drawn(3).keys, drawn(4).keys)


def test_batches_have_lengths_between():
    batches = recall_batches(60, 4, (5, 9), 3, **SIZES, seed=0)
    assert {b.keys.shape[1] for b in batches} == {8, 9, 10, 11, 12}
    again = recall_batches(60, 4, (5, 9), 3, **SIZES, seed=0)
    assert all(torch.equal(a.values, b.values) for a, b in zip(batches, again, strict=True))


@pytest.mark.parametrize("pairs", [(9, 5), (2, 9), (5, 31)])
def test_batches_of_impossible_lengths_are_refused(pairs):
    with pytest.raises(ValueError, match="queries <= fewest <= most <= n_keys"):
        recall_batches(60, 4, pairs, 3, **SIZES, seed=0)


@pytest.mark.parametrize("numbers", [(0, 3, 2), (4, 3, 0), (4, 3, 4), (4, 31, 2)])
def test_impossible_numbers_are_refused(numbers):
    with pytest.raises(ValueError, match="queries <= pairs <= n_keys") as caught:
        associative_recall(*numbers, **SIZES)
    assert f"pairs={numbers[1]}" in str(caught.value)
