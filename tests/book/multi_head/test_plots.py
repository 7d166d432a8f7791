"""The figures of the chapter on multi-head self-attention: right contents, in the book's style."""

import pytest
import torch

from tformer_book.kit.plot_style import HEAT, BookFigure
from tformer_book.multi_head import plots


def figures():
    errors = torch.linspace(1, 0.5, 16).expand(3, 16)
    return {
        "error_curves": plots.error_curves(range(0, 301, 20), {1: errors, 2: errors - 0.5}, floor=0.5),
        "query_weights": plots.query_weights({"a": torch.eye(8)[0], "b": torch.eye(8)[1]}, list("?+-.....")),
        "attention_cost": plots.attention_cost([64, 128, 256, 512, 1024], 128, [1.0, 2.0, 5.0, 12.0, 40.0]),
        "attention_map": plots.attention_map(torch.eye(16).flip(1)),
    }


@pytest.mark.parametrize("name", figures())
def test_draws(name):
    figure = figures()[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_error_curves_draw_a_line_for_each_seed_and_the_floor():
    (axis,) = figures()["error_curves"].axes
    assert len(axis.lines) == 3 + 3 + 1
    assert axis.lines[-1].get_ydata()[0] == 0.5
    assert [t.get_text() for t in axis.get_legend().get_texts()] == [
        "one head, 3 seeds",
        "two heads, 3 seeds",
    ]


def test_error_curves_tell_the_runs_that_stay_with_one_head():
    errors = torch.linspace(1, 0.5, 16).expand(3, 16)
    two = torch.cat([errors - 0.5, errors[:1]])
    (axis,) = plots.error_curves(range(0, 301, 20), {1: errors, 2: two}, floor=0.5).axes
    named = {line.get_label(): line for line in axis.lines}
    assert named["two heads, 1 of 4 seeds"].get_linewidth() > named["two heads, 3 of 4 seeds"].get_linewidth()


@pytest.mark.parametrize("name", ["query_weights", "attention_map"])
def test_heat_maps_share_the_books_colours_and_scale(name):
    image = figures()[name].axes[0].images[0]
    assert image.get_cmap().name == HEAT
    assert image.get_clim() == (0, 1)


def test_attention_cost_crosses_at_twice_the_width():
    above, _ = figures()["attention_cost"].axes
    projections, pairs = (line.get_ydata() for line in above.lines[:2])
    assert projections[2] == pairs[2]  # N = 256 = 2 D
