"""Drawings of the chapter on attention. Every number in them comes in as an argument."""

import math
from collections.abc import Sequence
from typing import Any

from tformer_lib.book.drawings.drawing import Drawing
from tformer_lib.book.drawings.lettering import (
    Pixels,
    column_of,
    decimals,
    fitting,
    listed,
    number,
    table,
    width_of,
)
from tformer_lib.book.drawings.primitives import PAD, Scene, Strength, widest
from tformer_lib.book.drawings.roles import KEY, QUERY, VALUE, WEIGHTS, Role

PHONE = 328  # the width of a narrow layout: a phone of 360 px leaves 328 to the text


def pairs_in_words(names: Sequence[str], values: Sequence) -> str:
    """6 h: 0.02, 9 h: 0.55 and so on, for descriptions."""
    return ", ".join(f"{name}: {number(value)}" for name, value in zip(names, values, strict=True))


def soft_lookup(
    query: str,
    keys: Sequence[str],
    scores: Any,
    weights: Any,
    values: Sequence[str],
    answer: str,
    *,
    digits: int = 2,
    title: str = "A soft lookup",
) -> Drawing:
    """From a query to an answer: scores, softmax, weights, average.

    Args:
        query: what is asked, for instance "10 h".
        keys: what it is compared with, a few words each.
        scores: a number for each key.
        weights: their softmax.
        values: what each key hands over.
        answer: the average of the values under the weights.
        digits: decimals of scores and weights.
        title: what it shows.

    Raises:
        ValueError: if the lengths differ, a weight is negative, or a word is too long for its box.
    """
    keys, values = listed(keys, "keys"), [number(value) for value in listed(values, "values", len(keys))]
    scores, weights = listed(scores, "scores", len(keys)), listed(weights, "weights", len(keys))
    if min(weights) < 0 or max(weights) == 0:
        raise ValueError(f"weights must be at least 0 and not all 0, got {weights}")
    description = (
        f"The query {query} is compared with the keys. Scores, {pairs_in_words(keys, scores)}. "
        f"Softmax makes weights of them that sum to one, {pairs_in_words(keys, weights)}. "
        f"The values, {pairs_in_words(keys, values)}, averaged with these weights, give the answer {answer}."
    )

    def layout(label: Pixels, column: Pixels, size: Pixels) -> Scene:
        scene = Scene(label + len(keys) * column, 384, size=size)
        xs = [label + (i + 0.5) * column for i in range(len(keys))]
        middle, box = (xs[0] + xs[-1]) / 2, column - 8
        wide_box = max(box, width_of(query, size) + 24, width_of(answer, size + 1) * 1.1 + 24)

        for x in xs:
            scene.line((middle, 36), (x, 70), role=QUERY)
        scene.token(middle, 4, query, wide_box, 32, role=QUERY, strength="full", bold=True)
        scene.token_row(xs, 70, keys, box, 32, role=KEY, strength="full")
        written = [number(score, digits) for score in scores]
        fits = fitting(written, column - 2, size)
        for x, score in zip(xs, written, strict=True):
            scene.text(x, 122, score, size=fits)
            scene.line((x, 136), (x, 150))
        scene.box(xs[0] - box / 2, 150, xs[-1] - xs[0] + box, 30, "softmax", radius=4)
        for x, weight in zip(xs, weights, strict=True):
            scene.bar(x, 240, 0.5 * column, 50 * weight / max(weights), WEIGHTS)
            scene.text(x, 254, number(weight, digits))
        scene.line((xs[0] - box / 2, 240), (xs[-1] + box / 2, 240))
        for x, weight in zip(xs, weights, strict=True):
            scene.line((x, 304), (middle, 350), role=WEIGHTS, width=1 + 10 * weight / sum(weights))
        scene.token_row(xs, 272, values, box, 32, role=VALUE, strength="full")
        scene.token(middle, 346, answer, wide_box, 34, role=VALUE, strength="full", bold=True, size=size + 1)

        names = {"query": 20, "keys": 86, "scores": 122, "weights": 254, "values": 288, "answer": 363}
        for name, y in names.items():
            scene.text(0, y, name, anchor="start", muted=True)
        return scene

    column = min(max(widest([*keys, *values]) + 2 * PAD + 8, 84), 600 / len(keys))
    return Drawing(title, description, layout(86, column, 16), layout(58, (PHONE - 58) / len(keys), 13.5))


