"""Which claims rest on a recorded file alone: followed through code of every kind that the book has."""

import json

import pytest
from chapters import chapters, notebooks
from notebook_claims import CLAIM, claims_in
from notebook_code import read_cells, taken_by
from notebook_records import RECORD, from_record, made_of

START = """
import math
import torch
from statistics import mean
from tformer_book import claim
from tformer_book.kit.records import recorded
from tformer_lib.training import fit, seed_everything
lab = recorded("lab")["results"]
STEPS, names = 100, ("a", "b")
model = fit(STEPS)
"""


def cell(source, *claims, tags=()):
    outputs = [{"data": {CLAIM: {"name": name}}} for name in claims]
    return {"cell_type": "code", "source": source, "metadata": {"tags": list(tags)}, "outputs": outputs}


def is_recorded(code, value):
    """Whether a claim of this value, made after this code, counts as from the record."""
    last = cell(f"claim('x', {value}, (0, 1), 'words')", "x")
    return from_record([cell(START), cell(code), last]) == {"x"}


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("", "lab['loss']"),
        ("", "recorded('other')['results']['loss']"),
        ("", "max(lab['a'].values()) / 3"),
        ("", "mean(x - math.log(2) for x in lab['a'])"),
        ("", "torch.tensor(lab['a']).mean()"),
        ("from tformer_lib.measures import interval", "interval(lab['a'], 0.9)"),
        ("rows = {}\nfor row in lab['rows']:\n    rows[row['name']] = row['loss']", "rows['a'] - rows['b']"),
        ("rows = []\nfor row in lab['rows']:\n    rows.append(row)", "rows[0]"),
        ("lead = {1: [], 2: []}\nfor n, found in lead.items():\n    found.append(lab[n])", "max(lead[1])"),
        ("a, (b, *c) = lab['rows']", "c[0]"),
        ("gain = lambda name, equal='steps': lab[equal][name]", "gain('a')"),
        ("def gain(name):\n    found = lab[name]\n    return found[0] - found[1]", "gain('a')"),
        ("of = lambda name, rows=lab['rows']: rows[name]", "of('a')"),
        ("def show():\n    for row in lab:\n        yield row['loss']", "max(show())"),
        ("found = {n: lab[n] for n in names}", "found['a']"),
        ("total = 0\nfor n in names:\n    total += lab[n]", "total / STEPS"),
        ("if STEPS > 1:\n    x = lab['a']\nelse:\n    x = lab['b']", "x"),
        ("x = model\nx = lab['a']", "x"),  # the name has another value now
        ("model = lab['a']", "model"),
    ],
)
def test_a_number_from_the_record(code, value):
    assert is_recorded(code, value)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("", "0.5"),
        ("", "math.sqrt(2)"),
        ("", "STEPS / 2"),
        ("", "fit(STEPS)"),
        ("", "fit(lab['rate']) - model"),
        ("", "lab['loss'] - model.loss"),  # a run of the page, held to the record
        ("", "torch.randn(3).mean() - lab['a']"),
        ("x = lab['a']\nx = fit(3)", "x"),
        ("x = lab['a']\nif STEPS > 1:\n    x = fit(3)", "x"),
        ("rows = [lab['a']]\nrows.append(model)", "rows[0] - rows[1]"),
        ("rows = lab['rows']\nfor row in rows:\n    row.append(model)", "rows[0]"),
        ("rows = lab['rows']\nrows['here'] = model.loss", "rows['a']"),
        ("def train(rate):\n    seed_everything(0)\n    return fit(STEPS, rate)", "train(lab['rate'])"),
        ("def gap(name):\n    return lab[name] - model.loss", "gap('a')"),
        ("gap = lambda name, here=model: lab[name] - here.loss", "gap('a')"),
        ("rows = []\ndef note(x):\n    rows.append(x)\nnote(lab['a'])\nnote(model)", "rows[0]"),
        ("with torch.no_grad():\n    x = model(lab['a'])", "x"),
        ("lab = fit(3)", "lab['a']"),
        ("best = min(lab, key=lambda n: abs(lab[n] - model.loss))", "best"),
    ],
)
def test_a_number_that_is_not_from_the_record_alone(code, value):
    assert not is_recorded(code, value)


def test_claims_in_a_loop_are_told_from_those_that_are_named():
    loop = """
claim("new", model.loss, (0, 1), "words")
for name in names:
    claim(f"old_{name}", lab[name], (0, 1), "words")
"""
    cells = [cell(START), cell(loop, "new", "old_a", "old_b")]
    assert from_record(cells) == {"old_a", "old_b"}


def test_the_value_may_be_named_and_empty_answers_do_not_count():
    answer = cell("lab = None\nmodel = recorded('lab')", tags=["answer"])
    named = cell("claim(name='x', value=lab['a'], band=(0, 1), sentence='words')", "x")
    assert from_record([cell(START), answer, named]) == {"x"}
    other = cell("claim('y', model, (0, 1), 'words')", "y")
    assert from_record([cell(START), answer, other]) == set()


