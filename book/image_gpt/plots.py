"""The figures of the chapter on ImageGPT, as far as they are about pixels."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tformer_book.kit.plot_style import (
    BLUE,
    GREY,
    ORANGE,
    RED,
    BookFigure,
    book_style,
    legend_above,
    new_figure,
)

Picture = Float[Tensor, "height width"]


def _draw(axis: Any, picture: Picture, frame: str | None = None) -> None:
    """One picture, black to white, without ticks; with a coloured frame, if it has one."""
    axis.imshow(picture.numpy(), cmap="gray", vmin=0, vmax=1)
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(frame is not None)
    for side in axis.spines.values():
        side.set(color=frame or GREY, linewidth=1.5)


@book_style
def completions(rows: Mapping[str, Sequence[Picture]], columns: int = 6) -> BookFigure:
    """Pictures below each other: a row for each name, in blocks of so many columns.

    Args:
        rows: from a row's name to its pictures, as many in each; where a picture has values that are no
            numbers, it is blank.
        columns: pictures side by side.
    """
    count = len(next(iter(rows.values())))
    blocks = -(-count // columns)
    figure, axes = new_figure(
        blocks * len(rows), columns, height=0.65 * blocks * len(rows) + 0.2, squeeze=False
    )
    for block in range(blocks):
        for r, (name, pictures) in enumerate(rows.items()):
            line = axes[block * len(rows) + r]
            for c, axis in enumerate(line):
                axis.set_axis_off()
                if block * columns + c < count:
                    axis.set_axis_on()
                    axis.set_facecolor("#e8eef4")
                    _draw(axis, pictures[block * columns + c])
            line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    return figure


@book_style
def one_pixel(
    times: Sequence[float],
    straight: Sequence[Sequence[float]],
    followed: Sequence[Sequence[float]],
    large: Sequence[tuple[float, float]] = (),
) -> BookFigure:
    """One pixel between noise and a grey: mixed along straight lines, and led by the mean velocity.

    Args:
        times: from 1, noise, to 0.
        straight: values at these times, a sequence a mixture.
        followed: likewise, a sequence for each noise that was followed back.
        large: times and values of one that was followed in large steps.
    """
    figure, axes = new_figure(1, 2, height=2.5, sharey=True)
    titles = ("training", "drawing")
    for axis, paths, title, colour in zip(axes, (straight, followed), titles, (ORANGE, BLUE), strict=True):
        for path in paths:
            axis.plot(times, path, color=colour, linewidth=1)
        axis.set_title(title, loc="left")
        axis.set(xlim=(0, 1), yticks=[-1, 0, 1], xlabel="time t")
        axis.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    if large:
        dashes = {
            "color": "black",
            "linewidth": 2,
            "linestyle": (0, (3, 1.5)),
            "marker": "o",
            "markersize": 5,
        }
        axes[1].plot(*zip(*large, strict=True), **dashes)
    axes[0].set_ylabel("the pixel")
    return figure


@book_style
def neighbourhoods(ratios: Mapping[str, Float[Tensor, "rows columns"]], reach: int = 4) -> BookFigure:
    """How many times chance attention goes to each pixel around the next one: a panel a head.

    Args:
        ratios: from a panel's title to weight over chance by rows up and columns right, the next pixel's
            own row first, its column in the middle.
        reach: how many rows up and columns to each side are drawn.
    """
    columns = 2
    rows = -(-len(ratios) // columns)
    figure, axes = new_figure(rows, columns, height=1.3 * rows + 1.2, squeeze=False)
    image = None
    for axis in axes.flat:
        axis.set_axis_off()
    for axis, (title, ratio) in zip(axes.flat, ratios.items(), strict=False):
        middle = ratio.shape[1] // 2
        near = ratio[: reach + 1, middle - reach : middle + reach + 1].flip(0).numpy()
        near = np.where(np.isnan(near), np.nan, np.clip(near, 1 / 8, 8))  # the ends of the scale
        image = axis.imshow(
            np.log2(near), vmin=-3, vmax=3, extent=(-reach - 0.5, reach + 0.5, -0.5, reach + 0.5)
        )
        axis.set_axis_on()
        axis.plot([0], [0], marker="s", color=RED, markersize=8)
        axis.set_title(title, loc="left")
        axis.set(xticks=range(-reach, reach + 1, 2), yticks=range(0, reach + 1, 2))
        axis.tick_params(length=0)
    for axis in axes[:, 0]:
        axis.set_ylabel("rows up")
    for axis in axes[-1]:
        axis.set_xlabel("columns right")
    if image is not None:
        bar = figure.colorbar(image, ax=list(axes.flat), orientation="horizontal", shrink=0.7, pad=0.04)
        bar.set_ticks([-3, -2, -1, 0, 1, 2, 3], labels=["⅛", "¼", "½", "1", "2", "4", "8"])
        bar.set_label("times chance")
    return figure


def as_pictures(pixels: Float[Tensor, "B 1 height width"], known: int | None = None) -> list[Tensor]:
    """Each image without its channel, and blank from pixel `known` on."""
    flat = pixels.flatten(1).clone()
    if known is not None:
        flat[:, known:] = torch.nan
    return list(flat.view(len(pixels), *pixels.shape[2:]))


@book_style
def probe_depths(curves: Mapping[str, Sequence[Sequence[float]]], pixels: float) -> BookFigure:
    """What a probe names at each depth, in per cent: a line a run, and the pixels as a dotted one.

    The axis begins at 60%. What is named before the first block, where that is less, is written at its foot.

    Args:
        curves: from a model, three at most, to its runs, each the shares named before the first block and
            after each. The last model is drawn dashed, for it is the control.
        pixels: the share named by the same probe on the pixels.
    """
    figure, axis = new_figure(height=3.2)
    looks = [(BLUE, "o-"), (ORANGE, "-"), (GREY, "s--")]
    last = list(curves)[-1]
    for (name, runs), (colour, line) in zip(curves.items(), looks[: len(curves)], strict=True):
        colour, line = looks[2] if name == last else (colour, line)
        for i, run in enumerate(runs):
            y = [100 * share for share in run[1:]]
            label = name if i == 0 else None
            axis.plot(range(1, len(run)), y, line, color=colour, markersize=4, linewidth=1.3, label=label)
    axis.axhline(100 * pixels, color=RED, linewidth=1, linestyle=(0, (1, 2)), label="the pixels")
    before = [100 * run[0] for runs in curves.values() for run in runs]
    axis.text(0, 60.8, f"{sum(before) / len(before):.0f}%", ha="center", va="bottom", color=GREY)
    axis.plot([0], [60], "v", color=GREY, markersize=5, clip_on=False)
    depths = max(len(run) for runs in curves.values() for run in runs)
    axis.set_xticks(range(depths), ["before", *(str(m) for m in range(1, depths))])
    axis.set(xlabel="after block", ylabel="recognised (%)", ylim=(60, 96), xlim=(-0.7, depths - 0.7))
    legend_above(axis)
    return figure
