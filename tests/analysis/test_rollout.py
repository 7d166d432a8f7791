"""Attention rollout: paths counted one by one, rows that sum to one, and what it must be in plain cases."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tformer_lib import Transformer, TransformerConfig, record_attention
from tformer_lib.analysis import attention_rollout


def draw(blocks=3, batch=2, heads=2, n=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(batch, heads, n, n, generator=generator, dtype=torch.float64).softmax(-1)
        for _ in range(blocks)
    ]


@pytest.mark.parametrize("residual", [0.0, 0.3, 0.5])
def test_it_is_the_sum_over_all_paths(residual):
    weights = draw()
    expected = torch.zeros(2, 4, 4, dtype=torch.float64)
    for path in itertools.product(range(4), repeat=4):  # from an output back through each block to an input
        share = torch.ones(2, dtype=torch.float64)
        for block, (to, start) in zip(reversed(weights), itertools.pairwise(path), strict=True):
            mixed = (1 - residual) * block[:, :, to, start].mean(dim=1)
            share = share * (mixed + residual * (to == start))
        expected[:, path[0], path[-1]] += share
    torch.testing.assert_close(attention_rollout(weights, residual=residual), expected)


@given(
    blocks=st.integers(1, 5),
    heads=st.integers(1, 3),
    n=st.integers(1, 6),
    residual=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_rows_are_shares(blocks, heads, n, residual, seed):
    found = attention_rollout(draw(blocks, 2, heads, n, seed), residual=residual)
    assert found.shape == (2, n, n)
    assert (found >= 0).all()
    torch.testing.assert_close(found.sum(-1), torch.ones(2, n, dtype=torch.float64))


def test_one_block_without_a_skip_is_the_mean_over_heads():
    (block,) = weights = draw(1)
    torch.testing.assert_close(attention_rollout(weights, residual=0.0), block.mean(dim=1))


def test_tokens_that_attend_to_themselves_keep_all():
    eye = torch.eye(5).expand(2, 3, 5, 5)
    torch.testing.assert_close(attention_rollout([eye, eye]), torch.eye(5).expand(2, 5, 5))


def test_the_last_block_acts_last():
    """Block 1 sends all to token 0, block 2 all to token 1: what token 1 had read is what token 0 was."""
    to_0, to_1 = torch.zeros(2, 1, 1, 3, 3)
    to_0[..., 0], to_1[..., 1] = 1, 1
    found = attention_rollout([to_0, to_1], residual=0.0)
    torch.testing.assert_close(found, to_0[:, 0])


def test_what_is_recorded_can_be_rolled_out_and_is_not_changed():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(d_model=8, n_heads=2, n_blocks=3)).eval()
    with record_attention(model) as weights:
        model(torch.randn(2, 6, 8))
    before = [block.clone() for block in weights.values()]
    assert torch.equal(attention_rollout(weights), attention_rollout(before))
    assert all(torch.equal(a, b) for a, b in zip(before, weights.values(), strict=True))


@pytest.mark.parametrize(
    ("weights", "residual", "said"),
    [
        ([], 0.5, "no weights to roll out"),
        (draw(), 1.5, r"a share, in \[0, 1\], got 1.5"),
        (draw(), -0.1, "a share"),
        ([torch.ones(2, 2, 3, 4)], 0.5, r"must have weights \(B, H, N, N\)"),
        ([torch.ones(2, 3, 3)], 0.5, r"must have weights \(B, H, N, N\)"),
        (draw(n=3) + draw(n=4), 0.5, "of one B and N"),
        (draw(batch=3) + draw(batch=2), 0.5, "of one B and N"),
    ],
)
def test_weights_that_are_not_an_encoders_are_errors(weights, residual, said):
    with pytest.raises(ValueError, match=said):
        attention_rollout(weights, residual=residual)
