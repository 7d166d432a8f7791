"""The checker knows right from wrong: references pass, mistakes are told apart, the book holds solutions."""

import json
from pathlib import Path

import pytest

from tformer_lib.exercises import check
from tformer_lib.exercises.checker import exercises

BOOK = Path(__file__).parents[1] / "book"
EXERCISES = exercises()
MISTAKES = [(e.name, m) for e in EXERCISES.values() for m in e.mistakes]


def printed(notebook: Path) -> str:
    """All text that the notebook's cells show."""
    cells = json.loads(notebook.read_text("utf8"))["cells"]
    outputs = [o for cell in cells for o in cell.get("outputs", [])]
    texts = [o.get("text") or o.get("data", {}).get("text/plain", "") for o in outputs]
    return "\n".join("".join(text) for text in texts)


@pytest.mark.parametrize("name", EXERCISES)
def test_the_reference_passes(name):
    verdict = check(name, EXERCISES[name].reference)
    assert verdict.passed, verdict.message


@pytest.mark.parametrize(("name", "mistake"), MISTAKES, ids=[f"{n}: {m.name}" for n, m in MISTAKES])
def test_each_mistake_fails_with_its_own_hint(name, mistake):
    verdict = check(name, mistake.variant)
    assert not verdict.passed
    assert verdict.mistake == mistake.name
    assert mistake.hint in verdict.message


@pytest.mark.parametrize("name", EXERCISES)
def test_the_book_has_a_solution_that_passes(name):
    assert any(f"{name}: passed on" in printed(notebook) for notebook in BOOK.glob("*.ipynb"))


@pytest.mark.parametrize("name", EXERCISES)
def test_hints_are_distinct_and_speak(name):
    hints = [m.hint for m in EXERCISES[name].mistakes]
    assert len(hints) == len(set(hints)) >= 2
    assert all(len(hint) > 40 and hint.endswith(".") for hint in hints)


def test_mistakes_named_by_the_book_are_all_known():
    """The slips that readers of transformer books make most are each recognised somewhere."""
    known = " ".join(m.name for _, m in MISTAKES)
    for slip in (
        "softmax over",
        "missing scale",
        "scale by D ",
        "mask applied after softmax",
        "mask inverted",
        "view without transpose",
        "causal mask off by one",
        "dropout on at evaluation",
    ):
        assert slip in known + " ", slip
