"""What notebooks import from the library and the book is there: said before a notebook runs for a minute."""

import ast
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
from chapters import ROOT, notebooks
from check import MAGIC
from notebook_code import bound, notebook_of, read_cells, statements

OURS = ("tformer_lib", "tformer_book")


def missing(sources: list[str], book: Path = ROOT / "book") -> Iterator[str]:
    """The names of ours that some cells import, or read from a module of ours, and that are not there.

    Of a notebook those are there that its code binds; it is not run for them.
    """
    modules: dict[str, ModuleType] = {}
    for source in sources:
        tree = ast.parse(MAGIC.sub(r"\1pass", source))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(OURS):
                notebook = notebook_of(str(node.module), book)
                if notebook is not None:
                    names = [alias.name for alias in node.names]
                    yield from (f"{node.module}.{name}" for name in names if name not in given(notebook))
                    continue
                for alias in node.names:
                    if notebook_of(f"{node.module}.{alias.name}", book) is not None:
                        continue
                    found = attribute(str(node.module), alias.name)
                    if found is None:
                        yield f"{node.module}.{alias.name}"
                    elif isinstance(found, ModuleType):
                        modules[alias.asname or alias.name] = found
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = modules.get(node.value.id)
                if module is not None and not hasattr(module, node.attr):
                    yield f"{module.__name__}.{node.attr}"


def given(notebook: Path) -> set[str]:
    """The names that a notebook's code binds."""
    return set().union(*map(bound, statements(read_cells(notebook))))


def attribute(module: str, name: str) -> object | None:
    """What a module has under a name: an attribute, or a module of its own."""
    found = getattr(import_module(module), name, None)
    if found is None:
        try:
            return import_module(f"{module}.{name}")
        except ModuleNotFoundError:
            return None
    return found


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_names_are_there(path):
    cells = nbformat.read(path, as_version=4).cells
    assert list(missing([cell.source for cell in cells if cell.cell_type == "code"])) == []


def test_missing_names_are_found():
    cells = [
        "from tformer_lib import analysis, no_such_module\nfrom tformer_lib.core import Attention",
        "analysis.record\nanalysis.no_such_function()",
    ]
    assert list(missing(cells)) == [
        "tformer_lib.no_such_module",
        "tformer_lib.core.Attention",
        "tformer_lib.analysis.no_such_function",
    ]


def test_names_of_a_notebook_are_those_that_its_code_binds(tmp_path):
    code = "import math\nx, (y, *z) = 1, (2, 3)\nfor n in range(3):\n    [inner for inner in 'a']\n"
    code += "class A:\n    b = 1"
    cells = [{"cell_type": "code", "source": code, "metadata": {}}]
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "chapter.ipynb").write_text(json.dumps({"cells": cells}))
    taken = "from tformer_book.made.chapter import math, x, y, z, n, A, b, inner as x, lost"
    names = ("b", "inner", "lost")
    assert list(missing([taken], tmp_path)) == [f"tformer_book.made.chapter.{name}" for name in names]
    assert list(missing(["from tformer_book.made import chapter\nchapter.x"], tmp_path)) == []
