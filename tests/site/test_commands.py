"""The commands on a machine where something is missing: one sentence that says what to do, no traceback."""

import ast
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.site.pages import ROOT

MAKE = shutil.which("make")
pytestmark = pytest.mark.skipif(MAKE is None, reason="there is no make on this machine")

FAKE_PYTHON = """#!{python}
import runpy, sys
{change}
sys.argv = sys.argv[1:]
if sys.argv[0] == "-c":
    exec(sys.argv[1])
else:
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture
def clone(tmp_path) -> Path:
    """The files that `make book` starts from, in a folder without .venv."""
    folder = tmp_path / "clone"
    (folder / "tools").mkdir(parents=True)
    (folder / "book").mkdir()
    for name in (
        "Makefile",
        "requirements.txt",
        "requirements-site.txt",
        "pyproject.toml",
        "book/pyproject.toml",
        "tools/bootstrap.py",
    ):
        shutil.copy(ROOT / name, folder / name)
    return folder


def run_make(clone: Path, *goals: str, python: str | None = None, **variables: str):
    """Runs make in the clone, with no Python on the path but the given text as `python3`."""
    bin_folder = clone.parent / "bin"
    bin_folder.mkdir(exist_ok=True)
    for tool in ("sh", "sed", "grep", "awk"):
        (bin_folder / tool).symlink_to(shutil.which(tool))
    if python is not None:
        (bin_folder / "python3").write_text(python)
        (bin_folder / "python3").chmod(0o755)
    environment = {"PATH": str(bin_folder), "HOME": str(clone.parent), **variables}
    return subprocess.run(
        [MAKE, *goals], cwd=clone, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def one_sentence(answer) -> str:
    """What make said on stderr, less its own closing line; fails on anything longer than a sentence."""
    assert answer.returncode != 0
    lines = [line for line in answer.stderr.splitlines() if not line.startswith("make")]
    assert len(lines) == 1, answer.stderr
    assert "Traceback" not in answer.stderr + answer.stdout
    return lines[0]


def fake(change: str) -> str:
    return FAKE_PYTHON.format(python=sys.executable, change=change)


@pytest.mark.parametrize("goal", ["book", "test", "lint"])
def test_no_python(clone, goal):
    assert one_sentence(run_make(clone, goal)).startswith("No Python was found: install Python 3.11 or newer")


def test_named_python_is_not_there(clone):
    sentence = one_sentence(run_make(clone, "book", "PYTHON=/nowhere/python3"))
    assert sentence.startswith("No Python was found, at /nowhere/python3: install Python 3.11")


def test_old_python(clone):
    sentence = one_sentence(run_make(clone, "book", python=fake("sys.version_info = (3, 8, 10, 'final', 0)")))
    assert "needs Python 3.11 or newer" in sentence
    assert "is Python 3.8" in sentence
    assert "make PYTHON=" in sentence


def test_python_without_venv(clone):
    sentence = one_sentence(run_make(clone, "book", python=fake("sys.modules['ensurepip'] = None")))
    version = ".".join(map(str, sys.version_info[:2]))
    assert f"apt install python{version}-venv" in sentence


def test_offline(clone):
    """The index is a closed port of this machine, and nothing else is configured."""
    answer = run_make(
        clone,
        "book",
        f"PYTHON={sys.executable}",
        PIP_CONFIG_FILE=os.devnull,
        PIP_INDEX_URL="http://127.0.0.1:9/simple",
        PIP_RETRIES="0",
        PIP_NO_CACHE_DIR="1",
    )
    assert "needs (later ones do not): connect this machine to the network" in one_sentence(answer)
    assert not list((clone / ".venv").glob(".installed*"))


def test_serve_before_book(clone):
    (clone / ".venv").mkdir()
    (clone / ".venv" / ".installed").touch()
    assert one_sentence(run_make(clone, "serve")) == "There is no site yet: run 'make book' first."


def test_make_alone_lists_the_commands(clone):
    answer = run_make(clone)
    assert answer.returncode == 0
    listed = re.findall(r"^  make (\w+) ", answer.stdout, re.MULTILINE)
    commands = "help env book notebooks lab pdf test check portable execute chapter grown serve"
    assert listed == f"{commands} format lint lock address clean".split()


def test_bootstrap_parses_on_old_pythons():
    ast.parse((ROOT / "tools" / "bootstrap.py").read_text("utf8"), feature_version=(3, 4))


def lines_of(name: str) -> list[str]:
    """The lines of a file of requirements that say something, without their comments."""
    lines = [line.split("#")[0].strip() for line in (ROOT / name).read_text("utf8").splitlines()]
    return [line for line in lines if line]


def pins(lines: list[str]) -> dict[str, Requirement]:
    """Each line is an exact version; by the package's name."""
    found = {}
    for line in lines:
        requirement = Requirement(line)
        assert re.fullmatch(r"==[\w.]+", str(requirement.specifier)), line
        found[canonicalize_name(requirement.name)] = requirement
    assert len(found) == len(lines)
    return found


