"""The figures of the chapter on skip connections: what they draw is what they are given."""

import pytest
import torch

from tformer_book.kit.plot_style import BookFigure
from tformer_book.skip_norm import plots

SHARES = {"neither": torch.tensor([1.0, 1e-3, 0.0]), "skip and norm": torch.tensor([1.0, 0.9, 0.8])}
GRADIENTS = {"neither": torch.tensor([0.01, 0.2, 2.0]), "skip and norm": torch.tensor([3.0, 2.0, 2.0])}
ARRIVES = {"neither": torch.tensor([0.1, 0.01]), "skip and norm": torch.tensor([1.2, 1.5])}
STREAMS = {name: torch.tensor([1.0, 0.5, 0.25]) for name in ("pre", "post", "normed skip")}
LEFT = torch.tensor([1.0, 0.4, 0.16])
LOSSES = {"pre": torch.full((2, 3, 2), 2.5), "post": torch.linspace(2.0, 3.3, 12).view(2, 3, 2)}
CURVES = {"pre": [3.0, 2.5], "post": [3.4, 3.3]}


def figures():
    z = torch.linspace(-1, 1, 5)
    return {
        "token_differences": plots.token_differences(SHARES),
        "gradient_norms": plots.gradient_norms(GRADIENTS, (2, 4), ARRIVES),
        "activations": plots.activations(z, {"GELU": z, "ReLU": z.relu()}),
        "placements": plots.placements(STREAMS, STREAMS, {"post": LEFT}),
        "loss_grid": plots.loss_grid(LOSSES, (2, 4), ("0%", "25%", "50%"), 3.36),
        "training_curves": plots.training_curves((10, 20), CURVES, CURVES, 3.3),
    }


FIGURES = figures()


def lines(axis):
    return [torch.as_tensor(line.get_ydata(), dtype=torch.float32) for line in axis.lines]


@pytest.mark.parametrize("name", FIGURES)
def test_draws_with_labelled_axes(name):
    figure = FIGURES[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert any(axis.get_xlabel() for axis in figure.axes)
    assert figure.axes[0].get_ylabel()


def test_what_is_lost_in_rounding_is_drawn_at_the_floor():
    drawn = lines(FIGURES["token_differences"].axes[0])[0]
    torch.testing.assert_close(drawn, torch.tensor([1.0, 1e-3, plots.FLOOR]))


def test_gradients_are_drawn_relative_to_the_end():
    above, below = FIGURES["gradient_norms"].axes
    torch.testing.assert_close(lines(above)[0], torch.tensor([0.005, 0.1, 1.0]))
    torch.testing.assert_close(lines(below)[1], ARRIVES["skip and norm"])


def test_the_grid_says_the_mean_and_a_wide_range():
    pre, post = FIGURES["loss_grid"].axes
    assert {t.get_text() for t in pre.texts} == {"2.50"}
    loss = LOSSES["post"][1, 2]
    assert any(
        f"{loss.mean():.2f}\n{loss.min():.2f}\nto {loss.max():.2f}" == t.get_text() for t in post.texts
    )
    assert post.images[0].get_clim()[1] == 3.36


def test_losses_stand_above_the_shares():
    above, below = FIGURES["training_curves"].axes
    for axis in (above, below):
        torch.testing.assert_close(lines(axis)[1], torch.tensor(CURVES["post"]))


def test_what_is_left_of_the_input_is_dashed_beside_the_shares():
    above, _ = FIGURES["placements"].axes
    dashed = above.lines[len(STREAMS)]
    assert dashed.get_linestyle() == "--"
    torch.testing.assert_close(lines(above)[len(STREAMS)], LEFT)
