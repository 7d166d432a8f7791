"""Drawings of the chapter on translation. Every number in them comes in as an argument."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, listed, number, table, width_of
from tformer_book.kit.drawings.primitives import PAD, PHONE, Scene, Strength, widest
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, VALUE, WEIGHTS, Role


def two_stacks(
    source: Sequence[str], read: Sequence[str], asked: Sequence[str], *, title: str = "Two stacks, one E"
) -> Drawing:
    """An encoder, its memory C, a decoder that reads it, and the one matrix E in its three places.

    Args:
        source: the tokens of the source.
        read: the tokens that the decoder reads.
        asked: the tokens that it must predict, one for each that it reads.
        title: what it shows.

    Raises:
        ValueError: if a text is empty, or there is not one token asked for each that is read.
    """
    source, read = listed(source, "source"), listed(read, "read")
    asked = listed(asked, "asked", len(read))
    description = (
        f"Left: the source, {' '.join(source)}; E makes a column of each token, positions are added, and the "
        f"encoder, which has no causal mask, turns them into the memory C, D by S, {len(source)} columns. "
        f"Right: the decoder reads {' '.join(read)}; the same E makes its columns. It reads itself under a "
        "causal mask and C by cross-attention: an arrow leads from C into it, keys and values. The same E, "
        f"transposed, makes logits at its end, and they must predict {' '.join(asked)}."
    )

    def words_in(
        scene: Scene, x: Pixels, y: Pixels, room: Pixels, words: list[str], role: Role, strength: Strength
    ) -> None:
        places, fits = scene.places(x, room, words)
        for (at, wide), word in zip(places, words, strict=True):
            scene.token(at, y, word, wide, role=role, size=fits, strength=strength)

    def embedding(scene: Scene, x: Pixels, y: Pixels, room: Pixels, words: str) -> None:
        scene.box(x, y, room, 30, words, role=STREAM, strength="full", radius=4, bold=True)

    def stack(
        scene: Scene, x: Pixels, y: Pixels, room: Pixels, words: list[str], role: Role, name: str, mask: str
    ) -> Pixels:
        """What both begin with: tokens, E, and a box with a name and its mask; returns the middle."""
        middle, tall = x + room / 2, 62 if name == "encoder" else 84
        scene.text(x, y + 8, f"{name} reads", anchor="start", muted=True)
        words_in(scene, x, y + 22, room, words, role, "pale")
        scene.arrow((middle, y + 54), (middle, y + 72))
        embedding(scene, x, y + 72, room, "E")
        scene.arrow((middle, y + 104), (middle, y + 122))
        scene.box(x, y + 122, room, tall, radius=8, strength="plain")
        scene.text(middle, y + 142, f"{name} × M", bold=True)
        scene.text(middle, y + 163, mask, muted=True)
        return middle

    def encoder(scene: Scene, x: Pixels, y: Pixels, room: Pixels) -> Pixels:
        """From the source to C; returns the height of C's middle."""
        middle = stack(scene, x, y, room, source, KEY, "encoder", "padding masked")
        scene.arrow((middle, y + 186), (middle, y + 204))
        cell = min(34.0, (room - 96) / len(source))
        left = middle - cell * len(source) / 2
        scene.matrix(
            left, y + 206, [[""] * len(source)] * 3, cell, 18, role=VALUE, shades=[[0.9] * len(source)] * 3
        )
        scene.text(left - 10, y + 233, "C", anchor="end", bold=True)
        scene.text(middle, y + 274, "D × S", muted=True)
        return y + 233

    def decoder(scene: Scene, x: Pixels, y: Pixels, room: Pixels) -> Pixels:
        """From what is read to what is asked; returns the height at which C comes in."""
        middle = stack(scene, x, y, room, read, QUERY, "decoder", "causal mask")
        scene.box(x + 12, y + 173, room - 24, 26, "cross-attention", role=VALUE, radius=4)
        scene.arrow((middle, y + 208), (middle, y + 226))
        embedding(scene, x, y + 226, room, "E^{T}")
        scene.arrow((middle, y + 258), (middle, y + 276))
        words_in(scene, x, y + 276, room, asked, QUERY, "full")
        scene.text(x, y + 320, "and must predict", anchor="start", muted=True)
        return y + 186

    def wide() -> Scene:
        scene = Scene(700, 332, size=15)
        out = encoder(scene, 0, 0, 280)
        into = decoder(scene, 400, 0, 300)
        right = 140 + min(34.0, 184 / len(source)) * len(source) / 2
        scene.arrow((right + 4, out), (340, out), (340, into), (410, into), role=VALUE, width=3)
        scene.text(right + 10, out + 17, "keys and values", muted=True, anchor="start")
        return scene

    def narrow() -> Scene:
        scene, room = Scene(PHONE, size=13.5), PHONE - 26.0
        out = encoder(scene, 0, 0, room)
        into = decoder(scene, 0, 306, room)
        right = room / 2 + min(34.0, (room - 96) / len(source)) * len(source) / 2
        scene.arrow(
            (right + 4, out), (PHONE - 8, out), (PHONE - 8, into), (room - 12, into), role=VALUE, width=3
        )
        scene.text(PHONE - 14, out + 14, "keys and", anchor="end", muted=True)
        scene.text(PHONE - 14, out + 32, "values", anchor="end", muted=True)
        scene.height = 306 + 332
        return scene

    return Drawing(title, description, wide(), narrow())


