"""The search: what is found first, how it is used, what it loads, and what stands in for it."""

import json
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
import search_index
from docutils import nodes
from search_index import SearchIndexError, page, write_index
from sphinx.errors import ExtensionError

from tests.site.pages import ROOT

OPTION = ".tformer-search__results [role=option]"
DIALOG = "#pst-search-dialog"
# A query, and of the first two results the page and the beginning of the title of one.
FINDS = {
    "KV cache": ("gpt", "8.6 "),
    "RoPE": ("positions", "5.3 "),
    "BLEU": ("translation", "11.5 "),
    "pre-norm": ("skip_norm", "4."),
    "perplexity": ("glossary", "perplexity"),
    "beam search": ("translation", "11.6 "),
    "causal mask": ("attention", "2.5 "),
    "GQA": ("modern_decoder", "9."),
    "flash attention": ("long_sequences", "14.2"),
    "byte-pair encoding": ("glossary", "byte-pair encoding"),
    "tokenizer": ("glossary", "token"),
    "class token": ("vit", "12.2 "),
    "induction": ("glossary", "in-context learning"),
    "label smoothing": ("translation", "11.L15 "),
    "LayerNorm": ("skip_norm", "4."),
    "layer normalization": ("skip_norm", "4.3 "),
    "Muon": ("modern_decoder", "9.3"),
    "nucleus sampling": ("gpt", "8.5 "),
    "MLM": ("bert", "7.3 "),
    "mel spectrogram": ("image_gpt/sound", "13.L11 "),
    "MultiHeadAttention": ("api/core", "MultiHeadAttention"),
    "how does the KV cache work": ("gpt", "8.6 "),
    "Vaswani": ("bibliography", "Vaswani et al. (2017)"),
}
# Questions as learners type them, and what answers each: sections by number, terms and works by name.
QUESTIONS = {
    "why divide by sqrt d": {"2.3"},
    "layer norm vs batch norm": {"4.3", "4.L14", "layer normalisation", "batch normalisation"},
    "quantization": {"14.L21"},
    "backpropagation": {"2.L3", "4.2", "4.3.2"},
    "attention is all you need": {"Vaswani et al. (2017)"},
    "kv cache size": {"8.6", "9.2.2"},
    "what is a token": {"1.3", "token"},
    "how are positions encoded": {"5", "5.2", "5.3", "positional embedding"},
    "why do transformers need warmup": {"4.8", "6.6.1", "4.L7", "4.L8", "6.L7"},
    "beam search vs sampling": {"11.6", "11.7", "8.5", "beam search"},
    "teacher forcing": {"1.L12", "teacher forcing"},
    "bert vs gpt": {"6.1", "7.1"},
    "how many parameters does gpt-2 have": {"6.5.1", "6.L15"},
    "vision transformer patch size": {"12.2", "12.L7"},
    "gradient clipping": {"6.6.1", "gradient clipping"},
    "flash attention memory": {"14.2", "14.2.1", "14.L17", "FlashAttention"},
    "induction heads": {"15.3", "8.L18", "15", "15.L1", "15.L2", "induction head"},
    "muon optimizer": {"9.3", "9.3.1", "Muon"},
    "mixture of experts": {"9.L17", "mixture of experts"},
    "rope embeddings": {"5.3", "rotary positions"},
    "difference between encoder and decoder": {"6.1", "1.7", "encoder", "decoder", "encoder-decoder"},
    "what are queries keys and values": {"2.1", "2.4", "3.2", "query", "key", "value"},
    "why is attention quadratic": {"3.7", "14.1"},
    "chinchilla scaling laws": {"16.6", "16.L13", "16.L14", "scaling law", "compute-optimal"},
    "temperature vs top p": {"8.5", "temperature", "nucleus"},
    "vanishing gradients": {"1.5", "4.2", "4.6"},
    "pre norm or post norm": {"4.7", "4.8", "pre-norm", "post-norm"},
    "how does multi head attention work": {"3", "3.3", "3.4", "multi-head attention"},
    "train on multiple gpus": {"16", "16.2", "16.3", "16.5", "16.L3", "data parallel"},
    "fine tuning bert": {"7.7", "7.7.1", "7.L8", "fine-tuning"},
}
# What the book does not treat, and the word of each that it does not have.
ABSENT = {"lora": "lora", "rlhf": "rlhf", "speculative decoding": "speculative", "lora fine-tuning": "lora"}
# Words that are not typed to the end, by the whole word.
QUESTIONS_TYPED = {
    "perplexity": {"1.2", "1.2.2", "perplexity"},
    "byte-pair encoding": {"1.L8", "byte-pair encoding"},
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


def first_hit(page, query: str) -> str:
    """What the first result of a query is called: by its number, or by its name where it has none."""
    search(page, query)
    title = page.locator(OPTION).first.locator(".tformer-search__title")
    if not title.count():
        return "nothing"
    number = title.locator(".tformer-search__number")
    return number.inner_text() if number.count() else title.inner_text()


def test_questions_of_learners_are_answered_by_the_first_result(reader):
    assert len(QUESTIONS) == 30
    found = {query: first_hit(reader, query) for query in QUESTIONS}
    misses = {query: hit for query, hit in found.items() if hit not in QUESTIONS[query]}
    print(f"{len(QUESTIONS) - len(misses)} of {len(QUESTIONS)} first hits are right; not: {misses}")
    assert len(QUESTIONS) - len(misses) >= 27, misses


@pytest.mark.parametrize("query", ABSENT)
def test_what_the_book_does_not_have_is_said(reader, query):
    found = search(reader, query)
    said = reader.locator(f"{DIALOG} [role=status]").inner_text()
    assert ABSENT[query] in said
    if query == ABSENT[query]:
        assert said.startswith("Nothing found")
        assert found == []
    else:
        assert "does not have" in said


def test_a_word_is_not_answered_by_the_beginning_of_it(reader):
    """Where a word is nowhere, pagefind looks for shorter ones: "back" is no answer to "backpropagations"."""
    for query in ("backpropagations", "tokenology", "attentionality"):
        search(reader, query)
        marked = {text.lower() for text in reader.locator(f"{OPTION} mark").all_inner_texts()}
        assert not [word for word in marked if len(word.strip(".,;:")) < 8], (query, marked)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("trasnformer", "transformer"),
        ("postional encoding", "positional encoding"),
        ("atention", "attention"),
        ("what is perplexty", "what is perplexity"),
        ("lora", None),  # too short to guess
        ("speculative decoding", None),  # nothing is near
    ],
)
def test_a_misprint_is_answered_by_what_may_be_meant(reader, typed, meant):
    search(reader, typed)
    offer = reader.locator(f"{DIALOG} .tformer-search__meant")
    if meant is None:
        reader.wait_for_function(
            "q => document.querySelector('.tformer-search__meant').dataset.query === q", arg=typed
        )
        assert offer.inner_text() == ""
        return
    link = offer.get_by_role("link")
    assert link.inner_text() == meant
    link.click()
    reader.wait_for_function("q => document.querySelector(`[role=listbox][data-query='${q}']`)", arg=meant)
    assert reader.locator(f"{DIALOG} input").input_value() == meant
    assert reader.locator(OPTION).count() > 1
    assert offer.inner_text() == ""


