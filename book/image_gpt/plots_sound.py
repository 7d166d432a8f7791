"""The figures of the page on sound."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from torch import Tensor

from tformer_book.kit.plot_style import (
    BookFigure,
    book_style,
    new_figure,
)


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
