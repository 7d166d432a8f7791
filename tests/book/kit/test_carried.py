"""A notebook as a module: what cells read, bind and change, and which of them run for a name."""

import importlib
import json
import sys

import numpy as np
import pytest
import torch

import tformer_book
from tformer_book.kit.carried import Cell, Finder

CELLS = [
    "%matplotlib inline\nimport math\n\nimport torch\n\ntorch.manual_seed(3)",
    "RAN = []\n\n\ndef note(name):\n    RAN.append(name)",
    "note('keys'); keys = [1, 2]\nprint('shown')",
    "def double(x):\n    return factor * x",
    "factor = 2\nnote('factor')",
    "keys.append(3)\nnote('append')",
    "copy = list(keys)",
    "net = torch.nn.Linear(2, 1, bias=False)\nnote('net')",
    "optimizer = torch.optim.SGD(net.parameters(), lr=1.0)\n"
    "net(torch.ones(2)).sum().backward()\noptimizer.step()",
    "keys = 'another'\nnote('another')",
    "total = 0\nfor key in [1, 2]:\n    total += key\n[hidden := total]",
    "import matplotlib.pyplot as plt\n\nfigure = plt.figure()\nfrom math import pi as half",
    "wrong = 1 / 0",
    "def of_state():\n    return state + 1",
    "state = 1\nstate = of_state()\nnext_state = of_state()",
    "class Grown(torch.nn.Module):\n    kept = 1\n\n    def forward(self, x):\n        return double(x)",
]


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A package of the book's with one notebook, as its source has it."""
    folder = tmp_path / "made_up"
    folder.mkdir()
    (folder / "__init__.py").touch()
    cells = [{"cell_type": "markdown", "source": "# Title"}]
    cells += [{"cell_type": "code", "source": source} for source in CELLS]
    (folder / "chapter.ipynb").write_text(json.dumps({"cells": cells}))
    monkeypatch.setattr(tformer_book, "__path__", [*tformer_book.__path__, str(tmp_path)])
    yield importlib.import_module("tformer_book.made_up.chapter")
    for name in [name for name in sys.modules if name.startswith("tformer_book.made_up")]:
        del sys.modules[name]


def test_a_name_is_made_by_its_cells_alone_and_once(made, capsys):
    from tformer_book.made_up.chapter import RAN, copy

    assert copy == [1, 2, 3]  # of the first keys, with what was appended, not of the last
    assert RAN == ["keys", "append"]
    assert made.keys == "another"
    assert made.copy is copy
    assert RAN == ["keys", "append", "another"]
    assert capsys.readouterr().out == ""


def test_a_function_finds_what_stands_below_it(made):
    assert made.double(4) == 8
    assert made.Grown()(5) == 10
    assert made.Grown.__module__ == "tformer_book.made_up.chapter"


def test_a_function_reads_what_the_cell_that_calls_it_has_just_bound(made):
    assert (made.next_state, made.of_state()) == (3, 3)


def test_what_an_optimiser_moves_is_the_model(made):
    torch.manual_seed(3)
    first = torch.nn.Linear(2, 1, bias=False).weight - 1
    torch.testing.assert_close(made.net.weight, first)


def test_needed_cells_are_told(made):
    assert made.needed(["double"]) == [0, 1, 3, 4]
    assert made.needed(["net"]) == [0, 1, 7, 8]
    assert made.needed(["hidden"]) == [0, 10]


def test_random_numbers_and_figures_go_on_as_if_nothing_had_been_asked(made):
    import matplotlib.pyplot as plt

    # (Python's own are drawn by the checks of types in tests.)
    states = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    assert made.figure is not None
    assert made.net is not None
    assert plt.get_fignums() == []
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (np.random.get_state()[1] == states[1]).all()  # noqa: NPY002


def test_what_goes_wrong_is_said(made):
    with pytest.raises(AttributeError, match=r"no cell of tformer_book\.made_up\.chapter makes a 'nothing'"):
        _ = made.nothing
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        from tformer_book.made_up.chapter import nothing  # noqa: F401
    with pytest.raises(
        ImportError, match=r"cell 13 of tformer_book\.made_up\.chapter failed: division by zero"
    ):
        _ = made.wrong
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tformer_book.made_up.laboratory")
    assert Finder.find_spec("elsewhere.chapter", None) is None


def test_names_and_source_can_be_looked_at(made):
    assert {"double", "keys", "half", "hidden"} <= set(dir(made))
    assert "key" in dir(made)
    assert "return factor * x" in tformer_book.show_source(made.double).code


def test_an_installed_package_has_the_code_alone(made, tmp_path):
    folder = tmp_path / "made_up"
    (folder / "exercises.cells.json").write_text(json.dumps(["answer = 42"]))
    assert importlib.import_module("tformer_book.made_up.exercises").answer == 42


@pytest.mark.parametrize(
    ("source", "reads", "binds", "changes"),
    [
        ("for a, b in rows:\n    print(a, [c for c in b if (w := c)])", {"rows"}, {"a", "b", "w"}, set()),
        ("x = x + 1", {"x"}, {"x"}, set()),
        ("total += step", {"total", "step"}, {"total"}, set()),
        ("def f(a, b=given):\n    inner = a\n    return f(inner) + later", {"given", "later"}, {"f"}, set()),
        ("with torch.no_grad():\n    model.W.weight *= 2", {"torch", "model"}, set(), {"model"}),
        ("losses.append(1)\nprint(losses)", {"losses"}, set(), {"losses"}),
        ("log = fit(model, data)", {"fit", "model", "data"}, {"log"}, {"model", "data"}),
        ("try:\n    import a.b\nexcept Lost as error:\n    print(error)", {"Lost"}, {"a", "error"}, set()),
        ("class C(Base):\n    one = 1\n    two = one", {"Base"}, {"C"}, set()),
        ("f = lambda t: t + u", {"u"}, {"f"}, set()),
        ("import plots\nplots.line(x)\nshow(y)", {"x", "show", "y"}, {"plots"}, {"y"}),
        ("table(rows)\ndel cache[key]", {"rows", "table", "cache", "key"}, set(), {"cache"}),
    ],
)
def test_what_a_cell_does_is_read_from_its_code(source, reads, binds, changes):
    cell = Cell(source)
    assert (set(cell.reads), set(cell.binds), set(cell.changes)) == (reads, binds, changes)


def test_other_packages_are_left_to_themselves(made, tmp_path, monkeypatch):
    (tmp_path / "spread" / "inner").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    assert list(importlib.import_module("spread.inner").__path__)  # two packages without a file of their own
    with pytest.raises(ModuleNotFoundError, match=r"spread\.chapter"):
        importlib.import_module("spread.chapter")
    with pytest.raises(ModuleNotFoundError, match=r"tformer_book\.made_up\.nothing"):
        importlib.import_module("tformer_book.made_up.nothing")
