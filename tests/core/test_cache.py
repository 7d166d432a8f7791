"""The cache: it holds what was put in, makes room, and a model reads with it what it reads without."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tformer_lib import MultiHeadAttention, Transformer, TransformerConfig, causal_mask
from tformer_lib.core.attention import Attend, FusedAttend
from tformer_lib.core.cache import KVCache, LayerCache
from tformer_lib.core.positions import ALiBi, Rotary


@settings(max_examples=30)
@given(chunks=st.lists(st.integers(0, 9), min_size=1, max_size=12), seed=st.integers(0, 99))
def test_what_is_put_in_comes_out(chunks, seed):
    generator = torch.Generator().manual_seed(seed)
    k, v = (torch.randn(2, 3, sum(chunks), d, generator=generator) for d in (4, 5))
    cache = LayerCache()
    for end in torch.tensor(chunks).cumsum(0).tolist():
        start = cache.length
        keys, values = cache.extend(k[:, :, start:end], v[:, :, start:end])
        assert cache.length == end
        assert torch.equal(keys, k[:, :, :end])
        assert torch.equal(values, v[:, :, :end])


def test_room_doubles():
    """A thousand tokens, one at a time, are moved ten times, and never is there room for twice as many."""
    cache, moves, where = LayerCache(), 0, None
    for n in range(1, 1001):
        keys, _ = cache.extend(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 1, 2))
        moves += keys.data_ptr() != where
        where = keys.data_ptr()
        assert keys.shape[-2] == n
        assert n <= cache._keys.shape[-2] < 2 * n
    assert moves == 11  # room for 1, 2, 4, ..., 1024
    assert torch.equal(keys, torch.ones(1, 1, 1000, 2))


def test_more_than_twice_the_room_at_once():
    cache = LayerCache()
    cache.extend(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2))
    cache.extend(torch.ones(1, 1, 7, 2), torch.ones(1, 1, 7, 2))
    assert cache._keys.shape == (1, 1, 9, 2)


def test_what_is_held_is_a_copy():
    k = torch.ones(1, 1, 3, 2)
    cache = LayerCache()
    keys, _ = cache.extend(k, k)
    k.zero_()
    assert keys.sum() == 6


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dtype_stays(dtype):
    cache = LayerCache()
    for _ in range(3):
        keys, values = cache.extend(*torch.randn(2, 1, 1, 1, 2).to(dtype))
    assert keys.dtype == values.dtype == dtype


def test_select():
    k = torch.randn(3, 2, 4, 5)
    cache = LayerCache()
    cache.select(torch.tensor([0]))  # nothing is held yet
    cache.extend(k, 2 * k)
    rows = torch.tensor([2, 0, 2, 1])
    cache.select(rows)
    more = torch.randn(4, 2, 1, 5)
    keys, values = cache.extend(more, more)
    assert torch.equal(keys, torch.cat((k[rows], more), dim=2))
    assert torch.equal(values, torch.cat((2 * k[rows], more), dim=2))
    cache.select(torch.tensor([], dtype=torch.long))
    assert cache.extend(more[:0], more[:0])[0].shape == (0, 2, 6, 5)


@pytest.mark.parametrize("shape", [(3, 2, 1, 5), (2, 3, 1, 5), (2, 2, 1, 6)])
def test_other_rows_heads_or_widths(shape):
    cache = LayerCache()
    cache.extend(torch.ones(2, 2, 4, 5), torch.ones(2, 2, 4, 5))
    got = (shape[0], shape[1], shape[3])
    with pytest.raises(ValueError, match=rf"\(2, 2, 5\).*\({got[0]}, {got[1]}, {got[2]}\)"):
        cache.extend(torch.ones(shape), torch.ones(shape))
    assert cache.length == 4
    assert cache.extend(torch.ones(2, 2, 1, 5), torch.ones(2, 2, 1, 5))[0].shape == (2, 2, 5, 5)


def test_not_for_training():
    layer, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    cache = LayerCache()
    with pytest.raises(RuntimeError, match=r"torch\.no_grad"):
        layer(x, mask=causal_mask(3), cache=cache)
    assert cache.length == 0
    for mode in (torch.no_grad(), torch.inference_mode()):
        with mode:
            layer(x, mask=causal_mask(3), cache=LayerCache())


def test_a_context_is_read_once():
    layer, x, context = MultiHeadAttention(8, 2).eval(), torch.randn(1, 3, 8), torch.randn(1, 5, 8)
    cache = LayerCache()
    with torch.no_grad():
        first, again = layer(x, context, cache=cache), layer(x[:, :2], context, cache=cache)
        assert cache.length == 5
        torch.testing.assert_close(first, layer(x, context))
        torch.testing.assert_close(again, first[:, :2])
        assert torch.equal(layer(x, torch.zeros_like(context), cache=cache), first)  # it is not read again
        with pytest.raises(ValueError, match="a context of 5 tokens, and this one has 4"):
            layer(x, context[:, :4], cache=cache)
    with pytest.raises(RuntimeError, match=r"torch\.no_grad"):  # of what is held there would be no gradient
        layer(x, context, cache=cache)
    assert cache.length == 5


def test_selected_rows_keep_their_context():
    model = Transformer(TransformerConfig(d_model=8, n_heads=2, n_blocks=2, cross_attention=True)).eval()
    x, context = torch.randn(3, 4, 8), torch.randn(3, 5, 8)
    rows, cache = torch.tensor([2, 0, 2]), KVCache(2, context=True)
    with torch.no_grad():
        model(x[:, :3], context, causal_mask(3), cache=cache)
        cache.select(rows)
        last = model(x[rows, 3:], context[rows], cache=cache)
        expected = model(x[rows], context[rows], causal_mask(4))[:, 3:]
    torch.testing.assert_close(last, expected)


def test_not_for_another_stack():
    model = Transformer(TransformerConfig(d_model=8, n_heads=2, n_blocks=3))
    with torch.no_grad(), pytest.raises(ValueError, match="for 2 blocks, and the stack has 3"):
        model(torch.randn(1, 2, 8), cache=KVCache(2))


@torch.no_grad()
def test_what_a_layer_keeps():
    """Keys as they enter the scores, normalised and turned; shared heads once, 2 H_kv Dh numbers a token."""
    layer = MultiHeadAttention(16, 4, n_kv_heads=2, qk_norm=True, rotary=Rotary(4))
    nn.init.normal_(layer.norm_k.weight)
    x, cache = torch.randn(3, 7, 16), LayerCache()
    for start, end in ((0, 4), (4, 5), (5, 7)):
        layer(x[:, start:end], mask=causal_mask(end - start, past=start), cache=cache)
    keys, values = cache.extend(*torch.zeros(2, 3, 2, 0, 4))
    assert keys.shape == values.shape == (3, 2, 7, 4)
    expected = layer.rotary(layer.norm_k(layer.split_heads(layer.W_k(x))))
    torch.testing.assert_close(keys, expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(values, layer.split_heads(layer.W_v(x)), rtol=0, atol=1e-10)


STACKS = {
    "plain": ({}, dict),
    "fused, post-norm": ({"norm_placement": "post"}, lambda: {"make_backend": FusedAttend}),
    "alibi": ({}, lambda: {"make_backend": lambda: Attend(score_bias=ALiBi(4))}),
    "alibi, fused": ({}, lambda: {"make_backend": lambda: FusedAttend(score_bias=ALiBi(4))}),
    "modern": (
        {"norm": "rms", "activation": "swiglu", "n_kv_heads": 2, "qk_norm": True, "bias": False},
        lambda: {"rotary": Rotary(4), "make_backend": FusedAttend},
    ),
}


@pytest.mark.parametrize("stack", STACKS)
@torch.no_grad()
def test_in_any_chunks_as_at_once(stack, agree):
    choices, parts = STACKS[stack]
    model = Transformer(TransformerConfig(d_model=16, n_heads=4, n_blocks=3, **choices), **parts())
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    rng, x = random.Random(stack), torch.randn(2, 25, 16)
    whole = model(x, mask=causal_mask(25))
    for _ in range(4):
        cache, outs = KVCache(3), []
        while cache.length < 25:
            past = cache.length
            part = x[:, past : past + rng.randint(1, 8)]
            outs.append(model(part, mask=causal_mask(part.shape[1], past=past), cache=cache))
        agree(torch.cat(outs, dim=1), whole)
        assert [layer.length for layer in cache.layers] == [25] * 3


@torch.no_grad()
def test_rows_go_on_after_select(agree):
    model = Transformer(TransformerConfig(d_model=16, n_heads=4, n_blocks=2))
    x, y = torch.randn(3, 5, 16), torch.randn(4, 2, 16)
    rows = torch.tensor([2, 2, 0, 1])
    cache = KVCache(2)
    model(x, mask=causal_mask(5), cache=cache)
    cache.select(rows)
    both = torch.cat((x[rows], y), dim=1)
    agree(model(y, mask=causal_mask(2, past=5), cache=cache), model(both, mask=causal_mask(7))[:, 5:])
