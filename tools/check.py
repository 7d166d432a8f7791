"""Runs what a change can break, and says why: `make check`, or `python tools/check.py --list` to see it only.

A change is what differs from the base: on a branch the commit where it left main, on main the last commit;
`--base` (`make check BASE=...`) names another commit or branch to count from. Files that git does not know
yet count.

What has passed is not run again. A test file or a notebook has a key, made of what it depends on: its text,
the modules that it reaches, the files that these name, the lock file, and Python. Keys that passed are kept
in `_build/passed.json`. A notebook of which only prose has changed is not run. In CI, and with `--again`, all
of it is.

What imports what in the packages is grimp's graph. The imports of tests and notebooks come from their code. A
name that a package's __init__ hands on counts as an import of the module that defines it: a notebook that
takes `claim` from `tformer_book` does not depend on all that stands beside it there. A notebook is a module
too: what takes a name from `tformer_book.attention.chapter` depends on that notebook's code, on all that it
needs, and on what makes a module of it.
"""

import argparse
import ast
import fnmatch
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import grimp
import nbformat

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"tformer_lib": "tformer_lib", "tformer_book": "book"}  # where each lies
# Files that no import leads to, and what a change in them can break. `*` matches any path below.
ALSO = (
    ("README.md", "tests/test_readme.py"),
    ("Makefile", "tests/test_readme.py"),
    ("Makefile", "tests/site/test_commands.py"),
    ("requirements*.txt", "tests/site/test_commands.py"),
    ("pyproject.toml", "tests/site/test_commands.py"),
    ("tools/bootstrap.py", "tests/site/test_commands.py"),
    ("tformer_lib/*.py", "tests/test_package.py"),  # it imports every module and reads its imports
    ("book/*.py", "tests/test_package.py"),
    ("tformer_lib/*.py", "tests/test_guards.py"),
    ("book/*/*.py", "tests/book/test_chapters.py"),
    ("book/*/chapter.yml", "tests/book/test_chapters.py"),
    ("_toc.yml", "tests/book/test_chapters.py"),
    ("pyproject.toml", "tests/test_package.py"),
    ("tformer_lib/*.py", "tests/site/test_standins.py"),  # what the API pages import
    ("book/*.py", "tests/site/test_standins.py"),
    ("book/*/card.*", "tests/book/kit/drawings"),  # the files that tools/draw_pictures.py writes
    ("book/site/drawings/*", "tests/book/kit/drawings"),
    ("book/site/static/*", "tests/book/kit/drawings"),
    ("book/*/records/*.json", "tests/book/kit/test_records.py"),
    ("book/*/experiments/*.py", "tests/book/kit/test_records.py"),
    ("book/*.ipynb", "tests/notebooks/test_style.py"),
    ("book/*.ipynb", "tests/notebooks/test_letters.py"),
    ("book/notation/letters.yml", "tests/notebooks/test_letters.py"),
    ("book/*.ipynb", "tests/tools/test_grown.py"),  # it runs the code that they grow
    ("book/*.ipynb", "tests/book/kit/exercises/test_exercises.py"),  # it runs the solutions on the pages
    ("book/*.md", "tests/notebooks/test_style.py"),
    ("references.bib", "tests/notebooks/test_style.py"),
    ("book/*.md", "tests/site"),
    ("book/site/*", "tests/site"),  # extensions, templates, style sheets
    ("book/*/live.yml", "tests/site"),
    ("book/*/questions.yml", "tests/site"),
    ("book/*/questions.yml", "tests/tools/test_questions.py"),
    ("book/*/chapter.yml", "tests/site"),
    ("references.bib", "tests/site"),
    ("_config.yml", "tests/site"),
    ("_toc.yml", "tests/site"),
    ("requirements-site.txt", "tests/site"),
    ("tools/build_site.py", "tests/site"),
    ("tools/make_pdf.py", "tests/site/test_pdf.py"),
    ("tools/search_index.py", "tests/site"),
)
# Imports that are made by name as the code runs.
BY_NAME = (
    ("tests/book/kit/exercises/test_exercises.py", "tformer_book.*.exercises"),
    ("tests/book/kit/exercises/test_mutants.py", "tformer_book.*.exercises"),
    ("tests/book/kit/drawings/test_drawings.py", "tformer_book.*.card"),
    ("tests/notebooks/plugin.py", "tests/notebooks/sanitize.cfg"),
)
WITHOUT_SITE = ("tests/site/test_commands.py", "tests/site/test_standins.py")  # these need none that is built
CARRIES = "kit/carried.py"  # in the book: it makes modules of notebooks
NOTEBOOKS_RUN_IN = ("conftest.py", "tests/notebooks/plugin.py")
# Of these a notebook's prose changes nothing: they look at its code and what that shows.
CODE_ALONE = ("tests/tools/test_grown.py", "tests/book/kit/exercises/test_exercises.py")
# What every test depends on, beside Python itself.
ALWAYS = ("requirements.txt", "pyproject.toml", "conftest.py", "tools/check.py")
SITE_SOURCES = (
    "_config.yml",
    "_toc.yml",
    "references.bib",
    "requirements-site.txt",
    "book",
    "tformer_lib",
    "tools",
)
PASSED = Path("_build", "passed.json")
KEPT = 20  # keys of a target: of as many states of the files, on one branch and another
MAGIC = re.compile(r"^(\s*)[%!].*$", re.MULTILINE)


