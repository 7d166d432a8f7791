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
    "alibi": lambda: {"attend": lambda: Attend(score_bias=ALiBi(CONFIG.n_heads))},
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
