"""How an answer differs from what was expected: where first, how much of it, and in which well-known way.

Numbers are compared with a tolerance. Whole numbers, booleans and real numbers are three kinds: 3.0 is no
answer where a whole number is asked, and 3 is one where 3.0 is. A float's precision does not matter, and a
NumPy array may stand for a tensor.

What is wrong with the numbers is read off all inputs that fail together: on a small one every error looks
like a factor, and a pattern is named only where all of them show it.
"""

import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

SHOWN = 12  # so many numbers at most are written out
WINDOW = 24  # characters of a text on each side of the first difference
OVERFLOW = 88  # e^89 is more than float32 holds
POWERS = {
    "times `{}`": 1.0,
    "divided by `{}`": -1.0,
    "times the square of `{}`": 2.0,
    "divided by the square of `{}`": -2.0,
    "times the square root of `{}`": 0.5,
    "divided by the square root of `{}`": -0.5,
}
FACTORS = {2.0: "twice", 0.5: "half", -0.5: "minus half", -2.0: "minus twice"}


@dataclass(frozen=True)
class Difference:
    """The first place at which an answer differs, both sides in words that differ too, and a diagnosis."""

    place: str  # "at [0, 1]", or "" where there is one number or another kind of thing
    got: str
    wanted: str
    share: str = ""  # "3 of 12 numbers differ"
    diagnosis: str = ""  # "It is the transpose of what was expected." Of numbers see `diagnose`

    def __str__(self) -> str:
        where = f" {self.place}" if self.place else ""
        text = f"it returned {self.got}{where}; {self.wanted} was expected"
        text += f" ({self.share})." if self.share else "."
        return f"{text} {self.diagnosis}".rstrip()


@dataclass(frozen=True)
class Pair:
    """Numbers of an answer and the expected ones, of one shape, in float64; the arguments they come from."""

    got: Tensor
    wanted: Tensor
    arguments: Mapping[str, Any]


def as_tensor(x: Any) -> Any:
    """A NumPy array of numbers as a tensor; anything else as it is."""
    if isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
        return torch.as_tensor(x.copy())
    return x


def same(a: Any, b: Any, tolerance: float) -> bool:
    """Whether `a` is the expected `b`: tensors by shape and entries, sequences by item, numbers by value."""
    if isinstance(b, Tensor):
        a = as_tensor(a)
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if not (is_plain(a) and is_plain(b)) or a.shape != b.shape or not kinds_fit(a, b):
            return False
        a, b = a.detach().cpu(), b.detach().cpu()
        if a.is_complex():
            return torch.allclose(a.cdouble(), b.cdouble(), rtol=tolerance, atol=tolerance, equal_nan=True)
        if not (a.is_floating_point() or b.is_floating_point()):
            return torch.equal(a, b)
        return torch.allclose(a.double(), b.double(), rtol=tolerance, atol=tolerance, equal_nan=True)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(same(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key], tolerance) for key in b)
    if is_number(a) and is_number(b):
        if not kinds_fit(a, b):
            return False
        x, y = float(a), float(b)
        return math.isclose(x, y, rel_tol=tolerance, abs_tol=tolerance) or (math.isnan(x) and math.isnan(y))
    return type(a) is type(b) and bool(a == b)


def difference(answer: Any, expected: Any, tolerance: float) -> Difference | None:
    """How the answer differs from what was expected; None if it does not."""
    if same(answer, expected, tolerance):
        return None
    if answer is None:
        return Difference("", "nothing, as a function without a `return` does", kind(expected))
    if isinstance(expected, tuple | list):
        return _of_sequences(answer, expected, tolerance)
    if isinstance(expected, Mapping) and isinstance(answer, Mapping) and answer.keys() == expected.keys():
        key = next(k for k in expected if not same(answer[k], expected[k], tolerance))
        return _below(f"for {key!r}", difference(answer[key], expected[key], tolerance))
    if isinstance(expected, Tensor):
        return _of_tensors(answer, expected, tolerance)
    if is_number(expected) and is_number(answer):
        if not kinds_fit(answer, expected):
            return Difference("", f"{brief(answer)}, {kind(answer)}", kind(expected))
        return Difference("", *two_texts(answer, expected))
    if isinstance(expected, str) and isinstance(answer, str):
        return Difference("", *two_strings(answer, expected))
    if kind(answer) != kind(expected):
        return Difference("", kind(answer), kind(expected))
    return Difference("", *two_texts(answer, expected))


