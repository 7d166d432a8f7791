"""Figures to touch: behind a drawing on the site, folded, something that moves.

A chapter's `live.yml` says which figure stands behind which drawing, what to try with it, and
which scripts of `book/site/static/live` it needs; with `at` it begins behind one drawing in
a state of its own, with a task of its own; on a page of their own figures have all
tasks. A notebook holds nothing of this: in
Jupyter, in Colab, on paper and without scripts there is the drawing. One script is
made when the site is built: the weights of the model that writes in the page, which
are data of the package.

    ```{live} soft-dictionary
    ```

puts a figure on a Markdown page, without a drawing and unfolded; where it cannot move,
a sentence there leads to its drawing.

`tall` has the heights in px that it keeps free before its scripts are there, on a wide
screen and on a phone: what stands below it must not move when they come.

With `exercise`, labels of exercises and the state in which the figure begins for each,
the figure says which exercises use it, and each of these opens it in its state.
"""

import html
import sys
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlencode

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

SITE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SITE.parents[1] / "tools"))
from chapters import chapters

SCRIPTS = SITE / "static" / "live"
WEIGHTS = SITE.parent / "kit" / "live_model.json"
FILE = "live.yml"  # of a chapter
MADE = {"model_weights.js": WEIGHTS}  # a script, and the file that it is made of
KEYS = {"title", "task", "teaches", "after", "scripts", "tall"}
ALONE = "book/live_model"  # the page of the figure that has one of its own
MAY = {"at", "exercise"}
AT = {"state", "task"}  # what a place may say otherwise


class Standing(nodes.General, nodes.Element):
    """A figure on a page of its own, until the numbers of exercises are known."""


def files() -> list[Path]:
    """Where the chapters say which figures they have."""
    return [file for chapter in chapters() if (file := chapter.folder / FILE).exists()]


def figures() -> dict[str, dict]:
    """The figures by name, each with all of its keys; their scripts are there."""
    found: dict[str, dict] = {}
    for file in files():
        found |= yaml.safe_load(file.read_text("utf8"))
    for name, figure in found.items():
        elsewhere = figure.get("at", {})
        fits = elsewhere.keys() <= set(figure.get("after", ())) and all(
            place.keys() <= AT for place in elsewhere.values()
        )
        if figure.keys() - MAY != KEYS or not fits:
            given = ", ".join(sorted(figure))
            raise ExtensionError(f"{FILE}: {name} has the keys {given}")
        for script in figure["scripts"]:
            if not MADE.get(script, SCRIPTS / script).exists():
                raise ExtensionError(f"{FILE}: {name} needs {script}: not there")
    return found


def numbered(env: BuildEnvironment, kind: str, label: str) -> tuple[str, str] | None:
    """The page on which a figure or an exercise stands, and its number there."""
    for docname, numbers in env.toc_fignumbers.items():
        if label in numbers.get(kind, {}):
            return docname, ".".join(map(str, numbers[kind][label]))
    return None


def listed(parts: list[str]) -> str:
    """A, B and C."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def used_by(app: Sphinx, docname: str, labels: Iterable[str]) -> str:
    """Which exercises use a figure: on a page with one of them, those of the page."""
    there = []
    for label in labels:
        found = numbered(app.env, "exercise", label)
        if found is None:
            raise ExtensionError(f"{FILE}: there is no exercise {label}")
        there.append((*found, label))
    here = [one for one in there if one[0] == docname] or there
    links = []
    for page, number, label in here:
        words = number if links else f"Exercise{'s' * (len(here) > 1)} {number}"
        address = "" if page == docname else app.builder.get_relative_uri(docname, page)
        links.append(f'<a href="{html.escape(address)}#{label}">{words}</a>')
    uses = "uses" if len(links) == 1 else "use"
    return f'<p class="tl-task">{listed(links)} {uses} this figure.</p>' * bool(links)


def folded(app: Sphinx, docname: str, name: str, *, label: str = "", unfolded: bool = False) -> str:
    """The figure as it stands in the page before its scripts are loaded.

    Behind the drawing `label` it may begin in another state, with another task.
    """
    figure = figures()[name]
    scripts = " ".join(figure["scripts"])
    places = figure.get("at", {})
    here = places.get(label, {})
    tasks = [here.get("task", figure["task"])]
    if unfolded:
        tasks += [place["task"] for place in places.values() if "task" in place]
    title = html.escape(figure["title"])
    state = html.escape(urlencode(here.get("state", {})))
    wide, phone = figure["tall"]
    room = f"--tl-tall: {wide}px; --tl-phone: {phone}px"
    return (
        f'<details class="tl-open" data-try="{name}" data-pagefind-ignore hidden'
        f'{" open" * unfolded} style="{room}"><summary>Try it: <span>{title}</span></summary>'
        + "".join(f'<p class="tl-task">{html.escape(task)}</p>' for task in tasks)
        + used_by(app, docname, figure.get("exercise", ()))
        + f'<tformer-live figure="{name}" data-scripts="{scripts}" data-state="{state}"'
        f' role="group" aria-label="{title}"></tformer-live>'
        "</details>"
    )


def drawn(app: Sphinx, docname: str, labels: Iterable[str]) -> str:
    """Where a figure cannot move, without scripts or on paper: where it is drawn."""
    links = []
    for label in labels:
        found = numbered(app.env, "figure", label)
        if found is None:
            raise ExtensionError(f"{FILE}: there is no drawing {label}")
        address = html.escape(app.builder.get_relative_uri(docname, found[0]))
        links.append(f'<a href="{address}#{label}">Figure {found[1]}</a>')
    shown = "shows" if len(links) == 1 else "show"
    text = f"A figure that moves stands here, where scripts may run. {listed(links)} "
    text += f"{shown} the same at rest."
    return (
        f"<noscript data-pagefind-ignore><p>{text}</p></noscript>"
        f'<p class="tl-paper" data-pagefind-ignore>{text}</p>'
    )


class LiveDirective(SphinxDirective):
    """A figure on a page of its own."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The figure, unfolded."""
        for file in files():
            self.env.note_dependency(str(file))
        if self.arguments[0] not in figures():
            raise self.error(f"there is no figure {self.arguments[0]} in {FILE}")
        return [Standing("", name=self.arguments[0])]


