"""Scaling laws: how large a model should be for a given compute, from the losses of small ones.

P is the number of parameters, T the number of tokens read in training, C the compute in FLOPs, for which
C = 6 P T if attention is left out. (The literature writes N and D for P and T.)
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tformer_lib.numbers import real, whole

Numbers = Sequence[float] | Sequence[int] | range | np.ndarray
ALPHAS = BETAS = (0.05, 0.15, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)  # where the parametric fit starts
REDRAWS = 20  # of a sample in which a curve has no lowest point


@dataclass(frozen=True)
class Parabola:
    """loss(P) = least + curvature (ln P - ln best)^2: one isoFLOP curve.

    Args:
        best: the size at its lowest point.
        least: the loss there.
        curvature: positive; a model twice as large as the best, or half as large, loses 0.48 of it.
        inside: whether sizes were tried on both sides of the best.
    """

    best: float
    least: float
    curvature: float
    inside: bool

    def __call__(self, sizes: Numbers) -> np.ndarray:
        return self.least + self.curvature * np.log(np.asarray(sizes, float) / self.best) ** 2


def fit_parabola(sizes: Numbers, losses: Numbers) -> Parabola:
    """The parabola through loss against ln P, by least squares (Hoffmann et al. 2022, approach 2).

    Args:
        sizes: of models that were trained with the same compute.
        losses: theirs.

    Raises:
        ValueError: if a number is not positive and finite, or there are fewer than three different sizes, or
            the parabola has no lowest point.
    """
    n, loss = _runs(sizes=sizes, losses=losses)
    different = len(set(n.tolist()))
    if different < 3:
        raise ValueError(f"a parabola takes three different sizes, got {different}")
    x = np.log(n)
    middle = x.mean()
    k, slope, height = np.polyfit(x - middle, loss, 2)
    if not k > 0:
        raise ValueError(f"these losses have no lowest point: the curvature is {k:.3g}")
    best = middle - slope / (2 * k)
    return Parabola(
        math.exp(best), float(height - slope**2 / (4 * k)), float(k), bool(x.min() < best < x.max())
    )


@dataclass(frozen=True)
class PowerLaw:
    """y = coefficient x^exponent."""

    coefficient: float
    exponent: float

    def __call__(self, x: float) -> float:
        return self.coefficient * x**self.exponent


def fit_power_law(x: Numbers, y: Numbers) -> PowerLaw:
    """The straight line through ln y against ln x, by least squares.

    Raises:
        ValueError: if a number is not positive and finite, or there are fewer than two different x.
    """
    x, y = _runs(x=x, y=y)
    if len(set(x.tolist())) < 2:
        raise ValueError("a power law takes two different x")
    middle = np.log(x).mean()
    exponent, height = np.polyfit(np.log(x) - middle, np.log(y), 1)
    return PowerLaw(math.exp(height - exponent * middle), float(exponent))


@dataclass(frozen=True)
class IsoFlop:
    """The best size and the best number of tokens by compute, P = size(C) and T = tokens(C).

    Args:
        curves: the parabola of each compute that was tried, the smallest first.
        size: the power law through their lowest points.
        tokens: that through the tokens which the best sizes read.
    """

    curves: dict[float, Parabola]
    size: PowerLaw
    tokens: PowerLaw


def fit_isoflop(compute: Numbers, sizes: Numbers, tokens: Numbers, losses: Numbers) -> IsoFlop:
    """A parabola for each compute, then P_opt = a C^b and T_opt = a' C^b' through their lowest points.

    How many tokens the best size would have read is interpolated between the runs of its compute: ln T on a
    straight line in ln P.

    Args:
        compute: of each run; runs of one curve have exactly the same.
        sizes: P of each run.
        tokens: T of each run.
        losses: at the end of each run.

    Raises:
        ValueError: as `fit_parabola`, and if there are fewer than two different computes.
    """
    compute, sizes, tokens, losses = _runs(compute=compute, sizes=sizes, tokens=tokens, losses=losses)
    budgets = sorted(set(compute.tolist()))
    if len(budgets) < 2:
        raise ValueError(f"a power law takes two budgets, got {len(budgets)}")
    curves, read = {}, []
    for budget in budgets:
        at = compute == budget
        curves[budget] = fit_parabola(sizes[at], losses[at])
        slope, height = np.polyfit(np.log(sizes[at]), np.log(tokens[at]), 1)
        read.append(math.exp(height + slope * math.log(curves[budget].best)))
    best = [curve.best for curve in curves.values()]
    return IsoFlop(curves, fit_power_law(budgets, best), fit_power_law(budgets, read))


def bootstrap_isoflop(
    compute: Numbers,
    sizes: Numbers,
    tokens: Numbers,
    losses: Numbers,
    *,
    repeats: int = 400,
    seed: int = 0,
) -> list[IsoFlop]:
    """The fit to losses that might as well have been measured.

    Each is what its parabola says, plus a residual drawn with replacement from those of all runs, made
    larger by sqrt(n / (n - p)) for the p numbers that were fitted to n runs. So the spread holds the noise
    of training and the curves' own distance from parabolas, not what all runs have in common.

    Args:
        compute, sizes, tokens, losses: as `fit_isoflop`.
        repeats: how many fits.
        seed: of the draws.

    Raises:
        ValueError: as `fit_isoflop`, and if as many numbers are fitted as there are runs, or too many samples
            have a curve without a lowest point.
    """
    compute, sizes, tokens, losses = _runs(compute=compute, sizes=sizes, tokens=tokens, losses=losses)
    repeats = whole("repeats", repeats, 1)
    fitted = fit_isoflop(compute, sizes, tokens, losses)
    said = np.array([fitted.curves[c]([n])[0] for c, n in zip(compute.tolist(), sizes.tolist(), strict=True)])
    n, p = len(losses), 3 * len(fitted.curves)
    if n <= p:
        raise ValueError(f"{p} numbers fitted to {n} runs leave no residuals")
    residuals = (losses - said) * math.sqrt(n / (n - p))
    generator = np.random.default_rng(seed)
    found: list[IsoFlop] = []
    for _ in range(REDRAWS * repeats):
        drawn = said + generator.choice(residuals, n)
        try:
            found.append(fit_isoflop(compute, sizes, tokens, drawn))
        except ValueError:  # a curve without a lowest point
            continue
        if len(found) == repeats:
            return found
    raise ValueError(f"only {len(found)} of {REDRAWS * repeats} samples have curves with a lowest point")


@dataclass(frozen=True)
class ParametricLaw:
    """L(P, T) = E + A / P^alpha + B / T^beta (Hoffmann et al. 2022, equation 2).

    Args:
        E: the loss that neither parameters nor tokens take away.
        A: scale of what a limited size adds.
        alpha: how quickly that falls.
        B: scale of what a limited number of tokens adds; A' in the book, where B is a batch.
        beta: how quickly that falls.
        cost: the mean Huber loss of the fit.
    """

    E: float
    A: float
    B: float
    alpha: float
    beta: float
    cost: float = math.nan

    def __call__(self, sizes: Any, tokens: Any) -> Any:
        """The loss of sizes P and tokens T, numbers or arrays."""
        return self.E + self.A / sizes**self.alpha + self.B / tokens**self.beta

    @property
    def exponent(self) -> float:
        """The power of C = 6 P T with which P_opt grows, beta / (alpha + beta)."""
        return self.beta / (self.alpha + self.beta)

    def best(self, compute: float) -> tuple[float, float]:
        """P and T with the least loss among those with 6 P T = C.

        P = G (C/6)^(beta / (alpha + beta)) and T = C / (6 P), with
        G = (alpha A / (beta B))^(1 / (alpha + beta)).
        """
        product = real("compute", compute, "(0, inf)") / 6
        scale = (self.alpha * self.A / (self.beta * self.B)) ** (1 / (self.alpha + self.beta))
        size = scale * product**self.exponent
        return size, product / size


def fit_parametric(
    sizes: Numbers, tokens: Numbers, losses: Numbers, *, delta: float = 1e-3, starts: int = 6
) -> ParametricLaw:
    """E, A, B, alpha, beta of the least mean Huber loss of ln L(P, T) - ln(loss), as Hoffmann et al. (2022).

    For fixed alpha and beta the law is linear in E, A and B, so each pair of a grid gets these by least
    squares. From the best pairs, Levenberg's and Marquardt's method goes on in the logarithms of all five,
    with a run's weight lowered to delta/|r| where its residual |r| is above delta, until the Huber loss
    falls no more.

    Args:
        sizes: P of each run.
        tokens: T of each run.
        losses: at the end of each run.
        delta: where the Huber loss turns from squares to absolute values.
        starts: how many pairs of the grid are refined.

    Raises:
        ValueError: if a number is not positive and finite, or there are fewer than six runs, or all sizes or
            all tokens are the same.
    """
    sizes, tokens, losses = _runs(sizes=sizes, tokens=tokens, losses=losses)
    delta, starts = real("delta", delta, "(0, inf)"), whole("starts", starts, 1)
    if len(losses) < 6:
        raise ValueError(f"five numbers are fitted: six runs are the least, got {len(losses)}")
    if np.ptp(sizes) == 0 or np.ptp(tokens) == 0:
        raise ValueError("the law tells size from tokens only where both vary")
    x, y, target = np.log(sizes), np.log(tokens), np.log(losses)
    # Centred, A and B are what size and tokens add at the mean run, and are no huge numbers.
    x, mid_x, y, mid_y = x - x.mean(), x.mean(), y - y.mean(), y.mean()
    found = []
    for alpha in ALPHAS:
        for beta in BETAS:
            columns = np.stack([np.ones_like(x), np.exp(-alpha * x), np.exp(-beta * y)], axis=1)
            linear = np.linalg.lstsq(columns / losses[:, None], np.ones_like(x), rcond=None)[0]
            linear = np.maximum(linear, 1e-3 * losses.min())
            theta = np.log([*linear, alpha, beta])
            found.append((_huber(_residuals(theta, x, y, target)[0], delta), theta))
    found.sort(key=lambda pair: pair[0])
    refined = [_refine(theta, x, y, target, delta) for _, theta in found[:starts]]
    cost, theta = min(refined, key=lambda pair: pair[0])
    e, a, b, alpha, beta = np.exp(theta)
    a, b = a * math.exp(alpha * mid_x), b * math.exp(beta * mid_y)
    return ParametricLaw(float(e), float(a), float(b), float(alpha), float(beta), cost)


def _residuals(
    theta: np.ndarray, x: np.ndarray, y: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """ln L - ln(loss) of each run, and its derivatives by the five logarithms: (n,) and (n, 5)."""
    e, a, b, alpha, beta = np.exp(theta)
    of_size, of_tokens = a * np.exp(-alpha * x), b * np.exp(-beta * y)
    law = e + of_size + of_tokens
    slopes = [np.full_like(x, e), of_size, of_tokens, -alpha * x * of_size, -beta * y * of_tokens]
    return np.log(law) - target, np.stack(slopes, axis=1) / law[:, None]


def _huber(residuals: np.ndarray, delta: float) -> float:
    size = np.abs(residuals)
    return float(np.where(size <= delta, size**2 / 2, delta * (size - delta / 2)).mean())


def _refine(
    theta: np.ndarray, x: np.ndarray, y: np.ndarray, target: np.ndarray, delta: float
) -> tuple[float, np.ndarray]:
    """Down from one start."""
    residuals, slopes = _residuals(theta, x, y, target)
    cost, damping, stalled = _huber(residuals, delta), 1e-2, 0
    for _ in range(400):
        weights = delta / np.maximum(np.abs(residuals), delta)
        gradient = slopes.T @ (weights * residuals)
        curvature = slopes.T @ (weights[:, None] * slopes)
        damped = curvature + damping * np.diag(np.diag(curvature)) + 1e-14 * np.eye(5)
        step = np.clip(-np.linalg.solve(damped, gradient), -1, 1)
        new_residuals, new_slopes = _residuals(theta + step, x, y, target)
        new_cost = _huber(new_residuals, delta)
        if new_cost < cost:
            stalled = stalled + 1 if cost - new_cost < 1e-9 * cost else 0
            theta, residuals, slopes, cost = theta + step, new_residuals, new_slopes, new_cost
            damping = max(damping / 3, 1e-9)
        else:
            damping *= 4
        if stalled >= 5 or damping > 1e9:
            break
    return cost, theta


def bootstrap(
    fit: Callable[..., Any], *columns: Numbers, repeats: int = 200, size: int | None = None, seed: int = 0
) -> list[Any]:
    """`fit(*columns)` for samples of the runs, drawn with replacement; without it if `size` is given.

    Args:
        fit: takes the columns.
        columns: one number for each run, such as P, T and the loss.
        repeats: how many samples.
        size: how many runs are in a sample, each at most once; if None, as many as there are, with
            replacement.
        seed: of the draws.

    Raises:
        ValueError: if the columns are not equally long, or `size` is larger than they are.
    """
    arrays = [np.asarray(column, float) for column in columns]
    lengths = {len(column) for column in arrays}
    if len(lengths) != 1:
        raise ValueError(f"columns must be equally long, got lengths {sorted(lengths)}")
    n = lengths.pop()
    repeats = whole("repeats", repeats, 1)
    count = n if size is None else whole("size", size, 1, n)
    generator, found = np.random.default_rng(seed), []
    for _ in range(repeats):
        chosen = generator.choice(n, count, replace=size is None)
        found.append(fit(*(column[chosen] for column in arrays)))
    return found


def interval(values: Numbers, level: float = 0.9) -> tuple[float, float]:
    """The ends between which the middle share `level` of the values lies.

    Raises:
        ValueError: if there is no value, one is not finite, or `level` is not in (0, 1).
    """
    array = np.asarray(values, float)
    level = real("level", level, "(0, 1)")
    if array.size == 0 or not np.isfinite(array).all():
        raise ValueError("an interval takes at least one value, and finite ones")
    low, high = np.quantile(array, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _runs(**columns: Any) -> list[np.ndarray]:
    """Equally long columns of positive, finite numbers."""
    arrays = {name: np.asarray(column, float) for name, column in columns.items()}
    if any(array.ndim != 1 for array in arrays.values()):
        raise ValueError(f"{', '.join(arrays)} must hold one number for each run")
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"each run has one of each, got {lengths}")
    for name, array in arrays.items():
        if not (np.isfinite(array) & (array > 0)).all():
            raise ValueError(f"{name} must be positive and finite")
    return list(arrays.values())