def forced_reading(
    source: Sequence[str],
    real: Any,
    read: Sequence[str],
    asked: Sequence[str],
    *,
    title: str = "Three attentions and two masks",
) -> Drawing:
    """What a token may read in the encoder and in the decoder, and what the decoder must predict.

    Args:
        source: the source's tokens, with padding.
        real: for each of them whether it is no padding.
        read: what the decoder reads.
        asked: what it must predict at each place.
        title: what it shows.

    Raises:
        ValueError: if the lengths do not fit together.
    """
    source, read = listed(source, "source"), listed(read, "read")
    real, asked = [bool(x) for x in listed(real, "real", len(source))], listed(asked, "asked", len(read))
    seen = " ".join(word for word, yes in zip(source, real, strict=True) if yes)
    said = "; ".join(
        f"at {word} it reads {' '.join(read[: i + 1])} and must predict {asked[i]}"
        for i, word in enumerate(read)
    )
    description = (
        "Three tables, a row for each token that reads and a column for each that may be read. First, the "
        f"encoder's self-attention: every row may read {seen}; padding is hatched. Second, the decoder's "
        f"self-attention under the causal mask: {said}. Third, its cross-attention: every row may read "
        f"{seen} of the source."
    )
    tall, goal_is = 34.0, "must predict"

    def panel(
        scene: Scene, x: Pixels, y: Pixels, names: tuple[str, str], rows: list[str], words: list[str],
        may: list, *, asks: Role, answers: Role, role: Role, labelled: bool,
    ) -> Pixels:  # fmt: skip
        """A table with two lines above it; its cells begin at y + 80. Returns its end."""
        if labelled:
            label = widest(rows, scene.size) + 2 * PAD
            for i, word in enumerate(rows):
                scene.token(x + label / 2, y + i * tall + 82, word, label, 30, role=asks)
            x += label + 6
        scene.text(x, y + 10, names[0], anchor="start", bold=True)
        scene.text(x, y + 28, names[1], anchor="start", muted=True)
        for j, word in enumerate(words):
            cell = max(width_of(word, scene.size) + 2 * PAD, 26)
            scene.token(x + cell / 2, y + 46, word, cell - 2, 28, role=answers)
            for i, row in enumerate(may):
                scene.box(x, y + 80 + i * tall, cell, tall, role=role, shade=0.9,
                          strength="pale" if row[j] else "plain", masked=not row[j])  # fmt: skip
            x += cell
        return x

    def goal(scene: Scene, x: Pixels, y: Pixels, width: Pixels) -> Pixels:
        scene.text(x + 26 + width / 2, y + 60, goal_is, muted=True)
        for i, word in enumerate(asked):
            scene.arrow((x + 4, y + 80 + (i + 0.5) * tall), (x + 22, y + 80 + (i + 0.5) * tall))
            scene.token(x + 26 + width / 2, y + 82 + i * tall, word, width, 30, role=QUERY, strength="full")
        return x + 26 + width

    causal = [[j <= i for j in range(len(read))] for i in range(len(read))]

    def layout(size: Pixels, *, stacked: bool) -> Scene:
        aim = max(widest(asked, size) + 2 * PAD, width_of(goal_is, size))
        scene = Scene(0, size=size)
        ends, x, y = [], 0.0, 0.0
        tables = (
            (("encoder", "self-attention"), source, source, [real] * len(source), KEY, KEY, WEIGHTS),
            (("decoder", "self-attention"), read, read, causal, QUERY, QUERY, WEIGHTS),
            (("decoder", "cross-attention"), read, source, [real] * len(read), QUERY, KEY, VALUE),
        )
        for names, rows, words, may, asks, answers, role in tables:
            last = names[1] == "cross-attention"
            end = panel(scene, x, y, names, rows, words, may, asks=asks, answers=answers, role=role,
                        labelled=stacked or not last)  # fmt: skip
            if last:
                end = goal(scene, end, y, aim)
            ends.append(end)
            down = 80 + tall * len(rows)
            x, y = (0.0, y + down + 20) if stacked else (end + 12, y)
        scene.width = max(ends)
        tallest = 80 + tall * max(len(source), len(read))
        scene.height = (y - 20 if stacked else tallest) + 4
        return scene

    return Drawing(title, description, layout(12.8, stacked=False), layout(12.8, stacked=True))


