"""The figures of probes, superposition and autoencoders: what they draw is what they are given."""

import pytest

from tformer_book.inside.plots import features as plots
from tformer_book.kit.plot_style import BookFigure

KINDS = {kind: [[0.2, 0.5, 0.6], [0.3, 0.5, 0.7]] for kind in plots.LOOKS}
FIGURES = {
    "probes": plots.probes_by_depth({"one": KINDS, "two": KINDS}, {"one": 0.3, "two": 0.8}),
    "phases": plots.phase_picture(
        [[1.0, 0.0], [2 / 3, 0.0]], [0.1, 1.0], [1.0, 0.1], ([0.1, 0.5], [0.1, 1.0])
    ),
    "cost": plots.code_cost([4, 8, 16], [[2.3], [2.25], [2.2, 2.21]], 2.19, 2.48, 2.5),
}


@pytest.mark.parametrize("name", FIGURES)
def test_draws_with_labelled_axes(name):
    figure = FIGURES[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert figure.axes[-1].get_xlabel()


def test_a_panel_a_task_with_a_mean_and_a_line_a_seed():
    axes = FIGURES["probes"].axes
    assert [axis.get_title() for axis in axes] == ["one", "two"]
    assert list(axes[0].lines[0].get_ydata()) == pytest.approx([0.25, 0.5, 0.65])
    assert len(axes[0].lines) == 3 * 3 + 1


def test_a_ring_a_cell_of_the_phase_picture_and_a_disc_by_the_seeds():
    axis = FIGURES["phases"].axes[0]
    *discs, rings = [line for line in axis.lines if line.get_marker() == "o"]
    assert len(rings.get_xdata()) == 4
    assert [len(line.get_xdata()) for line in discs] == [0, 1, 1]  # of one, two and three seeds
    assert [line.get_markersize() for line in discs] == sorted(line.get_markersize() for line in discs)
    assert discs[-1].get_markersize() == rings.get_markersize()


def test_a_dot_a_seed_of_the_cost():
    axis = FIGURES["cost"].axes[0]
    assert sum(len(line.get_xdata()) for line in axis.lines if line.get_marker() == "o") == 4
