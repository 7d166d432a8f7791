"""Which keys to throw away when a cache is full: four rules, and attention that lives with one of them."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tformer_lib.core.attention import Backend
from tformer_lib.efficient.key_masks import key_mask
from tformer_lib.numbers import whole

#: What each of n keys is worth after n tokens: made of the weight (..., n) that each has received so far.
Worth = Callable[[Tensor], Tensor]


def last(received: Tensor) -> Tensor:
    """The newest: a rolling cache."""
    return torch.arange(received.shape[-1], dtype=received.dtype).expand_as(received)


def sinks(received: Tensor, first: int = 4) -> Tensor:
    """The first few tokens and the newest (Xiao et al. 2024)."""
    return last(received).index_fill(-1, torch.arange(min(first, received.shape[-1])), math.inf)


def heavy(received: Tensor, recent: int) -> Tensor:
    """The `recent` newest, and what has received most weight of the others (Zhang et al. 2023)."""
    n = received.shape[-1]
    return received.index_fill(-1, torch.arange(max(n - recent, 0), n), math.inf)


def chance(received: Tensor) -> Tensor:
    """Any, evenly: the control."""
    return torch.rand_like(received)


class KeepFew(Backend):
    """softmax over at most `budget` keys, the token's own among them; the one of least worth makes room.

    Tokens are read one after the other, as in generation. After each, if the cache is full, the key of least
    worth goes, for good. Keys keep the positions that they had.

    Args:
        budget: how many keys are kept.
        worth: says of what every key has received what it is worth.
        shared: heads of queries that share their keys; they share what is thrown away.

    Raises:
        TypeError: if the budget or `shared` is no whole number.
        ValueError: if one is below 1; in forward, if there is a key without a query, heads do not divide into
            groups, or the mask is another than the causal one.
    """

    def __init__(self, budget: int, worth: Worth, *, shared: int = 1):
        super().__init__()
        self.budget, self.shared = whole("budget", budget, 1), whole("shared", shared, 1)
        self.worth = worth

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        keys = key_mask(mask, q, k, causal=True, name="KeepFew")
        if keys is not None and not keys.all():
            raise ValueError("KeepFew reads texts of one length, without padding")
        if q.shape[-2] != k.shape[-2] or q.shape[1] % self.shared:
            raise ValueError(
                f"each token has a query and a key, and heads come in groups of {self.shared}, "
                f"got q {tuple(q.shape)} and k {tuple(k.shape)}"
            )
        scores = q @ k.mT / math.sqrt(q.shape[-1])  # (B, H, N, N)
        kept = torch.zeros(scores.shape[:-1], dtype=torch.bool)  # (B, H, N)
        received, rows = torch.zeros_like(scores[..., 0, :]), []
        for n in range(q.shape[-2]):
            kept[..., n] = True
            rows.append(scores[..., n, :].masked_fill(~kept, -math.inf).softmax(dim=-1))
            received = received + rows[-1]
            if n + 1 >= self.budget:
                groups = self.worth(received[..., : n + 1]).unflatten(1, (-1, self.shared))
                worth = groups.mean(dim=2).repeat_interleave(self.shared, dim=1)
                worth = worth.masked_fill(~kept[..., : n + 1], math.inf)
                kept.scatter_(-1, worth.argmin(dim=-1, keepdim=True), False)
        return torch.stack(rows, dim=-2) @ v
