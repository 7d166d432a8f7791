"""Which words of one sentence the words of another have read, as lines between the two."""

from collections.abc import Sequence
from typing import Any

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, listed, number, table, width_of
from tformer_book.kit.drawings.primitives import PAD, PHONE, Scene, Strength, widest
from tformer_book.kit.drawings.roles import KEY, QUERY, WEIGHTS


def alignment(
    read: Sequence[str],
    written: Sequence[str],
    weights: Any,
    *,
    least: float = 0.15,
    chosen: Sequence[int] = (),
    title: str = "What was read to write each word",
) -> Drawing:
    """The words read, the words written, and a line for each weight that is not small.

    Args:
        read: the source's words, the keys.
        written: the target's words, the queries.
        weights: (T, S), a row for each word written, a column for each word read.
        least: the smallest weight that gets a line.
        chosen: words written, by their places from 0, that are in full colour with what they read most.
        title: what it shows.

    Raises:
        ValueError: if the weights do not have a row and a column for each word, or there is no such word.
    """
    read, written = listed(read, "read"), listed(written, "written")
    rows = [[float(w) for w in row] for row in table(weights, "weights", len(written), len(read))]
    if not all(0 <= t < len(written) for t in chosen):
        raise ValueError(f"there is no word {max(chosen)} among {len(written)} written")
    most = [row.index(max(row)) for row in rows]
    full = {most[t] for t in chosen}
    description = (
        f"Read: {' '.join(read)}. Written: {' '.join(written)}. A line joins two words where the weight is "
        f"at least {number(least)}, the wider the greater. Each word written reads most, with its weight: "
        + ", ".join(
            f"{word} {read[s]} {number(row[s])}" for word, row, s in zip(written, rows, most, strict=True)
        )
        + "."
    )

    def strength(yes: bool) -> Strength:
        return "full" if yes else "pale"

    def lines(scene: Scene, tops: list[tuple[Pixels, Pixels]], ends: list[tuple[Pixels, Pixels]]) -> None:
        """From each word written to what it read; those of the chosen words lie on top."""
        for t in sorted(range(len(written)), key=lambda t: t in chosen):
            for s, weight in enumerate(rows[t]):
                if weight >= least:
                    faded = None if t in chosen or not chosen else 0.45
                    scene.line(tops[s], ends[t], role=WEIGHTS, width=1 + 6 * weight, opacity=faded)

    def across(size: Pixels, room: Pixels, gap: Pixels) -> Scene:
        """Two lines of text, one above the other.

        Raises:
            ValueError: if they do not fit.
        """
        label, tall = widest(["written"], size) + 12, 32.0
        scene = Scene(room, size=size)
        needed = [
            sum(max(width_of(word, size) + 2 * PAD + 4, 36) + 8 for word in words)
            for words in (read, written)
        ]
        if label + max(needed) - 8 > room:
            raise ValueError("the words do not fit into a line")
        scene.width = min(room, label + 1.25 * max(needed))
        places = [scene.places(label, scene.width - label, words) for words in (read, written)]
        below = tall + gap
        for y, name in ((0.0, "read"), (below, "written")):
            scene.text(0, y + tall / 2, name, anchor="start", muted=True)
        tops = [(x, tall + 1) for x, _ in places[0][0]]
        ends = [(x, below - 1) for x, _ in places[1][0]]
        lines(scene, tops, ends)
        for s, ((x, wide), word) in enumerate(zip(places[0][0], read, strict=True)):
            scene.token(x, 0, word, wide, tall, role=KEY, strength=strength(s in full), size=places[0][1])
        for t, ((x, wide), word) in enumerate(zip(places[1][0], written, strict=True)):
            scene.token(
                x, below, word, wide, tall, role=QUERY, strength=strength(t in chosen), size=places[1][1]
            )
        scene.height = below + tall + 2
        return scene

    def down(size: Pixels, room: Pixels) -> Scene:
        """Two columns of words side by side."""
        scene, tall, step = Scene(room, size=size), 30.0, 38.0
        broad = [min(widest([*words], size) + 2 * PAD + 8, 0.4 * room) for words in (read, written)]
        scene.text(0, 8, "read", anchor="start", muted=True)
        scene.text(room, 8, "written", anchor="end", muted=True)
        heights = [len(words) * step for words in (read, written)]
        starts = [22 + (max(heights) - height) / 2 for height in heights]
        tops = [(broad[0] + 1, starts[0] + s * step + tall / 2) for s in range(len(read))]
        ends = [(room - broad[1] - 1, starts[1] + t * step + tall / 2) for t in range(len(written))]
        lines(scene, tops, ends)
        for s, word in enumerate(read):
            at = starts[0] + s * step
            scene.token(broad[0] / 2, at, word, broad[0], tall, role=KEY, strength=strength(s in full))
        for t, word in enumerate(written):
            at = starts[1] + t * step
            scene.token(
                room - broad[1] / 2, at, word, broad[1], tall, role=QUERY, strength=strength(t in chosen)
            )
        scene.height = 22 + max(heights)
        return scene

    try:
        wide = across(15, 700, 96)
    except ValueError:
        wide = down(15, 460)
    return Drawing(title, description, wide, down(13.5, PHONE))
