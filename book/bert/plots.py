"""The figures of the chapter on BERT."""

from collections.abc import Mapping, Sequence
from statistics import mean

from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from tformer_book.kit.plot_style import (
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

Number = float | int
Point = tuple[Number, Number]

LOOKS = {  # colour, marker and dashes of what is compared on few labels
    "from scratch": (RED, "s", "-"),
    "Wikipedia": (SKY, "D", "-"),
    "then the task's text": (BLUE, "o", "-"),
    "MiniLM": (PURPLE, "v", "-"),
    "counting words": (GREEN, "^", "--"),
}


@book_style
def learning(
    curves: Mapping[str, Sequence[Point]],
    lines: Mapping[str, float],
    short: Mapping[str, tuple[float, Number, Number]] | None = None,
) -> BookFigure:
    """Held-out loss in nats against the step, logarithmic: a line a run, and dotted lines to compare with.

    Args:
        curves: from the names of up to three runs to measurements, each a step, from 1 on, and a loss.
        lines: from a name to a loss.
        short: from a name to a loss and the two steps between which its line is drawn.
    """
    figure, axis = new_figure(height=3.2)
    looks = ((BLUE, "o"), (SKY, "D"), (BLUE, "^"))
    for (name, points), (colour, marker) in zip(curves.items(), looks, strict=False):
        steps, losses = zip(*points, strict=True)
        axis.plot(steps, losses, color=colour, marker=marker, markersize=5, label=name)
    left = min(step for points in curves.values() for step, _ in points)
    for name, value in lines.items():
        axis.axhline(value, color=GREY, linestyle=":", linewidth=1.5)
        axis.text(left / 1.9, value + 0.04, name, color=GREY, ha="left", va="bottom")
    for name, (value, begin, end) in (short or {}).items():
        axis.plot([begin, end], [value, value], color=GREY, linestyle=":", linewidth=1.5)
        axis.text(begin, value + 0.04, name, color=GREY, ha="left", va="bottom")
    axis.set(xlabel="training step", ylabel="loss at [MASK] (nats)", xscale="log")
    axis.margins(y=0.09)
    axis.set_xlim(left=left / 2)  # where the dotted lines are named
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.xaxis.set_minor_locator(NullLocator())
    legend_above(axis)
    return figure


@book_style
def next_sentence(accuracy: Mapping[str, Mapping[str, float]]) -> BookFigure:
    """Shares of pairs judged correctly: a group of bars for each kind of wrong pair, and the line of chance.

    Args:
        accuracy: from a model's name to its accuracy by kind of pair; the same kinds for all.
    """
    kinds = list(next(iter(accuracy.values())))
    figure, axis = new_figure(height=0.85 * len(kinds) + 1.5)
    width = 0.8 / len(accuracy)
    for i, ((name, values), colour) in enumerate(zip(accuracy.items(), (BLUE, SKY, GREY), strict=False)):
        places = [k + i * width for k in range(len(kinds))]
        axis.barh(places, [values[kind] for kind in kinds], height=0.9 * width, color=colour, label=name)
        for y, kind in zip(places, kinds, strict=True):
            axis.text(values[kind] + 0.01, y, f"{values[kind]:.2f}", va="center")
    axis.axvline(0.5, color=GREY, linestyle=":", linewidth=1.5)
    axis.set_yticks([k + width * (len(accuracy) - 1) / 2 for k in range(len(kinds))], kinds)
    axis.invert_yaxis()
    axis.tick_params(axis="y", length=0)
    axis.set(xlabel="share judged correctly (dotted: chance)", xlim=(0, 0.85))
    legend_above(axis)
    return figure


@book_style
def few_labels(panels: Mapping[str, Mapping[str, Mapping[int, Sequence[float]]]]) -> BookFigure:
    """A score against the number of labels a class, logarithmic: a panel a task, a line a method.

    A marker is the mean over runs, its bar reaches from the worst run to the best.

    Args:
        panels: from a title, which says what the score is, to methods, of `LOOKS`; from a method to the
            numbers of labels a class, and from such a number to the scores of its runs.
    """
    figure, axes = new_figure(len(panels), 1, height=2.4 * len(panels) + 0.4, sharex=True, squeeze=False)
    for axis, (title, methods) in zip(axes[:, 0], panels.items(), strict=True):
        for i, (name, scores) in enumerate(methods.items()):
            colour, marker, dashes = LOOKS[name]
            means = [mean(runs) for runs in scores.values()]
            below = [m - min(runs) for m, runs in zip(means, scores.values(), strict=True)]
            above = [max(runs) - m for m, runs in zip(means, scores.values(), strict=True)]
            places = [n * (1 + 0.04 * (i - 2)) for n in scores]  # so that bars do not overlap
            options = {"color": colour, "marker": marker, "linestyle": dashes, "label": name}
            axis.errorbar(places, means, yerr=[below, above], capsize=3, **options)
        axis.set_title(title, loc="left")
        axis.set_xscale("log")
        axis.tick_params(labelbottom=True)
    numbers = sorted({n for methods in panels.values() for scores in methods.values() for n in scores})
    axes[-1, 0].set_xticks(numbers, [f"{n:,}" for n in numbers])
    axes[-1, 0].set_xticks([], minor=True)
    axes[-1, 0].set_xlabel("labelled sentences a class")
    legend_above(axes[0, 0])
    return figure


@book_style
def heads(shares: Mapping[str, Sequence[float]], names: Sequence[str], cost: Sequence[float]) -> BookFigure:
    """Where each head looks, as a table of shares, and beside it what the loss gains when it is silenced.

    Args:
        shares: from a kind of key to the mean weight that each head puts on it.
        names: of the heads, one a row.
        cost: the rise of the loss in nats without the head.
    """
    figure, (table, bars) = new_figure(1, 2, height=0.42 * len(names) + 2.0, sharey=True, width_ratios=(2, 1))
    table.imshow(list(zip(*shares.values(), strict=True)), vmin=0, vmax=1, aspect="auto")
    for column, values in enumerate(shares.values()):
        for row, value in enumerate(values):
            colour = "white" if value < 0.55 else "black"
            label = f"{100 * value:.0f}"
            table.text(column, row, label, color=colour, ha="center", va="center")
    table.set_xticks(range(len(shares)), list(shares), rotation=60, ha="right", rotation_mode="anchor")
    table.set_yticks(range(len(names)), list(names))
    table.tick_params(length=0)
    table.spines[:].set_visible(False)
    table.set_title("looks at (%)", loc="left")
    bars.barh(range(len(names)), list(cost), color=ORANGE, height=0.7)
    bars.axvline(0, color=GREY, linewidth=1)
    bars.tick_params(axis="y", length=0, labelleft=False)
    bars.set_title("loss\nrises by", loc="left")
    bars.set_xlabel("nats")
    return figure
