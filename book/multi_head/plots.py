"""The figures of the chapter on multi-head self-attention."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tformer_book.kit.plot_style import (
    BLACK,
    BLUE,
    GREY,
    RED,
    BookFigure,
    book_style,
    new_figure,
)

THIN: dict[str, Any] = {"linewidth": 1.2, "alpha": 0.7}
THICK: dict[str, Any] = {"linewidth": 3, "linestyle": (0, (2, 1.5)), "zorder": 3}


@book_style
def error_curves(steps: Sequence[int], curves: Mapping[int, Tensor], floor: float) -> BookFigure:
    """Normalised error against training step, a thin line per seed; runs that stay with one head's are thick.

    Args:
        steps: the steps at which the error was taken.
        curves: from a number of heads to its errors, (seeds, steps).
        floor: the error that one head cannot pass if its weights ignore contents, drawn dashed.
    """
    figure, axis = new_figure(height=3.3)
    names = {1: "one head", 2: "two heads"}
    for (n_heads, errors), colour in zip(curves.items(), (RED, BLUE), strict=False):
        name, n = names.get(n_heads, f"{n_heads} heads"), len(errors)
        stuck = (errors[:, -1] > 0.9 * floor) & (n_heads > 1)
        for lines, style in ((errors[~stuck], THIN), (errors[stuck], THICK)):
            of = f"{len(lines)} of {n}" if len(lines) < n else f"{n}"
            for i, line in enumerate(lines):
                label = f"{name}, {of} seeds" if i == 0 else None
                axis.plot(steps, line.tolist(), color=colour, label=label, **style)
    axis.axhline(floor, color=GREY, linestyle="--", linewidth=1.5)
    words = "bound if weights\nignore contents"
    axis.text(steps[-1], floor - 0.02, words, color=GREY, ha="right", va="top", linespacing=1.1)
    axis.set(xlabel="training step", ylabel="error / predicting zero", ylim=(-0.03, 1.12))
    axis.legend(loc="upper right", bbox_to_anchor=(1.0, 1.04))
    return figure


@book_style
def query_weights(rows: Mapping[str, Tensor], tokens: Sequence[str]) -> BookFigure:
    """How much the query reads from each token: a heat map with a row per head, numbers in the cells.

    Args:
        rows: from a head's name to its weights, (S,).
        tokens: a name for each token.
    """
    figure, axis = new_figure(height=0.55 * len(rows) + 1.3)
    weights = torch.stack(list(rows.values())).numpy()
    axis.imshow(weights, vmin=0, vmax=1, aspect="auto")
    for i, row in enumerate(weights.tolist()):
        for j, value in enumerate(row):
            colour = "black" if value > 0.5 else "white"
            text = f"{value:.2f}" if value >= 0.005 else "0"
            axis.text(j, i, text, ha="center", va="center", color=colour)
    axis.set_xticks(range(len(tokens)), tokens)
    axis.set_yticks(range(len(rows)), list(rows))
    axis.set_xlabel("token the query reads (its marker)")
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    return figure


@book_style
def attention_cost(lengths: Sequence[int], d_model: int, milliseconds: Sequence[float]) -> BookFigure:
    """Above, the FLOPs of the layer's two parts against N; below, the time measured.

    Args:
        lengths: sequence lengths N.
        d_model: the width D; the parts are 8 N D^2 (projections) and 4 N^2 D (scores and mixing).
        milliseconds: the time of one forward pass at each length.
    """
    figure, (above, below) = new_figure(2, height=5.2, sharex=True)
    n = torch.tensor(lengths, dtype=torch.float64).numpy()
    above.loglog(n, 8 * n * d_model**2, color=BLUE, marker="o", markersize=4, label="projections, $8ND^2$")
    above.loglog(n, 4 * n**2 * d_model, color=RED, marker="o", markersize=4, label="pairs, $4N^2D$")
    above.axvline(2 * d_model, color=GREY, linestyle="--", linewidth=1.2)
    above.text(2.15 * d_model, 16 * d_model**2 * lengths[0], "$N=2D$", color=GREY)
    above.set_ylabel("FLOPs")
    above.legend(loc="upper left")
    below.loglog(n, milliseconds, color=BLACK, marker="o", markersize=4, label="measured")
    guide = milliseconds[-1] * (n / n[-1]) ** 2
    below.loglog(n[-4:], 0.4 * guide[-4:], color=RED, linestyle="--", label="slope 2")
    below.axvline(2 * d_model, color=GREY, linestyle="--", linewidth=1.2)
    below.set(xlabel="sequence length $N$", ylabel="time (ms)")
    below.set_xticks(lengths[::2], [f"{length:,}" for length in lengths[::2]])
    below.minorticks_off()
    below.legend(loc="upper left")
    return figure


@book_style
def attention_map(weights: Tensor) -> BookFigure:
    """One head's weights (N, S) as a heat map, queries down and keys across."""
    figure, axis = new_figure(height=3.8)
    image = axis.imshow(weights.numpy(), vmin=0, vmax=1)
    ticks = range(0, weights.shape[0], 5)
    axis.set_xticks(ticks)
    axis.set_yticks(ticks)
    axis.set(xlabel="key: place in the input", ylabel="query: place in the output")
    figure.colorbar(image, label="attention weight", shrink=0.9)
    return figure
