"""The directive `book-results`: every claim of the book in one table.

The rows are read from the outputs of the notebooks, which the tests compare with a new
run, so that the table says what the pages say.
"""

import json
import sys
from pathlib import Path, PurePosixPath

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from tformer_site import chapter_number

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from notebook_claims import claims_in

HEADS = {"What was found": 50, "Number": 15, "Held between": 20, "Chapter": 15}


def cell(*inline: nodes.Node) -> nodes.entry:
    """An entry of a table that is one paragraph."""
    return nodes.entry("", nodes.paragraph("", "", *inline))


def link(docname: str, number: str) -> addnodes.pending_xref:
    """A reference to a chapter, by its number."""
    return addnodes.pending_xref(
        "",
        nodes.inline("", number),
        reftype="doc",
        refdomain="std",
        reftarget=f"/{docname}",
        refexplicit=True,
        refwarn=True,
    )


def row(claim: dict, docname: str, number: str) -> nodes.row:
    """A claim as a row of the table."""
    unit = f" {claim['unit']}" if claim["unit"] else ""
    words = nodes.inline("", f"{claim['text']} ")
    name = nodes.literal("", claim["name"])
    band = f"{claim['low']:.4g} and {claim['high']:.4g}"
    value = nodes.Text(f"{claim['value']:.4g}{unit}")
    cells = (cell(words, name), cell(value), cell(nodes.Text(band)))
    return nodes.row("", *cells, cell(link(docname, number)))


class BookResults(SphinxDirective):
    """All claims, chapter by chapter."""

    def run(self) -> list[nodes.Node]:
        """A table in a container of the class `book-results`."""
        rows = []
        for docname in sorted(self.env.found_docs, key=lambda d: PurePosixPath(d).name):
            number = chapter_number(docname)
            if number is None:
                continue
            notebook = Path(self.env.doc2path(docname))
            self.env.note_dependency(str(notebook))
            cells = json.loads(notebook.read_text("utf8"))["cells"]
            rows += [row(claim, docname, number) for claim in claims_in(cells)]
        columns = [nodes.colspec(colwidth=width) for width in HEADS.values()]
        head = nodes.thead("", nodes.row("", *(cell(nodes.Text(h)) for h in HEADS)))
        group = nodes.tgroup(
            "", *columns, head, nodes.tbody("", *rows), cols=len(HEADS)
        )
        return [nodes.container("", nodes.table("", group), classes=["book-results"])]


def setup(app: Sphinx) -> dict:
    """Registers the directive."""
    app.add_directive("book-results", BookResults)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
