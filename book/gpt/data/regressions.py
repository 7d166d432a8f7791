"""Random linear regressions, and what may be predicted from the examples that came before.

A regression has K examples (x_k, y_k) with x_k of d numbers, y_k = w . x_k + noise, and a w of its own. Each
predictor here maps x (B, K, d) and y (B, K) to predictions (B, K), of which the k-th comes from x_k and
from the k - 1 examples before it alone.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class Regressions(NamedTuple):
    """B regressions of K examples each."""

    #: Inputs.
    x: Float[Tensor, "B K d"]
    #: Outputs, noise included.
    y: Float[Tensor, "B K"]
    #: The weights of each regression.
    w: Float[Tensor, "B d"]

    @property
    def truth(self) -> Float[Tensor, "B K"]:
        """w . x_k, which is y_k without its noise."""
        return (self.x @ self.w[:, :, None])[..., 0]


def random_regressions(
    n: int,
    examples: int,
    d: int,
    *,
    noise: float = 0.0,
    x_scale: float | Float[Tensor, " d"] = 1.0,
    w_scale: float = 1.0,
    generator: torch.Generator | None = None,
) -> Regressions:
    """y = w . x + noise * e, with all entries of x, w and e from N(0, 1), x and w then scaled.

    The same generator gives the same x, w and e whatever the scales and the noise.

    Args:
        n: the number of regressions B.
        examples: the number of examples K of each.
        d: the number of entries of an input.
        noise: the standard deviation sigma of the noise.
        x_scale: by what inputs are multiplied, one number for each entry or one for all.
        w_scale: by what the weights w are multiplied.
        generator: where the chance comes from; PyTorch's own if None.

    Raises:
        ValueError: if a number is below 1, or the noise negative.
    """
    if min(n, examples, d) < 1 or noise < 0:
        raise ValueError(
            "need n, examples and d of at least 1 and noise of at least 0, got "
            f"n={n}, examples={examples}, d={d}, noise={noise}"
        )
    x = torch.randn(n, examples, d, generator=generator) * x_scale
    w = torch.randn(n, d, generator=generator) * w_scale
    e = torch.randn(n, examples, generator=generator)
    return Regressions(x, (x @ w[:, :, None])[..., 0] + noise * e, w)


class RandomRegressions:
    """`steps` batches of new random regressions; to loop a second time gives the same ones again.

    Args:
        d: the number of entries of an input.
        examples: the number of examples K of each regression.
        batch: the number B of regressions in a batch.
        steps: the number of batches.
        noise: the standard deviation of the noise.
        seed: of all that is drawn.

    Raises:
        ValueError: if a number is below 1, or the noise negative.
    """

    def __init__(self, *, d: int, examples: int, batch: int, steps: int, noise: float = 0.0, seed: int = 0):
        if min(d, examples, batch, steps) < 1 or noise < 0:
            raise ValueError(
                "need d, examples, batch and steps of at least 1 and noise of at least 0, got "
                f"d={d}, examples={examples}, batch={batch}, steps={steps}, noise={noise}"
            )
        self.d, self.examples, self.batch, self.steps = d, examples, batch, steps
        self.noise, self.seed = noise, seed

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Regressions]:
        generator = torch.Generator().manual_seed(self.seed)
        for _ in range(self.steps):
            yield random_regressions(self.batch, self.examples, self.d, noise=self.noise, generator=generator)


def least_squares(x: Float[Tensor, "B K d"], y: Float[Tensor, "B K"]) -> Float[Tensor, "B K"]:
    """x_k . w, with w the shortest of all that bring sum_(i<k) (y_i - w . x_i)^2 to its minimum.

    The shortest is X^+ y, with X^+ the pseudo-inverse of the inputs seen, one a row. It is what `ridge` tends
    to as the penalty tends to 0; so, without noise, no predictor has a smaller mean squared error.
    """
    predictions = torch.zeros_like(y)
    for k in range(1, y.shape[1]):
        w = torch.linalg.pinv(x[:, :k].double()) @ y[:, :k, None].double()
        predictions[:, k] = (x[:, k, None].double() @ w)[:, 0, 0].to(y)
    return predictions


def ridge(x: Float[Tensor, "B K d"], y: Float[Tensor, "B K"], penalty: float) -> Float[Tensor, "B K"]:
    """x_k . w with w = (X^T X + penalty I)^-1 X^T y, X the inputs before k, one a row, y their outputs.

    This w minimises |y - X w|^2 + penalty |w|^2. If w ~ N(0, I) and the noise has variance sigma^2, the
    density of w given the examples is proportional to

        exp(-|y - X w|^2 / (2 sigma^2)) exp(-|w|^2 / 2) = exp(-(|y - X w|^2 + sigma^2 |w|^2) / (2 sigma^2)),

    a Gaussian in w, so that its mean stands where it is largest: at ridge with penalty = sigma^2. And the
    prediction with the smallest mean squared error is the mean of w . x_k, which is x_k . (mean of w).

    Raises:
        ValueError: if the penalty is not positive; `least_squares` is the limit.
    """
    if not penalty > 0:
        raise ValueError(f"the penalty must be positive, got {penalty}; least_squares is the limit at 0")
    x_, y_ = x.double(), y.double()
    XtX = (x_[..., :, None] * x_[..., None, :]).cumsum(dim=1)[:, :-1]  # (B, K-1, d, d): examples 1..k
    Xty = (x_ * y_[..., None]).cumsum(dim=1)[:, :-1]
    eye = torch.eye(x.shape[-1], dtype=x_.dtype, device=x.device)
    w = torch.linalg.solve(XtX + penalty * eye, Xty)
    predictions = torch.zeros_like(y)
    predictions[:, 1:] = (x_[:, 1:] * w).sum(dim=-1).to(y)
    return predictions


def averaging(x: Float[Tensor, "B K d"], y: Float[Tensor, "B K"]) -> Float[Tensor, "B K"]:
    """x_k . w with w the mean of y_i x_i over i < k: right on average, since E[x x^T] = I, but slow.

    It is what one linear attention layer can compute: x_k asks, x_i are the keys, y_i the values.
    """
    counts = torch.arange(1, y.shape[1], device=y.device)[:, None]
    w = (x * y[..., None]).cumsum(dim=1)[:, :-1] / counts
    predictions = torch.zeros_like(y)
    predictions[:, 1:] = (x[:, 1:] * w).sum(dim=-1)
    return predictions


def error_by_examples(
    predictions: Float[Tensor, "B K"], truth: Float[Tensor, "B K"], d: int
) -> Float[Tensor, " K"]:
    """error[n] = the mean over regressions of (prediction - truth)^2 / d after n = 0..K-1 examples.

    For x and w from N(0, I), to predict 0 always has an error of 1, since E[(w . x)^2] = d.
    """
    return (predictions - truth).square().mean(dim=0) / d