def test_words_that_may_be_meant_are_common_or_names():
    records = [
        {
            "kind": "section",
            "title": "Rotary clocks",
            "names": [],
            "text": "hands, hands and hands; a misprnt",
        },
        {"kind": "work", "title": "Someone", "names": [], "text": "hands"},
    ]
    assert search_index.words(records) == ["hands", "rotary", "clocks"]


def test_a_word_is_found_while_it_is_typed(reader):
    assert first_hit(reader, "perplex") in QUESTIONS_TYPED["perplexity"]
    assert first_hit(reader, "byte-pair enc") in QUESTIONS_TYPED["byte-pair encoding"]


@pytest.mark.parametrize(
    ("british", "american"),
    [
        ("layer normalisation", "layer normalization"),
        ("optimiser for matrices", "optimizer for matrices"),
        ("masked language modelling", "masked language modeling"),
        ("grey levels", "gray levels"),
    ],
)
def test_both_spellings_find_the_same_first(reader, british, american):
    assert first_hit(reader, british) == first_hit(reader, american) != "nothing"


def test_the_best_ten_come_first_and_the_others_when_they_are_asked_for(reader):
    every = len(search(reader, "attention"))
    seen = reader.locator(f"{OPTION}:visible")
    status = reader.locator(f"{DIALOG} [role=status]")
    more = reader.locator(f"{DIALOG} .tformer-search__more")
    assert seen.count() == 10
    assert status.inner_text().startswith("Best 10 results")
    assert more.inner_text() == f"Show {every - 10} more"
    for _ in range(10):  # and round to the first again: what is not seen is not chosen
        reader.keyboard.press("ArrowDown")
        assert reader.locator(f"{OPTION}[aria-selected=true]:visible").count() == 1
    more.click()
    assert seen.count() == every
    assert status.inner_text().startswith(f"{every} results")
    assert not more.is_visible()


