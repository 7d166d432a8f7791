"""The API pages are made without the packages that tformer_lib computes with, and show what is there."""

import ast
import functools
import json
import subprocess
import sys
from importlib.metadata import packages_distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.site.pages import ROOT

# In a Python of its own: hides packages, imports tformer_lib as the site does or as it is, and shows what
# autodoc would: the signatures of all functions and methods, and the bases of all classes.
SCRIPT = """
import importlib, inspect, json, re, sys
from importlib.machinery import PathFinder

how, hidden, root = sys.argv[1], set(json.loads(sys.argv[2])), sys.argv[3]

class Hiding:
    find_distributions = staticmethod(PathFinder.find_distributions)

    def find_spec(self, name, path=None, target=None):
        return None if name.split(".")[0] in hidden else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [Hiding() if finder is PathFinder else finder for finder in sys.meta_path]
left = []
if how == "stand-ins":
    sys.path.insert(0, root + "/book/site/extensions")
    import tformer_api
    names = tformer_api.import_packages()
    left = sorted({name.split(".")[0] for name in sys.modules} & set(tformer_api.STANDINS))
else:
    sys.path[:0] = [root, root + "/book/site/extensions"]
    import tformer_api
    packages = importlib.import_module("tformer_lib"), tformer_api.find_book()
    names = [name for package in packages for name in tformer_api.modules(package)]

from sphinx.util.inspect import signature, stringify_signature
import tformer_lib

def functions(owner, module):
    for name, member in vars(owner).items():
        if name.startswith("_") or getattr(member, "__module__", None) != module:
            continue
        if inspect.isfunction(member):
            found = signature(member, bound_method=inspect.isclass(owner))
            # ~torch.Tensor is shown as Tensor
            words = stringify_signature(found, unqualified_typehints=True)
            yield member.__qualname__, re.sub("~([A-Za-z_]+[.])+", "", words)
        elif inspect.isclass(member):
            yield member.__qualname__, [base.__name__ for base in member.__bases__]
            yield from functions(member, module)

seen = {}
for name in names:
    module = importlib.import_module(name)
    seen |= {f"{name}.{one}": shown for one, shown in functions(module, name)}
print(json.dumps({"left": left, "home": tformer_lib.__file__, "seen": seen}))
"""


@functools.cache
def shown(how: str) -> dict:
    """What there is to show, with stand-ins and the site's packages alone, or with all that is installed."""
    hidden = not_the_site_s() if how == "stand-ins" else set()
    command = [sys.executable, "-c", SCRIPT, how, json.dumps(sorted(hidden)), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "book")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@functools.cache
def not_the_site_s() -> set[str]:
    """What can be imported here and not where requirements-site.txt alone is installed."""
    lines = (ROOT / "requirements-site.txt").read_text("utf8").splitlines()
    site = {canonicalize_name(Requirement(line.split("#")[0]).name) for line in lines if line[0] != "#"}
    return {
        name
        for name, owners in packages_distributions().items()
        if not {canonicalize_name(owner) for owner in owners} & {*site, "tformer-lib", "tformer-book", "pip"}
    }


def test_the_package_is_imported_with_the_site_s_packages_alone():
    assert {"torch", "numpy", "matplotlib", "sklearn", "regex"} <= not_the_site_s()
    answer = shown("stand-ins")
    assert answer["left"] == []
    assert answer["home"] == str(ROOT / "tformer_lib" / "__init__.py")
    seen = answer["seen"]
    assert 'q: Float[Tensor, "*batch N Dh"]' in seen["tformer_lib.core.attention.attention"].replace("'", '"')
    layer = "tformer_lib.core.attention.MultiHeadAttention"
    assert seen[layer] == ["Module"]
    assert seen[f"{layer}.forward"].startswith("(x: ")


def test_they_change_no_signature_and_no_base():
    with_stand_ins, real = shown("stand-ins")["seen"], shown("real")["seen"]
    assert len(real) > 500
    assert with_stand_ins.keys() == real.keys()
    different = {
        name: (with_stand_ins[name], real[name]) for name in real if real[name] != with_stand_ins[name]
    }
    assert different == {}


def test_the_site_s_own_code_imports_the_site_s_packages_alone():
    """The extensions and `tools/build_site.py`, with all that they import of the project's."""
    code = {
        file.stem: file
        for folder in ("tools", "book/site/extensions")
        for file in (ROOT / folder).glob("*.py")
    }
    waiting = [name for name in code if name.startswith("tformer_")] + ["build_site", "bootstrap"]
    read, foreign = set(), {}
    while waiting:
        name = waiting.pop()
        if name in read:
            continue
        read.add(name)
        for node in ast.walk(ast.parse(code[name].read_text("utf8"))):
            if isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported = [node.module]
            else:
                continue
            for top in (one.split(".")[0] for one in imported):
                if top in code:
                    waiting.append(top)
                elif top in not_the_site_s() - {"future_typing"}:  # imported where it is there
                    foreign.setdefault(name, set()).add(top)
    assert len(read) > 30
    assert foreign == {}