def attention_matrices(
    Q: Any,
    K: Any,
    V: Any,
    A: Any,
    Y: Any,
    column: int = 0,
    *,
    digits: int = 2,
    title: str = "Attention as two products of matrices",
) -> Drawing:
    """Keys times queries give the weights, values times weights the output; one query's column in colour.

    Matrices are tensors or lists of rows; a list may hold words, such as "2/5", in the place of numbers.

    Args:
        Q: (Dh, N), a query in each column.
        K: (Dh, S), a key in each column; drawn transposed.
        V: (Dv, S), a value in each column.
        A: (S, N), the weights; each column sums to one.
        Y: (Dv, N), the output.
        column: which query is in full colour.
        digits: decimals of the numbers.
        title: what it shows.

    Raises:
        ValueError: if the shapes do not go together, or there is no such column.
    """
    Q, K, V = table(Q, "Q"), table(K, "K"), table(V, "V")
    width, N, S = len(Q), len(Q[0]), len(K[0])
    table(K, "K", rows=width)
    table(V, "V", columns=S)
    A, Y = table(A, "A", S, N), table(Y, "Y", len(V), N)
    if not 0 <= column < N:
        raise ValueError(f"there is no query {column} among {N}")
    transposed = [list(row) for row in zip(*K, strict=True)]
    description = (
        f"First product: the transposed keys, S = {S} by Dh = {width}, times the queries, Dh by N = {N}; "
        "divided by the root of Dh, a softmax over each column makes the weights A, S by N. Second product: "
        f"the values, Dv = {len(V)} by S, times A give the output Y, Dv by N. "
        f"Query {column + 1} is in full colour: its weights are "
        f"{', '.join(number(a, digits) for a in column_of(A, column))}, its output "
        f"{', '.join(number(y, digits) for y in column_of(Y, column))}."
    )

    def grid(
        scene: Scene, name: str, values: list[list], x: Pixels, y: Pixels, cell: Pixels, row: Pixels
    ) -> None:
        role = {"K^{T}": KEY, "Q": QUERY, "A": WEIGHTS, "V": VALUE, "Y": VALUE}[name]
        down, across = {
            "K^{T}": ("S", "D_{h}"),
            "Q": ("D_{h}", "N"),
            "A": ("S", "N"),
            "V": ("D_{v}", "S"),
            "Y": ("D_{v}", "N"),
        }[name]
        chosen = column if name in "QAY" else None
        scene.matrix(x, y, values, cell, row, role=role, column=chosen, digits=decimals(values, digits))
        tall, broad = len(values) * row, len(values[0]) * cell
        scene.sides(x, y, broad, tall, down, across)
        scene.text(x + broad / 2, y + tall + 16, name, bold=True)

    left = max(width, S)  # cells of the widest matrix that stands first in a line

    def wide() -> Scene:
        """Two lines, each read like its equation; a query keeps its place from Q to A and from A to Y."""
        row, sign, step = 32.0, 52.0, 116.0
        cell = min(46.0, (684 - 24 - sign - step) / (left + 2 * N))
        edge = 24 + left * cell
        second = edge + sign
        third = second + N * cell + step
        scene = Scene(third + N * cell + 2, size=15)
        tall = max(S, width) * row
        y = 26.0
        grid(scene, "K^{T}", transposed, edge - width * cell, y + (tall - S * row) / 2, cell, row)
        scene.text(edge + 14, y + tall / 2, "·", size=18, bold=True)
        grid(scene, "Q", Q, second, y + (tall - width * row) / 2, cell, row)
        middle = third - 14 - step / 2
        scene.arrow((middle - 38, y + tall / 2), (middle + 42, y + tall / 2))
        for dy, words in ((-32, "÷ √D_{h}"), (-14, "softmax"), (16, "of each"), (33, "column")):
            scene.text(middle - 4, y + tall / 2 + dy, words, muted=True)
        grid(scene, "A", A, third, y + (tall - S * row) / 2, cell, row)

        y += tall + 66
        tall = max(S, len(V)) * row
        grid(scene, "V", V, edge - S * cell, y + (tall - len(V) * row) / 2, cell, row)
        scene.text(edge + 14, y + tall / 2, "·", size=18, bold=True)
        grid(scene, "A", A, second, y + (tall - S * row) / 2, cell, row)
        scene.text(middle - 4, y + tall / 2, "=", size=18)
        grid(scene, "Y", Y, third, y + (tall - len(V) * row) / 2, cell, row)
        scene.height = y + tall + 28
        return scene

    def narrow() -> Scene:
        """One above the other: each query's column goes straight down from Q over A to Y."""
        margin, sign, row = 22.0, 42.0, 30.0
        cell = min(40.0, (PHONE - margin - sign - 2) / (left + N))
        scene = Scene(PHONE, size=14)
        second = PHONE - 2 - N * cell
        edge, middle = second - sign, PHONE - 2 - N * cell / 2
        tall = max(S, width) * row
        y = 26.0
        grid(scene, "K^{T}", transposed, edge - width * cell, y + (tall - S * row) / 2, cell, row)
        scene.text(edge + 12, y + tall / 2, "·", size=18, bold=True)
        grid(scene, "Q", Q, second, y + (tall - width * row) / 2, cell, row)
        y += tall + 34
        scene.arrow((middle, y), (middle, y + 38))
        scene.text(middle - 14, y + 7, "÷ √D_{h}, softmax", anchor="end", muted=True)
        scene.text(middle - 14, y + 26, "of each column", anchor="end", muted=True)
        y += 66
        tall = max(S, len(V)) * row
        grid(scene, "V", V, edge - S * cell, y + (tall - len(V) * row) / 2, cell, row)
        scene.text(edge + 12, y + tall / 2, "·", size=18, bold=True)
        grid(scene, "A", A, second, y + (tall - S * row) / 2, cell, row)
        y += tall + 58
        scene.text(edge - 8, y + len(Y) * row / 2, "=", size=18)
        grid(scene, "Y", Y, second, y, cell, row)
        scene.height = y + len(Y) * row + 28
        return scene

    def stacked() -> Scene:
        """For long numbers: all five one above the other."""
        row, margin = 30.0, 60.0
        cell = min(60.0, (PHONE - margin - 2) / max(left, N))
        middle = margin + N * cell / 2
        scene, y = Scene(PHONE, size=14), 26.0
        for name, values in (("K^{T}", transposed), ("Q", Q), ("A", A), ("V", V), ("Y", Y)):
            sign = {"Q": "·", "Y": "="}.get(name)
            if sign:
                scene.text(12, y + len(values) * row / 2, sign, size=18, bold=True)
            grid(scene, name, values, margin, y, cell, row)
            y += len(values) * row + 58
            if name == "Q":
                scene.arrow((middle, y - 24), (middle, y + 14))
                scene.text(middle + 14, y - 14, "÷ √D_{h}, softmax", anchor="start", muted=True)
                scene.text(middle + 14, y + 5, "of each column", anchor="start", muted=True)
                y += 44
            elif name == "A":
                y += 10
            elif name == "V":
                scene.text(margin + S * cell / 2 + 12, y - 42, "· A", anchor="start", bold=True)
        scene.height = y - 30
        return scene

    try:
        small = narrow()
    except ValueError:
        small = stacked()
    return Drawing(title, description, wide(), small)