def _below(place: str, inner: Difference | None) -> Difference:
    """A difference inside something, with its place put before."""
    if inner is None:  # pragma: no cover  the caller has seen one
        raise AssertionError("there is no difference")
    where = f"{place}, {inner.place}" if inner.place else place
    return Difference(where, inner.got, inner.wanted, inner.share, inner.diagnosis)


def _of_sequences(answer: Any, expected: tuple | list, tolerance: float) -> Difference:
    if isinstance(answer, Tensor) or not isinstance(answer, tuple | list):
        return Difference("", kind(answer), kind(expected))
    if len(answer) != len(expected):
        count = f"{len(answer)} {'item' if len(answer) == 1 else 'items'}"
        return Difference("", f"a {type(answer).__name__} of {count}", f"one of {len(expected)}")
    wrong = [i for i, (a, e) in enumerate(zip(answer, expected, strict=True)) if not same(a, e, tolerance)]
    first = wrong[0]
    inner = _below(f"as item {first}", difference(answer[first], expected[first], tolerance))
    share = "" if len(expected) == 1 else f"{len(wrong)} of {len(expected)} items differ"
    diagnosis = ""
    if len(wrong) > 1 and not all(map(is_number, expected)) and _sorted(answer) == _sorted(expected):
        diagnosis = "The items are the right ones, in another order."
    elif len(wrong) > 1 and same(list(answer), [expected[-1]] * len(expected), tolerance):
        diagnosis = (
            "Every item is what the last one should be: was one object changed in place and put in each time?"
        )
    return Difference(
        inner.place, inner.got, inner.wanted, inner.share or share, diagnosis or inner.diagnosis
    )


def _sorted(items: Any) -> list[str]:
    return sorted(repr(item) for item in items)


def _of_tensors(answer: Any, expected: Tensor, tolerance: float) -> Difference:
    answer = as_tensor(answer)
    if not isinstance(answer, Tensor):
        return Difference("", kind(answer), kind(expected))
    if not is_plain(answer):
        where = f"a tensor of {answer.layout} on {answer.device.type}"
        return Difference("", where, "a tensor with all its numbers")
    if answer.shape != expected.shape:
        got, wanted = (f"the shape {tuple(x.shape)}" for x in (answer, expected))
        return Difference("", got, wanted, diagnosis=_of_shapes(answer, expected, tolerance))
    if not kinds_fit(answer, expected):
        return Difference("", f"a tensor of {answer.dtype}", f"one of {expected.dtype}")
    a, e = (x.detach().cpu() for x in (answer, expected))
    if a.is_complex():
        return Difference("", *two_texts(a, e))
    a, e = a.double(), e.double()
    wrong = ~torch.isclose(a, e, rtol=tolerance, atol=tolerance, equal_nan=True)
    place = [int(i) for i in wrong.nonzero()[0]]
    one, other = two_texts(*(x.detach().cpu()[tuple(place)].item() for x in (answer, expected)))
    count = int(wrong.sum())
    share = "" if a.numel() == 1 else f"{count} of {a.numel()} numbers differ"
    return Difference(f"at {place}" if place else "", one, other, share)


def _of_shapes(answer: Tensor, expected: Tensor, tolerance: float) -> str:
    """What the numbers have in common where the shapes differ."""
    if answer.numel() != expected.numel() or not kinds_fit(answer, expected) or answer.is_complex():
        return ""
    a, e = answer.detach().cpu().double(), expected.detach().cpu().double()

    def agree(x: Tensor) -> bool:
        return x.shape == e.shape and torch.allclose(x, e, rtol=tolerance, atol=tolerance, equal_nan=True)

    if a.ndim >= 2 and agree(a.transpose(-1, -2)):
        return "It is the transpose of what was expected."
    if agree(a.reshape(e.shape)):
        return "The numbers are right, in another shape."
    return ""


