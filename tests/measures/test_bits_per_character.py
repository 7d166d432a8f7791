"""Bits a character are the loop over predictions."""

import math

import pytest
import torch
from torch import nn

from tformer_lib.measures.language import bits_per_character
from tformer_lib.models.language import GRULanguageModel, MLPLanguageModel

VOCAB = 7


def mlp(context=4):
    torch.manual_seed(0)
    return MLPLanguageModel(VOCAB, context, 3, 5).double()


def gru():
    torch.manual_seed(0)
    return GRULanguageModel(VOCAB, 3, 5).double()


@pytest.mark.parametrize("make", [mlp, gru])
def test_bits_per_character_is_the_loop_over_predictions(make):
    model, context = make(), 5
    ids = torch.randint(VOCAB, (38,), generator=torch.Generator().manual_seed(1))
    bits = []
    for n in range(context + 1, len(ids)):  # the prediction of token n
        start = (n - 1) // context * context - context  # each window begins at a multiple of the context
        if start + 2 * context + 1 > len(ids):
            break
        logits = model(ids[None, start:n])[0, -1]
        assert n - start > context
        bits.append(-logits.log_softmax(dim=0)[ids[n]].item() / math.log(2))
    found = [bits_per_character(model, ids, context, batch=b) for b in (1, 2, 64)]
    assert len(bits) == 30  # six windows of eleven tokens
    assert found == pytest.approx([sum(bits) / len(bits)] * 3, abs=1e-10)


def test_bits_per_character_of_a_uniform_model_and_of_one_that_drops_out():
    ids = torch.randint(8, (64,), generator=torch.Generator().manual_seed(1))
    model = nn.Sequential(nn.Embedding(8, 8), nn.Dropout(0.9))
    nn.init.zeros_(model[0].weight)
    assert bits_per_character(model, ids, 4) == pytest.approx(3)
    nn.init.normal_(model[0].weight)
    assert bits_per_character(model, ids, 4) == bits_per_character(model, ids, 4)
    assert model.training


def test_bits_per_character_errors():
    with pytest.raises(ValueError, match="takes 11 tokens, and the text has 10"):
        bits_per_character(gru(), torch.zeros(10, dtype=torch.int64), 5)
    with pytest.raises(ValueError, match="at least 1"):
        bits_per_character(gru(), torch.zeros(10, dtype=torch.int64), 0)
