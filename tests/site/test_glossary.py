"""The glossary's letters: those that there are, within reach."""

import lxml.html
import pytest
from docutils import nodes
from sphinx import addnodes

from tests.site.pages import ROOT, eventually

GLOSSARY = "book/glossary.html"


@pytest.fixture(scope="module")
def glossary():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "book" / "site" / "extensions"))
        import tformer_glossary

        yield tformer_glossary


def test_each_letter_leads_to_its_terms_and_none_leads_nowhere(site):
    page = lxml.html.parse(site / GLOSSARY).getroot()
    links = page.xpath("//nav[contains(@class, 'tformer-letters')]//a")
    headings = page.xpath("//h2[contains(@class, 'tformer-letter')]")
    assert [a.get("href") for a in links] == [f"#{h.get('id')}" for h in headings]
    names = [a.text_content() for a in links]
    assert names == sorted(set(names))
    assert len(names) > 15
    for heading in headings:
        terms = heading.xpath("following-sibling::*[1][self::dl]/dt/text()[1]")
        assert terms
        assert {term.strip()[0].upper() for term in terms} == {heading.text_content()}


def entries(*terms):
    items = [nodes.definition_list_item("", nodes.term(term, term), nodes.definition()) for term in terms]
    return addnodes.glossary("", nodes.definition_list("", *items))


class Html:
    class builder:  # noqa: N801  as Sphinx calls it
        format = "html"


def test_a_term_out_of_place_is_a_warning(glossary, monkeypatch):
    said = []
    monkeypatch.setattr(glossary.log, "warning", lambda *words, **_: said.append(words[1]))
    glossary.by_letters(Html, nodes.section("", entries("alibi", "Attention", "2D", "bias")), "page")
    assert said == []
    glossary.by_letters(Html, nodes.section("", entries("alibi", "bias", "attention")), "page")
    assert said == ["A"]


@pytest.mark.parametrize("width", [320, 360, 1440])
def test_the_letters_stay_in_reach_and_cover_no_heading(visit, width):
    page = visit(GLOSSARY, width=width, height=740).page
    row = page.locator(".tformer-letters")
    page.get_by_role("navigation", name="Letters").get_by_role("link", name="S", exact=True).click()
    heading = page.locator("#letter-s")
    there = """([row, heading]) => {
      const [above, below] = [row, heading].map(one => one.getBoundingClientRect());
      return above.top >= 0 && above.bottom <= below.top + 1 && below.bottom < 300;
    }"""
    handles = [row.element_handle(), heading.element_handle()]
    eventually(page, lambda: page.evaluate(there, handles))
    boxes = row.locator("a").evaluate_all(
        "all => all.map(a => a.getBoundingClientRect()).map(b => [b.width, b.height, b.right])"
    )
    assert all(w >= 24 and h >= 24 and right <= width for w, h, right in boxes)
    assert row.bounding_box()["height"] <= 80


def test_a_term_that_a_link_leads_to_is_not_covered(visit):
    page = visit(f"{GLOSSARY}#term-softmax", width=360).page
    clear = """() => document.getElementById('term-softmax').getBoundingClientRect().top
      >= document.querySelector('.tformer-letters').getBoundingClientRect().bottom - 1"""
    eventually(page, lambda: page.evaluate(clear))
