"""`make check` chooses what a change can break: on small trees, and on the book's own."""

import copy
import json
import shutil
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
}
BOOK = {
    "__init__.py": "from PACKAGE_book.kit.checker import check\n",
    "kit/__init__.py": "",
    "kit/carried.py": "",
    "kit/checker.py": "def check(name, f): ...\n",
    "alpha/__init__.py": "",
    "alpha/exercises.py": "from PACKAGE.core import b\n",
    "beta/__init__.py": "",
    "beta/exercises.py": "",
    "site/loose.py": "from PACKAGE.core import b\n",
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
    "test_taken.py": "from PACKAGE_book.alpha.laboratory import measured\n",
    "deep/conftest.py": "from tests.helper import f\n",
    "deep/test_deep.py": "",
}
NOTEBOOKS = {
    "alpha/chapter": [
        "try:\n    import PACKAGE\nexcept ImportError:\n    %pip install x\n",
        "check('alpha.task', 1)",
    ],
    "alpha/laboratory": ["from PACKAGE_book.alpha.chapter import x", "measured = x"],
    "alpha/exercises": ["from PACKAGE_book.alpha import exercises, laboratory as l"],  # a module, a notebook
    "beta/chapter": ["from PACKAGE import hold", "!ls\nrecorded('beta')"],
}
ALPHA = {f"book/{name}.ipynb" for name in NOTEBOOKS if "alpha" in name}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root, package = tmp_path_factory.mktemp("tree"), next(NAMES)
    files = {f"{package}/{name}": text for name, text in PACKAGE.items()}
    files |= {f"tests/{name}": text for name, text in TESTS.items()}
    files |= {f"book/{name}": text for name, text in BOOK.items()}
    files |= {"tools/run_it.py": "", "book/beta/records/beta.json": "{}", "tests/__init__.py": ""}
    for name, cells in NOTEBOOKS.items():
        nodes = [{"cell_type": "code", "source": c, "metadata": {}, "outputs": []} for c in cells]
        notebook = {"cells": nodes, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
        files[f"book/{name}.ipynb"] = json.dumps(notebook)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text.replace("PACKAGE", package), "utf8")
    (root / "link").mkdir()
    (root / "link" / f"{package}_book").symlink_to(root / "book")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(root)
        patch.syspath_prepend(root / "link")
        return tool.Tree(root, {package: package, f"{package}_book": "book"})


def chosen(tree, *files):
    files = [file.replace("PACKAGE", next(iter(tree.packages))) for file in files]
    return {target.removeprefix("tests/") for target in tool.plan(tree, files).tests}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        # a test that takes `f` from the package depends on the module of `f`, and not on `claims`
        ("PACKAGE/claims.py", {"test_hold.py", "book/beta/chapter.ipynb"}),
        (
            "PACKAGE/core/b.py",
            {"test_helped.py", "test_lazy.py", "test_taken.py", "deep/test_deep.py", *ALPHA},
        ),
        ("PACKAGE/parts/two.py", {"test_two.py"}),
        ("PACKAGE/parts/one.py", {"test_user.py"}),
        ("PACKAGE/parts/__init__.py", {"test_two.py", "test_user.py"}),
        ("book/beta/exercises.py", set()),
        ("book/alpha/exercises.py", {*ALPHA, "test_taken.py"}),
        ("book/alpha/chapter.ipynb", {*ALPHA, "test_taken.py"}),
        ("book/alpha/laboratory.ipynb", {*ALPHA, "test_taken.py"} - {"book/alpha/chapter.ipynb"}),
        ("book/alpha/exercises.ipynb", {"book/alpha/exercises.ipynb"}),
        ("book/kit/carried.py", {*ALPHA, "test_taken.py"} - {"book/alpha/chapter.ipynb"}),
        ("book/beta/records/beta.json", {"book/beta/chapter.ipynb"}),
        ("tests/test_two.py", {"test_two.py"}),
        ("tests/helper.py", {"test_helped.py", "deep/test_deep.py"}),
        ("tests/deep/conftest.py", {"deep/test_deep.py"}),
        ("tools/run_it.py", {"test_tool.py"}),
        ("book/beta/chapter.ipynb", {"book/beta/chapter.ipynb"}),
        ("LICENSE", set()),
    ],
)
def test_what_a_change_reaches(tree, file, expected):
    assert chosen(tree, file) == expected