def pairs(answer: Any, expected: Any, tolerance: float, arguments: Mapping[str, Any]) -> list[Pair]:
    """The numbers that differ beside the expected ones, wherever they stand; empty if they are no numbers."""
    if same(answer, expected, tolerance):
        return []
    if isinstance(expected, Tensor):
        answer = as_tensor(answer)
        fits = isinstance(answer, Tensor) and is_plain(answer) and answer.shape == expected.shape
        if not fits or not kinds_fit(answer, expected) or answer.is_complex():
            return []
        a, e = (x.detach().cpu().double() for x in (answer, expected))
        return [Pair(a, e, arguments)]
    if is_number(expected) and is_number(answer) and kinds_fit(answer, expected):
        a, e = (torch.tensor(float(x), dtype=torch.float64) for x in (answer, expected))
        return [Pair(a, e, arguments)]
    items = _items(answer, expected)
    if items and all(is_number(x) for item in items for x in item):
        a, e = (torch.tensor([float(x) for x in xs], dtype=torch.float64) for xs in zip(*items, strict=True))
        return [Pair(a, e, arguments)]
    return [pair for one, other in items for pair in pairs(one, other, tolerance, arguments)]


def _items(answer: Any, expected: Any) -> list[tuple[Any, Any]]:
    """The items of two containers side by side, if they have as many."""
    if isinstance(expected, Mapping) and isinstance(answer, Mapping) and answer.keys() == expected.keys():
        return [(answer[key], expected[key]) for key in expected]
    if isinstance(expected, tuple | list) and isinstance(answer, tuple | list):
        return list(zip(answer, expected, strict=True)) if len(answer) == len(expected) else []
    return []


def diagnose(found: Sequence[Pair], tolerance: float) -> str:
    """In which well-known way the numbers differ from the expected ones, on every input; "" if in none."""
    for pattern in (_not_finite, _factor, _shift, _arrangement):
        text = pattern(found, tolerance) if found else ""
        if text:
            return text
    return ""


def _close(x: Tensor, y: Tensor, tolerance: float) -> bool:
    return x.shape == y.shape and torch.allclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True)


def _subject(found: Sequence[Pair]) -> str:
    return "Every number" if any(pair.wanted.numel() > 1 for pair in found) else "It"


def _not_finite(found: Sequence[Pair], tolerance: float) -> str:
    """NaN, and overflow where the numbers that go in are large."""
    for pair in found:
        if pair.wanted.isfinite().all() and not pair.got.isfinite().all():
            numbers = [
                x for x in leaves(tuple(pair.arguments.values())) if isinstance(x, Tensor | float | int)
            ]
            sizes = [float(torch.as_tensor(x).double().abs().max()) for x in numbers if _has_numbers(x)]
            what = "There is NaN in it." if pair.got.isnan().any() else "There are infinite numbers in it."
            if max(sizes, default=0.0) > OVERFLOW:
                what += (
                    f" A number that goes in is {max(sizes):.4g}, and the exponential of more than "
                    f"{OVERFLOW} is infinite in float32: take the maximum off first, or call a function "
                    "that does."
                )
            return what
    return ""


def _has_numbers(x: Any) -> bool:
    return not isinstance(x, Tensor) or (is_plain(x) and x.numel() > 0 and not x.is_complex())


def _factor(found: Sequence[Pair], tolerance: float) -> str:
    """Zero, the wrong sign, one factor for all inputs, or one that is read off the arguments."""
    factors = []
    for pair in found:
        large = pair.wanted.abs() > 1e-9
        if not pair.got.isfinite().all() or not large.any():
            return ""
        factor = float((pair.got[large] / pair.wanted[large]).median())
        if not _close(pair.got, factor * pair.wanted, tolerance):
            return ""
        factors.append(factor)
    alike = all(math.isclose(f, factors[0], rel_tol=10 * tolerance, abs_tol=tolerance) for f in factors)
    subject, told = _subject(found), sum(pair.wanted.numel() for pair in found) > 1
    if alike and told and abs(factors[0]) < tolerance:
        return "Everything is zero."
    if alike and abs(factors[0] + 1) < 10 * tolerance:
        return "The sign is wrong." if subject == "It" else "Every number has the wrong sign."
    if alike and told:
        times = FACTORS.get(round(factors[0], 5), f"{factors[0]:.6g} times")
        return f"{subject} is {times} the expected one."
    amounts = [quantities(pair.arguments) for pair in found]
    for name in amounts[0]:
        values = [amount.get(name, 0.0) for amount in amounts]
        if len(set(values)) < 2 or min(values) <= 0:
            continue
        for text, power in POWERS.items():
            if all(math.isclose(f, p**power, rel_tol=1e-3) for f, p in zip(factors, values, strict=True)):
                return f"{subject} is the expected one {text.format(name)}."
    return ""


