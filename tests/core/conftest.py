"""Fixtures of the core's tests: float64 throughout, and weights copied into PyTorch's own layers."""

import pytest
import torch
from torch import nn

from tests.torch_weights import copy_attention, copy_block, copy_stack, jitter


@pytest.fixture(autouse=True)
def float64():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def agree(request):
    """Asserts that two tensors of one shape lie within 1e-10, and records the worst difference."""

    def check(actual, expected):
        assert actual.shape == expected.shape
        assert actual.dtype == expected.dtype == torch.float64
        worst = (actual - expected).abs().max().item()
        request.node.user_properties.append(("worst_difference", worst))
        assert worst <= 1e-10

    return check


@pytest.fixture
def copied():
    """(ours, theirs) with random weights, theirs a copy of ours; both in evaluation mode."""

    def make(ours, theirs):
        jitter(ours)
        if isinstance(theirs, nn.MultiheadAttention):
            copy_attention(ours, theirs)
        elif isinstance(theirs, nn.TransformerEncoder | nn.TransformerDecoder):
            copy_stack(ours, theirs)
        else:
            copy_block(ours, theirs)
        return ours.eval(), theirs.eval()

    return make
