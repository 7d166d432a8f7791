"""Holes in a text are filled in with the likeliest tokens."""

import math

import pytest
import torch

from tformer_lib.generation.filling import fill_in
from tformer_lib.models.bert import BERT, PretrainingBERT, bert_config
from tformer_lib.tokenizers import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##c"])
VOCAB = TOKENIZER.vocab_size


def model(next_sentence=True, dropout=0.0):
    torch.manual_seed(0)
    bert = BERT(
        bert_config(d_model=8, n_heads=2, n_blocks=1, dropout=dropout), VOCAB, max_len=6, pooler=next_sentence
    )
    return PretrainingBERT(bert, next_sentence=next_sentence)


def knowing_one_answer(token, probability):
    """A model that gives one token this probability anywhere, and the others the same each."""
    m = model()
    with torch.no_grad():
        m.masked_language.norm.weight.zero_()
        m.masked_language.norm.bias.zero_()
        m.masked_language.bias.fill_(math.log((1 - probability) / (VOCAB - 1)))
        m.masked_language.bias[token] = math.log(probability)
    return m


def test_fill_in_gives_the_likeliest_tokens_hole_by_hole():
    m = knowing_one_answer(7, 0.65)
    holes = fill_in(m, TOKENIZER, "a [MASK] b [MASK]", k=2)
    assert len(holes) == 2
    for hole in holes:
        assert hole[0][0] == "##c"
        assert math.isclose(hole[0][1], 0.65, rel_tol=1e-5)
        assert math.isclose(hole[1][1], 0.05, rel_tol=1e-5)
    ((everything),) = fill_in(m, TOKENIZER, "[MASK]", k=VOCAB)
    assert math.isclose(sum(p for _, p in everything), 1, rel_tol=1e-5)


def test_fill_in_reads_the_text_between_cls_and_sep():
    m = model().train()
    ((first, *_),) = fill_in(m, TOKENIZER, "b [MASK] a", k=3)
    with torch.no_grad():
        p = m.eval()(torch.tensor([[2, 6, 4, 5, 3]]))[0][0, 2].softmax(-1)
    assert first[0] == TOKENIZER.tokens[int(p.argmax())]
    assert math.isclose(first[1], p.max().item(), rel_tol=1e-5)


def test_fill_in_names_what_is_wrong():
    m = model()
    with pytest.raises(ValueError, match=r"no \[MASK\]"):
        fill_in(m, TOKENIZER, "a b")
    with pytest.raises(ValueError, match=r"are 7 tokens, and the model reads 6"):
        fill_in(m, TOKENIZER, "a a a a [MASK]")
    for k in (0, VOCAB + 1):
        with pytest.raises(ValueError, match=f"tokens, {VOCAB}; got {k}"):
            fill_in(m, TOKENIZER, "[MASK]", k=k)
