"""The code of notebooks, read and not run: what a cell binds, what it takes from another notebook.

A chapter's notebooks take names from each other by an import: `from tformer_book.attention.chapter import
decoder` stands for the name `decoder` of `book/attention/chapter.ipynb`, though there is no such module in a
file of its own. Who follows imports asks here which notebook is meant.

Written without `tformer_lib`, so that the site can be built where PyTorch is not installed.
"""

import ast
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "tformer_book"  # the name of the folder `book`, as code imports it


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


def bound(tree: ast.AST) -> set[str]:
    """The names that a statement binds where it stands, not those inside its functions and classes."""
    found: set[str] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
                if isinstance(node, ast.FunctionDef):  # one that says `global` binds outside of itself
                    inside = (each for each in ast.walk(node) if isinstance(each, ast.Global))
                    found.update(name for each in inside for name in each.names)
                continue
            case ast.Lambda():
                continue
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                walrus = (each.target for each in ast.walk(node) if isinstance(each, ast.NamedExpr))
                found.update(target.id for target in walrus)
                continue
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Import() | ast.ImportFrom():
                found.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
            case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name):
                found.add(name)
        waiting.extend(ast.iter_child_nodes(node))
    return found
