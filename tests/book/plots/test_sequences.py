"""The figures of the chapter on sequence modelling: what they draw is what they are given."""

import pytest
import torch

from tformer_lib.book.plots import sequences as plots
from tformer_lib.book.plots.style import BookFigure

TASKS = {
    "each": (["a", "b"], [(0, "x"), (1, "y")]),
    "whole": (["a", "b", "c"], [(2, "z")]),
    "other": (["a", "b"], [(2, "u"), (3, "v")]),
}
RUNS = {"narrow": torch.tensor([[1.0, 0.5], [0.8, 0.3]]), "wide": torch.ones(2, 2)}


def figures():
    matrices = {"text": torch.eye(4), "sound": torch.rand(3, 7)}
    recalled = {"CNN": [1.0, 0.25, 0.25], "GRU": [1.0, 0.8, 0.5]}
    return {
        "task_shapes": plots.task_shapes(TASKS),
        "encoder_decoder": plots.encoder_decoder(["a", "b", "c"], ["c", "b"]),
        "token_matrices": plots.token_matrices(matrices, {"text": "letter", "sound": "frame"}),
        "vocabulary_curve": plots.vocabulary_curve([256, 512], {"seen": [1.0, 0.5], "new": [1.0, 0.6]}, 0.2),
        "distance_curve": plots.distance_curve([2, 8, 16], recalled, chance=0.25, window=8),
        "ladder": plots.ladder({"uniform": 6.0, "bigram": 3.5}, {"6-gram": 2.25}),
        "bottleneck": plots.bottleneck([4, 8], RUNS, [0.9, 0.4], trained_to=8),
    }


FIGURES = figures()
MEASURED = ["token_matrices", "vocabulary_curve", "distance_curve", "ladder", "bottleneck"]


def texts(axis):
    return [text.get_text() for text in axis.texts]


def arrows(axis):
    return [text for text in axis.texts if getattr(text, "arrow_patch", None) is not None]


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


def test_each_task_shows_its_tokens_and_an_arrow_to_each_output():
    for axis, (title, (tokens, wanted)) in zip(FIGURES["task_shapes"].axes, TASKS.items(), strict=True):
        assert axis.get_title(loc="left") == title
        assert set(tokens) | {text for _, text in wanted} <= set(texts(axis))
        assert len(arrows(axis)) == len(wanted)


def test_only_tasks_on_the_whole_sequence_join_their_tokens():
    joined = [len(axis.lines) for axis in FIGURES["task_shapes"].axes]
    assert joined == [0, 1 + 3, 1 + 2]


def test_the_encoder_hands_over_one_vector():
    (axis,) = FIGURES["encoder_decoder"].axes
    assert texts(axis).count("one vector") == 1
    assert {"$h_1$", "$h_2$", "$h_3$", "$u_1$", "$u_2$"} <= set(texts(axis))


def test_matrices_are_features_by_tokens():
    for axis, shape in zip(FIGURES["token_matrices"].axes, ((4, 4), (3, 7)), strict=True):
        assert axis.images[0].get_array().shape == shape
        assert f"{shape[0]} × {shape[1]}" in axis.get_title(loc="left")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("vocabulary_curve", [1.0, 0.6]),
        ("distance_curve", [1.0, 0.8, 0.5]),
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
