"""Reading: anchors, folds, the bibliography, previews, what is marked, what is seen on focus."""

import re
from collections import Counter

import lxml.html
import pytest
from chapters import by_docname
from docutils import nodes
from docutils.utils import new_document

from tests.site.pages import ROOT, chapter_pages, eventually, exercise_pages, toc_pages

CHAPTER = "book/attention/chapter.html"
LABORATORY = "book/attention/laboratory.html"  # has more claims
EXERCISES = "book/attention/exercises.html"
PREVIEW = ".tformer-preview:not([hidden])"


def own_pages(site):
    """Every page that Sphinx wrote, by its path in the site."""
    for path in sorted(site.rglob("*.html")):
        if "_static" not in path.relative_to(site).parts:
            yield path.relative_to(site).as_posix(), lxml.html.parse(path)


def test_an_id_stands_once_on_a_page(site):
    repeated = {}
    for name, page in own_pages(site):
        more = [anchor for anchor, count in Counter(page.xpath("//@id")).items() if count > 1]
        if more:
            repeated[name] = more
    assert repeated == {}


def test_anchors_of_sections_are_words(site):
    numbered = [
        f"{name}#{anchor}"
        for name, page in own_pages(site)
        for anchor in page.xpath("//article//section/@id")
        if re.search(r"(^|-)id\d+$", anchor) or anchor.startswith("-")
    ]
    assert numbered == []


# --- folds ---


@pytest.mark.parametrize("width", [360, 1280])
def test_a_solution_opens_wherever_its_title_is_clicked(visit, width):
    page = visit(EXERCISES, width=width).page
    fold = page.locator("details.solution").first
    title = fold.locator("> summary")
    box = title.bounding_box()
    assert box["height"] >= 40
    before = page.url
    for where, across in (("left", 6), ("middle", box["width"] / 2), ("right", box["width"] - 6)):
        title.click(position={"x": across, "y": box["height"] / 2})
        assert fold.evaluate("fold => fold.open"), where
        assert page.url == before, where
        title.press("Enter")
        assert not fold.evaluate("fold => fold.open")
    title.click()
    link = fold.locator(".fold-back a")
    assert link.get_attribute("href").startswith("#ex-")
    link.click()
    assert page.evaluate("location.hash").startswith("#ex-")


def test_a_solution_opens_by_keyboard_and_by_a_link_to_it(site, visit):
    page = visit(EXERCISES).page
    fold = page.locator("details.solution").first
    fold.locator("> summary").focus()
    page.keyboard.press("Enter")
    assert fold.evaluate("fold => fold.open")
    anchor = lxml.html.parse(site / EXERCISES).xpath("//details[contains(@class, 'solution')]/@id")[1]
    second = page.locator(f"details#{anchor}")
    assert second.evaluate("fold => !fold.open")
    page.evaluate("anchor => { location.hash = anchor }", anchor)
    eventually(page, lambda: second.evaluate("fold => fold.open && fold.matches(':target')"))
    eventually(page, lambda: 0 <= second.bounding_box()["y"] < 200)


@pytest.mark.parametrize("path", exercise_pages())
def test_an_exercise_says_what_it_is_and_holds_its_solution(site, path):
    page = lxml.html.parse(site / path)
    exercises = page.xpath("//section[contains(@class, 'exercise')]")
    number = by_docname()[path.removesuffix(".html")].number
    assert len(exercises) >= 5
    for place, exercise in enumerate(exercises, 1):
        title = " ".join(exercise.xpath("string(h2)").split())
        assert re.fullmatch(
            rf"Exercise {number}\.{place} \(.+\) (Easy|Medium|Hard) · .+ · about \d+ minutes", title
        )
    solutions = page.xpath("//details[contains(@class, 'solution')]")
    assert len(solutions) >= len(exercises) - 1
    within = "ancestor::section[contains(@class, 'exercise')]"
    assert [s.get("id") for s in solutions if not s.xpath(within)] == []


