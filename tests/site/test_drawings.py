"""Every drawing as a browser shows it: nothing overlaps, everything fits, all of it can be read."""

import re
import sys

import pytest

from tests.book.kit.drawings.examples import EXAMPLES
from tests.site.pages import OPEN_ALL, ROOT, toc_pages
from tformer_book.kit.drawings.cards import card

sys.path.insert(0, str(ROOT / "book" / "site" / "extensions"))
import tformer_drawings

PAPER = {"light": ("#ffffff", "#222832"), "dark": ("#121212", "#ced6dd")}  # the theme's page and text
SETTINGS = [(scheme, width) for scheme in PAPER for width in (360, 1440)]

LOOK = """() => {
  const shown = [...document.querySelectorAll('svg.tformer-drawing')].filter(
    svg => svg.getBoundingClientRect().width > 0 && !svg.closest('.tformer-card'));
  const found = {drawings: shown.length, texts: 0};
  for (const fault of ['overlap', 'outside', 'size', 'contrast', 'wide', 'covers']) found[fault] = [];
  const parse = colour => (colour.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const over = (top, alpha, below) => below.map((b, i) => alpha * top[i] + (1 - alpha) * b);
  const light = rgb => rgb.map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  const page = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const inside = (a, b, dx, dy) => a.left >= b.left - dx && a.right <= b.right + dx
    && a.top >= b.top - dy && a.bottom <= b.bottom + dy;
  for (const svg of shown) {
    const name = svg.querySelector('title').textContent;
    const frame = svg.getBoundingClientRect();
    if (frame.right > innerWidth + .5) found.wide.push(name);
    for (const note of document.querySelectorAll('aside.margin, div.margin')) {
      const box = note.getBoundingClientRect();
      if (!note.contains(svg) && Math.min(box.right, frame.right) > Math.max(box.left, frame.left) + 1
        && Math.min(box.bottom, frame.bottom) > Math.max(box.top, frame.top) + 1) found.covers.push(name);
    }
    const scale = frame.width / svg.viewBox.baseVal.width;
    const texts = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim());
    found.texts += texts.length;
    const boxes = texts.map(t => t.getBoundingClientRect());
    texts.forEach((text, i) => {
      const said = `${name}: ${text.textContent}`;
      const style = getComputedStyle(text);
      const size = parseFloat(style.fontSize) * scale;
      if (size < 11.5 || size > 18) found.size.push(`${said}: ${size.toFixed(1)} px`);
      for (let j = 0; j < i; j++) {
        const across = Math.min(boxes[i].right, boxes[j].right) - Math.max(boxes[i].left, boxes[j].left);
        const down = Math.min(boxes[i].bottom, boxes[j].bottom) - Math.max(boxes[i].top, boxes[j].top);
        // A line's box has room for marks above and below its letters.
        if (across > .5 && down > .2 * size) found.overlap.push(`${said} and ${texts[j].textContent}`);
      }
      if (!inside(boxes[i], frame, .5, 2)) found.outside.push(said);
      const cell = text.parentElement.closest('.tformer-cell');
      let below = page(svg);
      let hatched = false;
      if (cell) {
        if (!inside(boxes[i], cell.lastElementChild.previousElementSibling.getBoundingClientRect(), 0, 1))
          found.outside.push(`${said} leaves its cell`);
        for (const shape of cell.querySelectorAll('rect, path')) {
          const paint = getComputedStyle(shape);
          if (paint.fill.startsWith('url')) hatched = true;
          else if (paint.fill !== 'none')
            below = over(parse(paint.fill).slice(0, 3), parseFloat(paint.fillOpacity), below);
        }
      }
      const ink = parse(style.fill).slice(0, 3);
      if (hatched) below = over(parse(getComputedStyle(svg).color).slice(0, 3), .3, below);
      const both = [light(over(ink, parseFloat(style.fillOpacity), below)), light(below)];
      const ratio = (Math.max(...both) + .05) / (Math.min(...both) + .05);
      if (ratio < 4.5) found.contrast.push(`${said}: ${ratio.toFixed(1)}`);
    });
  }
  return found;
}"""

FAULTS = ("overlap", "outside", "size", "contrast", "wide", "covers")


