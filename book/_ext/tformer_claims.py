"""Claims on the site: a quiet fold with one small table for what stands together.

A run of cells that only hold claims, without prose between them, becomes one closed
fold: a table of the numbers, and below it the code that computes them. A cell that
shows something else as well keeps its place; its claims open the run that follows it.
A number that rests on recorded files alone is marked as one from the record.
"""

import html
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from notebook_claims import TITLE, band_text, claims_in, number_text, only_claims
from notebook_records import from_record

RECORDED = "from the record"
HEADS = ("What was found", "Number", "Held within")


def row(claim: dict, identifier: str = "", link: str = "") -> str:
    """A claim as a row of a table: what it says, the number, the band."""
    words, name = html.escape(claim["text"]), html.escape(claim["name"])
    words = f'<a href="{html.escape(link)}">{words}</a>' if link else words
    place = f' id="{html.escape(identifier)}"' if identifier else ""
    band = band_text(claim["low"], claim["high"])
    exact = " data-exact" if claim["low"] == claim["high"] else ""
    if claim.get("recorded"):
        words += f' <span class="tformer-recorded">{RECORDED}</span>'
    return (
        f'<tr{place} title="{name}"><td>{words}</td>'
        f"<td>{number(claim)}</td><td{exact}>{band}</td></tr>"
    )


def number(claim: dict) -> str:
    """The value, strong, and its unit."""
    percent = claim["unit"] == "%"
    value = number_text(claim["value"], "%" if percent else "")
    unit = "" if percent else f" {html.escape(claim['unit'])}"
    return f"<strong>{value}</strong>{unit}".rstrip()


def marked(cells: list[dict]) -> list[dict]:
    """The claims of a notebook, each told whether it rests on recorded files alone."""
    names = from_record(cells)
    return [claim | {"recorded": claim["name"] in names} for claim in claims_in(cells)]


def head(*classes: str) -> str:
    """The start of such a table, up to its first row."""
    cells = "".join(f'<th scope="col">{words}</th>' for words in HEADS)
    names = " ".join(("tformer-numbers", *classes))
    return f'<table class="{names}"><thead><tr>{cells}</tr></thead>'


def summary(claims: list[dict]) -> str:
    """What the closed fold says: the number, or how many there are."""
    recorded = sum(bool(claim.get("recorded")) for claim in claims)
    which = "" if not recorded else f", {RECORDED}"
    if len(claims) == 1:
        return f"The number behind this{which}: {number(claims[0])}"
    if 0 < recorded < len(claims):
        which = f", {recorded} of them {RECORDED}"
    return f"The {len(claims)} numbers behind this{which}"


def fold(claims: list[dict], code: list[nodes.Element]) -> list[nodes.Node]:
    """The fold, closed: a table of the claims over the cells that hold them."""
    rows = "".join(row(claim, f"claim-{claim['name']}") for claim in claims)
    start = (
        f'<details class="tformer-claims"><summary>{summary(claims)}</summary>'
        f"{head()}<tbody>{rows}</tbody></table>"
    )
    raw = (nodes.raw("", text, format="html") for text in (start, "</details>"))
    return [next(raw), *code, next(raw)]


def is_claim(node: nodes.Node) -> bool:
    """Whether a node is the output that a claim leaves, in all its forms."""
    bundle = isinstance(node, nodes.container) and node.get("nb_element")
    return bundle == "mime_bundle" and "tformer-claim" in node.astext()


def strip(cell: nodes.container, closed: bool) -> None:
    """Takes the claims out of a cell's outputs and, of a closed one, Colab's title."""
    for output in list(cell.findall(is_claim)):
        output.parent.remove(output)
    for part in list(cell.children):
        if part.get("nb_element") == "cell_code_output" and not part.children:
            cell.remove(part)
    if closed:
        for block in cell.findall(nodes.literal_block):
            source = block.astext().removeprefix(f"{TITLE}\n")
            block.rawsource = source
            block.children = []
            block += nodes.Text(source)


def runs(children: Iterable[nodes.Node], cells: list[dict]) -> Iterator[list]:
    """The runs among the children of a node: (node, cell) of cells that make claims.

    A cell that shows more than claims begins a run; its own code stays before it.
    """
    count = 0

    def key(node: nodes.Node) -> int:
        nonlocal count
        cell = cell_of(node, cells)
        if cell is None or not any(claims_in([cell])):
            count += 1
            return 0
        if not only_claims(cell):
            count += 1
        return count

    for number, group in groupby(children, key):
        if number:
            yield [(node, cell_of(node, cells)) for node in group]


def cell_of(node: nodes.Node, cells: list[dict]) -> dict | None:
    """The notebook's cell of which a node was made, if it is code."""
    if isinstance(node, nodes.container) and node.get("nb_element") == "cell_code":
        return cells[node["cell_index"]]
    return None


def fold_claims(app: Sphinx, doctree: nodes.document) -> None:
    """Puts the folds in the place of the cells."""
    path = Path(doctree["source"])
    if path.suffix != ".ipynb":
        return
    cells = json.loads(path.read_text("utf8"))["cells"]
    all_claims = {claim["name"]: claim for claim in marked(cells)}
    parents = {
        id(n.parent): n.parent
        for n in doctree.findall(nodes.container)
        if cell_of(n, cells)
    }
    for parent in parents.values():
        for run in list(runs(parent.children, cells)):
            made = claims_in(cell for _, cell in run)
            claims = [all_claims[claim["name"]] for claim in made]
            for node, cell in run:
                strip(node, only_claims(cell))
            code = [node for node, cell in run if only_claims(cell)]
            place = parent.index(run[-1][0]) + 1
            folded = fold(claims, code)
            for node in code:
                parent.remove(node)
            place -= len(code)
            parent[place:place] = folded


def setup(app: Sphinx) -> dict:
    """Connects the handler and adds the style of the folds and what opens them."""
    app.connect("doctree-read", fold_claims)
    app.add_css_file("claims.css")
    app.add_js_file("claims.js", defer="defer")
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
