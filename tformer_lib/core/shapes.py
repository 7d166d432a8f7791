"""Checks of what goes into attention: errors that name both sides of what does not fit."""

import torch
from torch import Tensor

from tformer_lib.numbers import brief


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
    if not isinstance(mask, Tensor):
        raise TypeError(f"a mask must be a boolean tensor (True = may attend), got {brief(mask)}")
    if mask.dtype != torch.bool:
        raise TypeError(f"a mask must be boolean (True = may attend), got dtype {mask.dtype}")
    check_broadcast("mask", mask.shape, scores_shape)


def check_qkv(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raise unless queries and keys agree in width, keys and values in number, and all in what leads."""
    for name, x in (("queries", q), ("keys", k), ("values", v)):
        check_real(name, x, q)
        if x.ndim < 2:
            raise ValueError(f"{name} must have shape (..., tokens, width), got {tuple(x.shape)}")
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        raise ValueError(
            f"queries, keys and values must agree in all axes but the last two, got "
            f"{tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}"
        )
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"queries and keys must have one width, got queries {tuple(q.shape)} and keys {tuple(k.shape)}"
        )
    if q.shape[-1] == 0:
        raise ValueError(f"queries and keys must have a width of at least 1, got {tuple(q.shape)}")
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"each key needs one value, got {k.shape[-2]} keys and {v.shape[-2]} values")


def check_real(name: str, x: Tensor, like: Tensor | None = None) -> None:
    """Raise unless `x` holds floating-point numbers, of the dtype and device of `like` if given."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        got = f"dtype {x.dtype}" if isinstance(x, Tensor) else brief(x)
        raise TypeError(f"{name} must be a tensor of floating-point numbers, got {got}")
    if x.layout != torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got one of layout {x.layout}")
    if like is None:
        return
    if x.device.type != like.device.type:
        raise ValueError(f"{name} must be on {like.device}, with what they meet, got {x.device}")
    if x.dtype != like.dtype and not torch.is_autocast_enabled(x.device.type):  # which converts on its own
        raise TypeError(f"{name} must have dtype {like.dtype}, as what they meet, got {x.dtype}")


def check_heads(x: Tensor, d_head: int) -> None:
    """Raise unless `x` is (..., N, Dh) with Dh = `d_head`, and holds floating-point numbers."""
    check_real("heads", x)
    if x.ndim < 2 or x.shape[-1] != d_head:
        raise ValueError(f"this module turns heads of width {d_head}, got shape {tuple(x.shape)}")


def check_tokens(name: str, x: Tensor, d_model: int, like: Tensor | None = None) -> None:
    """Raise unless `x` is (B, N, D) with D = `d_model`, of real numbers, such as those of `like` if given."""
    check_real(name, x, like)
    if x.ndim != 3 or x.shape[-1] != d_model:
        raise ValueError(f"{name} must have shape (B, N, d_model={d_model}), got {tuple(x.shape)}")
