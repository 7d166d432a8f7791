"""The figures of the laboratory on lenses and attention sinks, of the chapter that looks inside."""

from collections.abc import Mapping, Sequence

import numpy as np

from tformer_book.kit.plot_style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    SKY,
    BookFigure,
    book_style,
    legend_above,
    new_figure,
)

Number = float | int
SEEN = {" ": "\N{OPEN BOX}", "\n": "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}"}  # letters that one cannot see


@book_style
def lens_grid(read: str, named: Sequence[str], shares: Sequence[Sequence[Number]]) -> BookFigure:
    """What a lens names after each block, a row a block from the top down, coloured by its probability.

    Args:
        read: the letters that are read, a column each.
        named: for each number of blocks the letters that are likeliest to come next, as many as `read`.
        shares: their probabilities, (M + 1, N).
    """
    values = np.asarray(shares, dtype=float)
    figure, axis = new_figure(height=0.34 * len(values) + 1.25)
    image = axis.imshow(values, vmin=0, vmax=1, aspect="auto")
    for m, letters in enumerate(named):
        for n, letter in enumerate(letters):
            colour = "black" if values[m, n] > 0.45 else "white"
            axis.text(n, m, SEEN.get(letter, letter), ha="center", va="center", color=colour)
    axis.set_xticks(range(len(read)), [SEEN.get(letter, letter) for letter in read])
    axis.set_yticks(range(len(values)), [str(m) for m in range(len(values))])
    axis.tick_params(length=0)
    axis.set(xlabel="letter that is read", ylabel="blocks")
    figure.colorbar(image, ax=axis, label="probability", location="top", aspect=40, pad=0.04)
    return figure


@book_style
def bits_by_block(
    lenses: Mapping[str, Sequence[Sequence[Number]]], lines: Mapping[str, Number], *, top: float = 5.0
) -> BookFigure:
    """Bits for the next letter, read after 0, 1, ... blocks; a curve of means for each lens, a dot a seed.

    Args:
        lenses: from a name to the bits by block, a sequence for each seed.
        lines: from the name of a table to its bits, drawn as a dotted line.
        top: where the axis ends; what lies above is written at its upper edge.
    """
    figure, axis = new_figure(height=3.6)
    looks = ((BLUE, "o", "-"), (RED, "s", "-"), (GREEN, "^", "--"))
    for (name, seeds), (colour, marker, dashes) in zip(lenses.items(), looks, strict=False):
        values = np.asarray(seeds, dtype=float)
        blocks = np.arange(values.shape[1])
        axis.plot(blocks, values.mean(axis=0), dashes, color=colour, marker=marker, label=name)
        for row in values if len(values) > 1 else ():
            axis.plot(blocks, row, marker, color=colour, markersize=3)
        for m in np.flatnonzero(values.mean(axis=0) > top):
            text = f" ↑ {values[:, m].mean():.1f}"
            axis.text(m, top - 0.02, text, color=colour, va="top")
    for name, value in lines.items():
        axis.axhline(value, color=GREY, linestyle=":", linewidth=1.5)
        axis.text(1.01, value, name, color=GREY, va="center", transform=axis.get_yaxis_transform())
    axis.set_xticks(blocks)
    axis.set(xlabel="blocks before the lens", ylabel="bits per letter", ylim=(1.9, top))
    legend_above(axis)
    return figure


@book_style
def attribution_bars(parts: Mapping[str, Number], total: Number, *, shown: int = 8) -> BookFigure:
    """What the parts of a model add to a logit: a bar for each of the largest, one for all others.

    Args:
        parts: from a part's name to what it adds.
        total: their sum, drawn as the last bar.
        shown: how many parts get a bar of their own.
    """
    order = sorted(parts, key=lambda name: -abs(parts[name]))
    bars = {name: parts[name] for name in order[:shown]}
    rest = order[shown:]
    if rest:
        bars[f"{len(rest)} others"] = sum(parts[name] for name in rest)
    bars["sum"] = total
    figure, axis = new_figure(height=0.32 * len(bars) + 0.8)
    colours = [GREY if name == "sum" else BLUE if value >= 0 else RED for name, value in bars.items()]
    places = range(len(bars))
    axis.barh(places, list(bars.values()), color=colours, height=0.7)
    for y, value in enumerate(bars.values()):
        side, shift = ("left", 0.05) if value >= 0 else ("right", -0.05)
        axis.text(value + shift, y, f"{value:+.1f}".replace("-", "\N{MINUS SIGN}"), va="center", ha=side)
    axis.set_yticks(places, list(bars))
    axis.tick_params(axis="y", length=0)
    axis.invert_yaxis()
    axis.axvline(0, color=GREY, linewidth=1)
    axis.margins(x=0.22)
    axis.set_xlabel("added to the difference of two logits")
    return figure


@book_style
def sinks(
    shares: Mapping[str, Sequence[Sequence[Number]]], largest: Mapping[str, Sequence[Sequence[Number]]]
) -> BookFigure:
    """Two panels by block: how much weight a place gets, and how large the stream's largest entry is there.

    Args:
        shares: from a name to the mean weights by block, a sequence for each seed.
        largest: from a name to the largest entry by block in medians of all entries, likewise.
    """
    figure, axes = new_figure(2, 1, height=4.6, sharex=True)
    looks = ((BLUE, "-"), (ORANGE, "--"), (SKY, ":"))
    for axis, curves in zip(axes, (shares, largest), strict=True):
        for (name, seeds), (colour, dashes) in zip(curves.items(), looks, strict=False):
            values = np.asarray(seeds, dtype=float)
            blocks = np.arange(values.shape[1]) + 1
            for row in values:
                axis.plot(blocks, row, dashes, color=colour, linewidth=0.8)
            axis.plot(blocks, values.mean(axis=0), dashes, color=colour, label=name)
    axes[0].set(ylabel="weight on the place", ylim=(0, 1))
    axes[1].set(ylabel="largest entry\n(medians)", yscale="log", xlabel="block, counted from 1")
    legend_above(*axes)
    return figure
