"""Masks: what they say, how they combine, and that a forbidden key does not exist for a query."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tformer_lib import MultiHeadAttention, Transformer, TransformerConfig, causal_mask, padding_mask
from tformer_lib.core.attention import Attend, FusedAttend, masked_softmax
from tformer_lib.core.positions import Rotary

properties = settings(derandomize=True, deadline=None, max_examples=40)
backends = pytest.mark.parametrize("backend", [Attend, FusedAttend])


def test_causal_mask_entry_by_entry():
    mask = causal_mask(4)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[j <= i for j in range(4)] for i in range(4)]
    assert causal_mask(0).shape == (0, 0)
    assert causal_mask(3, device="meta").device.type == "meta"


def test_causal_mask_after_others():
    for past in (0, 1, 5):
        mask = causal_mask(3, past=past)
        assert mask.tolist() == [[j <= past + i for j in range(past + 3)] for i in range(3)]
        assert torch.equal(mask, causal_mask(past + 3)[past:])
    assert causal_mask(0, past=4).shape == (0, 4)


def test_padding_mask_entry_by_entry():
    tokens = torch.tensor([[5, 9, 0], [0, 7, 0]])
    mask = padding_mask(tokens, 0)
    assert mask.shape == (2, 1, 1, 3)
    assert mask[:, 0, 0].tolist() == [[True, True, False], [False, True, False]]


def test_masks_combine():
    tokens = torch.tensor([[5, 9, 4, 0], [3, 0, 0, 0]])
    both = causal_mask(4) & padding_mask(tokens, 0)
    assert both.shape == (2, 1, 4, 4)
    for b in range(2):
        for i in range(4):
            for j in range(4):
                assert both[b, 0, i, j].item() == (j <= i and tokens[b, j].item() != 0)


@properties
@given(n=st.integers(1, 5), s=st.integers(1, 5), p=st.floats(0, 1), seed=st.integers(0, 99))
def test_rows_sum_to_one_and_forbidden_weights_are_zero(n, s, p, seed):
    generator = torch.Generator().manual_seed(seed)
    scores = 10 * torch.randn(2, n, s, generator=generator)
    mask = torch.rand(n, s, generator=generator) < p
    weights = masked_softmax(scores, mask)
    assert (weights >= 0).all()
    assert (weights[:, ~mask] == 0).all()
    expected = mask.any(-1).double().expand(2, n)
    torch.testing.assert_close(weights.sum(-1), expected, rtol=0, atol=1e-12)


@properties
@given(seed=st.integers(0, 99), row=st.integers(0, 4), constant=st.floats(-50, 50))
def test_softmax_does_not_see_a_constant(seed, row, constant):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(5, 6, generator=generator)
    shifted = scores.clone()
    shifted[row] += constant
    torch.testing.assert_close(masked_softmax(shifted), masked_softmax(scores), rtol=0, atol=1e-12)


@backends
@properties
@given(seed=st.integers(0, 99), length=st.integers(0, 5))
def test_what_stands_in_padding_does_not_matter(backend, seed, length):
    """Neither to the output nor to any gradient, and padding itself gets none through attention."""
    torch.manual_seed(seed)
    layer = MultiHeadAttention(8, 2, backend=backend())
    tokens = (torch.arange(5) < length).long()[None]
    mask = padding_mask(tokens, 0)
    context = torch.randn(1, 5, 8)
    other = torch.where(tokens[..., None] == 0, 100 * torch.randn(1, 5, 8), context)
    queries = torch.randn(1, 3, 8)
    results = []
    for c in (context, other):
        c = c.clone().requires_grad_()
        out = layer(queries, c, mask)
        out.square().sum().backward()
        assert torch.equal(c.grad[tokens == 0], torch.zeros(5 - length, 8))
        results.append(out.detach())
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=1e-12)


def decoders():
    config = TransformerConfig(d_model=8, n_heads=2, n_blocks=2)
    yield "MultiHeadAttention", lambda: MultiHeadAttention(8, 2)
    yield "pre-norm", lambda: Transformer(config)
    yield "fused", lambda: Transformer(config, make_backend=FusedAttend)
    yield "rotary", lambda: Transformer(config, rotary=Rotary(4))
    modern = {"norm": "rms", "activation": "swiglu", "n_kv_heads": 1, "bias": False}
    yield (
        "modern",
        lambda: Transformer(TransformerConfig(d_model=8, n_heads=2, n_blocks=2, **modern), rotary=Rotary(4)),
    )
    yield (
        "post-norm",
        lambda: Transformer(TransformerConfig(d_model=8, n_heads=2, n_blocks=2, norm_placement="post")),
    )


@pytest.mark.parametrize("build", [pytest.param(build, id=name) for name, build in decoders()])
@settings(derandomize=True, deadline=None, max_examples=12)
@given(seed=st.integers(0, 99), n=st.integers(2, 6), data=st.data())
def test_the_future_does_not_leak(build, seed, n, data):
    """Changing token t changes no output before t, and no output before t has a gradient to it."""
    t = data.draw(st.integers(1, n - 1))
    torch.manual_seed(seed)
    model, mask = build(), causal_mask(n)
    x = torch.randn(2, n, 8)
    changed = x.clone()
    changed[:, t] += torch.randn(2, 8)
    torch.testing.assert_close(
        model(x, mask=mask)[:, :t], model(changed, mask=mask)[:, :t], rtol=0, atol=1e-12
    )
    assert not torch.allclose(model(x, mask=mask)[:, t], model(changed, mask=mask)[:, t])
    x.requires_grad_()
    model(x, mask=mask)[:, :t].square().sum().backward()
    assert torch.equal(x.grad[:, t:], torch.zeros(2, n - t, 8))
    assert (x.grad[:, t - 1] != 0).any()


def test_without_the_mask_it_does_leak():
    model = Transformer(TransformerConfig(d_model=8, n_heads=2, n_blocks=1))
    x = torch.randn(1, 4, 8)
    changed = x.clone()
    changed[:, 3] += 1 + torch.randn(8)
    assert not torch.allclose(model(x)[:, :3], model(changed)[:, :3])


@backends
def test_a_causal_prefix_needs_no_rest(backend):
    model = Transformer(TransformerConfig(d_model=8, n_heads=2, n_blocks=2), make_backend=backend)
    x = torch.randn(2, 6, 8)
    whole = model(x, mask=causal_mask(6))
    torch.testing.assert_close(model(x[:, :4], mask=causal_mask(4)), whole[:, :4], rtol=0, atol=1e-10)
