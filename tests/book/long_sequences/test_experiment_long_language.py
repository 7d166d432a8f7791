"""The script on language: each model attends as its name says, and is judged where it is said."""

import pytest
import torch

from tformer_book.kit.records import recorded
from tformer_lib.core.attention import FusedAttend
from tformer_lib.efficient.delta import DeltaAttend
from tformer_lib.efficient.sliding import SlidingWindow


@pytest.fixture(scope="module")
def script():
    """The script."""
    from tformer_book.long_sequences.experiments import long_language

    return long_language


def test_models(script):
    made = {name: [make() for make in layers] for name, layers in script.MODELS.items()}
    assert all(len(layers) == 2 for layers in made.values())
    parts = {n: (layers[0].correct, layers[0].gate is not None) for n, layers in made.items() if n in
             ("delta", "gated delta", "gated linear")}  # fmt: skip
    assert parts == {"delta": (True, False), "gated delta": (True, True), "gated linear": (False, True)}
    assert [type(layer) for layer in made["window, then full"]] == [SlidingWindow, FusedAttend]
    assert [type(layer) for layer in made["delta, then full"]] == [DeltaAttend, FusedAttend]
    assert [type(layer) for layer in made["full, then window"]] == [FusedAttend, SlidingWindow]
    assert [type(layer) for layer in made["full, then delta"]] == [FusedAttend, DeltaAttend]


class Knowing(torch.nn.Module):
    """Halves its certainty with the place, and knows everything of a passage that comes again."""

    def forward(self, tokens):
        logits = torch.zeros(*tokens.shape, 4)
        right = tokens.roll(-1, 1)
        logits[:, 63:].scatter_(-1, right[:, 63:, None], 50.0)
        return logits


def test_judged(script):
    rows = torch.randint(4, (4, 129))
    found = script.judged(Knowing(), rows)
    assert found["by place"][:4] == pytest.approx([2.0, 2.0, 2.0, (31 * 2 + 0) / 32])
    assert found["by place"][4] > 0.5  # the last token of a row is not among those that are rolled
    assert found["mean"] > 0.9


class Counting(torch.nn.Module):
    """Certain of the next token by how much it has read; 0 stands in another row's text."""

    def forward(self, tokens):
        read = tokens.cumsum(dim=1).float()
        return torch.stack([torch.zeros_like(read), read / 100], dim=-1)


def test_after(script):
    rows = torch.ones(2, 129, dtype=torch.long)
    found = script.after(Counting(), rows)
    assert found["nothing"] > found["own"]
    assert found["another"] == pytest.approx(found["own"], abs=1e-5)  # the rows are alike
    rows[1] = 0
    mixed = script.after(Counting(), rows[[0, 0, 1]].clone())  # the first row comes after the last one, of 0
    assert mixed["another"] != pytest.approx(mixed["own"], abs=1e-3)


def test_alone_has_nothing_twice(script, monkeypatch):
    seen = []
    monkeypatch.setattr(script, "fit", lambda model, loss, batches, **_: seen.extend(batches))
    script.trained("window", 0.01, 0, 2, twice=False)
    assert len(seen) == 2
    for rows in seen:
        assert rows.shape == (script.BATCH, 2 * script.PASSAGE + 1)
        passages = rows[:, : script.PASSAGE], rows[:, script.PASSAGE : 2 * script.PASSAGE]
        assert not (passages[0] == passages[1]).all(dim=1).any()


def test_the_record_is_of_this_script(script):
    results = recorded("long_language")["results"]
    assert results["steps"] == script.STEPS
    assert set(results["models"]) <= set(script.MODELS)
    assert set(results["running text alone"]) == set(script.ALONE)
    assert all(len(found) == len(script.SEEDS) for found in results["running text alone"].values())
    assert len(results["full, closer"]) == len(script.SEEDS)
    for found in results["models"].values():
        assert found["rate"] in script.RATES
        assert len(found["seeds"]) == len(script.SEEDS)
        assert len(found["chosen_by"]) == len(script.RATES)
