"""Boxes, arrows and tables of squares: what the book's diagrams are drawn with."""

from jaxtyping import Bool
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import FancyBboxPatch
from torch import Tensor

from tformer_lib.book.plots.style import BLACK, BLUE, GREY

Point = tuple[float | int, float | int]
EMPTY = "#EEEEEE"
IN, STATE, OUT = "#CFE8F5", "#EEEEEE", "#FBE3C0"  # light enough for black type


def box(axis: Axes, x: float | int, y: float | int, text: str, colour: str, width: float = 0.86) -> None:
    """A box with text in it, centred at (x, y)."""
    corner, height = (x - width / 2, y - 0.3), 0.6
    style = "round,pad=0,rounding_size=0.1"
    axis.add_patch(FancyBboxPatch(corner, width, height, boxstyle=style, facecolor=colour, edgecolor=GREY))
    axis.text(x, y, text, ha="center", va="center")


def arrow(axis: Axes, start: Point, end: Point, colour: str = BLACK) -> None:
    """An arrow from one point to another."""
    axis.annotate(
        "",
        end,
        start,
        arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.2, "shrinkA": 0, "shrinkB": 0},
    )


def squares(axis: Axes, title: str, table: Bool[Tensor, "N S"], xlabel: str) -> None:
    """A table of squares with white lines between them, filled where it is True."""
    edges = [[i - 0.5 for i in range(size + 1)] for size in reversed(table.shape)]
    colours = ListedColormap([EMPTY, BLUE])
    axis.pcolormesh(
        *edges, table.int().numpy(force=True), cmap=colours, vmin=0, vmax=1, edgecolor="white", linewidth=2
    )
    axis.set(title=title, aspect="equal", xticks=range(table.shape[1]), yticks=range(table.shape[0]))
    axis.set_ylim(table.shape[0] - 0.5, -0.5)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.set_xlabel(xlabel)