def worded_matrix(
    scene: Scene,
    corner: tuple[Pixels, Pixels],
    widths: tuple[Pixels, Pixels],
    *,
    down: tuple[Role, str, Sequence[str]],
    across: tuple[Role, str, Sequence[str]],
    numbers: Sequence[Sequence],
    column: int | None = None,
    row: int | None = None,
    **options: Any,
) -> tuple[Pixels, Pixels]:
    """A matrix of weights with a token for each row and each column; returns its lower right corner.

    Args:
        scene: where it is drawn.
        corner: the upper left corner of everything.
        widths: of the tokens at the left, and of a cell.
        down: what stands at the left: its role, what it is, the words.
        across: what stands above.
        numbers: a list of rows.
        column: the column in full colour, with its token.
        row: the row in full colour, with its token.
        **options: passed to `Scene.matrix`.
    """
    (x, y), (label, cell), tall = corner, widths, 34.0
    left, top = x + label, y + 58
    scene.text(left + len(across[2]) * cell / 2, y + 10, across[1], muted=True)
    scene.text(x + label / 2 - 2, top - 20, down[1], muted=True)
    for i, word in enumerate(across[2]):
        strength: Strength = "full" if i == column else "pale"
        scene.token(left + (i + 0.5) * cell, top - 36, word, cell - 4, role=across[0], strength=strength)
    for i, word in enumerate(down[2]):
        strength = "full" if i == row else "pale"
        middle, upper = x + label / 2 - 2, top + 2 + i * tall
        scene.token(middle, upper, word, label - 4, role=down[0], strength=strength)
    scene.matrix(left, top, numbers, cell, tall, role=WEIGHTS, column=column, row=row, **options)
    return left + len(across[2]) * cell, top + len(down[2]) * tall


