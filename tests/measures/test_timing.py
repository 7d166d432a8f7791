"""What a token costs: counted exactly, and measured roughly."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.measures.timing import time_per_token
from tformer_lib.models.gpt import GPT

VOCAB, D, M = 13, 16, 2


def build(**choices):
    return GPT(
        TransformerConfig(d_model=D, n_heads=4, n_blocks=M, **choices),
        VOCAB,
        positions=LearnedPositions(600, D),
    ).eval()


@pytest.mark.parametrize("n_kv_heads", [None, 2])
@pytest.mark.parametrize("s", [2, 7, 64])
@torch.no_grad()
def test_operations_of_a_token(s, n_kv_heads):
    """2 P + 4 M D S with a cache that holds S tokens with this one, S times as much without."""
    model = build(n_kv_heads=n_kv_heads)
    weights = sum(p.numel() for p in model.parameters() if p.ndim == 2) - model.positions.table.numel()
    tokens, cache = torch.zeros(1, s, dtype=torch.long), model.new_cache()
    model(tokens[:, :-1], cache)
    with FlopCounterMode(display=False) as cached:
        model(tokens[:, -1:], cache)
    with FlopCounterMode(display=False) as uncached:
        model(tokens)
    assert cached.get_total_flops() == 2 * weights + 4 * M * D * s
    assert uncached.get_total_flops() == s * cached.get_total_flops()


def test_measured():
    model = build().train()
    reads = []
    model.register_forward_hook(lambda _, args, __: reads.append(args[0].shape[1]))
    cached = time_per_token(model, 300, use_cache=True, repeats=5)
    assert reads == [295, 1, 1, 1, 1, 1]
    reads.clear()
    uncached = time_per_token(model, 300, use_cache=False, repeats=5)
    assert reads == [295, 296, 297, 298, 299, 300]
    assert min(cached, uncached) > 0  # which is larger, a busy machine may decide: the work is counted above
    assert model.training


@pytest.mark.parametrize(
    ("length", "repeats", "words"),
    [(9, 9, "length=9, got 9"), (9, 0, "got 0"), (601, 3, "length=601 .* max_len=600")],
)
def test_refused(length, repeats, words):
    with pytest.raises(ValueError, match=words):
        time_per_token(build(), length, use_cache=True, repeats=repeats)
