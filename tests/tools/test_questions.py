"""Questions of a few seconds: what is wrong with one is said, and each stands where it belongs."""

import json
import re
from pathlib import Path

import pytest
import questions as kept
from chapters import chapters
from notebook_claims import claims_in

GOOD = {
    "ask": "How many?",
    "right": "Two.",
    "because": "One and one.",
    "wrong": {"Three.": "No."},
    "held": "a.b",
}
ASKED = re.compile(r"^:::\{(predict|self-test|recall)\} (\S+)\n:::$", re.MULTILINE)


def written(tmp_path: Path, **changes) -> Path:
    told = {key: value for key, value in (GOOD | changes).items() if value is not None}
    file = tmp_path / "addition" / kept.FILE
    file.parent.mkdir()
    file.write_text(json.dumps({"addition-two": told}), "utf8")  # JSON is YAML
    return file


def test_a_question_is_read_with_its_chapter(tmp_path):
    (question,) = kept.read(written(tmp_path))
    assert (question.label, question.chapter, question.held) == ("addition-two", "addition", "a.b")
    assert sorted(question.answers()) == sorted(question.answers("there")) == ["Three.", "Two."]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"because": None}, "because is no str"),
        ({"right": 2}, "right is no str"),
        ({"hint": "Count."}, "hint is read by nobody"),
        ({"wrong": {}}, "0 wrong answers"),
        ({"wrong": {"Two.": "No."}}, "among the wrong"),
        ({"wrong": {"Three.": None}}, "None is no text"),
    ],
)
def test_what_is_wrong_with_a_question_is_said(tmp_path, changes, told):
    with pytest.raises(ValueError, match=f"addition-two: .*{told}"):
        kept.read(written(tmp_path, **changes))


def test_two_questions_have_two_labels(tmp_path, monkeypatch):
    file = written(tmp_path)
    monkeypatch.setattr(kept, "files", lambda: [file, file])
    with pytest.raises(ValueError, match="addition-two is in addition, too"):
        kept.questions()


def test_the_right_answer_has_no_place_of_its_own():
    places = [q.answers().index(q.right) for q in kept.questions().values() if len(q.wrong) == 2]
    assert max(places.count(n) for n in range(3)) < 0.7 * len(places)


def cells_of(chapter) -> list[dict]:
    return [c for path in chapter.notebooks for c in json.loads(path.read_text("utf8"))["cells"]]


def asked(chapter) -> list[tuple[str, str]]:
    """The kind and the label of each question on the chapter's pages, in their order."""
    texts = ("".join(cell["source"]) for cell in cells_of(chapter) if cell["cell_type"] == "markdown")
    return [found.groups() for text in texts for found in ASKED.finditer(text)]


CHAPTERS = [chapter for chapter in chapters() if (chapter.folder / kept.FILE).exists()]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_each_question_stands_once_in_its_chapter_and_what_is_recalled_in_a_later_one(chapter):
    own = {question.label for question in kept.read(chapter.folder / kept.FILE)}
    here = asked(chapter)
    first = [label for kind, label in here if kind != "recall"]
    assert sorted(first) == sorted(own)
    order = [each.name for each in chapters()]
    for kind, label in here:
        if kind == "recall":
            home = kept.questions()[label].chapter
            assert order.index(home) < order.index(chapter.name), f"{label} comes later than {chapter.name}"


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_the_right_answer_is_held_on_the_page(chapter):
    """By a claim, by a cell, or by an equation that is derived there."""
    cells = cells_of(chapter)
    there = {claim["name"] for claim in claims_in(cells)} | {cell["id"] for cell in cells}
    there |= {
        name
        for cell in cells
        for name in re.findall(r"^\$\$ \((eq-[\w-]+)\)", "".join(cell["source"]), re.MULTILINE)
    }
    for question in kept.read(chapter.folder / kept.FILE):
        assert question.held in there, f"{question.label} is held by {question.held}, which is not there"