def columns_and_rows(
    A: Any,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    query: int = 0,
    digits: int = 2,
    title: str = "The same weights in the text and in code",
) -> Drawing:
    """The weights twice: the text's A, whose columns sum to one, and the code's, whose rows do.

    Args:
        A: (S, N), the text's layout: keys down, queries across.
        queries: N words.
        keys: S words.
        query: whose weights are in full colour.
        digits: decimals of the weights.
        title: what it shows.

    Raises:
        ValueError: if the shapes do not go together, or there is no such query.
    """
    queries, keys = listed(queries, "queries"), listed(keys, "keys")
    A = table(A, "A", len(keys), len(queries))
    if not 0 <= query < len(queries):
        raise ValueError(f"there is no query {query} among {len(queries)}")
    code = [list(row) for row in zip(*A, strict=True)]
    description = (
        "Left, the text's matrix A: a key in each row, a query in each column, and each column sums to one. "
        "Right, the code's weights, its transpose: a query in each row, a key in each column, and each row "
        f"sums to one. The weights of the query {queries[query]}, {pairs_in_words(keys, code[query])}, "
        "are in full colour in both."
    )

    def half(
        scene: Scene, x: Pixels, y: Pixels, cell: Pixels, label: Pixels, *, transposed: bool
    ) -> tuple[Pixels, Pixels]:
        """One of the two, with its upper left corner at (x, y); returns its lower right one."""
        centre = x + label + len(keys if transposed else queries) * cell / 2
        scene.text(centre, y + 10, "In code: weights" if transposed else "In the text: A", bold=True)
        scene.text(
            centre, y + 34, "each row sums to 1" if transposed else "each column sums to 1", muted=True
        )
        return worded_matrix(
            scene,
            (x, y + 54),
            (label, cell),
            down=(QUERY, "queries", queries) if transposed else (KEY, "keys", keys),
            across=(KEY, "keys", keys) if transposed else (QUERY, "queries", queries),
            numbers=code if transposed else A,
            column=None if transposed else query,
            row=query if transposed else None,
            digits=digits,
        )

    def layout(*, stacked: bool) -> Scene:
        size = 14.0 if stacked else 15.0
        words = [*queries, *keys]
        label = widest([*words, "queries"], size) + 2 * PAD + 2
        most = max(len(queries), len(keys))
        room = PHONE - 4 - label if stacked else (690 - 76 - 2 * label) / 2
        cell = min(room / most, max(widest([*words, "0.00"], size) + 14, 46))
        scene = Scene(PHONE, size=size)
        if stacked:
            x = (PHONE - label - len(queries) * cell) / 2
            _, y = half(scene, x, 0, cell, label, transposed=False)
            scene.arrow((PHONE / 2, y + 14), (PHONE / 2, y + 48), label="transpose")
            _, y = half(scene, (PHONE - label - len(keys) * cell) / 2, y + 62, cell, label, transposed=True)
        else:
            x, y = half(scene, 2, 0, cell, label, transposed=False)
            gap = width_of("transpose", size) + 24
            scene.arrow((x + 16, 186), (x + gap - 16, 186))
            scene.text(x + gap / 2, 168, "transpose", muted=True)
            scene.width, other = half(scene, x + gap, 0, cell, label, transposed=True)
            scene.width, y = scene.width + 2, max(y, other)
        scene.height = y + 4
        return scene

    return Drawing(title, description, layout(stacked=False), layout(stacked=True))


