"""Drawings of the chapter on multi-head self-attention: heads, masks, splits, what one average can do."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, listed, number, table, width_of
from tformer_book.kit.drawings.primitives import PHONE, Scene, Strength
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, VALUE, WEIGHTS, Role

PARTS = {"Q": QUERY, "K": KEY, "V": VALUE}


def _strength(chosen: bool) -> Strength:
    return "full" if chosen else "pale"


def one_average(
    names: Sequence[str],
    pairs: Sequence[Sequence],
    *,
    title: str = "One average, and the difference",
) -> Drawing:
    """Pairs of numbers, the average of each with even weights, and the difference that is asked for.

    Args:
        names: whose the two numbers are.
        pairs: the numbers.
        title: what it shows.

    Raises:
        ValueError: if there is no pair, or one of them is none.
    """
    names = listed(names, "names", 2)
    found = [listed(pair, "pair", 2) for pair in listed(pairs, "pairs")]
    if not found:
        raise ValueError("pairs: expected at least one, got 0")
    read = [(number(a, 0), number(b, 0), number((a + b) / 2, 0), number(a - b, 0)) for a, b in found]
    description = "Each pair is read with weights of one half. " + " ".join(
        f"{names[0]} {a}, {names[1]} {b}: average {average}, difference {answer}."
        for a, b, average, answer in read
    )

    def layout(room: Pixels, label: Pixels, across: int, size: Pixels) -> Scene:
        scene, column = Scene(room, size=size), (room - label) / across
        for n, (a, b, average, answer) in enumerate(read):
            x, y = label + (n % across + 0.5) * column, 222.0 * (n // across)
            for name, age, to in zip(names, (a, b), (x - 0.21 * column, x + 0.21 * column), strict=True):
                scene.text(to, y + 10, name)
                scene.token(to, y + 22, age, 0.36 * column, 30, role=VALUE)
                scene.line((to, y + 54), (x, y + 92), role=WEIGHTS, width=6)
            scene.token(x, y + 90, average, 56, 32, role=VALUE, strength="full")
            scene.arrow((x, y + 124), (x, y + 162), label="?")
            scene.token(x, y + 164, answer, 56, 32, role=STREAM, strength="full", bold=True)
            if n % across == 0:
                for words, at in (("age", 37), ("average", 106), ("answer", 180)):
                    scene.text(0, y + at, words, anchor="start", muted=True)
        scene.height = 222 * ((len(read) - 1) // across) + 198
        return scene

    return Drawing(title, description, layout(620, 76, 4, 15), layout(PHONE, 64, 2, 14))


def layer(tokens: Sequence[str], weights: Sequence[Any], *, title: str = "A layer of heads") -> Drawing:
    """From tokens to queries, keys and values, through the heads, to the stack and the last map.

    Args:
        tokens: N words.
        weights: for each of two heads (N, N), queries down and keys across, the text's A transposed; rows sum
            to one.
        title: what it shows.

    Raises:
        ValueError: if there are not two heads, or a matrix is not a square of the tokens.
    """
    tokens = listed(tokens, "tokens")
    n = len(tokens)
    maps = [table(A, f"the weights of head {h + 1}", n, n) for h, A in enumerate(listed(weights, "heads", 2))]
    description = (
        f"The tokens {' '.join(tokens)} are the columns of X, D by N. Three maps, each D by D, make Q, K and "
        "V of them. Each is split into two heads of Dh rows. Head 1 gets Q1, K1 and V1. The scores, K1 "
        "transposed times Q1, are divided by the root of Dh; softmax makes the weights A1, S by N, of them, "
        "which are drawn transposed: a row for each query, a column for each key. Y1, Dh by N, is V1 times "
        "A1. Head 2 does the same with its own rows. Y1 and Y2 are stacked to D by N again, and the map Ωo, "
        "D by D, mixes them: one output for each token."
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene, middle = Scene(room, size=size), room / 2
        thirds = [room * share for share in (1 / 6, 1 / 2, 5 / 6)]
        block = min(0.27 * room, 130.0)
        broad = min((room - 8) / n - 6, 96)
        xs = [middle + (i - (n - 1) / 2) * (broad + 6) for i in range(n)]

        scene.token_row(xs, 0, tokens, broad, 28, role=STREAM)
        for x in xs:
            scene.vector(x - 11, 32, [""] * 4, 22, 8, role=STREAM)
        y = 64.0
        scene.arrow((middle, y + 2), (middle, y + 38), label="X: D × N")
        scene.line((thirds[0], y + 38), (thirds[2], y + 38), opacity=0.8)
        y += 38
        for x, (name, role) in zip(thirds, PARTS.items(), strict=True):
            scene.arrow((x, y), (x, y + 14))
            scene.map(x - block / 2, y + 14, block, 28, f"Ω_{{{name.lower()}}}: D × D", slant=0)
            scene.arrow((x, y + 42), (x, y + 60))
            for h in (0, 1):
                scene.box(
                    x - block / 2, y + 60 + 24 * h, block, 24, f"{name}_{{{h + 1}}}: D_{{h}} × N",
                    role=role, strength=_strength(h == 0),
                )  # fmt: skip
        y += 108
        half = room / 2 - 6
        for x in thirds:
            scene.line((x, y), (x, y + 10), opacity=0.8)
        scene.line((thirds[0], y + 10), (thirds[2], y + 10), opacity=0.8)
        for h in (0, 1):
            left = h * (half + 12)
            scene.arrow((left + half / 2, y + 10), (left + half / 2, y + 30))
            _head(scene, left, y + 30, half, h, maps[h])
        y += 30 + 248
        for h in (0, 1):
            scene.arrow((h * (half + 12) + half / 2, y - 10), (middle + (2 * h - 1) * block / 3, y + 16))
            scene.box(
                middle - block / 2, y + 18 + 24 * h, block, 24, f"Y_{{{h + 1}}}: D_{{h}} × N",
                role=VALUE, strength=_strength(h == 0),
            )  # fmt: skip
        scene.text(middle + block / 2 + 10, y + 42, "stack", anchor="start", muted=True)
        y += 66
        scene.arrow((middle, y), (middle, y + 16))
        scene.map(middle - block / 2, y + 16, block, 28, "Ω_{o}: D × D", slant=0)
        scene.arrow((middle, y + 44), (middle, y + 64), label="D × N")
        for x in xs:
            scene.vector(x - 11, y + 66, [""] * 4, 22, 8, role=STREAM)
        scene.height = y + 100
        return scene

    return Drawing(title, description, layout(620, 14.5), layout(PHONE, 13))


def _head(scene: Scene, x: Pixels, y: Pixels, room: Pixels, h: int, A: Sequence[Sequence]) -> None:
    """One head in its frame, 238 px tall: query and key give weights, weights and value the output."""
    strength, centre = _strength(h == 0), x + room / 2
    scene.box(x, y, room, 238, radius=8, strength="plain")
    scene.text(centre, y + 14, f"head {h + 1}", bold=True)
    step = min((room - 8) / 3, 78)
    xs = [centre + (i - 1) * step for i in range(3)]
    for at, (name, role) in zip(xs, PARTS.items(), strict=True):
        words = f"{name}_{{{h + 1}}}"
        scene.box(at - step / 2 + 3, y + 28, step - 6, 26, words, role=role, strength=strength)
    weigh, cell = (xs[0] + xs[1]) / 2, 52 / len(A)
    for at in xs[:2]:
        scene.arrow((at, y + 54), (weigh + (at - weigh) / 2, y + 68))
    scene.text(weigh, y + 78, f"K_{{{h + 1}}}^{{T}}Q_{{{h + 1}}} ÷ √D_{{h}}", size=13)
    scene.text(weigh, y + 95, "softmax", size=13)
    for i, row in enumerate(A):
        for j, weight in enumerate(row):
            place = weigh - 26 + j * cell, y + 107 + i * cell
            scene.box(*place, cell, cell, role=WEIGHTS, shade=1.6 * weight)
    scene.text(weigh, y + 170, f"A_{{{h + 1}}} transposed", size=13)
    scene.arrow((weigh, y + 181), (weigh, y + 200))
    scene.arrow((xs[2], y + 54), (xs[2], y + 200))
    left, right = xs[0] - step / 2 + 3, xs[2] + step / 2 - 3
    scene.box(left, y + 201, right - left, 26, f"Y_{{{h + 1}}}", role=VALUE, strength=strength)


def who_asks(
    panels: Mapping[str, tuple[Sequence[str], Sequence[str], Any]],
    chosen: int,
    *,
    title: str = "Who asks, and who answers",
) -> Drawing:
    """For each kind of attention the tokens that ask below, those that answer above, and who may read whom.

    Args:
        panels: for each heading the words that ask, the words that answer, and a boolean for each query (row)
            and key (column), True where the query may read the key.
        chosen: the query in full colour; in each panel there must be such a one.
        title: what it shows.

    Raises:
        ValueError: if there are no panels, a mask does not fit its words, or there is no such query.
    """
    if not panels:
        raise ValueError("panels: expected at least one, got 0")
    found: dict[str, tuple[list, list, list[list]]] = {}
    for name, (asking, answering, mask) in panels.items():
        asking, answering = listed(asking, "words that ask"), listed(answering, "words that answer")
        if not 0 <= chosen < len(asking):
            raise ValueError(f"there is no query {chosen} among {len(asking)}")
        may = table(mask, f"mask {name!r}", len(asking), len(answering))
        found[name] = asking, answering, [[bool(yes) for yes in row] for row in may]

    def told(name: str) -> str:
        asking, answering, may = found[name]
        reads = [word for word, yes in zip(answering, may[chosen], strict=True) if yes]
        source = "the same tokens" if asking == answering else f"other tokens, {' '.join(answering)}"
        return (
            f"{name}: {' '.join(asking)} ask, {source} answer; {asking[chosen]} reads "
            f"{', '.join(reads) or 'nothing'}."
        )

    description = " ".join(map(told, found))

    def panel(scene: Scene, x: Pixels, y: Pixels, room: Pixels, name: str) -> None:
        asking, answering, may = found[name]
        source = "X" if asking == answering else "C"
        scene.text(x + room / 2, y + 10, name, bold=True)
        scene.text(x + room / 2, y + 34, f"keys, values from {source}", muted=True)
        above, fits = scene.places(x, room, answering)
        below, small = scene.places(x, room, asking)
        for i, (at, _) in enumerate(below):
            for j, (to, _) in enumerate(above):
                if may[i][j] and i != chosen:
                    scene.line((at, y + 164), (to, y + 78), width=1, opacity=0.3)
        for (to, _), yes in zip(above, may[chosen], strict=True):
            if yes:
                scene.line((below[chosen][0], y + 164), (to, y + 78), role=WEIGHTS, width=4)
        for (at, broad), word, yes in zip(above, answering, may[chosen], strict=True):
            options: dict[str, Any] = {"role": KEY, "strength": "full"} if yes else {"masked": True}
            scene.token(at, y + 48, word, broad, 30, size=fits, **options)
        for i, ((at, broad), word) in enumerate(zip(below, asking, strict=True)):
            scene.token(at, y + 164, word, broad, 30, role=QUERY, strength=_strength(i == chosen), size=small)
        scene.text(x + room / 2, y + 208, "queries from X", muted=True)

    wide = Scene(len(found) * 214 + (len(found) - 1) * 26, 222, size=14)
    narrow = Scene(PHONE, len(found) * 246 - 24, size=14)
    for i, name in enumerate(found):
        panel(wide, i * 240, 0, 214, name)
        panel(narrow, 24, i * 246, PHONE - 48, name)
    return Drawing(title, description, wide, narrow)


def two_needs(
    words: Sequence[str],
    query: int,
    reads: Sequence[Sequence[int]],
    *,
    title: str = "One word asks twice",
) -> Drawing:
    """A sentence whose words are keys, and one of them that reads some with head 1 and others with head 2.

    Args:
        words: the sentence.
        query: the word that asks.
        reads: for each of two heads the places of the words that it reads.
        title: what it shows.

    Raises:
        ValueError: if there are not two heads, or a place is not in the sentence.
    """
    words = listed(words, "words")
    found = [listed(places, f"what head {h + 1} reads") for h, places in enumerate(listed(reads, "heads", 2))]
    for place in (query, *found[0], *found[1]):
        if not 0 <= place < len(words):
            raise ValueError(f"there is no word {place} among {len(words)}")
    description = f"The sentence is: {' '.join(words)}. " + " ".join(
        f"In head {h + 1}, {words[query]} reads {' and '.join(words[i] for i in places)}."
        for h, places in enumerate(found)
    )

    def key(scene: Scene, x: Pixels, y: Pixels, i: int, width: Pixels, size: Pixels) -> None:
        read = any(i in places for places in found)
        scene.token(x, y, words[i], width, 30, role=KEY, strength=_strength(read), size=size)

    wide = Scene(620, 210, size=15)
    places, fits = wide.places(0, 620, words)
    at = places[query][0]
    for h, (start, end, above) in enumerate(((32.0, 88.0, 0.0), (178.0, 122.0, 180.0))):
        for i in found[h]:
            wide.line((at, start), (places[i][0], end), role=WEIGHTS, width=4)
        wide.token(at, above, words[query], 48, 30, role=QUERY, strength="full")
        wide.text(at + 34, above + 15, f"head {h + 1}", anchor="start", bold=True)
    for i, (x, width) in enumerate(places):
        key(wide, x, 90, i, width, fits)

    narrow = Scene(PHONE, 36 * len(words) - 6, size=14.5)
    broad = max(width_of(word, 14.5) for word in words) + 16
    middle, level = PHONE / 2, 36 * (len(words) - 1) / 2
    for h, way in enumerate((-1, 1)):
        own = middle + way * (PHONE / 2 - 30)
        for i in found[h]:
            there = (middle + way * broad / 2, 36 * i + 15)
            narrow.line((own - way * 24, level + 15), there, role=WEIGHTS, width=4)
        narrow.token(own, level, words[query], 48, 30, role=QUERY, strength="full")
        narrow.text(own, level - 14, f"head {h + 1}", bold=True)
    for i in range(len(words)):
        key(narrow, middle, 36 * i, i, broad, 14.5)
    return Drawing(title, description, wide, narrow)


def splits(
    tokens: Sequence[str],
    right: Any,
    wrong: Any,
    *,
    title: str = "Split into heads, and the wrong split",
) -> Drawing:
    """A token a row, two heads: `view` then `transpose` against a single `view` of the same shape.

    Args:
        tokens: N letters; the features of token a are a1, a2 and so on.
        right: (2, N, Dh), the numbers of the cells in the order of the memory, as each head gets them.
        wrong: likewise.
        title: what it shows.

    Raises:
        ValueError: if one of them has not the shape (2, N, Dh), or holds other numbers.
    """
    tokens = listed(tokens, "tokens")
    n = len(tokens)
    heads: dict[str, list[list[list[int]]]] = {}
    for what, split in {"right": right, "wrong": wrong}.items():
        parts = [table(part, f"{what}, head {h + 1}", n) for h, part in enumerate(listed(split, what, 2))]
        cells = sorted(i for part in parts for row in part for i in row)
        if cells != list(range(2 * n * len(parts[0][0]))):
            raise ValueError(f"{what}: each cell must stand there once")
        heads[what] = [[[int(i) for i in row] for row in part] for part in parts]
    narrow_head = len(heads["right"][0][0])
    D = 2 * narrow_head

    def name(i: int) -> str:
        return f"{tokens[i // D]}{i % D + 1}"

    def told(what: str) -> str:
        parts = (
            f"head {h + 1}: {'; '.join(' '.join(map(name, row)) for row in part)}"
            for h, part in enumerate(heads[what])
        )
        return ". ".join(parts)

    description = (
        f"The tokens {' '.join(tokens)}, one a row, {D} features each. Right, a view and then a transpose, "
        f"{told('right')}. Wrong, a single view of the same shape, {told('wrong')}."
    )

    def grid(
        scene: Scene, x: Pixels, y: Pixels, cell: Pixels, rows: Sequence[Sequence[int]], tall: Pixels = 28
    ) -> None:
        for r, row in enumerate(rows):
            for c, i in enumerate(row):
                mine: Strength = _strength(i % D < narrow_head)
                scene.box(x + c * cell, y + r * tall, cell, tall, name(i), role=VALUE, strength=mine)

    def group(scene: Scene, x: Pixels, y: Pixels, cell: Pixels, what: str, words: str) -> None:
        across = narrow_head * cell
        scene.text(x + 20, y + 10, words, anchor="start", bold=True)
        for h, part in enumerate(heads[what]):
            left = x + 20 + h * (across + 28)
            scene.text(left + across / 2, y + 36, f"head {h + 1}", muted=True)
            grid(scene, left, y + 50, cell, part)
        for r in range(n):
            scene.text(x, y + 50 + 28 * r + 14, str(r + 1), anchor="start", muted=True)

    def layout(cell: Pixels, size: Pixels, *, stacked: bool) -> Scene:
        tall = 28 * n + 52
        whole, pair = D * cell, 20 + D * cell + 28
        scene = Scene(PHONE if stacked else whole + 20 + 2 * (pair + 40), size=size)
        x = (PHONE - whole) / 2 if stacked else 20
        scene.text(x, 10, "x: a token a row", anchor="start", bold=True)
        scene.text(x + whole / 4, 36, "head 1", muted=True)
        scene.text(x + 3 * whole / 4, 36, "head 2", muted=True)
        grid(scene, x, 50, cell, [list(range(D * r, D * r + D)) for r in range(n)])
        for r in range(n):
            scene.text(x - 20, 50 + 28 * r + 14, str(r + 1), anchor="start", muted=True)
        places = (
            [((PHONE - pair) / 2, tall + 26), ((PHONE - pair) / 2, 2 * (tall + 26))]
            if stacked
            else [(x + whole + 40, 0.0), (x + whole + pair + 80, 0.0)]
        )
        for place, what, words in zip(
            places, heads, ("right: view, transpose", "wrong: a single view"), strict=True
        ):
            group(scene, *place, cell, what, words)
        scene.height = places[1][1] + tall
        return scene

    return Drawing(title, description, layout(38, 14.5, stacked=False), layout(52, 14.5, stacked=True))


def two_heads(
    names: Sequence[str],
    values: Any,
    weights: Any,
    signs: Sequence[Any],
    *,
    asks: Sequence[int] = (0, 1),
    written: Sequence[Sequence[str]] | None = None,
    digits: int = 0,
    title: str = "Two heads subtract",
) -> Drawing:
    """Two averages of the same values, multiplied by the entries of the last map and added.

    Args:
        names: the tokens that are read.
        values: a number for each.
        weights: (2, S), for each head a weight for each token.
        signs: what the last map multiplies each average by.
        asks: the token that each head asks for.
        written: the weights as they are to be written, for instance "1/2".
        digits: decimals of values and averages.
        title: what it shows.

    Raises:
        ValueError: if the lengths differ, or a head asks for a token that is not there.
    """
    names = listed(names, "names")
    values = listed(values, "values", len(names))
    weights = table(weights, "weights", 2, len(names))
    signs, asks = listed(signs, "signs", 2), listed(asks, "asks", 2)
    shown = table(written, "written", 2, len(names)) if written is not None else weights
    for token in asks:
        if not 0 <= token < len(names):
            raise ValueError(f"there is no token {token} among {len(names)}")
    averages = [math.fsum(w * v for w, v in zip(row, values, strict=True)) for row in weights]
    answer = number(math.fsum(s * y for s, y in zip(signs, averages, strict=True)), digits)
    factors = [f"× ({'+' if s > 0 else ''}{number(s, 0)})" for s in signs]
    description = (
        " ".join(
            f"Head {h + 1} asks for {names[asks[h]]}: weights "
            + ", ".join(f"{n} {number(w)}" for n, w in zip(names, shown[h], strict=True))
            + f"; values {', '.join(number(v, digits) for v in values)}; average "
            f"{number(averages[h], digits)}, {factors[h]}."
            for h in (0, 1)
        )
        + f" Together {answer}."
    )

    def layout(room: Pixels, label: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        half = (room - label - 14) / 2
        column = half / len(names)
        middles = [label + half / 2, label + half + 14 + half / 2]
        centre = (middles[0] + middles[1]) / 2
        for h, middle in enumerate(middles):
            xs = [middle + (i - (len(names) - 1) / 2) * column for i in range(len(names))]
            scene.text(middle, 10, f"head {h + 1}", bold=True)
            for i, x in enumerate(xs):
                scene.token(x, 24, names[i], column - 6, 30, role=KEY, strength=_strength(i == asks[h]))
                scene.text(x, 70, number(shown[h][i]))
                scene.token(x, 84, number(values[i], digits), column - 6, 30, role=VALUE)
                scene.line((x, 116), (middle, 152), role=WEIGHTS, width=1 + 12 * weights[h][i])
            scene.token(middle, 150, number(averages[h], digits), 60, 32, role=VALUE, strength="full")
            scene.arrow((middle, 184), (centre + (20 if h else -20), 228), width=2)
            place = (middle + centre) / 2 + (18 if h else -18)
            scene.text(place, 214, factors[h], anchor="start" if h else "end")
        scene.token(centre, 230, answer, 66, 34, role=STREAM, strength="full", bold=True)
        for words, y in (("keys", 39), ("weights", 70), ("values", 99), ("average", 166), ("sum", 247)):
            scene.text(0, y, words, anchor="start", muted=True)
        scene.height = 266
        return scene

    return Drawing(title, description, layout(620, 76, 15), layout(PHONE, 62, 13.5))


def one_below_another(
    maps: Any,
    tokens: Any,
    names: Sequence[str],
    *,
    unit: str = "",
    digits: int = 0,
    title: str = "The maps of all heads are one matrix",
) -> Drawing:
    """Two heads' query maps, one below another, times the tokens: the queries of both heads.

    Args:
        maps: (D, D), the maps of two heads one below another.
        tokens: (D, N), a token in each column.
        names: a word for each token.
        unit: what the numbers of the maps and of the queries are multiples of.
        digits: decimals of the numbers.
        title: what it shows.

    Raises:
        ValueError: if the shapes do not fit, or two heads do not divide D.
    """
    names = listed(names, "names")
    X = table(tokens, "tokens", columns=len(names))
    D, N = len(X), len(names)
    W = table(maps, "maps", D, D)
    if D % 2:
        raise ValueError(f"two heads do not divide the {D} rows of the maps")
    Q = [
        [math.fsum(w * x for w, x in zip(row, column, strict=True)) for column in zip(*X, strict=True)]
        for row in W
    ]
    Dh = D // 2

    def told(rows: Sequence[Sequence]) -> str:
        return "; ".join(" ".join(number(value, digits) for value in row) for row in rows)

    asked = ", ".join(
        f"{name}: {told([[row[n] for row in Q]])}" for n, name in enumerate(names)
    )  # a column, both heads
    multiples = f" Maps and queries are multiples of {unit}." if unit else ""
    description = (
        f"A matrix of {D} by {D}. Its upper {Dh} rows are the query map of head 1, {told(W[:Dh])}, and "
        f"its lower {Dh} that of head 2, {told(W[Dh:])}. Times X, a token a column, {told(X)}, it gives "
        f"{D} by {N}: above the queries of head 1, {told(Q[:Dh])}, below those of head 2, {told(Q[Dh:])}. "
        f"Column by column, {asked}.{multiples}"
    )

    def halves(
        scene: Scene, x: Pixels, y: Pixels, cell: Pixels, rows: Sequence[Sequence], role: Role
    ) -> None:
        """A grid of two heads with a gap between them, and whose half each is at the left."""
        for h in (0, 1):
            top = y + h * (Dh * 28 + 10)
            for r, row in enumerate(rows[Dh * h : Dh * h + Dh]):
                for c, value in enumerate(row):
                    scene.box(
                        x + c * cell, top + r * 28, cell, 28, number(value, digits),
                        role=role, strength=_strength(h == 0),
                    )  # fmt: skip
            scene.text(x - 8, top + Dh * 14, f"head {h + 1}", anchor="end")

    def columns(scene: Scene, x: Pixels, y: Pixels, cell: Pixels, words: str) -> None:
        """The tokens' names above a grid that begins at y, and its shape above them."""
        scene.text(x + N * cell / 2, y - 44, words, muted=True)
        at = [x + (n + 0.5) * cell for n in range(N)]
        scene.token_row(at, y - 31, names, cell - 4, 26, role=STREAM)

    def layout(room: Pixels, narrow: Pixels, cell: Pixels, size: Pixels, *, stacked: bool) -> Scene:
        scene, tall, y = Scene(room, size=size), 28 * D + 10, 54.0
        label = 58.0
        gap = (
            room - label - D * narrow - N * cell
            if stacked
            else (room - 2 * label - D * narrow - 2 * N * cell) / 2
        )
        x = label
        scene.text(x + D * narrow / 2, y - 17, "Ω_{q}: D × D", muted=True)
        halves(scene, x, y, narrow, W, QUERY)
        x += D * narrow + gap
        scene.text(x - gap / 2, y + tall / 2, "×")
        columns(scene, x, y + 5, cell, "X: D × N")
        for r, row in enumerate(X):
            for c, value in enumerate(row):
                scene.box(x + c * cell, y + 5 + r * 28, cell, 28, number(value, digits), role=STREAM)
        if stacked:
            y += tall + 62
        else:
            x += N * cell + gap + label
        scene.text(x - label - gap / 2, y + tall / 2, "=")
        columns(scene, x, y, cell, "Q: D × N")
        halves(scene, x, y, cell, Q, QUERY)
        scene.height = y + tall + 4
        return scene

    wide, phone = layout(620, 36, 46, 14.5, stacked=False), layout(PHONE, 26, 44, 14, stacked=True)
    return Drawing(title, description, wide, phone)


