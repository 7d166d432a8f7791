"""The figures on a transformer that learns to add modulo p."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.ticker
from matplotlib.axes import Axes

from tformer_book.kit.plot_style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    BookFigure,
    book_style,
    legend_above,
    new_figure,
)

LOOKS = {  # colour and dashes of each line
    "shown pairs": (GREY, "-"),
    "unseen pairs": (BLUE, "-"),
    "restricted": (GREEN, "--"),
    "restricted (unseen)": (PURPLE, "-."),
    "excluded": (RED, ":"),
    "power in key": (ORANGE, "-"),
    "weight length": (BLACK, "--"),
}
Curves = Mapping[str, Sequence[Sequence[float]]]


def _draw(axis: Axes, steps: Sequence[int], curves: Curves) -> None:
    """Each name's runs: the first bold, the others thin."""
    for name, runs in curves.items():
        colour, dashes = LOOKS[name]
        for i, run in enumerate(runs):
            style: dict[str, Any] = (
                {"linewidth": 2.0, "label": name} if i == 0 else {"linewidth": 0.9, "alpha": 0.6}
            )
            axis.plot(steps, run, linestyle=dashes, color=colour, **style)


@book_style
def grokking_curves(
    panels: Mapping[str, tuple[Sequence[int], Curves]], *, height: float = 1.45
) -> BookFigure:
    """Accuracy on shown and unseen pairs by step: a panel for each setting, a line for each run.

    Args:
        panels: from a setting to the steps at which its runs were measured, and to its curves: from a name of
            `LOOKS` to the runs.
        height: inches, of a panel.
    """
    figure, axes = new_figure(len(panels), 1, height=height * len(panels) + 0.4, sharex=True, squeeze=False)
    for axis, (title, (steps, curves)) in zip(axes[:, 0], panels.items(), strict=True):
        _draw(axis, steps, curves)
        axis.set_title(title, loc="left")
        axis.set_ylim(-0.04, 1.06)
        axis.yaxis.set_major_locator(matplotlib.ticker.FixedLocator([0, 0.5, 1]))
    axes[len(panels) // 2, 0].set_ylabel("accuracy")
    axes[-1, 0].set_xlabel("steps")
    legend_above(*axes[:, 0])
    return figure


@book_style
def grokking_spectra(
    panels: Mapping[str, Sequence[float]], key: Sequence[int], *, height: float = 1.35
) -> BookFigure:
    """The share of the power in each frequency from 1 on, a panel each, key frequencies in colour.

    Args:
        panels: from a title to the shares of the frequencies 1, 2, ...
        key: the frequencies that are coloured, and named in the last panel.
        height: inches, of a panel.
    """
    figure, axes = new_figure(len(panels), 1, height=height * len(panels) + 0.4, sharex=True, squeeze=False)
    for axis, (title, shares) in zip(axes[:, 0], panels.items(), strict=True):
        places = range(1, len(shares) + 1)
        axis.bar(places, shares, color=[ORANGE if k in key else GREY for k in places])
        axis.set_title(title, loc="left")
        axis.set_ylim(0, 1.12 * max(shares))
        axis.yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(2))
    axes[-1, 0].xaxis.set_major_locator(matplotlib.ticker.FixedLocator(sorted(key)))
    axes[len(panels) // 2, 0].set_ylabel("share of power")
    axes[-1, 0].set_xlabel("frequency $k$")
    return figure


@book_style
def grokking_progress(
    steps: Sequence[int], losses: Curves, measures: Curves, *, height: float = 4.6
) -> BookFigure:
    """Above losses by step, on a logarithmic axis; below what else moves, each as a share of its largest.

    Args:
        steps: at which the run was measured.
        losses: from a name of `LOOKS` to the runs, in nats.
        measures: likewise.
        height: inches.
    """
    figure, axes = new_figure(2, 1, height=height, sharex=True, height_ratios=[2, 1])
    _draw(axes[0], steps, losses)
    axes[0].set_yscale("log")
    axes[0].set_ylabel("loss (nats)")
    largest = {name: max(max(run) for run in runs) for name, runs in measures.items()}
    _draw(axes[1], steps, {n: [[x / largest[n] for x in run] for run in rs] for n, rs in measures.items()})
    axes[1].set_ylim(0, 1.06)
    axes[1].set_ylabel("of largest")
    axes[1].set_xlabel("steps")
    legend_above(*axes)
    return figure
