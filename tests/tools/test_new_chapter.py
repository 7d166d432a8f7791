"""`make chapter`: it walks, keeps the rules, is built, and nothing else has to know of it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import new_chapter
import pytest
import yaml
from bs4 import BeautifulSoup
from chapters import ROOT, chapters
from nbformat import v4
from notebook_code import read_cells
from notebook_records import from_record

from tests.notebooks import pattern, rules
from tests.notebooks.page import Book, Page

KINDS = ("chapter", "laboratory", "exercises")
OTHERS = 6  # files outside of its own two folders that a new chapter may touch


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The repository with one chapter, all but empty, beside which `make chapter` has put another."""
    root = tmp_path_factory.mktemp("book")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    left_out = {f"book/{chapter.name}" for chapter in chapters()}
    for name in filter(None, listed.stdout.split("\0")):
        if not any(
            name.startswith(f"{folder}/") or name.startswith(f"tests/{folder}/") for folder in left_out
        ):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
    contents = (
        "format: jb-book\nroot: book/index\nparts:\n  - caption: One\n    numbered: true\n    chapters:\n"
    )
    (root / "_toc.yml").write_text(f"{contents}      - file: book/first/chapter\n")
    (root / "book" / "index.md").write_text("# A book\n\n```{chapter-cards}\n```\n")
    first = root / "book" / "first"
    first.mkdir()
    (first / "chapter.yml").write_text("sentence: What is there?\nminutes: 1\npattern: false\n")
    (first / "card.svg").write_text("<svg></svg>")
    grown = v4.new_code_cell("def train(): ...", metadata={"tags": ["grown", "hide-input"]})
    notebook = v4.new_notebook(cells=[v4.new_markdown_cell("# First"), grown])
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, first / "chapter.ipynb")
    (root / "link").mkdir()
    (root / "link" / "tformer_book").symlink_to(root / "book")
    for command in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *command], cwd=root, check=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "link")])}
    command = [sys.executable, "tools/new_chapter.py", "two_words", "A chapter of two words"]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return root


def test_it_touches_its_own_folders_and_the_contents(book):
    status = ["git", "status", "--porcelain", "--untracked-files=all"]
    lines = subprocess.run(status, cwd=book, capture_output=True, text=True, check=True).stdout.splitlines()
    touched = {line[3:] for line in lines}
    others = {path for path in touched if not path.startswith(("book/two_words/", "tests/book/two_words/"))}
    assert others == {"_toc.yml"}
    assert len(others) <= OTHERS
    own = {path.removeprefix("book/two_words/") for path in touched - others if path.startswith("book/")}
    assert own == {
        "__init__.py",
        "card.py",
        "card.svg",
        "chapter.ipynb",
        "chapter.yml",
        "drawings.py",
        "exercises.ipynb",
        "exercises.py",
        "laboratory.ipynb",
        "experiments/__init__.py",
        "experiments/two_words_means.py",
        "records/two_words_means.json",
    }


@pytest.mark.parametrize("kind", KINDS)
def test_its_notebooks_have_run_and_keep_the_rules(book, kind):
    page = Page.read(book / "book" / "two_words" / f"{kind}.ipynb")
    nbformat.validate(page.notebook)
    of = Book.read(book)
    assert [problem for rule in rules.RULES for problem in rule(page, of)] == []


@pytest.mark.parametrize("kind", ["laboratory", "exercises"])
def test_what_lies_beside_it_has_its_shape_already(book, kind):
    page, of = Page.read(book / "book" / "two_words" / f"{kind}.ipynb"), Book.read(book)
    problems = [problem for rule in pattern.RULES[kind] for problem in rule(page, of)]
    assert [problem for problem in problems if "at least 6 are wanted" not in problem] == []


def test_its_laboratory_goes_on_from_the_record_of_its_chapter(book):
    cells = read_cells(book / "book" / "two_words" / "laboratory.ipynb")
    assert from_record(cells, book / "book") == {"two_words.seeds"}


def test_the_contents_name_its_pages(book):
    _, made = chapters(book)
    assert (made.name, made.number, made.laboratories, made.exercises) == (
        "two_words",
        "1",
        ("laboratory",),
        True,
    )
    contents = (book / "_toc.yml").read_text("utf8")
    again = yaml.safe_load(new_chapter.with_entry(contents, "three", "first"))
    (part,) = again["parts"]
    assert [entry["file"].split("/")[1] for entry in part["chapters"]] == ["first", "three", "two_words"]
    again = yaml.safe_load(new_chapter.with_entry(contents, "three", "two_words"))
    assert [len(entry.get("sections", [])) for entry in again["parts"][0]["chapters"]] == [0, 2, 2]


def test_its_tests_and_its_style_pass(book):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(book), str(book / "link")])}
    tests = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests/book/two_words"]
    for command in (
        tests,
        ["-m", "ruff", "check", "book/two_words"],
        ["-m", "ruff", "format", "--check", "book/two_words"],
    ):
        done = subprocess.run(
            [sys.executable, *command], cwd=book, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_its_page_is_built_with_its_number(book):
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", str(book), "-W", "-n", "-q"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=book, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    site = book / "_build" / "html" / "book"
    assert all((site / "two_words" / f"{kind}.html").exists() for kind in KINDS)
    page = BeautifulSoup((site / "two_words" / "chapter.html").read_text("utf8"), "lxml")
    assert page.select_one("article h1").get_text().startswith("1. A chapter of two words")
    assert page.select_one(".tformer-figure svg") is not None
    first = BeautifulSoup((site / "index.html").read_text("utf8"), "lxml")
    assert any("A chapter of two words" in card.get_text() for card in first.select("a.tformer-card"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Two", "T"), "NAME should be new"),
        (("kit", "T"), "NAME should be new"),
        (("notation", "T"), "NAME should be new"),
        (("three", " "), "TITLE should say"),
        (("three", "T", "nowhere"), "no chapter 'nowhere' to stand behind; there are notation"),
    ],
)
def test_what_cannot_be_made_is_said_and_nothing_is_written(tmp_path, arguments, message):
    toc = "parts:\n  - caption: P\n    chapters:\n      - file: book/notation/chapter\n"
    (tmp_path / "_toc.yml").write_text(toc)
    (tmp_path / "book" / "notation").mkdir(parents=True)
    (tmp_path / "book" / "notation" / "chapter.yml").write_text("sentence: S\nminutes: 1\n")
    with pytest.raises(ValueError, match=message):
        new_chapter.make(*arguments, root=tmp_path)
    assert (tmp_path / "_toc.yml").read_text() == toc
    assert [path.name for path in (tmp_path / "book").iterdir()] == ["notation"]