@pytest.fixture(scope="module")
def sheet() -> str:
    """A page of all drawings, as wide as the site's column."""
    rules = (ROOT / "book/site/static/drawings.css").read_text("utf8")
    papers = "".join(
        f'html[data-theme="{theme}"] body {{ background: {paper}; color: {ink}; }}'
        for theme, (paper, ink) in PAPER.items()
    )
    drawings = "".join(example().to_html() for example in EXAMPLES)
    body = f'<div style="max-width:688px;margin:auto">{drawings}</div>'
    return f"<!doctype html><html><style>{rules}{papers}body {{ margin: 16px; }}</style>{body}</html>"


def look(browser, page: str, scheme: str, width: int) -> dict:
    context = browser.new_context(viewport={"width": width, "height": 900})
    try:
        tab = context.new_page()
        tab.set_content(page.replace("<html>", f'<html data-theme="{scheme}">', 1))
        return tab.evaluate(LOOK)
    finally:
        context.close()


@pytest.mark.parametrize(("scheme", "width"), SETTINGS)
def test_every_drawing_can_be_read(browser, sheet, scheme, width):
    found = look(browser, sheet, scheme, width)
    assert found["drawings"] == len(EXAMPLES)  # of two layouts one is shown
    assert found["texts"] > 100
    assert {fault: found[fault] for fault in FAULTS} == {fault: [] for fault in FAULTS}


@pytest.mark.parametrize("width", [360, 500, 700, 1440])
def test_the_layout_is_the_one_for_the_room(browser, sheet, width):
    """No drawing is much smaller than it was meant, nor larger; a desktop has the wide ones."""
    context = browser.new_context(viewport={"width": width, "height": 900})
    tab = context.new_page()
    tab.set_content(sheet)
    scales = tab.locator("svg.tformer-drawing:visible").evaluate_all(
        """all => all.map(
          e => [e.clientWidth / e.viewBox.baseVal.width, e.classList.contains('tformer-narrow')])"""
    )
    context.close()
    assert len(scales) == len(EXAMPLES)
    assert all(0.89 <= scale <= 1.01 for scale, _ in scales)
    assert any(narrow for _, narrow in scales) == (width < 700)


@pytest.mark.parametrize(
    ("fault", "svg"),
    [
        ("overlap", '<text y="40" font-size="15">one</text><text y="42" x="9" font-size="15">two</text>'),
        ("outside", '<text x="190" y="40" font-size="15">leaves</text>'),
        ("outside", '<g class="tformer-cell"><rect width="20" height="20" fill="none"/><text y="15" '
                    'font-size="15">leaves</text></g>'),
        ("covers", '<foreignObject width="99" height="40"><aside class="margin">note</aside>'
                   '</foreignObject>'),
        ("size", '<text x="10" y="40" font-size="9">small</text>'),
        ("contrast", '<text x="10" y="40" font-size="15" fill="#aaa">pale</text>'),
    ],
)  # fmt: skip
def test_each_fault_is_seen(browser, fault, svg):
    box = 'width="200" height="80" viewBox="0 0 200 80"'
    drawing = f'<svg class="tformer-drawing" {box}>{svg}<title>t</title></svg>'
    found = look(browser, f"<!doctype html><html><body>{drawing}</body></html>", "light", 1440)
    assert [name for name in FAULTS if found[name]] == [fault]


def drawn_pages() -> list[str]:
    """The pages on which there are drawings."""
    sources = [(ROOT / page).with_suffix(suffix) for page in toc_pages() for suffix in (".ipynb", ".md")]
    marks = ("tformer-drawing", "```{drawing}")
    drawn = [path for path in sources if path.exists() and any(m in path.read_text("utf8") for m in marks)]
    return [str(path.relative_to(ROOT).with_suffix(".html")) for path in drawn]


@pytest.mark.parametrize("path", drawn_pages())
def test_drawings_on_pages_can_be_read(visit, path):
    """In each colour and width; the page is loaded once."""
    page = visit(path, width=SETTINGS[0][1]).page
    page.evaluate(OPEN_ALL)
    for scheme, width in sorted(SETTINGS, key=lambda setting: setting[1]):  # a new width is what takes long
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("scheme => { document.documentElement.dataset.theme = scheme }", scheme)
        found = page.evaluate(LOOK)
        assert found["drawings"] > 0
        faults = {fault: found[fault] for fault in FAULTS}
        assert faults == {fault: [] for fault in FAULTS}, (scheme, width)


