"""Drawings of when messages travel, and of which links they take."""

from collections.abc import Mapping, Sequence

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, width_of
from tformer_book.kit.drawings.primitives import PHONE, Scene
from tformer_book.kit.drawings.roles import QUERY, STREAM, VALUE, Role
from tformer_book.scale.timeline import Span, waits

WEIGHT, ACTIVATION, GRADIENT = QUERY, STREAM, VALUE
Lanes = tuple[Sequence[Span], Sequence[Span], int]  # of the GPU, of its link, and how many go forward


def written_seconds(seconds: float) -> str:
    """1.61 s, or 47.7 ms."""
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{1000 * seconds:.1f} ms"


def step_timelines(panels: Mapping[str, Lanes], *, title: str = "Which messages hide") -> Drawing:
    """Two lanes for each form, time across: what the GPU computes, and what its link sends.

    Args:
        panels: from a form's name to what its GPU does, what its link does, and how many of the GPU's pieces
            belong to the forward pass, after which its messages belong to it too if there are as many.
        title: what it shows.

    Raises:
        ValueError: if there is no panel.
    """
    if not panels:
        raise ValueError("a drawing of time lines needs at least one form")
    ends = {name: max(s.end for s in (*work, *sent)) for name, (work, sent, _) in panels.items()}
    notes = {name: f"waits {written_seconds(waits(*panels[name][:2]))}" for name in panels}
    said = []
    for name, (work, sent, _) in panels.items():
        did = ", ".join(f"{s.name} from {written_seconds(s.start)} to {written_seconds(s.end)}" for s in work)
        told = ", ".join(
            f"{s.name} from {written_seconds(s.start)} to {written_seconds(s.end)}" for s in sent
        )
        said.append(
            f"{name}, {written_seconds(ends[name])} in all, of which the GPU {notes[name]}. Computes: {did}. "
            f"Messages: {told}."
        )
    description = "Time runs to the right. Hatched: the GPU waits. " + " ".join(said)

    def lane(
        scene: Scene, y: Pixels, left: Pixels, scale: Pixels, spans: Sequence[Span], forward: int, full: bool
    ) -> None:
        for k, span in enumerate(spans):
            role: Role = ACTIVATION if k < forward else GRADIENT
            wide = span.length * scale
            words = span.name if width_of(span.name, 13) + 6 <= wide else ""
            scene.box(left + span.start * scale, y, wide, 26, words, role=role,
                      strength="full" if full else "pale", size=13)  # fmt: skip

    def layout(room: Pixels, size: Pixels, left: Pixels) -> Scene:
        scene, y = Scene(room, size=size), 0.0
        for name, (work, sent, forward) in panels.items():
            scale = (room - left - 2) / ends[name]
            scene.text(0, y + 9, name, anchor="start", bold=True)
            y += 24
            above = 0.0 if left else 20.0
            scene.text(0, y + (13 if left else 7), "computes", anchor="start", muted=True)
            now = 0.0
            for span in [*work, Span("", ends[name], 0.0)]:  # what lies between is waiting
                if (span.start - now) * scale > 0.5:
                    idle = left + now * scale, y + above, (span.start - now) * scale, 26
                    scene.box(*idle, strength="faint", masked=True)
                now = span.end
            lane(scene, y + above, left, scale, work, forward, False)
            y += above + 30
            scene.text(0, y + (13 if left else 9), "sends", anchor="start", muted=True)
            lane(scene, y + above, left, scale, sent, forward if len(sent) == len(work) else 0, True)
            y += above + 26
            scene.line((left, y + 6), (room - 2, y + 6))
            scene.text(left, y + 17, "0", anchor="start", muted=True, size=13)
            scene.text(room - 2, y + 17, f"{written_seconds(ends[name])}, {notes[name]}", anchor="end",
                       muted=True, size=13)  # fmt: skip
            y += 46
        entries = (("forward", ACTIVATION), ("backward", GRADIENT), ("waits", None))
        x: Pixels = left
        for words, role in entries:
            scene.box(x, y - 4, 18, 18, role=role, strength="pale" if role else "faint", masked=role is None)
            scene.text(x + 25, y + 5, words, anchor="start", size=13)
            x += 25 + width_of(words, 13) + 22
        scene.height = y + 18
        return scene

    return Drawing(title, description, layout(660, 14, 76), layout(PHONE, 13.5, 0))


