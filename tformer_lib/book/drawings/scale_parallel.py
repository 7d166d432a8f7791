"""Drawings of the forms of parallelism. Blue is a weight, orange an activation, green a gradient."""

from collections.abc import Mapping, Sequence
from typing import Any

from tformer_lib.book.drawings.drawing import Drawing
from tformer_lib.book.drawings.lettering import Pixels, number, table
from tformer_lib.book.drawings.primitives import PHONE, Scene
from tformer_lib.book.drawings.roles import KEY, QUERY, STREAM, VALUE, Role

WEIGHT, ACTIVATION, GRADIENT = QUERY, STREAM, VALUE


def _counted(what: str, n: int, least: int) -> None:
    if n < least:
        raise ValueError(f"{what}: at least {least}, got {n}")


def cut_ways(processes: int = 4, *, title: str = "One model, and what one process of four holds") -> Drawing:
    """What the first of several processes holds of the weights and of the tokens, in five ways of cutting.

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
    places = [(i, j) for i in range(n) for j in range(n)]

    def share(held: Any) -> str:
        return "all" if all(held(i, j) for i, j in places) else part

    said = "; ".join(f"{name}: weights {share(w)}, tokens {share(t)}" for name, (w, _, t) in ways.items())
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
        scene.height = 276
        return scene

    def narrow() -> Scene:
        scene, cell, step = Scene(PHONE, size=14), 76 / n, 96.0
        for k, (name, (weights, lent, tokens)) in enumerate(ways.items()):
            y = k * step
            grid(scene, 0, y, cell, weights, WEIGHT, lent)
            grid(scene, 96, y, cell, tokens, ACTIVATION, False)
            scene.text(190, y + 12, name, anchor="start", bold=True)
            scene.text(190, y + 38, f"weights: {share(weights)}", anchor="start")
            scene.text(190, y + 62, f"tokens: {share(tokens)}", anchor="start")
        scene.height = step * len(ways) - 20
        return scene

    return Drawing(title, description, wide(), narrow())


Step = tuple[str, tuple[str, str], Role | None]


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
            scene.text(0, top + lane * apart + tall / 2, f"process {lane + 1}", anchor="start", muted=True)
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
                    if k + 1 == len(before):
                        scene.arrow((x + box + gap - 3, y + 12), (x + box + 3, y + 12), dashed=True)
            x += box + gap
        scene.height = top + apart + tall + 4
        return scene

    def narrow() -> Scene:
        scene, box, tall, gap, y = Scene(PHONE, size=14), 154.0, 38.0, 40.0, 24.0
        for lane in range(2):
            scene.text(lane * (PHONE - box) + box / 2, 9, f"process {lane + 1}", muted=True)
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
                    if k + 1 == len(before):
                        scene.arrow((x + 12, y + tall + gap + 14), (x + 12, y + tall + 3), dashed=True)
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
        f"Process 1 takes rows 1 to {half}, process 2 rows {half + 1} to {rows}. Each sends them through a "
        "copy of "
        f"the model and has a gradient. They average the two gradients; each sends {size}. Both take the "
        "same "
        "step and have the same weights again."
    )
    before: list[Step] = [
        ("its rows", (f"1 to {half}", f"{half + 1} to {rows}"), ACTIVATION),
        ("a copy", ("model", "model"), WEIGHT),
        ("gradient", ("g_{1}", "g_{2}"), GRADIENT),
    ]
    after: list[Step] = [("same step", ("model", "model"), WEIGHT)]
    return _lanes(title, description, before, (size, "(g_{1} + g_{2})/2"), after)


def tensor_parallel(
    d_model: int,
    d_hidden: int,
    size: str,
    *,
    title: str = "Tensor parallel: half of the features each",
) -> Drawing:
    """An MLP on two processes: half of the hidden features each, and a sum.

    Args:
        d_model: D.
        d_hidden: F, an even number.
        size: what each process sends on the way forward.
        title: what it shows.

    Raises:
        ValueError: if the hidden features cannot be halved.
    """
    _counted("d_model", d_model, 1)
    _counted("d_hidden", d_hidden, 2)
    if d_hidden % 2:
        raise ValueError(f"{d_hidden} hidden features cannot be halved")
    half = d_hidden // 2
    names = (f"1 to {half}", f"{half + 1} to {d_hidden}")
    description = (
        f"Both processes have the same input x of {d_model} features. Process 1 computes the hidden features "
        f"1 to {half} with its part of W_in, process 2 the features {half + 1} to {d_hidden}. Each "
        "multiplies "
        "them by its part of W_out. The output is the sum of the two results; each process sends "
        f"{size} on the way forward."
    )
    before: list[Step] = [
        ("input", ("x", "x"), ACTIVATION),
        ("W_{in}", names, WEIGHT),
        ("φ", ("h_{1}", "h_{2}"), ACTIVATION),
        ("W_{out}", names, WEIGHT),
    ]
    return _lanes(title, description, before, (size, "y_{1} + y_{2}"), [("output", ("y", "y"), ACTIVATION)])


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
    description = (
        f"A process is a row, the {n} parts of its tensor are the columns. In every step each process "
        "sends one "
        f"part to the next, the last to the first. {said}. Filled: what has just arrived."
    )

    def panel(scene: Scene, x: Pixels, y: Pixels, cell: Pixels, k: int) -> None:
        scene.text(x + n * cell / 2, y + 9, heads[k], bold=True)
        for i in range(n):
            for j in range(n):
                fresh = (i, j) in changed[k]
                role = ACTIVATION if k < n else GRADIENT
                scene.box(x + j * cell, y + 26 + i * cell, cell, cell, number(states[k][i][j], 0),
                          role=role, strength="full" if fresh else "pale", shade=0.05)  # fmt: skip

    def layout(room: Pixels, columns: int, cell: Pixels) -> Scene:
        scene, side = Scene(room, size=14), n * cell
        gap = (room - columns * side) / max(columns - 1, 1)
        for k in range(len(states)):
            panel(scene, (k % columns) * (side + gap), (k // columns) * (side + 50), cell, k)
        scene.height = -(-len(states) // columns) * (side + 50) + 4
        scene.text(room / 2, scene.height - 10, foot, muted=True)
        return scene

    return Drawing(title, description, layout(700, len(states), min(36, 560 / len(states) / n)),
                   layout(PHONE, 2, min(40, 140 / n)))  # fmt: skip


def sharded(size: str, *, title: str = "Sharded: gather, use, drop, scatter") -> Drawing:
    """One layer's weights and gradient on two processes that each keep a half.

    Args:
        size: what each process sends in one gathering or scattering.
        title: what it shows.
    """
    stages: list[tuple[str, Role, bool]] = [
        ("at rest", WEIGHT, False),
        ("in use", WEIGHT, True),
        ("gradient", GRADIENT, True),
        ("its half", GRADIENT, False),
    ]
    between = ("all-gather", "backward", "reduce-scatter")
    costs = (size, "", size)
    description = (
        "At rest each of two processes keeps one half of a layer's weights. Before the layer is used, an "
        "all-gather "
        f"gives both all of it; each sends {size}. Afterwards the other half is dropped, and on the way "
        "back it is "
        f"gathered again. Each then has a gradient of the whole layer; a reduce-scatter, {size} again, "
        "leaves "
        "each with its half of the mean."
    )

    def halves(scene: Scene, x: Pixels, y: Pixels, wide: Pixels, tall: Pixels, stage: int, lane: int) -> None:
        _, role, both = stages[stage]
        for half in range(2):
            there = both or half == lane
            scene.box(x + half * wide / 2, y, wide / 2, tall, role=role if there else None,
                      strength="full" if there else "faint")  # fmt: skip

    def wide() -> Scene:
        scene, box, top = Scene(700, size=14), 84.0, 30.0
        step = (700 - 80 - box) / 3
        for lane in range(2):
            scene.text(0, top + 20 + lane * 70, f"process {lane + 1}", anchor="start", muted=True)
        for k, (name, _, _) in enumerate(stages):
            x = 80 + k * step
            scene.text(x + box / 2, 10, name, bold=True)
            for lane in range(2):
                halves(scene, x, top + lane * 70, box, 40, k, lane)
                if k < 3:
                    y = top + lane * 70 + 20
                    scene.arrow((x + box + 8, y), (x + step - 8, y))
            if k < 3:
                scene.text(x + box + (step - box) / 2, top + 46, between[k], muted=True)
                if costs[k]:
                    scene.text(x + box + (step - box) / 2, top + 66, costs[k], muted=True)
        scene.height = top + 114
        return scene

    def narrow() -> Scene:
        scene, box, tall, step = Scene(PHONE, size=14), 110.0, 34.0, 108.0
        for lane in range(2):
            scene.text(lane * (PHONE - box) + box / 2, 9, f"process {lane + 1}", muted=True)
        for k, (name, _, _) in enumerate(stages):
            y = 24 + k * step
            scene.text(PHONE / 2, y + tall / 2, name, bold=True)
            for lane in range(2):
                x = lane * (PHONE - box)
                halves(scene, x, y, box, tall, k, lane)
                if k < 3:
                    scene.arrow((x + box / 2, y + tall + 6), (x + box / 2, y + step - 6))
            if k < 3:
                scene.text(PHONE / 2, y + tall + 26, between[k], muted=True)
                if costs[k]:
                    scene.text(PHONE / 2, y + tall + 48, costs[k], muted=True)
        scene.height = 24 + 3 * step + tall + 4
        return scene

    return Drawing(title, description, wide(), narrow())


def pipeline_schedules(
    times: Mapping[str, Sequence[Sequence[tuple[tuple[str, int], int]]]],
    *,
    title: str = "A pipeline's bubble",
) -> Drawing:
    """Who works on which micro-batch when: stages down, time across; waiting is hatched.

    Args:
        times: from a schedule's name to what `tformer_lib.scale.pipeline.pipeline_times` returns.
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
        f"queries {rank + 1} meet shares {', '.join(str(owner + 1) for owner in row)}"
        for rank, row in enumerate(owners)
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
            scene.box(0, y, left - 14, tall, f"Q {rank + 1}", role=QUERY, strength="full", radius=5)
            for step, owner in enumerate(row):
                x, empty = left + step * (box + gap), owner > rank
                role = None if empty else KEY
                scene.box(x, y, box, tall, f"K, V {owner + 1}", role=role, masked=empty, radius=5,
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
