"""Drawings of the chapter on GPT. Every word and number in them comes in as an argument."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, listed, width_of
from tformer_book.kit.drawings.primitives import PHONE, Scene
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, VALUE, WEIGHTS

DEAR = 4  # bits: one chance in sixteen


def legend(scene: Scene, y: Pixels, entries: Mapping[str, Mapping[str, Any]]) -> Pixels:
    """Small boxes with what they mean, in as many lines as it takes; returns where the next line begins."""
    x = 0.0
    for words, paint in entries.items():
        wide = 30 + width_of(words, scene.size)
        if x and x + wide > scene.width:
            x, y = 0.0, y + 26
        scene.box(x, y, 22, 18, **paint)
        scene.text(x + 28, y + 9, words, anchor="start")
        x += wide + 16
    return y + 26


def questions(words: Sequence[str], *, title: str = "One line, a question after every token") -> Drawing:
    """The causal mask in words: a row for each prefix, what it may read, and what it is asked for.

    Args:
        words: a text; all but the last are read, all but the first are asked for.
        title: what it shows.

    Raises:
        ValueError: if there are fewer than two words.
    """
    words = listed(words, "words")
    if len(words) < 2:
        raise ValueError("a text of one token asks no question")
    asked = "; ".join(
        f"{n}: reads {' '.join(words[:n])}, is asked for {words[n]}" for n in range(1, len(words))
    )
    description = (
        f"The text {' '.join(words)}, written once in each of {len(words) - 1} rows. In row n the first n "
        "tokens may be read, the next one is asked for, in full colour, and what follows is hatched: the "
        f"mask hides it. Rows: {asked}. One pass computes all rows."
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        places, fits = scene.places(0, room, words, gap=5)
        scene.text(0, 8, f"{len(words)} tokens, {len(words) - 1} questions:", anchor="start", bold=True)
        for n in range(1, len(words)):
            y = 24 + (n - 1) * 38
            for i, (word, (x, wide)) in enumerate(zip(words, places, strict=True)):
                paint: dict[str, Any] = {"role": KEY}
                if i == n:
                    paint = {"role": QUERY, "strength": "full"}
                elif i > n:
                    paint = {"role": WEIGHTS, "strength": "faint", "masked": True}
                scene.token(x, y, "" if i > n else word, wide, size=fits, **paint)
        hidden: dict[str, Any] = {"role": WEIGHTS, "strength": "faint", "masked": True}
        keys: dict[str, dict[str, Any]] = {
            "is read": {"role": KEY},
            "is asked for": {"role": QUERY, "strength": "full"},
        }
        scene.height = legend(scene, 24 + (len(words) - 1) * 38 + 6, {**keys, "is hidden": hidden})
        return scene

    return Drawing(title, description, layout(560, 15), layout(PHONE, 13.5))


def packed_window(
    stream: Sequence[str],
    start: int,
    length: int,
    end: str | None = None,
    *,
    title: str = "A window of a packed stream, and its targets moved by one",
) -> Drawing:
    """One document, or several with a stop token between; a window of N + 1 tokens; inputs and targets.

    Args:
        stream: the tokens of all documents, one after the other.
        start: where the window begins.
        length: N, how many tokens are read.
        end: the token that ends a document, if there is one.
        title: what it shows.

    Raises:
        ValueError: if the window does not lie inside the stream.
    """
    stream = listed(stream, "stream")
    if start < 0 or length < 1 or start + length + 1 > len(stream):
        raise ValueError(f"{length + 1} tokens from {start} on do not lie among {len(stream)}")
    read, asked = stream[start : start + length], stream[start + 1 : start + length + 1]
    described = "; ".join(f"{a} asks for {b}" for a, b in zip(read, asked, strict=True))
    stops = f", in which {end} ends a document" if end else ""
    description = (
        f"Three rows. The stream: {' '.join(stream)}{stops}; the window of {length + 1} tokens is coloured. "
        f"Read: its first {length} tokens. Asked for: its last {length}, each below the token before it. "
        f"{described}."
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        places, fits = scene.places(0, room, stream, gap=5)
        scene.text(0, 8, f"the stream, and a window of N + 1 = {length + 1}", anchor="start", muted=True)
        for i, (word, (x, wide)) in enumerate(zip(stream, places, strict=True)):
            inside = start <= i <= start + length
            role = None if not inside else VALUE if word == end else KEY
            strength = "pale" if inside else "faint"
            scene.token(x, 20, word, wide, size=fits, role=role, strength=strength)
        scene.text(0, 74, "read: the first N", anchor="start", muted=True)
        scene.text(0, 156, "asked for: the last N, moved by one", anchor="start", muted=True)
        for i in range(length):
            x, wide = places[start + i]
            role = VALUE if read[i] == end else KEY
            scene.token(x, 86, read[i], wide, size=fits, role=role)
            scene.arrow((x, 118), (x, 144), width=2)
        column = [places[start + i][0] for i in range(length)]
        edges = [0.0, *((a + b) / 2 for a, b in pairwise(column)), room]
        for i, (x, word) in enumerate(zip(column, asked, strict=True)):
            wide = min(2 * min(x - edges[i], edges[i + 1] - x) - 4, width_of(word, fits) + 16)
            scene.token(x, 168, word, wide, size=fits, role=QUERY, strength="full")
        scene.height = 202
        return scene

    return Drawing(title, description, layout(600, 15), layout(PHONE, 13.5))


def growing_cache(
    words: Sequence[str],
    prompt: int,
    rows: int = 3,
    *,
    title: str = "The cache: prefill, then one column a token",
) -> Drawing:
    """K and V of one head as they grow: all columns of the prompt at once, then a column for each token.

    Args:
        words: the prompt and what is written after it.
        prompt: how many tokens the prompt has.
        rows: how many rows, D_h, the matrices are drawn with.
        title: what it shows.

    Raises:
        ValueError: if nothing is read, or nothing is written.
    """
    words = listed(words, "words")
    if not 0 < prompt < len(words) or rows < 1:
        raise ValueError(f"a prompt of {prompt} among {len(words)} tokens, and {rows} rows")
    steps = [(prompt, prompt)] + [(n, 1) for n in range(prompt + 1, len(words) + 1)]
    described = " ".join(
        f"Decode: {words[n - 1]} brings one column to each, {n - 1} are read from the cache; its query meets "
        f"all {n} columns of K."
        for n, _ in steps[1:]
    )
    description = (
        f"One panel below or beside the other. Prefill: the prompt {' '.join(words[:prompt])} is read in one "
        f"pass, {prompt} columns of K and of V are computed and kept. {described} Computed columns are in "
        "full colour, kept ones pale; arrows lead from the new token's query to the keys."
    )

    def panel(scene: Scene, x: Pixels, y: Pixels, n: int, new: int, cell: Pixels) -> None:
        name = f"prefill: {new} at once" if new > 1 or n == new else "decode: 1 more"
        scene.text(x, y + 8, name, anchor="start", bold=True)
        for j, word in enumerate(words[:n]):
            fresh = j >= n - new
            scene.token(x + 20 + (j + 0.5) * cell, y + 22, word, cell - 4, 28, size=scene.size,
                        role=STREAM, strength="full" if fresh else "faint")  # fmt: skip
            if new == 1 and n > 1:
                asks, key = x + 20 + (n - 0.5) * cell, x + 20 + (j + 0.5) * cell
                scene.arrow((asks, y + 51), (key, y + 84), role=QUERY, width=1.5)
        for k, (letter, role) in enumerate((("K", KEY), ("V", VALUE))):
            top = y + 86 + k * (rows * 16 + 12)
            scene.text(x, top + rows * 8, letter, anchor="start", bold=True)
            for i in range(rows):
                for j in range(n):
                    fresh = j >= n - new
                    scene.box(
                        x + 20 + j * cell,
                        top + i * 16,
                        cell,
                        16,
                        role=role,
                        strength="full" if fresh else "pale",
                    )
        scene.text(
            x + 20, y + 86 + 2 * (rows * 16 + 12) + 4, f"D_{{h}} × {n} each", anchor="start", muted=True
        )

    tall = 86 + 2 * (rows * 16 + 12) + 14

    def layout(size: Pixels, *, stacked: bool) -> Scene:
        scene = Scene(PHONE if stacked else 0, size=size)
        cell = max(width_of(word, size) for word in words) + 14
        x = y = 0.0
        for n, new in steps:
            panel(scene, x, y, n, new, cell)
            if stacked:
                y += tall + 20
            else:
                x += max(20 + n * cell, 150) + 26
        scene.height = (y if stacked else tall + 16) + 30
        if not stacked:
            scene.width = x - 26
        keys: dict[str, dict[str, Any]] = {
            "K, now": {"role": KEY, "strength": "full"},
            "K, kept": {"role": KEY},
            "V, now": {"role": VALUE, "strength": "full"},
            "V, kept": {"role": VALUE},
            "the new token's query": {"role": QUERY, "strength": "full"},
        }
        scene.height = legend(scene, scene.height - 28, keys)
        return scene

    return Drawing(title, description, layout(14, stacked=False), layout(13.5, stacked=True))


def climbing_token(
    words: Sequence[str], blocks: int, *, title: str = "A new token climbs through all blocks"
) -> Drawing:
    """What is computed when a token comes: one column through all blocks, which read what the old ones left.

    Args:
        words: a text, of which the last token is new.
        blocks: how many blocks the model has.
        title: what it shows.

    Raises:
        ValueError: if no token is old, or there is no block.
    """
    words = listed(words, "words")
    if len(words) < 2 or blocks < 1:
        raise ValueError(f"{blocks} blocks, and {len(words)} tokens, of which the last is new")
    *old, new = words
    description = (
        f"A column for each of the tokens {' '.join(words)}, with {blocks} blocks one above the other. In "
        f"each block the old tokens {' '.join(old)} have a pale cell, their keys and values, which are kept. "
        f"The new token {new} has a cell in full colour, and an arrow leads from the kept ones to it. From "
        "block to block an arrow goes up in the column of the new token alone; it ends in the question "
        f"what comes after {new}."
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        label, tall, step, apart = 62.0, 30.0, 54.0, 26.0
        cell, foot = (room - label - apart) / len(words), 34 + blocks * step
        now: dict[str, Any] = {"role": QUERY, "strength": "full"}
        scene.text(room, 8, f"what comes after {new}?", anchor="end")
        for b in range(1, blocks + 1):
            y = foot - b * step
            scene.text(0, y + tall / 2, f"block {b}", anchor="start", muted=True)
            for i in range(len(old)):
                scene.box(label + i * cell, y, cell, tall, "k, v", role=KEY)
            scene.box(room - cell, y, cell, tall, "q, k, v", **now)
            scene.arrow((room - cell - apart, y + tall / 2), (room - cell, y + tall / 2), role=KEY, width=2.5)
            scene.arrow((room - cell / 2, y + step), (room - cell / 2, y + tall), role=QUERY, width=2)
        scene.arrow((room - cell / 2, foot - blocks * step), (room - cell / 2, 18), role=QUERY, width=2)
        middles = [label + (i + 0.5) * cell for i in range(len(old))]
        scene.token_row(middles, foot, old, cell - 6, role=KEY)
        scene.token_row([room - cell / 2], foot, [new], cell - 6, **now)
        keys: dict[str, dict[str, Any]] = {
            "kept": {"role": KEY},
            "computed now": now,
        }
        scene.height = legend(scene, foot + tall + 14, keys)
        return scene

    return Drawing(title, description, layout(480, 15), layout(PHONE, 13.5))


def jumping_window(
    starts: Mapping[int, int], context: int, *, title: str = "The window stays while it fills, then jumps"
) -> Drawing:
    """Which tokens of a growing text a model sees, row by row, and where the cache has to be built anew.

    Args:
        starts: from a length of the text to the place where its window begins, in ascending order.
        context: the longest window.
        title: what it shows.

    Raises:
        ValueError: if there is no length, or a window does not fit.
    """
    lengths = listed(starts, "starts")
    if any(not 0 <= n - starts[n] <= context for n in lengths):
        raise ValueError(f"a window holds at most {context} tokens")
    before = dict(zip(lengths[1:], lengths, strict=False))
    jumps = [n for n in lengths if n in before and starts[n] != starts[before[n]]]
    rows = "; ".join(f"{n} tokens: sees {starts[n] + 1} to {n}" for n in lengths)
    description = (
        f"A row for each length of the text, a cell for each token. {rows}. New cells are in full colour. "
        f"Where the window jumps, at {', '.join(map(str, jumps)) or 'no length'}, all is read anew."
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        label, right, tall = 30.0, 62.0, 20.0
        cell = (room - label - right) / max(lengths)
        dropped: dict[str, Any] = {"role": None, "strength": "faint", "masked": True}
        scene.text(0, 8, "length", anchor="start", muted=True)
        scene.text(room, 8, "reads", anchor="end", muted=True)
        for i, n in enumerate(lengths):
            y = 22 + i * (tall + 4)
            scene.text(label - 8, y + tall / 2, str(n), anchor="end")
            new = n - starts[n] if n in jumps else 1
            for j in range(n):
                seen = j >= starts[n]
                paint: dict[str, Any] = {"role": KEY, "strength": "full" if j >= n - new else "pale"}
                if not seen:
                    paint = dropped
                scene.box(label + j * cell, y, cell - 2, tall, **paint)
            scene.text(room, y + tall / 2, str(new), anchor="end", bold=n in jumps)
        keys: dict[str, dict[str, Any]] = {
            "read now": {"role": KEY, "strength": "full"},
            "in the cache": {"role": KEY},
        }
        y = 22 + len(lengths) * (tall + 4) + 6
        scene.height = legend(scene, y, {**keys, "dropped": dropped})
        return scene

    return Drawing(title, description, layout(520, 15), layout(PHONE, 13.5))


def interleaved(examples: int, *, title: str = "Examples and answers as one text") -> Drawing:
    """x and y as tokens by turns, causal blocks above them, a prediction of y above each x.

    Args:
        examples: how many pairs.
        title: what it shows.

    Raises:
        ValueError: if there is none.
    """
    if examples < 1:
        raise ValueError(f"examples: expected at least one, got {examples}")
    names = [f"{letter}_{{{k}}}" for k in range(1, examples + 1) for letter in "xy"]
    description = (
        f"{examples} examples as {2 * examples} tokens, x and y by turns, under causal blocks. Above each x "
        "stands a prediction of its y, which has read the examples before it and this x, but not this y. "
        "What comes out above a y is not used."
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        step = room / len(names)
        for i, name in enumerate(names):
            x, is_x = (i + 0.5) * step, i % 2 == 0
            if is_x:
                guess = "ŷ" + name[1:]
                scene.token(x, 22, guess, step - 6, role=QUERY, strength="full")
                scene.arrow((x, 82), (x, 54), role=QUERY, width=2)
            scene.arrow((x, 150), (x, 124), role=STREAM, width=2)
            scene.token(x, 150, name, step - 6, role=KEY if is_x else VALUE)
        scene.box(0, 84, room, 38, "causal blocks", role=STREAM, radius=6)
        scene.text(0, 8, "guesses of y, each before it is read", anchor="start", muted=True)
        scene.text(0, 194, "tokens: each x and each y by a linear map", anchor="start", muted=True)
        scene.height = 206
        return scene

    return Drawing(title, description, layout(520, 15), layout(PHONE, 13.5))


def surprise(
    lines: Sequence[str],
    bits: Mapping[str, Sequence[float]],
    *,
    title: str = "What each letter of a line costs, with a short memory and with a long one",
) -> Drawing:
    """A line of text with two bars under each letter: its surprise after little was read, and after much.

    Args:
        lines: the text, cut where a narrow drawing breaks it; a broad one joins every two.
        bits: from what was read to a cost for each letter of the joined text, two of them.
        title: what it shows.

    Raises:
        ValueError: if there are not two rows of costs, or not one cost for each letter.
    """
    lines = listed(lines, "lines")
    text = "".join(lines)
    costs = {name: [float(b) for b in listed(row, name, len(text))] for name, row in bits.items()}
    if len(costs) != 2 or min(map(min, costs.values())) < 0:
        raise ValueError("bits: expected two rows of costs, none below zero")
    little, much = costs
    dear = {name: [text[i] for i, b in enumerate(row) if b > DEAR] for name, row in costs.items()}
    described = " ".join(
        f"{name}: {sum(row):.0f} bits together, more than {DEAR} for {', '.join(dear[name]) or 'no letter'}."
        for name, row in costs.items()
    )
    description = (
        f"The text {text}, and under each letter, space or mark two bars that hang down: the left one for "
        f"{little}, the right one, in full colour, for {much}. {described}"
    )
    deepest = round(max(map(max, costs.values())), 1)  # the same height on every machine

    def layout(room: Pixels, size: Pixels, rows: Sequence[str], scale: Pixels) -> Scene:
        scene = Scene(room, size=size)
        step = (room - 50) / max(map(len, rows))
        wide, y, at = step / 2 - 2.5, 0.0, 0
        for row in rows:
            top = y + size + 8
            scene.line((0, top + DEAR * scale), (step * len(row), top + DEAR * scale), dashed=True)
            scene.text(step * len(row) + 6, top + DEAR * scale, f"{DEAR} bits", anchor="start", muted=True)
            for i, letter in enumerate(row):
                x, a, b = (i + 0.5) * step, costs[little][at + i] * scale, costs[much][at + i] * scale
                scene.text(x, y + size / 2, "␣" if letter == " " else letter, muted=letter == " ")
                left = x - wide - 0.5
                scene.area(
                    (left, top), (left + wide, top), (left + wide, top + a), (left, top + a), opacity=0.3
                )
                scene.bar(x + 0.5 + wide / 2, top + b, wide, b, QUERY)
            scene.line((0, top), (step * len(row), top), width=1)
            at, y = at + len(row), top + deepest * scale + 14
        scene.area((0, y), (18, y), (18, y + 16), (0, y + 16), opacity=0.3)
        scene.text(25, y + 8, little, anchor="start")
        x = 25 + width_of(little, size) + 18
        if x + 25 + width_of(much, size) > room:
            x, y = 0.0, y + 24
        scene.bar(x + 9, y + 16, 18, 16, QUERY)
        scene.text(x + 25, y + 8, much, anchor="start")
        scene.height = y + 20
        return scene

    pairs = ["".join(lines[i : i + 2]) for i in range(0, len(lines), 2)]
    return Drawing(title, description, layout(600, 15, pairs, 10), layout(PHONE, 14, lines, 9))
