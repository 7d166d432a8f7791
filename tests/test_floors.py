"""The floors of tformer_lib: imports only go down, and no model imports what stands beside them."""

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import tformer_lib

ROOT = Path(tformer_lib.__file__).parent
FLOORS = [  # from the ground up; a module stands on the floor of the longest prefix that it has
    {"numbers", "files"},
    {"core.masks", "core.shapes", "core.cache", "core.patches", "core.tokens"},
    {"core.attention", "core.score_bias"},
    {"core.positions", "core.efficient.blocks", "core.efficient.key_masks"},
    {"core.transformer", "core.efficient"},
    {"models"},
    {"training", "generation", "published"},
]
BESIDE = {
    "data",
    "plots",
    "hooks",
    "heads",
    "memory",
    "show",
    "checks",
    "exercises",
    "recorded",
    "pretrained",
}


def has_prefix(module, prefix):
    return module == prefix or module.startswith(prefix + ".")


def floor_of(module):
    for number, prefixes in enumerate(FLOORS):
        if any(has_prefix(module, prefix) for prefix in prefixes):
            return number
    return None


def is_beside(module):
    return any(has_prefix(module, prefix) for prefix in BESIDE)


def imports(source, module, is_package=False):
    """The modules of tformer_lib that this source imports, anywhere in it; "" is the package itself."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = f"tformer_lib.{module}".split(".")
                parts = parts[: len(parts) - node.level + is_package]
                base = ".".join([*parts, base] if base else parts)
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
            # `from tformer_lib.core import masks` names a module, `from tformer_lib import claim` does not
            names = [n for n in names if n == base or is_module(n)]
            if len(names) > 1 and not has_code(base):
                names.remove(base)
        else:
            continue
        found |= {n.removeprefix("tformer_lib").lstrip(".") for n in names if has_prefix(n, "tformer_lib")}
    return found


def is_module(name):
    path = ROOT.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


def has_code(package):
    """Whether a package's __init__ imports anything: then to import it is to import that as well."""
    init = ROOT.parent.joinpath(*package.split("."), "__init__.py")
    tree = ast.parse(init.read_text()) if init.exists() else ast.Module([], [])
    return any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree))


def violations(module, imported):
    """What is wrong with these imports, in words."""
    here = floor_of(module)
    if here is None:  # what stands beside the floors may import from them
        return []
    wrong = []
    for other in sorted(imported):
        there = floor_of(other)
        if is_beside(other):
            wrong.append(f"{module} imports {other}, which stands beside the floors")
        elif other in ("", "core", "models"):
            wrong.append(f"{module} imports the package tformer_lib.{other}".rstrip(".") + ", not a module")
        elif there is None:
            wrong.append(
                f"{module} imports {other}, which has no floor: say in FLOORS or BESIDE where it stands"
            )
        elif there > here or (there == here and module.startswith("core")):
            wrong.append(f"{module} imports {other}, which stands above or on the same floor")
    return wrong


def files():
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        yield ".".join(parts[:-1] if is_package else parts), path, is_package


@pytest.mark.parametrize(
    ("module", "path", "is_package"), [pytest.param(*f, id=f[0] or "tformer_lib") for f in files()]
)
def test_imports_only_go_down(module, path, is_package):
    if module in ("", "core", "models"):  # a package's own file: the first re-exports, these hold a docstring
        return
    assert floor_of(module) is not None or is_beside(module), f"say in FLOORS or BESIDE where {module} stands"
    assert violations(module, imports(path.read_text(), module, is_package)) == []


def test_the_core_has_all_its_floors():
    modules = {module for module, _, _ in files()}
    assert {"core.masks", "core.attention", "core.positions", "core.transformer", "hooks"} <= modules
    assert not has_code("tformer_lib.core")


@pytest.mark.parametrize(
    ("module", "source", "culprit"),
    [
        ("core.attention", "from tformer_lib.core.transformer import Block", "core.transformer"),
        ("core.masks", "import tformer_lib.core.attention", "core.attention"),
        ("core.masks", "from tformer_lib.core import attention", "core.attention"),
        ("core.masks", "from .attention import attention", "core.attention"),
        ("core.masks", "from . import attention as a", "core.attention"),
        ("core.positions", "def f():\n    from tformer_lib.core import transformer", "core.transformer"),
        ("core.transformer", "from tformer_lib.hooks import record_attention", "hooks"),
        ("core.transformer", "from ..plots.style import new_figure", "plots.style"),
        ("core.attention", "from tformer_lib import causal_mask", "the package"),
        ("core.attention", "import tformer_lib", "the package"),
        ("models.gpt", "from tformer_lib.data.toy import x", "data.toy"),
        ("models.gpt", "from tformer_lib.data import toy", "data"),
        ("models.gpt", "from tformer_lib import checks", "checks"),
        ("models.gpt", "from tformer_lib.training import fit", "training"),
        ("core.transformer", "from tformer_lib.models.recurrent import x", "models.recurrent"),
        ("generation", "from tformer_lib.exercises.checker import check", "exercises.checker"),
        ("models.gpt", "from tformer_lib.attic import x", "attic"),
    ],
)
def test_the_rule_catches(module, source, culprit):
    (*_, found) = violations(module, imports(source, module))
    assert culprit in found


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("core.transformer", "from tformer_lib.core.attention import Attend\nimport torch"),
        ("core.attention", "from tformer_lib.core import masks"),
        ("core.attention", "from .masks import causal_mask"),
        ("models.gpt", "from tformer_lib.models.recurrent import x"),
        ("training", "from tformer_lib.core.transformer import Transformer"),
        ("hooks", "from tformer_lib.core.attention import MaskedSoftmax"),
        ("plots.attention", "from tformer_lib.plots.style import new_figure"),
    ],
)
def test_the_rule_lets_pass(module, source):
    assert violations(module, imports(source, module)) == []


def test_the_public_names():
    assert sorted(tformer_lib.__all__) == [
        "MultiHeadAttention",
        "Transformer",
        "TransformerConfig",
        "attention",
        "causal_mask",
        "check",
        "claim",
        "padding_mask",
        "record_attention",
        "show_source",
    ]
    for name in tformer_lib.__all__:
        assert getattr(tformer_lib, name).__module__.startswith("tformer_lib.")
    assert (ROOT / "py.typed").exists()


def all_modules():
    return [m.name for m in pkgutil.walk_packages([str(ROOT)], "tformer_lib.")]


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
                assert function.__doc__, f"{name}.{label}.{method}"


@pytest.mark.parametrize("name", [n for n in all_modules() if ".core." in n])
def test_shapes_are_read_at_run_time(name):
    """Postponed annotations would hide the shapes from the run-time checks."""
    assert (
        "from __future__ import annotations" not in Path(importlib.import_module(name).__file__).read_text()
    )
