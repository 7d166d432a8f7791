"""How an exercise is checked: beside its reference and, where the two differ, beside known mistakes."""

import copy
import difflib
import functools
import random
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tformer_book.kit.exercises.compare import (
    Pair,
    brief,
    describe,
    diagnose,
    difference,
    leaves,
    pairs,
    same,
    size,
)
from tformer_book.kit.exercises.limits import TimeUpError, limited
from tformer_book.kit.exercises.registry import Exercise, exercises
from tformer_lib.numbers import real

SEED = 0
ENOUGH = 24  # so often an argument may change without effect until it is believed to have none
SHAPES = re.compile(r"size of tensor a .* must match|shapes cannot be multiplied|could not be broadcast")


@dataclass(frozen=True)
class Verdict:
    """What `check` found; a cell that ends in it shows `message`, in lines of 80 columns."""

    passed: bool  # whether every input gave the right answer
    message: str  # what is wrong, in words
    mistake: str | None = None  # the name of the mistake that was recognised, if one was
    inputs: tuple | None = None  # where it did not pass: the arguments of the input that the message is about
    answer: Any = None  # what the candidate returned on them; an error in words if it raised
    expected: Any = None  # what the reference returns on them

    def __repr__(self) -> str:
        wrap = textwrap.TextWrapper(80, subsequent_indent="    ", break_on_hyphens=False)
        return "\n".join(map(wrap.fill, self.message.splitlines()))  # a line that is one stays one

    def __bool__(self) -> bool:
        return self.passed


def check(name: str, candidate: Any, *, seconds: float | None = 10.0) -> Verdict:
    """Runs `candidate` on random and edge inputs and says that it passed, or what is wrong with it.

    Whatever the candidate does is a verdict, not an error: it may raise, leave by `sys.exit`, not return, or
    change its arguments, which is wrong as well. Only an interrupt goes through. The random generators are
    afterwards as they were.

    Args:
        name: the exercise's name, for instance "attention.softmax_columns".
        candidate: the reader's function.
        seconds: how much processor time it may take on one input (ten times as much may pass on the clock);
            as long as it likes if None. It is broken off between two steps of Python: a single long call into
            PyTorch or NumPy comes to its end first.

    Returns:
        A verdict that is true when every input gave the right answer, and shows its message. Otherwise it
        holds the smallest input on which the answer is wrong, the answer, and the expected one.

    Raises:
        KeyError: if there is no exercise of this name.
        TypeError: if the candidate cannot be called, or `seconds` is no number.
        ValueError: if `seconds` is not positive.
    """
    seconds = None if seconds is None else real("seconds", seconds, "(0, inf)")
    known = exercises()
    if name not in known:
        raise KeyError(_unknown(name, list(known)))
    if not callable(candidate):
        raise TypeError(f"check needs a function to call, got {type(candidate).__name__}")
    with _generators_left_alone():
        return _verdict(known[name], candidate, seconds)


def _unknown(name: str, known: list[str]) -> str:
    """What a reader meant who mistyped a name: those like it, else the chapter's, else the chapters."""
    like = difflib.get_close_matches(str(name), known, n=3, cutoff=0.6)
    if like:
        return f"no exercise {name!r}: did you mean {' or '.join(map(repr, like))}?"
    chapters = sorted({each.partition(".")[0] for each in known})
    chapter = str(name).partition(".")[0]
    if chapter in chapters:
        there = sorted(each for each in known if each.startswith(f"{chapter}."))
        return f"no exercise {name!r}; of this chapter there are {', '.join(there)}"
    return f"no exercise {name!r}: a name is chapter.task, and the chapters are {', '.join(chapters)}"


class _RaisedError:
    """What came instead of an answer: an error, in words."""

    def __init__(self, error: BaseException):
        try:
            text = str(error)
        except Exception:  # an error of the reader's own making
            text = "(an error whose message cannot be shown)"
        self.text = f"{type(error).__name__}: {text}"

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Run:
    """One call of a function: the arguments as they were and as they are afterwards, and what came back."""

    case: tuple
    left: tuple
    answer: Any