def beam_tree(
    P: Any,
    names: Sequence[str],
    k: int,
    *,
    title: str = "The best first word does not begin the best sentence",
) -> Drawing:
    """Two steps of a search: all beginnings, the k that a beam keeps, and the path that greedy search takes.

    Args:
        P: next-token probabilities, a row for each token; the first column is the start's, column n + 1 is
            what follows token n.
        names: the tokens; the last ends a sentence.
        k: how many beginnings are kept.
        title: what it shows.

    Raises:
        ValueError: if the table does not fit the names, or k is not from 1 to the number of tokens.
    """
    names = listed(names, "names")
    P = table(P, "P", len(names), len(names))
    if not 1 <= k <= len(names):
        raise ValueError(f"k: expected 1 to {len(names)}, got {k}")
    end = len(names) - 1
    first = [(n, float(P[n][0])) for n in range(len(names))]
    kept = sorted(first, key=lambda pair: -pair[1])[:k]
    second = [
        (n, m, p * float(P[m][n + 1]))
        for n, p in first
        if n != end and (n, p) in kept
        for m in range(len(names))
    ]
    best = sorted(second, key=lambda found: -found[2])[:k]
    greedy_1 = max(first, key=lambda pair: pair[1])[0]
    greedy_2 = max((s for s in second if s[0] == greedy_1), key=lambda found: found[2])[1]

    def word(*tokens: int) -> str:
        return "".join(names[t] for t in tokens)

    description = (
        "A tree of beginnings. After one token: "
        + ", ".join(f"{word(n)} has probability {number(p)}" for n, p in first)
        + f"; the {k} likeliest are kept: {', '.join(word(n) for n, _ in kept)}. After two: "
        + ", ".join(f"{word(n, m)} {number(p)}" for n, m, p in second)
        + f"; kept: {', '.join(word(n, m) for n, m, _ in best)}. Kept beginnings are in full colour; a "
        "line to a second token bears that token's probability after the first. Greedy "
        f"search's path, a thick line, goes to {word(greedy_1)} and ends with {word(greedy_1, greedy_2)}."
    )

    def layout(size: Pixels, room: Pixels, box: Pixels) -> Scene:
        scene, step, tall = Scene(room, size=size), 40.0, 30.0
        x1, x2 = 0.36 * room, room - 44
        where: dict[tuple[int, int], float] = {}
        for i, (n, m, p) in enumerate(second):
            top = 34 + i * step + 10 * len({a for a, _ in where} - {n})  # a gap between beginnings
            where[n, m] = top + tall / 2
            strength: Strength = "full" if (n, m, p) in best else "faint"
            scene.token(x2 - box / 2, top, word(n, m), box, tall, role=QUERY, strength=strength)
            scene.text(room, where[n, m], number(p), anchor="end", bold=strength == "full")
        middle = (min(where.values()) + max(where.values())) / 2
        foot = max(where.values()) + step - tall / 2
        ends = [n for n, _ in first if n not in {n for n, _, _ in second}]
        for n, p in first:
            below = [y for (a, _), y in where.items() if a == n]
            y = math.fsum(below) / len(below) if below else foot + ends.index(n) * step + tall / 2
            strength = "full" if (n, p) in kept else "faint"
            scene.token(x1, y - tall / 2, word(n), box, tall, role=QUERY, strength=strength)
            scene.text(x1, y + tall / 2 + 11, number(p), bold=strength == "full")
            thick = n == greedy_1
            scene.line(
                (box, middle), (x1 - box / 2, y), role=WEIGHTS if thick else None, width=4 if thick else 1.5
            )
            for (a, m), high in where.items():
                if a == n:
                    thick = (a, m) == (greedy_1, greedy_2)
                    scene.line((x1 + box / 2, y), (x2 - box, high), role=WEIGHTS if thick else None,
                               width=4 if thick else 1.5)  # fmt: skip
                    beside = high + (11 if high > y else -11)
                    scene.text(x2 - box - 7, beside, number(P[m][n + 1]), anchor="end", muted=True)
        scene.token(box / 2, middle - tall / 2, "start", box, tall, role=KEY)
        scene.text(x1, 10, "one token", muted=True)
        scene.text(x2 - box / 2, 10, "two tokens", muted=True)
        scene.height = foot + len(ends) * step + 18
        last = scene.height + 8
        scene.line((0, last), (26, last), role=WEIGHTS, width=4)
        scene.text(34, last, "greedy search", anchor="start")
        scene.token(
            50 + width_of("greedy search", size) + 20, last - 11, "", 26, 22, role=QUERY, strength="full"
        )
        scene.text(90 + width_of("greedy search", size), last, f"kept by {k} beams", anchor="start")
        scene.height = last + 14
        return scene

    return Drawing(title, description, layout(15, 520, 58), layout(13.5, PHONE, 52))


