"""The script about full caches, on a small model: with room for all, each rule costs nothing."""

from functools import partial

import pytest
import torch

from tformer_book.kit.live import live_model
from tformer_book.long_sequences.eviction import KeepFew


@pytest.fixture(scope="module")
def script():
    """The script."""
    from tformer_book.long_sequences.experiments import long_eviction

    return long_eviction


def test_a_cache_with_room_for_all_costs_nothing_and_a_small_one_does(script):
    model, tokenizer = live_model()
    rows = torch.tensor([tokenizer.encode("To be, or not to be, that is the question:\n")])
    whole = script.bits(model, rows)
    n = rows.shape[1] - 1
    for worth in script.rules(n).values():
        assert script.bits(model, rows, partial(KeepFew, n, worth)) == pytest.approx(whole, abs=1e-3)
    few = [script.bits(model, rows, partial(KeepFew, 4, worth)) for worth in script.rules(4).values()]
    assert max(few) > whole
