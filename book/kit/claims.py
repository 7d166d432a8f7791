"""The one way in which a notebook holds a number to what its prose says."""

import html
import math
from collections.abc import Container
from typing import Any, SupportsFloat

from torch import Tensor

MIME = "application/vnd.tformer.claim+json"


class ClaimError(AssertionError):
    """A number left the band in which the book claims it to lie."""


# What a cell shows carries its own style, with no colour of its own: it is right in Jupyter and in Colab, on
# light ground and on dark. The site makes a table of it (book/site/extensions/tformer_claims.py).
LINE = "border-inline-start: 2px solid rgba(128, 128, 128, .5); padding: .1em 0 .1em .75em; margin: .1em 0"
QUIET = "opacity: .8; white-space: nowrap"


def power_written(number: str) -> str:
    """Of a formatted number 4.2e-05 the text 4.2 × 10⁻⁵, of 1e-05 the text 10⁻⁵; any other as it is."""
    digits, e, power = number.partition("e")
    if not (e and power.lstrip("+-").isdigit()):
        return number
    ten = "10" + str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return ten if digits == "1" else f"{digits} × {ten}"


def number_text(value: float, unit: str = "") -> str:
    """The value as a reader writes it: 148,176 or 0.3548 or 4.178 × 10⁻⁵, with its unit."""
    if abs(value) < 1e12 and (value == round(value) or abs(value) >= 1000):
        text = f"{value + 0.0:,.0f}"  # + 0.0: of minus zero, zero
    else:
        text = power_written(f"{value:.4g}")
    return f"{text}%" if unit == "%" else f"{text} {unit}".rstrip()


def band_text(low: float, high: float) -> str:
    """The band in words; of a band that is one number, that it is exact."""
    return "exactly" if low == high else f"{number_text(low)} to {number_text(high)}"


class Claim:
    """A number that held, as a cell shows it: a line for the reader, JSON for a program."""

    def __init__(self, name: str, value: float, band: tuple[float, float], sentence: str, unit: str = ""):
        self.name, self.value, self.sentence, self.unit = name, value, sentence, unit
        self.low, self.high = band

    @property
    def number(self) -> str:
        """The value with its unit, to four digits."""
        return number_text(self.value, self.unit)

    @property
    def held(self) -> str:
        """Where it was held, in words."""
        band = band_text(self.low, self.high)
        return "held exactly" if band == "exactly" else f"held within {band}"

    def __str__(self) -> str:
        return f"{self.sentence}: {self.number} · {self.held} [{self.name}]"

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, Any]:
        name, sentence, number = map(html.escape, (self.name, self.sentence, self.number))
        words = f'{sentence} <strong>{number}</strong> <span style="{QUIET}">· {self.held}</span>'
        opening = f'<div class="tformer-claim" id="claim-{name}" title="{name}" style="{LINE}">'
        return {
            "text/plain": str(self),
            "text/html": f"{opening}{words}</div>",
            MIME: {
                "name": self.name,
                "value": self.value,
                "low": self.low,
                "high": self.high,
                "unit": self.unit,
                "text": self.sentence,
            },
        }


def claim(
    name: str,
    value: SupportsFloat,
    band: tuple[SupportsFloat, SupportsFloat],
    sentence: str,
    unit: str = "",
) -> None:
    """Asserts low <= value <= high, shows the line, and records the claim in the cell's output.

    The record is a display output of type `application/vnd.tformer.claim+json` with the fields
    name, value, low, high, unit and text, the sentence.

    Args:
        name: dotted and unique in the book, for instance "attention.score_variance".
        value: the number; anything that `float` takes, such as a tensor with one element.
        band: (low, high), the least and the most that it may be.
        sentence: what the number says.
        unit: its unit; a pure number has none.

    Raises:
        TypeError: if the band is no pair of numbers.
        ValueError: if the band is empty, infinite or not a number.
        ClaimError: if the value is not finite or leaves the band; the message names all three.
    """
    from IPython.display import display

    if not isinstance(band, tuple | list) or len(band) != 2:
        raise TypeError(f"claim {name!r} needs a band (low, high), got {band!r}")
    number = float(value.detach() if isinstance(value, Tensor) else value)
    low, high = map(float, band)
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"claim {name!r} needs a finite band with low <= high, got [{low}, {high}]")
    if not low <= number <= high:  # nor is NaN
        raise ClaimError(
            f"claim {name!r} does not hold: got {number:.6g} {unit}".rstrip()
            + f", which is not within [{low:.6g}, {high:.6g}]: {sentence}"
        )
    display(Claim(name, number, (low, high), sentence, unit))
