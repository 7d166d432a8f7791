"""What the loops on one process and on many have in common: the numbers of a run, and one step of it."""

import math
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tformer_lib.numbers import brief, real, whole
from tformer_lib.training.optimizers import make_optimizers, warmup_cosine


@dataclass(kw_only=True)
class Plan:
    """The numbers of a training run: `fit`, `fit_distributed` and the command take them by these names.

    Args:
        steps: how many batches to train on.
        lr: the peak learning rate, at the end of the warm-up.
        weight_decay: on parameters of two or more dimensions.
        warmup: the number of steps over which the learning rate climbs.
        clip: the norm to which a longer gradient is shortened (Pascanu et al. 2013); no clipping if None.
        optimizer: "adamw", for all parameters (Loshchilov and Hutter 2019); or "muon" (Jordan et al. 2024)
            for the weight of each `nn.Linear` inside a `Transformer` or `Block`, and AdamW for the rest:
            embeddings, positions, heads, tied or not, biases, norms, and what stands outside the stack.
            One `lr` serves both, see `make_optimizers`.
        betas: AdamW's; a smaller second one forgets the sizes of early gradients sooner.
        momentum: Muon's; a smaller one follows the gradient more closely, as a short run needs.
        min_lr_ratio: the share of the peak learning rate at which the cosine ends.

    Raises:
        TypeError: if a number is none, or `warmup` is a share of the steps instead of their number.
        ValueError: if there is no step, or a number is out of bounds: each must be finite, `lr` and
            `weight_decay` at least 0, `clip` positive, `betas` and `momentum` in [0, 1), `min_lr_ratio` in
            [0, 1].
    """

    steps: int
    lr: float = 3e-3
    weight_decay: float = 0.01
    warmup: int = 50
    clip: float | None = 1.0
    optimizer: str = "adamw"
    betas: tuple[float, float] = (0.9, 0.999)
    momentum: float = 0.95
    min_lr_ratio: float = 0.0

    def __post_init__(self) -> None:
        self.steps = whole("steps", self.steps)
        self.warmup = whole("warmup is a number of steps: it", self.warmup, 0)
        if self.steps < 1:
            raise ValueError(f"there is nothing to train on: {self.steps} steps")
        self.lr = real("lr", self.lr, "[0, inf)")
        self.weight_decay = real("weight_decay", self.weight_decay, "[0, inf)")
        self.clip = None if self.clip is None else real("clip", self.clip, "(0, inf]")
        self.betas, self.momentum = _pair_of_betas(self.betas), real("momentum", self.momentum, "[0, 1)")
        name = "min_lr_ratio is a share of the peak learning rate: it"
        self.min_lr_ratio = real(name, self.min_lr_ratio, "[0, 1]")

    @property
    def longest(self) -> float:
        """The norm to which a longer gradient is shortened."""
        return math.inf if self.clip is None else self.clip

    def make_optimizers(self, model: nn.Module) -> list[torch.optim.Optimizer]:
        """The optimisers of a model's parameters."""
        numbers = {name: getattr(self, name) for name in ("lr", "weight_decay", "betas", "momentum")}
        return make_optimizers(model, self.optimizer, **numbers)

    def move(self, optimizers: Sequence[torch.optim.Optimizer], step: int) -> float:
        """One step of each optimiser at the learning rate of `step`, which is returned."""
        rate = self.lr * warmup_cosine(step, self.steps, self.warmup, self.min_lr_ratio)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
        return rate


def passed(batches: Any) -> int:
    """The steps of one pass.

    Raises:
        ValueError: if the batches do not know how many they are.
    """
    if not isinstance(batches, Sized):
        raise ValueError("these batches have no length: say how many steps=... to train")
    return len(batches)


def trainable(model: nn.Module) -> list[Tensor]:
    """The parameters that want a gradient.

    Raises:
        ValueError: if there is none.
    """
    parameters: list[Tensor] = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("there is nothing to train: no parameter of the model requires a gradient")
    return parameters


def clip_gradients(parameters: Sequence[Tensor], longest: float) -> Tensor:
    """g <- g min(1, longest / |g|) for the gradient of all parameters together; returns |g| before.

    Pascanu et al. 2013. The norm is summed in float32 at least; of gradients in float32 it is PyTorch's.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not any(g.dtype in (torch.float16, torch.bfloat16) for g in gradients):
        return nn.utils.clip_grad_norm_(parameters, longest)
    norms = [torch.linalg.vector_norm(g, dtype=torch.float32) for g in gradients]
    norm = torch.linalg.vector_norm(torch.stack(norms))
    nn.utils.clip_grads_with_norm_(parameters, longest, norm)
    return norm


def check_loss(loss: Any) -> None:
    """Raise unless this is a scalar tensor."""
    if not isinstance(loss, Tensor):
        raise TypeError(f"loss_fn must return a tensor, got {brief(loss)}")
    if loss.ndim:
        raise ValueError(f"loss_fn must return a scalar, got shape {tuple(loss.shape)}")


def check_depends(loss: Tensor) -> None:
    """Raise unless the loss has a gradient."""
    if not loss.requires_grad:
        raise ValueError("the loss does not depend on any parameter that requires a gradient")


def check_finite(name: str, value: Tensor, step: int, steps: int) -> None:
    """Raise a FloatingPointError that names the step unless `value` is finite."""
    if not value.isfinite():
        raise FloatingPointError(f"{name} is {value.item()} at step {step} of {steps}")


def check_folder(folder: Path) -> None:
    """Raise unless this is a folder, or can become one: before the training, not at its first checkpoint."""
    there = next((path for path in (folder, *folder.parents) if path.exists()), None)
    if there is not None and not there.is_dir():
        raise ValueError(f"checkpoint must be a folder, and {there} is a file")


def _pair_of_betas(betas: tuple[float, float]) -> tuple[float, float]:
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        raise ValueError(f"betas must be two numbers, got {brief(betas)}")
    first, second = (real(f"betas[{i}]", beta, "[0, 1)") for i, beta in enumerate(betas))
    return first, second
