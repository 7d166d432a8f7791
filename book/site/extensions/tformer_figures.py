"""Figures on the site: for light and dark pages, to be enlarged and to be saved.

A notebook's figure comes as SVG and as PNG. Both are written to the site under a name
that a lecturer can use, `fig-02-1-kernel-fits`, and the SVG once more in colours for
dark pages. The page has an image for each theme, and the theme's style sheet hides one:
this needs no script, and a hidden image that loads lazily is not loaded. A picture that
has no SVG stays as it is.
"""

import base64
import html
import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri
from tformer_dark import dark_svg
from tformer_site import chapter_number

SIZE = re.compile(r'<svg\b[^>]*?\bwidth="([\d.]+)pt"|\bheight="([\d.]+)pt"')
SHEET = re.compile(r'<g id="patch_1">.*?</g>', re.DOTALL)  # the first patch: the figure
PIXELS = 96 / 72  # of a page in a point


class Picture(nodes.General, nodes.Element):
    """The image of a figure for each theme."""


class Files(nodes.General, nodes.Inline, nodes.Element):
    """The button that enlarges a figure, and the links to its files."""


def outputs(notebook: Path) -> dict[str, dict]:
    """From the label of a figure to what its cell shows, by type."""
    found = {}
    for cell in json.loads(notebook.read_text("utf8"))["cells"]:
        label = cell["metadata"].get("mystnb", {}).get("figure", {}).get("name")
        for output in cell.get("outputs", ()):
            data = {kind: "".join(v) for kind, v in output.get("data", {}).items()}
            if label and {"image/svg+xml", "image/png"} <= data.keys():
                found[label] = data
    return found


def file_name(docname: str, number: int, label: str, chapter: str) -> str:
    """fig-attention-kernel-fits, the first of ch-attention, is fig-02-1-kernel-fits."""
    words = label.removeprefix("fig-").split("-")
    for word in chapter.removeprefix("ch-").split("-"):
        if len(words) > 1 and words[0] == word:
            words.pop(0)
    return "-".join(["fig", (chapter_number(docname) or "").zfill(2), str(number), *words])


def write(folder: Path, name: str, data: dict) -> tuple[float, float]:
    """Writes a figure's three files; returns its width and height on the page."""
    svg = SHEET.sub("", data["image/svg+xml"], count=1)  # the page is the sheet
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.svg").write_text(svg, "utf8")
    (folder / f"{name}-dark.svg").write_text(dark_svg(svg), "utf8")
    (folder / f"{name}.png").write_bytes(base64.b64decode(data["image/png"]))
    width, height = SIZE.findall(svg)[:2]
    return PIXELS * float("".join(width)), PIXELS * float("".join(height))


def place(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Puts each figure's pictures, button and links in the place of its image."""
    source = Path(app.env.doc2path(docname))
    if app.builder.format != "html" or source.suffix != ".ipynb":
        return
    shown = outputs(source)
    numbers = app.env.toc_fignumbers.get(docname, {}).get("figure", {})
    names = [n for s in doctree.findall(nodes.section) for n in s["names"] + s["ids"]]
    chapter = next((name for name in names if name.startswith("ch-")), "")
    uri = relative_uri(app.builder.get_target_uri(docname), app.builder.imagedir)
    for figure in doctree.findall(nodes.figure):
        label = next((i for i in figure["ids"] if i in shown), None)
        image = next(iter(figure.findall(nodes.image)), None)
        caption = next(iter(figure.findall(nodes.caption)), None)
        if label is None or image is None or caption is None or label not in numbers:
            continue
        name = file_name(docname, numbers[label][-1], label, chapter)
        folder = Path(app.outdir) / app.builder.imagedir
        width, height = write(folder, name, shown[label])
        number = "Figure " + ".".join(map(str, numbers[label]))
        options = {"at": f"{uri}/{name}", "name": name, "number": number}
        picture = Picture("", **options, alt=image.get("alt", ""))
        picture["width"], picture["height"] = round(width), round(height)
        image.replace_self(picture)
        caption += Files("", **options)


def visit_picture(self, node: Picture) -> None:
    """An image for light pages and one for dark ones, of the same size."""
    images = (
        f'<img class="only-{theme}" src="{node["at"]}{ending}.svg" '
        f'width="{node["width"]}" height="{node["height"]}" loading="lazy" '
        f'alt="{html.escape(node["alt"])}">'
        for theme, ending in (("light", ""), ("dark", "-dark"))
    )
    self.body.append(f'<span class="tformer-figure">{"".join(images)}</span>')
    raise nodes.SkipNode


def visit_files(self, node: Files) -> None:
    """Behind the caption: a button, and links that save files under their names."""
    number = node["number"]
    links = (
        f'<a href="{node["at"]}.{kind}" download="{node["name"]}.{kind}" '
        f'aria-label="{kind.upper()} of {number}">{kind.upper()}</a>'
        for kind in ("svg", "png")
    )
    self.body.append(
        ' <span class="tformer-files" data-pagefind-ignore>'
        f'<button type="button" aria-label="Enlarge {number}">Enlarge</button>'
        f"{''.join(links)}</span>"
    )
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict:
    """Connects the handlers above, and adds the figures' style and script."""
    app.add_node(Picture, html=(visit_picture, None))
    app.add_node(Files, html=(visit_files, None))
    app.connect("doctree-resolved", place)
    app.add_css_file("figures.css")
    app.add_js_file("figures.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
