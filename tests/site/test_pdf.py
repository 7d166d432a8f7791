"""Paper: what tools/make_pdf.py prints, read back, and pages as a browser's own dialogue has them."""

import io
import re
from types import SimpleNamespace

import make_pdf
import nbformat
import pypdf
import pytest
import yaml

from tests.site.pages import ROOT

TITLE, AUTHOR = "Transformers by Construction", "The authors of Transformers by Construction"
CHAPTER = "multi_head"  # it has wide formulas and the library's long lines
EXERCISES = "multi_head-exercises"  # and these have solutions
HIDDEN = {"hide-input", "remove-input", "hide-cell", "remove-cell", "answer"}


def squeezed(text: str) -> str:
    """Without white space: a PDF keeps none that is reliable, and wraps where the page does not."""
    return "".join(text.split())


@pytest.fixture(scope="module")
def printer(browser, site):
    return make_pdf.Printer(browser, site)


@pytest.fixture(scope="module")
def pages() -> list[make_pdf.Page]:
    """A book of four short pages."""
    wanted = ("notation", CHAPTER, EXERCISES, "bibliography")
    return [page for page in make_pdf.printed_pages() if page.name in wanted]


@pytest.fixture(scope="module")
def chapters(printer, pages) -> dict[str, tuple[pypdf.PdfReader | None, dict]]:
    """Each page as a PDF of its own, and what of it goes into the book."""
    made = {}
    for page in pages:
        pdf, extract = printer.chapter(page, pages)
        if pdf is None:
            made[page.name] = None, extract
            continue
        finished = make_pdf.finish(pdf, f"{extract['headings'][0][1]} ({TITLE})", AUTHOR)
        assert len(finished) < 3_000_000
        made[page.name] = pypdf.PdfReader(io.BytesIO(finished)), extract
    return made


@pytest.fixture(scope="module")
def texts(chapters) -> list[str]:
    """The text of each page of the chapter."""
    return [page.extract_text() for page in chapters[CHAPTER][0].pages]


@pytest.fixture(scope="module")
def book(printer, pages, chapters) -> pypdf.PdfReader:
    extracts = [chapters[page.name][1] for page in pages]
    parts = {extract["headings"][0][1]: page.part for page, extract in zip(pages, extracts, strict=True)}
    pdf = printer.book(TITLE, AUTHOR, pages, extracts)
    return pypdf.PdfReader(io.BytesIO(make_pdf.finish(pdf, TITLE, AUTHOR, parts)))


def titles(outline: list) -> list:
    """An outline's titles, nested as they are."""
    return [titles(item) if isinstance(item, list) else item.title for item in outline]


def dangling(reader: pypdf.PdfReader) -> list[str]:
    """Links into the file that lead nowhere, and links that leave it for anything but the web."""
    bad, found = [], 0
    for page in reader.pages:
        for annotation in page.get("/Annots", []):
            link = annotation.get_object()
            action = link.get("/A", {})
            target = link.get("/Dest", action.get("/D"))
            found += 1
            if target is not None:
                if isinstance(target, str) and target not in reader.named_destinations:
                    bad.append(target)
            elif not str(action.get("/URI", "")).startswith("https://"):
                bad.append(str(action))
    assert found > 10
    return bad


@pytest.fixture(scope="module")
def sections(site) -> list[str]:
    """The chapter's sections as the site numbers them: '3.1. One average is not enough', ..."""
    html = (site / "book" / CHAPTER / "chapter.html").read_text("utf8")
    found = re.findall(r'<h2><span class="section-number">([\d.]+ *)</span>(.*?)<a class="headerlink"', html)
    assert len(found) >= 8
    return [f"{number.strip()} {title}" for number, title in found]


def test_a_chapter_has_its_number_and_running_heads(texts):
    assert "3. Multi-head self-attention" in texts[0]
    assert "3.2. Who asks, and who answers" in "".join(texts)
    for number, text in enumerate(texts, 1):
        assert TITLE in text
        assert "3 Multi-head self-attention" in text
        assert re.search(rf"^{number}$", text, re.MULTILINE)


@pytest.fixture(scope="module")
def text(texts) -> str:
    """All of it, without what stands at the head and foot of each page."""
    around = rf"^{TITLE}\s+3 Multi-head self-attention\n\d+\n"
    return "\n".join(re.sub(around, "", text, count=1) for text in texts)


