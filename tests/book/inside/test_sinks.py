"""A place that is hidden is as if masked; one that is silent has no values."""

import pytest
import torch

from tformer_book.inside.sinks import hidden_place, silent_place
from tformer_lib import GPT, TransformerConfig
from tformer_lib.core.attention import attention
from tformer_lib.core.masks import causal_mask
from tformer_lib.core.positions import Rotary

N = 7


def model():
    torch.manual_seed(0)
    config = TransformerConfig(d_model=16, n_heads=4, n_blocks=2, n_kv_heads=2, norm="rms", bias=False)
    return GPT(config, 9, rotary=Rotary(4)).eval()


def tokens(batch=3):
    return torch.randint(9, (batch, N), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("place", [0, 2, 6])
def test_a_hidden_place_is_masked_for_all_later_ones(place):
    gpt = model()
    mask = causal_mask(N)
    mask[place + 1 :, place] = False
    with torch.no_grad():
        wanted = gpt.transformer(gpt.embed(tokens()), mask=mask) @ gpt.embed.weight.T
        with hidden_place(gpt, place):
            found = gpt(tokens())
        before = gpt(tokens())
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(found[:, : place + 1], before[:, : place + 1])


def test_a_silent_place_takes_weight_and_gives_nothing():
    gpt = model()
    layer = gpt.transformer.blocks[0].self_attention
    x = torch.randn(2, N, 16)
    with torch.no_grad():
        with silent_place(gpt, 2):
            found = layer(x, mask=causal_mask(N))
        q, k = (layer.rotary(layer.split_heads(f(x))) for f in (layer.W_q, layer.W_k))
        v = layer.split_heads(layer.W_v(x))
        v[:, :, 2] = 0
        k, v = (y.repeat_interleave(2, dim=1) for y in (k, v))
        heads = attention(q, k, v, causal_mask(N))[0]
        wanted = layer.W_o(heads.transpose(1, 2).flatten(2))
    torch.testing.assert_close(found, wanted)


def test_hooks_go():
    gpt = model()
    with torch.no_grad():
        before = gpt(tokens())
        for change in (hidden_place, silent_place):
            with change(gpt, 0):
                assert not torch.allclose(gpt(tokens()), before)
            torch.testing.assert_close(gpt(tokens()), before, rtol=0, atol=0)


@pytest.mark.parametrize("change", [hidden_place, silent_place])
def test_a_place_that_is_not_there_is_refused(change):
    gpt = model()
    with pytest.raises(ValueError, match="no place 7 among 7"), change(gpt, N):
        gpt(tokens())
    with pytest.raises(ValueError, match="place"), change(gpt, -1):
        pass


def test_only_the_blocks_that_are_named_are_changed():
    gpt = model()
    with torch.no_grad():
        before = gpt.transformer.blocks[0](gpt.embed(tokens()), mask=causal_mask(N))
        for change in (hidden_place, silent_place):
            with change(gpt, 0):
                everywhere = gpt(tokens())
            with change(gpt, 0, [1]):
                assert not torch.allclose(gpt(tokens()), everywhere)
                inside = gpt.transformer.blocks[0](gpt.embed(tokens()), mask=causal_mask(N))
            torch.testing.assert_close(inside, before, rtol=0, atol=0)
            with change(gpt, 0, [0, 1]):
                torch.testing.assert_close(gpt(tokens()), everywhere, rtol=0, atol=0)
            with pytest.raises(ValueError, match="0 to 1"), change(gpt, 0, [2]):
                pass
