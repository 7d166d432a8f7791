"""Addition modulo p: its table, which pairs are shown, and a network that learns them."""

import pytest
import torch

from tformer_book.inside.models.modular_addition import (
    addition_table,
    answer_logits,
    gradient_symmetry,
    modular_adder,
    shown_pairs,
    shuffled_answers,
    train_adder,
    unseen_pairs,
)


def test_the_table():
    tokens, answers = addition_table(5)
    assert tokens[3, 4].tolist() == [3, 4, 5]
    assert answers[3, 4] == 2
    assert torch.equal(answers, answers.T)


def test_a_share_of_the_pairs_is_shown_and_the_mirror_of_a_shown_pair_is_not_unseen():
    shown = shown_pairs(31, 0.4, seed=3)
    assert shown.sum() == round(0.4 * 31 * 31)
    assert not torch.equal(shown, shown_pairs(31, 0.4, seed=4))
    unseen = unseen_pairs(shown)
    assert torch.equal(unseen, unseen.T)
    assert all(unseen[a, b] == (not (shown[a, b] or shown[b, a])) for a in range(31) for b in range(31))
    assert shown_pairs(5, 1.0).all()
    with pytest.raises(ValueError, match="share"):
        shown_pairs(5, 0.0)


def test_shuffled_answers_have_no_rule_but_the_mirror():
    _, answers = addition_table(31)
    other = shuffled_answers(answers, seed=1)
    assert torch.equal(other, other.T)
    above = torch.triu_indices(31, 31)
    a, b = answers[above[0], above[1]], other[above[0], above[1]]
    assert torch.equal(a.sort().values, b.sort().values)
    assert (a == b).float().mean() < 0.1


def test_a_network_learns_the_pairs_it_is_shown():
    torch.manual_seed(0)
    tokens, answers = addition_table(5)
    model = modular_adder(5, d_model=16, n_heads=2, d_hidden=32)
    assert not any("norm" in name or "bias" in name for name, _ in model.named_parameters())
    steps = []
    train_adder(model, tokens.flatten(0, 1), answers.flatten(), steps=60, lr=1e-2, weight_decay=0.0,
                every=25, watch=steps.append)  # fmt: skip
    assert steps == [0, 25, 50, 60]
    logits = answer_logits(model, tokens)
    assert logits.shape == (5, 5, 5)
    assert torch.equal(logits.argmax(dim=2), answers)


def test_gradients_are_symmetric_where_attention_is_even():
    torch.manual_seed(0)
    model = modular_adder(7, d_model=16, n_heads=2, d_hidden=32)
    triples = torch.randint(7, (20, 3))
    torch.nn.init.normal_(model.embed.weight)
    assert gradient_symmetry(model, triples) < 0.9
    attention = model.transformer.blocks[0].self_attention
    torch.nn.init.zeros_(attention.W_q.weight)  # every place is looked at alike
    assert gradient_symmetry(model, triples) == pytest.approx(1, abs=1e-5)
    assert not model.embed._forward_hooks
