"""The figures of the chapter on long sequences."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from torch import Tensor

from tformer_lib.book.plots.style import (
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

COLOURS = {  # one colour for one way of attending, in all figures
    "Attend": BLACK,
    "full": BLACK,
    "PyTorch": GREY,
    "tiled": BLUE,
    "blocks": ORANGE,
    "window": RED,
    "low-rank": PURPLE,
    "low-rank, by places": PURPLE,
    "linear": GREEN,
    "linear, causal": GREEN,
}
MARKS = {
    "Attend": "o",
    "PyTorch": "s",
    "tiled": "D",
    "blocks": "^",
    "window": "v",
    "low-rank": "P",
    "linear": "o",
    "linear, causal": "s",
}
DASHES = {"low-rank, by places": "-.", "linear, causal": "--"}  # of two of one colour
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
def patterns(masks: Mapping[str, Tensor]) -> BookFigure:
    """Which keys each query sees, in the text's layout: keys down, queries across; dark is seen.

    Args:
        masks: from a title to a boolean mask in the code's layout, queries down and keys across.
    """
    figure, axes = new_figure(1, len(masks), height=2.6, squeeze=False)
    for axis, (title, mask) in zip(axes[0], masks.items(), strict=True):
        axis.imshow(mask.T.int().numpy(), cmap=ListedColormap(["none", BLUE]), vmin=0, vmax=1)
        axis.set_facecolor("#EEEEEE")
        axis.set_title(title)
        axis.set_xlabel("queries")
        axis.set_xticks([])
        axis.set_yticks([])
    axes[0][0].set_ylabel("keys")
    return figure


@book_style
def costs(
    lengths: Sequence[int], times: Mapping[str, Sequence[float]], memory: Mapping[str, Sequence[float]]
) -> BookFigure:
    """Time (top) and memory (bottom) of a training step against N, both axes logarithmic.

    Args:
        lengths: the values of N.
        times: from the name of a backend to milliseconds.
        memory: from the name of a backend to bytes.
    """
    figure, (top, bottom) = new_figure(2, 1, height=6.2, sharex=True)
    for axis, found in ((top, times), (bottom, memory)):
        for name, values in found.items():
            look = {"color": COLOURS[name], "marker": MARKS[name], "linestyle": DASHES.get(name, "-")}
            axis.plot(lengths, values, **look, markersize=5, linewidth=1.6, label=name)
        _lengths(axis, lengths)
    top.set_ylabel("time (ms)")
    top.yaxis.set_major_formatter(lambda x, _: f"{x:,g}")
    bottom.set(xlabel="length $N$", ylabel="memory")
    bottom.yaxis.set_major_formatter(lambda x, _: bytes_in_words(x))
    legend_above(top)
    return figure


@book_style
def crossing(lengths: Sequence[int], times: Mapping[str, Sequence[float]], expected: float) -> BookFigure:
    """Milliseconds of the MLP and of attention against N; dotted, where their operations are equal."""
    figure, axis = new_figure(height=3.4)
    looks = ((GREEN, "^"), (BLACK, "o"), (GREY, "s"))
    for (name, values), (colour, marker) in zip(times.items(), looks, strict=False):
        axis.plot(lengths, values, color=colour, marker=marker, markersize=5, label=name)
    axis.axvline(expected, color=RED, linestyle=":", linewidth=1.6, label="equal operations")
    _lengths(axis, lengths)
    axis.yaxis.set_major_formatter(lambda x, _: f"{x:,g}")
    axis.set(xlabel="length $N$", ylabel="time (ms)")
    legend_above(axis)
    return figure


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
def recall_by_pairs(
    accuracy: Mapping[str, Mapping[int, Sequence[float]]],
    chance: float,
    visible: Mapping[int, float],
    commonest: Mapping[int, float] | None = None,
) -> BookFigure:
    """Share of right answers against the number of pairs: a dot a seed, a line through the means.

    Args:
        accuracy: from the name of a backend to the accuracies of the seeds for each number of pairs.
        chance: the accuracy of guessing.
        visible: the share of pairs that the window still holds, for each number of pairs.
        commonest: the accuracy of answering the commonest value of a sequence, likewise.
    """
    figure, axis = new_figure(height=3.8)
    pairs = list(visible)
    for name, found in accuracy.items():
        means = [sum(found[p]) / len(found[p]) for p in pairs]
        axis.plot(pairs, means, DASHES.get(name, "-"), color=COLOURS[name], label=name)
        for p in pairs:
            axis.plot([p] * len(found[p]), found[p], "o", color=COLOURS[name], markersize=3.5)
    axis.plot(list(visible), list(visible.values()), "--", color=RED, linewidth=1.0, label="in the window")
    axis.axhline(chance, color=GREY, linestyle=":", linewidth=1.2, label="chance")
    if commonest is not None:
        common = [commonest[p] for p in pairs]
        axis.plot(pairs, common, ":", color=BLACK, linewidth=1.2, label="commonest value")
    axis.set_xscale("log", base=2)
    axis.set_xticks(pairs, [str(p) for p in pairs])
    axis.set_xticks([], minor=True)
    axis.set(xlabel="pairs to remember", ylabel="share of right answers", ylim=(0, 1.04))
    legend_above(axis)
    return figure


@book_style
def recall_by_distance(
    accuracy: Mapping[str, Mapping[int, float]], chance: float, bins: int = 4
) -> BookFigure:
    """Share of right answers against the distance back to the pair, averaged over `bins` distances."""
    figure, axis = new_figure(height=3.6)
    for name, found in accuracy.items():
        groups = [sorted(found)[i : i + bins] for i in range(0, len(found), bins)]
        places = [sum(group) / len(group) for group in groups]
        axis.plot(
            places, [sum(found[d] for d in g) / len(g) for g in groups], color=COLOURS[name], label=name
        )
    axis.axhline(chance, color=GREY, linestyle=":", linewidth=1.2, label="chance")
    axis.set(xlabel="distance to the pair (tokens)", ylabel="share of right answers", ylim=(0, 1.04))
    legend_above(axis)
    return figure
