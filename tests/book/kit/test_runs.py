"""The runs that a script keeps: made once, whole or not there, each in a file of its own."""

import json
import os
import time
from itertools import combinations

import pytest

from tformer_book.kit import runs as module
from tformer_book.kit.runs import Runs, means, rounded, summary

KEYS = [
    ("page", 0),
    ("page", 1),
    ("page 0",),
    ("page", "0"),
    ("page", "", 0),
    ("page/0",),
    ("page", 0.0),
    ("Page", 0),
    ("page.0",),
    ("page", -1),
    ("page, 0",),
    ("low-rank, r = N", 1),
    ("low-rank, r - N", 1),
    ("..",),
    ("../page", 0),
    ("/page", 0),
    (".page",),
    ("page.json",),
    ("a" * 500,),
    ("a" * 501,),
    ("ä",),
    ("ö",),
    ("",),
    (1e-3, 2),
    (1e-4, 2),
]


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BUILD", tmp_path)
    return Runs("trial")


def test_a_result_from_elsewhere_is_kept(runs):
    runs.put("page", 0, result={"loss": 1.5}, seconds=12.34)
    assert runs.keep("page", 0, make=pytest.fail) == {"loss": 1.5}
    assert runs.seconds == {("page", 0): 12.3}


def test_a_run_is_made_once(runs):
    made = []

    def make():
        made.append(1)
        return {"loss": [1.5], "pair": (1, 2)}

    assert not runs.done("page", 0)
    first = runs.keep("page", 0, make=make)
    assert runs.done("page", 0)
    assert first == runs.keep("page", 0, make=make) == Runs("trial").keep("page", 0, make=make)
    assert first == runs.get("page", 0) == {"loss": [1.5], "pair": [1, 2]}  # as JSON gives it back
    assert len(made) == 1


def test_a_run_is_made_again_on_demand(runs):
    assert runs.keep("race", 0, make=lambda: 1) == 1
    assert runs.keep("race", 0, make=lambda: 2, again=True) == 2
    assert runs.get("race", 0) == 2


def test_runs_lie_under_build_or_where_one_says(runs, tmp_path):
    assert runs.path("page").parent == tmp_path / "trial"
    elsewhere = Runs(tmp_path / "elsewhere")
    elsewhere.keep("page", make=lambda: 1)
    assert elsewhere.path("page").parent == tmp_path / "elsewhere"
    assert not runs.done("page")


def test_nothing_is_made_by_asking(runs, tmp_path):
    runs.path("page")
    assert not runs.done("page")
    assert runs.kept() == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_any_key_is_a_plain_file_name(runs, key):
    assert runs.keep(*key, make=lambda: list(key)) == list(key)
    (path,) = runs.folder.iterdir()
    assert path == runs.path(*key)
    assert path.resolve().parent == runs.folder.resolve()
    assert set(path.name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-")
    assert not path.name.startswith(".")
    assert len(path.name) < 120
    assert runs.checkpoint(*key).parent == runs.folder
    assert runs.checkpoint(*key) != path


def test_two_keys_never_share_a_file(runs):
    for one, other in combinations(KEYS, 2):
        assert runs.path(*one).name.lower() != runs.path(*other).name.lower()  # nor where case is ignored
        assert runs.checkpoint(*one) != runs.checkpoint(*other)
    for key in KEYS:
        runs.keep(*key, make=lambda key=key: list(key))
    assert all(runs.get(*key) == list(key) for key in KEYS)
    assert len(list(runs.folder.iterdir())) == len(KEYS)


def test_all_that_is_kept_is_found_by_its_key(runs):
    runs.keep("rung", "no bias", 0, make=lambda: 1.5)
    runs.keep("race", 1, make=lambda: {"a": 2})
    runs.checkpoint("race", 2).mkdir()
    assert runs.kept() == {("rung", "no bias", 0): 1.5, ("race", 1): {"a": 2}}


def fail(*arguments):
    raise OSError("the disk is full")


def test_a_write_that_fails_leaves_nothing(runs, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="full"):
            runs.keep("page", make=lambda: 1)
    with pytest.raises(TypeError):
        runs.keep("page", make=object)  # JSON cannot hold it
    with pytest.raises(OSError, match="full"):
        runs.keep("page", make=fail)
    assert not runs.done("page")
    assert list(runs.folder.iterdir()) == []
    assert runs.keep("page", make=lambda: 2) == 2


def test_a_write_that_fails_leaves_what_was_kept(runs, monkeypatch):
    runs.keep("page", make=lambda: 1)
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="full"):
        runs.keep("page", make=lambda: 2, again=True)
    assert runs.get("page") == 1
    assert list(runs.folder.iterdir()) == [runs.path("page")]


def test_processor_time_is_of_the_runs_that_were_asked_for(runs, monkeypatch):
    clock = iter([10.0, 12.5, 20.0, 21.0, 30.0, 34.0])
    monkeypatch.setattr(time, "process_time", lambda: next(clock))
    for name in "abc":
        runs.keep(name, make=lambda: 0)
    assert runs.seconds == {("a",): 2.5, ("b",): 1.0, ("c",): 4.0}
    later = Runs("trial")
    later.keep("a", make=lambda: 0)
    later.get("c")
    assert sum(later.seconds.values()) == 6.5


def test_a_run_that_goes_on_counts_what_came_before(runs):
    runs.checkpoint("resumed").mkdir(parents=True)
    runs.keep("resumed", make=lambda: {"seconds": 40.0})
    runs.keep("fresh", make=lambda: {"seconds": 40.0})  # of the clock on the wall
    assert runs.seconds[("resumed",)] == 40.0
    assert runs.seconds[("fresh",)] < 40.0


def test_the_screen_shows_the_numbers_of_a_new_run(runs, capsys):
    for _ in range(2):
        runs.keep("page", 0, make=lambda: {"loss": 1.23456, "curve": [1.0], "steps": 3})
    assert capsys.readouterr().out == "page 0 (0.0 s) loss 1.235\n"


def test_a_file_says_whose_it_is(runs):
    runs.keep("none, marked", 2, make=lambda: 1)
    content = json.loads(runs.path("none, marked", 2).read_text("utf8"))
    assert content == {"key": ["none, marked", 2], "cpu_seconds": 0.0, "result": 1}


def test_rounded_reaches_every_float():
    values = {"a": [1.23456, (2.00004, 3)], "b": None, "c": "1.23456", 1.5: True}
    assert rounded(values) == {"a": [1.2346, [2.0, 3]], "b": None, "c": "1.23456", 1.5: True}
    assert rounded(2.345, 1) == 2.3


def test_means_of_some_at_a_time():
    assert means([1.0, 3.0, 5.0, 7.0, 10.0], 2) == [2.0, 6.0, 10.0]


def test_summary_of_three_seeds():
    assert summary([0.5, 0.7, 0.9]) == {"mean": 0.7, "sd": 0.2, "scores": [0.5, 0.7, 0.9]}
