"""Collects the code that Part I grows into one script: the whole transformer, to keep and to change.

The cells that define a part of it carry the tag `grown`. Of each, the functions and classes are taken, in the
order of the chapters; where a later chapter writes a part again, its version takes
the place of the earlier one, and what nothing uses in the end stays out. `make grown` writes the script to
_build/grown.py; the site offers it too (`book/site/extensions/tformer_grown.py`).

Written without `tformer_lib`, so that the site can be built where PyTorch is not installed.
"""

import argparse
import ast
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from chapters import chapters

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "_build" / "grown.py"
TAG, MOST_LINES = "grown", 150
ALSO = ("DecoderBlock",)  # is kept though the script does not run it
HEAD = """# A transformer that writes: the code that grows through Part I of Transformers by Construction.
# python grown.py [TEXT FILE [STEPS]] learns from a text, Shakespeare's plays if none is named.
import math
import sys

import torch
from torch import nn
"""
MAIN = """def main(file=None, steps=1200):
    if file is None:
        from tformer_book.kit.data.text import shakespeare
    text = open(file, encoding="utf8").read() if file else shakespeare("train")
    letters = sorted(set(text))
    ids = torch.tensor([letters.index(letter) for letter in text])
    model = GPT(len(letters), D=64, H=4, M=3, context=64)
    train(model, ids, int(steps), lr=5e-3)
    print("".join(letters[i] for i in sample(model, ids[:1], 300)))

if __name__ == "__main__":
    main(*sys.argv[1:])
"""


def grown_cells(notebook: Path) -> Iterator[str]:
    """The code of a notebook's cells with the tag, in their order."""
    for cell in json.loads(notebook.read_text("utf8"))["cells"]:
        if cell["cell_type"] == "code" and TAG in cell["metadata"].get("tags", ()):
            yield "".join(cell["source"])


def definitions(code: str) -> Iterator[tuple[str, str]]:
    """Name and source, decorators and all, of each function and class at the top of the code.

    Docstrings, which the chapters explain at length, and empty lines are left out.

    Raises:
        SyntaxError: if it is no Python, which a magic command is not.
    """
    lines = code.splitlines()
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            kept = set(range(first, (node.end_lineno or first) + 1))
            for inner in ast.walk(node):
                if isinstance(inner, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(inner) is not None:
                    said = inner.body[0]
                    kept -= set(range(said.lineno, (said.end_lineno or said.lineno) + 1))
            yield node.name, "\n".join(lines[i - 1] for i in sorted(kept) if lines[i - 1].strip())


def names_in(code: str) -> set[str]:
    """The names that it uses."""
    return {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}


def collect(sources: Sequence[Path] | None = None) -> str:
    """The script: of the definitions those that it needs, and those in `ALSO`.

    Args:
        sources: the notebooks, in order; the chapters of the book, without what lies beside them, if None.

    Raises:
        ValueError: if no cell has the tag.
    """
    parts: dict[str, str] = {}
    sources = [chapter.notebook for chapter in chapters()] if sources is None else sources
    for notebook in sources:
        for code in grown_cells(notebook):
            for name, source in definitions(code):
                parts.pop(name, None)
                parts[name] = source
    if not parts:
        raise ValueError(f"no cell of {len(sources)} notebooks has the tag {TAG!r}")
    needed, new = set(), (names_in(MAIN) | set(ALSO)) & set(parts)
    while new:
        needed |= new
        new = set().union(*(names_in(parts[name]) for name in new)) & set(parts) - needed
    return "\n".join([HEAD, *(f"{parts[name]}\n" for name in parts if name in needed), MAIN])


def main(arguments: list[str] | None = None) -> int:
    """Write the script and say where it lies."""
    parser = argparse.ArgumentParser(description="Collects the code that grows through Part I.")
    parser.add_argument("notebooks", nargs="*", type=Path, help="in order; all chapters if none is named")
    parser.add_argument("--to", type=Path, default=SCRIPT, help="the script that is written")
    options = parser.parse_args(arguments)
    script = collect(options.notebooks or None)
    options.to.parent.mkdir(parents=True, exist_ok=True)
    options.to.write_text(script, "utf8")
    print(
        f"{options.to}: {len(script.splitlines())} lines. Run it as: python {options.to} [TEXT FILE [STEPS]]"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
