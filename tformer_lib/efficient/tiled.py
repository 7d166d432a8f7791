"""Tiled attention: the exact result of `Attend` without the N by S matrix.

The online softmax (Milakov and Gimelshein 2018) lets keys arrive a tile at a time, and the weighted sum of
values is carried along with its denominator (Rabe and Staats 2021); the backward pass computes the weights
again, tile by tile (Dao et al. 2022), from one number a query that the forward pass kept (Dao 2024).
"""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tformer_lib.core.attention import Backend
from tformer_lib.core.precision import as_given
from tformer_lib.efficient.key_masks import check_last


def tiles(length: int, tile: int) -> Iterator[slice]:
    """0..tile, tile..2 tile, and so on to the end."""
    return (slice(start, min(start + tile, length)) for start in range(0, length, tile))


def seen_tiles(
    n: int, s: int, tile: int, causal: bool, rows: slice, window: int | None = None
) -> Iterator[slice]:
    """The tiles of keys that these queries may see any of; queries are the last n of s positions."""
    first = 0 if window is None else max(0, s - n + rows.start - window + 1)
    found = tiles(min(s, s - n + rows.stop) if causal else s, tile)
    return (columns for columns in found if columns.stop > first)


def tile_scores(
    q: Tensor,
    k: Tensor,
    mask: Tensor | None,
    causal: bool,
    rows: slice,
    columns: slice,
    window: int | None = None,
) -> Tensor:
    """q k^T / sqrt(Dh) of one tile, in float32 at least; minus infinity where a pair may not meet."""
    precise = torch.promote_types(q.dtype, torch.float32)
    scores = q[..., rows, :].to(precise) @ k[..., columns, :].to(precise).mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask[..., rows, columns], -math.inf)
    if causal:
        n, s = torch.arange(q.shape[-2])[rows], torch.arange(k.shape[-2])[columns]
        back = n[:, None] + k.shape[-2] - q.shape[-2] - s
        unseen = back < 0 if window is None else (back < 0) | (back >= window)
        scores = scores.masked_fill(unseen.to(q.device), -math.inf)
    return scores


def in_full(method: Callable[..., Any]) -> Callable[..., Any]:
    """A pass of `OnlineAttention` that leaves its float32 alone, under `torch.autocast` too."""

    @functools.wraps(method)
    def widened(ctx: Any, first: Tensor, *rest: Any) -> Any:
        with as_given(first):
            return method(ctx, first, *rest)

    return widened


class OnlineAttention(torch.autograd.Function):
    """Forward and backward pass of attention, both in tiles; see the module's docstring."""

    @staticmethod
    @in_full
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        tile: int,
        causal: bool,
        window: int | None = None,
    ) -> Any:
        """The output; beside it only the logarithm of each query's denominator is kept."""
        n, s = q.shape[-2], k.shape[-2]
        output = v.new_empty(*q.shape[:-1], v.shape[-1])
        log_total = q.new_empty(*q.shape[:-1], 1, dtype=torch.promote_types(q.dtype, torch.float32))
        for rows in tiles(n, tile):
            top = torch.full_like(log_total[..., rows, :], torch.finfo(log_total.dtype).min)
            total, summed = torch.zeros_like(top), top.new_zeros(*top.shape[:-1], v.shape[-1])
            for columns in seen_tiles(n, s, tile, causal, rows, window):
                scores = tile_scores(q, k, mask, causal, rows, columns, window)
                new_top = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
                old, weights = (top - new_top).exp(), (scores - new_top).exp()
                total = total * old + weights.sum(dim=-1, keepdim=True)
                summed = summed * old + weights @ v[..., columns, :].to(summed.dtype)
                top = new_top
            empty = total == 0  # a query that saw no key: its output is zero, and so are its weights
            output[..., rows, :] = (summed / total.masked_fill(empty, 1.0)).to(output.dtype)
            log_total[..., rows, :] = (top + total.log()).masked_fill(empty, 0.0)
        ctx.save_for_backward(q, k, v, mask, output, log_total)
        ctx.tile, ctx.causal, ctx.window = tile, causal, window
        return output

    @staticmethod
    @once_differentiable
    @in_full
    def backward(ctx: Any, d_output: Tensor) -> Any:
        """dV = A^T dO, dS = A * (dO V^T - rowsum(dO * O)), dQ = dS K, dK = dS^T Q, tile by tile."""
        q, k, v, mask, output, log_total = ctx.saved_tensors
        precise, scale = log_total.dtype, 1 / math.sqrt(q.shape[-1])
        d_q, d_k, d_v = (torch.zeros_like(x, dtype=precise) for x in (q, k, v))
        for rows in tiles(q.shape[-2], ctx.tile):
            d_o = d_output[..., rows, :].to(precise)
            mean = (d_o * output[..., rows, :]).sum(dim=-1, keepdim=True)  # sum over s of A_ns dA_ns
            n, s = q.shape[-2], k.shape[-2]
            for columns in seen_tiles(n, s, ctx.tile, ctx.causal, rows, ctx.window):
                scores = tile_scores(q, k, mask, ctx.causal, rows, columns, ctx.window)
                weights = (scores - log_total[..., rows, :]).exp()
                d_v[..., columns, :] += weights.mT @ d_o
                d_scores = weights * (d_o @ v[..., columns, :].to(precise).mT - mean) * scale
                d_q[..., rows, :] += d_scores @ k[..., columns, :].to(precise)
                d_k[..., columns, :] += d_scores.mT @ q[..., rows, :].to(precise)
        return d_q.to(q.dtype), d_k.to(k.dtype), d_v.to(v.dtype), None, None, None, None


class TiledAttend(Backend):
    """`Attend`, exactly, in O(N) memory: scores exist for `tile` queries and `tile` keys at a time.

    Time stays O(N S), and a causal one skips the tiles in which no pair may meet. For the backward pass the
    output and one number a query are kept. First derivatives only: the gradients themselves cannot be
    differentiated, and `create_graph=True` returns them detached. Written to be read: a loop in Python,
    where Dao et al. (2022) have one kernel that keeps its tiles in the fast memory of an accelerator.

    Args:
        tile: the number of queries, and of keys, in a tile.
        causal: whether queries look back only; they are then the last N of the S positions.
        window: how many keys a causal query sees, itself and those before it; tiles outside are skipped, and
            time is O(N window). None is all of them.

    Raises:
        ValueError: if a tile or a window is empty, or a window is not causal; in forward, if shapes do not
            match, or causal queries outnumber keys.
        TypeError: in forward, if the mask is not boolean.
    """

    def __init__(self, tile: int = 128, *, causal: bool = False, window: int | None = None):
        super().__init__()
        if tile < 1:
            raise ValueError(f"a tile holds at least one token, got tile={tile}")
        if window is not None and (window < 1 or not causal):
            raise ValueError(f"a window looks back and holds the token itself, got {window=}, {causal=}")
        self.tile, self.causal, self.window = tile, causal, window

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        if self.causal:
            check_last(q, k)
        if mask is not None:
            mask = mask.expand(*q.shape[:-1], k.shape[-2])  # a view: it takes no memory
        return OnlineAttention.apply(q, k, v, mask, self.tile, self.causal, self.window)
