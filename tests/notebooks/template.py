"""The rules of a chapter's parts: its opening, what comes in which order, and what stands elsewhere."""

import re
from collections.abc import Callable, Iterator, Sequence

from nbformat import NotebookNode

from tests.notebooks.page import Book, Page, mime_types
from tests.notebooks.rules import Rule

Part = tuple[str, Callable[[NotebookNode], bool]]
QUOTE = ["**The question.**", "**You need**", "**You will build**", "**Runs in**"]
COUNT = r"(?:\d+|an?|one|two|three|four|five|ten|twenty|thirty|forty|fifty)"
RUN_TIME = re.compile(rf"about {COUNT} (?:seconds?|minutes?) on a laptop with two cores")
NUMBERED = re.compile(r"\$\$\s*\(eq-[\w-]+\)|:label:\s*eq-[\w-]+")
EXERCISE = re.compile(r"\{exercise(?:-start)?\}[^\n]*\n(?:\s*:(?!label)[^\n]*\n)*\s*:label:\s*(\S+)")
ELSEWHERE = re.compile(r"^## (Laboratory|Exercises)\s*$", re.MULTILINE)
MOST_CELLS = 80


def head(page: Page) -> str:
    """All prose before the first code."""
    first = next((i for i, cell in enumerate(page.cells) if cell.cell_type == "code"), len(page.cells))
    return "\n\n".join(cell.source for cell in page.cells[:first]).strip()


def opens(page: Page, label: str, promises: Sequence[str]) -> Iterator[str]:
    """What is wrong with an opening: its label, its title, or the promises in its quote."""
    text = head(page)
    if not re.match(rf"\({label}-[\w-]+\)=\s*\n\s*# \S", text):
        yield f"the {page.kind} does not open with its label ({label}-...)= and its title"
    quote = "\n".join(line for line in text.splitlines() if line.startswith(">"))
    places = [quote.find(promise) for promise in promises]
    for promise, place in zip(promises, places, strict=True):
        if place < 0:
            yield f"the block quote of the opening lacks {promise}"
    if -1 not in places and places != sorted(places):
        yield "the promises of the opening are out of order"
    if not RUN_TIME.search(quote):
        yield "the opening does not say 'about N seconds on a laptop with two cores', or minutes"


def opening(page: Page, book: Book) -> Iterator[str]:
    """Label, title and the four promises come before the first code."""
    yield from opens(page, "ch", QUOTE)


def length(page: Page, book: Book) -> Iterator[str]:
    """A chapter is read in one go: further experiments and exercises have notebooks of their own."""
    if len(page.cells) > MOST_CELLS:
        yield f"the chapter has {len(page.cells)} cells; {MOST_CELLS} are allowed"
    for title in ELSEWHERE.findall(page.prose):
        yield f"the section {title} stands in the chapter; it has a notebook of its own"
    for label in EXERCISE.findall(page.prose):
        yield f"the exercise {label!r} stands in the chapter; it belongs to exercises.ipynb"


def in_order(page: Page, parts: Sequence[Part]) -> Iterator[str]:
    """The first part that does not follow the one before it."""
    place = 0
    for name, holds in parts:
        found = next((i for i in range(place, len(page.cells)) if holds(page.cells[i])), None)
        if found is None:
            yield f"the template wants {name} here, after cell {place}"
            return
        place = found


def example_comes_first(page: Page, book: Book) -> Iterator[str]:
    """Between the setup and the first numbered equation the reader sees numbers."""
    code = [i for i, cell in enumerate(page.cells) if cell.cell_type == "code"]
    equation = next((i for i, cell in enumerate(page.cells) if NUMBERED.search(cell.source)), None)
    if equation is None or not code:
        return
    before = page.cells[code[0] + 1 : equation]
    ran = any(cell.cell_type == "code" and cell.outputs for cell in before)
    table = any(re.search(r"^\|.*\d.*\|", cell.source, re.MULTILINE) for cell in before)
    if not (ran or table):
        yield "no numbers, in a cell's output or a table, come before the first numbered equation"


def _code(*words: str):
    return lambda cell: cell.cell_type == "code" and any(word in cell.source for word in words)


def prose(pattern: str):
    expression = re.compile(pattern, re.MULTILINE | re.IGNORECASE)
    return lambda cell: cell.cell_type == "markdown" and bool(expression.search(cell.source))


def _figure(cell: NotebookNode) -> bool:
    return "image/png" in mime_types(cell)


PARTS: list[Part] = [
    ("a numbered equation", prose(NUMBERED.pattern)),
    ("a section whose title says 'by hand'", prose(r"^##+ .*by hand")),
    ("a check cell with assert_close or a claim", _code("assert_close(", "claim(")),
    ("an experiment with a figure", _figure),
    ("the section What you learned", prose(r"^## What you learned\s*$")),
    ("the section Further reading", prose(r"^## Further reading\s*$")),
]


def parts_in_order(page: Page, book: Book) -> Iterator[str]:
    """Each part is found after the one before it; what was learned and further reading come last."""
    yield from in_order(page, PARTS)


def columns_box(page: Page, book: Book) -> Iterator[str]:
    """Where a box says how formulas become code, it looks as in all chapters."""
    for cell in page.cells:
        for box in re.findall(r"\{admonition\} From columns to rows\s*\n\s*(.*)", cell.source):
            if not box.startswith(":class: columns-to-rows"):
                yield "the box 'From columns to rows' has not the class columns-to-rows"


RULES: list[Rule] = [opening, parts_in_order, example_comes_first, columns_box, length]
