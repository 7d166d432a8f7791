"""The figures of the chapter on GPT."""

import math
from collections.abc import Mapping, Sequence

from jaxtyping import Float
from torch import Tensor

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
Curve = tuple[Sequence[Number], Sequence[Number]]


@book_style
def learning(
    training: Mapping[str, Curve], held_out: Mapping[str, Curve], lines: Mapping[str, float]
) -> BookFigure:
    """Bits per character against characters read, a curve for each model and dots where it was examined.

    Args:
        training: from a model's name to (characters read, bits per character of what was read).
        held_out: from the same names to (characters read, bits per character of held-out text).
        lines: from a name to bits, drawn as a dotted line.
    """
    figure, axis = new_figure(height=3.4)
    for (name, (read, bits)), (colour, marker) in zip(
        training.items(), ((BLUE, "o"), (RED, "s")), strict=False
    ):
        axis.plot(read, bits, color=colour, linewidth=1.4, label=f"{name}, training")
        axis.plot(*map(list, held_out[name]), marker, color=colour, markersize=8, label=f"{name}, held out")
    beside = axis.get_yaxis_transform()
    lowest = min(lines.values())
    for name, value in lines.items():
        axis.axhline(value, color=GREY, linestyle=":", linewidth=1.5)
        side = "top" if value == lowest else "center"
        axis.text(1.02, value + 0.02, name, color=GREY, va=side, transform=beside)
    axis.set(xlabel="characters read (thousands)", ylabel="bits per character", ylim=(1.9, 6.8))
    legend_above(axis)
    return figure


@book_style
def ladder(groups: Mapping[str, Mapping[str, float]]) -> BookFigure:
    """Bits per character, a dot a model, in groups of one colour; the axis begins half a bit below the least.

    Args:
        groups: from a group's title to its rungs: from a model's name to its bits.
    """
    values = [value for rungs in groups.values() for value in rungs.values()]
    left = math.floor(2 * min(values)) / 2 - 0.5
    figure, axis = new_figure(height=0.32 * len(values) + 0.2 * len(groups) + 0.9)
    place = 0.0
    places: list[float] = []
    names: list[str] = []
    looks = ((GREY, "o"), (SKY, "D"), (BLUE, "s"), (ORANGE, "^"))
    for (title, rungs), (colour, marker) in zip(groups.items(), looks, strict=False):
        at = [place + i for i in range(len(rungs))]
        axis.hlines(at, left, list(rungs.values()), color=GREY, linewidth=0.8, linestyle=":")
        axis.plot(list(rungs.values()), at, marker, color=colour, markersize=9, label=title)
        for y, value in zip(at, rungs.values(), strict=True):
            axis.annotate(f"{value:.2f}", (value, y), xytext=(9, 0), textcoords="offset points", va="center")
        places, names, place = places + at, names + list(rungs), place + len(rungs) + 0.5
    axis.set_yticks(places, names)
    axis.invert_yaxis()
    axis.tick_params(axis="y", length=0)
    axis.set(xlabel="bits per character, held out", xlim=(left, left + (max(values) - left) * 1.25))
    legend_above(axis)
    return figure


@book_style
def reach(
    panels: Mapping[str, tuple[Sequence[int], Sequence[Number], Mapping[str, Number]]],
) -> BookFigure:
    """Bits per character against how many are read, a panel for each kind of character.

    Args:
        panels: from a title to (characters read, bits of the network, and from the name of a table to its
            bits, which are drawn as dotted lines).
    """
    figure, axes = new_figure(len(panels), 1, height=1.5 * len(panels) + 0.5, sharex=True)
    for axis, (title, (read, bits, lines)) in zip(axes, panels.items(), strict=True):
        axis.plot(read, list(bits), color=BLUE, marker="o", label="GPT")
        for (name, value), colour in zip(lines.items(), (GREY, RED), strict=False):
            axis.axhline(value, color=colour, linestyle=":", linewidth=1.8, label=name)
        axis.set_title(title, loc="left", pad=3)
        axis.set_xscale("log", base=2)
        axis.set_ylabel("bits")
    axes[0].legend()
    axes[-1].set_xticks(list(read), [str(n) for n in read])
    axes[-1].set_xticks([], minor=True)
    axes[-1].set_xlabel("characters that the GPT reads")
    return figure


