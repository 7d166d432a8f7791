"""Making notebooks, and running the plugin on them in a pytest of its own."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import execute
import nbformat
import pytest
from nbformat import v4

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Cell:
    """A code cell as it is committed and, where it differs, as it runs in the test."""

    source: str
    changed: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """How a run of the plugin ended: a message for each cell, empty where it passed, and the report."""

    cells: list[str]
    report: str
    folder: Path


def write_notebook(path: Path, cells: list[Cell]) -> None:
    nodes = [
        v4.new_code_cell(cell.source, id=f"cell-{i}", metadata={"tags": list(cell.tags)} if cell.tags else {})
        for i, cell in enumerate(cells)
    ]
    nbformat.write(v4.new_notebook(cells=nodes), path)


def commit(path: Path, cells: list[Cell]) -> None:
    """Writes an executed notebook, and puts the changed sources in, as if the outputs had gone stale."""
    write_notebook(path, cells)
    execute.execute(path)
    notebook = nbformat.read(path, as_version=4)
    for node, cell in zip(notebook.cells, cells, strict=True):
        node.source = cell.source if cell.changed is None else cell.changed
    nbformat.write(notebook, path)


def run_plugin(path: Path, *options: str, ci: bool = False) -> Run:
    """Runs pytest with the plugin alone on one notebook."""
    folder = path.parent
    (folder / "pytest.ini").write_text("[pytest]\n")
    python_path = os.pathsep.join([str(ROOT), str(ROOT / "tools")])
    environment = {k: v for k, v in os.environ.items() if k != "CI" and not k.startswith("PYTEST_")}
    environment |= {"PYTHONPATH": python_path} | ({"CI": "true"} if ci else {})
    plugins = ("-p", "tests.notebooks.plugin", "-p", "no:cacheprovider", "-p", "no:xdist", "--nbval")
    command = (sys.executable, "-m", "pytest", path.name, *plugins, "--junitxml=result.xml", *options)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    result = folder / "result.xml"
    assert result.exists(), done.stdout + done.stderr
    cases = ElementTree.parse(result).getroot().iter("testcase")
    return Run([_message(case) for case in cases], done.stdout, folder)


def _message(case: ElementTree.Element) -> str:
    return "".join(child.text or "" for child in case if child.tag in ("failure", "error"))


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder for the notebooks of one test module."""
    return tmp_path_factory.mktemp("notebooks")
