"""The figures of the chapter on long sequences: what they draw is what they are given."""

import pytest
import torch

from tformer_lib.book.plots import long_sequences as plots
from tformer_lib.book.plots.style import BookFigure
from tformer_lib.efficient.sliding import SlidingWindow

N = [256, 1024, 4096]
TIMES = {"Attend": [1.0, 16.0, 256.0], "window": [1.0, 4.0, 16.0]}
MEMORY = {"Attend": [1e6, 1.6e7, 2.56e8], "window": [1e6, 4e6, 1.6e7]}
SEEDS = {"full": {8: [1.0, 1.0], 64: [1.0, 0.9]}, "window": {8: [1.0, 1.0], 64: [0.5, 0.4]}}
COMMONEST = {8: 0.25, 64: 0.125}
DISTANCES = {"window": {d: float(d < 5) for d in range(1, 13)}}


def figures():
    window = SlidingWindow(2, causal=True)
    return {
        "patterns": plots.patterns({"full": torch.ones(4, 4).bool(), "window": window.pattern(4)}),
        "costs": plots.costs(N, TIMES, MEMORY),
        "crossing": plots.crossing(N, {"MLP": [1.0, 4.0, 16.0], "Attend": [0.5, 8.0, 128.0]}, 512.0),
        "caches": plots.caches(N, {"all heads": [1e6, 4e6, 1.6e7], "one": [1e5, 4e5, 1.6e6]}),
        "recall_by_pairs": plots.recall_by_pairs(SEEDS, 1 / 16, {8: 1.0, 64: 0.45}, COMMONEST),
        "recall_by_distance": plots.recall_by_distance(DISTANCES, 0.25),
    }


FIGURES = figures()


@pytest.mark.parametrize("name", FIGURES)
def test_draws_with_labelled_axes(name):
    figure = FIGURES[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert figure.axes[-1].get_xlabel()
    assert figure.axes[0].get_ylabel()


def test_patterns_have_keys_down_and_queries_across():
    full, window = FIGURES["patterns"].axes
    assert full.images[0].get_array().min() == 1
    drawn = window.images[0].get_array().tolist()
    assert drawn == [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 1]]
    assert [axis.get_title() for axis in (full, window)] == ["full", "window"]


def test_costs_are_drawn_on_logarithmic_axes_in_one_colour_each():
    top, bottom = FIGURES["costs"].axes
    for axis, found in ((top, TIMES), (bottom, MEMORY)):
        assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
        for line, (name, values) in zip(axis.lines, found.items(), strict=True):
            assert list(line.get_xdata()) == N
            assert list(line.get_ydata()) == values
            assert line.get_color() == plots.COLOURS[name]
    (legend,) = FIGURES["costs"].legends
    assert [text.get_text() for text in legend.get_texts()] == ["Attend", "window"]


def test_the_crossing_is_marked():
    mlp, attend, expected = FIGURES["crossing"].axes[0].lines
    assert list(mlp.get_ydata()) == [1.0, 4.0, 16.0]
    assert list(attend.get_ydata()) == [0.5, 8.0, 128.0]
    assert set(expected.get_xdata()) == {512.0}


def test_two_ways_of_one_colour_have_other_dashes_or_marks():
    looks = [(plots.COLOURS[n], plots.MARKS.get(n), plots.DASHES.get(n, "-")) for n in plots.COLOURS]
    assert len(set(looks)) == len(looks)


def test_bytes_are_said_in_words():
    assert [plots.bytes_in_words(x) for x in (20, 1500, 2e6, 3e9, 1e12)] == [
        *("20 B", "1.5 kB", "2 MB", "3 GB", "1 TB")
    ]


def test_recall_has_a_dot_a_seed_and_a_line_of_means():
    axis = FIGURES["recall_by_pairs"].axes[0]
    lines = [list(line.get_ydata()) for line in axis.lines]
    assert lines[0] == pytest.approx([1.0, 0.95])
    assert lines[1:3] == [[1.0, 1.0], [1.0, 0.9]]
    assert lines[3] == pytest.approx([1.0, 0.45])
    assert lines[6] == [1.0, 0.45]
    assert set(lines[7]) == {1 / 16}
    assert lines[8] == [0.25, 0.125]
    without = plots.recall_by_pairs(SEEDS, 1 / 16, {8: 1.0, 64: 0.45})
    assert len(without.axes[0].lines) == 8


def test_distances_are_averaged_in_groups():
    line, chance = FIGURES["recall_by_distance"].axes[0].lines
    assert list(line.get_xdata()) == [2.5, 6.5, 10.5]
    assert list(line.get_ydata()) == [1.0, 0.0, 0.0]
    assert set(chance.get_ydata()) == {0.25}
