"""What an exercise is: a plain reference function, and beside it the mistakes that readers make in it::

    @exercise("attention.softmax_columns", inputs=_softmax_inputs)
    def softmax_columns(scores):
        e = (scores - scores.amax(dim=0)).exp()
        return e / e.sum(dim=0)

    softmax_columns.mistake("softmax over rows", "Your rows sum to one. ...", lambda s: s.softmax(dim=1))

A mistake is a whole wrong solution with a hint. A candidate that is wrong in the same way computes the same
wrong numbers, which is how the mistake is recognised: by what it does, not by how it is written.
"""

import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

BOOK = Path(__file__).parents[2]
Inputs = Callable[[torch.Generator], Sequence[tuple]]


@dataclass(frozen=True)
class Mistake:
    """A wrong solution that readers write, and what to tell them."""

    name: str
    hint: str
    variant: Callable[..., Any]


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

    @property
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
        if any(known.name == name for known in self.mistakes):
            raise ValueError(f"{self.name} has a mistake {name!r} already")
        self.mistakes.append(Mistake(name, hint, variant))


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
