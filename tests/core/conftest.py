"""Fixtures of the core's tests: float64 throughout, and weights copied into PyTorch's own layers."""

import pytest
import torch
from torch import nn


@pytest.fixture(autouse=True)
def float64():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def agree(request):
    """Asserts that two tensors of one shape lie within 1e-10, and records the worst difference."""

    def check(actual, expected):
        assert actual.shape == expected.shape
        assert actual.dtype == expected.dtype == torch.float64
        worst = (actual - expected).abs().max().item()
        request.node.user_properties.append(("worst_difference", worst))
        assert worst <= 1e-10

    return check


def jitter(module):
    """Random values everywhere, so that a bias or a scale left out would show."""
    for p in module.parameters():
        nn.init.normal_(p, std=0.5)
    return module


def copy_linear(ours, theirs):
    theirs.weight.data.copy_(ours.weight)
    if ours.bias is not None:
        theirs.bias.data.copy_(ours.bias)


def copy_attention(ours, theirs):
    """Our four projections into `nn.MultiheadAttention`, which stacks the first three."""
    qkv = (ours.W_q, ours.W_k, ours.W_v)
    theirs.in_proj_weight.data.copy_(torch.cat([w.weight for w in qkv]))
    if theirs.in_proj_bias is not None:
        theirs.in_proj_bias.data.copy_(torch.cat([w.bias for w in qkv]))
    copy_linear(ours.W_o, theirs.out_proj)


def copy_block(ours, theirs):
    """Our block into `nn.TransformerEncoderLayer` or `nn.TransformerDecoderLayer`."""
    copy_attention(ours.self_attention, theirs.self_attn)
    if ours.config.cross_attention:
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        norms = (ours.norm_1, ours.norm_2, ours.norm_3)
    else:
        norms = (ours.norm_1, ours.norm_3)
    for i, norm in enumerate(norms, start=1):
        copy_linear(norm, getattr(theirs, f"norm{i}"))
    copy_linear(ours.mlp.W_in, theirs.linear1)
    copy_linear(ours.mlp.W_out, theirs.linear2)


@pytest.fixture
def copied():
    """(ours, theirs) with random weights, theirs a copy of ours; both in evaluation mode."""

    def make(ours, theirs):
        jitter(ours)
        if isinstance(theirs, nn.MultiheadAttention):
            copy_attention(ours, theirs)
        elif isinstance(theirs, nn.TransformerEncoder | nn.TransformerDecoder):
            for block, layer in zip(ours.blocks, theirs.layers, strict=True):
                copy_block(block, layer)
            if theirs.norm is not None:
                copy_linear(ours.final_norm, theirs.norm)
        else:
            copy_block(ours, theirs)
        return ours.eval(), theirs.eval()

    return make
