"""The figures on modular addition: what they draw is what they are given."""

import pytest

from tformer_book.inside.plots.grokking import grokking_curves, grokking_progress, grokking_spectra
from tformer_book.kit.plot_style import ORANGE, BookFigure

STEPS = [0, 50, 100]


def is_drawn(figure):
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert len(figure._repr_svg_()) < 100_000


def test_curves_have_a_panel_for_each_setting_and_a_line_for_each_run():
    curves = {
        "shown pairs": [[0.0, 1.0, 1.0], [0.0, 0.9, 1.0]],
        "unseen pairs": [[0.0, 0.0, 1.0], [0.0, 0.1, 0.9]],
    }
    figure = grokking_curves({"one": (STEPS, curves), "two": (STEPS, curves)})
    is_drawn(figure)
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["one", "two"]
    drawn = [list(line.get_ydata()) for line in figure.axes[1].lines]
    assert drawn == [run for runs in curves.values() for run in runs]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(curves)


def test_spectra_colour_the_key_frequencies():
    figure = grokking_spectra({"first": [0.3, 0.3, 0.4], "last": [0.9, 0.0, 0.1]}, key=[1])
    is_drawn(figure)
    bars = figure.axes[1].patches
    assert [bar.get_height() for bar in bars] == [0.9, 0.0, 0.1]
    assert bars[0].get_facecolor() != bars[1].get_facecolor()
    assert bars[0].get_facecolor()[:3] == pytest.approx([int(ORANGE[i : i + 2], 16) / 255 for i in (1, 3, 5)])


def test_progress_has_losses_above_and_shares_of_the_largest_below():
    losses = {"unseen pairs": [[4.0, 5.0, 0.1]], "excluded": [[4.0, 1.0, 3.0]]}
    figure = grokking_progress(STEPS, losses, {"weight length": [[20.0, 40.0, 30.0]]})
    is_drawn(figure)
    assert figure.axes[0].get_yscale() == "log"
    assert list(figure.axes[1].lines[0].get_ydata()) == [0.5, 1.0, 0.75]
