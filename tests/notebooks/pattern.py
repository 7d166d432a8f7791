"""The rules of a notebook's shape, by its kind; a chapter's: a first screen, a core path, asides."""

import re
from collections.abc import Iterator

from chapters import CHAPTER, EXERCISES, LABORATORY
from nbformat import NotebookNode

from tests.notebooks import companions, template
from tests.notebooks.page import Book, Page, describe, tags
from tests.notebooks.rules import Rule

MOST_WORDS, MOST_CELLS, LEAST_DRAWINGS = 1_850, 20, 2
FIRST_SECTION = re.compile(r"^## ", re.MULTILINE)
END_OF_CORE = re.compile(r"^## What you learned\s*$", re.MULTILINE)
FOLDED = re.compile(r"^:::\{admonition\} (?:Aside|In one minute)\b.*?^:::$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADMONITION = re.compile(r"^:::\{admonition\} (Aside|In one minute)([^\n]*)\n:class: ([^\n]*)", re.MULTILINE)
NOT_WORDS = [  # what is no word of the core path
    (FOLDED, " "),
    (re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL), " "),  # margin notes, code
    (re.compile(r"\$\$.*?\$\$(?: \([\w-]+\))?", re.DOTALL), " "),
    (re.compile(r"\{[\w:]+\}`([^`]*)`"), r"\1"),
    (re.compile(r"\$[^$]*\$"), "x"),  # a formula in a line is read as one word
    (re.compile(r"^(?:\(.*\)=|:::.*|:class:.*)$", re.MULTILINE), " "),
]


def is_drawing(cell: NotebookNode) -> bool:
    """Whether the cell shows inline SVG that names itself."""
    html = ("".join(o.get("data", {}).get("text/html", "")) for o in cell.get("outputs", []))
    return any("<svg" in text and "<title" in text for text in html)


def core(page: Page) -> list[NotebookNode]:
    """The cells from the head of the chapter to What you learned; a cell that holds both is cut there."""
    cells = []
    for cell in page.cells:
        found = END_OF_CORE.search(cell.source) if cell.cell_type == "markdown" else None
        if found:
            last = NotebookNode(cell_type="markdown", source=cell.source[: found.start()], metadata={})
            return [*cells, last]
        cells.append(cell)
    return cells


def core_words(page: Page) -> int:
    """The words of the core path, without formulas, folded boxes, margin notes and code."""
    count = 0
    for cell in core(page):
        if cell.cell_type == "markdown":
            text = cell.source
            for pattern, instead in NOT_WORDS:
                text = pattern.sub(instead, text)
            count += len(text.split())
    return count


def is_visible(cell: NotebookNode) -> bool:
    """Whether a reader sees the code: it is neither folded, nor does it only hold claims."""
    return not ({"hide-input", "remove-input", "remove-cell"} & set(tags(cell)) or "claim(" in cell.source)


def first_screen(page: Page, book: Book) -> Iterator[str]:
    """Before the first section: a drawing, the box In one minute, and nothing that looks like a test."""
    end = next(
        (
            i
            for i, cell in enumerate(page.cells)
            if cell.cell_type == "markdown" and FIRST_SECTION.search(cell.source)
        ),
        len(page.cells),
    )
    opening = page.cells[: end + 1]
    if not any(is_drawing(cell) for cell in opening):
        yield "no drawing stands before the first section"
    if "{admonition} In one minute" not in "\n".join(c.source for c in opening):
        yield "the box In one minute does not stand before the first section"
    for cell in opening:
        if cell.cell_type == "code" and "hide-input" not in tags(cell):
            yield f"{describe(cell)} shows its code before the first section"


def folded_boxes(page: Page, book: Book) -> Iterator[str]:
    """Asides and In one minute are folded, and an aside says in its title what is in it."""
    for kind, title, classes in ADMONITION.findall(page.prose):
        if "dropdown" not in classes.split():
            yield f"the box {kind + title!r} is not folded: its classes are {classes!r}"
        if kind == "Aside" and len(title.split()) < 3:
            yield f"an aside says too little in its title: {title!r}"


def core_path(page: Page, book: Book) -> Iterator[str]:
    """What has to be read fits into an evening."""
    words, cells = (
        core_words(page),
        sum(cell.cell_type == "code" and is_visible(cell) for cell in core(page)),
    )
    if words > MOST_WORDS:
        yield f"the core path has {words:,} words; {MOST_WORDS:,} are allowed"
    if cells > MOST_CELLS:
        yield f"the core path has {cells} visible cells; {MOST_CELLS} are allowed"


def drawings(page: Page, book: Book) -> Iterator[str]:
    """An idea that is a picture is drawn."""
    count = sum(map(is_drawing, page.code))
    if count < LEAST_DRAWINGS:
        yield f"there are {count} drawings; at least {LEAST_DRAWINGS} are wanted"


def quoted_code(page: Page, book: Book) -> Iterator[str]:
    """Code that is quoted in a box stands also in a cell that runs, of this notebook or of its chapter."""
    run = "\n".join(cell.source for each in (page, page.chapter) for cell in each.code)
    for code in PYTHON.findall(page.prose):
        if code.strip() not in run:
            yield f"the quoted code {code.splitlines()[0]!r} ... stands in no cell"


RULES: dict[str, list[Rule]] = {
    CHAPTER: [*template.RULES, first_screen, folded_boxes, core_path, drawings, quoted_code],
    LABORATORY: [*companions.LABORATORY, folded_boxes, quoted_code],
    EXERCISES: [*companions.EXERCISES, quoted_code],
}
