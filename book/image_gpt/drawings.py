"""Drawings of the chapter on ImageGPT and its pages. Images and numbers in them come in as arguments."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, listed, number, table
from tformer_book.kit.drawings.primitives import PHONE, Scene
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, VALUE, WEIGHTS, Role

NEIGHBOURS = {"left": (0, -1), "above right": (-1, 1), "above": (-1, 0), "above left": (-1, -1)}


def _greys(image: Any) -> list[list[float]]:
    """Rows of numbers from 0 to 1; of a grey image, 0 is black."""
    cells = table(image.tolist() if hasattr(image, "tolist") else image, "an image")
    return [[float(grey) for grey in row] for row in cells]


def _framed(scene: Scene, x: Pixels, y: Pixels, width: Pixels, height: Pixels) -> None:
    """A thick frame just within a cell, so that its grey stays to be seen."""
    for inset in (1.0, 2.5):
        scene.box(x + inset, y + inset, width - 2 * inset, height - 2 * inset, role=KEY, strength="plain")


def fold(
    image: Any, row: int, column: int, *, title: str = "A plane, and the list that it becomes"
) -> Drawing:
    """An image up to one pixel, that pixel's four known neighbours, and where they stand in the list.

    Args:
        image: rows of greys from 0, black, to 1, white.
        row: of the pixel that is asked for, from 0; not the first.
        column: likewise; neither the first nor the last.
        title: what it shows.

    Raises:
        ValueError: if the pixel has not all four neighbours.
    """
    greys = _greys(image)
    height, width = len(greys), len(greys[0])
    if not (0 < row < height and 0 < column < width - 1):
        raise ValueError(f"a pixel with four neighbours before it, got row {row} and column {column}")
    target = row * width + column
    back = {name: -(dy * width + dx) for name, (dy, dx) in NEIGHBOURS.items()}
    description = (
        f"Above: a digit of {height} by {width} pixels, of which the first {target} in reading order are "
        f"known and the others are hatched. The next one, marked with a question mark, touches four that are "
        "known and framed. Below: the same pixels as one list. There the pixel to the left stands "
        f"{back['left']} place back, and those above stand {back['above right']}, {back['above']} and "
        f"{back['above left']} back."
    )
    near = [(row + dy, column + dx) for dy, dx in NEIGHBOURS.values()]

    def grid(scene: Scene, x: Pixels, y: Pixels, side: Pixels) -> None:
        cell = side / width
        known = [
            [value if i * width + j < target else math.nan for j, value in enumerate(line)]
            for i, line in enumerate(greys)
        ]
        scene.greys(x, y, side, height * cell, known)
        low, right = y + (row + 1) * cell, x + column * cell
        if row + 1 < height:
            scene.box(x, low, side, (height - row - 1) * cell, masked=True, strength="faint")
        scene.box(right, y + row * cell, (width - column) * cell, cell, masked=True, strength="faint")
        scene.box(x, y, side, height * cell, strength="plain")
        for i, j in near:
            _framed(scene, x + j * cell, y + i * cell, cell, cell)
        scene.box(right, y + row * cell, cell, cell, "?", role=QUERY, strength="full", bold=True)

    def strip(scene: Scene, y: Pixels, room: Pixels, shown: int) -> None:
        """The last `shown` pixels before the target, and it."""
        cell = room / (shown + 1)
        for k in range(shown, -1, -1):
            x, n = (shown - k) * cell, target - k
            if k == 0:
                scene.box(x, y, cell, 30, "?", role=QUERY, strength="full", bold=True)
                continue
            scene.greys(x, y, cell, 30, [[greys[n // width][n % width]]])
            scene.box(x, y, cell, 30, strength="faint")
            if k in back.values():
                _framed(scene, x, y, cell, 30)
                scene.text(x + cell / 2, y + 42, str(k))

    def layout(room: Pixels, side: Pixels, size: Pixels, least: Pixels) -> Scene:
        scene, x = Scene(room, size=size), (room - side) / 2
        scene.text(x, 8, "the plane", anchor="start", bold=True)
        grid(scene, x, 22, side)
        y = 22 + side * height / width + 30
        scene.text(0, y, "the list, from left to right", anchor="start", bold=True)
        shown = min(target, back["above left"] + 1)
        strip(scene, y + 18, room, shown)
        scene.text(room, y + 84, "places back from the pixel asked for", anchor="end", muted=True)
        scene.height = y + 96
        return scene

    return Drawing(title, description, layout(700, 322, 14, 12.75), layout(PHONE, PHONE, 13.5, 12.75))


def off_by_one(
    tokens: Sequence[str], width: int, *, title: str = "What is read, and what is asked"
) -> Drawing:
    """The list is read one place earlier than it is asked: two rows of tokens, and what reaches one answer.

    Args:
        tokens: of the first rows of an image, without the start token; more than `width` of them.
        width: of the image; looked at is the answer for the second pixel of its second row.
        title: what it shows.

    Raises:
        ValueError: if there are too few tokens to have a pixel above.
    """
    asked = listed(tokens, "tokens")
    if not 1 < width < len(asked) - 1:
        raise ValueError(f"more than one row of at least two pixels, got {len(asked)} tokens, width {width}")
    read = ["S", *asked[:-1]]
    at = width + 1  # the place whose answer is looked at
    description = (
        f"Two rows. Below, what the model reads: the start token S, then {', '.join(asked[:-1])}. Above, "
        f"what it is asked for in each place: {', '.join(asked)}. In place {at + 1} the answer is "
        f"{asked[at]}. The pixel to its left is the one read in the same place, {read[at]}: the skip "
        f"connection carries it up. The pixel above it was read {width - 1} places earlier, "
        f"{read[at - width + 1]}: attention has to fetch it."
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene, n = Scene(room, size=size), len(asked)
        step = room / n
        xs = [(k + 0.5) * step for k in range(n)]
        scene.text(0, 8, "asked for", anchor="start", bold=True)
        for k, word in enumerate(asked):
            look: dict[str, Any] = {"role": QUERY, "strength": "full" if k == at else "pale"}
            scene.token(xs[k], 24, word, step - 4, 30, **look)
        scene.text(0, 178, "read (S: the start token)", anchor="start", bold=True)
        for k, word in enumerate(read):
            look = {"role": KEY, "strength": "full" if k in (at, at - width + 1) else "pale"}
            scene.token(xs[k], 132, word, step - 4, 30, **look)
        scene.arrow((xs[at], 130), (xs[at], 57), role=STREAM, width=3)
        scene.arrow((xs[at - width + 1], 130), (xs[at] - 8, 57), role=WEIGHTS, width=3)
        scene.text(xs[at] + 10, 86, "skip:", anchor="start")
        scene.text(xs[at] + 10, 104, "left", anchor="start")
        scene.text(0, 86, "attention:", anchor="start")
        scene.text(0, 104, "above", anchor="start")
        scene.height = 190
        return scene

    return Drawing(title, description, layout(700, 14), layout(PHONE, 13.5))


def moved_map(
    moved: Mapping[tuple[int, int], float], back: Mapping[int, float], *,
    title: str = "What the prediction depends on",
) -> Drawing:  # fmt: skip
    """The pixel that is asked for, and by how many bits each change of an earlier pixel moves it, seen twice.

    Args:
        moved: from an offset, so many rows down and columns right, to bits; none lies after the pixel.
        back: from the places that a pixel stands back in the list, 1, 2, 3 and so on, to bits.
        title: what it shows.

    Raises:
        ValueError: if there is nothing to draw, a pixel stands after the one that is asked for, or places
            of the list are left out.
    """
    if not moved or max(moved) >= (0, 0):
        raise ValueError(f"offsets before (0, 0), got {sorted(moved)}")
    if list(back) != list(range(1, len(back) + 1)):
        raise ValueError(f"places back from 1 on, got {list(back)}")
    rows, reach = 1 - min(dy for dy, _ in moved), max(abs(dx) for _, dx in moved)
    top = max(*moved.values(), *back.values())
    told = ", ".join(f"{number(bits, 2)} at {-dy} up and {dx} right" for (dy, dx), bits in moved.items())
    beside = ", ".join(f"{n} back {number(bits, 2)}" for n, bits in back.items())
    description = (
        f"A plane of pixels, the one asked for marked with a question mark. In the others the bits by which "
        f"its prediction moves when they are changed: {told}. Then the same bits as bars, one for each place "
        f"back in the list: {beside}. They are high in groups, with low ones between."
    )

    def layout(room: Pixels, cell: Pixels, size: Pixels) -> Scene:
        scene, across = Scene(room, size=size), 2 * reach + 1
        phone = room == PHONE
        scene.text(0, 8, "bits, by place in the image", anchor="start", bold=True)
        for i in range(rows):
            for j in range(across):
                at, x, y = (i - rows + 1, j - reach), j * cell, 24 + i * cell
                if at == (0, 0):
                    scene.box(x, y, cell, cell, "?", role=QUERY, strength="full", bold=True)
                elif at in moved:
                    shade = 0.06 + 0.9 * moved[at] / top
                    scene.box(x, y, cell, cell, number(moved[at], 2), role=KEY, shade=shade)
                else:
                    scene.box(x, y, cell, cell, masked=at > (0, 0), strength="faint")
        plane = 24 + rows * cell
        left, head, tall = (0.0, plane + 26, 80.0) if phone else (across * cell + 50, 8.0, 118.0)
        scene.text(left, head, "bits, by place back in the list", anchor="start", bold=True)
        step, base = (room - left) / len(back), head + 16 + tall
        for n, bits in back.items():
            scene.bar(left + (n - 0.5) * step, base, 0.72 * step, max(1, tall * bits / top), KEY)
        scene.line((left, base), (room, base))
        for n in (1, 9, 14, 28):
            if n in back:
                middle = left + (n - 0.5) * step
                scene.line((middle, base), (middle, base + 5))
                scene.text(middle, base + 15, str(n))
        scene.text(left, base + 34, "places back", anchor="start", muted=True)
        scene.height = max(plane, base + 44) + 4
        return scene

    return Drawing(title, description, layout(700, 56, 14), layout(PHONE, 56, 13.5))


def noise_and_back(
    images: Sequence[Any], times: Sequence[Pixels], *, title: str = "Into noise, and out of it"
) -> Drawing:
    """An image on its way into noise; a model that knows the direction goes the same way back.

    Args:
        images: rows of greys from 0, black, to 1, white, for each time.
        times: from 0, the image, to 1, noise.
        title: what it shows.

    Raises:
        ValueError: if there are not as many images as times, or the times do not go from 0 to 1.
    """
    grey, times = [_greys(image) for image in images], listed(times, "times", len(images))
    if times[0] != 0 or times[-1] != 1 or sorted(times) != times:
        raise ValueError(f"times from 0 to 1, got {times}")
    description = (
        f"A digit at {len(times)} times: at t = 0 as it is, at t = 1 only noise, between them a mixture of "
        f"both, at t = {', '.join(number(t, 2) for t in times[1:-1])}. An arrow to the right says: mix noise "
        "in. An arrow to the left says: follow the model, in small steps."
    )

    def layout(room: Pixels, size: Pixels, row: int) -> Scene:
        scene, side = Scene(room, size=size), (room - 14 * (row - 1)) / row
        scene.arrow((0, 24), (room, 24), width=2)
        scene.text(0, 8, "training: mix noise in", anchor="start", bold=True)
        y = 42.0
        for k, (picture, t) in enumerate(zip(grey, times, strict=True)):
            x = (k % row) * (side + 14)
            y = 42 + (k // row) * (side + 30)
            scene.greys(x, y, side, side, picture)
            scene.box(x, y, side, side, strength="plain")
            scene.text(x + side / 2, y + side + 13, f"t = {number(t, 2)}", muted=True)
        y += side + 40
        scene.arrow((room, y), (0, y), role=QUERY, width=2.5)
        scene.text(room, y + 18, "an image: follow the model, in small steps", anchor="end", bold=True)
        scene.height = y + 30
        return scene

    return Drawing(title, description, layout(700, 14, len(times)), layout(PHONE, 13.5, 3))


def dit_block(*, title: str = "A block that knows the time") -> Drawing:
    """Chapter 4's pre-norm block; the time sets a shift, a scale and a gate for each of the two sublayers."""
    description = (
        "From bottom to top runs the residual stream. Twice it is normed, scaled and shifted; attention "
        "reads the result, then an MLP; and what they say is multiplied by a gate before it is added to the "
        "stream. "
        "From the right comes one vector c, made of the time t. It sets the scale and shift before, and the "
        "gate after, each of the two."
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        phone = room == PHONE
        x, branch, wide = (30.0, 64.0, 128.0) if phone else (150.0, 200.0, 210.0)
        right = room - (66 if phone else 150)
        scene.stream((x, 400), (x, 16), role=STREAM)
        scene.arrow((x, 20), (x, 2), role=STREAM, width=4)
        for base, name in ((392, "attention"), (202, "MLP")):
            scene.line((x, base), (branch + wide / 2, base))
            scene.arrow((branch + wide / 2, base), (branch + wide / 2, base - 16))
            scene.box(branch, base - 48, wide, 30, "norm", radius=5)
            scene.box(branch, base - 86, wide, 30, "scale and shift", role=QUERY, strength="full", radius=5)
            scene.box(branch, base - 124, wide, 30, name, role=WEIGHTS, radius=5)
            scene.box(branch, base - 162, wide, 30, "gate", role=QUERY, strength="full", radius=5)
            scene.line((branch + wide / 2, base - 162), (branch + wide / 2, base - 174))
            scene.arrow((branch + wide / 2, base - 174), (x + 5, base - 174))
            scene.text(x - 14, base - 174, "+", bold=True)
            for y in (base - 71, base - 147):
                scene.arrow((right, y), (branch + wide + 2, y), role=QUERY)
        scene.line((right, 321), (right, 55), role=QUERY)
        scene.box(right - 26, 336, 92 if phone else 120, 30, "c, of t", role=QUERY, strength="full", radius=5)
        scene.line((right, 336), (right, 318), role=QUERY)
        scene.height = 406
        return scene

    return Drawing(title, description, layout(700, 14), layout(PHONE, 13.5))


def sound_to_columns(
    signal: Sequence[Pixels], start: int, powers: Sequence[Pixels], bands: Any, *, patch: int = 8,
    title: str = "From sound to columns",
) -> Drawing:  # fmt: skip
    """Five stages from samples to the columns that an encoder reads, each with its size.

    Args:
        signal: the samples.
        start: the first sample of the frame that is shown.
        powers: its spectrum, as heights from 0 to 1; a frame has twice as many samples, less two.
        bands: the spectrogram as rows of shades from 0 to 1, lowest band first.
        patch: the side of a patch.
        title: what it shows.

    Raises:
        ValueError: if the frame is not within the signal, or patches do not tile the spectrogram.
    """
    wave, heights = listed(signal, "samples"), listed(powers, "powers")
    ink, frame = _greys(bands)[::-1], 2 * len(heights) - 2
    if not 0 <= start <= len(wave) - frame:
        raise ValueError(f"the frame lies within {len(wave)} samples, got {start} to {start + frame}")
    whole = wave[start : start + frame]
    fade = [(1 - math.cos(2 * math.pi * n / frame)) / 2 for n in range(frame)]  # as the transform reads it
    rows, columns = len(ink) // patch, len(ink[0]) // patch
    if rows * patch != len(ink) or columns * patch != len(ink[0]):
        raise ValueError(f"patches of {patch} do not tile {len(ink)} x {len(ink[0])}")
    count = rows * columns
    stages = (
        (f"{len(wave):,} samples", "a word"),
        (f"{len(ink[0])} frames", f"{frame} samples, ends faded"),
        (f"{len(heights)} powers", "of the frame, log scale"),
        (f"{len(ink)} bands", f"a picture, {len(ink)} × {len(ink[0])}"),
        (f"{count + 1} columns", f"{count} patches, one class token"),
    )
    description = "Five stages: " + "; ".join(f"{name}, {size}" for name, size in stages) + "."

    def stage(scene: Scene, k: int, x: Pixels, y: Pixels, w: Pixels, h: Pixels) -> None:
        middle = y + h / 2
        if k < 2:
            part = wave if k == 0 else [value * fade[n] for n, value in enumerate(whole)]
            bins = min(len(part), 160 if k == 0 else 128)
            cuts = [part[i * len(part) // bins : (i + 1) * len(part) // bins] for i in range(bins)]
            top = max(abs(value) for value in (wave if k == 0 else whole)) or 1
            ends = [(max(cut), min(cut)) if k == 0 else (cut[0],) for cut in cuts]
            points = [
                (x + i * w / bins, middle - value / top * h * 0.46)
                for i, two in enumerate(ends)
                for value in two
            ]
            if k == 1:
                raw = [(x + i * w / frame, middle - value / top * h * 0.46) for i, value in enumerate(whole)]
                scene.line(*raw, width=1)
            scene.line(*points, role=KEY, width=1.2)
            if k == 0:
                left, wide = x + start / len(wave) * w, frame / len(wave) * w
                scene.box(left, y, wide, h, role=QUERY, shade=0.5)
            else:
                scene.box(x, y, w, h, role=QUERY, strength="plain")
        elif k == 2:
            wide = w / len(heights)
            for j, value in enumerate(heights):
                scene.bar(x + (j + 0.5) * wide, y + h, 0.7 * wide, max(1, h * value), QUERY)
        elif k == 3:
            _raster(scene, x, y, w, h, ink)
            for i in range(1, rows):
                scene.line((x, y + i * h / rows), (x + w, y + i * h / rows), width=1)
            for j in range(1, columns):
                scene.line((x + j * w / columns, y), (x + j * w / columns, y + h), width=1)
            scene.box(x, y, w, h, strength="plain")
        else:
            wide = w / (count + 1)
            for j in range(count + 1):
                role: Role = STREAM if j == 0 else KEY
                scene.box(x + j * wide, y + 8, 0.75 * wide, h - 16, role=role, radius=2,
                          strength="full" if j == 0 else "pale")  # fmt: skip

    def layout(room: Pixels, size: Pixels, left: Pixels, w: Pixels) -> Scene:
        scene, h, gap = Scene(room, size=size), 52.0, 28.0
        y = 4.0
        for k, (name, much) in enumerate(stages):
            stage(scene, k, left, y, w, h)
            if left > 40:
                scene.text(left - 24, y + h / 2 - 10, name, anchor="end", bold=True)
                scene.text(left - 24, y + h / 2 + 10, much, anchor="end", muted=True)
                if k < 4:
                    scene.arrow((left + w / 2, y + h + 6), (left + w / 2, y + h + gap - 6))
                y += h + gap
            else:
                scene.text(0, y + h + 13, name, anchor="start", bold=True)
                scene.text(room, y + h + 13, much, anchor="end", muted=True)
                y += h + 38
        scene.height = y - (gap - 8 if left > 40 else 10)
        return scene

    return Drawing(title, description, layout(700, 14, 300, 380), layout(PHONE, 13.5, 0, PHONE))


def _raster(scene: Scene, x: Pixels, y: Pixels, w: Pixels, h: Pixels, ink: list[list[float]]) -> None:
    """A picture that is no square: means of 2 by 2 cells, as shades of one colour up to the full one."""
    rows, columns = len(ink) // 2, len(ink[0]) // 2
    for i in range(rows):
        for j in range(columns):
            four = [ink[2 * i + a][2 * j + b] for a in (0, 1) for b in (0, 1)]
            value = math.fsum(four) / 4
            if value > 0.1:
                left, right = (x + (j + k) * w / columns for k in (0, 1))
                high, low = (y + (i + k) * h / rows for k in (0, 1))
                corners = ((left, high), (right, high), (right, low), (left, low))
                scene.area(*corners, role=VALUE, opacity=value)
