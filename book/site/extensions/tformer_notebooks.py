"""The notebooks that readers open: written beside the site, from the same sources.

Sources are MyST, which Jupyter and Colab do not read. When the pages are written, so is
`notebooks/book/SLUG/NAME.ipynb` for each of them, in which references are links to the site with the text
that the site shows, a figure has its number and caption under it and is a PNG, plumbing is closed, and
solutions wait closed without their outputs. The buttons of a page lead to these, and
`notebooks/notebooks.zip` has all.

The first cell installs the book at the commit that TFORMER_RELEASE names where the site is built, or at the
branch of `_config.yml`. The publishing workflow puts the folder on the branch `notebooks`, where Colab and
Binder open it.
"""

import json
import os
import zipfile
from functools import cache
from pathlib import Path

import pybtex.plugin
from docutils import nodes
from pybtex.plugin import find_plugin
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger
from tformer_notebook_code import SETUP, TITLE, Names, closed, is_setup, metadata_of, title_of
from tformer_notebook_code import setup as setup_cell
from tformer_notebook_links import SiteLinks
from tformer_notebook_needs import code_of, needs
from tformer_notebook_pictures import is_picture, with_png
from tformer_notebook_sections import sections, sentence, titles
from tformer_notebook_text import Text
from tformer_site import by_docname

FOLDER = "notebooks"  # of the site
BRANCH = "notebooks"  # of the repository
ZIP = "notebooks.zip"
COLAB, BINDER = "https://colab.research.google.com", "https://mybinder.org"
CLAIM = "application/vnd.tformer.claim+json"
NUMBERS = "The numbers behind this"  # of cells that hold claims alone
log = getLogger(__name__)


def kind(docname: str) -> str:
    """What a notebook is: a chapter, a laboratory or exercises."""
    stem = docname.rpartition("/")[2]
    return stem if stem in ("chapter", "exercises") else "laboratory"


def colab(repository: str, docname: str) -> str:
    """Where Colab opens a notebook."""
    name = repository.removesuffix("/").partition("github.com/")[2]
    return f"{COLAB}/github/{name}/blob/{BRANCH}/{docname}.ipynb"


def binder(repository: str, docname: str) -> str:
    """Where Binder opens it."""
    name = repository.removesuffix("/").partition("github.com/")[2]
    return f"{BINDER}/v2/gh/{name}/{BRANCH}?urlpath=lab/tree/{docname}.ipynb"


