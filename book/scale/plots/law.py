"""The figures on scaling laws: loss by size at fixed compute, the best size, and how sure that is."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.ticker
import numpy as np
from matplotlib.axes import Axes

from tformer_book.kit.plot_style import (
    BLACK,
    BLUE,
    CYCLE,
    GREY,
    ORANGE,
    RED,
    BookFigure,
    book_style,
    legend_above,
    new_figure,
)

MARKERS = "osD^vPX"
Numbers = Sequence[float]
Curve = tuple[Numbers, Numbers, Callable[[Any], Any], float]  # sizes, losses, the parabola, its best size


def _short(value: float, _: Any = None) -> str:
    """10k, 3M."""
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def _power(value: float) -> str:
    """4.8 x 10^12, as mathtext."""
    power = int(np.floor(np.log10(value)))
    return rf"${value / 10**power:.2g}\times10^{{{power}}}$"


def _sizes_across(axis: Axes) -> None:
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter(_short)
    axis.xaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())


@book_style
def isoflop_curves(
    curves: Mapping[str, Curve], *, hollow: Mapping[str, Curve] | None = None, height: float = 3.4
) -> BookFigure:
    """Loss by size, a colour and a marker for each compute, with its parabola and a star at the lowest point.

    Args:
        curves: from a compute, in words, to the sizes, their losses, the parabola and its best size.
        hollow: likewise, drawn with hollow markers and a dashed line: what was not fitted.
        height: inches.
    """
    figure, axis = new_figure(height=height)
    both = {**curves, **(hollow or {})}
    for i, (name, (sizes, losses, parabola, best)) in enumerate(both.items()):
        colour, outside = CYCLE[i % len(CYCLE)], name not in curves
        face = "none" if outside else colour
        axis.plot(sizes, losses, MARKERS[i % 7], color=colour, markersize=6, label=name, markerfacecolor=face)
        x = np.geomspace(min(*sizes, best) / 1.15, max(*sizes, best) * 1.15, 80)
        axis.plot(x, parabola(x), "--" if outside else "-", color=colour, linewidth=1.2)
        axis.plot([best], parabola([best]), "*", color=BLACK, markersize=10, zorder=5)
    _sizes_across(axis)
    axis.set_xlabel("parameters $P$")
    axis.set_ylabel("loss (nats a character)")
    legend_above(axis)
    return figure


@book_style
def best_sizes(
    compute: Numbers,
    best: Numbers,
    samples: Sequence[Callable[[float], float]],
    law: Callable[[float], float],
    *,
    beyond: float | None = None,
    found: Mapping[str, tuple[float, float, float]] | None = None,
    since: float = 0.0,
    level: float = 0.9,
    height: float = 2.5,
) -> BookFigure:
    """The best size by compute, the power law through it, and the band of its resampled fits.

    Args:
        compute: the budgets that were fitted.
        best: the lowest point at each.
        samples: power laws of resampled fits; the band holds the middle share `level` of them.
        law: the power law.
        beyond: a budget that was not fitted, up to which the law is drawn.
        found: sizes at that budget, each from its name to the size and the two ends of its bar.
        since: the smallest budget that is shown; if positive, the budgets are the ticks.
        level: of the band.
        height: inches.
    """
    figure, axis = new_figure(height=height)
    shown = [(c, size) for c, size in zip(compute, best, strict=True) if c >= since]
    budgets = [c for c, _ in shown] + ([beyond] if beyond else [])
    x = np.geomspace(min(budgets) / 1.3, max(budgets) * 1.3, 60)
    drawn = np.array([[sample(c) for c in x] for sample in samples])
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    axis.fill_between(x, low, high, color=BLUE, alpha=0.25, linewidth=0, label=f"{level:.0%} of fits")
    inside = x <= max(compute) * (1.05 if beyond else 2)
    axis.plot(x[inside], [law(c) for c in x[inside]], color=BLUE, label="power law")
    axis.plot(x[~inside], [law(c) for c in x[~inside]], ":", color=BLUE)
    axis.plot(*zip(*shown, strict=True), "*", color=BLACK, markersize=10, label="lowest point", zorder=4)
    apart = 1 + 0.05 * len(found or {})  # so that bars stand side by side
    for i, (name, (size, start, end)) in enumerate((found or {}).items()):
        assert beyond is not None, "what was found stands at the budget beyond"
        look: dict[str, Any] = {"color": (ORANGE, RED, GREY)[i % 3], "markersize": 9, "zorder": 5}
        axis.errorbar(
            [beyond * apart ** (i - (len(found or {}) - 1) / 2)],
            [size],
            [[size - start], [end - size]],
            fmt="sD^"[i % 3],
            label=name,
            elinewidth=2,
            **look,
        )
    axis.set_xscale("log")
    axis.set_yscale("log")
    if since:
        axis.set_xticks(budgets, [_power(c) for c in budgets])
        axis.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
        axis.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    axis.yaxis.set_major_formatter(_short)
    axis.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    axis.set_xlabel("compute $C$ (FLOPs)")
    axis.set_ylabel("best size $P$")
    legend_above(axis)
    return figure


@book_style
def exponents(
    values: Numbers, interval: tuple[float, float], marks: Mapping[str, float], *, height: float = 2.2
) -> BookFigure:
    """How often each exponent came out of resampled fits, its interval, and the exponents of others.

    Args:
        values: an exponent for each sample.
        interval: drawn as a bar.
        marks: from a name to an exponent, each a dashed line.
        height: inches.
    """
    figure, axis = new_figure(height=height)
    counts, _, _ = axis.hist(values, bins=24, color=BLUE, alpha=0.55)
    top = float(np.max(counts))
    axis.plot(
        interval, [1.08 * top] * 2, color=BLACK, linewidth=3, solid_capstyle="butt", label="90% interval"
    )
    for (name, value), colour in zip(marks.items(), (RED, ORANGE, GREY), strict=False):
        axis.axvline(value, color=colour, linestyle="--", label=name)
    axis.set_ylim(0, 1.15 * top)
    axis.set_xlabel("exponent $b$ of $P = a\\,C^{b}$")
    axis.set_ylabel("samples")
    legend_above(axis)
    return figure


@book_style
def law_residuals(groups: Mapping[str, tuple[Numbers, Numbers]], *, height: float = 2.8) -> BookFigure:
    """How far each run lies from a law, in percent of its loss, by size.

    Args:
        groups: from a compute, in words, to sizes and to ln(loss) - ln(law).
        height: inches.
    """
    figure, axis = new_figure(height=height)
    for i, (name, (sizes, residuals)) in enumerate(groups.items()):
        axis.plot(
            sizes,
            100 * np.asarray(residuals, float),
            MARKERS[i % 7] + "-",
            color=CYCLE[i % len(CYCLE)],
            linewidth=0.8,
            markersize=6,
            label=name,
        )
    axis.axhline(0, color=GREY, linewidth=1)
    _sizes_across(axis)
    axis.set_xlabel("parameters $P$")
    axis.set_ylabel("off the law (%)")
    legend_above(axis)
    return figure


@book_style
def models_needed(
    counts: Sequence[int], lows: Numbers, highs: Numbers, whole: float, *, height: float = 2.4
) -> BookFigure:
    """Between which exponents most fits to so many runs lie.

    Args:
        counts: how many runs were kept.
        lows: the lower end at each.
        highs: the upper end.
        whole: the exponent from all runs.
        height: inches.
    """
    figure, axis = new_figure(height=height)
    axis.vlines(counts, lows, highs, color=BLUE, linewidth=5)
    axis.axhline(whole, color=BLACK, linestyle="--", linewidth=1.2)
    axis.set_xticks(list(counts))
    axis.set_xlabel("runs kept")
    axis.set_ylabel("exponent")
    return figure
