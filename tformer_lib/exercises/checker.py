"""How an exercise is checked: beside a reference and, where the two differ, beside known mistakes.

A mistake is a whole wrong solution with a hint. A candidate that is wrong in the same way computes the
same wrong numbers, which is how the mistake is recognised: by what it does, not by how it is written.
"""

import copy
import importlib
import math
import numbers
import random
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tformer_lib.exercises.limits import TimeUpError, limited
from tformer_lib.numbers import real

# The modules of this package that register exercises.
CHAPTERS = (
    "sequences",
    "attention",
    "multi_head",
    "skip_norm",
    "positions",
    "transformer",
    "bert",
    "gpt",
    "modern_decoder",
    "translation",
    "vit",
    "image_gpt",
    "long_sequences",
)
SEED = 0


@dataclass(frozen=True)
class Mistake:
    """A wrong solution that readers write, and what to tell them."""

    name: str
    hint: str
    variant: Callable[..., Any]


@dataclass(frozen=True)
class Exercise:
    """A task with a known answer.

    Args:
        name: "chapter.task".
        reference: a right solution.
        inputs: given a seeded generator, the argument tuples to try, random and edge cases.
        mistakes: wrong solutions with their hints, the more specific first.
        tolerance: how far, absolutely and relatively, a number may be from the reference.
    """

    name: str
    reference: Callable[..., Any]
    inputs: Callable[[torch.Generator], Sequence[tuple]]
    mistakes: tuple[Mistake, ...] = ()
    tolerance: float = 1e-5


@dataclass(frozen=True)
class Verdict:
    """What `check` found; a cell that ends in it shows `message`, in lines of 80 columns."""

    passed: bool
    message: str
    mistake: str | None = None  # the name of the mistake that was recognised

    def __repr__(self) -> str:
        wrap = textwrap.TextWrapper(80, subsequent_indent="    ", break_on_hyphens=False)
        return "\n".join(map(wrap.fill, self.message.splitlines()))  # a line that is one stays one

    def __bool__(self) -> bool:
        return self.passed


_EXERCISES: dict[str, Exercise] = {}


def register(exercise: Exercise) -> Exercise:
    """Makes `exercise` known to `check`; its name must be new."""
    if exercise.name in _EXERCISES:
        raise ValueError(f"there is an exercise {exercise.name!r} already")
    _EXERCISES[exercise.name] = exercise
    return exercise


def exercises() -> dict[str, Exercise]:
    """All exercises by name."""
    for chapter in CHAPTERS:  # importing a chapter's module registers its exercises
        importlib.import_module(f"tformer_lib.exercises.{chapter}")
    return dict(_EXERCISES)


def exercise_names() -> list[str]:
    """The names that `check` knows."""
    return sorted(exercises())


def check(name: str, candidate: Any, *, seconds: float | None = 10.0) -> Verdict:
    """Runs `candidate` on random and edge inputs and says that it passed, or what is wrong with it.

    Whatever the candidate does is a verdict, not an error: it may raise, leave by `sys.exit`, or not return.
    Only an interrupt goes through. The random generators are afterwards as they were.

    Args:
        name: the exercise's name, for instance "attention.softmax_columns".
        candidate: the reader's function.
        seconds: how long it may take on one input; as long as it likes if None. It is broken off between two
            steps of Python: a single long call into PyTorch or NumPy comes to its end first.

    Returns:
        A verdict that is true when every input gave the right answer, and shows its message.

    Raises:
        KeyError: if there is no exercise of this name.
        TypeError: if the candidate cannot be called, or `seconds` is no number.
        ValueError: if `seconds` is not positive.
    """
    seconds = None if seconds is None else real("seconds", seconds, "(0, inf)")
    known = exercises()
    if name not in known:
        raise KeyError(f"no exercise {name!r}; there are: {', '.join(sorted(known))}")
    if not callable(candidate):
        raise TypeError(f"check needs a function to call, got {type(candidate).__name__}")
    exercise = known[name]
    try:
        with _generators_left_alone():
            return _verdict(exercise, _Answers(candidate, seconds))
    except _SlowError as error:
        return Verdict(False, f"{name}: not yet. {error}")


