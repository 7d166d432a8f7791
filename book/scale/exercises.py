"""The exercises on training at scale: bytes and messages, the best size, averages, streams, noise."""

from collections.abc import Callable

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise

# Bytes under ZeRO's stages


def _plans(g: torch.Generator) -> list[tuple[int, int, int]]:
    drawn = [
        (64 * int(torch.randint(1, 10**6, (), generator=g)), gpus, stage)
        for gpus in (2, 8, 64)
        for stage in (0, 1, 2, 3)
    ]
    return [*drawn, (7_000_000_000, 8, 0), (7_000_000_000, 8, 3), (1_000, 1, 0), (1_000, 1, 3), (10, 4, 2)]


@exercise("scale.bytes_per_gpu", inputs=_plans)
def bytes_per_gpu(count: int, gpus: int, stage: int) -> float:
    """2 P, 2 P and 12 P bytes; stage 1 divides the last among the GPUs, 2 the last two, 3 all."""
    return _shared(count, gpus, (stage >= 3, stage >= 2, stage >= 1))


def _shared(
    count: int,
    gpus: int,
    divided: tuple[bool, bool, bool],
    sizes: tuple[int, int, int] = (2, 2, 12),
) -> float:
    """Bytes of parameters, gradients, optimiser, each divided or not."""
    return float(sum(count * s / (gpus if d else 1) for s, d in zip(sizes, divided, strict=True)))


def _kept_as(
    sizes: tuple[int, int, int] = (2, 2, 12), first: int = 1, order: tuple[int, int, int] = (3, 2, 1)
) -> Callable[[int, int, int], float]:
    """The same with other sizes, or stages that begin at another number or come in another order."""
    p, g, o = (at + first - 1 for at in order)
    return lambda count, gpus, stage: _shared(count, gpus, (stage >= p, stage >= g, stage >= o), sizes)


bytes_per_gpu.mistake(
    "no float32 copy",
    "You count 8 bytes for the optimiser. Besides AdamW's two averages it keeps a float32 copy of each "
    "parameter, which makes 12.",
    _kept_as((2, 2, 8)),
)

bytes_per_gpu.mistake(
    "no averages",
    "You count 4 bytes for the optimiser, which is the float32 copy alone. AdamW also keeps two averages of "
    "4 bytes each.",
    _kept_as((2, 2, 4)),
)

bytes_per_gpu.mistake(
    "everything in float32",
    "You count parameters and gradients with 4 bytes. Here both are in 16 bits, with 2.",
    _kept_as((4, 4, 8)),
)

bytes_per_gpu.mistake(
    "gradients in float32",
    "You count gradients with 4 bytes. They are in 16 bits as the parameters are, with 2.",
    _kept_as((2, 4, 12)),
)

bytes_per_gpu.mistake(
    "no gradients",
    "The gradients are missing: 2 bytes for each parameter.",
    _kept_as((2, 0, 12)),
)

bytes_per_gpu.mistake(
    "one stage too early",
    "Your stage 0 already shares the optimiser's states out. Stage 0 is plain data parallelism: every GPU "
    "holds everything.",
    _kept_as(first=0),
)

bytes_per_gpu.mistake(
    "one stage too late",
    "Your stage 1 shares nothing out. It divides what the optimiser keeps.",
    _kept_as(first=2),
)

bytes_per_gpu.mistake(
    "nothing before the second stage",
    "Your stages 2 and 3 are right, but stage 1 divides nothing. It already shares the optimiser's 12 bytes.",
    lambda count, gpus, stage: _shared(count, gpus, (stage >= 3, stage >= 2, stage >= 2)),
)

bytes_per_gpu.mistake(
    "parameters first",
    "You share parameters out first and the optimiser's states last. It is the other way: stage 1 begins "
    "with the largest part, which is needed least often.",
    _kept_as(order=(1, 2, 3)),
)

bytes_per_gpu.mistake(
    "gradients first",
    "Your stage 1 divides the gradients and your stage 2 the optimiser's states. It is the other way round.",
    _kept_as(order=(3, 1, 2)),
)

