"""Which packages a notebook needs beside tformer-lib: found by following its imports through the book.

`tformer-book` asks for the packages of all chapters, most of which carry data. A notebook that is opened
alone installs those that what it imports names, in an import anywhere or in a text: "mlxtend" in `find_spec`.
"""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = {"tformer_lib": ROOT / "tformer_lib", "tformer_book": ROOT / "book"}
ALWAYS = {"ipython", "matplotlib"}  # tformer_book itself imports them
IMPORTED_AS = {"pillow": "PIL", "plone.app.locales": "plone", "scikit-learn": "sklearn", "ipython": "IPython"}
NAME = re.compile(r"[\w.-]+")
OURS = "tformer-lib"


def needs(code: str, root: Path = ROOT) -> list[str]:
    """The requirements, as the book's pyproject.toml states them, of a notebook with this code."""
    named = mentioned(code)
    starts = tuple(name[:-1] for name in named if name.endswith("*"))
    wanted = {
        dist: line
        for dist, line in requirements(root).items()
        if dist in ALWAYS or import_name(dist) in named or import_name(dist).startswith(starts)
    }
    return [wanted[dist] for dist in sorted(wanted, key=str.lower)]


def import_name(dist: str) -> str:
    """How a package is named where it is used, in small letters."""
    return IMPORTED_AS.get(dist, dist.replace("-", "_")).lower()


@cache
def requirements(root: Path = ROOT) -> dict[str, str]:
    """What tformer-book asks for beside tformer-lib, by the name of the package; extras are taken apart."""
    book = tomllib.loads((root / "book" / "pyproject.toml").read_text("utf8"))["project"]
    extras = tomllib.loads((root / "pyproject.toml").read_text("utf8"))["project"]["optional-dependencies"]
    found, asked = {}, list(book["dependencies"])
    for line in asked:
        name = NAME.match(line)[0]
        if name == OURS:
            for extra in re.findall(r"[\w-]+", line.partition("[")[2].partition("]")[0]):
                asked += extras[extra]
        else:
            found[name] = line
    return found


def mentioned(code: str) -> frozenset[str]:
    """The names of packages, and what could be one, in code and all that it imports, in small letters."""
    names, seen = set[str](), set[Path]()
    imports, words = read(code, "__main__")
    names |= words | {name.split(".")[0].lower() for name in imports}
    left = list(imports)
    if re.search(r"\bcheck\(", code):  # it looks through all exercises
        left += [
            f"tformer_book.{file.parent.name}.exercises"
            for file in PACKAGES["tformer_book"].glob("*/exercises.py")
        ]
    while left:
        for file, module in files(left.pop()):
            if file not in seen:
                seen.add(file)
                imports, words = read_file(file, module)
                names |= words | {name.split(".")[0].lower() for name in imports}
                left += imports
    return frozenset(names)


@cache
def files(name: str) -> tuple[tuple[Path, str], ...]:
    """The files that are run where a module of ours is imported, those of its packages too."""
    return tuple(_files(name))


def _files(name: str) -> Iterator[tuple[Path, str]]:
    parts = name.split(".")
    folder = PACKAGES.get(parts[0])
    if folder is None:
        return
    for count in range(1, len(parts) + 1):
        place = folder.joinpath(*parts[1:count])
        module = ".".join(parts[:count])
        if (place / "__init__.py").exists():
            yield place / "__init__.py", f"{module}.__init__"
        elif count > 1:
            for suffix in (".py", ".ipynb"):
                if place.with_suffix(suffix).exists():
                    yield place.with_suffix(suffix), module


@cache
def read_file(file: Path, module: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """What a file imports and mentions."""
    text = file.read_text("utf8")
    return read(code_of(json.loads(text)) if file.suffix == ".ipynb" else text, module)


def code_of(notebook: dict) -> str:
    """The code of a notebook, without what is not Python."""
    cells = ("".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code")
    return re.sub(r"(?m)^( *)[%!].*", r"\1pass", "\n".join(cells))


def read(code: str, module: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """What code imports, wherever it does, and the texts in it that could name a package."""
    imports, words = list[str](), set[str]()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            imports += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            imports += [base, *(f"{base}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 60:
            words |= could_name(node.value.lower())
    return tuple(imports), frozenset(words)


def could_name(text: str) -> set[str]:
    """The package that a text names, if it does; of "package_{language}" the start, "package_*"."""
    if NAME.fullmatch(text):
        return {text, text.split(".")[0]}
    start = re.match(r"(\w{8,}_)\{\w+\}$", text)
    return {f"{start[1]}*"} if start else set()
