"""Claims on the site: folded where they are made, and all together on a page of their own."""

import json
import re
from functools import cache

import lxml.html
import pytest
from notebook_claims import (
    TITLE,
    band_text,
    claims_in,
    number_text,
    only_claims,
    rounded_text,
    titled,
)
from notebook_records import from_record

from tests.site.pages import OPEN_ALL, ROOT, eventually, notebook_pages

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


def rounded(path, claim):
    text = rounded_text(claim["value"], claim["unit"], claim["low"], claim["high"])
    words, _, band = expected(path, claim)
    return [words, " ".join(text.split()), band]


def claim_rows(page):
    return page.xpath(f"//*[{of_class('tformer-results')}]//tr[td]")


def test_the_page_of_all_claims_has_each_with_its_address(site):
    page = parsed(site, ALL)
    claims = [(path, claim) for path in CLAIMING for claim in made(path)]
    rows = claim_rows(page)
    assert len(claims) > 300
    assert [texts(row) for row in rows] == [rounded(*each) for each in claims]
    pages = {path: set(parsed(site, path).xpath("//@id")) for path in CLAIMING}
    for row, (path, claim) in zip(rows, claims, strict=True):
        address, _, anchor = next(row.iter("a")).get("href").partition("#")
        assert address == path.removeprefix("book/")
        assert anchor == row.get("id") == f"claim-{claim['name']}"
        assert anchor in pages[path]


def test_a_chapter_is_one_closed_fold_that_says_how_many_it_holds(site):
    page = parsed(site, ALL)
    folds = page.xpath(f"//details[{of_class('tformer-found')}]")
    claiming = {path.split("/")[1]: None for path in CLAIMING}
    assert [fold.get("id") for fold in folds] == [f"found-{name}" for name in claiming]
    for fold, name in zip(folds, claiming, strict=True):
        assert "open" not in fold.attrib
        assert fold.find("noscript") is not None  # what is closed is not in the document
        those = [(path, claim) for path in CLAIMING if path.split("/")[1] == name for claim in made(path)]
        old = sum(claim["name"] in recorded(path) for path, claim in those)
        counted = f"{len(those)} claims" if len(those) > 1 else "1 claim"
        told = fold.find("summary").find("span").text_content()
        assert told == f"{counted}, {old} from the record" if old else told == counted
        groups = fold.xpath(f".//*[{of_class('tformer-group')}]")
        assert len(groups) == len({path for path, _ in those})
        assert groups[0].text_content() == "The chapter"


@pytest.mark.parametrize(("width", "screens"), [(1440, 2), (360, 3)])
def test_closed_it_is_a_few_screens(visit, width, screens):
    page = visit(ALL, width=width).page
    assert page.evaluate("document.querySelector('article').offsetHeight") <= screens * 900
    assert page.locator(".tformer-results").count() == 0


def test_an_address_opens_the_chapter_and_marks_the_row(visit):
    path = CLAIMING[-1]
    name = made(path)[-1]["name"]
    page = visit(f"{ALL}#claim-{name}").page
    row = page.locator(f"[id='claim-{name}']")
    there = """row => row.matches(':target') && row.closest('details').open
        && 0 < row.getBoundingClientRect().top && row.getBoundingClientRect().top < 900"""
    eventually(page, lambda: row.count() and row.evaluate(there))
    assert page.locator("details.tformer-found[open]").count() == 1


def shown(page):
    return page.locator(".tformer-results tr:has(td):visible").count()


def test_the_filter_narrows_as_one_types(visit):
    page = visit(ALL).page
    total = sum(len(made(path)) for path in CLAIMING)
    count, words = page.locator(".tformer-filter output"), page.locator(".tformer-filter input")
    assert count.text_content() == f"{total:,} claims"
    words.press_sequentially("BLEU")
    some = shown(page)
    assert 0 < some < 100  # few: their folds are open
    assert count.text_content() == f"{some} of {total:,} claims"
    words.press_sequentially(" beam")  # every word counts
    assert 0 < shown(page) < some
    words.fill("no such words")
    assert shown(page) == 0
    assert page.locator("details.tformer-found:visible").count() == 0
    words.fill("recorded")  # many: their folds stay closed
    assert shown(page) == 0
    assert page.locator("details.tformer-found:visible").count() > 5
    words.fill("")
    assert page.locator("details.tformer-found[open]").count() == 0
    assert count.text_content() == f"{total:,} claims"


def test_what_was_opened_by_hand_stays_open(visit):
    page = visit(ALL).page
    fold = page.locator("#found-translation")
    fold.locator("summary").click()
    those = sum(len(made(path)) for path in CLAIMING if path.startswith("book/translation/"))
    assert shown(page) == those
    words = page.locator(".tformer-filter input")
    words.fill("BLEU")
    assert 0 < shown(page) < those
    words.fill("")
    assert fold.evaluate("fold => fold.open")
    assert shown(page) == those


def test_without_javascript_the_folds_open(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + ALL)
    assert not page.locator(".tformer-filter").is_visible()
    page.locator("#found-attention > summary").click()
    those = [path for path in CLAIMING if path.startswith("book/attention/")]
    assert shown(page) == sum(len(made(path)) for path in those)
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(visit, scheme):
    page = visit(ALL, scheme=scheme, width=360).page
    page.evaluate(OPEN_ALL)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 360
    cut = page.evaluate(
        """() => [...document.querySelectorAll('.tformer-results td')].filter(
             cell => cell.getBoundingClientRect().right > 360 || cell.scrollWidth > cell.clientWidth + 1
           ).length"""
    )
    assert cut == 0
