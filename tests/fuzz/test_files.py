"""Damaged files meet an error of ours, or a finite result (`files.py`)."""

from tests.fuzz import run


def test_damaged_files(tmp_path):
    assert run("files.py", tmp_path) > 1200