class _SlowError(Exception):
    """The candidate did not return in time; the message is the verdict's."""


class _RaisedError:
    """What came instead of an answer: an error, in words."""

    def __init__(self, error: BaseException):
        try:
            text = str(error)
        except Exception:  # an error of the reader's own making
            text = "(an error whose message cannot be shown)"
        self.text = f"{type(error).__name__}: {text}"


class _Answers:
    """The candidate's answers, each found out once."""

    def __init__(self, candidate: Callable[..., Any], seconds: float | None):
        self.candidate, self.seconds = candidate, seconds
        self.found: dict[int, Any] = {}

    def to(self, number: int, case: tuple) -> Any:
        """The answer to case `number`, or a `_RaisedError`."""
        if number not in self.found:
            try:
                self.found[number] = _outcome(self.candidate, case, self.seconds)
            except TimeUpError:
                raise _SlowError(
                    f"On an input of {_describe(case)} it did not return within {self.seconds:g} seconds, "
                    "and was broken off. Does a loop never end?"
                ) from None
        return self.found[number]


def _verdict(exercise: Exercise, answers: _Answers) -> Verdict:
    """Passed; or a mistake's hint; or what differed first."""
    name, cases = exercise.name, exercise.inputs(torch.Generator().manual_seed(SEED))
    for number, case in enumerate(cases):
        problem = _problem(exercise, answers.to(number, case), case)
        if problem is not None:
            break
    else:
        return Verdict(True, f"{name}: passed on {len(cases)} inputs.")
    for mistake in exercise.mistakes:
        if _behaves_like(exercise, answers, mistake.variant, cases):
            return Verdict(False, f"{name}: not yet. {mistake.hint}", mistake.name)
    return Verdict(False, f"{name}: not yet. {problem}")


@contextmanager
def _generators_left_alone() -> Iterator[None]:
    """Within it all random generators may be drawn from; afterwards they are as they were."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)  # inputs that draw from the global one are the same every time
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def _run(function: Callable[..., Any], case: tuple, seconds: float | None = None) -> Any:
    """The function's answer on copies of its arguments, with torch's random state held fixed."""
    copies = copy.deepcopy(case)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return limited(lambda: function(*copies), seconds)


def _problem(exercise: Exercise, answer: Any, case: tuple) -> str | None:
    """What is wrong with the candidate's answer on one input, in words; None if nothing is."""
    given = f"On an input of {_describe(case)}"
    expected = _run(exercise.reference, case)
    if isinstance(answer, _RaisedError):
        return f"{given} it raised {answer.text}"
    try:
        difference = _difference(answer, expected, exercise.tolerance)
    except Exception:  # an answer may be an object of any class, with an == and a repr of its own
        difference = f"{_kind(answer)} that cannot be compared; {_kind(expected)} was expected"
    return None if difference is None else f"{given} it returned {difference}."


def _difference(answer: Any, expected: Any, tolerance: float) -> str | None:
    """How the answer differs from what was expected, as the end of a sentence; None if it does not."""
    if _same(answer, expected, tolerance):
        return None
    if answer is None:
        return "nothing, as a function without a `return` does"
    wanted = f"{_kind(expected)} was expected"
    if isinstance(expected, tuple | list):
        if not isinstance(answer, tuple | list) or len(answer) != len(expected):
            return f"{_kind(answer)}; {wanted}"
        pairs = enumerate(zip(answer, expected, strict=True))
        found = ((i, _difference(a, e, tolerance)) for i, (a, e) in pairs)
        return next(f"as item {i} {difference}" for i, difference in found if difference is not None)
    if isinstance(expected, Tensor):
        if not isinstance(answer, Tensor):
            return f"{_kind(answer)}; {wanted}"
        if not _is_plain(answer):
            return f"a tensor of {answer.layout} on {answer.device.type}; {wanted}, with all its numbers"
        if answer.shape != expected.shape:
            return f"the shape {tuple(answer.shape)}; {tuple(expected.shape)} was expected"
        if _sort(answer) != _sort(expected):
            return f"a tensor of {answer.dtype}; {expected.dtype} was expected"
        if answer.isnan().any() and not expected.isnan().any():
            return f"{_brief(answer)}, with NaN in it; {_brief(expected)} was expected"
    return f"{_brief(answer)}; {_brief(expected)} was expected"