def assert_complete(names, pinned: dict[str, Requirement]) -> None:
    """What the named packages need is pinned too."""
    for name in names:
        if name in pinned and not (pinned[name].marker is None or pinned[name].marker.evaluate()):
            continue
        for text in distribution(name).requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                assert canonicalize_name(needed.name) in {*pinned, "tformer-lib"}, f"{name} needs {text}"


def test_requirements_are_pinned_and_complete():
    *lines, library, book = lines_of("requirements.txt")
    assert [library, book] == ["-e .", "-e ./book"]
    site, everything = pins(lines_of("requirements-site.txt")), pins(lines)
    assert all(str(everything[name].specifier) == str(pin.specifier) for name, pin in site.items())
    assert_complete(site, site)
    assert_complete({"tformer-lib", "tformer-book", *everything}, everything)
    assert str(everything["torch"].specifier) == "==2.13.0"
    assert site.keys().isdisjoint({"torch", "numpy", "scipy", "matplotlib"})


def test_the_package_alone_needs_little():
    """What `pip install tformer-lib` brings is what its core imports; tformer-book brings the rest."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    needed = {canonicalize_name(Requirement(text).name) for text in project["dependencies"]}
    assert needed == {"jaxtyping", "numpy", "regex", "safetensors", "torch", "tqdm"}
    book = tomllib.loads((ROOT / "book" / "pyproject.toml").read_text("utf8"))["project"]
    extra = {canonicalize_name(Requirement(text).name) for text in book["dependencies"]}
    assert {"matplotlib", "ipython", "scikit-learn", "trac"} <= extra
    assert needed.isdisjoint(extra)


def test_every_pin_says_who_needs_it():
    for name in ("requirements.txt", "requirements-site.txt"):
        first, *lines = (ROOT / name).read_text("utf8").splitlines()
        assert first.startswith("# Made by `make lock`")
        assert all("# via " in line for line in lines if not line.startswith("-e "))
        assert sum("tformer-lib (pyproject.toml" in line for line in lines) > 10


@pytest.mark.parametrize(
    ("wanted", "stamps"),
    [
        ("requirements-site.txt", {".installed-site"}),
        ("requirements.txt", {".installed", ".installed-site"}),
    ],
)
def test_a_stamp_for_what_is_there(clone, monkeypatch, wanted, stamps):
    """`make book` installs the site's packages; where everything is installed, nothing."""
    (clone / ".venv").mkdir()
    bootstrap = runpy.run_path(str(clone / "tools" / "bootstrap.py"))
    installed = []
    monkeypatch.setattr(bootstrap["subprocess"], "call", lambda command, **_: installed.append(command[-1]))
    bootstrap["main"].__globals__["usable"] = lambda python: True
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", wanted])
    monkeypatch.chdir(clone)
    bootstrap["main"]()
    assert installed == [wanted]
    assert {path.name for path in (clone / ".venv").glob(".installed*")} == stamps
    ask = [MAKE, "-n", f"PYTHON={sys.executable}"]
    would_run = {
        goal: "bootstrap.py" in subprocess.run([*ask, goal], cwd=clone, capture_output=True, text=True).stdout
        for goal in ("book", "pdf", "test", "check", "execute", "lint")
    }
    everything = wanted == "requirements.txt"
    others = ("pdf", "test", "check", "execute", "lint")
    assert would_run == {"book": False} | dict.fromkeys(others, not everything)
