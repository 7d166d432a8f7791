"""Notebooks run as a reader runs them: in an empty folder, with the wheels and what they declare, and nothing
else.
"""

import pytest

from tests.notebooks.alone import closure
from tests.notebooks.conftest import ROOT, Cell, commit, run_plugin

WHERE = """
import os, sys, importlib.util, pathlib
import tformer_lib
home = pathlib.Path(tformer_lib.__file__)
"""
CELLS = {
    "tformer_lib is the built wheel's": f"""
assert home.is_relative_to(sys.prefix), home
assert not home.is_relative_to({str(ROOT)!r}), home
assert (home.parent / "py.typed").exists()
assert not (home.parents[1] / "tests").exists()
""",
    "tformer_book is the built wheel's, without the site's files": f"""
import tformer_book
from tformer_book.kit.records import recorded
there = pathlib.Path(tformer_book.__file__)
assert there.is_relative_to(sys.prefix) and not there.is_relative_to({str(ROOT)!r}), there
assert recorded("ladder")["results"]
from tformer_book.attention.chapter import soft_lookup
assert not list(there.parent.rglob("*.ipynb")) and not (there.parent / "site").exists()
""",
    "the checkout is not on the path": f"assert not [p for p in sys.path if {str(ROOT)!r} in p]",
    "the folder is empty": "assert os.listdir() == [], os.listdir()",
    "what the wheel declares is there": "import torch, numpy, matplotlib, IPython; torch.ones(2);",
    "what only the tests need is not": """
for name in ("beartype", "hypothesis", "pytest", "nbval", "sphinx", "nbformat", "nbclient", "pip"):
    assert importlib.util.find_spec(name) is None, name
""",
    "one thread and a fixed hash seed": """
assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1" and torch.get_num_threads() == 1
assert os.environ["PYTHONHASHSEED"] == "0"
""",
}


@pytest.fixture(scope="module")
def run(workplace):
    commit(
        workplace / "alone.ipynb", [Cell(WHERE), *(Cell("pass", changed=source) for source in CELLS.values())]
    )
    return run_plugin(workplace / "alone.ipynb", "--nbval-cell-timeout=60")


@pytest.mark.parametrize("name", CELLS)
def test_alone(run, name):
    problem = run.cells[1 + list(CELLS).index(name)]
    assert problem == ""


def test_closure_follows_declared_needs_only():
    found = closure(["matplotlib"])
    assert {"matplotlib", "numpy", "pillow"} <= found
    assert not {"torch", "pytest", "ipykernel"} & found


def test_closure_takes_an_extra_of_what_it_is_given():
    text = "matplotlib; extra == 'book'"
    assert "matplotlib" in closure([text], extra="book")
    assert closure([text]) == set()


def test_closure_names_what_is_missing():
    with pytest.raises(ModuleNotFoundError, match="no-such-distribution"):
        closure(["no-such-distribution>=2"])
