"""What is closed is not in the document: it comes in when it is opened, and is then like all else."""

import re
import sys

import lxml.html
import pytest
from sphinx.errors import ExtensionError

from tests.site.pages import GO_TO_WORDS, ROOT, eventually

CHAPTER = "book/attention/chapter.html"
LABORATORY = "book/attention/laboratory.html"
EXERCISES = "book/attention/exercises.html"
NESTED = "//details[contains(@class, 'solution')]//details[contains(@class, 'tformer-claims')]//tr/@id"


@pytest.fixture(scope="module")
def closed():
    """The function that closes a page."""
    sys.path.insert(0, str(ROOT / "book" / "site" / "extensions"))
    import tformer_closed

    yield tformer_closed.closed
    sys.path.remove(str(ROOT / "book" / "site" / "extensions"))


def test_the_outermost_closed_folds_are_taken(closed):
    inner = "<details><summary>in</summary>b</details>"
    page = f"a<details class='open'><summary>out</summary>{inner}</details>c{inner}"
    held = '<noscript class="tformer-closed">{}</noscript>'
    assert closed(page.replace("'", '"')) == (
        f'a<details class="open"><summary>out</summary>{held.format(inner)}</details>'
        f"c<details><summary>in</summary>{held.format('b')}</details>"
    )


def test_what_is_open_and_figures_to_touch_stay(closed):
    for attribute in ("open", 'class="a" open', 'data-try="a" hidden'):
        page = f"<details {attribute}><summary>s</summary>a</details>"
        assert closed(page) == page
        assert closed(page.replace("a</details>", f"{page}</details>")).count("<noscript") == 0
    inside = "<details open><summary>s</summary><details><summary>t</summary>a</details></details>"
    assert '<summary>t</summary><noscript class="tformer-closed">a</noscript>' in closed(inside)


@pytest.mark.parametrize(
    "page",
    [
        "<details><summary>s</summary>a",
        "a</details>",
        "<details>a</details>",
        "<details><summary>s</summary><noscript>a</noscript></details>",
    ],
)
def test_what_would_not_end_where_it_should_fails_the_build(closed, page):
    with pytest.raises(ExtensionError):
        closed(page)


def nested(site):
    """The row of a claim in a solution: three folds deep."""
    return lxml.html.parse(site / EXERCISES).xpath(NESTED)[-1]


OPEN_AROUND = """row => {
  const folds = [], {top, bottom} = row.getBoundingClientRect();
  for (let one = row; one; one = one.parentElement) if (one.matches('details')) folds.push(one);
  const open = folds.length >= 2 && folds.every(fold => fold.open);
  return [open, row.matches(':target'), top > 0 && bottom < innerHeight];
}"""


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("how", ["address", "hash", "link"])
def test_a_link_opens_all_that_its_target_is_folded_in(site, visit, how, width):
    name = nested(site)
    seen = visit(CHAPTER + f"#{name}" * (how == "address"), width=width)
    page, row = seen.page, seen.page.locator(f"[id='{name}']")
    if how != "address":
        assert row.count() == 0
    if how == "hash":
        page.evaluate("name => { location.hash = name }", name)
    elif how == "link":
        link = """name => document.querySelector('article p').insertAdjacentHTML(
          'afterbegin', `<a id="to" href="#${name}">to</a>`)"""
        page.evaluate(link, name)
        page.click("#to")
    eventually(page, lambda: row.count() and row.evaluate(OPEN_AROUND) == [True, True, True])
    assert page.evaluate("location.hash") == f"#{name}"
    assert seen.problems == []


def test_a_link_from_another_page_and_the_way_back(site, visit):
    name = nested(site)
    page = visit("book/claims.html").page
    page.evaluate("() => tformerClosed.fillAll()")
    page.locator(f"a[href$='#{name}']").evaluate("link => link.click()")
    page.wait_for_url(f"**/exercises.html#{name}")
    row = page.locator(f"[id='{name}']")
    eventually(page, lambda: row.count() and row.evaluate(OPEN_AROUND) == [True, True, True])
    page.go_back()
    page.wait_for_url("**/claims.html")


def test_a_fold_is_filled_before_it_is_painted(visit):
    page = visit(CHAPTER).page
    seen = page.evaluate(
        """async () => {
          const fold = document.querySelector('details.tformer-claims');
          const before = fold.querySelectorAll(':scope > :not(.tformer-words)').length;
          fold.querySelector('summary').click();
          await null;
          return [before, fold.open, fold.querySelectorAll('tr').length > 1];
        }"""
    )
    assert seen == [1, True, True]


