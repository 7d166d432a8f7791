"""Which claims of a notebook rest on a recorded file alone: found in its code, without running it.

A claim's number is followed back through the notebook's names. It is *from the record* if `recorded(...)`
is among what it was made of, and nothing that the notebook itself drew, loaded, trained or measured. A
claim that compares a run of the page with a record is therefore not: it tests something new.

Every value has a kind, a set of RECORD and NEW. Constants have none, nor have builtins and arithmetic of
constants; `recorded(...)` is RECORD; what any other function returns has the kinds of its inputs, and is
NEW if these have none, or if it comes from where models are built, trained and asked. Functions of the
notebook are followed into, and so is what it takes from a notebook beside it, by an import such as `from
tformer_book.attention.chapter import losses`: that notebook is followed to its end, and the name has there
what it is made of. When in doubt a value is NEW: a claim is rather left unmarked than marked wrongly.
"""

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from notebook_claims import claims_in
from notebook_code import ROOT, read_cells, statements, taken

Kind = frozenset[str]
NONE: Kind = frozenset()
RECORD, NEW = Kind({"record"}), Kind({"new"})

PLAIN_MODULES = {"collections", "dataclasses", "functools", "itertools", "json", "math", "numpy", "operator"}
PLAIN_MODULES |= {"re", "statistics", "torch"}
# Where models and data come from: what these return is NEW, whatever it is given.
MAKERS = {
    "core",
    "data",
    "efficient",
    "generation",
    "models",
    "pretrained",
    "tokenizers",
    "train",
    "training",
}
DRAWN = ("rand", "load", "manual_seed", "nn", "normal", "choice", "permutation", "Generator")
FILLED = {"add", "append", "extend", "insert", "setdefault", "update"}
DEEPEST = 8  # calls of the notebook's functions within each other


