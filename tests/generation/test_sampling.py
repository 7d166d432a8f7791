"""Probabilities of the next token, against those of `transformers`, and what is drawn from them."""

import math
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tformer_lib.generation import next_token_probabilities
from tformer_lib.generation.sampling import choose

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from transformers import (
        MinPLogitsWarper,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

NAN, INF = math.nan, math.inf


def published(logits, temperature, top_k, top_p, min_p):
    """The same by the four processors that `transformers` applies, in its order."""
    scores = TemperatureLogitsWarper(float(temperature))(None, logits)
    if top_k is not None:
        scores = TopKLogitsWarper(top_k)(None, scores)
    if top_p is not None:
        scores = TopPLogitsWarper(float(top_p))(None, scores)
    if min_p is not None:
        scores = MinPLogitsWarper(min_p)(None, scores)
    return scores.softmax(dim=-1)


@settings(max_examples=150)
@given(
    seed=st.integers(0, 999),
    vocab=st.integers(1, 40),
    kind=st.sampled_from(["normal", "ties", "peaked", "flat"]),
    temperature=st.sampled_from([0.05, 0.5, 0.7, 1, 1.3, 10.0]),
    top_k=st.none() | st.integers(1, 50),
    top_p=st.none() | st.sampled_from([1e-6, 0.1, 0.33, 0.5, 0.9, 0.999, 1.0]),
    min_p=st.none() | st.sampled_from([0.0, 1e-6, 0.03, 0.17, 0.9, 1.0]),
)
def test_against_transformers(seed, vocab, kind, temperature, top_k, top_p, min_p):
    logits = torch.randn(3, vocab, generator=torch.Generator().manual_seed(seed))
    if kind == "ties":
        logits = logits.mul(2).round() / 2
    logits = logits * {"peaked": 60, "flat": 0}.get(kind, 1)
    rules = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    ours, theirs = next_token_probabilities(logits, **rules), published(logits, **rules)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    torch.testing.assert_close(ours.sum(-1), torch.ones(3))


def test_by_hand():
    logits = torch.tensor([0.1, 0.2, 0.3, 0.4]).log()
    p = next_token_probabilities(logits, temperature=0.5)
    torch.testing.assert_close(p, torch.tensor([1.0, 4.0, 9.0, 16.0]) / 30)
    torch.testing.assert_close(next_token_probabilities(logits, top_k=2), torch.tensor([0, 0, 3.0, 4.0]) / 7)
    torch.testing.assert_close(
        next_token_probabilities(logits, top_p=0.75), torch.tensor([0, 2.0, 3.0, 4.0]) / 9
    )
    # of the two tokens that top_k leaves, the likelier holds 4/7 > 0.5: top_p is measured on what is left
    torch.testing.assert_close(
        next_token_probabilities(logits, top_k=2, top_p=0.5), torch.tensor([0, 0, 0, 1.0])
    )


def test_min_p_measures_against_the_likeliest():
    logits = torch.tensor([0.5, 0.25, 0.2, 0.05]).log()
    p = next_token_probabilities(logits, min_p=0.45)
    torch.testing.assert_close(p, torch.tensor([10.0, 5.0, 0.0, 0.0]) / 15)
    # at temperature 1/2 the shares of the likeliest are squared: 1, 0.25, 0.16, 0.01
    p = next_token_probabilities(logits, temperature=0.5, min_p=0.2)
    torch.testing.assert_close(p, torch.tensor([4.0, 1.0, 0.0, 0.0]) / 5)
    assert next_token_probabilities(torch.zeros(4), min_p=1).tolist() == [0.25] * 4
    torch.testing.assert_close(next_token_probabilities(logits, min_p=0), logits.softmax(-1))


def test_top_k_keeps_ties_and_top_p_as_few_as_will_do():
    logits = torch.tensor([2.0, 1, 1, 1, 0])
    assert (next_token_probabilities(logits, top_k=2) > 0).tolist() == [True, True, True, True, False]
    kept = next_token_probabilities(torch.zeros(8), top_p=0.5) > 0
    assert kept.sum() == 4


def test_temperature_zero_is_the_limit():
    logits = torch.randn(50, 7)
    greedy = next_token_probabilities(logits, temperature=0, top_k=3, top_p=0.2)
    assert torch.equal(greedy, torch.nn.functional.one_hot(logits.argmax(-1), 7).double())
    for cold in (1e-6, 1e-300, 5e-324):
        torch.testing.assert_close(next_token_probabilities(logits, temperature=cold), greedy)
    torch.testing.assert_close(
        next_token_probabilities(logits, temperature=1e300), torch.full_like(logits, 1 / 7)
    )
    assert next_token_probabilities(torch.zeros(4), temperature=0).tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("temperature", [1e-300, 1e-40, 1e-3, 1.0, 1e40, 1e300])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_extremes_stay_distributions(temperature, dtype):
    logits = torch.tensor([[6e4, -6e4, 0.0, -INF], [-INF, -INF, -INF, -6e4]]).to(dtype)
    for choices in ({}, {"top_k": 2}, {"top_p": 0.5}, {"min_p": 0.5}):
        p = next_token_probabilities(logits, temperature=temperature, **choices)
        assert p.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        torch.testing.assert_close(p.sum(-1), torch.ones_like(p[:, 0]))
        assert p[1].tolist() == [0, 0, 0, 1]
        assert p[0, 3] == 0


def test_any_leading_axes_and_the_input_stays():
    logits = torch.randn(2, 3, 5)
    before = logits.clone()
    p = next_token_probabilities(logits, temperature=0.7, top_k=4, top_p=0.9)
    assert p.shape == logits.shape
    assert torch.equal(logits, before)
    torch.testing.assert_close(
        p[1, 2], next_token_probabilities(logits[1, 2], temperature=0.7, top_k=4, top_p=0.9)
    )


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"temperature": 0.6},
        {"top_k": 3},
        {"top_p": 0.8},
        {"temperature": 1.5, "top_k": 5},
        {"min_p": 0.2},
    ],
)
def test_frequencies_are_the_probabilities(choices):
    """Chi-squared of 40,000 draws: below its 1e-4 quantile, and nothing is drawn that cannot come."""
    logits = torch.tensor([1.0, 0.5, 0.0, -0.5, -1.0, 2.0])
    draws = 40_000
    tokens = choose(logits.expand(draws, 6), **choices, generator=torch.Generator().manual_seed(0))
    counts = tokens.bincount(minlength=6)
    expected = draws * next_token_probabilities(logits, **choices)
    possible = expected > 0
    assert (counts[~possible] == 0).all()
    chi_squared = ((counts - expected).square() / expected)[possible].sum().item()
    quantiles = {2: 18.42, 3: 21.11, 4: 23.51, 5: 25.74}
    assert chi_squared < quantiles[max(2, int(possible.sum()) - 1)]


