"""The chapters, as the table of contents orders them and as their folders describe themselves.

A chapter is a folder of `book` with a file `chapter.yml`:

    sentence: What its card on the first page says.
    minutes: 35
    pattern: false  # if it is not of a chapter's usual shape
    was: 02_attention  # if its page once had another address
    words: {attention: [dot-product attention]}  # other names of terms, for the search

and its number is its place in `_toc.yml`, counted from 0: the first is what stands before the beginning.
Nothing else lists the chapters. Everything that needs to know which there are asks here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath

import yaml

ROOT = Path(__file__).resolve().parents[1]
FILE = "chapter.yml"


@dataclass(frozen=True)
class Chapter:
    """A chapter: the folder in which all of it lies, its number, and what it says of itself."""

    name: str  # of the folder, "attention"
    folder: Path
    number: str  # in titles and links, "2"
    part: str  # the part's caption in the contents
    sentence: str
    minutes: int
    words: Mapping[str, list[str]] = field(default_factory=dict, hash=False)  # of a term, its other names
    was: str = ""  # the file that its page was in "book", so that old addresses lead here
    pattern: bool = True  # whether the rules of a chapter's shape hold it
    page: str = "chapter"  # the notebook that opens it

    @property
    def docname(self) -> str:
        """As Sphinx calls its page: book/attention/chapter."""
        return f"book/{self.name}/{self.page}"

    @property
    def notebook(self) -> Path:
        """The file of that page."""
        return self.folder / f"{self.page}.ipynb"


def described(file: Path) -> dict:
    """What a chapter.yml says.

    Raises:
        ValueError: if something is missing, or there is something that nobody reads.
    """
    told = yaml.safe_load(file.read_text("utf8")) or {}
    wanted = {"sentence": str, "minutes": int}
    wrong = [
        f"{key} is no {kind.__name__}" for key, kind in wanted.items() if not isinstance(told.get(key), kind)
    ]
    wrong += [f"{key} is read by nobody" for key in sorted(set(told) - {*wanted, "pattern", "was", "words"})]
    if wrong:
        raise ValueError(f"{file}: {'; '.join(wrong)}")
    return told


@cache
def chapters(root: Path = ROOT) -> tuple[Chapter, ...]:
    """All chapters, in the order of the contents.

    Raises:
        ValueError: if a folder describes itself as a chapter and the contents do not name it, or the other
            way round.
    """
    found: list[Chapter] = []
    for part in yaml.safe_load((root / "_toc.yml").read_text("utf8"))["parts"]:
        for entry in part["chapters"]:
            path = PurePosixPath(entry["file"])
            folder = root / path.parent
            if part.get("numbered") and not (folder / FILE).exists():
                raise ValueError(f"_toc.yml has the chapter {path}, and there is no {folder / FILE}")
            if (folder / FILE).exists():
                told = described(folder / FILE)
                number = str(len(found))
                found.append(Chapter(folder.name, folder, number, part["caption"], page=path.name, **told))
    named = {chapter.name for chapter in found}
    lost = sorted(
        file.parent.name for file in (root / "book").glob(f"*/{FILE}") if file.parent.name not in named
    )
    if lost:
        raise ValueError(f"_toc.yml does not name the chapters {', '.join(lost)}")
    return tuple(found)


def notebooks(root: Path = ROOT) -> list[Path]:
    """The notebooks of the book: all in folders of `book`, chapter after chapter."""
    return [path for chapter in chapters(root) for path in sorted(chapter.folder.glob("*.ipynb"))]


def by_docname(root: Path = ROOT) -> dict[str, Chapter]:
    """The chapter that a page opens or belongs to, by the page's name in Sphinx."""
    return {
        f"book/{chapter.name}/{path.stem}": chapter
        for chapter in chapters(root)
        for path in chapter.folder.glob("*.ipynb")
    }