class Reader:
    """Makes one notebook of its source."""

    def __init__(self, app: Sphinx, docname: str) -> None:
        self.app, self.docname = app, docname
        self.links = SiteLinks(app, docname)
        self.text = Text(self.links, self.links.warn)
        self.names = Names()
        self.kept = Path(app.outdir).parent / "pictures"
        self.repository = app.config.html_theme_options["repository_url"]
        branch = app.config.html_theme_options.get("repository_branch") or "main"
        self.release = os.environ.get("TFORMER_RELEASE") or branch
        self.source = json.loads(Path(app.env.doc2path(docname)).read_text("utf8"))
        self.packages = needs(code_of(self.source))

    def notebook(self) -> dict:
        """The notebook, in the format's version 4.5."""
        cells: list[dict] = []
        for cell in self.source["cells"]:
            cells += self.code(cell) if cell["cell_type"] == "code" else self.words(cell)
            if len(cells) == 1:
                cells.append(markdown("about-this-notebook", self.about()))
        if kind(self.docname) == "laboratory":
            self.tell_sections(cells)
        return {
            "cells": joined(cells),
            "metadata": {
                "colab": {
                    "name": f"{self.docname.split('/')[-2]}-{self.docname.split('/')[-1]}.ipynb",
                    "provenance": [],
                },
                "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                "language_info": {"name": "python"},
                "tformer": {"packages": self.packages, "page": self.links.page, "release": self.release},
            },
            "nbformat": 4,
            "nbformat_minor": 5,
        }

    def tell_sections(self, cells: list[dict]) -> None:
        """Says under the title of a section which others have to run before it."""
        found = sections(self.source["cells"])
        places = [
            (cell, line, title)
            for cell in cells
            if cell["cell_type"] == "markdown"
            for line, title in titles("".join(cell["source"]))
        ]
        if len(places) != len(found) - 1:
            log.warning("of %s's %d sections %d are shown", self.docname, len(found) - 1, len(places))
            return
        names = ["", *(title for _, _, title in places)]
        for (cell, line, _), section in zip(reversed(places), reversed(found[1:]), strict=True):
            if told := sentence(section, names):
                cell["source"][line : line + 1] = [
                    cell["source"][line].rstrip("\n") + "\n",
                    "\n",
                    f"{told}\n",
                ]

    def words(self, cell: dict) -> list[dict]:
        """A cell of text, if anything of it is shown."""
        source = "".join(cell["source"])
        solving = self.text.solving
        shown = self.text.markdown(source)
        if solving and self.text.solving and shown and "<details>" not in shown:
            name = self.links.exercise(solving)
            shown = f"<details><summary>Solution to {name}</summary>\n\n{shown}\n\n</details>"
        return [markdown(cell["id"], shown)] if shown else []

    def code(self, cell: dict) -> list[dict]:
        """A cell of code, and the caption of its figure."""
        source, told = "".join(cell["source"]), cell["metadata"]
        tags = told.get("tags", [])
        title = title_of(source, told)
        source = self.names.apart(source, tags)
        if is_setup(source):
            source = setup_cell(
                source, repository=self.repository, release=self.release, packages=self.packages
            )
        if "solution" in tags:
            title = f"Solution to {self.links.exercise(self.text.solving)}" if self.text.solving else title
        figure = told.get("mystnb", {}).get("figure", {})
        alt = told.get("mystnb", {}).get("image", {}).get("alt", "")
        outputs = [] if "solution" in tags else [self.output(output, alt) for output in cell["outputs"]]
        made = {
            "cell_type": "code",
            "execution_count": None if "solution" in tags else cell.get("execution_count"),
            "id": cell["id"],
            "metadata": metadata_of(told, title),
            "outputs": outputs,
            "source": lines(closed(source, title) if title else source),
        }
        told_by_claims = bool(cell["outputs"]) and all(CLAIM in o.get("data", {}) for o in cell["outputs"])
        if "solution" in tags or (title and told_by_claims):
            made["metadata"]["jupyter"]["outputs_hidden"] = True
        if not figure:
            return [made]
        return [made, markdown(f"{cell['id']}-caption", self.caption(figure, alt, outputs))]

    def output(self, output: dict, alt: str) -> dict:
        """An output: a picture as PNG, everything else as it is."""
        output = json.loads(json.dumps(output))
        data = output.get("data", {})
        data.pop(CLAIM, None)
        if is_picture(output):
            with_png(output, alt, self.kept)
        return output

    def caption(self, figure: dict, alt: str, outputs: list[dict]) -> str:
        """A figure's number and caption, and what there is to be seen in words."""
        label = figure.get("name", "")
        name, address = self.links.figure(label) if label else ("", "")
        words = self.text.line(figure.get("caption", ""))
        told = f"**[{name}.]({address})** {words}" if name else words
        if touch := self.links.touch(label):
            told += f" *[On the website]({touch}) this figure moves when you touch it.*"
        alt = alt or next((o["data"]["text/plain"] for o in outputs if is_picture(o)), "")
        if alt:
            told += f"\n\n<details><summary>The figure in words</summary>\n\n{escaped(alt)}\n\n</details>"
        return told

    def about(self) -> str:
        """What the notebook is, how it is run, and what lies beside it."""
        chapter = by_docname()[self.docname]
        book = self.app.config.html_title
        what = {
            "chapter": f"Chapter {chapter.number}",
            "laboratory": f"The laboratory of Chapter {chapter.number}",
            "exercises": f"The exercises of Chapter {chapter.number}",
        }[kind(self.docname)]
        start = (
            "**Run the next cell first.** It imports what the others need; where the book is not installed, "
            "as in Colab, it installs it, which takes a minute and a network."
        )
        reading = ""
        if kind(self.docname) == "chapter":
            reading = f" It takes about {chapter.minutes} minutes to read, pencil in hand."
        answers = any("answer" in c["metadata"].get("tags", []) for c in self.source["cells"])
        if answers:
            start += (
                " For every exercise that cell is enough: you can go straight to the one that you want to do."
            )
        folds = "Code that only prepares, draws or checks is closed under a title that says what it holds"
        folds += ", and so are the solutions." if answers else "."
        parts = [
            f"**{what} of [*{book}*]({self.links.base}), to be run.** [On the website]({self.links.page}) "
            f"the same text has a search, previews and figures to touch.{reading}",
            f"{start} {folds}",
        ]
        beside = [
            f"[{self.app.env.titles[docname].astext()}]({docname.rpartition('/')[2]}.ipynb) "
            f"([in Colab]({colab(self.repository, docname)}))"
            for docname, other in by_docname().items()
            if other is chapter and docname != self.docname and docname in self.app.env.found_docs
        ]
        if beside:
            parts.append(f"**Beside it:** {' · '.join(beside)}")
        return "\n>\n".join(f"> {part}" for part in parts)


