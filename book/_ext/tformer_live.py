"""Figures to touch: behind a drawing on the site, folded, something that moves.

`book/live.yml` says which figure stands behind which drawing, what to try with it, and
which scripts of `book/_static/live` it needs; with `at` it begins behind one drawing in
a state of its own, with a task of its own; on a page of their own figures have all
tasks. A notebook holds nothing of this: in
Jupyter, in Colab, on paper and without scripts there is the drawing. One script is
made when the site is built: the weights of the model that writes in the page, which
are data of the package.

    ```{live} soft-dictionary
    ```

puts a figure on a Markdown page, without a drawing and unfolded.
"""

import html
from pathlib import Path
from urllib.parse import urlencode

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

FILE = Path(__file__).resolve().parents[1] / "live.yml"
SCRIPTS = FILE.parent / "_static" / "live"
WEIGHTS = FILE.parents[1] / "tformer_lib" / "book" / "live_model.json"
MADE = {"model_weights.js": WEIGHTS}  # a script, and the file that it is made of
KEYS = {"title", "task", "teaches", "after", "scripts"}
AT = {"state", "task"}  # what a place may say otherwise


def figures() -> dict[str, dict]:
    """The figures by name, each with all of its keys; their scripts are there."""
    found = yaml.safe_load(FILE.read_text("utf8"))
    for name, figure in found.items():
        elsewhere = figure.get("at", {})
        fits = elsewhere.keys() <= set(figure.get("after", ())) and all(
            place.keys() <= AT for place in elsewhere.values()
        )
        if figure.keys() - {"at"} != KEYS or not fits:
            given = ", ".join(sorted(figure))
            raise ExtensionError(f"{FILE.name}: {name} has the keys {given}")
        for script in figure["scripts"]:
            if not MADE.get(script, SCRIPTS / script).exists():
                raise ExtensionError(f"{FILE.name}: {name} needs {script}: not there")
    return found


def folded(
    name: str, figure: dict, *, label: str = "", unfolded: bool = False
) -> nodes.raw:
    """The figure as it stands in the page before its scripts are loaded.

    Behind the drawing `label` it may begin in another state, with another task.
    """
    scripts = " ".join(figure["scripts"])
    places = figure.get("at", {})
    here = places.get(label, {})
    tasks = [here.get("task", figure["task"])]
    if unfolded:
        tasks += [place["task"] for place in places.values() if "task" in place]
    title = html.escape(figure["title"])
    state = html.escape(urlencode(here.get("state", {})))
    text = (
        f'<details class="tl-open" data-try="{name}" data-pagefind-ignore hidden'
        f"{' open' * unfolded}><summary>Try it: <span>{title}</span></summary>"
        + "".join(f'<p class="tl-task">{html.escape(task)}</p>' for task in tasks)
        + f'<tformer-live figure="{name}" data-scripts="{scripts}" data-state="{state}"'
        f' role="group" aria-label="{title}"></tformer-live>'
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
        label = next((label for label in drawing["ids"] if label in wanted), None)
        if label is None:
            continue
        name = wanted[label]
        cell = drawing
        while cell.parent is not None and not isinstance(cell.parent, nodes.section):
            cell = cell.parent
        behind = folded(name, figures()[name], label=label)
        cell.parent.insert(cell.parent.index(cell) + 1, behind)


def write(app: Sphinx, error: Exception | None) -> None:
    """The weights as a script: what `tformer_lib.book.live.as_script` makes of them."""
    if error is None and app.builder.format == "html":
        for script, source in MADE.items():
            place = Path(app.outdir, "_static", "live", script)
            place.parent.mkdir(parents=True, exist_ok=True)
            text = source.read_text("utf8").strip()
            place.write_text(f"window.TformerModel = {text};\n", "utf8")


def setup(app: Sphinx) -> dict:
    """Registers the directive, the style and the script that loads the others."""
    app.add_directive("live", LiveDirective)
    app.connect("doctree-resolved", place)
    app.connect("build-finished", write)
    app.add_css_file("live/live.css")
    app.add_js_file("live/load.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
