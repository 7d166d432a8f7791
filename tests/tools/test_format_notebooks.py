"""Cells that only hold claims are closed in Jupyter and in Colab, and others are not."""

import json

import format_notebooks
import nbformat
import pytest
from nbformat import v4
from notebook_claims import CLAIM, FORM, TITLE

SHOWN = v4.new_output("display_data", {"text/plain": "t", CLAIM: {"name": "a"}})
PRINTED = v4.new_output("stream", name="stdout", text="1\n")
OPEN = "x = 1"
CLOSED = f"{TITLE}\n{OPEN}"


@pytest.fixture
def close(tmp_path):
    """Formats a notebook of one cell, twice; gives back the cell's source and metadata."""

    def run(source, outputs, metadata=None):
        path = tmp_path / "small.ipynb"
        cell = v4.new_code_cell(source, outputs=outputs, metadata=metadata or {})
        nbformat.write(v4.new_notebook(cells=[cell]), path)
        format_notebooks.main([str(path)])
        before = path.read_text("utf8")
        assert format_notebooks.main([str(path), "--check"]) == 0
        assert path.read_text("utf8") == before
        made = json.loads(before)["cells"][0]
        return "".join(made["source"]), made["metadata"]

    return run


def test_a_cell_of_claims_alone_is_closed_and_keeps_its_tags(close):
    assert close(OPEN, [SHOWN, SHOWN], {"tags": ["timing"]}) == (CLOSED, {**FORM, "tags": ["timing"]})


@pytest.mark.parametrize("outputs", [[SHOWN, PRINTED], [PRINTED]])
def test_a_cell_that_shows_more_is_opened(close, outputs):
    assert close(CLOSED, outputs, FORM) == (OPEN, {})


def test_a_cell_that_has_not_run_stays(close):
    assert close(CLOSED, [], FORM) == (CLOSED, FORM)
    assert close(OPEN, []) == (OPEN, {})


def test_a_solution_keeps_its_own_title(close):
    source = f"# @title Solution\n{OPEN}"
    metadata = {**FORM, "tags": ["solution"]}
    assert close(source, [SHOWN], metadata) == (source, metadata)