def _verdict(exercise: Exercise, candidate: Callable[..., Any], seconds: float | None) -> Verdict:
    """Passed; or a mistake's hint; or how the smallest input's answer differs."""
    name, right = exercise.name, answers(exercise)
    cases = [run.case for run in right]
    runs, problems = [], {}
    for number, case in enumerate(cases):
        try:
            runs.append(_run(candidate, case, seconds))
        except TimeUpError:
            return Verdict(
                False,
                f"{name}: not yet. On {describe(case, exercise.parameters)} it did not return within "
                f"{seconds:g} seconds, and was broken off. Does a loop never end?",
                inputs=copy.deepcopy(case),
            )
        problem = _problem(exercise, runs[-1], right[number])
        if problem is not None:
            problems[number] = problem
    if not problems:
        return Verdict(True, f"{name}: passed on {len(cases)} inputs.")
    number = min(problems, key=lambda i: size(cases[i]))
    # the reader may do with these what they like: what is kept for the next check is not among them
    kept, expected = copy.deepcopy(cases[number]), _run(exercise.reference, cases[number]).answer
    seen = {"inputs": kept, "answer": runs[number].answer, "expected": expected}
    if all(_is_blank(run) for run in runs):
        return Verdict(False, f"{name}: your turn. The function returns nothing yet.", **seen)
    for mistake in exercise.mistakes:
        if _behaves_like(exercise, runs, mistake.variant):
            return Verdict(False, f"{name}: not yet. {mistake.hint}", mistake.name, **seen)
    start = f"{name}: not yet. On {describe(cases[number], exercise.parameters)} "
    said = _diagnosis(exercise, [(runs[i], right[i]) for i in problems])
    said = said or _confused(exercise, candidate, runs, seconds)
    return Verdict(False, f"{start}{problems[number]} {said}".rstrip(), **seen)


@functools.cache
def answers(exercise: Exercise) -> list[Run]:
    """The reference's run on each input, random and edge cases; made once."""
    with _generators_left_alone():
        cases = list(exercise.inputs(torch.Generator().manual_seed(SEED)))
        return [_run(exercise.reference, case) for case in cases]


def rejects(exercise: Exercise, candidate: Callable[..., Any], seconds: float | None) -> bool:
    """Whether `check` would not let it pass; it stops at the first input that shows it, and says nothing."""
    with _generators_left_alone():
        for right in answers(exercise):
            try:
                run = _run(candidate, right.case, seconds)
            except TimeUpError:
                return True
            if _problem(exercise, run, right) is not None:
                return True
    return False


def _diagnosis(exercise: Exercise, failed: Sequence[tuple[Run, Run]]) -> str:
    """What the wrong numbers of all inputs have in common, in words; "" if nothing is known."""
    found: list[Pair] = []
    for run, right in failed:
        if isinstance(run.answer, _RaisedError):
            return ""
        arguments = dict(zip(exercise.parameters, run.case, strict=False))
        try:
            here = pairs(run.answer, right.answer, exercise.tolerance, arguments)
        except Exception:  # an object of the reader's own class
            return ""
        if not here:
            return ""
        found += here
    return diagnose(found, exercise.tolerance)


def _confused(
    exercise: Exercise, candidate: Callable[..., Any], runs: Sequence[Run], seconds: float | None
) -> str:
    """Which arguments are exchanged in the candidate, or which one it does not look at, in words."""
    if any(isinstance(run.answer, _RaisedError) for run in runs):
        return ""
    names, reference = exercise.parameters, exercise.reference
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of arguments that are no answer to the task
        try:
            for i, j in combinations(range(len(names)), 2):
                order = list(range(len(names)))
                order[i], order[j] = j, i
                exchanged = functools.partial(lambda at, *given: reference(*(given[n] for n in at)), order)
                if _behaves_like(exercise, runs, exchanged, seconds):
                    return f"It is what comes out if `{names[i]}` and `{names[j]}` are exchanged."
            for place, name in enumerate(names):
                if _does_not_look_at(place, exercise, candidate, runs, seconds):
                    return f"On these inputs your answer does not depend on `{name}`."
        except TimeUpError:
            pass
    return ""


def _does_not_look_at(
    place: int,
    exercise: Exercise,
    candidate: Callable[..., Any],
    runs: Sequence[Run],
    seconds: float | None,
) -> bool:
    """Whether its answer stays as it is, at least twice, where another argument changes the reference's."""
    told = 0
    for run in runs:
        before = _run(exercise.reference, run.case).answer
        for instead in _others(run.case[place], [other.case[place] for other in runs]):
            case = (*run.case[:place], instead, *run.case[place + 1 :])
            after = _run(exercise.reference, case, seconds).answer
            if isinstance(after, _RaisedError) or _same(before, after, exercise.tolerance):
                continue  # it says nothing
            if not _same(run.answer, _run(candidate, case, seconds).answer, exercise.tolerance):
                return False
            told += 1
            if told == ENOUGH:
                return True
    return told > 1


def _others(value: Any, elsewhere: Sequence[Any]) -> list[Any]:
    """What may stand in an argument's place: other numbers, another order, what other inputs have there."""
    if isinstance(value, Tensor) and value.is_floating_point():
        return [torch.randn(value.shape, dtype=value.dtype), 0.75 * value + 0.5]
    if isinstance(value, Tensor):
        return [value.flip(tuple(range(value.ndim)))]
    return list({repr(other): other for other in elsewhere if other is not value}.values())[:8]


