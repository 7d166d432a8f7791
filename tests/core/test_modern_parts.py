"""QK-norm and the activations that came after GELU, against formulas written here."""

import math

import pytest
import torch
from torch import nn

from tformer_lib import MultiHeadAttention, Transformer, TransformerConfig, causal_mask
from tformer_lib.core.attention import Attend, FusedAttend
from tformer_lib.core.positions import Rotary
from tformer_lib.core.transformer import MLP

X = torch.linspace(-4, 4, 81, dtype=torch.float64)


def phi_of(activation):
    """What an MLP of width 1 with weights 1 and biases 0 does to a number."""
    mlp = MLP(1, 1, activation=activation)
    nn.init.ones_(mlp.W_in.weight)
    nn.init.ones_(mlp.W_out.weight)
    return mlp(X[:, None]).detach()[:, 0]


def test_squared_relu(agree):
    agree(phi_of("squared_relu"), torch.tensor([max(0.0, x) ** 2 for x in X.tolist()]))


def test_silu(agree):
    agree(phi_of("silu"), torch.tensor([x / (1 + math.exp(-x)) for x in X.tolist()]))


def test_gelu_and_its_approximation(agree):
    exact = [x * 0.5 * (1 + math.erf(x / math.sqrt(2))) for x in X.tolist()]
    by_tanh = [0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) for x in X.tolist()]
    agree(phi_of("gelu"), torch.tensor(exact))
    agree(phi_of("gelu_tanh"), torch.tensor(by_tanh))
    assert 1e-4 < (phi_of("gelu") - phi_of("gelu_tanh")).abs().max() < 1e-3


def root_mean_square_one(x, gain):
    return gain * x / (x.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt()


@pytest.mark.parametrize("backend", [Attend, FusedAttend])
@pytest.mark.parametrize("n_kv_heads", [None, 2])
def test_qk_norm_head_by_head(backend, n_kv_heads, agree):
    """Normalised per head, before the turn, with one gain for all heads; values stay as they are."""
    layer = MultiHeadAttention(
        16, 4, n_kv_heads=n_kv_heads, qk_norm=True, rotary=Rotary(4), backend=backend()
    )
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    x, mask = torch.randn(2, 6, 16), causal_mask(6)
    q, k, v = layer.W_q(x), layer.W_k(x), layer.W_v(x)
    heads = []
    for h in range(4):
        g = h // (4 // (n_kv_heads or 4))
        q_h = layer.rotary(root_mean_square_one(q[..., 4 * h : 4 * h + 4], layer.norm_q.weight))
        k_h = layer.rotary(root_mean_square_one(k[..., 4 * g : 4 * g + 4], layer.norm_k.weight))
        scores = (q_h @ k_h.mT / 2).masked_fill(~mask, -math.inf)
        heads.append(scores.softmax(dim=-1) @ v[..., 4 * g : 4 * g + 4])
    agree(layer(x, mask=mask), layer.W_o(torch.cat(heads, dim=-1)))


@pytest.mark.parametrize("qk_norm", [True, False])
def test_qk_norm_bounds_the_scores(qk_norm):
    """By sqrt(Dh) with gains of one, however large the projections; without it they grow as the square."""
    layer, largest = MultiHeadAttention(16, 4, qk_norm=qk_norm), []
    layer.backend.softmax.register_forward_hook(lambda _, args, __: largest.append(args[0].abs().max()))
    x = torch.randn(2, 9, 16)
    for factor in (1, 100):
        with torch.no_grad():
            layer.W_q.weight.mul_(factor)
            layer.W_k.weight.mul_(factor)
        layer(x)
    if qk_norm:
        assert largest[1] <= math.sqrt(4) + 1e-9
    else:
        torch.testing.assert_close(largest[1], 10_000 * largest[0])


def test_qk_norm_is_off_unless_asked_for_and_only_in_self_attention():
    names = dict(Transformer(TransformerConfig(d_model=8, n_heads=2, n_blocks=1)).named_parameters())
    assert not [name for name in names if "norm_q" in name]
    config = TransformerConfig(d_model=8, n_heads=2, n_blocks=1, qk_norm=True, cross_attention=True)
    names = dict(Transformer(config).named_parameters())
    assert sorted(name for name in names if "norm_q" in name or "norm_k" in name) == [
        "blocks.0.self_attention.norm_k.weight",
        "blocks.0.self_attention.norm_q.weight",
    ]
    assert names["blocks.0.self_attention.norm_q.weight"].tolist() == [1, 1, 1, 1]
