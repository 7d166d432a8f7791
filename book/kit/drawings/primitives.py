"""The parts of which every drawing is made: boxes with words, matrices, maps, lines.

A `Scene` is one layout, in pixels, with y downwards. What it draws takes its text from `currentColor` and its
colours from `roles`. A box is *pale* (a tint, for what is known), *full* (for what is new) or *plain* (an
outline); what a mask forbids is hatched.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

import drawsvg

from tformer_book.kit.drawings.lettering import LEAST, RAISED, Pixels, fitting, number, plain, width_of
from tformer_book.kit.drawings.roles import Role

Strength = Literal["pale", "full", "plain", "faint"]
Anchor = Literal["start", "middle", "end"]
SIZE = 15.0
PHONE = 328  # the width of a narrow layout: a phone of 360 px leaves 328 to the text
PAD = 5.0
FAINT = 0.45  # how much of a line is left that only leads the eye


def _at(value: Pixels) -> Pixels:
    """A coordinate: a tenth of a pixel is enough, and the same on every machine."""
    rounded = round(float(value), 1)
    return int(rounded) if rounded == int(rounded) else rounded


class Scene:
    """One layout of a drawing.

    Args:
        width: pixels at its natural size.
        height: likewise; may be set when the drawing is finished.
        size: the font size of what does not ask for another.
    """

    def __init__(self, width: Pixels, height: Pixels = 0, *, size: Pixels = SIZE):
        self.width, self.height, self.size = width, height, size
        self.elements: list[Any] = []
        self._hatch: Any = None

    def key(self) -> str:
        """All that is drawn, as text."""
        picture = drawsvg.Drawing(self.width, self.height)
        picture.extend(self.elements)
        return picture.as_svg(header="")

    # Text

    def _words(
        self, x: Pixels, y: Pixels, words: str, size: Pixels, anchor: Anchor = "middle", **style: Any
    ) -> Any:
        """Text centred on the height y; ^{} raises and _{} lowers what is between the braces."""
        style.setdefault("text_anchor", None if anchor == "start" else anchor)
        place: dict[str, Any] = {"x": _at(x), "y": _at(y + 0.36 * size)}
        if plain(words) == words:
            return drawsvg.Text(words, size, **place, **style)
        line = drawsvg.Text("", size, **place, **style)
        shift, end = 0.0, 0
        for mark in [*RAISED.finditer(words), None]:
            between = words[end : mark.start() if mark else None]
            if between:
                line.append(drawsvg.TSpan(between, dy=_at(-shift) or None))
                shift = 0.0
            if mark:
                to = (-0.4 if mark[1] == "^" else 0.22) * size
                line.append(drawsvg.TSpan(mark[2], dy=_at(to - shift), font_size=_at(0.8 * size)))
                shift, end = to, mark.end()
        return line

    def text(
        self,
        x: Pixels,
        y: Pixels,
        words: str,
        *,
        size: Pixels | None = None,
        anchor: Anchor = "middle",
        bold: bool = False,
        muted: bool = False,
    ) -> None:
        """A line of text, its middle at the height y."""
        style = {"font_weight": 600 if bold else None, "fill_opacity": 0.75 if muted else None}
        self.elements.append(self._words(x, y, words, size or self.size, anchor, **style))

    # Boxes

    def _paint(self, role: Role | None, strength: Strength, shade: Pixels) -> tuple[dict, str | None]:
        """How a box is filled and edged, and the colour of text in it."""
        edge = "currentColor" if role is None else role.fill
        if role is None or strength in ("plain", "faint"):
            opacity = 0.25 if strength == "faint" else 0.5 if role is None else 1
            return {"fill": "none", "stroke": edge, "stroke_opacity": opacity}, None
        if strength == "full":
            return {"fill": edge, "stroke": edge}, role.on
        return {"fill": edge, "fill_opacity": _shade(shade), "stroke": edge, "stroke_opacity": 0.7}, None

    def box(
        self,
        x: Pixels,
        y: Pixels,
        width: Pixels,
        height: Pixels,
        words: str = "",
        *,
        role: Role | None = None,
        strength: Strength = "pale",
        shade: Pixels = 0.2,
        radius: Pixels = 0,
        masked: bool = False,
        size: Pixels | None = None,
        bold: bool = False,
    ) -> None:
        """A box with words in it; `shade` is how strong the tint of a pale one is.

        Raises:
            ValueError: if the words do not fit.
        """
        paint, ink = self._paint(role, strength, shade)
        if ink and not radius:  # neighbours in a grid stay apart
            paint |= {"stroke": ink, "stroke_opacity": 0.3}
        place = {"x": _at(x), "y": _at(y), "width": _at(width), "height": _at(height), "rx": radius or None}
        group = drawsvg.Group(class_="tformer-cell")
        if masked:
            group.append(drawsvg.Rectangle(**place, fill=self._hatching()))
        group.append(drawsvg.Rectangle(**place, **paint))
        if words:
            fits = fitting([words], width - 2, size or self.size)
            style: dict[str, Any] = {"fill": ink, "font_weight": 600 if bold else None}
            if strength == "faint":
                style["fill_opacity"] = 0.75
            group.append(self._words(x + width / 2, y + height / 2, words, fits, **style))
        self.elements.append(group)

    def _hatching(self) -> Any:
        if self._hatch is None:
            self._hatch = drawsvg.Pattern(7, 7, patternUnits="userSpaceOnUse", patternTransform="rotate(45)")
            self._hatch.append(
                drawsvg.Line(0, 0, 0, 7, stroke="currentColor", stroke_width=3, stroke_opacity=0.3)
            )
        return self._hatch

    def token(
        self, x: Pixels, y: Pixels, words: str, width: Pixels, height: Pixels = 30, **options: Any
    ) -> None:
        """A rounded box with a word, centred at x; y is its upper edge."""
        self.box(x - width / 2, y, width, height, words, radius=8, **options)

    def token_row(
        self,
        xs: Sequence[Pixels],
        y: Pixels,
        words: Sequence[str],
        width: Pixels,
        height: Pixels = 30,
        **options: Any,
    ) -> None:
        """Tokens side by side, in one size of type; each stands at its own x."""
        size = fitting(words, width - 2 * PAD, options.pop("size", self.size))
        for x, word in zip(xs, words, strict=True):
            self.token(x, y, word, width, height, size=size, **options)

    def places(
        self, x: Pixels, room: Pixels, words: Sequence[str], gap: Pixels = 8
    ) -> tuple[list[tuple[Pixels, Pixels]], Pixels]:
        """Tokens that fill `room` from x on, each as wide as its word asks for.

        Returns the middle and the width of each, and the font size at which all fit.
        """
        free = room - (len(words) - 1) * gap - 2 * PAD * len(words)
        size = fitting([" ".join(words).replace(" ", "")], free, self.size)
        spare = (free - math.fsum(width_of(word, size) for word in words)) / len(words)
        found = []
        for word in words:
            width = width_of(word, size) + 2 * PAD + spare
            found.append((x + width / 2, width))
            x += width + gap
        return found, size

    def vector(
        self,
        x: Pixels,
        y: Pixels,
        numbers: Sequence,
        cell: Pixels,
        height: Pixels | None = None,
        **options: Any,
    ) -> None:
        """A column of cells with its upper left corner at (x, y); numbers may be words."""
        self.matrix(x, y, [[value] for value in numbers], cell, height, **options)

    def matrix(
        self,
        x: Pixels,
        y: Pixels,
        numbers: Sequence[Sequence],
        cell: Pixels,
        height: Pixels | None = None,
        *,
        role: Role | None = None,
        column: int | None = None,
        row: int | None = None,
        chosen: Role | None = None,
        shades: Sequence[Sequence[Pixels]] | None = None,
        masked: Sequence[Sequence[bool]] | None = None,
        digits: int = 2,
        size: Pixels | None = None,
    ) -> None:
        """A grid with its upper left corner at (x, y), and the numbers, or the words, in its cells.

        Args:
            x: left edge.
            y: upper edge.
            numbers: a list of rows.
            cell: the width of a cell.
            height: its height, if it is no square.
            role: its colour.
            column: the column in full colour.
            row: the row in full colour.
            chosen: the colour of that column or row, if it is another.
            shades: how strong the tint of each cell is, from 0 to 1.
            masked: where it is hatched.
            digits: decimals of the numbers.
            size: the largest font size.
        """
        height = height or cell
        words = [[number(value, digits) for value in line] for line in numbers]
        every = [word for line in words for word in line]
        size = fitting(every, cell - 2, size or self.size)
        size = max(min(size, (cell - 9) / max(widest(every, 1), 0.1)), min(size, LEAST))  # rather with air
        places = [(i, j) for i in range(len(words)) for j in range(len(words[0]))]
        hatched = [(i, j) for i, j in places if masked is not None and masked[i][j]]
        full = [(i, j) for i, j in places if (j == column or i == row) and (i, j) not in hatched]
        for i, j in sorted(places, key=lambda place: place in full):  # the full cells' edges lie on top
            self.box(
                x + j * cell,
                y + i * height,
                cell,
                height,
                words[i][j],
                role=(chosen or role) if (i, j) in full else role,
                strength="full" if (i, j) in full else "pale",
                shade=0.2 if shades is None else shades[i][j],
                masked=(i, j) in hatched,
                size=size,
            )

    def sides(
        self, x: Pixels, y: Pixels, width: Pixels, height: Pixels, down: str = "", across: str = ""
    ) -> None:
        """A matrix's shape along its sides: rows at the left, columns above."""
        if down:
            self.text(x - 6, y + height / 2, down, anchor="end", muted=True)
        if across:
            self.text(x + width / 2, y - 12, across, muted=True)

    def map(
        self, x: Pixels, y: Pixels, width: Pixels, height: Pixels, name: str, *, slant: Pixels = 0.2
    ) -> None:
        """A linear map: a trapezium with its name, broad where the vector comes in.

        `width` is that of its upper edge. With a negative slant the lower edge is the broad one.
        """
        inset = slant * width / 2
        corners = (x, y, x + width, y, x + width - inset, y + height, x + inset, y + height)
        group = drawsvg.Group(class_="tformer-cell")
        group.append(
            drawsvg.Lines(
                *map(_at, corners), close=True, fill="none", stroke="currentColor", stroke_opacity=0.6
            )
        )
        size = fitting([name], width - 2 * abs(inset), self.size)
        group.append(self._words(x + width / 2, y + height / 2, name, size))
        self.elements.append(group)

    def bar(self, x: Pixels, base: Pixels, width: Pixels, height: Pixels, role: Role) -> None:
        """A bar that stands on the line `base` with its middle at x."""
        place = (_at(x - width / 2), _at(base - height), _at(width), _at(height))
        self.elements.append(drawsvg.Rectangle(*place, fill=role.fill))

    def area(
        self,
        *points: tuple[Pixels, Pixels],
        role: Role | None = None,
        shade: Pixels = 0.0,
        opacity: Pixels | None = None,
    ) -> None:
        """A tinted region between the points; `shade` as that of a pale box, `opacity` is taken as it is."""
        fill = "currentColor" if role is None else role.fill
        corners = [_at(value) for point in points for value in point]
        self.elements.append(
            drawsvg.Lines(
                *corners,
                close=True,
                fill=fill,
                fill_opacity=_shade(shade) if opacity is None else round(opacity, 2),
            )
        )

    def picture(self, x: Pixels, y: Pixels, side: Pixels, ink: Sequence[Sequence[Pixels]]) -> None:
        """A square image, ink from 0 to 1 in the colour of the text; cells with next to none are left out."""
        cell = side / len(ink)
        for i, row in enumerate(ink):
            for j, amount in enumerate(row):
                if amount > 0.08:
                    place = (_at(x + j * cell), _at(y + i * cell), _at(cell), _at(cell))
                    fill = {"fill": "currentColor", "fill_opacity": round(0.85 * float(amount), 2)}
                    self.elements.append(drawsvg.Rectangle(*place, **fill))

    def greys(
        self, x: Pixels, y: Pixels, width: Pixels, height: Pixels, rows: Sequence[Sequence[Pixels]]
    ) -> None:
        """An image from 0, black, to 1, white, on any page; what is no number is left out."""
        w, h, image = width / len(rows[0]), height / len(rows), drawsvg.Group(shape_rendering="crispEdges")
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                if not math.isnan(value):
                    place = (_at(x + j * w), _at(y + i * h), _at(w), _at(h))
                    level = round(255 * min(max(float(value), 0.0), 1.0))
                    image.append(drawsvg.Rectangle(*place, fill=f"#{level:02x}{level:02x}{level:02x}"))
        self.elements.append(image)

    def face(self, x: Pixels, y: Pixels, radius: Pixels, *, clock: bool = True) -> None:
        """A circle, with a mark at twelve o'clock if it is that of a clock."""
        ring = drawsvg.Circle(
            _at(x), _at(y), _at(radius), fill="none", stroke="currentColor", stroke_opacity=FAINT
        )
        self.elements.append(ring)
        if clock:
            self.line((x, y - radius), (x, y - radius + 4))

    def sector(
        self,
        x: Pixels,
        y: Pixels,
        radius: Pixels,
        start: Pixels,
        end: Pixels,
        *,
        role: Role | None = None,
        shade: Pixels = 0.6,
        hatched: bool = False,
    ) -> None:
        """A slice of a disc between two angles, in radians, clockwise from twelve o'clock."""
        steps = max(2, math.ceil(abs(end - start) / 0.1) + 1)
        angles = [start + (end - start) * i / (steps - 1) for i in range(steps)]
        rim = [(x + radius * math.sin(a), y - radius * math.cos(a)) for a in angles]
        corners = [_at(value) for point in [(x, y), *rim] for value in point]
        colour = "currentColor" if role is None else role.fill
        paint: dict[str, Any] = {"fill": colour, "fill_opacity": _shade(shade)}
        if hatched:
            paint = {"fill": self._hatching(), "stroke": "currentColor", "stroke_opacity": FAINT}
        self.elements.append(drawsvg.Lines(*corners, close=True, **paint))

    # Lines

    def line(
        self,
        *points: tuple[Pixels, Pixels],
        role: Role | None = None,
        width: Pixels = 1.5,
        opacity: Pixels | None = None,
        dashed: bool = False,
    ) -> None:
        """A line through the points."""
        path = drawsvg.Path(
            fill="none",
            stroke="currentColor" if role is None else role.fill,
            stroke_width=_at(width),
            stroke_opacity=opacity if opacity is not None else FAINT if role is None else None,
            stroke_dasharray="4 4" if dashed else None,
            stroke_linejoin="round",
        )
        path.M(*map(_at, points[0]))
        for point in points[1:]:
            path.L(*map(_at, point))
        self.elements.append(path)

    def stream(self, *points: tuple[Pixels, Pixels], role: Role) -> None:
        """A thick line, for what flows through a whole model."""
        self.line(*points, role=role, width=8)

    def arrow(
        self,
        *points: tuple[Pixels, Pixels],
        role: Role | None = None,
        width: Pixels = 1.5,
        label: str = "",
        side: Literal["left", "right"] = "right",
        dashed: bool = False,
    ) -> None:
        """A line with a head at its last point, and what flows written at its middle."""
        (x0, y0), (x1, y1) = points[-2], points[-1]
        length = max(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5, 1e-9)
        ux, uy = (x1 - x0) / length, (y1 - y0) / length
        head = 4 + 2.2 * width
        bx, by = x1 - head * ux, y1 - head * uy
        self.line(*points[:-1], (bx + ux, by + uy), role=role, width=width, opacity=0.8, dashed=dashed)
        wing = 0.5 * head
        corners = (x1, y1, bx - wing * uy, by + wing * ux, bx + wing * uy, by - wing * ux)
        fill = "currentColor" if role is None else role.fill
        self.elements.append(drawsvg.Lines(*map(_at, corners), close=True, fill=fill, fill_opacity=0.8))
        if label:
            self.text(
                (x0 + x1) / 2 + (9 if side == "right" else -9),
                (y0 + y1) / 2,
                label,
                anchor="start" if side == "right" else "end",
                muted=True,
            )

    def brace(self, x0: Pixels, x1: Pixels, y: Pixels, label: str = "", *, up: bool = False) -> None:
        """A bracket from x0 to x1 with its words below it, or above."""
        tip = -6 if up else 6
        self.line((x0, y), (x0, y + tip), (x1, y + tip), (x1, y))
        if label:
            self.text((x0 + x1) / 2, y + tip + (-12 if up else 12), label, bold=True)


def _shade(weight: Pixels) -> Pixels:
    """A tint's opacity: at most so strong that the page's text can be read on it, in light and in dark."""
    return round(min(max(float(weight), 0.0), 1.0) * 0.42 + 0.06, 2)


def widest(words: Sequence[str], size: Pixels = SIZE) -> Pixels:
    """The width of the widest of the words."""
    return max(width_of(word, size) for word in words)
