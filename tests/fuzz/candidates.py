"""The checker of exercises, given answers that are none."""

import math
import random
import sys
import time

import numpy as np
import pytest
import torch

from tests.fuzz.judge import judged
from tformer_book import check
from tformer_book.kit.exercises import exercise_names


class Unprintable(Exception):  # noqa: N818
    def __str__(self):
        raise RuntimeError("no words")

    __repr__ = __str__


class Odd:
    def __repr__(self):
        raise RuntimeError("no words")

    def __eq__(self, other):
        raise RuntimeError("no comparison")

    __hash__ = None
    __float__ = __repr__


def raising(error):
    def candidate(*args):
        raise error

    return candidate


def spoiling(*args):
    for arg in args:
        if isinstance(arg, torch.Tensor):
            arg.zero_() if arg.is_floating_point() else arg.fill_(0)
    torch.rand(3)
    random.random()
    np.random.rand()  # noqa: NPY002


LOOPED = []
LOOPED.append(LOOPED)
ERRORS = [
    Unprintable(),
    SystemExit(3),
    GeneratorExit(),
    RecursionError(),
    MemoryError(),
    StopIteration(),
    KeyError(3),
]
CANDIDATES = {
    **{type(error).__name__: raising(error) for error in ERRORS},
    "exit": lambda *args: sys.exit("bye"),
    "recursion": lambda *args: (lambda f: f(f))(lambda f: f(f)),
    "nothing": lambda: None,
    "spoiling": spoiling,
    **{
        f"answer {i}": lambda *args, answer=answer: answer
        for i, answer in enumerate(
            [
                *(None, float, int, Odd(), Odd, "x", b"x", 1j, 10**400, math.nan, True, [], {}, LOOPED, len),
                *(np.array([1, "a"], dtype=object), np.zeros(3), np.complex64(1j), np.datetime64("NaT")),
                *(torch.tensor(1j), torch.zeros(4, 3).to_sparse(), torch.zeros(4, 3, device="meta")),
                *(torch.zeros(0), torch.tensor(math.nan), torch.zeros(4, 3, requires_grad=True), (Odd(),)),
                *(
                    torch.zeros(4, 3, dtype=torch.bool),
                    torch.quantize_per_tensor(torch.ones(2), 1, 0, torch.qint8),
                ),
            ]
        )
    },
}


@pytest.mark.parametrize("name", exercise_names())
def test_candidates(name):
    """Each is a verdict in words, and the dice lie as they lay."""
    torch.manual_seed(1)
    dice = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    picked = random.Random(name).sample(sorted(CANDIDATES), 6)
    for each in picked:
        verdict, error = judged(lambda each=each: check(name, CANDIDATES[each]))
        assert error is None
        assert not verdict, each
        assert name in verdict.message
        assert repr(verdict)
    assert torch.equal(torch.get_rng_state(), dice[0])
    assert random.getstate() == dice[1]
    assert np.random.get_state()[1].tolist() == dice[2]  # noqa: NPY002


@pytest.mark.parametrize("each", CANDIDATES)
def test_every_candidate(each):
    for name in ("attention.softmax_columns", "multi_head.evaluate", "gpt.perplexity"):
        if name in exercise_names():
            verdict, error = judged(lambda name=name: check(name, CANDIDATES[each]))
            assert error is None
            assert not verdict


def test_a_complex_answer_is_not_a_real_one():
    scores = "attention.softmax_columns"
    assert check(scores, lambda s: s.softmax(0))
    assert not check(scores, lambda s: s.softmax(0).to(torch.complex64))


def forever(*args):
    count = 0
    while True:
        count += 1


def stubborn(*args):
    while True:
        try:
            sum(range(100))
        except ValueError:
            continue


def asleep(*args):
    while True:
        time.sleep(0.01)


@pytest.mark.parametrize("candidate", [forever, stubborn, asleep])
def test_candidates_that_do_not_return(candidate):
    verdict, _ = judged(lambda: check("attention.softmax_columns", candidate, seconds=0.2))
    assert not verdict
    assert "did not return within 0.2 seconds" in verdict.message
    for _ in range(1000):  # no exception comes late
        sum(range(100))


def test_a_limit_that_is_just_met_or_missed():
    """The time is up at about the moment of the return, and nothing comes later."""
    for _ in range(20):
        judged(lambda: check("attention.causal_columns", lambda n: time.sleep(0.001), seconds=0.001))
        sum(range(1000))


def test_an_interrupt_goes_through():
    with pytest.raises(KeyboardInterrupt):
        check("attention.softmax_columns", raising(KeyboardInterrupt()))
