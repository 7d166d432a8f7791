"""Attention between blocks: what is never looked at is never computed.

A sequence of N tokens is cut into C blocks of b. A block of queries meets a few blocks of keys, named by
number, and only those scores exist: (..., C, b, m b) of them, not (..., N, N).
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from tformer_lib.core.attention import attention

Rule = Callable[[Tensor, Tensor], Tensor]


def in_blocks(x: Float[Tensor, "*batch N Dh"], block: int) -> Float[Tensor, "*batch C b Dh"]:
    """(..., N, Dh) -> (..., C, b, Dh) with C = ceil(N / b); zeros fill the last block."""
    return F.pad(x, (0, 0, 0, -x.shape[-2] % block)).unflatten(-2, (-1, block))


def mask_blocks(mask: Tensor, shape: tuple[int, ...], block: int, rows: Tensor, columns: Tensor) -> Tensor:
    """Of a mask that broadcasts to `shape` (..., N, N) the blocks that are met: (..., R, b or 1, m b)."""
    fill = -shape[-1] % block
    mask = torch.atleast_2d(mask)
    if mask.shape[-2] == 1:  # padding: the same for all queries
        keys = F.pad(mask[..., 0, :].expand(*mask.shape[:-2], shape[-1]), (0, fill))
        return keys.unflatten(-1, (-1, block))[..., columns, :].flatten(-2)[..., None, :]
    mask = F.pad(mask.expand(*mask.shape[:-2], *shape[-2:]), (0, fill, 0, fill))
    tiles = mask.unflatten(-1, (-1, block)).unflatten(-3, (-1, block)).transpose(-3, -2)
    return tiles[..., rows[:, None], columns, :, :].transpose(-3, -2).flatten(-2)


def attend_blocks(
    q: Float[Tensor, "*batch N Dh"],
    k: Float[Tensor, "*batch N Dh"],
    v: Float[Tensor, "*batch N Dv"],
    mask: Tensor | None,
    *,
    block: int,
    rows: Int[Tensor, " R"],
    columns: Int[Tensor, "R m"],
    rule: Rule,
) -> Float[Tensor, "*batch R b Dv"]:
    """Block rows[r] of the queries attends to the blocks columns[r] of the keys.

    Args:
        q: queries, (..., N, Dh).
        k: keys, (..., N, Dh).
        v: values, (..., N, Dv).
        mask: None, or as for `Attend`.
        block: the number b of tokens in a block.
        rows: R numbers of blocks.
        columns: for each of them the numbers of m blocks. One that does not exist, such as -1, is never seen.
        rule: given places n (R, b, 1) of queries and s (R, 1, m b) of keys, which pairs may meet.

    Returns:
        The outputs, (..., R, b, Dv).
    """
    n_tokens, within = q.shape[-2], torch.arange(block, device=q.device)
    n = rows[:, None, None] * block + within[:, None]
    s = (columns[..., None] * block + within).flatten(1)[:, None, :]
    allowed = rule(n, s) & (s >= 0) & (s < n_tokens)
    there = columns.clamp(0, (n_tokens - 1) // block)
    if mask is not None:
        allowed = allowed & mask_blocks(mask, (*q.shape[:-1], n_tokens), block, rows, there)
    k_met, v_met = (in_blocks(x, block)[..., there, :, :].flatten(-3, -2) for x in (k, v))
    return attention(in_blocks(q, block)[..., rows, :, :], k_met, v_met, allowed)[0]