@book_style
def gains(read: Sequence[int], saved: Mapping[str, tuple[Sequence[Number], Number]]) -> BookFigure:
    """Bits saved by reading further, against how many characters are read, all kinds on one axis.

    Args:
        read: how many characters are read; what is saved is counted from the first of them.
        saved: from a kind of character to its bits, one for each of `read`, and the standard error of the
            last, drawn as a bar.
    """
    figure, axis = new_figure(height=3.3)
    looks = ((BLUE, "o"), (RED, "s"), (GREEN, "^"))
    for (name, (bits, error)), (colour, marker) in zip(saved.items(), looks, strict=False):
        axis.plot(read, list(bits), color=colour, marker=marker, label=name)
        axis.errorbar(read[-1], bits[-1], error, color=colour, capsize=4)
    axis.axhline(0, color=GREY, linewidth=0.8)
    axis.set_xscale("log", base=2)
    axis.set_xticks(list(read), [str(n) for n in read])
    axis.set_xticks([], minor=True)
    axis.set(xlabel="characters that the GPT reads", ylabel=f"bits saved over reading {read[0]}")
    legend_above(axis)
    return figure


@book_style
def rules_tried(
    rules: Mapping[str, Sequence[tuple[Number, Number, str]]], real: tuple[Number, Number]
) -> BookFigure:
    """Texts written under several rules: their known words against how many of them are different.

    Args:
        rules: from a rule to (different words, share of known words, setting), a point for each setting.
        real: the same two numbers of a real text.
    """
    figure, axis = new_figure(height=3.7)
    looks = ((BLUE, "o"), (RED, "s"), (GREEN, "^"), (ORANGE, "D"))
    ends: list[tuple[Number, Number]] = []
    for (name, points), (colour, marker) in zip(rules.items(), looks, strict=False):
        across, up = [x for x, _, _ in points], [100 * y for _, y, _ in points]
        axis.plot(across, up, color=colour, marker=marker, label=name)
        first = across[-1] == min(points[-1][0] for points in rules.values())  # the others are on its right
        x, y, side = (-7, -9, "right") if first else (6, 2, "left")
        if any(abs(across[-1] - a) < 10 and abs(up[-1] - b) < 0.5 for a, b in ends):
            y += 13  # two rules end at one place: their settings stand above each other
        ends.append((across[-1], up[-1]))
        axis.annotate(points[-1][2], (across[-1], up[-1]), (x, y), textcoords="offset points", ha=side)
    axis.plot([real[0]], [100 * real[1]], "*", color=GREY, markersize=15, label="held-out text")
    axis.set(xlabel="different words among 1,000", ylabel="known words (per cent)")
    axis.margins(x=0.14)
    legend_above(axis)
    return figure


@book_style
def next_token(panels: Mapping[str, Float[Tensor, " vocab"]], tokens: Sequence[str]) -> BookFigure:
    """One distribution under several settings: a bar a token, and below the bars what the tokens are.

    Args:
        panels: from a setting to the probabilities of these tokens.
        tokens: how the tokens are written.
    """
    figure, axes = new_figure(len(panels), 1, height=1.45 * len(panels) + 0.5, sharex=True, sharey=True)
    for axis, (title, p) in zip(axes, panels.items(), strict=True):
        values = p.tolist()
        axis.bar(range(len(values)), values, color=[BLUE if v > 0 else GREY for v in values], width=0.75)
        gone = [i for i, v in enumerate(values) if v == 0]
        if gone:
            axis.plot(gone, [0.02] * len(gone), "x", color=RED, markersize=7, markeredgewidth=2)
        axis.set_title(title, loc="left", pad=3)
        axis.set_ylabel("$p$")
        axis.locator_params(axis="y", nbins=4)
    axes[-1].set_xticks(range(len(tokens)), list(tokens))
    axes[-1].set_xlabel("next token, likely first (× cannot come)")
    return figure