bytes_per_gpu.mistake(
    "everything divided",
    "You divide all 16 bytes at every stage. Only stage 3 divides everything; at stage 0 nothing is divided.",
    lambda count, gpus, stage: 16 * count / gpus,
)

bytes_per_gpu.mistake(
    "nothing divided",
    "You divide nothing. From stage 1 on, a part of the 16 bytes is divided by the number of GPUs.",
    lambda count, gpus, stage: 16.0 * count,
)

bytes_per_gpu.mistake(
    "only what the stage adds",
    "Stage 3 divides everything, not the parameters alone: each stage keeps what the ones before it divide.",
    lambda count, gpus, stage: _shared(count, gpus, (stage == 3, stage == 2, stage == 1)),
)

bytes_per_gpu.mistake(
    "summed over GPUs",
    "That is the memory of all GPUs together. Asked is what one of them holds.",
    lambda count, gpus, stage: gpus * bytes_per_gpu(count, gpus, stage),
)


# A ring of tensors


def _rings(g: torch.Generator) -> list[tuple[Tensor]]:
    random = [(torch.randn(n, n, generator=g),) for n in (2, 3, 4, 5, 7)]
    told_apart = torch.tensor([1.0, 10.0, 100.0])[:, None] * torch.tensor([1.0, 2.0, 3.0])
    return [*random, (told_apart,)]


def _ring(
    adding: Callable[[int, int], int] = lambda i, t: i - 1 - t,
    passing: Callable[[int, int], int] = lambda i, t: i - t,
    *,
    from_whom: int = -1,
    add: bool = True,
    add_again: bool = False,
) -> Callable[[Tensor], Tensor]:
    """The states of a ring in which process i takes part `adding(i, t)`, later `passing(i, t)`, in step t."""

    def states(x: Tensor) -> Tensor:
        n, found = len(x), [x.clone()]
        for step in range(2 * (n - 1)):
            new = found[-1].clone()
            old = found[-1]
            first, t = step < n - 1, step % (n - 1)
            for i in range(n):
                part = (adding(i, t) if first else passing(i, t)) % n
                kept = old[i, part] if (first and add) or (not first and add_again) else 0
                new[i, part] = old[(i + from_whom) % n, part] + kept
            found.append(new)
        return torch.stack(found)

    return states


@exercise("scale.ring_states", inputs=_rings)
def ring_states(x: Tensor) -> Tensor:
    """(2n - 1, n, n): what n processes hold after each step of an all-reduce in a ring; x is (n, n)."""
    n, states = len(x), [x.clone()]
    for step in range(2 * (n - 1)):
        old, new = states[-1], states[-1].clone()
        for i in range(n):  # the receiver; the sender is i - 1
            adding, t = step < n - 1, step % (n - 1)
            part = (i - 1 - t) % n if adding else (i - t) % n
            new[i, part] = old[i - 1, part] + (old[i, part] if adding else 0)
        states.append(new)
    return torch.stack(states)


ring_states.mistake(
    "added again in the second half",
    "In the second half the finished sums go around. The receiver replaces what it has; it does not add.",
    _ring(add_again=True),
)

ring_states.mistake(
    "never added",
    "In the first half the receiver adds what arrives to its own part; you replace it.",
    _ring(add=False),
)

ring_states.mistake(
    "in the other direction",
    "Process i sends to i + 1, so process i receives from i - 1. Yours goes the other way around.",
    _ring(lambda i, t: i + 1 + t, lambda i, t: i + t, from_whom=1),
)

ring_states.mistake(
    "the same part in every step",
    "Each process sends the same part in every step. It must send the part that has just arrived, one "
    "further back each time.",
    _ring(lambda i, t: i - 1),
)

ring_states.mistake(
    "an unfinished sum passed on",
    "After the adding, process i has finished part i + 1, not part i: this is what it sends first.",
    _ring(passing=lambda i, t: i - 1 - t),
)

ring_states.mistake(
    "begins one part too late",
    "In the first step process i sends part i, so process i receives part i - 1.",
    _ring(lambda i, t: i - t, lambda i, t: i + 1 - t),
)

ring_states.mistake(
    "the end alone",
    "You return the last state only. All 2n - 1 are asked for, the start among them.",
    lambda x: _ring()(x)[-1],
)

