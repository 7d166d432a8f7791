"""The figures of the chapter on attention: what they draw is what they are given."""

import pytest
import torch

from tformer_lib.book.plots import attention as plots
from tformer_lib.book.plots.style import BookFigure

GRID = torch.linspace(0, 1, 5)
RUNS = {"one": torch.rand(3, 4), "two": torch.rand(3, 4)}
SPREAD = {"plain": torch.tensor([1.0, 2.0, 4.0]), "scaled": torch.ones(3)}


def figures():
    causal = torch.ones(3, 3, dtype=torch.bool).tril()
    return {
        "kernel_fits": plots.kernel_fits(GRID, GRID, GRID, GRID, {0.1: GRID, 1.0: 2 * GRID}),
        "bandwidth_error": plots.bandwidth_error(GRID + 0.1, torch.tensor([3.0, 2, 0.2, 2, 3]), 0.4),
        "effective_keys": plots.effective_keys(GRID, 64 - GRID, 64 - 2 * GRID, 64),
        "score_scale": plots.score_scale((1, 4, 16), SPREAD, SPREAD),
        "masks": plots.masks({"all": torch.ones(3, 3, dtype=torch.bool), "causal": causal}),
        "accuracy_by_length": plots.accuracy_by_length((2, 4, 6, 8), RUNS, trained_to=6),
        "alignment": plots.alignment(torch.eye(2, 3), ["a", "b", "c"], ["x", "y"]),
    }


FIGURES = figures()


def lines(axis):
    return [torch.as_tensor(line.get_ydata(), dtype=torch.float32) for line in axis.lines]


@pytest.mark.parametrize("name", FIGURES)
def test_draws_with_labelled_axes(name):
    figure = FIGURES[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert figure.axes[0].get_ylabel()
    assert any(axis.get_xlabel() for axis in figure.axes)


def test_each_bandwidth_has_its_panel_and_its_fit():
    panels = FIGURES["kernel_fits"].axes
    assert len(panels) == 2
    torch.testing.assert_close(lines(panels[1])[-1], 2 * GRID)


def test_the_best_bandwidth_is_marked():
    axis = FIGURES["bandwidth_error"].axes[0]
    marked = [line for line in axis.lines if line.get_marker() == "o"]
    assert [round(float(line.get_ydata()[0]), 3) for line in marked] == [0.2]
    assert any("0.60" in text.get_text() for text in axis.texts)


def test_accuracy_is_the_mean_over_runs_with_each_run_faint():
    drawn = lines(FIGURES["accuracy_by_length"].axes[0])
    for runs in RUNS.values():
        for wanted in (*runs, runs.mean(dim=0)):
            assert any(len(y) == 4 and torch.allclose(y, wanted) for y in drawn)


def test_masks_and_alignments_show_queries_down():
    causal = FIGURES["masks"].axes[1].collections[0].get_array()
    assert torch.equal(torch.as_tensor(causal.astype(bool)), torch.ones(3, 3, dtype=torch.bool).tril())
    axis = FIGURES["alignment"].axes[0]
    assert [t.get_text() for t in axis.get_yticklabels()] == ["x", "y"]
    assert axis.images[0].get_array().shape == (2, 3)