def test_prose_can_be_copied(text):
    notebook = nbformat.read(ROOT / "book" / CHAPTER / "chapter.ipynb", as_version=4)
    prose = "".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    plain = re.findall(r"(?<=[.?] )[A-Z][a-z ,]{50,}\.", prose)
    assert len(plain) >= 5
    whole = squeezed(text)
    split = [words for words in map(squeezed, plain) if words not in whole]
    # The end of a page, with its number and the next one's head, may stand in the middle of a sentence.
    assert [words for words in split if words[:20] not in whole or words[-20:] not in whole] == []
    assert len(split) <= len(plain) / 5


def test_no_line_of_code_is_cut(text, printer):
    notebook = nbformat.read(ROOT / "book" / CHAPTER / "chapter.ipynb", as_version=4)
    shown = [
        line
        for cell in notebook.cells
        if cell.cell_type == "code" and not HIDDEN & set(cell.metadata.get("tags", []))
        for line in cell.source.splitlines()
        if "claim(" not in cell.source  # their fold is closed on paper
        and not line.startswith("# @title")  # is for Colab alone
    ]
    assert len(shown) > 50
    assert [line for line in shown if squeezed(line) not in squeezed(text)] == []
    page = printer.open(f"book/{CHAPTER}/chapter.html")
    cut = page.evaluate(
        """() => [...document.querySelectorAll('article :is(pre, table, mjx-container[display="true"])')]
          .filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth
            || e.getBoundingClientRect().right > document.body.clientWidth + 1)
          .map(e => e.outerHTML.slice(0, 120))"""
    )
    page.close()
    assert cut == []


def test_code_of_88_columns_does_not_wrap(text):
    notebook = nbformat.read(ROOT / "book" / CHAPTER / "chapter.ipynb", as_version=4)
    code = [
        line.strip()
        for cell in notebook.cells
        if cell.cell_type == "code"
        for line in cell.source.splitlines()
    ]
    long = [line for line in code if len(line) > 78 and not line.startswith(("claim", '"', "%"))]
    printed = {squeezed(line) for line in text.splitlines()}
    whole = [line for line in long if squeezed(line) in printed]
    assert len(whole) >= 3


def test_solutions_come_last_and_are_open(chapters):
    source = (ROOT / "book" / CHAPTER / "exercises.ipynb").read_text("utf8")
    text = "\n".join(page.extract_text() for page in chapters[EXERCISES][0].pages)
    expected = len(re.findall(r"\{solution(?:-start)?\} ", source))
    places = [match.start() for match in re.finditer(r"Solution to Exercise", text)]
    assert len(places) == expected > 5
    assert text.index("Exercise 3.1") < text.index("Solutions\n") < places[0]
    assert squeezed("the quadratic part is the larger only beyond 1,536 tokens") in squeezed(
        text
    )  # of the first solution
    for word in ("Hide", "Show code", "Click to", "Toggle"):
        assert word not in text


def test_links_lead_somewhere(chapters, book):
    assert dangling(chapters[CHAPTER][0]) == []
    assert dangling(book) == []


def test_a_pdf_says_what_it_is(chapters, book):
    for reader, title in (
        (chapters[CHAPTER][0], "3. Multi-head self-attention (Transformers by Construction)"),
        (book, TITLE),
    ):
        assert (reader.metadata.title, reader.metadata.author) == (title, AUTHOR)
        assert reader.trailer["/Root"]["/Lang"] == "en"
        assert reader.trailer["/Root"]["/MarkInfo"]["/Marked"]  # for screen readers
        assert {round(float(length)) for length in reader.pages[0].mediabox[2:]} == {595, 842}  # A4


def test_outlines(chapters, book, sections):
    [title, outlined] = titles(chapters[CHAPTER][0].outline)
    assert title == "3. Multi-head self-attention"
    assert [name for name in outlined if isinstance(name, str)] == sections
    assert sections[0] == "3.1. One average is not enough"
    assert sections[-1].endswith(". Further reading")
    assert "Solutions" in str(titles(chapters[EXERCISES][0].outline))
    outline = titles(book.outline)
    assert outline[0] == "Contents"
    assert outline[1] == "Before you start"
    assert outline[3] == "I. Foundations"
    assert outline[4][0] == "3. Multi-head self-attention"
    assert "3.1. One average is not enough" in outline[4][1]


