"""Training: one loop for every chapter, its schedule, seeds, and parameter budgets."""

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and PyTorch alike, so that a run on one machine can be repeated exactly."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)


@dataclass
class History:
    """What a run left behind: one entry a step in each list."""

    loss: list[float] = field(default_factory=list)
    grad_norm: list[float] = field(default_factory=list)  # before clipping
    lr: list[float] = field(default_factory=list)
    seconds: float = 0.0  # of the whole run


def warmup_cosine(step: int, steps: int, warmup: int) -> float:
    """The share of the peak learning rate at `step`, counted from 0.

    It climbs in a straight line over the first `warmup` steps to 1, then falls along half a cosine,
    (1 + cos(pi x)) / 2 with x the share of the other steps that is done, towards 0.
    """
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def fit(
    model: nn.Module,
    loss_fn: Callable[[Any, Any], Tensor],
    batches: Iterable[Any],
    *,
    steps: int | None = None,
    lr: float = 3e-3,
    weight_decay: float = 0.01,
    warmup: int = 50,
    clip: float | None = 1.0,
) -> History:
    """For each batch: theta <- theta - AdamW(grad of loss_fn(model, batch)), with clipping and a schedule.

    Args:
        model: trained in place; in training mode meanwhile, and in evaluation mode afterwards.
        loss_fn: called as `loss_fn(model, batch)`, returns a scalar.
        batches: anything to loop over. A list or a loader is begun again when it runs out.
        steps: how many batches to train on; one pass if None, which `batches` must have a length for.
        lr: the peak learning rate, at the end of the warm-up.
        weight_decay: AdamW's (Loshchilov and Hutter 2019), on parameters of two or more dimensions.
        warmup: the number of steps over which the learning rate climbs.
        clip: the norm to which a longer gradient is shortened (Pascanu et al. 2013); no clipping if None.

    Returns:
        The loss, the gradient's norm before clipping, and the learning rate of each step.

    Raises:
        ValueError: if there is no batch, or `steps` is neither given nor known, or the loss is no scalar.
        FloatingPointError: if a loss or a gradient is not finite; the message names the step.
    """
    if steps is None:
        if not isinstance(batches, Sized):
            raise ValueError("these batches have no length: say how many steps=... to train")
        steps = len(batches)
    if steps < 1:
        raise ValueError(f"there is nothing to train on: {steps} steps")
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": weight_decay},
            {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
        ],
        lr=lr,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, steps, warmup))
    history, start = History(), time.perf_counter()
    model.train()
    for step, batch in enumerate(_take(batches, steps)):
        loss = loss_fn(model, batch)
        if loss.ndim:
            raise ValueError(f"loss_fn must return a scalar, got shape {tuple(loss.shape)}")
        if not loss.isfinite():
            raise FloatingPointError(f"the loss is {loss.item()} at step {step} of {steps}")
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(parameters, math.inf if clip is None else clip)
        if not norm.isfinite():
            raise FloatingPointError(f"the gradient's norm is {norm.item()} at step {step} of {steps}")
        history.loss.append(loss.item())
        history.grad_norm.append(norm.item())
        history.lr.append(float(schedule.get_last_lr()[0]))
        optimizer.step()
        schedule.step()
    model.eval()
    history.seconds = time.perf_counter() - start
    return history


def _take(batches: Iterable[Any], steps: int) -> Iterator[Any]:
    """The first `steps` batches, beginning again as often as that takes."""
    taken = 0
    while taken < steps:
        before = taken
        for batch in batches:
            yield batch
            taken += 1
            if taken == steps:
                return
        if taken == before:
            raise ValueError(f"the batches ran out after {taken} of {steps} steps")


def count_parameters(model: nn.Module) -> int:
    """The number of trainable parameters; one that is shared counts once."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def width_for_budget(build: Callable[[int], nn.Module], budget: int, *, max_width: int = 4096) -> int:
    """The width whose model `build(width)` has the parameter count nearest to `budget`.

    `build` is called with widths from 1 to `max_width` on the meta device, where parameters take no
    memory; the count must grow with the width.

    Raises:
        ValueError: if even the smallest model is over the budget, or the largest under it.
    """

    def count(width: int) -> int:
        with torch.device("meta"):
            return count_parameters(build(width))

    low, high = 1, max_width
    if not count(low) <= budget <= count(high):
        raise ValueError(
            f"a budget of {budget} parameters lies outside what widths {low} to {high} give: "
            f"{count(low)} to {count(high)}"
        )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) <= budget else (low, middle)
    return min((low, high), key=lambda width: abs(count(width) - budget))
