"""Tensors that are handed in: of the kind, the axes and the range that they should have, or an error.

Errors name both sides: what was expected, and what came.
"""

from typing import Any

import torch
from torch import Tensor

from tformer_lib.numbers import brief, whole


def _check_dense(name: str, x: Any, what: str, fits: bool) -> None:
    """Raise unless `x` is a tensor, of the type that `fits`, with all its numbers in memory."""
    if not fits:
        got = f"dtype {x.dtype}" if isinstance(x, Tensor) else brief(x)
        raise TypeError(f"{name} must be a tensor of {what}, got {got}")
    if x.layout != torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got one of layout {x.layout}")


def check_real(name: str, x: Any, like: Tensor | None = None) -> None:
    """Raise unless `x` holds floating-point numbers, of the dtype and device of `like` if given."""
    _check_dense(name, x, "floating-point numbers", isinstance(x, Tensor) and x.is_floating_point())
    if like is None:
        return
    if x.device.type != like.device.type:
        raise ValueError(f"{name} must be on {like.device}, with what they meet, got {x.device}")
    if x.dtype != like.dtype and not torch.is_autocast_enabled(x.device.type):  # which converts on its own
        raise TypeError(f"{name} must have dtype {like.dtype}, as what they meet, got {x.dtype}")


def check_whole(name: str, ids: Any, axes: str | None = None, *, any_size: bool = False) -> None:
    """Raise unless `ids` are whole numbers that can choose rows, on as many axes as `axes` has names.

    These are int64 and int32; with `any_size` others, which can be compared, will do as well.

    Raises:
        TypeError: if they are no tensor of whole numbers.
        ValueError: if they have other axes.
    """
    fits = isinstance(ids, Tensor) and (
        ids.dtype in (torch.int64, torch.int32)
        or (any_size and not ids.is_floating_point() and not ids.is_complex())
    )
    _check_dense(name, ids, "whole numbers" + " of any size" * any_size, fits)
    if axes is not None and ids.ndim != len(axes.split()):
        raise ValueError(f"{name} must have shape ({', '.join(axes.split())}), got {tuple(ids.shape)}")


def check_ids(
    name: str,
    ids: Tensor,
    count: int,
    axes: str | None = None,
    *,
    least: int = 0,
    device: torch.device | None = None,
) -> None:
    """Raise unless `ids` are whole numbers from 0 to `count` - 1, on as many axes as `axes` has names.

    Args:
        name: what errors call them.
        ids: the numbers.
        count: how many different ones there are, such as the size of the vocabulary.
        axes: the names of their axes, such as "B N"; any number of axes if None.
        least: how long each axis must be.
        device: where they must be; anywhere if None.

    Raises:
        TypeError: if they are no tensor of whole numbers that can choose rows (int64 or int32).
        ValueError: if they have other axes, are elsewhere, or one lies outside; the message says how far.
            While `torch.compile` or `torch.export` traces, and afterwards in what they made, no number is
            read: only axes and types are checked.
    """
    check_whole(name, ids, axes)
    if any(side < least for side in ids.shape):
        raise ValueError(f"{name} must be at least {least} along each axis, got shape {tuple(ids.shape)}")
    if device is not None and ids.device.type != device.type:
        raise ValueError(f"{name} must be on {device}, with their table, got {ids.device}")
    if ids.is_meta or torch.compiler.is_compiling() or not ids.numel():
        return
    least, most = (int(x) for x in ids.aminmax())
    if least < 0 or most >= count:
        raise ValueError(
            f"{name} must lie in 0 to {count - 1}, of which there are {count}; they go from {least} to {most}"
        )


def check_targets(logits: Tensor, targets: Tensor, ignored: int) -> None:
    """Raise unless each row of logits has a target, one of its classes or `ignored`, and not all are that."""
    if logits.shape[:-1] != targets.shape:
        shapes = f"{tuple(logits.shape)} and {tuple(targets.shape)}"
        raise ValueError(f"each row of logits needs one target, got {shapes}")
    asked = targets[targets != ignored]
    if not asked.numel():
        raise ValueError("there is nothing to predict: none of these targets asks for anything")
    check_ids("targets", asked, logits.shape[-1])