@dataclass
class Plan:
    """What is to be run: each target of pytest with its reason, and the files for ruff."""

    tests: dict[str, str] = field(default_factory=dict)
    passed: dict[str, str] = field(default_factory=dict)  # what has passed as it is, and is not run again
    keys: dict[str, str] = field(default_factory=dict)  # of the files that are run
    style: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # what is not run, and the command that does


class Tree:
    """The packages, the tests, the tools and the notebooks under `root`, and who imports whom.

    In the graph a module of a package goes by its name and any other file by its path; what a package's
    own file hands on goes by the package's name with `.__init__`, a module that imports nothing.
    """

    def __init__(self, root: Path = ROOT, packages: Mapping[str, str] = PACKAGES):
        self.root, self.packages = root, dict(packages)
        self.modules = {
            self.module(path): path
            for folder in self.packages.values()
            for path in sorted((root / folder).rglob("*.py"))
            if all((above / "__init__.py").exists() for above in within(path, root / folder))
        }
        self.notebooks = {  # by the name under which it is imported; a module of that name goes first
            self.module(path.with_suffix(".py")): path
            for folder in self.packages.values()
            for path in sorted((root / folder).glob("*/*.ipynb"))
            if not path.with_suffix(".py").exists()
        }
        self._handed_on: dict[str, dict[str, tuple[str, str]]] = {}
        self.graph = grimp.build_graph(*self.packages, cache_dir=None)
        self._refine()
        self._add_files()

    def module(self, path: Path) -> str:
        """The name of the module in a file of a package."""
        place = path.relative_to(self.root)
        package = next(name for name, folder in self.packages.items() if place.is_relative_to(folder))
        parts = (package, *place.relative_to(self.packages[package]).with_suffix("").parts)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def is_package(self, module: str) -> bool:
        """Whether the module is a package, with modules below it."""
        return module in self.modules and self.modules[module].name == "__init__.py"

    def nodes(self, file: str) -> list[str]:
        """What stands for a file in the graph."""
        inside = file.startswith(tuple(f"{folder}/" for folder in self.packages.values()))
        if inside and file.endswith(".py"):
            name = self.module(self.root / file)
            return [name, f"{name}.__init__"] if file.endswith("/__init__.py") else [name]
        return [file]

    def file(self, node: str) -> str:
        """The file of what stands in the graph."""
        path = self.modules.get(node.removesuffix(".__init__"))
        return path.relative_to(self.root).as_posix() if path else node

    def handed_on(self, package: str) -> dict[str, tuple[str, str]]:
        """The names that a package's __init__ imports: the module of each, and its name there."""
        if package not in self._handed_on:
            found = {}
            for node in ast.parse(self.modules[package].read_text("utf8")).body:
                if isinstance(node, ast.ImportFrom):
                    base = absolute(node, package, is_package=True)
                    found |= {alias.asname or alias.name: (base, alias.name) for alias in node.names}
            self._handed_on[package] = found
        return self._handed_on[package]

    def named(self, base: str, name: str) -> Iterator[str]:
        """What `from base import name` depends on."""
        if f"{base}.{name}" in self.modules:
            yield f"{base}.{name}"
        elif f"{base}.{name}" in self.notebooks:
            yield from self.file_or_module(f"{base}.{name}")
        elif self.is_package(base) and name in self.handed_on(base):
            yield f"{base}.__init__"
            yield from self.named(*self.handed_on(base)[name])
        else:
            yield from self.file_or_module(base)

    def file_or_module(self, name: str) -> Iterator[str]:
        """A module's place in the graph: the package's by name, also where it is no longer there."""
        if name in self.notebooks:
            yield self.notebooks[name].relative_to(self.root).as_posix()
            carries = self.root / self.packages[name.split(".")[0]] / CARRIES
            if carries.is_file():
                yield self.module(carries)
            return
        if name.split(".")[0] in self.packages:
            yield name
            return
        path = Path(*name.split("."))
        for candidate in (path.with_suffix(".py"), path / "__init__.py", "tools" / path.with_suffix(".py")):
            if (self.root / candidate).is_file():
                yield candidate.as_posix()

    def needs(self, code: ast.AST, here: str, *, is_package: bool = False) -> set[str]:
        """What a piece of code imports, from the package and from the files beside it."""
        found: set[str] = set()
        for node in ast.walk(code):
            if isinstance(node, ast.ImportFrom):
                base = absolute(node, here, is_package=is_package)
                for alias in node.names:
                    nested = () if alias.name == "*" else self.file_or_module(f"{base}.{alias.name}")
                    beside = [] if base.split(".")[0] in self.packages else list(nested)
                    found.update(beside or self.named(base, alias.name))
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name in self.packages:  # what is taken from it shows where it is used
                        found.add(f"{alias.name}.__init__")
                    else:
                        found.update(self.file_or_module(alias.name))
            elif isinstance(node, ast.Attribute):
                found.update(self.attribute(node))
            elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                found.update(self.by_word(node.func, node.args[0].value))
        return found

    def attribute(self, node: ast.Attribute) -> Iterator[str]:
        """What `package.name` stands for, where a package is written out."""
        if not (isinstance(node.value, ast.Name) and node.value.id in self.packages):
            return
        package = node.value.id
        if node.attr in self.handed_on(package) or f"{package}.{node.attr}" in self.modules:
            yield from self.named(package, node.attr)

    def by_word(self, function: ast.expr, word: object) -> Iterator[str]:
        """The modules and files that a call names in words: exercises and recorded results."""
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        if not isinstance(word, str):
            return
        if name == "check":
            end = f".{word.split('.')[0]}.exercises"
            yield from (module for module in self.modules if module.endswith(end))
        if name == "recorded":
            for path in self.root.glob(f"book/*/records/{word}.json"):
                yield path.relative_to(self.root).as_posix()

    def _refine(self) -> None:
        """In grimp's graph, imports from a package lead to what they name and not to all that it imports."""
        for name, path in self.modules.items():
            before = self.graph.find_modules_directly_imported_by(name)
            code = ast.parse(path.read_text("utf8"))
            after = self.needs(code, name, is_package=self.is_package(name)) - {name}
            for other in before - after:
                if self.is_package(other):
                    self.graph.remove_import(importer=name, imported=other)
            self._link(name, after)

    def _add_files(self) -> None:
        """Adds the tests, the tools and the notebooks."""
        for path in sorted([*self.root.glob("tests/**/*.py"), *self.root.glob("tools/*.py")]):
            file = path.relative_to(self.root).as_posix()
            here = ".".join(path.relative_to(self.root).with_suffix("").parts)
            needs = self.needs(ast.parse(path.read_text("utf8")), here)
            if is_test(file):
                above = [folder / "conftest.py" for folder in Path(file).parents]
                needs |= {c.as_posix() for c in above if (self.root / c).is_file()}
            self._link(file, needs - {file})
        for path in sorted(self.root.glob("book/*/*.ipynb")):
            file = path.relative_to(self.root).as_posix()
            self._link(file, self.notebook_needs(path) - {file})
        for importer, pattern in BY_NAME:
            if (self.root / importer).is_file():
                self._link(importer, set(fnmatch.filter(self.modules, pattern)) or {pattern})

    def notebook_needs(self, path: Path) -> set[str]:
        """What the cells of a notebook import, and the plugin that runs it."""
        cells = nbformat.read(path, as_version=4).cells
        found = {file for file in NOTEBOOKS_RUN_IN if (self.root / file).is_file()}
        for cell in cells:
            if cell.cell_type == "code":
                found |= self.needs(ast.parse(MAGIC.sub(r"\1pass", cell.source)), "")
        return found

    def _link(self, importer: str, imported: Iterable[str]) -> None:
        for name in (importer, *imported):
            if name not in self.graph.modules:
                self.graph.add_module(name)
        for name in imported:
            self.graph.add_import(importer=importer, imported=name)

    def reached(self, file: str) -> Iterator[tuple[str, str]]:
        """The tests and notebooks that a change in a file reaches, each with the way there."""
        for node in self.nodes(file):
            if is_test(node) or is_notebook(node):
                yield node, "changed"
            if node not in self.graph.modules:
                continue
            for other in sorted(self.graph.find_downstream_modules(node)):
                if is_test(other) or is_notebook(other):
                    yield other, way(self.graph.find_shortest_chain(importer=other, imported=node))


