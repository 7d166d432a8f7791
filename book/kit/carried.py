"""What a notebook's cells made, for the notebooks beside it.

    from tformer_book.attention.chapter import attend

A chapter's laboratory and its exercises go on from what the chapter built. They import it from the chapter
itself: the notebook `attention/chapter.ipynb` is the module `tformer_book.attention.chapter`. Asked for a
name, it runs the cells that make it, each once, and no others: a function costs nothing, a trained model its
training.

Which cells those are is read from the code. A name is made by the last cell that binds it, and by the cells
after that one which may change it in place: which assign to a part of it, call a method of it for its effect,
or give it to a function that trains. Each of these cells gets the names that it reads, found in the same way
among the cells above it. Cells have namespaces of their own, so that two cells which call different things
by one name do not disturb each other, in whatever order they are asked for. What they print or draw is not
shown; random numbers of the asking notebook go on as if nothing had been asked.
"""

import ast
import builtins
import json
import linecache
import random
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

MAGIC = re.compile(r"^(\s*)[%!].*$", re.MULTILINE)
TRAINS = re.compile(r"(?:^|_)(?:fit|train|learn)|_$")  # functions that change what they are given
SHOWS = {"assert_close", "check", "claim", "display", "print", "show_source", "table"}
PARAMETERS = {"parameters", "named_parameters"}
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
BUILTINS = frozenset(dir(builtins))


def code_of(folder: Path, stem: str) -> list[str] | None:
    """The code cells of a notebook in a folder; None if it is not there.

    An installed package has the code alone, in a JSON file.
    """
    notebook, cells = folder / f"{stem}.ipynb", folder / f"{stem}.cells.json"
    if notebook.is_file():
        found = json.loads(notebook.read_text("utf8"))["cells"]
        return ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]
    return json.loads(cells.read_text("utf8")) if cells.is_file() else None


@dataclass(frozen=True)
class Cell:
    """A cell's code, and what it reads, binds and may change."""

    source: str

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax; of lines that only IPython reads nothing is left."""
        return ast.parse(MAGIC.sub(r"\1pass", self.source))

    @cached_property
    def binds(self) -> frozenset[str]:
        """The names that it binds."""
        return frozenset(name for statement in self.tree.body for name in bound(statement))

    @cached_property
    def lasting(self) -> frozenset[str]:
        """The names that it binds to functions, classes and modules, which no call changes."""
        kinds = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
        return frozenset(
            name
            for node in _outside_scopes(self.tree.body)
            if isinstance(node, kinds)
            for name in bound(node)
        )

    @cached_property
    def reads(self) -> frozenset[str]:
        """The names that it reads from cells above, or, in the body of a function, from anywhere."""
        return frozenset(read_in_order(self.tree.body, set()) - BUILTINS)

    @cached_property
    def changes(self) -> frozenset[str]:
        """The names of what it may change in place."""
        found: set[str] = set()
        modules = {
            name
            for node in _outside_scopes(self.tree.body)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in bound(node)
        }
        for node in _outside_scopes(self.tree.body):
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
                targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
                found |= {_root(t) for t in targets if isinstance(t, ast.Attribute | ast.Subscript)}
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                found |= _for_effect(node.value, modules)
            elif isinstance(node, ast.Call) and TRAINS.search(_name(node.func)):
                found |= _given(node)
        return frozenset(found - {""})

    @cached_property
    def parameters_of(self) -> dict[str, set[str]]:
        """The models whose parameters an optimiser moves, by its name."""
        found: dict[str, set[str]] = {}
        for node in _outside_scopes(self.tree.body):
            if isinstance(node, ast.Assign):
                models = {
                    _root(call.func)
                    for call in ast.walk(node.value)
                    if isinstance(call, ast.Call) and _name(call.func) in PARAMETERS
                }
                for name in bound(node) if models else ():
                    found[name] = models
        return found


def bound(*nodes: ast.AST) -> set[str]:
    """The names that code binds where it stands: not what functions and comprehensions bind inside."""
    found: set[str] = set()
    for node in _outside_scopes(nodes):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            found.add(node.name)
    return found


def read(node: ast.AST, known: frozenset[str] = frozenset()) -> set[str]:
    """The names that a piece of code, and what is defined in it, takes from around it, beside the known."""
    if isinstance(node, ast.Name):
        return set() if isinstance(node.ctx, ast.Store) or node.id in known else {node.id}
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return read(node.value, known) | ({node.target.id} - known)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        body = node.body if isinstance(node.body, list) else [node.body]
        outside = [
            node.args,
            *getattr(node, "decorator_list", []),
            *filter(None, [getattr(node, "returns", None)]),
        ]
        parameters = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        inside = known | parameters | (bound(*body) - _declared(body))
        return _read_all(filter(None, outside), known) | _read_all(body, frozenset(inside))
    if isinstance(node, ast.ClassDef):
        found = _read_all([*node.bases, *node.keywords, *node.decorator_list], known)
        own: set[str] = set()
        for statement in node.body:
            function = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
            found |= read(statement, known) if function else read(statement, known) - own
            own |= bound(statement)
        return found
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        targets = {name for each in node.generators for name in bound(each.target)}
        return _read_all(ast.iter_child_nodes(node), frozenset(known | targets))
    return _read_all(ast.iter_child_nodes(node), known)


def _read_all(nodes: Iterable[ast.AST], known: frozenset[str]) -> set[str]:
    return {name for node in nodes for name in read(node, known)}


def _declared(body: Sequence[ast.AST]) -> set[str]:
    """The names that a function declares to be those of its module."""
    return {n for node in _outside_scopes(body) if isinstance(node, ast.Global) for n in node.names}


def read_in_order(statements: Iterable[ast.stmt], bound_before: set[str]) -> set[str]:
    """The names that statements read before they bind them; adds what they bind to those bound before."""
    found: set[str] = set()
    for statement in statements:
        own = bound(statement) if isinstance(statement, ast.FunctionDef | ast.ClassDef) else set()
        parts = [getattr(statement, name, []) for name in ("body", "handlers", "orelse", "finalbody")]
        if own or not any(parts) or isinstance(statement, ast.Match):
            found |= read(statement) - bound_before - own
            bound_before |= bound(statement)
            continue
        inside = {id(part) for each in parts for part in each}
        heads = [child for child in ast.iter_child_nodes(statement) if id(child) not in inside]
        found |= _read_all(heads, frozenset()) - bound_before
        bound_before |= bound(*heads)
        for part in parts:
            for each in part:
                body: list = [each]
                if isinstance(each, ast.ExceptHandler):
                    found |= (read(each.type) if each.type else set()) - bound_before
                    bound_before |= {each.name} if each.name else set()
                    body = each.body
                found |= read_in_order(body, bound_before)
    return found


def _outside_scopes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of the code that runs with the cell: not what functions and classes hold.

    A comprehension's own names are no nodes of it either, but what `:=` binds there is.
    """
    for node in nodes:
        yield node
        if isinstance(node, ast.comprehension):
            yield from _outside_scopes([node.iter, *node.ifs])
        elif not isinstance(node, SCOPES):
            yield from _outside_scopes(ast.iter_child_nodes(node))


