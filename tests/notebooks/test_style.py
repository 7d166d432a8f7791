"""The book's notebooks keep the rules of style, each for itself and all together."""

from collections import Counter
from pathlib import Path

import pytest
from chapters import chapters, notebooks

from tests.notebooks import pattern, rules
from tests.notebooks.page import Book, Page, cited

ROOT = Path(__file__).parents[2]
PAGES = [Page.read(path) for path in notebooks()]
IN_THE_PATTERN = {path for chapter in chapters() if chapter.pattern for path in chapter.notebooks}


def rules_of(page: Page) -> list[rules.Rule]:
    """Every notebook keeps the rules; and the pattern of its kind, unless its chapter.yml says no."""
    return rules.RULES + (pattern.RULES[page.kind] if page.path in IN_THE_PATTERN else [])


CASES = [(page, rule) for page in PAGES for rule in rules_of(page)]


IN_FULL = [chapter for chapter in chapters() if chapter.pattern]


@pytest.fixture(scope="module")
def book() -> Book:
    return Book.read(ROOT)


@pytest.mark.parametrize(
    ("page", "rule"), CASES, ids=[f"{p.path.parent.name}-{p.path.stem}-{r.__name__}" for p, r in CASES]
)
def test_rule(page, rule, book):
    problems = list(rule(page, book))
    assert not problems, "\n".join([f"{page.path.parent.name}: {rule.__doc__}", *problems])


@pytest.mark.parametrize("chapter", IN_FULL, ids=lambda chapter: chapter.name)
def test_a_chapter_has_a_laboratory_and_exercises(chapter):
    assert chapter.laboratories
    assert chapter.exercises


@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.name)
def test_other_notebooks_can_take_names_from_a_laboratory(chapter):
    """An import finds a module of the name first: none has a name that a notebook has, but for exercises."""
    names = (chapter.page, *chapter.laboratories)
    taken = [f"{name}.py" for name in names if (chapter.folder / f"{name}.py").exists()]
    taken += [name for name in names if (chapter.folder / name).is_dir()]
    assert taken == []


def test_every_bibliography_entry_is_used(book):
    pages = [path.read_text("utf8") for path in (ROOT / "book").rglob("*.md")]
    used = cited("\n".join(pages)).union(*(page.cited() for page in PAGES))
    assert sorted(book.bibliography - used) == []


def test_pages_cite_what_is_in_the_bibliography(book):
    for path in (ROOT / "book").rglob("*.md"):
        assert sorted(cited(path.read_text("utf8")) - book.bibliography) == [], path.name


def twice(names) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def test_claims_have_names_of_their_own():
    assert twice(name for page in PAGES for name in page.claims) == []


def test_figures_have_names_of_their_own():
    figures = (cell.metadata.get("mystnb", {}).get("figure", {}) for page in PAGES for cell in page.code)
    assert twice(figure["name"] for figure in figures if "name" in figure) == []
