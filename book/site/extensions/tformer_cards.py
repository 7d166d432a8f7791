"""A card for sharing for each chapter: the book's own, with the chapter's number and title.

A link to a chapter is shown elsewhere with the picture that its page names. All of a
chapter's pages name the card of the chapter; other pages keep the book's.
"""

import html
from pathlib import Path

import font_source_sans_pro
from PIL import Image, ImageDraw, ImageFont
from sphinx.application import Sphinx
from tformer_site import by_docname

BOOK = Path(__file__).parents[1] / "static" / "card.png"  # 1200 x 630, its mark on the left
LEFT, WIDTH, HEIGHT = 500, 640, 200  # of the title: where it begins, and its room
INK, SOFT = "#1d2733", "#454a5c"
FILES = Path(font_source_sans_pro.__file__).parent / "files"


def font(weight: str, size: int) -> ImageFont.FreeTypeFont:
    """The face of the site's titles."""
    return ImageFont.truetype(FILES / f"SourceSansPro-{weight}.ttf", size)


def fitted(draw: ImageDraw.ImageDraw, title: str) -> tuple[str, ImageFont.FreeTypeFont]:
    """The title in lines, and the largest face in which they have room."""
    for size in range(80, 20, -4):
        face, lines = font("Bold", size), [""]
        for word in title.split():
            longer = f"{lines[-1]} {word}".strip()
            if draw.textlength(longer, face) <= WIDTH:
                lines[-1] = longer
            else:
                lines.append(word)
        left, top, right, bottom = draw.multiline_textbbox((0, 0), "\n".join(lines).strip(), face)
        if right - left <= WIDTH and bottom - top <= HEIGHT:
            break
    return "\n".join(lines).strip(), face


def card(number: str, title: str) -> Image.Image:
    """The picture of a chapter."""
    with Image.open(BOOK) as book:
        picture = book.convert("RGB")
    draw = ImageDraw.Draw(picture)
    draw.rectangle((LEFT - 30, 0, *picture.size), "white")
    lines, face = fitted(draw, title)
    draw.text((LEFT, 148), f"Chapter {number}", SOFT, font("Regular", 36))
    draw.multiline_text((LEFT, 315), lines, INK, face, anchor="lm")
    draw.text((LEFT, 445), "Transformers by Construction", SOFT, font("Regular", 36))
    return picture


def name_card(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Has the pages of a chapter name its card, where they would name the book's."""
    chapter = by_docname().get(pagename)
    if chapter and context.get("metatags"):
        alt = html.escape(f"Chapter {chapter.number}: {app.env.titles[chapter.docname].astext()}")
        context["metatags"] = (
            context["metatags"]
            .replace(f"/{app.config.ogp_image}", f"/_static/cards/{chapter.name}.png")
            .replace(html.escape(app.config.ogp_image_alt), alt)
        )


def draw_cards(app: Sphinx, exception: Exception | None) -> None:
    """Draws the cards of the chapters that there are."""
    if exception or app.builder.format != "html":
        return
    folder = Path(app.outdir, "_static", "cards")
    folder.mkdir(parents=True, exist_ok=True)
    for chapter in {chapter.name: chapter for chapter in by_docname().values()}.values():
        if chapter.docname in app.env.titles:
            title = app.env.titles[chapter.docname].astext()
            card(chapter.number, title).quantize(32).save(folder / f"{chapter.name}.png", optimize=True)


def setup(app: Sphinx) -> dict:
    """Changes what sphinxext.opengraph has written, once it has."""
    app.connect("html-page-context", name_card, priority=900)
    app.connect("build-finished", draw_cards)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