def test_code_that_comes_in_can_be_copied_once(visit):
    page = visit(CHAPTER).page
    fold = page.locator("details.admonition.hide:visible").first
    for _ in range(3):  # it is opened, closed, opened
        fold.locator("summary").click()
    button = fold.locator("button.copybtn")
    assert button.count() == fold.locator("div.highlight pre").count() == 1
    page.evaluate(
        """() => document.addEventListener('copy', event => {
          window.copied = getSelection().toString() || document.activeElement.value;
        }, true)"""
    )
    button.first.click(force=True)
    eventually(page, lambda: "success" in button.first.get_attribute("class"))
    assert "import torch" in page.evaluate("window.copied")


def test_formulas_links_and_folds_that_come_in_are_like_all_others(visit):
    seen = visit(CHAPTER, width=360)
    page = seen.page
    page.locator("details.in-one-minute > summary").click()
    box = page.locator("details.in-one-minute")
    assert box.locator("mjx-container").first.bounding_box()["width"] > 4
    wide = """box => [...box.querySelectorAll('*')].filter(e => e.clientWidth
      && /auto|scroll/.test(getComputedStyle(e).overflowX) && e.scrollWidth > e.clientWidth + 1
      && e.tabIndex < 0 && !e.querySelector('a, button, [tabindex="0"]')).length"""
    eventually(page, lambda: box.evaluate(wide) == 0)
    page = visit(EXERCISES).page
    exercise = page.locator("section.exercise").first
    inner = exercise.locator("details.solution")
    held = inner.locator("> :not(summary, .tformer-words)")
    assert held.count() == 0  # closed, and so not in the document
    assert seen.problems == []


def test_the_browser_s_own_search_finds_what_is_closed(visit):
    page = visit(CHAPTER).page
    few = page.evaluate("document.querySelectorAll('*').length")
    page.keyboard.press("Control+f")
    assert page.evaluate("document.querySelectorAll('*').length") > 1.2 * few
    assert page.locator("article details:not([data-try])[open]").count() == 0


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize(
    ("path", "fold"),
    [
        (EXERCISES, "section.exercise details.solution"),
        (LABORATORY, ".tformer-code-below > details"),  # takes no room while it is closed
    ],
)
def test_a_search_without_a_key_finds_what_is_closed(visit, path, fold, width):
    seen = visit(path, width=width)
    page = seen.page
    lines = page.locator(f"{fold} > .tformer-words > *")
    eventually(page, lambda: lines.count() > 0)
    phrases = (re.search(r"(?<!\S)[a-z]+(?: [a-z]+){3,}(?!\S)", text) for text in lines.all_text_contents())
    words = next(filter(None, phrases))[0]
    found = page.locator("details[open] :is(p, pre)", has_text=words).last
    assert found.count() == 0
    page.evaluate(GO_TO_WORDS, words)
    page.click("#go")
    eventually(page, lambda: found.count() and 0 < found.bounding_box()["y"] < 900)
    assert seen.problems == []


def test_words_of_what_is_closed_come_and_go_with_it(visit):
    page = visit(EXERCISES).page
    solution = page.locator("details.solution:visible").first
    words = solution.locator("> .tformer-words")
    eventually(page, lambda: words.count() == 1)
    assert words.locator("> *").first.bounding_box()["height"] == 0
    solution.locator("> summary").click()
    assert words.count() == 0
    nodes = page.evaluate("document.querySelectorAll('.tformer-words *').length")
    assert nodes < 300  # a fold's nodes are some fifty times as many


def test_words_that_were_searched_for_are_marked_when_they_come_in(visit):
    page = visit(f"{CHAPTER}?highlight=softmax").page
    page.locator("details.in-one-minute > summary").click()
    assert page.locator("details.in-one-minute .highlighted").count() > 0
    again = visit(CHAPTER).page
    again.locator("details.in-one-minute > summary").click()
    assert again.locator(".highlighted").count() == 0


def test_without_scripts_a_fold_shows_what_it_holds(visit):
    seen = visit(EXERCISES, scripts=False)
    page = seen.page
    solution = page.locator("section.exercise").first.locator("details.solution")
    solution.locator("> summary").click()
    assert solution.locator("p").last.is_visible()
    page = visit(CHAPTER, scripts=False).page
    page.locator("details.tformer-claims > summary").first.click()
    assert page.locator("details.tformer-claims td").first.is_visible()
    assert page.locator("noscript.tformer-closed").count() > 10
    assert seen.problems == []


def test_in_a_folder_it_works_too(browser, site):
    context = browser.new_context()
    page = context.new_page()
    name = nested(site)
    page.goto(f"{(site / CHAPTER).as_uri()}#{name}")
    row = page.locator(f"[id='{name}']")
    eventually(page, lambda: row.count() and row.evaluate(OPEN_AROUND)[0])
    context.close()
