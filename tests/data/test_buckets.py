"""Bucketed batches: little padding, every pair once an epoch, the same on every pass."""

import random
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tformer_lib.data.buckets import BucketedBatches, padded, padding_share


def rows(n, seed=0):
    """n sources and targets of like lengths, 2 to 41; the first token of a source is its own number."""
    generator = random.Random(seed)
    lengths = [generator.randint(2, 40) for _ in range(n)]
    sources = [[1000 + i, *[5] * (length - generator.randint(0, 1))] for i, length in enumerate(lengths)]
    return sources, [[1, *[6] * (length - 1)] for length in lengths]


def test_padded():
    assert padded([[3, 4], [5], []], pad_id=9).tolist() == [[3, 4], [5, 9], [9, 9]]
    assert padded([[1]]).dtype == torch.int64
    with pytest.raises(ValueError, match="no rows to pad"):
        padded([])


def test_every_pair_once_an_epoch_then_again():
    sources, targets = rows(300)
    epoch = BucketedBatches(sources, targets, steps=1, tokens=200).steps_per_epoch
    batches = list(BucketedBatches(sources, targets, steps=epoch, tokens=200))
    read = [int(i) - 1000 for source, _ in batches for i in source[:, 0]]
    assert sorted(read) == list(range(300))
    twice = BucketedBatches(sources, targets, steps=2 * epoch - 3, tokens=200)
    count = Counter(int(i) for source, _ in twice for i in source[:, 0])
    assert len(count) == 300
    assert set(count.values()) <= {1, 2}


def test_a_row_keeps_its_source_and_target_together():
    sources, targets = rows(100)
    for source, target in BucketedBatches(sources, targets, steps=30, tokens=150):
        for one, other in zip(source.tolist(), target.tolist(), strict=True):
            i = one[0] - 1000
            assert [t for t in one if t] == sources[i]
            assert [t for t in other if t] == targets[i]


def test_size():
    sources, targets = rows(500)
    sizes = [target.numel() for _, target in BucketedBatches(sources, targets, steps=40, tokens=400)]
    assert max(sizes) <= 400
    assert sum(sizes) / len(sizes) > 340


def test_buckets_save_padding():
    sources, targets = rows(500)
    steps = BucketedBatches(sources, targets, steps=1, tokens=400).steps_per_epoch
    share, unsorted = (
        padding_share(BucketedBatches(sources, targets, steps=steps, tokens=400, bucketed=bucketed))
        for bucketed in (True, False)
    )
    assert share < 0.06
    assert unsorted > 0.4


def test_same_in_each_pass_and_different_with_the_seed():
    sources, targets = rows(100)
    batches = BucketedBatches(sources, targets, steps=12, tokens=200, seed=5)
    assert len(batches) == len(list(batches)) == 12
    for one, other in zip(batches, batches, strict=True):
        assert torch.equal(one[0], other[0])
        assert torch.equal(one[1], other[1])
    other = next(iter(BucketedBatches(sources, targets, steps=12, tokens=200, seed=6)))
    assert not torch.equal(next(iter(batches))[0], other[0])


def test_long_and_short_are_mixed_in_time():
    sources, targets = rows(1_000)
    batches = BucketedBatches(sources, targets, steps=60, tokens=400)
    widths = [target.shape[1] for _, target in batches]
    assert widths not in (sorted(widths), sorted(widths, reverse=True))
    assert 10 < sum(widths[:20]) / 20 < 35


@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=40), st.integers(12, 60)
)
def test_an_epoch_holds_each_pair_once_and_no_batch_is_too_large(lengths, tokens):
    sources = [[7] * one for one, _ in lengths]
    targets = [[8] * other for _, other in lengths]
    batches = BucketedBatches(sources, targets, steps=1, tokens=tokens)
    epoch = batches.epoch(torch.Generator().manual_seed(0))
    assert sorted(i for batch in epoch for i in batch) == list(range(len(lengths)))
    assert all(len(batch) * max(len(targets[i]) for i in batch) <= tokens for batch in epoch)


def test_padding_share():
    source, target = torch.tensor([[5, 0], [6, 7]]), torch.tensor([[1, 2, 0, 0], [1, 5, 5, 2]])
    assert padding_share([(source, target)]) == 3 / 12
    assert padding_share([(source, target)], pad_id=7) == 1 / 12
    with pytest.raises(ValueError, match="no batches"):
        padding_share([])


def test_errors():
    with pytest.raises(ValueError, match="got 1 sources and 2 targets"):
        BucketedBatches([[1]], [[1], [2]], steps=1, tokens=5)
    with pytest.raises(ValueError, match="got 0 sources and 0 targets"):
        BucketedBatches([], [], steps=1, tokens=5)
    with pytest.raises(ValueError, match="steps must be positive, got 0"):
        BucketedBatches([[1]], [[1]], steps=0, tokens=5)
    with pytest.raises(ValueError, match="a target has 6 tokens, and a batch is to have 5 at most"):
        BucketedBatches([[1]], [[1] * 6], steps=1, tokens=5)
