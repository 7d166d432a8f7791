"""Answers that are none meet an error of ours, or a finite result (`candidates.py`)."""

from tests.fuzz import run


def test_answers_that_are_none(tmp_path):
    assert run("candidates.py", tmp_path) > 700
