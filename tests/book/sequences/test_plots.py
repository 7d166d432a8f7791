"""The figures of the chapter on sequence modelling: what they draw is what they are given."""

import pytest
import torch

from tformer_book.kit.plot_style import BookFigure
from tformer_book.sequences import plots

RUNS = {"narrow": torch.tensor([[1.0, 0.5], [0.8, 0.3]]), "wide": torch.ones(2, 2)}


def figures():
    matrices = {"text": torch.eye(4), "sound": torch.rand(3, 7)}
    norms = {"RNN": torch.tensor([1.0, 0.1, 0.01]), "GRU": torch.tensor([1.0, 0.8, 0.5])}
    return {
        "token_matrices": plots.token_matrices(matrices, {"text": "letter", "sound": "frame"}),
        "vocabulary_curve": plots.vocabulary_curve([256, 512], {"seen": [1.0, 0.5], "new": [1.0, 0.6]}, 0.2),
        "fading": plots.fading(norms),
        "ladder": plots.ladder({"uniform": 6.0, "bigram": 3.5}, {"6-gram": 2.25}),
        "bottleneck": plots.bottleneck([4, 8], RUNS, [0.9, 0.4], trained_to=8),
    }


FIGURES = figures()
MEASURED = ["token_matrices", "vocabulary_curve", "fading", "ladder", "bottleneck"]


def texts(axis):
    return [text.get_text() for text in axis.texts]


def drawn(axis):
    return [torch.as_tensor(line.get_ydata(), dtype=torch.float32) for line in axis.lines]


@pytest.mark.parametrize("name", FIGURES)
def test_draws(name):
    figure = FIGURES[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", MEASURED)
def test_measurements_have_labelled_axes(name):
    axis = FIGURES[name].axes[-1]
    assert axis.get_xlabel()
    assert axis.get_ylabel() or name == "ladder"  # whose bars are named


def test_matrices_are_features_by_tokens():
    for axis, shape in zip(FIGURES["token_matrices"].axes, ((4, 4), (3, 7)), strict=True):
        assert axis.images[0].get_array().shape == shape
        assert f"{shape[0]} × {shape[1]}" in axis.get_title(loc="left")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("vocabulary_curve", [1.0, 0.6]),
        ("fading", [1.0, 0.8, 0.5]),
        ("bottleneck", [0.9, 0.4]),  # this page's run
    ],
)
def test_curves_are_the_numbers_given(name, values):
    wanted = torch.tensor(values)
    assert any(len(y) == len(wanted) and torch.allclose(y, wanted) for y in drawn(FIGURES[name].axes[0]))


def test_the_bottleneck_shows_each_run_and_their_mean():
    lines = drawn(FIGURES["bottleneck"].axes[0])
    for wanted in (*RUNS["narrow"], RUNS["narrow"].mean(dim=0)):
        assert any(len(y) == 2 and torch.allclose(y, wanted) for y in lines)


def test_what_stands_beside_the_ladder_is_grey():
    (axis,) = FIGURES["ladder"].axes
    assert [bar.get_width() for bar in axis.patches] == [6.0, 3.5, 2.25]
    colours = [bar.get_facecolor() for bar in axis.patches]
    assert [colours[0] == colours[1], colours[1] == colours[2]] == [True, False]
    assert {"6.00", "3.50", "2.25"} <= set(texts(axis))
