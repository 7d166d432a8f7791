"""What every figure shares: one size, one way to be shown, colours that can be told apart."""

import base64
import io
import re
import struct
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import nbclient
import nbformat
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from tformer_book.kit import plot_style as style

ROOT = Path(__file__).parents[3]

MAKE = """
from tformer_book.kit.plot_style import new_figure
figure, axes = new_figure()
axes.plot([1, 3, 2]);
figure
"""


def size(png):
    assert png.startswith(b"\x89PNG")
    return struct.unpack(">II", png[16:24])


@style.book_style
def drawn(**options):
    figure, axes = style.new_figure(**options)
    for ax in np.ravel(axes):
        ax.plot([1, 3, 2], label="a line")
        ax.set_xlabel("tokens")
    return figure


def test_size_and_panels():
    assert size(drawn()._repr_png_()) == (round(style.WIDTH * style.DPI), round(3.2 * style.DPI))
    figure, axes = style.new_figure(2, 3, height=2.0, width=3.0, sharex=True)
    assert axes.shape == (2, 3)
    assert size(figure._repr_png_()) == (576, 384)


def test_what_is_drawn_does_not_change_the_size():
    figure = drawn()
    figure.axes[0].set_title("a title that is a good deal longer than the axes are wide " * 2)
    assert size(figure._repr_png_()) == size(drawn()._repr_png_())


def test_the_same_bytes_every_time_and_whatever_the_reader_has_set():
    first = drawn()._repr_png_()
    with matplotlib.rc_context({"font.size": 30, "savefig.bbox": "tight", "lines.linewidth": 9}):
        assert drawn()._repr_png_() == first
    code = "import sys, tests.book.kit.test_plot_style as t; sys.stdout.buffer.write(t.drawn()._repr_png_())"
    other = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert other.stdout == first


def test_the_svg_is_the_same_every_time_too_and_says_no_date():
    first = drawn()._repr_svg_()
    with matplotlib.rc_context({"svg.hashsalt": None, "svg.fonttype": "none", "font.size": 30}):
        assert drawn()._repr_svg_() == first
    code = "import sys, tests.book.kit.test_plot_style as t; sys.stdout.write(t.drawn()._repr_svg_())"
    other = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert other.stdout.decode() == first
    assert "<text" not in first  # type is drawn: the reader may have other fonts
    assert "date" not in first.lower()


def test_the_svg_is_as_large_as_the_page_shows_it():
    root = ElementTree.fromstring(drawn()._repr_svg_())
    assert (root.get("width"), root.get("height")) == (f"{72 * style.WIDTH:g}pt", f"{72 * 3.2:g}pt")
    assert {value for key, value in style.STYLE.items() if str(key).endswith("size")} == {13}


def test_the_svg_has_short_numbers_and_nothing_moves_by_more_than_a_hundredth():
    buffer = io.StringIO()
    figure = drawn()
    with matplotlib.rc_context(style.STYLE):
        figure.savefig(buffer, format="svg")
    long, short = buffer.getvalue(), figure._repr_svg_()
    assert len(short) < 0.85 * len(long)
    paths = [re.findall(r' d="([^"]*)"', svg) for svg in (long, short)]
    before, after = ([float(x) for p in ps for x in re.findall(r"-?[\d.]+", p)] for ps in paths)
    np.testing.assert_allclose(after, before, atol=0.0051)
    assert set(re.findall(r"scale\([^)]*\)", short)) == set(re.findall(r"scale\([^)]*\)", long))


def test_the_svg_holds_an_image_pixel_by_pixel():
    figure, axis = style.new_figure()
    style.book_style(axis.imshow)(np.eye(8))
    (data,) = re.findall(r"data:image/png;base64,([^\"]*)", figure._repr_svg_())
    assert size(base64.b64decode(data)) == (8, 8)