def test_the_package_s_own_file_reaches_who_takes_names_from_it(tree):
    reached = chosen(tree, "PACKAGE/__init__.py")
    assert {"test_top.py", "test_hold.py", "book/alpha/chapter.ipynb", "book/beta/chapter.ipynb"} <= reached
    assert "test_two.py" not in reached


def test_the_tests_conftest_reaches_every_test(tree):
    assert chosen(tree, "tests/conftest.py") == {name for name in TESTS if "test_" in name}


def test_the_way_is_told(tree):
    reason = tool.plan(tree, [f"{next(iter(tree.packages))}/parts/one.py"]).tests["tests/test_user.py"]
    assert reason == "needs PACKAGE.user, which needs PACKAGE.parts.one".replace(
        "PACKAGE", next(iter(tree.packages))
    )


def test_the_way_through_a_notebook_is_told(tree):
    reason = tool.plan(tree, ["book/alpha/chapter.ipynb"]).tests["tests/test_taken.py"]
    assert reason == "needs book/alpha/laboratory.ipynb, which needs book/alpha/chapter.ipynb"


def test_prose_changes_nothing_for_what_takes_from_a_notebook(tree):
    file = "book/alpha/chapter.ipynb"
    assert tool.plan(tree, [file], [file]).tests == {}
    assert "tests/test_taken.py" in tool.plan(tree, [file]).tests


def test_a_deleted_module_reaches_who_still_imports_it(tree):
    code = tool.ast.parse(f"from {next(iter(tree.packages))}.gone import x")
    assert tree.needs(code, "tests.test_x") == {f"{next(iter(tree.packages))}.gone"}


@pytest.fixture(scope="module")
def book():
    return tool.Tree()


def test_a_chapter_s_figures_reach_that_chapter_alone(book):
    made = tool.plan(book, ["book/vit/plots.py"])
    pages = [test for test in made.tests if test.endswith(".ipynb")]
    assert "book/vit/chapter.ipynb" in pages
    assert {Path(page).parent.name for page in pages} == {"vit"}
    assert list(made.tests) == [
        *pages,  # what takes longest begins
        "tests/book/test_chapters.py",
        "tests/book/vit/test_plots.py",
        "tests/site/test_standins.py",
        "tests/test_package.py",
    ]
    assert made.style == ["book/vit/plots.py"]
    assert any("make test" in left for left in made.left)


def test_a_chapter_s_exercises_reach_that_chapter_and_the_solutions(book):
    made = tool.plan(book, ["book/positions/exercises.py"])
    assert {Path(t).parent.name for t in made.tests if t.endswith(".ipynb")} == {"positions"}
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
    notebooks = {p.relative_to(ROOT).as_posix() for p in ROOT.glob("book/*/*.ipynb")}
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
    *command, report, target = ran[-1]
    assert command[:7] == [
        *(sys.executable, "-m", "pytest", "-n", "auto", "--dist", "loadfile"),
    ]
    assert report.startswith("--junitxml=")
    assert target == "tests/test_x.py"


# --- what has passed is not run again ---


@pytest.fixture
def small(tree, tmp_path, monkeypatch):
    """A copy of the small tree, as the book's own; what is kept, and how to run it, lie there too."""
    shutil.copytree(tree.root, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "in_ci", lambda: False)
    moved = copy.copy(tree)
    moved.root, moved.modules = tmp_path, {n: tmp_path / tree.file(n) for n in tree.modules}
    return moved


def key(small, target):
    return tool.Keys(small).of(target)


def edit(small, file, text="# other\n"):
    path = small.root / file.replace("PACKAGE", next(iter(small.packages)))
    path.parent.mkdir(exist_ok=True)
    path.write_text((path.read_text("utf8") if path.exists() else "") + text, "utf8")


