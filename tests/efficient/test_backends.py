"""Backends for long sequences: what is exact equals `Attend` with the mask that it stands for."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from tformer_lib import MultiHeadAttention, TransformerConfig, causal_mask, padding_mask
from tformer_lib.core.attention import Attend, FusedAttend
from tformer_lib.core.positions import Rotary
from tformer_lib.efficient.linear import LinearAttend
from tformer_lib.efficient.low_rank import LowRankAttend
from tformer_lib.efficient.sliding import SlidingWindow
from tformer_lib.efficient.sparse import BlockSparse
from tformer_lib.efficient.tiled import TiledAttend
from tformer_lib.models.gpt import GPT

MASKS = ["none", "padding", "padding with an empty row", "pairs", "pairs of each head", "one row", "queries"]
lengths, sizes = st.integers(1, 13), st.integers(1, 15)


def leaf(*shape):
    return torch.randn(*shape).requires_grad_()


def qkv(n, s=None, heads=2, d_v=3):
    s = n if s is None else s
    return leaf(2, heads, n, 4), leaf(2, heads, s, 4), leaf(2, heads, s, d_v)


def masks(name, n, s, heads=2):
    if name == "none":
        return None
    if name == "padding":
        return torch.arange(s) < torch.tensor([s, max(1, s - 2)])[:, None, None, None]
    if name == "padding with an empty row":
        return torch.arange(s) < torch.tensor([s, 0])[:, None, None, None]
    shape = {
        "pairs": (2, 1, n, s),
        "pairs of each head": (2, heads, n, s),
        "one row": (s,),
        "queries": (n, 1),
    }[name]
    return torch.rand(shape) < 0.6


def same(backend, reference, q, k, v, mask, pattern):
    """Outputs and all gradients, with the mask given to one and mask and pattern to the other."""
    both = pattern if mask is None else pattern & mask
    ours, theirs = backend(q, k, v, mask), reference(q, k, v, both)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)
    weight = torch.randn_like(ours)
    pairs = zip(*(torch.autograd.grad(y, (q, k, v), weight) for y in (ours, theirs)), strict=True)
    for mine, other in pairs:
        assert mine.isfinite().all()
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-11)


@pytest.mark.parametrize("reference", [Attend(), FusedAttend()], ids=["Attend", "PyTorch"])
@given(n=lengths, window=sizes, causal=st.booleans(), past=st.integers(0, 9), name=st.sampled_from(MASKS))
def test_sliding_window(reference, n, window, causal, past, name):
    backend = SlidingWindow(window, causal=causal)
    pattern = backend.pattern(past + n)[past:]
    same(backend, reference, *qkv(n, past + n), masks(name, n, past + n), pattern)


@pytest.mark.parametrize("reference", [Attend(), FusedAttend()], ids=["Attend", "PyTorch"])
@given(
    n=lengths,
    block=st.integers(1, 6),
    local=st.integers(1, 3),
    stride=st.none() | st.integers(1, 4),
    n_global=st.integers(0, 2),
    causal=st.booleans(),
    name=st.sampled_from(MASKS),
)
def test_block_sparse(reference, n, block, local, stride, n_global, causal, name):
    backend = BlockSparse(block, local=local, stride=stride, n_global=n_global, causal=causal)
    same(backend, reference, *qkv(n), masks(name, n, n), backend.pattern(n))


@pytest.mark.parametrize("reference", [Attend(), FusedAttend()], ids=["Attend", "PyTorch"])
@given(n=lengths, s=lengths, tile=sizes, name=st.sampled_from(MASKS))
def test_tiled(reference, n, s, tile, name):
    same(TiledAttend(tile), reference, *qkv(n, s), masks(name, n, s), torch.ones(n, s, dtype=torch.bool))


@given(n=lengths, past=st.integers(0, 9), tile=sizes, name=st.sampled_from(MASKS))
def test_tiled_causal(n, past, tile, name):
    mask = masks(name, n, past + n)
    same(TiledAttend(tile, causal=True), Attend(), *qkv(n, past + n), mask, causal_mask(n, past=past))


@given(n=lengths, past=st.integers(0, 9), tile=sizes, window=sizes, name=st.sampled_from(MASKS))
def test_a_tiled_window(n, past, tile, window, name):
    mask, seen = masks(name, n, past + n), SlidingWindow(window, causal=True).pattern(past + n)[past:]
    same(TiledAttend(tile, causal=True, window=window), Attend(), *qkv(n, past + n), mask, seen)


@given(n=lengths, extra=st.integers(0, 4))
def test_low_rank_with_unit_matrices_is_attention(n, extra):
    backend = LowRankAttend(n + extra, n)
    with torch.no_grad():
        backend.E.copy_(torch.eye(n, n + extra))
        backend.F.copy_(torch.eye(n, n + extra))
    same(backend, Attend(), *qkv(n), None, torch.ones(n, n, dtype=torch.bool))


def test_low_rank_mixes_keys_and_values_each_by_its_matrix():
    backend, (q, k, v) = LowRankAttend(7, 3), qkv(5)
    keys = torch.einsum("rs,bhsd->bhrd", backend.E[:, :5], k)
    values = torch.einsum("rs,bhsd->bhrd", backend.F[:, :5], v)
    torch.testing.assert_close(backend(q, k, v), Attend()(q, keys, values))
    assert gradcheck(lambda E, F: torch.func.functional_call(backend, {"E": E, "F": F}, (q, k, v)), tuple(
        p.detach().clone().requires_grad_() for p in (backend.E, backend.F)
    ))  # fmt: skip


# What the patterns are


def test_the_window_counts_itself():
    assert SlidingWindow(2, causal=True).pattern(4).tolist() == [
        [True, False, False, False],
        [True, True, False, False],
        [False, True, True, False],
        [False, False, True, True],
    ]
    assert SlidingWindow(2).pattern(40).sum(dim=1).tolist() == [2, *[3] * 38, 2]
    assert SlidingWindow(1).pattern(5).equal(torch.eye(5, dtype=torch.bool))


def test_a_window_as_long_as_the_sequence_hides_nothing():
    q, k, v = qkv(9)
    torch.testing.assert_close(SlidingWindow(9)(q, k, v), Attend()(q, k, v))
    assert not SlidingWindow(8)(q, k, v).allclose(Attend()(q, k, v))


@pytest.mark.parametrize(
    ("backend", "drawing"),
    [
        (BlockSparse(2), ["x...", ".x..", "..x.", "...x"]),
        (BlockSparse(2, local=2), ["xx..", "xxx.", ".xxx", "..xx"]),
        (BlockSparse(2, stride=2), ["xx.x", "xx.x", ".xxx", ".xxx"]),
        (BlockSparse(2, n_global=1), ["xxxx", "xx..", "x.x.", "x..x"]),
        (BlockSparse(2, stride=2, causal=True), ["x...", "xx..", ".xx.", ".xxx"]),
        (BlockSparse(2, n_global=1, local=2, causal=True), ["x...", "xx..", "xxx.", "x.xx"]),
    ],
)
def test_layouts(backend, drawing):
    assert ["".join(".x"[seen] for seen in row) for row in backend.layout(4).tolist()] == drawing


def test_a_block_pattern_is_its_layout_drawn_large():
    backend = BlockSparse(3, local=1, stride=2, causal=True)
    pattern = backend.pattern(8)
    assert pattern.shape == (8, 8)
    for n in range(8):
        for s in range(8):
            assert pattern[n, s] == (s <= n and (n // 6 == s // 6 or (s // 3) % 2 == 1))


@pytest.mark.parametrize("causal", [False, True])
def test_two_layers_of_stretches_with_ends_reach_every_block(causal):
    layout = BlockSparse(4, stride=5, causal=causal).layout(20)
    twice = (layout.float() @ layout.float()) > 0
    assert twice.equal(torch.ones(20, 20).tril().bool() if causal else torch.ones(20, 20).bool())
    assert not layout.equal(twice)


# Against PyTorch's own sparse attention


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize(
    "backend", [SlidingWindow(3), SlidingWindow(3, causal=True), BlockSparse(4, stride=2, causal=True)]
)
def test_flex_attention(backend):
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    q, k, v = (torch.randn(2, 2, 16, 8, dtype=torch.float32) for _ in range(3))
    pattern = backend.pattern(16)
    try:
        mask = flex.create_block_mask(lambda b, h, n, s: pattern[n, s], None, None, 16, 16, device="cpu")
        expected = flex.flex_attention(q, k, v, block_mask=mask)
    except (RuntimeError, NotImplementedError) as error:
        pytest.skip(f"flex_attention does not run here: {error}")
    torch.testing.assert_close(backend(q, k, v), expected, rtol=0, atol=1e-5)


# Numbers


@pytest.mark.parametrize("masked", [False, True], ids=["free", "masked"])
@pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
def test_the_tiled_backward_against_finite_differences(masked, causal):
    mask = torch.tensor([[0, 0, 0, 0, 0], [1, 1, 0, 1, 1], [0, 1, 1, 1, 0], [1, 1, 1, 0, 1], [0, 0, 1, 0, 1]])
    backend = TiledAttend(2, causal=causal)
    assert gradcheck(lambda q, k, v: backend(q, k, v, mask.bool() if masked else None), qkv(5, heads=1))


def test_tiles_have_first_derivatives_only():
    """As the docstring says: with `create_graph` the gradient comes back detached."""
    q, k, v = qkv(5)
    (grad,) = torch.autograd.grad(TiledAttend(2)(q, k, v).sum(), q, create_graph=True)
    assert not grad.requires_grad
    weight = leaf(2, 2, 5, 3)
    (grad,) = torch.autograd.grad(TiledAttend(2)(q, k, v), q, weight, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


def test_scores_of_any_size_stay_finite():
    """The largest score comes last, first, and in the middle: each time the sums are scaled anew."""
    k = torch.tensor([[0.0], [3e4], [-3e4], [3e4 + 1]])
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 3, 0, 1]):
        q, keys, v = torch.ones(1, 1).requires_grad_(), k[order].requires_grad_(), torch.eye(4)[order]
        y = TiledAttend(1)(q, keys, v)
        y[:, 0].sum().backward()
        expected = torch.tensor([[0.0, 1 / (1 + torch.e), 0.0, torch.e / (1 + torch.e)]])
        torch.testing.assert_close(y, expected)
        assert q.grad.isfinite().all()
        assert keys.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    q, k, v = (torch.randn(2, 2, 20, 8) for _ in range(3))
    for backend, pattern in [
        (TiledAttend(8), torch.ones(20, 20, dtype=torch.bool)),
        (SlidingWindow(4), SlidingWindow(4).pattern(20)),
        (BlockSparse(4, stride=2), BlockSparse(4, stride=2).pattern(20)),
    ]:
        halves = [x.to(dtype).requires_grad_() for x in (q, k, v)]
        y = backend(*halves)
        y.float().square().sum().backward()
        assert y.dtype == halves[0].grad.dtype == dtype
        tolerance = 20 * torch.finfo(dtype).eps
        torch.testing.assert_close(y.double(), Attend()(q, k, v, pattern), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "backend",
    [SlidingWindow(3), BlockSparse(2), TiledAttend(3), LinearAttend(), LinearAttend(causal=True)],
    ids=str,
)
def test_no_tokens_and_no_sequences(backend):
    assert backend(*qkv(0)).shape == (2, 2, 0, 3)
    empty = torch.randn(0, 2, 5, 4)
    assert backend(empty, empty, empty).shape == (0, 2, 5, 4)


# In a model


@pytest.mark.parametrize(
    "attend",
    [lambda: SlidingWindow(20, causal=True), lambda: TiledAttend(3), lambda: BlockSparse(16, causal=True)],
)
def test_each_takes_the_place_of_attend_in_a_model(attend):
    config = TransformerConfig(d_model=8, n_heads=2, n_blocks=2, n_kv_heads=1)
    full = GPT(config, 11, rotary=Rotary(4))
    other = GPT(config, 11, rotary=Rotary(4), make_backend=attend)
    other.load_state_dict(full.state_dict())
    tokens = torch.randint(11, (2, 14))
    torch.testing.assert_close(other(tokens), full(tokens))


def test_a_layer_with_padding():
    layer = MultiHeadAttention(8, 2, backend=SlidingWindow(3))
    x, tokens = torch.randn(2, 7, 8), torch.ones(2, 7, dtype=torch.long)
    tokens[1, 4:] = 0
    mask = padding_mask(tokens, 0)
    other = x.clone()
    other[1, 4:] = 9.0
    torch.testing.assert_close(layer(x, mask=mask)[1, :4], layer(other, mask=mask)[1, :4])
    assert not layer(x)[1, :4].allclose(layer(other)[1, :4])


@torch.no_grad()
@pytest.mark.parametrize(
    "attend",
    [
        lambda: SlidingWindow(3, causal=True),
        lambda: TiledAttend(4, causal=True),
        lambda: LinearAttend(causal=True, chunk=3),
    ],
)
def test_with_a_cache_as_without(attend):
    model, tokens = (
        GPT(TransformerConfig(d_model=8, n_heads=2, n_blocks=2), 11, rotary=Rotary(4), make_backend=attend),
        torch.arange(11)[None],
    )
    cache = model.new_cache()
    parts = [model(part, cache=cache) for part in tokens.split([4, 1, 1, 3, 2], dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), model(tokens))


# What is refused


def wrong(call, *words, error=ValueError):
    with pytest.raises(error) as caught:
        call()
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_sizes_are_refused():
    wrong(lambda: SlidingWindow(0), "window=0")
    wrong(lambda: BlockSparse(0), "block=0")
    wrong(lambda: BlockSparse(4, local=0), "local=0")
    wrong(lambda: BlockSparse(4, stride=0), "stride=0")
    wrong(lambda: BlockSparse(4, n_global=-1), "n_global=-1")
    wrong(lambda: LinearAttend(chunk=0), "chunk=0")
    wrong(lambda: TiledAttend(0), "tile=0")
    wrong(lambda: TiledAttend(4, causal=True, window=0), "window=0")
    wrong(lambda: TiledAttend(4, window=3), "causal=False")
    wrong(lambda: LowRankAttend(0, 2), "max_len=0")
    wrong(lambda: LowRankAttend(4, 0), "rank=0")


def test_lengths_are_refused():
    wrong(lambda: SlidingWindow(3)(*qkv(5, 4)), "5 queries", "4 keys")
    wrong(lambda: BlockSparse(3)(*qkv(4, 5)), "4 queries", "5 keys")
    wrong(lambda: LinearAttend(causal=True)(*qkv(5, 4)), "5 queries", "4 keys")
    wrong(lambda: TiledAttend(causal=True)(*qkv(5, 4)), "5 queries", "4 keys")
    wrong(lambda: LowRankAttend(4, 2)(*qkv(5)), "max_len=4", "5")


BACKENDS = [SlidingWindow(3), BlockSparse(3), TiledAttend(3), LinearAttend(), LowRankAttend(9, 3)]


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: type(b).__name__)
def test_shapes_and_masks_are_refused(backend):
    backend = backend.double()
    q, k, v = qkv(5)
    wrong(lambda: backend(q, k[..., :3], v), "one width")
    wrong(lambda: backend(q, k, v[..., :4, :]), "5 keys and 4 values")
    wrong(lambda: backend(q, k, v, torch.ones(2, 1, 1, 4, dtype=torch.bool)), "(2, 1, 1, 4)", "(2, 2, 5, 5)")
    wrong(lambda: backend(q, k, v, torch.ones(5, 5)), "boolean", error=TypeError)


@pytest.mark.parametrize(
    "backend",
    [LinearAttend(), LinearAttend(causal=True), LowRankAttend(9, 3)],
    ids=["linear", "linear, causal", "low-rank"],
)
def test_masks_of_pairs_are_refused_where_no_pair_is_formed(backend):
    mask = causal_mask(5)
    mask[3, 1] = False
    wrong(lambda: backend(*qkv(5), mask), "single pairs", "(5, 5)")
    if not getattr(backend, "causal", False):
        wrong(lambda: backend(*qkv(5), causal_mask(5)), "causal=False", "(5, 5)")
