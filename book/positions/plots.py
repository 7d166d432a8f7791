"""The figures of the chapter on positions."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from tformer_book.kit.plot_style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    POSITION_NAMES,
    POSITIONS,
    PURPLE,
    RED,
    BookFigure,
    book_style,
    new_figure,
)

HEADS = ((BLUE, "-"), (RED, "--"), (GREEN, "-."), (PURPLE, ":"))


@book_style
def position_table(table: Float[Tensor, "D N"]) -> BookFigure:
    """A table of positions as a heat map: a position a column, a component a row."""
    figure, axis = new_figure(height=3.6)
    image = axis.imshow(table.numpy(force=True), vmin=-1, vmax=1, aspect="auto")
    axis.set(xlabel="position $n$", ylabel="component of $\\mathbf{p}_n$")
    axis.spines[:].set_visible(False)
    figure.colorbar(image, ax=axis, label="value", ticks=[-1, 0, 1])
    return figure


@book_style
def products_by_offset(tables: Mapping[str, Float[Tensor, "D N"]]) -> BookFigure:
    """For each table the dot products of all pairs of columns, a dot a pair, against their offset."""
    figure, axes = new_figure(len(tables), 1, height=2.4 * len(tables), sharex=True, squeeze=False)
    for axis, (title, table), colour in zip(axes[:, 0], tables.items(), (RED, ORANGE), strict=False):
        n = table.shape[1]
        places = torch.arange(n)
        offset = (places[:, None] - places).flatten()
        axis.plot(offset, (table.T @ table).flatten(), ".", color=colour, markersize=2.5, rasterized=True)
        axis.set_title(title, loc="left")
        axis.set_ylabel(r"$\mathbf{p}_s^\mathsf{T}\mathbf{p}_n$")
    axes[-1, 0].set_xlabel("offset $n - s$")
    return figure


@book_style
def biases(
    panels: Mapping[str, Float[Tensor, "H offsets"]], trained_to: int, lowest: float = -6.0
) -> BookFigure:
    """What is added to a score against how far back the key stands: a panel a method, a line a head.

    Lines leave the picture below `lowest`.
    """
    figure, axes = new_figure(
        len(panels), 1, height=2.7 * len(panels), sharex=True, sharey=True, squeeze=False
    )
    for axis, (title, lines) in zip(axes[:, 0], panels.items(), strict=True):
        for h, (line, (colour, dashes)) in enumerate(zip(lines, HEADS, strict=False), start=1):
            axis.plot(range(lines.shape[1]), line, dashes, color=colour, label=f"head {h}")
        axis.axvline(trained_to - 0.5, color=GREY, linewidth=1, linestyle=":")
        axis.set_title(title, loc="left")
        axis.set_ylabel("bias $b_h$")
    axes[0, 0].set_ylim(bottom=lowest)
    axes[0, 0].text(trained_to - 2, 3, "trained", color=GREY, ha="right")
    axes[-1, 0].legend(loc="lower right", ncols=2, handlelength=2.6)
    axes[-1, 0].set_xlabel("offset $n - s$ (characters)")
    return figure


def _name_at_the_end(axis: Axes, ends: Mapping[str, float]) -> None:
    """Writes each method's name and marker to the right of the axis, where its line ends or just above."""
    low, high = axis.get_ylim()
    place = low
    for name, end in sorted(ends.items(), key=lambda pair: pair[1]):
        colour, marker = POSITIONS[name]
        place = max(end, place)
        right: dict[str, Any] = {"transform": axis.get_yaxis_transform(), "clip_on": False}
        axis.plot([1.03], [place], color=colour, marker=marker, markersize=6, **right)
        axis.text(1.06, place, POSITION_NAMES.get(name, name), va="center", **right)
        place += 0.075 * (high - low)


def _leaves(line: Tensor, positions: Sequence[float], high: float) -> float:
    """Where a line first passes above `high`."""
    after = int((line > high).int().argmax())
    before = max(after - 1, 0)
    share = float((high - line[before]) / (line[after] - line[before])) if after else 0.0
    return positions[before] + share * (positions[after] - positions[before])