def within(path: Path, folder: Path) -> list[Path]:
    """The folders between a package's and a file's, both among them."""
    return [above for above in path.parents if above.is_relative_to(folder)]


def absolute(node: ast.ImportFrom, here: str, *, is_package: bool) -> str:
    """The module that `from ... import` names, seen from the module `here`."""
    if not node.level:
        return node.module or ""
    parts = here.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, node.module] if node.module else parts)


def way(chain: tuple[str, ...]) -> str:
    """A chain of imports in words."""
    steps = [step for step in chain[1:] if not step.endswith(".__init__") or step == chain[-1]]
    return "needs " + ", which needs ".join(steps)


def is_test(file: str) -> bool:
    """Whether it is a file of tests."""
    return fnmatch.fnmatch(file, "tests/*test_*.py") and Path(file).name.startswith("test_")


def is_notebook(file: str) -> bool:
    """Whether it is a page that runs."""
    return fnmatch.fnmatch(file, "book/*.ipynb")


def plan(tree: Tree, changed: Iterable[str], prose: Iterable[str] = ()) -> Plan:
    """What to run after these files have changed, of which `prose` are notebooks with the code they had."""
    made = Plan()
    changed, prose = sorted(changed), set(prose)
    for file in changed:
        for target, reason in tree.reached(file):
            if file not in prose:
                made.tests.setdefault(target, reason)
        for pattern, target in ALSO:
            if fnmatch.fnmatch(file, pattern) and not (file in prose and target in CODE_ALONE):
                made.tests.setdefault(target, f"reads {file}")
    made.tests = {t: why for t, why in made.tests.items() if (tree.root / t).exists()}
    site = "tests/site" in made.tests
    if site:
        made.tests = {t: why for t, why in made.tests.items() if not t.startswith("tests/site/")}
    else:  # to build the site takes long: only its own files, or a test that was changed, are worth it
        made.tests = {t: why for t, why in made.tests.items() if not needs_site(t) or why == "changed"}
    # Notebooks take longest and begin.
    made.tests = dict(sorted(made.tests.items(), key=lambda item: (not is_notebook(item[0]), item[0])))
    made.style = [f for f in changed if f.endswith((".py", ".ipynb")) and (tree.root / f).is_file()]
    folders = tuple(f"{folder}/" for folder in tree.packages.values())
    if any(f.startswith(folders) and f.endswith(".py") for f in changed):
        made.left.append("types (`make lint`)")
    if not site and any(f.startswith((*folders, "book/")) for f in changed):
        made.left.append("the built site (`make test`)")
    if any(fnmatch.fnmatch(f, "requirements*.txt") or f == "pyproject.toml" for f in changed):
        made.left.append("what other versions of packages change (`make test`)")
    return made


