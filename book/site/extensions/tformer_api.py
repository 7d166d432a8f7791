"""Imports both packages for the API pages without the packages that they compute with.

The pages need its signatures and docstrings, and those need no torch. While the package
is imported, stand-ins take the place of the packages named here, which weigh two
gigabytes on some machines. They do so where the packages are installed too: the site
is the same either way, and what is missing here is noticed everywhere.
"""

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import jaxtyping  # noqa: F401  before the stand-ins: it looks for the real numpy
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
from chapters import chapters

PACKAGE, BOOK = "tformer_lib", "tformer_book"
PARTS = ("data", "drawings", "exercises", "models", "plots")  # of a chapter
NO_MODULES = re.compile(r"\.(setup|experiments|site|card)\b")  # scripts, pictures of cards
# What the package's modules import as they are imported; inside functions they may
# import what they like.
STANDINS = (
    "PIL",
    "cloudpickle",
    "cycler",
    "drawsvg",
    "filelock",
    "matplotlib",
    "numpy",
    "safetensors",
    "scipy",
    "torch",
    "tqdm",
)
# A name in capitals is a class there, and so are these.
SMALL_CLASSES = ("device", "dtype", "ndarray", "tqdm")


class Value:
    """What is no class: a function, a constant, a module, or what comes of a call."""

    def __init__(self, path: str):
        self._path = path

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(f"{self._path}.{name}")

    def __call__(self, *args, **kwargs):
        """A decorator leaves what it decorates; any other call is a value."""
        if len(args) == 1 and not kwargs and hasattr(args[0], "__qualname__"):
            return args[0]
        return Value(f"{self._path}(...)")

    def __repr__(self) -> str:
        return self._path


class Class(type):
    """The type of the classes; their subclasses are the package's own."""

    def __getattr__(cls, name: str):
        if name.startswith("_") or "_stands_in" not in vars(cls):
            raise AttributeError(name)
        return stand_in(f"{cls.__module__}.{cls.__qualname__}.{name}")


class StandInModule(ModuleType):
    """A module that has whatever it is asked for."""

    __path__ = ()

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        value = stand_in(f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class StandIns:
    """Finds and loads the packages that are not to be imported, and their modules."""

    def find_spec(self, name: str, path=None, target=None) -> ModuleSpec | None:
        """A module of theirs, or None: the next finder is asked."""
        known = name.split(".")[0] in STANDINS
        return ModuleSpec(name, self, is_package=True) if known else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module."""
        return StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is run."""


def stand_in(path: str):
    """What stands for `path`: a class if its name is a class's."""
    module, _, name = path.rpartition(".")
    if name[0].isupper() or name in SMALL_CLASSES:
        return Class(name, (), {"__module__": module, "_stands_in": True})
    return Value(path)


def is_standin(name: str) -> bool:
    """Whether a module's place is taken."""
    return name.split(".")[0] in STANDINS


@contextmanager
def stand_ins() -> Iterator[None]:
    """Puts them in place; afterwards everything is as it was."""
    real = {name: sys.modules.pop(name) for name in [*sys.modules] if is_standin(name)}
    finder = StandIns()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if is_standin(name)]:
            del sys.modules[name]
        sys.modules.update(real)


def find_book() -> ModuleType:
    """The package of the book's folder, whether it is installed or not."""
    if BOOK not in sys.modules:
        place = ROOT / "book"
        spec = spec_from_file_location(BOOK, place / "__init__.py", submodule_search_locations=[str(place)])
        sys.modules[BOOK] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[BOOK])
    return sys.modules[BOOK]


def modules(package: ModuleType) -> list[str]:
    """The names of its modules, at any depth; without those that only run."""
    found, waiting = [], [(package.__path__, f"{package.__name__}.")]
    while waiting:
        path, prefix = waiting.pop()
        for each in pkgutil.iter_modules(path, prefix):
            if NO_MODULES.search(each.name):
                continue
            found.append(each.name)
            if each.ispkg:
                waiting.append(([f"{each.module_finder.path}/{each.name.split('.')[-1]}"], f"{each.name}."))
    return sorted(found)


def import_packages() -> list[str]:
    """Imports every module of both packages, and names them; autodoc finds them imported."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    names = []
    with stand_ins():
        for package in (importlib.import_module(PACKAGE), find_book()):
            for name in modules(package):
                try:
                    importlib.import_module(name)
                except Exception as error:
                    raise ExtensionError(
                        f"{name} cannot be imported for the API pages ({error!r}): "
                        f"see STANDINS in {Path(__file__).name}"
                    ) from error
                names.append(name)
    return names


class ChapterModules(SphinxDirective):
    """`{chapter-modules} drawings`: those of the kit, then of each chapter, in the contents' order.

    `{chapter-modules} others` are a chapter's modules that have no place of their own.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """What autodoc says of each."""
        part = self.arguments[0]
        owners = ["kit", *(chapter.name for chapter in chapters())]
        names = [name for owner in owners for name in self.config.tformer_modules if is_of(name, owner, part)]
        if not names:
            raise self.error(f"no chapter has a module {part}")
        lines = StringList([f".. automodule:: {name}" for name in names], source=self.env.docname)
        node = nodes.Element()
        nested_parse_with_titles(self.state, lines, node)
        return node.children


def is_of(module: str, owner: str, part: str) -> bool:
    """Whether a module is this part of the kit or a chapter: `plots`, `plots_sound` and `plots.lens` are."""
    if part == "others":
        if owner == "kit" or not module.startswith(f"{BOOK}.{owner}."):
            return False
        return not any(is_of(module, owner, known) for known in PARTS)
    return bool(re.fullmatch(rf"{BOOK}\.{owner}\.{part}(?:_\w+)?(?:\.\w+)*", module))


def leave_out(app: Sphinx, what: str, name: str, obj: object, skip: bool, options) -> bool | None:
    """Of the book's modules functions and classes are told, which were defined there: no constants."""
    here = app.env.temp_data.get("autodoc:module") or ""
    if what == "module" and here.startswith(f"{BOOK}."):
        told = inspect.isclass(obj) or inspect.isroutine(obj)
        if not told or getattr(obj, "__module__", here) != here:
            return True
    return None


def setup(app: Sphinx) -> dict:
    """Imports the packages before autodoc does."""
    app.add_config_value("tformer_modules", import_packages(), "env", [list])
    app.add_directive("chapter-modules", ChapterModules)
    app.connect("autodoc-skip-member", leave_out)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