def beam_steps(
    steps: Sequence[Sequence[tuple[int, str, Any]]],
    greedy: Sequence[int],
    found: tuple[int, int],
    *,
    title: str = "A search on a real phrase, step by step",
) -> Drawing:
    """What a beam search keeps at each step, greedy search's path, and the sentence that it finds.

    Args:
        steps: for each step what is kept, the likeliest first: the place of its beginning among those kept
            a step before, its last token, and the probability of all of it.
        greedy: for each step the place of greedy search's beginning, as long as it is kept.
        found: the step and the place at which the likeliest ended sentence stands.
        title: what it shows.

    Raises:
        ValueError: if a beginning, greedy's or the found one is not there.
    """
    levels = [[(int(a), word, float(p)) for a, word, p in listed(step, "a step")] for step in steps]
    for many, level in zip([1, *map(len, levels)], levels, strict=False):
        if not all(0 <= a < many for a, _, _ in level):
            raise ValueError(f"a beginning is not among the {many} of the step before")
    path: dict[int, int] = {}
    place = found[1]
    for t in range(found[0], -1, -1):
        if not 0 <= place < len(levels[t]):
            raise ValueError(f"there is no place {place} at step {t}")
        path[t] = place
        place = levels[t][place][0]
    for t, g in enumerate(greedy):
        if not 0 <= g < len(levels[t]):
            raise ValueError(f"there is no place {g} at step {t}")

    def whole(t: int, place: int) -> str:
        words: list[str] = []
        while t >= 0:
            a, word, _ = levels[t][place]
            words.insert(0, word)
            t, place = t - 1, a
        return " ".join(words)

    last = len(greedy) - 1
    description = (
        "Kept at each step, with the probability of the whole beginning: "
        + "; ".join(", ".join(f"{word} {number(p)}" for _, word, p in level) for level in levels)
        + f". Greedy search's path, a thick line, leads to {whole(last, greedy[last])}, with probability "
        f"{number(levels[last][greedy[last]][2])}. In full colour the likeliest sentence found, "
        f"{whole(*found)}, with {number(levels[found[0]][found[1]][2])}."
    )
    followed = set(enumerate(greedy))

    def join(scene: Scene, t: int, i: int, start: tuple, end: tuple) -> None:
        thick = (t, i) in followed
        scene.line(start, end, role=WEIGHTS if thick else None, width=4 if thick else 1.5)

    def node(scene: Scene, t: int, i: int, x: Pixels, y: Pixels, width: Pixels) -> None:
        _, word, p = levels[t][i]
        strength: Strength = "full" if path.get(t) == i else "pale"
        scene.token(x, y, word, width, 28, role=QUERY, strength=strength)
        scene.text(x, y + 39, number(p), bold=strength == "full")

    def legend(scene: Scene, y: Pixels) -> None:
        scene.line((0, y), (26, y), role=WEIGHTS, width=4)
        scene.text(34, y, "greedy search", anchor="start")
        x = 34 + width_of("greedy search", scene.size) + 22
        scene.token(x + 13, y - 11, "", 26, 22, role=QUERY, strength="full")
        scene.text(x + 34, y, "likeliest found", anchor="start")
        scene.width = max(scene.width, x + 34 + width_of("likeliest found", scene.size))
        scene.height = y + 14

    most = max(map(len, levels))

    def across(size: Pixels, room: Pixels) -> Scene:
        """Steps from left to right.

        Raises:
            ValueError: if they do not fit.
        """
        scene, gap = Scene(room, size=size), 16.0
        broad = [max(max(width_of(word, size) for _, word, _ in level) + 2 * PAD + 4, 38) for level in levels]
        if math.fsum(broad) + gap * (len(levels) - 1) > room:
            raise ValueError("the steps do not fit into a line")
        scene.width = math.fsum(broad) + gap * (len(levels) - 1)
        row, x = 84.0, 0.0
        before: list[tuple[Pixels, Pixels]] = []
        for t, level in enumerate(levels):
            here = []
            for i, (a, _, _) in enumerate(level):
                here.append((x + broad[t], 16 + i * row))
                if t:
                    join(scene, t, i, before[a], (x, 16 + i * row))
                node(scene, t, i, x + broad[t] / 2, 2 + i * row, broad[t])
            x, before = x + broad[t] + gap, here
        legend(scene, most * row + 2)
        return scene

    def down(size: Pixels, room: Pixels) -> Scene:
        """Steps from above downwards."""
        scene, row = Scene(room, size=size), 66.0
        cell = room / most
        for t, level in enumerate(levels):
            for i, (a, _, _) in enumerate(level):
                x, y = (i + 0.5) * cell, 2 + t * row
                if t:
                    join(scene, t, i, ((a + 0.5) * cell, y - row + 48), (x, y))
                node(scene, t, i, x, y, min(cell - 16, 110))
        legend(scene, len(levels) * row + 4)
        return scene

    try:
        wide = across(15, 720)
    except ValueError:
        wide = down(15, 420)
    return Drawing(title, description, wide, down(13.5, PHONE))


