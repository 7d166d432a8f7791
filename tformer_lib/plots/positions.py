"""The figures of the chapter on positions."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from tformer_lib.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    BookFigure,
    book_style,
    new_figure,
)

LOOKS = {  # one look for each way of telling positions, in every figure
    "learned": (ORANGE, "v"),
    "sinusoidal": (RED, "^"),
    "rotary": (PURPLE, "D"),
    "relative": (GREEN, "s"),
    "alibi": (BLUE, "o"),
    "none": (BLACK, "x"),
}
NAMES = {"alibi": "ALiBi", "relative": "relative bias"}


@book_style
def position_table(table: Float[Tensor, "D N"]) -> BookFigure:
    """A table of positions as a heat map: a position a column, a component a row."""
    figure, axis = new_figure(height=3.6)
    image = axis.imshow(table, vmin=-1, vmax=1, aspect="auto")
    axis.set(xlabel="position $n$", ylabel="component of $\\mathbf{p}_n$")
    axis.spines[:].set_visible(False)
    figure.colorbar(image, ax=axis, label="value", ticks=[-1, 0, 1])
    return figure


@book_style
def products_by_offset(tables: Mapping[str, Float[Tensor, "D N"]]) -> BookFigure:
    """For each table the dot products of all pairs of columns, a dot a pair, against their offset."""
    figure, axes = new_figure(len(tables), 1, height=2.4 * len(tables), sharex=True, squeeze=False)
    for axis, (title, table), colour in zip(axes[:, 0], tables.items(), (RED, ORANGE), strict=False):
        n = table.shape[1]
        places = torch.arange(n)
        offset = (places[:, None] - places).flatten()
        axis.plot(offset, (table.T @ table).flatten(), ".", color=colour, markersize=2.5)
        axis.set_title(title, loc="left")
        axis.set_ylabel(r"$\mathbf{p}_m^\mathsf{T}\mathbf{p}_n$")
    axes[-1, 0].set_xlabel("offset $m - n$")
    return figure


@book_style
def turned_pairs(
    panels: Mapping[str, tuple[Float[Tensor, " two"], Float[Tensor, " two"]]],
) -> BookFigure:
    """A turned query and a turned key as arrows on the unit circle, a panel for each pair of places."""
    figure, axes = new_figure(1, len(panels), height=2.3, squeeze=False)
    circle = torch.linspace(0, 2 * torch.pi, 181)
    for axis, (title, (query, key)) in zip(axes[0], panels.items(), strict=True):
        axis.plot(circle.cos(), circle.sin(), color=GREY, linewidth=0.8)
        for vector, colour, name in ((query, BLUE, "query"), (key, RED, "key")):
            x, y = vector.tolist()
            axis.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2})
            axis.text(1.3 * x, 1.3 * y, name, color=colour, ha="center", va="center", fontsize=11)
        axis.set_title(title)
        axis.set(xlim=(-1.6, 1.6), ylim=(-1.5, 1.5), aspect="equal")
        axis.set_axis_off()
    return figure


@book_style
def biases(
    panels: Mapping[str, Float[Tensor, "H offsets"]], trained_to: int, lowest: float = -6.0
) -> BookFigure:
    """What is added to a score against how far back the key stands: a panel a method, a line a head.

    Lines leave the picture below `lowest`.
    """
    figure, axes = new_figure(
        len(panels), 1, height=2.7 * len(panels), sharex=True, sharey=True, squeeze=False
    )
    for axis, (title, lines) in zip(axes[:, 0], panels.items(), strict=True):
        for h, (line, colour) in enumerate(zip(lines, (BLUE, RED, GREEN, PURPLE), strict=False), start=1):
            axis.plot(range(lines.shape[1]), line, color=colour, label=f"head {h}")
        axis.axvline(trained_to - 0.5, color=GREY, linewidth=1, linestyle=":")
        axis.set_title(title, loc="left")
        axis.set_ylabel("bias $b_h$")
    axes[0, 0].set_ylim(bottom=lowest)
    axes[-1, 0].legend(loc="lower right", ncols=2)
    axes[-1, 0].set_xlabel("offset $n - s$ (characters)")
    return figure


@book_style
def loss_against_position(
    positions: Sequence[float],
    runs: Mapping[str, Float[Tensor, "seeds P"]],
    trained_to: int,
    zoom: tuple[float, float],
) -> BookFigure:
    """Loss against position, each run faint and the mean of runs bold: all of it, and the lower part again.

    Args:
        positions: the middle of each bin.
        runs: from a method of `LOOKS` to its losses, a row a seed.
        trained_to: the length L of training, marked by a dotted line.
        zoom: the range of losses of the lower panel.
    """
    figure, (whole, near) = new_figure(2, 1, height=6.6, sharex=True)
    for axis in (whole, near):
        for name, losses in runs.items():
            colour, marker = LOOKS[name]
            axis.plot(positions, losses.T, color=colour, linewidth=0.8, alpha=0.5)
            label = NAMES.get(name, name)
            axis.plot(positions, losses.mean(dim=0), color=colour, marker=marker, markersize=5, label=label)
        axis.axvline(trained_to + 0.5, color=GREY, linewidth=1, linestyle=":")
        axis.set_ylabel("loss (nats per character)")
    top = max(float(losses.max()) for losses in runs.values())
    whole.text(trained_to - 3, 0.97 * top, "trained", color=GREY, fontsize=11, ha="right", va="top")
    whole.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    near.set(ylim=zoom, xlabel="position in the sequence")
    near.set_xticks([trained_to * i for i in range(5) if trained_to * i <= max(positions) + trained_to])
    return figure