@pytest.mark.parametrize(
    ("file", "target", "counts"),
    [
        ("tests/test_user.py", "tests/test_user.py", True),
        ("PACKAGE/user.py", "tests/test_user.py", True),
        ("PACKAGE/parts/one.py", "tests/test_user.py", True),
        ("PACKAGE/parts/two.py", "tests/test_user.py", False),
        ("tests/conftest.py", "tests/test_user.py", True),
        ("tests/deep/conftest.py", "tests/test_user.py", False),
        ("tests/helper.py", "tests/deep/test_deep.py", True),
        ("requirements.txt", "tests/test_user.py", True),
        ("pyproject.toml", "tests/test_user.py", True),
        ("LICENSE", "tests/test_user.py", False),
        ("PACKAGE/core/b.py", "book/alpha/chapter.ipynb", True),
        ("book/beta/records/beta.json", "book/beta/chapter.ipynb", True),
        ("book/beta/records/beta.json", "book/alpha/chapter.ipynb", False),
        ("PACKAGE/core/b.py", "book/alpha/laboratory.ipynb", True),
        ("book/kit/carried.py", "book/alpha/laboratory.ipynb", True),
        ("book/kit/carried.py", "book/alpha/chapter.ipynb", False),
        ("tests/plain.txt", "tests/test_reads.py", True),
        ("book/notes.md", "tests/test_reads.py", True),
        ("book/page.html", "tests/test_reads.py", True),
        ("book/pictures/one.svg", "tests/test_reads.py", True),
        ("book/other.txt", "tests/test_reads.py", False),
    ],
)
def test_a_key_is_of_all_that_a_target_depends_on(small, file, target, counts):
    reads = "'plain.txt', 'notes', '.html', 'book' / 'pictures'\n"
    for name in ("tests/plain.txt", "book/notes.md", "book/page.html", "book/pictures/one.svg"):
        edit(small, name, "1")
    edit(small, "tests/test_reads.py", reads)
    small.graph.add_module("tests/test_reads.py")
    try:
        before = key(small, target)
        assert key(small, target) == before
        edit(small, file)
        assert (key(small, target) != before) == counts
    finally:
        small.graph.remove_module("tests/test_reads.py")


def test_another_python_has_other_keys(small, monkeypatch):
    before = key(small, "tests/test_user.py")
    monkeypatch.setattr(tool.sys, "version", "4.0")
    assert key(small, "tests/test_user.py") != before


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        (lambda cells: cells[0].update(source="other prose"), False),
        (lambda cells: cells.append({"cell_type": "markdown", "source": "more", "metadata": {}}), False),
        (lambda cells: cells[1].update(source="print(2)"), True),
        (lambda cells: cells[1].update(outputs=[]), True),
        (lambda cells: cells[1]["metadata"].update(tags=["nbval-ignore-output"]), True),
    ],
)
def test_of_a_notebook_code_and_outputs_count_and_prose_does_not(small, clone, change, counts):
    shown = [{"output_type": "stream", "name": "stdout", "text": "1\n"}]
    cells = [
        {"cell_type": "markdown", "source": "prose", "metadata": {}},
        {"cell_type": "code", "source": "print(1)", "metadata": {}, "outputs": shown},
    ]
    for root in (small.root, clone):
        (root / "book").mkdir(exist_ok=True)
        (root / "book/03_new.ipynb").write_text(json.dumps({"cells": cells}))
    small.graph.add_module("book/03_new.ipynb")
    for arguments in (("add", "."), ("commit", "-m", "third")):
        subprocess.run(["git", *arguments], cwd=clone, check=True, capture_output=True, env=IDENTITY)
    before = key(small, "book/03_new.ipynb")
    change(cells)
    for root in (small.root, clone):
        (root / "book/03_new.ipynb").write_text(json.dumps({"cells": cells}))
    same = tool.prose_alone(clone, "HEAD", {"book/03_new.ipynb", "new"}) == {"book/03_new.ipynb"}
    assert (key(small, "book/03_new.ipynb") != before) == counts == (not same)
    small.graph.remove_module("book/03_new.ipynb")


@pytest.mark.parametrize("target", ["book/alpha/laboratory.ipynb", "tests/test_taken.py"])
def test_of_a_notebook_that_is_taken_from_only_code_counts(small, target):
    path = small.root / "book/alpha/chapter.ipynb"
    notebook, before = json.loads(path.read_text("utf8")), key(small, target)
    for cell in (
        {"cell_type": "markdown", "source": "prose", "metadata": {}},
        {"cell_type": "code", "source": "y = 1", "metadata": {}, "outputs": []},
    ):
        notebook["cells"].append(cell)
        path.write_text(json.dumps(notebook), "utf8")
        assert (key(small, target) != before) == (cell["cell_type"] == "code")


def test_prose_brings_the_style_and_neither_the_notebook_nor_its_solutions(book):
    file = "book/attention/chapter.ipynb"
    of_prose = [f"tests/notebooks/test_{name}.py" for name in ("letters", "style")]
    assert sorted(tool.plan(book, [file], [file]).tests) == of_prose
    whole = tool.plan(book, [file]).tests
    assert {file, *tool.CODE_ALONE} <= whole.keys()
    both = tool.plan(book, [file, "book/attention/plots.py"], [file]).tests
    assert both[file].startswith("needs ")  # the code that it has is run for another reason


