"""Blocks and stacks against PyTorch's encoder and decoder layers, norms against PyTorch's functions."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tformer_lib import Transformer, TransformerConfig, causal_mask, padding_mask
from tformer_lib.core.attention import Attend, FusedAttend
from tformer_lib.core.transformer import MLP, Block, make_norm

B, N, S, D, H, HIDDEN, M = 2, 5, 7, 12, 3, 20, 3
EPS = 1e-3  # large, so that a forgotten one would show

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor", "ignore:The PyTorch API of nested")


def both_configs(placement, activation, bias, *, cross_attention=False, n_blocks=1):
    ours = TransformerConfig(
        d_model=D,
        n_heads=H,
        n_blocks=n_blocks,
        d_hidden=HIDDEN,
        norm_placement=placement,
        norm_eps=EPS,
        activation=activation,
        bias=bias,
        cross_attention=cross_attention,
    )
    theirs = {
        "d_model": D,
        "nhead": H,
        "dim_feedforward": HIDDEN,
        "dropout": 0.0,
        "activation": activation,
        "layer_norm_eps": EPS,
        "batch_first": True,
        "norm_first": placement == "pre",
        "bias": bias,
    }
    return ours, theirs


every_kind = [
    pytest.mark.parametrize("placement", ["pre", "post"]),
    pytest.mark.parametrize("activation", ["gelu", "relu"]),
    pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"]),
    pytest.mark.parametrize("backend", [Attend, FusedAttend]),
]


def all_kinds(test):
    for mark in every_kind:
        test = mark(test)
    return test


@all_kinds
@pytest.mark.parametrize("masked", [False, True], ids=["free", "causal and padding"])
def test_encoder_layer(placement, activation, bias, backend, masked, copied, agree):
    config, kwargs = both_configs(placement, activation, bias)
    ours, theirs = copied(Block(config, make_backend=backend), nn.TransformerEncoderLayer(**kwargs))
    x = torch.randn(B, N, D)
    if not masked:
        agree(ours(x), theirs(x))
        return
    tokens = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    mask = causal_mask(N) & padding_mask(tokens, 0)
    agree(ours(x, mask=mask), theirs(x, src_mask=~causal_mask(N), src_key_padding_mask=tokens == 0))


@all_kinds
def test_decoder_layer(placement, activation, bias, backend, copied, agree):
    config, kwargs = both_configs(placement, activation, bias, cross_attention=True)
    ours, theirs = copied(Block(config, make_backend=backend), nn.TransformerDecoderLayer(**kwargs))
    x, context = torch.randn(B, N, D), torch.randn(B, S, D)
    tokens = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0, 0]])
    agree(
        ours(x, context, causal_mask(N), padding_mask(tokens, 0)),
        theirs(x, context, tgt_mask=~causal_mask(N), memory_key_padding_mask=tokens == 0),
    )


def stack_norm(placement):
    return nn.LayerNorm(D, eps=EPS) if placement == "pre" else None


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_encoder_stack(placement, activation, copied, agree):
    config, kwargs = both_configs(placement, activation, True, n_blocks=M)
    layer = nn.TransformerEncoderLayer(**kwargs)
    ours, theirs = copied(
        Transformer(config),
        nn.TransformerEncoder(layer, M, norm=stack_norm(placement), enable_nested_tensor=False),
    )
    x = torch.randn(B, N, D)
    agree(ours(x), theirs(x))


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_decoder_stack(placement, activation, copied, agree):
    config, kwargs = both_configs(placement, activation, True, cross_attention=True, n_blocks=M)
    ours, theirs = copied(
        Transformer(config),
        nn.TransformerDecoder(nn.TransformerDecoderLayer(**kwargs), M, norm=stack_norm(placement)),
    )
    x, context = torch.randn(B, N, D), torch.randn(B, S, D)
    agree(ours(x, context, causal_mask(N)), theirs(x, context, tgt_mask=~causal_mask(N)))


@pytest.mark.parametrize("bias", [True, False])
def test_layer_norm_is_per_token(bias, agree):
    norm = make_norm(TransformerConfig(d_model=D, n_heads=H, n_blocks=M, norm_eps=EPS, bias=bias))
    nn.init.normal_(norm.weight)
    x = torch.randn(B, N, D)
    centred = x - x.mean(-1, keepdim=True)
    by_hand = centred / (centred.square().mean(-1, keepdim=True) + EPS).sqrt() * norm.weight
    agree(norm(x), by_hand)
    agree(norm(x), F.layer_norm(x, (D,), norm.weight, norm.bias, EPS))
    assert (norm.bias is not None) == bias


def test_rms_norm(agree):
    norm = make_norm(TransformerConfig(d_model=D, n_heads=H, n_blocks=M, norm="rms", norm_eps=EPS))
    nn.init.normal_(norm.weight)
    x = torch.randn(B, N, D)
    agree(norm(x), x / (x.square().mean(-1, keepdim=True) + EPS).sqrt() * norm.weight)
    agree(norm(x), F.rms_norm(x, (D,), norm.weight, EPS))


def test_swiglu_by_hand(agree):
    mlp = MLP(D, HIDDEN, activation="swiglu")
    x = torch.randn(B, N, D)
    gate = x @ mlp.W_gate.weight.T + mlp.W_gate.bias
    hidden = gate / (1 + torch.exp(-gate)) * (x @ mlp.W_in.weight.T + mlp.W_in.bias)
    agree(mlp(x), hidden @ mlp.W_out.weight.T + mlp.W_out.bias)


def test_the_mlp_is_four_times_as_wide_unless_told():
    assert MLP(D).W_in.out_features == 4 * D
    assert MLP(D, 5).W_in.out_features == 5
    assert MLP(D).W_gate is None


@pytest.mark.parametrize("cross", [False, True])
def test_published_equations_of_both_orders(cross, agree):
    for placement in ("pre", "post"):
        config = TransformerConfig(
            d_model=D, n_heads=H, n_blocks=1, norm_placement=placement, cross_attention=cross
        )
        block = Block(config).eval()
        x, context = torch.randn(B, N, D), torch.randn(B, S, D)
        steps = [(block.self_attention_norm, block.self_attention)]
        if cross:
            steps.append((block.cross_attention_norm, lambda y, f=block.cross_attention, c=context: f(y, c)))
        steps.append((block.mlp_norm, block.mlp))
        y = x
        for norm, f in steps:
            y = y + f(norm(y)) if placement == "pre" else norm(y + f(y))
        agree(block(x, context if cross else None), y)