class Follower:
    """The kinds of a notebook's names, statement by statement.

    Args:
        book: the folder of the chapters, whose notebooks it may take names from.
        others: what is known of these already, by file; None while one is being followed.
    """

    def __init__(self, book: Path, others: dict[Path, "Follower | None"] | None = None) -> None:
        self.book, self.others = book, {} if others is None else others
        self.theirs: dict[
            str, tuple[Follower, str]
        ] = {}  # functions of other notebooks, and their names there
        self.kinds: dict[str, Kind] = {}
        self.functions: dict[str, ast.FunctionDef | ast.Lambda] = {}
        self.plain = set(dir(builtins))  # functions that bring nothing new
        self.modules: set[str] = set()  # of names that are plain modules
        self.makers: set[str] = set()  # what is imported from where models and data come from
        self.parts: dict[str, ast.expr] = {}  # of a loop's names, what it goes through
        self.returned: list[list[Kind]] = []
        self.claims: list[tuple[str | None, Kind]] = []  # names, or None if computed, and kinds

    # --- statements ---

    def run(self, statements: Iterable[ast.stmt]) -> None:
        """Follow the statements in their order."""
        for statement in statements:
            self.do(statement)

    def do(self, node: ast.stmt) -> None:
        """Follow one statement: bind what it binds."""
        match node:
            case ast.FunctionDef():
                self.bind(node.name, NONE)
                self.functions[node.name] = node
            case ast.ClassDef():
                self.bind(node.name, NONE)
            case ast.Import() | ast.ImportFrom():
                self.imported(node)
            case ast.Assign(targets=targets, value=ast.Lambda() as function):
                for target in targets:
                    self.assign(target, NONE)
                    if isinstance(target, ast.Name):
                        self.functions[target.id] = function
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self.assign(target, self.kind(value), value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.kind(value))
            case ast.AugAssign(target=target, value=value):
                self.add(target, self.kind(value))
            case ast.For(target=target, iter=iterated):
                self.assign(target, self.kind(iterated))
                names = (part for part in ast.walk(target) if isinstance(part, ast.Name))
                self.parts |= {part.id: iterated for part in names}
                for _ in range(2):  # what the end of the body binds, its beginning may read
                    self.branches(node.body)
                self.branches(node.orelse)
            case ast.While(test=test):
                self.kind(test)
                for _ in range(2):
                    self.branches(node.body)
            case ast.If(test=test):
                self.kind(test)
                self.branches(node.body, node.orelse)
            case ast.Try():
                self.branches(node.body, *(handler.body for handler in node.handlers))
                self.run(node.orelse + node.finalbody)
            case ast.With(items=items):
                for item in items:
                    kind = self.kind(item.context_expr)
                    if item.optional_vars is not None:
                        self.assign(item.optional_vars, kind)
                self.run(node.body)
            case ast.Return(value=value) | ast.Expr(value=value):
                kind = self.kind(value)
                if isinstance(node, ast.Return) and self.returned:
                    self.returned[-1].append(kind)

    def branches(self, *ways: list[ast.stmt]) -> None:
        """Statements of which each list may run or not: a name has the kinds of every way."""
        before, after = dict(self.kinds), dict(self.kinds)
        for way in ways:
            self.kinds = dict(before)
            self.run(way)
            after = {n: after.get(n, NONE) | self.kinds.get(n, NONE) for n in {*after, *self.kinds}}
        self.kinds = after

    def imported(self, node: ast.Import | ast.ImportFrom) -> None:
        """Names of modules and of what comes from them."""
        for alias in node.names:
            name = (alias.asname or alias.name).split(".")[0]
            self.bind(name, NONE)
            if isinstance(node, ast.ImportFrom):
                first, *path = (node.module or "").split(".")
                if first == "tformer_lib" and (not path or path[0] in MAKERS or path[1:2] == ["datasets"]):
                    self.makers.add(name)
                if (node.module or "").split(".")[0] in PLAIN_MODULES and not alias.name.startswith(DRAWN):
                    self.plain.add(name)
            elif alias.name.split(".")[0] in PLAIN_MODULES:
                self.modules.add(name)
        for path, there, here in taken(node, self.book):
            self.taken(path, there, here.split(".")[0])

    def taken(self, path: Path, there: str, here: str) -> None:
        """A name that comes from another notebook has here what it has at the end of that one."""
        self.bind(here, NEW)
        if path not in self.others:
            self.others[path] = None
            followed = Follower(self.book, self.others)
            followed.run(statements(read_cells(path)))
            self.others[path] = followed
        other = self.others[path]
        if other is None or there not in other.kinds:  # notebooks in a circle, one as a whole, a lost name
            return
        self.bind(here, other.kinds[there])
        for ours, known in ((self.plain, other.plain), (self.modules, other.modules)):
            if there in known:
                ours.add(here)
        if there in other.makers:
            self.makers.add(here)
        if there in other.functions:
            self.theirs[here] = other, there
        elif there in other.theirs:
            self.theirs[here] = other.theirs[there]

    def bind(self, name: str, kind: Kind) -> None:
        """A name has a new value."""
        self.kinds[name] = kind
        self.functions.pop(name, None)
        self.theirs.pop(name, None)
        self.parts.pop(name, None)
        self.plain.discard(name)
        self.modules.discard(name)
        self.makers.discard(name)

    def assign(self, target: ast.expr, kind: Kind, value: ast.expr | None = None) -> None:
        """Bind a target: a name, several of them, or a place in something."""
        match target:
            case ast.Name(id=name):
                self.bind(name, kind)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
                if len(values) != len(targets) or any(isinstance(v, ast.Starred) for v in values):
                    values = []
                kinds = [self.kind(v) for v in values] or [kind] * len(targets)
                for one, each in zip(targets, kinds, strict=True):
                    self.assign(one, each)
            case ast.Starred(value=inner):
                self.assign(inner, kind)
            case _:
                self.add(target, kind)

    def add(self, target: ast.expr, kind: Kind) -> None:
        """What a target holds gets something more."""
        while not isinstance(target, ast.Name):
            inner = getattr(target, "value", None) or getattr(target, "func", None)
            if inner is None:
                return
            target = inner
        self.kinds[target.id] = self.kinds.get(target.id, NONE) | kind
        if target.id in self.parts:  # it may be a part of what the loop goes through
            whole = self.parts.pop(target.id)
            for name in {part.id for part in ast.walk(whole) if isinstance(part, ast.Name)} - {target.id}:
                if name not in self.functions and name not in self.plain:
                    self.add(ast.Name(name), kind)
            self.parts[target.id] = whole

    # --- expressions ---

    def kind(self, node: ast.AST | None) -> Kind:
        """What the value of an expression is made of."""
        match node:
            case None | ast.Constant():
                return NONE
            case ast.Name(id=name):
                if name in self.functions or name in self.theirs:  # handed on, to be called elsewhere
                    return self.called_by_name(name, NONE)
                return self.kinds.get(name, NONE)
            case ast.Lambda():
                return self.called(node, NONE)
            case ast.Call():
                return self.call(node)
            case ast.NamedExpr(target=target, value=value):
                kind = self.kind(value)
                self.assign(target, kind)
                return kind
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                before, functions, theirs = dict(self.kinds), dict(self.functions), dict(self.theirs)
                made = NONE
                for part in node.generators:
                    made |= self.kind(part.iter)
                    self.assign(part.target, self.kind(part.iter))
                    made |= self.kind_of_all(part.ifs)
                values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
                made |= self.kind_of_all(values)
                self.kinds, self.functions, self.theirs = before, functions, theirs
                return made
            case _:
                return self.kind_of_all(ast.iter_child_nodes(node))

    def kind_of_all(self, nodes: Iterable[ast.AST]) -> Kind:
        """The kinds of several expressions together."""
        return frozenset().union(*(self.kind(node) for node in nodes))

    def call(self, node: ast.Call) -> Kind:
        """What a call returns."""
        inputs = [*node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(node.func, ast.Name) and node.func.id == "claim":
            self.claimed(node)
            return NONE
        given = self.kind_of_all(inputs)
        match node.func:
            case ast.Name(id="recorded") | ast.Attribute(attr="recorded"):
                return RECORD
            case ast.Name(id=name) if name in self.functions or name in self.theirs:
                return self.called_by_name(name, given) | given
            case ast.Name(id=name):
                known = given | self.kinds.get(name, NONE) | (NEW if name in self.makers else NONE)
                return known if known or name in self.plain else NEW
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in self.modules:
                return given or (NEW if attr.startswith(DRAWN) else NONE)
            case ast.Attribute(value=value, attr=attr):
                if attr in FILLED:
                    self.add(value, given)
                parts = ast.unparse(value).split(".")
                made = parts[0] in self.makers or any(part in DRAWN for part in parts)
                return given | self.kind(value) | (NEW if made else NONE)
            case _:
                return given | self.kind(node.func)

    def called_by_name(self, name: str, given: Kind) -> Kind:
        """What a function that has a name returns; another notebook's finds there what it reads."""
        if name in self.functions:
            return self.called(self.functions[name], given)
        other, there = self.theirs[name]
        return other.called(other.functions[there], given)

    def called(self, function: ast.FunctionDef | ast.Lambda, given: Kind) -> Kind:
        """What a function of the notebook returns: followed with the names that there are now."""
        if len(self.returned) >= DEEPEST:
            return NONE
        given |= self.kind_of_all(one for one in (*function.args.defaults, *function.args.kw_defaults) if one)
        before, functions, theirs = dict(self.kinds), dict(self.functions), dict(self.theirs)
        known = set(self.plain), set(self.modules), set(self.makers)
        self.returned.append([])
        for one in ast.walk(function.args):
            if isinstance(one, ast.arg):
                self.bind(one.arg, given)
        if isinstance(function, ast.Lambda):
            self.returned[-1].append(self.kind(function.body))
        else:
            self.run(function.body)
            for part in ast.walk(function):
                if isinstance(part, ast.Yield | ast.YieldFrom):
                    self.returned[-1].append(self.kind(part.value))
        kind = frozenset().union(*self.returned.pop())
        outer = {name for name in before if self.kinds.get(name, NONE) > before[name]}
        local = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)} | bound(function)
        grown = {name: self.kinds[name] for name in outer - local}  # filled, not bound, within
        self.kinds, self.functions, self.theirs = before | grown, functions, theirs
        self.plain, self.modules, self.makers = known
        return kind

    def claimed(self, node: ast.Call) -> None:
        """Note a claim with the kind of its number."""
        given = dict(zip(("name", "value"), node.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        name = given.get("name")
        literal = name.value if isinstance(name, ast.Constant) else None
        self.claims.append((literal, self.kind(given.get("value"))))


def bound(function: ast.FunctionDef | ast.Lambda) -> set[str]:
    """The names that a function binds itself."""
    names = (n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return {name.id for name in names}


def made_of(cells: Iterable[Mapping[str, Any]], book: Path = ROOT / "book") -> Iterator[tuple[str, Kind]]:
    """Every claim that these cells show, all of a notebook's, with the kind of its number."""
    follower = Follower(book)
    for cell in cells:
        follower.claims = []
        follower.run(statements([cell]))
        named: dict[str, Kind] = {}
        computed = NONE
        for name, kind in follower.claims:
            if name is None:  # as in a loop: any claim of the cell that no other call names
                computed |= kind
            else:
                named[name] = named.get(name, NONE) | kind
        for claim in claims_in([cell]):
            yield claim["name"], named.get(claim["name"], computed)


def from_record(cells: Iterable[Mapping[str, Any]], book: Path = ROOT / "book") -> set[str]:
    """The names of the claims that rest on recorded files alone.

    Args:
        cells: all of a notebook's.
        book: the folder of the chapters, whose notebooks it may take names from.
    """
    return {name for name, kind in made_of(cells, book) if kind == RECORD}