def _name_where_it_leaves(axis: Axes, positions: Sequence[float], runs: Mapping[str, Tensor]) -> None:
    """Writes each method's name above the axis, at the place where its mean leaves the picture."""
    high, span = axis.get_ylim()[1], positions[-1] - positions[0]
    places = {name: _leaves(losses.mean(dim=0), positions, high) for name, losses in runs.items()}
    groups: list[list[str]] = []
    for name in sorted(places, key=lambda name: places[name]):
        if groups and places[name] - places[groups[-1][-1]] < 0.1 * span:
            groups[-1].append(name)
        else:
            groups.append([name])
    for i, group in enumerate(groups):
        text, over = ", ".join(POSITION_NAMES.get(name, name) for name in group), axis.get_xaxis_transform()
        x, align = (places[group[0]] + 0.07 * span, "left") if i else (places[group[0]], "center")
        axis.text(x, 1.02, text, transform=over, ha=align, va="bottom")


@book_style
def loss_against_position(
    positions: Sequence[float],
    runs: Mapping[str, Float[Tensor, "seeds P"]],
    trained_to: int,
    zoom: tuple[float, float] | None = None,
) -> BookFigure:
    """Loss against position, each run faint and the mean of runs bold: all of it, and a part again if asked.

    Args:
        positions: the middle of each bin.
        runs: from a method of `POSITIONS` to its losses, a row a seed.
        trained_to: the length L of training, marked by a dotted line.
        zoom: the range of losses of a lower panel.
    """
    panels = 1 if zoom is None else 2
    figure, grid = new_figure(panels, 1, height=3.2 * panels, sharex=True, squeeze=False)
    axes = list(grid[:, 0])
    for axis in axes:
        for name, losses in runs.items():
            colour, marker = POSITIONS[name]
            axis.plot(positions, losses.T, color=colour, linewidth=0.8, alpha=0.5)
            axis.plot(positions, losses.mean(dim=0), color=colour, marker=marker, markersize=6)
        axis.axvline(trained_to + 0.5, color=GREY, linewidth=1, linestyle=":")
        axis.set_ylabel("loss (nats per character)")
    whole, near = axes[0], axes[-1]
    top = max(float(losses.max()) for losses in runs.values())
    whole.text(trained_to - 3, 0.97 * top, "trained", color=GREY, ha="right", va="top")
    near.set_xlabel("characters read")
    near.set_xticks([trained_to * i for i in range(5) if trained_to * i <= max(positions) + trained_to])
    ends = {name: float(losses[:, -1].mean()) for name, losses in runs.items()}
    _name_at_the_end(whole, ends)
    if zoom is None:
        return figure
    near.set_ylim(zoom)
    _name_at_the_end(near, {name: end for name, end in ends.items() if zoom[0] <= end <= zoom[1]})
    leaving = {name: losses for name, losses in runs.items() if bool((losses[:, -1] > zoom[1]).all())}
    _name_where_it_leaves(near, positions, leaving)
    return figure


@book_style
def clamped_hand(speed: float, trained: int, read: int, stops: Sequence[float]) -> BookFigure:
    """The angle of one hand against the offset: as it turns, and standing still beyond the trained length.

    Args:
        speed: w, in radians a place.
        trained: the length of the training; from this offset on a clamped hand stands still.
        read: the length that is read.
        stops: the angles at which it is clamped, in degrees.
    """
    figure, axis = new_figure(height=2.8)
    offsets = torch.arange(read)
    angles = torch.rad2deg(offsets * speed)
    axis.axhspan(0, float(angles[trained - 1]), color=GREY, alpha=0.15, linewidth=0)
    axis.text(0.78 * read, float(angles[trained - 1]) - 8, "angles met in training", ha="right", va="top")
    for turn in range(int(angles[-1] // 360) + 1):  # a line for each time round
        part = (angles // 360).int() == turn
        axis.plot(offsets[part], angles[part] % 360, color=BLUE, linewidth=2)
    axis.text(0.5 * read, 270, "as trained", color=BLUE, ha="right", va="center")
    for stop, (colour, dashes) in zip(stops, HEADS[1:], strict=False):
        held = [trained, read - 1]
        axis.plot(held, [stop, stop], dashes, color=colour, linewidth=2)
        early = math.radians(stop) < trained * speed  # the turning hand is above it at first, below it later
        x, side = (trained + 4, "left") if early else (0.98 * read, "right")
        axis.text(x, stop + 8, f"clamped at {stop:g}°", color=colour, ha=side, va="bottom")
    axis.axvline(trained - 0.5, color=GREY, linewidth=1, linestyle=":")
    axis.set(xlabel="offset $n - s$", ylabel="angle of the hand", ylim=(-12, 372), xlim=(0, read))
    axis.set_xticks(range(0, read + 1, trained))
    axis.set_yticks(range(0, 361, 90), [f"{angle}°" for angle in range(0, 361, 90)])
    return figure
