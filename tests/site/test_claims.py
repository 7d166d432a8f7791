"""Claims on the site: folded where they are made, and all together on a page of their own."""

import json
import re
from functools import cache

import lxml.html
import pytest
from notebook_claims import TITLE, band_text, claims_in, number_text, only_claims, titled
from notebook_records import from_record

from tests.site.pages import ROOT, eventually, notebook_pages

ALL = "book/claims.html"


@cache
def cells(path):
    return json.loads((ROOT / path).with_suffix(".ipynb").read_text("utf8"))["cells"]


@cache
def recorded(path):
    return from_record(cells(path))


def made(path):
    return list(claims_in(cells(path)))


CLAIMING = [path for path in notebook_pages() if made(path)]


def parsed(site, path):
    return lxml.html.parse(site / path).getroot()


def of_class(name):
    """The condition of an XPath that an element is of a class."""
    return f"contains(concat(' ', normalize-space(@class), ' '), ' {name} ')"


FOLD = f"details[{of_class('tformer-claims')}]"
CODE = f"*[{of_class('cell_input')}]//pre"


def texts(row):
    return [" ".join(cell.text_content().split()) for cell in row.iter("td")]


def expected(path, claim):
    words = claim["text"].split() + ["from the record"] * (claim["name"] in recorded(path))
    number = " ".join(number_text(claim["value"], claim["unit"]).split())
    return [" ".join(words), number, band_text(claim["low"], claim["high"])]


@pytest.mark.parametrize("path", CLAIMING)
def test_every_claim_is_a_row_of_a_closed_fold(site, path):
    page = parsed(site, path)
    rows = page.xpath(f"//{FOLD}[not(@open)]//tbody/tr")
    claims = made(path)
    assert [row.get("id") for row in rows] == [f"claim-{claim['name']}" for claim in claims]
    assert [texts(row) for row in rows] == [expected(path, claim) for claim in claims]
    assert page.xpath(f"//*[{of_class('tformer-claim')}]") == []  # the lines that Jupyter shows


@pytest.mark.parametrize("path", CLAIMING)
def test_claims_that_stand_together_share_a_fold_with_their_code(site, path):
    page = parsed(site, path)
    for details in page.xpath(f"//{FOLD}"):
        assert details.xpath(f"following-sibling::*[1][{of_class('tformer-claims')}]") == []
        rows = details.xpath(".//tbody/tr")
        words = details.find("summary").text_content().removesuffix(", and the code")
        old = sum(row.get("id").removeprefix("claim-") in recorded(path) for row in rows)
        which = ", from the record" if old else ""
        if not rows:
            assert words == "What is checked here"
        elif len(rows) > 1:
            which = f", {old} of them from the record" if 0 < old < len(rows) else which
            assert words == f"The {len(rows)} numbers behind this{which}"
        else:
            assert words == f"The number behind this{which}: {texts(rows[0])[1]}"
    folded = [pre.text_content().strip() for pre in page.xpath(f"//{FOLD}//{CODE}")]
    sources = ["".join(cell["source"]) for cell in cells(path) if only_claims(cell) or titled(cell)]
    sources = [source.removeprefix(f"{TITLE}\n").strip() for source in sources]
    closed = {
        re.sub(r"\A# @title .*\n", "", "".join(cell["source"])).strip()
        for cell in cells(path)
        if "hide-input" in cell["metadata"].get("tags", ())
    }
    assert [code for code in folded if code in sources or code not in closed] == sources
    assert page.xpath(f"//{FOLD}//*[{of_class('cell_output')} or self::details]") == []


@pytest.mark.parametrize("path", notebook_pages())
def test_no_title_of_colab_s_and_no_cell_that_only_checks_is_in_view(site, path):
    """Titles are for notebooks; what is titled as a check is folded, and opens with its code."""
    page = parsed(site, path)
    assert "# @title" not in page.text_content()
    folded = {pre for fold in page.xpath(f"//{FOLD}") for pre in fold.iter("pre")}
    shown = [pre.text_content().strip() for pre in page.xpath(f"//{CODE}") if pre not in folded]
    checks = [
        "".join(cell["source"]).removeprefix(f"{TITLE}\n").strip() for cell in cells(path) if titled(cell)
    ]
    assert not set(checks) & set(shown)


