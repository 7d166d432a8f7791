"""Drawings of the chapter on attention. Every number in them comes in as an argument."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import (
    Pixels,
    column_of,
    decimals,
    fitting,
    listed,
    number,
    plain,
    table,
    width_of,
)
from tformer_book.kit.drawings.primitives import PAD, PHONE, Scene, Strength, widest
from tformer_book.kit.drawings.roles import KEY, QUERY, VALUE, WEIGHTS, Role


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
            scene.line((x, 304), (middle, 350), role=WEIGHTS, width=1 + 10 * weight / math.fsum(weights))
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
    Z: Any,
    A: Any,
    Y: Any,
    column: int = 0,
    *,
    digits: int = 2,
    queries: str = "Q",
    step: tuple[str, str] | None = None,
    title: str = "Attention as two products of matrices",
) -> Drawing:
    """Keys times queries give the scores, a softmax the weights under them, values times weights the output.

    One query's column is in full colour. Matrices are tensors or lists of rows; a list may hold words, such
    as "2/5", in the place of numbers.

    Args:
        Q: (Dh, N), a query in each column.
        K: (Dh, S), a key in each column; drawn transposed.
        V: (Dv, S), a value in each column.
        Z: (S, N), the scores, the transposed keys times the queries.
        A: (S, N), the weights; each column sums to one.
        Y: (Dv, N), the output.
        column: which query is in full colour.
        digits: decimals of the numbers.
        queries: the name of Q, if it is drawn in other units.
        step: what makes weights of the scores, if it is not the softmax; a narrow layout has its two parts
            on two lines.
        title: what it shows.

    Raises:
        ValueError: if the shapes do not go together, or there is no such column.
    """
    step = step or ("÷ √D_{h}, softmax", "of each column")
    Q, K, V = table(Q, "Q"), table(K, "K"), table(V, "V")
    width, N, S = len(Q), len(Q[0]), len(K[0])
    table(K, "K", rows=width)
    table(V, "V", columns=S)
    Z, A, Y = table(Z, "Z", S, N), table(A, "A", S, N), table(Y, "Y", len(V), N)
    if not 0 <= column < N:
        raise ValueError(f"there is no query {column} among {N}")
    scores, weights, output = (
        ", ".join(number(value, decimals(X, digits)) for value in column_of(X, column)) for X in (Z, A, Y)
    )
    description = (
        f"First product: the transposed keys, S = {S} by Dh = {width}, times the queries, Dh by N = {N}, "
        f"{queries}, give the scores, S by N. An arrow, {plain(' '.join(step))}, leads down to the weights "
        f"A, S by N. Second product: the values, Dv = {len(V)} by S, times A give the output Y, Dv by N. "
        f"Query {column + 1} is in full colour: its scores are {scores}, its weights {weights}, "
        f"its output {output}."
    )
    names = {"Q": queries, "K^{T}Q": f"K^{{T}}{queries}"}
    transposed = [list(row) for row in zip(*K, strict=True)]
    parts: dict[str, tuple[Role | None, list[list], str, str]] = {
        "K^{T}": (KEY, transposed, "S", "D_{h}"),
        "Q": (QUERY, Q, "D_{h}", "N"),
        "K^{T}Q": (None, Z, "S", "N"),
        "A": (WEIGHTS, A, "S", "N"),
        "V": (VALUE, V, "D_{v}", "S"),
        "Y": (VALUE, Y, "D_{v}", "N"),
    }

    def grid(
        scene: Scene, name: str, x: Pixels, y: Pixels, cell: Pixels, row: Pixels, *, above: bool = True
    ) -> None:
        """One of the matrices; where it stands under another with its columns, they are not counted again."""
        role, values, down, across = parts[name]
        chosen = column if across == "N" else None
        shown = decimals(values, digits)
        scene.matrix(x, y, values, cell, row, role=role, column=chosen, chosen=role or WEIGHTS, digits=shown)
        tall, broad = len(values) * row, len(values[0]) * cell
        scene.sides(x, y, broad, tall, down, across if above else "")
        scene.text(x + broad / 2, y + tall + 16, names.get(name, name), bold=True)

    def wide() -> Scene:
        """Two lines, each read like its equation; the weights stand straight under their scores."""
        row, margin, sign = 32.0, 28.0, 58.0
        first, second = max(width, N), max(N, S)  # cells of the two places before the last
        cell = min(46.0, (684 - margin - 2 * sign) / (first + second + N))
        edge = margin + first * cell
        middle = edge + sign + second * cell / 2
        last = edge + 2 * sign + second * cell
        scene = Scene(last + N * cell + 2, size=15)

        def line(y: Pixels, names: Sequence[str], signs: Sequence[str], above: bool) -> Pixels:
            """Three matrices and two signs; returns where the line ends."""
            tall = max(len(parts[name][1]) for name in names) * row
            cells = [len(parts[name][1][0]) * cell for name in names]
            lefts = (edge - cells[0], middle - cells[1] / 2, last)
            for name, x in zip(names, lefts, strict=True):
                upper = y + (tall - len(parts[name][1]) * row) / 2
                grid(scene, name, x, upper, cell, row, above=above or name != "A")
            for x, mark in zip((edge, last - sign), signs, strict=True):
                scene.text(x + 16, y + tall / 2, mark, size=18, bold=True)
            return y + tall

        y = line(26.0, ("K^{T}", "Q", "K^{T}Q"), "·=", True)
        beneath = last + N * cell / 2
        scene.arrow((beneath, y + 30), (beneath, y + 78))
        scene.text(beneath - 14, y + 49, " ".join(step), anchor="end", muted=True)
        scene.height = line(y + 84, ("Y", "V", "A"), "=·", False) + 28
        return scene

    left = max(width, S)  # cells of the widest matrix that stands first in a narrow line

    def narrow() -> Scene:
        """One above the other: each query's column goes straight down from Q over scores and A to Y."""
        margin, sign, row = 22.0, 42.0, 28.0
        cell = min(40.0, (PHONE - margin - sign - 2) / (left + N))
        scene = Scene(PHONE, size=14)
        second = PHONE - 2 - N * cell
        edge, middle = second - sign, PHONE - 2 - N * cell / 2
        tall = max(S, width) * row
        y = 26.0
        grid(scene, "K^{T}", edge - width * cell, y + (tall - S * row) / 2, cell, row)
        scene.text(edge + 10, y + tall / 2, "·", size=18, bold=True)
        grid(scene, "Q", second, y + (tall - width * row) / 2, cell, row)
        y += tall + 36
        scene.text(edge - 8, y + S * row / 2, "=", size=18, bold=True)
        grid(scene, "K^{T}Q", second, y, cell, row, above=False)
        y += S * row + 30
        scene.arrow((middle, y), (middle, y + 44))
        scene.text(middle - 14, y + 8, step[0], anchor="end", muted=True)
        scene.text(middle - 14, y + 27, step[1], anchor="end", muted=True)
        y += 50
        tall = max(S, len(V)) * row
        grid(scene, "V", edge - S * cell, y + (tall - len(V) * row) / 2, cell, row)
        scene.text(edge + 10, y + tall / 2, "·", size=18, bold=True)
        grid(scene, "A", second, y + (tall - S * row) / 2, cell, row, above=False)
        y += tall + 36
        scene.text(edge - 8, y + len(Y) * row / 2, "=", size=18, bold=True)
        grid(scene, "Y", second, y, cell, row, above=False)
        scene.height = y + len(Y) * row + 28
        return scene

    def stacked() -> Scene:
        """For long numbers: all six one above the other."""
        row, margin = 30.0, 60.0
        cell = min(60.0, (PHONE - margin - 2) / max(left, N))
        middle = margin + N * cell / 2
        scene, y = Scene(PHONE, size=14), 26.0
        for name in ("K^{T}", "Q", "K^{T}Q", "A", "V", "Y"):
            tall = len(parts[name][1]) * row
            sign = {"Q": "·", "K^{T}Q": "=", "Y": "="}.get(name)
            if sign:
                scene.text(12, y + tall / 2, sign, size=18, bold=True)
            grid(scene, name, margin, y, cell, row, above=name != "A")
            y += tall + 58
            if name == "K^{T}Q":
                scene.arrow((middle, y - 28), (middle, y + 18))
                scene.text(middle + 14, y - 16, step[0], anchor="start", muted=True)
                scene.text(middle + 14, y + 3, step[1], anchor="start", muted=True)
                y += 24
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
    blank: str | None = None,
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
        blank: a word whose tokens are only outlined.
        **options: passed to `Scene.matrix`.
    """
    (x, y), (label, cell), tall = corner, widths, 34.0
    left, top = x + label, y + 58
    scene.text(left + len(across[2]) * cell / 2, y + 10, across[1], muted=True)
    scene.text(x + label / 2 - 2, top - 20, down[1], muted=True)

    def token(x: Pixels, y: Pixels, word: str, width: Pixels, role: Role, chosen: bool) -> None:
        strength: Strength = "faint" if word == blank else "full" if chosen else "pale"
        scene.token(x, y, word, width, role=None if word == blank else role, strength=strength)

    for i, word in enumerate(across[2]):
        token(left + (i + 0.5) * cell, top - 36, word, cell - 4, across[0], i == column)
    for i, word in enumerate(down[2]):
        token(x + label / 2 - 2, top + 2 + i * tall, word, label - 4, down[0], i == row)
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
        "Right, the code's weights, A transposed: a query in each row, a key in each column, and each row "
        f"sums to one. The weights of the query {queries[query]}, {pairs_in_words(keys, code[query])}, "
        "are in full colour in both."
    )

    def half(
        scene: Scene, x: Pixels, y: Pixels, cell: Pixels, label: Pixels, *, transposed: bool
    ) -> tuple[Pixels, Pixels]:
        """One of the two, with its upper left corner at (x, y); returns its lower right one."""
        centre = x + label + len(keys if transposed else queries) * cell / 2
        heading = "In code: A transposed" if transposed else "In the text: A"
        scene.text(centre, y + 10, heading, bold=True)
        scene.text(
            centre, y + 34, "each row sums to 1" if transposed else "each column sums to 1", muted=True
        )
        right, below = worded_matrix(
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
        return max(right, centre + 0.55 * width_of(heading, scene.size)), below

    def layout(*, stacked: bool) -> Scene:
        size = 14.0 if stacked else 15.0
        words = [*queries, *keys]
        label = widest([*words, "queries"], size) + 2 * PAD + 2
        most = max(len(queries), len(keys))
        room = PHONE - 4 - label if stacked else (724 - 76 - 2 * label) / 2
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
    return [e / math.fsum(exps) for e in exps]


def tempered(
    keys: Sequence[str],
    scores: Any,
    temperatures: Sequence[Pixels],
    *,
    digits: int = 2,
    title: str = "One list of scores at several temperatures",
) -> Drawing:
    """The weights that softmax makes of the same scores, a row of bars for each temperature.

    Args:
        keys: what the scores belong to.
        scores: a number for each key.
        temperatures: what the scores are divided by, a row each; infinity gives equal weights.
        digits: decimals of the weights.
        title: what it shows.

    Raises:
        ValueError: if the lengths differ, there is no temperature, or one is not above 0.
    """
    keys, scores = listed(keys, "keys"), [float(z) for z in listed(scores, "scores", len(keys))]
    if min(listed(temperatures, "temperatures")) <= 0:
        raise ValueError(f"a temperature lies above 0, got {min(temperatures)}")
    rows = [softmax([score / tau for score in scores]) for tau in temperatures]
    named = ["∞" if math.isinf(tau) else f"{tau:g}" for tau in temperatures]
    description = (
        f"Scores, {pairs_in_words(keys, scores)}, divided by a temperature before the softmax. Weights: "
        + "; ".join(
            f"at {name}, {', '.join(number(weight, digits) for weight in row)}"
            for name, row in zip(named, rows, strict=True)
        )
        + ". Bars are as high as the weights: at a low temperature one key has nearly all, at a high one all "
        "have the same."
    )

    def layout(label: Pixels, column: Pixels, size: Pixels) -> Scene:
        xs = [label + (i + 0.5) * column for i in range(len(keys))]
        scene = Scene(label + len(keys) * column, size=size)
        scene.token_row(xs, 2, keys, column - 8, role=KEY)
        scene.text(0, 17, "keys", anchor="start", muted=True)
        for i, (name, row) in enumerate(zip(named, rows, strict=True)):
            base = 104 + 84 * i
            scene.text(0, base - 22, f"τ = {name}", anchor="start", bold=True)
            for x, weight in zip(xs, row, strict=True):
                scene.bar(x, base, 0.5 * column, 56 * weight, WEIGHTS)
                scene.text(x, base + 13, number(weight, digits))
            scene.line((label, base), (scene.width, base))
        scene.height = 104 + 84 * (len(rows) - 1) + 24
        return scene

    column = min(84, 560 / len(keys))
    return Drawing(title, description, layout(86, column, 15), layout(62, (PHONE - 62) / len(keys), 13.5))


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
        f"sum to {number(math.fsum(right), digits)}. Wrong: the softmax comes first, {says[3]}; masked "
        f"afterwards, {says[4]}, they sum to only {number(math.fsum(wrong), digits)}."
    )

    unmasked = [False] * len(scores)
    start = ("scores", scores, None, unmasked)
    orders: dict[str, tuple[tuple[str, list[Pixels], Role | None, list[bool]], ...]] = {
        "Right: first the mask": (
            start,
            ("mask", masked, None, forbidden),
            ("softmax", right, WEIGHTS, forbidden),
        ),
        "Wrong: first the softmax": (
            start,
            ("softmax", before, WEIGHTS, unmasked),
            ("mask", wrong, WEIGHTS, forbidden),
        ),
    }

    def order(scene: Scene, x: Pixels, y: Pixels, label: Pixels, cell: Pixels, heading: str) -> Pixels:
        """What is done to the scores, row by row, and the sum; returns where it ends below."""
        left, across, tall = x + label, len(scores) * cell, 32.0
        scene.text(left, y + 10, heading, anchor="start", bold=True)
        y += 28
        if words:
            xs = [left + (i + 0.5) * cell for i in range(len(words))]
            scene.token_row(xs, y, words, cell - 4, role=KEY)
            y += 34
        for name, numbers, role, hatched in orders[heading]:
            scene.text(x, y + tall / 2, name, anchor="start", muted=True)
            shades = None if role is None else [numbers]
            options: dict[str, Any] = {"masked": [hatched], "digits": digits, "shades": shades}
            scene.matrix(left, y, [numbers], cell, tall, role=role, **options)
            y += tall + 6
        scene.brace(
            left + 2, left + across - 2, y - 1, f"sum {number(math.fsum(orders[heading][-1][1]), digits)}"
        )
        return y + 30

    def layout(label: Pixels, cell: Pixels, size: Pixels, *, stacked: bool) -> Scene:
        across, end = label + len(scores) * cell + 2, 0.0
        scene = Scene(across if stacked else 2 * across + 36, size=size)
        for i, heading in enumerate(orders):
            x, y = (0.0, end and end + 20) if stacked else (i * (across + 36), 0.0)
            end = order(scene, x, y, label, cell, heading)
        scene.height = end
        return scene

    column = max(widest([*words, "−0.00"], 15) + 2 * PAD, 50)
    return Drawing(
        title,
        description,
        layout(72, min(column, 268 / len(scores)), 15, stacked=False),
        layout(64, (PHONE - 66) / len(scores), 13.5, stacked=True),
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
    last = target[step - 1] if step else "(begin)"
    now, ago = f"{step + 1}", f"{step}"
    description = (
        f"Before: the encoder's states of {' '.join(source)} are squeezed into one vector, which every step "
        f"of the decoder gets; it has written {' '.join(target[: step + 1])}. After: the states h stay. Step "
        f"{now} writes {target[step]}. The decoder's state before it, u{ago}, sends a query to all of them; "
        f"their average with the weights A is the context, c{now}. It goes to two places. One is the GRU, "
        f"which makes the next state, u{now}, of u{ago}, the context and e{now}, the embedding of the word "
        f"written last, {last}. The other is the map Wo, which makes the logits of u{now} and the context. "
        f"Weights: {pairs_in_words(source, weights)}."
    )
    size, tall, height = 14.0, 30.0, 352.0
    asks: dict[str, Any] = {"role": QUERY, "width": 2}

    def before(scene: Scene, x: Pixels, y: Pixels) -> None:
        room, middle = PHONE - 20.0, x + PHONE / 2
        scene.text(middle, y + 10, "Before: one vector for everything", bold=True)
        places, fits = scene.places(x + 10, room, source)
        for (place, broad), word in zip(places, source, strict=True):
            scene.token(place, y + 48, word, broad, tall, role=KEY, size=fits)
            scene.line((place, y + 78), (middle, y + 132))
        scene.vector(middle - 9, y + 132, [""] * 4, 18, 14, role=KEY)
        turn, row, below = y + 208, y + 234, y + 298
        scene.line((middle, y + 188), (middle, turn), opacity=0.8)
        places, fits = scene.places(x + 10, room, target)
        for i, ((place, broad), word) in enumerate(zip(places, target, strict=True)):
            if i > step:
                scene.token(place, row, "", 44, tall, strength="faint")
                continue
            strength: Strength = "full" if i == step else "pale"
            scene.token(place, row, f"u_{{{i + 1}}}", 44, tall, role=QUERY)
            scene.token(place, below, word, broad, tall, role=QUERY, strength=strength, size=fits)
            scene.arrow((middle, turn), (place, turn), (place, row - 2))
            scene.arrow((place, row + tall), (place, below - 2))
            if i:
                scene.arrow((places[i - 1][0] + 22, row + tall / 2), (place - 23, row + tall / 2))

    def after(scene: Scene, x: Pixels, y: Pixels) -> None:
        scene.text(x + PHONE / 2, y + 10, "After: every step looks back", bold=True)
        places, fits = scene.places(x + 48, PHONE - 48, source)
        state, gru, new, out = x + 24, x + 118, x + 212, x + PHONE - 34
        context, turn, row = x + 48 + (PHONE - 48) / 2, y + 200, y + 226
        middle, below = row + tall / 2, row + tall
        scene.line((state, row), (state, y + 32), (places[-1][0], y + 32), **asks)
        scene.text(state + 8, y + 186, "query", anchor="start", muted=True)
        for s, ((place, broad), word, weight) in enumerate(zip(places, source, weights, strict=True)):
            scene.arrow((place, y + 32), (place, y + 47), **asks)
            scene.token(place, y + 48, word, broad, tall, role=KEY, strength="full", size=fits)
            scene.text(place, y + 90, f"h_{{{s + 1}}}")
            scene.line((place, y + 120), (context, y + 156), role=WEIGHTS, width=1 + 9 * weight)
            share = number(weight, digits)
            scene.text(place, y + 109, share if len(source) > 3 else f"A_{{{s + 1}{now}}} = {share}")
        scene.token(context, y + 154, f"c_{{{now}}}", 44, tall, role=VALUE, strength="full")
        scene.text(context + 28, y + 169, "context", anchor="start", muted=True)
        for place in (gru, out):
            scene.arrow(
                (context, y + 184), (context, turn), (place, turn), (place, row - 1), role=VALUE, width=2
            )
        scene.token(state, row, f"u_{{{ago}}}", 44, tall, role=QUERY, strength="full")
        scene.box(gru - 30, row, 60, tall, "GRU", strength="plain")
        scene.token(new, row, f"u_{{{now}}}", 44, tall, role=QUERY)
        scene.box(out - 30, row, 60, tall, "W_{o}", strength="plain")
        for start, end in ((state + 22, gru - 31), (gru + 30, new - 23), (new + 22, out - 31)):
            scene.arrow((start, middle), (end, middle))
        scene.arrow((gru, y + 298), (gru, below + 1))
        scene.arrow((out, below), (out, y + 297))
        scene.token(gru, y + 298, f"e_{{{now}}}", 44, tall, strength="pale")
        scene.text(gru, y + 341, f"of {last}", muted=True)
        broad = min(max(widest([target[step]], size) + 2 * PAD, 60), 2 * (x + PHONE - out))
        scene.token(out, y + 298, target[step], broad, tall, role=QUERY, strength="full")
        scene.text(out - 8, y + 277, "logits", anchor="end", muted=True)

    wide, narrow = Scene(2 * PHONE + 40, height, size=size), Scene(PHONE, 2 * height + 20, size=size)
    before(wide, 0, 0)
    after(wide, PHONE + 40, 0)
    before(narrow, 0, 0)
    after(narrow, 0, height + 20)
    return Drawing(title, description, wide, narrow)


def context_swap(
    first: Sequence[str],
    second: Sequence[str],
    step: int,
    *,
    title: str = "One step gets another sequence's context",
) -> Drawing:
    """Two sequences are written; one step of the first gets the second's context, and writes its symbol.

    Args:
        first: the symbols that the first sequence's steps would write.
        second: those of the second.
        step: which step of the first gets the context of the same step of the second, from 0.
        title: what it shows.

    Raises:
        ValueError: if the lengths differ, or there is no such step.
    """
    first = listed(first, "first")
    second = listed(second, "second", len(first))
    if not 0 <= step < len(first):
        raise ValueError(f"there is no step {step} among {len(first)} symbols")
    description = (
        f"Two sequences, each with a context at every step. The first has written {' '.join(first[:step])}. "
        f"At step {step + 1} its own context is taken away, and that of step {step + 1} of the second "
        f"sequence, which writes {' '.join(second)}, enters instead. The step keeps its own state. "
        f"It writes {second[step]} in place of {first[step]}, which is crossed out."
    )
    label, box, tall = 66.0, 36.0, 28.0
    column = (PHONE - label) / len(first)
    xs = [label + (i + 0.5) * column for i in range(len(first))]
    scene = Scene(PHONE, 256, size=14)

    def struck(x: Pixels, y: Pixels, half: Pixels) -> None:
        scene.line((x - half, y + 6), (x + half, y - 6), width=2)

    def contexts(y: Pixels, *, used: bool) -> None:
        scene.text(0, y + tall / 2, "context", anchor="start", muted=True)
        for i, x in enumerate(xs if used else xs[: step + 1]):
            chosen, read = i == step, used or i < step
            strength: Strength = "plain" if not read else "full" if chosen else "pale"
            scene.token(x, y, f"c_{{{i + 1}}}", box, tall, role=VALUE, strength=strength)
            if read:
                scene.arrow((x, y + tall), (x, y + tall + 20), role=VALUE, width=2 if chosen else 1)
            else:
                struck(x, y + tall / 2, 14)

    def symbols(y: Pixels, words: Sequence[str], chosen: int) -> None:
        scene.text(0, y + tall / 2, "written", anchor="start", muted=True)
        for i, (x, word) in enumerate(zip(xs, words, strict=False)):
            strength: Strength = "full" if i == chosen else "pale"
            scene.token(x, y, word, box, tall, role=QUERY, strength=strength, bold=i == chosen)

    scene.text(0, 10, "First sequence", anchor="start", bold=True)
    contexts(24, used=False)
    symbols(74, [*first[:step], second[step]], step)
    beside, half = xs[step] + box / 2 + 12, width_of(first[step], scene.size) / 2 + 4
    scene.text(beside, 88, first[step], muted=True)  # what it would have written
    struck(beside, 88, half)
    if step:
        scene.arrow((xs[step - 1] + box / 2, 88), (xs[step] - box / 2 - 1, 88))
        scene.text((xs[step - 1] + xs[step]) / 2, 112, f"u_{{{step}}}")
    scene.text(0, 160, "Second sequence", anchor="start", bold=True)
    contexts(174, used=True)
    symbols(224, second, -1)
    scene.arrow((xs[step], 174), (xs[step], 104), role=VALUE, width=3)
    scene.text(xs[step] + 12, 132, "instead", anchor="start", muted=True)
    return Drawing(title, description, scene)


def mask_legend(scene: Scene, x: Pixels, y: Pixels, meaning: tuple[str, str]) -> None:
    """What the two kinds of cell in a mask mean, with its upper left corner at (x, y)."""
    scene.box(x, y, 22, 22, role=WEIGHTS, shade=0.7)
    scene.text(x + 32, y + 11, f"True: {meaning[0]}", anchor="start")
    scene.box(x, y + 30, 22, 22, role=WEIGHTS, shade=0, masked=True)
    scene.text(x + 32, y + 41, f"False: {meaning[1]}", anchor="start")


def masks(
    panels: Mapping[str, tuple[Sequence[str], Any]],
    *,
    pad: str = "[pad]",
    chosen: tuple[str, int] | None = None,
    sides: tuple[str, str] = ("query", "key"),
    meaning: tuple[str, str] = ("may attend", "may not"),
    title: str = "Masks on real words",
) -> Drawing:
    """Who may read whom, a square for each mask: queries are rows, keys columns, as in code.

    Args:
        panels: for each heading the words, and a boolean for each query (row) and key (column), True where
            the query may read the key.
        pad: the word that stands for no word; its tokens are only outlined.
        chosen: the heading and the row of a query in full colour, and whose keys the description names.
        sides: what a row stands for, and a column.
        meaning: what True says of the two, and what False says.
        title: what it shows.

    Raises:
        ValueError: if there are no panels, a mask is not a square of its words, or no such query is there.
    """
    if not panels:
        raise ValueError("panels: expected at least one, got 0")
    may: dict[str, list[list[bool]]] = {}
    for name, (words, mask) in panels.items():
        rows = listed(mask, f"mask {name!r}", len(listed(words, f"words of {name!r}")))
        may[name] = [[bool(yes) for yes in listed(row, f"mask {name!r}", len(words))] for row in rows]
    row_of = {} if chosen is None else {chosen[0]: chosen[1]}
    for name, n in row_of.items():
        if name not in may or not 0 <= n < len(may[name]):
            raise ValueError(f"there is no query {n} in {name!r} among {', '.join(map(repr, may))}")

    rows_of, columns_of = ("queries" if side == "query" else f"{side}s" for side in sides)

    def told(name: str) -> str:
        words = panels[name][0]

        def reads(row: Sequence[bool]) -> str:
            return ", ".join(word for word, yes in zip(words, row, strict=True) if yes) or "nothing"

        if all(row == may[name][0] for row in may[name]):
            every = "each query may attend to" if sides[0] == "query" else "each row is True at"
            return f"{name}, {' '.join(words)}: {every} {reads(may[name][0])}."
        said = (f"{word} to {reads(row)}" for word, row in zip(words, may[name], strict=True))
        return f"{name}: {'; '.join(said)}."

    description = (
        f"Squares of booleans with a row for each {sides[0]} and a column for each {sides[1]}. Filled cells "
        f"are True, {meaning[0]}, hatched ones False. {' '.join(map(told, panels))}"
    )

    def square(scene: Scene, x: Pixels, y: Pixels, label: Pixels, cell: Pixels, name: str) -> Pixels:
        """One mask with its heading; returns where it ends below."""
        words = panels[name][0]
        scene.text(x + label + len(words) * cell / 2, y + 10, name, bold=True)
        _, end = worded_matrix(
            scene,
            (x, y + 24),
            (label, cell),
            down=(QUERY, rows_of, words),
            across=(KEY, columns_of, words),
            numbers=[[""] * len(words) for _ in words],
            row=row_of.get(name),
            blank=pad,
            shades=[[0.7 * yes for yes in row] for row in may[name]],
            masked=[[not yes for yes in row] for row in may[name]],
        )
        return end

    def layout(size: Pixels, room: Pixels, *, stacked: bool) -> Scene:
        every = [word for words, _ in panels.values() for word in words]
        across = [len(words) for words, _ in panels.values()]
        label, gap = widest([*every, rows_of], size) + 2 * PAD, 28.0
        beside = 1 if stacked else len(panels)
        columns = max(across) if stacked else sum(across)
        free = room - 2 - (beside - 1) * gap - beside * label
        cell = min(max(widest(every, size) + 2 * PAD, 50), free / columns)
        scene, x, y, lowest = Scene(room, size=size), 0.0, 0.0, 0.0
        for name, many in zip(panels, across, strict=True):
            lowest = max(lowest, square(scene, x, y, label, cell, name))
            if stacked:
                y = lowest + 26
            else:
                x += label + many * cell + gap
        scene.width = label + max(across) * cell + 2 if stacked else x - gap + 2
        mask_legend(scene, label, lowest + 14, meaning)
        scene.height = lowest + 70
        return scene

    return Drawing(title, description, layout(15, 720, stacked=False), layout(13.5, PHONE, stacked=True))


def letter_memory(
    letters: Sequence[str],
    digits: Sequence,
    asked: str,
    weights: Any,
    answer: Any,
    *,
    title: str = "A lookup that learns",
) -> Drawing:
    """A memory of letters, each with its digit; one letter is asked, and a digit answers.

    Args:
        letters: the letters in the memory, the keys.
        digits: the digit of each, its value.
        asked: one of the letters, the query.
        weights: how much of each digit goes into the answer.
        answer: the digit that is answered.
        title: what it shows.

    Raises:
        ValueError: if the lengths differ, a letter stands twice in the memory, the one asked does not stand
            there, or a weight is negative.
    """
    letters = listed(letters, "letters")
    digits = [number(digit, 0) for digit in listed(digits, "digits", len(letters))]
    weights, answer = listed(weights, "weights", len(letters)), number(answer, 0)
    if len(set(letters)) < len(letters):
        raise ValueError(f"each letter stands once in the memory, got {letters}")
    if asked not in letters:
        raise ValueError(f"there is no letter {asked!r} among {letters}")
    if min(weights) < 0 or max(weights) == 0:
        raise ValueError(f"weights must be at least 0 and not all 0, got {weights}")
    chosen = letters.index(asked)
    memory = ", ".join(f"{letter} {digit}" for letter, digit in zip(letters, digits, strict=True))
    description = (
        f"A memory of letters, each with a digit: {memory}. The letter {asked} is asked; the map Wq makes "
        "the query q of it. The map Wk makes a key of each letter. Query and keys are compared: scores, and "
        f"by a softmax weights, {pairs_in_words(letters, weights)}. The map Wv makes a value of each digit. "
        f"The average of the values with these weights is y, and its largest logit answers {answer}."
    )

    def layout(box: Pixels, map_: Pixels, bar: Pixels, gap: Pixels, size: Pixels) -> Scene:
        """A row for each letter: keys and weights come from the left, values from the right."""
        broad, row, top = box + 6, 36.0, 146.0
        last = top + len(letters) * row
        widths = (box, map_, broad, broad, 30, bar, broad, map_, box)
        lefts = [sum(widths[:i]) + i * gap for i in range(len(widths))]
        letter, to_key, key, score, soft, weight, value, to_value, digit = (
            left + width / 2 for left, width in zip(lefts, widths, strict=True)
        )
        scene = Scene(lefts[-1] + box, last + 106, size=size)

        def tall_map(x: Pixels, name: str) -> None:
            scene.box(x - map_ / 2, top, map_, last - top - 6, name, strength="plain")

        scene.token(key, 0, asked, box, role=QUERY, strength="full", bold=True)
        scene.text(key - box / 2 - 8, 15, "asked", anchor="end", muted=True)
        scene.box(key - map_ / 2, 44, map_, 28, "W_{q}", strength="plain")
        scene.token(key, 86, "q", broad, role=QUERY, strength="full")
        scene.line((key, 30), (key, 43))
        scene.line((key, 72), (key, 85))
        tap = key + broad / 2 + gap / 2  # where the query meets each key
        scene.line((key + broad / 2, 101), (tap, 101), (tap, last - 21), role=QUERY, width=2)
        tall_map(to_key, "W_{k}")
        tall_map(to_value, "W_{v}")
        scene.box(soft - 15, top, 30, last - top - 6, "", radius=4)
        for i, sign in enumerate("softmax"):
            scene.text(soft, (top + last - 6) / 2 + (i - 3) * 17, sign)
        for i, (name, number_, share) in enumerate(zip(letters, digits, weights, strict=True)):
            y, strong = top + i * row + 15, "full" if i == chosen else "pale"
            options: dict[str, Any] = {"strength": strong}
            scene.token(letter, y - 15, name, box, role=KEY, bold=True, **options)
            scene.token(key, y - 15, f"k_{{{i + 1}}}", broad, role=KEY, **options)
            scene.text(score, y, f"z_{{{i + 1}}}")
            scene.box(
                lefts[5], y - 7, 1 + 0.4 * bar * share / max(weights), 14, role=WEIGHTS, strength="full"
            )
            scene.text(lefts[5] + bar, y, number(share), anchor="end")
            scene.token(value, y - 15, f"v_{{{i + 1}}}", broad, role=VALUE, **options)
            scene.token(digit, y - 15, number_, box, role=VALUE, bold=True, **options)
            ends = [(letter + box / 2, to_key - map_ / 2), (to_key + map_ / 2, key - broad / 2)]
            ends += [(key + broad / 2, tap), (digit - box / 2, to_value + map_ / 2)]
            ends += [(to_value - map_ / 2, value + broad / 2), (score + 12, soft - 15)]
            for start, end in ends:
                scene.line((start, y), (end, y))
        heads = (
            ("letters", letter),
            ("scores", score + 5),
            ("weights", weight),
            ("values", value),
            ("digits", digit),
        )
        for name, x in heads:
            half = width_of(name, size) / 2
            scene.text(min(max(x, half), scene.width - half), top - 14, name, muted=True)
        scene.text(key, top - 14, "keys", muted=True)
        scene.arrow((value, last - 4), (value, last + 22), role=VALUE, width=2)
        scene.text(value - 12, last + 9, "average, by weight", anchor="end", muted=True)
        scene.token(value, last + 24, "y", broad, role=VALUE, strength="full")
        scene.arrow((value, last + 54), (value, last + 74))
        scene.text(value - 12, last + 63, "largest logit", anchor="end", muted=True)
        scene.token(value, last + 76, answer, box, role=VALUE, strength="full", bold=True)
        return scene

    return Drawing(title, description, layout(46, 54, 104, 22, 15), layout(26, 26, 58, 5, 13))


def pushed_scores(
    values: Any,
    weights: Any,
    gradient: Any,
    names: Sequence[str] | None = None,
    *,
    digits: int = 2,
    title: str = "What a score learns from an error",
) -> Drawing:
    """Which scores descent pushes up, and how far: those of the values on the side to which it wants to move.

    The output y is the average of the values. The line through it at a right angle to the gradient g parts
    the values whose score goes up from those whose score goes down. A push is A_s times the distance of v_s
    from that line, times the length of g, which lengthens all pushes alike.

    Args:
        values: (S, 2), a point in the plane for each key.
        weights: a number for each; together one.
        gradient: two numbers, that of the loss with respect to y.
        names: what the values are called; by default v1, v2 and so on.
        digits: decimals of the weights.
        title: what it shows.

    Raises:
        ValueError: if the lengths differ, the weights are negative or do not sum to one, the gradient is
            zero, or two points are too close together to be drawn.
    """
    points = [(float(x), float(y)) for x, y in table(values, "values", columns=2)]
    weights = listed(weights, "weights", len(points))
    g = [float(part) for part in listed(gradient, "gradient", 2)]
    called = [f"v_{{{s + 1}}}" for s in range(len(points))] if names is None else list(names)
    listed(called, "names", len(points))
    if min(weights) < 0 or abs(math.fsum(weights) - 1) > 1e-3:
        raise ValueError(f"weights must be at least 0 and sum to one, got {weights}")
    if math.hypot(*g) == 0:
        raise ValueError("the gradient is zero: it pushes no score")
    output = tuple(math.fsum(a * point[i] for a, point in zip(weights, points, strict=True)) for i in (0, 1))
    n = (-g[0] / math.hypot(*g), -g[1] / math.hypot(*g))  # where the output should go
    beyond = [(x - output[0]) * n[0] + (y - output[1]) * n[1] for x, y in points]  # distance from the line
    pushes = [a * d for a, d in zip(weights, beyond, strict=True)]
    signs = [0 if abs(p) <= 1e-9 * max(map(abs, beyond)) else 1 if p > 0 else -1 for p in pushes]
    most = max(map(abs, pushes)) or 1.0

    def told(sign: int) -> str:
        """The names of those that are pushed to one side."""
        return ", ".join(plain(name) for name, s in zip(called, signs, strict=True) if s == sign) or "none"

    by_push = sorted(range(len(points)), key=lambda s: -abs(pushes[s]))
    description = (
        f"A plane with the values as points and their average, the output y, from which an arrow, -g, shows "
        "where descent wants it to go. The line through y at a right angle to the arrow parts the values. "
        f"Those on the arrow's side have their scores pushed up: {told(1)}. Those on the other side, down: "
        f"{told(-1)}. A push is as strong as the weight times the distance from the line; from the strongest "
        f"to the weakest: {', '.join(plain(called[s]) for s in by_push)}. "
        f"Weights, {pairs_in_words([plain(name) for name in called], weights)}."
    )
    # The arrow has one length, a third of the points' extent: its direction is what counts.
    extent = max(math.hypot(x - a, y - b) for x, y in points for a, b in points)
    tip, end = (
        (output[0] + share * extent * n[0], output[1] + share * extent * n[1]) for share in (0.3, 0.38)
    )

    def plane(scene: Scene, x: Pixels, y: Pixels, width: Pixels, height: Pixels) -> None:
        """The points in a frame with its upper left corner at (x, y)."""
        size = scene.size
        broad, tall = max(widest(called, size) + 12, 30), 28.0
        spots = [*points, output, tip, end]
        low, high = ([f(spot[i] for spot in spots) for i in (0, 1)] for f in (min, max))
        room = (width - broad - 16, height - tall - 16)
        scale = min(room[i] / max(high[i] - low[i], 1e-9) for i in (0, 1))

        def at(spot: Sequence[Pixels]) -> tuple[Pixels, Pixels]:
            across, up = (scale * (spot[i] - (low[i] + high[i]) / 2) for i in (0, 1))
            return x + width / 2 + across, y + height / 2 - up

        places, centre = [at(point) for point in points], at(output)
        known = list(zip([*called, "y"], [*places, centre], strict=True))
        for i, (one, here) in enumerate(known):
            for other, there in known[:i]:
                if abs(here[0] - there[0]) < broad + 2 and abs(here[1] - there[1]) < tall + 2:
                    raise ValueError(f"{plain(other)} and {plain(one)} are too close together to be drawn")
        dx, dy = n[0], -n[1]  # on the page, y goes down
        corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
        side = [(a - centre[0]) * dx + (b - centre[1]) * dy for a, b in corners]
        region, edge = [], []
        for i, corner in enumerate(corners):
            j = (i + 1) % 4
            if side[i] >= 0:
                region.append(corner)
            if (side[i] >= 0) != (side[j] >= 0):
                share = side[i] / (side[i] - side[j])
                (a, b), (c, d) = corner, corners[j]
                edge.append((a + share * (c - a), b + share * (d - b)))
                region.append(edge[-1])
        scene.area(*region)
        scene.line(*corners, corners[0], width=1, opacity=0.25)

        def clear(a: Pixels, b: Pixels, far: Pixels) -> tuple[Pixels, Pixels]:
            """Where a line along the arrow leaves the token at (a, b); it stays there if it ends within."""
            out = min(broad / 2 / max(abs(dx), 1e-9), tall / 2 / max(abs(dy), 1e-9)) + 1
            step = math.copysign(min(out, abs(far)), far)
            return a + step * dx, b + step * dy

        for crossing in edge:
            away = math.dist(crossing, centre)
            share = (min(broad, tall) / 2 + 3) / away
            near = [c + share * (e - c) for c, e in zip(centre, crossing, strict=True)]
            scene.line(crossing, (near[0], near[1]), width=2, opacity=0.8)
        for (a, b), far in zip(places, beyond, strict=True):
            start, foot = clear(a, b, -far * scale), (a - far * scale * dx, b - far * scale * dy)
            if math.dist(start, foot) > 1:
                scene.line(start, foot, width=1, dashed=True)
        head = at(tip)
        scene.arrow(clear(*centre, math.dist(head, centre)), head, width=3)
        beside = [(head[0] + 22 * a, head[1] + 17 * b) for a, b in ((dx, dy), (-dy, dx), (dy, -dx))]
        scene.text(*max(beside, key=lambda spot: min(math.dist(spot, place) for place in places)), "−g")
        for name, (a, b), sign in zip(called, places, signs, strict=True):
            strength: Strength = "full" if sign > 0 else "pale"
            options: dict[str, Any] = {"role": VALUE, "strength": strength, "radius": tall / 2}
            scene.box(a - broad / 2, b - tall / 2, broad, tall, name, **options)
        left, upper = centre[0] - broad / 2, centre[1] - tall / 2
        scene.box(left, upper, broad, tall, "y", radius=tall / 2, bold=True)

    def strip(scene: Scene, x: Pixels, y: Pixels, label: Pixels, cell: Pixels) -> Pixels:
        """Name, weight and push of each value; returns where it ends below."""
        xs = [x + label + (s + 0.5) * cell for s in range(len(points))]
        right, broad = xs[-1] + cell / 2, min(max(widest(called, scene.size) + 12, 30), cell - 4)
        for at, name, sign in zip(xs, called, signs, strict=True):
            strength: Strength = "full" if sign > 0 else "pale"
            scene.box(at - broad / 2, y, broad, 28, name, role=VALUE, strength=strength, radius=14)
        base, middle = y + 88, y + 176
        for at, weight, push, sign in zip(xs, weights, pushes, signs, strict=True):
            scene.bar(at, base, 0.5 * cell, 44 * weight / max(weights), WEIGHTS)
            scene.text(at, base + 13, number(weight, digits))
            length = 52 * push / most
            if sign:
                thick = min(3.0, max((0.6 * abs(length) - 4) / 2.2, 0.5))
                scene.arrow((at, middle), (at, middle - length), width=thick)
        for level in (base, middle):
            scene.line((x + label, level), (right, level))
        for words, level in (("weight", base - 20), ("score up", middle - 28), ("score down", middle + 28)):
            scene.text(x, level, words, anchor="start", muted=True)
        return middle + 56

    def layout(size: Pixels, *, stacked: bool) -> Scene:
        label = widest(["score down"], size) + 8
        scene = Scene(PHONE if stacked else 688, size=size)
        if stacked:
            plane(scene, 0, 0, PHONE, 270)
            scene.height = strip(scene, 0, 288, label, (PHONE - label) / len(points))
        else:
            width = 340.0
            cell = min((scene.width - width - 28 - label) / len(points), 52)
            scene.width = width + 28 + label + len(points) * cell
            scene.height = 270
            plane(scene, 0, 0, width, scene.height)
            strip(scene, width + 28, 14, label, cell)
        return scene

    return Drawing(title, description, layout(15, stacked=False), layout(13.5, stacked=True))
