"""What `generate` is given: prompts in their several forms, and stop tokens, checked."""

import operator
from collections.abc import Collection, Sequence

from torch import Tensor


def parse_prompts(prompt: Sequence | Tensor, vocab: int) -> tuple[list[list[int]], bool]:
    """The prompts as lists of whole numbers, and whether there are several or only one.

    Raises:
        ValueError: if there is no prompt, one is empty, or a token is not in the vocabulary.
        TypeError: if a token is not a whole number.
    """
    given = prompt.tolist() if isinstance(prompt, Tensor) else prompt
    several = len(given) > 0 and (isinstance(given[0], Sequence) or getattr(given[0], "ndim", 0) == 1)
    prompts = [[operator.index(token) for token in row] for row in (given if several else [given])]
    for row, tokens in enumerate(prompts):
        where = f"prompt {row}" if several else "the prompt"
        if not tokens:
            raise ValueError(f"{where} is empty: the model needs a token to begin with")
        for place, token in enumerate(tokens):
            if not 0 <= token < vocab:
                raise ValueError(
                    f"token {token} at place {place} of {where} is not in the vocabulary of {vocab}"
                )
    return prompts, several


def parse_stops(stop: int | Collection[int] | None, vocab: int) -> frozenset[int]:
    """The tokens that end a row, as a set.

    Raises:
        ValueError: if one is not in the vocabulary.
    """
    stops = () if stop is None else stop if isinstance(stop, Collection) else (stop,)
    for token in stops:
        if not 0 <= token < vocab:
            raise ValueError(f"the stop token {token} is not in the vocabulary of {vocab}")
    return frozenset(stops)
