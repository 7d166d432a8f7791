"""The book's notebooks keep the rules of style, each for itself and all together."""

from collections import Counter
from pathlib import Path

import pytest

from tests.notebooks import pattern, rules, template
from tests.notebooks.page import Book, Page, cited

ROOT = Path(__file__).parents[2]
PAGES = [Page.read(path) for path in sorted((ROOT / "book").glob("*.ipynb"))]


def rules_of(page: Page) -> list[rules.Rule]:
    """A chapter keeps the pattern once it is written to it, and the older template until then."""
    if not page.is_chapter:
        return rules.RULES
    return rules.RULES + (pattern.RULES if page.path.stem in pattern.WRITTEN else template.RULES)


CASES = [(page, rule) for page in PAGES for rule in rules_of(page)]


@pytest.fixture(scope="module")
def book() -> Book:
    return Book.read(ROOT)


@pytest.mark.parametrize(("page", "rule"), CASES, ids=[f"{p.path.stem}-{r.__name__}" for p, r in CASES])
def test_rule(page, rule, book):
    problems = list(rule(page, book))
    assert not problems, "\n".join([f"{page.path.name}: {rule.__doc__}", *problems])


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
