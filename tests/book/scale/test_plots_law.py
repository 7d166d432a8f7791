"""The figures on scaling laws: what they draw is what they are given."""

import numpy as np
import pytest

from tformer_book.kit.plot_style import BookFigure
from tformer_book.scale.laws import PowerLaw, fit_parabola
from tformer_book.scale.plots.law import (
    best_sizes,
    exponents,
    isoflop_curves,
    law_residuals,
    models_needed,
)

SIZES = [1e4, 3e4, 1e5]


def is_drawn(figure):
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert len(figure._repr_svg_()) < 100_000


def curve(losses):
    parabola = fit_parabola(SIZES, losses)
    return SIZES, losses, parabola, parabola.best


def test_isoflop_curves_show_points_parabola_and_lowest_point():
    figure = isoflop_curves(
        {"small": curve([2.2, 2.0, 2.3])}, hollow={"large": curve([2.0, 1.8, 1.9])}, height=3.0
    )
    is_drawn(figure)
    points, parabola, star, *_ = figure.axes[0].lines
    assert list(points.get_ydata()) == [2.2, 2.0, 2.3]
    assert star.get_xdata()[0] == pytest.approx(fit_parabola(SIZES, [2.2, 2.0, 2.3]).best)
    assert min(parabola.get_ydata()) == pytest.approx(star.get_ydata()[0], abs=1e-3)
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["small", "large"]


def test_best_sizes_lie_on_the_law_and_the_band_around_it():
    law = PowerLaw(2.0, 0.5)
    figure = best_sizes(
        [1e10, 1e12], [law(1e10), law(1e12)], [PowerLaw(2.0, b) for b in (0.48, 0.5, 0.52)], law,
        beyond=1e13, found={"three runs": (7e6, 6e6, 9e6)},
    )  # fmt: skip
    is_drawn(figure)
    (bar,) = figure.axes[0].containers
    assert list(bar.lines[0].get_ydata()) == [7e6]
    assert bar.lines[2][0].get_segments()[0][:, 1].tolist() == [6e6, 9e6]
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    x, y = lines["power law"].get_data()
    assert np.allclose(y, 2 * np.sqrt(x))
    is_drawn(best_sizes([1e10, 1e12], [2e5, 2e6], [law], law))


def test_best_sizes_show_the_budgets_from_one_on():
    law = PowerLaw(2.0, 0.5)
    figure = best_sizes([1e10, 4.8e12], [2e5, 2e6], [law], law, beyond=1.44e13, since=1e12)
    is_drawn(figure)
    (axis,) = figure.axes
    stars = {line.get_label(): line for line in axis.lines}["lowest point"]
    assert list(stars.get_xdata()) == [4.8e12]
    assert list(axis.get_xticks()) == [4.8e12, 1.44e13]


def test_exponents_residuals_and_counts_are_drawn():
    figure = exponents([0.4, 0.5, 0.5, 0.6], (0.42, 0.58), {"a line": 0.5})
    is_drawn(figure)
    assert sum(bar.get_height() for bar in figure.axes[0].patches) == 4
    figure = law_residuals({"one": (SIZES, [0.01, -0.02, 0.0])})
    is_drawn(figure)
    assert list(figure.axes[0].lines[0].get_ydata()) == pytest.approx([1.0, -2.0, 0.0])
    is_drawn(models_needed([10, 20], [0.3, 0.4], [0.7, 0.6], 0.5))