@pytest.mark.parametrize("path", chapter_pages())
def test_what_is_closed_says_what_is_in_it(site, path):
    page = lxml.html.parse(site / path)
    titles = [title.text_content().split() for title in page.xpath("//article//summary")]
    assert titles
    assert not [" ".join(words) for words in titles if not words or words[:3] == ["Show", "code", "cell"]]
    assert page.xpath("//summary[@aria-label='Toggle hidden content']") == []
    assert "Hide code cell" not in page.xpath("string(//article)")
    if path != chapter_pages()[0]:
        assert "Setup: imports" in page.xpath("string(//details[contains(@class, 'hide')][1]/summary)")


@pytest.mark.parametrize("path", chapter_pages())
def test_what_is_closed_with_nothing_between_is_one_fold(site, path):
    """Below what it is of; the code of a figure, which opens from its caption, stands above it."""
    page = lxml.html.parse(site / path)
    code = "details[contains(@class, 'above-input')]"
    closed = page.xpath(f"//div[contains(@class, 'cell') and {code}]")
    assert closed
    for place, cell in enumerate(closed):
        figure, after = cell.xpath(".//figure"), cell.getnext()
        assert figure or cell.xpath("./div[contains(@class, 'cell_output')]") == []
        if figure or after is None or place == 0:  # the first is the page's setup
            continue
        assert after.get("class") != "tformer-claims"
        if after in closed:
            shown = cell.getprevious()
            assert after.xpath(".//figure"), after.xpath("string(.//summary/p)")
            assert shown is not None  # whose code does not belong to the figure
            assert shown.xpath("self::div[contains(@class, 'cell')]/div[contains(@class, 'cell_output')]")


@pytest.fixture(scope="module")
def reading():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "book" / "site" / "extensions"))
        import tformer_reading

        yield tformer_reading


def closed_cell(title, shown=None):
    code = nodes.container("", nodes.literal_block(title, title), nb_element="cell_code_source")
    cell = nodes.container("", code, nb_element="cell_code", hide_mode="input", prompt_show=title)
    if shown is not None:
        cell += nodes.container("", shown, nb_element="cell_code_output")
    return cell


def test_a_page_of_exercises_has_contents(reading):
    title = reading.fold_title("", "", nodes.inline("", "Exercise 2.1 ", classes=["caption-number"]))
    title += [nodes.Text("(A < B)"), nodes.Text(" ")]
    title += nodes.inline("", "Easy · paper · about 10 minutes", classes=["exercise-kind"])
    solution = reading.fold("", reading.fold_title("", "Solution"), ids=["solution"])
    page = nodes.section("", reading.fold("", title, solution, ids=["ex-a"], open=True))
    listed = lxml.html.fromstring(reading.exercise_contents(page)).xpath(".//a")
    assert [link.get("href") for link in listed] == ["#ex-a"]
    assert listed[0].text_content() == "2.1 A < B easy · 10 min"
    assert reading.exercise_contents(nodes.section()) == ""


@pytest.mark.parametrize("path", exercise_pages())
def test_the_contents_of_exercises_are_all_exercises(site, path):
    page = lxml.html.parse(site / path)
    listed = page.xpath("//nav[@id='pst-page-toc-nav']//a/@href")
    assert listed == [f"#{name}" for name in page.xpath("//section[contains(@class, 'exercise')]/@id")]
    assert page.xpath("//button[contains(@class, 'tformer-here')]")