def _behaves_like(exercise: Exercise, answers: _Answers, variant: Callable, cases: Sequence[tuple]) -> bool:
    """Whether both give the same answers on all inputs, or fail with the same error on them."""
    for number, case in enumerate(cases):
        answer, other = answers.to(number, case), _outcome(variant, case)
        if isinstance(answer, _RaisedError) or isinstance(other, _RaisedError):
            same = getattr(answer, "text", None) == getattr(other, "text", "")
        else:
            try:
                same = _same(answer, other, exercise.tolerance)
            except Exception:  # what cannot be compared is not the same
                same = False
        if not same:
            return False
    return True


def _outcome(function: Callable[..., Any], case: tuple, seconds: float | None = None) -> Any:
    """What the function returns, or what it raises: whatever that is, but an interrupt or the time's end."""
    try:
        return _run(function, case, seconds)
    except (KeyboardInterrupt, TimeUpError):
        raise
    except BaseException as error:  # SystemExit among them
        return _RaisedError(error)


def _same(a: Any, b: Any, tolerance: float) -> bool:
    """Whether `a` is the expected `b`: tensors by shape and entries, sequences by item, numbers by value."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if not (_is_plain(a) and _is_plain(b)) or a.shape != b.shape or _sort(a) != _sort(b):
            return False
        a, b = a.detach().cpu(), b.detach().cpu()
        if a.is_complex():
            return torch.allclose(a.cdouble(), b.cdouble(), rtol=tolerance, atol=tolerance, equal_nan=True)
        if not (a.is_floating_point() or b.is_floating_point()):
            return torch.equal(a, b)
        return torch.allclose(a.double(), b.double(), rtol=tolerance, atol=tolerance, equal_nan=True)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(_same(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if _is_number(a) and _is_number(b):
        x, y = float(a), float(b)
        return math.isclose(x, y, rel_tol=tolerance, abs_tol=tolerance) or (math.isnan(x) and math.isnan(y))
    return type(a) is type(b) and bool(a == b)


def _is_number(x: Any) -> bool:
    """Python's numbers, NumPy's, and tensors without axes; real ones."""
    if isinstance(x, Tensor):
        return x.shape == () and _is_plain(x) and not x.is_complex()
    if isinstance(x, np.ndarray):
        return x.shape == () and x.dtype.kind in "biuf"
    return isinstance(x, numbers.Real | np.bool_)


def _is_plain(x: Tensor) -> bool:
    """Whether the tensor's numbers are all there: it is neither sparse nor on the meta device."""
    return x.layout == torch.strided and not x.is_meta and not x.is_quantized


def _sort(x: Tensor) -> str:
    """Booleans, complex numbers or others: what must agree, where precision and kind of number need not."""
    return "boolean" if x.dtype == torch.bool else "complex" if x.is_complex() else "real"


def _kind(x: Any) -> str:
    if isinstance(x, tuple | list):
        return f"a {type(x).__name__} of {len(x)}"
    return "a tensor" if isinstance(x, Tensor) else f"a {type(x).__name__}"


def _describe(case: tuple) -> str:
    parts = [f"shape {tuple(x.shape)}" if isinstance(x, Tensor) else repr(x) for x in case]
    return ", ".join(parts) or "nothing"


def _brief(x: Any) -> str:
    if isinstance(x, Tensor):
        numbers = x.detach().double().round(decimals=3) if x.is_floating_point() else x
        x = numbers.tolist()
    try:
        text = repr(x)
    except Exception:  # a reader's own class
        text = f"{_kind(x)} that cannot be shown"
    return text if len(text) <= 120 else text[:117] + "..."
