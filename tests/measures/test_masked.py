"""Scores of masked language models against sums by hand, on models whose answers are known."""

import math

import pytest
import torch
import torch.nn.functional as F

from tformer_lib.core.tokens import IGNORED
from tformer_lib.measures.masked import (
    hidden_places,
    masked_scores,
    next_sentence_accuracy,
    place_scores,
    unigram_scores,
)
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


def batch(rows, targets):
    tokens = torch.tensor(rows)
    return (
        tokens,
        torch.zeros_like(tokens),
        (tokens != 0)[:, None, None, :],
        torch.tensor(targets),
        torch.zeros(len(rows), dtype=torch.long),
    )


BATCHES = [
    batch([[2, 4, 5, 3], [2, 5, 4, 3]], [[IGNORED, 6, 5, IGNORED], [IGNORED] * 4]),
    batch([[2, 5, 4, 3]], [[IGNORED, IGNORED, 7, IGNORED]]),
]


@pytest.mark.parametrize("next_sentence", [True, False])
def test_scores_are_means_over_places_not_over_batches(next_sentence):
    m = model(next_sentence).eval()
    with torch.no_grad():
        rows = [m(*b[:3])[0] for b in BATCHES]
    asked = torch.stack((rows[0][0, 1], rows[0][0, 2], rows[1][0, 2]))
    true = torch.tensor([6, 5, 7])
    loss, accuracy = masked_scores(m, BATCHES)
    assert math.isclose(loss, F.cross_entropy(asked, true).item(), rel_tol=1e-5)
    assert math.isclose(accuracy, (asked.argmax(-1) == true).float().mean().item(), rel_tol=1e-6)
    log_p, right = place_scores(m, BATCHES)
    assert log_p.shape == right.shape == (3,)


def test_hidden_places_are_those_that_read_the_mask():
    first, second = hidden_places(iter(BATCHES), mask_id=4)
    assert first[3].tolist() == [[IGNORED, 6, IGNORED, IGNORED], [IGNORED] * 4]  # 5 at its place is shown
    assert second[3].tolist() == BATCHES[1][3].tolist()
    assert BATCHES[0][3][0, 2] == 5  # the batch itself is not changed


def test_scores_are_taken_without_dropout_and_the_mode_comes_back():
    m = model(dropout=0.5).train()
    assert masked_scores(m, BATCHES) == masked_scores(m, BATCHES)
    assert m.training
    assert m.bert.dropout.training
    assert all(p.grad is None for p in m.parameters())


def test_unigram_scores_by_hand():
    counts = torch.tensor([0, 0, 0, 0, 0, 6, 3, 0])  # plus one each: 7, 4 and 1 of 17
    loss, accuracy = unigram_scores(counts, BATCHES)
    expected = -(math.log(4 / 17) + math.log(7 / 17) + math.log(1 / 17)) / 3
    assert math.isclose(loss, expected, rel_tol=1e-9)
    assert math.isclose(accuracy, 1 / 3)


def test_nothing_to_score_is_an_error():
    empty = [batch([[2, 5, 3]], [[IGNORED] * 3])]
    for batches in ([], empty):
        with pytest.raises(ValueError, match="no place"):
            masked_scores(model(), batches)
        with pytest.raises(ValueError, match="no place"):
            unigram_scores(torch.ones(VOCAB), batches)
    with pytest.raises(ValueError, match="token 7 has no count"):
        unigram_scores(torch.ones(7), BATCHES)


def test_next_sentence_accuracy_counts_the_right_answers():
    m = model().eval()
    tokens = torch.randint(5, VOCAB, (7, 5), generator=torch.Generator().manual_seed(0))
    segments, mask = torch.zeros_like(tokens), torch.ones(7, 1, 1, 5, dtype=torch.bool)
    with torch.no_grad():
        said = m(tokens, segments, mask)[1].argmax(-1)
    labels = said.clone()
    assert next_sentence_accuracy(m, (tokens, segments, mask, labels), batch=3) == 1
    labels[:2] = 1 - labels[:2]
    assert math.isclose(next_sentence_accuracy(m, (tokens, segments, mask, labels), batch=3), 5 / 7)


def test_next_sentence_accuracy_needs_the_head_and_pairs():
    pairs = (*BATCHES[1][:3], BATCHES[1][4])
    with pytest.raises(ValueError, match="no head"):
        next_sentence_accuracy(model(next_sentence=False), pairs)
    with pytest.raises(ValueError, match="no pair"):
        next_sentence_accuracy(model(), tuple(part[:0] for part in pairs))
