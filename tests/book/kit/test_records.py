"""Recorded results: complete, made by a script that is there, and never half-written."""

import json

import pytest

import tformer_book.kit.records
from tformer_book.kit.records import BOOK, laid_out, record, recorded, records

RECORDS = records()


@pytest.mark.parametrize("name", RECORDS)
def test_each_record_is_complete_and_has_its_script(name):
    content = recorded(name)
    assert set(content) == {"command", "seeds", "versions", "cpu_seconds", "results"}
    chapter = RECORDS[name].parts[-3]
    assert content["command"].startswith(f"python -m tformer_book.{chapter}.experiments.{name}")
    assert (BOOK / chapter / "experiments" / f"{name}.py").exists()
    assert content["cpu_seconds"] > 0
    assert content["seeds"]
    assert content["results"]
    assert {"python", "torch"} <= set(content["versions"])


def test_every_script_has_its_record():
    helpers = {"bert_page", "speedrun_child"}  # which they import or start
    scripts = {path.stem for path in BOOK.glob("*/experiments/*.py")} - helpers - {"__init__"}
    waiting = {"gpu"}  # records only where there is CUDA
    assert scripts - waiting <= set(RECORDS) <= scripts


def test_what_is_recorded_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(tformer_book.kit.records, "BOOK", tmp_path)
    record("trial", {"loss": [1.5, 1.25]}, seeds=[0, 1], folder=tmp_path / "x" / "records")
    content = recorded("trial")
    assert content["results"] == {"loss": [1.5, 1.25]}
    assert content["seeds"] == [0, 1]
    assert content["cpu_seconds"] > 0
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["trial.json"]


def test_numbers_of_a_row_stand_on_one_line():
    content = {"rows": [[1, 2.5], [3, 4]], "words": ["a  b", "c"], "empty": [], "one": {"two": [True, None]}}
    text = laid_out(content)
    assert json.loads(text) == content
    assert "[1, 2.5]" in text
    assert "[true, null]" in text
    assert '"a  b"' in text


def test_a_record_goes_where_its_script_lies(tmp_path, monkeypatch):
    monkeypatch.setattr(tformer_book.kit.records, "BOOK", tmp_path)
    with pytest.raises(FileNotFoundError, match="no chapter has a script"):
        record("trial", [1], seeds=[0])
    (tmp_path / "x" / "experiments").mkdir(parents=True)
    (tmp_path / "x" / "experiments" / "trial.py").touch()
    assert record("trial", [1], seeds=[0]) == tmp_path / "x" / "records" / "trial.json"
    assert recorded("trial")["command"] == "python -m tformer_book.x.experiments.trial"


def test_a_result_that_json_cannot_hold_leaves_the_old_record(tmp_path):
    path = record("trial", [1], seeds=[0], folder=tmp_path / "x" / "records")
    with pytest.raises(TypeError):
        record("trial", [object()], seeds=[0], folder=tmp_path / "x" / "records")
    assert json.loads(path.read_text())["results"] == [1]


def test_an_unknown_record_names_those_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr(tformer_book.kit.records, "BOOK", tmp_path)
    with pytest.raises(FileNotFoundError, match="'x'; recorded are: none"):
        recorded("x")
    record("trial", [1], seeds=[0], folder=tmp_path / "x" / "records")
    with pytest.raises(FileNotFoundError, match="recorded are: trial"):
        recorded("x")
