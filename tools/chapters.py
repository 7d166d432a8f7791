"""The chapters, as the table of contents orders them and as their folders describe themselves.

A chapter is a folder of `book` with a file `chapter.yml`:

    sentence: What its card on the first page says.
    minutes: 35
    laboratories: [copying, probes]  # if it has several, in their order
    pattern: false  # if it is not of a chapter's usual shape
    was: 02_attention  # if its page once had another address
    words: {attention: [dot-product attention]}  # other names of terms and sections, for the search

and its number is its place in `_toc.yml`, counted from 0: the first is what stands before the beginning.
Its notebooks lie beside that file and are of three kinds: `chapter.ipynb`, what is read; the laboratory, its
further experiments, in `laboratory.ipynb` or in several that chapter.yml names; `exercises.ipynb`. In
`_toc.yml` the others stand below the chapter, as its sections.

Nothing else lists the chapters. Everything that needs to know which there are asks here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath

import yaml

ROOT = Path(__file__).resolve().parents[1]
FILE = "chapter.yml"
CHAPTER, LABORATORY, EXERCISES = "chapter", "laboratory", "exercises"  # kinds of notebooks, and their files


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
    page: str = CHAPTER  # the notebook that opens it
    laboratories: tuple[str, ...] = ()  # the notebooks of its laboratory, in order, without ".ipynb"
    exercises: bool = False  # whether it has a notebook of them

    @property
    def docname(self) -> str:
        """As Sphinx calls its page: book/attention/chapter."""
        return f"book/{self.name}/{self.page}"

    @property
    def notebook(self) -> Path:
        """The file of that page."""
        return self.folder / f"{self.page}.ipynb"

    @property
    def companions(self) -> tuple[str, ...]:
        """The notebooks beside that one, in order: the laboratory's, the exercises."""
        return (*self.laboratories, EXERCISES) if self.exercises else self.laboratories

    @property
    def notebooks(self) -> tuple[Path, ...]:
        """The files of all its notebooks, in order."""
        return tuple(self.folder / f"{name}.ipynb" for name in (self.page, *self.companions))


def kind(path: Path) -> str:
    """What a notebook is, by its file's name: "chapter", "exercises", or "laboratory" by any other."""
    return path.stem if path.stem in (CHAPTER, EXERCISES) else LABORATORY


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
    read = {*wanted, "laboratories", "pattern", "was", "words"}
    wrong += [f"{key} is read by nobody" for key in sorted(set(told) - read)]
    if not isinstance(told.get("laboratories", []), list):
        wrong.append("laboratories is no list")
    if wrong:
        raise ValueError(f"{file}: {'; '.join(wrong)}")
    return told


def companions(folder: Path, told: dict, page: str) -> tuple[tuple[str, ...], bool]:
    """Which notebooks lie beside a chapter's own: its laboratories, and whether there are exercises.

    Raises:
        ValueError: if a notebook is there that chapter.yml does not name, or the other way round; or if a
            module has a laboratory's name, so that nothing could be imported from the notebook.
    """
    there = {path.stem for path in folder.glob("*.ipynb")} - {page}
    named = [str(name) for name in told.get("laboratories", [LABORATORY] if LABORATORY in there else [])]
    lacking = [f"{name}.ipynb" for name in named if name not in there]
    if lacking:
        raise ValueError(f"{folder / FILE} names laboratories that are not there: {', '.join(lacking)}")
    strange = sorted(f"{name}.ipynb" for name in there - {*named, EXERCISES})
    if strange:
        raise ValueError(f"{folder / FILE} does not name among its laboratories: {', '.join(strange)}")
    modules = [name for name in named if (folder / f"{name}.py").exists() or (folder / name).is_dir()]
    if modules:
        raise ValueError(f"{folder} has modules named as laboratories: {', '.join(modules)}")
    return tuple(named), EXERCISES in there


def check_sections(chapter: Chapter, entry: dict) -> None:
    """The contents name under a chapter what lies beside it.

    Raises:
        ValueError: if they lack one, have one that is not there, or another order.
    """
    listed = [section["file"] for section in entry.get("sections", [])]
    there = [f"book/{chapter.name}/{name}" for name in chapter.companions]
    if missing := [name for name in there if name not in listed]:
        raise ValueError(f"_toc.yml does not name under {entry['file']}, as sections: {', '.join(missing)}")
    if lost := [name for name in listed if name not in there]:
        raise ValueError(f"_toc.yml has sections of {entry['file']} that are not there: {', '.join(lost)}")
    if listed != there:
        raise ValueError(f"the sections of {entry['file']} in _toc.yml should come as {', '.join(there)}")


@cache
def chapters(root: Path = ROOT) -> tuple[Chapter, ...]:
    """All chapters, in the order of the contents.

    Raises:
        ValueError: if a folder describes itself as a chapter and the contents do not name it, or the other
            way round; or so with a notebook beside a chapter's own.
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
                told["laboratories"], exercises = companions(folder, told, path.name)
                number, place = str(len(found)), {"page": path.name, "exercises": exercises}
                found.append(Chapter(folder.name, folder, number, part["caption"], **place, **told))
                check_sections(found[-1], entry)
    named = {chapter.name for chapter in found}
    lost = sorted(
        file.parent.name for file in (root / "book").glob(f"*/{FILE}") if file.parent.name not in named
    )
    if lost:
        raise ValueError(f"_toc.yml does not name the chapters {', '.join(lost)}")
    return tuple(found)


def notebooks(root: Path = ROOT) -> list[Path]:
    """The notebooks of the book, chapter after chapter: its own, its laboratories, its exercises."""
    return [path for chapter in chapters(root) for path in chapter.notebooks]


def by_docname(root: Path = ROOT) -> dict[str, Chapter]:
    """The chapter that a page opens or belongs to, by the page's name in Sphinx, in the same order."""
    return {
        f"book/{chapter.name}/{path.stem}": chapter
        for chapter in chapters(root)
        for path in chapter.notebooks
    }
