"""The figures of the chapter on translation."""

import math
from collections.abc import Mapping, Sequence
from statistics import mean
from textwrap import fill

from jaxtyping import Float
from torch import Tensor

from tformer_book.kit.plot_style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    RED,
    BookFigure,
    book_style,
    legend_above,
    new_figure,
)

LOOKS = {  # colour, marker and name of each system
    "recurrent": (RED, "s", "recurrent"),
    "attention": (GREEN, "^", "+ attention"),
    "transformer": (BLUE, "o", "transformer"),
}


@book_style
def by_length(
    scores: Mapping[str, Sequence[Sequence[float]]],
    groups: Sequence[str],
    measure: str = "BLEU",
    most: float = 100,
) -> BookFigure:
    """A score against the length of the source: a line a system, its bars from the worst run to the best.

    Args:
        scores: from a system, of `LOOKS`, to its runs, each a score a group.
        groups: what the groups of lengths are called, shortest first.
        measure: what the scores are called.
        most: the greatest score that there can be.
    """
    figure, axis = new_figure(height=3.8)
    for i, (name, runs) in enumerate(scores.items()):
        colour, marker, label = LOOKS[name]
        columns = list(zip(*runs, strict=True))
        means = [mean(column) for column in columns]
        below = [m - min(column) for m, column in zip(means, columns, strict=True)]
        above = [max(column) - m for m, column in zip(means, columns, strict=True)]
        places = [k + 0.06 * (i - 1) for k in range(len(groups))]  # so that bars do not overlap
        axis.errorbar(places, means, yerr=[below, above], color=colour, marker=marker, capsize=3, label=label)
    axis.set_xticks(range(len(groups)), list(groups))
    axis.set(xlabel="length of the source (tokens)", ylabel=measure, ylim=(0, 1.02 * most))
    legend_above(axis)
    return figure


@book_style
def redrawn(differences: Float[Tensor, " N"], measured: float) -> BookFigure:
    """How often each difference of two scores comes out on drawn test sets, and the one that was measured.

    Args:
        differences: on each drawn test set, in BLEU.
        measured: the difference on the test set itself.
    """
    figure, axis = new_figure(height=2.9)
    middle, spread = differences.mean().item(), max(differences.std().item(), 0.04)
    bin_width = spread / 4  # so that another training's spread gives the same shape
    low, high = (math.floor((middle + side * 3.5 * spread) / bin_width) for side in (-1, 1))
    edges = [k * bin_width for k in range(min(low, -1), max(high, 1) + 2)]  # zero is an edge
    axis.hist(differences.clamp(edges[0], edges[-1]).tolist(), bins=edges, color=BLUE, label="drawn tests")
    axis.axvline(0, color=BLACK, label="no gain")
    axis.axvline(measured, color=RED, linestyle="--", label="our test")
    axis.set(xlabel="four beams minus greedy (BLEU)", ylabel="drawn tests")
    legend_above(axis)
    return figure


@book_style
def decoding(
    bleu: Mapping[float, Sequence[float]], length: Mapping[float, Sequence[float]], beams: Sequence[int]
) -> BookFigure:
    """BLEU and the length of translations against the number of beams, a line a length penalty.

    Args:
        bleu: from a length penalty to a score a number of beams.
        length: from a length penalty to the translations' length, relative to the references'.
        beams: the numbers of beams.
    """
    figure, (above, below) = new_figure(2, 1, height=5.2, sharex=True)
    colours = (RED, GREEN, BLUE, BLACK)
    for axis, values in ((above, bleu), (below, length)):
        for (penalty, line), colour, marker in zip(values.items(), colours, "s^ov", strict=False):
            axis.plot(beams, line, color=colour, marker=marker, label=f"{penalty:g}")
        axis.set_xscale("log")
    below.set_xticks(list(beams), [str(k) for k in beams])
    below.set_xticks([], minor=True)
    above.set_ylabel("BLEU")
    below.set(xlabel="beams", ylabel="length / reference")
    below.axhline(1.0, color=GREY, linestyle=":", linewidth=1.5)
    legend_above(above, title="length penalty")
    return figure


@book_style
def alignments(
    maps: Mapping[str, Float[Tensor, "T S"]], source: Sequence[str], targets: Mapping[str, Sequence[str]]
) -> BookFigure:
    """Attention weights as maps, one below the other: written tokens down, read tokens across.

    Args:
        maps: from a model's name to its weights, each row summing to one.
        source: the tokens read.
        targets: from a model's name to the tokens that it wrote.
    """
    height = max(0.2 * max(map(len, targets.values())), 1.4) + 1.6
    figure, axes = new_figure(len(maps), 1, height=height * len(maps) + 0.7, squeeze=False)
    for axis, (name, weights) in zip(axes[:, 0], maps.items(), strict=True):
        image = axis.imshow(weights.numpy(force=True), vmin=0, vmax=1, aspect="auto")
        axis.set_title(fill(name, 30), loc="left")
        axis.set_xticks(range(len(source)), list(source), rotation=90)
        axis.set_yticks(range(len(targets[name])), list(targets[name]))
        axis.set(xlabel="English, read", ylabel="German, written")
        axis.spines[:].set_visible(False)
    figure.colorbar(image, ax=list(axes.flat), label="weight", location="bottom", aspect=30, shrink=0.7)
    return figure
