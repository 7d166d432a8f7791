"""Figures of the chapter on attention."""

from collections.abc import Mapping, Sequence

from jaxtyping import Float
from matplotlib.colors import PowerNorm
from torch import Tensor

from tformer_book.kit.plot_style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    PURPLE,
    RED,
    BookFigure,
    book_style,
    legend_above,
    new_figure,
)


@book_style
def kernel_fits(
    keys: Float[Tensor, " S"],
    values: Float[Tensor, " S"],
    grid: Float[Tensor, " G"],
    truth: Float[Tensor, " G"],
    fits: Mapping[float, Float[Tensor, " G"]],
) -> BookFigure:
    """Noisy samples, the curve behind them, and one kernel regression for each bandwidth."""
    figure, axes = new_figure(len(fits), 1, height=5.4, sharex=True, sharey=True)
    for axis, (bandwidth, fit), colour in zip(axes, fits.items(), (RED, BLUE, PURPLE), strict=False):
        axis.plot(keys, values, ".", color=GREY, markersize=5)
        axis.plot(grid, truth, "--", color=BLACK, linewidth=1.2)
        axis.plot(grid, fit, color=colour)
        axis.set_title(f"bandwidth $h = {bandwidth:g}$", loc="left")
        axis.set_ylabel("value")
    axes[-1].set_xlabel("query")
    return figure


@book_style
def answers_by_bandwidth(
    keys: Float[Tensor, " S"],
    values: Float[Tensor, " S"],
    grid: Float[Tensor, " G"],
    answers: Mapping[str, Float[Tensor, " G"]],
) -> BookFigure:
    """The temperatures of a day as points, and what the soft lookup answers at every hour.

    `answers` goes from a label ("h = 0.5") to a curve, one for each bandwidth.

    Raises:
        ValueError: if there are no curves, or more than four.
    """
    figure, axis = new_figure(height=2.2)
    styles = ((RED, "-"), (BLUE, "--"), (PURPLE, "-."), (BLACK, ":"))
    if not 1 <= len(answers) <= len(styles):
        raise ValueError(f"one to {len(styles)} curves can be told apart, got {len(answers)}")
    for (label, answer), (colour, line) in zip(answers.items(), styles, strict=False):
        axis.plot(grid, answer, line, color=colour, label=label)
    axis.plot(keys, values, "o", color=GREY, markersize=7, zorder=3)
    axis.set_xticks(keys.tolist())
    axis.set(xlabel="hour of the day", ylabel="temperature (°C)")
    legend_above(axis)
    return figure


