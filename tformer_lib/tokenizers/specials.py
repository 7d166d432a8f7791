"""Special tokens: tokens that mark a place, such as the end of a text, and that text cannot forge."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from torch import Tensor

from tformer_lib.numbers import brief, whole
from tformer_lib.tokenizers.pretokenise import utf8

CACHED_WORDS = 100_000  # so many words at most a tokenizer remembers


def token_numbers(ids: Iterable[int] | Tensor, vocab_size: int) -> list[int]:
    """The numbers as a list, each of them a token's.

    Raises:
        TypeError: if they are given as text, or one is no whole number: 0.9 is not 0, nor is "12" 1 and 2.
        ValueError: if there is no token with one of the numbers, or a tensor of them has not one axis.
    """
    if isinstance(ids, Tensor):
        if ids.ndim != 1:
            raise ValueError(f"the numbers of tokens must be on one axis, got shape {tuple(ids.shape)}")
        ids = ids.tolist()
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise TypeError(f"the numbers of tokens must be given in a list, got {brief(ids)}")
    numbers = [whole("the number of a token", i) for i in ids]
    for i in numbers:
        if not 0 <= i < vocab_size:
            raise ValueError(f"there is no token {i}: they are numbered 0 to {vocab_size - 1}")
    return numbers


def check_specials(names: Iterable[str]) -> tuple[str, ...]:
    """The names as a tuple.

    Raises:
        ValueError: if a name is empty or stands there twice, or if one string is given instead of several.
    """
    if isinstance(names, str):
        raise ValueError(f"special tokens are given as a tuple of names, got the one string {names!r}")
    names = tuple(names)
    if "" in names:
        raise ValueError("a special token is empty")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"special tokens occur twice: {', '.join(map(repr, twice))}")
    return names


def split_specials(
    text: str, allow_special: Iterable[str], known: Sequence[str] | dict[str, int]
) -> Iterator[tuple[str, bool]]:
    """Cuts the text at the allowed special tokens: pairs (piece, whether it is a special token).

    Only names in `allow_special` count; any other special token's name in the text is ordinary text.
    Where two names begin at the same place, the longer one is taken.

    Raises:
        ValueError: if `allow_special` names a token that is not in `known`, if the text has a lone surrogate,
            or as `check_specials`.
    """
    utf8(text)
    allowed = check_specials(allow_special)
    unknown = [name for name in allowed if name not in known]
    if unknown:
        there = ", ".join(map(repr, known)) or "none"
        raise ValueError(f"unknown special token {unknown[0]!r}: the special tokens are {there}")
    if not allowed:
        yield text, False
        return
    longest_first = sorted(allowed, key=len, reverse=True)
    for i, piece in enumerate(re.split("(" + "|".join(map(re.escape, longest_first)) + ")", text)):
        if piece:
            yield piece, i % 2 == 1


class WordMemory(dict[str, list[int]]):
    """The numbers of each word: found out once, and forgotten with all others when there are too many.

    Args:
        encode: the numbers of one word.
    """

    def __init__(self, encode: Callable[[str], list[int]]):
        super().__init__()
        self.encode = encode

    def __missing__(self, word: str) -> list[int]:
        if len(self) >= CACHED_WORDS:
            self.clear()
        self[word] = self.encode(word)
        return self[word]
