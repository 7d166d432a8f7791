"""A chapter's pages as tabs of one: Chapter, Laboratory, Exercises, under the title of each.

A chapter's foot leads to the two others again: who comes there has the tabs far above.

Where the laboratory is several pages, its tab opens the first, and these show each other in a second row.
"""

import sys
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
from chapters import EXERCISES, Chapter, by_docname, chapters

EVENING = "For one evening"  # how a page of exercises begins to say which


def tab(app: Sphinx, docname: str, to: str, words: str, *, current: bool) -> str:
    """A link to a page; to the page that is open, none."""
    if docname == to:
        return f'<a aria-current="page">{escape(words)}</a>'
    mark = ' aria-current="true"' if current else ""
    return f'<a href="{escape(app.builder.get_relative_uri(docname, to))}"{mark}>{escape(words)}</a>'


def row(label: str, links: list[str], *, second: bool = False) -> str:
    """Links beside each other."""
    name = "tformer-tabs tformer-subtabs" if second else "tformer-tabs"
    return f'<nav class="{name}" aria-label="{escape(label)}" data-pagefind-ignore>{"".join(links)}</nav>'


def tabs(app: Sphinx, docname: str, chapter: Chapter) -> str:
    """The rows for one page of a chapter."""
    pages = {name: f"book/{chapter.name}/{name}" for name in (chapter.page, *chapter.companions)}
    here = docname.rsplit("/", 1)[1]
    laboratories = chapter.laboratories
    shown = [(chapter.page, "Chapter"), *[(name, "Laboratory") for name in laboratories[:1]]]
    shown += [(EXERCISES, "Exercises")] * chapter.exercises
    links = []
    for name, words in shown:
        of_it = name == here or (words == "Laboratory" and here in laboratories)
        links.append(tab(app, docname, pages[name], words, current=of_it))
    text = row("Chapter, laboratory, exercises", links)
    if here in laboratories and len(laboratories) > 1:
        titles = {name: short_title(app, pages[name]) for name in laboratories}
        text += row(
            "Pages of the laboratory",
            [tab(app, docname, pages[name], titles[name], current=name == here) for name in laboratories],
            second=True,
        )
    return text


def short_title(app: Sphinx, docname: str) -> str:
    """What of a page's title stands behind its chapter's."""
    words = app.env.titles[docname].astext().partition(": ")[2]
    return words[:1].upper() + words[1:]


def exercises_words(app: Sphinx, docname: str) -> str:
    """What the link at a chapter's foot says: how many exercises there are, how many an evening is for."""
    count = len(app.env.toc_fignumbers.get(docname, {}).get("exercise", {}))
    evening = sum(
        len(list(paragraph.findall(addnodes.pending_xref)))
        for paragraph in app.env.get_doctree(docname).findall(nodes.paragraph)
        if paragraph.astext().startswith(EVENING)
    )
    words = f"Exercises: {count}" if count else "Exercises"
    return f"{words}, for one evening {evening}" if count and evening else words


def foot(app: Sphinx, docname: str, chapter: Chapter) -> str:
    """The links at a chapter's foot."""
    links = []
    if chapter.exercises:
        to = f"book/{chapter.name}/{EXERCISES}"
        links.append(tab(app, docname, to, f"{exercises_words(app, to)} →", current=False))
    for name in chapter.laboratories[:1]:
        links.append(tab(app, docname, f"book/{chapter.name}/{name}", "Laboratory →", current=False))
    label = "To practise"
    return f'<nav class="tformer-foot" aria-label="{label}" data-pagefind-ignore>{"".join(links)}</nav>'


def place(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Puts the tabs behind the title, and the links at the foot."""
    chapter = by_docname().get(docname)
    if app.builder.name != "html" or chapter is None or not chapter.companions:
        return
    title = doctree.next_node(nodes.title)
    if title is not None and title.parent is not None:
        behind = title.parent.index(title) + 1
        title.parent.insert(behind, nodes.raw("", tabs(app, docname, chapter), format="html"))
        if docname == chapter.docname:
            title.parent += nodes.raw("", foot(app, docname, chapter), format="html")


def beside(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document) -> None:
    """Leads from a chapter's foot to the chapters beside it: its own pages are the tabs at its head."""
    order = [chapter.docname for chapter in chapters()]
    if app.builder.name != "html" or pagename not in order:
        return
    for key, at in (("prev", order.index(pagename) - 1), ("next", order.index(pagename) + 1)):
        if 0 <= at < len(order):
            title = app.builder.render_partial(app.env.titles[order[at]])["title"]
            context[key] = {"link": app.builder.get_relative_uri(pagename, order[at]), "title": title}


def setup(app: Sphinx) -> dict:
    """Connects the handlers, and adds the style."""
    app.connect("doctree-resolved", place)
    app.connect("html-page-context", beside)
    app.add_css_file("tabs.css")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
