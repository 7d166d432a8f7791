"""What of a cell's outputs nbval compares: everything that must be the same in every run on every machine.

- stderr is dropped: warnings and progress bars depend on the machine. (The style test keeps it out of the
  book.)
- A claim's value is replaced, in its JSON, its text and its HTML: the value was held in its band when the
  cell ran. Its name, band, unit and sentence are compared.
- Pictures are compared by `notebook_figures`; nbval skips them. An SVG beside a PNG shows the same picture,
  whose last digits may differ between machines: only that it is there is compared.
- Text, HTML, Markdown, LaTeX, JSON and an SVG that stands alone are compared as they are, after nbval's
  sanitising. Other types do not occur: the style test sees to that.
"""

import copy
import html
import json
from collections.abc import Iterable

from nbformat import NotebookNode
from notebook_claims import CLAIM, number_text

SVG = "image/svg+xml"
COMPARED = {"text/plain", "text/html", "text/markdown", "text/latex", "application/json", CLAIM, SVG}


def comparable(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Copies of the outputs without what may differ."""
    kept = [copy.deepcopy(o) for o in outputs if not (o.output_type == "stream" and o.name == "stderr")]
    for output in kept:
        if CLAIM in output.get("data", {}):
            output.data = NotebookNode(without_value(output.data))
        if {SVG, "image/png"} <= output.get("data", {}).keys():
            output.data[SVG] = "a figure"
    return kept


def without_value(data: dict) -> dict:
    """The MIME bundle of a claim with its value taken out of every form."""
    claim = {k: v for k, v in data[CLAIM].items() if k != "value"}
    number = number_text(float(data[CLAIM].get("value", 0)), str(claim.get("unit") or ""))
    sentence = str(claim.get("text"))
    before = {"text/plain": f"{sentence}: ", "text/html": f"{html.escape(sentence)} <strong>"}
    shown = {"text/plain": number, "text/html": html.escape(number)}
    texts = {
        mime: data[mime].replace(start + shown[mime], start + "VALUE")
        for mime, start in before.items()
        if mime in data
    }
    return {**data, **texts, CLAIM: json.dumps(claim, sort_keys=True, indent=1)}
