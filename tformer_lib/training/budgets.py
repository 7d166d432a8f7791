"""Parameter budgets: how large a model is, and how wide it may be."""

from collections.abc import Callable

import torch
from torch import nn


def count_parameters(model: nn.Module) -> int:
    """The number of trainable parameters; one that is shared counts once."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def width_for_budget(build: Callable[[int], nn.Module], budget: int, *, max_width: int = 4096) -> int:
    """The width whose model `build(width)` has the parameter count nearest to `budget`.

    `build` is called with widths from 1 to `max_width` on the meta device, where parameters take no
    memory; the count must grow with the width.

    Raises:
        ValueError: if even the smallest model is over the budget, or the largest under it.
    """

    def count(width: int) -> int:
        with torch.device("meta"):
            return count_parameters(build(width))

    low, high = 1, max_width
    if not count(low) <= budget <= count(high):
        raise ValueError(
            f"a budget of {budget} parameters lies outside what widths {low} to {high} give: "
            f"{count(low)} to {count(high)}"
        )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) <= budget else (low, middle)
    return min((low, high), key=lambda width: abs(count(width) - budget))
