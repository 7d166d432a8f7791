"""Mixture of experts: each token against a loop over its experts, the balance, and what is counted."""

import copy

import pytest
import torch
from torch import nn

from tformer_lib import GPT, TransformerConfig
from tformer_lib.core.positions import Rotary
from tformer_lib.core.transformer import Block
from tformer_lib.efficient.mixture import (
    MixtureOfExperts,
    Router,
    active_parameters,
    balance_loss,
    mixtures,
    total_balance,
)


def token_by_token(layer: MixtureOfExperts, x: torch.Tensor) -> torch.Tensor:
    """The sum over each token's best experts, one token and one expert at a time."""
    out = []
    for token in x:
        p = (layer.router.W.weight @ token).softmax(dim=0)
        best = sorted(range(len(p)), key=lambda i: -p[i])[: layer.router.k]
        whole = sum(p[i] for i in best) if layer.router.k > 1 else 1.0
        parts = [p[i] / whole * layer.experts[i](token) for i in best]
        out.append(torch.stack(parts + [mlp(token) for mlp in layer.shared]).sum(dim=0))
    return torch.stack(out)


@pytest.mark.parametrize(
    ("n_experts", "k", "n_shared"), [(4, 1, 0), (4, 2, 0), (5, 3, 2), (3, 3, 0), (1, 1, 0)]
)
@pytest.mark.parametrize("activation", ["gelu", "swiglu"])
def test_a_token_at_a_time(n_experts, k, n_shared, activation, agree):
    layer = MixtureOfExperts(6, 9, n_experts=n_experts, k=k, n_shared=n_shared, activation=activation)
    x = torch.randn(2, 7, 6)
    agree(layer(x), token_by_token(layer, x.flatten(0, 1)).view_as(x))
    agree(layer(x[0, 0]), token_by_token(layer, x[0, :1])[0])


def test_gradients_are_those_of_the_loop(agree):
    layer = MixtureOfExperts(5, 8, n_experts=4, k=2)
    other = copy.deepcopy(layer)
    x = torch.randn(9, 5)
    layer(x).square().sum().backward()
    token_by_token(other, x).square().sum().backward()
    for ours, theirs in zip(layer.parameters(), other.parameters(), strict=True):
        agree(ours.grad, theirs.grad if theirs.grad is not None else torch.zeros_like(theirs))


def test_all_experts_alike_are_one_mlp(agree):
    """The gates of a token sum to one if k > 1; with k = 1 the probability stays."""
    for k in (1, 2, 4):
        layer = MixtureOfExperts(6, n_experts=4, k=k)
        for expert in layer.experts[1:]:
            expert.load_state_dict(layer.experts[0].state_dict())
        x = torch.randn(3, 6)
        gate = 1.0 if k > 1 else layer.router(x)[2].amax(dim=-1, keepdim=True)
        agree(layer(x), gate * layer.experts[0](x))


def test_a_single_gate_still_trains_the_router():
    layer = MixtureOfExperts(6, n_experts=4, k=1)
    layer(torch.randn(8, 6)).sum().backward()
    assert layer.router.W.weight.grad.abs().max() > 0


def test_balance_of_equal_shares_and_of_one_for_all(agree):
    even = torch.full((8, 4), 0.25)
    agree(balance_loss(even, torch.arange(8)[:, None] % 4), torch.tensor(1.0))
    agree(balance_loss(even, torch.zeros(8, 1, dtype=torch.long)), torch.tensor(1.0))  # P is still even
    sure = nn.functional.one_hot(torch.zeros(8, dtype=torch.long), 4).double()
    agree(balance_loss(sure, torch.zeros(8, 1, dtype=torch.long)), torch.tensor(4.0))


def test_balance_by_hand(agree):
    """Three tokens, two experts: f = (2/3, 1/3), P = (0.6, 0.4), 2 (2/3 * 0.6 + 1/3 * 0.4) = 16/15."""
    p = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]])
    agree(balance_loss(p, torch.tensor([[0], [0], [1]])), torch.tensor(16 / 15))


