"""The figures of the chapter on the transformer."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from torch import Tensor

from tformer_book.kit.plot_style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    BookFigure,
    book_style,
    legend_above,
    new_figure,
)


def squares(axis: Axes, title: str, table: Bool[Tensor, "N S"], xlabel: str) -> None:
    """A table of squares with white lines between them, filled where it is True."""
    edges = [[i - 0.5 for i in range(size + 1)] for size in reversed(table.shape)]
    colours = ListedColormap(["#EEEEEE", BLUE])
    axis.pcolormesh(
        *edges, table.int().numpy(force=True), cmap=colours, vmin=0, vmax=1, edgecolor="white", linewidth=2
    )
    axis.set(title=title, aspect="equal", xticks=range(table.shape[1]), yticks=range(table.shape[0]))
    axis.set_ylim(table.shape[0] - 0.5, -0.5)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.set_xlabel(xlabel)


@book_style
def dependence(panels: Mapping[str, Bool[Tensor, "N S"]]) -> BookFigure:
    """Which input each output depends on: a square filled where it does, outputs down, inputs across."""
    sizes = [table.shape[1] for table in panels.values()]
    figure, axes = new_figure(1, len(panels), height=2.5, sharey=True, width_ratios=sizes)
    for axis, (title, table) in zip(axes, panels.items(), strict=True):
        squares(axis, title, table, "input")
    axes[0].set_ylabel("output")
    return figure


@book_style
def learning_curves(
    train: Sequence[float],
    held_out: Mapping[int, float],
    rates: Sequence[float],
    lines: Mapping[str, float],
) -> BookFigure:
    """Training and held-out loss against the step, above the learning rate of each step.

    Args:
        train: the loss of each step.
        held_out: from a step to the held-out loss measured there.
        rates: the learning rate of each step.
        lines: from a name to a loss drawn as a dotted line, such as that of a baseline.
    """
    figure, (top, bottom) = new_figure(2, 1, height=3.8, sharex=True, height_ratios=(3, 1))
    top.plot(range(len(train)), train, color=SKY, linewidth=1, label="training, each step")
    top.plot(list(held_out), list(held_out.values()), color=BLUE, marker="o", label="held out")
    for name, value in lines.items():
        top.axhline(value, color=GREY, linestyle=":", linewidth=1.5)
        top.text(1.01, value, name, color=GREY, va="center", transform=top.get_yaxis_transform())
    top.set_ylabel("loss (nats per character)")
    top.legend(loc="upper right", bbox_to_anchor=(1.0, 0.88))
    bottom.plot(range(len(rates)), rates, color=RED)
    bottom.set(xlabel="training step", ylabel="learning rate", ylim=(0, 1.1 * max(rates)))
    return figure


@book_style
def signal_by_width(
    widths: Sequence[int], scores: Mapping[str, Sequence[float]], added: Mapping[str, Sequence[float]]
) -> BookFigure:
    """Standard deviation of the scores, and of what attention adds, against the width, for each rule."""
    figure, (top, bottom) = new_figure(2, 1, height=5.0, sharex=True)
    for (label, values), colour, marker in zip(scores.items(), (RED, BLUE), "os", strict=True):
        top.loglog(widths, values, color=colour, marker=marker, label=label)
        bottom.loglog(widths, added[label], color=colour, marker=marker)
    top.set_ylabel("std. dev. of a score")
    top.legend(loc="lower right")
    bottom.set_ylabel("std. dev. of what\nattention adds")
    bottom.set_xlabel("width $D$")
    bottom.set_xticks(list(widths), [f"{w:,}" for w in widths])
    bottom.set_xticks([], minor=True)
    top.set_yticks([0.03, 0.1, 0.3, 1], ["0.03", "0.1", "0.3", "1"])
    bottom.set_yticks([0.003, 0.01, 0.03, 0.1, 0.3], ["0.003", "0.01", "0.03", "0.1", "0.3"])
    for axis in (top, bottom):
        axis.set_yticks([], minor=True)
    return figure


@book_style
def plateau(
    panels: Mapping[str, Mapping[str, Sequence[Sequence[float]]]], every: int, unigram: float
) -> BookFigure:
    """Loss against step on a logarithmic axis, a line for each seed, with the unigram's loss dotted.

    Args:
        panels: from a title to its runs: from a label to one list for each seed, a loss every so many steps.
        every: the number of steps between two entries.
        unigram: the loss of knowing how frequent each character is.
    """
    figure, axes = new_figure(len(panels), 1, height=2.5 * len(panels), sharex=True, sharey=True)
    labels = list(dict.fromkeys(label for runs in panels.values() for label in runs))
    colours = dict(zip(labels, (RED, BLUE, PURPLE), strict=False))
    for axis, (title, runs) in zip(axes, panels.items(), strict=True):
        axis.axhline(unigram, color=GREY, linestyle=":", linewidth=1.5)
        for label, losses in runs.items():
            for seed, loss in enumerate(losses):
                steps = [every * (i + 1) for i in range(len(loss))]
                axis.semilogx(steps, loss, color=colours[label], linewidth=1.4, label=None if seed else label)
        axis.set_title(title, loc="left")
        axis.set_ylabel("loss (nats\nper character)")
    axes[0].text(4000, unigram + 0.03, "unigram", color=GREY, ha="right", va="bottom")
    axes[-1].set_xlabel("training step")
    legend_above(*axes)
    ticks = (50, 200, 1000, 4000)
    axes[-1].set_xticks(ticks, [f"{step:,}" for step in ticks])
    axes[-1].set_xticks([], minor=True)
    return figure


@book_style
def leaving(
    runs: Mapping[str, Sequence[float]],
    ends: Mapping[str, tuple[float, float]],
    unigram: float,
    every: int = 25,
) -> BookFigure:
    """Training loss of two runs against the step, the unigram's dotted, and held-out losses at the end.

    Args:
        runs: from a label to the loss of each step; the mean of every so many is drawn.
        ends: from a label to the loss on held-out text as it is, and shuffled.
        unigram: the loss of knowing how frequent each character is.
        every: the number of steps that are averaged.
    """
    figure, axis = new_figure(height=3.0)
    axis.axhline(unigram, color=GREY, linestyle=":", linewidth=1.5)
    for (label, losses), colour in zip(runs.items(), (RED, BLUE), strict=True):
        starts = range(0, len(losses) - every + 1, every)
        means = [sum(losses[i : i + every]) / every for i in starts]
        axis.plot([i + every / 2 for i in starts], means, color=colour, label=label)
        for loss, marker, place in zip(ends[label], "ox", (1.05, 1.1), strict=True):
            axis.plot([place * len(losses)], [loss], color=colour, marker=marker, linestyle="", markersize=7)
    axis.text(
        0.75, unigram, "unigram", color=GREY, ha="right", va="bottom", transform=axis.get_yaxis_transform()
    )
    axis.set(xlabel="training step", ylabel="loss (nats per character)")
    legend_above(axis)
    return figure


@book_style
def components(counts: Mapping[str, Mapping[str, int]]) -> BookFigure:
    """One bar for each model, divided into the shares of its components."""
    figure, axis = new_figure(height=0.32 * len(counts) + 1.5)
    names = list(counts)
    parts = list(next(iter(counts.values())))
    left = torch.zeros(len(names))
    for part, colour in zip(parts, (ORANGE, PURPLE, BLUE, SKY, BLACK, GREEN), strict=True):
        share = torch.tensor([counts[n][part] / sum(counts[n].values()) for n in names])
        axis.barh(range(len(names)), share, left=left, color=colour, label=part, height=0.75)
        left = left + share
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.set(xlim=(0, 1), xlabel="share of the parameters", ylabel="")
    axis.tick_params(axis="y", length=0)
    legend_above(axis)
    return figure
