"""What each section of a laboratory goes on from: `python tools/sections.py book/attention/laboratory.ipynb`.

A laboratory is read by the section: who opens one runs the notebook's head and that section, and nothing
between. Where its code reads a name that an earlier section binds, it goes on from that one, and the reader
should be told. This is found in the code, without running it.

A section begins at a title of two #; what stands before the first is the head. A name counts for the last
section above that binds it, assigns to a part of it, or fills it (`rows.append(...)`). What a function reads
is read by the section that calls it too. A module that the head imports is the head's, wherever it is
imported again.

Written without `tformer_lib`, so that the site can be built where PyTorch is not installed.
"""

import argparse
import ast
import re
import symtable
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chapters import LABORATORY, kind, notebooks
from notebook_code import bound, read_cells, statements

TITLE = re.compile(r"^## +(.*?)\s*$")
LABEL = re.compile(r"^\(([\w-]+)\)=\s*$")
FENCE = re.compile(r"^(```|:::)")
AT_ONCE = {"listcomp", "setcomp", "dictcomp", "genexpr"}  # what reads names where it stands, unlike functions
FILLED = {"add", "append", "extend", "insert", "pop", "setdefault", "update"}


@dataclass
class Section:
    """A part of a notebook: its title and label, what its code binds, and what it reads and does not bind."""

    title: str  # "" of the head
    label: str = ""  # by which pages refer to it
    code: list[ast.stmt] = field(default_factory=list)
    binds: set[str] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)  # those of its names that are imported
    reads: set[str] = field(default_factory=set)
    functions: dict[str, set[str]] = field(default_factory=dict)  # what each of its functions reads
    after: dict[int, set[str]] = field(default_factory=dict)  # the sections that it goes on from: names


def divide(cells: Iterable[Mapping[str, Any]]) -> list[Section]:
    """The head and the sections of a notebook, with their code."""
    found = [Section("")]
    label = ""
    for cell in cells:
        if cell["cell_type"] != "markdown":
            found[-1].code += statements([cell])
            label = ""
            continue
        fence = ""
        for line in "".join(cell["source"]).splitlines():
            opened = FENCE.match(line)
            if opened and fence in ("", opened[1]):
                fence = "" if fence else opened[1]
            elif fence:
                continue
            elif title := TITLE.match(line):
                found.append(Section(title[1], label))
            label_here = LABEL.match(line)
            label = label_here[1] if label_here else label if not line.strip() else ""
    return found


class Reader:
    """Follows a section's statements in order: what they bind, and what they read that was not bound yet."""

    def __init__(self, section: Section):
        self.section = section
        self.later: set[str] = set()  # what functions read, once they are called
        self.run(section.code)
        section.reads |= self.later - section.binds

    def run(self, code: Iterable[ast.stmt]) -> None:
        """Follow statements from top to bottom."""
        for node in code:
            self.do(node)

    def do(self, node: ast.stmt) -> None:
        """Follow one statement; the parts of a loop or a branch in their order."""
        match node:
            case ast.For():
                self.read(node.iter)
                self.bind(node.target)
                self.run(node.body + node.orelse)
            case ast.While() | ast.If():
                self.read(node.test)
                self.bind(node.test)  # by :=
                self.run(node.body + node.orelse)
            case ast.With():
                for item in node.items:
                    self.read(item.context_expr)
                    if item.optional_vars is not None:
                        self.bind(item.optional_vars)
                self.run(node.body)
            case ast.Try():
                self.run(node.body)
                for handler in node.handlers:
                    self.section.binds |= {handler.name} if handler.name else set()
                    self.run(handler.body)
                self.run(node.orelse + node.finalbody)
            case _:
                self.read(node)
                self.bind(node)

    def read(self, node: ast.stmt | ast.expr) -> None:
        """Note the names that the code reads."""
        at_once, later = names_read(node)
        self.section.reads |= at_once - self.section.binds
        self.later |= later
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            self.section.functions[node.name] = later
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            self.section.functions |= dict.fromkeys(bound(node), later)

    def bind(self, node: ast.AST) -> None:
        """Note the names that it binds, in whole or in part."""
        names = bound(node)
        self.section.binds |= names
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.section.imports |= names
        else:
            self.section.imports -= names
        self.section.binds.update(changed(node))


def changed(tree: ast.AST) -> Iterator[str]:
    """The names of which a statement changes a part: `x[0] = 1`, `x.a = 1`, `x.append(1)`."""
    waiting = [tree]
    while waiting:
        node, part = waiting.pop(), None
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            continue
        waiting.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            part = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FILLED:
            part = node.func.value
        while isinstance(part, ast.Subscript | ast.Attribute):
            part = part.value
        if isinstance(part, ast.Name):
            yield part.id


def names_read(node: ast.stmt | ast.expr) -> tuple[set[str], set[str]]:
    """The names that code reads and does not bind: where it stands, and once its functions are called."""
    code = ast.unparse(node)
    table = symtable.symtable(code, "cell", "exec")
    inner_names = {  # which Python, from 3.12 on, counts among those around them
        name.id
        for each in ast.walk(node)
        if isinstance(each, ast.comprehension)
        for name in ast.walk(each.target)
        if isinstance(name, ast.Name)
    }
    at_once = {s.get_name() for s in table.get_symbols() if s.is_referenced()} - inner_names
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        at_once.add(node.target.id)
    later: set[str] = set()
    waiting = [(child, child.get_name() in AT_ONCE) for child in table.get_children()]
    while waiting:
        inner, now = waiting.pop()
        free = {s.get_name() for s in inner.get_symbols() if s.is_global() and s.is_referenced()}
        (at_once if now else later).update(free)
        waiting += [(child, now and child.get_name() in AT_ONCE) for child in inner.get_children()]
    walrus = {each.target.id for each in ast.walk(node) if isinstance(each, ast.NamedExpr)}
    return at_once - walrus, later - walrus


def read(section: Section) -> Section:
    """The same section, with what it binds and reads."""
    Reader(section)
    return section


def sections(cells: Iterable[Mapping[str, Any]]) -> list[Section]:
    """The head of a notebook and its sections; of each, which sections before it it goes on from."""
    found = divide(cells)
    for place, section in enumerate(found):
        read(section)
        functions = {name: read for each in found[: place + 1] for name, read in each.functions.items()}
        reads, waiting = set(), set(section.reads)
        while waiting:  # a function that it calls reads for it
            name = waiting.pop()
            reads.add(name)
            waiting |= functions.get(name, set()) - reads - section.binds
        for name in reads:
            above = [i for i in range(place) if name in found[i].binds]
            if not above or (name in found[above[-1]].imports and above[0] == 0):
                continue
            if above[-1] > 0:
                section.after.setdefault(above[-1], set()).add(name)
    return found


def sentence(section: Section, found: list[Section]) -> str:
    """For under a section's title: that it goes on from others, by their titles; "" if it does not."""
    titles = [f"*{found[place].title}*" for place in sorted(section.after)]
    if not titles:
        return ""
    return f"This section goes on from {' and '.join(filter(None, [', '.join(titles[:-1]), titles[-1]]))}."


def main(arguments: list[str] | None = None) -> int:
    """Prints the sections, what each goes on from, and by which names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="all laboratories if none is named")
    laboratories = [path for path in notebooks() if kind(path) == LABORATORY]
    for path in parser.parse_args(arguments).notebooks or laboratories:
        print(path)
        found = sections(read_cells(path))
        for section in found[1:]:
            print(f"  {section.title}")
            for place, names in sorted(section.after.items()):
                print(f"    goes on from {found[place].title}: {', '.join(sorted(names))}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
