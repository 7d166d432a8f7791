"""Drawings of the chapter on long sequences. Every number and every mask in them comes in as an argument."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, listed, number, table
from tformer_book.kit.drawings.primitives import PHONE, Anchor, Scene
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, VALUE, WEIGHTS, Role


def _booleans(mask: Any, what: str) -> list[list[bool]]:
    """A mask as rows of booleans."""
    mask = mask.tolist() if hasattr(mask, "tolist") else mask
    return [[bool(x) for x in row] for row in table(mask, what)]


def _pairs(scene: Scene, x: Pixels, y: Pixels, cell: Pixels, seen: list[list[bool]]) -> None:
    """A mask, queries down and keys across: a coloured cell is a pair that meets."""
    for n, row in enumerate(seen):
        for s, there in enumerate(row):
            scene.box(x + s * cell, y + n * cell, cell, cell, role=WEIGHTS if there else None,
                      strength="full" if there else "faint")  # fmt: skip


def who_sees_whom(masks: Mapping[str, Any], *, title: str = "Four ways for queries to read keys") -> Drawing:
    """Masks beside a state: what each query, a row, is compared with.

    Args:
        masks: from a name to a boolean mask of few tokens, queries down and keys across, as in the code.
        title: what it shows.

    Raises:
        ValueError: if there is no mask, or they differ in size.
    """
    seen = {name: _booleans(mask, name) for name, mask in masks.items()}
    lengths = {len(rows) for rows in seen.values()}
    if len(lengths) != 1:
        raise ValueError(f"masks are of one size, got {lengths}")
    (n,) = lengths
    counts = {name: sum(map(sum, rows)) for name, rows in seen.items()}
    description = (
        f"Panels with queries down and keys across, {n} of each; a filled cell is a pair that is compared. "
        + ", ".join(f"{name}: {count} of {n * n} pairs" for name, count in counts.items())
        + ". State: keys and values are added to a matrix U of fixed size, which the queries read; no pair "
        "need be compared."
    )

    def panel(scene: Scene, x: Pixels, y: Pixels, side: Pixels, name: str, count: str) -> None:
        scene.text(x + side / 2, y + 8, name, bold=True)
        scene.text(x + side / 2, y + side + 36, count, muted=True)

    def state(scene: Scene, x: Pixels, y: Pixels, side: Pixels) -> None:
        panel(scene, x, y, side, "state", "no pairs needed")
        cell, wide = side / n, 3.2 * side / n
        for s in range(n):
            scene.box(x + s * cell, y + 24, cell, cell, role=KEY)
            scene.box(x + s * cell, y + 24 + side - cell, cell, cell, role=QUERY)
        left, top = x + (side - wide) / 2, y + 24 + (side - wide) / 2
        scene.box(left, top, wide, wide, "U", role=STREAM, strength="full", radius=3, bold=True)
        scene.arrow((x + side / 2, y + 27 + cell), (x + side / 2, top - 3))
        scene.arrow((x + side / 2, top + wide + 3), (x + side / 2, y + 21 + side - cell))

    def layout(room: Pixels, columns: int, size: Pixels) -> Scene:
        gap = 20.0
        side = (room - (columns - 1) * gap) / columns
        scene = Scene(room, size=size)
        places = [((i % columns) * (side + gap), (i // columns) * (side + 62)) for i in range(len(seen) + 1)]
        for (x, y), (name, rows) in zip(places, seen.items(), strict=False):
            panel(scene, x, y, side, name, f"{counts[name]} scores")
            _pairs(scene, x, y + 24, side / n, rows)
        state(scene, *places[-1], side)
        scene.height = places[-1][1] + side + 48
        return scene

    return Drawing(title, description, layout(640, len(seen) + 1, 14), layout(PHONE, 2, 13.5))


def online_tiles(
    scores: Sequence[Sequence], values: Sequence[Sequence], states: Sequence[Sequence], *,
    title: str = "Three numbers instead of a row of scores",
) -> Drawing:  # fmt: skip
    """Tiles of scores that arrive one after the other, and the state of the query after each.

    Args:
        scores: the scores of each tile.
        values: the values of the same keys.
        states: after each tile the maximum, the sum of exponentials and the weighted sum of values.
        title: what it shows.

    Raises:
        ValueError: if the lengths differ.
    """
    scores = [listed(tile, "scores") for tile in scores]
    values = [listed(tile, "values", len(z)) for tile, z in zip(values, scores, strict=True)]
    states = [listed(state, "a state", 3) for state in states]
    listed(states, "states", len(scores))
    names = ["m", "ℓ", "ỹ"]
    said = "; ".join(
        f"tile {i + 1} has scores {', '.join(number(x, 0) for x in z)}, values "
        f"{', '.join(number(x, 0) for x in v)}, after which the maximum is {number(state[0], 0)}, the sum "
        f"{number(state[1], 4)} and the weighted sum {number(state[2], 4)}"
        for i, (z, v, state) in enumerate(zip(scores, values, states, strict=True))
    )
    ratio = number(states[-1][2] / states[-1][1], 4)
    old = [number(a[0] - b[0], 0) for a, b in pairwise(states)]
    description = (
        f"Only one tile is in fast memory at a time. {said[0].upper()}{said[1:]}. Between tiles both sums "
        f"are multiplied by e to the {', '.join(old)}. The last weighted sum over the last sum is {ratio}."
    )

    def tile(scene: Scene, x: Pixels, y: Pixels, cell: Pixels, i: int) -> None:
        scene.text(x, y + 8, f"tile {i + 1}", anchor="start", bold=True)
        for row, (name, words, role) in enumerate((("z", scores[i], WEIGHTS), ("v", values[i], VALUE))):
            scene.text(x, y + 38 + 34 * row, name, anchor="start", muted=True)
            scene.matrix(x + 18, y + 22 + 34 * row, [[number(w, 0) for w in words]], cell, 30, role=role)

    def state(scene: Scene, x: Pixels, y: Pixels, wide: Pixels, i: int) -> None:
        for row, (name, value) in enumerate(zip(names, states[i], strict=True)):
            scene.text(x, y + 15 + 32 * row, name, anchor="start", bold=True)
            scene.box(x + 20, y + 32 * row, wide, 29, number(value, 0 if not row else 4),
                      role=STREAM, strength="full", radius=4)  # fmt: skip

    def wide() -> Scene:
        scene, step = Scene(700, 226, size=15), 300.0
        for i in range(len(scores)):
            x = i * step
            tile(scene, x, 0, 46, i)
            scene.arrow((x + 64, 90), (x + 64, 122), label="")
            state(scene, x, 126, 92, i)
            if i + 1 < len(scores):
                scene.arrow((x + 120, 172), (x + step - 8, 172))
                scene.text(x + 206, 156, f"ℓ, ỹ times e^{{{old[i]}}}", muted=True)
                scene.text(x + 206, 190, "then add", muted=True)
            else:
                scene.arrow((x + 120, 172), (x + 160, 172))
                scene.text(x + 168, 160, "y = ỹ / ℓ", anchor="start")
                scene.text(x + 168, 184, f"= {ratio}", anchor="start", bold=True)
        return scene

    def narrow() -> Scene:
        scene, step = Scene(PHONE, size=14), 154.0
        for i in range(len(scores)):
            y = i * step
            tile(scene, 0, y, 46, i)
            scene.arrow((118, y + 54), (166, y + 54))
            state(scene, 172, y + 8, 88, i)
            if i + 1 < len(scores):
                scene.arrow((236, y + 108), (236, y + step + 2))
                scene.text(224, y + 130, f"ℓ, ỹ times e^{{{old[i]}}}, then add", anchor="end", muted=True)
            else:
                scene.text(0, y + 132, f"y = ỹ / ℓ = {ratio}", anchor="start", bold=True)
                scene.height = y + 146
        return scene

    return Drawing(title, description, wide(), narrow())


def window_in_blocks(mask: Any, block: int, *, title: str = "A window, computed in blocks") -> Drawing:
    """A causal window: pairs that are seen, pairs that are computed and hidden, and pairs never computed.

    Args:
        mask: the window's mask, queries down and keys across.
        block: the size of a block, which divides the number of tokens; a block of queries meets its own block
            of keys and the one before.
        title: what it shows.

    Raises:
        ValueError: if blocks do not fit, or a seen pair lies in no block that is computed.
    """
    seen = _booleans(mask, "mask")
    n = len(seen)
    if block < 1 or n % block:
        raise ValueError(f"blocks of {block} do not fill {n} tokens")
    met = [[0 <= i // block - j // block <= 1 for j in range(n)] for i in range(n)]
    if any(seen[i][j] and not met[i][j] for i in range(n) for j in range(n)):
        raise ValueError("a pair that is seen lies in no block that is computed")
    visible, computed = sum(map(sum, seen)), sum(map(sum, met))
    masked = computed - visible + block * block
    description = (
        f"Queries down, keys across, {n} of each, in blocks of {block}, and a block of padding before the "
        f"first keys. Filled: {visible} pairs that the window sees. "
        f"Hatched: {masked} that are computed in the same blocks and masked, {block * block} of them with "
        f"padding. Empty: the other {n * n - computed} of {n * n}, which are never computed."
    )

    def grid(scene: Scene, x: Pixels, y: Pixels, cell: Pixels) -> None:
        for i in range(n):
            for j in range(n):
                there = seen[i][j]
                scene.box(x + j * cell, y + i * cell, cell, cell, role=WEIGHTS if there else None,
                          strength="full" if there else "faint", masked=met[i][j] and not there)  # fmt: skip
        for i in range(block):
            for j in range(-block, 0):
                scene.box(x + j * cell, y + i * cell, cell, cell, strength="faint", masked=True)
        edge = block * cell
        scene.line((x - edge, y), (x, y), width=2)
        scene.line((x - edge, y + edge), (x, y + edge), width=2)
        scene.line((x - edge, y), (x - edge, y + edge), width=2)
        scene.text(x - edge / 2, y + edge + 14, "padding", muted=True)
        for k in range(0, n + 1, block):
            scene.line((x, y + k * cell), (x + n * cell, y + k * cell), width=2)
            scene.line((x + k * cell, y), (x + k * cell, y + n * cell), width=2)

    def legend(scene: Scene, x: Pixels, y: Pixels, step: Pixels) -> None:
        entries = (
            (f"{visible} seen", WEIGHTS, False),
            (f"{masked} computed, masked", None, True),
            (f"{n * n - computed} never computed", None, False),
        )
        for i, (words, role, hidden) in enumerate(entries):
            scene.box(x, y + step * i, 22, 22, role=role, strength="full" if role else "faint", masked=hidden)
            scene.text(x + 32, y + step * i + 11, words, anchor="start")

    def layout(room: Pixels, *, stacked: bool) -> Scene:
        scene = Scene(room, size=14 if stacked else 15)
        cell = (room - 64) / (n + block) if stacked else 20.0
        left = 64 + block * cell
        scene.text(left + n * cell / 2, 10, "keys", muted=True)
        scene.text(0, 30 + n * cell / 2, "queries", anchor="start", muted=True)
        grid(scene, left, 24, cell)
        below = 24 + n * cell
        if stacked:
            legend(scene, 64, below + 16, 30)
            scene.height = below + 108
        else:
            legend(scene, left + n * cell + 50, 84, 40)
            scene.height = below + 4
        return scene

    return Drawing(title, description, layout(640, stacked=False), layout(PHONE, stacked=True))


def reach_in_layers(
    masks: Mapping[str, Any], query: int, layers: int = 2, *, title: str = "What two layers can reach"
) -> Drawing:
    """From one query down through layers: which places can have sent it something.

    Args:
        masks: from a name to a boolean mask, queries down and keys across.
        query: the place that reads, counted from 0.
        layers: how many layers there are.
        title: what it shows.

    Raises:
        ValueError: if the query is no place of a mask.
    """
    seen = {name: _booleans(mask, name) for name, mask in masks.items()}
    n = max(map(len, seen.values()))
    if not all(0 <= query < len(rows) for rows in seen.values()):
        raise ValueError(f"query {query} is no place")
    steps: dict[str, list[set[int]]] = {}
    for name, rows in seen.items():
        found = [{query}]
        for _ in range(layers):
            found.append({s for place in found[-1] for s, there in enumerate(rows[place]) if there})
        steps[name] = found
    description = f"Rows of {n} places, the output above and the input at the bottom. " + " ".join(
        f"{name}: place {query + 1} reads "
        + ", and through one layer more ".join(f"{len(found)} of {n} places" for found in steps[name][1:])
        + "."
        for name in seen
    )
    labels = ["input", *(f"layer {m}" for m in range(1, layers + 1))]

    def panel(scene: Scene, x: Pixels, y: Pixels, cell: Pixels, name: str, label: Pixels) -> None:
        scene.text(x, y + 8, name, anchor="start", bold=True)
        drop = 52.0
        tops = [y + 26 + drop * (layers - m) for m in range(layers + 1)]
        for m in range(layers, 0, -1):
            for i in sorted(steps[name][layers - m]):
                for j, there in enumerate(seen[name][i]):
                    if there:
                        start = (x + label + (j + 0.5) * cell, tops[m - 1] - 1)
                        scene.line(
                            start, (x + label + (i + 0.5) * cell, tops[m] + 21), width=1.1, opacity=0.35
                        )
        for m in range(layers + 1):
            scene.text(x, tops[m] + 10, labels[m], anchor="start", muted=True)
            for j in range(n):
                there = j in steps[name][layers - m]
                role: Role = QUERY if m == layers else KEY
                scene.box(x + label + j * cell, tops[m], cell, 20, role=role if there else None,
                          strength="full" if there else "faint")  # fmt: skip

    def layout(room: Pixels, columns: int, size: Pixels) -> Scene:
        gap, label = 32.0, 56.0
        wide = (room - (columns - 1) * gap) / columns
        scene, tall = Scene(room, size=size), 46.0 + 52 * layers + 22
        for i, name in enumerate(seen):
            panel(scene, (i % columns) * (wide + gap), (i // columns) * tall, (wide - label) / n, name, label)
        scene.height = tall * -(-len(seen) // columns) - 14
        return scene

    return Drawing(title, description, layout(700, len(seen), 14), layout(PHONE, 1, 13.5))


def chunks_and_state(
    chunks: int, tokens: int, *, title: str = "Pairs inside a chunk, a state between chunks"
) -> Drawing:
    """Causal linear attention: triangles of pairs within chunks, and a matrix handed from chunk to chunk.

    Args:
        chunks: how many chunks.
        tokens: how many tokens in each.
        title: what it shows.

    Raises:
        ValueError: if a number is below 1.
    """
    if min(chunks, tokens) < 1:
        raise ValueError(f"chunks and tokens are counted from 1, got {chunks=}, {tokens=}")
    inside = tokens * (tokens + 1) // 2
    description = (
        f"{chunks} chunks of {tokens} tokens. Inside each the {inside} pairs on and before the diagonal are "
        "compared, a triangle with queries down and keys across. What lies before a chunk comes in as one "
        "matrix U; the chunk's keys and values are added to it and it is handed on, of the same size."
    )

    def triangle(scene: Scene, x: Pixels, y: Pixels, cell: Pixels) -> None:
        for n in range(tokens):
            for s in range(tokens):
                there = s <= n
                scene.box(x + s * cell, y + n * cell, cell, cell, role=WEIGHTS if there else None,
                          strength="full" if there else "faint")  # fmt: skip

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene, gap = Scene(room, size=size), 0.34
        unit = room / (chunks + (chunks - 1) * gap)
        cell, state = unit / tokens, min(34.0, 0.42 * unit)
        for c in range(chunks):
            x, middle = c * unit * (1 + gap), c * unit * (1 + gap) + unit / 2
            scene.text(middle, 9, f"chunk {c + 1}", bold=True)
            triangle(scene, x, 24, cell)
            scene.arrow((middle, 28 + unit), (middle, 52 + unit))
            left = middle - state / 2
            scene.box(left, 56 + unit, state, state, f"U_{{{c + 1}}}", role=STREAM, strength="full", radius=4)
            if c + 1 < chunks:
                level = 56 + unit + state / 2
                end = (c + 1) * unit * (1 + gap)
                scene.arrow(
                    (middle + state / 2 + 2, level), (end + unit / 2 - state / 2 - 3, level), role=STREAM
                )
                scene.arrow((end - gap * unit / 2, level), (end - gap * unit / 2, 24 + unit / 2),
                            (end - 3, 24 + unit / 2), role=STREAM)  # fmt: skip
        scene.height = 64 + unit + state
        return scene

    return Drawing(title, description, layout(560, 14), layout(PHONE, 13.5))


Point = tuple[Pixels, Pixels]


def writes_in_the_plane(
    keys: Sequence[Sequence],
    values: Sequence,
    *,
    title: str = "A write goes to the nearest state that answers right",
) -> Drawing:
    """The delta rule with rate 1, keys of two features, values of one: its states are points in a plane.

    A key and its value make a line, of the states that answer right, and a write is the projection onto it.
    The second write is also drawn with rate 1/2 and as linear attention would do it, which adds.

    Args:
        keys: three keys of two numbers and of length 1.
        values: the three numbers that are written.
        title: what it shows.

    Raises:
        ValueError: if there are not three of both, or a key is not of length 1.
    """
    pairs: list[Point] = [
        (float(a), float(b)) for a, b in (listed(key, "a key", 2) for key in table(keys, "keys"))
    ]
    wanted = [float(v) for v in listed(values, "values", 3)]
    if any(abs(a * a + b * b - 1) > 1e-4 for a, b in pairs):
        raise ValueError("keys are of length 1")

    def write(state: Point, n: int, rate: float = 1.0, *, correct: bool = True) -> Point:
        (a, b), (x, y) = pairs[n], state
        error = wanted[n] - (a * x + b * y) if correct else wanted[n]
        return x + rate * error * a, y + rate * error * b

    states: list[Point] = [(0.0, 0.0)]
    for n in range(3):
        states.append(write(states[-1], n))
    half, added = write(states[1], 1, 0.5), write(states[1], 1, correct=False)

    def place(point: Point) -> str:
        return "(" + ", ".join(f"{x:.2f}".rstrip("0").rstrip(".") for x in point) + ")"

    def answer(n: int, point: Point) -> str:
        return number(pairs[n][0] * point[0] + pairs[n][1] * point[1])

    lines = ", ".join(f"{number(v, 0)} to the key {place(k)}" for k, v in zip(pairs, wanted, strict=True))
    ways = ", ".join(map(place, states[1:]))
    description = (
        f"A plane whose points are states of two numbers. Three lines hold the states that answer right: "
        f"{lines}. "
        f"From the origin each write goes straight to the nearest point of its line: {ways}. The third write "
        f"leaves the second line: the second key then reads {answer(1, states[3])}. With rate one half "
        f"the second write would stop half way, at {place(half)}. Adding goes in the same direction too "
        f"far, to {place(added)}, where the second key reads {answer(1, added)}."
    )
    right, up = 8.4, 6.2

    def layout(unit: Pixels, size: Pixels) -> Scene:
        left, top = 22.0, 26.0

        def at(point: Point) -> tuple[Pixels, Pixels]:
            return left + unit * point[0], top + unit * (up - point[1])

        scene = Scene(left + unit * right + 4, size=size)
        for tick in range(int(right) + 1):
            foot = at((tick, 0))
            scene.line(foot, at((tick, up)), width=0.7, opacity=0.6 if tick == 0 else 0.15)
            if tick and tick % 2 == 0:
                scene.text(foot[0], foot[1] + 14, str(tick), muted=True)
        for tick in range(int(up) + 1):
            foot = at((0, tick))
            scene.line(foot, at((right, tick)), width=0.7, opacity=0.6 if tick == 0 else 0.15)
            if tick and tick % 2 == 0:
                scene.text(left - 7, foot[1], str(tick), anchor="end", muted=True)
        for (a, b), v in zip(pairs, wanted, strict=True):
            scene.line(*map(at, _across(a, b, v, right, up)), role=KEY, width=3)
        for begin, end in pairwise(states):
            scene.arrow(at(begin), at(end), role=STREAM, width=2.6)
        (a, b), (x, y) = pairs[1], states[2]
        corner = [
            (x - 0.3 * a, y - 0.3 * b),
            (x - 0.3 * a + 0.3 * b, y - 0.3 * b - 0.3 * a),
            (x + 0.3 * b, y - 0.3 * a),
        ]
        scene.line(*map(at, corner), width=1.2, opacity=0.8)
        scene.arrow(at(states[2]), at(added), width=1.6, dashed=True)
        for point in (*states[1:], half):
            x, y = at(point)
            scene.box(
                x - 4, y - 4, 8, 8, role=STREAM, strength="plain" if point == half else "full", radius=4
            )
        beside: dict[int, tuple[Pixels, Pixels, Anchor]] = {
            1: (16, -11, "start"),
            2: (-14, 5, "end"),
            3: (-9, 15, "end"),
        }
        for n, (right_by, down_by, anchor) in beside.items():
            x, y = at(states[n])
            scene.text(x + right_by, y + down_by, f"U_{{{n}}}", anchor=anchor, bold=True)
        for point, words in ((half, "rate 1/2"), (added, "adding")):
            x, y = at(point)
            scene.text(x + 11, y + (7 if point == half else 0), words, anchor="start", muted=True)
        names = [
            f"k_{{{1 + pairs.index(key)}}} reads {number(v, 0)}" for key, v in zip(pairs, wanted, strict=True)
        ]
        x, y = at((states[1][0], up))
        scene.text(x + 8, y + 12, names[0], anchor="start", muted=True)
        x, y = at((states[3][0], 0.5))
        scene.text(x - 8, y, names[1], anchor="end", muted=True)
        x, y = at((states[3][0], up))
        scene.text(x - 8, y + 12, names[2], anchor="end", muted=True)
        foot = at((right, 0))
        scene.text(foot[0], foot[1] + 32, "first entry of U", anchor="end", muted=True)
        scene.text(0, 8, "second entry of U", anchor="start", muted=True)
        scene.height = top + unit * up + 42
        return scene

    return Drawing(title, description, layout(58, 15), layout(35.8, 13.5))


def _across(a: float, b: float, v: float, right: float, up: float) -> tuple[Point, Point]:
    """Where the line a x + b y = v enters and leaves the rectangle from 0 to right and up."""
    found = set()
    if b:
        found |= {(x, (v - a * x) / b) for x in (0.0, right)}
    if a:
        found |= {((v - b * y) / a, y) for y in (0.0, up)}
    inside = sorted((x, y) for x, y in found if -1e-9 <= x <= right + 1e-9 and -1e-9 <= y <= up + 1e-9)
    if len(inside) < 2:
        raise ValueError(f"the states that answer {v} lie outside the drawing")
    return inside[0], inside[-1]


def _short(value: Any) -> str:
    """4.0 -> "4", 0.5 -> "0.5"."""
    return f"{float(value):g}"


def state_or_triangle(
    queries: Sequence, keys: Sequence, values: Sequence, gates: Sequence, *,
    title: str = "One state that fades, or one triangle that fades",
) -> Drawing:  # fmt: skip
    """The same outputs twice: a state that fades between tokens, and pairs weighted by what is left of them.

    Args:
        queries: a number for each token.
        keys: likewise.
        values: likewise.
        gates: likewise, what is kept of the state before the token writes; the first is not used.
        title: what it shows.

    Raises:
        ValueError: if the lengths differ.
    """
    queries, keys, values = listed(queries, "queries"), listed(keys, "keys"), listed(values, "values")
    n = len(queries)
    gates = listed(gates, "gates", n)
    listed(keys, "keys", n), listed(values, "values", n)
    states: list[Any] = []
    for key, value, gate in zip(keys, values, gates, strict=True):
        states.append((gate * states[-1] if states else 0) + value * key)
    outputs = [state * query for state, query in zip(states, queries, strict=True)]
    left = [[1.0] * n for _ in range(n)]  # of key s when query i reads
    for i in range(n):
        for s in range(i):
            for gate in gates[s + 1 : i + 1]:
                left[i][s] *= gate
    weights = [
        [_short(left[i][s] * queries[i] * keys[s]) if s <= i else "" for s in range(n)] for i in range(n)
    ]
    told = "; ".join(
        f"query {i + 1}: weights {', '.join(row[: i + 1])}, output {_short(outputs[i])}"
        for i, row in enumerate(weights)
    )
    description = (
        f"Left, {n} tokens from left to right: each writes value times key into the state, which before is "
        f"multiplied by the gate; the states are {', '.join(_short(x) for x in states)}, and each times its "
        f"query is the output. Right, queries down and keys across, a triangle of weights: query times key, "
        f"times the gates after the key up to the query. {told}. The outputs are the same."
    )

    def chain(scene: Scene, x: Pixels, y: Pixels, step: Pixels) -> None:
        wide = step - 46
        for row, words in enumerate(("write", "state", "read")):
            scene.text(x, y + 34 + 68 * row, words, anchor="start", muted=True)
        for i in range(n):
            left_edge = x + 50 + i * step
            middle = left_edge + wide / 2
            scene.text(middle, y + 8, f"{i + 1}", bold=True)
            scene.box(left_edge, y + 19, wide, 30, _short(values[i] * keys[i]), role=VALUE, radius=4)
            scene.arrow((middle, y + 51), (middle, y + 85))
            scene.box(left_edge, y + 87, wide, 30, _short(states[i]), role=STREAM, strength="full", radius=4)
            scene.arrow((middle, y + 119), (middle, y + 153), label=f"× {_short(queries[i])}")
            scene.box(left_edge, y + 155, wide, 30, _short(outputs[i]), role=QUERY, radius=4, bold=True)
            if i + 1 < n:
                scene.arrow((left_edge + wide + 2, y + 102), (left_edge + step - 3, y + 102), role=STREAM)
                scene.text(left_edge + wide + 22, y + 86, f"× {_short(gates[i + 1])}")

    def triangle(scene: Scene, x: Pixels, y: Pixels, cell: Pixels) -> None:
        scene.text(x + n * cell / 2, y + 8, "keys", muted=True)
        scene.text(x - 10, y + 22 + n * cell / 2, "queries", anchor="end", muted=True)
        hidden = [[s > i for s in range(n)] for i in range(n)]
        shades = [[left[i][s] if s <= i else 0 for s in range(n)] for i in range(n)]
        scene.matrix(x, y + 22, weights, cell, role=WEIGHTS, shades=shades, masked=hidden)
        scene.text(x + n * cell / 2, y + 40 + n * cell, "times values", muted=True)
        for i in range(n):
            level = y + 22 + (i + 0.5) * cell
            scene.arrow((x + n * cell + 4, level), (x + n * cell + 24, level))
            scene.box(
                x + n * cell + 27, level - 15, 44, 30, _short(outputs[i]), role=QUERY, radius=4, bold=True
            )

    def wide() -> Scene:
        scene = Scene(700, 196, size=15)
        chain(scene, 0, 0, 98)
        triangle(scene, 452, 0, 46)
        return scene

    def narrow() -> Scene:
        scene = Scene(PHONE, size=14)
        chain(scene, 0, 0, 92)
        triangle(scene, 76, 214, 50)
        scene.height = 214 + 22 + 50 * n + 28
        return scene

    return Drawing(title, description, wide(), narrow())
