"""The claims in a notebook's outputs, as `tformer_book.kit.claims` leaves them there.

Written without `tformer_lib`, so that the site can be built where PyTorch is not installed.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

CLAIM = "application/vnd.tformer.claim+json"  # the type of the output
TITLE = "# @title The numbers behind this"  # of a cell that only holds claims: Colab shows it for the code
FORM = {"jupyter": {"source_hidden": True}, "cellView": "form"}  # closes a cell in Jupyter and in Colab


def claims_in(cells: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The records of all claims in the outputs of these cells, in their order."""
    for cell in cells:
        for output in cell.get("outputs", ()):
            if CLAIM in output.get("data", {}):
                yield output["data"][CLAIM]


def only_claims(cell: Mapping[str, Any]) -> bool:
    """Whether a cell shows claims and nothing else; a solution is read for its code, and is none."""
    outputs = cell.get("outputs", ())
    shown = bool(outputs) and all(CLAIM in output.get("data", {}) for output in outputs)
    return shown and "solution" not in cell["metadata"].get("tags", ())


def titled(cell: Mapping[str, Any]) -> bool:
    """Whether a cell is titled as those with claims and shows nothing: it computes for them, or asserts."""
    return "".join(cell["source"]).startswith(TITLE) and not cell.get("outputs", ())


def number_text(value: float, unit: str = "") -> str:
    """As in `tformer_book.kit.claims`: 148,176 or 0.3548 or 4.178 × 10⁻⁵, with the unit."""
    if abs(value) < 1e12 and (value == round(value) or abs(value) >= 1000):
        text = f"{value + 0.0:,.0f}"
    else:
        text, _, power = f"{value:.4g}".partition("e")
        if power:
            ten = "10" + str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
            text = ten if text == "1" else f"{text} × {ten}"
    return f"{text}%" if unit == "%" else f"{text} {unit}".rstrip()


def band_text(low: float, high: float) -> str:
    """As in `tformer_book.kit.claims`: the band in words."""
    return "exactly" if low == high else f"{number_text(low)} to {number_text(high)}"
