"""What every figure of the book shares: size, type, colours, and how a notebook shows it."""

import io
from typing import Any

import matplotlib
from cycler import cycler
from IPython.core.getipython import get_ipython
from matplotlib.figure import Figure

DPI = 160
WIDTH = 5.4  # inches; at 330 px, a phone's column, 12 pt type is then still about 10 px tall

# Okabe and Ito's colours: apart for readers with any of the common colour deficiencies.
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, BLACK, GREY = "#CC79A7", "#56B4E9", "#000000", "#767676"
CYCLE = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, BLACK)
HEAT = "cividis"

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=CYCLE),
    "image.cmap": HEAT,
    "image.interpolation": "nearest",
    "figure.facecolor": "white",
    "savefig.bbox": None,  # a figure is as large as it says, whatever is drawn in it
}

# Decorates each function that draws: settings such as a legend's frame are read when it is made.
book_style = matplotlib.rc_context(STYLE)


class BookFigure(Figure):
    """A figure that pyplot does not know of: a cell that ends in it shows it once, at the book's size."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        # Where pyplot is in use, as on Colab, IPython knows another way to show figures, which crops them.
        display = getattr(get_ipython(), "display_formatter", None)
        if display is not None:
            display.formatters["image/png"].for_type(BookFigure, BookFigure._repr_png_)

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with matplotlib.rc_context(STYLE):
            self.savefig(buffer, format="png", dpi=DPI)
        return buffer.getvalue()


def new_figure(
    rows: int = 1, columns: int = 1, *, height: float = 3.2, width: float = WIDTH, **subplots: Any
) -> tuple[BookFigure, Any]:
    """A figure in the book's style and its axes, as `matplotlib.pyplot.subplots` returns them.

    Args:
        rows: panels down; prefer these to columns, since a phone is narrow.
        columns: panels across.
        height: inches.
        width: inches.
        **subplots: passed to `Figure.subplots`, for instance `sharex=True`.
    """
    with matplotlib.rc_context(STYLE):
        figure = BookFigure(figsize=(width, height), layout="constrained")
        return figure, figure.subplots(rows, columns, **subplots)
