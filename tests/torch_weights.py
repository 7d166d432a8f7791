"""Our weights, copied into PyTorch's own layers."""

import torch
from torch import nn


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
        norms = (ours.self_attention_norm, ours.cross_attention_norm, ours.mlp_norm)
    else:
        norms = (ours.self_attention_norm, ours.mlp_norm)
    for i, norm in enumerate(norms, start=1):
        copy_linear(norm, getattr(theirs, f"norm{i}"))
    copy_linear(ours.mlp.W_in, theirs.linear1)
    copy_linear(ours.mlp.W_out, theirs.linear2)


def copy_stack(ours, theirs):
    """Our stack into `nn.TransformerEncoder` or `nn.TransformerDecoder`."""
    for block, layer in zip(ours.blocks, theirs.layers, strict=True):
        copy_block(block, layer)
    if theirs.norm is not None:
        copy_linear(ours.final_norm, theirs.norm)
