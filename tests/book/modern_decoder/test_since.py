"""The newer parts: each is what its equation says, and the model without it where it does nothing."""

from functools import partial

import pytest
import torch
from torch import nn

from tformer_book.modern_decoder.since import (
    AHEAD,
    DecayedNorm,
    GatedAttention,
    NgramEmbedding,
    Ngrams,
    TwoAhead,
    ValueResidual,
    gated,
    with_decayed_norms,
)
from tformer_lib.core.positions import Rotary
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.training.optimizers import muon_matrices

VOCAB = 7
CONFIG = TransformerConfig(
    d_model=16, n_heads=2, n_blocks=3, norm="rms", qk_norm=True, activation="swiglu", d_hidden=8, bias=False
)
PARTS = {"rotary": Rotary(8, 100.0)}
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def tokens():
    return torch.randint(VOCAB, (2, 9), generator=torch.Generator().manual_seed(0))


def plain():
    torch.manual_seed(0)
    return GPT(CONFIG, VOCAB, **PARTS)


def test_values_that_are_not_mixed_are_a_blocks_own(tokens):
    torch.manual_seed(0)
    mixed = ValueResidual(CONFIG, VOCAB, **PARTS)
    assert not torch.allclose(mixed(tokens), plain()(tokens))
    for block in mixed.transformer.blocks[1:]:
        block.self_attention.W_v.shares.data = torch.tensor([0.0, 1.0])
    torch.testing.assert_close(mixed(tokens), plain()(tokens))


def test_values_of_the_first_block_alone(tokens):
    model = ValueResidual(CONFIG, VOCAB, **PARTS)
    first, later = (block.self_attention.W_v for block in model.transformer.blocks[:2])
    later.shares.data = torch.tensor([1.0, 0.0])
    seen = []
    for layer in (first, later):
        layer.register_forward_hook(lambda layer, given, made: seen.append(made))
    model(tokens)
    torch.testing.assert_close(seen[0], seen[1])
    assert len(muon_matrices(model)) == len(muon_matrices(plain()))


@pytest.mark.parametrize("gates", [2, 16])
def test_an_open_gate_changes_nothing_and_a_closed_one_is_silence(gates):
    layer = GatedAttention(16, 2, gates=gates, bias=False)
    x, heads = torch.randn(2, 5, 16), torch.randn(2, 2, 5, 8)
    x[..., 0] = 1
    layer.W_g.weight.data.zero_()
    for size, wanted in ((100.0, 1.0), (-100.0, 0.0)):
        layer.W_g.weight.data[:, 0] = size
        layer(x)
        torch.testing.assert_close(layer.merge_heads(heads), wanted * heads.transpose(1, 2).flatten(2))


def test_gated_blocks_are_in_the_model():
    model = GPT(CONFIG, VOCAB, block=gated(per_entry=False), **PARTS)
    assert [block.self_attention.W_g.weight.shape for block in model.transformer.blocks] == [(2, 16)] * 3
    assert len(muon_matrices(model)) == len(muon_matrices(plain())) + 3


@pytest.mark.parametrize("centred", [True, False])
def test_decayed_norms_begin_as_the_norms_that_they_replace(tokens, centred):
    model = plain()
    before = model(tokens)
    norms = sum(isinstance(module, nn.RMSNorm) for module in model.modules())
    with_decayed_norms(model, centred)
    made = [module for module in model.modules() if isinstance(module, DecayedNorm)]
    assert len(made) == norms == 3 * 4 + 1
    assert not any(isinstance(module, nn.RMSNorm) for module in model.modules())
    assert all(norm.weight.ndim == 2 for norm in made)  # so that it decays
    torch.testing.assert_close(model(tokens), before)


def test_groups_of_characters_share_rows(tokens):
    embedding = NgramEmbedding(VOCAB, 4, rows=5)
    found = embedding(tokens)
    two, three = (table.weight for table in embedding.tables)
    for row, line in zip(found, tokens.tolist(), strict=True):
        for n, x in enumerate(row):
            a, b, c = [0, 0, *line][n : n + 3]
            wanted = embedding.weight[c] + two[(c * 7 + b) % 5] + three[((c * 7 + b) * 7 + a) % 5]
            torch.testing.assert_close(x, wanted)


@pytest.mark.parametrize("make", [Ngrams, ValueResidual, TwoAhead, partial(GPT, block=gated(True))])
def test_nothing_reads_what_comes_later(tokens, make):
    model = make(CONFIG, VOCAB, **PARTS)
    other = tokens.clone()
    other[:, 6:] = (other[:, 6:] + 1) % VOCAB
    torch.testing.assert_close(model(tokens)[:, :6], model(other)[:, :6])


def test_a_second_token_is_a_second_loss(tokens):
    torch.manual_seed(0)
    model = TwoAhead(CONFIG, VOCAB, **PARTS)
    torch.testing.assert_close(model(tokens), plain()(tokens))
    model.norm_end.weight.data.zero_()  # equal logits
    uniform = torch.tensor(float(VOCAB)).log()
    torch.testing.assert_close(model.loss(tokens), language_loss(model, tokens) + AHEAD * uniform)
