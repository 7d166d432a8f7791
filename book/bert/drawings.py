"""Drawings of the chapter on BERT. What is in them comes in as an argument."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import LEAST, Pixels, fitting, listed, number, plain, width_of
from tformer_book.kit.drawings.primitives import PAD, PHONE, Scene, widest
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, VALUE, WEIGHTS

Paint = dict[str, Any]
HIDDEN: Paint = {"role": WEIGHTS, "strength": "full"}


def both_sides(
    tokens: Sequence[str],
    place: int,
    guesses: Mapping[str, tuple[Sequence[int], str, str]],
    *,
    title: str = "A hole, guessed from one side and from both",
) -> Drawing:
    """A text with a hole, and what stands there most often after, before and between its neighbours.

    Args:
        tokens: the text.
        place: the hole, from 0.
        guesses: from what is looked at to the places that are read, the commonest token, and how often it is.
        title: what it shows.

    Raises:
        ValueError: if the hole or a place is not in the text, or nothing is guessed.
    """
    tokens = listed(tokens, "tokens")
    if not guesses:
        raise ValueError("guesses: expected at least one, got 0")
    if not all(0 <= n < len(tokens) for seen, _, _ in guesses.values() for n in [place, *seen]):
        raise ValueError(f"the hole at {place} or what is read beside it is not among {len(tokens)} tokens")
    around = " ".join("▢" if n == place else word for n, word in enumerate(tokens))
    told = " ".join(f"{name}: {word}, {often}." for name, (_, word, often) in guesses.items())
    description = f"The text {around}. Below, what the hole is guessed to be. {told}"

    def layout(room: Pixels, label: Pixels, size: Pixels, *, stacked: bool) -> Scene:
        scene = Scene(room, size=size)
        words = [word for _, word, _ in guesses.values()]
        broad = max(words, key=lambda word: width_of(word, 1))
        spots, fits = scene.places(0, room - label, [*tokens[:place], broad, *tokens[place + 1 :]], gap=6)
        for n, ((x, wide), word) in enumerate(zip(spots, tokens, strict=True)):
            paint: Paint = HIDDEN if n == place else {"role": KEY}
            scene.token(x, 2, "▢" if n == place else word, wide, size=fits, **paint)
        y = 54.0
        for name, (seen, word, often) in guesses.items():
            if stacked:
                scene.text(0, y + 8, name, anchor="start", bold=True)
                scene.text(10 + width_of(name, 1.16 * size), y + 8, often, anchor="start")
                y += 22
            else:
                scene.text(room - label + 16, y + 6, name, anchor="start", bold=True)
                scene.text(room - label + 16, y + 25, often, anchor="start")
            for n, (x, wide) in enumerate(spots):
                if n == place:
                    scene.token(x, y, word, wide, size=fits, role=QUERY, strength="full")
                elif n in seen:
                    scene.token(x, y, tokens[n], wide, size=fits, role=KEY)
                else:
                    scene.token(x, y, "", wide, strength="faint")
            y += 46
        scene.height = y - 12
        return scene

    label = 16 + max(
        width_of(text, 1.16 * 14) for name, (_, _, often) in guesses.items() for text in (name, often)
    )
    return Drawing(
        title,
        description,
        layout(440 + label, label, 14, stacked=False),
        layout(PHONE, 0, 13.5, stacked=True),
    )


def four_heads(
    tokens: Sequence[str],
    heads: Mapping[str, tuple[Sequence[int], str]],
    *,
    hole: int | None = None,
    title: str = "One encoder, four heads",
) -> Drawing:
    """An encoder over a text, and which of its outputs each head reads.

    Args:
        tokens: the text.
        heads: from what a head is for to the places whose outputs it reads, and what it answers.
        hole: the place that is hidden while holes are filled; then the text is drawn twice.
        title: what it shows.

    Raises:
        ValueError: if there is no token or no head, or a head reads nothing or a place that is not there.
    """
    tokens = listed(tokens, "tokens")
    if not heads:
        raise ValueError("heads: expected at least one, got 0")
    reads = {name: listed(places, f"what {name!r} reads") for name, (places, _) in heads.items()}
    for name, places in reads.items():
        if not all(0 <= place < len(tokens) for place in places):
            raise ValueError(f"{name!r} reads {places}, and there are {len(tokens)} tokens")
    said = " ".join(
        f"To {name} it reads {', '.join(tokens[n] for n in reads[name])}: {answer}."
        for name, (_, answer) in heads.items()
    )
    holes = "" if hole is None else f"While holes are filled, {tokens[hole]} is hidden by [MASK]. "
    description = (
        f"The tokens {' '.join(tokens)} enter one encoder, in which every token reads all others. {holes}It "
        "returns a vector h for each. Below is a line for each head; filled are the outputs that it reads. "
        f"{said}"
    )

    def layout(room: Pixels, label: Pixels, size: Pixels, *, stacked: bool) -> Scene:
        scene = Scene(room, size=size)
        across, top = room - label, 0.0
        with_hole = ["[MASK]" if n == hole else word for n, word in enumerate(tokens)]
        texts = {"": tokens} if hole is None else {"first trained on": with_hole, "then used on": tokens}
        broad = [
            max(words, key=lambda word: width_of(word, 1)) for words in zip(*texts.values(), strict=True)
        ]
        spots, fits = scene.places(0, across, broad, gap=6)
        for name, words in texts.items():
            if name and stacked:
                scene.text(0, top + 10, name, anchor="start", muted=True)
                top += 22
            elif name:
                scene.text(across + 16, top + 17, name, anchor="start", muted=True)
            for (x, wide), word in zip(spots, words, strict=True):
                paint: Paint = HIDDEN if word == "[MASK]" else {"role": KEY}
                scene.token(x, top + 2, word, wide, size=fits, **paint)
            top += 38
        top -= 38
        for n, (x, wide) in enumerate(spots):
            scene.arrow((x, top + 32), (x, top + 52), role=STREAM, width=2)
            scene.arrow((x, top + 92), (x, top + 112), role=STREAM, width=2)
            scene.box(x - wide / 2, top + 112, wide, 28, f"h_{{{n + 1}}}", role=STREAM, radius=4)
        scene.box(0, top + 52, across, 40, "encoder: every token reads all others", role=STREAM, radius=6)
        y = top + 158
        for name, (_, answer) in heads.items():
            if stacked:
                scene.text(0, y + 8, name, anchor="start", bold=True)
                y += 22
            for n, (x, wide) in enumerate(spots):
                read = n in reads[name]
                scene.box(x - wide / 2, y, wide, 24, radius=4, role=STREAM if read else None,
                          strength="full" if read else "faint")  # fmt: skip
            if stacked:
                scene.text(0, y + 38, f"→ {answer}", anchor="start")
                y += 62
            else:
                scene.text(across + 16, y + 2, name, anchor="start", bold=True)
                scene.text(across + 16, y + 22, f"→ {answer}", anchor="start")
                y += 46
        scene.height = y
        return scene

    label = 16 + max(
        *(width_of(name, 1.16 * 14) for name in heads),
        *(width_of(f"→ {answer}", 14) for _, answer in heads.values()),
    )
    if label > 330:
        raise ValueError("the name or the answer of a head is too long for the drawing")
    return Drawing(
        title,
        description,
        layout(400 + label, label, 14, stacked=False),
        layout(PHONE, 0, 13.5, stacked=True),
    )


def leakage(
    words: Sequence[str],
    own: Sequence,
    *,
    place: int = 1,
    title: str = "Two layers bring a token back to itself",
) -> Drawing:
    """Tokens that may read each other, but not themselves, through two layers.

    Args:
        words: the text.
        own: the share of a token in its own output, after the first layer and after the second.
        place: the token that is followed, from 0.
        title: what it shows.

    Raises:
        ValueError: if there are fewer than two words, `own` are not two, or the place is not there.
    """
    words = listed(words, "words")
    shares = [number(value) for value in listed(own, "own", 2)]
    if len(words) < 2 or not 0 <= place < len(words):
        raise ValueError(f"{len(words)} words, place {place}: expected two words or more, and one of them")
    word = words[place]
    others = ", ".join(w for n, w in enumerate(words) if n != place)
    description = (
        f"Three lines of tokens, {' '.join(words)}: the input, after one layer, after two. In a layer each "
        f"token reads all others and not itself. Lines lead from {word} in the input to {others} after one "
        f"layer, and from these back to {word} after two. The share of {word} in its own place: "
        f"{shares[0]} after one layer, {shares[1]} after two."
    )

    def layout(room: Pixels, label: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        spots, fits = scene.places(label, room - label, words, gap=10)
        ys, tall = (2.0, 96.0, 190.0), 30.0
        names = ("input", "layer 1", "layer 2")
        home = spots[place][0]
        for n, (x, _) in enumerate(spots):
            if n != place:
                scene.line((home, ys[0] + tall), (x, ys[1]), role=KEY, width=3)
                scene.line((x, ys[1] + tall), (home, ys[2]), role=KEY, width=3)
        for level, (y, name) in enumerate(zip(ys, names, strict=True)):
            scene.text(0, y + tall / 2, name, anchor="start", muted=True)
            for n, ((x, wide), w) in enumerate(zip(spots, words, strict=True)):
                paint: Paint = {"strength": "plain"}
                if n == place:
                    paint = {"role": KEY, "strength": "full"}
                    if level == 1:
                        paint = {"role": KEY, "strength": "plain", "masked": True}
                elif level == 1:
                    paint = {"role": KEY}
                scene.token(x, y, w, wide, size=fits, **paint)
        for y, share in zip(ys[1:], shares, strict=True):
            scene.text(0, y + tall / 2 + 19, f"own {share}", anchor="start", bold=True)
        scene.height = ys[2] + tall + 16
        return scene

    return Drawing(title, description, layout(560, 80, 15), layout(PHONE, 66, 13.5))


def three_fates(
    words: Sequence[str],
    place: int,
    other: str,
    shares: Sequence,
    *,
    hole: str = "[MASK]",
    title: str = "What is shown where a token is asked for",
) -> Drawing:
    """A chosen token, and the three things that the model may see in its place.

    Args:
        words: the text.
        place: the chosen token, from 0.
        other: the random token.
        shares: how often the hole, the random token and the token itself are shown.
        hole: the mark of a hidden token.
        title: what it shows.

    Raises:
        ValueError: if the place is not in the text, or there are not three shares.
    """
    words = listed(words, "words")
    if not 0 <= place < len(words):
        raise ValueError(f"there is no place {place} among {len(words)} words")
    true = words[place]
    parts = [f"{100 * float(share):.0f}%" for share in listed(shares, "shares", 3)]
    shown = [hole, other, true]
    kinds = ["hidden", "a random token", "left as it is"]
    lines = "; ".join(
        f"in {part}: {' '.join([*words[:place], seen, *words[place + 1 :]])}"
        for part, seen in zip(parts, shown, strict=True)
    )
    description = (
        f"The text is {' '.join(words)}, and {true} has been chosen. The model reads, {lines}. In all three "
        f"cases it is asked for {true} at this place, and for nothing at the others."
    )

    def layout(room: Pixels, side: Pixels, size: Pixels, *, stacked: bool) -> Scene:
        scene = Scene(room, size=size)
        broad = max(shown, key=lambda word: width_of(word, 1))
        spots, fits = scene.places(side, room - side, [*words[:place], broad, *words[place + 1 :]], gap=6)

        def line(y: Pixels, seen: str, paint: Paint) -> None:
            for n, ((x, wide), word) in enumerate(zip(spots, words, strict=True)):
                here: Paint = paint if n == place else {"role": KEY}
                scene.token(x, y, seen if n == place else word, wide, size=fits, **here)

        paints: list[Paint] = [
            {"role": WEIGHTS, "strength": "full"},
            {"role": STREAM, "strength": "full"},
            {"role": QUERY, "strength": "full"},
        ]
        home, y = spots[place][0], 2.0
        if stacked:
            scene.text(0, y + 10, "the text", anchor="start", muted=True)
            y += 24
        else:
            scene.text(0, y + 15, "the text", anchor="start", muted=True)
        line(y, true, paints[2])
        y += 46
        for part, kind, seen, paint in zip(parts, kinds, shown, paints, strict=True):
            if stacked:
                scene.text(0, y + 10, part, anchor="start", bold=True)
                scene.text(42, y + 10, kind, anchor="start")
                y += 24
            else:
                scene.text(0, y + 7, part, anchor="start", bold=True)
                scene.text(0, y + 26, kind, anchor="start")
            line(y, seen, paint)
            y += 46
        scene.arrow((home, y - 14), (home, y + 8), width=2)
        scene.text(home, y + 20, f"asked for: {true}", bold=True)
        scene.height = y + 32
        return scene

    return Drawing(
        title, description, layout(640, 150, 15, stacked=False), layout(PHONE, 0, 13.5, stacked=True)
    )


def along_words(
    rows: Mapping[str, Sequence[str]],
    paints: Sequence[Mapping[str, Paint] | Paint],
    signs: Sequence[str] = (),
    *,
    size: Pixels = 15,
) -> tuple[Scene, Scene]:
    """A line of boxes for each row, side by side under the words; on a phone a column for each.

    Args:
        rows: from a name to as many words; an empty one leaves its place free, "–" is hatched.
        paints: how each row is painted.
        signs: what stands between a row and the next, such as "+".
        size: the font size of the wide layout.

    Raises:
        ValueError: if rows have different lengths.
    """
    names = list(rows)
    length = len(rows[names[0]])
    cells = {name: listed(words, name, length) for name, words in rows.items()}
    marks = [*signs, *[""] * len(names)]

    def cell(scene: Scene, x: Pixels, y: Pixels, wide: Pixels, word: str, paint: Any, fits: Pixels) -> None:
        if word == "–":
            scene.box(x - wide / 2, y, wide, 30, radius=8, role=WEIGHTS, strength="plain", masked=True)
        elif word:
            scene.token(x, y, word, wide, size=fits, **paint)

    wide_scene = Scene(0, size=size)
    label = max(widest([plain(name) for name in names], size), 10) + 14
    broad = [
        max(widest([line[n] or "–" for line in cells.values()], size), 18) + 2 * PAD for n in range(length)
    ]
    spare = max(0.0, (700 - label - math.fsum(broad) - 6 * length) / length)
    broad = [b + min(spare, 18) for b in broad]
    x, spots = label, []
    for b in broad:
        spots.append((x + b / 2, b))
        x += b + 6
    if x > 762:
        raise ValueError(f"the rows are {x:.0f} px wide, and 760 are there: take fewer or shorter words")
    wide_scene.width, y = x - 6, 2.0
    for i, (name, paint) in enumerate(zip(names, paints, strict=True)):
        wide_scene.text(0, y + 15, name, anchor="start", muted=True)
        for (at, b), word in zip(spots, cells[name], strict=True):
            cell(wide_scene, at, y, b, word, paint, size)
            if marks[i]:
                wide_scene.text(at, y + 40, marks[i])
        y += 50 if marks[i] else 40
    wide_scene.height = y - 8

    narrow = Scene(PHONE, size=13.5)
    gap = 16 if any(marks) else 6
    every = [[plain(word) for word in line] for line in cells.values()]
    needs = [
        max(widest(line, LEAST), widest(name.split(), LEAST)) + 2 * PAD
        for name, line in zip(names, every, strict=True)
    ]
    free = PHONE - math.fsum(needs) - gap * (len(names) - 1)
    if free < 0:
        raise ValueError(f"the columns are {PHONE - free:.0f} px wide on a phone, and {PHONE} are there")
    needs = [need + free / len(names) for need in needs]
    fits = min(fitting(line, need - 2 * PAD + 1, 13.5) for line, need in zip(every, needs, strict=True))
    x = 0.0
    lines = max(len(name.split()) for name in names)
    for i, (name, paint, need) in enumerate(zip(names, paints, needs, strict=True)):
        for j, part in enumerate(name.split()):
            narrow.text(x + need / 2, 10 + 17 * j, part, muted=True, size=LEAST)
        for n, word in enumerate(cells[name]):
            y = 17 * lines + 8 + 36 * n
            cell(narrow, x + need / 2, y, need, word, paint, fits)
            if marks[i]:
                narrow.text(x + need + gap / 2, y + 15, marks[i])
        x += need + gap
    narrow.height = 17 * lines + 8 + 36 * length
    return wide_scene, narrow


def embedding_sum(
    tokens: Sequence[str],
    segments: Sequence[int],
    *,
    title: str = "What enters the first block: a sum of three vectors",
) -> Drawing:
    """Under each token its vector, that of its place and that of its segment.

    Args:
        tokens: the row that BERT reads.
        segments: the segment of each, 0 or 1; they are called A and B.
        title: what it shows.

    Raises:
        ValueError: if the lengths differ.
    """
    tokens = listed(tokens, "tokens")
    letters = ["AB"[int(s)] for s in listed(segments, "segments", len(tokens))]
    rows = {
        "read": tokens,
        "token": [f"e_{{{word}}}" for word in tokens],
        "place": [f"p_{{{n + 1}}}" for n in range(len(tokens))],
        "segment": [f"s_{{{letter}}}" for letter in letters],
    }
    described = "; ".join(
        f"{word}: token {word}, place {n + 1}, segment {letter}"
        for n, (word, letter) in enumerate(zip(tokens, letters, strict=True))
    )
    description = f"For each token the three vectors that are added: {described}. The sum is then normalised."
    paints: list[Paint] = [
        {"role": KEY},
        {"role": KEY, "strength": "full"},
        {"role": QUERY},
        {"role": VALUE},
    ]
    return Drawing(title, description, *along_words(rows, paints, ("", "+", "+", "")))


def tags_and_pieces(
    pieces: Sequence[str],
    first: Sequence[int],
    tags: Sequence[str],
    words: Sequence[str],
    *,
    title: str = "Tags belong to words, outputs to pieces",
) -> Drawing:
    """Pieces of words, with the tags at the first piece of each word, and laid along the pieces by mistake.

    Args:
        pieces: what the model reads, without special tokens.
        first: for each piece the number of the word that begins there, -1 if none does.
        tags: the tag of each word.
        words: the words.
        title: what it shows.

    Raises:
        ValueError: if the lengths differ, or a word has no tag.
    """
    pieces, tags = listed(pieces, "pieces"), listed(tags, "tags")
    begins = [int(n) for n in listed(first, "first", len(pieces))]
    if max(begins) >= len(tags):
        raise ValueError(f"word {max(begins)} has no tag: there are {len(tags)}")
    whole = listed(words, "words", len(tags))
    right = [tags[n] if n >= 0 else "–" for n in begins]
    wrong = [*tags, *["–"] * len(pieces)][: len(pieces)]
    rows = {"word": [whole[n] if n >= 0 else "" for n in begins]}
    rows |= {"piece": pieces, "right": right, "wrong": wrong}
    described = "; ".join(
        f"{piece}: {'nothing' if a == '–' else a}, and wrongly {'nothing' if b == '–' else b}"
        for piece, a, b in zip(pieces, right, wrong, strict=True)
    )
    description = (
        f"Four lines: the words {' '.join(whole)}; their pieces; the tags where each word begins, with "
        "nothing asked at later pieces; and the tags laid along the pieces one after the other, which is "
        f"wrong. {described}."
    )
    paints: list[Paint] = [
        {"strength": "plain"},
        {"role": KEY},
        {"role": VALUE, "strength": "full"},
        {"role": STREAM},
    ]
    return Drawing(title, description, *along_words(rows, paints, size=14))


def trainings(
    stages: Sequence[tuple[str, str]],
    last: str,
    *,
    title: str = "One encoder, trained before on nothing, on one text, on two",
) -> Drawing:
    """Trainings one after the other, after each of which the same last training may follow.

    Args:
        stages: of each what it leaves the encoder with, and what it is; the first leaves it as it was made.
        last: what is done from each.
        title: what it shows.

    Raises:
        ValueError: if there is no stage, or one has no name.
    """
    names = listed([name for name, _ in stages], "stages")
    said = [text for _, text in stages]
    if not all(names):
        raise ValueError("each stage has a name")
    told = "; then ".join(f"{name}, {text}" for name, text in stages)
    description = f"One after the other: {told}. From each of them an arrow leads to: {last}."

    def wide() -> Scene:
        scene = Scene(700, size=14)
        gap = 40.0
        each = (700 - gap * (len(names) - 1)) / len(names)
        for n, (name, text) in enumerate(zip(names, said, strict=True)):
            x = n * (each + gap)
            scene.box(x, 2, each, 54, radius=6, role=KEY if n else None, strength="pale" if n else "plain")
            scene.text(x + each / 2, 19, name, bold=True)
            scene.text(x + each / 2, 40, text)
            if n:
                scene.arrow((x - gap + 3, 29), (x - 3, 29), width=2)
            scene.arrow((x + each / 2, 56), (x + each / 2, 84), role=VALUE, width=2)
        scene.box(0, 84, 700, 32, last, role=VALUE, strength="full", radius=6)
        scene.height = 118
        return scene

    def narrow() -> Scene:
        scene = Scene(PHONE, size=13.5)
        side, y = 40.0, 2.0
        for n, (name, text) in enumerate(zip(names, said, strict=True)):
            if n:
                scene.arrow(((PHONE - side) / 2, y - 22), ((PHONE - side) / 2, y - 2), width=2)
            scene.box(
                0, y, PHONE - side, 48, radius=6, role=KEY if n else None, strength="pale" if n else "plain"
            )
            scene.text((PHONE - side) / 2, y + 15, name, bold=True)
            scene.text((PHONE - side) / 2, y + 34, text, size=LEAST)
            scene.line((PHONE - side, y + 24), (PHONE - side / 2, y + 24), role=VALUE, width=2)
            y += 72
        scene.arrow((PHONE - side / 2, 26), (PHONE - side / 2, y), role=VALUE, width=2)
        scene.box(0, y, PHONE, 32, last, role=VALUE, strength="full", radius=6, size=LEAST)
        scene.height = y + 34
        return scene

    return Drawing(title, description, wide(), narrow())


def pretraining(
    tokens: Sequence[str],
    segments: Sequence[int],
    asked: Mapping[int, str],
    *,
    follows: bool = True,
    title: str = "Pre-training: one row, two questions",
) -> Drawing:
    """A row of two segments through the encoder, the heads on its outputs, and their losses.

    Args:
        tokens: what the model reads; the first is [CLS].
        segments: the segment of each, 0 or 1; they are called A and B.
        asked: the true token at each place where the model is asked for it.
        follows: whether B follows A.
        title: what it shows.

    Raises:
        ValueError: if the lengths differ, there are not two segments one after the other, or no place or one
            that is not in the row is asked for.
    """
    tokens = listed(tokens, "tokens")
    parts = [int(s) for s in listed(segments, "segments", len(tokens))]
    if sorted(parts) != parts or set(parts) != {0, 1}:
        raise ValueError(f"segments are some 0 and then some 1, got {parts}")
    if not asked or not all(0 < place < len(tokens) for place in asked):
        raise ValueError(f"asked for are {list(asked)}, and the row has the places 1 to {len(tokens) - 1}")
    asked, second = dict(sorted(asked.items())), parts.index(1)
    said = "follows" if follows else "does not"
    outputs = {0, *asked}
    holes = [f"−ln p({true})" for true in asked.values()]
    every, whole = "encoder: every token reads all others", "the loss: the first + the mean of the others"
    description = (
        f"The row {' '.join(tokens)}: segment A up to place {second}, then segment B. It enters the encoder, "
        f"in which every token reads all others. Of the outputs, [CLS] is read by the head for the next "
        f"sentence, whose loss is −ln p({said}), and the places {', '.join(str(n + 1) for n in asked)} by "
        f"the head for holes, whose loss is the mean of {', '.join(holes)}. The two losses are added."
    )
    paints: list[Paint] = [HIDDEN if n in asked else {"role": KEY} for n in range(len(tokens))]

    def output(scene: Scene, x: Pixels, y: Pixels, width: Pixels, height: Pixels, n: int) -> None:
        read = n in outputs
        scene.box(x, y, width, height, f"h_{{{n + 1}}}" if read else "", radius=4,
                  role=STREAM if read else None, strength="full" if read else "faint")  # fmt: skip

    wide = Scene(680, size=14)
    spots, fits = wide.places(0, 680, tokens, gap=6)
    edges = [(x - w / 2, x + w / 2) for x, w in spots]
    for a, b, letter in ((0, second - 1, "A"), (second, len(tokens) - 1, "B")):
        wide.brace(edges[a][0], edges[b][1], 32, f"segment {letter}", up=True)
    split = edges[min(asked)][0]
    for n, ((x, w), word) in enumerate(zip(spots, tokens, strict=True)):
        wide.token(x, 38, word, w, size=fits, **paints[n])
        wide.arrow((x, 68), (x, 86), role=STREAM, width=2)
        wide.arrow((x, 124), (x, 142), role=STREAM, width=2)
        output(wide, x - w / 2, 142, w, 28, n)
        if n in outputs:
            wide.arrow((x, 170), (x, 196), role=STREAM, width=2)
    wide.box(0, 86, 680, 38, every, role=STREAM, radius=6)
    heads = (
        (0.0, split - 16, "does B follow A?", f"−ln p({said})"),
        (split, 680 - split, "which token?", ", ".join(holes)),
    )
    for x, width, question, loss in heads:
        wide.box(x, 196, width, 32, question, radius=6, strength="plain", bold=True)
        wide.arrow((x + width / 2, 228), (x + width / 2, 248))
        wide.text(x + width / 2, 260, loss)
        wide.arrow((x + width / 2, 272), (x + width / 2, 292))
    wide.box(0, 292, 680, 32, whole, role=QUERY, strength="full", radius=6)
    wide.height = 326

    narrow = Scene(PHONE, size=13.5)
    first = max(width_of(word, 13.5) for word in tokens) + 2 * PAD
    asks = {0: ("does B follow A?", f"−ln p({said})")}
    asks |= {n: ("which token?", f"−ln p({true})") for n, true in asked.items()}
    left, end = first + 120, 0.0
    for n, word in enumerate(tokens):
        y = 22.0 + 38 * n + 24 * parts[n]
        if n in (0, second):
            narrow.text(0, y - 11, f"segment {'AB'[parts[n]]}", anchor="start", muted=True)
        narrow.token(first / 2, y, word, first, **paints[n])
        for x in (first, first + 52):
            narrow.arrow((x, y + 15), (x + 16, y + 15), role=STREAM, width=2)
        output(narrow, first + 68, y, 40, 30, n)
        for i, line in enumerate(asks.get(n, ())):
            narrow.text(left, y + 6 + 18 * i, line, anchor="start", bold=i == 0, size=LEAST)
        end = y + 30
    narrow.box(first + 16, 22, 36, end - 22, role=STREAM, radius=6)
    narrow.text(PHONE / 2, end + 16, every, size=LEAST)
    narrow.box(0, end + 36, PHONE, 32, whole, role=QUERY, strength="full", radius=6, size=LEAST)
    narrow.height = end + 70
    return Drawing(title, description, wide, narrow)


def pencil(
    read: Sequence[str],
    odds: Sequence[int],
    mean: str,
    guesses: Mapping[str, tuple[str, bool]],
    total: str,
    *,
    title: str = "A hole is filled by hand",
) -> Drawing:
    """What a hole reads, what comes out for it, and what each token of the vocabulary is worth there.

    Args:
        read: the text as the encoder reads it.
        odds: what the exponential of each token's score is; 0 where the mask cuts it.
        mean: how the hole's output is written.
        guesses: from a token of the vocabulary to the exponential of its logit and whether it is asked for.
        total: the sum of these exponentials.
        title: what it shows.

    Raises:
        ValueError: if there is not a number for each token, or nothing is read.
    """
    read = listed(read, "read")
    counts = listed(odds, "odds", len(read))
    if sum(counts) <= 0 or not guesses:
        raise ValueError("odds and guesses: expected something that is read, and something to say")
    weights = [f"{n}/{sum(counts)}" if n else "–" for n in counts]
    true = ", ".join(f"{word} {share} of {total}" for word, (share, asked) in guesses.items() if asked)
    description = (
        f"Above, what a hole reads: {', '.join(f'{w} {n}' for w, n in zip(read, counts, strict=True))}, the "
        f"exponentials of the scores, and so the weights {', '.join(weights)}. The weighted mean gives the "
        f"output {mean}. Below, the vocabulary with the exponentials of the logits: "
        f"{', '.join(f'{w} {share}' for w, (share, _) in guesses.items())}; their sum is {total}. In full "
        f"colour what is asked for: {true}."
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        scene.text(0, 8, "what the hole reads, and exp(score)", anchor="start", muted=True)
        spots, fits = scene.places(0, room, [max(word, "MMM", key=len) for word in read], gap=6)
        for (x, wide), word, n, weight in zip(spots, read, counts, weights, strict=True):
            paint: Paint = HIDDEN if word == "[MASK]" else {"role": KEY}
            if not n:
                paint = {"role": KEY, "strength": "plain", "masked": True}
            scene.token(x, 22, word, wide, size=fits, **paint)
            scene.text(x, 66, str(n), bold=True)
            scene.box(x - wide / 2, 80, wide, 26, weight, role=WEIGHTS, radius=4, masked=not n)
            if n:
                scene.line((x, 106), (room / 2, 136), width=1 + n)
        scene.box(room / 2 - 80, 136, 160, 30, f"h = {mean}", role=STREAM, radius=6)
        scene.arrow((room / 2, 166), (room / 2, 192), role=STREAM, width=2)
        scene.text(
            0, 204, f"the vocabulary, and exp(logit): their sum is {total}", anchor="start", muted=True
        )
        spots, fits = scene.places(0, room, [max(word, "MMM", key=len) for word in guesses], gap=6)
        for (x, wide), (word, (share, asked)) in zip(spots, guesses.items(), strict=True):
            scene.token(x, 218, word, wide, size=fits, role=QUERY, strength="full" if asked else "pale")
            scene.text(x, 264, share, bold=True)
        scene.height = 276
        return scene

    return Drawing(title, description, layout(560, 15), layout(PHONE, 13.5))


def filled(
    sentences: Mapping[str, Mapping[str, float]], *, title: str = "What a model puts into a hole"
) -> Drawing:
    """Sentences with a hole, and below each the likeliest tokens with bars as long as their probabilities.

    Args:
        sentences: from a text with one [MASK] to the probabilities of tokens, the likeliest first.
        title: what it shows.

    Raises:
        ValueError: if there is no sentence, or one has not just one hole.
    """
    texts = listed(sentences, "sentences")
    if any(text.split().count("[MASK]") != 1 for text in texts):
        raise ValueError("each sentence has one word that is [MASK]")
    said = "; ".join(
        f"{text} {', '.join(f'{word} {p:.2f}' for word, p in sentences[text].items())}" for text in texts
    )
    description = f"Sentences with a hole, and below each a bar for each of the likeliest tokens: {said}."

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        label = max(width_of(word, size) for row in sentences.values() for word in row) + 12
        long, y = room - label - 50, 2.0
        for text in texts:
            x = 0.0
            for word in text.split():
                wide = width_of(word, size) + 2 * PAD
                if x and x + wide > room:
                    x, y = 0.0, y + 31
                paint: Paint = HIDDEN if word == "[MASK]" else {"role": KEY}
                scene.token(x + wide / 2, y, word, wide, 26, **paint)
                x += wide + 5
            y += 36
            for word, p in sentences[text].items():
                scene.text(label - 8, y + 8, word, anchor="end")
                scene.area((label, y), (label + long * p, y), (label + long * p, y + 16), (label, y + 16),
                           role=QUERY, opacity=1)  # fmt: skip
                scene.text(label + long * p + 8, y + 8, f"{p:.2f}", anchor="start", muted=True)
                y += 21
            y += 16
        scene.height = y - 14
        return scene

    return Drawing(title, description, layout(560, 15), layout(PHONE, 13.5))


def found_by_meaning(
    query: str,
    passages: Sequence[tuple[str, float, Sequence[str]]],
    *,
    title: str = "A search by meaning",
) -> Drawing:
    """A question, and passages with the cosines of their vectors with its own and the words that they share.

    Args:
        query: the question.
        passages: of each its text, the cosine and the shared words; the nearest comes first.
        title: what it shows.

    Raises:
        ValueError: if there is no passage, or a cosine is none.
    """
    rows = sorted(listed(passages, "passages"), key=lambda row: -row[1])
    if not all(-1 <= cosine <= 1 for _, cosine, _ in rows):
        raise ValueError("a cosine lies between -1 and 1")

    def shares(words: Sequence[str]) -> str:
        return f"shares {', '.join(words)}" if words else "shares no word"

    described = " ".join(f"{text} {number(cosine)}, {shares(words)}." for text, cosine, words in rows)
    description = (
        f"The question {query} and {len(rows)} passages, the nearest first, each with a bar as long as the "
        f"cosine of its vector with the question's. {described}"
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        wide = min(room, width_of(query, size) + 28)
        scene.token(wide / 2, 2, query, wide, 32, role=QUERY, strength="full")
        notes = [f"{number(cosine)}, {shares(words)}" for _, cosine, words in rows]
        y, long = 52.0, min(0.55 * room, room - 12 - max(width_of(note, size) for note in notes))
        for place, ((text, cosine, _), note) in enumerate(zip(rows, notes, strict=True)):
            scene.text(0, y + 8, text, anchor="start", bold=not place)
            end = 2 + long * max(cosine, 0) / max(rows[0][1], 0.1)
            scene.area((0, y + 22), (end, y + 22), (end, y + 36), (0, y + 36), role=VALUE,
                       opacity=1 if not place else 0.5)  # fmt: skip
            scene.text(end + 8, y + 29, note, anchor="start", muted=True)
            y += 54
        scene.height = y - 12
        return scene

    return Drawing(title, description, layout(560, 15), layout(PHONE, 13.5))
