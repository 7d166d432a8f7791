"""Precision, devices, empty sequences, dropout and what a saved model consists of."""

import pytest
import torch

from tformer_lib import MultiHeadAttention, Transformer, TransformerConfig, attention, causal_mask
from tformer_lib.core.attention import Attend, FusedAttend, masked_softmax
from tformer_lib.core.positions import ALiBi, LearnedPositions, Rotary

backends = pytest.mark.parametrize("backend", [Attend, FusedAttend])
HALVES = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32])
def test_forbidden_weights_are_zero_in_every_precision(dtype):
    scores = [[-60000.0, 0.0, 60000.0], [-60000.0, -60000.0, 0.0], [5.0, 5.0, 5.0]]
    scores = torch.tensor(scores).to(dtype)
    mask = torch.tensor([[True, True, False], [True, True, False], [False, False, False]])
    weights = masked_softmax(scores, mask)
    assert weights.dtype == dtype
    assert weights.tolist() == [[0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]


def test_large_scores_do_not_overflow():
    q = torch.tensor([[1e4]])
    k, v = torch.tensor([[1e4], [-1e4]]), torch.tensor([[1.0], [2.0]])
    out, weights = attention(q, k, v)
    assert out.item() == 1.0
    assert weights.tolist() == [[1.0, 0.0]]


@backends
@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_follows_double(backend, dtype):
    q, k, v = (torch.randn(2, 4, 6, 8) for _ in range(3))
    exact = Attend()(q, k, v, causal_mask(6))
    rounded = backend()(q.to(dtype), k.to(dtype), v.to(dtype), causal_mask(6))
    assert rounded.dtype == dtype
    tolerance = 20 * torch.finfo(dtype).eps
    torch.testing.assert_close(rounded.double(), exact, rtol=tolerance, atol=tolerance)


@backends
@pytest.mark.parametrize("dtype", HALVES)
def test_a_whole_half_precision_model_trains_a_step(backend, dtype):
    config = TransformerConfig(d_model=8, n_heads=2, n_blocks=2)
    model = Transformer(config, rotary=Rotary(4), make_backend=lambda: backend(score_bias=ALiBi(2))).to(dtype)
    out = model(torch.randn(2, 5, 8, dtype=dtype), mask=causal_mask(5))
    assert out.dtype == dtype
    out.float().square().mean().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


@backends
@pytest.mark.parametrize("bias", [None, ALiBi], ids=["plain", "ALiBi"])
def test_autocast(backend, bias):
    attend = backend(score_bias=None if bias is None else bias(2))
    layer = MultiHeadAttention(8, 2, rotary=Rotary(4), backend=attend).float()
    x = torch.randn(2, 5, 8, dtype=torch.float32)
    mask = causal_mask(5).clone()
    mask[3] = False
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(x, mask=mask)
    out.float().sum().backward()
    torch.testing.assert_close(out.float(), layer(x, mask=mask), rtol=0.05, atol=0.05)
    assert all(p.grad.isfinite().all() for p in layer.parameters())


@backends
def test_empty_sequences(backend):
    layer = MultiHeadAttention(8, 2, rotary=None, backend=backend())
    torch.nn.init.normal_(layer.W_o.bias)
    x, nothing = torch.randn(2, 3, 8), torch.randn(2, 0, 8)
    assert layer(nothing).shape == (2, 0, 8)
    assert layer(nothing, x).shape == (2, 0, 8)
    assert layer(nothing, mask=causal_mask(0)).shape == (2, 0, 8)
    assert layer(torch.randn(0, 3, 8), mask=causal_mask(3)).shape == (0, 3, 8)
    for mask in (None, torch.ones(3, 0, dtype=torch.bool)):  # no key at all: the bias of W_o
        assert torch.equal(layer(x, nothing, mask), layer.W_o.bias.expand(2, 3, 8))
    layer(x, nothing).sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())


def test_an_empty_sequence_through_a_whole_stack():
    model = Transformer(TransformerConfig(d_model=8, n_heads=2, n_blocks=2, n_kv_heads=1), rotary=Rotary(4))
    assert model(torch.randn(2, 0, 8)).shape == (2, 0, 8)