@book_style
def cuts(
    panels: Mapping[str, tuple[Sequence[str], Sequence[float], Mapping[str, int]]],
) -> BookFigure:
    """The likeliest tokens as bars, and below them, a row a rule, which of them the rule keeps.

    Args:
        panels: from a title to the tokens, likely first, their probabilities, and from a rule to how many
            tokens it keeps, counted from the likeliest; an arrow says that it keeps more than are drawn.
    """
    figure, axes = new_figure(len(panels), 1, height=2.5 * len(panels), squeeze=False)
    looks = ((RED, "s"), (GREEN, "^"), (ORANGE, "D"))
    for axis, (title, (tokens, values, kept)) in zip(axes[:, 0], panels.items(), strict=True):
        axis.bar(range(len(tokens)), values, color=BLUE, width=0.75)
        step = 0.17 * max(values)
        for row, ((rule, count), (colour, marker)) in enumerate(zip(kept.items(), looks, strict=False)):
            drawn = list(range(min(count, len(tokens))))
            height = -(row + 0.8) * step
            axis.plot(drawn, [height] * len(drawn), color=colour, marker=marker, markersize=6)
            words = f"{rule}: {count}" + (" →" if count > len(tokens) else "")
            axis.text(1.02, height, words, color=colour, va="center", transform=axis.get_yaxis_transform())
        axis.axhline(0, color=GREY, linewidth=0.8)
        axis.set_ylim(-(len(kept) + 0.5) * step, 1.08 * max(values))
        axis.set_yticks([tick for tick in axis.get_yticks() if 0 <= tick <= 1.08 * max(values)])
        axis.set_xticks(range(len(tokens)), list(tokens))
        axis.set_title(title, loc="left", pad=3)
        axis.set_ylabel("probability")
    axes[-1, 0].set_xlabel("next letter, likeliest first")
    return figure


@book_style
def token_time(
    lengths: Sequence[int],
    seconds: Mapping[str, Sequence[float]],
    operations: Mapping[str, Sequence[Number]],
) -> BookFigure:
    """Milliseconds for one more token against the length of the text before it, both axes logarithmic.

    Args:
        lengths: how many tokens there are.
        seconds: from a label to one time a length.
        operations: from the same labels to one number of operations a length, drawn dashed, as the time that
            they would take at the speed of the first label's last point.
    """
    figure, axis = new_figure(height=3.6)
    looks = ((RED, "o"), (BLUE, "s"), (GREEN, "^"))
    first = next(iter(seconds))
    each = seconds[first][-1] / operations[first][-1]
    for (label, times), (colour, marker) in zip(seconds.items(), looks, strict=False):
        axis.loglog(lengths, [1000 * t for t in times], color=colour, marker=marker, label=label)
        dashed = [1000 * n * each for n in operations[label]]
        axis.loglog(lengths, dashed, color=colour, linestyle="--", linewidth=1.2)
    axis.set_xticks(list(lengths), [f"{n:,}" for n in lengths])
    axis.set_xticks([], minor=True)
    ticks = [0.01, 0.1, 1, 10, 100, 1000]
    axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_yticks([], minor=True)
    low = 1000 * min(min(map(min, seconds.values())), each * min(map(min, operations.values())))
    high = 1000 * max(map(max, seconds.values()))
    axis.plot([], [], color=GREY, linestyle="--", linewidth=1.2, label="operations alone")
    axis.set(
        xlabel="length of the text (tokens)", ylabel="time for one token (ms)", ylim=(low / 1.6, high * 1.6)
    )
    legend_above(axis)
    return figure
