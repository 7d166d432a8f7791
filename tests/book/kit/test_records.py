"""Recorded results: complete, made by a script that is there, and never half-written."""

import json
from pathlib import Path

import pytest

import tformer_book.kit.records
from tformer_book.kit.records import FOLDER, record, recorded

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
def test_each_record_is_complete_and_has_its_script(name):
    content = recorded(name)
    assert set(content) == {"command", "seeds", "versions", "cpu_seconds", "results"}
    assert content["command"].startswith(f"python benchmarks/{name}.py")
    assert (BENCHMARKS / f"{name}.py").exists()
    assert content["cpu_seconds"] > 0
    assert content["seeds"]
    assert content["results"]
    assert {"python", "torch"} <= set(content["versions"])


def test_every_script_has_its_record():
    helpers = {"runs", "bert_page", "speedrun_child"}  # which they import or start
    scripts = {path.stem for path in BENCHMARKS.glob("*.py")} - helpers
    waiting = {"gpu"}  # records only where there is CUDA
    assert scripts - waiting <= set(NAMES) <= scripts


def test_what_is_recorded_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(tformer_book.kit.records, "FOLDER", tmp_path)
    record("trial", {"loss": [1.5, 1.25]}, seeds=[0, 1], folder=tmp_path)
    content = recorded("trial")
    assert content["results"] == {"loss": [1.5, 1.25]}
    assert content["seeds"] == [0, 1]
    assert content["cpu_seconds"] > 0
    assert [p.name for p in tmp_path.iterdir()] == ["trial.json"]


def test_a_result_that_json_cannot_hold_leaves_the_old_record(tmp_path):
    path = record("trial", [1], seeds=[0], folder=tmp_path)
    with pytest.raises(TypeError):
        record("trial", [object()], seeds=[0], folder=tmp_path)
    assert json.loads(path.read_text())["results"] == [1]


def test_an_unknown_record_names_those_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr(tformer_book.kit.records, "FOLDER", tmp_path)
    with pytest.raises(FileNotFoundError, match="'x'; recorded are: none"):
        recorded("x")
    record("trial", [1], seeds=[0], folder=tmp_path)
    with pytest.raises(FileNotFoundError, match="recorded are: trial"):
        recorded("x")
