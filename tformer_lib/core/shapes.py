"""Checks of what goes into attention: errors that name both sides of what does not fit."""

import torch
from torch import Tensor


def check_broadcast(name: str, shape: tuple[int, ...], scores_shape: tuple[int, ...]) -> None:
    """Raise unless a tensor of this `shape` broadcasts to the scores' shape (..., N, S) itself."""
    try:
        fits = torch.broadcast_shapes(shape, scores_shape) == scores_shape
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"a {name} of shape {tuple(shape)} does not broadcast to the scores' shape {tuple(scores_shape)}"
        )


def check_mask(mask: Tensor | None, scores_shape: tuple[int, ...]) -> None:
    """Raise unless `mask` is None, or boolean and broadcastable to the scores' shape (..., N, S)."""
    if mask is None:
        return
    if mask.dtype != torch.bool:
        raise TypeError(f"a mask must be boolean (True = may attend), got dtype {mask.dtype}")
    check_broadcast("mask", mask.shape, scores_shape)


def check_qkv(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raise unless queries and keys agree in width, keys and values in number, and all in what leads."""
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        raise ValueError(
            f"queries, keys and values must agree in all axes but the last two, got "
            f"{tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}"
        )
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"queries and keys must have one width, got queries {tuple(q.shape)} and keys {tuple(k.shape)}"
        )
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"each key needs one value, got {k.shape[-2]} keys and {v.shape[-2]} values")


def check_tokens(name: str, x: Tensor, d_model: int) -> None:
    """Raise unless `x` is (B, N, D) with D = `d_model`."""
    if x.ndim != 3 or x.shape[-1] != d_model:
        raise ValueError(f"{name} must have shape (B, N, d_model={d_model}), got {tuple(x.shape)}")
