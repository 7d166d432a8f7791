"""Drawings of the chapter on the transformer. Every number in them comes in as an argument."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, listed, number, table, width_of
from tformer_book.kit.drawings.primitives import PAD, PHONE, Scene, widest
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, VALUE, WEIGHTS, Role

STEP = 74.0  # the height of a sublayer


def plus(scene: Scene, x: Pixels, y: Pixels) -> None:
    """Where something is added to the stream."""
    scene.box(x - 9, y - 9, 18, 18, "+", role=STREAM, strength="full", radius=9, bold=True)


def sublayer(
    scene: Scene, x: Pixels, y: Pixels, far: Pixels, words: str, role: Role | None, *, new: bool = False
) -> Pixels:
    """A branch from the stream at (x, y) through a norm and a box, and back; returns where the next begins.

    The box ends at `far`, which may lie on either side of the stream.
    """
    low, way = y + 48, 1 if far > x else -1
    norm = x + way * 60
    scene.arrow((x, y + 10), (norm - way * 20, y + 10), role=STREAM, width=2)
    scene.box(norm - 20, y - 5, 40, 30, "LN", radius=4, strength="plain")
    near = norm + way * 38
    scene.arrow((norm + way * 20, y + 10), (near, y + 10), role=STREAM, width=2)
    options: dict[str, Any] = {"role": role, "strength": "full" if new else "pale" if role else "plain"}
    scene.box(min(near, far), y - 5, abs(far - near), 30, words, radius=4, **options)
    middle = (near + far) / 2
    scene.arrow((middle, y + 25), (middle, low), (x + way * 9, low), role=STREAM, width=2)
    plus(scene, x, low)
    return y + STEP


def frame(scene: Scene, x: Pixels, y: Pixels, right: Pixels, bottom: Pixels, words: str) -> None:
    """The outline of what is there several times, and how often, below in the middle."""
    scene.box(x, y, right - x, bottom - y, radius=8, strength="faint")
    scene.text((x + right) / 2, bottom - 14, words, bold=True)


def ids_to_targets(
    tokens: Sequence[str],
    ids: Sequence,
    sizes: Mapping[str, int],
    *,
    title: str = "From token ids to the tokens that come next",
) -> Drawing:
    """A decoder from what it reads to what it is asked for, with the shape of what flows.

    Args:
        tokens: the text; all but the last are read, all but the first are to be guessed.
        ids: their numbers in the vocabulary.
        sizes: D, the width, M, the number of blocks, and vocab.
        title: what it shows.

    Raises:
        ValueError: if there are fewer than two tokens, the lengths differ, or a size is missing.
    """
    tokens = listed(tokens, "tokens")
    ids = [number(value, 0) for value in listed(ids, "ids", len(tokens))]
    if len(tokens) < 2:
        raise ValueError("a text of one token has no next one")
    for name in ("D", "M", "vocab"):
        if name not in sizes:
            raise ValueError(f"the size {name} is missing among {', '.join(sizes) or 'none'}")
    read, wanted = tokens[:-1], tokens[1:]
    N, D, M, vocab = len(read), sizes["D"], sizes["M"], sizes["vocab"]
    description = (
        f"Top to bottom. The tokens that are read, {' '.join(read)}, with their ids {', '.join(ids[:-1])}. "
        f"N = {N} ids go in. Embedding: a column of E for each id; plus position: a column of P. The stream, "
        f"D by N = {D} by {N}, runs through M = {M} blocks. In each, a branch leads through a norm and "
        "masked attention and is added back, then one through a norm and the MLP. Then the last norm, the "
        f"unembedding by the transpose of E, and logits, vocab by N = {vocab} by {N}. They guess the "
        f"targets, the same tokens moved by one: {' '.join(wanted)}."
    )

    def layout(label: Pixels, room: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        column = (room - label) / N
        xs = [label + (n + 0.5) * column for n in range(N)]
        axis, left = label + 28, label
        scene.token_row(xs, 2, read, column - 8, role=KEY)
        for x, i in zip(xs, ids[:-1], strict=True):
            scene.text(x, 46, i)
        scene.arrow((axis, 58), (axis, 84))
        scene.text(axis + 14, 70, f"ids: N = {N}", anchor="start", muted=True)
        scene.box(
            left, 84, room - left, 30, "embedding: a column of E for each id", radius=4, strength="plain"
        )
        y = 114.0
        top, rows = y + 104, 2 * STEP
        end = top + 4 + rows + 4
        scene.stream((axis, y), (axis, end + 30), role=STREAM)
        scene.box(axis + 40, y + 10, room - axis - 40, 30, "position: a column of P", radius=4,
                  strength="plain")  # fmt: skip
        scene.arrow((axis + 40, y + 25), (axis + 9, y + 25), role=STREAM, width=2)
        plus(scene, axis, y + 25)
        scene.text(axis + 14, y + 64, f"stream: D × N = {D} × {N}", anchor="start", muted=True)
        frame(scene, left, top - 18, room, end, f"block, × M = {M}")
        sublayer(scene, axis, top + 4, room - 12, "attention, masked", WEIGHTS)
        sublayer(scene, axis, top + 4 + STEP, room - 12, "MLP", None)
        scene.text(axis + 14, end + 15, f"D × N = {D} × {N}", anchor="start", muted=True)
        y = end + 30
        scene.box(left, y, room - left, 30, "last norm: LN", radius=4, strength="plain")
        scene.stream((axis, y + 30), (axis, y + 58), role=STREAM)
        scene.text(axis + 14, y + 44, f"D × N = {D} × {N}", anchor="start", muted=True)
        scene.map(left, y + 58, room - left, 32, "unembedding: E^{T}", slant=0)
        scene.arrow((axis, y + 90), (axis, y + 120))
        scene.text(axis + 14, y + 104, f"logits: vocab × N = {vocab} × {N}", anchor="start", muted=True)
        scene.token_row(xs, y + 122, wanted, column - 8, role=QUERY, strength="full")
        for x, i in zip(xs, ids[1:], strict=True):
            scene.text(x, y + 166, i)
        for name, at in {"read": 17, "ids": 46, "next": y + 137}.items():
            scene.text(0, at, name, anchor="start", muted=True)
        scene.text(0, y + 166, "ids", anchor="start", muted=True)
        scene.height = y + 178
        return scene

    return Drawing(title, description, layout(64, 520, 15), layout(42, PHONE, 13.5))


def machine_masks(
    panels: Mapping[str, tuple[Sequence[str], Any, int, str]],
    *,
    title: str = "Three machines: who may read whom",
) -> Drawing:
    """Who may read whom in an encoder, a decoder and an encoder-decoder: a table for each.

    Args:
        panels: from a machine's name to its tokens, its mask (a row for each query, True = may read), how
            many of the tokens, at the front, belong to the source, and what the machine is asked for.
        title: what it shows.

    Raises:
        ValueError: if there is no panel, a mask is not square, or the source is larger than the text.
    """
    if not panels:
        raise ValueError("panels: expected at least one, got 0")
    shown: dict[str, tuple[list[str], list[list[bool]], int, str]] = {}
    for name, (given, mask, source, asked) in panels.items():
        words = listed(given, f"tokens of {name!r}")
        rows = table(mask, f"mask {name!r}", len(words), len(words))
        if not 0 <= source <= len(words):
            raise ValueError(f"{name!r} has {len(words)} tokens, of which {source} cannot be the source")
        shown[name] = (words, [[bool(yes) for yes in row] for row in rows], source, asked)
    described = " ".join(
        f"{name}, asked for {asked}: "
        + "; ".join(
            f"{word} reads {', '.join(key for key, yes in zip(words, row, strict=True) if yes) or 'nothing'}"
            for word, row in zip(words, may, strict=True)
        )
        + "."
        for name, (words, may, _, asked) in shown.items()
    )
    description = (
        "For each machine a table with a row for each token that reads and a column for each that is read. "
        f"Filled: may read; hatched: may not. {described} Where a token of the target reads the source, the "
        "cell has another colour: that is cross-attention."
    )

    def panel(scene: Scene, x: Pixels, y: Pixels, label: Pixels, cell: Pixels, name: str) -> None:
        words, may, source, asked = shown[name]
        tall, left, top = 32.0, x + label, y + 62
        across = len(words) * cell
        scene.text(x + (label + across) / 2, y + 10, name, bold=True)

        def side(i: int) -> Role:
            return KEY if i < source else QUERY

        for i, word in enumerate(words):
            scene.token(left + (i + 0.5) * cell, y + 28, word, cell - 3, 28, role=side(i))
            scene.token(x + label / 2 - 2, top + i * tall + 2, word, label - 5, 28, role=side(i))
            for j, yes in enumerate(may[i]):
                crossing = i >= source > j
                scene.box(left + j * cell, top + i * tall, cell, tall, role=VALUE if crossing else WEIGHTS,
                          strength="pale" if yes else "plain", shade=0.9, masked=not yes)  # fmt: skip
        scene.text(x + (label + across) / 2, top + len(words) * tall + 18, asked, muted=True)

    def layout(size: Pixels, room: Pixels, *, stacked: bool) -> Scene:
        gap = 14.0
        scene, x, y = Scene(room, size=size), 0.0, 0.0
        for name, (words, *_) in shown.items():
            cell = widest(words, size) + 2 * PAD
            label = cell + 4
            broad, tall = label + len(words) * cell, 62 + 32 * len(words) + 30
            panel(scene, (room - broad) / 2 if stacked else x, y, label, cell, name)
            if stacked:
                y += tall + 18
            else:
                x += broad + gap
                y = 0.0
        most = max(62 + 32 * len(words) + 30 for words, *_ in shown.values())
        end = y if stacked else most + 12
        if not stacked:
            scene.width = x - gap
        keys: list[tuple[str, dict[str, Any]]] = [
            ("reads its own text", {"role": WEIGHTS, "shade": 0.9}),
            ("reads the source", {"role": VALUE, "shade": 0.9}),
            ("may not", {"role": WEIGHTS, "strength": "plain", "masked": True}),
        ]
        x = 0.0
        for said, paint in keys:
            wide = 30 + width_of(said, size)
            if x and x + wide > scene.width:
                x, end = 0.0, end + 26
            scene.box(x, end, 22, 18, **paint)
            scene.text(x + 28, end + 9, said, anchor="start")
            x += wide + 16
        scene.height = end + 22
        return scene

    return Drawing(title, description, layout(14, 740, stacked=False), layout(13.5, PHONE, stacked=True))


def encoder_decoder(
    source: Sequence[str], target: Sequence[str], *, title: str = "A decoder that reads an encoder's memory"
) -> Drawing:
    """The blocks of an encoder-decoder: the encoder leaves a memory, and cross-attention reads it.

    Args:
        source: the words that the encoder reads.
        target: the words that the decoder reads, and after its first the words that it is to guess.
        title: what it shows.

    Raises:
        ValueError: if one of them is empty.
    """
    source, target = listed(source, "source"), listed(target, "target")
    description = (
        "Two streams, each from embeddings plus positions. The encoder's, over the source "
        f"{' '.join(source)}, has blocks with a branch through attention without a causal mask and "
        "one through the MLP; after the last norm it is the memory, D by S. "
        f"The decoder's, over the target {' '.join(target)}, D by N, has blocks with three branches: "
        "masked attention, cross-attention, in full colour, and the MLP. An arrow leads from the memory to "
        "cross-attention: keys and values. At the decoder's end stand the last norm and the next token."
    )
    parts: dict[str, list[tuple[str, Role | None]]] = {
        "encoder": [("attention", WEIGHTS), ("MLP", None)],
        "decoder": [("attention, masked", WEIGHTS), ("cross-attention", VALUE), ("MLP", None)],
    }

    def stack(
        scene: Scene, x: Pixels, y: Pixels, right: Pixels, name: str, words: list[str], *, flip: bool = False
    ) -> tuple[Pixels, Pixels, Pixels]:
        """Tokens, stream, a block, last norm; returns where the stream, cross-attention and the end are."""
        axis, far, top = (right - 28, x + 14, y + 104) if flip else (x + 28, right - 14, y + 104)
        anchor: Literal["start", "end"] = "end" if flip else "start"
        places, fits = scene.places(x, right - x, words)
        for (at, wide), word in zip(places, words, strict=True):
            scene.token(at, y + 22, word, wide, role=KEY if name == "encoder" else QUERY, size=fits)
        scene.text(right if flip else x, y + 8, name, anchor=anchor, bold=True)
        bottom = top + STEP * len(parts[name]) + 6
        scene.stream((axis, y + 52), (axis, bottom + 30), role=STREAM)
        shape = "D × S" if name == "encoder" else "D × N"
        for height, said in ((y + 68, f"embedding + position: {shape}"), (bottom + 15, shape)):
            scene.text(axis + (-14 if flip else 14), height, said, anchor=anchor, muted=True)
        frame(scene, x, y + 84, right, bottom, "× M")
        at = top
        for what, role in parts[name]:
            sublayer(scene, axis, at, far, what, role, new=what == "cross-attention")
            at += STEP
        scene.box(x, bottom + 30, right - x, 30, "last norm: LN", radius=4, strength="plain")
        return axis, top + STEP + 10, bottom + 60

    def finish(scene: Scene, axis: Pixels, y: Pixels, *, flip: bool = False) -> None:
        """What leaves the decoder."""
        scene.arrow((axis, y), (axis, y + 34), role=STREAM, width=4)
        anchor: Literal["start", "end"] = "end" if flip else "start"
        words = "to the unembedding: the next token"
        scene.text(axis + (-16 if flip else 16), y + 18, words, anchor=anchor, muted=True)
        scene.height = y + 44

    def wide() -> Scene:
        scene = Scene(700, size=15)
        axis, _, end = stack(scene, 0, 0, 300, "encoder", source)
        to, cross, last = stack(scene, 400, 0, 700, "decoder", target, flip=True)
        scene.stream((axis, end), (axis, end + 24), role=STREAM)
        scene.box(0, end + 24, 300, 34, "memory: D × S", role=VALUE, strength="full", radius=4, bold=True)
        path = [(300, end + 41), (350, end + 41), (350, cross), (413, cross)]
        scene.arrow(*path, role=VALUE, width=3)
        scene.text(350, cross - 34, "keys", muted=True)
        scene.text(350, cross - 16, "and values", muted=True)
        finish(scene, to, last, flip=True)
        return scene

    def narrow() -> Scene:
        scene, right = Scene(PHONE, size=13.5), PHONE - 28
        axis, _, end = stack(scene, 0, 0, right, "encoder", source)
        scene.stream((axis, end), (axis, end + 24), role=STREAM)
        scene.box(0, end + 24, right, 34, "memory: D × S", role=VALUE, strength="full", radius=4, bold=True)
        to, cross, last = stack(scene, 0, end + 84, right, "decoder", target)
        path = [(right, end + 41), (PHONE - 10, end + 41), (PHONE - 10, cross), (right - 13, cross)]
        scene.arrow(*path, role=VALUE, width=3)
        scene.text(right, end + 72, "keys and values", anchor="end", muted=True)
        finish(scene, to, last)
        return scene

    return Drawing(title, description, wide(), narrow())


def ladder(
    rungs: Sequence[tuple[str, Any, Any]],
    stream: Sequence[Any],
    reads: Sequence[tuple[str, str | None]],
    *,
    factor: str = "",
    digits: int = 2,
    title: str = "A token goes down the ladder",
) -> Drawing:
    """One token through a pre-norm block: at each rung the norm reads the stream, a sublayer adds to it.

    Args:
        rungs: for each sublayer its name, the token as the norm leaves it, and what the sublayer adds.
        stream: the token before the first sublayer and after each.
        reads: for each token its name and the weight that it gets, None if the mask forbids it.
        factor: what stands below what the first norm leaves, such as the same numbers written in another way.
        digits: decimals of numbers that are not whole.
        title: what it shows.

    Raises:
        ValueError: if there are no rungs, or the stream has not one state more than there are rungs.
    """
    found = [(name, listed(normed, "normed"), listed(added, "added")) for name, normed, added in rungs]
    if not found:
        raise ValueError("rungs: expected at least one, got 0")
    states = [listed(state, "a state") for state in listed(stream, "stream", len(found) + 1)]
    seen = listed(reads, "reads")

    def written(value: Any) -> str:
        """Whole numbers without decimals; a rounded zero has no minus."""
        if isinstance(value, str):
            return value
        whole = abs(float(value) - round(float(value))) < 0.5 * 10**-digits
        return number(value, 0 if whole else digits)

    def told(values: Sequence) -> str:
        return f"({', '.join(map(written, values))})"

    def given(name: str, weight: str | None) -> str:
        return f"{name} {weight if weight is not None else 'masked'}"

    steps = " ".join(
        f"The norm makes {told(normed)} of it; {name} adds {told(added)}, and the stream is {told(state)}."
        for (name, normed, added), state in zip(found, states[1:], strict=True)
    )
    description = (
        f"At the left the stream, from top to bottom, at the right what each sublayer reads and adds. The "
        f"token is {told(states[0])}. {steps} Weights in {found[0][0]}: "
        f"{', '.join(given(*each) for each in seen)}."
    )

    def layout(room: Pixels, cell: Pixels, size: Pixels) -> Scene:
        scene, tall, step = Scene(room, size=size), 25.0, 25.0 * len(states[0]) + 62
        left, far = cell / 2 + 2, room - cell / 2 - 2
        middle = (left + far) / 2

        def column(x: Pixels, y: Pixels, values: Sequence, **options: Any) -> None:
            for i, value in enumerate(values):
                scene.box(x - cell / 2, y + i * tall, cell, tall, written(value), **options)

        broad = 34.0
        begin = far + cell / 2 - broad * len(seen)
        scene.text(begin - 8, 11, "reads token", anchor="end", muted=True)
        scene.text(begin - 8, 37, "with weight", anchor="end", muted=True)
        for j, (name, weight) in enumerate(seen):
            scene.text(begin + (j + 0.5) * broad, 11, name)
            scene.box(
                begin + j * broad, 24, broad, 26, weight or "",
                role=WEIGHTS, strength="pale" if weight else "plain", shade=0.6, masked=weight is None,
            )  # fmt: skip
        y, high = 82.0, tall * len(states[0])
        scene.stream((left, y - 22), (left, y + step * len(found) + high + 14), role=STREAM)
        for k, (name, normed, added) in enumerate(found):
            half = y + high / 2
            column(left, y, states[k], role=STREAM, strength="full")
            scene.arrow((left + cell / 2, half), (middle - cell / 2, half), role=STREAM, width=2)
            scene.text((left + middle) / 2, half - 13, "norm")
            column(middle, y, normed, role=STREAM)
            scene.arrow((middle + cell / 2, half), (far - cell / 2, half), role=STREAM, width=2)
            words = [name] if room > PHONE else name.split()
            for i, word in enumerate(words):
                scene.text((middle + far) / 2, half - 13 - 16 * (len(words) - 1 - i), word)
            column(far, y, added, role=VALUE if k == 0 else None)
            if k == 0 and factor:
                scene.text(middle, y + high + 12, factor, muted=True)
            low = y + step - 30
            scene.arrow((far, y + high), (far, low), (left + 9, low), role=STREAM, width=2)
            scene.text((middle + far) / 2, low + 13, "add", muted=True)
            plus(scene, left, low)
            y += step
        column(left, y, states[-1], role=STREAM, strength="full")
        scene.height = y + high + 16
        return scene

    return Drawing(title, description, layout(480, 74, 15), layout(PHONE, 56, 13.5))


def block_squares(
    attention: Mapping[str, tuple[int, int]],
    mlp: Mapping[str, tuple[int, int]],
    *,
    title: str = "The matrices of one block, to scale",
) -> Drawing:
    """The matrices of a block as areas, cut into squares of D by D.

    Args:
        attention: from the name of each matrix to its rows and columns, in units of D.
        mlp: the same for the network of each token.
        title: what it shows.

    Raises:
        ValueError: if there is no matrix on one side, or one has no squares.
    """
    sides = {"attention": (attention, WEIGHTS), "MLP": (mlp, VALUE)}
    count: dict[str, int] = {}
    for side, (matrices, _) in sides.items():
        if not matrices:
            raise ValueError(f"{side}: expected at least one, got 0")
        if min(min(shape) for shape in matrices.values()) < 1:
            raise ValueError(f"{side}: a matrix has at least one square")
        count[side] = sum(rows * columns for rows, columns in matrices.values())

    def shape(rows: int, columns: int) -> str:
        return " by ".join("D" if size == 1 else f"{size}D" for size in (rows, columns))

    description = " ".join(
        f"In {side} {', '.join(f'{name} with {shape(*size)}' for name, size in matrices.items())}: "
        f"{count[side]} squares of D by D."
        for side, (matrices, _) in sides.items()
    )

    def layout(room: Pixels, unit: Pixels, size: Pixels, *, stacked: bool) -> Scene:
        scene, x, y, low = Scene(room, size=size), 0.0, 0.0, 0.0
        for side, (matrices, role) in sides.items():
            x = 0.0 if stacked else x
            y = low + 18 if stacked and low else 0.0
            scene.text(x, y + 10, f"{side}: {count[side]} D^{{2}}", anchor="start", bold=True)
            for name, (rows, columns) in matrices.items():
                for i in range(rows):
                    for j in range(columns):
                        scene.box(x + j * unit, y + 28 + i * unit, unit, unit, role=role, shade=0.6)
                under = y + 28 + rows * unit + 14
                scene.text(x + columns * unit / 2, under, name)
                low = max(low, under + 10)
                x += columns * unit + 12
            x += 34
        scene.height = low
        return scene

    return Drawing(
        title, description, layout(560, 46, 15, stacked=False), layout(PHONE, 46, 13.5, stacked=True)
    )


def stream_sizes(
    starts: Mapping[str, Sequence[Pixels]], *, title: str = "How the stream grows with depth"
) -> Drawing:
    """Bars for the size of the stream: before the first sublayer and after each, for several first weights.

    Args:
        starts: from the name of a rule to the root mean square of the stream's entries, at as many places.
        title: what it shows.

    Raises:
        ValueError: if there is no rule, a size is negative, or one has another number of sizes.
    """
    if not starts:
        raise ValueError("starts: expected at least one, got 0")
    length = len(next(iter(starts.values())))
    # Drawn from rounded sizes: the last digits, which differ between machines, move no line and no border.
    sizes = {
        name: [round(float(x), 2) for x in listed(values, name, length)] for name, values in starts.items()
    }
    if min(min(values) for values in sizes.values()) < 0:
        raise ValueError("a size is at least 0")
    most = max(max(values) for values in sizes.values())

    def written(value: Pixels) -> str:
        return number(value, 1 if value >= 0.1 else 2)

    described = " ".join(
        f"{name}: from {written(values[0])} to {written(values[-1])}." for name, values in sizes.items()
    )
    description = (
        "For each rule of first weights a row of bars, the size of the stream before the first sublayer and "
        f"after each of {length - 1} more. {described}"
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene, tall, y = Scene(room, size=size), 76.0, 0.0
        step = (room - 44) / length
        for name, values in sizes.items():
            scene.text(0, y + 10, name, anchor="start", bold=True)
            base = y + 40 + tall * max(values) / most
            for i, value in enumerate(values):
                scene.bar((i + 0.5) * step, base, 0.66 * step, tall * value / most, STREAM)
            scene.line((0, base), (length * step, base))
            for i in (0, length - 1):
                up = base - tall * values[i] / most - 11
                scene.text(
                    (i + 0.5) * step if i else 0,
                    up,
                    written(values[i]),
                    anchor="start" if not i else "middle",
                )
            y = base + 22
        scene.text(0, y, "embedding", anchor="start", muted=True)
        scene.text(length * step, y, f"after {length - 1} sublayers", anchor="end", muted=True)
        scene.height = round(y + 12)
        return scene

    return Drawing(title, description, layout(600, 15), layout(PHONE, 13.5))
