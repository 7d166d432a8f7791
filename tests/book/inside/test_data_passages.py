"""A passage that comes again: where it stands, what can be known of it, and how it is scored."""

import math

import pytest
import torch

from tformer_book.inside.data.passages import (
    overlapping_pairs,
    passage_batches,
    passage_loss,
    repeated_passage,
)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_passage_is_one_of_the_first_tokens_in_order():
    tokens = repeated_passage(40, 300, first=12, passage=5, generator=seeded())
    assert tokens.shape == (300, 17)
    starts = []
    for row in tokens.tolist():
        assert len(set(row[:12])) == 12
        start = row.index(row[12])
        assert row[12:] == row[start : start + 5]
        starts.append(start)
    assert set(starts) == set(range(8))


def test_the_start_can_be_the_same_everywhere():
    tokens = repeated_passage(40, 30, first=12, passage=5, start=3, generator=seeded())
    assert torch.equal(tokens[:, 12:], tokens[:, 3:8])


@pytest.mark.parametrize(
    "sizes", [{"first": 41}, {"first": 12, "passage": 13}, {"first": 12, "passage": 5, "start": 8}]
)
def test_what_does_not_fit_is_refused(sizes):
    with pytest.raises(ValueError, match=r"first|start|different"):
        repeated_passage(40, 3, **sizes)


def test_batches_differ_and_come_again_with_their_seed():
    one, again = (passage_batches(3, 4, 40, seed=1) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one, again, strict=True))
    assert not torch.equal(one[0], one[1])


def test_the_loss_counts_what_can_be_known_and_nothing_else():
    tokens = repeated_passage(40, 8, first=12, passage=5, generator=seeded())

    class Perfect(torch.nn.Module):  # says the next token, and rubbish where it is not asked
        def forward(self, x):
            logits = torch.zeros(*x.shape, 40).scatter(2, tokens[:, 1:, None], 60.0)
            logits[:, :12] = -logits[:, :12]
            return logits

    class Uniform(torch.nn.Module):
        def forward(self, x):
            return torch.zeros(*x.shape, 40)

    assert passage_loss(Perfect(), tokens, 12) < 1e-6
    uniform = passage_loss(Uniform(), tokens, 12)
    assert uniform.item() == pytest.approx(math.log(40), abs=1e-5)


def test_pairs_differ_in_two_places_and_in_what_follows():
    clean, swapped, after, other = overlapping_pairs(40, 50, first=20, places=(4, 9), generator=seeded())
    assert clean.shape == (50, 21)
    assert (clean != swapped).nonzero()[:, 1].unique().tolist() == [4, 9]
    for rows, follows in ((clean, after), (swapped, other)):
        for row, wanted in zip(rows.tolist(), follows.tolist(), strict=True):
            assert row[row.index(row[-1]) + 1] == wanted
    with pytest.raises(ValueError, match="do not fit"):
        overlapping_pairs(40, 5, first=20, places=(4, 5))
