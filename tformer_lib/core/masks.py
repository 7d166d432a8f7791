"""Masks: boolean tensors in which True means "this query may attend to this key".

This is the convention of `torch.nn.functional.scaled_dot_product_attention`;
`torch.nn.MultiheadAttention` has the opposite one (True means "not allowed").
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from tformer_lib.inputs import check_whole
from tformer_lib.numbers import whole


def causal_mask(n: int, device: torch.device | str | None = None, *, past: int = 0) -> Bool[Tensor, "N S"]:
    """mask[i, j] = (j <= past + i): query i may attend to itself and to everything before it.

    Args:
        n: the number of queries N.
        device: where to build the mask.
        past: how many tokens precede the first query, S = past + N keys in all.

    Returns:
        An (N, S) boolean tensor, queries down and keys across; it broadcasts over batch and heads.

    Raises:
        TypeError: if `n` or `past` is no whole number.
        ValueError: if one is negative.
    """
    n, past = whole("n", n), whole("past", past)
    if n < 0 or past < 0:
        raise ValueError(f"a causal mask needs lengths of at least 0, got n={n} and past={past}")
    return torch.ones(n, past + n, dtype=torch.bool, device=device).tril(past)


def padding_mask(tokens: Int[Tensor, "B S"], pad_id: int) -> Bool[Tensor, "B 1 1 S"]:
    """mask[b, 0, 0, j] = (tokens[b, j] != pad_id): nobody may attend to padding.

    The two middle axes stand for heads and queries, so that the mask broadcasts against
    (B, H, N, S) scores and combines with a causal mask: `causal_mask(N) & padding_mask(tokens, 0)`.

    Args:
        tokens: token numbers, (B, S).
        pad_id: the number that stands for "no token here".

    Raises:
        TypeError: if tokens or `pad_id` are not whole numbers.
        ValueError: if the tokens are not (B, S).
    """
    check_whole("tokens", tokens, "B S", any_size=True)
    return (tokens != whole("pad_id", pad_id, -(2**63), 2**63 - 1))[:, None, None, :]
