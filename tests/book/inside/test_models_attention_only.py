"""A decoder of attention alone: what it leaves out, and what one layer sees if each token knows the last."""

import pytest
import torch

from tformer_book.inside.models.attention_only import TokenBefore, attention_only
from tformer_lib import TransformerConfig
from tformer_lib.core.positions import Rotary

SIZES = TransformerConfig(d_model=16, n_heads=2, n_blocks=2, norm="rms", bias=False)


def test_it_has_no_mlp_and_adds_attention_to_the_stream():
    torch.manual_seed(0)
    model = attention_only(SIZES, 9, rotary=Rotary(8), tied=False)
    assert not any("mlp" in name for name, _ in model.named_parameters())
    x = torch.randn(2, 5, 16)
    block = model.transformer.blocks[0]
    wanted = x + block.self_attention(block.self_attention_norm(x))
    torch.testing.assert_close(block(x), wanted)


def test_without_norms_it_is_linear_in_what_the_last_block_writes():
    model = attention_only(SIZES, 9, normed=False)
    assert isinstance(model.transformer.final_norm, torch.nn.Identity)


def test_each_token_is_told_the_one_before():
    torch.manual_seed(0)
    module = TokenBefore(3)
    x = torch.randn(2, 4, 3)
    y = module(x)
    torch.testing.assert_close(y[:, 0], x[:, 0])
    for n in range(1, 4):
        torch.testing.assert_close(y[:, n], x[:, n] + x[:, n - 1] @ module.before.weight.T)
    with pytest.raises(ValueError, match="whole sequence"):
        module(x, past=2)