def test_code_is_joined_in_its_order_and_named(reading):
    parts = [f"Code: part {i}" for i in (1, 2, 3, 4, 4)]
    assert joined(
        reading,
        *map(closed_cell, ("Setup: imports", "Setup: imports", "Code: f, g", "Code")),
        closed_cell("Code of the table", nodes.paragraph("", "a table")),
        closed_cell("Code: data"),
        closed_cell("Code: the figure", nodes.figure()),
        nodes.paragraph("", "text"),
        *map(closed_cell, parts),
    ) == [
        ("Setup: imports", ["Setup: imports", "Setup: imports"]),
        "a table",
        ("Code: f, g; the table", ["Code: f, g", "Code", "Code of the table"]),
        ("Code: data; the figure", ["Code: data", "Code: the figure"]),
        "text",
        ("Code: part 1; part 2; …; part 4", parts),
    ]


def test_code_goes_into_the_claims_that_follow(reading):
    setup, text = closed_cell("Setup: imports"), nodes.paragraph("", "text")
    table = closed_cell("Code: the table", nodes.paragraph("", "a table"))
    found = joined(reading, setup, closed_cell("Code: f"), table, claims("a", "b"))
    code = ["Code: f", "Code: the table", "claims a, b"]
    assert found[1:] == ["a table", ("The 2 numbers behind this, and the code", code)]
    # Also after a paragraph, or two; and claims with nothing shown between are together.
    setup, table = (
        closed_cell("Setup: imports"),
        closed_cell("Code: the table", nodes.paragraph("", "a table")),
    )
    found = joined(reading, setup, table, text, claims("a"), closed_cell("Code: g"), claims("b"))
    code = ["Code: the table", "claims a", "Code: g", "claims b"]
    assert found[1:] == ["a table", "text", ("The 2 numbers behind this, and the code", code)]
    # Claims of a figure open from its caption, as its code does.
    setup, figure = closed_cell("Setup: imports"), closed_cell("Code: a figure", nodes.figure())
    found = joined(reading, setup, figure, claims("a", "b"))
    assert found[1:] == [
        ("Code: a figure", ["Code: a figure"]),
        ("The 2 numbers behind this", ["claims a, b"]),
    ]


def claims(*names):
    from tformer_claims import claims_fold

    made = [{"name": name, "text": name, "value": 1, "low": 1, "high": 1, "unit": ""} for name in names]
    code = f"claims {', '.join(names)}"
    return claims_fold("", nodes.container("", nodes.literal_block(code, code)), claims=made)


def joined(reading, *children):
    """What becomes of them: folds by title and code, else what is shown."""
    from tformer_claims import claims_fold, summary

    document = new_document("a chapter")
    section = nodes.section("", *children)
    document += section
    reading.JoinedCells(document).run()
    found = []
    for node in section.children:
        code = [block.astext() for block in node.findall(nodes.literal_block)]
        if isinstance(node, claims_fold):
            found.append((summary(node["claims"]) + ", and the code" * bool(node.get("more")), code))
        else:
            found.append((node["prompt_show"], code) if "prompt_show" in node else node.astext())
    return found


# --- the bibliography ---


def test_works_are_labelled_as_the_text_cites_them(site):
    page = lxml.html.parse(site / "book/bibliography.html")
    labels = page.xpath("//*[contains(@class, 'citation-list')]//*[@class='label']")
    texts = ["".join(label.xpath("./text()")) for label in labels]
    assert len(texts) > 50
    assert len(set(texts)) == len(texts)
    assert not [text for text in texts if not re.fullmatch(r".+ \(\d{4}[a-h]?\)", text)]
    assert "Vaswani et al. (2017)" in texts
    assert texts == sorted(texts, key=lambda text: texts.index(text))
    ids = page.xpath("//*[contains(@class, 'citation-list')]/*/@id")
    assert all(anchor.startswith("cite-") for anchor in ids)


