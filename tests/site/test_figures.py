"""Figures on the site: their size, their colours in the dark, how they are enlarged and saved."""

import re
import sys
from xml.etree import ElementTree

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.site.pages import OPEN_ALL, ROOT, eventually

sys.path.insert(0, str(ROOT / "book" / "site" / "extensions"))
import tformer_dark
import tformer_figures

PAGE = "book/positions/chapter.html"
LABORATORY = "book/positions/laboratory.html"  # its first figure waits for no answer
NAME = re.compile(r"fig-05-\d+-[a-z0-9-]+")
SHOWN = "[...document.querySelectorAll('.tformer-figure img')].filter(i => i.offsetParent)"
BLUE = "#0072b2"
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    '<path id="a" d="M 0 0" style="fill: none; stroke: #000000"/><path id="b" d="M 0 0"/>'
    f'<path id="c" style="stroke: {BLUE}"/><image xlink:href="data:image/png;base64,AAfill:#000000"/>'
    '<g id="kept"><path id="d" style="fill: #000000"/></g></svg>'
)


def test_black_becomes_the_text_and_white_the_page():
    assert tformer_dark.on_dark("#000000") == tformer_dark.TEXT
    assert tformer_dark.on_dark("#ffffff") == tformer_dark.BACKGROUND


@pytest.mark.parametrize(
    "colour", [BLUE, "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#767676", "#00224e"]
)
def test_lines_stand_out_in_the_dark_and_keep_their_hue(colour):
    dark = tformer_dark.on_dark(colour)
    assert tformer_dark.contrast(dark) >= 4.5
    before, after = (tformer_dark.colorsys.rgb_to_hls(*tformer_dark.rgb(c))[0] for c in (colour, dark))
    if colour != "#767676":
        assert after == pytest.approx(before, abs=0.02)


@pytest.mark.parametrize("colour", ["#cfe8f5", "#eeeeee", "#fbe3c0", "#dddddd"])
def test_paper_becomes_dark_so_that_what_is_written_on_it_can_be_read(colour):
    dark = tformer_dark.on_dark(colour)
    assert tformer_dark.contrast(tformer_dark.TEXT, dark) >= 7
    assert tformer_dark.contrast(dark) >= 1.05  # and is still to be seen


def test_only_lines_and_type_change():
    root = ElementTree.fromstring(tformer_dark.dark_svg(SVG))
    style = {element.get("id"): element.get("style") for element in root.iter() if element.get("id")}
    assert style["a"] == f"fill: none; stroke: {tformer_dark.TEXT}"
    assert root.get("fill") == tformer_dark.TEXT  # of what names no colour, such as type
    assert BLUE not in style["c"]
    (image,) = root.iter("{http://www.w3.org/2000/svg}image")
    assert image.get("{http://www.w3.org/1999/xlink}href") == "data:image/png;base64,AAfill:#000000"
    assert style["d"] == "fill: #000000"
    assert next(e for e in root.iter() if e.get("id") == "kept").get("fill") == "#000000"


@pytest.mark.parametrize(
    ("docname", "label", "chapter", "name"),
    [
        ("book/attention/chapter", "fig-attention-kernel-fits", "ch-attention", "fig-02-3-kernel-fits"),
        ("book/modern_decoder/chapter", "fig-modern-race", "ch-modern-decoder", "fig-09-3-race"),
        ("book/image_gpt/sound", "fig-sound-mel", "ch-image-gpt", "fig-13-3-sound-mel"),
        ("book/bert/chapter", "fig-bert", "ch-bert", "fig-07-3-bert"),
    ],
)
def test_a_file_is_named_by_chapter_number_and_label(docname, label, chapter, name):
    assert tformer_figures.file_name(docname, 3, label, chapter) == name


def test_each_figure_has_its_three_files_and_its_type_one_size(site):
    pictures = sorted((site / "_images").glob("fig-*[!k].svg"))
    assert len(pictures) > 10
    for path in pictures:
        svg = path.read_text("utf8")
        assert path.with_suffix(".png").exists()
        dark = path.with_name(f"{path.stem}-dark.svg").read_text("utf8")
        assert tformer_dark.TEXT in dark
        width = ElementTree.fromstring(svg).get("width")
        assert width == "324pt", path
        sizes = set(re.findall(r"\bscale\(([\d.]+) -", svg))
        assert sizes - {"1"} <= {"0.13"}, path  # 13 pt, where there is type; 1 is of images
        assert not re.search(r'id="patch_1"', svg), path  # no sheet of paper