def quantities(arguments: Mapping[str, Any]) -> dict[str, float]:
    """The arguments that are one number."""
    return {k: float(x) for k, x in arguments.items() if is_number(x) and number_kind(x) != "boolean"}


def _shift(found: Sequence[Pair], tolerance: float) -> str:
    """All numbers too large or too small by the same, on all inputs."""
    steps = [float((pair.got - pair.wanted).median()) for pair in found]
    if sum(pair.wanted.numel() for pair in found) < 2 or not math.isfinite(steps[0]):
        return ""
    for pair in found:
        if not _close(pair.got, pair.wanted + steps[0], tolerance):
            return ""
    return f"{_subject(found)} is {abs(steps[0]):.6g} too {'large' if steps[0] > 0 else 'small'}."


def _arrangement(found: Sequence[Pair], tolerance: float) -> str:
    """The right numbers in the wrong places, or right rows among wrong ones, on all inputs."""

    def rows(pair: Pair) -> list[bool]:
        if pair.wanted.ndim < 2:
            return []
        return [_close(x, y, tolerance) for x, y in zip(pair.got, pair.wanted, strict=True)]

    def ordered(x: Tensor) -> Tensor:
        return x.flatten().sort().values

    what = "row" if all(pair.wanted.ndim == 2 for pair in found) else "sequence"
    patterns: list[tuple[str, Any]] = [
        (
            "It is the transpose of what was expected.",
            lambda p: p.wanted.ndim >= 2 and _close(p.got, p.wanted.transpose(-1, -2), tolerance),
        ),
        (
            f"Every {what} is what the last should be: was one tensor changed in place and kept each time?",
            lambda p: len(p.wanted) > 1 and _close(p.got, p.wanted[-1:].expand_as(p.wanted), tolerance),
        ),
        (
            f"Only the first {what} is right.",
            lambda p: len(p.wanted) > 1 and rows(p)[0] and not any(rows(p)[1:]),
        ),
        (
            f"Only the last {what} is wrong.",
            lambda p: len(p.wanted) > 2 and not rows(p)[-1] and all(rows(p)[:-1]),
        ),
        (
            f"Only the first {what} is wrong.",
            lambda p: len(p.wanted) > 2 and not rows(p)[0] and all(rows(p)[1:]),
        ),
    ]
    flat: list[tuple[str, Any]] = [
        (
            "The numbers are right, in reverse order.",
            lambda p: any(_close(p.got.flip(axis), p.wanted, tolerance) for axis in range(p.wanted.ndim)),
        ),
        (
            "The numbers are right, in another order.",
            lambda p: p.wanted.numel() > 1 and _close(ordered(p.got), ordered(p.wanted), tolerance),
        ),
    ]
    tables = all(pair.wanted.ndim >= 2 for pair in found)
    for text, fits in [*(patterns if tables else []), *flat]:
        if all(fits(pair) for pair in found):
            return text
    return ""


def kinds_fit(a: Any, b: Any) -> bool:
    """Whether an answer's numbers are of a kind that can be the expected one's."""
    order = {"boolean": 0, "whole": 1, "real": 2, "complex": 3}
    got, wanted = number_kind(a), number_kind(b)
    return got == wanted or (wanted == "real" and order[got] == 1)


def number_kind(x: Any) -> str:
    """Boolean, whole, real or complex, of a number or of a tensor's numbers."""
    if isinstance(x, Tensor):
        if x.dtype == torch.bool:
            return "boolean"
        return "complex" if x.is_complex() else "real" if x.is_floating_point() else "whole"
    if isinstance(x, np.ndarray | np.generic):
        return {"b": "boolean", "i": "whole", "u": "whole"}.get(x.dtype.kind, "real")
    if isinstance(x, bool):
        return "boolean"
    return "whole" if isinstance(x, numbers.Integral) else "real"


