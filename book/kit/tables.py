"""Small tables of results, as a cell shows them: in Jupyter, in Colab, on the site, and as plain text."""

import html
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tformer_book.kit.claims import power_written

NOTHING = "–"  # what a cell without a value shows
ALIGNMENTS = ("left", "right", "center")

# The style travels with the table. Its only colour is a grey that shows on light ground and on dark; what is
# wider than the screen scrolls inside itself.
RULE = "1px solid rgba(128, 128, 128, .45)"
FRAME = "overflow-x: auto; max-width: 100%"
SHEET = "border-collapse: collapse; width: auto; margin: .25em 0; font-variant-numeric: tabular-nums"
CAPTION = "caption-side: top; text-align: left; padding: .2em 0; color: inherit; opacity: .85"
CELL = "padding: .25em 1.1em .25em 0; vertical-align: baseline; border: 0"

Format = str | Callable[[Any], str]


class Table:
    """Rows of text under headings; `table` makes it of values."""

    def __init__(
        self,
        columns: Sequence[str],
        units: Mapping[str, str],
        cells: Sequence[Sequence[str]],
        align: Sequence[str],
        caption: str | None = None,
    ):
        self.columns, self.units, self.cells = list(columns), dict(units), [list(row) for row in cells]
        self.align, self.caption = list(align), caption

    def __repr__(self) -> str:
        heads = [f"{name} ({self.units[name]})" if name in self.units else name for name in self.columns]
        widths = [max(map(len, column)) for column in zip(heads, *self.cells, strict=True)]
        adjust = {"left": str.ljust, "right": str.rjust, "center": str.center}
        lines = [
            "  ".join(
                adjust[side](text, width) for text, width, side in zip(row, widths, self.align, strict=True)
            )
            for row in (heads, *self.cells)
        ]
        return "\n".join(line.rstrip() for line in ([self.caption] if self.caption else []) + lines)

    def _repr_html_(self) -> str:
        def cell(kind: str, text: str, side: str, rule: str = "", inside: str = "") -> str:
            breaks = "; white-space: nowrap" if side == "right" and kind != 'th scope="col"' else ""
            style = f"{CELL}; text-align: {side}{breaks}{rule}"
            return f'<{kind} style="{style}">{html.escape(text)}{inside}</{kind.split()[0]}>'

        def head(name: str, side: str) -> str:
            unit = html.escape(self.units.get(name, ""))
            inside = f'<br><span style="font-weight: normal; opacity: .85">{unit}</span>' if unit else ""
            return cell('th scope="col"', name, side, f"; border-bottom: {RULE}", inside)

        def line(row: list[str]) -> str:
            first, *others = zip(row, self.align, strict=True)
            label = cell('th scope="row"', *first, "; font-weight: normal")
            return f"<tr>{label}{''.join(cell('td', *other) for other in others)}</tr>"

        caption = f'<caption style="{CAPTION}">{html.escape(self.caption)}</caption>' if self.caption else ""
        heads = "".join(map(head, self.columns, self.align))
        rows = "\n".join(map(line, self.cells))
        return (
            f'<div class="tformer-table tformer-scroll" style="{FRAME}"><table style="{SHEET}">{caption}\n'
            f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
        )


def table(
    rows: Iterable[Any],
    columns: Sequence[str],
    *,
    formats: str | Mapping[str, Format] | None = None,
    units: Mapping[str, str] | None = None,
    align: Mapping[str, str] | None = None,
    caption: str | None = None,
) -> Table:
    """A table to end a cell with: `table([("GRU", 2.456), ("MLP", 2.641)], ["model", "loss"])`.

    Args:
        rows: each a sequence with a value for each column, or a mapping from column to value. A value is
            text, a number, a tensor with one element, a truth value, or None, which shows a dash. The first
            column names the rows.
        columns: the headings, in order.
        formats: how numbers are written: one format, such as ".2f" or ".0%", for all numbers that are not
            whole, or for single columns a format or a function from value to text. Without one a whole number
            is written as 148,176, any other to three digits. Give one wherever digits could differ
            between machines.
        units: the units of single columns, which stand below the headings.
        align: "left", "right" or "center" for single columns; else numbers stand right and text left.
        caption: what the table shows, if the text around it does not say so.

    Raises:
        TypeError: if rows or columns are a string or another single thing.
        ValueError: if there are no rows, a row lacks a value or has one too many, a column that the table
            does not have is named, two have one name, or a format does not fit a value.
    """
    if isinstance(columns, str) or isinstance(rows, str | Mapping):
        raise TypeError("a table needs a sequence of rows and a sequence of columns")
    names = list(columns)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"a table needs columns with names of their own, got {names}")
    if not isinstance(formats, Mapping):
        general, formats = formats, {}
    else:
        general = None
    for what, given in (("formats", formats), ("units", units or {}), ("align", align or {})):
        for name in given:
            if name not in names:
                raise ValueError(f"{what} names the column {name!r}, the table has {names}")
    for name, side in (align or {}).items():
        if side not in ALIGNMENTS:
            raise ValueError(f"the column {name!r} is aligned {side!r}; it may be one of {ALIGNMENTS}")
    values = [_values(i, row, names) for i, row in enumerate(rows)]
    if not values:
        raise ValueError("a table needs at least one row")
    cells = [
        [
            _text(value, formats.get(name), general, f"row {i}, column {name!r}")
            for name, value in zip(names, row, strict=True)
        ]
        for i, row in enumerate(values)
    ]
    sides = [
        (align or {}).get(name, "right" if all(map(_is_number, column)) else "left")
        for name, column in zip(names, zip(*values, strict=True), strict=True)
    ]
    return Table(names, units or {}, cells, sides, caption)


def _values(i: int, row: Any, names: list[str]) -> list[Any]:
    """The values of a row in the order of the columns; numbers taken out of tensors and arrays."""
    if isinstance(row, Mapping):
        lacks, knows = [n for n in names if n not in row], [n for n in row if n not in names]
        if lacks or knows:
            raise ValueError(f"row {i} lacks {lacks} and has {knows} beside the columns {names}")
        row = [row[name] for name in names]
    elif isinstance(row, str) or not isinstance(row, Iterable):
        raise TypeError(f"row {i} is {row!r}, and no sequence of values")
    row = list(row)
    if len(row) != len(names):
        raise ValueError(f"row {i} has {len(row)} values for the {len(names)} columns {names}: {row}")
    return [value.item() if hasattr(value, "item") else value for value in row]


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, numbers.Real) and not isinstance(value, bool))


def _text(value: Any, own: Format | None, general: str | None, where: str) -> str:
    """A value as its cell shows it."""
    if value is None:
        return NOTHING
    if callable(own):
        return own(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not _is_number(value):
        if own is not None and not isinstance(value, str):
            raise ValueError(f"{where}: the format {own!r} does not fit {value!r}")
        return str(value)
    whole = isinstance(value, numbers.Integral)
    form = own if own is not None else "," if whole else general if general is not None else ".3g"
    try:
        text = power_written(format(value, form))
    except ValueError as error:
        raise ValueError(f"{where}: the format {form!r} does not fit {value!r}") from error
    # rounded to nothing, a number has no sign
    return text.lstrip("-") if text.startswith("-") and not text.strip("-0.,%") else text