def test_descent_on_the_balance_spreads_the_tokens():
    layer = MixtureOfExperts(6, n_experts=4, k=1)
    with torch.no_grad():
        layer.router.W.weight[0] += 3.0  # the first expert is preferred
    x = torch.rand(64, 6)
    layer(x)
    before = layer.load.max()
    optimizer = torch.optim.Adam([layer.router.W.weight], lr=0.05)
    for _ in range(100):
        layer(x)
        optimizer.zero_grad()
        layer.balance.backward()
        optimizer.step()
    layer(x)
    assert before > 0.9
    assert layer.load.max() < 0.6
    assert layer.load.sum() == pytest.approx(1)


class SparseBlock(Block):
    """A block whose MLP is a mixture."""

    def __init__(self, config: TransformerConfig, **parts):
        super().__init__(config, **parts)
        self.mlp = MixtureOfExperts(config.d_model, config.d_hidden, n_experts=4, k=2)


def test_in_a_model():
    """It stands in a GPT, passes gradients to every router, and the cache changes nothing."""
    config = TransformerConfig(d_model=8, n_heads=2, n_blocks=3, d_hidden=16)
    model = GPT(config, 11, rotary=Rotary(4), block=SparseBlock)
    with pytest.raises(RuntimeError, match="after a call"):
        total_balance(model)
    tokens = torch.randint(11, (2, 6))
    logits = model(tokens)
    (logits.square().mean() + 0.01 * total_balance(model)).backward()
    assert len(mixtures(model)) == 3
    assert all(m.router.W.weight.grad.abs().max() > 0 for m in mixtures(model))
    one = sum(p.numel() for p in model.transformer.blocks[0].mlp.experts[0].parameters())
    assert active_parameters(model) == sum(p.numel() for p in model.parameters()) - 3 * 2 * one
    with torch.no_grad():
        cache = model.new_cache()
        steps = [model(tokens[:, n : n + 1], cache=cache) for n in range(6)]
    torch.testing.assert_close(torch.cat(steps, dim=1), logits.detach())


def test_a_copy_after_a_call_is_the_same_layer(agree):
    layer, x = MixtureOfExperts(6, n_experts=4, k=2), torch.randn(5, 6)
    y = layer(x)
    other = copy.deepcopy(layer)
    assert other.balance is None
    agree(other(x), y)
    agree(other.balance, layer.balance)


def test_a_dense_model_is_all_active():
    config = TransformerConfig(d_model=8, n_heads=2, n_blocks=1)
    model = GPT(config, 11)
    assert active_parameters(model) == sum(p.numel() for p in model.parameters())
    with pytest.raises(ValueError, match="no mixture"):
        total_balance(model)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"k": 5}, ValueError, "k=5 of 4 experts"),
        ({"k": 0}, ValueError, "k must be at least 1"),
        ({"n_experts": 0}, ValueError, "n_experts must be at least 1"),
        ({"n_shared": -1}, ValueError, "n_shared must be at least 0"),
    ],
)
def test_bad_sizes(wrong, error, message):
    with pytest.raises(error, match=message):
        MixtureOfExperts(6, **{"n_experts": 4, "k": 2, **wrong})


def test_bad_tokens():
    layer = MixtureOfExperts(6, n_experts=4, k=2)
    with pytest.raises(ValueError, match=r"tokens of width 6, got shape \(2, 5\)"):
        layer(torch.randn(2, 5))
    assert layer(torch.randn(0, 6)).shape == (0, 6)
    assert layer.balance.item() == 0.0
    with pytest.raises(ValueError, match="balance needs tokens"):
        balance_loss(torch.ones(0, 4), torch.ones(0, 1, dtype=torch.long))
    assert Router(6, 4, 4)(torch.randn(2, 6))[0].shape == (2, 4)
