"""The figures of the chapter on attention: what they draw is what they are given."""

import pytest
import torch

from tformer_book.attention import plots
from tformer_book.kit.plot_style import BookFigure

GRID = torch.linspace(0, 1, 5)
RUNS = {"one": torch.rand(3, 4), "two": torch.rand(3, 4)}
WEIGHTS = {"with the root": torch.tensor([0.2, 0.5, 0.1, 0.2]), "without": torch.tensor([0.0, 0, 1, 0])}
RATES = {"with": torch.tensor([[0.1, 0.3], [1, 1], [0.8, 0.6]]), "without": torch.zeros(3, 2)}
SPREAD = {
    "plain": [(torch.linspace(0, 2 * d, 11), torch.tensor(float(d))) for d in (1, 2, 4)],
    "scaled": [(torch.linspace(0, 1, 11), torch.tensor(1.0))] * 3,
}


def figures():
    return {
        "kernel_fits": plots.kernel_fits(GRID, GRID, GRID, GRID, {0.1: GRID, 1.0: 2 * GRID}),
        "answers_by_bandwidth": plots.answers_by_bandwidth(
            GRID, 2 * GRID, GRID, {"h = 1": GRID, "h = 2": 3 * GRID, "h = 5": 4 * GRID}
        ),
        "first_weights": plots.first_weights(WEIGHTS),
        "arrows": plots.arrows(
            torch.tensor([2.0, 1]), torch.tensor([[1.0, 1], [-1, 0]]), torch.tensor([3.0, -2])
        ),
        "shares_by_rate": plots.shares_by_rate((0.01, 0.1, 1.0), RATES),
        "who_reads_whom": plots.who_reads_whom(
            {"before": torch.ones(3, 3) / 3, "after": torch.eye(3)}, "abc"
        ),
        "bandwidth_error": plots.bandwidth_error(GRID + 0.1, torch.tensor([3.0, 2, 0.2, 2, 3]), 0.4),
        "effective_keys": plots.effective_keys(GRID, 64 - GRID, 64 - 2 * GRID, 64),
        "score_scale": plots.score_scale((1, 4, 16), SPREAD),
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
    assert figure.get_supxlabel() or any(axis.get_xlabel() for axis in figure.axes)


def test_each_bandwidth_has_its_panel_and_its_fit():
    panels = FIGURES["kernel_fits"].axes
    assert len(panels) == 2
    torch.testing.assert_close(lines(panels[1])[-1], 2 * GRID)


def test_curves_differ_in_style_and_label_as_well_as_colour():
    figure = FIGURES["answers_by_bandwidth"]
    *curves, points = figure.axes[0].lines
    for looks in ("linestyle", "label", "color"):
        assert len({getattr(curve, f"get_{looks}")() for curve in curves}) == 3
    torch.testing.assert_close(lines(figure.axes[0])[1:], [3 * GRID, 4 * GRID, 2 * GRID])
    assert points.get_linestyle() == "None"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["h = 1", "h = 2", "h = 5"]


@pytest.mark.parametrize("n", [0, 5])
def test_only_so_many_curves_can_be_told_apart(n):
    with pytest.raises(ValueError, match=f"one to 4 curves can be told apart, got {n}"):
        plots.answers_by_bandwidth(GRID, GRID, GRID, {str(h): GRID for h in range(n)})


def test_weights_are_sorted_on_one_vertical_axis():
    panels = FIGURES["first_weights"].axes
    assert [panel.get_title() for panel in panels] == list(WEIGHTS)
    heights = [panel.patches[0].get_data().values for panel in panels]
    torch.testing.assert_close(
        torch.tensor(heights[0]), torch.tensor([0.5, 0.2, 0.2, 0.1]).double(), atol=1e-6, rtol=0
    )
    assert list(heights[1]) == [1, 0, 0, 0]
    assert panels[0].get_ylim() == panels[1].get_ylim()
    assert [panel.texts[0].get_text() for panel in panels] == ["two largest:\n0.70", "two largest:\n1.00"]


def test_each_key_is_an_arrow_with_its_score():
    axis = FIGURES["arrows"].axes[0]
    assert [text.get_text() for text in axis.texts if text.get_text()] == [
        "$\\mathbf{q}$",
        "$\\mathbf{k}_1$: 3",
        "$\\mathbf{k}_2$: −2",
    ]
    assert [text.xy for text in axis.texts[::2]] == [(2, 1), (1, 1), (-1, 0)]


def test_runs_are_dots_and_their_mean_a_line():
    axis = FIGURES["shares_by_rate"].axes[0]
    first, *dots = lines(axis)[:3]
    torch.testing.assert_close(first, torch.tensor([0.2, 1, 0.7]))
    torch.testing.assert_close(torch.stack(dots, dim=1), RATES["with"])
    assert len(axis.lines) == 6


def test_letters_are_asked_down_and_read_across():
    before, after, bar = FIGURES["who_reads_whom"].axes
    assert (before.get_title(), after.get_title()) == ("before", "after")
    assert (after.images[0].get_array() == torch.eye(3).numpy()).all()
    assert after.images[0].get_clim() == before.images[0].get_clim() == (0, 1)
    assert bar.get_ylabel() == "weight"
    with pytest.raises(ValueError, match=r"late: expected weights for 3 letters, got \(2, 3\)"):
        plots.who_reads_whom({"late": torch.ones(2, 3)}, "abc")


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


def test_the_gradients_lie_in_their_band():
    spread, gradients = FIGURES["score_scale"].axes
    assert [line.tolist() for line in lines(spread)] == [[1, 2, 4], [1, 1, 1]]
    assert [line.tolist() for line in lines(gradients)] == [[1, 2, 4], [0.5, 0.5, 0.5]]
    tops = [band.get_paths()[0].get_extents().ymax for band in gradients.collections]
    assert tops == pytest.approx([0.9 * 8, 0.9])


def test_an_alignment_shows_queries_down():
    axis = FIGURES["alignment"].axes[0]
    assert [t.get_text() for t in axis.get_yticklabels()] == ["x", "y"]
    assert axis.images[0].get_array().shape == (2, 3)
