"""What every figure shares: one size, one way to be shown, colours that can be told apart."""

import base64
import struct
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import matplotlib
import nbclient
import nbformat
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from tformer_lib.book.plots import style

ROOT = Path(__file__).parents[3]

MAKE = """
from tformer_lib.book.plots.style import new_figure
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
    assert size(figure._repr_png_()) == (480, 320)


def test_what_is_drawn_does_not_change_the_size():
    figure = drawn()
    figure.axes[0].set_title("a title that is a good deal longer than the axes are wide " * 2)
    assert size(figure._repr_png_()) == size(drawn()._repr_png_())


def test_the_same_bytes_every_time_and_whatever_the_reader_has_set():
    first = drawn()._repr_png_()
    with matplotlib.rc_context({"font.size": 30, "savefig.bbox": "tight", "lines.linewidth": 9}):
        assert drawn()._repr_png_() == first
    code = "import sys, tests.book.plots.test_style as t; sys.stdout.buffer.write(t.drawn()._repr_png_())"
    other = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert other.stdout == first


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
    assert set(output.data) == {"text/plain", "image/png"}
    assert "0x7" not in output.data["text/plain"]
    assert size(base64.b64decode(output.data["image/png"])) == (864, 512)


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
