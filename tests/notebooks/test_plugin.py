"""The plugin on notebooks made here: what passes, what fails, and what a failure says and leaves behind.

All cases are cells of one notebook, which runs once: each cell has the source that made its committed output,
and the source that runs in the test.
"""

import base64
import io
from types import SimpleNamespace

import nbformat
import notebook_figures as figures
import pytest
from PIL import Image, PngImagePlugin

from tests.notebooks.conftest import Cell, commit, run_plugin
from tests.notebooks.plugin import Durations

SETUP = """
import random
import numpy as np
from tformer_book import claim
from tformer_book.kit.plot_style import new_figure

def curve(a=1.0, label="", height=3.2, empty=()):
    figure, axes = new_figure(2, 1, height=height)
    for i, (axis, f) in enumerate(zip(axes, (np.sin, lambda x: np.exp(-x)), strict=True)):
        axis.set_xlim(0, 6), axis.set_ylim(-1.2, 1.2), axis.set_xlabel(label)
        if i not in empty:
            x = np.linspace(0, 6, 100)
            axis.plot(x, a * f(x))
    return figure

def panels(order=(0, 1), noise=0.0):
    figure, axes = new_figure(1, 2)
    t = np.arange(40)
    wiggle = noise * np.random.default_rng(0).normal(size=40)
    lines = [np.exp(-t / 8) * 3 + wiggle, 1 - np.exp(-t / 6) + wiggle / 3]
    for axis, i in zip(axes, order, strict=True):
        axis.plot(lines[i])
        axis.set_ylim(0, (3.2, 1.1)[i])
    return figure

def times(factor=1.0, noise=0.0, shown=True):
    figure, axis = new_figure()
    lengths = 2.0 ** np.arange(4, 11)
    wobble = np.exp(noise * np.random.default_rng(0).normal(size=(2, 7)))
    for curve in (0.02 * lengths**1.1, 1 + 0 * lengths) * wobble * factor if shown else ():
        axis.loglog(lengths, curve, marker="o")
    return figure
"""
SHOW_CLAIM = 'claim("a.b", {}, (0.0, 1.0), unit="{}", sentence="{}")'
TRAINED = ("nbval-ignore-output", "trained-figure")
TIMED = (*TRAINED, "timing")
PROGRESS = "import sys; print('{}', file=sys.stderr); print(1)"

PASS = {
    "unchanged figure": Cell("curve()", "curve()"),
    "other digits in the SVG": Cell("curve()", "curve(a=1.0001)"),
    "unchanged SVG": Cell("from IPython.display import SVG; SVG('<svg>1</svg>')"),
    "claim within its band": Cell(SHOW_CLAIM.format(0.5, "", "half"), SHOW_CLAIM.format(0.6, "", "half")),
    "other text under nbval-ignore-output": Cell("print(1)", "print(2)", ("nbval-ignore-output",)),
    "jitter of a trained curve": Cell("panels()", "panels(noise=0.08)", TRAINED),
    "other times on a busy machine": Cell("times()", "times(2.0, 0.3)", TIMED),
    "another address": Cell("object()", "[object() for _ in range(9)][8]"),
    "other warnings": Cell(PROGRESS.format("one"), PROGRESS.format("two")),
    "another timing": Cell("print('took 1.5 s')", "print('took 27 ms')"),
    "a closing semicolon": Cell("curve(); np.float64(1.5);"),
    "html unchanged": Cell("from IPython.display import HTML; HTML('<b>1</b>')"),
}
FAIL = {
    "changed number": Cell("print(0.25)", "print(0.26)"),
    "changed curve": Cell("curve()", "curve(0.9)"),
    "dropped figure": Cell("curve()", "curve();"),
    "second figure": Cell("curve()", "display(curve()); curve()"),
    "added label": Cell("curve()", "curve(label='x')"),
    "another size": Cell("curve()", "curve(height=3.4)"),
    "changed curve under nbval-ignore-output": Cell("curve()", "curve(0.9)", ("nbval-ignore-output",)),
    "changed text of a claim": Cell(SHOW_CLAIM.format(0.5, "", "half"), SHOW_CLAIM.format(0.5, "", "a half")),
    "changed unit of a claim": Cell(SHOW_CLAIM.format(0.5, "s", "half"), SHOW_CLAIM.format(0.5, "m", "half")),
    "changed band of a claim": Cell(
        'claim("a", 0.5, (0, 1), "t")',
        'claim("a", 0.5, (0, 0.9), "t")',
    ),
    "claim out of its band": Cell(SHOW_CLAIM.format(0.5, "", "half"), SHOW_CLAIM.format(1.5, "", "half")),
    "dropped claim": Cell(SHOW_CLAIM.format(0.5, "", "half"), "pass"),
    "dropped SVG": Cell("curve()", "display({'image/png': curve()._repr_png_()}, raw=True)", TRAINED),
    "blank panel of a trained figure": Cell("curve()", "curve(empty=(1,))", TRAINED),
    "swapped panels of a trained figure": Cell("panels()", "panels(order=(1, 0))", TRAINED),
    "other times where they are not expected": Cell("times()", "times(2.0, 0.3)", TRAINED),
    "blank figure of times": Cell("times()", "times(shown=False)", TIMED),
    "dropped trained figure": Cell("panels()", "panels();", TRAINED),
    "changed html": Cell("HTML('<b>1</b>')", "HTML('<b>2</b>')"),
    "changed SVG": Cell("SVG('<svg>1</svg>')", "SVG('<svg>2</svg>')"),
    "changed markdown": Cell(
        "from IPython.display import Markdown; Markdown('one')",
        "from IPython.display import Markdown; Markdown('two')",
    ),
    "error": Cell("print(1)", "1 / 0"),
}
CASES = {"setup": Cell(SETUP)} | PASS | FAIL


