"""The toy sequences are what they say."""

import pytest
import torch

from tformer_book.kit.data.toy import as_target, random_symbols, reversal, reversal_batches, reverse
from tformer_lib.data import BOS, EOS, PAD


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def words(rows):
    return [[t for t in row if t not in (PAD, BOS, EOS)] for row in rows.tolist()]


@pytest.mark.parametrize("length", [1, 6, (1, 6), (4, 4)])
def test_reversal_reverses(length):
    source, target = reversal(200, length, 5, seeded())
    assert [row[::-1] for row in words(source)] == words(target)


def test_a_target_begins_ends_and_is_padded():
    tokens = torch.tensor([[5, 6, 7], [8, PAD, PAD]])
    assert as_target(tokens).tolist() == [[BOS, 5, 6, 7, EOS], [BOS, 8, EOS, PAD, PAD]]
    assert reverse(tokens).tolist() == [[7, 6, 5], [8, PAD, PAD]]


def test_symbols_and_lengths_are_all_used():
    tokens = random_symbols(2000, (2, 5), 4, seeded())
    assert set(tokens.unique().tolist()) == {PAD, 3, 4, 5, 6}
    lengths = (tokens != PAD).sum(dim=1)
    assert (torch.bincount(lengths)[2:] > 400).all()
    assert (tokens[torch.arange(2000), lengths - 1] != PAD).all()


def test_the_generator_decides():
    assert torch.equal(random_symbols(9, (1, 5), 4, seeded(1)), random_symbols(9, (1, 5), 4, seeded(1)))
    assert not torch.equal(random_symbols(9, 5, 4, seeded(1)), random_symbols(9, 5, 4, seeded(2)))


def test_batches_are_of_one_length_each():
    batches = reversal_batches(60, 4, (1, 5), 7, seed=0)
    again = reversal_batches(60, 4, (1, 5), 7, seed=0)
    assert len(batches) == 60
    assert {source.shape[1] for source, _ in batches} == {1, 2, 3, 4, 5}
    assert all((source != PAD).all() for source, _ in batches)
    assert all(
        torch.equal(a[0], b[0]) and torch.equal(a[1], b[1]) for a, b in zip(batches, again, strict=True)
    )


@pytest.mark.parametrize("arguments", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (2, (4, 3), 4), (2, (0, 3), 4)])
def test_sizes_are_checked(arguments):
    with pytest.raises(ValueError, match="at least 1"):
        random_symbols(*arguments)
