"""The model that is asked what stood beside a key."""

import math

import torch

from tformer_book.long_sequences.data.recall import associative_recall, recall_batches
from tformer_book.long_sequences.models.recall import RecallModel, recall_accuracy, recall_hits, recall_loss
from tformer_lib import TransformerConfig
from tformer_lib.efficient.sliding import SlidingWindow
from tformer_lib.training import fit, seed_everything

CONFIG = TransformerConfig(d_model=32, n_heads=2, n_blocks=1)
SIZES = {"n_keys": 16, "n_values": 4}


def batch(pairs=8, queries=4, rows=200):
    return associative_recall(rows, pairs, queries, **SIZES, generator=torch.Generator().manual_seed(0))


def by_distance(model, batch):
    """The share of right answers for each distance from a query back to its pair."""
    hits = recall_hits(model, batch)
    back = batch.distances[:, -hits.shape[1] :]
    return {d: hits[back == d].float().mean().item() for d in back.unique().tolist()}


def test_untrained_it_guesses():
    seed_everything(0)
    model = RecallModel(CONFIG, 16, 4).eval()
    assert abs(recall_loss(model, batch()).item() - math.log(5)) < 0.6
    assert recall_accuracy(model, batch()) < 0.45


def test_the_loss_counts_questions_only():
    model = RecallModel(CONFIG, 16, 4).eval()
    one = batch(rows=3)
    log_p = model(one.keys, one.values).log_softmax(dim=-1)
    right = [log_p[b, n, one.answers[b, n]] for b in range(3) for n in range(8, 12)]
    torch.testing.assert_close(recall_loss(model, one), -torch.stack(right).mean())


def test_accuracy_is_told_by_distance():
    class Near(torch.nn.Module):
        """Right where the pair is at most six places back, given everything."""

        def forward(self, keys, values):
            logits = torch.zeros(*keys.shape, 5)
            for b, n in (values == 0).nonzero().tolist():
                pair = (keys[b, :n] == keys[b, n]).nonzero()[0, 0].item()
                logits[b, n, values[b, pair] if n - pair <= 6 else 0] = 1.0
            return logits

    accuracy = by_distance(Near(), batch())
    assert list(accuracy) == list(range(1, 12))
    assert all(right == (distance <= 6) for distance, right in accuracy.items())
    near = (batch().distances[:, 8:] <= 6).float().mean().item()
    assert abs(recall_accuracy(Near(), batch()) - near) < 1e-6


def test_it_learns_and_a_window_sees_no_further():
    found = {}
    for name, attend in {"full": None, "window": lambda: SlidingWindow(5, causal=True)}.items():
        seed_everything(0)
        model = RecallModel(CONFIG, 16, 4, make_backend=attend)
        batches = recall_batches(150, 32, (4, 8), 4, **SIZES, seed=0)
        fit(model, recall_loss, batches, lr=1e-2, warmup=10)
        found[name] = by_distance(model, batch(rows=500))
    assert min(found["full"].values()) > 0.9
    assert min(a for d, a in found["window"].items() if d < 5) > 0.9
    assert max(a for d, a in found["window"].items() if d >= 5) < 0.5


def test_of_several_writes_the_last_is_asked_for():
    asked = associative_recall(20, 5, 3, **SIZES, writes=3, generator=torch.Generator().manual_seed(1))
    assert asked.keys.shape == asked.answers.shape == (20, 18)
    for keys, values, answers, distances in zip(*asked, strict=True):
        assert sorted(keys[:15].tolist()) == sorted(keys[:15].unique().tolist() * 3)
        for n in range(15, 18):
            (places,) = (keys[:15] == keys[n]).nonzero(as_tuple=True)
            assert answers[n] == values[places.max()]
            assert distances[n] == n - places.max()
