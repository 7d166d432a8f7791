"""n-grams against brute-force counting, and as probability distributions."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tformer_book.kit.models.ngram import NGram, discounts

VOCAB = 4
TEXT = torch.randint(VOCAB, (300,), generator=torch.Generator().manual_seed(0)) % torch.tensor(
    [4, 3, 2] * 100
)
HELD_OUT = torch.randint(VOCAB, (40,), generator=torch.Generator().manual_seed(1))


def grams(text, k):
    return [tuple(text[i : i + k]) for i in range(len(text) - k + 1)]


def brute_force(text, order, context, word):
    """Interpolated Kneser-Ney by its definition, one probability at a time."""
    if order == 0:
        return 1 / VOCAB

    def p(k, history, highest):
        if k == 0:
            return 1 / VOCAB
        count = Counter(grams(text, k) if highest else (g[1:] for g in set(grams(text, k + 1))))
        n = [sum(c == j for c in count.values()) for j in range(5)]
        if 0 in n[1:]:
            d = [0.0, 0.5, 0.5, 0.5]
        else:
            y = n[1] / (n[1] + 2 * n[2])
            raw = [c - (c + 1) * y * n[c + 1] / n[c] for c in (1, 2, 3)]
            d = [0.0, *(min(max(x, 0.0), c) for x, c in zip(raw, (1, 2, 3), strict=True))]
        lower = p(k - 1, history[1:], False)
        total = sum(count[(*history, w)] for w in range(VOCAB))
        if total == 0:
            return lower
        taken = sum(d[min(count[(*history, w)], 3)] for w in range(VOCAB))
        own = count[(*history, word)]
        return (own - d[min(own, 3)] + taken * lower) / total

    k = min(order, len(context) + 1)
    return p(k, tuple(context[len(context) - k + 1 :]), k == order)


@pytest.mark.parametrize("order", range(6))
@pytest.mark.parametrize("n", [30, 300])
def test_every_probability_is_brute_forces(order, n):
    text = TEXT[:n]
    model = NGram(order, VOCAB).fit(text)
    expected = [
        math.log(brute_force(text.tolist(), order, HELD_OUT[:i].tolist(), int(HELD_OUT[i])))
        for i in range(len(HELD_OUT))
    ]
    torch.testing.assert_close(model.log_probabilities(HELD_OUT).tolist(), expected, rtol=0, atol=1e-12)
    assert model.nll(HELD_OUT) == pytest.approx(-sum(expected) / len(expected), abs=1e-12)


@given(
    text=st.lists(st.integers(0, VOCAB - 1), min_size=6, max_size=60),
    context=st.lists(st.integers(0, VOCAB - 1), max_size=7),
    order=st.integers(0, 6),
)
def test_probabilities_sum_to_one_and_are_those_of_a_text(text, context, order):
    model = NGram(order, VOCAB).fit(torch.tensor(text))
    p = model.probabilities(torch.tensor(context, dtype=torch.int64))
    assert p.shape == (VOCAB,)
    assert (p > 0).all()
    assert p.sum().item() == pytest.approx(1, abs=1e-12)
    for word in range(VOCAB):
        log_p = model.log_probabilities(torch.tensor([*context, word]))[-1]
        assert log_p.item() == pytest.approx(p[word].log().item(), abs=1e-12)


@given(
    text=st.lists(st.integers(0, VOCAB - 1), min_size=4, max_size=60),
    context=st.lists(st.integers(0, VOCAB - 1), max_size=4),
    order=st.integers(1, 4),
)
def test_without_smoothing_it_is_the_counts_ratio(text, context, order):
    model = NGram(order, VOCAB, "none").fit(torch.tensor(text))
    k = min(order, len(context) + 1)
    history = tuple(context[len(context) - k + 1 :])
    count = Counter(grams(text, k))
    total = sum(count[(*history, w)] for w in range(VOCAB))
    if total == 0:
        with pytest.raises(ValueError, match="nothing follows"):
            model.probabilities(context)
        assert model.log_probabilities(torch.tensor([*context, 0]))[-1] == -math.inf
        return
    p = model.probabilities(context)
    for word in range(VOCAB):
        assert p[word].item() == pytest.approx(count[(*history, word)] / total, abs=1e-12)
        log_p = model.log_probabilities(torch.tensor([*context, word]))[-1]
        assert log_p.exp().item() == pytest.approx(p[word].item(), abs=1e-12)


def test_an_unseen_gram_costs_infinitely_much_without_smoothing_alone():
    train, held_out = torch.tensor([0, 1, 0, 1, 0]), torch.tensor([0, 1, 1])
    assert NGram(2, 3, "none").fit(train).nll(train) < math.inf
    assert NGram(2, 3, "none").fit(train).nll(held_out) == math.inf
    assert NGram(2, 3).fit(train).nll(held_out) < math.inf


def test_order_zero_is_uniform_and_needs_no_text():
    assert NGram(0, 80).nll(TEXT) == pytest.approx(math.log(80))
    torch.testing.assert_close(NGram(0, 8).probabilities(), torch.full((8,), 1 / 8).double())


def test_the_unsmoothed_model_is_the_best_of_its_order_on_its_own_text():
    for order in (1, 2, 3):
        none, smoothed = NGram(order, VOCAB, "none").fit(TEXT), NGram(order, VOCAB).fit(TEXT)
        assert none.nll(TEXT) <= smoothed.nll(TEXT)


def test_many_tokens_do_not_overflow():
    vocab = 50_000
    text = torch.randint(vocab, (500,), generator=torch.Generator().manual_seed(0))
    model = NGram(8, vocab).fit(text)
    assert model.nll(text) < 2 < model.nll(text.flip(0))


def test_samples_follow_the_model_and_their_seed():
    model = NGram(3, VOCAB).fit(torch.tensor([0, 1, 2, 3] * 50))
    drawn = model.sample(40, context=[0, 1], seed=3)
    assert drawn.shape == (40,)
    assert torch.equal(drawn, model.sample(40, context=torch.tensor([0, 1]), seed=3))
    text = torch.cat((torch.tensor([0, 1]), drawn))
    follows = (text[1:] == (text[:-1] + 1) % 4).double().mean()
    assert follows > 0.85
    counts = NGram(1, VOCAB).fit(TEXT).sample(4000).bincount(minlength=VOCAB) / 4000
    torch.testing.assert_close(counts, TEXT.bincount() / 300, rtol=0, atol=0.03)


def test_discounts_are_chen_and_goodmans():
    import numpy as np

    count = np.array([1] * 8 + [2] * 4 + [3] * 2 + [4] * 1 + [9])
    y = 8 / (8 + 8)
    expected = [0, 1 - 2 * y * 4 / 8, 2 - 3 * y * 2 / 4, 3 - 4 * y * 1 / 2]
    np.testing.assert_allclose(discounts(count), expected, rtol=0, atol=1e-12)


def test_errors():
    with pytest.raises(ValueError, match="order is at least 0"):
        NGram(-1, 3)
    with pytest.raises(ValueError, match="kneser-ney, none, got 'laplace'"):
        NGram(2, 3, "laplace")
    with pytest.raises(ValueError, match="hold no gram of 3"):
        NGram(3, 3).fit(torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"0\.\.2, got 0\.\.3"):
        NGram(1, 3).fit(torch.tensor([0, 3]))
    with pytest.raises(ValueError, match=r"0\.\.2, got -1\.\.-1"):
        NGram(1, 3).fit(torch.tensor([1])).probabilities([-1])
    with pytest.raises(RuntimeError, match="fit the n-gram model"):
        NGram(2, 3).nll(torch.tensor([0]))
