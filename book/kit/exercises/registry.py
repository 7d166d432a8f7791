"""What an exercise is: a plain reference function, and beside it the mistakes that readers make in it::

    @exercise("attention.softmax_columns", inputs=_softmax_inputs)
    def softmax_columns(scores):
        e = (scores - scores.amax(dim=0)).exp()
        return e / e.sum(dim=0)

    softmax_columns.add_mistakes('''
    softmax over rows | dim=0 => dim=1
        Your rows sum to one. ...
    ''')

A mistake is a whole wrong solution with a hint; it is mostly written as what is changed in the reference. A
candidate that is wrong in the same way computes the same wrong numbers, which is how the mistake is
recognised: by what it does, not by how it is written.
"""

import ast
import functools
import importlib
import inspect
import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

BOOK = Path(__file__).parents[2]
Inputs = Callable[[torch.Generator], Sequence[tuple]]


@dataclass(frozen=True)
class Mistake:
    """A wrong solution that readers write, and what to tell them."""

    name: str
    hint: str
    make: Callable[[], Callable[..., Any]]

    @functools.cached_property
    def variant(self) -> Callable[..., Any]:
        """The wrong solution."""
        return self.make()


class Exercise:
    """A task with a known answer, made by `exercise`; to call it is to call the reference.

    Attributes:
        name: "chapter.task".
        reference: a right solution.
        inputs: given a seeded generator, the argument tuples to try, random and edge cases.
        mistakes: wrong solutions with their hints, the more specific first.
        tolerance: how far, absolutely and relatively, a number may be from the reference's.
    """

    def __init__(self, name: str, reference: Callable[..., Any], inputs: Inputs, tolerance: float = 1e-5):
        self.name, self.reference, self.inputs, self.tolerance = name, reference, inputs, tolerance
        self.mistakes: list[Mistake] = []

    def __call__(self, *arguments: Any) -> Any:
        return self.reference(*arguments)

    @functools.cached_property
    def parameters(self) -> list[str]:
        """The names of the arguments."""
        return list(inspect.signature(self.reference).parameters)

    def mistake(self, name: str, hint: str, variant: Callable[..., Any]) -> None:
        """Makes a wrong solution known.

        Args:
            name: what the mistake is, in a few words; new among those of this exercise.
            hint: what a reader is told who made it, in whole sentences.
            variant: the wrong solution.

        Raises:
            ValueError: if there is a mistake of this name already.
        """
        self._new(Mistake(name, hint, lambda: variant))

    def _new(self, mistake: Mistake) -> None:
        if any(known.name == mistake.name for known in self.mistakes):
            raise ValueError(f"{self.name} has a mistake {mistake.name!r} already")
        self.mistakes.append(mistake)

    def add_mistakes(self, text: str) -> None:
        """Makes wrong solutions known that are written as changes of the reference.

        Each begins with its name at the margin; below it stands its hint, indented. What is changed follows
        the name after a bar, or stands in lines of its own that begin with one::

            mean treated as a constant | g - g.mean(dim=-1) => g
                The term of the mean is missing: ...
            softmax of PyTorch's own, over rows
                | => lambda scores: scores.softmax(dim=1)
                Your rows sum to one. ...

        `before => after` replaces a piece of the reference's body wherever it stands, and `=> after` all of
        it by another function. Names are those of the reference's module.

        Raises:
            ValueError: as `mistake` does, or if a mistake has no change or no hint.
        """
        for block in re.split(r"\n(?=\S)", textwrap.dedent(text).strip()):
            head, *below = block.splitlines()
            name, *changes = head.split(" | ", maxsplit=1)
            lines = [line.strip() for line in below]
            changes += [line[2:] for line in lines if line.startswith("| ")]
            hint = " ".join(line for line in lines if not line.startswith("| "))
            if not changes or not hint or not all("=>" in change for change in changes):
                raise ValueError(f"{self.name}: {name!r} needs a change, before => after, and a hint")
            self._new(Mistake(name, hint, functools.partial(changed, self.reference, changes)))


def changed(reference: Callable[..., Any], changes: Sequence[str]) -> Callable[..., Any]:
    """The reference with pieces of its body replaced, or another function: see `Exercise.add_mistakes`.

    Raises:
        ValueError: if a piece does not stand in it.
    """
    scope = {"math": math, "torch": torch, "F": F, **reference.__globals__}
    if changes[0].startswith("=>"):
        return eval(changes[0][2:].strip(), scope)
    source = textwrap.dedent(inspect.getsource(reference))
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    begin = function.body[1 if ast.get_docstring(function) else 0].lineno - 1
    lines = source.splitlines()
    body = "\n".join(lines[begin:])
    for change in changes:
        before, after = (part.strip() for part in change.split("=>", maxsplit=1))
        if before not in body:
            raise ValueError(f"{before!r} does not stand in {reference.__name__}")
        body = body.replace(before, after)
    exec("\n".join([*lines[function.lineno - 1 : begin], body]), scope)
    return scope[reference.__name__]


_EXERCISES: dict[str, Exercise] = {}


def exercise(
    name: str, *, inputs: Inputs, tolerance: float = 1e-5
) -> Callable[[Callable[..., Any]], Exercise]:
    """Decorator: the function is the right solution of a new exercise.

    Args:
        name: "chapter.task", which must be new.
        inputs: given a seeded generator, the argument tuples to try: random ones and those at the edges.
        tolerance: how far, absolutely and relatively, a number may be from the reference's.

    Raises:
        ValueError: if there is an exercise of this name already.
    """

    def register(reference: Callable[..., Any]) -> Exercise:
        if name in _EXERCISES:
            raise ValueError(f"there is an exercise {name!r} already")
        _EXERCISES[name] = Exercise(name, reference, inputs, tolerance)
        return _EXERCISES[name]

    return register


def exercises() -> dict[str, Exercise]:
    """All exercises by name: those of each chapter that has a file `exercises.py`."""
    for file in sorted(BOOK.glob("*/exercises.py")):  # importing it makes its exercises known
        importlib.import_module(f"tformer_book.{file.parent.name}.exercises")
    return dict(_EXERCISES)


def exercise_names() -> list[str]:
    """The names that `check` knows."""
    return sorted(exercises())