def test_the_button_and_the_field_are_called_alike(reader):
    name = "Search the book"
    assert reader.locator(".tformer-ask span").text_content() == name
    assert reader.locator(f"{DIALOG} input").get_attribute("placeholder") == name


def test_part_of_a_formula_is_no_word(reader):
    search(reader, "KV cache size")
    marked = reader.locator(f"{OPTION} mark").all_text_contents()
    assert marked
    assert not [word for word in marked if "_" in word or "^" in word]


def test_results_say_where_they_lie(reader):
    search(reader, "by hand")
    titles = [name for _, name in search(reader, "one head by hand")]
    assert not [name for name in titles if name in ("The chapter", "By hand")]
    assert any(re.match(r"\d+\.\d+\.\d+ .*[Bb]y hand .+", name) for name in titles), titles
    assert ("6 The transformer", "6. The transformer") in named(reader, "the transformer")


def test_exercises_are_found_by_their_names(reader):
    found = named(reader, "clocks that agree")
    assert found[0][0].startswith("Exercise 5.")
    assert found[0][1] == "5. Positional embeddings: exercises"


def named(page, query: str) -> list[tuple[str, str]]:
    """The title of each result, and of the page or the list that it stands under."""
    search(page, query)
    groups = page.locator(".tformer-search__results [role=group]").all()
    return [
        (title, group.locator(".tformer-search__page").inner_text())
        for group in groups
        for title in group.locator(".tformer-search__title").all_inner_texts()
    ]


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
    assert "10 results" in page.locator(f"{DIALOG} [role=status]").inner_text()
    chosen = page.locator("[role=option][aria-selected=true]")
    assert chosen.get_attribute("id") == page.locator(OPTION).first.get_attribute("id")  # what Enter opens
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    assert chosen.count() == 1
    assert field.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    assert chosen.locator(".tformer-search__title").inner_text().startswith("8.6 ")
    page.keyboard.press("Enter")
    page.wait_for_url("**/gpt/chapter.html#*")
    anchor = page.url.split("#")[1]
    assert "8.6" in page.locator(f"[id='{anchor}'] > h2").inner_text()
    assert seen.problems == []


def test_back_from_a_result_finds_the_search_as_it_was(visit):
    page = visit("book/attention/chapter.html", width=360, height=700).page
    page.click(".tformer-ask")
    field = page.locator(f"{DIALOG} input")
    search(page, "KV cache")
    for result in (
        "**/gpt/chapter.html#*",
        "**/attention/chapter.html#*",
    ):  # on another page, and on this one
        if "attention" in result:
            search(page, "why divide by sqrt d")
        query = field.input_value()
        page.locator(f"{OPTION}[href*='{result.split('/')[1]}/chapter']").first.click()
        page.wait_for_url(result)
        assert not page.evaluate("selector => document.querySelector(selector).open", DIALOG)
        page.go_back()
        page.wait_for_selector(f"{DIALOG}[open] [data-query='{query}'] [role=option]")
        assert field.input_value() == query
    page.get_by_role("button", name="Clear").click()
    assert field.input_value() == ""
    assert page.locator(OPTION).count() == 0
    page.get_by_role("button", name="Close").click()
    assert not page.evaluate("selector => document.querySelector(selector).open", DIALOG)


