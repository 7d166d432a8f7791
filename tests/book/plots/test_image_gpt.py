"""The figures of the chapter on ImageGPT and sound: what they draw is what they are given."""

import math

import pytest
import torch

from tformer_lib.book.plots import image_gpt as plots
from tformer_lib.book.plots import sound
from tformer_lib.book.plots.style import BookFigure
from tformer_lib.data.audio import mel_filterbank

PICTURE = torch.tensor([[0.1, 0.9], [0.4, 0.6]])
PICTURES = plots.as_pictures(PICTURE.expand(3, 1, 2, 2), known=3)
LADDER = {"counting": {"uniform": 2.0, "left": 0.7}, "page": {"GPT": 0.4}}
CURVES = {"page": [0.2, 0.8, 0.9], "untrained": [0.2, 0.5]}
RATIOS = {"block 1": torch.tensor([[1.0, 2.0, math.nan], [20.0, 4.0, 0.5]])}
SIGNAL, BANK = torch.linspace(-1, 1, 100), mel_filterbank(3, 16, 8000)
MEL = {"one": torch.rand(4, 6), "two": torch.rand(4, 6)}
FIGURES = {
    "raster": plots.raster(PICTURE, [0, 3, 1, 2], upto=2),
    "ladder": plots.ladder(LADDER),
    "completions": plots.completions({"true": PICTURES, "model": PICTURES}, columns=2),
    "gallery": plots.gallery(PICTURES, columns=2),
    "probe": plots.probe(CURVES, 0.85),
    "neighbourhoods": plots.neighbourhoods(RATIOS, reach=1),
    "from_wave_to_bands": sound.from_wave_to_bands(SIGNAL, 20, 16, 8000, torch.rand(9), BANK),
    "mel_spectrograms": sound.mel_spectrograms(
        MEL, [300.0, 800.0, 1800.0, 3000.0], frame=20, hop=10, rate=100, patch=2
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_draws(name):
    figure = FIGURES[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_raster_writes_each_level_and_frames_the_next():
    (axis,) = FIGURES["raster"].axes
    assert [text.get_text() for text in axis.texts] == ["0", "3", "?"]
    assert [patch.get_xy() for patch in axis.patches] == [(-0.5, 0.5), (0.5, 0.5)]
    assert [patch.get_linewidth() > 1 for patch in axis.patches] == [True, False]


def test_ladder_writes_its_bits():
    (axis,) = FIGURES["ladder"].axes
    assert [text.get_text() for text in axis.texts] == ["2.00", "0.70", "0.40"]
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["uniform", "left", "GPT"]
    assert [text.get_text() for text in axis.figure.legends[0].get_texts()] == list(LADDER)


def test_pictures_stand_in_blocks_and_are_blank_where_nothing_is_known():
    axes = FIGURES["completions"].axes
    shown = [axis.images[0].get_array() for axis in axes if axis.images]
    assert len(axes) == 8
    assert len(shown) == 6
    assert bool(shown[0].mask[1, 1]) if hasattr(shown[0], "mask") else math.isnan(shown[0][1, 1])
    assert [axis.get_ylabel() for axis in axes[::2]] == ["true", "model", "true", "model"]
    assert sum(bool(axis.images) for axis in FIGURES["gallery"].axes) == 3


def test_probe_begins_after_the_first_block():
    (axis,) = FIGURES["probe"].axes
    lines = [(list(line.get_xdata()), list(line.get_ydata())) for line in axis.lines]
    assert lines[:2] == [([1, 2], [0.8, 0.9]), ([1], [0.5])]
    assert [0.85, 0.85] in [heights for _, heights in lines]


def test_neighbourhoods_are_drawn_upwards_in_powers_of_two():
    axis = FIGURES["neighbourhoods"].axes[0]
    drawn = axis.images[0].get_array()
    assert drawn[0].tolist() == [3.0, 2.0, -1.0]  # 20 is beyond the scale's end of 8
    assert drawn[1, :2].tolist() == [0.0, 1.0]
    assert axis.get_title(loc="left") == "block 1"


def test_a_frame_is_marked_where_it_lies():
    wave, spectrum, bands = FIGURES["from_wave_to_bands"].axes
    (span,) = wave.patches
    assert (span.get_x(), span.get_width()) == pytest.approx((0.0025, 0.002))
    assert list(spectrum.lines[0].get_xdata()[:3]) == [0, 500, 1000]
    assert len(bands.lines) == 3


def test_spectrograms_have_seconds_across_and_hertz_up():
    first, last = FIGURES["mel_spectrograms"].axes
    assert first.images[0].get_extent() == pytest.approx([0.05, 0.65, -0.5, 3.5])  # frames stand for middles
    assert [tick.get_text() for tick in first.get_yticklabels()] == ["500", "1,000", "2,000"]
    assert first.get_yticks()[0] == pytest.approx(0.4)
    assert last.get_xlabel() == "time (s)"
    assert len(first.lines) == 2 + 1  # between three patches across and two up