def softmax(scores: Sequence[Pixels]) -> list[Pixels]:
    """The weights of a list of scores, some of which may be -inf."""
    exps = [math.exp(score - max(scores)) for score in scores]
    return [e / sum(exps) for e in exps]


def mask_before_softmax(
    scores: Any,
    allowed: Any,
    *,
    words: Sequence[str] | None = None,
    digits: int = 2,
    title: str = "The mask belongs before the softmax",
) -> Drawing:
    """One query's scores, masked before the softmax (right) and after it (wrong), with the sums.

    Args:
        scores: a number for each key.
        allowed: True where the query may attend.
        words: the keys, above the scores.
        digits: decimals.
        title: what it shows.

    Raises:
        ValueError: if the lengths differ or no key is allowed.
    """
    scores = listed(scores, "scores")
    allowed = [bool(yes) for yes in listed(allowed, "allowed", len(scores))]
    words = listed(words, "words", len(scores)) if words is not None else []
    if not any(allowed):
        raise ValueError("no key is allowed: there is nothing to share the weight")
    masked = [score if yes else -math.inf for score, yes in zip(scores, allowed, strict=True)]
    right, before = softmax(masked), softmax(scores)
    wrong = [weight if yes else 0.0 for weight, yes in zip(before, allowed, strict=True)]
    forbidden = [not yes for yes in allowed]
    says = [", ".join(number(x, digits) for x in row) for row in (scores, masked, right, before, wrong)]
    description = (
        f"Scores {says[0]}. Right: the mask comes first, {says[1]}; the softmax then gives {says[2]}, which "
        f"sum to {number(sum(right), digits)}. Wrong: the softmax comes first, {says[3]}; masked afterwards, "
        f"{says[4]}, they sum to only {number(sum(wrong), digits)}."
    )

    def layout(label: Pixels, cell: Pixels, size: Pixels) -> Scene:
        width, tall = label + len(scores) * cell + 2, 32.0
        scene = Scene(width, size=size)
        y = 2.0

        def line(name: str, numbers: list[Pixels], role: Role | None, hatched: Sequence[bool]) -> None:
            """A row of cells with what was done to get it."""
            nonlocal y
            scene.text(0, y + tall / 2, name, anchor="start", muted=True)
            shades = None if role is None else [numbers]
            options: dict[str, Any] = {"masked": [hatched], "digits": digits, "shades": shades}
            scene.matrix(label, y, [numbers], cell, tall, role=role, **options)
            y += tall

        if words:
            xs = [label + (i + 0.5) * cell for i in range(len(words))]
            scene.token_row(xs, y, words, cell - 4, role=KEY)
            y += 34
        line("scores", scores, None, [False] * len(scores))
        for heading, steps in (
            ("Right: first the mask", (("mask", masked, None), ("softmax", right, WEIGHTS))),
            ("Wrong: first the softmax", (("softmax", before, WEIGHTS), ("mask", wrong, WEIGHTS))),
        ):
            scene.text(label, y + 34, heading, anchor="start", bold=True)
            y += 52
            first, second = steps
            line(first[0], first[1], first[2], forbidden if first[0] == "mask" else [False] * len(scores))
            y += 6
            line(second[0], second[1], second[2], forbidden)
            total = number(sum(second[1]), digits)
            scene.brace(label + 2, width - 4, y + 5, f"sum {total}")
            y += 22
        scene.height = y + 8
        return scene

    column = max(widest([*words, "−0.00"], 15) + 2 * PAD + 6, 60)
    return Drawing(
        title,
        description,
        layout(76, min(column, 600 / len(scores)), 15),
        layout(64, (PHONE - 66) / len(scores), 13.5),
    )


