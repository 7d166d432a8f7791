"""Translating sentences, and scoring what comes out."""

import pytest
import torch
from torch import nn

from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.generation import beam_search, translate
from tformer_lib.models.translator import Translator


class Letters:
    """Letters are tokens, from 3 on."""

    def encode(self, pairs):
        rows = [torch.tensor([*(3 + ord(c) - ord("a") for c in text), 2]) for text, _ in pairs]
        source = nn.utils.rnn.pad_sequence(rows, batch_first=True)
        return source, source

    def decode(self, ids):
        return "".join(chr(ord("a") + i - 3) for i in ids if i > 2)


def model(seed=0):
    torch.manual_seed(seed)
    translator = Translator(TransformerConfig(d_model=16, n_heads=2, n_blocks=1), 29)
    with torch.no_grad():
        for p in translator.parameters():
            p.add_(0.3 * torch.randn_like(p))
    return translator


SENTENCES = ["house", "a", "gardens", "cat", "lighthouse", "be"]


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("batch", [1, 4, 100])
def test_each_sentence_gets_its_own_translation(beams, batch):
    translator, letters = model().eval(), Letters()
    found = translate(translator, letters, SENTENCES, num_beams=beams, max_len=6, batch=batch)
    for sentence, translation in zip(SENTENCES, found, strict=True):
        source, _ = letters.encode([(sentence, "")])
        ((best,),) = beam_search(translator, source, 6, num_beams=beams)
        assert translation == letters.decode(best.tokens)
    assert len(set(found)) > 2


def test_nothing_to_translate():
    assert translate(model(), Letters(), []) == []


def test_batches_have_a_size():
    with pytest.raises(ValueError, match="batch must be at least 1, got 0"):
        translate(model(), Letters(), SENTENCES, batch=0)