def two_readings(
    words: Sequence[str],
    mask: Any,
    readings: Mapping[str, bool],
    *,
    title: str = "One mask, read in two ways",
) -> Drawing:
    """The same boolean mask as two functions read it: a cell is filled where a query may read a key.

    Args:
        words: the tokens.
        mask: (N, N), queries down and keys across.
        readings: from a function's name to whether True means "may attend" there; two of them.
        title: what it shows.

    Raises:
        ValueError: if the mask is not a square of the words, or there are not two readings.
    """
    words = listed(words, "words")
    n = len(words)
    marks = [[bool(yes) for yes in row] for row in table(mask, "the mask", n, n)]
    names = listed(list(readings), "readings", 2)

    def reads(name: str, i: int) -> list[str]:
        return [word for word, yes in zip(words, marks[i], strict=True) if yes == readings[name]]

    def told(name: str) -> str:
        meaning = "may" if readings[name] else "may not"
        each = "; ".join(
            f"{word} reads {', '.join(reads(name, i)) or 'nothing'}" for i, word in enumerate(words)
        )
        return f"{name}, where T means {meaning}: {each}."

    description = (
        "Twice the same table of T and F, a row for each query and a column for each key, "
        f"{'; '.join(' '.join('FT'[yes] for yes in row) for row in marks)}. Filled: may read; hatched: "
        "may not. " + " ".join(map(told, names))
    )

    def panel(scene: Scene, x: Pixels, y: Pixels, label: Pixels, cell: Pixels, name: str) -> None:
        across, left = n * cell, x + label
        centre = x + (label + across) / 2
        scene.text(centre, y + 10, name, bold=True)
        scene.text(centre, y + 32, "T: may read" if readings[name] else "T: may not read", muted=True)
        scene.token_row([left + (j + 0.5) * cell for j in range(n)], y + 48, words, cell - 4, 28, role=KEY)
        for i, word in enumerate(words):
            top = y + 82 + 32 * i
            scene.token(x + label / 2 - 2, top + 2, word, label - 5, 28, role=QUERY)
            for j, yes in enumerate(marks[i]):
                may = yes == readings[name]
                scene.box(
                    left + j * cell, top, cell, 32, "FT"[yes],
                    role=WEIGHTS, strength="pale" if may else "plain", shade=0.9, masked=not may,
                )  # fmt: skip
            if not reads(name, i):
                scene.text(centre, y + 82 + 32 * n + 16, f"{word} may read nothing: NaN", muted=True)

    broad = max(width_of(word, 14.5) for word in words) + 14
    label = broad + 4
    whole = label + n * broad
    wide = Scene(2 * whole + 48, 82 + 32 * n + 30, size=14.5)
    narrow = Scene(PHONE, 2 * (82 + 32 * n + 30) + 16, size=14.5)
    for i, name in enumerate(names):
        panel(wide, i * (whole + 48), 0, label, broad, name)
        panel(narrow, (PHONE - whole) / 2, i * (82 + 32 * n + 46), label, broad, name)
    return Drawing(title, description, wide, narrow)