ring_states.mistake(
    "without the start",
    "The first of the states is x itself, before anything is sent.",
    lambda x: _ring()(x)[1:],
)

ring_states.mistake(
    "after the adding",
    "You stop when the sums are finished, each on one process. The second half takes them to all.",
    lambda x: _ring()(x)[: len(x)],
)


# The best size


def _curves(g: torch.Generator) -> list[tuple]:
    found = []
    for count, best, least, curvature, noise in (
        (5, 2e4, 2.1, 0.05, 0.004),
        (6, 3e5, 1.7, 0.03, 0.004),
        (3, 5e3, 2.4, 0.08, 0.0),
        (7, 1e6, 1.5, 0.10, 0.01),
        (4, 8e4, 3.0, 0.20, 0.0),
    ):
        steps = torch.rand(count, generator=g, dtype=torch.float64) + torch.arange(count) - 0.4 * count
        sizes = best * 2.0**steps
        losses = least + curvature * (sizes / best).log() ** 2
        found.append((sizes, losses + noise * torch.randn(count, generator=g, dtype=torch.float64)))
    sizes = torch.tensor([1e4, 2e4, 4e4, 8e4], dtype=torch.float64)  # all on one side
    return [*found, (sizes, 2 + 0.06 * (sizes / 1.6e5).log() ** 2)]


