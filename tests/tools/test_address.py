"""`make address`: the repository's address is changed wherever it stands, or nowhere."""

import shutil
import subprocess
from pathlib import Path

import address
import pytest

ROOT = Path(__file__).parents[2]
NEW = "https://github.com/some-body/a.book"


@pytest.fixture
def copy(tmp_path):
    for path in address.files(ROOT):
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(path, target)
    for path in (ROOT / "_toc.yml", *(ROOT / "book").glob("*/chapter.yml")):  # say which notebooks there are
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    return tmp_path


def texts(folder):
    return {path: path.read_text("utf8") for path in address.files(folder)}


def test_it_stands_where_the_tool_looks_and_nowhere_else():
    old = address.current(ROOT)
    found = subprocess.run(["git", "grep", "-lF", old], cwd=ROOT, capture_output=True, text=True)
    names = {str(path.relative_to(ROOT)) for path in address.files(ROOT)}
    assert set(found.stdout.split()) <= names
    assert all(old in text for text in texts(ROOT).values())


def test_everything_is_changed_and_changes_back(copy):
    before, old = texts(copy), address.current(copy)
    assert len(address.change(copy, NEW + "/")) == len(before)
    assert address.current(copy) == NEW
    owner = old.split("/")[-2]
    assert not any(owner in text for text in texts(copy).values())
    assert "https://some-body.github.io/a.book/" in (copy / "README.md").read_text("utf8")
    address.change(copy, old)
    assert texts(copy) == before


@pytest.mark.parametrize(
    "bad", ["", "https://example.org/a/b", "https://github.com/only", "git@github.com:a/b"]
)
def test_what_is_no_address_is_refused(copy, bad):
    before = texts(copy)
    with pytest.raises(ValueError, match="an address is https:"):
        address.change(copy, bad)
    assert texts(copy) == before


def test_a_file_without_the_address_stops_it_before_anything_is_changed(copy):
    (copy / "CITATION.cff").write_text("cff-version: 1.2.0\n", "utf8")
    before = texts(copy)
    with pytest.raises(ValueError, match=r"CITATION\.cff does not name"):
        address.change(copy, NEW)
    assert texts(copy) == before
