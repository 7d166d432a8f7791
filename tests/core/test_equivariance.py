"""What attention does not know: the order of tokens, and what all scores of a query have in common."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tformer_lib import MultiHeadAttention, Transformer, TransformerConfig, attention
from tformer_lib.core.attention import Attend, FusedAttend
from tformer_lib.core.positions import Rotary, SinusoidalPositions

properties = settings(derandomize=True, deadline=None, max_examples=25)


def layers():
    for backend in (Attend, FusedAttend):
        yield f"layer, {backend.__name__}", lambda b=backend: MultiHeadAttention(8, 2, backend=b())
        for placement in ("pre", "post"):
            config = TransformerConfig(d_model=8, n_heads=2, n_blocks=2, norm_placement=placement)
            yield (
                f"encoder, {placement}, {backend.__name__}",
                lambda c=config, b=backend: Transformer(c, make_backend=b),
            )


@pytest.mark.parametrize("build", [pytest.param(build, id=name) for name, build in layers()])
@properties
@given(seed=st.integers(0, 999), data=st.data())
def test_permuted_tokens_give_permuted_outputs(build, seed, data):
    order = data.draw(st.permutations(range(data.draw(st.integers(1, 6)))))
    torch.manual_seed(seed)
    model = build()
    x = torch.randn(2, len(order), 8)
    torch.testing.assert_close(model(x[:, order]), model(x)[:, order], rtol=0, atol=1e-10)


@properties
@given(seed=st.integers(0, 999), order=st.permutations(range(5)))
def test_order_of_the_context_does_not_matter(seed, order):
    torch.manual_seed(seed)
    layer = MultiHeadAttention(8, 2)
    x, context = torch.randn(2, 3, 8), torch.randn(2, 5, 8)
    mask = torch.rand(3, 5) < 0.7
    torch.testing.assert_close(
        layer(x, context[:, order], mask[:, order]), layer(x, context, mask), rtol=0, atol=1e-10
    )


def test_positions_break_the_symmetry():
    x, order = torch.randn(1, 4, 8), [1, 0, 2, 3]
    rotary = MultiHeadAttention(8, 2, rotary=Rotary(4))
    assert not torch.allclose(rotary(x[:, order]), rotary(x)[:, order])
    layer, where = MultiHeadAttention(8, 2), SinusoidalPositions(8)
    assert not torch.allclose(layer(where(x[:, order])), layer(where(x))[:, order])


@properties
@given(seed=st.integers(0, 999), masked=st.booleans())
def test_a_vector_common_to_all_keys_changes_nothing(seed, masked):
    """It adds q_i^T c to all scores of query i, and the softmax does not see a constant."""
    torch.manual_seed(seed)
    q, k, v, c = torch.randn(4, 6), torch.randn(5, 6), torch.randn(5, 3), 3 * torch.randn(6)
    mask = torch.rand(4, 5) < 0.5 if masked else None
    for plain, moved in zip(attention(q, k, v, mask), attention(q, k + c, v, mask), strict=True):
        torch.testing.assert_close(plain, moved, rtol=0, atol=1e-10)


@properties
@given(seed=st.integers(0, 999))
def test_the_bias_of_the_keys_changes_nothing(seed):
    torch.manual_seed(seed)
    layer = MultiHeadAttention(8, 2)
    x = torch.randn(2, 5, 8)
    before = layer(x)
    torch.nn.init.normal_(layer.W_k.bias)
    torch.testing.assert_close(layer(x), before, rtol=0, atol=1e-10)


@properties
@given(seed=st.integers(0, 999))
def test_outputs_lie_between_the_values(seed):
    torch.manual_seed(seed)
    q, k, v = torch.randn(4, 6), torch.randn(5, 6), torch.randn(5, 3)
    out, _ = attention(q, k, v)
    assert (out <= v.amax(0) + 1e-12).all()
    assert (out >= v.amin(0) - 1e-12).all()
    same = torch.ones(5, 1) * torch.randn(3)
    torch.testing.assert_close(attention(q, k, same)[0], same[:4], rtol=0, atol=1e-12)