def test_a_cell_that_shows_more_keeps_its_place(site):
    """Its code and what else it shows stay outside; only its claims go into the fold that follows."""
    mixed = [
        (path, cell)
        for path in CLAIMING
        for cell in cells(path)
        if any(claims_in([cell])) and not only_claims(cell)
    ]
    assert mixed
    for path, cell in mixed:
        name = next(claims_in([cell]))["name"]
        (fold,) = parsed(site, path).xpath(f"//*[@id='claim-{name}']/ancestor::details[1]")
        source = re.sub(r"\A# @title .*\n", "", "".join(cell["source"])).strip()
        if "hide-input" in cell["metadata"].get("tags", ()):  # what it shows stays
            code = fold.xpath(f".//{CODE}")
            assert fold.xpath(f"preceding-sibling::*[1][.//*[{of_class('cell_output')}]]")
        else:
            code = fold.xpath(f"preceding-sibling::*[1]//{CODE}")[:1]
        assert source in [pre.text_content().strip() for pre in code]


@pytest.mark.parametrize("path", CLAIMING[:1])
def test_an_address_opens_the_fold_and_marks_the_row(visit, path):
    first, *_, last = made(path)  # the last is in a solution, which is folded too
    page = visit(f"{path}#claim-{first['name']}").page
    for name in (first["name"], last["name"]):
        page.evaluate("name => { location.hash = `claim-${name}` }", name)
        row = page.locator(f"[id='claim-{name}']")
        row.wait_for(state="visible", timeout=5000)
        there = """row => row.matches(':target') && row.closest('details').open
            && 0 < row.getBoundingClientRect().top && row.getBoundingClientRect().top < 900"""
        eventually(page, lambda row=row, there=there: row.evaluate(there))
    assert page.locator("details.tformer-claims[open]").count() == 2


def test_the_page_of_all_claims_has_each_with_its_address(site):
    page = parsed(site, ALL)
    claims = [(path, claim) for path in CLAIMING for claim in made(path)]
    results = f"//*[{of_class('tformer-results')}]//tbody/tr"
    rows = page.xpath(f"{results}[not({of_class('tformer-group')})]")
    assert len(claims) > 300
    assert [texts(row) for row in rows] == [expected(*each) for each in claims]
    pages = {path: set(parsed(site, path).xpath("//@id")) for path in CLAIMING}
    for row, (path, claim) in zip(rows, claims, strict=True):
        address, _, anchor = next(row.iter("a")).get("href").partition("#")
        assert address == path.removeprefix("book/")
        assert anchor == f"claim-{claim['name']}"
        assert anchor in pages[path]
    groups = [row.text_content() for row in page.xpath(f"//*[{of_class('tformer-group')}]")]
    assert len(groups) == len(CLAIMING)
    assert groups[0].startswith("Chapter 1. ")


def shown(page):
    return page.locator(".tformer-results tbody > tr:not(.tformer-group):visible").count()


def test_the_filter_narrows_as_one_types(visit):
    page = visit(ALL).page
    total = shown(page)
    count, words = page.locator(".tformer-filter output"), page.locator(".tformer-filter input")
    assert count.text_content() == f"{total} claims"
    words.press_sequentially("BLEU")
    some = shown(page)
    assert 0 < some < total
    assert count.text_content() == f"{some} of {total} claims"
    words.press_sequentially(" beam")  # every word counts
    assert 0 < shown(page) < some
    words.fill("no such words")
    assert shown(page) == 0
    assert page.locator(".tformer-group:visible").count() == 0
    words.fill("")
    assert shown(page) == total


def test_a_chapter_may_be_chosen(visit):
    page = visit(ALL).page
    page.get_by_label("Chapter").select_option("9")
    of_it = [path for path in notebook_pages() if path.startswith("book/modern_decoder/")]
    assert len(of_it) == 3
    assert shown(page) == sum(len(made(path)) for path in of_it)
    assert page.locator(".tformer-group:visible").count() == sum(bool(made(path)) for path in of_it)


def test_without_javascript_it_is_a_plain_table(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + ALL)
    assert shown(page) == sum(len(made(path)) for path in CLAIMING)
    assert not page.locator(".tformer-filter").is_visible()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(visit, scheme):
    page = visit(ALL, scheme=scheme, width=360).page
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 360
    cut = page.evaluate(
        """() => [...document.querySelectorAll('.tformer-results td')].filter(
             cell => cell.getBoundingClientRect().right > 360 || cell.scrollWidth > cell.clientWidth + 1
           ).length"""
    )
    assert cut == 0
