"""Each page as a reader's browser has it: loads, maths, accessibility, small screens, search."""

import base64
import contextlib
import gzip
import io
import re
from pathlib import Path
from statistics import median

import axe_playwright_python
import playwright.sync_api
import pytest
from fontTools.ttLib import TTFont
from PIL import Image

from tests.site.pages import OPEN_ALL, chapter_pages, notebook_pages, toc_pages

AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
PAGES = [*toc_pages(), "search.html", "genindex.html", "_modules/tformer_lib/core/attention.html"]

WIDTHS = {"light": 1280, "tablet": 1100, "phone": 360}

FACTS = """() => {
  const main = document.querySelector('main');
  const prose = main.cloneNode(true);
  for (const code of prose.querySelectorAll('pre, code, script, mjx-container')) code.remove();
  const scrolls = e => /auto|scroll/.test(getComputedStyle(e).overflowX)
      && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0;
  const brief = elements => elements.slice(0, 8).map(e => e.outerHTML.slice(0, 140));
  return {
    titles: document.querySelectorAll('main h1').length,
    formulas: document.querySelectorAll('.math').length,
    typeset: document.querySelectorAll('mjx-container').length,
    bad_formulas: brief([...document.querySelectorAll('mjx-merror')]),
    prose: prose.textContent,
    width: document.scrollingElement.scrollWidth,
    wide: brief([...main.querySelectorAll('*')].filter(
      e => e.getBoundingClientRect().right > innerWidth + 1)),
    unreachable: brief([...document.querySelectorAll('article *')].filter(
      e => scrolls(e) && e.tabIndex < 0 && !e.querySelector('a, button, [tabindex="0"]'))),
    code: [...document.querySelectorAll('.cell_input div.highlight pre')].filter(
      pre => pre.clientWidth
    ).map(pre => ({
      size: parseFloat(getComputedStyle(pre).fontSize),
      columns: Math.max(...pre.textContent.split('\\n').map(line => line.length)),
      scrolls: pre.scrollWidth > pre.clientWidth + 1,
      code: pre.textContent.slice(0, 60),
    })),
  };
}"""
LOOK = "resultTypes: ['violations'], preload: false"  # preload asks for files
RUN_AXE = {  # in the dark only colours are other than in the light
    "light": f"() => axe.run({{{LOOK}}})",
    "without colours": f"() => axe.run({{{LOOK}, rules: {{"
    "'color-contrast': {enabled: false}, 'link-in-text-block': {enabled: false}}})",
    "dark": f"() => axe.run({{{LOOK}, runOnly: ['color-contrast', 'link-in-text-block']}})",
}
# Of a chapter's elements three in four are glyphs of formulas, which have no text of their own, parts of
# drawings, which test_drawings.py looks at, and words of code, whose colours are one style sheet's: one page
# shows all of these.
CODE_SHOWN = "book/attention/chapter.html"
# The pages of the library's names are made alike, and long: one of them has its colours looked at.
API, COLOURS_SHOWN = "book/api/", "book/api/core.html"
FEWER = """([code, colours]) => {
  for (const glyphs of document.querySelectorAll('mjx-container > mjx-math')) glyphs.replaceChildren();
  const formulas = [...document.querySelectorAll('mjx-container math')];
  for (const math of formulas.slice(20)) math.textContent = math.textContent; // heard, and never seen
  const parts = 'svg.tformer-drawing > :not(title, desc)';
  for (const part of document.querySelectorAll(parts)) part.remove();
  for (const pre of code ? [] : document.querySelectorAll('div.highlight pre')) {
    const plain = pre.textContent;
    pre.textContent = plain;
  }
  if (!colours) { // a span that has a class and nothing else is there for its looks
    const bare = e => e.attributes.length === (e.hasAttribute('class') ? 1 : 0);
    for (const e of document.querySelectorAll('dt.sig span')) if (bare(e)) e.replaceWith(...e.childNodes);
    document.body.normalize();
  }
}"""
# Whether text can be read depends on its colour, size and weight, on the backgrounds of what it is in, and on
# what lies over it: one text of each kind is asked for its contrast. To ask a chapter's thousands takes
# three times as long as all else that axe looks for. Words of code that are not asked become plain text.
ONE_OF_A_KIND = """() => {
  const behind = new Map([[null, '']]), kinds = new Map(), over = [];
  const box = (e, {left, top, right, bottom} = e.getBoundingClientRect()) => ({e, left, top, right, bottom});
  const visible = [...document.body.querySelectorAll('*')].filter(e => e.checkVisibility());
  for (const e of [document.documentElement, document.body, ...visible]) {
    const {backgroundColor, backgroundImage, opacity, filter, mixBlendMode, position, transform}
      = getComputedStyle(e);
    const own = `${backgroundColor}, ${backgroundImage}, ${opacity}, ${filter}, ${mixBlendMode}`;
    const plain = own === 'rgba(0, 0, 0, 0), none, 1, none, normal';
    behind.set(e, behind.get(e.parentElement) + (plain ? '' : `/${own}`));
    const moved = (position !== 'static' || transform !== 'none') && !e.closest('mjx-container, svg');
    if (moved) over.push(box(e));
  }
  const meets = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  for (const e of visible) {
    const says = [...e.childNodes].some(n => n.nodeType === Node.TEXT_NODE && n.nodeValue.trim());
    if (!says && !e.matches('input, select, textarea, button')) continue;
    const {color, fontSize, fontWeight, textShadow} = getComputedStyle(e), own = box(e);
    const above = over.filter(o => meets(o, own) && !o.e.contains(e) && !e.contains(o.e));
    const alone = says ? '' : kinds.size;
    const kind = [behind.get(e), color, fontSize, fontWeight, textShadow,
      above.map(o => behind.get(o.e) + o.e.className), alone].join('|');
    if (!kinds.has(kind)) kinds.set(kind, e);
  }
  for (const e of kinds.values()) e.dataset.asked = '';
  for (const word of document.querySelectorAll('div.highlight pre span:not([data-asked], [id])'))
    if (!word.querySelector('[data-asked], [id]')) word.replaceWith(word.textContent);
  axe.configure({rules: [{id: 'color-contrast', selector: '[data-asked]'}]});
  return kinds.size;
}"""
# What depends on the kind of a page only, colours in the dark for instance, is asked of one of each kind.
KINDS = [
    path
    for path in PAGES
    if re.search(r"\b(index|attention/chapter|vit/chapter|glossary|claims|core|search)\.html", path)
]
UNFOLD = """() => {
  for (const fold of document.querySelectorAll('details[data-try]')) {
    fold.open = false; // so that it opens, and starts, wherever it stands
    fold.open = true;
  }
}"""
STARTED = """() => [...document.querySelectorAll('tformer-live')].every(
  figure => figure.querySelector('.tl-said')?.textContent)"""