def code_of(notebook: bytes) -> bytes:
    """What of a notebook is run and compared: its cells of code, with what they show."""
    cells = [cell for cell in json.loads(notebook)["cells"] if cell["cell_type"] == "code"]
    return json.dumps(cells, sort_keys=True).encode()


def prose_alone(root: Path, base: str, changed: Iterable[str]) -> set[str]:
    """The changed notebooks whose code and outputs are those of the base."""
    found = set()
    for file in filter(is_notebook, changed):
        before = git(root, "show", f"{base}:./{file}")
        if before and (root / file).is_file():
            found |= {file} if code_of(before.encode()) == code_of((root / file).read_bytes()) else set()
    return found


class Keys:
    """The key of a target: a hash of all that its tests depend on, as far as imports and names tell.

    Beside what imports lead to, these are the files that stand for the target in `ALSO`, and those that the
    code names in words: by the end of their path, by their stem, their suffix, a folder, or with `*`. A word
    may stand for more than is meant; then a test runs once more than it needs to.
    """

    def __init__(self, tree: Tree):
        self.tree, self.names = tree, defaultdict(set)
        listed = git(tree.root, "ls-files", "--cached", "--others", "--exclude-standard", "-z")
        found = listed.split("\0") if listed else (p.relative_to(tree.root) for p in tree.root.rglob("*"))
        self.files = sorted({Path(f).as_posix() for f in found if f and (tree.root / f).is_file()})
        for file in (f for f in self.files if not f.endswith(".py")):
            parts, suffix = Path(file).parts, Path(file).suffix
            ends = ["/".join(parts[i:]) for i in range(len(parts))]
            folders = parts[1:-1]  # what lies in book/ alone goes by its own name
            for name in (*ends, *folders, Path(file).stem, suffix):
                self.names[name].add(file)
        self.named_by = cache(self._named_by)
        self.hashed = cache(self._hashed)

    def of(self, target: str) -> str:
        """The key of a test file or a notebook."""
        digest = hashlib.sha256(f"{sys.version} {sys.platform}".encode())
        imported, read = self.needed(target)
        for file in sorted(imported | read):
            prose_counts = file in read and not (is_notebook(target) or target in CODE_ALONE)
            digest.update(f"{file} {self.hashed(file, prose_counts)}\n".encode())
        return digest.hexdigest()

    def needed(self, target: str) -> tuple[set[str], set[str]]:
        """The files that a target depends on: those that it imports, and those that it may read."""
        nodes = {target, *self.tree.graph.find_upstream_modules(target)}
        reached = {self.tree.file(node) for node in nodes}
        found = set(ALWAYS).union(*map(self.named_by, reached))
        for pattern, other in ALSO:
            if target == other or target.startswith(f"{other}/"):
                found |= set(fnmatch.filter(self.files, pattern))
        if needs_site(target):
            found |= {f for f in self.files if f.startswith(tuple(f"{s}/" for s in SITE_SOURCES))}
            found |= set(SITE_SOURCES)
        there = [{file for file in files if (self.tree.root / file).is_file()} for files in (reached, found)]
        return there[0], there[1]

    def _hashed(self, file: str, prose_counts: bool) -> str:
        content = (self.tree.root / file).read_bytes()
        if is_notebook(file) and not prose_counts:
            content = code_of(content)
        return hashlib.sha256(content).hexdigest()

    def _named_by(self, file: str) -> set[str]:
        path, found = self.tree.root / file, set()
        if file.endswith(".py") and path.is_file():
            nodes = ast.walk(ast.parse(path.read_text("utf8")))
            words = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
            for word in words:
                if 2 < len(word) < 100 and not re.search(r"\s", word):
                    found.update(self.meant(word.strip("/")))
        return found

    def meant(self, word: str) -> set[str]:
        """The files, other than Python's, that a word may stand for."""
        if "*" not in word:
            return self.names.get(word, set())
        return {f for f in self.files if not f.endswith(".py") and fnmatch.fnmatch(f"/{f}", f"*/{word}")}