def ngram_brackets(
    written: Sequence[str],
    reference: Sequence[str],
    *,
    title: str = "Which words in a row does the reference have?",
) -> Drawing:
    """The 1-grams to 4-grams of a translation as brackets; in full colour those that the reference has.

    Args:
        written: the words of the translation.
        reference: the words of the reference.
        title: what it shows.

    Raises:
        ValueError: if the translation has fewer than four words, or the reference none.
    """
    written, reference = listed(written, "written"), listed(reference, "reference")
    if len(written) < 4:
        raise ValueError(f"4-grams need four words, got {len(written)}")

    def grams(words: list[str], n: int) -> list[tuple[str, ...]]:
        return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]

    right: dict[int, list[bool]] = {}
    for n in (1, 2, 3, 4):
        left = Counter(grams(reference, n))
        right[n] = []
        for gram in grams(written, n):
            right[n].append(left[gram] > 0)
            left[gram] -= 1
    shares = {n: f"{sum(found)}/{len(found)}" for n, found in right.items()}
    said = " ".join(
        f"{n} in a row: {shares[n]}"
        + (
            f" ({'; '.join(' '.join(g) for g, yes in zip(grams(written, n), found, strict=True) if yes)})."
            if any(found)
            else "."
        )
        for n, found in right.items()
    )
    description = (
        f"The translation {' '.join(written)}, the reference {' '.join(reference)}. Below the translation "
        f"stand brackets for all words in a row, one to four, filled where the reference has them. {said}"
    )

    def layout(size: Pixels, room: Pixels, *, stacked: bool) -> Scene:
        scene = Scene(room, size=size)
        name, share = (0, 0) if stacked else (width_of("n = 4", size) + 8, width_of("5/6", size) + 8)
        places, fits = scene.places(name, room - name - share, written, gap=4)
        scene.text(name, 8, "translation", anchor="start", muted=True)
        for (x, wide), word in zip(places, written, strict=True):
            scene.token(x, 20, word, wide, 28, role=QUERY, size=fits)
        y = 62.0
        for n, found in right.items():
            rows = min(n, len(found))
            y += 18 if stacked else 0
            for i, yes in enumerate(found):
                x0 = places[i][0] - places[i][1] / 2
                x1 = places[i + n - 1][0] + places[i + n - 1][1] / 2
                scene.box(x0 + 2, y + (i % n) * 17, x1 - x0 - 4, 12, role=VALUE, radius=3,
                          strength="full" if yes else "plain", masked=not yes)  # fmt: skip
            beside = y - 11 if stacked else y + rows * 8.5 - 2
            scene.text(0, beside, f"n = {n}", anchor="start", muted=True)
            scene.text(room, beside, shares[n], anchor="end", bold=True)
            y += rows * 17 + 14
        places, fits = scene.places(name, room - name - share, reference, gap=4)
        for (x, wide), word in zip(places, reference, strict=True):
            scene.token(x, y + 2, word, wide, 28, role=KEY, size=fits)
        scene.text(name, y + 44, "reference", anchor="start", muted=True)
        scene.height = y + 54
        return scene

    return Drawing(title, description, layout(15, 600, stacked=False), layout(13, PHONE, stacked=True))


