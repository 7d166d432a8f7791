"""Masks: boolean tensors in which True means "this query may attend to this key".

This is the convention of `torch.nn.functional.scaled_dot_product_attention`;
`torch.nn.MultiheadAttention` has the opposite one (True means "not allowed").
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def causal_mask(n: int, device: torch.device | str | None = None) -> Bool[Tensor, "N N"]:
    """mask[i, j] = (j <= i): query i may attend to itself and to everything before it.

    Args:
        n: the sequence length N.
        device: where to build the mask.

    Returns:
        An (N, N) boolean tensor, queries down and keys across; it broadcasts over batch and heads.

    Raises:
        ValueError: if `n` is negative.
    """
    if n < 0:
        raise ValueError(f"a causal mask needs a length of at least 0, got n={n}")
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def padding_mask(tokens: Int[Tensor, "B S"], pad_id: int) -> Bool[Tensor, "B 1 1 S"]:
    """mask[b, 0, 0, j] = (tokens[b, j] != pad_id): nobody may attend to padding.

    The two middle axes stand for heads and queries, so that the mask broadcasts against
    (B, H, N, S) scores and combines with a causal mask: `causal_mask(N) & padding_mask(tokens, 0)`.

    Args:
        tokens: token numbers, (B, S).
        pad_id: the number that stands for "no token here".
    """
    return (tokens != pad_id)[:, None, None, :]
