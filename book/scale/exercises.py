"""The exercises on training at scale: bytes and messages, the best size, averages, streams, noise."""

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise


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
    divided = (stage >= 3, stage >= 2, stage >= 1)
    return float(sum(count * s / (gpus if d else 1) for s, d in zip((2, 2, 12), divided, strict=True)))


bytes_per_gpu.add_mistakes("""
no float32 copy | (2, 2, 12) => (2, 2, 8)
    You count 8 bytes for the optimiser. Besides AdamW's two averages it keeps a float32 copy of each
    parameter, which makes 12.
one stage too early | stage >= => stage + 1 >=
    Your stage 0 already shares the optimiser's states out. Stage 0 is plain data parallelism: every GPU
    holds everything.
one stage too late | stage >= => stage - 1 >=
    Your stage 1 shares nothing out. It divides what the optimiser keeps.
parameters first | (stage >= 3, stage >= 2, stage >= 1) => (stage >= 1, stage >= 2, stage >= 3)
    You share parameters out first and the optimiser's states last. It is the other way: stage 1 begins
    with the largest part, which is needed least often.
everything divided | (stage >= 3, stage >= 2, stage >= 1) => (True, True, True)
    You divide all 16 bytes at every stage. Only stage 3 divides everything; at stage 0 nothing is
    divided.
only what the stage adds | stage >= => stage ==
    Stage 3 divides everything, not the parameters alone: each stage keeps what the ones before it divide.
""")


def _rings(g: torch.Generator) -> list[tuple[Tensor]]:
    random = [(torch.randn(n, n, generator=g),) for n in (2, 3, 4, 5, 7)]
    told_apart = torch.tensor([1.0, 10.0, 100.0])[:, None] * torch.tensor([1.0, 2.0, 3.0])
    return [*random, (told_apart,)]


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


ring_states.add_mistakes("""
added again in the second half | old[i, part] if adding else 0 => old[i, part]
    In the second half the finished sums go around. The receiver replaces what it has; it does not add.
never added | old[i, part] if adding else 0 => 0
    In the first half the receiver adds what arrives to its own part; you replace it.
in the other direction
    | (i - 1 - t) % n if adding else (i - t) % n => (i + 1 + t) % n if adding else (i + t) % n
    | old[i - 1, part] => old[(i + 1) % n, part]
    Process i sends to i + 1, so process i receives from i - 1. Yours goes the other way around.
an unfinished sum passed on | (i - t) % n => (i - 1 - t) % n
    After the adding, process i has finished part i + 1, not part i: this is what it sends first.
""")


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


@exercise("scale.best_size", inputs=_curves, tolerance=1e-4)
def best_size(sizes: Tensor, losses: Tensor) -> Tensor:
    """(2,): the size and the loss at the lowest point of the parabola through loss against ln P."""
    x = sizes.log()
    middle = x.mean()
    columns = (x - middle)[:, None] ** torch.tensor([2, 1, 0])
    k, slope, height = torch.linalg.lstsq(columns, losses[:, None]).solution[:, 0]
    return torch.stack([(middle - slope / (2 * k)).exp(), height - slope**2 / (4 * k)])


best_size.add_mistakes("""
parabola in P
    | sizes.log() => sizes / sizes.max()
    | .exp() => * sizes.max()
    Your parabola is one in P. Sizes are spread over factors, not over differences: fit it in ln P.
the best run | => lambda sizes, losses: torch.stack([sizes[losses.argmin()], losses.min()])
    You return the size and the loss of the best run. The lowest point of the parabola lies between sizes,
    and does not depend on one run alone.
left in the logarithm | .exp() =>
    Your size is a logarithm. The vertex lies at ln P: take the exponential.
vertex without the half
    | (2 * k) => k
    | height - slope**2 / (4 * k) => height
    The derivative 2kx + s is 0 at x = -s/(2k). Your vertex lies twice as far from the centre: the factor
    2 is missing.
within the sizes that were tried | .exp() => .exp().clamp(sizes.min(), sizes.max())
    You hold the size between those that were tried. The parabola's lowest point may lie outside, and that
    is worth knowing: the next size to try lies there.
""")


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


