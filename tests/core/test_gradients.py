"""Gradients: against finite differences, between the backends, and of queries that see nothing."""

import pytest
import torch
from torch.autograd import gradcheck

from tformer_lib import MultiHeadAttention, TransformerConfig, attention, causal_mask
from tformer_lib.core.attention import Attend, FusedAttend
from tformer_lib.core.positions import ALiBi, LearnedPositions, Rotary, SinusoidalPositions
from tformer_lib.core.transformer import Block

backends = pytest.mark.parametrize("backend", [Attend, FusedAttend])
MASK = torch.tensor([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]]).bool()  # the second query sees nothing


def leaf(*shape):
    return torch.randn(*shape).requires_grad_()


@pytest.mark.parametrize("mask", [None, MASK], ids=["free", "with an empty row"])
def test_attention(mask):
    assert gradcheck(lambda q, k, v: attention(q, k, v, mask), (leaf(4, 2), leaf(3, 2), leaf(3, 2)))


@backends
@pytest.mark.parametrize("mask", [None, MASK], ids=["free", "with an empty row"])
@pytest.mark.parametrize("bias", [None, ALiBi], ids=["plain", "ALiBi"])
def test_backends(backend, mask, bias):
    attend = backend(score_bias=None if bias is None else bias(2))
    queries, keys, values = leaf(1, 2, 4, 2), leaf(1, 2, 4, 2), leaf(1, 2, 4, 2)
    mask = None if mask is None else torch.cat((mask, torch.zeros(4, 1, dtype=torch.bool)), dim=1)
    assert gradcheck(lambda q, k, v: attend(q, k, v, mask), (queries, keys, values))


class LearnedBias(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(2, 4, 3))

    def forward(self, n, s):
        return self.table[:, :n, :s]


@pytest.mark.parametrize("mask", [None, MASK], ids=["free", "with an empty row"])
def test_a_learned_score_bias_has_the_same_gradient_in_both(mask):
    bias = LearnedBias()
    gradients = []
    q, k, v = torch.randn(2, 2, 4, 2), torch.randn(2, 2, 3, 2), torch.randn(2, 2, 3, 2)
    for backend in (Attend, FusedAttend):
        bias.table.grad = None
        backend(score_bias=bias)(q, k, v, mask).square().sum().backward()
        gradients.append(bias.table.grad)
    assert gradients[0].abs().max() > 0
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-10)


@backends
@pytest.mark.parametrize("rotary", [None, Rotary(2)], ids=["plain", "rotary"])
def test_multi_head_attention(backend, rotary):
    layer = MultiHeadAttention(4, 2, n_kv_heads=1, rotary=rotary, backend=backend())
    assert gradcheck(lambda x: layer(x, mask=causal_mask(3)), (leaf(1, 3, 4),))


@backends
@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("activation", ["gelu", "swiglu"])
def test_block(backend, placement, activation):
    config = TransformerConfig(
        d_model=4,
        n_heads=2,
        n_blocks=1,
        norm_placement=placement,
        activation=activation,
        cross_attention=True,
    )
    block = Block(config, make_backend=backend)
    mask = torch.tensor([[True, False], [False, False], [True, True]])
    assert gradcheck(
        lambda x, context: block(x, context, causal_mask(3), mask), (leaf(1, 3, 4), leaf(1, 2, 4))
    )


def test_positions():
    for module in (SinusoidalPositions(4), LearnedPositions(5, 4)):
        assert gradcheck(module, (leaf(1, 3, 4),))
    assert gradcheck(Rotary(4), (leaf(1, 1, 3, 4),))


@pytest.mark.parametrize("kind", ["self", "cross", "empty row", "nothing at all"])
def test_both_backends_have_the_same_gradients(kind, agree):
    ours = MultiHeadAttention(8, 2)
    fused = MultiHeadAttention(8, 2, backend=FusedAttend())
    fused.load_state_dict(ours.state_dict())
    x, context = torch.randn(2, 4, 8), torch.randn(2, 3, 8)
    mask = {"self": causal_mask(4), "cross": None, "empty row": MASK, "nothing at all": MASK & False}[kind]
    for layer in (ours, fused):
        out = layer(x, None if kind == "self" else context, mask)
        out.sin().sum().backward()
    for (name, a), b in zip(ours.named_parameters(), fused.parameters(), strict=True):
        assert a.grad.isfinite().all(), name
        agree(a.grad, b.grad)


@backends
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("bias", [None, ALiBi], ids=["plain", "ALiBi"])
def test_a_query_that_sees_nothing_gets_zeros(backend, dtype, bias):
    q, k, v = (torch.randn(1, 2, 4, 8, dtype=dtype).requires_grad_() for _ in range(3))
    mask = causal_mask(4).clone()
    mask[2] = False
    out = backend(score_bias=None if bias is None else bias(2))(q, k, v, mask)
    assert torch.equal(out[:, :, 2], torch.zeros(1, 2, 8, dtype=dtype))
    assert (out[:, :, [0, 1, 3]] != 0).any(-1).all()
    out.sum().backward()
    for t in (q, k, v):
        assert t.grad.isfinite().all()
    assert torch.equal(q.grad[:, :, 2], torch.zeros(1, 2, 8, dtype=dtype))


def test_a_query_that_sees_nothing_in_the_plain_function():
    q, k, v = leaf(4, 2), leaf(3, 2), leaf(3, 2)
    out, weights = attention(q, k, v, MASK)
    assert torch.equal(out[1], torch.zeros(2))
    assert torch.equal(weights[1], torch.zeros(3))
    out.sum().backward()
    assert all(t.grad.isfinite().all() for t in (q, k, v))


@backends
def test_a_query_that_sees_nothing_gets_the_output_bias(backend):
    layer = MultiHeadAttention(4, 2, backend=backend())
    torch.nn.init.normal_(layer.W_o.bias)
    out = layer(torch.randn(1, 4, 4), torch.randn(1, 3, 4), MASK)
    assert torch.equal(out[0, 1], layer.W_o.bias)


@backends
def test_a_query_that_sees_nothing_never_computes_nan(backend):
    """Not even on the way: PyTorch's anomaly detection, which a reader may have on, would stop there."""
    q, k, v = leaf(1, 2, 4, 2), leaf(1, 2, 3, 2), leaf(1, 2, 3, 2)
    with torch.autograd.set_detect_anomaly(True):
        backend()(q, k, v, MASK).sum().backward()
