"""The figures of the chapter on translation: what they draw is what they are given."""

import pytest
import torch

from tformer_book.kit.plot_style import BookFigure
from tformer_book.translation import plots

LENGTHS = {"recurrent": [[60.0, 40.0], [70.0, 50.0]], "transformer": [[90.0, 80.0], [90.0, 84.0]]}
BLEU = {0.0: [80.0, 82.0], 1.0: [80.0, 83.0]}
LENGTH = {0.0: [0.95, 0.93], 1.0: [0.95, 1.0]}
MAPS = {"one": torch.eye(2), "two": torch.full((3, 2), 0.5)}
FIGURES = {
    "redrawn": plots.redrawn(torch.tensor([-0.05, 0.02, 0.55, 0.58, 1.2]), 0.5),
    "by_length": plots.by_length(LENGTHS, ["1 to 5", "more"]),
    "decoding": plots.decoding(BLEU, LENGTH, [1, 4]),
    "alignments": plots.alignments(MAPS, ["a", "b"], {"one": ["x", "y"], "two": ["x", "y", "z"]}),
}


@pytest.mark.parametrize("name", FIGURES)
def test_draws(name):
    figure = FIGURES[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert any(axis.get_xlabel() for axis in figure.axes)


def test_by_length_draws_means_and_reaches_from_the_worst_run_to_the_best():
    (axis,) = FIGURES["by_length"].axes
    (line, _, (bar,)) = axis.containers[0]
    assert list(line.get_ydata()) == pytest.approx([65.0, 45.0])
    (_, low), (_, high) = bar.get_segments()[0]
    assert (low, high) == pytest.approx((60.0, 70.0))
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["1 to 5", "more"]


def test_by_length_names_its_measure():
    (axis,) = plots.by_length({"transformer": [[0.5, 0.25]]}, ["1 to 5", "more"], "exact match", 1.0).axes
    assert axis.get_ylabel() == "exact match"
    assert axis.get_ylim() == pytest.approx((0, 1.02))


def test_by_length_knows_no_other_systems():
    with pytest.raises(KeyError, match="oracle"):
        plots.by_length({"oracle": [[1.0]]}, ["all"])


def test_decoding_has_a_line_a_penalty_in_both_panels():
    above, below = FIGURES["decoding"].axes
    assert [list(line.get_ydata()) for line in above.lines] == list(BLEU.values())
    assert [list(line.get_ydata()) for line in below.lines][:2] == list(LENGTH.values())
    assert [text.get_text() for text in above.figure.legends[0].get_texts()] == ["0", "1"]
    assert [tick.get_text() for tick in below.get_xticklabels()] == ["1", "4"]


def test_alignments_has_a_map_a_model():
    first, second = FIGURES["alignments"].axes[:2]
    assert [axis.get_title(loc="left") for axis in (first, second)] == ["one", "two"]
    assert first.images[0].get_array().shape == (2, 2)
    assert [tick.get_text() for tick in second.get_yticklabels()] == ["x", "y", "z"]


def test_redrawn_counts_each_drawn_test_once_and_on_its_side_of_zero():
    (axis,) = FIGURES["redrawn"].axes
    heights = {round(bar.get_x(), 1): int(bar.get_height()) for bar in axis.patches}
    assert sum(heights.values()) == 5
    assert (heights[-0.1], heights[0.0], heights[0.5]) == (1, 1, 2)
    assert sorted(line.get_xdata()[0] for line in axis.lines) == [0, 0.5]