@pytest.mark.parametrize(("width", "low", "high"), [(1440, 14, 18), (360, 11.5, 18)])
def test_type_in_figures_is_as_large_as_the_page_s(visit, width, low, high):
    page = visit(PAGE, width=width).page
    shares = page.evaluate(f"{SHOWN}.map(i => i.getBoundingClientRect().width / i.getAttribute('width'))")
    assert shares
    assert all(low <= 16 * share <= high for share in shares)
    assert max(shares) <= 1.001  # never larger than it was drawn


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_theme_shows_and_loads_its_own_picture_when_it_comes_into_view(visit, scheme):
    page = visit(PAGE, scheme=scheme, alone=True).page  # no picture is at hand
    page.evaluate(OPEN_ALL)
    loaded = "performance.getEntriesByType('resource').map(e => e.name).filter(n => /fig-.*svg/.test(n))"
    shown = page.evaluate(f"{SHOWN}.map(i => i.src)")
    assert shown
    assert len(page.evaluate(loaded)) < len(shown)  # lazily
    for image in page.locator(f".tformer-figure .only-{scheme}").all():
        image.scroll_into_view_if_needed()
        image.evaluate("i => i.decode()")
    after = page.evaluate(loaded)
    assert sorted(set(after)) == sorted(set(shown))
    assert all(name.endswith("-dark.svg") == (scheme == "dark") for name in after)
    style = page.evaluate(f"(s => [s.filter, s.backgroundColor])(getComputedStyle({SHOWN}[0]))")
    assert style == ["none", "rgba(0, 0, 0, 0)"]  # neither dimmed nor on a sheet


def test_on_paper_a_figure_is_light_also_from_a_dark_page(visit):
    page = visit(PAGE, scheme="dark").page
    page.emulate_media(media="print")
    assert page.evaluate(f"{SHOWN}.every(i => i.className === 'only-light')")
    assert not page.locator(".tformer-files").first.is_visible()


@pytest.mark.parametrize("width", [360, 1440])
def test_a_figure_is_enlarged_closed_by_escape_and_gives_the_focus_back(visit, width):
    opened = visit(LABORATORY, width=width)
    page = opened.page
    figure = page.locator("figure:has(img):has(.tformer-files)").first
    button = figure.get_by_role("button", name="Enlarge")
    for how in ("click", "Enter", "Space"):
        page.evaluate("() => document.activeElement.blur()")
        if how == "click":
            figure.locator(".tformer-figure img:visible").click()
        else:
            button.focus()
            page.keyboard.press(how)
        dialog = page.get_by_role("dialog")
        image = dialog.locator("img:visible")
        shown, before = image.bounding_box(), figure.locator("img:visible").bounding_box()
        assert max(shown["width"], shown["height"]) > 1.2 * before["width"]  # on a phone it is turned
        assert shown["x"] >= 0  # and whole
        assert shown["y"] >= 0
        assert shown["x"] + shown["width"] <= width
        assert shown["y"] + shown["height"] <= 900
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert "Figure 5." in dialog.inner_text()
        assert opened.problems == []
        if how == "click":  # it is the same dialog however it was opened
            found = Axe().run(page, ".tformer-enlarged", {"preload": False})  # preload asks for files
            assert found.response["violations"] == [], found.generate_report()
        page.keyboard.press("Escape")
        page.locator(".tformer-enlarged").wait_for(state="detached")
        assert button.evaluate("b => b === document.activeElement")


@pytest.mark.parametrize("kind", ["SVG", "PNG"])
def test_a_figure_is_saved_under_a_name(visit, kind):
    page = visit(LABORATORY).page
    with page.expect_download() as download:
        page.locator("figure:has(img) .tformer-files").first.get_by_text(kind, exact=True).click()
    stem, ending = download.value.suggested_filename.rsplit(".", 1)
    assert NAME.fullmatch(stem)
    assert ending == kind.lower()
    start = download.value.path().read_bytes()[:40]
    assert start.startswith(b"\x89PNG" if kind == "PNG" else b"<?xml")


def test_the_code_of_a_figure_opens_below_its_caption(visit):
    opened = visit("book/attention/chapter.html")
    page = opened.page
    caption = page.locator("#fig-attention-memory figcaption")
    button = caption.get_by_role("button", name=re.compile(r"^Code of Figure 2\.\d+$"))
    code = page.locator(f"details#{button.get_attribute('aria-controls')}")
    assert not code.is_visible()
    assert button.get_attribute("aria-expanded") == "false"
    button.focus()
    page.keyboard.press("Enter")
    code.get_by_text("letter_memory").wait_for()
    eventually(page, lambda: button.get_attribute("aria-expanded") == "true")
    assert code.bounding_box()["y"] > caption.bounding_box()["y"]
    code.locator("summary").click()
    code.wait_for(state="hidden")
    eventually(page, lambda: button.get_attribute("aria-expanded") == "false")
    assert opened.problems == []


def test_without_a_script_figures_are_shown_and_no_button_is(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + PAGE)
    assert page.locator(".tformer-figure img:visible").count() > 0
    assert page.locator(".tformer-files button:visible").count() == 0
    page.goto(address + "book/attention/chapter.html")
    assert page.locator("div.cell:has(figure) > details.hide > summary:visible").count() > 0
    context.close()
