"""Scaling laws: known ones are found again, with noise too, and SciPy finds no better fit."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from tformer_book.scale.laws import (
    ParametricLaw,
    bootstrap,
    bootstrap_isoflop,
    fit_isoflop,
    fit_parabola,
    fit_parametric,
    fit_power_law,
    interval,
)

LAW = ParametricLaw(E=1.1, A=60.0, B=300.0, alpha=0.45, beta=0.4)


def runs(law=LAW, noise=0.0, seed=0):
    """Compute, sizes, tokens, losses: five budgets with seven sizes each around the best."""
    generator = np.random.default_rng(seed)
    rows = []
    for compute in 6e10 * 3.0 ** np.arange(5):
        best, _ = law.best(compute)
        for factor in 2.0 ** np.arange(-3, 4):
            size, tokens = best * factor, compute / 6 / (best * factor)
            rows.append((compute, size, tokens, law(size, tokens) * math.exp(noise * generator.normal())))
    return [np.array(column) for column in zip(*rows, strict=True)]


def test_parabola_through_three_points_is_exact():
    curve = fit_parabola([math.e, math.e**2, math.e**4], [3.0, 2.5, 4.5])
    for size, loss in ((math.e, 3.0), (math.e**2, 2.5), (math.e**4, 4.5)):
        assert curve([size])[0] == pytest.approx(loss)
    assert curve.inside
    assert curve([curve.best])[0] == pytest.approx(curve.least)


def test_parabola_tells_a_minimum_outside_of_the_sizes():
    sizes = np.array([2.0, 4.0, 8.0])
    assert not fit_parabola(sizes, 1 + np.log(sizes / 20) ** 2).inside
    assert fit_parabola(sizes, 1 + np.log(sizes / 20) ** 2).best == pytest.approx(20)


def test_power_law_is_found_again():
    x = np.array([1e9, 3e10, 1e12, 1e15])
    law = fit_power_law(x, 0.3 * x**0.47)
    assert law.coefficient == pytest.approx(0.3)
    assert law.exponent == pytest.approx(0.47)
    assert law(2e11) == pytest.approx(0.3 * 2e11**0.47)


def test_isoflop_finds_the_exponents_of_a_known_law():
    compute, sizes, tokens, losses = runs()
    fitted = fit_isoflop(compute, sizes, tokens, losses)
    assert fitted.size.exponent == pytest.approx(LAW.exponent, abs=0.005)
    assert fitted.tokens.exponent == pytest.approx(1 - LAW.exponent, abs=0.005)
    for budget, curve in fitted.curves.items():
        assert curve.best == pytest.approx(LAW.best(budget)[0], rel=0.15)  # no parabola, but nearly one
        assert curve.inside


def test_isoflop_interval_holds_the_truth_in_about_nine_of_ten():
    hits = 0
    for seed in range(20):
        fits = bootstrap_isoflop(*runs(noise=0.003, seed=seed), repeats=60, seed=seed)
        low, high = interval([f.size.exponent for f in fits])
        hits += low <= LAW.exponent <= high
    assert 14 <= hits <= 20


def test_best_size_is_the_least_of_a_fine_grid():
    for law in (LAW, ParametricLaw(1.0, 20.0, 90.0, 0.3, 0.6)):
        for compute in (1e10, 1e13):
            sizes = np.exp(np.linspace(math.log(1e2), math.log(1e8), 200_001))
            least = sizes[np.argmin(law(sizes, compute / 6 / sizes))]
            size, tokens = law.best(compute)
            assert size == pytest.approx(least, rel=1e-3)
            assert 6 * size * tokens == pytest.approx(compute)


@pytest.mark.parametrize(
    "law",
    [
        LAW,
        ParametricLaw(1.69, 406.4, 410.7, 0.34, 0.28),
        ParametricLaw(0.5, 300.0, 3000.0, 0.7, 0.55),
    ],
)
def test_parametric_law_is_found_again(law):
    _, sizes, tokens, losses = runs(law)
    fitted = fit_parametric(sizes, tokens, losses)
    for name in ("E", "A", "B", "alpha", "beta"):
        assert getattr(fitted, name) == pytest.approx(getattr(law, name), rel=2e-3), name
    assert fitted.exponent == pytest.approx(law.exponent, rel=1e-3)


def test_parametric_law_with_noise():
    exponents = []
    for seed in range(8):
        _, sizes, tokens, losses = runs(noise=0.003, seed=seed)
        exponents.append(fit_parametric(sizes, tokens, losses).exponent)
    assert np.mean(exponents) == pytest.approx(LAW.exponent, abs=0.04)


def test_an_outlier_moves_the_huber_fit_little():
    _, sizes, tokens, losses = runs()
    losses[3] *= 1.2
    robust = fit_parametric(sizes, tokens, losses)
    assert abs(robust.E - LAW.E) < 0.01
    assert fit_parametric(sizes, tokens, losses, delta=10.0).E < LAW.E - 0.1  # squares alone


@pytest.mark.parametrize("delta", [1e-3, 0.1])
def test_scipy_finds_no_better_fit(delta):
    _, sizes, tokens, losses = runs(noise=0.005, seed=3)
    fitted = fit_parametric(sizes, tokens, losses, delta=delta)

    def cost(theta):
        e, a, b, alpha, beta = theta
        r = np.log(np.exp(e) + np.exp(a - alpha * np.log(sizes)) + np.exp(b - beta * np.log(tokens)))
        r = np.abs(r - np.log(losses))
        return np.where(r <= delta, r**2 / 2, delta * (r - delta / 2)).mean() * 1e6

    assert cost([*np.log([fitted.E, fitted.A, fitted.B]), fitted.alpha, fitted.beta]) == pytest.approx(
        1e6 * fitted.cost, rel=1e-6
    )
    starts = [(0, 4, 6, 0.5, 0.5), (-0.5, 3, 4, 0.3, 0.3), (0.1, 4.1, 5.7, 0.45, 0.4)]
    theirs = min(
        minimize(cost, start, method="Nelder-Mead", options={"maxiter": 20_000, "maxfev": 20_000}).fun
        for start in starts
    )
    assert 1e6 * fitted.cost <= theirs * (1 + 1e-4)


def test_bootstrap_draws_runs_as_a_whole():
    n = [1.0, 2.0, 3.0, 4.0]
    samples = bootstrap(lambda x, y: (x, y), n, [10.0, 20.0, 30.0, 40.0], repeats=5)
    for x, y in samples:
        assert (y == 10 * x).all()
        assert len(x) == 4
    assert any(len(set(x)) < 4 for x, _ in samples)
    for (x,) in bootstrap(lambda x: (x,), n, repeats=5, size=3):
        assert len(set(x)) == 3


def test_interval_cuts_both_ends():
    assert interval(range(101), 0.9) == pytest.approx((5.0, 95.0))
    with pytest.raises(ValueError, match="at least one"):
        interval([])
    with pytest.raises(ValueError, match="level"):
        interval([1.0], 1.0)


def test_errors_name_what_is_wrong():
    with pytest.raises(ValueError, match="three different sizes"):
        fit_parabola([1, 1, 2], [3, 3, 3])
    with pytest.raises(ValueError, match="no lowest point"):
        fit_parabola([1, 2, 4], [1, 2, 1])
    with pytest.raises(ValueError, match="losses must be positive"):
        fit_parabola([1, 2, 4], [1, math.nan, 1])
    with pytest.raises(ValueError, match="each run has one of each"):
        fit_parabola([1, 2, 4], [1, 2])
    with pytest.raises(ValueError, match="one number for each run"):
        fit_parabola(np.ones((1, 3)), np.ones((1, 3)))
    with pytest.raises(ValueError, match="two different x"):
        fit_power_law([2, 2], [1, 3])
    with pytest.raises(ValueError, match="two budgets"):
        fit_isoflop([1, 1, 1], [1, 2, 4], [4, 2, 1], [2, 1, 2])
    with pytest.raises(ValueError, match="no residuals"):
        bootstrap_isoflop([1, 1, 1, 2, 2, 2], [1, 2, 4] * 2, [4, 2, 1] * 2, [2, 1, 2] * 2)
    with pytest.raises(ValueError, match="six runs"):
        fit_parametric([1, 2, 3], [1, 2, 3], [3, 2, 1])
    with pytest.raises(ValueError, match="both vary"):
        fit_parametric([1] * 6, range(1, 7), range(1, 7))
    with pytest.raises(ValueError, match="delta"):
        fit_parametric(range(1, 7), range(1, 7), range(1, 7), delta=0.0)
    with pytest.raises(ValueError, match="equally long"):
        bootstrap(len, [1, 2], [1])
    with pytest.raises(ValueError, match="size must be"):
        bootstrap(len, [1, 2], size=3)
    with pytest.raises(ValueError, match="compute"):
        LAW.best(0.0)
