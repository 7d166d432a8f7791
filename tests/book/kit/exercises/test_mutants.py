"""The checkers reject wrong solutions that nobody wrote: references with one thing changed, by rules."""

import sys

import pytest

from tests.book.kit.exercises.equivalent import EQUIVALENT
from tests.book.kit.exercises.mutants import mutants
from tests.book.kit.exercises.unlike import UNLIKE
from tformer_book.kit.exercises import exercises
from tformer_book.kit.exercises.checker import rejects
from tformer_book.kit.exercises.registry import changed

EXERCISES = exercises()


def survivors(name: str) -> tuple[int, list[str]]:
    """How many mutants there are, and those that pass."""
    made, passed = list(mutants(EXERCISES[name])), []
    for what, mutant in made:  # one that is to pass has time to, however busy the machine is
        if not rejects(EXERCISES[name], mutant, 10.0 if what in EQUIVALENT.get(name, {}) else 0.1):
            passed.append(what)
    return len(made), passed


@pytest.mark.parametrize("name", EXERCISES)
def test_every_mutant_is_rejected_that_is_not_equivalent(name):
    made, passed = survivors(name)
    assert made >= 3
    assert sorted(passed) == sorted(EQUIVALENT.get(name, {}))


@pytest.mark.parametrize(("name", "change"), [(name, c) for name, some in UNLIKE.items() for c in some])
def test_what_no_rule_makes_is_rejected(name, change):
    wrong = changed(EXERCISES[name].reference, change.split(" ;; "))
    assert rejects(EXERCISES[name], wrong, 10.0)


def test_each_equivalent_mutant_has_a_reason():
    assert set(EQUIVALENT) <= set(EXERCISES)
    assert all(len(reason) > 10 for known in EQUIVALENT.values() for reason in known.values())


if __name__ == "__main__":  # python -m tests.book.kit.exercises.test_mutants attention: lists what passes
    total = passing = 0
    for name in EXERCISES:
        if any(name.startswith(start) for start in sys.argv[1:]):
            made, passed = survivors(name)
            total, passing = total + made, passing + len(passed)
            print(f"{name}: {made} mutants, {len(passed)} pass", *passed, sep="\n    ")
    print(f"{total} mutants, {passing} pass")
