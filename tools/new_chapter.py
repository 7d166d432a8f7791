"""A new chapter that walks: `make chapter NAME=slug TITLE="Its title" [AFTER=gpt]`.

Writes the folder `book/NAME` (chapter, laboratory, exercises, a drawing, a card, an experiment and its
record, chapter.yml) and its tests, `tests/book/NAME`; names the pages in `_toc.yml` behind the chapter AFTER,
or last; runs the notebooks, and says what is next. All of it passes `make check`; nothing else needs to know
of the chapter.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import yaml
from chapters import CHAPTER, EXERCISES, LABORATORY, ROOT, chapters
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


HIDDEN = {"tags": ["hide-input"]}
CLOSED = {"jupyter": {"source_hidden": True}, "cellView": "form"}  # in Jupyter and in Colab
RUNS_IN = "**Runs in** about 5 seconds on a laptop with two cores."


def label_of(name: str) -> str:
    """The chapter's word in labels."""
    return name.replace("_", "-")


def setup(address: str, *imports: str) -> nbformat.NotebookNode:
    """The first cell of code: it installs both packages and imports what the notebook needs."""
    lines = [
        "try:\n    import tformer_book  # noqa: F401\nexcept ImportError:",
        f'    %pip install -q "tformer-lib @ git+{address}"',
        f'    %pip install -q "tformer-book @ git+{address}#subdirectory=book"',
        *imports,
        "\ntorch.set_num_threads(1)  # models this small gain nothing from more",
    ]
    return v4.new_code_cell("\n".join(lines), metadata=HIDDEN)


def chapter(name: str, title: str, address: str) -> nbformat.NotebookNode:
    """What is read, without outputs."""
    label = label_of(name)
    figure = {"caption": "Three tokens in a row.", "name": f"fig-{label}-tokens"}
    own = f"from tformer_book.{name} import drawings as draw"
    return notebook(
        f"{label}-c",
        v4.new_markdown_cell(f"(ch-{label})=\n# {title}\n\nWhat does this chapter ask?"),
        setup(address, "import torch\n\nfrom tformer_book import claim", own),
        v4.new_code_cell(
            'draw.row_of_tokens(["the", "cat", "sat"])', metadata=HIDDEN | {"mystnb": {"figure": figure}}
        ),
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
            metadata=HIDDEN | CLOSED,
        ),
    )


def laboratory(name: str, title: str, address: str) -> nbformat.NotebookNode:
    """A further experiment, without outputs; it takes a name from the chapter."""
    label = label_of(name)
    return notebook(
        f"{label}-l",
        v4.new_markdown_cell(
            f"(lab-{label})=\n# {title}: laboratory\n\n"
            f"> **What this is.** The experiments behind {{chapter}}`ch-{label}`: each section says first "
            f"what was found, and can be read by itself. **You need** the chapter.\n> {RUNS_IN}"
        ),
        setup(address, "import torch\n\nfrom tformer_book import claim"),
        v4.new_markdown_cell(
            f"(sec-{label}-lab-seeds)=\n## Does it hold for every seed?\n\n"
            "With each of the three seeds the mean of a thousand numbers is the nearer to 0."
        ),
        v4.new_code_cell(
            f"from tformer_book.{name}.chapter import means\n\n"
            'nearer = [b < a for a, b in zip(means["10"], means["1000"], strict=True)]\n'
            'print(f"{sum(nearer)} of {len(nearer)} seeds")'
        ),
        v4.new_code_cell(
            "# @title The numbers behind this\n"
            f'claim("{name}.seeds", sum(nearer), (3, 3),\n'
            '      "recorded seeds with which a thousand numbers are nearer than ten")',
            metadata=HIDDEN | CLOSED,
        ),
    )


def exercises(name: str, title: str, address: str) -> nbformat.NotebookNode:
    """An exercise with its solution, without outputs."""
    label = label_of(name)
    return notebook(
        f"{label}-e",
        v4.new_markdown_cell(
            f"(exercises-{label})=\n# {title}: exercises\n\n"
            f"> **What this is.** The exercise of {{chapter}}`ch-{label}`. Run the next cell once; it is "
            f"enough for all of them.\n> {RUNS_IN}"
        ),
        setup(address, "import torch\n\nfrom tformer_book import check"),
        v4.new_markdown_cell(
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
            metadata={"tags": ["solution"]} | CLOSED,
        ),
        v4.new_markdown_cell(":::{solution-end}\n:::"),
    )


def notebook(word: str, *cells: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The cells as a notebook; their ids begin with the word."""
    for i, cell in enumerate(cells):
        cell.id = f"{word[:40]}-{i}"
    return v4.new_notebook(cells=list(cells))


PAGES = {CHAPTER: chapter, LABORATORY: laboratory, EXERCISES: exercises}


def with_entry(contents: str, name: str, after: str) -> str:
    """The table of contents with the chapter and its sections, behind another and what stands below that."""
    line = re.search(rf"^( *)- file: book/{after}/\w+\n(?:\1 +.*\n)*", contents, re.MULTILINE)
    margin = line[1]
    entry = [f"{margin}- file: book/{name}/{CHAPTER}", f"{margin}  sections:"]
    for section in (LABORATORY, EXERCISES):
        entry += [
            f"{margin}    - file: book/{name}/{section}",
            f"{margin}      title: {section.capitalize()}",
        ]
    return contents[: line.end()] + "\n".join([*entry, ""]) + contents[line.end() :]


def make(name: str, title: str, after: str | None = None, root: Path = ROOT) -> list[Path]:
    """Writes the chapter; returns its files, the notebooks and then the contents last.

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
    for stem, page in PAGES.items():
        written.append(root / "book" / name / f"{stem}.ipynb")
        nbformat.write(page(name, title.strip(), address), written[-1])
    contents = root / "_toc.yml"
    contents.write_text(with_entry(contents.read_text("utf8"), name, after), "utf8")
    return [*written, contents]


def main(arguments: list[str] | None = None) -> int:
    """Makes the chapter, draws its card, records its experiment and runs its notebooks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="of its folder, such as long_sequences")
    parser.add_argument("title")
    parser.add_argument("--after", help="the chapter behind which it stands; the last if none is named")
    options = parser.parse_args(arguments)
    try:
        written = make(options.name, options.title, options.after)
    except ValueError as error:
        sys.exit(str(error))
    pages = [str(path) for path in written if path.suffix == ".ipynb"]
    code = [str(path) for path in written if path.suffix == ".py"]
    for command in (
        ["-m", "ruff", "format", "-q", *code],
        ["tools/draw_pictures.py", options.name],
        ["-m", f"tformer_book.{options.name}.experiments.{options.name}_means"],
        ["tools/format_notebooks.py", *pages],
        ["tools/execute.py", *pages],
    ):
        subprocess.run([sys.executable, *command], cwd=ROOT, check=True)
    print(f"book/{options.name} is there and its notebooks have run. Next: write it, then make check.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