def _fit(x: Tensor, losses: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """k, slope, height of losses = k x^2 + slope x + height, by least squares."""
    columns = torch.stack([x**2, x, torch.ones_like(x)], dim=1)
    k, slope, height = torch.linalg.lstsq(columns, losses[:, None]).solution[:, 0]
    return k, slope, height


@exercise("scale.best_size", inputs=_curves, tolerance=1e-4)
def best_size(sizes: Tensor, losses: Tensor) -> Tensor:
    """(2,): the size and the loss at the lowest point of the parabola through loss against ln P."""
    x = sizes.log()
    k, slope, height = _fit(x - x.mean(), losses)
    return torch.stack([(x.mean() - slope / (2 * k)).exp(), height - slope**2 / (4 * k)])


def _seen_as(across: Callable[[Tensor], Tensor], back: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """A parabola in something else than ln P."""

    def variant(sizes: Tensor, losses: Tensor) -> Tensor:
        x = across(sizes)
        scale = x.abs().max()
        k, slope, height = _fit(x / scale, losses)
        return torch.stack([back(-slope / (2 * k) * scale), height - slope**2 / (4 * k)])

    return variant


best_size.mistake(
    "parabola in P",
    "Your parabola is one in P. Sizes are spread over factors, not over differences: fit it in ln P.",
    _seen_as(lambda n: n, lambda x: x),
)

best_size.mistake(
    "the best run",
    "You return the size and the loss of the best run. The lowest point of the parabola lies between sizes, "
    "and does not depend on one run alone.",
    lambda sizes, losses: torch.stack([sizes[losses.argmin()], losses.min()]),
)

best_size.mistake(
    "left in the logarithm",
    "Your size is a logarithm. The vertex lies at ln P: take the exponential.",
    lambda sizes, losses: torch.stack([best_size(sizes, losses)[0].log(), best_size(sizes, losses)[1]]),
)

best_size.mistake(
    "another base on the way back",
    "The logarithm and the way back have different bases, such as ln and a power of 10.",
    lambda sizes, losses: torch.stack(
        [10.0 ** best_size(sizes, losses)[0].log(), best_size(sizes, losses)[1]]
    ),
)


def _vertex(share: float, fall: float) -> Callable[..., Tensor]:
    """The size at -s / (share k), and the loss `fall` s^2 / (4k) below the constant term."""

    def variant(sizes: Tensor, losses: Tensor) -> Tensor:
        x = sizes.log()
        k, slope, height = _fit(x - x.mean(), losses)
        return torch.stack([(x.mean() - slope / (share * k)).exp(), height - fall * slope**2 / (4 * k)])

    return variant


best_size.mistake(
    "vertex without the half",
    "The derivative 2kx + s is 0 at x = -s/(2k). Your vertex lies twice as far from the centre: the factor 2 "
    "is missing.",
    _vertex(1.0, 0.0),
)

best_size.mistake(
    "height of the constant term",
    "The loss that you return is the parabola's constant term, its value at x = 0. Asked is that at the "
    "vertex.",
    _vertex(2.0, 0.0),
)

best_size.mistake(
    "logarithm of the losses",
    "You fitted ln(loss), or returned its lowest value. The parabola is through the losses as they are.",
    lambda sizes, losses: torch.stack(
        [best_size(sizes, losses.log())[0], best_size(sizes, losses.log())[1].exp()]
    ),
)

best_size.mistake(
    "only the loss",
    "You return the lowest loss alone, or twice. The first number is the size at which it lies.",
    lambda sizes, losses: best_size(sizes, losses)[1].expand(2),
)

best_size.mistake(
    "exchanged",
    "Exchange the two: the size comes first, then the loss.",
    lambda sizes, losses: best_size(sizes, losses).flip(0),
)

best_size.mistake(
    "within the sizes that were tried",
    "You hold the size between those that were tried. The parabola's lowest point may lie outside, and that "
    "is worth knowing: the next size to try lies there.",
    lambda sizes, losses: torch.stack(
        [best_size(sizes, losses)[0].clamp(sizes.min(), sizes.max()), best_size(sizes, losses)[1]]
    ),
)


# Averages over processes


def _shards(g: torch.Generator) -> list[tuple[Tensor, Tensor]]:
    """Gradients (P, A, D) of mean losses, and numbers of targets (P, A); where there is none, NaN."""
    found = []
    for processes, parts, width in ((2, 1, 3), (2, 2, 4), (4, 3, 5), (3, 2, 1), (1, 4, 3)):
        targets = torch.randint(1, 40, (processes, parts), generator=g)
        found.append((torch.randn(processes, parts, width, generator=g), targets))
    gradients, targets = torch.randn(3, 2, 4, generator=g), torch.tensor([[9, 1], [0, 5], [0, 0]])
    gradients[targets == 0] = torch.nan
    even = torch.randn(2, 2, 3, generator=g), torch.full((2, 2), 7)
    return [*found, (gradients, targets), even]


@exercise("scale.averaged_gradient", inputs=_shards)
def averaged_gradient(gradients: Tensor, targets: Tensor) -> Tensor:
    """(D,): the gradient of the mean loss over all targets, of gradients (P, A, D) of the parts' means."""
    sums = torch.where(targets[..., None] > 0, gradients * targets[..., None], 0.0)
    return sums.sum(dim=(0, 1)) / targets.sum()


averaged_gradient.mistake(
    "mean of means",
    "You give every part the same weight. A part with few targets then counts as much as one with many: each "
    "of its targets pulls harder than the others.",
    lambda gradients, targets: gradients.nanmean(dim=(0, 1)),
)

averaged_gradient.mistake(
    "mean of means, with NaN",
    "You average the parts' means as they are. A part with few targets then counts as much as one with many, "
    "and a part without targets makes everything NaN: weight each part by its targets, and leave empty ones "
    "out.",
    lambda gradients, targets: gradients.mean(dim=(0, 1)),
)

averaged_gradient.mistake(
    "mean of means, empty parts as 0",
    "You average the parts' means, with 0 for a part without targets. A part with few targets then counts as "
    "much as one with many: weight each part by its targets.",
    lambda gradients, targets: gradients.nan_to_num().mean(dim=(0, 1)),
)

averaged_gradient.mistake(
    "counted within a process only",
    "You weight the parts of a process by their targets, and then the processes alike. The processes do not "
    "have equally many targets either: divide by the number of all of them.",
    lambda gradients, targets: (
        (gradients.nan_to_num() * targets[..., None]).sum(1) / targets.sum(1).clamp(min=1)[:, None]
    ).mean(0),
)

averaged_gradient.mistake(
    "parts of a process alike",
    "You average the parts of a process as if they had equally many targets, and weight the processes by "
    "theirs. The parts differ as well: weight each part by its own targets.",
    lambda gradients, targets: (
        (gradients.nanmean(1).nan_to_num() * targets.sum(1)[:, None]).sum(0) / targets.sum()
    ),
)

averaged_gradient.mistake(
    "zero times NaN",
    "A part without targets has the gradient NaN, and 0 times NaN is NaN. Leave such parts out before you "
    "multiply.",
    lambda gradients, targets: (gradients * targets[..., None]).sum((0, 1)) / targets.sum(),
)

averaged_gradient.mistake(
    "not divided",
    "That is the sum over targets. Divide it by their number, or the step grows with the batch.",
    lambda gradients, targets: (gradients.nan_to_num() * targets[..., None]).sum((0, 1)),
)

averaged_gradient.mistake(
    "averaged twice",
    "Your sum over all targets is divided by their number and by the number of processes or parts as well. "
    "Once is enough.",
    lambda gradients, targets: averaged_gradient(gradients, targets) / targets.numel(),
)

averaged_gradient.mistake(
    "divided by the mean number",
    "You divide by the mean number of targets of a part. That is right before processes and parts average; "
    "here you have summed, so divide by the number of all targets.",
    lambda gradients, targets: averaged_gradient(gradients, targets) * targets.numel(),
)


# The rows of one process, from a count of batches


def _stream_inputs(g: torch.Generator) -> list[tuple]:
    def orders(epochs: int, windows: int) -> Tensor:
        return torch.stack([torch.randperm(windows, generator=g) for _ in range(epochs)])

    return [
        (orders(3, 10), 0, 4, 0, 2),
        (orders(3, 10), 2, 4, 1, 2),  # this batch lies across the end of an epoch
        (orders(4, 7), 3, 6, 2, 3),
        (orders(4, 9), 5, 4, 0, 1),
        (orders(5, 3), 1, 6, 1, 2),  # a batch of two epochs
        (orders(2, 12), 2, 8, 3, 4),
        (orders(6, 5), 4, 5, 0, 1),
        (orders(3, 8), 4, 4, 1, 4),
    ]


@exercise("scale.window_numbers", inputs=_stream_inputs)
def window_numbers(orders: Tensor, taken: int, batch: int, rank: int, world_size: int) -> Tensor:
    """(B / world_size,): the windows of the next batch that process `rank` reads, when `taken` are done.

    orders (E, W): in row e the windows in the order of epoch e.
    """
    rows = batch // world_size
    places = taken * batch + rank * rows + torch.arange(rows)
    windows = orders.shape[1]
    return orders[places // windows, places % windows]


def _at(places: Callable[[int, int, int, int], Tensor]) -> Callable[..., Tensor]:
    """The windows at other places of the endless sequence."""

    def variant(orders: Tensor, taken: int, batch: int, rank: int, world_size: int) -> Tensor:
        found = places(taken, batch, rank, world_size) % orders.numel()
        return orders.flatten()[found]

    return variant


window_numbers.mistake(
    "the whole batch",
    "You return all rows of the batch. Process r reads B / world_size of them, from row r B / world_size on.",
    _at(lambda taken, batch, rank, world: taken * batch + torch.arange(batch)),
)

window_numbers.mistake(
    "rows dealt in turn",
    "You deal the rows out in turn, one to each process. Here they are cut: the first process has the first "
    "B / world_size rows, so that all rows put below each other are the batch.",
    _at(lambda taken, batch, rank, world: taken * batch + torch.arange(rank, batch, world)),
)

window_numbers.mistake(
    "the count of one process",
    "You count in rows of one process. `taken` counts whole batches: each of them moved the place by B, "
    "whichever process reads.",
    _at(
        lambda taken, batch, rank, world: (
            taken * (batch // world) + rank * (batch // world) + torch.arange(batch // world)
        )
    ),
)

window_numbers.mistake(
    "every process the same",
    "You leave out the rank: every process reads the first rows, and the others are read by nobody.",
    _at(lambda taken, batch, rank, world: taken * batch + torch.arange(batch // world)),
)

window_numbers.mistake(
    "one batch too far",
    "With `taken` batches done, the next one begins at place `taken` times B. Yours begins a batch later.",
    _at(
        lambda taken, batch, rank, world: (
            (taken + 1) * batch + rank * (batch // world) + torch.arange(batch // world)
        )
    ),
)

window_numbers.mistake(
    "one order for all epochs",
    "You read every epoch in the order of the first. Epoch e has an order of its own, in row e.",
    lambda orders, taken, batch, rank, world_size: window_numbers(
        orders[:1].expand_as(orders), taken, batch, rank, world_size
    ),
)

window_numbers.mistake(
    "places instead of windows",
    "You return places of the sequence within their epoch. Which window is read there, the order says: "
    "look it up.",
    lambda orders, taken, batch, rank, world_size: window_numbers(
        torch.arange(orders.shape[1]).expand_as(orders), taken, batch, rank, world_size
    ),
)


def _epoch_of_the_batch(orders: Tensor, taken: int, batch: int, rank: int, world_size: int) -> Tensor:
    rows, windows = batch // world_size, orders.shape[1]
    places = taken * batch + rank * rows + torch.arange(rows)
    return orders[taken * batch // windows, places % windows]


def _rest_dropped(orders: Tensor, taken: int, batch: int, rank: int, world_size: int) -> Tensor:
    rows, each = batch // world_size, max(orders.shape[1] // batch, 1)
    epoch, number = divmod(taken, each)
    places = number * batch + rank * rows + torch.arange(rows)
    return orders[epoch % len(orders), places % orders.shape[1]]


window_numbers.mistake(
    "one epoch for the whole batch",
    "You find out the epoch once for the batch. A batch may lie across the end of an epoch: each row has an "
    "epoch of its own, its place divided by W.",
    _epoch_of_the_batch,
)

window_numbers.mistake(
    "the rest of an epoch dropped",
    "You leave out the windows at the end of an epoch that fill no batch. Here nothing is dropped: the next "
    "epoch begins in the middle of a batch.",
    _rest_dropped,
)


# Signal and noise


def _batches(g: torch.Generator) -> list[tuple[Tensor, Tensor, int, int]]:
    """Gradients of k batches of b examples and of K batches of B examples, around a gradient G."""
    found = []
    for k, K, P, b, B in (
        (4, 3, 5, 2, 8),
        (6, 2, 3, 1, 16),
        (3, 5, 7, 4, 6),
        (1, 1, 4, 3, 12),
        (5, 2, 2, 8, 64),
    ):
        G = torch.randn(P, generator=g)
        small = G + 2 * torch.randn(k, P, generator=g) / b**0.5
        big = G + 2 * torch.randn(K, P, generator=g) / B**0.5
        found.append((small, big, b, B))
    return found


@exercise("scale.signal_and_noise", inputs=_batches, tolerance=1e-4)
def signal_and_noise(small: Tensor, big: Tensor, b: int, B: int) -> Tensor:
    """(2,): estimates of |G|^2 and of tr Sigma, from gradients (k, P) of b examples and (K, P) of B."""
    short, long = small.square().sum(dim=1).mean(), big.square().sum(dim=1).mean()
    return torch.stack([(B * long - b * short) / (B - b), (short - long) / (1 / b - 1 / B)])


def _lengths(small: Tensor, big: Tensor) -> tuple[Tensor, Tensor]:
    return small.square().sum(dim=1).mean(), big.square().sum(dim=1).mean()


def _solved(short: Tensor, long: Tensor, b: int, B: int) -> Tensor:
    return torch.stack([(B * long - b * short) / (B - b), (short - long) / (1 / b - 1 / B)])


signal_and_noise.mistake(
    "length of the mean gradient",
    "You average the gradients first and take the squared length afterwards. The mean of k gradients of b "
    "examples is a gradient of k b examples, and has less noise: take each squared length, then the mean.",
    lambda small, big, b, B: _solved(small.mean(dim=0).square().sum(), big.mean(dim=0).square().sum(), b, B),
)

signal_and_noise.mistake(
    "lengths not squared",
    "What is |G|² plus noise / B in expectation is the squared length of a gradient, not its length.",
    lambda small, big, b, B: _solved(small.norm(dim=1).mean(), big.norm(dim=1).mean(), b, B),
)

signal_and_noise.mistake(
    "length, then squared",
    "You square the mean length. The mean of the squared lengths is what has an expectation in closed form.",
    lambda small, big, b, B: _solved(small.norm(dim=1).mean() ** 2, big.norm(dim=1).mean() ** 2, b, B),
)

signal_and_noise.mistake(
    "mean over entries",
    "You take the mean over the entries of a gradient. A squared length is a sum over its P entries.",
    lambda small, big, b, B: _solved(small.square().mean(), big.square().mean(), b, B),
)

signal_and_noise.mistake(
    "summed over batches",
    "You add the squared lengths of all batches of a size. Take their mean, since the sizes may have "
    "different numbers of batches.",
    lambda small, big, b, B: _solved(small.square().sum(), big.square().sum(), b, B),
)

signal_and_noise.mistake(
    "not divided",
    "You stop at B times the large batch's squared length less b times the small one's, and at the "
    "difference of the two. Divide the first by B - b and the second by 1/b - 1/B.",
    lambda small, big, b, B: torch.stack(
        [
            B * _lengths(small, big)[1] - b * _lengths(small, big)[0],
            _lengths(small, big)[0] - _lengths(small, big)[1],
        ]
    ),
)

signal_and_noise.mistake(
    "noise divided by B - b",
    "You divide the difference of the squared lengths by B - b. It is tr Sigma (1/b - 1/B), so divide it by "
    "1/b - 1/B.",
    lambda small, big, b, B: (
        _solved(*_lengths(small, big), b, B) * torch.tensor([1.0, (1 / b - 1 / B) / (B - b)])
    ),
)

signal_and_noise.mistake(
    "signal not divided",
    "Your signal is still (B - b) times too large: B |g_B|² - b |g_b|² is (B - b) |G|².",
    lambda small, big, b, B: _solved(*_lengths(small, big), b, B) * torch.tensor([float(B - b), 1.0]),
)

signal_and_noise.mistake(
    "without the batch sizes",
    "You subtract the squared lengths without their batch sizes. Both hold the same signal, so it cancels: "
    "multiply each by its own batch size first, and the noise cancels instead.",
    lambda small, big, b, B: torch.stack(
        [_lengths(small, big)[1] - _lengths(small, big)[0], _solved(*_lengths(small, big), b, B)[1]]
    ),
)

signal_and_noise.mistake(
    "signal with its noise",
    "Your signal is the squared length at the large batch. It still holds tr Σ / B: solve the two equations "
    "for both unknowns.",
    lambda small, big, b, B: torch.stack([_lengths(small, big)[1], _solved(*_lengths(small, big), b, B)[1]]),
)

signal_and_noise.mistake(
    "noise of a batch",
    "Your noise is the difference of the two squared lengths. That is tr Σ (1/b - 1/B): divide by the "
    "difference of the inverse batch sizes.",
    lambda small, big, b, B: torch.stack(
        [_solved(*_lengths(small, big), b, B)[0], _lengths(small, big)[0] - _lengths(small, big)[1]]
    ),
)

signal_and_noise.mistake(
    "divided by the difference of sizes",
    "You divide the noise by 1 / (B - b). The difference of the two equations is tr Σ (1/b - 1/B).",
    lambda small, big, b, B: torch.stack(
        [
            _solved(*_lengths(small, big), b, B)[0],
            (_lengths(small, big)[0] - _lengths(small, big)[1]) * (B - b),
        ]
    ),
)

signal_and_noise.mistake(
    "sizes exchanged",
    "The large batch's squared length has the larger weight in the signal: it is weighted by B, the small "
    "one's by b.",
    lambda small, big, b, B: torch.stack(
        [
            (b * _lengths(small, big)[1] - B * _lengths(small, big)[0]) / (b - B),
            _solved(*_lengths(small, big), b, B)[1],
        ]
    ),
)

signal_and_noise.mistake(
    "sign of the noise",
    "Your noise has the wrong sign: small batches give the *longer* gradients.",
    lambda small, big, b, B: _solved(*_lengths(small, big), b, B) * torch.tensor([1.0, -1.0]),
)

signal_and_noise.mistake(
    "noise first",
    "You return the noise first. Asked is the pair signal, noise.",
    lambda small, big, b, B: _solved(*_lengths(small, big), b, B).flip(0),
)
