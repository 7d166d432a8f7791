"""The figures on learning in context: what they draw is what they are given."""

import itertools

import pytest
import torch

from tformer_book.gpt.plots_in_context import LOOKS, error_against_examples
from tformer_book.kit.plot_style import BookFigure

RUNS = torch.tensor([[1.0, 0.4, 0.04], [1.0, 0.6, 0.06]])
ONE = {
    "transformer": RUNS,
    "ridge": torch.tensor([1.0, 0.5, 0.05]),
    "least squares": torch.tensor([1.0, 3.0, 1e-6]),
    "predict 0": torch.ones(3),
}
TWO = {"rotary": RUNS, "alibi": 2 * RUNS}


@pytest.fixture(scope="module")
def figure():
    return error_against_examples({"noise": ONE, "positions": TWO}, trained_to=2, lowest=1e-2)


def test_is_a_figure_of_the_book_with_labelled_axes(figure):
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    for axis, title in zip(figure.axes, ("noise", "positions"), strict=True):
        assert axis.get_title(loc="left") == title
        assert axis.get_ylabel() == "squared error / $d$"
        assert axis.get_yscale() == "log"
        assert axis.get_ylim()[0] == pytest.approx(1e-2)
    assert figure.axes[-1].get_xlabel() == "examples read"


def test_each_run_and_the_mean_are_drawn(figure):
    for axis, errors in zip(figure.axes, (ONE, TWO), strict=True):
        drawn = [torch.tensor(line.get_ydata()).float() for line in axis.lines if len(line.get_ydata()) == 3]
        for values in errors.values():
            rows = torch.atleast_2d(values)
            for wanted in (*rows, rows.mean(dim=0)):
                assert any(torch.allclose(y, wanted) for y in drawn)


def test_lines_are_named_where_they_end_and_names_do_not_touch(figure):
    for axis, wanted in zip(
        figure.axes,
        ({"least squares ↓", "ridge", "transformer", "predict 0"}, {"rotary", "ALiBi"}),
        strict=True,
    ):
        names = {t.get_text(): t.get_position()[1] for t in axis.texts if t.get_text() != "trained"}
        assert names.keys() == wanted  # the arrow: it ends below the axis
        heights = sorted(names.values())
        assert all(b - a > 0.07 for a, b in itertools.pairwise(heights))
        for text in axis.texts:
            if text.get_text() in LOOKS:
                assert text.get_color() == LOOKS[text.get_text()][0]


def test_the_length_of_training_is_marked(figure):
    for axis in figure.axes:
        assert any(list(line.get_xdata()) == [1.5, 1.5] for line in axis.lines)
    assert [t.get_text() for t in figure.axes[0].texts].count("trained") == 1


def test_the_top_may_be_set():
    axis = error_against_examples({"noise": ONE}, trained_to=2, highest=1.5).axes[0]
    assert axis.get_ylim()[1] == pytest.approx(1.5)


def test_lines_that_cross_differ_in_colour_and_in_dashes():
    main = [LOOKS[name] for name in ("transformer", "ridge", "least squares", "averaging")]
    assert len({colour for colour, _ in main}) == len({dashes for _, dashes in main}) == 4
