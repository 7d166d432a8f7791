"""Formats the notebooks' code: ruff's format, with a claim on two lines where it fits on two.

    claim("attention.score_growth", slope, (0.46, 0.54),
          "power of the width with which the spread of dot products grows")

Ruff would give each of the four a line of its own, and a chapter's claims would fill pages. Where the first
line does not fit, ruff's format stays. A cell that shows claims and nothing else is closed in Jupyter and in
Colab, as the site closes it (`close`). `python tools/format_notebooks.py`
formats the notebooks of the book, `--check` names those that are not formatted and ends with 1.
"""

import argparse
import ast
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from chapters import notebooks
from nbformat import NotebookNode
from notebook_claims import FORM, TITLE, only_claims

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 88  # of a cell on the page; book/ruff.toml says the same
CALL = "claim("


def lay_out(call: ast.Call, source: str, indent: int) -> str | None:
    """The call on one line, or with its sentence on the next; None if neither fits or a comment is within."""
    if "#" in (ast.get_source_segment(source, call) or "#") or len(call.args) < 4 or call.keywords:
        return None
    words = [ast.get_source_segment(source, argument) or "" for argument in call.args]
    if any("\n" in word for word in words):
        return None
    start, margin = f"{CALL}{', '.join(words[:3])},", " " * (indent + len(CALL))
    for rest in ([f"{', '.join(words[3:])})"], [f"{words[3]},", f"{', '.join(words[4:])})"]):
        if len(rest) == 1 and indent + len(f"{start} {rest[0]}") <= WIDTH:
            return f"{start} {rest[0]}"
        if max(indent + len(start), *(len(margin + line) for line in rest)) <= WIDTH:
            return "\n".join([start, *(margin + line for line in rest)])
    return None


def compact(source: str) -> str:
    """The source of a cell with its claims laid out; as it is if it is not Python alone."""
    if CALL not in source:
        return source
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a cell with a magic
        return source
    calls = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "claim"
    ]
    lines = source.split("\n")
    for call in sorted(calls, key=lambda call: -call.lineno):
        start, end = call.lineno - 1, call.end_lineno or call.lineno
        indent = len(lines[start]) - len(lines[start].lstrip())
        alone = indent == call.col_offset and len(lines[end - 1].encode()) == call.end_col_offset
        text = lay_out(call, source, indent) if alone else None
        if text is not None:
            lines[start:end] = (" " * indent + text).split("\n")
    return "\n".join(lines)


def close(cell: NotebookNode) -> None:
    """Folds a cell's code if it shows claims alone, and opens one that was folded and shows more now."""
    is_closed = cell.source.startswith(f"{TITLE}\n")
    if only_claims(cell):
        cell.metadata.update(NotebookNode(FORM))
        cell.source = cell.source if is_closed else f"{TITLE}\n{cell.source}"
    elif is_closed and cell.outputs:  # a cell that has not run says nothing yet
        for key in FORM:
            cell.metadata.pop(key, None)
        cell.source = cell.source.removeprefix(f"{TITLE}\n")


def formatted(path: Path) -> str:
    """What the notebook's file holds when its cells are formatted."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".format-") as folder:  # under its ruff.toml
        copy = Path(folder) / path.name
        shutil.copy(path, copy)
        subprocess.run([sys.executable, "-m", "ruff", "format", "-q", copy], check=True)
        laid_out = nbformat.read(copy, as_version=4)
    notebook = nbformat.read(path, as_version=4)  # of ruff's file the code alone: it writes numbers anew
    for cell, its in zip(notebook.cells, laid_out.cells, strict=True):
        if cell.cell_type == "code":
            cell.source = compact(its.source)
            close(cell)
    return nbformat.writes(notebook, indent=1) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Formats, or says what is not formatted."""
    parser = argparse.ArgumentParser(description="Format the code of the notebooks.")
    parser.add_argument("notebooks", nargs="*", type=Path, help="all of the book if none is named")
    parser.add_argument("--check", action="store_true", help="change nothing; end with 1 if something would")
    options = parser.parse_args(arguments)
    changed = []
    for path in options.notebooks or notebooks():
        text = formatted(path)
        if text != path.read_text("utf8"):
            changed.append(path)
            if not options.check:
                path.write_text(text, "utf8")
    for path in changed:
        print(f"{'not formatted' if options.check else 'formatted'}: {path}")
    if changed and options.check:
        print("run: python tools/format_notebooks.py")
    return int(bool(changed) and options.check)


if __name__ == "__main__":
    sys.exit(main())
