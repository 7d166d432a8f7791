"""The figures of the chapter on ImageGPT and of its page on sound: what they draw is what they are given."""

import math

import pytest
import torch

from tformer_book.image_gpt import plots
from tformer_book.image_gpt import plots_sound as sound
from tformer_book.kit.plot_style import BookFigure

PICTURE = torch.tensor([[0.1, 0.9], [0.4, 0.6]])
PICTURES = plots.as_pictures(PICTURE.expand(3, 1, 2, 2), known=3)
RATIOS = {"block 1": torch.tensor([[1.0, 2.0, math.nan], [20.0, 4.0, 0.5]])}
MEL = {"one": torch.rand(4, 6), "two": torch.rand(4, 6)}
PROBES = {"deep": [[0.25, 0.8, 0.9]], "two runs": [[0.25, 0.8], [0.26, 0.7]], "control": [[0.25, 0.65, 0.7]]}
FIGURES = {
    "completions": plots.completions({"true": PICTURES, "model": PICTURES}, columns=2),
    "one_pixel": plots.one_pixel([1.0, 0.5, 0.0], [[0.3, 0.2, 1.0], [0.1, 0.4, -1.0]], [[0.3, 0.8, 1.0]]),
    "neighbourhoods": plots.neighbourhoods(RATIOS, reach=1),
    "probe_depths": plots.probe_depths(PROBES, 0.9),
    "mel_spectrograms": sound.mel_spectrograms(
        MEL, [300.0, 800.0, 1800.0, 3000.0], frame=20, hop=10, rate=100, patch=2
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_draws(name):
    figure = FIGURES[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_pictures_stand_in_blocks_and_are_blank_where_nothing_is_known():
    axes = FIGURES["completions"].axes
    shown = [axis.images[0].get_array() for axis in axes if axis.images]
    assert len(axes) == 8
    assert len(shown) == 6
    assert bool(shown[0].mask[1, 1]) if hasattr(shown[0], "mask") else math.isnan(shown[0][1, 1])
    assert [axis.get_ylabel() for axis in axes[::2]] == ["true", "model", "true", "model"]


def test_one_pixel_has_its_mixtures_left_and_what_was_followed_right():
    left, right = FIGURES["one_pixel"].axes
    assert (len(left.lines), len(right.lines)) == (2, 1)
    assert left.get_xlim() == (0, 1)
    assert right.lines[0].get_ydata().tolist() == [0.3, 0.8, 1]


def test_neighbourhoods_are_drawn_upwards_in_powers_of_two():
    axis = FIGURES["neighbourhoods"].axes[0]
    drawn = axis.images[0].get_array()
    assert drawn[0].tolist() == [3.0, 2.0, -1.0]  # 20 is beyond the scale's end of 8
    assert drawn[1, :2].tolist() == [0.0, 1.0]
    assert axis.get_title(loc="left") == "block 1"


def test_spectrograms_have_seconds_across_and_hertz_up():
    first, last = FIGURES["mel_spectrograms"].axes
    assert first.images[0].get_extent() == pytest.approx([0.05, 0.65, -0.5, 3.5])  # frames stand for middles
    assert [tick.get_text() for tick in first.get_yticklabels()] == ["500", "1,000", "2,000"]
    assert first.get_yticks()[0] == pytest.approx(0.4)
    assert last.get_xlabel() == "time (s)"
    assert len(first.lines) == 2 + 1  # between three patches across and two up


def test_a_probe_is_drawn_in_per_cent_from_the_first_block_on():
    axis = FIGURES["probe_depths"].axes[0]
    deep, control = (
        next(line for line in axis.lines if line.get_label() == name) for name in ("deep", "control")
    )
    assert list(deep.get_xdata()) == [1, 2]
    assert deep.get_ydata() == pytest.approx([80, 90])
    assert control.get_linestyle() == "--"
    assert "25%" in [text.get_text() for text in axis.texts]
