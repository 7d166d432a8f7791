"""`make check` chooses what a change can break: on small trees, and on the book's own."""

import json
import subprocess
import sys
from itertools import count
from pathlib import Path

import check as tool
import pytest

ROOT = Path(__file__).parents[2]
NAMES = (f"toylib_{number}" for number in count())  # Python remembers a package that it has found

PACKAGE = {
    "__init__.py": "from PACKAGE.core.a import f\nfrom .claims import claim as hold\n",
    "claims.py": "def claim(): ...\n",
    "core/__init__.py": "",
    "core/a.py": "def f(): ...\n",
    "core/b.py": "from PACKAGE.core.a import f\n",
    "parts/__init__.py": "from .one import x\nfrom .two import y\n",
    "parts/one.py": "x = 1\n",
    "parts/two.py": "y = 2\n",
    "user.py": "from PACKAGE.parts import x\n",
    "book/__init__.py": "",
    "book/exercises/__init__.py": "from PACKAGE.book.exercises.checker import check\n",
    "book/exercises/checker.py": "def check(name, f): ...\n",
    "book/exercises/alpha.py": "from PACKAGE.core import b\n",
    "book/exercises/beta.py": "",
}
TESTS = {
    "conftest.py": "",
    "helper.py": "from PACKAGE.core.b import f\n",
    "test_top.py": "from PACKAGE import f\n",
    "test_hold.py": "import PACKAGE\n\ndef test(): PACKAGE.hold()\n",
    "test_user.py": "from PACKAGE import user as u\n",
    "test_two.py": "from PACKAGE.parts import y\n",
    "test_helped.py": "from tests import helper\n",
    "test_lazy.py": "def test():\n    import PACKAGE.core.b\n",
    "test_tool.py": "import run_it\n",
    "deep/conftest.py": "from tests.helper import f\n",
    "deep/test_deep.py": "",
}
NOTEBOOKS = {
    "01_alpha": [
        "try:\n    import PACKAGE\nexcept ImportError:\n    %pip install x\n",
        "check('alpha.task', 1)",
    ],
    "02_beta": ["from PACKAGE import hold", "!ls\nrecorded('beta')"],
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root, package = tmp_path_factory.mktemp("tree"), next(NAMES)
    files = {f"{package}/{name}": text for name, text in PACKAGE.items()}
    files |= {f"tests/{name}": text for name, text in TESTS.items()}
    files |= {"tools/run_it.py": "", f"{package}/book/recorded/beta.json": "{}", "tests/__init__.py": ""}
    for name, cells in NOTEBOOKS.items():
        nodes = [{"cell_type": "code", "source": c, "metadata": {}, "outputs": []} for c in cells]
        notebook = {"cells": nodes, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
        files[f"book/{name}.ipynb"] = json.dumps(notebook)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text.replace("PACKAGE", package), "utf8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(root)
        return tool.Tree(root, package)


def chosen(tree, *files):
    files = [file.replace("PACKAGE", tree.package) for file in files]
    return {target.removeprefix("tests/") for target in tool.plan(tree, files).tests}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        # a test that takes `f` from the package depends on the module of `f`, and not on `claims`
        ("PACKAGE/claims.py", {"test_hold.py", "book/02_beta.ipynb"}),
        ("PACKAGE/core/b.py", {"test_helped.py", "test_lazy.py", "deep/test_deep.py", "book/01_alpha.ipynb"}),
        ("PACKAGE/parts/two.py", {"test_two.py"}),
        ("PACKAGE/parts/one.py", {"test_user.py"}),
        ("PACKAGE/parts/__init__.py", {"test_two.py", "test_user.py"}),
        ("PACKAGE/book/exercises/beta.py", set()),
        ("PACKAGE/book/exercises/alpha.py", {"book/01_alpha.ipynb"}),
        ("PACKAGE/book/recorded/beta.json", {"book/02_beta.ipynb"}),
        ("tests/test_two.py", {"test_two.py"}),
        ("tests/helper.py", {"test_helped.py", "deep/test_deep.py"}),
        ("tests/deep/conftest.py", {"deep/test_deep.py"}),
        ("tools/run_it.py", {"test_tool.py"}),
        ("book/02_beta.ipynb", {"book/02_beta.ipynb"}),
        ("LICENSE", set()),
    ],
)
def test_what_a_change_reaches(tree, file, expected):
    assert chosen(tree, file) == expected


def test_the_package_s_own_file_reaches_who_takes_names_from_it(tree):
    reached = chosen(tree, "PACKAGE/__init__.py")
    assert {"test_top.py", "test_hold.py", "book/01_alpha.ipynb", "book/02_beta.ipynb"} <= reached
    assert "test_two.py" not in reached


def test_the_tests_conftest_reaches_every_test(tree):
    assert chosen(tree, "tests/conftest.py") == {name for name in TESTS if "test_" in name}


def test_the_way_is_told(tree):
    reason = tool.plan(tree, [f"{tree.package}/parts/one.py"]).tests["tests/test_user.py"]
    assert reason == "needs PACKAGE.user, which needs PACKAGE.parts.one".replace("PACKAGE", tree.package)


def test_a_deleted_module_reaches_who_still_imports_it(tree):
    code = tool.ast.parse(f"from {tree.package}.gone import x")
    assert tree.needs(code, "tests.test_x") == {f"{tree.package}.gone"}


@pytest.fixture(scope="module")
def book():
    return tool.Tree()


