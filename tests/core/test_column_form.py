"""The text's column form, written out token by token, against the code's rows."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tformer_lib import MultiHeadAttention, attention, record_attention


def scalar_softmax(scores):
    exponentials = [math.exp(s) for s in scores]
    return [e / sum(exponentials) for e in exponentials]


def head_by_loop(Q, K, V, mask=None):
    """One head. Q, K, V are Dh x N with a token a column; column n of A holds the weights of query n."""
    d_head, n_queries, n_keys = Q.shape[0], Q.shape[1], K.shape[1]
    A = torch.zeros(n_keys, n_queries)
    Y = torch.zeros(V.shape[0], n_queries)
    for n in range(n_queries):
        seen = [m for m in range(n_keys) if mask is None or mask[n, m]]
        scores = [sum(K[i, m] * Q[i, n] for i in range(d_head)).item() / math.sqrt(d_head) for m in seen]
        for m, a in zip(seen, scalar_softmax(scores), strict=True):
            A[m, n] = a
            Y[:, n] += a * V[:, m]
    return Y, A


def head_by_matrices(Q, K, V, mask=None):
    scores = K.T @ Q / math.sqrt(Q.shape[0])
    if mask is not None:
        scores = scores.masked_fill(~mask.T, -math.inf)
    A = scores.softmax(dim=0)
    return V @ A, A


def multi_head(X, C, layer, head, mask=None):
    """Omega_o concat(heads) + beta_o with Q_h = beta_q,h 1^T + Omega_q,h X, and so on."""
    Omega = {name: getattr(layer, f"W_{name}").weight for name in "qkvo"}
    beta = {name: getattr(layer, f"W_{name}").bias[:, None] for name in "qkvo"}
    outputs, maps = [], []
    for h in range(layer.n_heads):
        rows = slice(h * layer.d_head, (h + 1) * layer.d_head)
        Q = beta["q"][rows] + Omega["q"][rows] @ X
        K = beta["k"][rows] + Omega["k"][rows] @ C
        V = beta["v"][rows] + Omega["v"][rows] @ C
        Y, A = head(Q, K, V, mask)
        outputs.append(Y)
        maps.append(A)
    return beta["o"] + Omega["o"] @ torch.cat(outputs, dim=0), torch.stack(maps)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 999),
    n=st.integers(1, 4),
    s=st.integers(1, 4),
    n_heads=st.integers(1, 3),
    cross=st.booleans(),
    masked=st.booleans(),
)
@pytest.mark.parametrize("head", [head_by_loop, head_by_matrices])
def test_columns_equal_rows(head, seed, n, s, n_heads, cross, masked):
    torch.manual_seed(seed)
    layer = MultiHeadAttention(2 * n_heads, n_heads)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    x = torch.randn(2, n, 2 * n_heads)
    context = torch.randn(2, s, 2 * n_heads) if cross else x
    mask = None
    if masked:
        mask = torch.rand(n, context.shape[1]) < 0.6
        mask[:, 0] = True
    with torch.no_grad(), record_attention(layer) as weights:
        y = layer(x, context if cross else None, mask)
        for b in range(2):
            Y, A = multi_head(x[b].T, context[b].T, layer, head, mask)
            torch.testing.assert_close(y[b], Y.T, rtol=0, atol=1e-10)
            torch.testing.assert_close(weights["attention"][b], A.mT, rtol=0, atol=1e-10)
            torch.testing.assert_close(A.sum(1), torch.ones(n_heads, n), rtol=0, atol=1e-12)


def test_attention_is_one_head(agree):
    q, k, v = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 2)
    Y, A = head_by_loop(q.T, k.T, v.T)
    out, weights = attention(q, k, v)
    agree(out, Y.T)
    agree(weights, A.T)


def test_split_heads_keeps_tokens_apart():
    """Head h of token n is features h*Dh to (h+1)*Dh of token n; a bare view would mix tokens."""
    layer = MultiHeadAttention(6, 3)
    x = torch.arange(2 * 4 * 6.0).view(2, 4, 6)
    heads = layer.split_heads(x)
    assert heads.shape == (2, 3, 4, 2)
    for h in range(3):
        assert torch.equal(heads[:, h], x[:, :, 2 * h : 2 * h + 2])
    assert not torch.equal(heads, x.view(2, 3, 4, 2))
    assert torch.equal(layer.merge_heads(heads), x)
