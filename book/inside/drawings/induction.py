"""Drawings of the chapter on what is inside a transformer: induction, the stream, and patching."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, fitting, listed, number
from tformer_book.kit.drawings.primitives import PHONE, Scene, Strength
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, VALUE


def induction_circuit(
    tokens: Sequence[str], *, title: str = "Two heads that continue a repetition"
) -> Drawing:
    """Tokens, the note that block 0 makes at each, and how block 1 finds and copies.

    Args:
        tokens: the last of them stands once before, not at the end.
        title: what it shows.

    Raises:
        ValueError: if the last token does not stand before, or nothing but it follows.
    """
    tokens = listed(tokens, "tokens")
    if tokens[-1] not in tokens[:-2]:
        raise ValueError(f"the last token must stand earlier, with another behind it, got {tokens}")
    last, seen = len(tokens) - 1, max(i for i in range(len(tokens) - 2) if tokens[i] == tokens[-1])
    found = seen + 1
    steps = (
        "1: every place notes the token before it",
        f"2: the last token, {tokens[last]}, looks for its note",
        f"3: the token with this note, {tokens[found]}, is copied",
    )
    description = (
        f"The tokens {' '.join(tokens)}. A head of block 0 writes at each place a note with the "
        f"token before it, so that {tokens[found]} has the note {tokens[seen]}; a frame holds the token and "
        f"the note of each place. A head of block 1 takes the last token, {tokens[last]}, as its "
        f"query, compares it with the notes as keys, finds the note at {tokens[found]} and copies the token "
        f"{tokens[found]}, not the note, as the answer."
    )

    def layout(room: Pixels, size: Pixels, *, stacked: bool) -> Scene:
        scene = Scene(room, size=size)
        apart = 12 if stacked else 28  # the answer stands apart
        step = (room - apart) / (len(tokens) + 1)
        wide = step - (7 if stacked else 22)
        xs = [(i + 0.5) * step for i in range(len(tokens) + 1)]
        xs[-1] += apart
        above, notes, row, below = 24.0, 48.0, 128.0, 186.0
        scene.text(xs[0], notes + 14, "notes", muted=True, size=min(size, 13.5))
        scene.text(xs[0], row + 50, "tokens", muted=True, size=min(size, 13.5))
        for i in range(1, len(tokens)):
            scene.box(xs[i] - wide / 2 - 2, notes - 5, wide + 4, row - notes + 40, strength="faint", radius=9)
            start, end = (xs[i - 1] + 6, row - 3), (xs[i] - 6, notes + 31)
            if i == found:
                scene.arrow(start, end, width=2.4, role=STREAM)
                scene.text((start[0] + end[0]) / 2 - 11, (start[1] + end[1]) / 2 - 5, "1", bold=True)
            else:
                scene.arrow(start, end)
        words = fitting([*tokens, tokens[found]], wide - (5 if stacked else 10), min(size, 14))
        for x, word in zip(xs, tokens, strict=False):
            scene.token(x, row, word, wide, role=STREAM, size=words)
        for i in range(1, len(tokens)):
            scene.token(xs[i], notes, tokens[i - 1], wide, 28, role=KEY,
                        strength="full" if i == found else "pale", size=words)  # fmt: skip
        side = xs[last] + wide / 2 + (9 if stacked else 14)
        scene.line((xs[last] + wide / 2 + 1, row + 15), (side, row + 15), (side, above), (xs[found], above),
                   role=QUERY, width=2.2)  # fmt: skip
        scene.arrow((xs[found], above), (xs[found], notes - 3), role=QUERY, width=2.2)
        scene.token(xs[-1], row, tokens[found], wide, role=VALUE, strength="full", size=words)
        scene.arrow((xs[found], row + 32), (xs[found], below), (xs[-1], below), (xs[-1], row + 33),
                    role=VALUE, width=2.2)  # fmt: skip
        scene.text((xs[found] + side) / 2, above - 14, "2  query = note?", muted=True)
        scene.text((xs[found] + xs[-1]) / 2, below + 15, "3  copy", muted=True)
        for i, line in enumerate(steps):
            scene.text(0, below + 48 + 24 * i, line, anchor="start")
        scene.height = below + 110
        return scene

    return Drawing(title, description, layout(560, 15, stacked=False), layout(PHONE, 13.5, stacked=True))


def stream_bus(tokens: tuple[str, str], *, title: str = "Heads talk through the stream") -> Drawing:
    """Streams of three places: the first head writes into one, the second reads its key there.

    Args:
        tokens: the token that came twice, and the one that followed it.
        title: what it shows.
    """
    once, then = listed(tokens, "tokens", 2)
    legend = (
        (f"Q reads the token: {once}", QUERY),
        (f"K reads the note: {once}", KEY),
        (f"V reads the token: {then}", VALUE),
    )
    description = (
        f"Three thick lines, the streams at the places of {once}, of {then} behind it, and of {once} at the "
        f"end. The head of block 0 reads the first and writes a note, {once}, into the second. The head of "
        f"block 1 reads its query from the third, and its key and its value from the second: the key is the "
        f"note, the value the token. It writes {then} into the third, which the logits read."
    )

    def layout(room: Pixels, xs: Sequence[Pixels], box: Pixels, size: Pixels, *, stacked: bool) -> Scene:
        scene = Scene(room, size=size)
        a, b, c = xs
        foot = 262.0
        scene.stream((a, foot), (a, 180), role=STREAM)
        scene.stream((b, foot), (b, 60), role=STREAM)
        scene.stream((c, foot), (c, 32), role=STREAM)
        for x, word in zip(xs, (once, then, once), strict=True):
            scene.token(x, foot, word, 62, role=STREAM)
        one = (a + b) / 2
        scene.box(one - box / 2, 178, box, 44, "block 0", role=None, strength="plain", radius=6)
        scene.arrow((a + 5, 208), (one - box / 2 - 2, 208))
        scene.arrow((one + box / 2 + 2, 192), (b - 6, 192), role=STREAM, width=2.6)
        scene.text(b + 10, 192, "note", anchor="start", muted=True)
        two = (b + c) / 2
        scene.box(two - box / 2, 88, box, 64, "block 1", role=None, strength="plain", radius=6)
        for y, name, role in ((138, "K", KEY), (104, "V", VALUE)):
            scene.arrow((b + 5, y), (two - box / 2 - 2, y), role=role, width=2.4)
            scene.text((b + two - box / 2) / 2, y - 12, name, bold=True)
        scene.arrow((c - 5, 138), (two + box / 2 + 2, 138), role=QUERY, width=2.4)
        scene.text((c + two + box / 2) / 2, 126, "Q", bold=True)
        scene.arrow((two, 87), (two, 58), (c - 6, 58), role=STREAM, width=2.6)
        scene.text(two, 44, f"writes {then}", muted=True)
        scene.token(c, 2, then, 62, role=VALUE, strength="full")
        for i, (words, role) in enumerate(legend):
            x, y = (0, 316 + 26 * i) if stacked else (c + 60, 96 + 32 * i)
            scene.line((x, y), (x + 22, y), role=role, width=3)
            scene.text(x + 30, y, words, anchor="start")
        scene.height = 380 if stacked else foot + 32
        return scene

    return Drawing(
        title,
        description,
        layout(700, (34, 190, 410), 76, 15, stacked=False),
        layout(PHONE, (32, 148, 296), 58, 13.5, stacked=True),
    )


@dataclass(frozen=True)
class FoundHead:
    """A head of a trained model, for `found_circuit`."""

    name: str  # such as "0.1"
    weight: float  # what it gives the place that it reads here
    rise: float  # of the loss without it


def found_circuit(
    tokens: tuple[str, str],
    heads: Mapping[str, FoundHead],
    needs: Mapping[str, float],
    *,
    title: str = "The circuit that was found",
) -> Drawing:
    """Streams of three places, and the heads of a trained model that read and write them.

    Args:
        tokens: the token that comes twice, and the one that followed it.
        heads: "copy", the head of block 1; and "K", "Q" and "V", the head of block 0 that writes what its
            keys, queries and values read.
        needs: for "K", "Q" and "V" the loss if they do not read what this head writes.
        title: what it shows.

    Raises:
        ValueError: if a head or a loss is missing.
    """
    once, then = listed(tokens, "tokens", 2)
    ways = ("K", "Q", "V")
    if set(heads) != {"copy", *ways} or set(needs) != set(ways):
        raise ValueError(f"copy, K, Q and V are needed, got {', '.join(heads)} and {', '.join(needs)}")
    copy, roles = heads["copy"], {"Q": QUERY, "K": KEY, "V": VALUE}
    what = {"K": f"the note {once}", "Q": f"{once}, written again", "V": f"{then}, written again"}
    legend = [f"{way} reads {what[way]}; without: loss {number(needs[way], 1)}" for way in ways]
    description = (
        f"Three thick lines, the streams at the places of {once}, of {then} behind it, and of {once} at the "
        f"end. Head {heads['K'].name} reads the first and writes a note, {once}, into the second. Head "
        f"{heads['V'].name} reads the second and writes {then} into it once more; head {heads['Q'].name} "
        f"does so with {once} in the third. Head {copy.name} takes its key, the note, and its value, {then}, "
        f"from the second, its query, {once}, from the third, and writes {then} into the third. "
        + " ".join(
            f"Head {head.name} gives the place that it reads {number(head.weight)}; without it the loss "
            f"rises by {number(head.rise)}."
            for head in dict.fromkeys(heads.values())
        )
        + f" {'. '.join(legend)}."
    )

    def layout(room: Pixels, xs: Sequence[Pixels], box: Pixels, size: Pixels, small: Pixels) -> Scene:
        scene = Scene(room, size=size)
        a, b, c = xs
        foot, high, low = 306.0, 76.0, 206.0  # the tokens, and the boxes of blocks 1 and 0
        scene.stream((a, foot), (a, 206), role=STREAM)
        scene.stream((b, foot), (b, 66), role=STREAM)
        scene.stream((c, foot), (c, 32), role=STREAM)
        for x, word in zip(xs, (once, then, once), strict=True):
            scene.token(x, foot, word, 58, role=STREAM)

        def head(x: Pixels, y: Pixels, tall: Pixels, which: str, words: str = "") -> None:
            one = heads[which]
            scene.box(x - box / 2, y, box, tall, one.name, strength="plain", radius=6, bold=True)
            if words:
                scene.text(x, y - 12, words, size=small, muted=True)
            scene.text(x, y + tall + 14, f"reads {number(one.weight)}", size=small)
            scene.text(x, y + tall + 31, f"cut +{number(one.rise)}", size=small)

        one, two, gap = (a + b) / 2, (b + c) / 2, 24.0
        head(one, low, 44, "K", f"writes {once}")
        scene.arrow((a + 5, low + 34), (one - box / 2 - 2, low + 34))
        scene.arrow((one + box / 2 + 2, low + 12), (b - 6, low + 12), role=KEY, width=2.6)
        for x, which, word, role in ((b, "V", then, VALUE), (c, "Q", once, QUERY)):
            middle = x + gap + box / 2
            head(middle, low, 44, which, f"writes {word}")
            scene.arrow((x + 5, low + 34), (x + gap - 2, low + 34))
            scene.arrow((x + gap - 2, low + 12), (x + 6, low + 12), role=role, width=2.6)
        head(two, high, 60, "copy")
        for y, way in ((high + 48, "K"), (high + 14, "V")):
            scene.arrow((b + 5, y), (two - box / 2 - 2, y), role=roles[way], width=2.4)
            scene.text((b + two - box / 2) / 2, y - 12, way, bold=True)
        scene.arrow((c - 5, high + 48), (two + box / 2 + 2, high + 48), role=QUERY, width=2.4)
        scene.text((c + two + box / 2) / 2, high + 36, "Q", bold=True)
        scene.arrow((two, high - 1), (two, 46), (c - 6, 46), role=STREAM, width=2.6)
        scene.text(two - 8, 32, f"writes {then}", size=small, muted=True)
        scene.token(c, 2, then, 58, role=VALUE, strength="full")
        for i, (words, way) in enumerate(zip(legend, ways, strict=True)):
            y = foot + 56 + 24 * i
            scene.line((0, y), (18, y), role=roles[way], width=3)
            scene.text(25, y, words, anchor="start", size=small)
        scene.height = foot + 120
        return scene

    return Drawing(
        title,
        description,
        layout(560, (40, 220, 430), 78, 15, 14),
        layout(PHONE, (30, 126, 240), 54, 13.5, 12.5),
    )


def patched_runs(
    clean: Sequence[str],
    corrupted: Sequence[str],
    place: int,
    differences: tuple[float, float, float],
    *,
    names: tuple[str, str] = ("B", "D"),
    title: str = "One activation from another run",
) -> Drawing:
    """A clean run, a corrupted one, and between them the corrupted run with one activation of the clean one.

    Args:
        clean: its tokens.
        corrupted: its tokens, as many.
        place: whose stream behind block 0 is copied, counted from 0.
        differences: of two logits at the last place, in the clean, the patched and the corrupted run.
        names: the tokens whose logits are compared.
        title: what it shows.

    Raises:
        ValueError: if the runs differ in length or the place is none.
    """
    clean = listed(clean, "clean")
    corrupted = listed(corrupted, "corrupted", len(clean))
    shown = [number(value, 1) for value in listed(differences, "differences", 3)]
    if not 0 <= place < len(clean):
        raise ValueError(f"there is no place {place} among {len(clean)}")
    panels = (("clean run", clean), ("patched run", corrupted), ("corrupted run", corrupted))
    measure = f"{names[0]} over {names[1]}"
    description = (
        f"Three runs with a row of tokens and, above it, the stream behind block 0 and behind block 1. "
        f"Clean: {' '.join(clean)}. Corrupted: {' '.join(corrupted)}. The patched run is the corrupted one, "
        f"but behind block 0 the stream at place {place + 1} is taken from the clean run, and whatever reads "
        f"it later changes. The logit of {names[0]} minus that of {names[1]}: clean {shown[0]}, patched "
        f"{shown[1]}, corrupted {shown[2]}."
    )

    def panel(scene: Scene, x: Pixels, y: Pixels, room: Pixels, which: int) -> None:
        name, tokens = panels[which]
        n, step = len(tokens), room / len(tokens)
        wide = step - 6
        scene.text(x + room / 2, y + 8, name, bold=True)
        scene.text(x + room / 2, y + 30, f"{measure}: {shown[which]}", muted=True)
        for m, top in ((2, y + 48), (1, y + 88)):
            for i in range(n):
                copied = which == 1 and m == 1 and i == place
                changed = which == 1 and m == 2 and i >= place
                strong: Strength = "full" if copied else "pale" if which == 0 or changed else "plain"
                role, shade = (None if strong == "plain" else STREAM), 0.12 if changed else 0.4
                scene.box(x + i * step + 3, top, wide, 26, role=role, strength=strong, shade=shade, radius=5)
        for i, word in enumerate(tokens):
            role = STREAM if which == 0 else None
            scene.token(x + (i + 0.5) * step, y + 128, word, wide, 28, role=role)

    def wide() -> Scene:
        scene, room, left = Scene(700, 160, size=15), 172.0, 66.0
        gap = (700 - left - 3 * room) / 2
        for which in range(3):
            panel(scene, left + which * (room + gap), 0, room, which)
        for y, words in ((61, "block 1"), (101, "block 0"), (142, "tokens")):
            scene.text(0, y, words, anchor="start", muted=True)
        step = room / len(clean)
        end = left + room + gap + place * step + 3
        scene.arrow((left + (place + 0.5) * step, 88), (left + (place + 0.5) * step, 81),
                    (end + step / 2 - 3, 81), (end + step / 2 - 3, 87), role=STREAM, width=2.4)  # fmt: skip
        scene.text(left + room + gap / 2, 96, "copied", muted=True)
        return scene

    def narrow() -> Scene:
        scene, tall = Scene(PHONE, size=13.5), 178.0
        left, room = 58.0, 200.0
        for which in range(3):
            panel(scene, left, which * tall, room, which)
            for y, words in ((61, "block 1"), (101, "block 0"), (142, "tokens")):
                scene.text(0, which * tall + y, words, anchor="start", muted=True)
        right = left + room + 16
        x = left + (place + 0.5) * room / len(clean)
        path = ((x, 88), (x, 81), (right, 81), (right, tall + 81), (x, tall + 81), (x, tall + 87))
        scene.arrow(*path, role=STREAM, width=2.4)
        scene.text(right + 8, tall - 20, "copied", anchor="start", muted=True)
        scene.height = 3 * tall - 18
        return scene

    return Drawing(title, description, wide(), narrow())


def patched_paths(
    outcomes: Mapping[str, str], measured: str, *, title: str = "Four ways out of the first layer"
) -> Drawing:
    """From the heads of block 0 to queries, keys and values of block 1 and to the logits; one way is patched.

    Args:
        outcomes: what is measured when a way is patched, in words, by "Q", "K", "V" and "logits".
        measured: what that is.
        title: what it shows.

    Raises:
        ValueError: if a way is missing.
    """
    ways = ("logits", "Q", "K", "V")
    if set(outcomes) != set(ways):
        raise ValueError(f"outcomes are needed for {', '.join(ways)}, got {', '.join(outcomes)}")
    roles = {"Q": QUERY, "K": KEY, "V": VALUE, "logits": STREAM}
    description = (
        "The heads of block 0 stand at the left. Four arrows lead from them: to the queries, the keys and "
        "the values of block 1, and past it to the logits. One at a time is fed from another run, while the "
        f"other three stay. {measured[0].upper()}{measured[1:]}: "
        + ", ".join(f"{way} {outcomes[way]}" for way in ways)
        + "."
    )

    def layout(room: Pixels, size: Pixels, *, stacked: bool) -> Scene:
        scene = Scene(room, 232, size=size)
        one, gate, two = (76.0, 30.0, 78.0) if stacked else (110.0, 40.0, 100.0)
        middle = room - gate - two
        scene.box(0, 70, one, 126, "block 0", strength="plain", radius=8, bold=True)
        scene.box(middle + gate, 70, two, 126, "block 1", strength="plain", radius=8, bold=True)
        for way, y in (("Q", 88.0), ("K", 132.0), ("V", 176.0)):
            role = roles[way]
            scene.box(middle, y - 15, gate, 30, way, role=role, strength="full", radius=5, bold=True)
            scene.arrow((one + 2, y), (middle - 3, y), role=role, width=2.4)
            scene.text((one + middle) / 2, y - 13, outcomes[way])
        end = middle + gate + two / 2
        scene.arrow((one / 2, 69), (one / 2, 20), (end - 36, 20), role=STREAM, width=2.4)
        scene.text((one + middle) / 2, 36, outcomes["logits"])
        scene.box(end - 33, 4, 66, 32, "logits", role=STREAM, strength="pale", radius=6)
        scene.arrow((end, 69), (end, 39))
        scene.text(room / 2, 218, measured, muted=True)
        return scene

    return Drawing(title, description, layout(560, 15, stacked=False), layout(PHONE, 13.5, stacked=True))
