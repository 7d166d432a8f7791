"""The parts of what runs notebooks as Colab would; a workflow runs the whole."""

import subprocess
import sys

import colab
import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook


def test_an_interpreter_older_than_colab_s_is_refused(monkeypatch):
    monkeypatch.setattr(colab, "OLDEST", (99, 0))
    with pytest.raises(SystemExit, match="Colab has Python 99"):
        colab.version_of(sys.executable)
    with pytest.raises(SystemExit, match="no Python at"):
        colab.version_of("/no/such/python")
    monkeypatch.setattr(colab, "OLDEST", (3, 0))
    assert colab.version_of(sys.executable) == sys.version_info[:2]


def test_notebooks_are_named_by_folder_and_file(tmp_path):
    for name in ("attention/chapter.ipynb", "attention/exercises.ipynb", "gpt/chapter.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    assert [file.stem for file in colab.named([], tmp_path)] == ["chapter", "exercises"]
    assert colab.named(["gpt/chapter"], tmp_path) == [tmp_path / "gpt/chapter.ipynb"]
    with pytest.raises(SystemExit, match="run `make notebooks` first"):
        colab.named(["gpt/laboratory"], tmp_path)


def test_git_takes_the_checkout_for_the_repository(tmp_path):
    import os

    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path], check=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "-C", tmp_path, *who, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    repository = "https://github.com/nobody/no-such-book"
    environment = colab.redirected({**os.environ, "GIT_CONFIG_COUNT": "0"}, repository, tmp_path)
    listed = subprocess.run(
        ["git", "ls-remote", repository, "main"], capture_output=True, text=True, env=environment, check=True
    )
    assert listed.stdout.endswith("refs/heads/main\n")


def test_a_notebook_runs_with_the_interpreter_that_is_named(tmp_path):
    import os

    file = tmp_path / "one.ipynb"
    nbformat.write(
        new_notebook(cells=[new_code_cell("import sys, os\nassert os.environ['HERE'] == 'yes'")]), file
    )
    colab.run(sys.executable, file, {**os.environ, "HERE": "yes"})
    nbformat.write(new_notebook(cells=[new_code_cell("1 / 0")]), file)
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        colab.run(sys.executable, file, dict(os.environ))