def check_context(wanted: bool, context: Tensor | None, context_mask: Tensor | None) -> None:
    """Raise unless a context is there where one is wanted, and a mask for it only then."""
    if wanted != (context is not None):
        got = "missing" if context is None else "given"
        raise ValueError(f"cross_attention={wanted}, but context is {got}")
    if context is None and context_mask is not None:
        raise ValueError("a context_mask is given, but no context that it could rule")


def check_head_counts(d_model: int, n_heads: int, n_kv_heads: int | None) -> tuple[int, int, int]:
    """D, H and the heads of keys and values as ints, each of which divides the one before it; H if None."""
    d_model, n_heads = whole("d_model", d_model), whole("n_heads", n_heads)
    n_kv_heads = n_heads if n_kv_heads is None else whole("n_kv_heads", n_kv_heads)
    if d_model < 1 or n_heads < 1 or d_model % n_heads:
        raise ValueError(f"n_heads must divide d_model, got d_model={d_model} and n_heads={n_heads}")
    if n_kv_heads < 1 or n_heads % n_kv_heads:
        raise ValueError(f"n_kv_heads must divide n_heads, got n_heads={n_heads} and n_kv_heads={n_kv_heads}")
    return d_model, n_heads, n_kv_heads


def check_crossing(tokens: int, read: int, rotary: Any) -> None:
    """Raise unless a layer without rotary positions meets the context that it has read, if it has."""
    if rotary is not None:
        why = "rotary positions compare places in one sequence, and cross-attention has two"
        raise ValueError(f"{why}: build this layer with rotary=None")
    if read not in (0, tokens):
        raise ValueError(f"the cache holds a context of {read} tokens, and this one has {tokens}")


def check_places(first: int, count: int, most: int) -> None:
    """Raise unless a table of `most` positions has those of `count` tokens from place `first` on."""
    if first < 0 or first + count > most:
        needed = f"and the sequence needs positions {first} to {first + count - 1}"
        raise ValueError(f"the position table has max_len={most} rows, {needed}")


def check_grid(tokens: int, first: int, grid: tuple[int, int], before: int) -> None:
    """Raise unless so many tokens, from place `first` on, are `before` others and a grid of patches."""
    count = before + grid[0] * grid[1]
    if first != 0 or tokens != count:
        behind = f"patches behind {before} other tokens is {count} tokens, read at once"
        got = f"{tokens} tokens from place {first}"
        raise ValueError(f"a grid of {grid[0]} x {grid[1]} {behind}; got {got}")


def check_patches(n: int, numbers: int, grid: tuple[int, int], size: int) -> None:
    """Raise unless n rows of so many numbers are the patches of an image, in this grid."""
    rows, columns = grid
    if n != rows * columns or numbers % (size * size):
        wanted = f"{rows * columns} rows of a multiple of {size * size} numbers, got {n} rows of {numbers}"
        raise ValueError(f"an image of {rows * size} x {columns * size} in patches of {size} is {wanted}")


def check_buckets(n_buckets: int, max_distance: int, causal: bool) -> tuple[int, int]:
    """Both numbers as ints, of which buckets for near and for far offsets can be formed."""
    n_buckets, max_distance = whole("n_buckets", n_buckets), whole("max_distance", max_distance)
    one_way = n_buckets if causal else n_buckets // 2
    if one_way < 2 or n_buckets % (2 if causal else 4):
        raise ValueError(
            "buckets are halved for near and far offsets, and before that for the two directions unless "
            f"causal: got n_buckets={n_buckets} with causal={causal}"
        )
    if max_distance <= one_way // 2:
        raise ValueError(
            f"max_distance must exceed the {one_way // 2} offsets with a bucket each, got {max_distance}"
        )
    return n_buckets, max_distance


def check_frequencies(found: Any, count: int) -> None:
    """Raise unless these are `count` finite numbers."""
    if not isinstance(found, Tensor) or found.shape != (count,) or not found.isfinite().all():
        raise ValueError(f"rescale must make {count} finite frequencies of {count}, got {found}")


def check_rows(rows: Any, batch: int | None) -> None:
    """Raise unless `rows` choose rows of a batch of so many, by whole numbers or by booleans."""
    if not isinstance(rows, Tensor) or rows.is_floating_point() or rows.is_complex():
        raise TypeError(f"rows are chosen by whole numbers or by booleans, got {brief(rows)}")
    if rows.ndim != 1:
        raise ValueError(f"rows are chosen along one axis, got shape {tuple(rows.shape)}")
    if batch is None or not rows.numel():
        return
    every = len(rows) == batch if rows.dtype == torch.bool else ((rows >= -batch) & (rows < batch)).all()
    if not every:
        raise ValueError(f"the cache holds a batch of {batch} rows, and has not all of {brief(rows)}")


