"""The figures of the chapter on modern decoders."""

from collections.abc import Mapping, Sequence

import matplotlib
from matplotlib.axes import Axes
from torch import Tensor

from tformer_book.kit.plot_style import (
    BLACK,
    BLUE,
    GREY,
    HEAT,
    ORANGE,
    RED,
    SKY,
    BookFigure,
    book_style,
    legend_above,
    new_figure,
)

TICKS = (0.001, 0.01, 0.1, 1.0)


@book_style
def iterated_maps(values: Tensor, maps: Mapping[str, Tensor], band: tuple[float, float]) -> BookFigure:
    """What becomes of a singular value, for each map; shaded, the band in which the maps may leave it."""
    figure, axis = new_figure(height=3.4)
    axis.axhspan(*band, color=GREY, alpha=0.2, linewidth=0)
    axis.axhline(1.0, color=BLACK, linewidth=1, linestyle=":")
    for colour, (name, results) in zip((GREY, BLUE, RED), maps.items(), strict=False):
        axis.semilogx(values.tolist(), results.tolist(), color=colour, label=name)
    axis.set(xlabel="singular value before", ylabel="singular value after", ylim=(0, 1.35))
    axis.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axis.legend(loc="lower right")
    return figure


@book_style
def spectra(steps: Mapping[str, Tensor]) -> BookFigure:
    """Singular values of each step, from the largest to the smallest, the largest scaled to one."""
    figure, axis = new_figure(height=3.4)
    looks = ((GREY, ":"), (ORANGE, "--"), (BLUE, "-"))
    for (colour, dashes), (name, values) in zip(looks, steps.items(), strict=False):
        sizes = (values / values.max()).tolist()
        axis.semilogy(range(1, len(sizes) + 1), sizes, dashes, color=colour, label=name)
    axis.set(xlabel="singular value, by size", ylabel="size (largest: 1)", ylim=(5e-4, 2))
    axis.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axis.set_yticks([], minor=True)
    axis.legend(loc="lower left")
    return figure


def _rungs(axis: Axes, title: str, names: Sequence[str], rungs: Mapping[str, Sequence[float]]) -> None:
    means = [sum(losses) / len(losses) for losses in rungs.values()]
    places = [names.index(name) for name in rungs]
    axis.axvline(means[0], color=GREY, linestyle=":", linewidth=1.5)
    at = dict(zip(places, means, strict=True))  # the line breaks where a rung is missing
    path = [at.get(place, float("nan")) for place in range(max(places) + 1)]
    axis.plot(path, range(len(path)), color=SKY, linewidth=1.2, zorder=1)
    for place, losses in zip(places, rungs.values(), strict=True):
        for shape, loss in zip("osD^v", losses, strict=False):  # of each seed
            axis.plot([loss], [place], shape, color=BLUE, markersize=4)
    axis.plot(means, places, "|", color=BLACK, markersize=14)
    axis.set_title(title)


@book_style
def ladder(
    at_steps: Mapping[str, Sequence[float]], at_time: Mapping[str, Sequence[float]] | None = None
) -> BookFigure:
    """The loss of each rung, seeds as shapes and means as bars: at equal steps, and at equal processor time.

    Args:
        at_steps: from a rung's name to the loss of each seed, the baseline first.
        at_time: the same rungs when they have used the baseline's time; some may be missing.
    """
    names, panels = list(at_steps), {"at equal steps": at_steps}
    if at_time is not None:
        panels["at equal time"] = at_time
    figure, axes = new_figure(
        1, len(panels), height=0.9 + 0.42 * len(names), sharey=True, sharex=True, squeeze=False
    )
    for axis, (title, rungs) in zip(axes[0], panels.items(), strict=True):
        _rungs(axis, title, names, rungs)
    left = axes[0, 0]
    left.set_yticks(range(len(names)), names)
    left.invert_yaxis()
    figure.supxlabel("held-out loss (nats per character)")
    return figure


@book_style
def race(
    curves: Mapping[str, Sequence[tuple[Sequence[float], Sequence[float]]]],
    goal: float,
    marks: Mapping[str, float],
) -> BookFigure:
    """Held-out loss against processor time, on a logarithmic axis, and who reaches the goal when.

    Args:
        curves: from a name to its runs, each a pair (seconds, losses).
        goal: the loss to be reached, drawn as a dotted line.
        marks: from a name to a time, drawn as a vertical line.
    """
    figure, axis = new_figure(height=3.6)
    for colour, (name, runs) in zip((GREY, BLUE), curves.items(), strict=False):
        for i, (seconds, losses) in enumerate(runs):
            axis.semilogx(seconds, losses, color=colour, linewidth=1.5, label=name if i == 0 else None)
    axis.axhline(goal, color=BLACK, linestyle=":", linewidth=1.2)
    for name, time in marks.items():
        axis.axvline(time, color=RED, linestyle="--", linewidth=1.2)
        axis.annotate(
            name, (time, 1), (4, -2), ("data", "axes fraction"), "offset points", color=RED, va="top"
        )
    axis.set(xlabel="processor time (s)", ylabel="held-out loss\n(nats per character)")
    axis.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axis.legend(loc="lower left", bbox_to_anchor=(0.0, 0.12))
    return figure


@book_style
def accuracy_by_examples(
    accuracy: Mapping[str, Mapping[int, float]], guessing: Mapping[str, float]
) -> BookFigure:
    """Accuracy of each task, a dot for each number of examples in the prompt; tasks down, best first.

    Args:
        accuracy: from a task to its accuracy at each number of examples.
        guessing: what a task's most frequent answer would score, drawn as a bar.
    """
    figure, axis = new_figure(height=1.5 + 0.38 * len(accuracy))
    tasks = sorted(accuracy, key=lambda task: list(accuracy[task].values())[-1])
    shots = list(accuracy[tasks[0]])
    shades = matplotlib.colormaps[HEAT].reversed()
    axis.hlines(range(len(tasks)), 0, 1, color=GREY, linewidth=0.5, alpha=0.5)
    axis.plot(
        [guessing[t] for t in tasks], range(len(tasks)), "|", color=RED, markersize=14, label="one answer"
    )
    for i, n in enumerate(shots):
        axis.plot(
            [accuracy[t][n] for t in tasks],
            range(len(tasks)),
            "o",
            color=shades(0.1 + 0.9 * i / max(1, len(shots) - 1)),
            markersize=5 + 2 * i,
            markeredgecolor="white",
            markeredgewidth=0.5,
            zorder=3 - 0.1 * i,
            label=f"{n} examples" if n != 1 else "1 example",
        )
    axis.set_yticks(range(len(tasks)), tasks)
    axis.set(xlabel="share of right answers", xlim=(-0.03, 1.03))
    legend_above(axis)
    return figure
