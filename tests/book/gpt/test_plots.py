"""The figures of the chapter on GPT: what they draw is what they are given."""

import pytest
import torch

from tformer_book.gpt import plots
from tformer_book.kit.plot_style import BookFigure

CURVES = {"characters": ([10, 20], [4.0, 3.0]), "byte pairs": ([10, 40], [3.5, 2.5])}
ENDS = {"characters": ([0, 20], [6.0, 3.2]), "byte pairs": ([40], [2.7])}
RUNGS = {"counting": {"bigram": 3.6, "6-gram": 2.4}, "GPT": {"characters": 2.6}}
CHOICES = {"as it is": torch.tensor([0.7, 0.2, 0.1]), "top-k, 2": torch.tensor([0.8, 0.2, 0.0])}


def figures():
    return {
        "learning": plots.learning(CURVES, ENDS, {"6-gram": 2.4}),
        "ladder": plots.ladder(RUNGS),
        "reach": plots.reach(
            {"first": ([1, 4], [4.0, 3.0], {"8-gram": 3.5}), "others": ([1, 4], [3.0, 2.0], {"8-gram": 1.5})}
        ),
        "gains": plots.gains([8, 16], {"first": ([0, 0.1], 0.02), "others": ([0, 0.3], 0.03)}),
        "rules_tried": plots.rules_tried(
            {"top-k": [(300, 0.9, "2"), (400, 0.8, "4")], "min-p": [(350, 0.95, "0.1")]}, (450, 0.91)
        ),
        "next_token": plots.next_token(CHOICES, ["e", "␣", "t"]),
        "cuts": plots.cuts({"a fork": (["a", "b", "c"], [0.5, 0.3, 0.2], {"top-k": 2, "min-p": 4})}),
        "token_time": plots.token_time(
            [16, 64],
            {"without cache": [0.01, 0.05], "with cache": [0.002, 0.003]},
            {"without cache": [160, 640], "with cache": [10, 10]},
        ),
    }


FIGURES = figures()


@pytest.mark.parametrize("name", FIGURES)
def test_draws(name):
    figure = FIGURES[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert any(axis.get_xlabel() for axis in figure.axes)


def lines(axis):
    return [list(line.get_ydata()) for line in axis.lines]


def labels(axis):
    legend = axis.get_legend() or axis.figure.legends[0]
    return [text.get_text() for text in legend.get_texts()]


def test_learning_shows_each_curve_its_end_and_the_baselines():
    (axis,) = FIGURES["learning"].axes
    for wanted in ([4.0, 3.0], [6.0, 3.2], [3.5, 2.5], [2.7], [2.4, 2.4]):
        assert wanted in lines(axis)
    assert "6-gram" in [text.get_text() for text in axis.texts]
    assert len(labels(axis)) == 4


def test_gains_lie_on_one_axis_and_name_where_they_are_counted_from():
    (axis,) = FIGURES["gains"].axes
    assert [0, 0.1] in lines(axis)
    assert [0, 0.3] in lines(axis)
    assert axis.get_ylabel() == "bits saved over reading 8"
    assert labels(axis) == ["first", "others"]


def test_cuts_have_a_row_a_rule_as_long_as_what_it_keeps():
    (axis,) = FIGURES["cuts"].axes
    assert [bar.get_height() for bar in axis.patches] == [0.5, 0.3, 0.2]
    assert [len(line.get_xdata()) for line in axis.lines[:2]] == [2, 3]
    assert [text.get_text() for text in axis.texts] == ["top-k: 2", "min-p: 4 →"]
    assert min(axis.get_yticks()) >= 0


def test_reach_has_a_panel_a_kind_and_a_line_a_table():
    first, others = FIGURES["reach"].axes
    assert lines(first) == [[4.0, 3.0], [3.5, 3.5]]
    assert lines(others) == [[3.0, 2.0], [1.5, 1.5]]
    assert labels(first) == ["GPT", "8-gram"]


def test_rules_are_curves_with_their_last_setting_and_the_real_text():
    (axis,) = FIGURES["rules_tried"].axes
    assert lines(axis) == [[90, 80], [95], [91]]
    assert {"4", "0.1"} <= {text.get_text() for text in axis.texts}
    assert labels(axis) == ["top-k", "min-p", "held-out text"]
    sides = {text.get_text(): text.get_ha() for text in axis.texts}
    assert sides == {"4": "left", "0.1": "right"}  # where the other rules' lines are not


def test_settings_of_rules_that_end_together_stand_above_each_other():
    ends = {"top-k": [(300, 0.9, "8")], "top-p": [(470, 0.95, "0.95")], "min-p": [(471, 0.951, "0.03")]}
    (axis,) = plots.rules_tried(ends, (450, 0.91)).axes
    heights = {text.get_text(): text.get_position()[1] for text in axis.texts}
    assert heights["0.03"] - heights["0.95"] > 10  # points: a line of type


def test_the_ladder_has_a_dot_a_model_and_a_colour_a_group():
    (axis,) = FIGURES["ladder"].axes
    counting, gpt = axis.lines
    assert [list(dots.get_xdata()) for dots in (counting, gpt)] == [[3.6, 2.4], [2.6]]
    assert counting.get_color() != gpt.get_color()
    assert counting.get_marker() != gpt.get_marker()
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["bigram", "6-gram", "characters"]
    assert {"3.60", "2.40", "2.60"} <= {text.get_text() for text in axis.texts}
    assert labels(axis) == list(RUNGS)


def test_the_ladder_begins_below_the_least():
    (axis,) = FIGURES["ladder"].axes
    left, right = axis.get_xlim()
    assert left == 1.5
    assert right > 3.6
