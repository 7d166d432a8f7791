"""Which code stands in view: the build fails where a test does.

A reader's page shows code that computes or draws. What holds the page to its numbers is folded away
(tformer_claims.py), and so are solutions. Nothing lists such cells: each page is looked through when all of
its folds are made, and a cell that was missed is a warning, which ends the build.

A cell that shows the library's source, `show_source(...)`, shows it alone: its call tells nothing more.
"""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger
from tformer_claims import COLAB, cell_of, claims_fold
from tformer_reading import ancestors, fold

# tformer_claims.py has made the folder `tools` known
from notebook_claims import only_checks  # isort: skip
from notebook_code import carried  # isort: skip

SHOWS = "show_source"
log = getLogger(__name__)


def shows_source(code: str) -> bool:
    """Whether code only shows a source: beside imports it is one call of `show_source`."""
    body = carried.Cell(code).tree.body
    rest = [node for node in body if not isinstance(node, ast.Import | ast.ImportFrom | ast.Pass)]
    call = rest[0].value if len(rest) == 1 and isinstance(rest[0], ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == SHOWS


def leave_out_calls(app: Sphinx, doctree: nodes.document) -> None:
    """Takes the code of cells that only show a source off the page: what they show stays."""
    for cell, told in code_cells(doctree):
        if told.get("outputs") and shows_source("".join(told["source"])):
            for part in [c for c in cell.children if c.get("nb_element") == "cell_code_source"]:
                cell.remove(part)


def code_cells(doctree: nodes.document) -> Iterator[tuple[nodes.container, dict]]:
    """The cells of a page that hold code, each with what the notebook says of it."""
    path = Path(doctree["source"])
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text("utf8"))["cells"]
        for node in list(doctree.findall(nodes.container)):
            if "cell_index" in node and (cell := cell_of(node, cells)) is not None:
                yield node, cell


def folded(node: nodes.Node) -> bool:
    """Whether a node is in something closed."""
    return any(
        isinstance(above, HideCodeCellNode | claims_fold)
        or (isinstance(above, fold) and not above.get("open"))
        for above in ancestors(node)
    )


def fault(code: str) -> str | None:
    """Why code may not stand in view, in words; None if it may."""
    first = code.lstrip().partition("\n")[0]
    if first.startswith(COLAB):
        return f"is titled {first.removeprefix(COLAB).strip()!r}, as what is closed is"
    if only_checks(code):
        return "only checks: give it the title of cells with claims, or let it show something"
    if SHOWS + "(" in code and shows_source(code):
        return f"only calls {SHOWS}"
    return None


def faults(doctree: nodes.document) -> Iterator[tuple[nodes.Node, str]]:
    """Where a page whose folds are made shows what no reader should see, and why.

    Of a cell in view the notebook's source is judged, titles and all; of any code at all what is left of it.
    """
    sources = {}
    for cell, told in code_cells(doctree):
        for block in cell.findall(nodes.literal_block):
            if block.parent.get("nb_element") == "cell_code_source":
                sources[id(block)] = "".join(told["source"])
    for block in doctree.findall(nodes.literal_block):
        if block.astext().lstrip().startswith(COLAB):
            yield block, f"begins with {COLAB!r} on the page"
        elif id(block) in sources and not folded(block) and (why := fault(sources[id(block)])):
            yield block, why


def guard(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Warns of each: builds end with a warning."""
    if app.builder.format == "html":
        for block, why in faults(doctree):
            start = block.astext().strip().partition("\n")[0]
            log.warning("code in view that %s: %r", why, start, location=(docname, block.line))


def setup(app: Sphinx) -> dict:
    """Connects the handlers: folds are made when a page is read and by transforms before it is resolved."""
    app.connect("doctree-read", leave_out_calls)
    app.connect("doctree-resolved", guard, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
