"""Collects the code that Part I grows into one script: the whole transformer, to keep and to change.

In Chapters 1 to 6 the cells that define a part of it carry the tag `grown`. Of each, the functions and
classes are taken, in the order of the chapters; where a later chapter writes a part again, its version takes
the place of the earlier one. `make grown` writes the script to _build/grown.py; the site offers it for download
(`book/_ext/tformer_grown.py`).

Written without `tformer_lib`, so that the site can be built where PyTorch is not installed.
"""

import argparse
import ast
import json
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "book"
SCRIPT = ROOT / "_build" / "grown.py"
CHAPTERS, TAG, MOST_LINES = "0[1-6]_*.ipynb", "grown", 150
HEAD = '''"""A transformer that writes: the code that grows through Part I of Transformers by Construction.

python grown.py [TEXT FILE [STEPS]] learns from a text (Shakespeare's plays, if none is named) and writes.
"""

import math
import sys

import torch
from torch import nn
'''
MAIN = """def main(file=None, steps=1000):
    if file is None:
        from tformer_lib.book.datasets.text import shakespeare

        text = shakespeare("train")
    else:
        with open(file, encoding="utf8") as lines:
            text = lines.read()
    letters = sorted(set(text))
    number = {letter: i for i, letter in enumerate(letters)}
    ids = torch.tensor([number[letter] for letter in text])
    torch.manual_seed(0)
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

    Raises:
        SyntaxError: if it is no Python, which a magic command is not.
    """
    lines = code.splitlines()
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield node.name, "\n".join(lines[first - 1 : node.end_lineno])


def collect(book: Path = BOOK) -> str:
    """The script.

    Raises:
        ValueError: if no cell has the tag.
    """
    parts: dict[str, str] = {}
    for notebook in sorted(book.glob(CHAPTERS)):
        for code in grown_cells(notebook):
            for name, source in definitions(code):
                parts.pop(name, None)
                chapter = notebook.stem.split("_")[0].lstrip("0")
                parts[name] = f"# Chapter {chapter}\n{source}"
    if not parts:
        raise ValueError(f"no cell of {book / CHAPTERS} has the tag {TAG!r}")
    found, last = [], ""
    for part in parts.values():  # a chapter is named once, above its first part
        chapter, source = part.split("\n", 1)
        found.append(source if chapter == last else part)
        last = chapter
    return "\n\n".join([HEAD, *(f"{part}\n" for part in found), MAIN])


def main(arguments: list[str] | None = None) -> int:
    """Write the script and say where it lies."""
    parser = argparse.ArgumentParser(description="Collects the code that grows through Part I.")
    parser.add_argument("--book", type=Path, default=BOOK, help="the folder of the notebooks")
    parser.add_argument("--to", type=Path, default=SCRIPT, help="the script that is written")
    options = parser.parse_args(arguments)
    script = collect(options.book)
    options.to.parent.mkdir(parents=True, exist_ok=True)
    options.to.write_text(script, "utf8")
    print(
        f"{options.to}: {len(script.splitlines())} lines. Run it as: python {options.to} [TEXT FILE [STEPS]]"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