def test_works_lead_back_to_the_sections_that_cite_them(site):
    page = lxml.html.parse(site / "book/bibliography.html")
    works = page.xpath("//*[contains(@class, 'citation-list')]/*")
    cited = [work for work in works if work.xpath(".//p[contains(@class, 'cited-in')]//a")]
    assert len(cited) == len(works)
    wrong, links, places = [], page.xpath("//p[contains(@class, 'cited-in')]//a"), {}
    for file in {link.get("href").split("#")[0] for link in links}:
        places[file] = {one.get("id"): one for one in lxml.html.parse(site / "book" / file).xpath("//*[@id]")}
    for link in links:
        file, anchor = link.get("href").split("#")
        place = places[file].get(anchor)
        key = link.xpath("string(ancestor::*[@role='listitem']/@id)")
        if place is None or not place.xpath(f".//a[contains(@href, '#{key}')]"):
            wrong.append(link.get("href"))
        is_heading = "ancestor::section/*[self::h1 or self::h2 or self::h3]"
        heading = place.xpath(is_heading) if place is not None else []
        numbers = [re.sub(r"\.$", "", (h.text_content().split() or [""])[0]) for h in heading]
        if link.text_content().removeprefix("chapter ") not in numbers and file[0].isdigit():
            wrong.append(f"{link.get('href')} says {link.text_content()}, is in {numbers}")
    assert wrong == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_where_one_arrives_is_lit(visit, scheme):
    page = visit("book/bibliography.html#cite-vaswani2017attention", scheme=scheme).page
    colour = "selector => getComputedStyle(document.querySelector(selector)).backgroundColor"
    assert page.evaluate(colour, ".citation:target") != page.evaluate(colour, ".citation:not(:target)")


# --- previews ---

LINKS = {
    "term": ("a[href*='glossary.html#term-']", r"\w{4}"),
    "equation": ("a.internal[href*='#equation-']", r"\(\d+\w?\.\d+\)"),
    "figure": ("a.internal[href*='#fig-']", r"Figure \d+"),
    "work": ("a[href*='bibliography.html#cite-']", r"\(\d{4}[a-h]?\)"),
}


def link_to(page, kind):
    """A link of a kind to what is not in view."""
    links = page.locator(f"article {LINKS[kind][0]}:not(.veil *):visible")  # not folded, nor veiled
    links.first.scroll_into_view_if_needed()
    return links.first


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("how", ["pointer", "keyboard"])
def test_a_link_shows_what_it_leads_to(visit, kind, how):
    chapter = "multi_head" if kind == "figure" else "transformer"
    seen = visit(f"book/{chapter}/chapter.html", height=260)  # low: what it leads to is out of view
    page = seen.page
    link = link_to(page, kind)
    if how == "pointer":
        link.hover()
    else:
        link.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        assert link.evaluate("link => link === document.activeElement")
    page.wait_for_selector(PREVIEW)
    eventually(page, lambda: re.search(LINKS[kind][1], page.locator(PREVIEW).inner_text()))
    assert link.get_attribute("aria-describedby") == page.locator(PREVIEW).get_attribute("id")
    assert link.get_attribute("title") is None
    box = page.locator(PREVIEW).bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 1280
    if kind == "figure":
        broken = "box => [...box.querySelectorAll('img')].filter(i => i.complete && !i.naturalWidth).length"
        assert page.locator(PREVIEW).evaluate(broken) == 0
    page.keyboard.press("Escape")
    assert page.locator(PREVIEW).count() == 0
    assert link.get_attribute("aria-describedby") is None
    assert seen.problems == []
    assert seen.outside == []


def test_a_preview_stays_while_one_points_at_it(visit):
    page = visit(CHAPTER, alone=True).page
    page.clock.install()  # the page's timers run when they are told to
    link_to(page, "term").hover()
    page.clock.run_for(1000)
    page.wait_for_selector(PREVIEW)
    page.locator(PREVIEW).hover()
    page.clock.run_for(5000)
    assert page.locator(PREVIEW).count() == 1
    page.mouse.move(2, 2)
    assert page.locator(PREVIEW).count() == 1  # time to move back
    page.clock.run_for(1000)
    assert page.locator(PREVIEW).count() == 0


