"""The delta rule: token by token and in chunks, one function; corrected, and with a gate."""

import inspect

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from tformer_lib import MultiHeadAttention, causal_mask
from tformer_lib.efficient.delta import DeltaAttend, delta_rule, delta_rule_steps
from tformer_lib.measures.memory import peak_memory


def inputs(n, d_v=3, gated=True, state=False):
    q, k, v = (torch.randn(2, 2, n, d).requires_grad_() for d in (4, 4, d_v))
    rate, gate = ((0.05 + 0.9 * torch.rand(2, 2, n, 1)).requires_grad_() for _ in range(2))
    start = torch.randn(2, 2, 4, d_v).requires_grad_() if state else None
    return q, k, v, rate, gate if gated else None, start


def same(ours, theirs, leaves):
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-10)
    weights = [torch.randn_like(y) for y in ours]
    grads = [torch.autograd.grad(y, leaves, weights, allow_unused=True) for y in (ours, theirs)]
    for mine, other in zip(*grads, strict=True):
        if mine is None or other is None:  # a leaf that one form multiplies by nothing
            assert all(g is None or g.abs().max() == 0 for g in (mine, other))
        else:
            torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-9)


@given(
    n=st.integers(1, 13),
    chunk=st.integers(1, 15),
    gated=st.booleans(),
    state=st.booleans(),
    correct=st.booleans(),
)
def test_chunks_are_the_recurrence(n, chunk, gated, state, correct):
    given = inputs(n, gated=gated, state=state)
    leaves = [x for x in given if x is not None]
    ours = delta_rule(*given, correct=correct, chunk=chunk)
    same(ours, delta_rule_steps(*given, correct=correct), leaves)


def test_the_recurrence_in_numbers():
    """Two writes under one key: the second replaces the first; without the correction they add up."""
    k = torch.tensor([[0.6, 0.8], [0.6, 0.8]])
    v, ones = torch.tensor([[1.0, 0.0], [5.0, -2.0]]), torch.ones(2, 1)
    y, state = delta_rule_steps(k, k, v, ones)
    torch.testing.assert_close(y, v)
    torch.testing.assert_close(state, k[:1].mT @ v[1:])
    added = delta_rule_steps(k, k, v, ones, correct=False)[0]
    torch.testing.assert_close(added[1], v.sum(dim=0))


def test_a_write_is_a_step_of_gradient_descent():
    """S' is S less rate times the gradient of |v - k S|^2 / 2."""
    state = torch.randn(4, 3).requires_grad_()
    k, v = torch.randn(1, 4), torch.randn(1, 3)
    (slope,) = torch.autograd.grad((v - k @ state).square().sum() / 2, state)
    written = delta_rule_steps(k, k, v, torch.tensor([[0.3]]), state=state)[1]
    torch.testing.assert_close(written, state - 0.3 * slope)


def test_as_many_orthogonal_keys_as_features_are_kept_and_rewritten():
    k = torch.linalg.qr(torch.randn(4, 4))[0].repeat(2, 1)
    v, rate = torch.randn(8, 3), torch.ones(8, 1)
    state = delta_rule(k, k, v, rate, chunk=3)[1]
    torch.testing.assert_close(k[4:] @ state, v[4:])


def test_keys_that_are_not_orthogonal_are_learned_by_repeating_them():
    k = F.normalize(torch.randn(3, 4), dim=-1)
    v = torch.randn(3, 2)
    again = delta_rule(k.repeat(200, 1), k.repeat(200, 1), v.repeat(200, 1), torch.ones(600, 1))[1]
    torch.testing.assert_close(k @ again, v, atol=1e-4, rtol=0)
    once = delta_rule(k, k, v, torch.ones(3, 1))[1]
    assert not torch.allclose(k @ once, v, atol=1e-2)


def test_a_gate_of_nearly_nothing_forgets_without_harm():
    q, k, v, rate, gate, _ = (x if x is None else x.detach() for x in inputs(9))
    gate[..., 4, :] = 1e-30
    y = delta_rule(q, k, v, rate, gate)[0]
    later = delta_rule(*(x[..., 4:, :] for x in (q, k, v, rate, gate)))[0]
    assert y.isfinite().all()
    torch.testing.assert_close(y[..., 4:, :], later)


def test_gradients_against_finite_differences():
    q, k, v, rate, gate, state = inputs(4, state=True)
    assert gradcheck(lambda *x: delta_rule(*x, chunk=3), (q, k, v, rate, gate, state))


@given(n=st.integers(1, 9), gated=st.booleans(), correct=st.booleans())
def test_the_backend_is_the_recurrence_of_unit_keys(n, gated, correct):
    backend = DeltaAttend(4, gated=gated, correct=correct, chunk=3).double()
    q, k, v = inputs(n)[:3]
    gate = backend.gate(k).sigmoid() if gated else None
    unit = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    expected = delta_rule_steps(*unit, v, backend.rate(k).sigmoid(), gate, correct=correct)[0]
    torch.testing.assert_close(backend(q, k, v, causal_mask(n)), expected)


@pytest.mark.parametrize("gated", [False, True])
def test_padding_writes_and_forgets_nothing(gated):
    backend = DeltaAttend(4, gated=gated).double()
    q, k, v = (x.detach() for x in inputs(7)[:3])
    there = torch.tensor([True, True, False, False, True, True, True])
    y = backend(q, k, v, there.expand(2, 1, 1, 7))
    torch.testing.assert_close(y[..., there, :], backend(*(x[..., there, :] for x in (q, k, v))))


def test_in_a_layer_it_looks_back_only():
    layer = MultiHeadAttention(8, 2, backend=DeltaAttend(4, gated=True))
    x = torch.randn(1, 9, 8, dtype=next(layer.parameters()).dtype)
    other = x.clone()
    other[:, 5:] += 1
    torch.testing.assert_close(layer(x)[:, :5], layer(other)[:, :5])
    assert not layer(x)[:, 5:].allclose(layer(other)[:, 5:])


def test_memory_grows_with_the_length():
    backend = DeltaAttend(16, chunk=16).double()

    def step(n):
        q, k, v = (torch.randn(1, 2, n, 16, requires_grad=True) for _ in range(3))
        return lambda: backend(q, k, v).sum().backward()

    step(16)()  # the gradients of the parameters
    small, large = (peak_memory(step(n)) for n in (256, 512))
    assert 1.8 < large / small < 2.2


def test_what_does_not_fit_is_refused():
    q, k, v, rate, _, _ = inputs(5)
    plain = inspect.unwrap(delta_rule)
    with pytest.raises(ValueError, match="5 queries and 4 keys"):
        plain(q, k[..., :4, :], v[..., :4, :], rate[..., :4, :])
    with pytest.raises(ValueError, match="chunk=0"):
        delta_rule(q, k, v, rate, chunk=0)
    for arguments, words in (((0,), "d_head=0"), ((4,), "chunk=0")):
        with pytest.raises(ValueError, match=words):
            DeltaAttend(*arguments, chunk=0 if arguments == (4,) else 8)
    mask = causal_mask(5)
    mask[3, 1] = False
    with pytest.raises(ValueError, match="single pairs"):
        DeltaAttend(4).double()(q, k, v, mask)
