"""Muon, an optimiser for matrices."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tformer_lib.numbers import real

QUINTIC = (3.4445, -4.7750, 2.0315)  # of Jordan et al. (2024)
TINY = 1e-7  # a gradient of zeros stays zero


def orthogonalise(
    gradient: Float[Tensor, "out in"], steps: int = 5, precision: torch.dtype = torch.float32
) -> Float[Tensor, "out in"]:
    """U V^T, nearly, for gradient = U diag(sigma) V^T: the singular values go to one, the vectors stay.

    With X_0 = gradient / |gradient|_F each step is X <- a X + b (X X^T) X + c (X X^T)^2 X. It acts on every
    singular value as x <- a x + b x^3 + c x^5, and takes what begins between 0.01 and 1 to between 0.68
    and 1.14 in five steps.

    Args:
        gradient: any matrix. The products are formed on its shorter side.
        steps: how many times the polynomial is applied.
        precision: the type in which the products are formed. Half precision does as well, and is slower
            wherever the processor has no instructions for it.

    Raises:
        ValueError: if `gradient` is no matrix.

    Source: Jordan et al. (2024).
    """
    if gradient.ndim != 2:
        raise ValueError(f"Muon is for matrices, got a tensor of shape {tuple(gradient.shape)}")
    a, b, c = QUINTIC
    tall = gradient.shape[0] > gradient.shape[1]
    x = (gradient.mT if tall else gradient).to(precision)
    x = x / x.norm().clamp_min(TINY)
    for _ in range(steps):
        gram = x @ x.mT
        polynomial = torch.addmm(gram, gram, gram, beta=b, alpha=c)  # b gram + c gram^2
        x = torch.addmm(x, polynomial, x, beta=a)  # a x + polynomial x
    return (x.mT if tall else x).to(gradient.dtype)


class Muon(torch.optim.Optimizer):
    """W <- (1 - lr decay) W - 0.2 sqrt(max(out, in)) lr orthogonalise((1 - mu) G + mu M).

    G is the gradient of a matrix W, and M <- mu M + (1 - mu) G its running average; the step looks one
    average ahead (Nesterov). The factor 0.2 sqrt(max(out, in)) makes the entries of a step as large as
    AdamW's usually are (Liu et al. 2025), so that one learning rate serves both.

    It computes in float32, on every device, so that a training gives the same result wherever it is run.
    PyTorch's own computes in bfloat16, which takes half the time on processors with instructions for it and
    twenty times as long on those without.

    Args:
        matrices: the parameters, each with two dimensions.
        lr: the learning rate.
        weight_decay: how much of W, times lr, is taken away at each step.
        momentum: mu, the share of M that stays at each step.
        precision: the type of the products, see `orthogonalise`.

    Raises:
        TypeError: if a number is none.
        ValueError: if a parameter is no matrix, or a number is out of bounds.

    Source: Jordan et al. (2024); Liu et al. (2025).
    """

    def __init__(
        self,
        matrices: Iterable[Tensor],
        *,
        lr: float,
        weight_decay: float = 0.0,
        momentum: float = 0.95,
        precision: torch.dtype = torch.float32,
    ):
        options = {
            "lr": real("lr", lr, "[0, inf)"),
            "weight_decay": real("weight_decay", weight_decay, "[0, inf)"),
            "momentum": real("momentum", momentum, "[0, 1)"),
        }
        super().__init__(matrices, options)
        self.precision = precision
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.ndim != 2:
                    raise ValueError(f"Muon is for matrices, got a tensor of shape {tuple(matrix.shape)}")

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step on every matrix that has a gradient; returns what `closure` returns, if there is one."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for W in group["params"]:
                if W.grad is None:
                    continue
                if not self.state[W]:
                    self.state[W]["momentum_buffer"] = torch.zeros_like(W)
                average = self.state[W]["momentum_buffer"].lerp_(W.grad, 1 - group["momentum"])
                ahead = W.grad.lerp(average, group["momentum"])
                W.mul_(1 - group["lr"] * group["weight_decay"])
                length = 0.2 * math.sqrt(max(W.shape)) * group["lr"]
                W.sub_(self.orthogonal(ahead), alpha=length)
        return loss

    def orthogonal(self, matrix: Tensor) -> Tensor:
        """`orthogonalise`, of a matrix whose parts lie in several processes too: each of them gathers it.

        It is the only part of a step for which a process needs more than its own rows.
        """
        if type(matrix) in (Tensor, torch.nn.Parameter):
            return orthogonalise(matrix, precision=self.precision)
        from torch.distributed.tensor import DTensor, distribute_tensor  # only who has parts needs it

        if not isinstance(matrix, DTensor):
            return orthogonalise(matrix, precision=self.precision)
        found = orthogonalise(matrix.full_tensor(), precision=self.precision)
        return distribute_tensor(found, matrix.device_mesh, matrix.placements, src_data_rank=None)
