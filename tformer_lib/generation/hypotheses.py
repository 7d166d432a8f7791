"""What a search has found: a target, its probability, and the score it is ranked by."""

import math
from dataclasses import dataclass

from tformer_lib.numbers import real, whole


@dataclass(frozen=True)
class Hypothesis:
    """A target with log p(target | source) in nats, and score = log p / length^length_penalty.

    The length counts the end token, as `transformers` does. Wu et al. (2016), section 7, divide by
    ((5 + length) / 6)^alpha instead.
    """

    tokens: tuple[int, ...]  # without the begin token; with the end token where the search got so far
    log_p: float
    score: float


def length_score(log_p: float, length: int, length_penalty: float) -> float:
    """log p / length^length_penalty: 0 leaves log p as it is, 1 makes it a mean over tokens."""
    return log_p / length**length_penalty


def check_search(max_len: int, length_penalty: float, **counts: int) -> tuple[float, list[int]]:
    """The penalty and the counts, `max_len` first, as Python's numbers, under which scores are numbers.

    Raises:
        TypeError: if one is no such number.
        ValueError: if a count is below 1, or `max_len` to the power of the penalty is not finite or is 0.
    """
    found = [whole(name, number, 1) for name, number in {"max_len": max_len, **counts}.items()]
    penalty = real("length_penalty", length_penalty, "(-inf, inf)")
    if not abs(penalty) * math.log(found[0]) < math.log(1e300):
        raise ValueError(
            f"{max_len}^length_penalty must be a number of ordinary size, got length_penalty={length_penalty}"
        )
    return penalty, found
