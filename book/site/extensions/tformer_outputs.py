"""What cells have printed and shown, as the site sets it; the notebooks keep what is stored.

- Printed text that is no table wraps on a narrow screen too, and on paper keeps its size: `tformer-prose`.
- In the tables of `tformer_book.kit.tables` a negative number has a minus sign, and numbers stand right
  also where some cells of their column are empty.
"""

import re
from itertools import zip_longest

from docutils import nodes
from sphinx.application import Sphinx

ROW = re.compile(r"<tr>.*?</tr>", re.DOTALL)
CELL = re.compile(r"<(t[dh])\b.*?</\1>", re.DOTALL)
NUMBER = re.compile(r"(?:[-+\u2212\u00b1]?\d[\d,.]*\s*%?)?")  # or nothing


def prose(text: str) -> bool:
    """Whether printed text has no columns: no line with several spaces in it."""
    return re.search(r"\S {2,}\S|\t", text) is None


def table(html: str) -> str:
    """A table with minus signs, and with its numbers at the right."""
    html = re.sub(r">-(?=[\d.])", ">\N{MINUS SIGN}", html)
    rows = [[cell[0] for cell in CELL.finditer(row)] for row in ROW.findall(html)]
    words = [[re.sub(r"<[^>]*>", "", cell).strip() for cell in row] for row in rows[1:]]
    columns = list(zip_longest(*words, fillvalue=""))
    numbers = [any(column) and all(map(NUMBER.fullmatch, column)) for column in columns]

    def change(row: re.Match) -> str:
        right = iter(numbers[1:])  # the first column names the rows

        def moved(cell: re.Match) -> str:
            is_number = cell.start() > first and next(right, False)
            return cell[0].replace("text-align: left", "text-align: right") if is_number else cell[0]

        first = next(CELL.finditer(row[0])).start()
        return CELL.sub(moved, row[0])

    return ROW.sub(change, html)


def set_outputs(app: Sphinx, doctree: nodes.document) -> None:
    """Changes what the cells of a page show."""
    for block in doctree.findall(nodes.literal_block):
        if "output" in block["classes"] and prose(block.astext()):
            block["classes"].append("tformer-prose")
    for raw in list(doctree.findall(nodes.raw)):
        if 'class="tformer-table' in raw.astext():
            raw[:] = [nodes.Text(table(raw.astext()))]


def setup(app: Sphinx) -> dict:
    """Connects the handler."""
    app.connect("doctree-read", set_outputs)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
