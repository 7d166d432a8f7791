"""Rotary positions as checkpoints describe them: a base, and how the frequencies were stretched."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tformer_lib.core.positions import Rotary
from tformer_lib.pretrained.settings import Settings


@dataclass(frozen=True)
class LinearScaling:
    """w_i / factor: all positions are drawn together, so that a longer text covers the angles of a short one.

    Source:
        Chen et al. 2023, position interpolation.
    """

    factor: float

    def __call__(self, frequencies: Tensor) -> Tensor:
        return frequencies / self.factor


@dataclass(frozen=True)
class Llama3Scaling:
    """Divides only the slow frequencies, those that did not turn often within the original length.

    A frequency that turns more than `high` times there stays, one that turns less than `low` times is
    divided by the factor, and between the two the share of either follows the number of turns.

    Source:
        Grattafiori et al. 2024, Llama 3.1; the formula is that of the code published with it.
    """

    factor: float
    low: float
    high: float
    original: float

    def __call__(self, frequencies: Tensor) -> Tensor:
        turns = self.original * frequencies / (2 * math.pi)
        kept = ((turns - self.low) / (self.high - self.low)).clamp(0, 1)
        return frequencies * (kept + (1 - kept) / self.factor)


@dataclass(frozen=True)
class DividedBy:
    """w_i / factor_i: a factor for each frequency, as GGUF files store what Llama 3's rule gives."""

    factors: tuple[float, ...]

    def __call__(self, frequencies: Tensor) -> Tensor:
        return frequencies / torch.tensor(self.factors, dtype=frequencies.dtype, device=frequencies.device)


def rotary(settings: Settings, d_head: int) -> Rotary:
    """The `Rotary` that a `config.json` asks for.

    Older files have a `rope_theta`, and a `rope_scaling` where frequencies are stretched; newer ones one
    table `rope_parameters` with both.

    Raises:
        ValueError: if the kind of scaling is unknown, or one of its numbers is missing or makes no sense.
    """
    table: Any = settings.get("rope_scaling") or settings.get("rope_parameters", {})
    if not isinstance(table, dict):
        raise ValueError(f"{settings.where}: the table of rotary positions must be an object, got {table!r}")
    rope = Settings(
        f"{settings.where}, rotary positions", {"rope_theta": settings.get("rope_theta"), **table}
    )
    for place in (settings, rope):
        place.one_of("partial_rotary_factor", 1.0)
    for name, value in table.items():
        if isinstance(value, dict):
            raise ValueError(
                f"{rope.where}: one set for all layers is supported, and {name!r} is a set of its own"
            )
    kind = rope.get("rope_type", rope.get("type", "default"))
    rescale: Callable[[Tensor], Tensor] | None = None
    if kind == "linear":
        rescale = LinearScaling(rope.number("factor"))
    elif kind == "llama3":
        rescale = Llama3Scaling(
            factor=rope.number("factor"),
            low=rope.number("low_freq_factor"),
            high=rope.number("high_freq_factor"),
            original=rope.number("original_max_position_embeddings"),
        )
        if rescale.low >= rescale.high:
            raise ValueError(
                f"{rope.where}: low_freq_factor must be less than high_freq_factor, got {rescale}"
            )
    elif kind != "default":
        raise ValueError(
            f"{rope.where}: scaling {kind!r} is not supported; supported are 'default', 'linear' and 'llama3'"
        )
    return Rotary(d_head, rope.number("rope_theta", 10000.0), rescale=rescale)
