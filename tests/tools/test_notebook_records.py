"""Which claims rest on a recorded file alone: followed through code of every kind that the book has."""

import json
from pathlib import Path

import pytest
from chapters import notebooks
from notebook_claims import CLAIM, claims_in
from notebook_records import RECORD, from_record, made_of

ROOT = Path(__file__).parents[2]
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


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.parent.name)
def test_the_book(path):
    """A page without a record marks nothing; what a sentence calls recorded is followed to a record."""
    cells = json.loads(path.read_text("utf8"))["cells"]
    found, said = dict(made_of(cells)), {claim["name"]: claim["text"] for claim in claims_in(cells)}
    if not any("recorded(" in "".join(c["source"]) for c in cells if c["cell_type"] == "code"):
        assert not from_record(cells)
    lost = [name for name, text in said.items() if text.startswith("recorded ") and not found[name] & RECORD]
    assert lost == []


def test_a_chapter_that_has_both():
    cells = json.loads((ROOT / "book/modern_decoder/chapter.ipynb").read_text("utf8"))["cells"]
    names = from_record(cells)
    old = {"modern.rung_muon", "modern.back_qk_norm", "modern.race_time", "modern.smol_wiki"}
    assert old <= names  # from functions, loops and comprehensions
    assert not names & {"modern.ahead", "modern.sure", "modern.muon", "modern.lowest", "modern.mixture_live"}