@pytest.fixture
def phone(browser, address):
    """A chapter under a finger."""
    context = browser.new_context(viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(address + CHAPTER)
    yield page
    context.close()


def touch(page, locator):
    """A finger where a thing stands: unlike `tap` it scrolls nothing into view."""
    box = locator.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


@pytest.mark.parametrize("kind", ["term", "equation", "work"])
def test_a_tap_shows_in_a_sheet_what_a_link_leads_to(phone, kind):
    link = link_to(phone, kind)
    words, place = link.inner_text(), phone.evaluate("scrollY")
    touch(phone, link)
    sheet = phone.locator(".tformer-sheet:popover-open")
    sheet.wait_for()
    eventually(phone, lambda: re.search(LINKS[kind][1], sheet.inner_text()))
    if kind == "term":
        assert sheet.inner_text().startswith(words)
    assert phone.evaluate("scrollY") == place
    assert phone.locator(PREVIEW).count() == 0
    touch(phone, sheet.get_by_role("button", name="Close"))
    sheet.wait_for(state="detached")
    touch(phone, link)
    sheet.wait_for()
    there = link.evaluate("link => link.href")
    touch(phone, sheet.get_by_role("link", name="Go to the"))
    phone.wait_for_url(there)
    phone.go_back()
    eventually(phone, lambda: phone.evaluate("scrollY") == place)


def test_previews_need_no_server(browser, site):
    context = browser.new_context()
    page = context.new_page()
    page.goto((site / CHAPTER).as_uri())
    link_to(page, "work").hover()
    page.wait_for_selector(PREVIEW)
    context.close()


# --- where one is ---

MARKED = "selector => [...document.querySelectorAll(selector)].map(link => link.hash.slice(1))"
CONTENTS = "#tformer-page-toc a.active, #tformer-page-toc a[aria-current=true]"


@pytest.mark.parametrize("path", [CHAPTER, "book/gpt/chapter.html"])
def test_the_contents_mark_the_section_that_one_jumps_to(visit, path):
    page = visit(path, width=1440).page
    links = page.locator("#tformer-page-toc a.nav-link")
    anchors = [link.get_attribute("href")[1:] for link in links.all()]
    for place in (len(anchors) - 1, 0, len(anchors) // 2, len(anchors) - 2):
        links.nth(place).evaluate("link => link.click()")
        eventually(page, lambda wanted=[anchors[place]]: page.evaluate(MARKED, CONTENTS) == wanted)


def test_the_contents_mark_the_section_that_one_scrolls_to(visit):
    page = visit(CHAPTER, width=1440).page
    page.evaluate("location.hash = '#what-you-learned'")
    eventually(page, lambda: page.evaluate(MARKED, CONTENTS) == ["what-you-learned"])
    page.mouse.move(600, 500)
    page.mouse.wheel(0, -1_000_000)
    eventually(page, lambda: page.evaluate(MARKED, CONTENTS) in ([], ["a-lookup-that-always-answers"]))


@pytest.mark.parametrize("path", chapter_pages())
def test_the_sections_stand_once_beside_the_chapter(site, path):
    page = lxml.html.parse(site / path)
    listed = page.xpath("//nav[@id='pst-page-toc-nav']//li[contains(@class, 'toc-h2')]/a")
    headings = page.xpath("//article/section/section/h2")
    assert len(listed) == len(headings) > 2
    assert [link.get("href")[1:] for link in listed] == [h.getparent().get("id") for h in headings]
    assert all(re.match(r"\d+\w?\.\d+\. \S", link.text_content().strip()) for link in listed)
    in_sidebar = page.xpath("//*[contains(@class, 'bd-sidebar-primary')]//a[starts-with(@href, '#')]")
    assert [link.get("href") for link in in_sidebar if link.get("href") != "#"] == []


SECTIONS = "#tformer-sections:popover-open"


@pytest.mark.parametrize("width", [360, 1440])
def test_the_bar_names_the_section_and_opens_the_list(visit, width):
    page = visit(CHAPTER, width=width, height=700).page
    bar = page.locator(".tformer-here")
    assert bar.inner_text().strip(" ▾") == page.evaluate(
        "document.querySelector('article h1').textContent.replace(/#$/, '').trim()"
    )
    bar.click()
    link = page.locator(f"{SECTIONS} .page-toc a:visible").nth(4)
    words = link.inner_text()
    link.click()
    page.locator(SECTIONS).wait_for(state="detached")
    eventually(page, lambda: bar.inner_text().strip(" ▾") == words)
    assert page.evaluate(MARKED, CONTENTS) == [page.evaluate("location.hash.slice(1)")]
    bar.click()
    bold = page.locator(f"{SECTIONS} .page-toc a").evaluate_all(
        "all => all.filter((a) => getComputedStyle(a).fontWeight >= 600).map((a) => a.textContent.trim())"
    )
    assert bold == [words]


def test_the_list_opens_under_its_button_and_moves_nothing(visit):
    page = visit(CHAPTER, width=1440).page
    place = "document.querySelector('article h2').getBoundingClientRect().x"
    before = page.evaluate(place)
    page.locator(".tformer-here").click()
    bar, box = (page.locator(part).bounding_box() for part in (".tformer-here", SECTIONS))
    assert box["width"] == 320
    assert abs(box["x"] - bar["x"]) < 2
    assert 0 <= box["y"] - bar["y"] <= bar["height"] + 12
    assert page.evaluate(place) == before
    page.keyboard.press("Escape")
    page.locator(SECTIONS).wait_for(state="detached")


def test_back_from_a_section_of_the_list_leads_to_where_one_was(phone):
    phone.evaluate("document.querySelectorAll('article h2')[2].scrollIntoView()")
    place = phone.evaluate("scrollY")
    assert place > 2000
    touch(phone, phone.locator(".tformer-here"))
    phone.locator(SECTIONS).wait_for()
    assert phone.evaluate("scrollY") == place
    touch(phone, phone.locator(f"{SECTIONS} .page-toc a", has_text="2.5. "))
    eventually(phone, lambda: phone.evaluate("scrollY") > place + 2000)
    phone.go_back()
    eventually(phone, lambda: phone.evaluate("scrollY") == place)


def test_the_contents_stay_beside_the_text_and_give_way_to_what_is_wide(visit):
    page = visit(CHAPTER, width=1440).page
    contents = page.locator(".sidebar-secondary-items")
    passed = "list => list.classList.contains('passed')"
    page.add_style_tag(content=".tformer-figure { display: none; }")  # they may be wide, too
    page.evaluate("document.querySelectorAll('article h2')[4].scrollIntoView()")
    eventually(page, lambda: contents.bounding_box()["y"] == 84)
    for width, gone in (
        (100, False),
        (900, True),
    ):  # its frame is as wide as the margin allows: its lines count
        page.evaluate(
            """width => {
              const code = document.createElement("div");
              code.id = "long";
              code.className = "cell";
              code.innerHTML = `<div class="cell_input"><div class="highlight"><pre><span
                style="display: inline-block; width: ${width}px">x</span></pre></div></div>`;
              document.getElementById("long")?.remove();
              document.querySelectorAll("article h2")[4].after(code);
              document.querySelectorAll("article h2")[4].scrollIntoView();
            }""",
            width,
        )
        page.mouse.wheel(0, 4)
        eventually(page, lambda gone=gone: contents.evaluate(passed) == gone)


def test_a_name_that_is_cut_keeps_its_mark(visit):
    page = visit(CHAPTER, width=360, height=700).page
    bar = page.locator(".tformer-here")
    page.evaluate("document.querySelectorAll('article h2')[0].scrollIntoView()")
    eventually(page, lambda: bar.inner_text().startswith("2.1."))
    room, mark, name, whole = bar.evaluate("""bar => {
      const text = document.createRange();
      text.selectNodeContents(bar);
      const after = getComputedStyle(bar, "::after");
      return [bar.clientWidth - parseFloat(getComputedStyle(bar).paddingRight), [after.position, after.right],
        bar.getBoundingClientRect().right, text.getBoundingClientRect().width];
    }""")
    assert whole > room  # it is cut
    assert mark == ["absolute", "0px"]
    assert bar.evaluate("bar => bar.clientWidth") - room >= 15
    assert name <= page.locator(".tformer-ask").bounding_box()["x"]


@pytest.mark.parametrize("width", [360, 768, 1100])
def test_the_bar_opens_the_chapters(visit, width):
    page = visit(CHAPTER, width=width, height=700).page
    brand, here = (page.locator(part).bounding_box() for part in (".tformer-brand", ".tformer-here"))
    assert brand["x"] + brand["width"] <= here["x"]
    page.get_by_role("button", name="Chapters").click()
    assert page.locator("dialog[open] a.reference:visible").count() > 15
    page.keyboard.press("Escape")
    page.locator("dialog[open]").wait_for(state="detached")


def test_of_an_exercise_the_bar_says_the_name_alone(visit):
    page = visit("book/attention/exercises.html", width=1440).page
    page.evaluate("location.hash = 'ex-attention-roles'")
    bar = page.locator(".tformer-here")
    eventually(page, lambda: bar.inner_text().strip(" ▾") == "2.3 One vector for three roles")


def test_the_title_of_an_exercise_is_larger_than_its_text(visit):
    page = visit("book/attention/exercises.html", width=1440).page
    sizes = page.evaluate("""() => ['.admonition-title', ':not(summary) > p'].map(name =>
      parseFloat(getComputedStyle(document.querySelector(`.exercise ${name}`)).fontSize))""")
    assert sizes == [20, 19]


@pytest.mark.parametrize("width", [1100, 1440])
def test_contents_and_numbers_look_alike_everywhere(visit, width):
    page = visit(CHAPTER, width=width).page
    size = "getComputedStyle(document.querySelector('.bd-sidebar-secondary .toc-entry > a')).fontSize"
    assert page.evaluate(size) == "14.4px"
    looks = page.locator(":is(h2, h3) > .section-number").evaluate_all(
        "all => all.map(one => [getComputedStyle(one).color, getComputedStyle(one).fontWeight].join())"
    )
    assert len(looks) > 5
    assert len(set(looks)) == 1


def test_what_a_mouse_clicks_is_large_enough(visit):
    page = visit(CHAPTER, width=1440).page
    boxes = page.locator(":is(.tformer-elsewhere, .tformer-files) :is(a, button):visible").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(box => Math.min(box.width, box.height))"
    )
    assert len(boxes) > 10
    assert min(boxes) >= 23.9


TOUCHED = """() => [...document.querySelectorAll(`.tformer-bar :is(a, button), .tformer-tabs a,
    .question button, .veil-cover button, .bd-article details:not(.tformer-claims) > summary,
    :is(dialog, [popover]) :is(a, button)`)]
  .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 40)
  .map((one) => [one.textContent.trim() || one.className, one.getBoundingClientRect().height])"""


def test_what_a_finger_touches_is_high_enough(visit):
    page = visit(CHAPTER, width=360, height=700).page
    page.locator(".question").first.get_by_role("button").first.click()
    assert page.locator(".veil-cover button, .question-again button").count() > 2
    for name in (None, ".tformer-here", ".primary-toggle"):
        if name:
            page.locator(name).click()
            assert page.locator(":is(dialog[open], :popover-open) a:visible").count() > 5
        assert page.evaluate(TOUCHED) == []
        page.keyboard.press("Escape")


MARKS = """all => all.filter(
  (fold) => fold.querySelector('summary').checkVisibility() // not one that a figure's caption opens
    && !fold.matches('.tformer-told, [inert] *'),
).map((fold) => {
  const ring = fold.querySelector('summary').getBoundingClientRect();
  const before = fold.previousElementSibling, words = document.createRange();
  words.selectNodeContents(before);
  const lines = [...words.getClientRects()].filter(line => line.width > 1 && line.height > 1);
  const last = before.matches('p') ? lines.at(-1) : before.getBoundingClientRect();
  return { paragraph: before.matches('p'), middle: (ring.top + ring.bottom) / 2,
    left: ring.left, right: ring.right,
    top: last.top, bottom: last.bottom, start: last.left, end: last.right };
})"""


@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("path", [LABORATORY, "book/inside/chapter.html"])
def test_a_claim_s_mark_stands_in_the_last_line_of_what_it_is_of(visit, path, width):
    """In the margin, and on a phone behind the last word, away from the edge."""
    page = visit(path, width=width).page
    marks = page.locator(".tformer-claims:not([open])").evaluate_all(MARKS)
    assert marks
    for mark in marks:
        if mark["paragraph"]:
            assert mark["top"] <= mark["middle"] <= mark["bottom"], mark
            assert width > 360 or 0 <= mark["left"] - mark["end"] < 12, mark
        else:
            assert mark["top"] < mark["middle"] < mark["bottom"] + 16, mark
        assert mark["right"] <= (width - 24 if width == 360 else mark["start"]), mark


def test_the_first_marks_of_a_page_say_what_they_are(visit):
    page = visit("book/inside/chapter.html", width=360).page
    told = page.locator(".tformer-told")
    assert 1 <= told.count() <= 2
    assert told.locator("summary > span").first.bounding_box()["width"] > 100
    assert len(set(told.evaluate_all("all => all.map(one => 'recorded' in one.dataset)"))) == told.count()


def test_a_stroke_asks_the_book(visit):
    page = visit(CHAPTER).page
    page.keyboard.press("/")
    page.wait_for_selector("dialog[open] input")
    page.keyboard.type("a/b")
    assert page.locator("dialog[open] input").input_value() == "a/b"


# --- seen ---

FOCUSED = """() => {
  const e = document.activeElement, style = getComputedStyle(e);
  return {
    what: e.outerHTML.slice(0, 120),
    body: e === document.body,
    seen: parseFloat(style.outlineWidth) >= 2 && style.outlineStyle !== 'none'
      || e.matches('.form-control') && getComputedStyle(e.closest('form')).boxShadow !== 'none',
  };
}"""


@pytest.mark.parametrize(("path", "width"), [(CHAPTER, 1440), (CHAPTER, 360), ("book/index.html", 1280)])
def test_focus_is_seen_wherever_the_tab_key_leads(visit, path, width):
    page = visit(path, width=width).page
    unseen, kinds = [], set()
    for _ in range(70):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused["body"]:
            break
        kinds.add(focused["what"].split()[0].strip("<>"))
        if not focused["seen"]:
            unseen.append(focused["what"])
    assert unseen == []
    assert {"a", "button"} <= kinds


def test_a_heading_outweighs_those_below_it(visit):
    page = visit(CHAPTER).page
    weights = page.evaluate(
        """() => ['h1', 'h2', 'h3'].map(name => {
          const style = getComputedStyle(document.querySelector(`article ${name}`));
          return [parseFloat(style.fontSize), parseFloat(style.marginTop)];
        })"""
    )
    (one, _), (two, above), (three, less) = weights
    assert one > two > three
    assert above > less


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_first_visit_has_the_reader_s_colours_and_no_complaint(visit, scheme):
    seen = visit(CHAPTER, scheme=scheme, first=True)
    assert seen.problems == []
    assert seen.page.evaluate("document.documentElement.dataset.theme") == scheme


@pytest.mark.parametrize("path", toc_pages())
def test_no_script_makes_toggles(site, path):
    page = lxml.html.parse(site / path)
    assert page.xpath("//script[contains(@src, 'togglebutton')]") == []
