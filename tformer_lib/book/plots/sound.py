"""The figures of the chapter on ImageGPT and sound, as far as they are about sound."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from torch import Tensor

from tformer_lib.book.plots.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    BookFigure,
    book_style,
    new_figure,
)


@book_style
def from_wave_to_bands(
    signal: Float[Tensor, " T"],
    start: int,
    frame: int,
    rate: float | int,
    power: Float[Tensor, " F"],
    bank: Float[Tensor, "n_mels F"],
) -> BookFigure:
    """Three panels: a wave with one frame marked, that frame's power spectrum, and the bands that sum it up.

    Args:
        signal: the samples.
        start: the frame's first sample.
        frame: its length in samples.
        rate: samples a second.
        power: the frame's power spectrum.
        bank: the mel filterbank.
    """
    figure, (wave, spectrum, bands) = new_figure(3, 1, height=6.2, height_ratios=(1, 1.1, 0.8))
    wave.plot(np.arange(len(signal)) / rate, signal.numpy(), color=BLUE, linewidth=0.6)
    wave.axvspan(start / rate, (start + frame) / rate, color=ORANGE, alpha=0.6, linewidth=0)
    wave.set(xlabel="time (s)", ylabel="amplitude", ylim=(-1.1, 1.1), xlim=(0, len(signal) / rate))
    frequencies = np.arange(len(power)) * rate / frame
    spectrum.plot(frequencies, 10 * np.log10(power.numpy() + 1e-6), color=ORANGE)
    spectrum.set(ylabel="power (dB)", xlim=(0, rate / 2))
    spectrum.tick_params(labelbottom=False)
    for m, row in enumerate(bank.numpy()):
        inside = row > 0
        first, last = int(inside.nonzero()[0][0]), int(inside.nonzero()[0][-1])
        reach = slice(max(first - 1, 0), last + 2)
        bands.plot(frequencies[reach], row[reach], color=GREEN if m % 2 else GREY, linewidth=1.2)
    bands.set(xlabel="frequency (Hz)", ylabel="weight", xlim=(0, rate / 2), ylim=(0, 1.05))
    bands.xaxis.set_major_formatter("{x:,.0f}")
    return figure


@book_style
def mel_spectrograms(
    pictures: Mapping[str, Float[Tensor, "n_mels N"]],
    corners: Sequence[float],
    *,
    frame: int,
    hop: int,
    rate: float | int,
    patch: int | None = None,
) -> BookFigure:
    """Log-mel spectrograms below each other, seconds across and hertz up, with the patches they are cut in.

    Args:
        pictures: from a title to bands down, lowest first, and frames across.
        corners: the middle frequency of each band in hertz.
        frame: the length of a frame in samples; it stands for its middle.
        hop: samples from frame to frame.
        rate: samples a second.
        patch: the side of a patch, in bands and frames.
    """
    figure, axes = new_figure(len(pictures), 1, height=2.3 * len(pictures) + 0.5, sharex=True, squeeze=False)
    lowest = min(float(p.min()) for p in pictures.values())
    highest = max(float(p.max()) for p in pictures.values())
    for axis, (title, picture) in zip(axes[:, 0], pictures.items(), strict=True):
        bands, frames = picture.shape
        left = (frame - hop) / 2 / rate
        end = left + frames * hop / rate
        axis.imshow(
            picture.numpy(),
            origin="lower",
            aspect="auto",
            extent=(left, end, -0.5, bands - 0.5),
            vmin=lowest,
            vmax=highest,
        )
        wanted = [f for f in (250, 500, 1000, 2000, 4000) if corners[0] <= f <= corners[-1]]
        axis.set_yticks(np.interp(wanted, corners, range(bands)), [f"{f:,}" for f in wanted])
        axis.set_ylabel("frequency (Hz)")
        axis.set_title(title, loc="left")
        if patch is not None:
            for edge in range(patch, frames, patch):
                axis.axvline(left + edge * hop / rate, color="white", linewidth=0.7, alpha=0.8)
            for edge in range(patch, bands, patch):
                axis.axhline(edge - 0.5, color="white", linewidth=0.7, alpha=0.8)
    axes[-1, 0].set_xlabel("time (s)")
    return figure