# Nothing moves, no font is on its way, and what scrolls can be reached: scripts look for it a little later.
SETTLED = """() => document.fonts.status === 'loaded'
  && document.getAnimations().every(one => one.playState !== 'running'
    || one.effect.getComputedTiming().endTime === Infinity)
  && [...document.querySelectorAll('article *')].every(one => one.tabIndex >= 0
    || one.scrollWidth <= one.clientWidth || !one.clientWidth
    || !/auto|scroll/.test(getComputedStyle(one).overflowX)
    || one.querySelector('a, button, [tabindex="0"]'))
  && [...document.querySelectorAll('[data-scrolls]')].every(one => one.scrollWidth > one.clientWidth)"""


def settle(page) -> None:
    """Waits until a page is at rest; one that never is goes on to the test that says what is wrong."""
    with contextlib.suppress(playwright.sync_api.TimeoutError):
        page.wait_for_function(SETTLED, timeout=20_000)


def violations(page, scheme: str, *, code: bool = True) -> list[str]:
    """What axe finds on a page that is open, and that is not looked at any more: its formulas are gone."""
    page.evaluate(AXE.read_text("utf8"))
    colours = scheme != "without colours"
    page.evaluate(FEWER, [code, colours])
    if colours:
        page.evaluate(ONE_OF_A_KIND)
    report = page.evaluate(RUN_AXE[scheme])
    return [
        f"{rule['id']}: {node['html'][:160]} ({node.get('failureSummary', '')})"
        for rule in report["violations"]
        for node in rule["nodes"]
    ]


def unfold(page) -> None:
    """Opens every fold, and waits for the figures to touch that start with it."""
    page.evaluate(OPEN_ALL)
    page.evaluate(UNFOLD)
    page.wait_for_function(STARTED)