def same_side(
    ways: Mapping[str, tuple[Any, Any]],
    free: Sequence[str] = (),
    *,
    digits: int = 1,
    title: str = "u and v on a number line",
) -> Drawing:
    """What two contents are multiplied by, u and v, beside what they should be, +1 and -1, and the cost.

    With one average u and v have one sign. So where u is positive, v has no way to the left: that part of the
    line is hatched. The cost is the sum of the squared gaps.

    Args:
        ways: from the name of a way to answer to its u and v.
        free: the ways in which v may have the other sign.
        digits: decimals of u and v; the costs have twice as many, at most.
        title: what it shows.

    Raises:
        ValueError: if there is no way, one average gives u and v two signs, or a number leaves the line.
    """
    found = {name: tuple(map(float, listed(pair, name, 2))) for name, pair in ways.items()}
    if not found:
        raise ValueError("ways: expected at least one, got 0")
    for name, (u, v) in found.items():
        if max(abs(u), abs(v)) > 1.4:
            raise ValueError(f"{name!r}: u and v lie between -1.4 and 1.4, got {u} and {v}")
        if name not in free and u * v < 0:
            raise ValueError(f"{name!r}: one average gives u and v one sign, got {u} and {v}")

    def short(value: Pixels) -> str:
        written = number(value, 2 * digits)
        return written.rstrip("0").rstrip(".") if "." in written else written

    def costs(name: str) -> tuple[str, str, str]:
        u, v = found[name]
        return short((u - 1) ** 2), short((v + 1) ** 2), short((u - 1) ** 2 + (v + 1) ** 2)

    def told(name: str) -> str:
        u, v = map(short, found[name])
        own = " v may have the other sign." if name in free else ""
        first, second, both = costs(name)
        return f"{name}: u = {u}, v = {v}; squared gaps {first} + {second} = {both}.{own}"

    description = (
        "For each way to answer a number line from −1 to 1. u should be at 1 and v at −1; a bar leads from "
        "each to its goal. With one average u and v have one sign: where u is positive, the line left of 0, "
        f"where v cannot go, is hatched. {' '.join(map(told, found))}"
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene, y, tall = Scene(room, size=size), 0.0, 132.0
        middle, unit = room / 2, (room / 2 - 28) / 1.15

        def at(value: Pixels) -> Pixels:
            return middle + unit * value

        for name, (u, v) in found.items():
            axis = y + 66
            scene.text(0, y + 10, name, anchor="start", bold=True)
            if name not in free and u > 0:
                scene.box(
                    at(-1.12), axis + 3, at(0) - at(-1.12), 34, role=WEIGHTS, strength="plain", masked=True
                )
            scene.line((at(-1.15), axis), (at(1.15), axis), opacity=0.8)
            for tick in (-1, 0, 1):
                scene.line((at(tick), axis - 5), (at(tick), axis + 5), opacity=0.8)
            for value, goal, up in ((u, 1, True), (v, -1, False)):
                height = axis - 20 if up else axis + 20
                if abs(value - goal) > 0.02:
                    way = 1 if goal > value else -1
                    scene.line((at(value) + 13 * way, height), (at(goal), height), role=STREAM, width=4)
                scene.line((at(goal), height - 9), (at(goal), height + 9), role=STREAM, width=3)
                scene.token(at(value), height - 12, "u" if up else "v", 26, 24, role=WEIGHTS, strength="full")
            for tick, words in ((-1, "−1"), (0, "0"), (1, "+1")):
                scene.text(at(tick), axis + 50, words, muted=True)
            first, second, both = costs(name)
            scene.text(room, y + 10, f"{first} + {second} = {both}", anchor="end")
            y += tall
        scene.height = y - 8
        return scene

    return Drawing(title, description, layout(560, 15), layout(PHONE, 13.5))


def weights_subtracted(
    names: Sequence[str],
    weights: Any,
    written: Sequence[Sequence[str]],
    *,
    title: str = "The weights of two heads, subtracted",
) -> Drawing:
    """The weights of two heads as bars, and their difference, which may be negative.

    Args:
        names: the tokens that are read.
        weights: (2, S), for each head a weight for each token.
        written: (3, S), how the weights of head 1, of head 2 and their differences are written.
        title: what it shows.

    Raises:
        ValueError: if the lengths differ.
    """
    names = listed(names, "names")
    first, second = ([float(w) for w in row] for row in table(weights, "weights", 2, len(names)))
    shown = table(written, "written", 3, len(names))
    rows = [first, second, [a - b for a, b in zip(first, second, strict=True)]]
    heads = ["head 1", "head 2", "difference"]
    description = " ".join(
        f"{head}: {', '.join(f'{name} {number(w)}' for name, w in zip(names, row, strict=True))}."
        for head, row in zip(("Head 1", "Head 2", "Difference"), shown, strict=True)
    )

    def layout(room: Pixels, gap: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, 210, size=size)
        part = (room - 2 * gap) / 3
        column, base, tall = part / len(names), 124.0, 120.0
        for n, (head, row) in enumerate(zip(heads, rows, strict=True)):
            left = n * (part + gap)
            scene.text(left + part / 2, 10, head, bold=True)
            if n:
                scene.text(left - gap / 2, base - 30, "−="[n - 1], size=min(size + 3, 18), bold=True)
            for i, weight in enumerate(row):
                x = left + (i + 0.5) * column
                height = tall * abs(weight)
                upper = base - height if weight > 0 else base
                scene.box(
                    x - 0.275 * column, upper, 0.55 * column, height,
                    role=WEIGHTS, strength=_strength(n == 2), shade=0.8,
                )  # fmt: skip
                scene.text(x, upper - 13 if weight >= 0 else base + height + 13, number(shown[n][i]))
                scene.text(x, 200, names[i])
            scene.line((left, base), (left + part, base), opacity=0.8)
        return scene

    return Drawing(title, description, layout(560, 44, 15), layout(PHONE, 20, 13))


def shuffled(
    words: Sequence[str],
    order: Sequence[int],
    follow: int = 0,
    *,
    title: str = "Shuffled tokens, shuffled outputs",
) -> Drawing:
    """The same tokens in two orders through self-attention: every output reads all, and moves with its token.

    Args:
        words: the tokens.
        order: which of them stands at each place afterwards.
        follow: the token in full colour.
        title: what it shows.

    Raises:
        ValueError: if the order is no permutation, or there is no such token.
    """
    words = listed(words, "words")
    order = listed(order, "order", len(words))
    if sorted(order) != list(range(len(words))):
        raise ValueError(f"the order is no permutation of {len(words)} tokens: {order}")
    if not 0 <= follow < len(words):
        raise ValueError(f"there is no token {follow} among {len(words)}")
    moved = [words[i] for i in order]
    description = (
        f"The tokens {' '.join(words)} go through self-attention, where every output reads every token. They "
        f"come out as one output each, in their order. In the order {' '.join(moved)} they come out as the "
        f"same outputs, in that order: the output of {words[follow]} moves along with it."
    )

    def panel(scene: Scene, x: Pixels, y: Pixels, room: Pixels, places: Sequence[int]) -> None:
        row = [words[i] for i in places]
        xs, fits = scene.places(x, room, row, gap=14)
        for (at, broad), word, i in zip(xs, row, places, strict=True):
            mine: dict[str, Any] = {"strength": _strength(i == follow)}
            thick = 4.0 if i == follow else 1.5
            role: Role | None = STREAM if i == follow else None
            scene.token(at, y, word, broad, 30, role=STREAM, size=fits, **mine)
            scene.arrow((at, y + 32), (at, y + 52), role=role, width=thick / 2)
            scene.arrow((at, y + 130), (at, y + 150), role=role, width=thick / 2)
            scene.token(at, y + 152, f"y_{{{word}}}", broad, 30, role=VALUE, size=fits, **mine)
        scene.box(x, y + 52, room, 78, radius=4)
        scene.text(x + room / 2, y + 65, "self-attention")
        for to, i in sorted(zip(xs, places, strict=True), key=lambda pair: pair[1] == follow):
            for at, _ in xs:  # every output reads every token; the lines of the followed one lie on top
                reads: dict[str, Any] = {"role": WEIGHTS, "width": 3} if i == follow else {"width": 1}
                scene.line((at, y + 78), (to[0], y + 128), **reads)

    wide, narrow = Scene(2 * 290 + 40, 184, size=15), Scene(PHONE, 2 * 184 + 30, size=14.5)
    for i, places in enumerate((range(len(words)), order)):
        panel(wide, i * 330, 0, 290, places)
        panel(narrow, 14, i * 214, PHONE - 28, places)
    return Drawing(title, description, wide, narrow)
