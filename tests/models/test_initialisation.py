"""First weights: their spread, what they leave alone, and what the model then says."""

import math

import pytest
import torch
from torch import nn

from tformer_lib.core.positions import LearnedPositions, Rotary
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.gpt import GPT
from tformer_lib.models.initialisation import gpt2_initialisation, quiet_initialisation

CONFIG = TransformerConfig(d_model=64, n_heads=4, n_blocks=8)
VOCAB = 100


def build(**parts):
    torch.manual_seed(0)
    return GPT(CONFIG, VOCAB, positions=LearnedPositions(50, 64), **parts)


def spread(tensor):
    return tensor.square().mean().sqrt().item()


@pytest.mark.parametrize("std", [0.02, 0.1])
def test_the_spreads_of_gpt2(std):
    model = build(tied=False)
    gpt2_initialisation(model, std)
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            scale = 1 / math.sqrt(16) if name.endswith(("W_o", "W_out")) else 1.0
            assert spread(module.weight) == pytest.approx(std * scale, rel=0.05), name
            assert abs(module.weight.mean().item()) < 0.1 * std
        if isinstance(module, nn.Linear) and module.bias is not None:
            assert not module.bias.any(), name
        if isinstance(module, nn.LayerNorm):
            assert (module.weight == 1).all(), name
    assert spread(model.positions.table) == pytest.approx(std, rel=0.05)


def test_gpt2_from_a_trained_state_and_without_positions():
    model = GPT(CONFIG, VOCAB, rotary=Rotary(16))
    for p in model.parameters():
        nn.init.constant_(p, 3.0)
    gpt2_initialisation(model)
    block = model.transformer.blocks[0]
    assert not block.mlp.W_in.bias.any()
    assert spread(block.self_attention.W_q.weight) == pytest.approx(0.02, rel=0.05)


def test_without_biases():
    model = GPT(TransformerConfig(d_model=16, n_heads=2, n_blocks=1, bias=False), VOCAB)
    for initialise in (gpt2_initialisation, quiet_initialisation):
        initialise(model)
        assert not any(name.endswith("bias") for name, _ in model.named_parameters())


@pytest.mark.parametrize("std", [0.0, -1.0, math.nan])
def test_a_spread_is_positive(std):
    with pytest.raises(ValueError, match="std must be positive, got"):
        gpt2_initialisation(build(), std)


def test_it_is_drawn_from_the_global_generator():
    models = []
    for seed in (0, 0, 1):
        model = build()
        torch.manual_seed(seed)
        gpt2_initialisation(model)
        models.append(model.embed.weight)
    assert torch.equal(models[0], models[1])
    assert not torch.equal(models[0], models[2])


def test_a_quiet_block_is_the_identity():
    model = build()
    before = {name: p.clone() for name, p in model.named_parameters()}
    quiet_initialisation(model)
    x = torch.randn(2, 5, 64)
    for block in model.transformer.blocks:
        assert torch.equal(block(x), x)
    for name, p in model.named_parameters():
        if ".W_o." in name or ".W_out." in name:
            assert not p.any(), name
        else:
            assert torch.equal(p, before[name]), name


def test_a_quiet_model_learns():
    model = build()
    quiet_initialisation(model)
    tokens = torch.randint(VOCAB, (2, 6))
    for _ in range(2):
        model.zero_grad()
        model(tokens).square().sum().backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 1e-3 * p.grad
    assert all(p.grad.any() for name, p in model.named_parameters() if name.endswith("W_q.weight"))
