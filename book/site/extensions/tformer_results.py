"""The directive `book-results`: every claim of the book, a closed fold a chapter, with a filter.

The rows are read from the outputs of the notebooks, which the tests compare with a new
run, so that the table says what the pages say, rounded to what each band tells. Without
JavaScript the folds open, and there is no filter.
"""

import html
import json
from itertools import groupby
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from tformer_claims import RECORDED, head, marked, row
from tformer_site import by_docname

# claims.js shows it: without JavaScript it would do nothing.
FILTER = """<form class="tformer-filter" role="search" aria-label="Claims" hidden>
<label>Find <input type="search" autocomplete="off" spellcheck="false"></label>
<output></output></form>"""

Page = tuple[str, list[dict]]  # a page's name and the claims that it makes


class book_results(nodes.General, nodes.Element):  # noqa: N801
    """Stands for the folds until addresses and titles are known."""


class BookResults(SphinxDirective):
    """All claims, chapter by chapter."""

    def run(self) -> list[nodes.Node]:
        """A node that holds the claims of each page."""
        pages = []
        for docname in filter(self.env.found_docs.__contains__, by_docname()):
            notebook = Path(self.env.doc2path(docname))
            self.env.note_dependency(str(notebook))
            cells = json.loads(notebook.read_text("utf8"))["cells"]
            if claims := marked(cells):
                pages.append((docname, claims))
        return [book_results("", pages=pages)]


def link(app: Sphinx, source: str, target: str, anchor: str) -> str:
    """The address of a place of another page, seen from this one."""
    address = app.builder.get_relative_uri(source, target)
    # on a page that holds the whole book the anchor alone is the address
    return f"#{anchor}" if address.startswith("#") else f"{address}#{anchor}"


def counted(claims: list[dict]) -> str:
    """How many there are, and how many of them rest on records."""
    recorded = sum(claim["recorded"] for claim in claims)
    words = "1 claim" if len(claims) == 1 else f"{len(claims)} claims"
    return f"{words}, {recorded} {RECORDED}" if recorded else words


def group(app: Sphinx, docname: str, page: Page) -> str:
    """The rows of a page's claims, under what the page is to its chapter."""
    target, claims = page
    rows = []
    for claim in claims:
        anchor = f"claim-{claim['name']}"
        address = link(app, docname, target, anchor)
        # the same name as there leads to it here, unless both are on one page
        rows.append(row(claim, "" if address.startswith("#") else anchor, address, rounded=True))
    title = f'<th scope="rowgroup" colspan="3">{html.escape(place(app, target))}</th>'
    return f'<tbody><tr class="tformer-group">{title}</tr>{"".join(rows)}</tbody>'


def place(app: Sphinx, docname: str) -> str:
    """What a page is to its chapter: "The chapter", "Laboratory: probes"."""
    chapter, stem = by_docname()[docname], docname.rsplit("/", 1)[1]
    if stem == chapter.page:
        return "The chapter"
    if stem not in chapter.laboratories:
        return "Exercises"
    several = len(chapter.laboratories) > 1
    return f"Laboratory: {app.env.titles[docname].astext().rpartition(': ')[2]}" if several else "Laboratory"


def fold(app: Sphinx, docname: str, pages: list[Page]) -> str:
    """A chapter's claims, closed under its number and title."""
    chapter = by_docname()[pages[0][0]]
    claims = [claim for _, each in pages for claim in each]
    title = html.escape(app.env.titles[chapter.docname].astext())
    groups = "".join(group(app, docname, page) for page in pages)
    return (
        f'<details class="tformer-found" id="found-{chapter.name}" data-claims="{len(claims)}"><summary>'
        f'<h2><span class="section-number">{chapter.number}</span> {title}</h2> '
        f"<span>{counted(claims)}</span></summary>"
        f"{head('tformer-results')}{groups}</table></details>"
    )


def folds(app: Sphinx, docname: str, pages: list[Page]) -> str:
    """The filter, and a fold for each chapter."""
    chapters = groupby(pages, lambda page: by_docname()[page[0]].name)
    return FILTER + "".join(fold(app, docname, list(those)) for _, those in chapters)


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Puts the folds in the place of their node."""
    for node in list(doctree.findall(book_results)):
        text = folds(app, docname, node["pages"])
        node.replace_self(nodes.raw("", text, format="html"))


def setup(app: Sphinx) -> dict:
    """Registers the directive."""
    app.add_node(book_results)
    app.add_directive("book-results", BookResults)
    app.connect("doctree-resolved", resolve)
    return {"version": "4", "parallel_read_safe": True, "parallel_write_safe": True}
