"""The claims in a notebook's outputs, as `tformer_book.kit.claims` leaves them there.

Written without `tformer_lib`, so that the site can be built where PyTorch is not installed.
"""

import ast
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from notebook_code import carried

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


def only_checks(source: str) -> bool:
    """Whether code is a test: beside imports it asserts, claims or checks, and sets hardly a name for it.

    Less than a quarter of its statements may set one; none may do anything else.
    """
    body = carried.Cell(source).tree.body
    statements = [node for node in body if not isinstance(node, ast.Import | ast.ImportFrom | ast.Pass)]
    checks = sum(map(_checks, statements))
    others = [node for node in statements if not _checks(node)]
    plain = all(isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) for node in others)
    return checks > 0 and plain and 4 * len(others) < len(statements)


def _checks(statement: ast.stmt) -> bool:
    """Whether a statement only checks: it asserts, claims, or does so again and again."""
    if isinstance(statement, ast.For | ast.With | ast.If):
        return all(map(_checks, statement.body))
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = ast.unparse(statement.value.func).rpartition(".")[2]
        return called in ("claim", "check") or called.startswith("assert_")
    return isinstance(statement, ast.Assert)


def number_text(value: float, unit: str = "") -> str:
    """As in `tformer_book.kit.claims`: 148,176 or 0.3548 or 4.178 × 10⁻⁵, with the unit."""
    if abs(value) < 1e12 and (value == round(value) or abs(value) >= 1000):
        text = f"{value + 0.0:,.0f}"
    else:
        text = _with_power(f"{value:.4g}")
    return _with_unit(text, unit)


def rounded_text(value: float, unit: str, low: float, high: float) -> str:
    """A number to the places that its band tells apart: 0.64 of 0.6372, held within 0.61 to 0.67.

    It keeps two digits, unless the band holds both signs, and stays in its band. Exact numbers stay exact.
    """
    if low == high or (value == round(value) and abs(value) < 1000):
        return number_text(value, unit)
    first = _place(value) if value else 0
    place = _place((high - low) / 4)
    if value and not low < 0 < high:
        place = min(place, first - 1)
    place = max(place, first - 3)  # as many digits as `number_text` writes at most
    while not low <= round(value, -place) <= high and place > first - 9:
        place -= 1
    shown = round(value, -place) + 0.0
    if shown and not 1e-4 <= abs(shown) < 1e12:
        text = _with_power(f"{value:.{max(0, first - place)}e}")
    else:
        text = f"{shown:,.{max(0, -place)}f}"
    return _with_unit(text, unit)


def _place(value: float) -> int:
    """The power of ten of a number's first digit."""
    return math.floor(math.log10(abs(value)))


def _with_power(text: str) -> str:
    """4.178e-05 as 4.178 × 10⁻⁵."""
    text, _, power = text.partition("e")
    if power:
        ten = "10" + str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        text = ten if text == "1" else f"{text} × {ten}"
    return text


def _with_unit(text: str, unit: str) -> str:
    """A number with its unit; per cent touches it."""
    return f"{text}%" if unit == "%" else f"{text} {unit}".rstrip()


def band_text(low: float, high: float) -> str:
    """As in `tformer_book.kit.claims`: the band in words."""
    return "exactly" if low == high else f"{number_text(low)} to {number_text(high)}"