@book_style
def first_weights(weights: Mapping[str, Float[Tensor, " S"]]) -> BookFigure:
    """One query's weights, the largest first, as bars: a panel for each label, with one vertical axis.

    `weights` goes from a label ("with the root", "without") to the weights of all keys.
    """
    figure, axes = new_figure(1, len(weights), height=2.2, sharey=True, squeeze=False)
    for axis, (label, each) in zip(axes[0], weights.items(), strict=True):
        ordered = each.sort(descending=True).values
        edges = [rank + 0.5 for rank in range(len(ordered) + 1)]
        axis.stairs(ordered.tolist(), edges, fill=True, color=PURPLE)
        axis.set_title(label)
        axis.set_xticks([1, len(ordered) // 2, len(ordered)])
        largest = float(ordered[:2].sum())
        axis.text(0.97, 0.9, f"two largest:\n{largest:.2f}", transform=axis.transAxes, ha="right", va="top")
    axes[0, 0].set_ylabel("weight")
    figure.supxlabel("keys, the largest weight first")
    return figure


@book_style
def arrows(query: Float[Tensor, "2"], keys: Float[Tensor, "S 2"], scores: Float[Tensor, " S"]) -> BookFigure:
    """A query and keys as arrows in the plane, and at each key its score."""
    figure, axis = new_figure(height=2.6)
    named = [("q", query, "", BLUE)]
    pairs = enumerate(zip(keys, scores, strict=True), start=1)
    named += [(f"k_{s}", key, f": {float(score):g}".replace("-", "−"), RED) for s, (key, score) in pairs]
    for name, (x, y), score, colour in ((n, v.tolist(), z, c) for n, v, z, c in named):
        options = {"arrowstyle": "-|>", "mutation_scale": 14, "color": colour, "linewidth": 2}
        axis.annotate("", (x, y), (0, 0), arrowprops=options | {"shrinkA": 0, "shrinkB": 0})
        side = "left" if x > 0 else "right"
        place = {"xytext": (5 if x > 0 else -5, 0), "textcoords": "offset points", "va": "center"}
        axis.annotate(f"$\\mathbf{{{name[0]}}}{name[1:]}${score}", (x, y), ha=side, color=colour, **place)
    points = [(0.0, 0.0), *(vector.tolist() for _, vector, _, _ in named)]
    for limit, along in ((axis.set_xlim, 0), (axis.set_ylim, 1)):
        ends = [point[along] for point in points]
        room = 0.3 if along else 1.3
        limit(min(ends) - room, max(ends) + room)
    axis.set_aspect("equal")
    axis.axhline(0, color=GREY, linewidth=0.8, zorder=0)
    axis.axvline(0, color=GREY, linewidth=0.8, zorder=0)
    axis.set(xticks=[], yticks=[], xlabel="first number of a vector", ylabel="second number")
    axis.spines[:].set_visible(False)
    return figure


@book_style
def shares_by_rate(rates: Sequence[float], shares: Mapping[str, Float[Tensor, "rates runs"]]) -> BookFigure:
    """The share that is right against the learning rate: each run a dot, the mean of runs a line."""
    figure, axis = new_figure(height=2.6)
    styles = ((BLUE, "-", "o"), (RED, "--", "s"))
    for (label, runs), (colour, line, marker) in zip(shares.items(), styles, strict=True):
        axis.plot(rates, runs.mean(dim=1), line, color=colour, label=label)
        for each in runs.T:
            axis.plot(rates, each, marker, color=colour, markersize=5, alpha=0.7)
    axis.set_xscale("log")
    axis.set_xticks(list(rates), [f"{rate:g}" for rate in rates])
    axis.set_xticks([], minor=True)
    axis.set(xlabel="learning rate", ylabel="share right", ylim=(-0.03, 1.05))
    legend_above(axis)
    return figure


@book_style
def who_reads_whom(weights: Mapping[str, Float[Tensor, "N S"]], letters: str) -> BookFigure:
    """The weights of every letter asked (down) over all letters (across), one panel for each label.

    Raises:
        ValueError: if a panel's weights do not have a row and a column for each letter.
    """
    figure, axes = new_figure(1, len(weights), height=2.6, sharey=True, squeeze=False)
    ticks = range(0, len(letters), 5)
    for axis, (label, each) in zip(axes[0], weights.items(), strict=True):
        if each.shape != (len(letters), len(letters)):
            raise ValueError(f"{label}: expected weights for {len(letters)} letters, got {tuple(each.shape)}")
        image = axis.imshow(each.numpy(force=True), norm=PowerNorm(0.5, 0, 1))  # small weights are seen
        axis.set_xticks(ticks, [letters[i] for i in ticks])
        axis.set_yticks(ticks, [letters[i] for i in ticks])
        axis.set_title(label)
        axis.spines[:].set_visible(False)
    axes[0, 0].set_ylabel("letter asked")
    figure.supxlabel("letter of the memory")
    figure.colorbar(image, ax=list(axes[0]), label="weight", shrink=0.8)
    return figure


@book_style
def bandwidth_error(bandwidths: Float[Tensor, " R"], error: Float[Tensor, " R"], noise: float) -> BookFigure:
    """Error of the regression against its bandwidth, with the two limits named."""
    figure, axis = new_figure(height=3.2)
    axis.loglog(bandwidths, error, color=BLUE)
    best = int(error.argmin())
    axis.plot(bandwidths[best], error[best], "o", color=RED)
    axis.annotate(
        f"best: $h = {float(bandwidths[best]):.2f}$",
        (float(bandwidths[best]), float(error[best])),
        xytext=(0, -16),
        textcoords="offset points",
        ha="center",
        color=RED,
    )
    axis.axhline(noise, color=GREY, linestyle=":", linewidth=1.5)
    axis.text(float(bandwidths[0]), noise * 1.04, "the noise in one value", color=GREY)
    axis.set(xlabel="bandwidth $h$ (units of the query)", ylabel="RMS error (units of the value)")
    axis.set_ylim(bottom=float(error.min()) * 0.72)
    axis.set_yticks([0.1, 0.2, 0.4, 0.8], ["0.1", "0.2", "0.4", "0.8"])
    axis.set_yticks([], minor=True)
    axis.set_xticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
    return figure


@book_style
def effective_keys(
    spread: Float[Tensor, " R"], measured: Float[Tensor, " R"], predicted: Float[Tensor, " R"], n_keys: int
) -> BookFigure:
    """How many keys a query effectively reads, against the standard deviation of its scores."""
    figure, axis = new_figure(height=3.4)
    axis.semilogy(spread, predicted, "--", color=GREY, label=r"$S\,e^{-\sigma^2/2}$")
    axis.semilogy(spread, measured, color=BLUE, label="measured")
    axis.set_ylim(0.8, n_keys * 1.3)
    axis.set_yticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
    axis.set_yticks([], minor=True)
    axis.set(xlabel=r"standard deviation $\sigma$ of the scores", ylabel="effective number of keys")
    axis.legend()
    return figure


@book_style
def score_scale(
    widths: Sequence[int],
    runs: Mapping[str, Sequence[tuple[Float[Tensor, " n"], Float[Tensor, ""]]]],
) -> BookFigure:
    """Spread of the scores and gradient at the query (median, tenth to ninetieth percentile) against Dh.

    `runs` goes from a label ("plain", "scaled") to (gradients, spread of the scores), a pair for each width.
    """
    figure, (top, bottom) = new_figure(2, 1, height=5.6, sharex=True)
    for (label, measured), colour, marker in zip(runs.items(), (RED, BLUE), "os", strict=True):
        gradients, spread = zip(*measured, strict=True)
        top.loglog(widths, spread, marker=marker, color=colour, label=label)
        low, middle, high = zip(*(g.quantile(g.new_tensor([0.1, 0.5, 0.9])) for g in gradients), strict=True)
        bottom.loglog(widths, middle, marker=marker, color=colour)
        bottom.fill_between(widths, low, high, color=colour, alpha=0.25, linewidth=0)
    top.set_ylabel("std. dev. of a score")
    top.set_yticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
    top.set_yticks([], minor=True)
    top.legend()
    bottom.set_ylabel("gradient at the query")
    bottom.set_ylim(1e-5, 100)
    bottom.set_yticks([1e-4, 1e-2, 1, 100], ["0.0001", "0.01", "1", "100"])
    bottom.set_yticks([], minor=True)
    bottom.set_xlabel("width $D_h$ of queries and keys")
    bottom.set_xticks(list(widths), [f"{w:,}" for w in widths])
    bottom.set_xticks([], minor=True)
    return figure


@book_style
def accuracy_by_length(
    lengths: Sequence[int], accuracy: Mapping[str, Float[Tensor, "runs L"]], trained_to: int
) -> BookFigure:
    """Share of sequences without a mistake against their length: each run faint, the mean of runs bold."""
    figure, axis = new_figure(height=3.5)
    styles = ((RED, "o"), (BLUE, "s"), (GREEN, "^"))
    for (label, runs), (colour, marker) in zip(accuracy.items(), styles, strict=False):
        axis.plot(lengths, runs.T, color=colour, linewidth=0.8, alpha=0.5)
        axis.plot(lengths, runs.mean(dim=0), color=colour, marker=marker, label=label)
    axis.axvline(trained_to, color=GREY, linewidth=1)
    axis.text(trained_to - 0.3, 0.5, "longest trained", color=GREY, ha="right")
    axis.set(xlabel="length of the sequence (symbols)", ylabel="exact matches (share)", ylim=(-0.03, 1.05))
    legend_above(axis)
    return figure


@book_style
def alignment(weights: Float[Tensor, "N S"], source: Sequence[str], target: Sequence[str]) -> BookFigure:
    """Attention weights as a map: written words down, read words across, each row summing to one."""
    figure, axis = new_figure(height=2.9)
    image = axis.imshow(weights.numpy(force=True), vmin=0, vmax=1)
    axis.set_xticks(range(len(source)), source, rotation=90)
    axis.set_yticks(range(len(target)), target)
    axis.set(xlabel="English, read", ylabel="German, written")
    axis.spines[:].set_visible(False)
    figure.colorbar(image, ax=axis, label="weight", shrink=0.8)
    return figure
