"""tools/execute.py: a second run changes nothing, and a failing notebook keeps its file."""

import base64

import execute
import nbformat
import pytest

from tests.notebooks.conftest import Cell, write_notebook
from tformer_book.kit.plot_style import new_figure

FIGURE = "from tformer_book.kit.plot_style import new_figure\nfigure, axis = new_figure()\naxis.plot([1, 2]);"
CELLS = [
    Cell("import os, time\nprint(hash('a'), os.listdir())\nprint('twice')"),
    Cell(FIGURE + "\nfigure"),
    Cell("from tformer_book import claim\nclaim('a', 1, (0, 2), 't')"),
    Cell("begin = time.perf_counter()\nprint(time.time())", tags=("nbval-ignore-output", "timing")),
    Cell("claim('b', time.perf_counter() - begin, (0, 9), 't', 's')", tags=("timing",)),
    Cell("axis.set_title(f'{time.time_ns()} ns'); figure", tags=("nbval-ignore-output", "timing")),
]


@pytest.fixture(scope="module")
def runs(workplace):
    """The file after one run and after two."""
    path = workplace / "small.ipynb"
    write_notebook(path, CELLS)
    assert execute.main([str(path)]) == 0
    first = path.read_bytes()
    assert execute.main([str(path)]) == 0
    return first, path.read_bytes(), path


def test_a_second_run_changes_no_byte(runs):
    assert runs[0] == runs[1]
    assert runs[0].endswith(b"}\n")


def test_what_is_saved(runs):
    notebook = nbformat.reads(runs[0].decode(), as_version=4)
    assert [cell.execution_count for cell in notebook.cells] == [1, 2, 3, 4, 5, 6]
    assert [cell.id for cell in notebook.cells] == [f"cell-{i}" for i in range(6)]
    assert dict(notebook.metadata) == {"kernelspec": execute.KERNELSPEC, "language_info": {"name": "python"}}
    assert [len(cell.outputs) for cell in notebook.cells] == [1] * 6  # two prints are one stream
    assert notebook.cells[0].outputs[0].text.endswith("[]\ntwice\n")  # the folder was empty
    assert all(set(cell.metadata) <= {"tags", "tformer"} for cell in notebook.cells)


def edited(runs, edit) -> nbformat.NotebookNode:
    """The notebook run once more after an edit."""
    path = runs[2].with_name("edited.ipynb")
    notebook = nbformat.reads(runs[0].decode(), as_version=4)
    edit(notebook)
    nbformat.write(notebook, path)
    assert execute.main([str(path)]) == 0
    return nbformat.read(path, as_version=4)


def test_timings_are_new_when_code_above_has_changed(runs):
    before = nbformat.reads(runs[0].decode(), as_version=4)

    def edit(notebook):
        notebook.cells[0].source += "\n"

    after = edited(runs, edit)
    assert [after.cells[i].outputs != before.cells[i].outputs for i in (3, 4, 5)] == [True, True, True]


def test_timings_are_new_when_the_outputs_disagree(runs):
    before = nbformat.reads(runs[0].decode(), as_version=4)
    png = new_figure(height=3.3)[0]._repr_png_()

    def edit(notebook):
        notebook.cells[3].outputs.append(notebook.cells[3].outputs[0])
        claim = notebook.cells[4].outputs[0].data
        claim[execute.CLAIM]["high"] = 8
        figure = notebook.cells[5].outputs[0].data
        figure["image/png"] = base64.b64encode(png).decode()

    after = edited(runs, edit)
    assert len(after.cells[3].outputs) == 1
    assert after.cells[4].outputs[0].data[execute.CLAIM]["high"] == 9
    assert after.cells[5].outputs != before.cells[5].outputs


def test_a_failing_notebook_keeps_its_file_and_shows_the_cell(workplace, capsys):
    path, good = workplace / "fails.ipynb", workplace / "good.ipynb"
    write_notebook(path, [Cell("print('before')"), Cell("number = 0\n1 / number")])
    write_notebook(good, [Cell("1 + 1")])
    before = path.read_bytes()
    assert execute.main([str(path), str(good)]) == 1
    assert path.read_bytes() == before
    assert not list(workplace.glob(".*"))  # nothing half written
    shown = capsys.readouterr()
    assert "number = 0\n1 / number" in shown.err
    assert "ZeroDivisionError" in shown.err
    assert "FAILED, left as it was" in shown.out
    assert nbformat.read(good, as_version=4).cells[0].execution_count == 1  # the others still run


def test_the_run_shows_times(workplace, capsys):
    path = workplace / "timed.ipynb"
    write_notebook(path, [Cell("sum(range(10**6))")])
    execute.main([str(path)])
    assert "s of processor time" in capsys.readouterr().out
