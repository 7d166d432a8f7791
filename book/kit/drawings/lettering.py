"""Words and numbers in a drawing: how they are written and how much room they take."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

Pixels = float | int

# Advance widths of DejaVu Sans, the widest of the fonts that systems use for their own; other letters: 0.65.
_WIDTHS = {
    0.3: "'ijlIJ ,.·",
    0.36: "/:;\\|f-",
    0.41: "()[]t!r",
    0.52: '"*_`°sz',
    0.6: "?cLFkvxyP",
    0.64: "0123456789",
    0.7: "KAVBRXZC",
    0.8: "UHNΩDGOQw",
    0.86: "M∞#+<=>^~−×→",
    1.0: "%m½W@…",
}
_WIDTH_OF = {letter: width for width, letters in _WIDTHS.items() for letter in letters}
LEAST = 12.75  # px; still more than 12 where a drawing of 330 px is shown 312 px wide

RAISED = re.compile(r"([\^_])\{([^}]*)\}")


def plain(words: str) -> str:
    """Without the marks of what is raised or lowered: K^{T} becomes KT."""
    return RAISED.sub(r"\2", words)


def width_of(words: str, size: Pixels) -> Pixels:
    """About how wide a line of text is, never less than on a reader's screen."""
    return size * math.fsum(_WIDTH_OF.get(letter, 0.65) for letter in plain(words))


def fitting(lines: Iterable[str], room: Pixels, size: Pixels) -> Pixels:
    """The largest font size up to `size` at which each of the lines fits into `room`.

    Raises:
        ValueError: if one of them would have to be smaller than can be read.
    """
    longest = max(lines, key=lambda words: width_of(words, 1), default="")
    fits = min(size, room / max(width_of(longest, 1), 1e-9))
    if fits < LEAST:
        letters = int(room / (0.62 * LEAST))
        raise ValueError(
            f"{longest!r} does not fit into a cell of the drawing: at most about {letters} letters do"
        )
    return round(fits, 2)


def number(value: Any, digits: int = 2) -> str:
    """A number with a real minus and `digits` decimals; a string stays as it is.

    >>> number(-0.224), number(-0.001), number("2/5")
    ('−0.22', '0.00', '2/5')
    """
    if isinstance(value, str):
        return value
    value = float(value)
    if value in (float("inf"), -float("inf")):
        return "∞" if value > 0 else "−∞"
    written = f"{value:.{digits}f}"
    return written.removeprefix("-") if float(written) == 0 else written.replace("-", "−")


def decimals(values: Sequence[Sequence], most: int = 2) -> int:
    """How many decimals a matrix is written with: none where all of its numbers are whole."""
    numbers = [value for row in values for value in row if not isinstance(value, str)]
    return 0 if all(abs(value - round(value)) < 0.5 * 10**-most for value in numbers) else most


def listed(values: Any, what: str, length: int | None = None) -> list:
    """A tensor, an array or a sequence as a list, of `length` things if one is named.

    Raises:
        ValueError: if it is empty or of another length.
    """
    found = list(values.tolist() if hasattr(values, "tolist") else values)
    if not found or length not in (None, len(found)):
        raise ValueError(f"{what}: expected {length or 'at least one'}, got {len(found)}")
    return found


def table(
    values: Any, what: str, rows: int | None = None, columns: int | None = None
) -> list[list[Pixels | str]]:
    """A matrix as a list of rows.

    Raises:
        ValueError: if it is no rectangle, or not of this shape.
    """
    found: list[list] = [list(row) for row in listed(values, f"the rows of {what}", rows)]
    for row in found:
        listed(row, f"the columns of {what}", columns or len(found[0]))
    return found


def column_of(matrix: Sequence[Sequence], index: int) -> list:
    """One column of a list of rows."""
    return [row[index] for row in matrix]
