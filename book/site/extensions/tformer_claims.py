"""Claims on the site: a mark in the margin that opens one small table for what stands together.

The first mark of each kind on a page, computed or from a record, has its words beside it.

A run of cells that only hold claims, without prose between them, becomes one closed
fold: a table of the numbers, and below it the code that computes them; closed code that
stands before it comes in too (tformer_reading.py). A cell that shows something else as
well keeps its place; its claims open the run that follows it.
A cell titled as these are, which computes for them or asserts, goes into the fold too.
The titles are for Jupyter and Colab and are taken off. A number that rests on recorded
files alone is marked as one from the record.
"""

import html
import json
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
from notebook_claims import (
    TITLE,
    band_text,
    claims_in,
    number_text,
    only_claims,
    rounded_text,
    titled,
)
from notebook_records import from_record

COLAB = TITLE.split(" The")[0]  # "# @title"
RECORDED = "from the record"
HEADS = ("What was found", "Number", "Held within")


def row(claim: dict, identifier: str = "", link: str = "", *, rounded: bool = False) -> str:
    """A claim as a row of a table: what it says, the number, the band."""
    words, name = html.escape(claim["text"]), html.escape(claim["name"])
    words = f'<a href="{html.escape(link)}">{words}</a>' if link else words
    place = f' id="{html.escape(identifier)}"' if identifier else ""
    value = number(claim, rounded=rounded)
    band = band_text(claim["low"], claim["high"])
    exact = " data-exact" if claim["low"] == claim["high"] else ""
    if claim.get("recorded"):
        words += f' <span class="tformer-recorded">{RECORDED}</span>'
    return f'<tr{place} title="{name}"><td>{words}</td><td>{value}</td><td{exact}>{band}</td></tr>'


def number(claim: dict, *, rounded: bool = False) -> str:
    """The value, strong, and its unit: as its page tells it, or rounded to what its band tells."""
    percent = claim["unit"] == "%"
    sign = "%" if percent else ""
    if rounded:
        value = rounded_text(claim["value"], sign, claim["low"], claim["high"])
    else:
        value = number_text(claim["value"], sign)
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


class claims_fold(nodes.General, nodes.Element):  # noqa: N801  docutils' names are small
    """The fold: its `claims`, and as children the cells that hold them.

    With `more` it holds code that stood before it, and says so.
    """


def visit_fold(translator, node: claims_fold) -> None:
    """Opens it: closed, with its table."""
    claims = node["claims"]
    rows = "".join(row(claim, f"claim-{claim['name']}") for claim in claims)
    table = f"{head()}<tbody>{rows}</tbody></table>" if rows else ""
    words = summary(claims) + ", and the code" * bool(node.get("more"))
    recorded = " data-recorded" if claims and all(claim.get("recorded") for claim in claims) else ""
    told = " tformer-told" * bool(node.get("told"))
    start = f'<details class="tformer-claims{told}" data-numbers="{len(claims)}"{recorded}>'
    translator.body.append(f'{start}<summary title="{plain(words)}"><span>{words}</span></summary>{table}')


def depart_fold(translator, node: claims_fold) -> None:
    """Closes it."""
    translator.body.append("</details>")


def plain(words: str) -> str:
    """HTML without its tags, for an attribute."""
    return html.escape(html.unescape(re.sub(r"<[^>]*>", "", words)))


def summary(claims: list[dict]) -> str:
    """What the closed fold says: the number, or how many there are."""
    if not claims:
        return "What is checked here"
    recorded = sum(bool(claim.get("recorded")) for claim in claims)
    which = "" if not recorded else f", {RECORDED}"
    if len(claims) == 1:
        return f"The number behind this{which}: {number(claims[0])}"
    if 0 < recorded < len(claims):
        which = f", {recorded} of them {RECORDED}"
    return f"The {len(claims)} numbers behind this{which}"


def is_claim(node: nodes.Node) -> bool:
    """Whether a node is the output that a claim leaves, in all its forms."""
    bundle = isinstance(node, nodes.container) and node.get("nb_element")
    return bundle == "mime_bundle" and "tformer-claim" in node.astext()


def strip(cell: nodes.container) -> None:
    """Takes the claims out of a cell's outputs."""
    for output in list(cell.findall(is_claim)):
        output.parent.remove(output)
    for part in list(cell.children):
        if part.get("nb_element") == "cell_code_output" and not part.children:
            cell.remove(part)


def take_off_title(block: nodes.literal_block) -> None:
    """Removes the first line of code if it is what Colab shows for the rest."""
    title, _, source = block.astext().partition("\n")
    if title.startswith(COLAB):
        block.rawsource = source.lstrip("\n")
        block.children = []
        block += nodes.Text(source.lstrip("\n"))


def runs(children: Iterable[nodes.Node], cells: list[dict]) -> Iterator[list]:
    """The runs among the children of a node: (node, cell) of cells that make claims.

    A cell that shows more than claims begins a run; its own code stays before it.
    """
    count = 0

    def key(node: nodes.Node) -> int:
        nonlocal count
        cell = cell_of(node, cells)
        if cell is None or not (any(claims_in([cell])) or titled(cell)):
            count += 1
            return 0
        if not (only_claims(cell) or titled(cell)):
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
    parents = {id(n.parent): n.parent for n in doctree.findall(nodes.container) if cell_of(n, cells)}
    for parent in parents.values():
        for run in list(runs(parent.children, cells)):
            made = claims_in(cell for _, cell in run)
            claims = [all_claims[claim["name"]] for claim in made]
            for node, _ in run:
                strip(node)
            code = [node for node, cell in run if only_claims(cell) or titled(cell)]
            place = parent.index(run[-1][0]) + 1
            for node in code:
                parent.remove(node)
                node.attributes.pop("hide_mode", None)  # it needs no fold in the fold
            parent.insert(place - len(code), claims_fold("", *code, claims=claims))
    for block in doctree.findall(nodes.literal_block):
        take_off_title(block)


def tell_first(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Chooses the marks that have their words beside them.

    Those in a fold are closed, and those behind a figure may open from its caption.
    """
    told = set[bool]()
    for fold in doctree.findall(claims_fold):
        at = fold.parent.index(fold)
        figures = [f for above in fold.parent[max(0, at - 2) : at] for f in above.findall(nodes.figure)]
        recorded = bool(fold["claims"]) and all(claim.get("recorded") for claim in fold["claims"])
        if isinstance(fold.parent, nodes.section) and not figures and recorded not in told:
            fold["told"] = True
            told.add(recorded)


def setup(app: Sphinx) -> dict:
    """Connects the handlers and adds the style of the folds and what opens them."""
    app.add_node(claims_fold, html=(visit_fold, depart_fold))
    app.connect("doctree-read", fold_claims)
    app.connect("doctree-resolved", tell_first)
    app.add_css_file("claims.css")
    app.add_js_file("claims.js", defer="defer")
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