@pytest.mark.parametrize(("alpha", "kind"), [(255, "jpeg"), (128, "png")])
def test_the_svg_holds_a_photograph_as_jpeg(alpha, kind):
    picture = np.random.default_rng(0).integers(0, 256, (80, 80, 4), dtype=np.uint8)
    picture[..., 3] = alpha
    figure, axis = style.new_figure()
    style.book_style(axis.imshow)(picture)
    (found,) = re.findall(r"data:image/(\w+);base64", figure._repr_svg_())
    assert found == kind


def test_what_lies_on_an_image_is_marked_and_what_lies_beside_it_is_not():
    figure, (map_, plain) = style.new_figure(2)
    map_.imshow(np.eye(4))
    on, beside, elsewhere = map_.text(1, 1, "on"), map_.text(9, 1, "beside"), plain.text(0, 0, "elsewhere")
    figure._repr_svg_()
    assert [text.get_gid() for text in (on, beside, elsewhere)] == [style.KEPT, None, None]
    assert f'id="{style.KEPT}' in figure._repr_svg_()


def test_an_arrow_on_an_image_and_a_line_on_an_inset_s_are_marked():
    figure, axis = style.new_figure(1)
    axis.imshow(np.eye(8))
    arrow = axis.annotate("", (1, 3), (5, 3), arrowprops={"arrowstyle": "->"})
    inset = axis.inset_axes((0.5, 0.5, 0.4, 0.4))
    inset.imshow(np.eye(2))
    (line,) = inset.plot([0, 1], [0, 1])
    figure._repr_svg_()
    assert [part.get_gid() for part in (arrow.arrow_patch, line)] == [style.KEPT] * 2


def test_one_legend_stands_above_all_panels_within_the_width():
    figure, axes = style.new_figure(2, height=3.0)
    for name in ("a short name", "a name that is a good deal longer", "another", "one more of them"):
        axes[0].plot([1, 2], label=name)
    axes[1].plot([1, 2], label="another")
    style.legend_above(*axes)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert len(legend.get_texts()) == 4
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    assert box.y0 >= axes[0].get_window_extent().y1
    assert figure.get_size_inches()[1] == pytest.approx(3.0 + box.height / figure.dpi, abs=0.01)


def test_the_version_stands_in_the_picture():
    assert f"Matplotlib version{matplotlib.__version__}".encode() in drawn()._repr_png_()


def test_the_style_stays_in_the_figure():
    before = {key: matplotlib.rcParams[key] for key in style.STYLE}
    drawn()._repr_png_()
    assert {key: matplotlib.rcParams[key] for key in style.STYLE} == before
    assert before["font.size"] != style.STYLE["font.size"]


def test_pyplot_does_not_know_of_it():
    import matplotlib.pyplot as plt

    drawn()
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    "before", ["0;", "%matplotlib inline\nimport matplotlib.pyplot as plt"], ids=["book", "Colab"]
)
def test_a_cell_shows_it_once_at_its_size(before):
    cells = [nbformat.v4.new_code_cell(source) for source in (before, MAKE)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
    (output,) = notebook.cells[1].outputs
    assert set(output.data) == {"text/plain", "image/png", "image/svg+xml"}
    assert "0x7" not in output.data["text/plain"]
    assert size(base64.b64decode(output.data["image/png"])) == (864, 614)


def luminance(colour):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return np.dot([0.2126, 0.7152, 0.0722], linear)


def test_colours_can_be_told_apart():
    assert len(set(style.CYCLE)) == len(style.CYCLE) == 7
    for a, b in combinations(style.CYCLE, 2):
        assert np.abs(np.subtract(to_rgb(a), to_rgb(b))).max() > 0.2
    assert 1.05 / (luminance(style.GREY) + 0.05) >= 4.5  # grey text on white, by the rule for contrast
    lightness = [luminance(matplotlib.colormaps[style.HEAT](x)[:3]) for x in np.linspace(0, 1, 16)]
    assert (np.diff(lightness) > 0).all()  # a heat map can be read in grey