def place(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Puts each figure behind the cell of its drawing, and links to it in exercises."""
    if app.builder.format != "html":
        return
    found = figures()
    for standing in list(doctree.findall(Standing)):
        name = standing["name"]
        text = folded(app, docname, name, unfolded=True)
        text += drawn(app, docname, found[name]["after"])
        standing.replace_self(nodes.raw("", text, format="html"))
    wanted = {label: name for name, figure in found.items() for label in figure["after"]}
    for drawing in list(doctree.findall(nodes.figure)):
        label = next((label for label in drawing["ids"] if label in wanted), None)
        if label is None:
            continue
        name = wanted[label]
        cell = drawing
        while cell.parent is not None and not isinstance(cell.parent, nodes.section):
            cell = cell.parent
        text = folded(app, docname, name, label=label)
        behind = nodes.raw("", text, format="html")
        cell.parent.insert(cell.parent.index(cell) + 1, behind)
    begins = {
        label: (name, state or {})
        for name, figure in found.items()
        for label, state in figure.get("exercise", {}).items()
    }
    for box in list(doctree.findall(nodes.Element)):
        label = next((label for label in box.get("ids", ()) if label in begins), None)
        if label is None or "exercise" not in box["classes"]:
            continue
        name, state = begins[label]
        link = opened(app, docname, name, state)
        solution = next((i for i, c in enumerate(box.children) if is_solution(c)), len(box.children))
        box.insert(solution, nodes.raw("", link, format="html"))


def is_solution(node: nodes.Node) -> bool:
    """Whether this is the fold with an exercise's solution."""
    return isinstance(node, nodes.Element) and "solution" in node.get("classes", ())


def opened(app: Sphinx, docname: str, name: str, state: dict) -> str:
    """A link from an exercise to its figure; without scripts, to the figure's drawing.

    `load.js` makes the state a part of it.
    """
    places = [
        (*found, label) for label in figures()[name]["after"] if (found := numbered(app.env, "figure", label))
    ]
    page, _, anchor = next((one for one in places if one[0] == docname), places[0])
    if page != docname and ALONE.endswith(name.replace("-", "_")):
        page, anchor = ALONE, name
    address = "" if page == docname else app.builder.get_relative_uri(docname, page)
    words = {k: str(v).lower() if isinstance(v, bool) else v for k, v in state.items()}
    opens = urlencode([("try", name), *words.items()])
    return (
        f'<p class="tl-begin noprint"><a href="{html.escape(address)}#{anchor}" '
        f'data-opens="{html.escape(opens)}">Open the figure for this exercise</a></p>'
    )


def write(app: Sphinx, error: Exception | None) -> None:
    """The weights as a script: what `tformer_book.kit.live.as_script` makes of them."""
    if error is None and app.builder.format == "html":
        for script, source in MADE.items():
            place = Path(app.outdir, "_static", "live", script)
            place.parent.mkdir(parents=True, exist_ok=True)
            text = source.read_text("utf8").strip()
            place.write_text(f"window.TformerModel = {text};\n", "utf8")


def setup(app: Sphinx) -> dict:
    """Registers the directive, the style and the script that loads the others."""
    app.add_node(Standing)
    app.add_directive("live", LiveDirective)
    app.connect("doctree-resolved", place)
    app.connect("build-finished", write)
    app.add_css_file("live/live.css")
    app.add_js_file("live/load.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
