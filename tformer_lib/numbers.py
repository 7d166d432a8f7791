"""Numbers that are handed in: whole or real, within their bounds, or an error that names both sides.

A boolean is no number here, though Python counts with it. NumPy's numbers and tensors with a single entry
and no axis are taken, and handed on as Python's: those can be written to JSON, and compared with anything.
"""

import math
import numbers
import operator
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch


def whole(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """`value` as an int, with least <= value <= most.

    Args:
        name: what errors call it.
        value: a whole number of any kind: 3, `np.int64(3)` or `torch.tensor(3)`, but neither 3.0 nor True.
        least: the smallest that may be; none if None.
        most: the greatest that may be; none if None.

    Raises:
        TypeError: if it is no whole number.
        ValueError: if it is out of bounds.
    """
    number: Any = value if isinstance(value, int | torch.SymInt) else _plain(value)
    if isinstance(number, bool) or not isinstance(number, numbers.Integral | torch.SymInt):
        raise TypeError(f"{name} must be a whole number, got {brief(value)}, of type {type(value).__name__}")
    if not torch.compiler.is_compiling():  # where a length may stay open, to be any number
        number = operator.index(number)
    if (least is not None and number < least) or (most is not None and number > most):
        bounds = [f"at least {least}"] * (least is not None) + [f"at most {most}"] * (most is not None)
        raise ValueError(f"{name} must be {' and '.join(bounds)}, got {brief(number)}")
    return number


def real(name: str, value: Any, interval: str) -> float:
    """`value` as a float that lies in an interval, such as "[0, 1)", "(0, inf)" or "(-inf, inf)".

    Args:
        name: what errors call it.
        value: a number of any kind that has a place on the line: 1, 0.5, `np.float32(0.5)`.
        interval: a round bracket leaves its end out, and a square one does not. NaN lies in none.

    Raises:
        TypeError: if it is no real number.
        ValueError: if it lies outside.
    """
    number = _plain(value)
    if isinstance(number, bool) or not isinstance(number, numbers.Real):
        raise TypeError(
            f"{name} must be a number in {interval}, got {brief(value)}, of type {type(value).__name__}"
        )
    try:
        number = float(number)
    except OverflowError:  # a whole number with more than 308 digits
        number = math.copysign(math.inf, number)
    low, high = map(float, interval[1:-1].split(","))
    above = low <= number if interval[0] == "[" else low < number
    below = number <= high if interval[-1] == "]" else number < high
    if not (above and below):  # NaN is neither
        raise ValueError(f"{name} must lie in {interval}, got {brief(value)}")
    return number


def flag(name: str, value: Any) -> bool:
    """`value` as a bool.

    Raises:
        TypeError: if it is neither True nor False.
    """
    answer = _plain(value)
    if not isinstance(answer, bool):
        raise TypeError(f"{name} must be True or False, got {brief(value)}, of type {type(value).__name__}")
    return answer


def one_of(name: str, value: Any, choices: Any) -> Any:
    """`value`, which is among the choices: those of a `Literal`, or of any collection.

    Raises:
        ValueError: if it is not.
    """
    choices = get_args(choices) or tuple(choices)
    if value not in choices:
        raise ValueError(f"{name} must be one of {choices}, got {brief(value)}")
    return value


def multiple(name: str, value: Any, of: int, why: str) -> int:
    """`value` as an int, at least 1, if `of` divides it; the error says `why` it should.

    Raises:
        TypeError: if it is no whole number.
        ValueError: if it is not positive, or not divided.
    """
    number = whole(name, value, 1)
    if number % of:
        raise ValueError(f"{why}, got {number}")
    return number


def check_fields(made: Any, **bounds: Any) -> None:
    """Hold each field of a dataclass to its annotation, and put Python's own numbers in place of NumPy's.

    A number is what its field's `bounds` say: an interval for `real`, such as dropout="[0, 1)", or the least
    of a whole one, which is 1 where nothing is said. A bool is a flag, and of a `Literal` one is taken.
    Where None is allowed, it may be None. Fields of other types are passed over.

    Raises:
        TypeError: if a field holds something else.
        ValueError: if a number is out of bounds, or a choice unknown.
    """
    for name, kind in get_type_hints(type(made)).items():
        value, optional = getattr(made, name), NoneType in get_args(kind)
        if optional:
            kind = next(each for each in get_args(kind) if each is not NoneType)
        if optional and value is None:
            continue
        if kind is bool:
            value = flag(name, value)
        elif kind is int:
            value = whole(name, value, bounds.get(name, 1))
        elif kind is float:
            value = real(name, value, bounds[name])
        elif get_origin(kind) is Literal:
            value = one_of(name, value, kind)
        object.__setattr__(made, name, value)  # it may be frozen, and is not yet in anybody's hands


def brief(value: Any) -> str:
    """A value as an error shows it: in at most 80 characters, whatever it is."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # it cannot even be shown: a whole number of 5,000 digits, or an object of a reader's
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= 80 else text[:77] + "..."


def _plain(value: Any) -> Any:
    """Python's own number in place of NumPy's, or of a tensor's that has one entry and no axis."""
    if getattr(value, "shape", None) == () and callable(getattr(value, "item", None)):
        try:
            return value.item()
        except (RuntimeError, TypeError, ValueError):  # on the meta device there is no number
            return value
    return value
