"""The matrix of machines: its settings, what is read from a run, the table."""

import json

import pytest

from tformer_book.kit.experiments import portable
from tformer_book.kit.experiments.portable import (
    Run,
    Setting,
    done,
    find_pythons,
    gather,
    keep,
    matrix,
    most_loops,
    read,
    summary,
    table,
)
from tformer_book.kit.records import recorded

REPORT = """<testsuites><testsuite>
<testcase classname="book.attention.chapter.ipynb" name="Cell 0"><properties>
<property name="notebook_cpu" value="2.5"/></properties></testcase>
<testcase classname="book.attention.chapter.ipynb" name="Cell 1"><properties>
<property name="notebook_cpu" value="40.0"/></properties><failure message="m">It differs.</failure></testcase>
<testcase classname="book.modern_decoder.chapter.ipynb" name="Cell 0"><properties>
<property name="notebook_cpu" value="7"/></properties></testcase>
</testsuite></testsuites>"""


def test_the_matrix_begins_with_the_reference_and_tries_everything_once():
    settings = matrix(["3.11", "3.12", "3.13"])
    assert settings[0] == Setting("3.11", "all", 1)
    assert {s.python for s in settings} == {"3.11", "3.12", "3.13"}
    assert {s.instructions for s in settings} == set(portable.INSTRUCTIONS)
    assert {(s.instructions, s.threads) for s in settings if s.threads == 2} == {("mixed", 2)}
    assert len(set(map(str, settings))) == len(settings) == 5
    alone = matrix(["3.11"])
    assert {s.instructions for s in alone} == set(portable.INSTRUCTIONS)
    assert len(alone) == 4


def test_a_setting_switches_every_library(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Nehalem")  # not for the setting that uses all there is
    environment = Setting("3.11", "AVX2", 2).environment()
    assert environment["ATEN_CPU_CAPABILITY"] == "avx2"
    assert environment["TFORMER_THREADS"] == environment["OMP_NUM_THREADS"] == "2"
    assert environment["CI"] == "true"  # pictures of another matplotlib fail
    assert not set(portable.INSTRUCTIONS["AVX2"]) & set(Setting("3.11", "all", 1).environment())


def test_a_report_is_read_by_notebook(tmp_path):
    path = tmp_path / "report.xml"
    path.write_text(REPORT)
    assert read(path) == {
        "attention/chapter": Run(40.0, 2, {"Cell 1": "It differs."}),
        "modern_decoder/chapter": Run(7.0, 1, {}),
    }


def result(setting, **notebooks):
    rows = {name: {"cpu_seconds": s, "ratio": r, "failed": f} for name, (s, r, f) in notebooks.items()}
    return {"setting": setting, "notebooks": rows}


def test_the_table_says_what_passed_and_what_did_not():
    text = table(
        [result("one", a=(10.0, 1.0, []), b=(5.0, 1.0, [])), result("two", a=(12.0, 1.2, ["Cell 3"]))]
    )
    assert text.splitlines() == [
        "| Notebook | one | two |",
        "|---|---|---|",
        "| a | passed, 10 s, x 1.00 | failed: Cell 3 |",
        "| b | passed, 5 s, x 1.00 | not run |",
        "| all | 15 s | 12 s |",
    ]


def test_what_was_found_is_kept_until_the_notebook_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(portable, "KEPT", tmp_path / "kept.json")
    monkeypatch.setattr(portable, "ROOT", tmp_path)
    (tmp_path / "book").mkdir()

    def write(name, source, text="prose"):
        code = {"cell_type": "code", "source": source, "outputs": []}
        cells = [{"cell_type": "markdown", "source": text}, code]
        (tmp_path / "book" / f"{name}.ipynb").write_text(json.dumps({"cells": cells}))

    write("a", "1")
    write("b", "2")
    first, second = Setting("3.11", "all", 1), Setting("3.11", "AVX2", 1)
    keep(first, {"a": Run(10.0, 3), "b": Run(4.0, 1)}, loop=0.5)
    keep(second, {"a": Run(15.0, 3)}, loop=0.5)
    keep(second, {"b": Run(4.0, 1, {"Cell 0": "It differs."})}, loop=0.5)
    assert done(first, "a")
    assert not done(second, "b")  # it failed
    found = gather([first, second], ["a", "b"])
    assert found[1]["notebooks"]["a"] == {"cpu_seconds": 15.0, "loops": 30.0, "failed": [], "ratio": 1.5}
    assert summary(found).splitlines()[2:] == [
        "| Python 3.11, all, 1 thread | 2 of 2 | 14 s | 1.00 |",
        "| Python 3.11, AVX2, 1 thread | 1 of 2 | 19 s | 1.50 |",
    ]
    write("a", "1", text="other prose")
    assert done(first, "a")
    write("a", "one")
    assert not done(first, "a")
    assert "a" not in gather([first, second], ["a", "b"])[0]["notebooks"]


def test_a_chapter_costs_half_of_what_others_may():
    names = ("attention/chapter", "attention/laboratory", "inside/sinks", "attention/exercises")
    assert [most_loops(name) for name in names] == [200, 400, 400, 400]


@pytest.mark.parametrize(("loops", "code"), [(200.0, 0), (201.0, 1)])
def test_a_chapter_that_costs_more_is_told(tmp_path, monkeypatch, loops, code):
    monkeypatch.setattr(portable, "ROOT", tmp_path)
    monkeypatch.setattr(portable, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(portable, "KEPT", tmp_path / "results" / "kept.json")
    monkeypatch.setattr(portable, "calibrate", lambda *_: 0.5)
    costs = {"a/chapter": loops / 2, "a/laboratory": 199.0}
    monkeypatch.setattr(portable, "run", lambda *_: {name: Run(s, 1) for name, s in costs.items()})
    (tmp_path / "book" / "a").mkdir(parents=True)
    paths = [tmp_path / "book" / f"{name}.ipynb" for name in costs]
    for path in paths:
        path.write_text(json.dumps({"cells": []}))
    assert portable.main([*map(str, paths), "--only", "all,", "1 thread"]) == code


def test_readme_shows_what_is_recorded():
    readme = (portable.ROOT / "README.md").read_text("utf8")
    assert summary(recorded("portable")["results"]) in readme


def test_an_interpreter_that_does_not_run_is_named():
    with pytest.raises(SystemExit, match="no-such-python is no Python"):
        find_pythons(["no-such-python"])


def test_a_word_that_no_setting_has_is_named():
    with pytest.raises(SystemExit, match=r"no setting has \['AVX3'\] in its name: Python 3"):
        portable.main(["--only", "AVX3"])