def one_column(
    source: Sequence[str],
    weights: Any,
    written: Sequence[str],
    step: int,
    *,
    digits: int = 2,
    title: str = "One column of cross-attention",
) -> Drawing:
    """What the place that writes one token reads of the source: one column of weights over its words.

    Args:
        source: the source's tokens.
        weights: a weight for each of them, as they stand in one column of the attention matrix.
        written: the target's tokens.
        step: which of them is being written, from 0.
        digits: decimals of the weights.
        title: what it shows.

    Raises:
        ValueError: if there is not one weight for each token, or no such step.
    """
    source, written = listed(source, "source"), listed(written, "written")
    weights = [float(w) for w in listed(weights, "weights", len(source))]
    if not 0 <= step < len(written):
        raise ValueError(f"there is no step {step} among {len(written)} tokens")
    description = (
        f"To write {written[step]} of {' '.join(written)}, the decoder reads the source with these weights: "
        + ", ".join(f"{word} {number(w, digits)}" for word, w in zip(source, weights, strict=True))
        + ". Bars are as long as the weights."
    )

    def layout(size: Pixels, room: Pixels) -> Scene:
        scene, tall = Scene(room, size=size), 30.0
        box = widest(source, size) + 2 * PAD + 4
        scene.text(0, 8, "the source", anchor="start", muted=True)
        bars = room - box - 60 - width_of(number(0, digits), size) - 70
        for i, (word, w) in enumerate(zip(source, weights, strict=True)):
            y = 22 + i * (tall + 6)
            scene.token(box / 2, y, word, box, tall, role=KEY)
            scene.box(box + 12, y + 7, max(bars * w, 1), 16, role=WEIGHTS, strength="full")
            scene.text(box + 20 + bars * w, y + 15, number(w, digits), anchor="start")
        middle = 22 + len(source) * (tall + 6) / 2 - 3
        goal = widest([written[step]], size) + 2 * PAD + 22
        scene.token(
            room - goal / 2, middle - tall / 2, written[step], goal, tall, role=QUERY, strength="full"
        )
        scene.text(room, middle - tall / 2 - 14, "writes", anchor="end", muted=True)
        for i, w in enumerate(weights):
            y = 37 + i * (tall + 6)
            start = box + 26 + bars * w + width_of(number(w, digits), size)
            if w >= 0.5 * 10**-digits:  # what is written as zero has no line
                scene.line((start, y), (room - goal - 2, middle), role=WEIGHTS, width=1 + 5 * w)
        y = 22 + len(source) * (tall + 6) + 16
        scene.text(0, y, "the target", anchor="start", muted=True)
        places, fits = scene.places(0, room, written, gap=4)
        for i, ((x, wide), word) in enumerate(zip(places, written, strict=True)):
            strength: Strength = "full" if i == step else "pale" if i < step else "faint"
            scene.token(x, y + 14, word, wide, tall, role=QUERY, size=fits, strength=strength)
        scene.height = y + 46
        return scene

    return Drawing(title, description, layout(15, 560), layout(13, PHONE))


