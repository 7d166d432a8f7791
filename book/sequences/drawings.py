"""Drawings of the chapter on sequence modelling. Every number in them comes in as an argument."""

import math
from collections.abc import Sequence
from typing import Any

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, column_of, decimals, listed, number, table
from tformer_book.kit.drawings.primitives import PAD, PHONE, Scene, Strength, widest
from tformer_book.kit.drawings.roles import KEY, QUERY, VALUE, WEIGHTS, Role

SPACE = "␣"  # how a space is shown


def seen(token: str) -> str:
    """A token as it is drawn: a space is a sign of its own."""
    return token.replace(" ", SPACE)


def probable(value: float) -> str:
    """A probability as it is written: with three decimals where two would say too little."""
    return number(value, 2 if value >= 0.1 else 3)


def shifted_guesses(
    tokens: Sequence[str], probabilities: Any, *, title: str = "Each token is guessed from those before it"
) -> Drawing:
    """What is read, what comes next, the probability that it was given, and what it costs in bits.

    Args:
        tokens: the text; the first token is only read, the last only guessed.
        probabilities: p(token n + 1 | tokens 1..n), one number less than there are tokens.
        title: what it shows.

    Raises:
        ValueError: if the lengths differ, or a probability is not above 0 and at most 1.
    """
    tokens = [seen(token) for token in listed(tokens, "tokens")]
    p = listed(probabilities, "probabilities", len(tokens) - 1)
    for value in p:
        if not 0 < value <= 1:
            raise ValueError(f"a probability lies above 0 and is at most 1, got {value}")
    read, wanted = tokens[:-1], tokens[1:]
    bits = [abs(math.log2(value)) for value in p]
    said = "; ".join(
        f"after {before}, {after} has probability {probable(value)} and costs {number(cost, 1)} bits"
        for before, after, value, cost in zip(read, wanted, p, bits, strict=True)
    )
    description = (
        f"Two rows of tokens: what is read, {' '.join(read)}, and below it, moved by one, what comes next, "
        f"{' '.join(wanted)}. Under each stand the probability that it was given and a bar as high as its "
        f"bits. {said[0].upper()}{said[1:]}. All together: {number(math.fsum(bits), 1)} bits."
    )

    def layout(label: Pixels, column: Pixels, size: Pixels) -> Scene:
        xs = [label + (n + 0.5) * column for n in range(len(p))]
        box = min(column - 4, 44)
        scene = Scene(label + len(p) * column, size=size)
        scene.token_row(xs, 2, read, box, role=KEY)
        scene.token_row(xs, 52, wanted, box, role=QUERY, strength="full")
        for x, value, cost in zip(xs, p, bits, strict=True):
            scene.arrow((x, 34), (x, 50))
            scene.text(x, 98, probable(value), size=size - 0.5)
            scene.bar(x, 176, 0.5 * column, 56 * cost / max(*bits, 1e-9), QUERY)
            scene.text(x, 190, number(cost, 1))
        scene.line((label, 176), (label + len(p) * column, 176))
        for name, y in {"read": 17, "next": 67, "p": 98, "bits": 190}.items():
            scene.text(0, y, name, anchor="start", muted=True)
        scene.height = 204
        return scene

    return Drawing(
        title,
        description,
        layout(56, min(64, 600 / len(p)), 15),
        layout(38, (PHONE - 38) / len(p), 13.5),
    )


def merged(tokens: list[str], pair: tuple[str, str]) -> tuple[list[str], list[int]]:
    """The tokens with each occurrence of the pair joined, left to right, and where the joined ones stand."""
    found: list[str] = []
    new: list[int] = []
    n = 0
    while n < len(tokens):
        if tuple(tokens[n : n + 2]) == tuple(pair):
            new.append(len(found))
            found.append("".join(pair))
            n += 2
        else:
            found.append(tokens[n])
            n += 1
    return found, new