PASSES, FAILS, SKIPS = (
    "def test(): pass\n",
    "def test(): assert 0\n",
    "import pytest\n\n@pytest.mark.skip\ndef test(): ...\n",
)


def test_what_has_passed_is_not_run_again_until_something_changes(small, monkeypatch):
    """With a pytest of its own, whose report is read."""
    names = {"good": PASSES, "bad": FAILS, "left": SKIPS, "both": f"{PASSES}\n\ndef test_b(): assert 0\n"}
    (small.root / "pytest.ini").write_text("[pytest]\n")
    for name, text in names.items():
        edit(small, f"tests/test_{name}.py", text)
        small.graph.add_module(f"tests/test_{name}.py")
    monkeypatch.setattr(tool, "Tree", lambda: small)
    files = [f"tests/test_{name}.py" for name in names]

    def check(run=False):
        made = tool.Plan(tests=dict.fromkeys(files, "why"))
        tool.without_passed(made, tool.Keys(small), tool.read_kept(small.root))
        return set(made.tests), set(made.passed), tool.run_tests(made) if run else None

    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:cacheprovider")
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "0")
    try:
        assert check(run=True) == (set(files), set(), 1)
        assert check() == (set(files[1:]), set(files[:1]), None)  # what failed or was left out runs again
        before = (small.root / files[0]).read_text("utf8")
        edit(small, files[0])
        assert check() == (set(files), set(), None)
        (small.root / files[0]).write_text(before, "utf8")
        assert check() == (set(files[1:]), set(files[:1]), None)
        (small.root / tool.PASSED).write_text("damaged")
        assert check() == (set(files), set(), None)
    finally:
        for file in files:
            small.graph.remove_module(file)


def test_what_changes_while_it_runs_is_not_kept(small, monkeypatch):
    monkeypatch.setattr(tool, "Tree", lambda: small)
    made = tool.Plan(tests={"tests/test_user.py": "why"})
    tool.without_passed(made, tool.Keys(small), {})

    def passes(command, **options):
        (report,) = [word.split("=")[1] for word in command if word.startswith("--junitxml=")]
        Path(report).write_text('<testsuites><testcase file="tests/test_user.py" name="test"/></testsuites>')
        edit(small, "PACKAGE/user.py")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(tool.subprocess, "run", passes)
    real = tool.git
    monkeypatch.setattr(tool, "git", lambda root, *rest: None if root == small.root else real(root, *rest))
    assert tool.run_tests(made) == 0
    assert tool.read_kept(small.root) == {}


def test_a_folder_is_its_files(small):
    made = tool.Plan(tests={"tests/deep": "why"})
    tool.without_passed(made, tool.Keys(small), {})
    assert made.tests == {"tests/deep/test_deep.py": "why"}


def test_keys_of_several_states_are_kept_the_newest_first(small):
    for n in range(tool.KEPT + 5):
        tool.keep(small.root, {"a": str(n), "b": "same"})
    kept = tool.read_kept(small.root)
    assert kept["b"] == ["same"]
    assert kept["a"] == [str(n) for n in reversed(range(5, tool.KEPT + 5))]


@pytest.mark.parametrize(("value", "reused"), [("true", False), ("", True), ("false", True)])
def test_ci_runs_everything(book, monkeypatch, value, reused):
    monkeypatch.setenv("CI", value)
    ran = []
    monkeypatch.setattr(tool, "changed_since", lambda root, base: {"tests/core/test_masks.py"})
    monkeypatch.setattr(tool, "Tree", lambda: book)
    kept = {"tests/core/test_masks.py": [tool.Keys(book).of("tests/core/test_masks.py")]}
    monkeypatch.setattr(tool, "read_kept", lambda root: kept)
    monkeypatch.setattr(tool, "run", lambda made: ran.append(set(made.tests)) or 0)
    assert tool.main([]) == 0
    assert ran == [set() if reused else {"tests/core/test_masks.py"}]
    tool.main(["--again"])
    assert ran[1] == {"tests/core/test_masks.py"}


def test_list_runs_nothing(monkeypatch, capsys):
    monkeypatch.setattr(tool, "changed_since", lambda root, base: {"README.md"})
    monkeypatch.setattr(tool, "run", lambda made: pytest.fail("it ran"))
    assert tool.main(["--list", "--base", "main"]) == 0
    assert "tests/test_readme.py  reads README.md" in capsys.readouterr().out


def test_outside_a_clone_one_sentence_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    assert tool.main([]) == 2
    assert "is it a clone" in capsys.readouterr().out
