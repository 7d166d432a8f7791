"""The packages as a whole: their floors, public names, a docstring for everything that is public."""

import importlib
import inspect
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

import tformer_book
import tformer_lib

ROOT = Path(tformer_lib.__file__).parent


def test_imports_only_go_down(capsys):
    """The contracts in pyproject.toml: floors, the order within the core, light packages below the book."""
    assert lint_imports(no_cache=True) == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_the_floors_that_contributors_are_shown_are_those_of_the_contract():
    root = ROOT.parent
    contracts = tomllib.loads((root / "pyproject.toml").read_text("utf8"))["tool"]["importlinter"][
        "contracts"
    ]
    floors = next(contract["layers"] for contract in contracts if contract["id"] == "floors")
    table = (
        (root / "CONTRIBUTING.md").read_text("utf8").split("| Folders of `tformer_lib`")[1].split("\n\n")[0]
    )
    shown = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table.splitlines()[2:]]
    assert shown == [floor.split(" | ") for floor in floors]


def test_what_is_offered_at_the_top_has_its_home_below():
    for name in tformer_lib.__all__:
        assert getattr(tformer_lib, name).__module__.startswith("tformer_lib.")
    assert (ROOT / "py.typed").exists()


def all_modules():
    library = [m.name for m in pkgutil.walk_packages([str(ROOT)], "tformer_lib.")]
    book = [m.name for m in pkgutil.walk_packages(tformer_book.__path__, "tformer_book.")]
    return library + [name for name in book if not re.search(r"\.(setup|experiments)\b", name)]


@pytest.mark.parametrize("name", all_modules())
def test_everything_public_has_a_docstring(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for label, obj in vars(module).items():
        if label.startswith("_") or getattr(obj, "__module__", None) != name or not callable(obj):
            continue
        if not (inspect.isclass(obj) or inspect.isfunction(obj)):
            continue  # an alias of a type
        own = obj.__dict__.get("__doc__") if inspect.isclass(obj) else obj.__doc__
        assert own, f"{name}.{label}"
        assert not own.startswith(f"{label}("), f"{name}.{label} has a generated docstring"
        for method, function in vars(obj).items() if inspect.isclass(obj) else ():
            if inspect.isfunction(function) and not method.startswith("_") and method != "forward":
                assert inspect.getdoc(getattr(obj, method)), f"{name}.{label}.{method}"


@pytest.mark.parametrize("name", [n for n in all_modules() if ".core." in n or ".efficient." in n])
def test_shapes_are_read_at_run_time(name):
    """Postponed annotations would hide the shapes from the run-time checks."""
    assert (
        "from __future__ import annotations" not in Path(importlib.import_module(name).__file__).read_text()
    )