def merge_rows(
    words: Sequence[str],
    merges: Sequence[tuple[str, str]],
    *,
    title: str = "Byte-pair encoding, merge by merge",
) -> Drawing:
    """Words cut into letters, and what each merge, in its order, makes of them; the joined token in colour.

    Args:
        words: some words, each drawn as a ladder of rows.
        merges: the pairs, in the order in which they were learned.
        title: what it shows.

    Raises:
        ValueError: if there is no word, an empty one, or no merge.
    """
    words = [word for word in listed(words, "words") if listed(word, "a word's letters")]
    merges = [tuple(listed(pair, "a merge", 2)) for pair in listed(merges, "merges")]
    ladders = []
    for word in words:
        tokens: list[str] = list(word)
        rows: list[tuple[list[str], list[int]]] = [(tokens, [])]
        for pair in merges:
            tokens, new = merged(tokens, pair)
            rows.append((tokens, new))
        ladders.append(rows)
    names = ["letters", *(f"{left} + {right}" for left, right in merges)]
    said = " ".join(
        f"{word}: " + "; ".join(" · ".join(tokens) for tokens, _ in rows) + "."
        for word, rows in zip(words, ladders, strict=True)
    )
    description = (
        f"Words cut into letters, and below them a row for each merge: {', '.join(names[1:])}. A token that "
        f"a merge has just joined is in full colour. {said}"
    )

    def ladder(scene: Scene, x: Pixels, y: Pixels, cell: Pixels, rows: list) -> Pixels:
        """One word's rows from (x, y) on; returns where they end below."""
        for tokens, new in rows:
            place = x
            for i, token in enumerate(tokens):
                width = cell * len(token)
                strength: Strength = "full" if i in new else "pale"
                scene.token(place + width / 2, y, token, width - 4, 28, role=KEY, strength=strength)
                place += width
            y += 36
        return y - 8

    def layout(size: Pixels, room: Pixels, *, stacked: bool) -> Scene:
        label, gap = widest(names, size) + 14, 34.0
        letters = [len(word) for word in words]
        columns = max(letters) if stacked else sum(letters)
        free = room - label - (0 if stacked else (len(words) - 1) * gap)
        cell, y = min(40.0, free / columns), 2.0
        scene, x = Scene(room, size=size), label
        for word, rows in zip(words, ladders, strict=True):
            if stacked or word == words[0]:
                for i, name in enumerate(names):
                    scene.text(0, y + 36 * i + 14, name, anchor="start", muted=True)
            end = ladder(scene, x, y, cell, rows)
            if stacked:
                y = end + 24
            else:
                x += cell * len(word) + gap
        scene.width = label + columns * cell if stacked else x - gap
        scene.height = end + 2
        return scene

    return Drawing(title, description, layout(15, 660, stacked=False), layout(13.5, PHONE, stacked=True))


def picked_columns(
    E: Any,
    X: Any,
    names: Sequence[str],
    *,
    column: int = 0,
    labels: Sequence[str] | None = None,
    rows: Sequence[str] | None = None,
    title: str = "A one-hot column picks a column",
) -> Drawing:
    """E X for one-hot columns X: each token picks its column of E.

    Args:
        E: the embeddings, (D, vocab), a column for each token there is.
        X: one-hot columns, (vocab, N).
        names: the tokens of the vocabulary.
        column: which token of the text is in full colour.
        labels: what the three matrices are called, E, X and E X by default.
        rows: a letter before each row of E, if its rows have names.
        title: what it shows.

    Raises:
        ValueError: if the shapes do not fit together, a column of X is not one-hot, or no such column is
            there.
    """
    E = table(E, "E")
    names = [seen(name) for name in listed(names, "names", len(E[0]))]
    X = table(X, "X", len(names))
    labels = listed(labels or ("E", "X", "E X"), "labels", 3)
    sides = listed(rows, "rows", len(E)) if rows else []
    N = len(X[0])
    if not 0 <= column < N:
        raise ValueError(f"there is no token {column} among {N}")
    ids = []
    for n in range(N):
        ones = [v for v, x in enumerate(column_of(X, n)) if x == 1]
        if len(ones) != 1 or sum(map(abs, column_of(X, n))) != 1:
            raise ValueError(f"column {n} of X is not one-hot: {column_of(X, n)}")
        ids.append(ones[0])
    picked = [[row[v] for v in ids] for row in E]
    digits = decimals(E)
    text = [names[v] for v in ids]

    def spoken(v: int) -> str:
        return f"({', '.join(number(x, digits) for x in column_of(E, v))})"

    description = (
        f"{labels[0]} has {len(E)} rows and a column for each of {', '.join(names)}. {labels[1]} has "
        f"{len(names)} rows and a one-hot column for each token of {' '.join(text)}. Their product has in "
        f"each column the token's column of {labels[0]}: "
        f"token {column + 1}, {text[column]}, picks {spoken(ids[column])}."
    )

    parts = (
        (labels[0], E, names, KEY, ids[column]),
        (labels[1], X, text, QUERY, column),
        (labels[2], picked, text, VALUE, column),
    )
    tall = 28.0

    def part(scene: Scene, x: Pixels, middle: Pixels, cell: Pixels, i: int) -> None:
        """One matrix with its name and its tokens, its middle at the height `middle`."""
        name, numbers, above, role, chosen = parts[i]
        top = middle - len(numbers) * tall / 2
        scene.text(x + len(above) * cell / 2, top - 38, name, bold=True)
        for j, word in enumerate(above):
            scene.text(x + (j + 0.5) * cell, top - 13, word, bold=j == chosen, muted=j != chosen)
        places = 0 if i == 1 else digits
        scene.matrix(x, top, numbers, cell, tall, role=role, column=chosen, digits=places)
        for j, word in enumerate(sides if i == 0 else []):
            scene.text(x - 8, top + (j + 0.5) * tall, word, anchor="end", muted=True)

    def layout(cell: Pixels, size: Pixels, *, stacked: bool) -> Scene:
        sign, rows, edge = 26.0, max(len(E), len(names)), 22.0 if sides else 2.0
        across = [len(above) * cell for _, _, above, _, _ in parts]
        scene, x, y = Scene(0, size=size), edge, 50 + (len(E) if stacked else rows) * tall / 2
        for i in range(3):
            part(scene, x, y, cell, i)
            x += across[i]
            if stacked and i == 0:  # the first matrix stands above the others, which begin with its sign
                scene.width = x
                x, y = 0.0, 50 + len(E) * tall + 60 + len(names) * tall / 2
            if i < 2:
                scene.text(x + sign / 2, y, "·="[i])
                x += sign
        scene.width = max(scene.width, x + 2)
        scene.height = y + rows * tall / 2 + 2
        return scene

    wide = min(40, (680 - 56) / (len(names) + 2 * N))
    narrow = min(40, (PHONE - 56) / 2 / N, (PHONE - 50) / len(names))
    return Drawing(title, description, layout(wide, 15, stacked=False), layout(narrow, 13.5, stacked=True))


