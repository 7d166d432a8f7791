"""Pairs of neighbouring words against a loop over the text."""

from collections import Counter
from itertools import pairwise

import pytest
import torch

from tformer_book.sequences.skip_grams import frequent_words, skip_gram_pairs, words_of

IDS = torch.tensor([3, 1, 0, -1, 2, 0, 1, 1, 4])


def test_words():
    text = "The King's 3 men; naïve, don't -- O'Neill's F-15 a_b."
    assert words_of(text) == ["the", "king's", "men", "naïve", "don't", "o'neill's", "f", "a", "b"]


def test_frequent_words_come_first_and_rare_ones_not_at_all():
    documents = [["b", "a", "c"], ["b", "c", "b", "d"]]
    assert frequent_words(documents, min_count=2) == {"b": 0, "c": 1}
    assert frequent_words(documents, min_count=1) == {"b": 0, "c": 1, "a": 2, "d": 3}


def test_with_a_window_of_one_the_pairs_are_the_neighbours():
    pairs = skip_gram_pairs(IDS, window=1, subsample=0)
    words = IDS.tolist()
    expected = Counter()
    for a, b in pairwise(words):
        if a >= 0 and b >= 0:
            expected.update([(a, b), (b, a)])
    assert Counter(zip(*(side.tolist() for side in pairs), strict=True)) == expected


def test_the_reach_is_drawn_evenly_and_no_pair_bridges_documents():
    ids = torch.cat([torch.arange(1000), torch.full((4,), -1), torch.arange(1000, 2000)])
    centres, contexts = skip_gram_pairs(ids, window=4, subsample=0)
    distances = (centres - contexts).abs()
    assert ((centres < 1000) == (contexts < 1000)).all()
    assert (distances > 0).all()
    # a word at distance d is seen by the centres that reach d or further: 4, 3, 2, 1 quarters of them
    shares = distances.bincount(minlength=5)[1:] / (2 * 2000)
    torch.testing.assert_close(shares, torch.tensor([1.0, 0.75, 0.5, 0.25]), rtol=0, atol=0.03)


def test_frequent_words_are_thinned_out():
    generator = torch.Generator().manual_seed(0)
    ids = torch.where(
        torch.rand(20_000, generator=generator) < 0.5,
        0,
        torch.randint(1, 1000, (20_000,), generator=generator),
    )
    full, _ = skip_gram_pairs(ids, window=1, subsample=0)
    thin, _ = skip_gram_pairs(ids, window=1, subsample=0.005)
    assert len(full) == 2 * (len(ids) - 1)
    kept = (thin == 0).sum().item() / (full == 0).sum().item()
    assert kept == pytest.approx((0.005 / 0.5) ** 0.5, abs=0.02)
    assert (thin != 0).sum().item() == pytest.approx((full != 0).sum().item(), rel=0.02)


def test_pairs_follow_their_seed():
    first, again, other = (skip_gram_pairs(torch.arange(100), seed=s) for s in (0, 0, 1))
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert len(first[0]) != len(other[0]) or not torch.equal(first[0], other[0])


def test_a_lone_word_has_no_pair():
    assert [len(side) for side in skip_gram_pairs(torch.tensor([5]), subsample=0)] == [0, 0]


def test_pairs_errors():
    for ids, window in ((IDS, 0), (torch.tensor([-1, -1]), 1)):
        with pytest.raises(ValueError, match="window of at least 1 and a word"):
            skip_gram_pairs(ids, window)
