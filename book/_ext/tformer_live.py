"""Figures to touch: behind a drawing on the site, folded, something that moves.

`book/live.yml` says which figure stands behind which drawing, what to try with it, and
which scripts of `book/_static/live` it needs. A notebook holds nothing of this: in
Jupyter, in Colab, on paper and without scripts there is the drawing.

    ```{live} soft-dictionary
    ```

puts a figure on a Markdown page, without a drawing and unfolded.
"""

import html
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

FILE = Path(__file__).resolve().parents[1] / "live.yml"
SCRIPTS = FILE.parent / "_static" / "live"
KEYS = {"title", "task", "teaches", "after", "scripts"}


def figures() -> dict[str, dict]:
    """The figures by name, each with all of its keys; their scripts are there."""
    found = yaml.safe_load(FILE.read_text("utf8"))
    for name, figure in found.items():
        if figure.keys() != KEYS:
            given = ", ".join(sorted(figure))
            raise ExtensionError(f"{FILE.name}: {name} has the keys {given}")
        for script in figure["scripts"]:
            if not (SCRIPTS / script).exists():
                raise ExtensionError(f"{FILE.name}: {name} needs {script}: not there")
    return found


def folded(name: str, figure: dict, *, unfolded: bool = False) -> nodes.raw:
    """The figure as it stands in the page before its scripts are loaded."""
    scripts = " ".join(figure["scripts"])
    text = (
        f'<details class="tl-open" data-try="{name}" data-pagefind-ignore hidden'
        f"{' open' * unfolded}><summary>Try it: <span>{html.escape(figure['title'])}"
        f'</span></summary><p class="tl-task">{html.escape(figure["task"])}</p>'
        f'<tformer-live figure="{name}" data-scripts="{scripts}"></tformer-live>'
        "</details>"
    )
    return nodes.raw("", text, format="html")


class LiveDirective(SphinxDirective):
    """A figure on a page of its own."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The figure, unfolded."""
        self.env.note_dependency(str(FILE))
        found = figures()
        if self.arguments[0] not in found:
            raise self.error(f"there is no figure {self.arguments[0]} in {FILE.name}")
        name = self.arguments[0]
        return [folded(name, found[name], unfolded=True)]


def place(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Puts each figure behind the cell of its drawing."""
    if app.builder.format != "html":
        return
    wanted = {
        label: name for name, figure in figures().items() for label in figure["after"]
    }
    for drawing in list(doctree.findall(nodes.figure)):
        name = next(
            (wanted[label] for label in drawing["ids"] if label in wanted), None
        )
        if name is None:
            continue
        cell = drawing
        while cell.parent is not None and not isinstance(cell.parent, nodes.section):
            cell = cell.parent
        cell.parent.insert(cell.parent.index(cell) + 1, folded(name, figures()[name]))


def setup(app: Sphinx) -> dict:
    """Registers the directive, the style and the script that loads the others."""
    app.add_directive("live", LiveDirective)
    app.connect("doctree-resolved", place)
    app.add_css_file("live/live.css")
    app.add_js_file("live/load.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
