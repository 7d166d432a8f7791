"""How noisy a gradient is: the batch size at which noise and signal are equally large."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor, nn

from tformer_lib.core.precision import precise
from tformer_lib.numbers import brief, real, whole


@dataclass(frozen=True)
class NoiseScale:
    """B = tr(Sigma) / |G|^2: the simple noise scale of McCandlish et al. (2018).

    G is the gradient of the expected loss and Sigma the covariance of the gradient of one example.
    The gradient of a batch of B examples then has |G|^2 of signal and an expected tr(Sigma) / B = |G|^2 of
    noise.

    Args:
        signal: an estimate of |G|^2.
        noise: an estimate of tr(Sigma).
    """

    signal: float
    noise: float

    @property
    def scale(self) -> float:
        """noise / signal, in examples; infinite where the estimate of the signal is not positive.

        Both estimates are unbiased, their quotient is not: average signal and noise, then divide.
        """
        return self.noise / self.signal if self.signal > 0 else math.inf


def mean_scale(found: Iterable[NoiseScale]) -> NoiseScale:
    """The mean signal and the mean noise of several measurements: still unbiased, and steadier.

    Raises:
        ValueError: if there is none.
    """
    each = list(found)
    if not each:
        raise ValueError("there is no measurement to average")
    return NoiseScale(
        signal=sum(one.signal for one in each) / len(each), noise=sum(one.noise for one in each) / len(each)
    )


def noise_from_sizes(small: float, big: float, batch_small: int, batch_big: int) -> NoiseScale:
    """Signal and noise from the squared lengths of a gradient at two batch sizes.

    E|G_B|^2 = |G|^2 + tr(Sigma) / B holds at every batch size B, and two of them give both unknowns:

        signal = (B' big - B small) / (B' - B),   noise = (small - big) / (1/B - 1/B'),

    each without bias (McCandlish et al. 2018). An estimate may be negative.

    Args:
        small: |G_B|^2, or a mean of several.
        big: |G_B'|^2, or a mean of several.
        batch_small: B, examples.
        batch_big: B', more of them.

    Raises:
        ValueError: if the second batch is not the larger one, or a squared length is negative or not finite.
    """
    batch_small, batch_big = whole("batch_small", batch_small, 1), whole("batch_big", batch_big, 1)
    small, big = real("small", small, "[0, inf)"), real("big", big, "[0, inf)")
    if batch_big <= batch_small:
        raise ValueError(f"batch_big must be larger than batch_small={batch_small}, got {batch_big}")
    return NoiseScale(
        signal=(batch_big * big - batch_small * small) / (batch_big - batch_small),
        noise=(small - big) / (1 / batch_small - 1 / batch_big),
    )


def noise_from_gradients(gradients: Float[Tensor, "k P"], batch: int) -> NoiseScale:
    """Signal and noise from the gradients of k batches of `batch` independent examples each.

    Their squared lengths are those of the small batch size, and that of their mean, which is the gradient
    of all k `batch` examples, is that of the big one.

    Raises:
        ValueError: if there are fewer than two gradients, or one is not finite.
    """
    if gradients.ndim != 2 or len(gradients) < 2:
        raise ValueError(
            f"gradients must be (k, P) with k of 2 or more, a batch a row, got {tuple(gradients.shape)}"
        )
    rows = gradients.cpu().double()
    small, big = rows.square().sum(dim=1).mean().item(), rows.mean(dim=0).square().sum().item()
    return noise_from_sizes(small, big, batch, len(gradients) * batch)


def flat_gradient(model: nn.Module) -> Float[Tensor, " P"]:
    """All gradients of a model in one vector.

    Raises:
        ValueError: if a parameter that wants a gradient has none.
    """
    missing = [name for name, p in model.named_parameters() if p.requires_grad and p.grad is None]
    if missing:
        raise ValueError(f"{brief(missing[0])} has no gradient: call backward() first")
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def measure_noise(
    model: nn.Module, loss_fn: Callable[[Any, Any], Tensor], batches: Sequence[Tensor]
) -> NoiseScale:
    """Signal and noise at the model's present weights, from equally large batches of independent examples.

    The loss is a mean over the examples (axis 0 of a batch). The model keeps its weights and its mode, and
    has no gradients afterwards. Memory: two gradients, however many batches.

    Raises:
        ValueError: if there are fewer than two batches, or they are not equally large.
    """
    sizes = {len(batch) for batch in batches}
    if len(batches) < 2 or len(sizes) != 1:
        raise ValueError(f"two or more equally large batches are needed, got sizes {sorted(sizes)}")
    total, small = torch.zeros(()), 0.0
    for batch in batches:
        model.zero_grad()
        loss_fn(model, batch).backward()
        gradient = precise(flat_gradient(model))
        small += gradient.cpu().double().square().sum().item() / len(batches)
        total = total + gradient / len(batches)
    model.zero_grad()
    size = sizes.pop()
    return noise_from_sizes(small, total.cpu().double().square().sum().item(), size, size * len(batches))


def noise_across_processes(model: nn.Module, batch: int) -> NoiseScale:
    """Signal and noise from what data parallel training has anyway: a gradient in each process.

    Called in every process after a backward pass that has not averaged the gradients (without DDP, or in
    its `no_sync()`). It averages them, so that the optimiser can go on, and besides sends one number: the
    squared length of this process's gradient.

    Args:
        model: whose parameters hold the gradient of this process's examples, and afterwards of all.
        batch: the number of examples of each process.

    Raises:
        RuntimeError: if no process group is open.
        ValueError: if there is only one process, or a gradient is missing.
    """
    if not dist.is_initialized():
        raise RuntimeError("no process group is open: start this with torchrun, or with `launch`")
    processes = dist.get_world_size()
    if processes < 2:
        raise ValueError("one process has one gradient: two batch sizes need two processes")
    small = flat_gradient(model).cpu().double().square().sum()
    dist.all_reduce(small)
    for parameter in model.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad /= processes
    big = flat_gradient(model).cpu().double().square().sum().item()
    return noise_from_sizes(small.item() / processes, big, batch, batch * processes)


@dataclass(frozen=True)
class BatchTradeOff:
    """S = S_min (1 + B_crit / B): the steps to a loss at batch size B, and E = B S examples.

    In these two the curve is the hyperbola (S / S_min - 1) (E / E_min - 1) = 1 with E_min = B_crit S_min
    (McCandlish et al. 2018). At B = B_crit a run takes twice the fewest steps and twice the
    fewest examples.

    Args:
        least_steps: S_min, what an endless batch would need.
        least_examples: E_min, what the smallest batches would need.
    """

    least_steps: float
    least_examples: float

    @property
    def critical_batch(self) -> float:
        """B_crit = E_min / S_min."""
        return self.least_examples / self.least_steps

    def steps(self, batch: float) -> float:
        """S_min + E_min / B."""
        return self.least_steps + self.least_examples / batch


def fit_trade_off(batches: Sequence[float], steps: Sequence[float]) -> BatchTradeOff:
    """The S = S_min + E_min / B with the least squared *relative* error; it is linear in both unknowns.

    Raises:
        ValueError: if there are fewer than two batch sizes, the lists differ in length, a number is not
            positive, or the best curve has no positive S_min and E_min (steps that do not fall with the
            batch, or fall faster than it grows).
    """
    if len(batches) != len(steps):
        raise ValueError(f"each batch size needs its steps, got {len(batches)} and {len(steps)}")
    for name, values in (("batches", batches), ("steps", steps)):
        for value in values:
            real(f"each of {name}", value, "(0, inf)")
    if len(set(batches)) < 2:
        raise ValueError(f"two batch sizes or more are needed, got {sorted(set(batches))}")
    B, S = torch.tensor(batches, dtype=torch.float64), torch.tensor(steps, dtype=torch.float64)
    columns = torch.stack([1 / S, 1 / (B * S)], dim=1)
    found = torch.linalg.lstsq(columns, torch.ones(len(S), 1, dtype=torch.float64)).solution[:, 0]
    least_steps, least_examples = found.tolist()
    if least_steps <= 0 or least_examples <= 0:
        raise ValueError(f"no such curve fits: S_min = {least_steps:.3g}, E_min = {least_examples:.3g}")
    return BatchTradeOff(least_steps, least_examples)