def decoder_looks_back(
    source: Sequence[str],
    target: Sequence[str],
    step: int,
    weights: Any,
    *,
    digits: int = 2,
    title: str = "A decoder that looks back",
) -> Drawing:
    """Before: all words in one vector. After: each step of the decoder reads from all states.

    Args:
        source: the words that were read.
        target: the words that are written.
        step: which of them is being written, from 0.
        weights: a number for each word of the source, at this step.
        digits: decimals of the weights.
        title: what it shows.

    Raises:
        ValueError: if there is not one weight for each word of the source, or no such step.
    """
    source, target = listed(source, "source"), listed(target, "target")
    weights = listed(weights, "weights", len(source))
    if not 0 <= step < len(target):
        raise ValueError(f"there is no step {step} among {len(target)} words")
    description = (
        f"Before: the encoder's states of {' '.join(source)} are squeezed into one vector, from which the "
        f"decoder writes {' '.join(target[: step + 1])}. After: the states stay. To write {target[step]}, "
        "the decoder's state before this step sends a query to all of them; their average, the context, "
        "enters the step. Weights: "
        f"{pairs_in_words(source, weights)}."
    )
    size, tall, height = 14.0, 30.0, 270.0
    asks: dict[str, Any] = {"role": QUERY, "width": 2}

    def encoder(scene: Scene, x: Pixels, y: Pixels, room: Pixels, strength: Strength) -> list[Pixels]:
        """The states of the words that were read; returns where their middles are."""
        places, fits = scene.places(x, room, source)
        for (place, broad), word in zip(places, source, strict=True):
            scene.token(place, y, word, broad, tall, role=KEY, strength=strength, size=fits)
        return [place for place, _ in places]

    def decoder(scene: Scene, x: Pixels, y: Pixels, room: Pixels) -> list[Pixels]:
        """The words written so far, the one being written, and empty boxes for those to come."""
        places, fits = scene.places(x, room, target)
        for i, ((place, broad), word) in enumerate(zip(places, target, strict=True)):
            if i > step:
                scene.token(place, y, "", broad, tall, strength="faint")
            else:
                strength: Strength = "full" if i == step else "pale"
                scene.token(place, y, word, broad, tall, role=QUERY, strength=strength, size=fits)
            if i:
                scene.line((place - broad / 2 - 8, y + tall / 2), (place - broad / 2, y + tall / 2))
        return [place for place, _ in places]

    def before(scene: Scene, x: Pixels, y: Pixels) -> None:
        room, middle = PHONE - 20.0, x + PHONE / 2
        scene.text(middle, y + 10, "Before: one vector for everything", bold=True)
        for place in encoder(scene, x + 10, y + 48, room, "pale"):
            scene.line((place, y + 78), (middle, y + 120))
        scene.vector(middle - 9, y + 120, [""] * 4, 18, 14, role=KEY)
        first, turn = decoder(scene, x + 10, y + 222, room)[0], y + 198
        scene.arrow((middle, y + 176), (middle, turn), (first, turn), (first, y + 220))

    def after(scene: Scene, x: Pixels, y: Pixels) -> None:
        room, rail = PHONE - 20.0, x + PHONE - 3
        centre = x + room / 2
        scene.text(x + PHONE / 2, y + 10, "After: every step looks back", bold=True)
        steps = decoder(scene, x, y + 222, room)
        below, asking = steps[step], steps[max(step - 1, 0)]  # the state before this step asks
        xs = encoder(scene, x, y + 48, room, "full")
        scene.line(
            (asking, y + 252), (asking, y + 266), (rail, y + 266), (rail, y + 30), (xs[0], y + 30), **asks
        )
        scene.text(rail - 8, y + 186, "query", anchor="end", muted=True)
        for place, weight in zip(xs, weights, strict=True):
            scene.arrow((place, y + 30), (place, y + 47), **asks)
            scene.text(place, y + 91, number(weight, digits))
            scene.line((place, y + 103), (centre, y + 146), role=WEIGHTS, width=1 + 9 * weight)
        scene.token(centre, y + 144, "context", 84, tall, role=VALUE, strength="full")
        turn = y + 198
        scene.arrow((centre, y + 174), (centre, turn), (below, turn), (below, y + 220), role=VALUE, width=2)

    wide, narrow = Scene(2 * PHONE + 40, height, size=size), Scene(PHONE, 2 * height + 20, size=size)
    before(wide, 0, 0)
    after(wide, PHONE + 40, 0)
    before(narrow, 0, 0)
    after(narrow, 0, height + 20)
    return Drawing(title, description, wide, narrow)