def joined(cells: list[dict]) -> list[dict]:
    """The cells, with closed ones that follow each other and show nothing between made one.

    The one has the first's id and names the others in its metadata; its title is the first that says more
    than that numbers follow. Cells that show something end a run; they join it if they have its title.
    """
    made: list[dict] = []
    for cell in cells:
        last = made[-1] if made else {}
        if not (is_closed(last) and is_quiet(last) and is_closed(cell)):
            made.append(cell)
            continue
        heads = [TITLE.match(one["source"][0])["words"] for one in (last, cell)]
        if not is_quiet(cell) and (last["outputs"] or heads[0] != heads[1]):
            made.append(cell)
            continue
        title = next((head for head in heads if head != NUMBERS), NUMBERS)
        source = f"{''.join(last['source'][1:])}\n\n{''.join(cell['source'][1:])}"
        metadata = last["metadata"] | {"joined": [*last["metadata"].get("joined", []), cell["id"]]}
        if is_quiet(cell) and (last["outputs"] or cell["outputs"]):
            metadata["jupyter"] = cell["metadata"]["jupyter"] | {"outputs_hidden": True}
        made[-1] = {
            **last,
            "execution_count": cell["execution_count"],
            "metadata": metadata,
            "outputs": last["outputs"] + cell["outputs"],
            "source": lines(closed(source, title)),
        }
    return made


def is_closed(cell: dict) -> bool:
    """Whether a cell is closed code of the book's: no solution, no answer, not the one to be run first."""
    told = cell.get("metadata", {})
    return (
        cell.get("cell_type") == "code"
        and "cellView" in told
        and not {"solution", "answer"} & set(told.get("tags", []))
        and not cell["source"][0].startswith(f"# @title {SETUP}")
    )


def is_quiet(cell: dict) -> bool:
    """Whether nothing of what a cell puts out is seen."""
    return not cell["outputs"] or cell["metadata"]["jupyter"].get("outputs_hidden", False)


def escaped(words: str) -> str:
    """Plain text as Markdown."""
    for mark in "\\*_`$<[":
        words = words.replace(mark, f"\\{mark}" if mark != "<" else "&lt;")
    return words


def markdown(name: str, text: str) -> dict:
    """A cell of text."""
    return {"cell_type": "markdown", "id": name[:64], "metadata": {}, "source": lines(text)}


def lines(text: str) -> list[str]:
    """As notebooks keep a text."""
    return text.splitlines(keepends=True)


README = """\
The notebooks of {book}, {site}

Each runs in JupyterLab, VS Code or Colab; its first cell installs what it needs where that is missing. With a
Python from 3.11:

    python -m venv env && env/bin/pip install jupyterlab && env/bin/jupyter lab

They are written from the book's sources, {repository} ({release}).
Code: BSD-3-Clause. Text and figures: CC BY 4.0.
"""
BINDER_NEEDS = """\
# What Binder installs to open these notebooks.
tformer-lib[train] @ git+{repository}@{release}
tformer-book @ git+{repository}@{release}#subdirectory=book
"""


def write(app: Sphinx, error: Exception | None) -> None:
    """Writes all of them, what Binder needs, and the zip."""
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir, FOLDER)
    app.tformer_references = {}  # the same on all pages
    pybtex.plugin.find_plugin = cache(
        find_plugin
    )  # it looks through all installed packages, for each citation
    written: list[Path] = []

    def put(name: str, text: str) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf8")
        written.append(folder / name)

    for docname in by_docname():
        if docname in app.env.found_docs:
            reader = Reader(app, docname)
            put(
                f"{docname}.ipynb",
                json.dumps(reader.notebook(), ensure_ascii=False, indent=1, sort_keys=True) + "\n",
            )
    told = {"book": app.config.html_title, "site": app.config.html_baseurl, "release": reader.release}
    told["repository"] = reader.repository.removesuffix("/")
    put("README.md", README.format(**told))
    put("requirements.txt", BINDER_NEEDS.format(**told))
    put("runtime.txt", "python-3.12\n")
    with zipfile.ZipFile(folder / ZIP, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in written:
            entry = zipfile.ZipInfo(f"{FOLDER}/{file.relative_to(folder).as_posix()}", (2026, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())


def buttons(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Lets a page's buttons open its notebook, not its source."""
    groups = {group.get("label"): group for group in context.get("header_buttons", [])}
    if pagename not in by_docname() or app.builder.format != "html":
        return
    repository = app.config.html_theme_options["repository_url"]
    up = context["pathto"]
    for group in groups.values():
        for button in group.get("buttons", []):
            words = button.get("text")
            if words == "Colab":
                button["url"] = colab(repository, pagename)
            elif words == "Binder":
                button["url"] = binder(repository, pagename)
            elif words == ".ipynb":
                button["url"] = up(f"{FOLDER}/{pagename}.ipynb", 1)
                button["tooltip"] = "Download this notebook"
    if downloads := groups.get("download-buttons"):
        downloads["buttons"].append(
            {
                "type": "link",
                "url": up(f"{FOLDER}/{ZIP}", 1),
                "text": "all .ipynb (.zip)",
                "tooltip": "Download the notebooks of all chapters",
                "icon": "fas fa-file-archive",
                "label": "download-notebooks-button",
            }
        )


def setup(app: Sphinx) -> dict:
    """Connects the handlers above."""
    app.connect("html-page-context", buttons, priority=700)  # the theme has made its buttons
    app.connect("build-finished", write, priority=600)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