def test_lines_of_ipython_are_passed_over():
    source = "try:\n    import tformer_lib\nexcept ImportError:\n    %pip install tformer-lib\n!ls\n"
    assert from_record([cell(START + source), cell("claim('x', lab, (0, 1), '')", "x")]) == {"x"}


CHAPTER = [
    cell(START),
    cell("loss = lab['loss']\nscore = model.loss\ndef best(name):\n    return lab[name] / STEPS"),
    cell("def run(name):\n    return model(lab[name])\nclass Row: ...\nsource = recorded\nrows = [lab['a']]"),
    cell("loss = None", tags=["answer"]),
]
OTHER = [
    cell("from tformer_book.made.chapter import best as good, score, loss\ngap = loss - score\nlow = loss")
]


@pytest.fixture
def book(tmp_path):
    """A folder of chapters: one, with a chapter and a laboratory, one of which takes names from the other."""
    (tmp_path / "made").mkdir()
    for name, cells in {"chapter": CHAPTER, "laboratory": OTHER}.items():
        (tmp_path / "made" / f"{name}.ipynb").write_text(json.dumps({"cells": cells}), "utf8")
    return tmp_path


def take(what, value, book, chapter="made.chapter"):
    """Whether a claim of this value, in a notebook that takes this from another, is from the record."""
    code = f"from tformer_book.{chapter} import {what}"
    return from_record([cell(code), cell(f"claim('x', {value}, (0, 1), 'words')", "x")], book) == {"x"}


@pytest.mark.parametrize(
    ("what", "value", "recorded"),
    [
        ("loss", "loss / 2", True),
        ("loss as found", "found", True),
        ("best", "best('a')", True),
        ("best", "max(map(best, ('a', 'b')))", True),
        ("rows", "rows[0]", True),
        ("lab, math", "math.log(lab['a'])", True),
        ("mean, lab", "mean(lab['a'])", True),
        ("score", "score", False),
        ("score, loss", "loss - score", False),
        ("model, lab", "model(lab['a'])", False),
        ("run", "run('a')", False),
        ("best, model", "best(model)", False),
        ("STEPS", "STEPS / 2", False),
        ("Row", "Row()", False),
        ("lost", "lost", False),
        ("lost, loss", "lost(loss)", False),
    ],
)
def test_a_name_from_another_notebook_is_followed_into_it(book, what, value, recorded):
    assert take(what, value, book) == recorded


def test_it_is_followed_through_several(book):
    assert take("low", "low", book, "made.laboratory")
    assert take("good", "good('a')", book, "made.laboratory")
    assert not take("gap", "gap", book, "made.laboratory")


def test_another_value_of_the_name_counts_here(book):
    after = "from tformer_book.made.chapter import loss, best\nfrom tformer_lib.training import fit\n"
    for code, value in (("loss = fit(3)", "loss"), ("def best(name):\n    return fit(3)", "best('a')")):
        last = cell(f"claim('x', {value}, (0, 1), 'words')", "x")
        assert from_record([cell(after + code), last], book) == set()


def test_a_notebook_as_a_whole_and_a_circle_of_them_stay_unmarked(book):
    assert not take("chapter", "chapter.loss", book, "made")
    (book / "made" / "one.ipynb").write_text(
        json.dumps({"cells": [cell("from tformer_book.made.two import x\ny = x")]})
    )
    (book / "made" / "two.ipynb").write_text(
        json.dumps({"cells": [cell("from tformer_book.made.one import y\nx = y")]})
    )
    assert not take("x", "x", book, "made.two")


def takes_records(path):
    """Whether a notebook, or one that it takes from, reads a recorded file."""
    files = [path, *taken_by(path)]
    sources = ("".join(c["source"]) for file in files for c in read_cells(file) if c["cell_type"] == "code")
    return any("recorded(" in source for source in sources)


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_book(path):
    """A page without a record marks nothing; what a sentence calls recorded is followed to a record."""
    cells = read_cells(path)
    found, said = dict(made_of(cells)), {claim["name"]: claim["text"] for claim in claims_in(cells)}
    if not takes_records(path):
        assert not from_record(cells)
    lost = [name for name, text in said.items() if text.startswith("recorded ") and not found[name] & RECORD]
    assert lost == []


def test_a_chapter_that_has_both():
    (chapter,) = [each for each in chapters() if each.name == "modern_decoder"]
    names = set().union(*(from_record(read_cells(path)) for path in chapter.notebooks))
    old = {"modern.rung_muon", "modern.back_qk_norm", "modern.race_time", "modern.smol_wiki"}
    assert old <= names  # from functions, loops and comprehensions
    assert not names & {"modern.ahead", "modern.sure", "modern.muon", "modern.lowest", "modern.mixture_live"}
