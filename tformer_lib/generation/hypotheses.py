"""What a search has found: a target, its probability, and the score it is ranked by."""

from dataclasses import dataclass


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


def check_search(max_len: int, **counts: int) -> None:
    """Raise a ValueError unless the numbers are at least 1."""
    for name, number in {"max_len": max_len, **counts}.items():
        if number < 1:
            raise ValueError(f"{name} must be at least 1, got {number}")
