"""The rules of what lies beside a chapter: its laboratories and its exercises."""

import re
from collections.abc import Iterator

from tests.notebooks.page import Book, Page, describe, tags
from tests.notebooks.rules import Rule
from tests.notebooks.template import EXERCISE, opens
from tformer_book.kit.carried import Cell

LABORATORY_QUOTE = ["**What this is.**", "**You need**", "**Runs in**"]
EXERCISES_QUOTE = ["**What this is.**", "**Runs in**"]
SECTION = re.compile(r"^## +(.*)$", re.MULTILINE)
FENCED = re.compile(r"^(```|:::).*?^\1$", re.MULTILINE | re.DOTALL)
# What opens a section and is no paragraph: a title, a label, a list, a table, a quote, a box, a formula.
NO_PARAGRAPH = re.compile(r"#|\([\w-]+\)=|[-*+] |\d+[.)] |\||>|:::|```|\$\$|!\[|<|---")
SOLUTION = re.compile(r"\{solution(?:-start)?\}\s*(\S+)")
LEAST_EXERCISES = 6
HEAD = re.compile(
    r"^\*(?:Easy|Medium|Hard) · (?:code|paper|figure|experiment) · about \d+ minutes\*$", re.MULTILINE
)
CHECKED = re.compile(r"\bcheck\(\s*[\"']([\w.]+)[\"']")
FOLD = "<details><summary>Solution</summary>"


def laboratory_opening(page: Page, book: Book) -> Iterator[str]:
    """Label, title, and what it is, needs and takes come before the first code."""
    yield from opens(page, "lab", LABORATORY_QUOTE)


def findings_first(page: Page, book: Book) -> Iterator[str]:
    """Each section, of which there is one at least, opens with a paragraph: what was found."""
    count, waits = 0, None  # for the paragraph of the section with this title
    for cell in page.cells:
        if cell.cell_type != "markdown":
            if waits:
                yield f"the section {waits!r} opens with code; its first paragraph says what was found"
            waits = None
            continue
        before, *parts = SECTION.split(FENCED.sub(lambda box: box[0].replace("\n## ", "\n "), cell.source))
        for title, text in [(None, before), *zip(parts[::2], parts[1::2], strict=True)]:
            if title is not None:
                if waits:
                    yield f"the section {waits!r} says nothing before the next"
                count, waits = count + 1, title.strip()
            lines = [line for line in text.splitlines() if line.strip()]
            if waits and lines:
                if NO_PARAGRAPH.match(lines[0]):
                    yield f"the section {waits!r} does not open with a paragraph, but with {lines[0][:40]!r}"
                waits = None
    if waits:
        yield f"the section {waits!r} says nothing"
    if not count:
        yield "there is no section: each experiment has one, with a title of two #"


def exercises_opening(page: Page, book: Book) -> Iterator[str]:
    """Label, title, what it is and what it takes come before the first code."""
    yield from opens(page, "exercises", EXERCISES_QUOTE)


def one_cell_first(page: Page, book: Book) -> Iterator[str]:
    """Who opens the exercises runs one cell before the first answer, and it is enough for all of them."""
    before = []
    for cell in page.code:
        if "answer" in tags(cell):
            break
        if "solution" not in tags(cell):
            before.append(cell)
    if not any("answer" in tags(cell) for cell in page.code):
        yield "there is no cell to answer in"
    elif len(before) != 1:
        yield f"{len(before)} cells of code stand before the first to answer in; one is wanted, the setup"
    for cell in before[1:]:
        yield f"{describe(cell)} stands between the setup and the first cell to answer in"


def one_cell_is_enough(page: Page, book: Book) -> Iterator[str]:
    """An answer uses what the setup gives and what its own cell holds, and nothing that stands between."""
    given = set().union(*(Cell(cell.source).binds for cell in page.code[:1]))
    for cell in page.code:
        if "answer" in tags(cell) and (lacking := sorted(Cell(cell.source).reads - given)):
            yield f"{describe(cell)} reads what the setup does not give: {', '.join(lacking)}"


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


LABORATORY: list[Rule] = [laboratory_opening, findings_first]
EXERCISES: list[Rule] = [
    exercises_opening,
    one_cell_first,
    one_cell_is_enough,
    exercises,
    answers_and_solutions,
]