def ways_to_the_past(
    n: int,
    distance: int,
    window: int,
    *,
    title: str = "Three ways to the past",
) -> Drawing:
    """A window, a state, attention: how the last of n tokens reaches what it wants.

    Args:
        n: the number of tokens.
        distance: how many places before the last the wanted one stands.
        window: how many tokens the window sees, the last included.
        title: what it shows.

    Raises:
        ValueError: if the distance or the window does not lie within the tokens.
    """
    if not 0 < distance < n:
        raise ValueError(f"distance: expected 1 to {n - 1}, got {distance}")
    if not 0 < window <= n:
        raise ValueError(f"window: expected 1 to {n}, got {window}")
    reached = "reaches" if distance < window else "does not reach"
    description = (
        f"Three times the same {n} tokens; the one {distance} places before the last is wanted. A window of "
        f"{window} {reached} it. A state reaches it by a chain of steps, one for each token in between. "
        "Attention, the next chapter's way, reaches it by one line whose weight depends on the tokens "
        "themselves."
    )
    wanted = n - 1 - distance

    def tokens(scene: Scene, x: Pixels, y: Pixels, cell: Pixels) -> list[Pixels]:
        """The row of tokens; returns their middles."""
        xs = [x + (i + 0.5) * cell for i in range(n)]
        for i, middle in enumerate(xs):
            strength: Strength = "full" if i == wanted else "pale"
            scene.token(middle, y, "?" if i == wanted else "", cell - 4, 22, role=KEY, strength=strength)
        return xs

    def panel(scene: Scene, x: Pixels, y: Pixels, cell: Pixels, name: str) -> None:
        """One way, with its heading."""
        scene.text(x, y + 10, name, anchor="start", bold=True)
        xs, low, high = tokens(scene, x, y + 112, cell), y + 112, y + 44
        answer = xs[-1]
        if name == "A state":
            for i, middle in enumerate(xs):
                scene.line(
                    (middle, low),
                    (middle, high + 14),
                    width=4 if i == wanted else 1.2,
                    role=WEIGHTS if i == wanted else None,
                )
                on_way = i >= wanted
                scene.token(
                    middle, high - 8, "", cell - 12, 22, role=QUERY, strength="full" if on_way else "pale"
                )
                if i:
                    start, end = xs[i - 1] + (cell - 12) / 2, middle - (cell - 12) / 2
                    carries = i > wanted
                    scene.line(
                        (start, high + 3),
                        (end, high + 3),
                        role=WEIGHTS if carries else None,
                        width=4 if carries else 1.2,
                    )
            return
        first = n - window if name == "A window" else 0
        for i, middle in enumerate(xs):
            if i < first:
                continue
            full = i == wanted
            role: Role | None = WEIGHTS if full else None
            width: Pixels = 4.0 if full else 1.2
            if name == "Attention":
                width = 5.0 if full else 1.0
                role = WEIGHTS
            scene.line((middle, low), (answer, high + 16), role=role, width=width, dashed=False)
        scene.token(answer, high - 8, "", cell - 4, 22, role=QUERY, strength="full")

    names = ("A window", "A state", "Attention")

    def layout(cell: Pixels, size: Pixels, *, stacked: bool) -> Scene:
        across = n * cell
        scene = Scene(across if stacked else 2 * across + 44, size=size)
        for i, name in enumerate(names):
            left = (across + 44) * (i if i < 2 else 0.5)
            x, y = (0.0, 168.0 * i) if stacked else (left, 168.0 * (i // 2))
            panel(scene, x, y, cell, name)
        scene.height = 168.0 * (3 if stacked else 2) - 8
        return scene

    return Drawing(
        title,
        description,
        layout(min(32, 320 / n), 15, stacked=False),
        layout(min(34, PHONE / n), 13.5, stacked=True),
    )


def two_tasks(symbols: Sequence[str], distance: int, *, title: str = "Two tasks for a memory") -> Drawing:
    """What is read and what is wanted: each symbol some places later; or the first one, at the end.

    Args:
        symbols: what is read.
        distance: how many places back the wanted symbol stands in the first task.
        title: what it shows.

    Raises:
        ValueError: if the distance does not lie within the symbols.
    """
    symbols = [seen(symbol) for symbol in listed(symbols, "symbols")]
    n = len(symbols)
    if not 0 < distance < n:
        raise ValueError(f"distance: expected 1 to {n - 1}, got {distance}")
    description = (
        f"Twice the same {n} symbols are read: {' '.join(symbols)}. In recall the symbol {distance} places "
        f"back is wanted at every place after the first {distance}: {' '.join(symbols[:-distance])}. In "
        f"keep the first only one answer is wanted, at the last place: {symbols[0]}."
    )
    label, box, drop = 60.0, 26.0, 66.0
    column = (PHONE - label) / n
    xs = [label + (i + 0.5) * column for i in range(n)]
    scene = Scene(PHONE, size=14)

    def panel(y: Pixels, name: str, pairs: Sequence[tuple[int, int]]) -> None:
        """What is read, and below it the answers; an arrow from the source of each, that of the last bold."""
        scene.text(0, y + 8, name, anchor="start", bold=True)
        scene.text(0, y + 37, "read", anchor="start", muted=True)
        scene.text(0, y + 37 + drop, "wanted", anchor="start", muted=True)
        for source, place in pairs:
            last = (source, place) == pairs[-1]
            ends = (xs[source], y + 50), (xs[place], y + 22 + drop)
            scene.arrow(*ends, role=WEIGHTS if last else None, width=2.5 if last else 1.2)
        for i, symbol in enumerate(symbols):
            strength: Strength = "full" if i == pairs[-1][0] else "pale"
            scene.token(xs[i], y + 22, symbol, box, 28, role=KEY, strength=strength)
        for source, place in pairs:
            scene.token(xs[place], y + 23 + drop, symbols[source], box, 28, role=QUERY, strength="full")

    panel(0, "recall", [(i - distance, i) for i in range(distance, n)])
    panel(140, "keep the first", [(0, n - 1)])
    scene.height = 140 + 53 + drop
    return Drawing(title, description, scene)


def unrolled(read: Sequence[str], guessed: Sequence[str], *, title: str = "A state, unrolled") -> Drawing:
    """A recurrent network, a column for each token: what it reads, its state, what it should guess.

    Args:
        read: the tokens that are read.
        guessed: the token that should be guessed at each.
        title: what it shows.

    Raises:
        ValueError: if the lengths differ.
    """
    read = [seen(token) for token in listed(read, "read")]
    guessed = [seen(token) for token in listed(guessed, "guessed", len(read))]
    description = (
        f"The network reads {' '.join(read)}, one token a step. The map Wx leads from each token to its "
        "step's state, Wh from each state to the next, and Wo from each state to the guess of the next "
        f"token: {' '.join(guessed)}. On its way back the gradient of the last guess passes through all "
        "states to the first token."
    )
    label, box = 58.0, 40.0
    column = (PHONE - label) / len(read)
    xs = [label + (i + 0.5) * column for i in range(len(read))]
    scene = Scene(PHONE, 236, size=14)
    for name, y in {"guess": 15, "state": 107, "read": 199}.items():
        scene.text(0, y, name, anchor="start", muted=True)
    scene.token_row(xs, 0, guessed, box, role=QUERY, strength="full")
    scene.token_row(xs, 184, read, box, role=KEY)
    for i, x in enumerate(xs):
        scene.token(x, 92, f"h_{{{i + 1}}}", box, 30, role=QUERY)
        scene.arrow((x, 184), (x, 124), label="W_{x}" if i == 0 else "")
        scene.arrow((x, 92), (x, 32), label="W_{o}" if i == 0 else "")
        if i:
            start, end = xs[i - 1] + box / 2, x - box / 2
            scene.arrow((start, 107), (end, 107))
            if i == 1:
                scene.text((start + end) / 2, 84, "W_{h}", muted=True)
    back: dict[str, Any] = {"role": WEIGHTS, "width": 2.5, "dashed": True}
    scene.arrow((xs[-1] + 10, 34), (xs[-1] + 10, 92), **back)
    for i in range(len(xs) - 1, 0, -1):
        scene.arrow((xs[i] - box / 2, 117), (xs[i - 1] + box / 2, 117), **back)
    scene.arrow((xs[0] - 10, 122), (xs[0] - 10, 182), **back)
    scene.text(PHONE, 228, "dashed: the gradient's way back", anchor="end", muted=True)
    return Drawing(title, description, scene)


def gated_state(old: Any, gate: Any, candidate: Any, *, title: str = "A gate keeps or replaces") -> Drawing:
    """z × old + (1 − z) × candidate, number by number: one step of a GRU's state.

    Args:
        old: the state before the step.
        gate: z, how much of each number is kept.
        candidate: what would replace it.
        title: what it shows.

    Raises:
        ValueError: if the lengths differ, or a gate is not between 0 and 1.
    """
    old = listed(old, "old")
    gate, candidate = listed(gate, "gate", len(old)), listed(candidate, "candidate", len(old))
    for z in gate:
        if not 0 <= z <= 1:
            raise ValueError(f"a gate lies between 0 and 1, got {z}")
    new = [z * h + (1 - z) * c for h, z, c in zip(old, gate, candidate, strict=True)]
    said = "; ".join(
        f"{number(h, 1)} with gate {number(z, 1)} and candidate {number(c, 1)} becomes {number(x, 2)}"
        for h, z, c, x in zip(old, gate, candidate, new, strict=True)
    )
    description = (
        "Five columns that read as a sum: the gate z times the old state, plus 1 − z times the candidate, "
        f"is the new state. {said}."
    )
    rest = [1 - z for z in gate]

    names = ("gate z", "old h", "1 − z", "candidate", "new h")

    def layout(cell: Pixels, gap: Pixels, size: Pixels) -> Scene:
        columns = (
            (gate, WEIGHTS, 1, gate),
            (old, KEY, 1, gate),
            (rest, WEIGHTS, 1, rest),
            (candidate, VALUE, 1, rest),
            (new, QUERY, 2, [1.0] * len(new)),
        )
        scene, tall = Scene(5 * cell + 4 * gap + 2, size=size), 32.0
        for i, (name, (numbers, role, digits, shades)) in enumerate(zip(names, columns, strict=True)):
            x = i * (cell + gap)
            scene.text(x + cell / 2, 10, name, bold=True)
            strength: Strength = "full" if i == 4 else "pale"
            for j, (value, shade) in enumerate(zip(numbers, shades, strict=True)):
                y, written = 26 + j * tall, number(value, digits)
                scene.box(x, y, cell, tall, written, role=role, strength=strength, shade=shade)
                if i < 4:
                    scene.text(x + cell + gap / 2, y + tall / 2, "×+×="[i])
        scene.height = 28 + len(old) * tall
        return scene

    wide = layout(max(widest(names, 16) + 2 * PAD, 76), 26, 15)
    return Drawing(title, description, wide, layout(52, 15, 13.5))


def one_vector(
    source: Sequence[str], target: Sequence[str], *, title: str = "Everything passes through one vector"
) -> Drawing:
    """An encoder reads the source in both directions into one vector; each step of a decoder gets it.

    Args:
        source: what is read.
        target: what is written.
        title: what it shows.

    Raises:
        ValueError: if one of them is empty.
    """
    source = [seen(token) for token in listed(source, "source")]
    target = [seen(token) for token in listed(target, "target")]
    fed = ["begin", *target[:-1]]
    description = (
        f"An encoder reads {' '.join(source)} twice, forwards and backwards, one state for each token and "
        "direction. The last state of each direction, stacked, make one vector. The decoder's first state is "
        "made from it, and it enters every step. The first step reads the sign to begin, the others the "
        f"token written before, and they write {' '.join(target)}."
    )
    tall = 26.0

    def encoder(scene: Scene, xs: Sequence[Pixels], y: Pixels, box: Pixels, x: Pixels) -> None:
        """Tokens between the states of the two directions; the vector at x."""
        for i, place in enumerate(xs):
            scene.token(place, y, "", box, tall, role=KEY)
            scene.token(place, y + 96, "", box, tall, role=KEY)
            scene.arrow((place, y + 45), (place, y + 28))
            scene.arrow((place, y + 77), (place, y + 94))
            if i:
                scene.arrow((place - box / 2, y + 13), (xs[i - 1] + box / 2, y + 13))
                scene.arrow((xs[i - 1] + box / 2, y + 109), (place - box / 2, y + 109))
        scene.token_row(xs, y + 46, source, box, role=KEY)
        scene.arrow((xs[0], y), (xs[0], y - 14), (x, y - 14), (x, y + 33))
        scene.arrow((xs[-1] + box / 2, y + 109), (x, y + 109), (x, y + 89))
        scene.vector(x - 8, y + 35, [""] * 4, 16, 13, role=VALUE, row=None)
        scene.text(xs[0] - box / 2, y - 28, "encoder", anchor="start", muted=True)
        scene.text(x, y - 28, "one vector", bold=True)

    def decoder(scene: Scene, xs: Sequence[Pixels], y: Pixels, box: Pixels) -> None:
        """Written tokens, states, and below them the tokens read; room between for what comes in."""
        for i, place in enumerate(xs):
            scene.token(place, y + 52, "", box, tall, role=QUERY)
            scene.arrow((place, y + 51), (place, y + 32))
            scene.arrow((place + 9, y + 119), (place + 9, y + 80))
            scene.arrow((place - 9, y + 100), (place - 9, y + 80), role=VALUE, width=2)
            if i:
                scene.arrow((xs[i - 1] + box / 2, y + 65), (place - box / 2, y + 65))
        scene.token_row(xs, y, target, box, role=QUERY, strength="full")
        scene.token_row(xs, y + 120, fed, box, role=KEY)

    def wide() -> Scene:
        cell, box = 58.0, 50.0
        scene = Scene((len(source) + len(target) + 2) * cell)
        xs = [(i + 0.5) * cell for i in range(len(source))]
        us = [(len(source) + 2.5 + i) * cell for i in range(len(target))]
        x, y = (xs[-1] + us[0]) / 2, 38.0
        encoder(scene, xs, y, box, x)
        top, turn = y - 4, us[0] - box / 2 - 26
        decoder(scene, us, top, box)
        scene.arrow((x + 8, top + 65), (us[0] - box / 2, top + 65), role=VALUE, width=2)
        scene.line(
            (turn, top + 65), (turn, top + 100), (us[-1] - 8, top + 100), role=VALUE, width=2, opacity=0.8
        )
        scene.text(us[0] - box / 2, y - 28, "decoder", anchor="start", muted=True)
        scene.height = y + 148
        return scene

    def narrow() -> Scene:
        cell = min(58.0, (PHONE - 78) / max(len(source), len(target)))
        box = cell - 8
        scene = Scene(PHONE, size=13.5)
        xs = [(i + 0.5) * cell for i in range(len(source))]
        us = [26 + (i + 0.5) * cell for i in range(len(target))]
        x, y, top = xs[-1] + box / 2 + 32, 38.0, 194.0
        encoder(scene, xs, y, box, x)
        decoder(scene, us, top, box)
        right, low, middle = max(x, us[-1] + box / 2) + 18, top + 100, top + 65
        path = ((x + 8, y + 61), (right, y + 61), (right, low), (6, low), (6, middle))
        scene.arrow(*path, (us[0] - box / 2, middle), role=VALUE, width=2)
        scene.text(us[0] - box / 2, top - 14, "decoder", anchor="start", muted=True)
        scene.width = max(PHONE, right + 2)
        scene.height = top + 152
        return scene

    return Drawing(title, description, wide(), narrow())