def check_tokens(name: str, x: Tensor, d_model: int, like: Tensor | None = None) -> None:
    """Raise unless `x` is (B, N, D) with D = `d_model`, of real numbers, such as those of `like` if given."""
    check_real(name, x, like)
    if x.ndim != 3 or x.shape[-1] != d_model:
        raise ValueError(f"{name} must have shape (B, N, d_model={d_model}), got {tuple(x.shape)}")


def check_heads(x: Tensor, d_head: int) -> None:
    """Raise unless `x` is (..., N, Dh) with Dh = `d_head`, and holds floating-point numbers."""
    check_real("heads", x)
    if x.ndim < 2 or x.shape[-1] != d_head:
        raise ValueError(f"this module turns heads of width {d_head}, got shape {tuple(x.shape)}")


def check_qkv(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> None:
    """Raise unless q (..., N, Dh), k (..., S, Dh), v (..., S, Dv) and a mask of (..., N, S) fit together."""
    for name, x in (("queries", q), ("keys", k), ("values", v)):
        check_real(name, x, q)
        if x.ndim < 2:
            raise ValueError(f"{name} must have shape (..., tokens, width), got {tuple(x.shape)}")
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        shapes = f"{tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}"
        raise ValueError(f"queries, keys and values must agree in all axes but the last two, got {shapes}")
    if q.shape[-1] != k.shape[-1] or q.shape[-1] == 0:
        shapes = f"queries {tuple(q.shape)} and keys {tuple(k.shape)}"
        raise ValueError(f"queries and keys must have one width, of at least 1, got {shapes}")
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"each key needs one value, got {k.shape[-2]} keys and {v.shape[-2]} values")
    check_mask(mask, (*q.shape[:-1], k.shape[-2]))


def check_mask(mask: Tensor | None, scores_shape: tuple[int, ...]) -> None:
    """Raise unless `mask` is None, or boolean and broadcastable to the scores' shape (..., N, S)."""
    if mask is None:
        return
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        got = f"dtype {mask.dtype}" if isinstance(mask, Tensor) else brief(mask)
        raise TypeError(f"a mask must be a boolean tensor (True = may attend), got {got}")
    check_broadcast("mask", mask.shape, scores_shape)


def check_broadcast(name: str, shape: tuple[int, ...], scores_shape: tuple[int, ...]) -> None:
    """Raise unless a tensor of this `shape` broadcasts to the scores' shape (..., N, S) itself."""
    try:
        fits = torch.broadcast_shapes(shape, scores_shape) == scores_shape
    except RuntimeError:
        fits = False
    if not fits:
        shapes = f"{tuple(shape)} does not broadcast to the scores' shape {tuple(scores_shape)}"
        raise ValueError(f"a {name} of shape {shapes}")


def check_joins(held: tuple[Tensor | None, Tensor | None], k: Tensor, v: Tensor) -> None:
    """Raise unless k and v are (B, H, N, ...), one value for each key, and can stand behind those held."""
    if k.ndim != 4 or v.ndim != 4 or k.shape[:-1] != v.shape[:-1]:
        shapes = f"{tuple(k.shape)} and {tuple(v.shape)}"
        raise ValueError(
            f"keys and values must be (batch, heads, tokens, width), one value for each key, got {shapes}"
        )
    for old, new in zip(held, (k, v), strict=True):
        if old is None:
            continue
        there, here = (*old.shape[:2], old.shape[-1]), (*new.shape[:2], new.shape[-1])
        if there != here:
            raise ValueError(
                f"the cache holds (batch, heads, width) = {there}, and the new tokens have {here}"
            )
        if old.dtype != new.dtype:
            raise TypeError(f"the cache holds {old.dtype}, and the new tokens have {new.dtype}")


def refuse_gradients(*tensors: Tensor) -> None:
    """Raise if gradients of one of these are being recorded: what a cache holds takes no part in them.

    Raises:
        RuntimeError: then.
    """
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        raise RuntimeError("a cache is for generating, not for training: use it under torch.no_grad()")
