"""The checkers reject wrong solutions that nobody wrote: references with one thing changed, by rules."""

import sys

import pytest

from tests.book.kit.exercises.mutants import mutants
from tformer_book.kit.exercises import Exercise, exercises
from tformer_book.kit.exercises.checker import _verdict

EXERCISES = exercises()


def survivors(name: str) -> tuple[int, list[str]]:
    """How many mutants there are, and those that pass."""
    known = EXERCISES[name]
    bare = Exercise(name, known.reference, known.inputs, known.tolerance)  # its mistakes need no naming here
    made = list(mutants(known))
    return len(made), [what for what, mutant in made if _verdict(bare, mutant, 0.5)]


@pytest.fixture(scope="module")
def counts():
    return {}


@pytest.mark.parametrize("name", EXERCISES)
def test_most_mutants_are_rejected(name, counts):
    made, passed = survivors(name)
    counts[name] = made, len(passed)
    assert len(passed) <= max(1, 0.2 * made), "\n".join(passed)


def test_at_least_95_in_100_are_rejected(counts):
    if set(counts) != set(EXERCISES):
        pytest.skip("only some exercises were asked")
    made, passed = (sum(column) for column in zip(*counts.values(), strict=True))
    print(f"{made} mutants, {passed} pass")
    assert passed <= 0.05 * made


if __name__ == "__main__":  # python -m tests.book.kit.exercises.test_mutants attention: lists what passes
    total = passing = 0
    for name in EXERCISES:
        if any(name.startswith(start) for start in sys.argv[1:]):
            made, passed = survivors(name)
            total, passing = total + made, passing + len(passed)
            print(f"{name}: {made} mutants, {len(passed)} pass", *passed, sep="\n    ")
    print(f"{total} mutants, {passing} pass")