@pytest.fixture
def facts(visit):
    """What a browser says of a page with every fold open: loaded once, looked at in each width."""

    def ask(path: str) -> dict:
        if path not in _FACTS:
            seen = visit(path, width=WIDTHS["light"])
            page, found = seen.page, {}
            for name in sorted(WIDTHS, key=WIDTHS.get):  # the last is the one that axe sees
                page.set_viewport_size({"width": WIDTHS[name], "height": 900})
                if not found:
                    unfold(page)
                settle(page)
                found[name] = page.evaluate(FACTS)
            plain = path.startswith(API) and path != COLOURS_SHOWN
            scheme = "without colours" if plain else "light"
            found["violations"] = violations(page, scheme, code=path == CODE_SHOWN)
            _FACTS[path] = found | {"problems": seen.problems, "outside": seen.outside}
        return _FACTS[path]

    return ask


_FACTS: dict[str, dict] = {}


@pytest.mark.parametrize("path", PAGES)
def test_page_loads_without_errors_or_other_hosts(facts, path):
    seen = facts(path)
    assert seen["outside"] == []
    assert seen["problems"] == []
    assert seen["light"]["titles"] >= 1


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1280), ("light", 360)])
@pytest.mark.parametrize("path", KINDS)
def test_page_loads_in_the_dark_and_on_a_phone(visit, path, scheme, width):
    seen = visit(path, scheme=scheme, width=width)
    unfold(seen.page)
    settle(seen.page)
    assert seen.outside == []
    assert seen.problems == []
    if scheme == "dark":
        assert violations(seen.page, scheme, code=path == CODE_SHOWN) == []


PALE = '<p style="color: #999">pale</p>'
FAULTS = {
    "pale": PALE,
    "a background of its own": '<p>all</p><p style="background: #767676">dark on dark</p>',
    "a background of the box": '<p>all</p><div style="background: #333"><p>dark on dark</p></div>',
    "a translucent box": '<p>all</p><div style="opacity: 0.4"><p>all</p></div>',
    "small where large may be paler": '<h1 style="color: #888">one</h1><p style="color: #888">two</p>',
    "below what lies over it": "<p>all</p><p>some</p><p>some</p>"
    '<div style="position: relative"><p>dark</p><i style="position: absolute; inset: 0; background: #333; '
    'z-index: -1"></i></div>',
    "a word of code": '<div class="highlight"><pre><span class="k">def</span> <span class="k">if</span> '
    '<span class="x" style="color: #999">pale</span></pre></div>',
    "a button": '<button style="color: #999">press</button>',
}


@pytest.mark.parametrize("name", FAULTS)
def test_text_that_cannot_be_read_is_found_among_its_like(browser, name):
    """Of texts of one kind one is asked: what differs in colour, size or background is of another kind."""
    like = "<p>all <b>the</b> <a href='#x'>same</a></p>" * 50
    page = browser.new_page()
    page.set_content(
        "<!doctype html><html lang=en><title>t</title><style>body { color: #222; background: #fff }</style>"
        f"<main><h1>One</h1>{like}<div id=x>{FAULTS[name]}</div>{like}</main></html>"
    )
    assert [found.split(":")[0] for found in violations(page, "dark")] == ["color-contrast"]
    page.close()


@pytest.mark.parametrize("path", toc_pages())
def test_maths_is_typeset(facts, path):
    seen = facts(path)["light"]
    assert seen["typeset"] >= seen["formulas"]
    assert seen["bad_formulas"] == []
    raw = r"\\[\[(][^\n]{0,40}|\$[^$\n]{1,40}\$|\\(?:frac|mathbf|mathrm|sum|top)\b"
    assert re.findall(raw, seen["prose"]) == []


@pytest.mark.parametrize("path", chapter_pages()[1:3])
def test_no_line_begins_with_the_mark_after_a_formula(visit, path):
    """What touches a formula is held to it: no text beside one begins with a mark or ends in a bracket."""
    page = visit(path, width=360).page
    loose = page.evaluate(
        """() => [...document.querySelectorAll('article span.math')].filter(math =>
          /^[.,;:!?)]/.test(math.nextSibling?.nodeValue || '') && !math.closest('.tformer-whole')
          || /[(]$/.test(math.previousSibling?.nodeValue || '') && !math.closest('.tformer-whole')
        ).map(math => math.textContent)"""
    )
    assert loose == []
    assert page.locator(".tformer-whole").count() > 5


@pytest.mark.parametrize("path", PAGES)
def test_no_accessibility_violation(facts, path):
    assert facts(path)["violations"] == []