averaged_gradient.add_mistakes("""
mean of means | => lambda gradients, targets: gradients.nanmean(dim=(0, 1))
    You give every part the same weight. A part with few targets then counts as much as one with many:
    each of its targets pulls harder than the others.
mean of means, with NaN | => lambda gradients, targets: gradients.mean(dim=(0, 1))
    You average the parts' means as they are. A part with few targets then counts as much as one with
    many, and a part without targets makes everything NaN: weight each part by its targets, and leave
    empty ones out.
mean of means, empty parts as 0 | => lambda gradients, targets: gradients.nan_to_num().mean(dim=(0, 1))
    You average the parts' means, with 0 for a part without targets. A part with few targets then counts
    as much as one with many: weight each part by its targets.
counted within a process only
    | sums.sum(dim=(0, 1)) / targets.sum() => (sums.sum(1) / targets.sum(1).clamp(min=1)[:, None]).mean(0)
    You weight the parts of a process by their targets, and then the processes alike. The processes do not
    have equally many targets either: divide by the number of all of them.
zero times NaN | > 0 => >= 0
    A part without targets has the gradient NaN, and 0 times NaN is NaN. Leave such parts out before you
    multiply.
not divided | / targets.sum() =>
    That is the sum over targets. Divide it by their number, or the step grows with the batch.
""")


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


window_numbers.add_mistakes("""
the whole batch | rank * rows + torch.arange(rows) => torch.arange(batch)
    You return all rows of the batch. Process r reads B / world_size of them, from row r B / world_size
    on.
rows dealt in turn | rank * rows + torch.arange(rows) => torch.arange(rank, batch, world_size)
    You deal the rows out in turn, one to each process. Here they are cut: the first process has the first
    B / world_size rows, so that all rows put below each other are the batch.
one order for all epochs | places // windows => 0
    You read every epoch in the order of the first. Epoch e has an order of its own, in row e.
one epoch for the whole batch | places // windows => taken * batch // windows
    You find out the epoch once for the batch. A batch may lie across the end of an epoch: each row has an
    epoch of its own, its place divided by W.
the rest of an epoch dropped
    | rows = batch => epoch, number = divmod(taken, max(orders.shape[1] // batch, 1)); rows = batch
    | taken * batch => number * batch
    | places // windows => epoch % len(orders)
    You leave out the windows at the end of an epoch that fill no batch. Here nothing is dropped: the next
    epoch begins in the middle of a batch.
""")


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


signal_and_noise.add_mistakes("""
length of the mean gradient | square().sum(dim=1).mean() => mean(dim=0).square().sum()
    You average the gradients first and take the squared length afterwards. The mean of k gradients of b
    examples is a gradient of k b examples, and has less noise: take each squared length, then the mean.
mean over entries | .sum(dim=1).mean() => .mean()
    You take the mean over the entries of a gradient. A squared length is a sum over its P entries.
not divided
    | (B * long - b * short) / (B - b) => B * long - b * short
    | (short - long) / (1 / b - 1 / B) => short - long
    You stop at B times the large batch's squared length less b times the small one's, and at the
    difference of the two. Divide the first by B - b and the second by 1/b - 1/B.
noise divided by B - b | / (1 / b - 1 / B) => / (B - b)
    You divide the difference of the squared lengths by B - b. It is tr Sigma (1/b - 1/B), so divide it by
    1/b - 1/B.
without the batch sizes | (B * long - b * short) / (B - b) => long - short
    You subtract the squared lengths without their batch sizes. Both hold the same signal, so it cancels:
    multiply each by its own batch size first, and the noise cancels instead.
signal with its noise | (B * long - b * short) / (B - b) => long
    Your signal is the squared length at the large batch. It still holds tr Σ / B: solve the two equations
    for both unknowns.
sizes exchanged | (B * long - b * short) / (B - b) => (b * long - B * short) / (b - B)
    The large batch's squared length has the larger weight in the signal: it is weighted by B, the small
    one's by b.
""")
