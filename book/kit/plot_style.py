"""What every figure of the book shares: size, type, colours, and how a notebook shows it."""

import base64
import io
import re
from pathlib import Path
from typing import Any

import font_source_sans_pro
import matplotlib
import numpy as np
from cycler import cycler
from IPython.core.getipython import get_ipython
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from PIL import Image

# A figure is drawn for the width at which it is shown, and all its type is 13 pt: on a wide screen it is
# 432 px across and its type 17 px, as the page's is; in a phone's column of 328 px the type is still 13 px.
WIDTH = 4.5  # inches, of 96 px
DPI = 192  # of the PNG: two pixels for each of the page's
DPI_INSIDE = 144  # of what the SVG holds as pixels
COORDINATES = re.compile(r' (?:d|x|y)="[^"]*"|translate\([^)]*\)')  # in an SVG; scales need all their digits
PHOTOGRAPH = re.compile(
    r"data:image/png;base64,([A-Za-z0-9+/=\s]{16000,})"
)  # the book's heat maps are smaller
DECIMALS = re.compile(r"-?\d*\.\d{3,}(?:e-?\d+)?")
KEPT = "kept"  # the group of the SVG whose colours stay the same on a dark page

# Okabe and Ito's colours: apart for readers with any of the common colour deficiencies.
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, BLACK, GREY = "#CC79A7", "#56B4E9", "#000000", "#767676"
CYCLE = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, BLACK)
HEAT = "cividis"
POSITIONS = {  # one look for each way of telling positions, in every figure
    "learned": (ORANGE, "v"),
    "sinusoidal": (RED, "^"),
    "rotary": (PURPLE, "D"),
    "relative": (GREEN, "s"),
    "alibi": (BLUE, "o"),
    "none": (BLACK, "x"),
}
POSITION_NAMES = {"alibi": "ALiBi", "relative": "relative bias"}

# The face of the site's captions and drawings; DejaVu has the few signs that it lacks.
FACE = ("Source Sans Pro", "DejaVu Sans")
for file in ("Regular", "It", "Bold"):
    fontManager.addfont(Path(font_source_sans_pro.__file__).parent / "files" / f"SourceSansPro-{file}.ttf")

STYLE: dict[Any, Any] = {
    "font.family": FACE,
    "mathtext.fontset": "custom",
    "mathtext.rm": "Source Sans Pro",
    "mathtext.it": "Source Sans Pro:italic",
    "mathtext.bf": "Source Sans Pro:bold",
    "mathtext.cal": "Source Sans Pro:italic",
    "mathtext.fallback": "stixsans",
    "font.size": 13,
    "axes.titlesize": 13,
    "axes.labelsize": 13,
    "figure.labelsize": 13,
    "xtick.labelsize": 13,
    "ytick.labelsize": 13,
    "legend.fontsize": 13,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "legend.columnspacing": 1.2,
    "lines.linewidth": 2.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=CYCLE),
    "image.cmap": HEAT,
    "image.interpolation": "none",  # the SVG then holds an image's own pixels, with sharp edges
    "axes.facecolor": "none",
    "figure.facecolor": "white",
    "savefig.bbox": None,  # a figure is as large as it says, whatever is drawn in it
    "svg.fonttype": "path",  # a figure looks the same whatever type the reader has
    "svg.hashsalt": "tformer",  # the same names inside the file in every run
    "path.simplify_threshold": 0.25,
}

# Decorates each function that draws: settings such as a legend's frame are read when it is made.
book_style = matplotlib.rc_context(STYLE)


def keep_colours(*artists: Artist) -> None:
    """Marks what is drawn on a colour of its own, so that the site leaves it alone on a dark page."""
    for artist in artists:
        artist.set_gid(KEPT)


class BookFigure(Figure):
    """A figure that pyplot does not know of: a cell that ends in it shows it once, at the book's size.

    It shows itself as SVG and as PNG. The SVG is for the page, the PNG for what cannot show an SVG and for
    the tests, which compare it.
    """

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

    def _repr_svg_(self) -> str:
        buffer = io.StringIO()
        with matplotlib.rc_context(STYLE):
            self._keep_what_lies_on_images()
            self.savefig(buffer, format="svg", dpi=DPI_INSIDE, metadata={"Date": None})
        return compact(buffer.getvalue())

    def _keep_what_lies_on_images(self) -> None:
        """Marks writing and lines on an image: their colours were chosen for it, and it stays as it is."""
        self.draw_without_rendering()
        for axis in (*self.axes, *(inset for outer in self.axes for inset in outer.child_axes)):
            areas = [image.get_window_extent() for image in axis.images]
            for artist in (*axis.texts, *axis.lines, *axis.patches, *axis.collections) if areas else ():
                corners = artist.get_window_extent().corners()
                if not np.isfinite(corners).all():  # nothing is drawn
                    continue
                if any(area.contains(*corners.mean(axis=0)) for area in areas):
                    keep_colours(artist)
                    arrow = getattr(artist, "arrow_patch", None)  # an annotation's is a group of its own
                    if arrow is not None:
                        keep_colours(arrow)


def compact(svg: str) -> str:
    """The same picture in fewer bytes.

    Coordinates are given to a hundredth of a point, photographs as JPEG, comments and metadata not at all.
    """
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<!DOCTYPE.*?>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*\n\s*", " ", svg)
    svg = re.sub(r">\s+<", "><", svg)
    svg = PHOTOGRAPH.sub(_as_jpeg, svg)
    return COORDINATES.sub(lambda found: DECIMALS.sub(_to_hundredths, found[0]), svg)


def _as_jpeg(found: re.Match[str]) -> str:
    picture = Image.open(io.BytesIO(base64.b64decode(found[1])))
    if picture.mode == "RGBA" and picture.getchannel("A").getextrema() != (255, 255):
        return found[0]  # JPEG knows no transparency
    buffer = io.BytesIO()
    picture.convert("RGB").save(buffer, format="jpeg", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _to_hundredths(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def legend_above(*axes: Axes, **options: Any) -> None:
    """One legend above all panels, in as many columns as fit; the figure grows by its height.

    Args:
        *axes: whose lines are named, each name once.
        **options: passed to `Figure.legend`, for instance `title`.
    """
    figure = axes[0].get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches()
    names: dict[str, Artist] = {}
    for axis in axes:
        names |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    handles = list(names.values())
    for columns in range(len(names), 0, -1):
        legend = figure.legend(handles, list(names), loc="outside upper left", ncols=columns, **options)
        box = legend.get_window_extent()
        if box.width <= width * figure.dpi or columns == 1:
            break
        legend.remove()
    figure.set_size_inches(width, height + box.height / figure.dpi)


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