def cut_paths(
    hour: str,
    half: str,
    written: str,
    cuts: Mapping[str, Sequence[bool]],
    *,
    others: str = "others",
    title: str = "Three paths from one token to what is written",
) -> Drawing:
    """How one source token may reach a word that the decoder writes, and which paths each experiment cuts.

    Path 1 is the decoder's own reading of the token's column. Path 2 goes through the hour's column, path 3
    through the columns of other tokens, which the decoder or the hour's column reads.

    Args:
        hour: the source token that becomes the written one.
        half: the token whose paths are cut.
        written: the token that is written.
        cuts: for each experiment by name, whether paths 1, 2 and 3 are cut.
        others: what all other tokens together are called.
        title: what it shows.

    Raises:
        ValueError: if there is no experiment, or one does not say three times whether a path is cut.
    """
    cuts = {name: [bool(x) for x in listed(cut, name, 3)] for name, cut in cuts.items()}
    if not cuts:
        raise ValueError("cuts: expected at least one experiment, got none")
    said = "; ".join(
        f"{name}: " + (", ".join(str(i + 1) for i, yes in enumerate(cut) if yes) or "none")
        for name, cut in cuts.items()
    )
    description = (
        f"Source tokens {hour}, {others} and {half} stand above their columns of C, and below these "
        f"stands {written}, which the decoder writes. Three paths lead from {half} to {written}. 1: the "
        f"decoder reads {half}'s column. 2: inside the encoder {hour}'s column reads {half}, and the decoder "
        f"reads {hour}'s column. 3: the columns of other tokens read {half}, and are read, by "
        f"{hour}'s column or by the decoder. Cut are, {said}."
    )

    def paths(scene: Scene, room: Pixels) -> None:
        box, tall = max(widest([hour, others, half, written], scene.size) + 2 * PAD + 6, 62), 30.0
        xs = [box / 2, room / 2, room - box / 2]
        top, columns, below = 24.0, 112.0, 224.0
        scene.text(0, 8, "source", anchor="start", muted=True)
        for x, word in zip(xs, (hour, others, half), strict=True):
            scene.token(x, top, word, box, tall, role=KEY, strength="full" if x == xs[2] else "pale")
            scene.matrix(x - 14, columns, [[""]] * 3, 28, 14, role=VALUE, shades=[[0.9]] * 3)
            scene.line((x, top + tall + 2), (x, columns - 4), dashed=True)
        scene.text(room / 2 + 22, columns + 21, "C", anchor="start", bold=True)
        scene.token(xs[1], below, written, box, tall, role=QUERY, strength="full")
        scene.text(xs[1] + box / 2 + 8, below + 15, "decoder writes", anchor="start", muted=True)
        start = (xs[2] - 8, top + tall + 2)
        foot, goal = columns + 46, below - 4
        for name, points in {
            "3": [start, (xs[1] + 10, columns - 4)],
            "2": [start, (xs[0] + 10, columns - 4)],
            "1": [(xs[2], foot), (xs[1] + 18, goal)],
        }.items():
            scene.arrow(*points, role=WEIGHTS, width=3)
            (x0, y0), (x1, y1) = points
            share = 0.62 if name == "2" else 0.5
            x, y = x0 + share * (x1 - x0), y0 + share * (y1 - y0)
            scene.box(x - 11, y - 11, 22, 22, name, role=WEIGHTS, strength="full", radius=11, bold=True)
        scene.arrow((xs[0], foot), (xs[1] - 18, goal), width=2)
        scene.arrow((xs[1], foot), (xs[1], goal), width=2)
        passed, halfway = columns + 21, (xs[0] + xs[1]) / 2  # from one column to another
        scene.arrow((xs[1] - 18, passed), (xs[0] + 18, passed), role=WEIGHTS, width=1.5)
        scene.box(halfway - 11, passed - 11, 22, 22, "3", role=WEIGHTS, strength="full", radius=11, bold=True)

    def experiments(scene: Scene, x: Pixels, y: Pixels) -> Pixels:
        """The table of cuts; returns its lower edge."""
        name, cell, tall = widest([*cuts], scene.size) + 12, 34.0, 30.0
        for i in range(3):
            scene.text(x + name + (i + 0.5) * cell, y + 8, str(i + 1), bold=True)
        for row, (words, cut) in enumerate(cuts.items()):
            at = y + 22 + row * tall
            scene.text(x, at + tall / 2, words, anchor="start")
            for i, yes in enumerate(cut):
                scene.box(x + name + i * cell, at, cell, tall, "cut" if yes else "", role=WEIGHTS, shade=0.9,
                          strength="plain" if yes else "pale", masked=yes)  # fmt: skip
        return y + 22 + tall * len(cuts)

    def wide() -> Scene:
        scene = Scene(700, size=14.5)
        paths(scene, 330)
        scene.height = max(262.0, experiments(scene, 376, 50) + 4)
        return scene

    def narrow() -> Scene:
        scene = Scene(PHONE, size=13.2)
        paths(scene, PHONE)
        scene.height = experiments(scene, 0, 276) + 4
        return scene

    return Drawing(title, description, wide(), narrow())


