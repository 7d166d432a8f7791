"""Drawings of the chapter on positions. Every number in them comes in as an argument."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, listed, number, table
from tformer_book.kit.drawings.primitives import PHONE, Scene, widest
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, VALUE, WEIGHTS

TURN = 2 * math.pi
LOWERED = "₀₁₂₃₄₅₆₇₈₉"


def three_places(tokens: Sequence[str], *, title: str = "Three points where order can come in") -> Drawing:
    """Tokens, queries and keys, scores, mask: the way to the weights, and which method enters where.

    Args:
        tokens: three or so, as they enter.
        title: what it shows.

    Raises:
        ValueError: if there is no token.
    """
    tokens = listed(tokens, "tokens")
    description = (
        f"The way from the tokens {' '.join(tokens)} to attention weights: tokens, D numbers each; queries "
        "and keys, Dh numbers each; scores, N by N; the mask; the softmax. Order can enter at three points. "
        "1, in the tokens: add a vector, learned or sinusoidal. 2, in the scores: rotary turns queries and "
        "keys, a relative bias or ALiBi adds a number. 3, in the mask: a causal mask says who comes before "
        "whom."
    )
    stages = ("tokens", "queries, keys", "scores", "mask", "softmax")
    shapes = ("D", "D_{h}", "N × N", "N × N")
    entries = (  # stage, heading, what is done, methods
        (0, "1 In the tokens", "add a vector:", ("learned", "sinusoidal")),
        (1, "2 In the scores", "turn both:", ("rotary",)),
        (2, "", "add a number:", ("relative bias", "ALiBi")),
        (3, "3 In the mask", "hide the future:", ("causal",)),
    )

    def stage(scene: Scene, i: int, x: Pixels, y: Pixels, width: Pixels, height: Pixels) -> None:
        role = (STREAM, QUERY, WEIGHTS, None, WEIGHTS)[i]
        if i == 1:
            half = width / 2 - 2
            scene.box(x, y, half, height, "queries", role=QUERY, radius=6)
            scene.box(x + width - half, y, half, height, "keys", role=KEY, radius=6)
            return
        scene.box(x, y, width, height, stages[i], role=role, radius=6, masked=False)

    def wide() -> Scene:
        scene, tall, y = Scene(720, 236), 38.0, 40.0
        widths, gap, x = (96, 148, 90, 84, 84), 52.0, 12.0
        middles = []
        for i, width in enumerate(widths):
            stage(scene, i, x, y, width, tall)
            middles.append(x + width / 2)
            if i:
                left = x - gap
                scene.arrow((left + 3, y + tall / 2), (x - 3, y + tall / 2))
                scene.text(left + gap / 2, y - 8, shapes[i - 1], muted=True)
            x += width + gap
        scene.width = x - gap + 2
        for i, heading, done, methods in entries:
            x = middles[i]
            scene.arrow((x, 128), (x, y + tall + 3), width=3)
            scene.text(x, 142, done, muted=True)
            for j, method in enumerate(methods):
                scene.text(x, 164 + 20 * j, method, bold=True)
            if heading and i != 1:
                scene.text(x, 222, heading)
        middle = (middles[1] + middles[2]) / 2
        scene.brace(middles[1] - 60, middles[2] + 60, 200)
        scene.text(middle, 222, entries[1][1])
        scene.text(12, 12, f"“{' '.join(tokens)}”", anchor="start", muted=True)
        return scene

    def narrow() -> Scene:
        scene, tall, pitch, width = Scene(PHONE, size=13.5), 34.0, 94.0, 134.0
        for i in range(len(stages)):
            y = 28 + i * pitch
            stage(scene, i, 0, y, width, tall)
            if i:
                scene.arrow((width / 2, y - pitch + tall + 3), (width / 2, y - 3))
                scene.text(width / 2 + 9, y - (pitch - tall) / 2, shapes[i - 1], anchor="start", muted=True)
        right = width + 44
        for i, heading, done, methods in entries:
            y = 28 + i * pitch + tall / 2
            scene.arrow((right - 4, y), (width + 3, y), width=3)
            above = y - 18
            if heading:
                scene.text(right, above, heading, anchor="start")
            scene.text(right, above + 18, done, anchor="start", muted=True)
            for j, method in enumerate(methods):
                scene.text(right, above + 36 + 18 * j, method, anchor="start", bold=True)
        scene.text(0, 12, f"“{' '.join(tokens)}”", anchor="start", muted=True)
        scene.height = 28 + 4 * pitch + tall + 2
        return scene

    return Drawing(title, description, wide(), narrow())


def clock_faces(
    places: Sequence[int], speeds: Any, *, title: str = "A clock with hands of many speeds"
) -> Drawing:
    """A clock for each place (across) and each speed (down): the hand points to (sin nw, cos nw).

    Args:
        places: the places n.
        speeds: the speeds w, in radians a place, the fastest first.
        title: what it shows.

    Raises:
        ValueError: if there is no place or no speed.
    """
    places, speeds = listed(places, "places"), listed(speeds, "speeds")
    names = [f"{speed:g}" for speed in speeds]
    said = "; ".join(
        f"place {n}: " + ", ".join(f"{math.degrees(n * w) % 360:.0f}°" for w in speeds) for n in places
    )
    description = (
        f"A clock face for each of the places {', '.join(map(str, places))}, across, and each of the speeds "
        f"{', '.join(names)}, down. Hands start at twelve o'clock at place 0. How far each has turned: "
        f"{said}."
    )

    def layout(label: Pixels, cell: Pixels, size: Pixels) -> Scene:
        scene, radius, top = Scene(label + len(places) * cell, size=size), cell / 2 - 4, 30.0
        scene.text(0, 12, "place n", anchor="start", muted=True)
        for j, n in enumerate(places):
            scene.text(label + (j + 0.5) * cell, 12, str(n), bold=True)
        for i, (speed, name) in enumerate(zip(speeds, names, strict=True)):
            y = top + (i + 0.5) * cell
            scene.text(0, y, f"w{LOWERED[i]} = {name}", anchor="start")
            for j, n in enumerate(places):
                x = label + (j + 0.5) * cell
                scene.face(x, y, radius)
                tip = (x + 0.9 * radius * math.sin(n * speed), y - 0.9 * radius * math.cos(n * speed))
                scene.arrow((x, y), tip, role=STREAM, width=2)
        scene.height = top + len(speeds) * cell + 2
        return scene

    wide = widest([f"w0 = {name}" for name in names], 15) + 16
    narrow = widest([f"w0 = {name}" for name in names], 13.5) + 6
    return Drawing(
        title, description, layout(wide, 62, 15), layout(narrow, (PHONE - narrow) / len(places), 13.5)
    )


def turning_pair(
    query: Pixels,
    key: Pixels,
    speed: Pixels,
    pairs: Sequence[tuple[int, int]],
    *,
    title: str = "Turned by their places, they keep the offset",
) -> Drawing:
    """A query and a key as arrows on a circle: before turning, and turned at some places.

    Args:
        query: its angle in radians, counter-clockwise from the right.
        key: likewise.
        speed: how far both turn at each place.
        pairs: the places (n, s) of query and key.
        title: what it shows.

    Raises:
        ValueError: if there is no pair of places.
    """
    pairs = [tuple(listed(pair, "a pair of places", 2)) for pair in listed(pairs, "pairs")]
    panels = [("before", "", query, key)]
    panels += [(f"n = {n}, s = {s}", f"offset {n - s}", query + n * speed, key + s * speed) for n, s in pairs]

    def between(q: Pixels, k: Pixels) -> Pixels:
        return (q - k + math.pi) % TURN - math.pi

    angles = [f"{abs(math.degrees(between(q, k))):.0f}°" for _, _, q, k in panels]
    said = "; ".join(
        f"{name}{', ' + offset if offset else ''}: {angle} between query and key"
        for (name, offset, _, _), angle in zip(panels, angles, strict=True)
    )
    description = (
        f"A query and a key as arrows from the middle of a circle, in {len(panels)} panels. Each place turns "
        f"its arrow by {math.degrees(speed):.0f}° counter-clockwise. {said}."
    )

    def panel(scene: Scene, i: int, x: Pixels, y: Pixels, radius: Pixels) -> None:
        name, offset, q, k = panels[i]
        scene.text(x, y - radius - 30, name, bold=True)
        start, turn = math.pi / 2 - k, -between(q, k)
        scene.face(x, y, radius, clock=False)
        scene.sector(x, y, 0.42 * radius, start, start + turn, role=WEIGHTS, shade=1.0)
        for angle, role, word in ((q, QUERY, "q"), (k, KEY, "k")):
            cos, sin = math.cos(angle), math.sin(angle)
            scene.arrow((x, y), (x + 0.98 * radius * cos, y - 0.98 * radius * sin), role=role, width=3)
            scene.text(x + (radius + 12) * cos, y - (radius + 12) * sin, word, bold=True)
        scene.text(x, y + radius + 30, f"{offset}: {angles[i]}" if offset else f"angle: {angles[i]}")

    def layout(columns: int, cell: Pixels, size: Pixels) -> Scene:
        rows, radius = math.ceil(len(panels) / columns), 46.0
        tall = 2 * radius + 82
        scene = Scene(columns * cell, rows * tall + 14 * (rows - 1), size=size)
        for i in range(len(panels)):
            x, y = (i % columns + 0.5) * cell, i // columns * (tall + 14) + radius + 40
            panel(scene, i, x, y, radius)
        return scene

    return Drawing(title, description, layout(min(len(panels), 4), 172, 15), layout(2, PHONE / 2, 13.5))


def turned_by_hand(
    query: Any,
    key: Any,
    turns: Any,
    *,
    title: str = "The query turns by the offset, and the key waits",
) -> Drawing:
    """A query and a key of few pairs: in each pair the query before and after its turn, the key, the product.

    Args:
        query: its numbers, two for each pair.
        key: likewise.
        turns: the angle of each pair, in radians, counter-clockwise.
        title: what it shows.

    Raises:
        ValueError: if there are not two numbers for each angle.
    """
    turns = listed(turns, "turns")
    query, key = listed(query, "query", 2 * len(turns)), listed(key, "key", 2 * len(turns))
    pairs = []
    for i, angle in enumerate(turns):
        (a, b), k = query[2 * i : 2 * i + 2], key[2 * i : 2 * i + 2]
        cos, sin = math.cos(angle), math.sin(angle)
        turned = (a * cos - b * sin, a * sin + b * cos)
        pairs.append(((a, b), turned, tuple(k), turned[0] * k[0] + turned[1] * k[1]))

    def point(numbers: Sequence) -> str:
        return (
            "(" + ", ".join(number(round(x, 2), 0 if abs(x - round(x)) < 1e-3 else 2) for x in numbers) + ")"
        )

    products = [number(round(product, 2), 0) for *_, product in pairs]
    total = number(round(math.fsum(product for *_, product in pairs), 2), 0)
    degrees = [f"{math.degrees(angle):.0f}°" for angle in turns]
    said = " ".join(
        f"Pair {i}: the query {point(q)} turns by {angle} to {point(turned)}; with the key {point(k)} this "
        f"gives {product}."
        for i, ((q, turned, k, _), angle, product) in enumerate(zip(pairs, degrees, products, strict=True))
    )
    description = f"An arrow plane for each of {len(pairs)} pairs. {said} The score is their sum, {total}."
    reach = max(math.hypot(*q) for q, *_ in pairs)
    summed = " + ".join(f"({product})" if product.startswith("−") else product for product in products)

    def panel(scene: Scene, x: Pixels, y: Pixels, i: int) -> None:
        q, turned, k, _ = pairs[i]
        radius = 62.0
        unit = radius / reach
        scene.text(x, y, f"pair {i}: turn by {degrees[i]}", bold=True)
        y += 100
        scene.line((x - radius - 10, y), (x + radius + 10, y), opacity=0.3)
        scene.line((x, y - radius - 10), (x, y + radius + 10), opacity=0.3)
        start = math.pi / 2 - math.atan2(q[1], q[0])
        scene.sector(x, y, 0.34 * math.hypot(*q) * unit, start, start - turns[i], role=QUERY, shade=0.35)
        scene.line((x, y), (x + q[0] * unit, y - q[1] * unit), width=2, opacity=0.6)
        for (a, b), role, word in ((turned, QUERY, "q turned"), (k, KEY, "k")):
            scene.arrow((x, y), (x + a * unit, y - b * unit), role=role, width=3)
            length = math.hypot(a, b)
            out = unit + (26 if role == QUERY else 6) / length  # the key's name stands beside its tip
            aside = 0.0 if role == QUERY else 15 / length
            scene.text(x + a * out + b * aside, y - b * (unit + 12 / length) + a * aside, word, bold=True)
        length = math.hypot(*q) * unit
        scene.text(x + q[0] * unit * (1 + 12 / length), y - q[1] * unit * (1 + 14 / length), "q", muted=True)
        below = y + radius + 34
        scene.text(x, below, f"q {point(q)} becomes {point(turned)}")
        scene.text(x, below + 20, f"times k {point(k)}: {products[i]}")

    def layout(columns: int, cell: Pixels, size: Pixels) -> Scene:
        rows = math.ceil(len(pairs) / columns)
        scene = Scene(columns * cell, rows * 250 + 24, size=size)
        for i in range(len(pairs)):
            panel(scene, (i % columns + 0.5) * cell, 10 + i // columns * 250, i)
        scene.text(scene.width / 2, rows * 250 + 10, f"score: {summed} = {total}", bold=True)
        return scene

    return Drawing(title, description, layout(min(len(pairs), 3), 250, 15), layout(1, PHONE, 13.5))


def offsets_and_biases(
    words: Sequence[str],
    rows: Sequence[Sequence],
    heads: Sequence[str],
    *,
    title: str = "A score has an offset, and an offset has a number",
) -> Drawing:
    """A causal grid of scores with the offset in each cell, beside what each offset is given.

    Args:
        words: the tokens, as queries and as keys.
        rows: for each offset what stands in the table beside the grid; the first entry is the offset.
        heads: the heads of its columns.
        title: what it shows.

    Raises:
        ValueError: if a row has another length than the heads.
    """
    words, heads = listed(words, "words"), listed(heads, "heads")
    rows = table(rows, "rows", columns=len(heads))
    N = len(words)
    grid = [["" if s > n else str(n - s) for s in range(N)] for n in range(N)]
    hatched = [[s > n for s in range(N)] for n in range(N)]
    shades = [[0.0 if s > n else 0.95 * (1 - (n - s) / N) for s in range(N)] for n in range(N)]
    said = "; ".join(
        ", ".join(f"{head} {number(x)}" for head, x in zip(heads, row, strict=True)) for row in rows
    )
    description = (
        f"Left a grid of scores for {' '.join(words)}: queries down, keys across; each cell holds the "
        "offset, the query's place minus the key's, and keys that stand later are hatched. Cells on a "
        f"diagonal share an offset and a tint. Right what is added to the score for an offset: {said}."
    )

    def left(scene: Scene, x: Pixels, y: Pixels, label: Pixels, cell: Pixels) -> Pixels:
        scene.text(x + label + N * cell / 2, y + 8, "key at place s", muted=True)
        xs = [x + label + (j + 0.5) * cell for j in range(N)]
        scene.token_row(xs, y + 22, words, cell - 6, 28, role=KEY)
        top = y + 56
        scene.text(x + label / 2 - 2, y + 36, "query at n", muted=True)
        for i, word in enumerate(words):
            scene.token(x + label / 2 - 2, top + i * cell + (cell - 28) / 2, word, label - 8, 28, role=QUERY)
        scene.matrix(x + label, top, grid, cell, role=WEIGHTS, shades=shades, masked=hatched, digits=0)
        scene.text(x + label + N * cell / 2, top + N * cell + 16, "offset n − s in each cell", muted=True)
        return top + N * cell + 28

    def right(scene: Scene, x: Pixels, y: Pixels, cells: Sequence[Pixels]) -> Pixels:
        tall, left_edge = 25.0, x
        for j, (head, cell) in enumerate(zip(heads, cells, strict=True)):
            for line, word in enumerate(head.split("\n")):
                scene.text(left_edge + cell / 2, y + 8 + 18 * line, word, bold=line == 0, muted=line > 0)
            for i, row in enumerate(rows):
                near = i < N
                scene.box(
                    left_edge,
                    y + 42 + i * tall,
                    cell,
                    tall,
                    number(row[j]),
                    role=WEIGHTS if j == 0 else VALUE,
                    shade=0.95 * (1 - i / N) if j == 0 and near else 0.0 if j == 0 else 0.15,
                )
            left_edge += cell
        return y + 42 + len(rows) * tall + 2

    wide = Scene(0)
    label = max(widest(words, 15) + 24, widest(["query at n"], 15) + 8)
    low = left(wide, 0, 6, label, 58)
    middle = label + N * 58
    wide.arrow((middle + 16, 150), (middle + 62, 150))
    cells = [max(widest(head.split("\n"), 15) + 16, 70) for head in heads]
    wide.height = max(low, right(wide, middle + 78, 6, cells))
    wide.width = middle + 78 + math.fsum(cells) + 2
    narrow = Scene(PHONE, size=13.5)
    low = left(narrow, 0, 6, 72, (PHONE - 74) / N)
    narrow.arrow((PHONE / 2, low), (PHONE / 2, low + 30))
    share = [max(widest(head.split("\n"), 13.5) + 8, 60) for head in heads]
    scale = (PHONE - 2) / math.fsum(share)
    narrow.height = right(narrow, 1, low + 40, [scale * cell for cell in share])
    return Drawing(title, description, wide, narrow)


def swept_angles(
    speeds: Any,
    trained: int,
    read: int,
    *,
    shown: Sequence[int] | None = None,
    marked: int | None = None,
    title: str = "What each hand has seen in training",
) -> Drawing:
    """A circle for each hand: the angles of the offsets in training tinted, those beyond hatched.

    Angles are counted counter-clockwise from the right.

    Args:
        speeds: w, in radians a place, one for each hand.
        trained: the length of the training; its largest offset is one less.
        read: the length that is read.
        shown: the hands that are drawn, by number; all of them if none is named.
        marked: the hand whose name is bold.
        title: what it shows.

    Raises:
        ValueError: if there is no hand, or no more is read than was trained.
    """
    speeds = listed(speeds, "speeds")
    hands = listed(range(len(speeds)) if shown is None else shown, "shown")
    speeds = [speeds[i] for i in hands]
    if not 0 < trained < read:
        raise ValueError(f"expected 0 < trained < read, got {trained} and {read}")
    seen = [(trained - 1) * w for w in speeds]
    reached = [(read - 1) * w for w in speeds]

    def degrees(angle: Pixels) -> str:
        turned = math.degrees(angle)
        return f"{turned:,.0f}°" if turned >= 10 else f"{turned:.1f}°"

    said = "; ".join(
        f"hand {i}: {degrees(a)} in training, {degrees(b)} at {read}"
        for i, a, b in zip(hands, seen, reached, strict=True)
    )
    description = (
        f"A circle for each of {len(speeds)} hands, turned counter-clockwise from the right. Tinted is what "
        f"the hand sweeps for offsets 0 to {trained - 1}, hatched what it reaches only for offsets up to "
        f"{read - 1}. {said}."
        + ("" if marked is None else f" Hand {marked} stands out: it is new over more than half of it.")
    )

    def layout(columns: int, cell: Pixels, radius: Pixels, size: Pixels, *, split: bool) -> Scene:
        rows, above = math.ceil(len(speeds) / columns), 44 if split else 26
        tall = 2 * radius + above + 50
        scene = Scene(columns * cell, rows * tall + 26, size=size)
        for i, (w, a, b) in enumerate(zip(speeds, seen, reached, strict=True)):
            x, y = (i % columns + 0.5) * cell, i // columns * tall + radius + above
            name, bold = [f"w{LOWERED[hands[i]]} =", f"{w:.2g}"], hands[i] == marked
            for j, line in enumerate(name if split else [" ".join(name)]):
                scene.text(x, y - radius - above + 10 + 17 * j, line, bold=bold)
            right = TURN / 4  # sectors run clockwise from twelve o'clock, these angles the other way
            scene.sector(x, y, radius, right - min(a, TURN), right, role=WEIGHTS, shade=1.0)
            if a < TURN:
                scene.sector(x, y, radius, right - min(b, TURN), right - a, hatched=True)
            scene.face(x, y, radius, clock=False)
            if a < TURN:
                scene.line((x, y), (x + radius * math.cos(a), y - radius * math.sin(a)), width=3, opacity=0.8)
            scene.text(x, y + radius + 16, degrees(a), bold=bold)
            scene.text(x, y + radius + 35, f"to {degrees(b)}", muted=True)
        y, x = rows * tall + 12, 2.0
        for word, hatched in ((f"offsets 0–{trained - 1}", False), (f"{trained}–{read - 1}", True)):
            scene.box(x, y - 8, 20, 16, "", role=None if hatched else WEIGHTS, shade=1.0, masked=hatched)
            scene.text(x + 28, y, word, anchor="start")
            x += 28 + widest([word], size) + 22
        return scene

    columns = min(4, len(speeds))
    wide = layout(columns, 164, 46, 15, split=False)
    return Drawing(title, description, wide, layout(columns, PHONE / columns, 32, 13, split=True))


def what_changed(
    words: Sequence[str],
    swapped: Sequence[int],
    change: Mapping[str, Any],
    *,
    digits: int = 2,
    title: str = "Who notices that two tokens changed places?",
) -> Drawing:
    """Tokens in two orders, and below each token by how much its output changes, row by row.

    Args:
        words: the tokens in their first order.
        swapped: their numbers in the second order.
        change: from a row's name to a number for each place.
        digits: decimals of the numbers.
        title: what it shows.

    Raises:
        ValueError: if the second order is no order of the tokens, or a row has another length.
    """
    words = listed(words, "words")
    order = listed(swapped, "swapped", len(words))
    if sorted(order) != list(range(len(words))):
        raise ValueError(f"{order} is no order of {len(words)} tokens")
    rows = {name: listed(values, name, len(words)) for name, values in change.items()}
    after = [words[i] for i in order]
    said = "; ".join(
        f"{name}: {', '.join(number(x, digits) for x in values)}" for name, values in rows.items()
    )
    description = (
        f"Tokens in two orders: {' '.join(words)} and {' '.join(after)}. Below each token of the second "
        f"order stands how much its output has changed; where it has, the cell is coloured. {said}."
    )

    def layout(label: Pixels, cell: Pixels, size: Pixels) -> Scene:
        scene, top = Scene(label + len(words) * cell + 2, size=size), 2.0
        xs = [label + (j + 0.5) * cell for j in range(len(words))]
        for name, row, y in (("order 1", words, top), ("order 2", after, top + 62)):
            scene.text(0, y + 15, name, anchor="start", muted=True)
            for j, x in enumerate(xs):
                moved = order[j] != j
                scene.token(x, y, row[j], cell - 4, role=KEY, strength="full" if moved else "pale")
        for j, i in enumerate(order):
            scene.line((xs[i], top + 31), (xs[j], top + 61), width=3 if i != j else 1.2)
        y = top + 122
        scene.text(0, y - 14, "largest change of the output", anchor="start", muted=True)
        for name, values in rows.items():
            scene.text(0, y + 17, name, anchor="start")
            for j, value in enumerate(values):
                changed = abs(float(value)) >= 0.5 * 10**-digits
                scene.box(
                    label + j * cell,
                    y,
                    cell,
                    34,
                    number(value, digits),
                    role=WEIGHTS if changed else None,
                    strength="full" if changed else "plain",
                )
            y += 38
        scene.height = y + 2
        return scene

    wide = widest([*rows, "order 1"], 15) + 16
    narrow = widest([*rows, "order 1"], 13) + 6
    return Drawing(
        title, description, layout(wide, 70, 15), layout(narrow, (PHONE - narrow - 2) / len(words), 13)
    )
