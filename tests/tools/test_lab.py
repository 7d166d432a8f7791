"""The reader's folder: what was changed there stays."""

import json

from lab import WRITTEN, copy, pinned


def notebook(folder, name, text):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, "utf8")


def test_what_the_reader_changed_stays_and_the_newer_one_lies_beside_it(tmp_path):
    book, mine = tmp_path / "book", tmp_path / "mine"
    for name in ("attention/chapter.ipynb", "attention/exercises.ipynb", "gpt/chapter.ipynb"):
        notebook(book, name, "one")
    assert len(copy(book, mine).written) == 3
    notebook(mine, "attention/exercises.ipynb", "my answer")
    again = copy(book, mine)
    assert (again.written, again.kept, again.beside) == ([], ["attention/exercises.ipynb"], [])
    notebook(book, "attention/exercises.ipynb", "two")
    notebook(book, "gpt/chapter.ipynb", "two")
    later = copy(book, mine)
    assert later.written == ["gpt/chapter.ipynb"]
    assert later.beside == ["attention/exercises.new.ipynb"]
    assert (mine / "attention/exercises.ipynb").read_text() == "my answer"
    assert (mine / "attention/exercises.new.ipynb").read_text() == "two"
    assert copy(book, mine).beside == []  # it is told once


def test_a_notebook_that_was_there_before_is_the_reader_s(tmp_path):
    book, mine = tmp_path / "book", tmp_path / "mine"
    notebook(book, "gpt/chapter.ipynb", "one")
    notebook(mine, "gpt/chapter.ipynb", "older than this command")
    assert copy(book, mine).kept == ["gpt/chapter.ipynb"]
    assert (mine / "gpt/chapter.ipynb").read_text() == "older than this command"
    assert set(json.loads((mine / WRITTEN).read_text())) == {"gpt/chapter.ipynb"}


def test_jupyterlab_comes_in_the_pinned_version():
    assert pinned("jupyterlab").startswith("jupyterlab==")
    assert pinned("no-such-package") == "no-such-package"
