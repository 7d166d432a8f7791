"""Linear attention: over all pairs, in chunks and token by token, one function."""

import inspect

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tformer_lib import causal_mask
from tformer_lib.efficient.linear import LinearAttend, elu_plus_one, linear_attention
from tformer_lib.efficient.low_rank import LowRankAttend


def qkv(n, s=None):
    s = n if s is None else s
    shapes = ((2, 2, n, 4), (2, 2, s, 4), (2, 2, s, 3))
    return tuple(torch.randn(shape).requires_grad_() for shape in shapes)


def padding(s):
    return torch.arange(s) < torch.tensor([s, max(1, s - 2)])[:, None, None, None]


def same(ours, theirs, inputs):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)
    weight = torch.randn_like(ours)
    pairs = zip(*(torch.autograd.grad(y, inputs, weight) for y in (ours, theirs)), strict=True)
    for mine, other in pairs:
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-11)


def test_the_definition_is_a_weighted_mean():
    q, k, v = (x.detach() for x in qkv(5))
    y, weights = linear_attention(q, k, v)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 2, 5))
    expected = torch.zeros_like(y)
    for n in range(5):
        by_hand = torch.stack([elu_plus_one(q[1, 0, n]) @ elu_plus_one(k[1, 0, s]) for s in range(5)])
        expected[1, 0, n] = (by_hand / by_hand.sum()) @ v[1, 0]
    torch.testing.assert_close(y[1, 0], expected[1, 0])


def test_the_feature_map():
    x = torch.tensor([-50.0, -1.0, 0.0, 2.0])
    torch.testing.assert_close(elu_plus_one(x), torch.tensor([0.0, 1 / torch.e, 1.0, 3.0]))
    assert (elu_plus_one(torch.linspace(-30, 30, 50)) > 0).all()


@given(n=st.integers(1, 13), s=st.integers(1, 13), padded=st.booleans())
def test_grouped_products_are_the_definition(n, s, padded):
    q, k, v = qkv(n, s)
    mask = padding(s) if padded else None
    same(LinearAttend()(q, k, v, mask), linear_attention(q, k, v, mask)[0], (q, k, v))


@given(
    n=st.integers(1, 13),
    past=st.integers(0, 6),
    chunk=st.integers(1, 15),
    masked=st.sampled_from(["none", "padding", "causal", "both"]),
)
def test_chunks_are_the_definition_under_a_causal_mask(n, past, chunk, masked):
    q, k, v = qkv(n, past + n)
    causal, padded = causal_mask(n, past=past), padding(past + n)
    given = {"none": None, "padding": padded, "causal": causal, "both": causal & padded}[masked]
    means = causal & padded if masked in ("padding", "both") else causal
    ours = LinearAttend(causal=True, chunk=chunk)(q, k, v, given)
    same(ours, linear_attention(q, k, v, means)[0], (q, k, v))


@given(n=st.integers(1, 9), chunk=st.integers(1, 10))
def test_steps_are_chunks(n, chunk):
    q, k, v = qkv(n)
    backend, state, steps = LinearAttend(causal=True, chunk=chunk), None, []
    for token in range(n):
        y, state = backend.step(*(x[..., token : token + 1, :] for x in (q, k, v)), state)
        assert state.shape == (2, 2, 4, 4)  # Dh by Dv + 1, however many tokens
        steps.append(y)
    same(torch.cat(steps, dim=-2), backend(q, k, v), (q, k, v))


def test_another_feature_map():
    q, k, v = qkv(6)

    def squares(x):
        return x.square()

    expected = linear_attention(q, k, v, causal_mask(6), feature_map=squares)[0]
    torch.testing.assert_close(LinearAttend(squares, causal=True, chunk=2)(q, k, v), expected)
    assert not expected.allclose(linear_attention(q, k, v, causal_mask(6))[0])


def both_signs(x):
    return torch.cat((x, -x), dim=-1).softmax(dim=-1)


def test_steps_with_a_map_that_makes_more_features():
    q, k, v = qkv(5)
    backend, state, steps = LinearAttend(both_signs, causal=True, chunk=2), None, []
    for token in range(5):
        y, state = backend.step(*(x[..., token : token + 1, :] for x in (q, k, v)), state)
        assert state.shape == (2, 2, 8, 4)  # twice Dh by Dv + 1
        steps.append(y)
    same(torch.cat(steps, dim=-2), backend(q, k, v), (q, k, v))


def test_a_step_is_one_token():
    """Also where shapes are not checked at run time: sums over several would not be causal."""
    q, k, v = qkv(3)
    step = inspect.unwrap(LinearAttend.step)
    with pytest.raises(ValueError, match="one token, got 3 queries and 3 keys"):
        step(LinearAttend(causal=True), q, k, v)
    with pytest.raises(ValueError, match="one token, got 1 queries and 3 keys"):
        step(LinearAttend(causal=True), q[..., :1, :], k, v)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("form", ["both ways", "chunks", "steps"])
def test_long_sums_in_half_precision(dtype, form):
    """Sums over thousands of tokens neither overflow nor stop growing."""
    q, k, v = (torch.randn(1, 1, 2000, 16) for _ in range(3))
    v[:, :, 1000:] += 3  # what the second half has to say must arrive
    halves = [x.to(dtype) for x in (q, k, v)]
    backend, state, parts = LinearAttend(causal=form != "both ways"), None, []
    for n in range(2000) if form == "steps" else ():
        y, state = backend.step(*(x[..., n : n + 1, :] for x in halves), state)
        parts.append(y)
    y = torch.cat(parts, dim=-2) if form == "steps" else backend(*halves)
    assert y.dtype == dtype
    tolerance = 20 * torch.finfo(dtype).eps
    torch.testing.assert_close(y.double(), backend(q, k, v).double(), rtol=tolerance, atol=tolerance)


def test_a_query_that_sees_nothing_gets_zero():
    q, k, v = qkv(4)
    nothing = torch.zeros(2, 1, 1, 4, dtype=torch.bool)
    for y in (LinearAttend()(q, k, v, nothing), linear_attention(q, k, v, nothing)[0]):
        assert y.abs().max() == 0
        assert all(g.isfinite().all() for g in torch.autograd.grad(y.sum(), (q, k, v)))


def test_the_state_adds_up():
    """The order of the past is forgotten, and two halves may be summed up apart."""
    _, k, v = qkv(6)
    backend = LinearAttend(causal=True)

    def state_of(places):
        state = None
        for s in places:
            _, state = backend.step(*(x[..., s : s + 1, :] for x in (k, k, v)), state)
        return state

    torch.testing.assert_close(state_of([0, 1, 2, 3, 4, 5]), state_of([3, 0, 5, 1, 4, 2]))
    torch.testing.assert_close(state_of(range(6)), state_of(range(3)) + state_of(range(3, 6)))


@pytest.mark.parametrize("make", [LinearAttend, lambda: LowRankAttend(8, 3)], ids=["linear", "low-rank"])
def test_padding_changes_nothing(make):
    backend = make()
    q, k, v = (x.detach() for x in qkv(5))
    longer = [torch.cat((x, 9 * torch.ones(2, 2, 3, x.shape[-1])), dim=-2) for x in (k, v)]
    mask = (torch.arange(8) < 5).expand(2, 1, 1, 8)
    torch.testing.assert_close(backend(q, *longer, mask), backend(q, k, v))
    assert not backend(q, *longer).allclose(backend(q, k, v))
