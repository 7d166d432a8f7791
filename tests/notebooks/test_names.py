"""What notebooks import from the library and the book is there: said before a notebook runs for a minute."""

import ast
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import nbformat
import pytest
from chapters import notebooks
from check import MAGIC

OURS = ("tformer_lib", "tformer_book")


def missing(sources: list[str]) -> Iterator[str]:
    """The names of ours that some cells import, or read from a module of ours, and that are not there."""
    modules: dict[str, ModuleType] = {}
    for source in sources:
        tree = ast.parse(MAGIC.sub(r"\1pass", source))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(OURS):
                for alias in node.names:
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