def test_two_letters_are_not_the_beginning_of_a_word(reader):
    search(reader, "why divide by sqrt d")
    marked = {text.lower().strip(".,;:()") for text in reader.locator(f"{OPTION} mark").all_inner_texts()}
    assert "root" in marked  # as it is written
    assert not marked & {"do", "does", "during", "deviation"}


def test_chapters_and_terms_stand_before_names_of_code(reader):
    kinds = ["/api/" in url for url, _ in search(reader, "why divide by sqrt d")]
    assert kinds.index(True) > 5
    assert kinds == sorted(kinds)
    assert sum(kinds) <= 2


def test_an_excerpt_is_the_sentence_that_says_most_and_no_formula(reader):
    search(reader, "how does a KV cache save time")
    said = reader.locator(".tformer-search__excerpt")
    assert not [text for text in said.all_inner_texts() if "2MH_kv" in text]
    costs = reader.locator(OPTION, has_text="What a token costs").locator("mark")
    assert {"cache", "saves", "time"} <= {text.strip(".") for text in costs.all_inner_texts()}


def test_the_temperature_of_a_softmax_is_no_thermometer_s(reader):
    found = [url for url, _ in search(reader, "softmax temperature")]
    gpt = [i for i, url in enumerate(found) if "/gpt/" in url and "exercises" not in url]
    assert len(gpt) >= 3
    assert max(gpt[:3]) < next(i for i, url in enumerate(found) if "/attention/chapter" in url)


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
    last = page.locator(f"{OPTION}:visible").last
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
RECORDS = [
    record | {"text": "Words & more", "names": ["Y"], "within": "", "spellings": []}
    for record in (SECTION, TERM)
]


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


def test_titles_are_kept_by_the_names_that_pagefind_gives(records, tmp_path):
    write_index(records, tmp_path)
    folder = tmp_path / "pagefind"
    kept = json.loads((folder / "titles.json").read_text("utf8"))
    assert {file.stem for file in (folder / "fragment").iterdir()} == {row[0] for row in kept}
    assert sorted(row[1:] for row in kept) == [["section", "A <b>", ["Y"]], ["term", "y", ["Y"]]]


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
        (r"\tfrac83D", "8/3 D"),
        (r"-\tfrac12, \frac1{16}", "- 1/2, 1/16"),
        (r"\frac{e^{z_i/\tau}}{\sum_j e^{z_j/\tau}}", "(e^z_i/τ)/(Σ_j e^z_j/τ)"),
        (r"\frac{1}{\sqrt{D_h}}", "1/√D_h"),
        (r"O(N\sqrt N)", "O(N√N)"),
        (r"\mathbf{k}_s^{\mathsf T}\mathbf{q} \approx 10{,}923", "k_s^Tq ≈ 10,923"),
        (r"\begin{split} a &= b \end{split}", "a = b"),
        (r"\alpha_{sn} \ge 0", "α_sn ≥ 0"),
        (r"1\%", "1%"),
        (r"\unknowncommand{x}", "x"),
    ],
)
def test_formulas_are_said_in_plain_characters(words, tex, plain):
    assert words.spoken(tex) == plain


def test_a_display_leaves_a_mark(words):
    paragraph = nodes.paragraph("", "It returns", nodes.math_block("", "x"), nodes.Text(" of x"))
    assert words.line(words.words(paragraph)) == "It returns… of x"
    section = nodes.section("", nodes.paragraph("", "and return"), nodes.math_block("", "x"))
    assert words.line(words.words(section)) == "and return …"


def test_both_spellings_are_found(words):
    assert words.spellings("We normalise, the BPETokenizer does not.") == ["bpetokeniser", "normalize"]
    assert words.spellings("A labelled neighbour's Grey centre") == ["center", "gray", "labeled", "neighbor"]
    assert words.spellings("four hours of rays that enter, from all") == []


def test_words_for_what_is_nowhere_stop_the_build(words, monkeypatch, tmp_path):
    monkeypatch.setattr(words, "OTHER_NAMES", {("attention", "No such section"): ["other"]})
    app = SimpleNamespace(
        builder=SimpleNamespace(format="html"),
        env=SimpleNamespace(found_docs={words.GLOSSARY}),
        doctreedir=tmp_path,
    )
    with pytest.raises(ExtensionError, match="No such section"):
        words.Collector().write(app, None)
