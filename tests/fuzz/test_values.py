"""Odd numbers, tokens and tensors meet an error of ours, or a finite result (`values.py`)."""

from tests.fuzz import run


def test_odd_numbers_tokens_and_tensors(tmp_path):
    assert run("values.py", tmp_path) > 4000
