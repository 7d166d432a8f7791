"""Imports `tformer_lib` for the API pages without the packages that it computes with.

The pages need its signatures and docstrings, and those need no torch. While the package
is imported, stand-ins take the place of the packages named here, which weigh two
gigabytes on some machines. They do so where the packages are installed too: the site
is the same either way, and what is missing here is noticed everywhere.
"""

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import jaxtyping  # noqa: F401  before the stand-ins: it looks for the real numpy
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = "tformer_lib"
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


def import_package() -> None:
    """Imports every module of the package; autodoc finds them imported."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    with stand_ins():
        package = importlib.import_module(PACKAGE)
        for found in pkgutil.walk_packages(package.__path__, f"{PACKAGE}."):
            try:
                importlib.import_module(found.name)
            except Exception as error:
                raise ExtensionError(
                    f"{found.name} cannot be imported for the API pages ({error!r}): "
                    f"see STANDINS in {Path(__file__).name}"
                ) from error


def setup(app: Sphinx) -> dict:
    """Imports the package before autodoc does."""
    import_package()
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
