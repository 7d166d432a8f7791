"""The figures of the chapter on long sequences."""

from collections.abc import Mapping, Sequence

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

COLOURS = {  # one colour for one way of attending
    "full": BLACK,
    "delta": ORANGE,
    "linear": GREEN,
    "linear, one wide head": GREEN,
    "window": RED,
    "low-rank": PURPLE,
}
DASHES = {"linear, one wide head": "--"}  # of two of one colour
UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def bytes_in_words(number: int | float) -> str:
    """1500000 -> "1.5 MB"."""
    for size, unit in UNITS:
        if number >= size:
            return f"{number / size:g} {unit}"
    return f"{number:g} B"


def _lengths(axis: Axes, lengths: Sequence[int]) -> None:
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    every = lengths if len(lengths) < 6 else lengths[::2]
    axis.set_xticks(every, [f"{n:,}" for n in every])
    axis.set_xticks([], minor=True)


@book_style
def caches(lengths: Sequence[int], sizes: Mapping[str, Sequence[float]]) -> BookFigure:
    """Bytes that are kept of the past against its length, both axes logarithmic."""
    figure, axis = new_figure(height=3.6)
    looks = ((BLACK, "o-"), (BLACK, "s-"), (BLACK, "D-"), (RED, "--"), (GREEN, "-"))
    for (name, values), (colour, line) in zip(sizes.items(), looks, strict=False):
        axis.plot(lengths, values, line, color=colour, markersize=5, label=name)
    _lengths(axis, lengths)
    axis.yaxis.set_major_formatter(lambda x, _: bytes_in_words(x))
    axis.set(xlabel="tokens read", ylabel="memory kept")
    legend_above(axis)
    return figure


@book_style
def recall_by_pairs(accuracy: Mapping[str, Mapping[int, Sequence[float]]], chance: float) -> BookFigure:
    """Share of right answers against the number of pairs: a dot a seed, a line through the means.

    Args:
        accuracy: from the name of a way of attending to the accuracies of the seeds for each number of pairs.
        chance: the accuracy of guessing.
    """
    figure, axis = new_figure(height=3.8)
    pairs = sorted({p for found in accuracy.values() for p in found})
    for name, found in accuracy.items():
        means = [sum(found[p]) / len(found[p]) for p in pairs]
        axis.plot(pairs, means, DASHES.get(name, "-"), color=COLOURS[name], label=name)
        dots = "none" if name in DASHES else "full"  # so that dots of one colour are told apart, too
        for p in pairs:
            axis.plot([p] * len(found[p]), found[p], "o", color=COLOURS[name], markersize=4, fillstyle=dots)
    axis.axhline(chance, color=GREY, linestyle=":", linewidth=1.2, label="chance")
    axis.set_xscale("log", base=2)
    axis.set_xticks(pairs, [str(p) for p in pairs])
    axis.set_xticks([], minor=True)
    axis.set(xlabel="pairs to remember", ylabel="share of right answers", ylim=(0, 1.04))
    legend_above(axis)
    return figure


RULES = {"last": (RED, "-"), "sinks": (BLACK, "--"), "heavy": (PURPLE, "-."), "random": (GREY, ":")}


@book_style
def evicted(bits: Mapping[str, Mapping[int, Sequence[float]]], full: Sequence[float]) -> BookFigure:
    """What a small cache costs under each rule: dots for groups of texts, lines through their means.

    Args:
        bits: from a rule to the bits of each group of texts, for each budget.
        full: the bits of the same groups with all keys.
    """
    figure, axis = new_figure(height=3.4)
    for rule, by_budget in bits.items():
        colour, line = RULES[rule]
        lost = {b: [x - y for x, y in zip(found, full, strict=True)] for b, found in by_budget.items()}
        means = [sum(found) / len(found) for found in lost.values()]
        axis.plot(list(lost), means, line, color=colour, label=rule)
        for budget, found in lost.items():
            axis.plot([budget] * len(found), found, "o", color=colour, markersize=4)
    axis.axhline(0, color=GREY, linewidth=1)
    axis.set_xscale("log", base=2)
    axis.set_xticks(list(lost), [str(budget) for budget in lost])
    axis.set_xticks([], minor=True)
    axis.set(xlabel="keys kept", ylabel="bits lost")
    legend_above(axis)
    return figure


LANGUAGE = COLOURS | {"indexer": BLUE}


@book_style
def bits_by_place(
    bits: Mapping[str, Sequence[Sequence[float]]], buckets: Sequence[tuple[int, int]]
) -> BookFigure:
    """Bits per token against how many tokens were read before: a dot a seed, a line through the means.

    Args:
        bits: from the name of a way of attending to the bits of each seed, bucket by bucket.
        buckets: the first and the last place of each.
    """
    figure, axis = new_figure(height=3.6)
    places = range(len(buckets))
    for name, seeds in bits.items():
        means = [sum(values) / len(values) for values in zip(*seeds, strict=True)]
        axis.plot(places, means, color=LANGUAGE[name], label=name)
        for seed in seeds:
            axis.plot(places, seed, "o", color=LANGUAGE[name], markersize=4)
    axis.set_xticks(places, [f"{first}-{last}" for first, last in buckets])
    axis.set(xlabel="tokens read before", ylabel="bits per token")
    legend_above(axis)
    return figure


@book_style
def bits_of_each(bits: Mapping[str, Sequence[float]], label: str) -> BookFigure:
    """A row for each way of attending, a dot for each seed: bits per token."""
    figure, axis = new_figure(height=0.8 + 0.36 * len(bits))
    for row, values in enumerate(bits.values()):
        axis.plot(values, [row] * len(values), "o", color=BLUE, markersize=6, alpha=0.7)
    axis.set_yticks(range(len(bits)), list(bits))
    axis.invert_yaxis()
    axis.grid(axis="y", linewidth=0.6)
    axis.set(xlabel=label)
    return figure
