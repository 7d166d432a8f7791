"""In what order the stages of a pipeline work, and how long they wait, counted in steps of a schedule."""

from collections.abc import Mapping, Sequence

from tformer_lib.numbers import whole

Action = tuple[str, int]  # ("F" or "B", micro-batch): a micro-batch's way forward or back through one stage


def pipeline_order(schedule: str, stages: int, micro_batches: int) -> list[list[Action]]:
    """What each stage does, one thing after the other.

    GPipe (Huang et al. 2019) sends all micro-batches forward, then all back. 1F1B (Narayanan et al. 2021)
    begins the way back as soon as it can: stage i of n first sends n - i - 1 micro-batches forward, then one
    forward and one back in turn.

    Args:
        schedule: "gpipe" or "1f1b".
        stages: n.
        micro_batches: into how many parts the batch is cut.

    Raises:
        ValueError: if the schedule is unknown, or a number is below 1.
    """
    stages, micro_batches = whole("stages", stages, 1), whole("micro_batches", micro_batches, 1)
    if schedule not in ("gpipe", "1f1b"):
        raise ValueError(f"the schedule must be 'gpipe' or '1f1b', got {schedule!r}")
    orders = []
    for stage in range(stages):
        ahead = micro_batches if schedule == "gpipe" else min(micro_batches, stages - stage - 1)
        order: list[Action] = [("F", i) for i in range(ahead)]
        for i in range(micro_batches):
            if ahead + i < micro_batches:
                order.append(("F", ahead + i))
            order.append(("B", i))
        orders.append(order)
    return orders


def pipeline_times(
    orders: Sequence[Sequence[Action]], cost: Mapping[str, int] | None = None
) -> list[list[tuple[Action, int]]]:
    """When each stage begins each of its actions: as soon as it is free and its input is there.

    A micro-batch goes forward through stage i after stage i - 1, and back through stage i after stage i + 1
    (through the last stage after its own way forward).

    Args:
        orders: what each stage does, as `pipeline_order` gives it, or as it was seen.
        cost: the steps that "F" and "B" take; 1 each if None.

    Raises:
        ValueError: if a stage waits for something that never comes.
    """
    cost = {"F": 1, "B": 1} if cost is None else cost
    last, free = len(orders) - 1, [0] * len(orders)
    done: dict[tuple[int, str, int], int] = {}
    times: list[list[tuple[Action, int]]] = [[] for _ in orders]
    while any(len(found) < len(order) for found, order in zip(times, orders, strict=True)):
        before = len(done)
        for stage, order in enumerate(orders):
            if len(times[stage]) == len(order):
                continue
            kind, i = order[len(times[stage])]
            if kind == "F":
                ready = done.get((stage - 1, "F", i)) if stage else 0
            else:
                ready = done.get((stage, "F", i) if stage == last else (stage + 1, "B", i))
            if ready is not None:
                start = max(free[stage], ready)
                times[stage].append(((kind, i), start))
                free[stage] = done[stage, kind, i] = start + cost[kind]
        if len(done) == before:
            raise ValueError("a stage waits for something that never comes")
    return times


def bubble(orders: Sequence[Sequence[Action]], cost: Mapping[str, int] | None = None) -> float:
    """The share of all stages' time in which they wait; (n - 1) / (m + n - 1) for GPipe and 1F1B.

    Args:
        orders: what each stage does.
        cost: the steps that "F" and "B" take; 1 each if None.
    """
    cost = {"F": 1, "B": 1} if cost is None else cost
    times = pipeline_times(orders, cost)
    end = max(start + cost[kind] for found in times for (kind, _), start in found)
    work = sum(cost[kind] for order in orders for kind, _ in order)
    return 1 - work / (len(orders) * end)


def most_alive(order: Sequence[Action]) -> int:
    """For how many micro-batches at once a stage keeps activations: gone forward, and not yet back."""
    alive = most = 0
    for kind, _ in order:
        alive += 1 if kind == "F" else -1
        most = max(most, alive)
    return most