def is_number(x: Any) -> bool:
    """Python's numbers, NumPy's, and tensors without axes; real ones."""
    if isinstance(x, Tensor):
        return x.shape == () and is_plain(x) and not x.is_complex()
    if isinstance(x, np.ndarray):
        return x.shape == () and x.dtype.kind in "biuf"
    return isinstance(x, numbers.Real | np.bool_)


def is_plain(x: Tensor) -> bool:
    """Whether the tensor's numbers are all there: it is neither sparse nor on the meta device."""
    return x.layout == torch.strided and not x.is_meta and not x.is_quantized


def kind(x: Any) -> str:
    """What sort of thing it is."""
    if is_number(x) and not isinstance(x, Tensor):
        return {"boolean": "True or False", "whole": "a whole number"}.get(number_kind(x), "a real number")
    if isinstance(x, tuple | list):
        return f"a {type(x).__name__} of {len(x)}"
    if isinstance(x, Tensor):
        return "a tensor"
    if isinstance(x, str):
        return "a string"
    return "nothing" if x is None else f"a {type(x).__name__}"


def two_texts(a: Any, b: Any) -> tuple[str, str]:
    """Both as texts that are not the same, with as many digits as that takes."""
    if is_number(a) and is_number(b):
        x, y = (v.item() if isinstance(v, Tensor | np.ndarray | np.generic) else v for v in (a, b))
        for digits in range(4, 18):
            one, other = (f"{v:.{digits}g}" if isinstance(v, float) else str(v) for v in (x, y))
            if one != other:
                return one, other
        return f"{one} ({type(x).__name__})", f"{other} ({type(y).__name__})"
    one, other = brief(a), brief(b)
    if one == other:
        return two_strings(text_of(a), text_of(b))
    return one, other


def two_strings(a: str, b: str) -> tuple[str, str]:
    """Both around the first character in which they differ."""
    if max(len(a), len(b)) <= 2 * WINDOW:
        return repr(a), repr(b)
    first = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))

    def window(text: str) -> str:
        start, stop = max(0, first - WINDOW), first + WINDOW
        dots = "..." if start else "", "..." if stop < len(text) else ""
        return f"{dots[0]}{text[start:stop]!r}{dots[1]}"

    one, other = window(a), window(b)
    return (
        (one, other) if one != other else (f"{one} ({len(a)} characters)", f"{other} ({len(b)} characters)")
    )


def text_of(x: Any) -> str:
    """The object's repr; of a tensor's numbers, of an object that cannot be shown its kind."""
    if isinstance(x, Tensor):
        x = x.detach().double().tolist() if x.is_floating_point() else x.tolist()
    try:
        return repr(x)
    except Exception:  # a reader's own class
        return f"{kind(x)} that cannot be shown"


def brief(x: Any) -> str:
    """What an object is, in at most 120 characters."""
    if isinstance(x, Tensor) and is_plain(x) and x.is_floating_point():
        x = x.detach().double().round(decimals=4).tolist()
    text = text_of(x)
    return text if len(text) <= 120 else text[:117] + "..."


def leaves(x: Any) -> Iterator[Any]:
    """The numbers, texts and other objects inside lists, tuples and dictionaries."""
    if isinstance(x, tuple | list):
        for item in x:
            yield from leaves(item)
    elif isinstance(x, Mapping):
        for item in x.values():
            yield from leaves(item)
    else:
        yield x


def size(case: tuple) -> int:
    """How many numbers and characters the arguments hold: small ones are easier to follow by hand."""
    return sum(
        x.numel() if isinstance(x, Tensor) else len(x) if isinstance(x, str) else 1 for x in leaves(case)
    )


def describe(case: tuple, names: list[str]) -> str:
    """The arguments by name: numbers where they are few, else shapes."""
    return ", ".join(map(_argument, case, (*names, *[""] * len(case)))) or "no arguments"


def _argument(value: Any, name: str) -> str:
    start = f"{name} = " if name else ""
    if isinstance(value, Tensor):
        if is_plain(value) and value.numel() <= SHOWN:
            return f"{start}{brief(value)}"
        return f"{name or 'a tensor'} of shape {tuple(value.shape)}"
    return f"{start}{brief(value)}"
