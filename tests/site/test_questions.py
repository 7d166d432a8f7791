"""Questions of a few seconds: chosen by mouse or keyboard, heard, and there without scripts."""

import sys

import pytest
from questions import questions

from tests.site.pages import ROOT

PAGE = "book/attention/chapter.html"
LABEL = "attention-doubled"


@pytest.fixture
def asked(visit):
    """A page's question, its answers as buttons."""
    seen = visit(PAGE)
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
    box = visit(PAGE).page.locator("#q-sequences-targets")
    assert box.locator(".question-kind").inner_text() == "From Chapter 1"
    question = questions()["sequences-targets"]
    assert sorted(box.get_by_role("button").all_inner_texts()) == sorted(question.answers())


def test_without_scripts_answers_are_a_list_and_the_fold_has_the_right_one(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}{PAGE}")
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
