"""The script about Mamba-2: its models are as they are named, and what is left of a pair is what it says."""

import math

import pytest
import torch

from tformer_book.long_sequences.data.recall import associative_recall
from tformer_book.long_sequences.models.mamba2 import MambaBlock


@pytest.fixture(scope="module")
def script():
    """The script."""
    from tformer_book.long_sequences.experiments import long_mamba

    return long_mamba


def test_models_have_as_many_numbers_in_their_state_as_the_delta_rule(script):
    for d_conv, slower in script.MODELS.values():
        torch.manual_seed(0)
        model = script.RecallMamba(d_conv, slower)
        (block,) = model.transformer.blocks
        assert isinstance(block, MambaBlock)
        layer = block.layer
        assert layer.d_conv == d_conv
        assert layer.nothing(torch.zeros(1, 1, 64)).states.numel() == 2 * 32 * 32
        assert 1 / slower <= layer.log_decay.exp().min() <= layer.log_decay.exp().max() <= 16 / slower


def test_what_is_left_is_the_product_of_the_gates(script):
    torch.manual_seed(0)
    model = script.RecallMamba(4, 100.0)
    layer = model.transformer.blocks[0].layer
    with torch.no_grad():
        layer.W_in.weight[-script.HEADS :] = 0  # rates that no token changes: one gate for each head
    batch = associative_recall(3, 8, 4, **script.SIZES)
    gates = torch.exp(-layer.log_decay.exp() * torch.nn.functional.softplus(layer.dt_bias))
    expected = [math.pow(g, 11) for g in gates.tolist()]  # 12 tokens
    assert script.kept_after(model, batch) == pytest.approx(expected, abs=1e-4)