def test_greedy_draws_nothing():
    generator = torch.Generator().manual_seed(0)
    state = generator.get_state()
    logits = torch.randn(4, 9)
    assert torch.equal(choose(logits, temperature=0, generator=generator), logits.argmax(-1))
    assert torch.equal(generator.get_state(), state)


@pytest.mark.parametrize("temperature", [0, 1.0])
@pytest.mark.parametrize("bad", [[0, NAN], [INF, 0], [-INF, -INF], [NAN, NAN]])
def test_logits_that_are_no_numbers(bad, temperature):
    logits = torch.tensor([[0.0, 1.0], bad])
    for function in (next_token_probabilities, choose):
        with pytest.raises(ValueError, match="NaN or infinite"):
            function(logits, temperature=temperature)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"temperature": -0.1}, "temperature .* -0.1"),
        ({"temperature": INF}, "temperature .* inf"),
        ({"temperature": NAN}, "temperature .* nan"),
        ({"top_k": 0}, "top_k .* 0"),
        ({"top_p": 0.0}, "top_p .* 0.0"),
        ({"top_p": 1.01}, "top_p .* 1.01"),
        ({"top_p": NAN}, "top_p .* nan"),
        ({"min_p": -0.1}, "min_p .* -0.1"),
        ({"min_p": 1.5}, "min_p .* 1.5"),
    ],
)
def test_choices_that_are_refused(choices, words):
    with pytest.raises(ValueError, match=words):
        next_token_probabilities(torch.zeros(3), **choices)
