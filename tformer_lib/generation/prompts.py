"""What `generate` is given: prompts in their several forms, and stop tokens, checked."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tformer_lib.numbers import brief, whole


def parse_prompts(prompt: Sequence | Tensor, vocab_size: int) -> tuple[list[list[int]], bool]:
    """The prompts as lists of whole numbers, and whether there are several or only one.

    Raises:
        ValueError: if there is no prompt, one is empty, or a token is not in the vocabulary.
        TypeError: if a token is not a whole number.
    """
    given = _as_list(prompt)
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise TypeError(f"a prompt is a list of token numbers, or a list of such lists, got {brief(prompt)}")
    rows = [_as_list(row) for row in given]
    several = len(rows) > 0 and isinstance(rows[0], Sequence) and not isinstance(rows[0], str | bytes)
    prompts = []
    for row, tokens in enumerate(rows if several else [rows]):
        where = f"prompt {row}" if several else "the prompt"
        if not isinstance(tokens, Sequence) or isinstance(tokens, str | bytes):
            raise TypeError(f"{where} must be a list of token numbers, got {brief(tokens)}")
        if not tokens:
            raise ValueError(f"{where} is empty: the model needs a token to begin with")
        prompts.append([whole(f"token {i} of {where}", token) for i, token in enumerate(tokens)])
        for place, token in enumerate(prompts[-1]):
            if not 0 <= token < vocab_size:
                raise ValueError(
                    f"token {token} at place {place} of {where} is not in the vocabulary of {vocab_size}"
                )
    return prompts, several


def parse_stops(stop: int | Collection[int] | None, vocab_size: int) -> frozenset[int]:
    """The tokens that end a row, as a set.

    Raises:
        ValueError: if one is not in the vocabulary.
        TypeError: if one is no whole number.
    """
    given = _as_list(stop)
    several = isinstance(given, Collection) and not isinstance(given, str | bytes)
    stops = () if given is None else given if several else (given,)
    numbers = [whole("a stop token", token) for token in stops]
    for token in numbers:
        if not 0 <= token < vocab_size:
            raise ValueError(f"the stop token {token} is not in the vocabulary of {vocab_size}")
    return frozenset(numbers)


def _as_list(given: Any) -> Any:
    """A tensor or an array as lists of numbers, or as a number; anything else as it is."""
    if isinstance(given, Tensor) and (given.is_meta or given.layout != torch.strided):
        raise TypeError(f"tokens must be a dense tensor with numbers in it, got {brief(given)}")
    return given.tolist() if isinstance(given, Tensor | np.ndarray) else given
