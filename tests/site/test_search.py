"""The search: what is found first, how it is used, what it loads, and what stands in for it."""

import json
import subprocess
import sys

import pytest
import search_index
from search_index import SearchIndexError, page, write_index

from tests.site.pages import ROOT

OPTION = ".tformer-search__results [role=option]"
DIALOG = "#pst-search-dialog"
# A query, and of the first two results the page and the beginning of the title of one.
FINDS = {
    "KV cache": ("gpt", "8.6 "),
    "RoPE": ("positions", "5.3 "),
    "BLEU": ("translation", "11.6 "),
    "pre-norm": ("skip_norm", "4."),
    "perplexity": ("glossary", "perplexity"),
    "beam search": ("translation", "11.4 "),
    "causal mask": ("attention", "2.7 "),
    "GQA": ("multi_head", "3.7 "),
    "flash attention": ("long_sequences", "14.2"),
    "byte-pair encoding": ("glossary", "byte-pair encoding"),
    "tokenizer": ("glossary", "token"),
    "class token": ("vit", "12.2 "),
    "induction": ("glossary", "in-context learning"),
    "label smoothing": ("translation", "11.L11 "),
    "LayerNorm": ("skip_norm", "4."),
    "layer normalization": ("skip_norm", "4.4 "),
    "Muon": ("modern_decoder", "9.5"),
    "nucleus sampling": ("gpt", "8.5 "),
    "MLM": ("bert", "7.3 "),
    "mel spectrogram": ("image_gpt", "13.7 "),
    "MultiHeadAttention": ("api/core", "MultiHeadAttention"),
    "how does the KV cache work": ("gpt", "8.6 "),
    "Vaswani": ("bibliography", "Vaswani et al. (2017)"),
}
# Code and works are below the chapters that use them, however well they match.
LATER = {"MultiHeadAttention", "Vaswani"}


