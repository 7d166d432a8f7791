"""A notebook as the rules of style see it."""

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import nbformat
import yaml
from chapters import CHAPTER, kind
from nbformat import NotebookNode

CITE = re.compile(r"\{cite(?::\w+)?\}`([^`]+)`")
BIB_ENTRY = re.compile(r"^@\w+\{\s*([^,\s]+)\s*,", re.MULTILINE)
CLAIM_CALL = re.compile(r"\bclaim\(\s*[\"']([^\"']+)[\"']")


@dataclass(frozen=True)
class Book:
    """What a notebook is held to: the repository's address and the bibliography."""

    address: str
    bibliography: frozenset[str]

    @classmethod
    def read(cls, root: Path) -> "Book":
        config = yaml.safe_load((root / "_config.yml").read_text("utf8"))
        entries = BIB_ENTRY.findall((root / "references.bib").read_text("utf8"))
        return cls(config["repository"]["url"].rstrip("/"), frozenset(entries))


@dataclass(frozen=True)
class Page:
    """A notebook: its cells, and what is asked of them most often."""

    path: Path
    notebook: NotebookNode = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> "Page":
        return cls(path, nbformat.read(path, as_version=4))

    @property
    def kind(self) -> str:
        """Whether it is a chapter, a laboratory or exercises."""
        return kind(self.path)

    @cached_property
    def chapter(self) -> "Page":
        """The chapter in whose folder it lies; itself where there is none."""
        path = self.path.with_name(f"{CHAPTER}.ipynb")
        return Page.read(path) if self.kind != CHAPTER and path.exists() else self

    @cached_property
    def beside(self) -> list["Page"]:
        """The other notebooks of its chapter."""
        return [Page.read(path) for path in sorted(self.path.parent.glob("*.ipynb")) if path != self.path]

    @cached_property
    def cells(self) -> list[NotebookNode]:
        return list(self.notebook.cells)

    @cached_property
    def code(self) -> list[NotebookNode]:
        return [cell for cell in self.cells if cell.cell_type == "code"]

    @cached_property
    def prose(self) -> str:
        """All Markdown, one cell after the other."""
        return "\n\n".join(cell.source for cell in self.cells if cell.cell_type == "markdown")

    @cached_property
    def claims(self) -> list[str]:
        """The names of the claims that the code makes."""
        return [name for cell in self.code for name in CLAIM_CALL.findall(cell.source)]

    def cited(self) -> set[str]:
        return cited(self.prose)


def cited(text: str) -> set[str]:
    """The bibliography keys that a text cites."""
    return {key.strip() for keys in CITE.findall(text) for key in keys.split(",")}


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def lines(cell: NotebookNode) -> int:
    """The lines of a cell that are not blank; a form's title is none."""
    return sum(bool(line.strip()) and not line.startswith("# @title") for line in cell.source.splitlines())


def mime_types(cell: NotebookNode) -> set[str]:
    """The types of everything that a code cell shows."""
    return {mime for output in cell.get("outputs", []) for mime in output.get("data", {})}


def describe(cell: NotebookNode) -> str:
    """The cell's first line, to find it by."""
    first = next((line for line in cell.source.splitlines() if line.strip()), "")
    return f"cell {first.strip()[:60]!r}"
