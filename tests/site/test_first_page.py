"""The first page: a picture, a way in, cards, findings that say what the chapters hold."""

import json
import re

import pytest
from bs4 import BeautifulSoup
from notebook_claims import claims_in

from tests.site.pages import ROOT, notebook_pages


@pytest.fixture(scope="module")
def page(site):
    return BeautifulSoup((site / "book/index.html").read_text("utf8"), "lxml").select_one("article")


def claims() -> dict[str, tuple[str, float]]:
    found = {}
    for path in notebook_pages():
        cells = json.loads((ROOT / path).with_suffix(".ipynb").read_text("utf8"))["cells"]
        found |= {claim["name"]: (path, claim["value"]) for claim in claims_in(cells)}
    return found


def test_four_findings_link_to_the_claims_that_hold_them(page):
    held = claims()
    items = page.find("ol", class_="simple").find_all("li")
    assert len(items) == 4
    for item in items:
        links = item.find_all("a")
        assert links, item.get_text()
        for link in links:
            path, _, name = link["href"].partition("#claim-")
            where, value = held[name]
            assert where.endswith(path)
            shown = float(re.sub(r"[%+]", "", link.get_text())) / (100 if "%" in link.get_text() else 1)
            assert shown == pytest.approx(value, rel=0.05, abs=0.5 if abs(value) > 5 else 0.051)


def test_findings_are_cells_two_by_two_on_a_wide_screen_and_one_below_another_on_a_narrow_one(visit):
    for width, columns in ((1440, 2), (360, 1)):
        page = visit("book/index.html", width=width).page
        cells = page.locator("ol.simple > li").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect()).map(box => [box.left, box.top])"
        )
        assert [len({*side}) for side in zip(*cells, strict=True)] == [columns, 4 // columns]


def test_a_way_in_stands_before_the_cards(page):
    order = [a["href"] for a in page.find_all("a", href=True)]
    start = next(i for i, href in enumerate(order) if "sequences/" in href)
    assert start < next(i for i, href in enumerate(order) if "long_sequences/" in href)
    assert page.find("svg") is not None


def test_what_one_plays_with_stands_among_the_parts_as_pictures(page):
    heads = [head.get_text() for head in page.select(".tformer-cards-part")]
    assert heads[-1] == "Play with it"
    cards = page.select("ol.tformer-cards")[-1].select("li > a.tformer-card")
    links = [card["href"] for card in cards]
    assert links == ["play.html", "live_model.html", "speedrun/chapter.html"]
    drawings = [str(card.select_one(".tformer-card-drawing > svg.tformer-drawing")) for card in cards]
    assert len({*drawings, *map(str, page.select("ol.tformer-cards svg"))}) == len(
        page.select("ol.tformer-cards svg")
    )  # each has one of its own
    assert all(card.select_one(".tformer-card-title").get_text().strip() for card in cards)


@pytest.mark.parametrize("width", [320, 360])
def test_cards_fit_a_phone(visit, width):
    page = visit("book/index.html", width=width).page
    cut = page.locator(".tformer-card").evaluate_all(
        """all => all.filter(card => card.getBoundingClientRect().right > innerWidth - 8
          || [...card.children].some(part => part.clientWidth && part.scrollWidth > part.clientWidth + 1)
        ).length"""
    )
    assert cut == 0
    assert page.locator(".tformer-card").count() > 15


def test_first_page_takes_at_most_three_screens(visit):
    page = visit("book/index.html", width=1440).page
    height = page.evaluate("document.querySelector('article').getBoundingClientRect().height")
    assert height <= 3 * 900


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (768, 1024), (360, 640)])
def test_the_chapters_are_at_hand_without_scrolling(visit, width, height):
    seen = visit("book/index.html", width=width, height=height, alone=True)
    page = seen.page
    button = page.get_by_role("button", name="Chapters")
    assert button.inner_text().strip() == "Chapters"
    box = button.bounding_box()
    assert box["y"] + box["height"] < 60
    assert box["height"] >= 36
    assert not page.locator(".bd-sidebar-primary:visible").count()
    button.click()
    links = page.locator("dialog[open] a.reference:visible")
    assert links.count() > 15
    page.keyboard.press("Escape")
    assert not links.count()
    button.click()
    links.filter(has_text="2. Attention").click()
    page.wait_for_url("**/attention/chapter.html")
    assert not seen.problems


def test_what_the_tab_key_shows_moves_nothing(visit):
    page = visit("book/index.html", width=1440).page
    page.locator(".first-figure .tl-panel input").first.wait_for(state="attached")
    height = "document.documentElement.scrollHeight"
    before = page.evaluate(height)
    page.locator(".first-figure .tl-panel input").first.focus()
    panel = page.locator(".first-figure .tl-panel").bounding_box()
    figure = page.locator(".first-figure svg").first.bounding_box()
    assert panel["height"] > 20
    assert panel["y"] >= figure["y"] + figure["height"]  # the figure is seen
    assert page.evaluate(height) == before


def test_play_lists_its_figures_first(site):
    page = BeautifulSoup((site / "book/play.html").read_text("utf8"), "lxml").select_one("article")
    listed = [link["href"] for link in page.select(".play-index a")]
    assert listed == [f"#{section['id']}" for section in page.select("section > section[id]")]
