"""The figures on batch sizes and widths: what they draw is what they are given."""

import pytest

from tformer_book.kit.plot_style import BookFigure
from tformer_book.scale.plots.tuning import (
    batch_trade_off,
    growth_by_width,
    noise_by_step,
    rates_by_width,
)


def is_drawn(figure):
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert len(figure._repr_svg_()) < 100_000


def test_noise_has_a_line_for_each_run():
    figure = noise_by_step(
        {"a": [([1, 10], [2.0, 20.0]), ([1, 10], [3.0, 30.0])], "b": [([1, 10], [1.0, 9.0])]}
    )
    is_drawn(figure)
    assert [list(line.get_ydata()) for line in figure.axes[0].lines] == [[2.0, 20.0], [3.0, 30.0], [1.0, 9.0]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


def test_trade_off_has_points_and_the_hyperbola():
    figure = batch_trade_off(
        {"2 nats": [(2, [600.0, 640.0]), (64, [110.0, 120.0])]}, {"2 nats": (100.0, 1000.0)}
    )
    is_drawn(figure)
    small, big, curve = figure.axes[0].lines
    assert list(small.get_ydata()) == [1200.0, 1280.0]
    assert list(big.get_xdata()) == [110.0, 120.0]
    assert curve.get_xdata()[0] == pytest.approx(600)
    assert [text.get_text() for text in figure.axes[0].texts] == ["2", "64"]


def test_rates_have_a_star_at_the_best_mean():
    losses = {"standard": {32: [[3.0, 2.0, 2.5], [3.2, 2.2, None]], 64: [[2.0, 2.1, 2.2]]}}
    figure = rates_by_width([0.001, 0.002, 0.004], losses, top=3.5)
    is_drawn(figure)
    stars = [line for line in figure.axes[0].lines if line.get_marker() == "*"]
    assert [star.get_xdata()[0] for star in stars] == [0.002, 0.001]
    assert stars[0].get_ydata()[0] == pytest.approx(2.1)


def test_growth_has_a_panel_for_each_parametrisation():
    changes = {"standard": {"logits": [1.0, 2.0], "mlp": [1.0, 3.0]}, "muP": {"logits": [1.0, 1.0]}}
    figure = growth_by_width([32, 64], changes)
    is_drawn(figure)
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["standard", "muP"]
    assert list(figure.axes[1].lines[0].get_ydata()) == [1.0, 1.0]
