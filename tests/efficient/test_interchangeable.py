"""Backends agree in range and precision, on empty input, and where nothing may be seen."""

from contextlib import nullcontext

import pytest
import torch

import tformer_book.scale.mup
from tformer_lib.core.attention import Attend, Backend, FusedAttend, attention
from tformer_lib.efficient.delta import DeltaAttend, delta_rule, delta_rule_steps
from tformer_lib.efficient.latent import MultiHeadLatentAttention
from tformer_lib.efficient.linear import LinearAttend, linear_attention
from tformer_lib.efficient.low_rank import LowRankAttend
from tformer_lib.efficient.mixture import MixtureOfExperts
from tformer_lib.efficient.sliding import SlidingWindow
from tformer_lib.efficient.sparse import BlockSparse
from tformer_lib.efficient.tiled import TiledAttend

N, D = 12, 64
BACKENDS = {
    "Attend": Attend,
    "FusedAttend": FusedAttend,
    "WidthAttend": lambda: tformer_book.scale.mup.WidthAttend(D),
    "TiledAttend": lambda: TiledAttend(5),
    "TiledAttend, causal": lambda: TiledAttend(5, causal=True),
    "TiledAttend, window": lambda: TiledAttend(5, causal=True, window=4),
    "SlidingWindow": lambda: SlidingWindow(4),
    "SlidingWindow, causal": lambda: SlidingWindow(4, causal=True),
    "BlockSparse": lambda: BlockSparse(4, n_global=1),
    "LinearAttend": LinearAttend,
    "LinearAttend, causal": lambda: LinearAttend(causal=True, chunk=5),
    "DeltaAttend": lambda: DeltaAttend(D, chunk=5),
    "DeltaAttend, gated": lambda: DeltaAttend(D, gated=True, chunk=5),
    "DeltaAttend, no correction": lambda: DeltaAttend(D, gated=True, correct=False, chunk=5),
    "LowRankAttend": lambda: LowRankAttend(N, 3),
}
ONE_SEQUENCE = ("causal", "window", "Sliding", "Sparse", "Delta")  # no keys without queries
PRECISIONS = {
    "float32": (torch.float32, False),
    "float16": (torch.float16, False),
    "bfloat16": (torch.bfloat16, False),
    "autocast": (torch.float32, True),
    "autocast of bfloat16": (torch.bfloat16, True),
}
backends = pytest.mark.parametrize("name", BACKENDS)
precisions = pytest.mark.parametrize("precision", PRECISIONS)


def make(name, dtype):
    torch.manual_seed(0)
    return BACKENDS[name]().to(dtype)


def case(kind, dtype, rounded):
    """q, k, v in a type, of numbers that bfloat16 holds where that is what products are formed of."""
    g = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(2, 2, N, D, generator=g, dtype=torch.float32) for _ in range(3))
    if kind == "large":
        q, k = torch.full_like(q, 40.0), torch.full_like(k, 40.0)
    mask = None
    if kind == "masked":
        mask = torch.ones(2, 1, 1, N, dtype=torch.bool)
        mask[0], mask[1, ..., -3:] = False, False
    return [x.to(torch.bfloat16).to(dtype) if rounded else x.to(dtype) for x in (q, k, v)], mask


