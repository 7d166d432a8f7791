"""The figures of the chapter on positions: what they draw is what they are given."""

import pytest
import torch

from tformer_book.kit.plot_style import BookFigure
from tformer_book.positions import plots
from tformer_lib.core.positions import sinusoidal

TABLE = sinusoidal(12, 8).T
RUNS = {"rotary": torch.tensor([[2.0, 3.0], [2.2, 3.4]]), "alibi": torch.tensor([[1.9, 1.8], [1.9, 1.7]])}


def figures():
    return {
        "position_table": plots.position_table(TABLE),
        "products_by_offset": plots.products_by_offset({"one": TABLE, "two": torch.randn(8, 12)}),
        "biases": plots.biases({"ALiBi": torch.zeros(4, 9), "learned": torch.randn(4, 9)}, trained_to=4),
        "loss_against_position": plots.loss_against_position(
            [8.5, 24.5], RUNS, trained_to=16, zoom=(1.5, 2.5)
        ),
        "clamped_hand": plots.clamped_hand(0.1, trained=16, read=80, stops=[0.0, 150.0]),
    }


FIGURES = figures()


@pytest.mark.parametrize("name", FIGURES)
def test_draws_with_labelled_axes(name):
    figure = FIGURES[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert figure.axes[0].get_ylabel()
    assert any(axis.get_xlabel() for axis in figure.axes)


def test_a_position_is_a_column():
    assert FIGURES["position_table"].axes[0].images[0].get_array().shape == (8, 12)


def test_all_pairs_are_drawn_at_their_offset():
    line = FIGURES["products_by_offset"].axes[0].lines[0]
    offset, product = torch.tensor(line.get_xdata()), torch.tensor(line.get_ydata())
    assert len(offset) == 144
    torch.testing.assert_close(product[offset == 3], product[offset == 3][:1].expand(9))


def test_each_head_has_a_line_in_each_panel():
    for axis in FIGURES["biases"].axes:
        assert sum(len(line.get_ydata()) == 9 for line in axis.lines) == 4


def test_loss_shows_each_run_and_their_mean_in_both_panels():
    for axis in FIGURES["loss_against_position"].axes:
        drawn = [tuple(line.get_ydata()) for line in axis.lines]
        for losses in RUNS.values():
            for wanted in (*losses, losses.mean(dim=0)):
                assert any(torch.allclose(torch.tensor(y).float(), wanted) for y in drawn if len(y) == 2)
    assert FIGURES["loss_against_position"].axes[1].get_ylim() == (1.5, 2.5)


def test_without_a_zoom_the_loss_has_one_panel():
    (axis,) = plots.loss_against_position([8.5, 24.5], RUNS, trained_to=16).axes
    assert axis.get_xlabel()
    assert {"rotary", "ALiBi"} < {t.get_text() for t in axis.texts}


def test_a_clamped_hand_stands_still_beyond_the_training():
    (axis,) = FIGURES["clamped_hand"].axes
    first, again, *held, _ = (tuple(map(float, line.get_ydata())) for line in axis.lines)
    assert first[1] == pytest.approx(5.7296, abs=1e-3)  # degrees a place
    assert max(first + again) < 360
    assert again[0] < first[-1]
    assert held == [(0, 0), (150, 150)]
    assert all(tuple(line.get_xdata()) == (16, 79) for line in axis.lines[2:4])


def test_each_line_is_named_at_its_end_and_names_do_not_touch():
    whole, near = FIGURES["loss_against_position"].axes
    names = {t.get_text(): t.get_position()[1] for t in whole.texts if t.get_text() != "trained"}
    assert names.keys() == {"rotary", "ALiBi"}
    assert names["rotary"] - names["ALiBi"] > 0.07 * (whole.get_ylim()[1] - whole.get_ylim()[0])
    assert [t.get_text() for t in near.texts] == ["ALiBi", "rotary"]


def test_lines_that_leave_the_zoom_are_named_where_they_leave_it():
    runs = {"learned": [1.0, 3.0, 3.0], "sinusoidal": [1.0, 3.1, 3.1], "rotary": [1.0, 1.0, 3.0]}
    runs = {name: torch.tensor([line]) for name, line in runs.items()}
    near = plots.loss_against_position([8.0, 24.0, 40.0], runs, trained_to=8, zoom=(0.5, 2.0)).axes[1]
    first, second = near.texts
    assert (first.get_text(), second.get_text()) == ("sinusoidal, learned", "rotary")
    assert 15 < first.get_position()[0] < 16
    assert 32 < second.get_position()[0] < 35  # its words begin a little to the right
