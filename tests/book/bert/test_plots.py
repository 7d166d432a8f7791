"""The figures of the chapter on BERT: what they draw is what they are given."""

import pytest

from tformer_book.bert import plots
from tformer_book.kit.plot_style import BookFigure

CURVES = {
    "this page": [(1, 6.4), (100, 6.0)],
    "recorded": [(1, 6.5), (200, 3.4)],
    "short rows": [(1, 6.2), (50, 5.9)],
}
JUDGED = {"model": {"other": 0.6, "swapped": 0.5}, "words": {"other": 0.59, "swapped": 0.51}}
PANELS = {
    "intents": {"from scratch": {5: [0.6, 0.7, 0.8], 20: [0.8, 0.8, 0.8]}},
    "reviews": {
        "MiniLM": {5: [0.6, 0.6, 0.6], 1000: [0.7, 0.7, 0.7]},
        "counting words": {5: [0.5, 0.5, 0.5]},
    },
}
SHARES, NAMES, COST = {"previous": [0.03, 0.6], "[SEP]": [0.03, 0.2]}, ["equal", "head 1"], [0.0, 0.7]
FIGURES = {
    "learning": plots.learning(CURVES, {"unigram": 6.3}, {"by place": (5.7, 50, 400)}),
    "next_sentence": plots.next_sentence(JUDGED),
    "few_labels": plots.few_labels(PANELS),
    "heads": plots.heads(SHARES, NAMES, COST),
}


@pytest.mark.parametrize("name", FIGURES)
def test_draws(name):
    figure = FIGURES[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert any(axis.get_xlabel() for axis in figure.axes)


def test_learning_shows_each_run_and_each_line_to_compare_with():
    (axis,) = FIGURES["learning"].axes
    drawn = [(list(line.get_xdata()), list(line.get_ydata())) for line in axis.lines]
    assert ([1, 100], [6.4, 6.0]) in drawn
    assert ([1, 200], [6.5, 3.4]) in drawn
    assert ([1, 50], [6.2, 5.9]) in drawn
    assert [6.3, 6.3] in [heights for _, heights in drawn]
    assert ([50, 400], [5.7, 5.7]) in drawn
    assert {"unigram", "by place"} <= {text.get_text() for text in axis.texts}


def test_learning_counts_steps_in_round_numbers():
    (axis,) = FIGURES["learning"].axes
    assert {"10", "100"} <= {tick.get_text() for tick in axis.get_xticklabels()}
    assert list(axis.get_xticks(minor=True)) == []


def test_next_sentence_has_a_bar_a_model_and_kind_and_writes_its_value():
    (axis,) = FIGURES["next_sentence"].axes
    assert [bar.get_width() for bar in axis.patches] == [0.6, 0.5, 0.59, 0.51]
    assert {text.get_text() for text in axis.texts} == {"0.60", "0.50", "0.59", "0.51"}
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["other", "swapped"]


def test_few_labels_draws_means_and_reaches_from_the_worst_run_to_the_best():
    first, second = FIGURES["few_labels"].axes
    (line, _, (bar,)) = first.containers[0]
    assert list(line.get_ydata()) == pytest.approx([0.7, 0.8])
    (_, low), (_, high) = bar.get_segments()[0]
    assert (low, high) == pytest.approx((0.6, 0.8))
    assert [len(container[0].get_ydata()) for container in second.containers] == [2, 1]
    assert [tick.get_text() for tick in second.get_xticklabels()] == ["5", "20", "1,000"]


def test_few_labels_knows_no_other_methods():
    with pytest.raises(KeyError, match="guessing"):
        plots.few_labels({"intents": {"guessing": {5: [0.1]}}})


def test_heads_has_a_row_a_head_and_the_cost_beside_it():
    table, bars = FIGURES["heads"].axes
    assert [text.get_text() for text in table.texts] == ["3", "60", "3", "20"]
    assert [tick.get_text() for tick in table.get_yticklabels()] == NAMES
    assert [bar.get_width() for bar in bars.patches] == COST