def computed(backend, inputs, mask, autocast):
    """The output and the gradients of its squares."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    with torch.autocast("cpu", torch.bfloat16) if autocast else nullcontext():
        y = backend(*leaves, mask)
    y.double().square().sum().backward()
    return [y.detach(), *(x.grad for x in leaves)]


def all_backends(kind=Backend):
    for one in kind.__subclasses__():
        if one.__module__.startswith("tformer_lib."):
            yield one.__name__
        yield from all_backends(one)


def test_every_backend_of_the_library_is_looked_at():
    looked_at = {name.split(",")[0] for name in BACKENDS}
    assert set(all_backends()) == looked_at - {"WidthAttend"}  # which a chapter has


@backends
@precisions
@pytest.mark.parametrize("kind", ["normal", "large", "masked"])
def test_precision_and_range(name, precision, kind):
    dtype, autocast = PRECISIONS[precision]
    inputs, mask = case(kind, dtype, autocast)
    backend = make(name, dtype)
    found = computed(backend, inputs, mask, autocast)
    wanted = computed(backend.double(), [x.double() for x in inputs], mask, False)
    half = autocast or dtype != torch.float32
    tolerance = 8 * torch.finfo(torch.bfloat16 if autocast else dtype).eps if half else 2e-5
    if kind == "large" and not half:
        tolerance = 2e-3  # what is kept for the backward pass is log sum exp(12,800)
    for one, other, times in zip(found, wanted, (1.0, *inputs), strict=True):
        scale = max(1.0, float(other.abs().max()), float(torch.as_tensor(times).abs().max()))
        torch.testing.assert_close(one.double() / scale, other / scale, rtol=0, atol=tolerance)
    if kind == "masked":
        assert not found[0][0].any()  # where nothing may be seen there is nothing


@backends
@precisions
@pytest.mark.parametrize("shape", [(0, 2, N), (2, 2, 0), (2, 0, N)], ids=["B = 0", "N = 0", "H = 0"])
@pytest.mark.parametrize("masked", [False, True])
def test_nothing_at_all(name, precision, shape, masked):
    dtype, autocast = PRECISIONS[precision]
    inputs = [torch.randn(*shape, D).to(dtype) for _ in range(3)]
    mask = torch.ones(shape[0], 1, 1, shape[-1], dtype=torch.bool) if masked else None
    y, *gradients = computed(make(name, dtype), inputs, mask, autocast)
    assert y.shape == (*shape, D)
    assert all(x is None or x.shape == (*shape, D) for x in gradients)


@precisions
@pytest.mark.parametrize("name", [name for name in BACKENDS if not any(x in name for x in ONE_SEQUENCE)])
def test_queries_without_keys_get_zeros(name, precision):
    dtype, autocast = PRECISIONS[precision]
    inputs = [torch.randn(2, 2, n, D).to(dtype) for n in (N, 0, 0)]
    y, *_ = computed(make(name, dtype), inputs, None, autocast)
    assert y.shape == (2, 2, N, D)
    assert not y.any()


@pytest.mark.parametrize("name", [name for name in BACKENDS if any(x in name for x in ONE_SEQUENCE)])
def test_queries_without_keys_are_refused_where_they_are_one_sequence(name, unchecked):
    q, nothing = (torch.randn(2, 2, n, D, dtype=torch.float32) for n in (N, 0))
    with pytest.raises(ValueError, match=r"queries"):
        make(name, torch.float32)(q, nothing, nothing)


@precisions
@pytest.mark.parametrize("function", [attention, linear_attention])
def test_the_plain_functions(function, precision):
    dtype, autocast = PRECISIONS[precision]
    for kind in ("normal", "large", "masked"):
        inputs, mask = case(kind, dtype, autocast)
        with torch.autocast("cpu", torch.bfloat16) if autocast else nullcontext():
            y, weights = function(*inputs, mask)
        wanted, its = function(*(x.double() for x in inputs), mask)
        tolerance = 8 * torch.finfo(torch.bfloat16 if autocast else dtype).eps
        torch.testing.assert_close(y.double(), wanted, rtol=0, atol=max(tolerance, 2e-5))
        torch.testing.assert_close(weights.double(), its, rtol=0, atol=max(tolerance, 2e-5))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("rule", [delta_rule, delta_rule_steps])
def test_the_state_of_the_delta_rule_is_kept_in_float32(rule, dtype):
    q, k, v = (torch.randn(2, 9, 8).to(dtype) for _ in range(3))
    k, rate = torch.nn.functional.normalize(k, dim=-1), torch.rand(2, 9, 1).to(dtype)
    y, state = rule(q, k, v, rate)
    assert (y.dtype, state.dtype) == (dtype, torch.float32)
    wanted, last = rule(*(x.double() for x in (q, k, v, rate)))
    torch.testing.assert_close(state.double(), last, rtol=0, atol=1e-5)
    torch.testing.assert_close(y.double(), wanted, rtol=torch.finfo(dtype).eps, atol=1e-5)


@pytest.mark.parametrize("inside", [False, True], ids=["backward outside", "backward inside"])
@pytest.mark.parametrize("backend", [Attend, FusedAttend, TiledAttend])
def test_gradients_under_autocast(backend, inside):
    inputs, _ = case("normal", torch.float32, False)
    wanted = computed(Attend().double(), [x.double() for x in inputs], None, False)
    leaves = [x.clone().requires_grad_() for x in inputs]
    with torch.autocast("cpu", torch.bfloat16):
        y = backend()(*leaves)
        if inside:
            y.double().square().sum().backward()
    if not inside:
        y.double().square().sum().backward()
    for leaf, other in zip(leaves, wanted[1:], strict=True):
        scale = float(other.abs().max())
        torch.testing.assert_close(leaf.grad.double() / scale, other / scale, rtol=0, atol=0.03)


@pytest.mark.parametrize("name", ["Attend", "FusedAttend", "TiledAttend"])
def test_a_forbidden_value_must_be_a_number_all_the_same(name):
    """As `attention` says: 0 times NaN is NaN, whichever backend multiplies."""
    (q, k, v), _ = case("normal", torch.float32, False)
    v[..., 3, :] = torch.nan
    mask = torch.ones(N, N, dtype=torch.bool)
    mask[:, 3] = False
    assert make(name, torch.float32)(q, k, v, mask).isnan().all()


@precisions
@pytest.mark.parametrize(
    "layer",
    [
        lambda: MultiHeadLatentAttention(16, 2, d_latent=6, d_rotary=4),
        lambda: MixtureOfExperts(16, n_experts=4, k=2),
        lambda: MixtureOfExperts(16, n_experts=4, k=1, n_shared=1),
    ],
    ids=["latent", "mixture", "shared"],
)
def test_layers(layer, precision):
    dtype, autocast = PRECISIONS[precision]
    torch.manual_seed(0)
    layer = layer().to(dtype)
    for shape in ((2, 5), (0, 5), (2, 0)):
        x = torch.randn(*shape, 16).to(dtype)
        with torch.autocast("cpu", torch.bfloat16) if autocast else nullcontext():
            y = layer(x)
        assert y.shape == x.shape
        assert y.isfinite().all()
        (y.double().square().sum() + getattr(layer, "balance", torch.zeros(()))).backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())
    if isinstance(layer, MixtureOfExperts):
        assert layer.balance.dtype == torch.float32
        assert layer.balance.item() == 0.0  # of no token
        assert layer.load.tolist() == [0.0] * 4
