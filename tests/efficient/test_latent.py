"""Latent attention: a head at a time, both forms, the cache, and what it holds."""

import math

import pytest
import torch
from torch import nn

from tformer_lib import GPT, MultiHeadAttention, TransformerConfig, causal_mask
from tformer_lib.core.attention import Attend, FusedAttend
from tformer_lib.core.cache import LayerCache
from tformer_lib.core.transformer import Block
from tformer_lib.efficient.latent import MultiHeadLatentAttention


def layer_of(**changes) -> MultiHeadLatentAttention:
    sizes = {"d_latent": 6, "d_head": 4, "d_rotary": 2, **changes}
    layer = MultiHeadLatentAttention(12, 3, **sizes)
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer


def head_by_head(layer, x, mask):
    """The equations of the docstring, one head and one query at a time."""
    c = layer.W_c(x)
    c = layer.norm_c.weight * c / (c.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt()
    r, width, outputs = layer.rotary(layer.W_r(x)), layer.d_head, []
    for h in range(layer.n_heads):
        q = layer.W_q(x)[..., h * width : (h + 1) * width]
        s = layer.rotary(layer.W_s(x)[..., h * layer.d_rotary : (h + 1) * layer.d_rotary])
        k, v = c @ layer.key_maps[h].T, c @ layer.value_maps[h].T
        rows = []
        for n in range(x.shape[1]):
            may = [j for j in range(x.shape[1]) if mask[n, j]]
            scores = torch.stack(
                [((q[:, n] * k[:, j]).sum(-1) + (s[:, n] * r[:, j]).sum(-1)) for j in may], dim=-1
            )
            weights = (scores / math.sqrt(width + layer.d_rotary)).softmax(dim=-1)
            rows.append(sum(weights[:, i, None] * v[:, j] for i, j in enumerate(may)))
        outputs.append(torch.stack(rows, dim=1))
    return layer.W_o(torch.cat(outputs, dim=-1))


@pytest.mark.parametrize("backend", [Attend, FusedAttend])
def test_head_by_head(backend, agree):
    layer, x, mask = layer_of(backend=backend()), torch.randn(2, 5, 12), causal_mask(5)
    agree(layer(x, mask=mask), head_by_head(layer, x, mask))


@pytest.mark.parametrize("backend", [Attend, FusedAttend])
@pytest.mark.parametrize("d_latent", [1, 6, 20])
@torch.no_grad()
def test_absorbed_equals_expanded(backend, d_latent, agree):
    """A cache that is empty asks for the absorbed form of the same attention."""
    layer, x = layer_of(d_latent=d_latent, backend=backend()), torch.randn(2, 7, 12)
    agree(layer(x, mask=causal_mask(7), cache=LayerCache()), layer(x, mask=causal_mask(7)))


@torch.no_grad()
def test_with_a_cache_as_without(agree):
    layer, x, cache = layer_of(), torch.randn(2, 7, 12), LayerCache()
    first = layer(x[:, :3], mask=causal_mask(3), cache=cache)
    rest = [layer(x[:, n : n + 1], cache=cache) for n in range(3, 7)]
    agree(torch.cat([first, *rest], dim=1), layer(x, mask=causal_mask(7)))


@torch.no_grad()
def test_the_cache_holds_a_latent_and_a_rotary_part():
    layer, cache = layer_of(), LayerCache()
    layer(torch.randn(2, 5, 12), mask=causal_mask(5), cache=cache)
    c, r = cache.held()
    assert c.shape == (2, 1, 5, 6)
    assert r.shape == (2, 1, 5, 2)
    assert layer.d_latent + layer.d_rotary == (c.numel() + r.numel()) / (2 * 5) == 8


@torch.no_grad()
def test_places_enter_by_their_distance(agree):
    """Tokens that all stand five places later get the same outputs; in another order, others."""
    layer, x = layer_of(), torch.randn(1, 6, 12)
    later, cache = layer_of(), LayerCache()
    later.load_state_dict(layer.state_dict())
    later(torch.randn(1, 5, 12), mask=causal_mask(5), cache=cache)
    own = torch.cat((torch.zeros(6, 5, dtype=torch.bool), causal_mask(6)), dim=1)  # not the five before
    agree(later(x, mask=own, cache=cache), layer(x, mask=causal_mask(6)))
    everything = torch.ones(6, 6, dtype=torch.bool)
    flipped = layer(x.flip(1), mask=everything).flip(1)
    assert not torch.allclose(flipped, layer(x, mask=everything))


def test_a_wide_latent_can_be_multi_head_attention(agree):
    """With a latent as wide as D, no turn and no norm, U_h and V_h are the usual W_k,h and W_v,h."""
    usual = MultiHeadAttention(12, 3, bias=False)
    layer = layer_of(d_latent=12)
    with torch.no_grad():
        layer.W_c.weight.copy_(torch.eye(12))
        layer.norm_c = nn.Identity()
        layer.W_s.weight.zero_()
        # The scores are divided by the root of 4 + 2 in place of 4.
        layer.W_q.weight.copy_(usual.W_q.weight * math.sqrt(6 / 4))
        layer.key_maps.copy_(usual.W_k.weight.view(3, 4, 12))
        layer.value_maps.copy_(usual.W_v.weight.view(3, 4, 12))
        layer.W_o.weight.copy_(usual.W_o.weight)
    x = torch.randn(2, 5, 12)
    agree(layer(x, mask=causal_mask(5)), usual(x, mask=causal_mask(5)))


class LatentBlock(Block):
    """A block with latent attention."""

    def __init__(self, config: TransformerConfig, **parts):
        super().__init__(config, **parts)
        self.self_attention = MultiHeadLatentAttention(config.d_model, config.n_heads, d_latent=4, d_rotary=2)


def test_in_a_model(agree):
    model = GPT(TransformerConfig(d_model=8, n_heads=2, n_blocks=2), 11, block=LatentBlock)
    tokens = torch.randint(11, (2, 6))
    logits = model(tokens)
    logits.sum().backward()
    assert all(p.grad is not None for name, p in model.named_parameters() if "self_attention" in name)
    with torch.no_grad():
        cache = model.new_cache()
        steps = [model(tokens[:, n : n + 1], cache=cache) for n in range(6)]
    agree(torch.cat(steps, dim=1), logits.detach())


def test_a_call_that_is_refused_leaves_the_cache():
    layer, cache = layer_of(), LayerCache()
    with torch.no_grad():
        layer(torch.randn(1, 3, 12), mask=causal_mask(3), cache=cache)
        with pytest.raises(ValueError, match="does not broadcast"):
            layer(torch.randn(1, 2, 12), mask=causal_mask(3), cache=cache)
    assert cache.length == 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"d_rotary": 3}, "must be even"),
        ({"d_latent": 0}, "d_latent must be at least 1"),
        ({"d_head": 0}, "d_head must be at least 1"),
    ],
)
def test_bad_sizes(wrong, message):
    with pytest.raises(ValueError, match=message):
        layer_of(**wrong)


def test_bad_inputs():
    layer = layer_of()
    with pytest.raises(ValueError, match="n_heads must divide d_model"):
        MultiHeadLatentAttention(12, 5, d_latent=4, d_rotary=2)
    with pytest.raises(ValueError, match=r"d_model=12\), got \(2, 5, 8\)"):
        layer(torch.randn(2, 5, 8))
    with pytest.raises(ValueError, match="takes no context"):
        layer(torch.randn(2, 5, 12), torch.randn(2, 3, 12))
