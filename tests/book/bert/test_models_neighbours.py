"""Neighbour tables against counting by hand."""

import math
from itertools import pairwise

import pytest
import torch

from tformer_book.bert.models.neighbours import NeighbourTable, neighbour_scores
from tformer_lib.core.tokens import IGNORED

VOCAB, D = 4, 0.75
TEXT = torch.tensor([0, 1, 2, 0, 1, 2, 0, 2, 1])


def unigram(w):
    return (TEXT.tolist().count(w) + 1) / (len(TEXT) + VOCAB)


def smoothed(counts, lower):
    total = sum(counts)
    if not total:
        return lower
    free = D * sum(c > 0 for c in counts) / total
    return [max(c - D, 0) / total + free * p for c, p in zip(counts, lower, strict=True)]


def brute_force(left, right):
    """By the class's formula, with counts of slices of the list."""
    text = TEXT.tolist()
    pairs = list(pairwise(text))
    triples = list(zip(text, text[1:], text[2:], strict=False))
    one = [unigram(w) for w in range(VOCAB)]
    before = smoothed([pairs.count((left, w)) for w in range(VOCAB)], one)
    after = smoothed([pairs.count((w, right)) for w in range(VOCAB)], one)
    q = [b * a / u for b, a, u in zip(before, after, one, strict=True)]
    q = [x / sum(q) for x in q]
    return before, after, smoothed([triples.count((left, w, right)) for w in range(VOCAB)], q)


@pytest.mark.parametrize("left", [-1, 0, 1, 2, 3])
@pytest.mark.parametrize("right", [-1, 0, 1, 2, 3])
def test_every_probability_is_brute_forces(left, right):
    table = NeighbourTable(VOCAB, D).fit(TEXT)
    sides = torch.tensor([left]), torch.tensor([right])
    found = (
        table.log_probabilities(left=sides[0]),
        table.log_probabilities(right=sides[1]),
        table.log_probabilities(*sides),
    )
    for rows, expected in zip(found, brute_force(left, right), strict=True):
        torch.testing.assert_close(rows[0].exp(), torch.tensor(expected))
        assert math.isclose(rows.exp().sum().item(), 1, rel_tol=1e-5)


def test_unknown_neighbours_leave_the_unigram():
    table = NeighbourTable(VOCAB).fit(TEXT)
    nothing = torch.tensor([-1, 3])  # 3 does not occur
    expected = torch.tensor([unigram(w) for w in range(VOCAB)]).log().expand(2, -1)
    torch.testing.assert_close(table.log_probabilities(nothing, nothing), expected)


def test_scores_look_beside_the_chosen_places():
    table = NeighbourTable(VOCAB).fit(TEXT)
    tokens = torch.tensor([[3, 1, 2], [0, 3, 2]])  # 3 stands for [MASK]
    targets = torch.tensor([[0, IGNORED, IGNORED], [IGNORED, 1, IGNORED]])
    batch = (tokens, torch.zeros_like(tokens), torch.ones(2, 1, 1, 3) > 0, targets, torch.zeros(2).long())
    for sides, before, after in (
        ("both", torch.tensor([-1, 0]), torch.tensor([1, 2])),
        ("left", torch.tensor([-1, 0]), None),
        ("right", None, torch.tensor([1, 2])),
    ):
        rows = table.log_probabilities(before, after)
        loss, accuracy = neighbour_scores(table, [batch], sides)
        assert math.isclose(loss, -(rows[0, 0] + rows[1, 1]).item() / 2, rel_tol=1e-6)
        assert accuracy == ((rows[0].argmax() == 0).int() + (rows[1].argmax() == 1).int()).item() / 2


def test_both_sides_are_right_about_a_markov_chain():
    """Where a token depends on the one before it alone, q is the truth, and more text comes nearer to it."""
    torch.manual_seed(0)
    chain = torch.rand(VOCAB, VOCAB).pow(2)
    chain = chain / chain.sum(-1, keepdim=True)
    text = [0]
    for draw in torch.rand(20_000):
        text.append(int((chain[text[-1]].cumsum(0) < draw).sum().clamp(max=VOCAB - 1)))
    table = NeighbourTable(VOCAB).fit(torch.tensor(text))
    left, right = torch.arange(VOCAB).repeat_interleave(VOCAB), torch.arange(VOCAB).repeat(VOCAB)
    true = chain[left] * chain[:, right].T
    true = true / true.sum(-1, keepdim=True)
    assert (table.log_probabilities(left, right).exp() - true).abs().max() < 0.05


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="discount"):
        NeighbourTable(4, 1.0)
    with pytest.raises(ValueError, match="three tokens"):
        NeighbourTable(4).fit(TEXT[:2])
    with pytest.raises(ValueError, match=r"0\.\.1"):
        NeighbourTable(2).fit(TEXT)
    with pytest.raises(RuntimeError, match="fit"):
        NeighbourTable(4).log_probabilities(TEXT)
    table = NeighbourTable(4).fit(TEXT)
    with pytest.raises(ValueError, match="left"):
        table.log_probabilities()
    with pytest.raises(ValueError, match=r"0\.\.3"):
        table.log_probabilities(torch.tensor([4]))
    with pytest.raises(ValueError, match="sides"):
        neighbour_scores(table, [], "above")
    with pytest.raises(ValueError, match="no place"):
        neighbour_scores(table, [])
