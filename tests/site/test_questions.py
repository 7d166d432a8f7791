"""Questions of a few seconds: chosen by mouse or keyboard, heard, and there without scripts."""

import sys

import pytest
from questions import questions

from tests.site.pages import GO_TO_WORDS, ROOT, eventually

PAGE = "book/attention/chapter.html"
ASKED = "book/attention/laboratory.html"  # the page of the self-test
LABEL = "attention-doubled"
PREDICT = "attention-narrow"
VEILED = f"#q-{PREDICT} + .veil > .veil-held[inert]"
SHIFTS = """window.shifts = 0; new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifts += one.value;
}).observe({ type: "layout-shift", buffered: true });"""


@pytest.fixture
def asked(visit):
    """A page's question, its answers as buttons."""
    seen = visit(ASKED)
    return seen, seen.page.locator(f"#q-{LABEL}")


def test_an_answer_shows_its_reason_and_the_right_one(asked):
    seen, box = asked
    question = questions()[LABEL]
    told = box.locator("[role=status]")
    assert box.get_by_role("button").all_inner_texts() == question.answers()
    assert question.because not in box.inner_text()
    wrong, other = question.wrong
    box.get_by_role("button", name=wrong).click()
    assert told.inner_text().startswith("Not this one. Nothing changes if a number is added")
    assert question.because in box.inner_text()
    assert question.wrong[other] not in box.inner_text()  # nobody asked
    box.get_by_role("button", name=question.right).focus()
    seen.page.keyboard.press("Enter")
    assert told.inner_text() == f"Right. {question.because}"
    assert box.locator(".chosen").count() == 2
    assert box.locator(".chosen.right").count() == 1
    assert not seen.problems


def test_formulas_of_reasons_are_set(visit):
    box = visit("book/sequences/chapter.html").page.locator("#q-sequences-die")
    box.get_by_role("button", name="8 bits").click()
    assert box.locator(".right mjx-container:visible").count() >= 1


def test_the_right_answer_cannot_be_seen_before_one_is_chosen(asked):
    _, box = asked
    looks = box.get_by_role("button").evaluate_all(
        "all => all.map(b => [b, b.parentElement].map(e => ['color', 'border', 'background', 'fontWeight']"
        ".map(key => getComputedStyle(e)[key]).join()).join())"
    )
    assert len(set(looks)) == 1


def test_a_question_of_another_chapter_says_of_which(visit):
    page = visit(PAGE, alone=True).page
    fold, box = page.locator("details.recalled"), page.locator("#q-sequences-one-vector")
    assert box.count() == 0  # closed, and so not in the document
    fold.locator("summary").click()
    assert box.locator(".question-kind").inner_text() == "From Chapter 1"
    question = questions()["sequences-one-vector"]
    assert sorted(box.get_by_role("button").all_inner_texts()) == sorted(question.answers())
    box.get_by_role("button", name=question.right).click()
    page.reload()
    fold.locator("summary").click()
    assert box.locator(".chosen.right").count() == 1


@pytest.mark.parametrize(
    "how", ["an answer", "the button", "an address", "the browser's search", "a phone's"]
)
def test_what_tells_the_answer_is_veiled_until(visit, how):
    page = visit(PAGE).page
    held = page.locator(f"#q-{PREDICT} + .veil > .veil-held")
    veiled = page.locator(VEILED)
    assert veiled.count() == 1
    assert held.locator("img:visible").count() == 0
    assert "the mean of the day" in held.text_content()
    assert "Nearly everything is here" not in held.text_content()  # that does not tell it
    height = held.bounding_box()["height"]
    if how == "an answer":
        page.locator(f"#q-{PREDICT}").get_by_role("button").first.click()
    elif how == "the button":
        page.locator(f"#q-{PREDICT} + .veil").get_by_role("button", name="show it").click()
    elif how == "an address":
        page.evaluate("location.hash = 'fig-attention-day'")
    elif how == "a phone's":
        page.evaluate(GO_TO_WORDS, "the mean of the day")
        page.click("#go")
    else:
        page.keyboard.press("Control+f")
    eventually(page, lambda: veiled.count() == 0)
    assert held.locator("img:visible").count() == 1
    assert page.get_by_role("button", name="show it").count() == (0 if how == "the browser's search" else 1)
    assert held.bounding_box()["height"] == pytest.approx(height, abs=1)


def test_the_numbers_of_what_is_veiled_cannot_be_opened_before(visit):
    """Their mark stands behind the paragraph that tells the answer."""
    page = visit("book/inside/chapter.html").page
    assert page.locator(".veil-held[inert] .tformer-claims").count() >= 1
    assert page.locator(":is(.veil, .question-predict) + .tformer-claims").count() == 0


def test_on_paper_the_answers_are_there_and_what_is_said_of_them_at_the_end(visit):
    page = visit("book/inside/chapter.html").page
    page.emulate_media(media="print")
    page.wait_for_selector("#print-heads", state="attached")
    asked = [
        one
        for label in page.locator(".question").evaluate_all("all => all.map(one => one.id)")
        for one in [questions()[label.removeprefix("q-")]]
    ]
    buttons = page.locator(".question-answers button")
    assert buttons.count() == sum(len(one.answers()) for one in asked) > 6
    assert all(button.is_visible() for button in buttons.all())
    assert page.locator(".question-answers [class*=why-]:visible").count() == 0
    assert page.locator("#print-answers li").count() == len(asked)
    page.emulate_media(media="screen")
    page.wait_for_selector("#print-answers", state="detached")


