"""The figure on what a cut changes shows the numbers that it was given."""

import pytest

from tformer_book.inside.plots.repair import what_a_cut_changes


def test_a_bar_for_each_part_and_a_dot_for_each_seed():
    parts = {"its own part": [-0.5, -0.7], "MLPs": [0.1, 0.3], "altogether": [-0.4, -0.4]}
    figure = what_a_cut_changes({"head 1.0": parts, "head 1.1": parts})
    assert len(figure.axes) == 2
    axis = figure.axes[0]
    assert [bar.get_width() for bar in axis.patches] == pytest.approx([-0.6, 0.2, -0.4])
    assert [list(line.get_xdata()) for line in axis.lines[:3]] == list(parts.values())
    assert [label.get_text() for label in axis.get_yticklabels()] == list(parts)
    assert axis.get_title(loc="left") == "head 1.0"


def test_something_is_wanted():
    with pytest.raises(ValueError, match="no cut"):
        what_a_cut_changes({})
