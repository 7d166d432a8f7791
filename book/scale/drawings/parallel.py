"""Drawings of the forms of parallelism. Blue is a weight, orange an activation, green a gradient."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, listed, number, table
from tformer_book.kit.drawings.primitives import PHONE, Scene
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, VALUE, Role

WEIGHT, ACTIVATION, GRADIENT = QUERY, STREAM, VALUE


def _counted(what: str, n: int, least: int) -> None:
    if n < least:
        raise ValueError(f"{what}: at least {least}, got {n}")


def cut_ways(processes: int = 4, *, title: str = "One model, and what one process of four holds") -> Drawing:
    """What the first of several processes holds of the weights and of the tokens, and sends, in five ways.

    Args:
        processes: how many there are; as many layers, rows of the batch and places are drawn.
        title: what it shows.

    Raises:
        ValueError: if there are fewer than two processes.
    """
    _counted("processes", processes, 2)
    n, part = processes, f"1/{processes}"
    # For each way: which weights (layer, column) are held; whether others are lent; which (row, place).
    ways: dict[str, tuple[Any, bool, Any]] = {
        "data": (lambda i, j: True, False, lambda i, j: i == 0),
        "sharded": (lambda i, j: j == 0, True, lambda i, j: i == 0),
        "tensor": (lambda i, j: j == 0, False, lambda i, j: True),
        "pipeline": (lambda i, j: i == 0, False, lambda i, j: True),
        "sequence": (lambda i, j: True, False, lambda i, j: j == 0),
    }
    sends = {
        "data": ("gradients", "once a step"),
        "sharded": ("weights,", "gradients"),
        "tensor": ("activations,", "four times a block"),
        "pipeline": ("activations", "between stages"),
        "sequence": ("keys, values,", "gradients"),
    }
    places = [(i, j) for i in range(n) for j in range(n)]

    def share(held: Any) -> str:
        return "all" if all(held(i, j) for i, j in places) else part

    said = "; ".join(
        f"{name}: weights {share(w)}, tokens {share(t)}, sends {' '.join(sends[name])}"
        for name, (w, _, t) in ways.items()
    )
    description = (
        "Above the weights, a layer a row; below the tokens of the batch, a sequence a row. Filled is "
        "what the "
        f"first of {n} processes holds. {said}. Sharded: the hatched weights are gathered when they are "
        "needed and dropped afterwards."
    )

    def grid(scene: Scene, x: Pixels, y: Pixels, cell: Pixels, held: Any, role: Role, lent: bool) -> None:
        for i, j in places:
            there = held(i, j)
            scene.box(x + j * cell, y + i * cell, cell, cell, role=role if there else None,
                      strength="full" if there else "faint", masked=lent and not there)  # fmt: skip

    def wide() -> Scene:
        scene, room = Scene(700, size=14), 122.0
        cell, step = 92 / n, (700 - room) / (len(ways) - 1)
        for k, (name, (weights, lent, tokens)) in enumerate(ways.items()):
            x, middle = k * step + (room - 92) / 2, k * step + room / 2
            scene.text(middle, 9, name, bold=True)
            grid(scene, x, 26, cell, weights, WEIGHT, lent)
            scene.text(middle, 134, f"weights: {share(weights)}")
            grid(scene, x, 156, cell, tokens, ACTIVATION, False)
            scene.text(middle, 264, f"tokens: {share(tokens)}")
            scene.text(middle, 292, "sends", muted=True)
            for line, words in enumerate(sends[name]):
                scene.text(middle, 312 + 19 * line, words, size=13.5)
        scene.height = 342
        return scene

    def narrow() -> Scene:
        scene, cell, step = Scene(PHONE, size=14), 76 / n, 124.0
        for k, (name, (weights, lent, tokens)) in enumerate(ways.items()):
            y = k * step
            grid(scene, 0, y + 10, cell, weights, WEIGHT, lent)
            grid(scene, 94, y + 10, cell, tokens, ACTIVATION, False)
            scene.text(186, y + 9, name, anchor="start", bold=True)
            scene.text(186, y + 31, f"weights: {share(weights)}", anchor="start")
            scene.text(186, y + 51, f"tokens: {share(tokens)}", anchor="start")
            scene.text(186, y + 71, "sends", anchor="start", muted=True)
            for line, words in enumerate(sends[name]):
                scene.text(186, y + 89 + 17 * line, words, anchor="start", size=13)
        scene.height = step * len(ways) - 8
        return scene

    return Drawing(title, description, wide(), narrow())


Step = tuple[str, tuple[str, str], Role | None]
Part = tuple[str, list[list[list[Pixels]]], Role]  # a name, what each process has, its colour
Stage = tuple[
    str, Role, bool, tuple[str, str]
]  # a name, a colour, whether both halves are there, how it came


def _lanes(
    title: str, description: str, before: Sequence[Step], joint: tuple[str, str], after: Sequence[Step]
) -> Drawing:
    """Two processes that each go their way, meet in one message, and go on.

    A step has a heading, a box for each process, and a colour; the joint has a heading and words.
    """

    def wide() -> Scene:
        columns = len(before) + 1 + len(after)
        scene, gap, top, tall, apart = Scene(700, size=14), 26.0, 28.0, 44.0, 78.0
        box = (700 - 78 - (columns - 1) * gap) / columns
        for lane in range(2):
            scene.text(0, top + lane * apart + tall / 2, f"process {lane}", anchor="start", muted=True)
        x = 78.0
        for k, (heading, words, role) in enumerate([*before, (joint[0], (joint[1], ""), None), *after]):
            scene.text(x + box / 2, 9, heading, muted=True)
            if k == len(before):
                scene.box(x, top, box, apart + tall, joint[1], radius=8, bold=True)
            else:
                for lane in range(2):
                    scene.box(x, top + lane * apart, box, tall, words[lane], role=role, radius=6)
            if k + 1 < columns:
                for lane in range(2):
                    y = top + lane * apart + tall / 2
                    scene.arrow((x + box + 3, y), (x + box + gap - 3, y))
            x += box + gap
        scene.height = top + apart + tall + 4
        return scene

    def narrow() -> Scene:
        scene, box, tall, gap, y = Scene(PHONE, size=14), 154.0, 38.0, 40.0, 24.0
        for lane in range(2):
            scene.text(lane * (PHONE - box) + box / 2, 9, f"process {lane}", muted=True)
        steps = [*before, (joint[0], (joint[1], ""), None), *after]
        for k, (heading, words, role) in enumerate(steps):
            scene.text(PHONE / 2, y + 9, heading, muted=True)
            y += 22
            if k == len(before):
                scene.box(0, y, PHONE, tall, joint[1], radius=8, bold=True)
            else:
                for lane in range(2):
                    scene.box(lane * (PHONE - box), y, box, tall, words[lane], role=role, radius=6)
            if k + 1 < len(steps):
                for lane in range(2):
                    x = lane * (PHONE - box) + box * (0.24 if lane == 0 else 0.76)
                    scene.arrow((x, y + tall + 3), (x, y + tall + gap - 4 + 18))
            y += tall + gap
        scene.height = y - gap + 4
        return scene

    return Drawing(title, description, wide(), narrow())


def data_parallel(rows: int, size: str, *, title: str = "Data parallel: one sum a step") -> Drawing:
    """Two processes, each with all weights and half of the batch, which average their gradients.

    Args:
        rows: the batch, an even number of rows.
        size: what each process sends in a step, such as "56.5 KiB".
        title: what it shows.

    Raises:
        ValueError: if the rows cannot be halved.
    """
    _counted("rows", rows, 2)
    if rows % 2:
        raise ValueError(f"{rows} rows cannot be halved")
    half = rows // 2
    description = (
        f"Process 0 takes rows 1 to {half}, process 1 rows {half + 1} to {rows}. Each sends them through a "
        "copy of "
        f"the model and has a gradient. They average the two gradients; each sends {size}. Both take the "
        "same "
        "step and have the same weights again."
    )
    before: list[Step] = [
        ("its rows", (f"1 to {half}", f"{half + 1} to {rows}"), ACTIVATION),
        ("a copy", ("model", "model"), WEIGHT),
        ("gradient", ("g_{0}", "g_{1}"), GRADIENT),
    ]
    after: list[Step] = [("same step", ("model", "model"), WEIGHT)]
    return _lanes(title, description, before, (size, "(g_{0} + g_{1})/2"), after)


def tensor_parallel(
    x: Any,
    W_in: Any,
    W_out: Any,
    gradient: Any,
    *,
    title: str = "Tensor parallel: half of the hidden features each",
) -> Drawing:
    """An MLP of two hidden features and a ReLU on two processes, there and back, in numbers.

    Args:
        x: the input, of D numbers.
        W_in: two rows of D numbers; process i has row i.
        W_out: D rows of two numbers; process i has column i.
        gradient: that at the output, of D numbers.
        title: what it shows.

    Raises:
        ValueError: if there are not two hidden features, or the sizes do not fit.
    """
    rows, out = table(W_in, "W_in"), table(W_out, "W_out")
    given, wanted = ([float(v) for v in listed(*pair)] for pair in ((x, "x"), (gradient, "the gradient")))
    d = len(given)
    if len(rows) != 2 or len(rows[0]) != d or len(out) != d or len(out[0]) != 2 or len(wanted) != d:
        raise ValueError(f"W_in must be 2 x {d}, W_out {d} x 2 and the gradient {d} long")
    columns = [[float(row[i]) for row in out] for i in range(2)]
    before = [math.fsum(float(w) * v for w, v in zip(row, given, strict=True)) for row in rows]
    h = [max(v, 0.0) for v in before]
    y = [[w * h[i] for w in columns[i]] for i in range(2)]
    dh = [
        math.fsum(w * g for w, g in zip(columns[i], wanted, strict=True)) * (before[i] > 0) for i in range(2)
    ]
    dx = [[float(w) * dh[i] for w in rows[i]] for i in range(2)]
    sums = {name: [a + b for a, b in zip(*parts, strict=True)] for name, parts in (("y", y), ("dx", dx))}

    def written(vector: Sequence[Any]) -> str:
        return f"({', '.join(number(v, 0) for v in vector)})"

    said = " ".join(
        f"Process {i}: {written(rows[i])} of W_in gives h = {number(h[i], 0)}, and {written(columns[i])} of "
        f"W_out the summand {written(y[i])}; on the way back the gradient is {number(dh[i], 0)} at h and "
        f"{written(dx[i])} at x."
        for i in range(2)
    )
    description = (
        f"Both processes have x = {written(given)}. {said} An all-reduce forward makes the output "
        f"{written(sums['y'])}; both then have the gradient {written(wanted)} at it without a message; an "
        f"all-reduce on the way back makes the gradient {written(sums['dx'])} at x."
    )

    def up(vector: Sequence[Pixels]) -> list[list[Pixels]]:
        return [[v] for v in vector]

    W_rows: list[list[list[Pixels]]] = [[[float(w) for w in row]] for row in rows]
    forward: list[Part] = [
        ("x", [up(given)] * 2, ACTIVATION),
        ("W_{in}", W_rows, WEIGHT),
        ("h", [[[v]] for v in h], ACTIVATION),
        ("W_{out}", [up(column) for column in columns], WEIGHT),
        ("y_{0}", [up(v) for v in y], ACTIVATION),
    ]
    backward: list[Part] = [
        ("dy", [up(wanted)] * 2, GRADIENT),
        ("W_{out}^{T}", [[column] for column in columns], WEIGHT),
        ("dh", [[[v]] for v in dh], GRADIENT),
        ("W_{in}^{T}", [up(row[0]) for row in W_rows], WEIGHT),
        ("dx_{0}", [up(v) for v in dx], GRADIENT),
    ]

    def wide() -> Scene:
        scene, cell, tall, apart, joint = Scene(700, size=14), 36.0, 24.0, 28.0, 74.0
        lane = d * tall
        reach = 2 * lane + apart

        def strip(top: Pixels, parts: list[Part], spots: Sequence[Pixels], sign: int, end: Pixels) -> None:
            for i in range(2):
                at, edge = top + 26 + i * (lane + apart), 0.0
                scene.text(0, at + lane / 2, f"process {i}", anchor="start", muted=True)
                for k, ((name, numbers, role), middle) in enumerate(zip(parts, spots, strict=True)):
                    matrix = numbers[i]
                    half, high = len(matrix[0]) * cell / 2, len(matrix) * tall
                    scene.matrix(
                        middle - half, at + (lane - high) / 2, matrix, cell, tall, role=role, digits=0
                    )
                    if i == 0 or "_{0}" in name:
                        words = name.replace("_{0}", f"_{{{i}}}")
                        scene.text(middle, at - 14 + (lane - high) / 2, words, muted=True)
                    if k:
                        scene.arrow((edge, at + lane / 2), (middle - sign * (half + 4), at + lane / 2))
                    edge = middle + sign * (half + 4)
                scene.arrow((edge, at + lane / 2), (end - sign * 4, at + lane / 2))

        def summed(x0: Pixels, top: Pixels, name: str, role: Role) -> None:
            scene.text(x0 + joint / 2, top + 12, "all-reduce", muted=True)
            scene.box(x0, top + 26, joint, reach, radius=8)
            scene.text(x0 + joint / 2, top + 26 + reach / 2 - lane / 2 - 14, name, bold=True)
            corner = x0 + (joint - cell) / 2, top + 26 + reach / 2 - lane / 2
            scene.matrix(*corner, up(sums[name]), cell, tall, role=role, digits=0)

        scene.text(0, 12, "forward", anchor="start", bold=True)
        strip(0, forward, (116, 226, 330, 430, 540), 1, 700 - joint)
        summed(700 - joint, 0, "y", ACTIVATION)
        low = 26 + reach + 22
        scene.text(0, low + 12, "backward", anchor="start", bold=True)
        strip(low, backward, (650, 540, 432, 328, 230), -1, 94 + joint)
        summed(94, low, "dx", GRADIENT)
        scene.height = low + 26 + reach + 4
        return scene

    def narrow() -> Scene:
        scene, cell, tall, gap = Scene(PHONE, size=14), 34.0, 22.0, 20.0
        middles = (92.0, PHONE - 62.0)

        def strip(y: Pixels, heading: str, parts: list[Part], name: str, role: Role) -> Pixels:
            scene.text(0, y + 9, heading, anchor="start", bold=True)
            for i, middle in enumerate(middles):
                scene.text(middle, y + 30, f"process {i}", muted=True)
            y += 44
            for what, numbers, colour in parts:
                high = len(numbers[0]) * tall
                for i, middle in enumerate(middles):
                    half = len(numbers[i][0]) * cell / 2
                    scene.matrix(middle - half, y, numbers[i], cell, tall, role=colour, digits=0)
                    words = what.replace("_{0}", f"_{{{i}}}")
                    scene.text(middle - half - 8, y + high / 2, words, anchor="end", muted=True)
                    scene.arrow((middle, y + high + 3), (middle, y + high + gap - 3))
                y += high + gap
            scene.box(0, y, PHONE, d * tall + 12, radius=8)
            scene.text(12, y + d * tall / 2 + 6, "all-reduce", anchor="start", muted=True)
            scene.text(PHONE / 2 - 12, y + d * tall / 2 + 6, name, anchor="end", bold=True)
            scene.matrix(PHONE / 2, y + 6, up(sums[name]), cell, tall, role=role, digits=0)
            return y + d * tall + 12

        y = strip(0, "forward", forward, "y", ACTIVATION)
        scene.height = strip(y + 22, "backward", backward, "dx", GRADIENT) + 2
        return scene

    return Drawing(title, description, wide(), narrow())


def ring_states(values: Any) -> tuple[list[list[list[Pixels]]], list[set[tuple[int, int]]]]:
    """What the processes of a ring hold after each step of an all-reduce, and which parts are new."""
    state = [[float(v) for v in row] for row in table(values, "values")]
    n = len(state)
    states, changed = [[list(row) for row in state]], [set[tuple[int, int]]()]
    for step in range(2 * (n - 1)):
        before, fresh = [list(row) for row in state], set()
        for process in range(n):
            left = (process - 1) % n
            part = (process - 1 - step) % n if step < n - 1 else (process - (step - (n - 1))) % n
            state[process][part] = before[left][part] + (before[process][part] if step < n - 1 else 0)
            fresh.add((process, part))
        states.append([list(row) for row in state])
        changed.append(fresh)
    return states, changed


def ring_all_reduce(values: Any, *, title: str = "All-reduce in a ring") -> Drawing:
    """An all-reduce step by step: the parts of each process's tensor, first added and then passed on.

    Args:
        values: for each process the n parts of its tensor, as numbers; n processes.
        title: what it shows.

    Raises:
        ValueError: if there are not as many parts as processes, or fewer than two.
    """
    rows = table(values, "values")
    n = len(rows)
    _counted("processes", n, 2)
    if len(rows[0]) != n:
        raise ValueError(f"{n} processes cut their tensors into {n} parts, got {len(rows[0])}")
    states, changed = ring_states(rows)
    heads = ["start", *(f"add {i}" for i in range(1, n)), *(f"pass on {i}" for i in range(1, n))]
    said = "; ".join(
        f"{head}: " + " | ".join(", ".join(number(v, 0) for v in row) for row in state)
        for head, state in zip(heads, states, strict=True)
    )
    foot = f"each step sends 1/{n} to the next process"
    sent = ", ".join(f"process {i} sends {number(rows[i][i], 0)} to {(i + 1) % n}" for i in range(n))
    description = (
        f"The {n} processes stand in a ring; first {sent}. Then a process is a row, the {n} parts of its "
        "tensor are the columns. In every step each process sends one part to the next, the last to the "
        f"first. {said}. Filled: what the last message changed."
    )

    def panel(scene: Scene, x: Pixels, y: Pixels, cell: Pixels, k: int) -> None:
        scene.text(x + n * cell / 2, y + 9, heads[k], bold=True)
        for i in range(n):
            for j in range(n):
                fresh = (i, j) in changed[k]
                role = ACTIVATION if k < n else GRADIENT
                scene.box(x + j * cell, y + 26 + i * cell, cell, cell, number(states[k][i][j], 0),
                          role=role, strength="full" if fresh else "pale", shade=0.05)  # fmt: skip

    def ring(scene: Scene, x: Pixels, y: Pixels, side: Pixels) -> None:
        """The processes and what each sends first, in the room of a panel."""
        scene.text(x + side / 2, y + 9, "the ring", bold=True)
        middle, reach = (x + side / 2, y + 26 + side / 2), side / 2 - 13
        angles = [2 * math.pi * i / n for i in range(n)]  # clockwise from twelve o'clock
        spots = [(middle[0] + reach * math.sin(a), middle[1] - reach * math.cos(a)) for a in angles]
        for i, (x0, y0) in enumerate(spots):
            x1, y1 = spots[(i + 1) % n]
            length = math.hypot(x1 - x0, y1 - y0)
            ux, uy = (x1 - x0) / length, (y1 - y0) / length
            scene.arrow((x0 + 15 * ux, y0 + 15 * uy), (x1 - 14 * ux, y1 - 14 * uy), role=ACTIVATION, width=2)
            out = 15.0  # to the left of the way, outside the ring
            scene.text((x0 + x1) / 2 + out * uy, (y0 + y1) / 2 - out * ux, number(rows[i][i], 0), size=13)
        for i, (x0, y0) in enumerate(spots):
            scene.box(x0 - 12, y0 - 12, 24, 24, str(i), radius=12, strength="plain", size=13)

    def layout(room: Pixels, columns: int, cell: Pixels) -> Scene:
        scene, side = Scene(room, size=14), n * cell
        gap = (room - columns * side) / max(columns - 1, 1)
        ring(scene, 0, 0, side)
        for k in range(len(states)):
            place = k + 1
            panel(scene, (place % columns) * (side + gap), (place // columns) * (side + 50), cell, k)
        scene.height = -(-(len(states) + 1) // columns) * (side + 50) + 4
        scene.text(room / 2, scene.height - 10, foot, muted=True)
        return scene

    return Drawing(title, description, layout(700, len(states) + 1, min(32, 600 / (len(states) + 1) / n)),
                   layout(PHONE, 2, min(40, 140 / n)))  # fmt: skip


def sharded(size: str, *, title: str = "Sharded: gather, use, drop; gather, use, scatter") -> Drawing:
    """One layer's weights and gradient on two processes that each keep a half, on the way forward and back.

    Args:
        size: what each process sends in one gathering or scattering.
        title: what it shows.
    """
    rest: Stage = ("at rest", WEIGHT, False, ("", ""))
    used: Stage = ("in use", WEIGHT, True, ("all-gather", size))
    ways: dict[str, list[Stage]] = {
        "forward": [rest, used, ("at rest", WEIGHT, False, ("drop", ""))],
        "backward": [
            rest,
            used,
            ("gradient", GRADIENT, True, ("backward", "")),
            ("its half", GRADIENT, False, ("reduce-scatter", size)),
        ],
    }
    description = (
        "At rest each of two processes keeps one half of a layer's weights. Forward: before the layer is "
        f"used, an all-gather gives both all of it; each sends {size}. Afterwards the other half is dropped. "
        f"Backward: it is gathered again, {size}, and dropped once each has a gradient of the whole layer; a "
        f"reduce-scatter, {size} again, leaves each with its half of the mean. Three messages in all."
    )

    def halves(
        scene: Scene, x: Pixels, y: Pixels, wide: Pixels, tall: Pixels, stage: Stage, lane: int
    ) -> None:
        _, role, both, _ = stage
        for half in range(2):
            there = both or half == lane
            scene.box(x + half * wide / 2, y, wide / 2, tall, role=role if there else None,
                      strength="full" if there else "faint")  # fmt: skip

    def wide() -> Scene:
        scene, box, tall, apart, y = Scene(700, size=14), 78.0, 30.0, 52.0, 0.0
        step = (700 - 80 - box) / 3
        for way, stages in ways.items():
            scene.text(0, y + 10, way, anchor="start", bold=True)
            for lane in range(2):
                scene.text(0, y + 26 + tall / 2 + lane * apart, f"process {lane}", anchor="start", muted=True)
            for k, stage in enumerate(stages):
                x = 80 + k * step
                scene.text(x + box / 2, y + 10, stage[0])
                for lane in range(2):
                    top = y + 26 + lane * apart
                    halves(scene, x, top, box, tall, stage, lane)
                    if k:
                        scene.arrow((x - step + box + 8, top + tall / 2), (x - 8, top + tall / 2))
                for line, words in enumerate(stage[3]):
                    if words:
                        scene.text(x - (step - box) / 2, y + 58 + 18 * line, words, muted=True, size=13)
            y += 26 + apart + tall + 24
        scene.height = y - 20
        return scene

    def narrow() -> Scene:
        scene, box, tall, step, y = Scene(PHONE, size=14), 100.0, 28.0, 82.0, 0.0
        for way, stages in ways.items():
            scene.text(PHONE / 2, y + 9, way, bold=True)
            for lane in range(2):
                scene.text(lane * (PHONE - box) + box / 2, y + 9, f"process {lane}", muted=True)
            y += 24
            for k, stage in enumerate(stages):
                scene.text(PHONE / 2, y + tall / 2, stage[0])
                for lane in range(2):
                    x = lane * (PHONE - box)
                    halves(scene, x, y, box, tall, stage, lane)
                    if k:
                        scene.arrow((x + box / 2, y - step + tall + 6), (x + box / 2, y - 6))
                written = [words for words in stage[3] if words]
                for line, words in enumerate(written):
                    shift = 0 if len(written) == 1 else -9 + 18 * line
                    scene.text(PHONE / 2, y - (step - tall) / 2 + shift, words, muted=True)
                y += step
            y += tall + 20 - step
        scene.height = y - 16
        return scene

    return Drawing(title, description, wide(), narrow())


def pipeline_schedules(
    times: Mapping[str, Sequence[Sequence[tuple[tuple[str, int], int]]]],
    *,
    title: str = "A pipeline's bubble",
) -> Drawing:
    """Who works on which micro-batch when: stages down, time across; waiting is hatched.

    Args:
        times: from a schedule's name to what `tformer_book.scale.pipeline.pipeline_times` returns.
        title: what it shows.

    Raises:
        ValueError: if there is no schedule.
    """
    _counted("schedules", len(times), 1)
    ends = {name: max(start + 1 for found in stages for _, start in found) for name, stages in times.items()}
    longest = max(ends.values())
    waits = {
        name: len(stages) * ends[name] - sum(len(found) for found in stages) for name, stages in times.items()
    }
    notes = {name: f"{waits[name]} of {len(times[name]) * ends[name]} wait" for name in times}
    description = (
        "Stages down, time across. Orange: a micro-batch goes forward; green: it goes back; hatched: the "
        "stage waits. "
        + "; ".join(f"{name}: {len(times[name])} stages, {ends[name]} steps, {notes[name]}" for name in times)
        + "."
    )

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene, y, left = Scene(room, size=size), 0.0, 24.0
        cell = (room - left) / longest
        tall = min(cell, 30.0)
        for name, stages in times.items():
            scene.text(left, y + 9, name, anchor="start", bold=True)
            scene.text(room, y + 9, notes[name], anchor="end", muted=True)
            for stage, found in enumerate(stages):
                row = y + 24 + stage * tall
                scene.text(left - 8, row + tall / 2, str(stage + 1), anchor="end", muted=True)
                busy = {start: action for action, start in found}
                for t in range(ends[name]):
                    x = left + t * cell
                    if t in busy:
                        way, i = busy[t]
                        scene.box(x, row, cell, tall, str(i + 1), role=ACTIVATION if way == "F" else GRADIENT)
                    else:
                        scene.box(x, row, cell, tall, strength="faint", masked=True)
            y += 24 + len(stages) * tall + 22
        scene.box(left, y - 4, 18, 18, role=ACTIVATION)
        scene.text(left + 26, y + 5, "forward", anchor="start")
        scene.box(left + 100, y - 4, 18, 18, role=GRADIENT)
        scene.text(left + 126, y + 5, "back", anchor="start")
        scene.box(left + 180, y - 4, 18, 18, strength="faint", masked=True)
        scene.text(left + 206, y + 5, "waits", anchor="start")
        scene.height = y + 20
        return scene

    return Drawing(title, description, layout(620, 14), layout(PHONE, 13))


def ring_attention(
    processes: int, *, title: str = "Ring attention: queries stay, keys and values travel"
) -> Drawing:
    """Which share of keys and values meets the queries of each process in each step, under a causal mask.

    Args:
        processes: how many, and into how many shares the sequence is cut.
        title: what it shows.

    Raises:
        ValueError: if there are fewer than two processes.
    """
    _counted("processes", processes, 2)
    n = processes
    owners = [[(rank - step) % n for step in range(n)] for rank in range(n)]
    idle = sum(owners[rank][step] > rank for rank in range(n) for step in range(n))
    said = "; ".join(
        f"queries {rank} meet shares {', '.join(map(str, row))}" for rank, row in enumerate(owners)
    )
    description = (
        f"A process is a row, a step a column. {said}. After each step every process hands its keys and "
        "values to "
        f"the next one, the last to the first. Under a causal mask {idle} of the {n * n} meetings are "
        "empty (hatched), "
        f"{n} on the diagonal are half used (pale), the others are used in full."
    )

    def layout(room: Pixels, left: Pixels, gap: Pixels, tall: Pixels, apart: Pixels, size: Pixels) -> Scene:
        scene, box = Scene(room, size=size), (room - left - (n - 1) * gap) / n
        for step in range(n):
            scene.text(left + step * (box + gap) + box / 2, 9, f"step {step + 1}", muted=True)
        for rank, row in enumerate(owners):
            y = 26 + rank * (tall + apart)
            scene.box(0, y, left - 14, tall, f"Q {rank}", role=QUERY, strength="full", radius=5)
            for step, owner in enumerate(row):
                x, empty = left + step * (box + gap), owner > rank
                role = None if empty else KEY
                scene.box(x, y, box, tall, f"K, V {owner}", role=role, masked=empty, radius=5,
                          strength="plain" if empty else "pale" if owner == rank else "full")  # fmt: skip
                if step + 1 < n:
                    start = (x + box + 2, y + tall / 2)
                    if rank + 1 < n:
                        scene.arrow(start, (x + box + gap - 2, y + tall + apart + tall / 2 - 4))
                    else:
                        scene.line(start, (x + box + gap / 2, y + tall + 10), dashed=True)
                        scene.arrow((x + box + gap / 2, 20), (x + box + gap - 2, 26 + tall / 2), dashed=True)
        scene.height = 26 + n * tall + (n - 1) * apart + 14
        return scene

    return Drawing(title, description, layout(620, 66, 36, 34, 18, 14), layout(PHONE, 48, 16, 34, 22, 13))