def causal_mask_words(
    words: Sequence[str], *, query: int | None = None, title: str = "The causal mask on real words"
) -> Drawing:
    """Who may read whom: queries are rows, keys columns, as in code; what is forbidden is hatched.

    Args:
        words: the sequence.
        query: the row in full colour; by default the last but one.
        title: what it shows.

    Raises:
        ValueError: if there are no words, or no such query.
    """
    words = listed(words, "words")
    chosen = max(len(words) - 2, 0) if query is None else query
    if not 0 <= chosen < len(words):
        raise ValueError(f"there is no query {chosen} among {len(words)}")
    may = [[s <= n for s in range(len(words))] for n in range(len(words))]
    description = (
        "A square of booleans with a row for each query and a column for each key. On and below the diagonal "
        "stands True: may attend. Above it stands False, hatched. "
        f"The row of {words[chosen]} is in full colour: it "
        f"may attend to {', '.join(words[: chosen + 1])}."
    )

    def layout(label: Pixels, cell: Pixels, size: Pixels) -> Scene:
        scene = Scene(label + len(words) * cell + 2, size=size)
        _, y = worded_matrix(
            scene,
            (0, 0),
            (label, cell),
            down=(QUERY, "queries", words),
            across=(KEY, "keys", words),
            numbers=[[""] * len(words) for _ in words],
            row=chosen,
            shades=[[0.7 * yes for yes in row] for row in may],
            masked=[[not yes for yes in row] for row in may],
        )
        scene.box(label, y + 14, 22, 22, role=WEIGHTS, shade=0.7)
        scene.text(label + 32, y + 25, "True: may attend", anchor="start")
        scene.box(label, y + 44, 22, 22, role=WEIGHTS, shade=0, masked=True)
        scene.text(label + 32, y + 55, "False: may not", anchor="start")
        scene.height = y + 70
        return scene

    def widths(size: Pixels, room: Pixels) -> tuple[Pixels, Pixels]:
        label = widest([*words, "queries"], size) + 2 * PAD + 4
        return label, min(max(widest(words, size) + 16, 54), (room - 2 - label) / len(words))

    return Drawing(title, description, layout(*widths(15, 600), 15), layout(*widths(13.5, PHONE), 13.5))