@pytest.mark.parametrize(("width", "scale"), [(1440, 1), (960, 1), (768, 0.8), (600, 0.8)])
def test_a_page_shows_the_wide_layout_where_there_is_room(visit, width, scale):
    """Also one that is wider than the column: it begins with the text and reaches into the margin."""
    page = visit("book/attention/chapter.html", width=width).page
    page.evaluate(OPEN_ALL)
    for name in ("memory", "matrices"):
        drawing = page.locator(f"#fig-attention-{name} svg:visible")
        shown = drawing.evaluate("e => e.getBoundingClientRect().width / e.viewBox.baseVal.width")
        assert "tformer-wide" in drawing.get_attribute("class")
        assert scale <= shown <= 1.001
        text = page.locator(".bd-article p").first.bounding_box()
        assert drawing.bounding_box()["x"] == pytest.approx(text["x"], abs=1)


def test_the_rule_of_a_stored_drawing_is_changed_and_nothing_else():
    stored = next(html for example in EXAMPLES if "@container" in (html := example().to_html()))
    both = tformer_drawings.with_room(f"<p>{stored}</p>")
    wide = float(re.search(r'width="([\d.]+)"', stored)[1])
    assert f'style="--wide: {wide:g}px" class="tformer-figure' in re.sub(r"\.0px", "px", both)
    assert f"(max-width:{round(0.8 * wide)}px)" in both
    plain = re.sub(r' style="--wide: [\d.]+px"|(?<=max-width:)\d+(?=px\))', "", both)
    assert plain == re.sub(r"(?<=max-width:)\d+(?=px\))", "", f"<p>{stored}</p>")
    assert tformer_drawings.with_room("<p>none</p>") == "<p>none</p>"


def test_cards_name_their_chapter_and_are_links(tmp_path):
    """In a small book: a card for each chapter in the contents' order, under headings of the right level."""
    from bs4 import BeautifulSoup
    from sphinx.application import Sphinx

    chapters = ("earlier", "later")
    contents = "".join(f"      - file: book/{name}/chapter\n" for name in chapters)
    (tmp_path / "_toc.yml").write_text(
        f"format: jb-book\nroot: index\nparts:\n  - caption: First & last\n    chapters:\n{contents}"
    )
    (tmp_path / "index.md").write_text(
        "# Book\n\n```{drawing} soft_lookup\n```\n\n## Chapters\n\n```{chapter-cards}\n```\n\n"
        "```{page-cards} Also & besides\n"
        "- {page: book/later/chapter, drawing: card_play, sentence: To <play>.}\n```\n"
    )
    for i, name in enumerate(chapters):
        folder = tmp_path / "book" / name
        folder.mkdir(parents=True)
        (folder / "chapter.md").write_text(f"# Title of {name}\n")
        (folder / "chapter.yml").write_text(f"sentence: About <it>\nminutes: {i + 3}\n")
        (folder / "card.svg").write_text(card("It", "Nothing.")(lambda scene: None)().to_inline_svg())
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT / 'book/site/extensions')!r})\n"
        "extensions = ['myst_parser', 'sphinx_external_toc', 'tformer_drawings']\n"
        "source_suffix = {'.md': 'markdown'}\n"  # the default is shared with this process's other builds
        "external_toc_path = '_toc.yml'\nhtml_theme = 'basic'\n"
    )
    app = Sphinx(
        tmp_path, tmp_path, tmp_path / "out", tmp_path / "trees", "html", status=None, warningiserror=True
    )
    app.build()
    page = BeautifulSoup((tmp_path / "out/index.html").read_text("utf8"), "lxml")
    assert page.select_one('h1 ~ .tformer-figure[style^="--wide: "] svg.tformer-wide') is not None
    assert [head.get_text() for head in page.select("h3.tformer-cards-part")] == [
        "First & last",
        "Also & besides",
    ]
    *links, other = page.select("ol.tformer-cards > li > a.tformer-card")
    assert other["href"] == "book/later/chapter.html"
    assert other.select_one('[aria-hidden="true"] > svg.tformer-drawing') is not None
    assert [part.get_text() for part in other.select("span:not([aria-hidden])")] == [
        "Title of later",
        "To <play>.",
    ]
    assert [link["href"] for link in links] == [f"book/{name}/chapter.html" for name in chapters]
    for link, name, number, minutes in zip(links, chapters, "01", (3, 4), strict=True):
        drawing = link.select_one('[aria-hidden="true"]').extract()
        assert drawing.select_one("svg.tformer-drawing") is not None
        assert " ".join(link.get_text().split()) == f"{number} Title of {name} About <it> {minutes} min"
