"""A new chapter that walks: `make chapter NAME=slug TITLE="Its title" [AFTER=gpt]`.

Writes the folder `book/NAME` (page, drawing, card, exercise, experiment and its record, chapter.yml) and its
tests, `tests/book/NAME`; names the page in `_toc.yml` behind the chapter AFTER, or last; runs the page, and
says what is next. All of it passes `make check`; nothing else needs to know of the chapter.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import yaml
from chapters import ROOT, chapters
from nbformat import v4

WALKING = Path(__file__).with_name("walking_chapter")
NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
TAKEN = ("api", "kit", "setup", "site")


def files(name: str, title: str) -> dict[str, str]:
    """What is written as text, by its path: the chapter in `tools/walking_chapter` under another name."""
    found = {}
    for path in sorted(WALKING.rglob("*.*")):
        if path.suffix in (".py", ".yml"):
            place = path.relative_to(WALKING).as_posix().replace("walking", name)
            place = re.sub("^book/", f"book/{name}/", re.sub("^tests/", f"tests/book/{name}/", place))
            text = path.read_text("utf8").replace("A walking chapter", title)
            found[place] = re.sub(r"(?<![a-z])walking(?![a-z])", name, text)
    return found


def page(name: str, title: str, address: str) -> nbformat.NotebookNode:
    """The notebook, without outputs."""
    label = name.replace("_", "-")
    hidden = {"tags": ["hide-input"]}
    figure = {"caption": "Three tokens in a row.", "name": f"fig-{label}-tokens"}
    drawn = hidden | {"mystnb": {"figure": figure}}
    claims = {"tags": ["hide-input"], "jupyter": {"source_hidden": True}, "cellView": "form"}
    solution = {"tags": ["solution"], "jupyter": {"source_hidden": True}, "cellView": "form"}
    cells = [
        v4.new_markdown_cell(f"(ch-{label})=\n# {title}\n\nWhat does this chapter ask?"),
        v4.new_code_cell(
            "try:\n    import tformer_book  # noqa: F401\nexcept ImportError:\n"
            f'    %pip install -q "tformer-lib @ git+{address}"\n'
            f'    %pip install -q "tformer-book @ git+{address}#subdirectory=book"\n'
            "import torch\n\nfrom tformer_book import check, claim\n"
            f"from tformer_book.{name} import drawings as draw\n"
            "\ntorch.set_num_threads(1)  # models this small gain nothing from more",
            metadata=hidden,
        ),
        v4.new_code_cell('draw.row_of_tokens(["the", "cat", "sat"])', metadata=drawn),
        v4.new_markdown_cell(f"A longer run is recorded (`experiments/{name}_means.py`):"),
        v4.new_code_cell(
            "from tformer_book.kit.records import recorded\n\n"
            f'means = recorded("{name}_means")["results"]\n'
            'few, many = max(means["10"]), max(means["1000"])\n'
            'print(f"10 numbers: {few:.2f}, 1,000 numbers: {many:.2f}")'
        ),
        v4.new_code_cell(
            "# @title The numbers behind this\n"
            f'claim("{name}.means", few / many, (2, 20),\n'
            '      "recorded distance of a mean from 0, ten numbers over a thousand", "times")',
            metadata=claims,
        ),
        v4.new_markdown_cell(
            "## Exercises\n\n"
            f":::{{exercise}} Means of columns\n:label: ex-{label}-means\n\n"
            "*Easy · code · about 5 minutes*\n\nWrite `column_means(X)`, the mean of each column.\n:::"
        ),
        v4.new_code_cell(
            f'def column_means(X): ...\n\n\ncheck("{name}.column_means", column_means)',
            metadata={"tags": ["answer", "remove-cell"]},
        ),
        v4.new_markdown_cell(
            f":::{{solution-start}} ex-{label}-means\n:label: sol-{label}-means\n:class: dropdown\n:::"
        ),
        v4.new_code_cell(
            "# @title Solution\ndef column_means(X):\n    return X.mean(dim=0)\n\n\n"
            f'check("{name}.column_means", column_means)',
            metadata=solution,
        ),
        v4.new_markdown_cell(":::{solution-end}\n:::"),
    ]
    for i, cell in enumerate(cells):
        cell.id = f"{label[:40]}-{i}"
    return v4.new_notebook(cells=cells)


def with_entry(contents: str, name: str, after: str) -> str:
    """The table of contents with a line for the chapter, behind that of another."""
    line = re.search(rf"^( *- file: )book/{after}/\w+\n", contents, re.MULTILINE)
    return contents[: line.end()] + f"{line[1]}book/{name}/chapter\n" + contents[line.end() :]


def make(name: str, title: str, after: str | None = None, root: Path = ROOT) -> list[Path]:
    """Writes the chapter; returns its files, the contents last.

    Raises:
        ValueError: if the name is no name or is taken, the title is empty, or there is no chapter `after`.
    """
    there = [chapter.name for chapter in chapters(root)]
    if not NAME.fullmatch(name) or name in TAKEN or (root / "book" / name).exists():
        raise ValueError(f"NAME should be new, in small letters and with _ between words; got {name!r}")
    if not title.strip():
        raise ValueError("TITLE should say what the chapter is on")
    after = after or there[-1]
    if after not in there:
        raise ValueError(f"there is no chapter {after!r} to stand behind; there are {', '.join(there)}")
    written = []
    for path, text in files(name, title.strip()).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf8")
        written.append(root / path)
    address = yaml.safe_load((root / "_config.yml").read_text("utf8"))["repository"]["url"].rstrip("/")
    notebook = root / "book" / name / "chapter.ipynb"
    nbformat.write(page(name, title.strip(), address), notebook)
    contents = root / "_toc.yml"
    contents.write_text(with_entry(contents.read_text("utf8"), name, after), "utf8")
    return [*written, notebook, contents]


def main(arguments: list[str] | None = None) -> int:
    """Makes the chapter, draws its card, records its experiment and runs its page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="of its folder, such as long_sequences")
    parser.add_argument("title")
    parser.add_argument("--after", help="the chapter behind which it stands; the last if none is named")
    options = parser.parse_args(arguments)
    try:
        written = make(options.name, options.title, options.after)
    except ValueError as error:
        sys.exit(str(error))
    notebook, code = written[-2], [str(path) for path in written if path.suffix == ".py"]
    for command in (
        ["-m", "ruff", "format", "-q", *code],
        ["tools/draw_pictures.py", options.name],
        ["-m", f"tformer_book.{options.name}.experiments.{options.name}_means"],
        ["tools/format_notebooks.py", str(notebook)],
        ["tools/execute.py", str(notebook)],
    ):
        subprocess.run([sys.executable, *command], cwd=ROOT, check=True)
    print(f"book/{options.name} is there and its page has run. Next: write it, then make check.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
