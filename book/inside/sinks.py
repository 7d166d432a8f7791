"""What a place is for that others attend to: hide it from them, or let it say nothing."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from tformer_lib.analysis.activations import patch
from tformer_lib.core.modes import plain
from tformer_lib.models.gpt import GPT
from tformer_lib.numbers import whole


@contextmanager
def hidden_place(model: GPT, place: int, blocks: Iterable[int] | None = None) -> Iterator[None]:
    """Within the `with`, no place behind s = `place` reads it: a'(n, s) = 0, and the other weights of a row
    are divided by 1 - a(n, s), so that they sum to one.

    The same as a mask on all heads of all blocks. A row that gave s all its weight gets zeros.

    Args:
        model: a decoder whose backends show their weights (`Attend`).
        place: s, counted from 0.
        blocks: in which, counted from 0; all if None.

    Raises:
        ValueError: if the place is negative, or there is no such block; in forward, if there is no such
            place.
    """
    place = whole("place", place, 0)

    def without(weights: Tensor) -> Tensor:
        weights = weights.clone()
        _check(place, weights.shape[-1])
        weights[..., place + 1 :, place] = 0.0
        return weights / weights.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)

    with patch(model, {f"{name}.backend.softmax": without for name in _attention_names(model, blocks)}):
        yield


@contextmanager
def silent_place(model: GPT, place: int, blocks: Iterable[int] | None = None) -> Iterator[None]:
    """Within the `with`, the place s = `place` has values of zero in all heads: v_s = 0.

    Others still give it weight, and that weight is lost: nothing is divided again.

    Args:
        model: a decoder.
        place: s, counted from 0.
        blocks: in which, counted from 0; all if None.

    Raises:
        ValueError: if the place is negative, or there is no such block; in forward, if there is no such
            place.
    """
    place = whole("place", place, 0)

    def without(values: Tensor) -> Tensor:
        values = values.clone()
        _check(place, values.shape[1])
        values[:, place] = 0.0
        return values

    with patch(model, {f"{name}.W_v": without for name in _attention_names(model, blocks)}):
        yield


def _attention_names(model: GPT, blocks: Iterable[int] | None) -> list[str]:
    there = range(plain(model).config.n_blocks)
    chosen = list(there if blocks is None else blocks)
    if not chosen or any(m not in there for m in chosen):
        raise ValueError(f"blocks are some of 0 to {there[-1]}, got {chosen}")
    return [f"transformer.blocks.{m}.self_attention" for m in chosen]


def _check(place: int, length: int) -> None:
    if place >= length:
        raise ValueError(f"there is no place {place} among {length}, counted from 0")