def _root(node: ast.AST) -> str:
    """The name from which attributes and items are taken; "" if there is none."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Starred):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _name(function: ast.AST) -> str:
    """What a function is called, without what it is taken from."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _given(call: ast.Call) -> set[str]:
    """The names of what a call gets."""
    return {_root(a) for a in (*call.args, *(k.value for k in call.keywords))}


def _for_effect(call: ast.Call, modules: set[str]) -> set[str]:
    """The names of what a call may change that stands as a statement of its own."""
    name = _name(call.func)
    if name in SHOWS:
        return set()
    if isinstance(call.func, ast.Name):
        return _given(call)
    receiver = set() if _root(call.func) in modules else {_root(call.func)}
    return receiver | (_given(call) if TRAINS.search(name) else set())


class Carried(ModuleType):
    """A notebook as a module, whose names are made when they are asked for."""

    def __init__(self, name: str, path: Path, sources: Sequence[str]):
        super().__init__(name, f"What the cells of {path.parent.name}/{path.name} make.")
        self.__path = path
        self.__cells = [Cell(source) for source in sources]
        self.__spaces: dict[int, dict[str, Any]] = {}
        self.__running: set[int] = set()
        self.__late: list[tuple[int, str, dict[str, Any]]] = []  # who makes a name, and who waits for it
        self.__random: Any = None

    def __dir__(self) -> list[str]:
        return sorted({name for cell in self.__cells for name in cell.binds})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not any(name in cell.binds for cell in self.__cells):
            raise AttributeError(f"no cell of {self.__name__} makes a {name!r}", name=name, obj=self)
        with self.__unnoticed():
            self.__run(0)  # imports and seeds
            return self.__value(name, len(self.__cells))

    def makers(self, name: str, place: int | None = None) -> list[int]:
        """The cells that make what a name stands for above a cell: which binds it, and which change it."""
        place = len(self.__cells) if place is None else place
        binders = [i for i, cell in enumerate(self.__cells) if name in cell.binds]
        before = [i for i in binders if i < place]
        if not before:  # a function's body may read what is bound later
            return [i for i in binders if i > place][:1]
        first = before[-1]
        if name in self.__cells[first].lasting:
            return [first]
        holders = {name} | {
            holder
            for cell in self.__cells[first:place]
            for holder, models in cell.parameters_of.items()
            if name in models
        }
        later = range(first + 1, place)
        return [first, *(i for i in later if self.__cells[i].changes & holders and self.__of(name, i, first))]

    def __of(self, name: str, place: int, first: int) -> bool:
        """Whether, in the cell at `place`, the name stands for what the cell `first` bound."""
        return name not in self.__cells[place].binds and all(
            name not in cell.binds for cell in self.__cells[first + 1 : place]
        )

    def sources(self, place: int) -> dict[str, list[int]]:
        """The names that a cell reads from cells, and which cells make them."""
        found = {name: self.makers(name, place) for name in sorted(self.__cells[place].reads)}
        return {name: makers for name, makers in found.items() if makers}

    def needed(self, names: Iterable[str]) -> list[int]:
        """The cells that run when these names are asked for."""
        found: set[int] = {0}
        wanted = [i for name in names for i in self.makers(name)] + [0]
        while wanted:
            place = wanted.pop()
            if place in found and place:
                continue
            found.add(place)
            wanted += [i for makers in self.sources(place).values() for i in makers if i not in found]
        return sorted(found)

    def __value(self, name: str, place: int) -> Any:
        makers = self.makers(name, place)
        if not makers:
            raise NameError(f"name {name!r} is not defined")
        for maker in makers:
            self.__run(maker)
        return self.__spaces[makers[0]][name]

    def __run(self, place: int) -> None:
        if place in self.__spaces:
            return
        cell = self.__cells[place]
        space = self.__spaces[place] = {"__name__": self.__name__, "__builtins__": builtins}
        self.__running.add(place)
        for name in sorted(cell.reads):
            makers = self.makers(name, place)
            if makers and makers[0] in self.__running:  # that cell calls what this one defines
                self.__late.append((makers[0], name, space))
            elif makers:
                space[name] = self.__value(name, place)
        file = f"<{self.__path.parent.name}/{self.__path.name}, cell {place + 1}>"
        text = MAGIC.sub(r"\1pass", cell.source)
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        try:
            for statement in cell.tree.body:
                module = ast.Module([statement], type_ignores=[])
                exec(compile(module, file, "exec", dont_inherit=True), space)
                for maker, name, waiting in self.__late:
                    if maker == place and name in space:
                        waiting[name] = space[name]
        except Exception as error:
            del self.__spaces[place]
            raise ImportError(f"cell {place + 1} of {self.__name__} failed: {error}") from error
        finally:
            self.__running.discard(place)

    @contextmanager
    def __unnoticed(self) -> Iterator[None]:
        """Shows nothing of what runs inside, and leaves random numbers and figures as they were."""
        theirs = _random_state()  # before the imports, which may draw some
        import matplotlib.pyplot as plt
        from IPython.utils.capture import capture_output

        open_figures = set(plt.get_fignums())
        if self.__random is not None:
            _set_random_state(self.__random)
        try:
            with capture_output():
                yield
        finally:
            self.__random = _random_state()
            for number in set(plt.get_fignums()) - open_figures:
                plt.close(number)
            _set_random_state(theirs)


def _random_state() -> tuple:
    import numpy
    import torch

    return random.getstate(), numpy.random.get_state(), torch.get_rng_state()  # noqa: NPY002


def _set_random_state(state: tuple) -> None:
    import numpy
    import torch

    random.setstate(state[0])
    numpy.random.set_state(state[1])  # noqa: NPY002
    torch.set_rng_state(state[2])


class Finder(Loader):
    """Finds the notebooks of the book's folders as modules, where no file of Python has the name."""

    @classmethod
    def find_spec(
        cls, name: str, path: Iterable[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        """The notebook of this name in the package's folder, if there is one."""
        package, _, stem = name.rpartition(".")
        if not package.startswith("tformer_book."):
            return None
        for folder in map(Path, path or ()):
            if code_of(folder, stem) is not None:
                return ModuleSpec(name, cls(), origin=str(folder / f"{stem}.ipynb"))
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The notebook, of which nothing has run."""
        file = Path(str(spec.origin))
        return Carried(spec.name, file, code_of(file.parent, file.stem) or [])

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: a name's cells run when it is asked for."""


def install() -> None:
    """Lets `import` find notebooks, after everything else."""
    if not any(finder is Finder for finder in sys.meta_path):
        sys.meta_path.append(Finder)
