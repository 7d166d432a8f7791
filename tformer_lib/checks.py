"""The one way in which a notebook holds a number to what its prose says."""

import html
import math
from collections.abc import Container
from typing import Any, SupportsFloat

from torch import Tensor

MIME = "application/vnd.tformer.claim+json"


class ClaimError(AssertionError):
    """A number left the band in which the book claims it to lie."""


class Claim:
    """A number that held, as a cell shows it: a line for the reader, JSON for a program."""

    def __init__(self, name: str, value: float, low: float, high: float, unit: str, text: str):
        self.name, self.value, self.low, self.high = name, value, low, high
        self.unit, self.text = unit, text

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"claim {self.name}: {self.value:.4g}{unit} "
            f"(held between {self.low:.4g} and {self.high:.4g}) {self.text}"
        )

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, Any]:
        line = html.escape(str(self))
        return {
            "text/plain": str(self),
            "text/html": f'<div class="tformer-claim" id="claim-{html.escape(self.name)}">{line}</div>',
            MIME: {k: getattr(self, k) for k in ("name", "value", "low", "high", "unit", "text")},
        }


def claim(
    name: str, value: SupportsFloat, *, low: SupportsFloat, high: SupportsFloat, unit: str, text: str
) -> None:
    """Asserts low <= value <= high, shows the line, and records the claim in the cell's output.

    The record is a display output of type `application/vnd.tformer.claim+json` with the fields
    name, value, low, high, unit and text.

    Args:
        name: dotted and unique in the book, for instance "attention.score_variance".
        value: the number; anything that `float` takes, such as a tensor with one element.
        low: the least it may be.
        high: the most it may be.
        unit: its unit, "" for a pure number.
        text: what the number says, in a sentence.

    Raises:
        ValueError: if the band is empty, infinite or not a number.
        ClaimError: if the value is not finite or leaves the band; the message names all three.
    """
    from IPython.display import display

    number = float(value.detach() if isinstance(value, Tensor) else value)
    least, most = float(low), float(high)
    if not (math.isfinite(least) and math.isfinite(most) and least <= most):
        raise ValueError(f"claim {name!r} needs a finite band with low <= high, got [{least}, {most}]")
    if not least <= number <= most:  # nor is NaN
        raise ClaimError(
            f"claim {name!r} does not hold: got {number:.6g} {unit}".rstrip()
            + f", which is not within [{least:.6g}, {most:.6g}]: {text}"
        )
    display(Claim(name, number, least, most, unit, text))
