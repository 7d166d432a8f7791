"""Drawings of the chapter on skip connections and normalisation. Numbers in them come in as arguments."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, listed, number, table, width_of
from tformer_book.kit.drawings.primitives import PHONE, Anchor, Scene, Strength
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, VALUE

SUM = 24  # the width of a plus on the stream


def _plus(scene: Scene, x: Pixels, y: Pixels) -> None:
    """Where a sublayer adds to the stream."""
    scene.box(
        x - SUM / 2, y - SUM / 2, SUM, SUM, "+", role=STREAM, strength="full", radius=SUM / 2, bold=True
    )


def block(words: Sequence[str], *, title: str = "A block reads from the stream and adds to it") -> Drawing:
    """The residual stream as one thick line; attention and MLP each read a normalised copy and add to it.

    Args:
        words: the tokens that flow through.
        title: what it shows.

    Raises:
        ValueError: if there is no word, or one that is too long for its box.
    """
    words = listed(words, "words")
    parts = (("attention", "tokens read", "each other"), ("MLP", "each token", "on its own"))
    description = (
        f"The tokens {', '.join(words)} all enter one thick line, the residual stream, D by N, and leave it "
        "at its end. Twice a thin arrow branches off: a copy of the stream is normalised and goes through a "
        "sublayer, first attention, in which tokens read each other, then the MLP, in which each token is on "
        "its own. An arrow leads what the sublayer returns back to a plus on the line, where it is added. "
        "The thick line itself passes through nothing but the two sums; it is X at the start, Y between them "
        "and Z at the end."
    )

    def wide() -> Scene:
        token, broad, level = 62.0, 252.0, 138.0
        scene = Scene(2 * token + 2 * broad + 74, 196, size=15)
        ends = (token / 2, scene.width - token / 2)
        top = level - 17 * len(words)
        scene.stream((token + 14, level), (scene.width - token - 14, level), role=STREAM)
        for x, side in zip(ends, (1, -1), strict=True):
            for i, word in enumerate(words):
                middle = top + 34 * i + 17
                edge = x + side * (token / 2 - 2)
                scene.line((edge, middle), (x + side * (token / 2 + 16), level), role=STREAM, width=3)
                scene.token(x, top + 34 * i + 2, word, token - 4, role=KEY)
        for i, (name, *what) in enumerate(parts):
            left = token + 22 + i * (broad + 22)
            right = left + broad - 12
            scene.arrow((left, level - 4), (left, 50), (left + 24, 50))
            scene.box(left + 24, 34, 58, 32, "norm", radius=4)
            scene.arrow((left + 82, 50), (left + 104, 50))
            scene.box(left + 104, 30, 106, 40, name, role=QUERY, radius=6, bold=True)
            scene.arrow((left + 210, 50), (right, 50), (right, level - 13))
            _plus(scene, right, level)
            scene.text(left + 8, 102, "read", anchor="start", muted=True)
            scene.text(right - 8, 102, "write", anchor="end", muted=True)
            scene.text((left + right) / 2 + 10, 12, " ".join(what), muted=True)
        middle = scene.width / 2
        scene.text(middle, level + 26, "the residual stream", bold=True)
        scene.text(middle, level + 46, "D × N", muted=True)
        scene.text(ends[0], top - 14, "X", bold=True)
        scene.text(token + broad + 27, level - 24, "Y", bold=True)
        scene.text(ends[1], top - 14, "Z", bold=True)
        return scene

    def narrow() -> Scene:
        line, room = 52.0, PHONE
        scene = Scene(room, size=14)
        gap, free = 6.0, room - 24.0
        each = (free - gap * (len(words) - 1)) / len(words)

        def row(y: Pixels, name: str) -> None:
            scene.text(4, y + 15, name, bold=True, anchor="start")
            for i, word in enumerate(words):
                scene.token(24 + each / 2 + i * (each + gap), y, word, each, role=KEY)

        row(2, "X")
        scene.stream((line, 34), (line, 420), role=STREAM)
        for i, (name, *what) in enumerate(parts):
            top = 54 + 186 * i
            scene.arrow((line + 4, top), (196, top), (196, top + 22))
            scene.text(124, top + 13, "read", muted=True)
            scene.box(166, top + 22, 60, 28, "norm", radius=4)
            scene.arrow((196, top + 50), (196, top + 68))
            scene.box(140, top + 68, 112, 36, name, role=QUERY, radius=6, bold=True)
            for j, words_ in enumerate(what):
                scene.text(206, top + 118 + 17 * j, words_, anchor="start", muted=True)
            scene.arrow((196, top + 104), (196, top + 148), (line + 13, top + 148))
            scene.text(124, top + 135, "write", muted=True)
            _plus(scene, line, top + 148)
        scene.text(line - 22, 222, "Y", bold=True)
        row(422, "Z")
        scene.text(line + 16, 222, "the residual stream", anchor="start", bold=True)
        scene.text(room - 4, 222, "D × N", anchor="end", muted=True)
        scene.height = 454
        return scene

    return Drawing(title, description, wide(), narrow())


PLACES: dict[str, tuple[str, str, Sequence[str], Sequence[str]]] = {
    # what it is called: formula, where a norm stands on the stream, the branch, the stream's variance before
    # the first sum, after it, before the second, after it and at the end
    "post-norm": ("N(X + f(X))", "after", ("f",), ("1", "1+v", "1", "1+v", "1")),
    "pre-norm": ("X + f(N(X))", "", ("N", "f"), ("1", "1+v", "", "1+2v", "")),
    "normed skip": ("N(X) + f(N(X))", "before", ("f",), ("1", "1+v", "1", "1+v", "")),
    "branch norm": ("X + N(f(X))", "", ("f", "N"), ("1", "1+v", "", "1+2v", "")),
    "sandwich norm": ("X + N′(f(N(X)))", "", ("N", "f", "N′"), ("1", "1+v", "", "1+2v", "")),
}


def placements(*, title: str = "Where the norm stands") -> Drawing:
    """Five ways to put together a skip, a norm N and a sublayer f, and the variance of the stream in each.

    What a sublayer adds is taken to have the variance v and to be unrelated to the stream.

    Args:
        title: what it shows.
    """
    said = []
    for name, (formula, on_stream, branch, variances) in PLACES.items():
        where = f"a norm on the stream {on_stream} each sublayer" if on_stream else "no norm on the stream"
        said.append(
            f"{name}, {formula}: {where}, on the branch {' then '.join(branch)}; variance of the stream "
            f"{', '.join(filter(None, variances))}."
        )
    description = (
        "Five streams, each with two sublayers f beside it and norms N on the thick line or on the branch. "
        + " ".join(said)
    )

    def strip(scene: Scene, x: Pixels, y: Pixels, name: str) -> None:
        """One of the five, 320 by 124 pixels."""
        _, on_stream, branch, variances = PLACES[name]
        level, size, cell, gap = y + 86, scene.size, 24.0, 12.0
        first, pitch, span = (36, 140, 98) if on_stream else (20, 148, 120)
        scene.text(x, y + 10, name, anchor="start", bold=True)
        scene.stream((x, level), (x + 320, level), role=STREAM)
        for i in range(2):
            left = x + first + pitch * i
            right = left + span
            start = (left + right - cell * len(branch) - gap * (len(branch) - 1)) / 2
            scene.arrow((left, level - 4), (left, y + 44), (start, y + 44))
            for j, part in enumerate(branch):
                place = (start + j * (cell + gap), y + 32, cell, 24)
                if j:
                    scene.arrow((place[0] - gap, y + 44), (place[0], y + 44))
                if part != "f":
                    scene.box(*place, part, role=VALUE, strength="full", bold=True, size=size)
                else:
                    scene.box(*place, part, role=QUERY, radius=4, bold=True, size=size)
            end = start + len(branch) * cell + gap * (len(branch) - 1)
            scene.arrow((end, y + 44), (right, y + 44), (right, level - 13))
            _plus(scene, right, level)
            if on_stream:
                at = left - 29 if on_stream == "before" else right + 13
                scene.box(at, level - 12, 24, 24, "N", role=VALUE, strength="full", bold=True, size=size)
        places = (x + 85, x + 147, x + 225, x + (286 if on_stream == "after" else 292), x + 316)
        if not on_stream:
            places = (x + 80, x + 160, x + 224, x + 300, x + 316)
        for at, variance in zip(places, variances, strict=True):
            scene.text(at, level + 25, variance, bold=True)

    def legend(scene: Scene, x: Pixels, y: Pixels) -> None:
        scene.box(x, y + 4, 24, 24, "N", role=VALUE, strength="full", bold=True, size=scene.size)
        scene.text(x + 34, y + 16, "norm", anchor="start")
        scene.box(x + 110, y + 4, 24, 24, "f", role=QUERY, radius=4, bold=True, size=scene.size)
        scene.text(x + 144, y + 16, "attention or MLP", anchor="start")
        for i, words in enumerate(("below the stream: its variance,", "if each f adds an unrelated v")):
            scene.text(x, y + 48 + 20 * i, words, anchor="start", muted=True)

    def layout(columns: int, size: Pixels) -> Scene:
        tall, broad = 142.0, 364.0
        scene = Scene(320 + (columns - 1) * broad + 4, size=size)
        for i, name in enumerate(PLACES):
            strip(scene, 2 + broad * (i % columns), tall * (i // columns), name)
        i = len(PLACES)
        legend(scene, 2 + broad * (i % columns), tall * (i // columns) + (18 if columns > 1 else 0))
        scene.height = tall * (i // columns) + (124 if columns > 1 else 84)
        return scene

    return Drawing(title, description, layout(2, 14.5), layout(1, 13.5))


PAIR = {"post-norm": "post-norm", "pre-norm": "pre-norm"}  # a place, and what stands above it


def input_left(
    variance: Any,
    sublayers: int,
    places: Mapping[str, str] = PAIR,
    *,
    title: str | None = None,
) -> Drawing:
    """The wiring of two places, and below each the stream's variance: the input's part, and what was added.

    Args:
        variance: of what each sublayer returns, unrelated to the stream, over the variance of what it reads.
        sublayers: how many are passed.
        places: from two of "no norm", "post-norm" and "pre-norm" to the headings.
        title: what it shows; None names the places.

    Raises:
        ValueError: if the variance is not between 0 and 1, there are not one to four sublayers, or a place is
            not known.
    """
    headings = dict(listed(places.items(), "places", 2))
    v = float(variance)
    if not 0 < v <= 1:
        raise ValueError(f"a variance above 0 and up to 1 is drawn, got {v}")
    if not 1 <= sublayers <= 4:
        raise ValueError(f"from one to four sublayers are drawn, got {sublayers}")

    def short(x: Pixels) -> str:
        return f"{x:.2f}".rstrip("0").rstrip(".")

    bars = {  # the input's part and the whole
        "no norm": [(1.0, (1 + v) ** k) for k in range(sublayers + 1)],
        "post-norm": [((1 + v) ** -k, 1.0) for k in range(sublayers + 1)],
        "pre-norm": [(1.0, 1 + v * k) for k in range(sublayers + 1)],
    }
    formulas = {"no norm": "X + f(X)", "post-norm": "Norm(X + f(X))", "pre-norm": "X + f(Norm(X))"}
    where = {
        "no norm": "has no norm",
        "post-norm": "has a norm on the thick line, after the sum",
        "pre-norm": "has a norm on the branch, before f",
    }
    for name in headings:
        if name not in bars:
            raise ValueError(f"places are {', '.join(bars)}, got {name!r}")
    said = {
        name: ", ".join(f"{short(part)} of {short(whole)}" for part, whole in bars[name]) for name in headings
    }
    described = "; ".join(f"{heading} {where[name]}" for name, heading in headings.items())
    description = (
        f"Two streams, a sublayer f beside each: {described}. Below, after 0 to {sublayers} sublayers, how "
        "much of the stream's variance is the input's, if each sublayer returns "
        f"{short(v)} of the variance that it reads: "
        + "; ".join(f"{headings[name]}: {told}" for name, told in said.items())
        + "."
    )
    tall = 56.0
    high = round(tall * max(whole for name in headings for _, whole in bars[name]))

    def panel(scene: Scene, x: Pixels, name: str, y: Pixels) -> None:
        """One place, 320 pixels wide."""
        level, post, pre = y + 88, name == "post-norm", name == "pre-norm"
        scene.text(x, y + 10, headings[name], anchor="start", bold=True)
        scene.text(x + 320, y + 10, formulas[name], anchor="end", muted=True)
        scene.stream((x, level), (x + 320, level), role=STREAM)
        left, right = (x + 46, x + 266) if pre else (x + 46, x + 186)
        scene.arrow((left, level - 4), (left, y + 44), (left + 24, y + 44))
        start = left + 24
        if pre:
            scene.box(start, y + 31, 58, 26, "norm", role=VALUE, strength="full", bold=True)
            scene.arrow((start + 58, y + 44), (start + 78, y + 44))
            start += 78
        scene.box(start, y + 31, 40, 26, "f", role=QUERY, radius=4, bold=True)
        scene.arrow((start + 40, y + 44), (right, y + 44), (right, level - 13))
        _plus(scene, right, level)
        if post:
            scene.box(right + 28, level - 13, 58, 26, "norm", role=VALUE, strength="full", bold=True)
        base, pitch, wide = y + 134 + high, 320 / (sublayers + 1), 52.0
        for k, (part, whole) in enumerate(bars[name]):
            at = x + pitch * (k + 0.5)
            if whole - part > 0.001:
                scene.box(at - wide / 2, base - tall * whole, wide, tall * (whole - part), role=QUERY)
            words = short(part)
            scene.box(
                at - wide / 2,
                base - tall * part,
                wide,
                tall * part,
                words if tall * part >= 15 else "",
                role=STREAM,
                strength="full",
                bold=True,
                size=min(scene.size, 13),
            )
            scene.text(at, base - tall * whole - 12, short(whole), muted=True)
            scene.text(at, base + 14, f"{k}", muted=True)
        scene.text(x + 160, base + 34, "sublayers passed", muted=True)

    def legend(scene: Scene, y: Pixels) -> None:
        scene.box(0, y, 20, 20, role=STREAM, strength="full")
        scene.text(28, y + 10, "the input", anchor="start")
        scene.box(116, y, 20, 20, role=QUERY)
        scene.text(144, y + 10, "what was added", anchor="start")

    wide = Scene(692, size=14.5)
    first, second = headings
    panel(wide, 2, first, 0)
    panel(wide, 370, second, 0)
    legend(wide, 190 + high)
    wide.height = 212 + high
    narrow = Scene(PHONE, size=13.5)
    panel(narrow, 2, first, 0)
    panel(narrow, 2, second, 196 + high)
    legend(narrow, 2 * high + 386)
    narrow.height = 2 * high + 410
    title = title or f"What is left of the input, {' and '.join(headings.values())}"
    return Drawing(title, description, wide, narrow)


def norm_axes(
    sentences: Sequence[Sequence[str]],
    features: int,
    entry: tuple[int, int, int],
    *,
    title: str = "What a norm runs over",
) -> Drawing:
    """What shares a mean with one entry: the rest of its token (LayerNorm), or of its feature (BatchNorm).

    Args:
        sentences: the words of each sequence in the batch.
        features: D, the numbers of a token.
        entry: sequence, token and feature of the entry that is marked.
        title: what it shows.

    Raises:
        ValueError: if there are no sentences, or there is no such entry.
    """
    sentences = [listed(words, "a sentence") for words in listed(sentences, "sentences")]
    b, n, d = entry
    if not (0 <= b < len(sentences) and 0 <= n < len(sentences[b]) and 0 <= d < features):
        raise ValueError(f"there is no entry {entry} in the batch")
    norms = {
        "LayerNorm": ("one token, all its features", lambda i, j, k: (i, j) == (b, n)),
        "BatchNorm": ("one feature, all tokens of the batch", lambda i, j, k: k == d),
    }
    batch = "; ".join(" ".join(words) for words in sentences)
    description = (
        f"A batch of sentences, {batch}, drawn twice; each word is a column of {features} numbers. One "
        f"number of {sentences[b][n]} is marked. LayerNorm: it shares mean and variance with the others of "
        f"its column, one token. BatchNorm: with the numbers in its row, one feature of all tokens in all "
        "sentences."
    )

    def panel(scene: Scene, x: Pixels, y: Pixels, cell: Pixels, name: str) -> Pixels:
        """One norm; returns where it ends at the right."""
        what, shares = norms[name]
        tall, gap = 30.0, 14.0
        scene.text(x, y + 10, name, anchor="start", bold=True)
        scene.text(x, y + 31, what, anchor="start", muted=True)
        for i, words in enumerate(sentences):
            for j, word in enumerate(words):
                scene.text(x + cell / 2, y + 60, word, bold=(i, j) == (b, n), size=min(scene.size, 14))
                for k in range(features):
                    marked = (i, j, k) == entry
                    strength: Strength = "full" if marked else "pale" if shares(i, j, k) else "faint"
                    role = VALUE if shares(i, j, k) else None
                    scene.box(x, y + 74 + k * tall, cell, tall, role=role, strength=strength, shade=0.7)
                x += cell
            x += gap
        return x - gap

    def layout(room: Pixels, size: Pixels, *, stacked: bool) -> Scene:
        many = sum(map(len, sentences))
        cell = min(46.0, (room - 14 * (len(sentences) - 1)) / many)
        scene, tall = Scene(room, size=size), 74 + 30.0 * features
        right = panel(scene, 1, 0, cell, "LayerNorm")
        if stacked:
            right = panel(scene, 1, tall + 26, cell, "BatchNorm")
            scene.height = 2 * tall + 26
        else:
            right = panel(scene, right + 56, 0, cell, "BatchNorm")
            scene.height = tall
        scene.width = max(right + 2, PHONE if stacked else 0)
        return scene

    return Drawing(title, description, layout(340, 15, stacked=False), layout(PHONE, 13.5, stacked=True))


def normed_in_space(
    tokens: Sequence[Sequence[Pixels]], *, title: str = "LayerNorm of tokens of width three"
) -> Drawing:
    """Tokens with three features, seen with the direction (1, 1, 1) upwards, fall onto a plane and a circle.

    Subtracting the mean moves a token along (1, 1, 1) to the plane of mean zero; dividing by the standard
    deviation moves it along its ray to the circle of radius root 3 in that plane.

    Args:
        tokens: three numbers each; the first points to the right.
        title: what it shows.

    Raises:
        ValueError: if there are none, one has not three features, or the features of one are all equal.
    """
    found = [[float(x) for x in token] for token in table(tokens, "tokens", columns=3)]
    means = [math.fsum(token) / 3 for token in found]
    centred = [[x - m for x in token] for token, m in zip(found, means, strict=True)]
    lengths = [math.hypot(*token) for token in centred]
    if min(lengths) < 1e-9:
        raise ValueError("a token whose features are all equal has no direction")
    u = [x / lengths[0] for x in centred[0]]
    w = [(u[2] - u[1]) / math.sqrt(3), (u[0] - u[2]) / math.sqrt(3), (u[1] - u[0]) / math.sqrt(3)]
    flat = [
        [math.fsum(a * e for a, e in zip(token, axis, strict=True)) for axis in (u, w)] for token in centred
    ]
    landed = [[math.sqrt(3) * x / r for x in place] for place, r in zip(flat, lengths, strict=True)]
    names = [f"({', '.join(number(x, 0 if x == round(x) else 2) for x in token)})" for token in found]
    outputs = [[math.sqrt(3) * x / r for x in token] for token, r in zip(centred, lengths, strict=True)]
    told = "; ".join(
        f"{name} lands on ({', '.join(number(x) for x in out)})"
        for name, out in zip(names, outputs, strict=True)
    )
    description = (
        "A plane seen from the side, with a circle in it; the direction (1, 1, 1) points up. Each token is a "
        "point above the plane, at the height of its mean. Subtracting the mean moves it straight down to "
        "the plane, dividing by the standard deviation along a ray from the centre to the circle, whose "
        f"radius is the root of 3: {told}."
    )
    high = 10.0  # a mean above this is drawn at a break

    def layout(room: Pixels, unit: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        centre, depth, rise, base = (1.95 * unit, 0.42, 0.5 * unit, 150 + 2.1 * unit)

        def at(place: Sequence[Pixels], height: Pixels = 0) -> tuple[Pixels, Pixels]:
            x, z = place
            level = min(height, high) if height <= high else high
            up = rise * level if height <= high else base - 22
            return centre + unit * x, base - unit * depth * z - up

        corners = [at(spot) for spot in ((-1.9, -2.1), (3.1, -2.1), (3.6, 2.1), (-1.4, 2.1))]
        scene.area(*corners, shade=0.0)
        ring = [
            at((math.sqrt(3) * math.cos(t * math.pi / 36), math.sqrt(3) * math.sin(t * math.pi / 36)))
            for t in range(73)
        ]
        scene.line(*ring, role=VALUE, width=2.5)
        turn = math.radians(205)
        rim = at((math.sqrt(3) * math.cos(turn), math.sqrt(3) * math.sin(turn)))
        scene.line(at((0, 0)), rim, dashed=True)
        middle = ((at((0, 0))[0] + rim[0]) / 2, (at((0, 0))[1] + rim[1]) / 2)
        scene.text(middle[0], middle[1] - 12, "√3", muted=True)
        up, down = (centre, 40), at((0, 0))
        scene.arrow(down, up, width=1)
        scene.text(centre, 26, "(1, 1, 1)", muted=True)
        for i, (token, end) in enumerate(zip(flat, landed, strict=True)):
            start, foot, final = at(token, means[i]), at(token), at(end)
            far = means[i] > high
            below = [
                at(other, means[j])[1] for j, other in enumerate(flat) if abs(at(other)[0] - foot[0]) < 1
            ]
            stop = min([y - 8 for y in below if y > start[1]], default=foot[1] - 5)
            scene.arrow(start, (foot[0], stop), dashed=far, width=1)
            away = math.dist(foot, final)
            if away > 18:  # there is room for a head before the dot
                edge = (away - 8) / away
                tip = (foot[0] + (final[0] - foot[0]) * edge, foot[1] + (final[1] - foot[1]) * edge)
                scene.arrow(foot, tip, width=1.5, role=VALUE)
            else:
                scene.line(foot, final, width=1.5, role=VALUE)
            scene.box(start[0] - 6, start[1] - 6, 12, 12, role=KEY, strength="full", radius=6)
            scene.box(foot[0] - 4, foot[1] - 4, 8, 8, role=None, radius=4)
            near = [
                at(other, means[j])[0] - start[0]
                for j, other in enumerate(flat)
                if abs(means[j] - means[i]) < 2
            ]
            crowded = any(0 < gap < width_of(names[i], scene.size) + 24 for gap in near)
            side: Anchor = "end" if crowded else "start"
            passed = [
                at(other)[0] - start[0] for j, other in enumerate(flat) if means[i] + 1 < means[j] <= high
            ]
            if any(0 < gap < width_of(names[i], scene.size) + 16 for gap in passed) and not crowded:
                scene.text(start[0], start[1] - 17, names[i], bold=True)  # beside it an arrow comes down
            else:
                scene.text(start[0] + (-9 if crowded else 12), start[1], names[i], anchor=side, bold=True)
        for i, end in enumerate(landed):
            if all(math.dist(end, other) > 0.01 for other in landed[:i]):
                x, y = at(end)
                scene.box(x - 7, y - 7, 14, 14, role=VALUE, strength="full", radius=7)
        return scene

    wide, narrow = layout(520, 92, 15), layout(PHONE, 50, 13.5)
    for scene, unit in ((wide, 92), (narrow, 50)):
        bottom = 150 + 2.1 * unit + 0.42 * 2.1 * unit
        lines = (
            ("down:", "subtract the mean"),
            ("to the circle:", "divide by the deviation"),
        )
        for i, (what, how) in enumerate(lines):
            scene.text(0, bottom + 22 + 21 * i, what, anchor="start", bold=True)
            scene.text(118, bottom + 22 + 21 * i, how, anchor="start", muted=True)
        scene.height = bottom + 56
    return Drawing(title, description, wide, narrow)


def becoming_one(
    rows: Mapping[str, Sequence[tuple[Any, Pixels]]], *, title: str = "Tokens that become one"
) -> Drawing:
    """Tokens as points in the plane, layer after layer, a row for each stack, with their own share.

    Every panel is drawn at the scale of its farthest token.

    Args:
        rows: for each heading, before the first layer and after each one: the points (N, 2), and the share.
        title: what it shows.

    Raises:
        ValueError: if there are no rows, they differ in length, or points are not pairs.
    """
    if not rows:
        raise ValueError("rows: expected at least one, got 0")
    length = len(next(iter(rows.values())))
    panels = {
        name: [
            (table(points, "points", columns=2), float(share))
            for points, share in listed(states, f"states of {name!r}", length)
        ]
        for name, states in rows.items()
    }

    def written(share: Pixels) -> str:
        if share >= 0.005:
            return f"{100 * share:.0f}%"
        if share >= 0.0005:
            return f"{100 * share:.1f}%"
        return "< 0.1%" if share >= 1e-6 else "< 0.0001%"

    told = " ".join(
        f"{name}: {', '.join(written(share) for _, share in states)}." for name, states in panels.items()
    )
    many = len(next(iter(panels.values()))[0][0])
    description = (
        f"{many} tokens as dots in squares, before the first layer and after each of {length - 1}, a row for "
        f"each stack. Below each square the share of the tokens that is their own. {told} Where it is near "
        "nothing, all dots lie on one place."
    )
    heads = ["tokens", *(f"after {i}" for i in range(1, length))]

    def panel(scene: Scene, x: Pixels, y: Pixels, side: Pixels, points: list, share: Pixels) -> None:
        scene.box(x, y, side, side, strength="faint", radius=6)
        reach = max(math.hypot(*map(float, point)) for point in points) or 1.0
        half = side / 2 - 10
        for one, other in points:
            a, b = x + side / 2 + half * float(one) / reach, y + side / 2 - half * float(other) / reach
            scene.box(a - 5, b - 5, 10, 10, role=KEY, strength="full", radius=5)
        scene.line((x + side / 2 - 3, y + side / 2), (x + side / 2 + 3, y + side / 2), opacity=0.6)
        scene.line((x + side / 2, y + side / 2 - 3), (x + side / 2, y + side / 2 + 3), opacity=0.6)
        scene.text(x + side / 2, y + side + 15, written(share), bold=True)

    def layout(room: Pixels, gap: Pixels, size: Pixels) -> Scene:
        scene, y = Scene(room, size=size), 0.0
        side = (room - gap * (length - 1) - 2) / length
        for name, states in panels.items():
            scene.text(1, y + 10, name, anchor="start", bold=True)
            for i, (points, share) in enumerate(states):
                x = 1 + i * (side + gap)
                scene.text(x + side / 2, y + 34, heads[i], muted=True)
                panel(scene, x, y + 48, side, points, share)
            y += 48 + side + 46
        scene.height = y - 18
        return scene

    return Drawing(title, description, layout(620, 20, 15), layout(PHONE, 8, 13))


def ways_back(layers: int, share: Any, *, title: str = "Every way back through the layers") -> Drawing:
    """The terms of the gradient's product: at each layer a way leads past it, or through its Jacobian.

    Args:
        layers: how many there are, at most four.
        share: what a Jacobian leaves of a gradient, for the sizes at the end.
        title: what it shows.

    Raises:
        ValueError: if there are no layers, or more than can be drawn.
    """
    if not 1 <= layers <= 4:
        raise ValueError(f"from one to four layers are drawn, got {layers}")
    left = float(share)
    ways = sorted(itertools.product((False, True), repeat=layers), key=lambda way: (sum(way), way[::-1]))

    def told(way: Sequence[bool]) -> str:
        through = [f"J{layers - i}" for i, yes in enumerate(way) if yes]
        return f"{' then '.join(through) or 'past all layers'}: {size(way)}"

    def short(x: Pixels) -> str:
        return f"{x:.3f}".rstrip("0").rstrip(".")

    def size(way: Sequence[bool]) -> str:
        return short(left ** sum(way))

    total = short((1 + left) ** layers)
    description = (
        f"{len(ways)} ways for the gradient from the output, at the left, to the input, at the right, past "
        f"or through the Jacobians of {layers} layers, the last layer first. The first way, in full colour, "
        f"leads past all of them. If each Jacobian leaves {number(left, 1)} of the gradient, what comes "
        f"through is {'; '.join(map(told, ways))}. If all point the same way they add up to {total}. Without "
        "skips only the last way is there."
    )

    def layout(room: Pixels, size_of_type: Pixels) -> Scene:
        scene, tall, begin, last = Scene(room, size=size_of_type), 34.0, 8.0, 62.0
        step = (room - begin - last) / layers
        for i in range(layers):
            scene.text(begin + (i + 0.5) * step, 10, f"sublayer {layers - i}", muted=True)
        scene.text(room, 10, "left", anchor="end", muted=True)
        for r, way in enumerate(ways):
            y, direct = 40 + r * tall, not any(way)
            start = begin
            for i, through in enumerate(way):
                if through:
                    middle = begin + (i + 0.5) * step
                    scene.line((start, y), (middle - 24, y), opacity=0.8)
                    scene.box(middle - 24, y - 13, 48, 26, f"J_{{{layers - i}}}", strength="plain")
                    start = middle + 24
            end = (room - last + 12, y)
            scene.arrow((start, y), end, role=STREAM if direct else None, width=5 if direct else 1.5)
            scene.text(room, y, size(way), anchor="end", bold=direct)
        y = 40 + len(ways) * tall
        scene.line((room - last + 12, y - 16), (room, y - 16))
        scene.text(begin, y + 2, "the sum, if all point the same way", anchor="start", muted=True)
        scene.text(room, y + 2, total, anchor="end", bold=True)
        scene.height = y + 14
        return scene

    return Drawing(title, description, layout(480, 15), layout(PHONE, 13.5))
