"""The code of notebooks, read and not run: what a cell binds, what it takes from another notebook.

A chapter's notebooks take names from each other by an import: `from tformer_book.attention.chapter import
decoder` stands for the name `decoder` of `book/attention/chapter.ipynb`, though there is no such module in a
file of its own. Who follows imports asks here which notebook is meant.

Written without `tformer_lib`, so that the site can be built where PyTorch is not installed.
"""

import ast
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "tformer_book"  # the name of the folder `book`, as code imports it


def _carried() -> ModuleType:
    """`tformer_book.kit.carried` by its file: to import the package takes PyTorch, which it does not."""
    name = "notebook_code_carried"
    spec = spec_from_file_location(name, ROOT / "book" / "kit" / "carried.py")
    if spec is None or spec.loader is None:
        raise ImportError("book/kit/carried.py is not there")
    module = sys.modules[name] = module_from_spec(spec)  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


carried = _carried()  # what a cell reads, binds and changes
bound = carried.bound


def python(source: str) -> str:
    """A cell's source without IPython's own lines."""
    lines = source.splitlines()
    marked = (line.lstrip().startswith(("%", "!")) for line in lines)
    blank = (line[: len(line) - len(line.lstrip())] + "pass" for line in lines)
    return "\n".join(b if m else line for line, m, b in zip(lines, marked, blank, strict=True))


def read_cells(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook's file."""
    return json.loads(path.read_text("utf8"))["cells"]


def statements(cells: Iterable[Mapping[str, Any]]) -> Iterator[ast.stmt]:
    """The statements of the cells that run, from top to bottom; cells to answer in are the reader's."""
    for cell in cells:
        if cell["cell_type"] == "code" and "answer" not in cell["metadata"].get("tags", ()):
            yield from ast.parse(python("".join(cell["source"]))).body


def notebook_of(module: str, book: Path = ROOT / "book") -> Path | None:
    """The notebook that a module's name stands for, if it stands for one.

    A module in a file of its own goes first, as it does for Python.
    """
    package, *parts = module.split(".")
    path = book.joinpath(*parts).with_suffix(".ipynb") if len(parts) == 2 else None
    if package != PACKAGE or path is None or path.with_suffix(".py").exists() or not path.is_file():
        return None
    return path


def taken(tree: ast.AST, book: Path = ROOT / "book") -> Iterator[tuple[Path, str, str]]:
    """What code takes from notebooks: the notebook, the name there, the name here.

    Of a notebook that is imported as a whole the name there is "".
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            path = notebook_of(node.module or "", book)
            for alias in node.names:
                here = alias.asname or alias.name
                whole = notebook_of(f"{node.module}.{alias.name}", book)
                if path is not None:
                    yield path, alias.name, here
                elif whole is not None:
                    yield whole, "", here
        elif isinstance(node, ast.Import):
            for alias in node.names:
                whole = notebook_of(alias.name, book)
                if whole is not None:
                    yield whole, "", alias.asname or alias.name


def taken_by(path: Path) -> dict[Path, set[str]]:
    """The notebooks beside it from which a notebook takes names, those that they take from among them."""
    found: dict[Path, set[str]] = {}
    waiting = [path.resolve()]
    book = waiting[0].parents[1]
    while waiting:
        for statement in statements(read_cells(waiting.pop())):
            for other, name, _ in taken(statement, book):
                if other not in found:
                    waiting.append(other)
                found.setdefault(other, set()).add(name)
    return found
