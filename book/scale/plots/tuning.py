"""The figures on choosing a batch size and a learning rate before the large run."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.ticker
import numpy as np
from matplotlib.axes import Axes

from tformer_book.kit.plot_style import (
    BLUE,
    GREEN,
    ORANGE,
    RED,
    BookFigure,
    book_style,
    legend_above,
    new_figure,
)

COLOURS = (BLUE, RED, GREEN, ORANGE)
DASHES = ("-", "--", "-.", ":")


def _plain(axis: Axes, x: Sequence[Any] = (), y: Sequence[Any] = ()) -> None:
    """Logarithmic axes with these ticks, written as plain numbers."""
    for which, ticks in ((axis.xaxis, x), (axis.yaxis, y)):
        if len(ticks):
            which.set_major_locator(matplotlib.ticker.FixedLocator(list(ticks)))
            which.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
        which.set_minor_locator(matplotlib.ticker.NullLocator())


@book_style
def noise_by_step(
    runs: Mapping[str, Sequence[tuple[Sequence[int], Sequence[float]]]], *, height: float = 2.8
) -> BookFigure:
    """The noise scale by step, on two logarithmic axes: a colour for each name, a thin line for each run.

    Args:
        runs: from a name to its runs: steps (counted from 1), and noise scales in examples.
        height: inches.
    """
    figure, axis = new_figure(height=height)
    for (name, each), colour, dashes in zip(runs.items(), COLOURS, DASHES, strict=False):
        for i, (steps, scales) in enumerate(each):
            axis.plot(
                steps, scales, dashes, marker="o", markersize=3, linewidth=1.2, color=colour,
                label=name if i == 0 else None,
            )  # fmt: skip
    axis.set_xscale("log")
    axis.set_yscale("log")
    _plain(axis, x=(1, 10, 100, 1000), y=(1, 3, 10, 30, 100, 300))
    axis.set_xlabel("step")
    axis.set_ylabel("noise scale (windows)")
    legend_above(axis)
    return figure


@book_style
def batch_trade_off(
    measured: Mapping[str, Sequence[tuple[int, Sequence[float]]]],
    curves: Mapping[str, tuple[float, float]],
    *,
    height: float = 3.4,
) -> BookFigure:
    """Examples against steps to the same loss: a point for each run, the hyperbola for each loss.

    Args:
        measured: from a name to its batch sizes, each with the steps of its runs.
        curves: from the same names to S_min and E_min.
        height: inches.
    """
    figure, axis = new_figure(height=height)
    for (name, points), colour, mark in zip(measured.items(), COLOURS, "os^D", strict=False):
        for i, (batch, steps) in enumerate(points):
            axis.plot(
                steps, [batch * s for s in steps], mark, color=colour, markersize=5, alpha=0.7,
                label=name if i == 0 else None,
            )  # fmt: skip
            if name == list(measured)[-1]:
                most = float(np.max(steps))
                axis.annotate(str(batch), (most, batch * most), (10, 7), textcoords="offset points")
        least_steps, least_examples = curves[name]
        batches = np.geomspace(points[0][0], points[-1][0], 60)
        curve = least_steps + least_examples / batches
        axis.plot(curve, batches * curve, "-", linewidth=1.4, color=colour)
    axis.set_xscale("log")
    axis.set_yscale("log")
    _plain(axis, x=(100, 200, 500, 1000, 2000), y=(2000, 5000, 10_000, 20_000))
    axis.set_xlabel("steps to the loss")
    axis.set_ylabel("examples")
    legend_above(axis)
    return figure


@book_style
def rates_by_width(
    rates: Sequence[float],
    losses: Mapping[str, Mapping[int, Sequence[Sequence[float | None]]]],
    *,
    top: float,
    height: float = 5.6,
) -> BookFigure:
    """Loss against learning rate, a panel for each parametrisation, a line for each width.

    Lines are means over the seeds, dots the seeds, a star the best mean.

    Args:
        rates: the learning rates.
        losses: from a panel's title to its widths, each with the losses of each seed; or None.
        top: the largest loss that is drawn.
        height: inches.
    """
    figure, axes = new_figure(len(losses), 1, height=height, sharex=True, sharey=True, squeeze=False)
    for axis, (title, widths) in zip(axes[:, 0], losses.items(), strict=True):
        for (width, seeds), colour, dashes in zip(widths.items(), COLOURS, DASHES, strict=False):
            values = np.array([[np.nan if v is None else v for v in seed] for seed in seeds], dtype=float)
            mean = values.mean(axis=0)
            axis.plot(rates, mean, dashes, color=colour, linewidth=1.6, label=f"width {width}")
            for seed in values:
                axis.plot(rates, seed, ".", color=colour, markersize=3)
            best = int(np.nanargmin(mean))
            axis.plot(rates[best], mean[best], "*", color=colour, markersize=13)
        axis.set_title(title, loc="left")
        axis.set_xscale("log", base=2)
        _plain(axis, x=rates[::2])
        axis.set_ylabel("held-out loss (nats)")
    low = axes[0, 0].get_ylim()[0]
    axes[0, 0].set_ylim(low, top)
    axes[-1, 0].set_xlabel(r"learning rate $\eta$")
    legend_above(*axes[:, 0])
    return figure


@book_style
def growth_by_width(
    widths: Sequence[int], changes: Mapping[str, Mapping[str, Sequence[float]]], *, height: float = 3.0
) -> BookFigure:
    """How far activations move in a few steps, by width: a panel for each parametrisation.

    Args:
        widths: of the models.
        changes: from a panel's title to its activations, each with the root mean square of its change at
            each width.
        height: inches.
    """
    figure, axes = new_figure(1, len(changes), height=height, sharey=True, squeeze=False)
    for axis, (title, lines) in zip(axes[0], changes.items(), strict=True):
        for (name, values), colour, dashes in zip(lines.items(), COLOURS, DASHES, strict=False):
            axis.plot(widths, values, dashes, marker="o", markersize=4, color=colour, label=name)
        axis.set_title(title, loc="left")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        _plain(axis, x=widths, y=(0.1, 0.2, 0.5, 1, 2, 5))
        axis.set_xlabel("width $D$")
    axes[0, 0].set_ylabel("change (RMS)")
    legend_above(*axes[0])
    return figure