def test_the_books_contents_give_the_right_pages(book, sections):
    texts = [page.extract_text() for page in book.pages]
    contents = "".join(text for text in texts if "Contents" in text.splitlines()[0:3] or "\nContents" in text)
    for heading in (
        "3. Multi-head self-attention",
        *sections,
        "Bibliography",
    ):
        number = int(re.search(rf"^{re.escape(heading)}\s*(\d+)$", contents, re.MULTILINE)[1])
        # Chromium marks a heading near the foot of a page on the page behind it, now and then.
        assert heading in texts[number - 1] or (heading in sections and heading in texts[number - 2])
        assert number > 3
    head = "3 Multi-head self-attention"
    of_chapter = [number for number, text in enumerate(texts, 1) if head in text]
    assert of_chapter == list(range(of_chapter[0], of_chapter[0] + len(of_chapter)))


def test_links_between_chapters_stay_in_the_book(book, chapters):
    inside = [name for name in book.named_destinations if name.startswith("/bibliography--")]
    assert len(inside) > 5
    assert any(
        "bibliography.html" in str(annotation.get_object().get("/A", {}).get("/URI", ""))
        for page in chapters[CHAPTER][0].pages
        for annotation in page.get("/Annots", [])
    )  # and on its own the chapter leads to the published page


LOOK = """() => {
  const visible = e => e.checkVisibility({visibilityProperty: true}) && e.getBoundingClientRect().height > 0;
  const colour = (e, name) => getComputedStyle(e)[name].match(/[\\d.]+/g).map(Number);
  const all = selector => [...document.querySelectorAll(selector)];
  const texts = all('article :is(p, li, h1, h2, td, pre, pre span)').filter(visible);
  const light = texts.filter(e => colour(e, 'color').slice(0, 3).reduce((a, b) => a + b) > 3 * 140);
  const backs = all('html, body, pre, .admonition').map(e => colour(e, 'backgroundColor'))
    .filter(c => c.length < 4 && c[0] + c[1] + c[2] < 3 * 215);
  const gone = `nav, header, footer, button:not(.question-answers button), .bd-sidebar-primary,
    .bd-sidebar-secondary, .bd-header-article, .headerlink, .prev-next-footer,
    #jb-print-docs-body, dialog, [role=search]`;
  return {
    texts: texts.length,
    light: light.slice(0, 5).map(e => e.outerHTML.slice(0, 120)),
    backs: backs.slice(0, 5),
    gone: all(gone).filter(visible).map(e => e.outerHTML.slice(0, 120)),
    closed: all('.solution > section').filter(e => !visible(e)).length,
    background: getComputedStyle(document.body).backgroundColor,
    title: all('h1').filter(visible).map(e => e.textContent),
    last: document.querySelector('article > section > section:last-of-type').className,
    theme: document.documentElement.dataset.theme,
  };
}"""


# Without what paper leaves in styles, and the words that a browser's search finds in closed folds: they come
# when there is time.
LENGTH = """() => {
  const article = document.querySelector('article').cloneNode(true);
  for (const words of article.querySelectorAll('.tformer-words')) words.remove();
  const paper = / ?style="(--tformer-fit: [\\d.]+;|break-inside: avoid;| )+"/g;
  return article.innerHTML.replace(paper, '').length;
}"""


def test_on_paper_no_mark_stands_without_words_and_no_question_on_its_bar(visit):
    page = visit("book/attention/chapter.html", width=640).page
    page.emulate_media(media="print")
    page.wait_for_selector("#print-heads", state="attached")
    assert page.locator(".tformer-claims:not(.tformer-told) > summary").count()
    assert not page.locator(".tformer-claims:not(.tformer-told) > summary:visible").count()
    padding = "all => all.map(one => parseFloat(getComputedStyle(one).paddingInlineStart))"
    nested = page.locator(".admonition > .question").evaluate_all(padding)
    assert nested
    assert min(nested) >= 10


def test_the_print_dialogue_has_light_paper_even_in_the_dark(visit):
    page = visit(f"book/{CHAPTER}/exercises.html", scheme="dark").page
    before = page.evaluate(LENGTH)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.emulate_media(media="print")
    page.wait_for_selector("#print-heads", state="attached")
    seen = page.evaluate(LOOK)
    assert seen["texts"] > 500
    assert seen["light"] == []
    assert seen["backs"] == []
    assert seen["gone"] == []
    assert seen["closed"] == 0
    assert seen["background"] == "rgb(255, 255, 255)"
    assert len(seen["title"]) == 1
    assert seen["title"][0].startswith("3. Multi-head self-attention")
    assert seen["last"] == "print-solutions"

    page.emulate_media(media="screen")  # and the screen is as it was
    page.wait_for_selector("#print-heads", state="detached")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.locator(".print-solutions").count() == 0
    after = page.evaluate(LENGTH)
    assert abs(after - before) < 20  # characters: an attribute that is empty now
    exercises = page.locator("article section.exercise")
    assert exercises.count() > 5
    for exercise in exercises.all()[:2]:  # each has its solution again
        assert exercise.locator("> .solution").count() == 1