def one_sequence(
    source: Sequence[str],
    read: Sequence[str],
    asked: Sequence[str],
    *,
    title: str = "One stack reads both texts as one",
) -> Drawing:
    """Source and target as a single sequence: who sees whom under two masks, and what is asked for.

    Args:
        source: the source's tokens.
        read: what is read of the target, the begin token first, which separates the two.
        asked: what is asked for at each place of `read`.
        title: what it shows.

    Raises:
        ValueError: if a text is empty, or there is not one token asked for each that is read.
    """
    source, read = listed(source, "source"), listed(read, "read")
    asked = listed(asked, "asked", len(read))
    words, s = [*source, *read], len(source)
    description = (
        f"A table with a row and a column for each token of {' '.join(words)}, the source first. Under the "
        "causal mask each row sees itself and what stands before it. The prefix mask also opens, marked by a "
        f"plus, what stands later in the source, {' '.join(source)}. All else is hatched. Nothing is asked "
        "for at the source; at "
        + "; at ".join(f"{word} {goal}" for word, goal in zip(read, asked, strict=True))
        + f". Positions go on from 1 to {len(words)}, above; below they restart at {read[0]} with 1."
    )

    def layout(size: Pixels, cell: Pixels, gap: Pixels) -> Scene:
        scene, tall = Scene(0, size=size), 30.0
        label, aim = widest(words, size) + 2 * PAD, widest(asked, size) + 2 * PAD
        left, top = label + 26, 46.0
        scene.text(0, 8, "reads", anchor="start", muted=True)
        scene.text(left + cell * s / 2, 8, "source", muted=True)
        scene.text(left + cell * (s + len(read) / 2), 8, "target", muted=True)
        for i, word in enumerate(words):
            y, ours = top + i * tall, i >= s
            scene.token(label / 2, y + 2, word, label, tall - 4, role=QUERY if ours else KEY)
            scene.text(left + (i + 0.5) * cell, top - 14, str(i + 1), muted=True)
            for j in range(len(words)):
                causal, prefix = j <= i, i < j < s
                scene.box(left + j * cell, y, cell, tall, "+" if prefix else "", role=WEIGHTS,
                          shade=0.9 if causal else 0.1, strength="pale" if causal or prefix else "plain",
                          masked=not causal and not prefix)  # fmt: skip
            if ours:
                x = left + len(words) * cell
                scene.arrow((x + 4, y + tall / 2), (x + gap - 4, y + tall / 2))
                scene.token(
                    x + gap + aim / 2, y + 2, asked[i - s], aim, tall - 4, role=QUERY, strength="full"
                )
        last = top + len(words) * tall
        scene.text(left - 7, top - 14, "going on", anchor="end", muted=True)
        scene.text(left - 7, last + 14, "restarting", anchor="end", muted=True)
        for i in range(len(words)):
            place = str(i + 1 - s if i >= s else i + 1)
            scene.text(left + (i + 0.5) * cell, last + 14, place, muted=i < s, bold=i >= s)
        scene.text(left + len(words) * cell + gap, 8, "asked", anchor="start", muted=True)
        scene.width = left + len(words) * cell + gap + aim
        scene.height = last + 26
        return scene

    return Drawing(title, description, layout(15, 44, 30), layout(13, 20, 22))