@pytest.mark.parametrize("setting", WIDTHS)
@pytest.mark.parametrize("path", PAGES)
def test_a_page_never_scrolls_sideways(facts, path, setting):
    seen, width = facts(path)[setting], WIDTHS[setting]
    assert seen["width"] <= width, f"the page is {seen['width']} px wide; candidates: {seen['wide']}"


@pytest.mark.parametrize("path", toc_pages())
def test_what_scrolls_on_a_phone_can_be_reached_by_keyboard(facts, path):
    assert facts(path)["phone"]["unreachable"] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_table_that_goes_on_has_a_shade_at_that_edge(visit, scheme):
    """In the picture: the edge differs from the page where there is more, and is like it at the end."""
    page = visit("book/notation/chapter.html", scheme=scheme, width=360).page
    frames = page.locator(".pst-scrollable-table-container, .tformer-scroll")
    wide = "all => all.findIndex(one => one.scrollWidth > one.clientWidth + 40)"
    where = frames.evaluate_all(wide)
    assert where >= 0  # a page with a table that is wider than a phone
    frame = frames.nth(where)

    def edges():
        picture = Image.open(io.BytesIO(frame.screenshot(animations="disabled"))).convert("L")
        columns = [
            [picture.getpixel((x, y)) for y in range(picture.height)]
            for x in (1, picture.width // 2, picture.width - 2)
        ]
        return list(map(median, columns))  # the paper, whatever is written on it

    def shaded():
        left, middle, right = edges()
        return abs(left - middle) > 8, abs(right - middle) > 8

    assert shaded() == (False, True)
    frame.evaluate("one => { one.scrollLeft = one.scrollWidth }")
    assert shaded() == (True, False)


@pytest.mark.parametrize("path", chapter_pages()[1:])
def test_code_is_readable_on_a_laptop(facts, path):
    """At least 13 pixels, and what has up to 85 columns does not scroll."""
    blocks = facts(path)["light"]["code"]
    assert len(blocks) > 10
    assert min(block["size"] for block in blocks) >= 13
    assert [block["code"] for block in blocks if block["scrolls"] and block["columns"] <= 85] == []


@pytest.mark.parametrize("path", chapter_pages()[-1:])
def test_reader_can_switch_to_dark(visit, path):
    page = visit(path).page
    page.locator(".bd-header .theme-switch-button").click()
    seen = {page.evaluate("document.documentElement.dataset.theme")}
    page.locator(".bd-header .theme-switch-button").click()
    seen.add(page.evaluate("document.documentElement.dataset.theme"))
    assert "dark" in seen


@pytest.mark.parametrize("path", chapter_pages())
def test_a_chapter_is_light(visit, address, path, record_property):
    """What a first visit on a phone loads before it scrolls, as sent compressed."""
    page = visit(path, width=360, height=740, alone=True).page
    urls = page.evaluate("performance.getEntriesByType('resource').map(e => e.name)")
    bodies = {url: page.request.get(url).body() for url in {address + path, *urls}}
    sizes = {url.removeprefix(address): len(gzip.compress(body)) for url, body in bodies.items()}
    record_property("all_bytes", sum(sizes.values()))
    heaviest = sorted(sizes.items(), key=lambda item: -item[1])[:6]
    print(f"{path}: {sum(sizes.values()) / 1000:.0f} kB, {heaviest}")
    assert sum(sizes.values()) <= 500_000, heaviest


# What a page asks of a browser before anything is opened, and of a reader: lines that open something.
SIZE = """() => {
  const apart = '#laboratory, #exercises'; // parts of a chapter that are not its core
  const titles = [...document.querySelectorAll('article summary')].filter(title => title.checkVisibility());
  return {
    nodes: document.querySelectorAll('*').length,
    folds: titles.filter(title => !title.closest(apart)).length,
    all_folds: titles.length,
    held: document.querySelectorAll('noscript.tformer-closed').length,
    screens: document.scrollingElement.scrollHeight / innerHeight,
  };
}"""
MOST_NODES, MOST_FOLDS, MOST_SCREENS = 15_000, 20, 20.0


@pytest.mark.parametrize("path", notebook_pages())
def test_a_page_is_small_until_something_is_opened(visit, path, record_property):
    page = visit(path, width=1440).page
    found = page.evaluate(SIZE)
    print(path, found)
    for name, value in found.items():
        record_property(name, value)
    assert found["nodes"] <= MOST_NODES
    if path in chapter_pages():
        assert found["folds"] <= MOST_FOLDS
        assert found["screens"] <= MOST_SCREENS
    assert found["held"] == 0  # not even as text in the page


@pytest.mark.parametrize("path", [chapter_pages()[2], chapter_pages()[-3]])
def test_formulas_are_readable_without_scripts(visit, path):
    """Each has its glyphs, at their widths and in MathJax's fonts; nothing is left as TeX."""
    seen = visit(path, width=360, scripts=False)
    found = seen.page.evaluate(
        """async () => {
          await document.fonts.ready;
          const formulas = [...document.querySelectorAll('article .math')].filter(e => e.checkVisibility());
          return {
            formulas: formulas.length,
            empty: formulas.filter(e => !e.querySelector('mjx-c')
                || e.querySelector('mjx-math').getBoundingClientRect().width < 4).length,
            glyphs: [...document.querySelectorAll('article mjx-c')]
                .map(e => getComputedStyle(e, '::before').content).filter(text => text !== 'none').length,
            fonts: [...document.fonts].filter(f => f.status === 'loaded').map(f => f.family),
            failed: [...document.fonts].filter(f => f.status === 'error').map(f => f.family),
            prose: document.querySelector('article').innerText,
            theme: document.documentElement.dataset.theme,
          };
        }"""
    )
    assert found["formulas"] > 20
    assert found["empty"] == 0
    assert found["glyphs"] > 100
    assert {"MJXTEX", "MJXTEX-I", "MJXTEX-B"} <= set(found["fonts"])
    assert found["failed"] == []
    assert not re.search(r"\\[\[(]|\\(?:frac|mathbf|sum)\b", found["prose"])
    assert found["theme"] == "light"  # without one the page has no colours
    assert seen.problems == []


@pytest.mark.parametrize("path", chapter_pages()[1:3])
def test_a_formula_is_copied_as_tex(visit, path):
    copied = visit(path).page.evaluate(
        """() => {
          const formula = document.querySelector('article p mjx-container');
          getSelection().selectAllChildren(formula.closest('p'));
          const copy = new ClipboardEvent('copy', {clipboardData: new DataTransfer(), cancelable: true});
          document.dispatchEvent(copy);
          return [formula.dataset.tex, copy.clipboardData.getData('text/plain')];
        }"""
    )
    assert f"${copied[0]}$" in copied[1]


def test_the_first_page_loads_no_maths(visit):
    page = visit(toc_pages()[0]).page
    loaded = page.evaluate("performance.getEntriesByType('resource').map(e => e.name)")
    assert any("site.css" in url for url in loaded)
    assert [url for url in loaded if "mathjax" in url] == []


def test_every_icon_has_its_glyph(site):
    """What a page names by a class of Font Awesome is drawn by the style sheet, from a font within it."""
    sheet = (site / "_static" / "site.css").read_text("utf8")
    fonts = re.findall(r"font/woff2;base64,([^\"]*)", sheet)
    maps = [TTFont(io.BytesIO(base64.b64decode(font))).getBestCmap() for font in fonts]
    held = set().union(*(codes for codes in maps if min(codes) >= 0xE000))  # the others are faces of the text
    sizes = {"fa-lg", "fa-sm", "fa-xs", "fa-xl", "fa-fw", "fa-solid", "fa-brands", "fa-regular"}
    named = {
        icon
        for path in site.rglob("*.html")
        if "_static" not in path.parts
        for classes in re.findall(r'<i\b[^>]*class="([^"]*)"', path.read_text("utf8"))
        for icon in classes.split()
        if icon.startswith("fa-")
    } - sizes
    codes = {icon: re.search(rf"\.{icon}::?before[^{{]*{{content:\"\\([0-9a-f]+)\"", sheet) for icon in named}
    assert len(named) >= 3
    assert [icon for icon, code in codes.items() if not code or int(code[1], 16) not in held] == []
    drawn = {int(code, 16) for code in re.findall(r"\\(f[0-9a-f]{3})\b", sheet)}
    assert drawn <= held
    assert len(held) < 60  # a few, not two thousand


@pytest.mark.parametrize("path", chapter_pages()[:4])
def test_pictures_wait_and_keep_their_places(site, path):
    pictures = re.findall(r"<img\b[^>]*>", (site / path).read_text("utf8"))
    assert [one for one in pictures if 'loading="' not in one] == []
    own = [one for one in pictures if 'src="../../_images' in one]
    assert [one for one in own if not re.search(r"\b(width|height|style)=", one)] == []
