"""Drawings of the speedrun's page. Numbers in them come in as arguments."""

from collections.abc import Mapping

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, number
from tformer_book.kit.drawings.primitives import PHONE, Scene
from tformer_book.kit.drawings.roles import QUERY, STREAM, VALUE, WEIGHTS


def tables_and_block(
    characters: str,
    following: str,
    *,
    earlier: int,
    single: int,
    shared: int,
    heads: int,
    hidden: int,
    title: str = "Rows of tables for one place, and one block",
) -> Drawing:
    """The rows that are summed for the last of some characters, and what reads their sum.

    Args:
        characters: the last one has this place; there is a group of each length from 2 to all of them.
        following: what comes next.
        earlier: how many characters before the last have a row of their own.
        single: the rows of a table of single characters, one for each.
        shared: the rows of a table of groups.
        heads: of the block's attention.
        hidden: the width of its MLP.
        title: what it shows.

    Raises:
        ValueError: if the characters are too few for groups, or for those before the last.
    """
    count = len(characters)
    if count < 2 or not 0 <= earlier < count:
        raise ValueError(f"{count} characters have no groups, or not {earlier} before the last")
    spans = [(count - 1 - back, 1) for back in range(1 + earlier)]
    spans += [(count - size, size) for size in range(2, count + 1)]
    rows = [(characters[start : start + size], start, size) for start, size in spans]
    alone = ", ".join(words for words, _, size in rows if size == 1)
    groups = ", ".join(words for words, _, size in rows if size > 1)
    description = (
        f"The characters {' '.join(characters)} stand side by side, the last is the one that is read. Under "
        f"them lie {len(rows)} boxes, each below the characters it stands for: {alone}, each a row in a "
        f"table of {single:,} rows, and, in full colour, {groups}, each a row in a table of {shared:,} rows "
        "that groups share. Arrows add all of them to one stream. Further down the stream two boxes read it "
        f"and add to it: attention with {heads} heads, which reads the earlier places, and an MLP {hidden} "
        f"wide. At its end a map reads out {single:,} logits, for the next character, here {following}."
    )

    def layout(room: Pixels, step: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        line, pitch, top = room - 16, 34, 46
        xs = [(i + 0.5) * step for i in range(count)]
        scene.token_row(xs, 2, characters, step - 6)
        scene.text(room, 17, "rows of the table", anchor="end", muted=True)
        bottom = top + len(rows) * pitch
        end = bottom + 168
        scene.stream((line, top + 14), (line, end), role=STREAM)
        for i, (words, start, length) in enumerate(rows):
            y = top + i * pitch
            group = length > 1
            scene.box(
                start * step + 3, y, length * step - 6, 28, words,
                role=STREAM, strength="full" if group else "pale", radius=5,
            )  # fmt: skip
            scene.line((count * step + 2, y + 14), (line - 104, y + 14), opacity=0.25)
            scene.text(line - 56, y + 14, f"{shared if group else single:,}", anchor="end", muted=not group)
            scene.arrow((line - 48, y + 14), (line - 5, y + 14), role=STREAM)
        middle, left, width = line - 60, 3, line - 34
        for words, role, y in (
            ("attention reads earlier places", WEIGHTS, bottom + 18),
            (f"MLP, {hidden} wide", None, bottom + 96),
        ):
            scene.arrow((line - 5, y - 8), (middle, y - 8), (middle, y + 8))
            scene.box(left, y + 8, width, 30, words, role=role, radius=5)
            scene.arrow((middle, y + 38), (middle, y + 54), (line - 13, y + 54))
            scene.box(line - 12, y + 42, 24, 24, "+", role=STREAM, strength="full", radius=12, bold=True)
        scene.box(left, end + 2, room - 3, 30, f"readout: {single:,} logits", radius=5)
        scene.arrow((line, end + 32), (line, end + 52))
        scene.token(line - 14, end + 54, following, 44, role=VALUE)
        scene.text(line - 46, end + 69, "the next character", anchor="end", muted=True)
        scene.height = end + 86
        return scene

    return Drawing(title, description, layout(520, 76, 15), layout(PHONE, 46, 14))


def what_each_bought(
    shares: Mapping[str, Pixels],
    lost: Mapping[str, Pixels],
    lead: Pixels,
    *,
    own: str,
    title: str = "How long each entry takes, and what each part of ours bought",
) -> Drawing:
    """Bars of time from the baseline's down; below them what one entry loses without each of its parts.

    Args:
        shares: from a name to its time as a share of the baseline's, which comes first.
        lost: from a part to the loss that it saves, the largest first.
        lead: how far that entry lies below the goal, in the same unit.
        own: that entry's name.
        title: what it shows.

    Raises:
        ValueError: if a share, or what is lost, is not positive.
    """
    if min(*shares.values(), *lost.values(), lead) <= 0:
        raise ValueError("bars have a length: shares, losses and the lead must be positive")
    times = {name: "1" if share == 1 else number(share, 3) for name, share in shares.items()}
    said = ", ".join(f"{name} {time}" for name, time in times.items())
    parts = ", ".join(f"{name} {number(loss, 3)}" for name, loss in lost.items())
    description = (
        f"Above, a bar of time for each entry, as shares of the first: {said}. Below, for each part of "
        f"{own}, by how many nats the loss rises without it: {parts}. A short line at each bar stands at "
        f"{own}'s lead over the goal, {number(lead, 3)} nats: a part whose bar crosses it is worth more than "
        "the lead."
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        scene.text(0, 12, "processor time", anchor="start", bold=True)
        y = 30.0
        for name, share in shares.items():
            full = name == own
            scene.text(0, y + 9, f"{name}: {times[name]}", anchor="start", bold=full)
            scene.bar(share * room / 2, y + 36, share * room, 14, STREAM if full else QUERY)
            y += 46
        y += 14
        scene.text(0, y, f"what {own} loses without a part (nats)", anchor="start", bold=True)
        unit = (room - 8) / max(*lost.values(), lead)
        for name, loss in lost.items():
            scene.text(0, y + 27, f"{name}: {number(loss, 3)}", anchor="start")
            scene.bar(loss * unit / 2, y + 54, loss * unit, 14, QUERY)
            scene.line((lead * unit, y + 37), (lead * unit, y + 57), width=2, opacity=0.9)
            y += 46
        scene.text(lead * unit, y + 26, f"the lead: {number(lead, 3)}", muted=True)
        scene.height = y + 38
        return scene

    return Drawing(title, description, layout(520, 15), layout(PHONE, 14))