def grid_of_gpus(
    machines: int, each: int, inside: str, between: str, *, title: str = "Two forms at once: a grid of GPUs"
) -> Drawing:
    """Machines down, their GPUs across: a row shares rows of text, a column shares a part of the matrices.

    Args:
        machines: how many; of more than three the middle ones are left out.
        each: GPUs in a machine.
        inside: what a GPU sends in a second within its machine, such as "300 GB/s".
        between: likewise to other machines.
        title: what it shows.

    Raises:
        ValueError: if there are fewer than two machines, or fewer than two GPUs in each.
    """
    if machines < 2 or each < 2:
        raise ValueError(f"a grid needs two machines of two GPUs at least, got {machines} of {each}")
    shown: list[int | None] = list(range(machines)) if machines <= 3 else [0, 1, None, machines - 1]
    description = (
        f"A grid of GPUs: {machines} machines down, {each} GPUs of each across. The axis across is tensor "
        f"parallel: the {each} GPUs of a machine share the same rows of text, each with 1/{each} of every "
        f"matrix, and sum activations over links of {inside}. The axis down is sharded: the {machines} GPUs "
        f"in one place of their machines have the same part of the matrices and other rows, each keeps "
        f"1/{machines} of that part, and they gather weights and scatter gradients over links of {between}."
    )

    def layout(room: Pixels, left: Pixels, right: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        gap: Pixels = 4
        cell = (room - left - right - (each - 1) * gap - 4) / each
        tall = min(cell, 34.0)
        wide = each * cell + (each - 1) * gap
        scene.text(left + wide / 2, 9, "axis tensor: parts of every matrix", bold=True)
        scene.text(left + wide / 2, 28, f"activations, {inside}", muted=True)
        scene.arrow((left + wide / 2, 44), (left, 44), role=ACTIVATION)
        scene.arrow((left + wide / 2, 44), (left + wide, 44), role=ACTIVATION)
        y: Pixels = 58
        top = y
        for machine in shown:
            if machine is None:
                for j in range(each):
                    for dot in range(3):
                        x = left + j * (cell + gap) + cell / 2
                        scene.line((x, y + 2 + 7 * dot), (x, y + 4 + 7 * dot), width=2)
                y += 26
                continue
            scene.box(left - 5, y - 5, wide + 10, tall + 10, strength="faint", radius=6)
            scene.text(left - 12, y + tall / 2, f"machine {machine}" if left > 40 else str(machine),
                       anchor="end", muted=True)  # fmt: skip
            for j in range(each):
                role = ACTIVATION if machine == 0 and j else WEIGHT if j == 0 else None
                x = left + j * (cell + gap)
                scene.box(x, y, cell, tall, str(machine * each + j), role=role, radius=4, size=13,
                          strength="full" if role else "plain")  # fmt: skip
            y += tall + 16
        bottom = y - 16
        if right:
            x = left + wide + 22
            scene.arrow((x, (top + bottom) / 2), (x, top), role=WEIGHT)
            scene.arrow((x, (top + bottom) / 2), (x, bottom), role=WEIGHT)
            beside = (
                "axis sharded,",
                "machine to machine:",
                "shares of a part,",
                "other rows of text;",
                "weights, gradients,",
                between,
            )
            for i, line in enumerate(beside):
                scene.text(x + 12, (top + bottom) / 2 + 19 * (i - 2.5), line, anchor="start",
                           bold=i == 0, muted=i > 3)  # fmt: skip
            scene.height = bottom + 8
            return scene
        x = left + cell / 2
        scene.arrow((x, bottom + 28), (x, bottom + 10), role=WEIGHT)
        below = (
            "axis sharded, machine to machine:",
            "shares of a part, other rows of text;",
            f"weights, gradients, {between}",
        )
        for i, line in enumerate(below):
            scene.text(left - 4, bottom + 40 + 19 * i, line, anchor="start", bold=i == 0, muted=i > 1)
        scene.height = bottom + 40 + 19 * 3 - 4
        return scene

    return Drawing(title, description, layout(700, 96, 200, 14), layout(PHONE, 28, 0, 13.5))
