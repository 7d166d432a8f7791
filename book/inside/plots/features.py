"""The figures of probes, superposition and sparse autoencoders."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D

from tformer_book.kit.plot_style import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    RED,
    SKY,
    BookFigure,
    book_style,
    legend_above,
    new_figure,
)

LOOKS = {"trained": (BLUE, "o-"), "untrained": (GREY, "s--"), "control": (RED, "^:")}
NAMES = {"trained": "the model", "untrained": "untrained model", "control": "random labels"}


@book_style
def probes_by_depth(
    accuracy: Mapping[str, Mapping[str, Sequence[Sequence[float]]]], majority: Mapping[str, float]
) -> BookFigure:
    """A panel a task: accuracy of a probe at the embedding and after each block, a thin line a seed.

    Args:
        accuracy: from a task to "trained", "untrained" and "control", each with the accuracies by depth of
            each seed.
        majority: from a task to the accuracy of the most frequent class.
    """
    figure, axes = new_figure(len(accuracy), height=1.55 * len(accuracy) + 0.6, sharex=True)
    axes = np.atleast_1d(axes)
    for axis, (task, found) in zip(axes, accuracy.items(), strict=True):
        for kind, seeds in found.items():
            colour, line = LOOKS[kind]
            axis.plot(
                range(len(seeds[0])),
                np.mean(seeds, axis=0),
                line,
                color=colour,
                markersize=5,
                label=NAMES[kind],
            )
            for one in seeds:
                axis.plot(range(len(one)), one, color=colour, linewidth=0.8, alpha=0.6)
        axis.axhline(majority[task], color=BLACK, linewidth=1, linestyle=(0, (1, 3)), label="commonest class")
        axis.set(title=task, ylim=(0, 1.04), yticks=[0, 0.5, 1])
    depths = len(next(iter(next(iter(accuracy.values())).values()))[0])
    axes[-1].set_xticks(range(depths), ["letters", *(str(m) for m in range(1, depths))])
    axes[-1].set_xlabel("after block")
    figure.supylabel("accuracy")
    legend_above(*axes)
    return figure


@book_style
def phase_picture(
    shared: Sequence[Sequence[float]],
    densities: Sequence[float],
    importances: Sequence[float],
    boundary: tuple[Sequence[float], Sequence[float]],
) -> BookFigure:
    """In how many of three seeds two features lie opposite, over density and importance, and the boundary.

    Args:
        shared: for each density a row with a share for each importance.
        densities: of the rows.
        importances: of the columns.
        boundary: densities and importances of the points of the derived line.
    """
    figure, axis = new_figure(height=3.6)
    # Discs in rings, the larger the more seeds: of two tints of blue a dark page would not keep the order.
    ring: dict[str, Any] = {"marker": "o", "linestyle": "", "markeredgecolor": BLACK, "markeredgewidth": 0.8}
    ring |= {"markerfacecolor": "none", "markersize": 9}
    disc: dict[str, Any] = {"marker": "o", "linestyle": "", "markeredgecolor": "none", "markerfacecolor": SKY}
    sizes = (0.0, 3.0, 5.5, 9.0)  # by how many of the three
    cells: list[list[tuple[float, float]]] = [[] for _ in sizes]
    for p, row in zip(densities, shared, strict=True):
        for r, share in zip(importances, row, strict=True):
            cells[round(3 * share)].append((p, r))
    for size, places in zip(sizes[1:], cells[1:], strict=True):
        axis.plot(*np.reshape(places, (-1, 2)).T, **disc, markersize=size)
    axis.plot(*np.array([*chain(*cells)]).T, **ring)
    axis.plot(*boundary, color=RED)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks([0.02, 0.1, 0.5, 1], ["0.02", "0.1", "0.5", "1"])
    axis.set_xticks([], minor=True)
    axis.set_yticks([0.05, 0.1, 0.3, 1], ["0.05", "0.1", "0.3", "1"])
    axis.set_yticks([], minor=True)
    axis.set(xlabel="density δ (how often a feature is active)", ylabel="importance r of the second")
    held = ("opposite in no seed", "in one of three", "in two of three", "in all three")
    present = [i for i, places in enumerate(cells) if places]
    circle = Line2D([], [], **ring)
    dots: list[Any] = [(Line2D([], [], **disc, markersize=sizes[i]), circle) for i in present]
    legend = figure.legend(
        [*dots, axis.lines[-1]],
        [*(held[i] for i in present), "derived: δ*"],
        handler_map={tuple: HandlerTuple(ndivide=1)},
        loc="outside upper left",
        ncols=2,
        handlelength=1.0,
    )
    legend.set_in_layout(True)
    return figure


@book_style
def code_cost(
    kept: Sequence[int], bits: Sequence[Sequence[float]], whole: float, mean: float, zero: float
) -> BookFigure:
    """Bits per letter with an MLP's activations replaced by their reconstruction, against features in use.

    Args:
        kept: k of each autoencoder.
        bits: for each k one number a seed.
        whole: bits of the model as it is.
        mean: with each neuron at its mean.
        zero: with each neuron at zero.
    """
    figure, axis = new_figure(height=3.3)
    axis.plot(kept, [float(np.mean(b)) for b in bits], "-", color=BLUE, label="reconstruction")
    for k, values in zip(kept, bits, strict=True):
        axis.plot([k] * len(values), values, "o", color=BLUE, markersize=4)
    for level, colour, dash, name in (
        (zero, ORANGE, "-.", "zero"),
        (mean, RED, "--", "mean"),
        (whole, BLACK, ":", "untouched"),
    ):
        axis.axhline(level, color=colour, linestyle=dash, linewidth=1.5, label=name)
    axis.set_xscale("log", base=2)
    axis.set_xticks(kept, [str(k) for k in kept])
    axis.set(xlabel="features in use for a letter", ylabel="bits per letter")
    legend_above(axis)
    return figure
