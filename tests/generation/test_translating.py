"""Translating sentences, and scoring what comes out."""

import re

import pytest
import torch
from torch import nn

from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.generation import beam_search, translate, translation_scores
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
    translator = Translator(TransformerConfig(16, 2, 1), 29)
    with torch.no_grad():
        for p in translator.parameters():
            p.add_(0.3 * torch.randn_like(p))
    return translator


SENTENCES = ["house", "a", "gardens", "cat", "lighthouse", "be"]


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("batch", [1, 4, 100])
def test_each_sentence_gets_its_own_translation(beams, batch):
    translator, letters = model().eval(), Letters()
    found = translate(translator, letters, SENTENCES, beams=beams, max_len=6, batch=batch)
    for sentence, translation in zip(SENTENCES, found, strict=True):
        source, _ = letters.encode([(sentence, "")])
        ((best,),) = beam_search(translator, source, 6, beams=beams)
        assert translation == letters.decode(best.tokens)
    assert len(set(found)) > 2


def test_nothing_to_translate():
    assert translate(model(), Letters(), []) == []


def test_batches_have_a_size():
    with pytest.raises(ValueError, match="batch must be at least 1, got 0"):
        translate(model(), Letters(), SENTENCES, batch=0)


def test_perfect_and_hopeless():
    right = ["The cat sits on the mat today.", "There is a house in the garden."]
    best = translation_scores(right, right)
    assert (best["exact"], best["bleu"], best["chrf"]) == pytest.approx((1.0, 100.0, 100.0))
    worst = translation_scores(["x y z w v", "q r s t u"], right)
    assert worst["exact"] == 0
    assert worst["bleu"] < 5
    assert worst["chrf"] < 10
    assert re.search(r"nrefs:1\|case:mixed.*tok:13a", best["bleu signature"])


def test_bleu_by_hand():
    """Precisions 4/5, 3/4, 2/3, 1/2 of five words against five: no penalty for length."""
    scores = translation_scores(["a b c d x"], ["a b c d e"])
    assert scores["bleu"] == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert scores["exact"] == 0


def test_the_whole_set_counts_at_once():
    """BLEU adds counts over sentences, which is not the mean of sentences' scores."""
    translations, references = ["a b c d", "a b c d x y z"], ["a b c d", "a b c d e f g"]
    together = translation_scores(translations, references)["bleu"]
    alone = [translation_scores([t], [r])["bleu"] for t, r in zip(translations, references, strict=True)]
    precisions = [(4 + 4) / (4 + 7), (3 + 3) / (3 + 6), (2 + 2) / (2 + 5), (1 + 1) / (1 + 4)]
    assert together == pytest.approx(100 * torch.tensor(precisions).log().mean().exp().item(), rel=1e-4)
    assert together != pytest.approx(sum(alone) / 2)


@pytest.mark.parametrize(("translations", "references"), [(["a"], ["a", "b"]), ([], [])])
def test_a_reference_each(translations, references):
    with pytest.raises(ValueError, match="a reference for each translation"):
        translation_scores(translations, references)
