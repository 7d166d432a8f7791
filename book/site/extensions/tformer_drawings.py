"""Drawings on Markdown pages: `{drawing} NAME`; `{chapter-cards}` for the first page.

    ```{drawing} soft_lookup
    ```

puts `book/site/drawings/NAME.html` in its place: inline SVG, which takes the page's
colours. `tools/draw_pictures.py` writes these files, and the drawings on the cards.

    ```{chapter-cards}
    ```

makes a card for each chapter of the table of contents, in its order, under the captions
of its parts. What it says and shows lies in the chapter's folder, as `chapter.yml` and
`card.svg`; number and title come from the contents and the chapter.

    ```{page-cards} Caption
    - {page: book/play, drawing: card_play, sentence: What its card says.}
    ```

makes such cards for other pages, under a caption like those of the parts.

A notebook's drawing is stored with a rule of its own for the room below which it takes
its narrow layout. The site has less room in its column and more beside it: here the
wide layout stays until it would be smaller than `SMALLEST`, and the page learns its
width, up to which it may reach into the margin (`drawings.css`).
"""

import html
import re
import sys
from itertools import groupby
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

SITE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SITE.parents[1] / "tools"))

from chapters import FILE, chapters

DRAWING = re.compile(r'<div class="tformer-figure drawing-\w+".*?</svg></div>', re.DOTALL)
WIDE = re.compile(r'\bwidth="([\d.]+)"')  # the first: of the wide layout
TURN = re.compile(r"(?<=@container \(max-width:)\d+(?=px\))")
SMALLEST = 0.8  # of the size at which a wide layout was drawn


class ChapterCardsNode(nodes.General, nodes.Element):
    """The cards, until the titles of all chapters are known."""


class DrawingDirective(SphinxDirective):
    """A drawing that was written to a file."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The file, as it is."""
        text = drawing_of(self, f"{self.arguments[0]}.html")
        return [nodes.raw("", text, format="html")]


class ChapterCards(SphinxDirective):
    """A card for each chapter, part after part."""

    def run(self) -> list[nodes.Node]:
        """What the chapters say of themselves, in the order of the contents."""
        root = Path(self.env.srcdir)
        self.env.note_dependency(str(root / "_toc.yml"))
        parts = []
        for part, those in groupby(chapters(root), lambda chapter: chapter.part):
            cards = []
            for chapter in those:
                picture = chapter.folder / "card.svg"
                if not picture.exists():
                    raise self.error(f"the chapter {chapter.name} has no {picture.name}")
                for file in (picture, chapter.folder / FILE):
                    self.env.note_dependency(str(file))
                drawing = picture.read_text("utf8").strip()
                told = (drawing, chapter.sentence, f"{chapter.minutes} min")
                cards.append((chapter.number, chapter.docname, *told))
            parts.append((part, cards))
        return [ChapterCardsNode("", parts=parts)]


class PageCards(SphinxDirective):
    """A card for each of the pages that are named."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """What is said of the pages, with their drawings."""
        cards = []
        for told in yaml.safe_load("\n".join(self.content)):
            cards.append(("", told["page"], drawing_of(self, f"{told['drawing']}.svg"), told["sentence"], ""))
        return [ChapterCardsNode("", parts=[(self.arguments[0], cards)])]


def drawing_of(directive: SphinxDirective, name: str) -> str:
    """The text of a drawing's file.

    Raises:
        DirectiveError: if there is no such file.
    """
    path = SITE / "drawings" / name
    if not path.exists():
        raise directive.error(f"there is no drawing {name} in book/site/drawings")
    directive.env.note_dependency(str(path))
    return path.read_text("utf8").strip()


def card(address: str, name: str, drawing: str, sentence: str, minutes: str) -> str:
    """An item of the list, all of which is one link."""
    time = f' <span class="tformer-card-minutes">{minutes}</span>' if minutes else ""
    return (
        f'<li><a class="tformer-card" href="{html.escape(address)}">'
        f'<span class="tformer-card-drawing" aria-hidden="true">{drawing}</span> '
        f'<span class="tformer-card-title">{html.escape(name)}</span> '
        f"<span>{html.escape(sentence)}</span>{time}</a></li>"
    )


def show_cards(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Puts the cards into the page, with the chapters' titles and addresses."""
    for node in list(doctree.findall(ChapterCardsNode)):
        level, parent = 1, node.parent
        while parent is not None:
            level += isinstance(parent, nodes.section)
            parent = parent.parent
        shown = []
        for caption, cards in node["parts"]:
            head = f'<h{level} class="tformer-cards-part">{html.escape(caption)}'
            shown.append(f'{head}</h{level}><ol class="tformer-cards">')
            for number, file, *rest in cards:
                name = f"{number} {app.env.titles[file].astext()}".strip()
                address = app.builder.get_relative_uri(docname, file)
                shown.append(card(address, name, *rest))
            shown.append("</ol>")
        node.replace_self(nodes.raw("", "".join(shown), format="html"))


def with_room(page: str) -> str:
    """The drawings in this HTML, wide down to `SMALLEST`, and each with its width for the style sheet."""

    def change(found: re.Match) -> str:
        drawing = found[0]
        wide = WIDE.search(drawing)
        if wide is None:
            return drawing
        drawing = TURN.sub(str(round(SMALLEST * float(wide[1]))), drawing, count=1)
        return drawing.replace("<div ", f'<div style="--wide: {wide[1]}px" ', 1)

    return DRAWING.sub(change, page)


def give_room(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Lets the drawings of a page be as wide as the page has room."""
    if app.builder.format != "html":
        return
    for node in list(doctree.findall(nodes.raw)):
        if "tformer-figure drawing-" in node.astext():
            node.replace_self(nodes.raw("", with_room(node.astext()), **node.attributes))


def setup(app: Sphinx) -> dict:
    """Registers the directives and the drawings' style sheet."""
    app.add_node(ChapterCardsNode)
    app.add_directive("drawing", DrawingDirective)
    app.add_directive("chapter-cards", ChapterCards)
    app.add_directive("page-cards", PageCards)
    app.connect("doctree-resolved", show_cards)
    app.connect("doctree-resolved", give_room)
    app.add_css_file("drawings.css")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
