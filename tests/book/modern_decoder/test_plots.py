"""The figures of the chapter on modern decoders: what they draw is what they are given."""

import pytest
import torch

from tformer_book.kit.plot_style import BookFigure
from tformer_book.modern_decoder import plots

BEFORE = torch.logspace(-3, 0, 7)
AT_STEPS = {"baseline": [2.0, 2.2], "rotary": [1.9]}
AT_TIME = {"baseline": [2.0, 2.2], "rotary": [1.95]}
ACCURACY = {"sums": {0: 0.0, 8: 0.2}, "capitals": {0: 0.1, 8: 0.9}}
RACE = {"baseline": [([1.0, 10.0], [3.0, 1.9])], "modern": [([1.0, 2.0], [2.5, 1.9]), ([1.0], [2.4])]}


def figures():
    return {
        "iterated_maps": plots.iterated_maps(BEFORE, {"same": BEFORE, "one": BEFORE**0}, (0.7, 1.2)),
        "spectra": plots.spectra(
            {"gradient": torch.tensor([4.0, 1.0, 0.0]), "Muon": torch.tensor([2.0, 2.0])}
        ),
        "ladder": plots.ladder(AT_STEPS, AT_TIME),
        "race": plots.race(RACE, goal=1.9, marks={"a fifth": 2.0}),
        "accuracy_by_examples": plots.accuracy_by_examples(ACCURACY, {"capitals": 0.1, "sums": 0.2}),
    }


FIGURES = figures()


def drawn(line):
    return torch.as_tensor(line.get_ydata(), dtype=torch.float32)


@pytest.mark.parametrize("name", FIGURES)
def test_draws_with_labelled_axes(name):
    figure = FIGURES[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert all(axis.get_xlabel() or figure.get_supxlabel() for axis in figure.axes)
    assert name in ("ladder", "accuracy_by_examples") or figure.axes[0].get_ylabel()


def test_maps_are_drawn_over_the_values_before_them():
    one, same, constant = FIGURES["iterated_maps"].axes[0].lines
    assert set(one.get_ydata()) == {1.0}
    torch.testing.assert_close(drawn(same), BEFORE)
    torch.testing.assert_close(drawn(constant), torch.ones(7))


def test_spectra_begin_at_one():
    gradient, muon = FIGURES["spectra"].axes[0].lines
    torch.testing.assert_close(drawn(gradient), torch.tensor([1.0, 0.25, 0.0]))
    torch.testing.assert_close(drawn(muon), torch.ones(2))


def test_the_ladder_has_a_shape_a_seed_and_a_bar_a_rung():
    left, right = FIGURES["ladder"].axes
    _, path, *dots, bars = left.lines
    assert [list(dot.get_xdata()) for dot in dots] == [[2.0], [2.2], [1.9]]
    first, second, again = (dot.get_marker() for dot in dots)
    assert first == again != second
    assert list(bars.get_xdata()) == list(path.get_xdata()) == pytest.approx([2.1, 1.9])
    assert list(right.lines[4].get_xdata()) == [1.95]
    assert [label.get_text() for label in left.get_yticklabels()] == ["baseline", "rotary"]
    assert left.yaxis_inverted()
    assert len(plots.ladder(AT_STEPS).axes) == 1


def test_the_race_has_a_curve_a_run_and_marks():
    (axis,) = FIGURES["race"].axes
    assert [list(line.get_xdata()) for line in axis.lines[:3]] == [[1.0, 10.0], [1.0, 2.0], [1.0]]
    assert set(axis.lines[3].get_ydata()) == {1.9}
    assert set(axis.lines[4].get_xdata()) == {2.0}
    assert [text.get_text() for text in axis.texts] == ["a fifth"]
    assert len(axis.get_legend().get_texts()) == 2


def test_tasks_are_sorted_and_have_a_dot_for_each_number_of_examples():
    (axis,) = FIGURES["accuracy_by_examples"].axes
    guess, none, eight = axis.lines
    assert [label.get_text() for label in axis.get_yticklabels()] == ["sums", "capitals"]
    assert list(guess.get_xdata()) == [0.2, 0.1]
    assert list(none.get_xdata()) == [0.0, 0.1]
    assert list(eight.get_xdata()) == [0.2, 0.9]
    assert eight.get_markersize() > none.get_markersize()
