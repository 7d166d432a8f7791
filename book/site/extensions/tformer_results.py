"""The directive `book-results`: every claim of the book in one table, with a filter.

The rows are read from the outputs of the notebooks, which the tests compare with a new
run, so that the table says what the pages say. Without JavaScript it is a plain table.
"""

import html
import json
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from tformer_claims import head, marked, row
from tformer_site import by_docname, chapter_number

# claims.js shows it: without JavaScript it would do nothing.
FILTER = """<form class="tformer-filter" role="search" aria-label="Claims" hidden>
<label>Words <input type="search" autocomplete="off" spellcheck="false"></label>
<label>Chapter <select><option value="">all</option>{options}</select></label>
<output></output></form>"""


class book_results(nodes.General, nodes.Element):  # noqa: N801
    """Stands for the table until addresses and titles are known."""


class BookResults(SphinxDirective):
    """All claims, chapter by chapter."""

    def run(self) -> list[nodes.Node]:
        """A node that holds the claims of each chapter."""
        chapters = []
        for docname in filter(self.env.found_docs.__contains__, by_docname()):
            notebook = Path(self.env.doc2path(docname))
            self.env.note_dependency(str(notebook))
            cells = json.loads(notebook.read_text("utf8"))["cells"]
            if claims := marked(cells):
                chapters.append((docname, claims))
        return [book_results("", chapters=chapters)]


def link(app: Sphinx, source: str, target: str, anchor: str) -> str:
    """The address of a place of another page, seen from this one."""
    address = app.builder.get_relative_uri(source, target)
    # on a page that holds the whole book the anchor alone is the address
    return f"#{anchor}" if address.startswith("#") else f"{address}#{anchor}"


def table(app: Sphinx, docname: str, chapters: list[tuple[str, list[dict]]]) -> str:
    """The filter and the table, a group of rows for each chapter."""
    options, groups = [], []
    for target, claims in chapters:
        number = chapter_number(target)
        title = f"Chapter {number}. {app.env.titles[target].astext()}"
        options.append(
            f'<option value="{number}">{number}. {html.escape(app.env.titles[target].astext())}</option>'
        )
        rows = "".join(
            row(claim, link=link(app, docname, target, f"claim-{claim['name']}")) for claim in claims
        )
        groups.append(
            f'<tbody data-chapter="{number}"><tr class="tformer-group">'
            f'<th scope="rowgroup" colspan="3">{html.escape(title)}</th></tr>'
            f"{rows}</tbody>"
        )
    form = FILTER.format(options="".join(options))
    return f"{form}{head('tformer-results')}{''.join(groups)}</table>"


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Puts the table in the place of its node."""
    for node in list(doctree.findall(book_results)):
        text = table(app, docname, node["chapters"])
        node.replace_self(nodes.raw("", text, format="html"))


def setup(app: Sphinx) -> dict:
    """Registers the directive."""
    app.add_node(book_results)
    app.add_directive("book-results", BookResults)
    app.connect("doctree-resolved", resolve)
    return {"version": "3", "parallel_read_safe": True, "parallel_write_safe": True}