def test_what_is_shown_from_below_is_read_from_its_start(visit):
    page = visit(PAGE, width=360, height=640, alone=True).page
    cover = page.locator(f"#q-{PREDICT} + .veil")
    cover.evaluate("e => scrollBy(0, e.getBoundingClientRect().bottom - 300)")
    cover.get_by_role("button", name="show it").click()
    eventually(page, lambda: 0 <= cover.locator("> .veil-held").bounding_box()["y"] < 100)


def test_a_link_from_elsewhere_lands_on_what_was_veiled(visit):
    page = visit(f"{PAGE}#fig-attention-day").page
    assert page.locator(VEILED).count() == 0
    eventually(page, lambda: 0 <= page.locator("#fig-attention-day").bounding_box()["y"] < 200)


@pytest.mark.parametrize("kind", ["paper", "without scripts"])
def test_nothing_is_veiled(visit, kind):
    page = visit(PAGE, scripts=kind == "paper", alone=True).page
    if kind == "paper":
        page.emulate_media(media="print")
    assert page.locator(".veil-cover:visible").count() == 0
    looks = "e => { const s = getComputedStyle(e); return [s.filter, s.opacity, s.visibility] }"
    assert page.locator("#fig-attention-day").evaluate(looks) == ["none", "1", "visible"]
    for part in page.locator(".veil-held").all():
        assert part.evaluate(looks) == ["none", "1", "visible"]


@pytest.mark.parametrize("width", [360, 1440])
def test_nothing_moves_when_questions_come(visit, width):
    page = visit(PAGE, width=width, alone=True).page
    page.add_init_script(SHIFTS)
    page.reload()
    assert page.locator(VEILED).count() == 1
    page.evaluate("document.fonts.ready.then(() => new Promise((done) => setTimeout(done)))")
    assert page.evaluate("shifts") <= 0.02
    page.evaluate("""() => {
      window.veiled = document.querySelector("article").offsetHeight;
      for (const veil of document.querySelectorAll(".veil")) veil.replaceWith(...veil.firstChild.childNodes);
    }""")
    assert page.evaluate("document.querySelector('article').offsetHeight - veiled") == 0


def test_answers_are_there_after_a_reload_until_they_are_forgotten(visit):
    page = visit(PAGE, alone=True).page
    box = page.locator(f"#q-{PREDICT}")
    wrong = next(iter(questions()[PREDICT].wrong))
    foot = page.locator(".question-foot")
    assert foot.is_hidden()
    box.get_by_role("button", name=wrong).click()
    page.locator("#q-attention-with-the-root + .veil").get_by_role("button", name="show it").click()
    page.reload()
    assert box.locator(".chosen").all_inner_texts()[0].startswith(wrong)
    assert box.locator("[role=status]").inner_text() == ""  # nothing is announced
    assert page.locator(".veil-held[inert]").count() == 0
    box.get_by_role("button", name="Ask again").click()
    assert page.locator(VEILED).count() == 1
    page.reload()
    assert box.locator(".chosen").count() == 0
    assert page.locator(".veil-held[inert]").count() == 1
    foot.get_by_role("button", name="Forget them all").click()
    assert foot.is_hidden()
    assert page.evaluate("localStorage.getItem('tformer.answers')") is None


@pytest.mark.parametrize(
    "held", ["nonsense", '{"version": 0}', '{"version": 1, "pages": {"' + PAGE[:-5] + '": 3}}']
)
def test_what_is_not_ours_is_left_alone(visit, held):
    seen = visit(PAGE, alone=True)
    seen.page.evaluate("held => localStorage.setItem('tformer.answers', held)", held)
    seen.page.reload()
    assert seen.page.locator(VEILED).count() == 1
    assert not seen.problems


def test_where_nothing_can_be_kept_questions_work(visit):
    seen = visit(PAGE, alone=True)
    forbid = """Object.defineProperty(window, "localStorage", { get() { throw new DOMException("no") } });"""
    seen.page.add_init_script(f"if (document.documentElement) {{ {forbid} }}")
    seen.page.reload()
    seen.page.locator(f"#q-{PREDICT}").get_by_role("button").first.click()
    assert seen.page.locator(VEILED).count() == 0
    assert not [problem for problem in seen.problems if "questions" in problem]


def test_without_scripts_answers_are_a_list_and_the_fold_has_the_right_one(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}{ASKED}")
    box = page.locator(f"#q-{LABEL}")
    assert box.locator("li").all_inner_texts() == questions()[LABEL].answers()
    box.locator("summary").click()
    assert questions()[LABEL].because in box.locator("details").inner_text()
    context.close()


def test_in_a_notebook_the_answer_is_closed_below_the_question():
    sys.path.insert(0, str(ROOT / "book" / "site" / "extensions"))
    from tformer_notebook_text import Text

    class Links:
        def question(self, kind, label):
            return "Predict", questions()[label]

    shown = Text(Links(), pytest.fail).markdown(f"Before.\n\n:::{{predict}} {LABEL}\n:::\n\nAfter.")
    question = questions()[LABEL]
    before, _, after = shown.partition("<details><summary>Answer</summary>")
    assert before.startswith(f"Before.\n\n> **Predict.** {question.ask}\n>\n> - ")
    assert all(f"> - {answer}" in before for answer in question.answers())
    assert question.because not in before
    reasons, _, rest = after.partition("</details>")
    assert f"**{question.right}** {question.because}" in reasons
    assert all(f"*{answer}* {why}" in reasons for answer, why in question.wrong.items())
    assert rest.strip() == "After."
