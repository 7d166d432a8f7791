"""GPT: the sum of its parts, causal, tied, and open to other positions and blocks."""

import pytest
import torch

from tformer_lib.core.attention import Attend
from tformer_lib.core.masks import causal_mask
from tformer_lib.core.positions import ALiBi, LearnedPositions, Rotary
from tformer_lib.core.transformer import Block, TransformerConfig
from tformer_lib.models.gpt import GPT
from tformer_lib.training import count_parameters

CONFIG = TransformerConfig(d_model=16, n_heads=2, n_blocks=2)
VOCAB = 11


def build(**parts):
    torch.manual_seed(0)
    return GPT(CONFIG, VOCAB, **parts).eval()


def tokens(n=9, batch=3, seed=1):
    return torch.randint(VOCAB, (batch, n), generator=torch.Generator().manual_seed(seed))


WAYS = {
    "none": dict,
    "learned": lambda: {"positions": LearnedPositions(32, CONFIG.d_model)},
    "rotary": lambda: {"rotary": Rotary(CONFIG.d_model // CONFIG.n_heads)},
    "alibi": lambda: {"make_backend": lambda: Attend(score_bias=ALiBi(CONFIG.n_heads))},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_later_token_changes_no_earlier_logits(way):
    model, x = build(**WAYS[way]()), tokens()
    y = x.clone()
    y[:, 5] = (y[:, 5] + 1) % VOCAB
    before, after = model(x), model(y)
    torch.testing.assert_close(before[:, :5], after[:, :5], rtol=0, atol=0)
    assert not torch.allclose(before[:, 5], after[:, 5])


def test_forward_is_embedding_stack_and_the_embedding_again():
    model, x = build(**WAYS["learned"]()), tokens()
    h = model.embed.weight[x] + model.positions.table[: x.shape[1]]
    for block in model.transformer.blocks:
        h = block(h, mask=causal_mask(x.shape[1]))
    h = model.transformer.final_norm(h)
    torch.testing.assert_close(model(x), torch.einsum("bnd,vd->bnv", h, model.embed.weight))


def test_the_head_has_no_parameters_of_its_own():
    model = build()
    assert count_parameters(model) == VOCAB * 16 + count_parameters(model.transformer)


def test_positions_are_seen():
    x = torch.full((1, 6), 3)
    assert build()(x).std(dim=1).max() < 1e-5  # equal tokens look alike where no position is told
    for way in ("learned", "rotary", "alibi"):
        spread = build(**WAYS[way]())(torch.cat((x, tokens(1, 1)), dim=1)).std(dim=1).max()
        assert spread > 1e-3


def test_the_stack_is_made_of_the_given_block():
    class NoSkip(Block):
        def residual(self, x, norm, sublayer):
            return sublayer(norm(x))

    model = build(block=NoSkip)
    assert all(type(block) is NoSkip for block in model.transformer.blocks)
    assert not torch.allclose(model(tokens()), build()(tokens()))


def test_a_head_of_its_own():
    model, x = build(tied=False), tokens()
    assert count_parameters(model) == 2 * VOCAB * 16 + count_parameters(model.transformer)
    torch.testing.assert_close(model(x), model.head(model.transformer(model.embed(x), mask=causal_mask(9))))
    before = model(x)
    with torch.no_grad():
        model.head.weight.mul_(2)
    torch.testing.assert_close(model(x), 2 * before)
    model(x)[..., 3].sum().backward()
    assert model.head.weight.grad[3].abs().sum() > 0
    assert model.head.weight.grad[4].abs().sum() == 0


def test_max_len_is_that_of_the_positions():
    assert build(**WAYS["learned"]()).max_len == 32
    assert [build(**WAYS[way]()).max_len for way in ("none", "rotary", "alibi")] == [None] * 3


@pytest.mark.parametrize("way", WAYS)
@torch.no_grad()
def test_logits_with_a_cache_are_those_without(way):
    model, x = build(**WAYS[way]()).double(), tokens(20)
    whole = model(x)
    for cuts in ([20], [1] * 20, [5, 1, 1, 7, 6], [19, 1]):
        cache = model.new_cache()
        parts = [model(part, cache) for part in x.split(cuts, dim=1)]
        torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=1e-10)
        assert cache.length == 20


@torch.no_grad()
def test_the_table_of_positions_ends_with_a_cache_too():
    model = build(**WAYS["learned"]())
    cache = model.new_cache()
    model(tokens(32), cache)
    with pytest.raises(ValueError, match=r"max_len=32 .* 32 to 32"):
        model(tokens(1), cache)
    assert cache.length == 32
