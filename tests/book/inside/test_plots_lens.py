"""The figures of lenses and sinks: what they draw is what they are given."""

import pytest

from tformer_book.inside.plots import lens as plots
from tformer_book.kit.plot_style import BookFigure


def figures():
    return {
        "lens_grid": plots.lens_grid("a b", ["xyz", "\n y"], [[0.1, 0.9, 0.5], [1.0, 0.2, 0.3]]),
        "bits_by_block": plots.bits_by_block(
            {"logit": [[23.0, 4.4, 2.1]], "tuned": [[3.6, 3.1, 2.1], [3.5, 3.3, 2.1]]}, {"pairs": 3.58}
        ),
        "attribution_bars": plots.attribution_bars({"a": 1.0, "b": -2.0, "c": 0.1, "d": 0.2}, -0.7, shown=2),
        "sinks": plots.sinks({"first": [[0.1, 0.6], [0.1, 0.5]]}, {"first": [[10, 1e4], [12, 2e4]]}),
    }


FIGURES = figures()


@pytest.mark.parametrize("name", FIGURES)
def test_draws_with_labelled_axes(name):
    figure = FIGURES[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert any(axis.get_xlabel() for axis in figure.axes)


def test_letters_that_cannot_be_seen_are_shown():
    axis = FIGURES["lens_grid"].axes[0]
    assert [text.get_text() for text in axis.texts] == ["x", "y", "z", "↵", "␣", "y"]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["a", "␣", "b"]


def test_bits_above_the_axis_are_written():
    axis = FIGURES["bits_by_block"].axes[0]
    assert "23.0" in axis.texts[0].get_text()
    assert list(axis.lines[1].get_ydata()) == pytest.approx([3.55, 3.2, 2.1])


def test_bars_are_the_largest_parts_the_others_and_the_sum():
    axis = FIGURES["attribution_bars"].axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["b", "a", "2 others", "sum"]
    assert [bar.get_width() for bar in axis.patches] == pytest.approx([-2.0, 1.0, 0.3, -0.7])


def test_sinks_have_a_thin_line_a_seed_and_one_of_means():
    axis = FIGURES["sinks"].axes[0]
    assert list(axis.lines[2].get_ydata()) == pytest.approx([0.1, 0.55])
    assert list(axis.lines[2].get_xdata()) == [1, 2]
