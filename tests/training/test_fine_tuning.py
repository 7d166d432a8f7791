"""Fine-tuning leaves the encoder alone and repeats; the scores agree with what one counts by hand."""

import copy

import pytest
import torch

from tformer_lib.core.tokens import IGNORED
from tformer_lib.data.labelled import LabelledBatches
from tformer_lib.measures.labels import accuracy
from tformer_lib.models.bert import BERT, bert_config
from tformer_lib.models.classifiers import SequenceClassifier, TokenClassifier
from tformer_lib.training.fine_tuning import fine_tune, first_weights, predict


@pytest.fixture
def bert():
    torch.manual_seed(0)
    return BERT(bert_config(d_model=16, n_heads=2, n_blocks=1), 20, max_len=8)


def data():
    """Forty rows [2, a, b, 3]; the label tells whether a is large, token labels whether each is."""
    inside = torch.randint(4, 20, (40, 2), generator=torch.Generator().manual_seed(1))
    tokens = torch.cat((torch.full((40, 1), 2), inside, torch.full((40, 1), 3)), dim=1)
    mask = torch.ones(40, 1, 1, 4, dtype=torch.bool)
    labels = torch.full((40, 4), IGNORED)
    labels[:, 1:3] = (inside > 11).long()
    return tokens, mask, labels[:, 1], labels


def classifier(bert):
    return SequenceClassifier(bert, 2)


def same(one, two):
    theirs = two.state_dict()
    return all(torch.equal(value, theirs[name]) for name, value in one.state_dict().items())


def test_a_sequence_classifier_learns_and_its_encoder_is_a_copy(bert):
    before = copy.deepcopy(bert).train(False)
    tokens, mask, labels, _ = data()
    model = fine_tune(bert, classifier, LabelledBatches(tokens, mask, labels, batch=16, steps=150), lr=5e-3)
    assert isinstance(model, SequenceClassifier)
    assert not model.training
    assert accuracy(predict(model, tokens, mask), labels) == 1.0
    assert same(bert, before)
    assert all(p.grad is None for p in bert.parameters())
    moved = {n for n, p in model.bert.named_parameters() if not torch.equal(p, bert.get_parameter(n))}
    still = {n for n, _ in bert.named_parameters()} - moved
    assert all("W_k.bias" in name for name in still)  # which softmax cannot feel


def test_a_token_classifier_learns(bert):
    tokens, mask, _, labels = data()
    batches = LabelledBatches(tokens, mask, labels, batch=16, steps=150)
    model = fine_tune(bert, lambda bert: TokenClassifier(bert, 2), batches, lr=5e-3)
    asked = labels != IGNORED
    assert accuracy(predict(model, tokens, mask)[asked], labels[asked]) == 1.0


def test_the_seed_decides_and_torch_is_left_as_it_was(bert):
    tokens, mask, labels, _ = data()
    batches = LabelledBatches(tokens, mask, labels, batch=8, steps=3)
    torch.manual_seed(5)
    state = torch.get_rng_state()
    one = fine_tune(bert, classifier, batches, seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(6)
    assert same(one, fine_tune(bert, classifier, batches, seed=1))
    assert not same(one, fine_tune(bert, classifier, batches, seed=2))


def test_first_weights_are_new_and_of_the_same_sizes(bert):
    state = torch.get_rng_state()
    fresh = first_weights(bert, seed=3)
    assert torch.equal(torch.get_rng_state(), state)
    assert same(fresh, first_weights(bert, seed=3))
    assert not torch.equal(fresh.embed.weight, first_weights(bert, seed=4).embed.weight)
    assert not torch.equal(fresh.embed.weight, bert.embed.weight)
    ours, theirs = fresh.state_dict(), bert.state_dict()
    assert {n: v.shape for n, v in ours.items()} == {n: v.shape for n, v in theirs.items()}
    assert fresh.config == bert.config
    without = first_weights(BERT(bert.config, 9, max_len=5, segments=3, pooler=False))
    assert (without.pooler, without.max_len, len(without.segments.weight)) == (None, 5, 3)


def test_the_schedule(bert, monkeypatch):
    seen = {}
    monkeypatch.setattr("tformer_lib.training.fine_tuning.fit", lambda *args, **kwargs: seen.update(kwargs))
    tokens, mask, labels, _ = data()
    batches = LabelledBatches(tokens, mask, labels, batch=8, steps=30)
    fine_tune(bert, classifier, batches)
    assert (seen["steps"], seen["warmup"]) == (30, 3)
    fine_tune(bert, classifier, iter(batches), steps=200, warmup=0.25)
    assert (seen["steps"], seen["warmup"]) == (200, 50)
    with pytest.raises(ValueError, match="no length"):
        fine_tune(bert, classifier, iter(batches))


def test_dropout_of_the_copy(bert):
    tokens, mask, labels, _ = data()
    batches = LabelledBatches(tokens, mask, labels, batch=8, steps=1)

    def shares(model):
        return {n: m.p for n, m in model.named_modules() if isinstance(m, torch.nn.Dropout)}

    before = shares(bert)
    model = fine_tune(bert, classifier, batches, dropout=0.3)
    inside = {name: p for name, p in shares(model.bert).items() if "mlp" in name}
    assert inside
    assert set(inside.values()) == {0.0}
    assert {p for name, p in shares(model).items() if "mlp" not in name} == {0.3}
    assert (model.bert.config.dropout, model.bert.config.mlp_dropout) == (0.3, 0.0)
    assert shares(bert) == before
    assert bert.config.dropout == 0.1
    assert set(shares(fine_tune(bert, classifier, batches)).values()) == {0.0, 0.1}


def test_predictions_are_made_without_dropout_and_in_parts(bert):
    tokens, mask, _, _ = data()
    model = SequenceClassifier(bert, 5).train()
    answers = predict(model, tokens, mask, batch=7)
    assert model.training
    assert torch.equal(answers, predict(model.eval(), tokens, mask, batch=40))
    assert not model.training
    assert not answers.requires_grad
    assert predict(TokenClassifier(bert, 5), tokens, mask).shape == (40, 4)