def _same(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two answers are alike; what cannot be compared is not."""
    try:
        return same(one, other, tolerance)
    except Exception:  # an object of the reader's own class
        return False


def _is_blank(run: Run) -> bool:
    """Whether nothing came back, and nothing was changed: a body of `...` or `pass`."""
    return run.answer is None and _changed(run) is None


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


def _run(function: Callable[..., Any], case: tuple, seconds: float | None = None) -> Run:
    """What the function returns on copies of its arguments, or raises, with torch's random state held fixed.

    Raises:
        TimeUpError: if it does not return in time.
        KeyboardInterrupt: if it is interrupted.
    """
    copies = copy.deepcopy(case)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        try:
            answer = limited(lambda: function(*copies), seconds)
        except (KeyboardInterrupt, TimeUpError):
            raise
        except BaseException as error:  # SystemExit among them
            answer = _RaisedError(error)
    return Run(case, copies, answer)


def _problem(exercise: Exercise, run: Run, right: Run) -> str | None:
    """What is wrong with the candidate's answer on one input, in words; None if nothing is."""
    if isinstance(run.answer, _RaisedError):
        hint = (
            " Two tensors met whose shapes do not fit: print them. Did a mean or a sum lose an axis that "
            "keepdim=True keeps?"
        )
        return f"it raised {run.answer.text}" + (hint if SHAPES.search(run.answer.text) else "")
    expected, changed = right.answer, _changed(run)
    allowed = changed is None or _changed(right) is not None
    try:
        found = difference(run.answer, expected, exercise.tolerance)
    except Exception:  # an answer may be an object of any class, with an == and a repr of its own
        return f"it returned {type(run.answer).__name__}, which cannot be compared with {brief(expected)}."
    names = [f"`{name}`" for name in exercise.parameters]
    names += [f"number {i + 1}" for i in range(len(names), len(run.case))]
    if found is not None:
        if allowed or changed is None:
            return str(found)
        return (
            f"{found} It also changed its argument {names[changed]} on the way: a slice or a transpose is a "
            "view of it and changes along, so that what is read from one later is new. Work on a copy."
        )
    for name, ours, theirs in zip(names, run.left, right.left, strict=True):
        left = _model_left_otherwise(ours, theirs)
        if left is not None:
            return f"the answer is right, and the model {name} is left {left}."
    if allowed or changed is None:
        return None
    return f"the answer is right, and it changed its argument {names[changed]}: work on a copy of it."


def _model_left_otherwise(ours: Any, theirs: Any) -> str | None:
    """How a model differs afterwards from the one that the reference had in hand; None if it does not."""
    for one, other in zip(leaves(ours), leaves(theirs), strict=False):
        if not isinstance(one, nn.Module) or not isinstance(other, nn.Module):
            continue
        modes = [[module.training for module in model.modules()] for model in (one, other)]
        if modes[0] != modes[1]:
            mode = "training" if one.training else "evaluation"
            what = (
                "in"
                if one.training != other.training
                else "with some of its modules in another mode, itself in"
            )
            return f"{what} {mode} mode: note the mode before you change it, and put it back"
        hooks = [sum(map(_hooks, model.modules())) for model in (one, other)]
        if hooks[0] != hooks[1]:
            return f"with {hooks[0]} hooks instead of {hooks[1]}: remove those that you register"
        states = [model.state_dict() for model in (one, other)]
        if states[0].keys() != states[1].keys():
            return "with other parameters"
        wrong = [name for name, value in states[1].items() if not same(states[0][name], value, 1e-4)]
        if wrong:
            return f"with other numbers in {wrong[0]}"
        asks = [[p.requires_grad for p in model.parameters()] for model in (one, other)]
        if asks[0] != asks[1]:
            return "with other parameters that ask for gradients: put requires_grad back"
    return None


def _hooks(module: nn.Module) -> int:
    return len(module._forward_hooks) + len(module._forward_pre_hooks) + len(module._backward_hooks)


def _changed(run: Run) -> int | None:
    """The number of the first argument that is not what it was; generators and models are not looked at."""
    for number, (before, after) in enumerate(zip(run.case, run.left, strict=True)):
        one, other = list(leaves(before)), list(leaves(after))
        if len(one) != len(other) or any(map(_differ, one, other)):
            return number
    return None


def _differ(before: Any, after: Any) -> bool:
    """Whether a number, a text, a tensor or an array is another one than before."""
    if isinstance(before, np.ndarray):
        return not np.array_equal(before, after, equal_nan=before.dtype.kind == "f")
    plain = isinstance(before, torch.Tensor | int | float | str | bytes | type(None))
    return plain and not same(after, before, 0.0)


def _behaves_like(
    exercise: Exercise, runs: Sequence[Run], variant: Callable, seconds: float | None = None
) -> bool:
    """Whether both give the same answers on all inputs, or fail with the same error on them."""
    for run in runs:
        answer, other = run.answer, _run(variant, run.case, seconds).answer
        if isinstance(answer, _RaisedError) or isinstance(other, _RaisedError):
            alike = getattr(answer, "text", None) == getattr(other, "text", "")
        else:
            alike = _same(answer, other, exercise.tolerance)
        if not alike:
            return False
    return True