@pytest.fixture(scope="module")
def run(workplace):
    commit(workplace / "cases.ipynb", list(CASES.values()))
    done = run_plugin(workplace / "cases.ipynb")
    assert len(done.cells) == len(CASES), done.report
    return done


def message(run, name: str) -> str:
    return run.cells[list(CASES).index(name)]


@pytest.mark.parametrize("name", ["setup", *PASS])
def test_passes(run, name):
    assert message(run, name) == ""


@pytest.mark.parametrize("name", FAIL)
def test_fails(run, name):
    assert message(run, name)


def test_an_error_is_shown_with_the_cell(run):
    assert "ZeroDivisionError" in message(run, "error")
    assert "Cell execution caused an exception" in message(run, "error")


def test_a_claim_that_does_not_hold_names_itself_and_its_band(run):
    assert "'a.b' does not hold: got 1.5, which is not within [0, 1]" in message(run, "claim out of its band")


def test_a_difference_leaves_pictures_and_prints_where(run):
    folder = run.folder / "_build/figure-diffs/cases" / f"cell-{list(CASES).index('changed curve')}-figure-0"
    for name in ("expected.png", "actual.png", "difference.png"):
        assert str(folder / name) in message(run, "changed curve")
        assert Image.open(folder / name).size == (864, 614)
    red = figures.pixels((folder / "difference.png").read_bytes())
    assert (red[..., 0] - red[..., 1] > 100).any()


def test_an_unchanged_figure_leaves_no_picture(run):
    folder = (
        run.folder / "_build/figure-diffs/cases" / f"cell-{list(CASES).index('unchanged figure')}-figure-0"
    )
    assert not folder.exists()


def test_the_report_ends_with_the_times(run):
    assert "notebooks: time on the clock, processor time" in run.report
    assert " s  cases.ipynb" in run.report


def test_the_report_holds_a_chapter_to_less_than_others():
    lines = []
    reporter = SimpleNamespace(section=lines.append, line=lines.append)
    durations = Durations(45, 90)
    for name, cpu in (("chapter", 46.0), ("laboratory", 46.0), ("exercises", 91.0)):
        properties = [("notebook_seconds", 1.0), ("notebook_cpu", cpu)]
        nodeid = f"book/a/{name}.ipynb::Cell 0"
        durations.pytest_runtest_logreport(
            SimpleNamespace(nodeid=nodeid, when="call", user_properties=properties)
        )
    durations.pytest_terminal_summary(reporter)
    assert lines[1:4] == [
        "    1.0 s    46.0 s  book/a/chapter.ipynb  (more than the 45 s of a quiet machine)",
        "    1.0 s    91.0 s  book/a/exercises.ipynb  (more than the 90 s of a quiet machine)",
        "    1.0 s    46.0 s  book/a/laboratory.ipynb",
    ]


def drawn_by_another_version(path) -> None:
    """Rewrites the committed figures as if another version of matplotlib had drawn them."""
    notebook = nbformat.read(path, as_version=4)
    outputs = [o for cell in notebook.cells for o in cell.outputs if "image/png" in o.get("data", {})]
    for output in outputs:
        text = PngImagePlugin.PngInfo()
        text.add_text("Software", "Matplotlib version0.0.1, https://matplotlib.org/")
        buffer = io.BytesIO()
        Image.open(io.BytesIO(base64.b64decode(output.data["image/png"]))).save(buffer, "png", pnginfo=text)
        output.data["image/png"] = base64.b64encode(buffer.getvalue()).decode()
    nbformat.write(notebook, path)


@pytest.fixture(scope="module")
def other_version(workplace):
    (workplace / "versions").mkdir()
    path = workplace / "versions" / "versions.ipynb"
    cells = [
        Cell(SETUP),
        Cell("curve()"),
        Cell("curve()", "curve(height=3.4);"),
        Cell("panels()", tags=TRAINED),
    ]
    commit(path, cells)
    drawn_by_another_version(path)
    return path


def test_another_version_of_matplotlib_warns_locally(other_version):
    run = run_plugin(other_version, "-o", "notebook_cpu_budget=0.01")
    assert run.cells[1] == ""
    assert "FigureVersionWarning" in run.report
    assert "Matplotlib version0.0.1" in run.report
    assert "the cell shows 0, 1 are committed" in run.cells[2]  # the number is compared all the same
    assert run.cells[3] == ""  # a notebook over its budget is no failure, only a line of the report
    assert "versions.ipynb  (more than the 0.01 s of a quiet machine)" in run.report


def test_another_version_of_matplotlib_fails_in_ci(other_version):
    run = run_plugin(other_version, ci=True)
    assert "committed by Matplotlib version0.0.1" in run.cells[1]
    assert "make execute" in run.cells[1]
    assert run.cells[3] == ""  # coarse structure compares between versions
