"""Toy models of superposition (Elhage et al. 2022), many at once, and what theory says of two features."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

Sampler = Callable[[int], Tensor]  # batch -> features (R, batch, n)


def sparse_features(
    density: Float[Tensor, "R n"], batch: int, generator: torch.Generator | None = None
) -> Float[Tensor, "R batch n"]:
    """x_i = 0 with probability 1 - p_i, else uniform on [0, 1], all independent.

    Args:
        density: p_i of each feature in each of R data sets, in [0, 1].
        batch: how many x are drawn of each.
        generator: for the draws.

    Raises:
        ValueError: if a density is not in [0, 1].
    """
    if not ((density >= 0) & (density <= 1)).all():
        raise ValueError("a density is a probability, in [0, 1]")
    shape = (len(density), batch, density.shape[1])
    active = torch.rand(shape, generator=generator) < density[:, None]
    return torch.rand(shape, generator=generator) * active


class ToyModels(nn.Module):
    """x' = ReLU(W^T W x + b) for R models side by side, each with its own W (m, n) and b (n).

    Args:
        runs: R.
        n: the number of features.
        m: the width in which they are held.
        linear: whether the ReLU is left out.
        generator: for the first weights.

    Source:
        Elhage et al. 2022.
    """

    def __init__(
        self, runs: int, n: int, m: int, *, linear: bool = False, generator: torch.Generator | None = None
    ):
        super().__init__()
        self.linear = linear
        self.W = nn.Parameter(torch.randn(runs, m, n, generator=generator) * (2 / (m + n)) ** 0.5)
        self.b = nn.Parameter(torch.zeros(runs, n))

    def forward(self, x: Float[Tensor, "R batch n"]) -> Float[Tensor, "R batch n"]:
        """The reconstruction of x."""
        hidden = x @ self.W.mT  # (R, batch, m)
        out = hidden @ self.W + self.b[:, None]
        return out if self.linear else out.relu()


def weighted_error(
    x: Float[Tensor, "R batch n"], y: Float[Tensor, "R batch n"], importance: Float[Tensor, "R n"]
) -> Float[Tensor, " R"]:
    """The mean over a batch of sum_i I_i (x_i - y_i)^2, for each model."""
    return ((x - y).square() * importance[:, None]).sum(dim=-1).mean(dim=-1)


def train_toys(
    models: ToyModels, sample: Sampler, importance: Float[Tensor, "R n"], *, steps: int, batch: int = 256,
    lr: float = 0.01,
) -> ToyModels:  # fmt: skip
    """Adam on the weighted error, the rate falling to 0 along a line; the models do not touch each other."""
    optimizer = torch.optim.Adam(models.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    for _ in range(steps):
        x = sample(batch)
        loss = weighted_error(x, models(x), importance).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return models


def drop_loss(p: float, r: float, mean: float = 1 / 2, square: float = 1 / 3) -> float:
    """r (p E[a^2] - p^2 E[a]^2): the least error of a model of two features that holds only the first.

    It returns the first exactly and in place of the second its mean, so that the second's variance is left.

    Args:
        p: the probability that a feature is active.
        r: the importance of the second; that of the first is 1.
        mean: E[a] of the value a of an active feature; 1/2 if it is uniform on [0, 1].
        square: E[a^2].
    """
    return r * (p * square - p**2 * mean**2)


def share_loss(p: float, r: float, least: float = 1 / 6, both: float | None = None) -> float:
    """q (1 + r) E[min(a, a')^2]: the error of W = (1, -1), b = 0: two features, one dimension.

    Args:
        p: the probability that a feature is active.
        r: the importance of the second; that of the first is 1.
        least: E[min(a, a')^2] of two active features; 1/6 if both are uniform on [0, 1].
        both: the probability q that both are active; p^2, if they are independent.
    """
    return (p**2 if both is None else both) * (1 + r) * least


def sharing_boundary(r: float, mean: float = 1 / 2, square: float = 1 / 3, least: float = 1 / 6) -> float:
    """p* = r E[a^2] / (r E[a]^2 + (1 + r) E[min^2]), below which sharing costs less than dropping."""
    return r * square / (r * mean**2 + (1 + r) * least)


def exact_error(
    W: Float[Tensor, "R 2"], b: Float[Tensor, "R 2"], p: Float[Tensor, " R"], r: Float[Tensor, " R"],
    points: int = 24,
) -> Float[Tensor, " R"]:  # fmt: skip
    """The expected error of two features in one dimension, over uniform values, by the midpoint rule.

    Args:
        W: the weights of R models.
        b: their biases.
        p: the densities.
        r: the importance of the second feature.
        points: of the rule, in each direction.
    """
    a = (torch.arange(points) + 0.5) / points
    zero = torch.zeros(1)
    cases = [(zero, zero, (1 - p) ** 2), (a, zero, p * (1 - p)), (zero, a, p * (1 - p)), (a, a, p**2)]
    total = torch.zeros_like(p)
    importance = torch.stack((torch.ones_like(r), r), dim=-1)
    for first, second, probability in cases:
        x = torch.cartesian_prod(first, second).view(-1, 2)  # (cells, 2)
        y = ((W @ x.T)[..., None] * W[:, None] + b[:, None]).relu()  # (R, cells, 2)
        total = total + probability * ((x - y).square() * importance[:, None]).sum(-1).mean(-1)
    return total