def without_passed(made: Plan, keys: Keys, kept: dict[str, list[str]]) -> None:
    """Takes out of a plan what has passed as it is; the rest gets its keys. Folders become their files."""
    root, chosen = keys.tree.root, {}
    for target, reason in made.tests.items():
        inside = (p.relative_to(root).as_posix() for p in sorted((root / target).rglob("test_*.py")))
        for file in list(inside) if (root / target).is_dir() else [target]:
            key = keys.of(file)
            if key in kept.get(file, ()):
                made.passed[file] = reason
            else:
                chosen[file], made.keys[file] = reason, key
    made.tests = chosen


def files_passed(report: Path) -> set[str]:
    """The files of a report of pytest's of which every test ran and passed."""
    outcome: dict[str, bool] = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        file = case.get("file", "")
        bad = any(child.tag in ("failure", "error", "skipped") for child in case)
        outcome[file] = outcome.get(file, True) and not bad
    return {file for file, good in outcome.items() if good}


def read_kept(root: Path) -> dict[str, list[str]]:
    """The keys that have passed, the newest first, of each target; of a damaged file none."""
    try:
        return json.loads((root / PASSED).read_text("utf8"))
    except (OSError, ValueError):
        return {}


def keep(root: Path, passed: dict[str, str]) -> None:
    """Adds keys that have passed."""
    kept = read_kept(root)
    for target, key in passed.items():
        kept[target] = [key, *(k for k in kept.get(target, ()) if k != key)][:KEPT]
    (root / PASSED).parent.mkdir(exist_ok=True)
    (root / PASSED).write_text(json.dumps(kept, indent=0, sort_keys=True), "utf8")


def needs_site(file: str) -> bool:
    """Whether a test opens the built site."""
    return file.startswith("tests/site/") and file not in WITHOUT_SITE