def test_gpt3_is_built_on_the_meta_device_without_memory():
    """96 blocks, 96 heads, width 12288 (Brown et al. 2020, table 2.1): 174 billion parameters in blocks."""
    with torch.device("meta"):
        model = Transformer(TransformerConfig(d_model=12288, n_heads=96, n_blocks=96))
    assert all(p.is_meta for p in model.parameters())
    width = 12288
    per_block = 12 * width**2 + 13 * width  # 4 + 8 matrices, 9 biases, 2 norms of 2
    assert sum(p.numel() for p in model.parameters()) == 96 * per_block + 2 * width
    assert 173.9e9 < 96 * per_block < 174.1e9


def test_positions_on_the_meta_device():
    with torch.device("meta"):
        model = Transformer(
            TransformerConfig(d_model=8, n_heads=2, n_blocks=1),
            rotary=Rotary(4),
            make_backend=lambda: Attend(score_bias=ALiBi(2)),
        )
        x = LearnedPositions(5, 8)(torch.empty(2, 5, 8))
        assert model(x, mask=causal_mask(5)).device.type == "meta"


@backends
def test_dropout_acts_in_training_only(backend):
    q, k, v = (torch.randn(2, 2, 50, 4) for _ in range(3))
    attend = backend(dropout=0.5)
    exact = backend()(q, k, v)
    assert not torch.allclose(attend(q, k, v), exact)
    assert torch.equal(attend.eval()(q, k, v), exact)
    always = backend(dropout=1.0)
    assert torch.equal(always(q, k, v), torch.zeros_like(q))


def test_dropout_reaches_every_part_of_a_block():
    model = Transformer(
        TransformerConfig(d_model=8, n_heads=2, n_blocks=2, dropout=0.25, cross_attention=True)
    )
    assert sorted(
        {n.split(".", 2)[-1] for n, m in model.named_modules() if getattr(m, "p", None) == 0.25}
    ) == [
        "cross_attention.backend.dropout",
        "dropout",
        "mlp.dropout",
        "self_attention.backend.dropout",
    ]
    assert MultiHeadAttention(8, 2, dropout=0.5).backend.dropout.p == 0.5


def test_the_names_of_a_saved_model_are_stable():
    """A checkpoint made with one backend, position module or dropout loads with another."""
    config = TransformerConfig(d_model=8, n_heads=2, n_blocks=1, cross_attention=True)
    expected = {
        f"blocks.0.{part}.{name}.{kind}"
        for part, names in {
            "self_attention": ("W_q", "W_k", "W_v", "W_o"),
            "cross_attention": ("W_q", "W_k", "W_v", "W_o"),
            "mlp": ("W_in", "W_out"),
        }.items()
        for name in names
        for kind in ("weight", "bias")
    }
    norms = ("self_attention_norm", "cross_attention_norm", "mlp_norm")
    expected |= {f"blocks.0.{norm}.{kind}" for norm in norms for kind in ("weight", "bias")}
    expected |= {"final_norm.weight", "final_norm.bias"}
    plain = Transformer(config)
    assert set(plain.state_dict()) == expected
    other = Transformer(config, rotary=Rotary(4), make_backend=lambda: FusedAttend(0.1, ALiBi(2)))
    other.load_state_dict(plain.state_dict())


def test_initial_weights():
    layer = MultiHeadAttention(64, 4, n_kv_heads=2)
    for linear in (layer.W_q, layer.W_k, layer.W_v, layer.W_o):
        bound = (6 / (linear.in_features + linear.out_features)) ** 0.5
        assert bound * 0.95 < linear.weight.abs().max().item() <= bound
        assert torch.equal(linear.bias, torch.zeros_like(linear.bias))


def test_parameter_count_of_a_layer():
    def count(**options):
        return sum(p.numel() for p in MultiHeadAttention(12, 3, **options).parameters())

    assert count() == 4 * 12 * 12 + 4 * 12
    assert count(bias=False) == 4 * 12 * 12
    assert count(n_kv_heads=1) == 2 * (12 * 12 + 12) + 2 * (12 * 4 + 4)