PAGE = """<ul>
<li>
<button onclick="window.print()"
  class="btn btn-sm btn-download-pdf-button dropdown-item"
  title="Print this page"
>
<span class="btn__icon-container"><i class="fas fa-print"></i></span>
<span class="btn__text-container">Print</span>
</button>
</li>
</ul>"""


def test_pages_offer_the_pdfs_that_are_there(tmp_path):
    (tmp_path / "book" / "attention").mkdir(parents=True)
    for name in ("attention/chapter", "glossary"):
        (tmp_path / "book" / f"{name}.html").write_text(PAGE, "utf8")
    folder = tmp_path / make_pdf.FOLDER
    folder.mkdir()
    make_pdf.offer_everywhere(tmp_path, folder)
    assert (tmp_path / "book" / "glossary.html").read_text("utf8") == PAGE  # nothing to offer
    (folder / "attention.pdf").write_bytes(bytes(1_300_000))
    (folder / make_pdf.BOOK).write_bytes(bytes(20_000_000))
    for _ in range(2):  # a second time changes nothing
        make_pdf.offer_everywhere(tmp_path, folder)
        chapter = (tmp_path / "book" / "attention" / "chapter.html").read_text("utf8")
        assert re.findall(r'<a href="([^"]*)" download', chapter) == [
            "../../pdf/attention.pdf",
            f"../../pdf/{make_pdf.BOOK}",
        ]
        assert "Chapter as PDF (1.3 MB)" in chapter
        assert chapter.count("window.print()") == 1
        glossary = (tmp_path / "book" / "glossary.html").read_text("utf8")
        assert re.findall(r'<a href="([^"]*)" download', glossary) == [f"../pdf/{make_pdf.BOOK}"]
        assert "Book as PDF (20.0 MB)" in glossary


def test_what_lies_beside_a_chapter_has_a_pdf_of_its_own(tmp_path, monkeypatch):
    of = {"book/x/chapter": "x", "book/x/laboratory": "x", "book/x/exercises": "x"}
    chapter = SimpleNamespace(name="x", docname="book/x/chapter")
    monkeypatch.setattr(make_pdf, "by_docname", lambda: dict.fromkeys(of, chapter))
    monkeypatch.setattr(make_pdf, "ROOT", tmp_path)
    sections = [{"file": "book/x/laboratory"}, {"file": "book/x/exercises"}]
    entries = [{"file": "book/x/chapter", "sections": sections}, {"file": "book/glossary"}]
    toc = {"parts": [{"caption": "P", "chapters": entries}]}
    (tmp_path / "_toc.yml").write_text(yaml.safe_dump(toc))
    pages = make_pdf.printed_pages()
    assert [page.name for page in pages] == ["x", "x-laboratory", "x-exercises", "glossary"]
    assert [page.pdf for page in pages] == ["x.pdf", "x-laboratory.pdf", "x-exercises.pdf", None]
    assert [page.first for page in pages] == [True, False, False, False]
    (tmp_path / "book" / "x").mkdir(parents=True)
    page = tmp_path / "book" / "x" / "laboratory.html"
    page.write_text(PAGE, "utf8")
    (tmp_path / "x-laboratory.pdf").write_bytes(bytes(1_300_000))
    make_pdf.offer_everywhere(tmp_path, tmp_path)
    assert re.findall(r'<a href="([^"]*)" download', page.read_text("utf8")) == ["../../x-laboratory.pdf"]
    assert "Page as PDF (1.3 MB)" in page.read_text("utf8")


def test_every_page_has_the_button_that_prints_and_says_so(site):
    for page in make_pdf.printed_pages():
        found = make_pdf.PRINT_ITEM.search((site / page.path).read_text("utf8"))
        assert found, page.path
        assert re.search(r'btn__text-container">\s*Print\s*<', found[0])


def test_without_a_browser_it_says_what_to_install(monkeypatch):
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(make_pdf.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="install one"), make_pdf.chromium():
        pass