def git(root: Path, *arguments: str) -> str | None:
    """What git answers, or None where it cannot."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def find_base(root: Path) -> str:
    """Where the branch left main; on main, and where there is none, the last commit."""
    on = (git(root, "rev-parse", "--abbrev-ref", "HEAD") or "").strip()
    for main in ("origin/main", "main"):
        base = git(root, "merge-base", "HEAD", main) if on != "main" else None
        if base:
            return base.strip()
    return "HEAD"


def changed_since(root: Path, base: str) -> set[str] | None:
    """The files that differ from where this branch left the base, deleted and new ones among them.

    None where git does not know.
    """
    left = (git(root, "merge-base", "HEAD", base) or base).strip()
    differing = git(root, "diff", "--name-only", "--no-renames", "--relative", "-z", left, "--")
    new = git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if differing is None or new is None:
        return None
    return {file for file in (differing + new).split("\0") if file and file != ".venv"}


def brief(base: str) -> str:
    """A commit in ten digits; any other name as it is."""
    return base[:10] if re.fullmatch("[0-9a-f]{40}", base) else base


def show(made: Plan, changed: set[str], base: str) -> None:
    """Prints what will run and why."""
    print(f"{len(changed)} changed since {brief(base)}: {', '.join(sorted(changed))}")
    if made.style:
        print(f"\nstyle and format of {len(made.style)} of them")
    if made.tests:
        print()
        width = max(map(len, made.tests))
        for target, reason in made.tests.items():
            print(f"{target:<{width}}  {reason}")
    if made.passed:
        print(f"\nPassed before, as they are ({len(made.passed)}): {', '.join(made.passed)}")
    if not (made.style or made.tests or made.passed):
        print("\nNo test is chosen by these.")
    if made.left:
        print(f"\nNot run here: {', '.join(made.left)}.")
    print(flush=True)


def run(made: Plan) -> int:
    """Runs ruff and pytest: pytest's exit code, or ruff's where pytest has no complaint."""
    codes = []
    if made.style:
        for command in (["check"], ["format", "--check", "--force-exclude"]):  # notebooks have their own
            whole = [sys.executable, "-m", "ruff", *command, *made.style]
            codes.append(subprocess.run(whole, cwd=ROOT).returncode)
        notebooks = [file for file in made.style if file.endswith(".ipynb")]
        if notebooks:
            command = [sys.executable, "tools/format_notebooks.py", "--check", *notebooks]
            codes.append(subprocess.run(command, cwd=ROOT).returncode)
    if made.tests:
        codes.insert(0, run_tests(made))
    return next((code for code in codes if code), 0)


def run_tests(made: Plan) -> int:
    """Runs pytest, keeps the keys of what passed and did not change meanwhile; pytest's exit code."""
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder"]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command += ["-o", "junit_family=xunit1", f"--junitxml={report}", *made.tests]
        code = subprocess.run(command, cwd=ROOT, env={**os.environ, **threads}).returncode
        if made.keys and code in (0, 1) and report.exists():
            after = Keys(Tree())
            passed = {file: made.keys[file] for file in files_passed(report) & made.keys.keys()}
            keep(ROOT, {file: key for file, key in passed.items() if after.of(file) == key})
    return code


def in_ci() -> bool:
    """Whether this is a machine of continuous integration, which sets CI."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def main(arguments: list[str] | None = None) -> int:
    """Prints the plan and runs it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="only print what would run")
    parser.add_argument("--base", default="", help="a commit or branch to compare with")
    parser.add_argument("--again", action="store_true", help="run also what has passed as it is")
    options = parser.parse_args(arguments)
    base = options.base or find_base(ROOT)
    changed = changed_since(ROOT, base)
    if changed is None:
        print(f"git cannot compare this folder with {base}: is it a clone, and is there such a commit?")
        return 2
    if not changed:
        print(f"Nothing has changed since {brief(base)}.")
        return 0
    sys.path.insert(0, str(ROOT))  # for grimp, which finds packages as Python does
    tree, left = Tree(), (git(ROOT, "merge-base", "HEAD", base) or base).strip()
    made = plan(tree, changed, () if in_ci() else prose_alone(ROOT, left, changed))
    if not in_ci():
        without_passed(made, Keys(tree), {} if options.again else read_kept(ROOT))
    show(made, changed, base)
    return 0 if options.list else run(made)


if __name__ == "__main__":
    sys.exit(main())
