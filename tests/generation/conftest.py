"""Small language models of many kinds, with weights large enough that every part of them matters."""

import pytest
import torch
from torch import nn

from tformer_lib.core.attention import Attend, FusedAttend
from tformer_lib.core.positions import ALiBi, LearnedPositions, RelativeBias, Rotary, SinusoidalPositions
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.gpt import GPT

VOCAB, D, H, M = 13, 16, 4, 2


def sizes(**choices):
    return TransformerConfig(d_model=D, n_heads=H, n_blocks=M, d_hidden=24, **choices)


def with_bias(backend, bias):
    return lambda: backend(score_bias=bias)


KINDS = {  # name: (choices of the configuration, parts of the model)
    "learned": ({}, lambda: {"positions": LearnedPositions(40, D)}),
    "learned, fused, dropout": (
        {"dropout": 0.3},
        lambda: {"positions": LearnedPositions(40, D), "make_backend": FusedAttend},
    ),
    "sinusoidal, post-norm": (
        {"norm_placement": "post", "activation": "relu"},
        lambda: {"positions": SinusoidalPositions(D)},
    ),
    "rotary, untied": ({"activation": "gelu_tanh"}, lambda: {"rotary": Rotary(D // H), "tied": False}),
    "rotary, rescaled": ({}, lambda: {"rotary": Rotary(D // H, 500.0, rescale=lambda w: w / 4)}),
    "alibi": ({}, lambda: {"make_backend": with_bias(Attend, ALiBi(H))}),
    "alibi, fused": ({"qk_norm": True}, lambda: {"make_backend": with_bias(FusedAttend, ALiBi(H))}),
    "relative": (
        {},
        lambda: {"make_backend": with_bias(Attend, RelativeBias(H, n_buckets=8, max_distance=12))},
    ),
    "none": ({"activation": "squared_relu"}, dict),
    "modern": (
        {"norm": "rms", "activation": "swiglu", "bias": False, "n_kv_heads": 2, "qk_norm": True},
        lambda: {"rotary": Rotary(D // H), "make_backend": FusedAttend},
    ),
    "multi-query": ({"n_kv_heads": 1}, lambda: {"positions": LearnedPositions(40, D)}),
}


def build(name, *, vocab=VOCAB, seed=0):
    torch.manual_seed(seed)
    choices, parts = KINDS[name]
    model = GPT(sizes(**choices), vocab, **parts())
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model.eval()


@pytest.fixture(autouse=True)
def float64():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(autouse=True)
def all_in_one_thread(one_thread):
    """Every test of this folder."""


@pytest.fixture(params=KINDS)
def model(request):
    """Each kind in turn, in evaluation mode."""
    return build(request.param)


@pytest.fixture
def make():
    """`build`, for a test that needs one kind only."""
    return build
