"""What the backends for long sequences cost: memory, counted, and the number of scores."""

import math

import pytest
import torch

from tformer_lib.core.attention import Attend
from tformer_lib.efficient.linear import LinearAttend
from tformer_lib.efficient.low_rank import LowRankAttend
from tformer_lib.efficient.sliding import SlidingWindow
from tformer_lib.efficient.sparse import BlockSparse
from tformer_lib.efficient.tiled import TiledAttend
from tformer_lib.measures.memory import peak_memory

COSTS = {  # backend, and the power of N with which the memory of a training step grows
    "Attend": (Attend(), 2.0),
    "sliding": (SlidingWindow(32), 1.0),
    "sliding, causal": (SlidingWindow(32, causal=True), 1.0),
    "local and global blocks": (BlockSparse(32, local=2, n_global=1), 1.0),
    "every second block": (BlockSparse(32, stride=2), 2.0),
    "linear": (LinearAttend(), 1.0),
    "linear, causal": (LinearAttend(causal=True), 1.0),
    "low-rank": (LowRankAttend(2048, 32), 1.0),
    "tiled": (TiledAttend(32), 1.0),
    "tiled, causal": (TiledAttend(32, causal=True), 1.0),
    "tiled, in a window": (TiledAttend(32, causal=True, window=64), 1.0),
}


def step(backend, n):
    q, k, v = (torch.randn(1, 2, n, 16, requires_grad=True) for _ in range(3))
    return lambda: backend(q, k, v).sum().backward()


@pytest.mark.parametrize("name", COSTS)
def test_memory_grows_with_this_power(name):
    backend, power = COSTS[name]

    def made(n):
        # gradients of E and F are of their full size, the longest sequence's
        return (LowRankAttend(n, 32) if isinstance(backend, LowRankAttend) else backend).double()

    small, large = (peak_memory(step(made(n), n)) for n in (512, 1024))
    assert math.log2(large / small) == pytest.approx(power, abs=0.15)


@pytest.mark.parametrize(
    ("backend", "n"),
    [(TiledAttend(16), 256), (SlidingWindow(16), 1024), (LinearAttend(causal=True, chunk=16), 1024)],
)
def test_no_matrix_of_pairs_at_any_time(backend, n):
    assert peak_memory(step(backend, n)) < n * n * 8  # one (N, N) matrix of one head, in float64


def test_tiles_keep_output_and_one_number_a_query():
    q, k, v = (torch.randn(1, 1, 64, 8, requires_grad=True) for _ in range(3))
    output = TiledAttend(16)(q, k, v)  # which keeps its graph alive
    kept = output.grad_fn.saved_tensors
    assert sorted(tuple(x.shape) for x in kept if x is not None) == sorted(
        [*[(1, 1, 64, 8)] * 4, (1, 1, 64, 1)]
    )


def counted_pairs(monkeypatch, call):
    """How many scores `attention` was asked for in a call."""
    import tformer_lib.efficient.blocks as blocks

    pairs, true = [], blocks.attention
    monkeypatch.setattr(
        blocks,
        "attention",
        lambda q, k, v, m: pairs.append(q[..., 0].numel() * k.shape[-2]) or true(q, k, v, m),
    )
    call()
    return sum(pairs)


def test_only_neighbouring_blocks_are_computed(monkeypatch):
    q = torch.randn(1, 1, 320, 4)
    for causal, blocks in ((False, 3), (True, 2)):
        pairs = counted_pairs(monkeypatch, lambda c=causal: SlidingWindow(32, causal=c)(q, q, q))
        assert pairs == 320 * blocks * 32
        monkeypatch.undo()


def test_only_blocks_of_the_layout_are_computed(monkeypatch):
    q, backend = torch.randn(1, 1, 320, 4), BlockSparse(32, local=2, stride=3, n_global=1)
    pairs = counted_pairs(monkeypatch, lambda: backend(q, q, q))
    assert pairs == backend.layout(10).sum() * 32 * 32


def test_a_tiled_window_forms_the_tiles_that_it_reaches():
    from tformer_lib.efficient.tiled import seen_tiles

    formed = [len(list(seen_tiles(96, 96, 8, True, slice(n, n + 8), 17))) for n in range(0, 96, 8)]
    assert formed == [1, 2, *[3] * 10]


def test_a_step_with_a_window_reads_the_window_alone(monkeypatch):
    k = torch.randn(1, 1, 500, 4)
    for queries, most in ((1, 32), (5, 2 * 5 * (32 + 2 * 5))):
        call = lambda n=queries: SlidingWindow(32, causal=True)(k[..., -n:, :], k, k)  # noqa: E731
        assert counted_pairs(monkeypatch, call) <= most
        monkeypatch.undo()
