"""Drawings on Markdown pages: `{drawing} NAME`; `{chapter-cards}` for the first page.

    ```{drawing} soft_lookup
    ```

puts `book/_drawings/NAME.html` in its place: inline SVG, which takes the page's
colours. `tools/draw_pictures.py` writes these files, and the drawings on the cards.

    ```{chapter-cards}
    02_attention: One sentence on the chapter. | 25
    ```

makes a card for each chapter of the table of contents, in its order, under the captions
of its parts. A line of the content has the stem of the chapter's file, a sentence, and
how many minutes the chapter takes to read; number and title come from the chapter.
"""

import html
import re
from pathlib import Path, PurePosixPath

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from tformer_site import chapter_number

BOOK = Path(__file__).resolve().parents[1]
LINE = re.compile(r"(?P<stem>\w+):\s+(?P<sentence>.+?)\s*\|\s*(?P<minutes>\d+)")


class ChapterCardsNode(nodes.General, nodes.Element):
    """The cards, until the titles of all chapters are known."""


class DrawingDirective(SphinxDirective):
    """A drawing that was written to a file."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The file, as it is."""
        path = BOOK / "_drawings" / f"{self.arguments[0]}.html"
        if not path.exists():
            raise self.error(f"there is no drawing {path.name} in book/_drawings")
        self.env.note_dependency(str(path))
        return [nodes.raw("", path.read_text("utf8").strip(), format="html")]


class ChapterCards(SphinxDirective):
    """A card for each chapter."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Reads the lines and holds them to the table of contents."""
        told = {}
        for line in filter(str.strip, self.content):
            found = LINE.fullmatch(line.strip())
            if found is None:
                raise self.error(f"not of the form 'file: sentence | minutes': {line}")
            told[found["stem"]] = (found["sentence"], int(found["minutes"]))
        contents = Path(self.env.srcdir) / self.config.external_toc_path
        self.env.note_dependency(str(contents))
        parts = []
        for part in yaml.safe_load(contents.read_text("utf8"))["parts"]:
            files = [chapter["file"] for chapter in part["chapters"]]
            cards = []
            for file in filter(chapter_number, files):
                stem = PurePosixPath(file).name
                picture = BOOK / "_static" / "cards" / f"{stem}.svg"
                if stem not in told or not picture.exists():
                    what = "line" if stem not in told else f"drawing ({picture.name})"
                    raise self.error(f"the chapter {stem} has no {what} for its card")
                self.env.note_dependency(str(picture))
                drawing = picture.read_text("utf8").strip()
                cards.append((file, drawing, *told.pop(stem)))
            if cards:
                parts.append((part["caption"], cards))
        if told:
            raise self.error(f"no chapters of the book: {', '.join(told)}")
        return [ChapterCardsNode("", parts=parts)]


def card(address: str, name: str, drawing: str, sentence: str, minutes: int) -> str:
    """An item of the list, all of which is one link."""
    return (
        f'<li><a class="tformer-card" href="{html.escape(address)}">'
        f'<span class="tformer-card-drawing" aria-hidden="true">{drawing}</span> '
        f'<span class="tformer-card-title">{html.escape(name)}</span> '
        f"<span>{html.escape(sentence)}</span> "
        f'<span class="tformer-card-minutes">{minutes} min</span></a></li>'
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
            for file, *rest in cards:
                name = f"{chapter_number(file)} {app.env.titles[file].astext()}"
                address = app.builder.get_relative_uri(docname, file)
                shown.append(card(address, name, *rest))
            shown.append("</ol>")
        node.replace_self(nodes.raw("", "".join(shown), format="html"))


def setup(app: Sphinx) -> dict:
    """Registers the directives and the drawings' style sheet."""
    app.add_node(ChapterCardsNode)
    app.add_directive("drawing", DrawingDirective)
    app.add_directive("chapter-cards", ChapterCards)
    app.connect("doctree-resolved", show_cards)
    app.add_css_file("drawings.css")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
