"""Masks for backends that never look at single pairs: which keys exist is all that can be said to them."""

import torch
from torch import Tensor

from tformer_lib.core.masks import causal_mask


def key_mask(mask: Tensor | None, q: Tensor, k: Tensor, *, causal: bool, name: str) -> Tensor | None:
    """The mask over keys alone, (..., 1, S), that says what `mask` says; None if that is nothing.

    Args:
        mask: one that `Backend` has let through: padding (..., 1, S), or, for a causal backend, the causal
            mask with or without padding.
        q: queries, (..., N, Dh), the last N of the S positions.
        k: keys, (..., S, Dh).
        causal: whether the backend looks back only, whatever the mask.
        name: of the backend, for the error.

    Raises:
        ValueError: if the mask allows some queries what it forbids to others, in another way than `causal`.
    """
    n, s = q.shape[-2], k.shape[-2]
    if mask is None:
        return None
    mask = torch.atleast_2d(mask)
    if mask.shape[-2] == 1:
        return mask.expand(*mask.shape[:-1], s)
    last = mask[..., -1:, :]  # under a causal mask the last query sees every key that exists
    if causal and torch.equal(mask, last & causal_mask(n, mask.device, past=s - n)):
        return last
    what = "padding and the causal mask" if causal else "padding (..., 1, S)"
    raise ValueError(
        f"{name}(causal={causal}) can honour {what} only, because it never looks at single pairs of a "
        f"query and a key; the mask of shape {tuple(mask.shape)} says more"
    )


def check_last(q: Tensor, k: Tensor) -> None:
    """Raise unless queries can be the last N of the S positions."""
    if q.shape[-2] > k.shape[-2]:
        raise ValueError(
            f"queries are the last of the keys' positions, got {q.shape[-2]} queries and {k.shape[-2]} keys"
        )
