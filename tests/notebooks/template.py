"""The rules of a chapter: its parts, their order, and its exercises."""

import re
from collections.abc import Callable, Iterator, Sequence

from nbformat import NotebookNode

from tests.notebooks.page import Book, Page, describe, mime_types, tags
from tests.notebooks.rules import Rule

Part = tuple[str, Callable[[NotebookNode], bool]]
QUOTE = ["**The question.**", "**You need**", "**You will build**", "**Runs in**"]
COUNT = r"(?:\d+|an?|one|two|three|four|five|ten|twenty|thirty|forty|fifty)"
RUN_TIME = re.compile(rf"about {COUNT} (?:seconds?|minutes?) on a laptop with two cores \(AVX2\)")
NUMBERED = re.compile(r"\$\$\s*\(eq-[\w-]+\)|:label:\s*eq-[\w-]+")
EXERCISE = re.compile(r"\{exercise(?:-start)?\}[^\n]*\n(?:\s*:(?!label)[^\n]*\n)*\s*:label:\s*(\S+)")
SOLUTION = re.compile(r"\{solution(?:-start)?\}\s*(\S+)")
LEAST_EXERCISES = 6
HEAD = re.compile(
    r"^\*(?:Easy|Medium|Hard) · (?:code|paper|figure|experiment) · about \d+ minutes\*$", re.MULTILINE
)
CHECKED = re.compile(r"\bcheck\(\s*[\"']([\w.]+)[\"']")
FOLD = "<details><summary>Solution</summary>"


def opening(page: Page, book: Book) -> Iterator[str]:
    """Label, title and the four promises come before the first code."""
    first = next((i for i, cell in enumerate(page.cells) if cell.cell_type == "code"), len(page.cells))
    text = "\n\n".join(cell.source for cell in page.cells[:first]).strip()
    if not re.match(r"\(ch-[\w-]+\)=\s*\n\s*# \S", text):
        yield "the chapter does not open with its label (ch-...)= and its title"
    quote = "\n".join(line for line in text.splitlines() if line.startswith(">"))
    places = [quote.find(promise) for promise in QUOTE]
    for promise, place in zip(QUOTE, places, strict=True):
        if place < 0:
            yield f"the block quote of the opening lacks {promise}"
    if -1 not in places and places != sorted(places):
        yield "the promises of the opening are out of order"
    if not RUN_TIME.search(quote):
        yield "the opening does not say 'about N seconds on a laptop with two cores (AVX2)', or minutes"


def in_order(page: Page, parts: Sequence[Part]) -> Iterator[str]:
    """The first part that does not follow the one before it."""
    place = 0
    for name, holds in parts:
        found = next((i for i in range(place, len(page.cells)) if holds(page.cells[i])), None)
        if found is None:
            yield f"the template wants {name} here, after cell {place}"
            return
        place = found


def exercises(page: Page, book: Book) -> Iterator[str]:
    """At least six, each with a solution."""
    labels, solved = EXERCISE.findall(page.prose), SOLUTION.findall(page.prose)
    if len(labels) < LEAST_EXERCISES:
        yield f"there are {len(labels)} labelled exercises; at least {LEAST_EXERCISES} are wanted"
    for label in labels:
        if label not in solved:
            yield f"the exercise {label!r} has no solution"
    for label in solved:
        if label not in labels:
            yield f"the solution of {label!r} has no exercise"
    heads = HEAD.findall(page.prose)
    if len(heads) != len(labels):
        yield f"of {len(labels)} exercises {len(heads)} begin with difficulty, kind and minutes"


def answers_and_solutions(page: Page, book: Book) -> Iterator[str]:
    """A cell to answer in for each checked exercise; solutions closed in Jupyter and Colab as on the site."""
    asked = {name for cell in page.code if "answer" in tags(cell) for name in CHECKED.findall(cell.source)}
    inside = False
    for cell in page.cells:
        if cell.cell_type == "markdown":
            gate = re.search(r"\{solution-(start|end)\}", cell.source)
            inside = gate[1] == "start" if gate else inside
            closed = cell.source.startswith(FOLD) and cell.source.rstrip().endswith("</details>")
            if inside and not gate and not closed:
                yield f"{describe(cell)} is a solution in words that Jupyter shows open: fold it by {FOLD}"
        elif "solution" in tags(cell):
            hidden = cell.metadata.get("jupyter", {}).get("source_hidden")
            form = cell.metadata.get("cellView") == "form" and cell.source.startswith("# @title Solution")
            if not (hidden and form):
                yield f"{describe(cell)} is a solution that Jupyter or Colab shows open"
            for name in sorted(set(CHECKED.findall(cell.source)) - asked):
                yield f"the exercise {name!r} has no cell to answer in"
        elif "answer" in tags(cell) and "remove-cell" not in tags(cell):
            yield f"{describe(cell)} is for an answer, and the site shows it: tag it remove-cell"


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
    (
        "the box 'From columns to rows' with the class columns-to-rows",
        prose(r"\{admonition\} From columns to rows\s*\n\s*:class: columns-to-rows"),
    ),
    ("a check cell with assert_close or a claim", _code("assert_close(", "claim(")),
    ("an experiment with a figure", _figure),
    ("the section What you learned", prose(r"^## What you learned\s*$")),
    ("the section Laboratory", prose(r"^## Laboratory\s*$")),
    ("the section Exercises", prose(r"^## Exercises\s*$")),
    ("the section Further reading", prose(r"^## Further reading\s*$")),
]


def parts_in_order(page: Page, book: Book) -> Iterator[str]:
    """Each part is found after the one before it; the laboratory follows what was learned."""
    yield from in_order(page, PARTS)


RULES: list[Rule] = [opening, parts_in_order, example_comes_first, exercises, answers_and_solutions]
