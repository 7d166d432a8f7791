"""Blocks that skip differently do what their names say."""

import pytest
import torch
from torch import nn

from tformer_book.skip_norm.models.residual_variants import (
    BranchNormBlock,
    NormedSkipBlock,
    NoSkipBlock,
    SandwichBlock,
    share_of_differences,
)
from tformer_lib.core.transformer import Transformer, TransformerConfig

CONFIG = TransformerConfig(d_model=8, n_heads=2, n_blocks=1)
X = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))


def test_the_normed_skip_adds_back_the_normalised_input():
    block = NormedSkipBlock(CONFIG)
    nn.init.uniform_(block.self_attention_norm.weight)
    y = block.self_attention_norm(X)
    z = block.mlp_norm(y + block.self_attention(y))
    torch.testing.assert_close(block(X), z + block.mlp(z))


def test_the_normed_skip_is_post_norm_begun_one_norm_earlier():
    torch.manual_seed(1)
    config = TransformerConfig(d_model=8, n_heads=2, n_blocks=3)
    normed = Transformer(config, block=NormedSkipBlock)
    post = Transformer(TransformerConfig(d_model=8, n_heads=2, n_blocks=3, norm_placement="post"))
    post.load_state_dict(normed.state_dict(), strict=False)
    torch.testing.assert_close(normed(X), post(normed.blocks[0].self_attention_norm(X)))


def test_without_skips_a_silent_sublayer_leaves_nothing():
    block = NoSkipBlock(CONFIG)
    torch.testing.assert_close(
        block(X), block.mlp(block.mlp_norm(block.self_attention(block.self_attention_norm(X))))
    )
    nn.init.zeros_(block.mlp.W_out.weight)
    assert block(X).abs().max() == 0


def test_the_share_of_differences_is_one_for_centred_tokens_and_zero_for_equal_ones():
    centred = X - X.mean(dim=1, keepdim=True)
    torch.testing.assert_close(share_of_differences(centred), torch.tensor(1.0))
    assert share_of_differences(X[:, :1].expand(-1, 5, -1)) < 1e-6


def test_branch_norm_normalises_what_is_added():
    block = BranchNormBlock(CONFIG)
    nn.init.uniform_(block.self_attention_norm.weight)
    y = X + block.self_attention_norm(block.self_attention(X))
    torch.testing.assert_close(block(X), y + block.mlp_norm(block.mlp(y)))


def test_the_sandwich_has_a_norm_at_both_ends_of_the_branch():
    block = SandwichBlock(CONFIG)
    for norm in (block.self_attention_end, block.mlp_end):
        nn.init.uniform_(norm.weight)
    y = X + block.self_attention_end(block.self_attention(block.self_attention_norm(X)))
    torch.testing.assert_close(block(X), y + block.mlp_end(block.mlp(block.mlp_norm(y))))


def test_the_sandwich_has_no_cross_attention():
    config = TransformerConfig(d_model=8, n_heads=2, n_blocks=1, cross_attention=True)
    with pytest.raises(ValueError, match="no cross-attention"):
        SandwichBlock(config)