@pytest.fixture(scope="module")
def reader(browser, address):
    """A page with the search open, for one query after another."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(f"{address}book/attention/chapter.html", wait_until="load")
    page.keyboard.press("Control+k")
    yield page
    context.close()


def search(page, query: str, field: str = f"{DIALOG} input") -> list[tuple[str, str]]:
    """Types a query; returns the address and the title of each result."""
    page.fill(field, query)
    page.wait_for_function("q => document.querySelector(`[role=listbox][data-query='${q}']`)", arg=query)
    return [
        (option.get_attribute("href"), option.locator(".tformer-search__title").inner_text())
        for option in page.locator(OPTION).all()
    ]


@pytest.mark.parametrize("query", FINDS)
def test_what_one_looks_for_is_first_or_second(reader, query):
    where, title = FINDS[query]
    found = search(reader, query)
    best = found if query in LATER else found[:2]
    pages = (f"book/{where}.html", f"book/{where}/chapter.html", f"book/{where}/laboratory.html")
    assert any(url.split("#")[0].endswith(pages) and name.startswith(title) for url, name in best), found


def test_chapters_stand_before_code(reader):
    found = [url for url, _ in search(reader, "KV cache")]
    code = [i for i, url in enumerate(found) if "/api/" in url]
    assert code
    assert code == list(range(code[0], len(found)))


def test_excerpts_are_plain_words(reader):
    for query in ("softmax", "attention", "norm", "gradient", "cache"):
        assert len(search(reader, query)) > 5
        excerpts = reader.locator(".tformer-search__excerpt").all_inner_texts()
        assert not [text for text in excerpts if any(mark in text for mark in "\\${}")]


def test_results_stand_by_page_with_the_numbers_of_sections(reader):
    search(reader, "KV cache")
    groups = reader.locator(".tformer-search__results [role=group]")
    names = groups.locator(".tformer-search__page").all_inner_texts()
    assert {"Glossary", "8. GPT", "Reference"} <= set(names)
    gpt = groups.nth(names.index("8. GPT"))
    assert "8.6" in gpt.locator(".tformer-search__number").all_inner_texts()


def test_it_is_used_by_keyboard_and_heard(visit):
    seen = visit("book/attention/chapter.html")
    page = seen.page
    page.keyboard.press("Control+k")
    field = page.locator(f"{DIALOG} input")
    assert field.get_attribute("role") == "combobox"
    assert field.get_attribute("aria-expanded") == "false"
    search(page, "KV cache")
    assert field.get_attribute("aria-expanded") == "true"
    assert page.locator(f"{DIALOG} [role=status]").inner_text().split()[1].startswith("result")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("[role=option][aria-selected=true]")
    assert chosen.count() == 1
    assert field.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    assert chosen.locator(".tformer-search__title").inner_text().startswith("8.6 ")
    page.keyboard.press("Enter")
    page.wait_for_url("**/gpt/chapter.html#*")
    anchor = page.url.split("#")[1]
    assert "8.6" in page.locator(f"[id='{anchor}'] > h2").inner_text()
    assert seen.problems == []


def test_escape_closes_it_and_nothing_found_is_said(visit):
    page = visit("book/attention/chapter.html").page
    page.keyboard.press("Control+k")
    page.fill(f"{DIALOG} input", "zzqqxx")
    page.wait_for_function(
        f"document.querySelector('{DIALOG} [role=status]').textContent.startsWith('Nothing found')"
    )
    page.keyboard.press("Escape")
    assert not page.evaluate("selector => document.querySelector(selector).open", DIALOG)


def test_no_search_data_before_a_search(visit):
    page = visit("book/attention/chapter.html").page
    names = "performance.getEntriesByType('resource').map(entry => entry.name)"
    data = ("searchindex", "searchtools", "language_data", "pagefind")
    assert not [url for url in page.evaluate(names) if any(part in url for part in data)]
    page.keyboard.press("Control+k")
    search(page, "softmax")
    assert any("pagefind" in url for url in page.evaluate(names))
    assert not any("searchindex" in url for url in page.evaluate(names))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_it_fits_and_covers_nothing_typed(visit, scheme):
    page = visit("book/attention/chapter.html", width=360, height=640, scheme=scheme).page
    page.click(".tformer-ask")
    search(page, "attention")
    box = page.locator(DIALOG).bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360
    icon = page.locator(f"{DIALOG} form").locator("i, svg").first.bounding_box()
    field = page.locator(f"{DIALOG} input")
    padding = float(field.evaluate("field => parseFloat(getComputedStyle(field).paddingLeft)"))
    assert field.bounding_box()["x"] + padding > icon["x"] + icon["width"]
    last = page.locator(OPTION).last
    last.scroll_into_view_if_needed()
    assert last.bounding_box()["y"] < 640


def test_the_page_of_the_search(visit):
    seen = visit("search.html?q=beam+search")
    page = seen.page
    page.wait_for_selector(OPTION)
    assert page.locator(".bd-search-container input").input_value() == "beam search"
    found = search(page, "RoPE", ".bd-search-container input")
    assert "positions/" in found[1][0]
    assert not any("searchindex" in url for url in page.evaluate("performance.getEntries().map(e => e.name)"))
    assert seen.problems == []


def test_sphinx_s_search_stands_in_without_pagefind(browser, site, address):
    """In a folder (file://), and where pagefind is not there."""
    for start in (site.as_uri() + "/", address):
        context = browser.new_context()
        page = context.new_page()
        page.route("**/pagefind/**", lambda route: route.abort())
        page.goto(f"{start}book/attention/chapter.html")
        page.keyboard.press("Control+k")
        page.keyboard.type("attention")
        page.wait_for_function(
            f"document.querySelector('{DIALOG} [role=status]').textContent.includes('Enter')"
        )
        page.keyboard.press("Enter")
        page.wait_for_selector("#search-results li a[href*='attention/chapter']", timeout=20_000)
        context.close()


def test_without_javascript_the_page_of_the_search_points_elsewhere(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}search.html")
    assert page.locator(".bd-search-container noscript a, .bd-search-container a[href*=glossary]").count()
    context.close()


SECTION = {"kind": "section", "url": "a.html#x", "title": "A <b>", "number": "1.2", "page": "1. A"}
TERM = {"kind": "term", "url": "g.html#term-y", "title": "y", "number": "", "page": "Glossary"}
RECORDS = [record | {"text": "Words & more", "names": ["Y"], "spellings": []} for record in (SECTION, TERM)]


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "records.json"
    path.write_text(json.dumps(RECORDS), "utf8")
    return path


def test_a_record_is_escaped():
    text = page(RECORDS[0])
    assert "A &lt;b&gt;" in text
    assert "Words &amp; more" in text


HELD = ("fragment", "index")  # folders of the index


def test_what_is_found_is_the_same_each_time(records, tmp_path):
    """Pagefind orders its own table of pages as it happens to; texts and words do not depend on that."""
    trees = []
    for name in ("one", "two"):
        assert write_index(records, tmp_path / name) == 2
        files = sorted(path for path in (tmp_path / name).rglob("*") if path.is_file())
        trees.append({path.relative_to(tmp_path / name): path.read_bytes() for path in files})
    first, second = ({p: data for p, data in tree.items() if p.parts[1] in HELD} for tree in trees)
    assert len(first) >= 3
    assert first == second
    assert not any("ui" in path.name for path in trees[0])


def test_a_failure_says_what_is_wrong(records, tmp_path, monkeypatch):
    with pytest.raises(SearchIndexError, match="left no missing"):
        write_index(tmp_path / "missing.json", tmp_path)
    failed = subprocess.CompletedProcess([], 1, stdout="", stderr="first\nno such program")
    monkeypatch.setattr(search_index.subprocess, "run", lambda *args, **options: failed)
    with pytest.raises(SearchIndexError, match="no such program"):
        write_index(records, tmp_path)


@pytest.fixture(scope="module")
def words():
    sys.path.insert(0, str(ROOT / "book" / "site" / "extensions"))
    import tformer_search

    return tformer_search


@pytest.mark.parametrize(
    ("tex", "plain"),
    [
        (r"\mathbf{W}_q", "W_q"),
        (r"H_{\mathrm{kv}}", "H_kv"),
        (r"\frac{8}{11}", "8/11"),
        (r"\alpha_{sn} \ge 0", "α_sn ≥ 0"),
        (r"1\%", "1%"),
        (r"\unknowncommand{x}", "x"),
    ],
)
def test_formulas_are_said_in_plain_characters(words, tex, plain):
    assert words.spoken(tex) == plain


def test_both_spellings_are_found(words):
    assert words.spellings("We normalise, the BPETokenizer does not.") == ["bpetokeniser", "normalize"]
