"""The script about questions that write: with quiet questions, no answer depends on another question."""

import pytest
import torch

from tformer_book.long_sequences.data.recall import associative_recall
from tformer_book.long_sequences.models.recall import RecallModel
from tformer_lib.core.transformer import TransformerConfig


@pytest.fixture(scope="module")
def script():
    """The script."""
    from tformer_book.long_sequences.experiments import long_questions

    return long_questions


@pytest.mark.parametrize("name", ["linear", "delta"])
@pytest.mark.parametrize("quiet", [True, False])
def test_quiet_questions_write_nothing(script, name, quiet):
    torch.manual_seed(0)
    kind = script.QuietQuestions if quiet else RecallModel
    config = TransformerConfig(d_model=64, n_heads=2, n_blocks=1)
    model = kind(config, **script.SIZES, make_backend=script.MODELS[name])
    batch = associative_recall(3, 16, 8, **script.SIZES)
    others = batch.keys.clone()
    others[:, 16:23] = (others[:, 16:23] + 1) % 128  # all questions but the last
    last = [model(keys, batch.values)[:, -1] for keys in (batch.keys, others)]
    assert torch.allclose(*last) == quiet


def test_rates_are_of_pairs_and_of_questions(script):
    config = TransformerConfig(d_model=64, n_heads=2, n_blocks=1)
    model = RecallModel(config, **script.SIZES, make_backend=script.delta)
    found = script.mean_rates(model, associative_recall(3, 16, 8, **script.SIZES))
    assert set(found) == {"pairs", "questions"}
    assert all(0 < rate < 1 for rate in found.values())
