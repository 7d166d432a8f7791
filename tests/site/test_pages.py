"""Each page as a reader's browser has it: loads, maths, accessibility, small screens, search."""

import re
from pathlib import Path

import axe_playwright_python
import pytest

from tests.site.pages import chapter_pages, toc_pages

AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
PAGES = [*toc_pages(), "search.html", "genindex.html", "_modules/tformer_lib/core/attention.html"]

SETTINGS = {
    "light": ("light", 1280),
    "dark": ("dark", 1280),
    "phone": ("light", 360),
    "tablet": ("light", 1100),
}

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
  };
}"""
LOOK = "resultTypes: ['violations'], preload: false"  # preload asks for files
RUN_AXE = {  # in the dark only colours are other than in the light
    "light": f"axe.run(document, {{{LOOK}}})",
    "dark": f"axe.run(document, {{{LOOK}, runOnly: ['color-contrast', 'link-in-text-block']}})",
}
UNFOLD = """() => {
  for (const fold of document.querySelectorAll('details')) fold.open = true;
  for (const button of document.querySelectorAll('.toggle-hidden > button.toggle-button')) button.click();
}"""


@pytest.fixture
def facts(visit):
    """What a browser says of a page, asked once for each page and setting, with every fold open."""

    def ask(path: str, setting: str) -> dict:
        if (path, setting) not in _FACTS:
            scheme, width = SETTINGS[setting]
            seen = visit(path, scheme=scheme, width=width)
            seen.page.evaluate(UNFOLD)
            seen.page.wait_for_timeout(400)  # folds and colours move for a moment
            found = seen.page.evaluate(FACTS)
            if setting in ("light", "dark"):
                seen.page.evaluate(AXE.read_text("utf8"))
                report = seen.page.evaluate(RUN_AXE[setting])
                found["violations"] = [
                    f"{rule['id']}: {node['html'][:160]} ({node.get('failureSummary', '')})"
                    for rule in report["violations"]
                    for node in rule["nodes"]
                ]
            _FACTS[path, setting] = found | {"problems": seen.problems, "outside": seen.outside}
        return _FACTS[path, setting]

    return ask


_FACTS: dict[tuple[str, str], dict] = {}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("path", PAGES)
def test_page_loads_without_errors_or_other_hosts(facts, path, setting):
    seen = facts(path, setting)
    assert seen["outside"] == []
    assert seen["problems"] == []
    assert seen["titles"] >= 1


@pytest.mark.parametrize("path", toc_pages())
def test_maths_is_typeset(facts, path):
    seen = facts(path, "light")
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


@pytest.mark.parametrize("setting", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_no_accessibility_violation(facts, path, setting):
    assert facts(path, setting)["violations"] == []


@pytest.mark.parametrize("setting", ["phone", "tablet", "light"])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_never_scrolls_sideways(facts, path, setting):
    seen, (_, width) = facts(path, setting), SETTINGS[setting]
    assert seen["width"] <= width, f"the page is {seen['width']} px wide; candidates: {seen['wide']}"


@pytest.mark.parametrize("path", toc_pages())
def test_what_scrolls_on_a_phone_can_be_reached_by_keyboard(facts, path):
    assert facts(path, "phone")["unreachable"] == []


@pytest.mark.parametrize("path", chapter_pages()[-1:])
def test_reader_can_switch_to_dark(visit, path):
    page = visit(path).page
    page.locator(".article-header-buttons .theme-switch-button").click()
    seen = {page.evaluate("document.documentElement.dataset.theme")}
    page.locator(".article-header-buttons .theme-switch-button").click()
    seen.add(page.evaluate("document.documentElement.dataset.theme"))
    assert "dark" in seen


@pytest.mark.parametrize("path", chapter_pages())
def test_a_chapter_is_light(visit, address, path, record_property):
    """The page and its own pictures stay under 1 MB as sent compressed; the shared files are cached."""
    import gzip

    page = visit(path).page
    urls = page.evaluate("performance.getEntriesByType('resource').map(e => e.name)")
    bodies = {url: page.request.get(url).body() for url in {address + path, *urls}}
    sizes = {url: len(gzip.compress(body)) for url, body in bodies.items()}
    own = sum(size for url, size in sizes.items() if "/_static/" not in url and "searchindex" not in url)
    record_property("own_bytes", own)
    record_property("all_bytes", sum(sizes.values()))
    print(f"{path}: {own / 1000:.0f} kB of its own, {sum(sizes.values()) / 1000:.0f} kB with shared files")
    assert own < 1_000_000
