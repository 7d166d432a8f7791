"""The figures of the chapter on long sequences: what they draw is what they are given."""

import pytest

from tformer_book.kit.plot_style import BookFigure
from tformer_book.long_sequences import plots

N = [256, 1024, 4096]
SEEDS = {"full": {8: [1.0, 1.0], 64: [1.0, 0.9]}, "window": {8: [1.0, 1.0], 64: [0.5, 0.4]}}


def figures():
    return {
        "caches": plots.caches(N, {"all heads": [1e6, 4e6, 1.6e7], "one": [1e5, 4e5, 1.6e6]}),
        "recall_by_pairs": plots.recall_by_pairs(SEEDS, 1 / 16),
        "evicted": plots.evicted({"last": {8: [2.5, 3.5], 16: [2.0, 3.0]}}, [2.0, 3.0]),
    }


FIGURES = figures()


@pytest.mark.parametrize("name", FIGURES)
def test_draws_with_labelled_axes(name):
    figure = FIGURES[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert figure.axes[-1].get_xlabel()
    assert figure.axes[0].get_ylabel()


def test_two_ways_of_one_colour_have_other_dashes():
    looks = [(plots.COLOURS[n], plots.DASHES.get(n, "-")) for n in plots.COLOURS]
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
    assert set(lines[6]) == {1 / 16}
    assert len(lines) == 7


def test_what_is_evicted_costs_bits_above_those_of_all_keys():
    line, first, *_ = FIGURES["evicted"].axes[0].lines
    assert list(line.get_xdata()) == [8, 16]
    assert list(line.get_ydata()) == [0.5, 0.0]
    assert list(first.get_ydata()) == [0.5, 0.5]


def test_bits_have_a_dot_a_seed():
    by_place = plots.bits_by_place(
        {"full": [[3.0, 2.0], [5.0, 2.0]], "indexer": [[3.0, 3.0]]}, [(1, 8), (9, 16)]
    )
    axis = by_place.axes[0]
    assert [list(line.get_ydata()) for line in axis.lines[:3]] == [[4.0, 2.0], [3.0, 2.0], [5.0, 2.0]]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["1-8", "9-16"]
    each = plots.bits_of_each({"full": [1.0, 2.0], "window": [6.0]}, "bits").axes[0]
    assert [list(line.get_xdata()) for line in each.lines] == [[1.0, 2.0], [6.0]]
    assert [label.get_text() for label in each.get_yticklabels()] == ["full", "window"]
    assert each.get_xlabel() == "bits"