def test_a_chapter_s_figures_reach_that_chapter_alone(book):
    made = tool.plan(book, ["book/vit/plots.py"])
    assert list(made.tests) == [
        "book/vit/chapter.ipynb",  # what takes longest begins
        "tests/book/vit/test_plots.py",
        "tests/site/test_standins.py",
        "tests/test_package.py",
    ]
    assert made.style == ["book/vit/plots.py"]
    assert any("make test" in left for left in made.left)


def test_a_chapter_s_exercises_reach_that_chapter_and_the_solutions(book):
    made = tool.plan(book, ["book/positions/exercises.py"])
    assert [t for t in made.tests if t.endswith(".ipynb")] == ["book/positions/chapter.ipynb"]
    assert "tests/book/kit/exercises/test_exercises.py" in made.tests


def test_a_chapter_s_text_brings_its_style_and_not_the_site(book):
    made = tool.plan(book, ["book/attention/chapter.ipynb"])
    assert {"book/attention/chapter.ipynb", "tests/notebooks/test_style.py"} <= set(made.tests)
    assert not any(tool.needs_site(t) for t in made.tests)
    assert "the built site (`make test`)" in made.left


def test_attention_reaches_nearly_everything(book):
    reached = tool.plan(book, ["tformer_lib/core/attention.py"]).tests
    assert {
        "book/attention/chapter.ipynb",
        "book/transformer/chapter.ipynb",
        "tests/core/test_masks.py",
    } <= set(reached)


def test_the_tests_conftest_and_the_notebooks_plugin(book):
    files = {p.relative_to(ROOT).as_posix() for p in ROOT.glob("tests/**/test_*.py")}
    reached = set(tool.plan(book, ["tests/conftest.py"]).tests)
    assert files - reached == {f for f in files if tool.needs_site(f)}
    notebooks = {p.relative_to(ROOT).as_posix() for p in ROOT.glob("book/*.ipynb")}
    assert notebooks <= set(tool.plan(book, ["tests/notebooks/outputs.py"]).tests)


@pytest.mark.parametrize(
    "file", ["_config.yml", "book/site/static/tformer.css", "book/index.md", "book/site/extensions/x.py"]
)
def test_the_site_s_files_bring_the_site_s_tests(book, file):
    assert "tests/site" in tool.plan(book, [file]).tests


def test_files_that_are_named_here_are_there():
    for _, target in tool.ALSO:
        assert (ROOT / target).exists(), target
    for file in (*tool.NOTEBOOKS_RUN_IN, *(importer for importer, _ in tool.BY_NAME)):
        assert (ROOT / file).exists(), file


@pytest.fixture
def clone(tmp_path):
    """A small repository with a branch that leaves main."""

    def git(*arguments):
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-b", "main")
    for name in ("kept", "deleted", "edited"):
        (tmp_path / name).write_text(name)
    git("add", ".")
    git("commit", "-m", "first")
    git("switch", "-c", "branch")
    (tmp_path / "committed").write_text("x")
    git("add", ".")
    git("commit", "-m", "second")
    (tmp_path / "edited").write_text("y")
    (tmp_path / "deleted").unlink()
    (tmp_path / "new").write_text("z")
    return tmp_path


def test_a_change_is_what_differs_from_main(clone):
    base = tool.find_base(clone)
    assert tool.changed_since(clone, base) == {"committed", "edited", "deleted", "new"}
    assert tool.changed_since(clone, "HEAD") == {"edited", "deleted", "new"}
    assert tool.changed_since(clone, "no-such-branch") is None


def test_what_main_has_gained_since_is_no_change(clone):
    def git(*arguments):
        subprocess.run(["git", *arguments], cwd=clone, check=True, capture_output=True, env=IDENTITY)

    git("stash", "-u")
    git("switch", "main")
    (clone / "gained").write_text("x")
    git("add", ".")
    git("commit", "-m", "third")
    git("switch", "branch")
    assert tool.changed_since(clone, "main") == {"committed"}


def test_on_main_it_is_what_is_not_committed(clone):
    subprocess.run(["git", "stash", "-u"], cwd=clone, check=True, capture_output=True, env=IDENTITY)
    subprocess.run(["git", "switch", "main"], cwd=clone, check=True, capture_output=True)
    (clone / "new").write_text("z")
    assert tool.find_base(clone) == "HEAD"
    assert tool.changed_since(clone, "HEAD") == {"new"}


IDENTITY = {
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "A"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "a@example.org"),
}


@pytest.mark.parametrize(
    ("codes", "answer"), [((0, 0, 0), 0), ((1, 0, 0), 1), ((1, 0, 2), 2), ((0, 0, 5), 5), ((0, 1, 0), 1)]
)
def test_it_ends_with_the_code_of_pytest(monkeypatch, codes, answer):
    ran = []

    def fake(command, **options):
        ran.append(command)
        return subprocess.CompletedProcess(command, codes[len(ran) - 1])

    monkeypatch.setattr(tool.subprocess, "run", fake)
    made = tool.Plan(tests={"tests/test_x.py": ""}, style=["x.py"])
    assert tool.run(made) == answer
    assert ran[-1] == [
        *(sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"),
        "tests/test_x.py",
    ]


def test_list_runs_nothing(monkeypatch, capsys):
    monkeypatch.setattr(tool, "changed_since", lambda root, base: {"README.md"})
    monkeypatch.setattr(tool, "run", lambda made: pytest.fail("it ran"))
    assert tool.main(["--list", "--base", "main"]) == 0
    assert "tests/test_readme.py  reads README.md" in capsys.readouterr().out


def test_outside_a_clone_one_sentence_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    assert tool.main([]) == 2
    assert "is it a clone" in capsys.readouterr().out
