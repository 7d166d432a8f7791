"""Classifiers on BERT: a linear layer on what is pooled or on each token, dropout before it, and the loss."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tformer_lib.core.masks import padding_mask
from tformer_lib.core.tokens import IGNORED
from tformer_lib.models.bert import BERT, bert_config
from tformer_lib.models.classifiers import SequenceClassifier, TokenClassifier, classifier_loss

VOCAB, D, CLASSES, PAD = 11, 8, 5, 0


def build(kind, *, dropout=0.0, **parts):
    torch.manual_seed(0)
    model = kind(
        BERT(bert_config(d_model=D, n_heads=2, n_blocks=2, dropout=dropout), VOCAB, max_len=12, **parts),
        CLASSES,
    )
    nn.init.normal_(model.W.bias)
    return model.eval()


def some_tokens(n=7, batch=4):
    return torch.randint(1, VOCAB, (batch, n), generator=torch.Generator().manual_seed(2))


def test_one_answer_a_sequence_read_at_the_first_place():
    model, x = build(SequenceClassifier), some_tokens()
    segments = torch.ones_like(x)
    pooled = torch.tanh(model.bert.pooler(model.bert(x, segments)[:, 0]))
    assert_close(model(x, segments), pooled @ model.W.weight.T + model.W.bias)
    assert model(x).shape == (4, CLASSES)
    with pytest.raises(ValueError, match="no pooler"):
        build(SequenceClassifier, pooler=False)(x)


def test_one_answer_a_token():
    model, x = build(TokenClassifier, pooler=False), some_tokens()
    segments = torch.ones_like(x)
    assert_close(model(x, segments), model.bert(x, segments) @ model.W.weight.T + model.W.bias)
    assert model(x).shape == (4, 7, CLASSES)


@pytest.mark.parametrize("kind", [SequenceClassifier, TokenClassifier])
def test_padding_changes_nothing(kind):
    model, x = build(kind), some_tokens()
    padded = nn.functional.pad(x, (0, 4), value=PAD)
    found = model(padded, None, padding_mask(padded, PAD))
    found = found if kind is SequenceClassifier else found[:, :7]
    assert_close(found, model(x), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", [SequenceClassifier, TokenClassifier])
def test_dropout_before_the_last_layer_in_training_alone(kind):
    model, x = build(kind, dropout=0.25), some_tokens(12, 100)
    assert model.dropout.p == 0.25
    seen = []
    model.dropout.register_forward_hook(lambda _, __, out: seen.append((out == 0).double().mean().item()))
    assert_close(model(x), build(kind)(x), atol=0, rtol=0)
    model.train()(x)
    assert seen == pytest.approx([0, 0.25], abs=0.06)


def test_the_loss_of_a_sequence_classifier_by_hand():
    model, x = build(SequenceClassifier), some_tokens()
    labels = torch.tensor([0, 4, 2, 2])
    scores = model(x).tolist()
    nats = [math.log(sum(map(math.exp, row))) - row[label] for row, label in zip(scores, labels, strict=True)]
    assert classifier_loss(model, (x, None, labels)).item() == pytest.approx(sum(nats) / 4, rel=1e-5)


def test_the_loss_of_a_token_classifier_leaves_out_what_is_not_asked():
    model, x = build(TokenClassifier), some_tokens()
    x[2, 4:] = PAD
    mask = padding_mask(x, PAD)
    labels = torch.full_like(x, IGNORED)
    asked = {(0, 1): 3, (0, 2): 0, (2, 3): 4}
    for (row, place), label in asked.items():
        labels[row, place] = label
    scores = model(x, None, mask).tolist()
    nats = [math.log(sum(map(math.exp, scores[r][n]))) - scores[r][n][y] for (r, n), y in asked.items()]
    assert classifier_loss(model, (x, mask, labels)).item() == pytest.approx(sum(nats) / 3, rel=1e-5)


@pytest.mark.parametrize("kind", [SequenceClassifier, TokenClassifier])
def test_the_loss_reaches_the_encoder(kind):
    model, x = build(kind), some_tokens()
    labels = torch.ones(4, dtype=torch.long) if kind is SequenceClassifier else torch.ones_like(x)
    classifier_loss(model, (x, None, labels)).backward()
    unused = {"bert.pooler.weight", "bert.pooler.bias"} if kind is TokenClassifier else set()
    without = {name for name, p in model.named_parameters() if p.grad is None}
    assert without == unused
