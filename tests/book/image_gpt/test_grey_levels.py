"""Grey levels: rounding by hand, raster order, and the way back."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tformer_book.image_gpt.grey_levels import dequantise, quantise, with_start


def test_levels_by_hand_in_raster_order():
    image = torch.tensor([[[[0.0, 0.24, 0.25], [0.5, 0.99, 1.0]]]])
    assert quantise(image, 4).tolist() == [[0, 0, 1, 2, 3, 3]]
    back = dequantise(torch.tensor([[0, 0, 1, 2, 3, 3]]), 4, 2, 3)
    assert back.tolist() == [[[[0.125, 0.125, 0.375], [0.625, 0.875, 0.875]]]]


@given(levels=st.integers(2, 17), height=st.integers(1, 5), width=st.integers(1, 5), seed=st.integers(0, 99))
def test_there_and_back(levels, height, width, seed):
    images = torch.rand(3, 1, height, width, generator=torch.Generator().manual_seed(seed))
    tokens = quantise(images, levels)
    assert tokens.shape == (3, height * width)
    back = dequantise(tokens, levels, height, width)
    assert (back - images).abs().max() <= 0.5 / levels + 1e-6
    assert torch.equal(quantise(back, levels), tokens)


def test_start():
    assert with_start(torch.tensor([[0, 3], [1, 2]]), 4).tolist() == [[4, 0, 3], [4, 1, 2]]


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan")])
def test_grey_values_lie_between_black_and_white(bad):
    with pytest.raises(ValueError, match=r"lie in \[0, 1\]"):
        quantise(torch.tensor([[[[0.5, bad]]]]), 4)


def test_errors():
    tokens = torch.tensor([[0, 1, 2, 3]])
    for call in (lambda: quantise(torch.zeros(1, 1, 2, 2), 1), lambda: with_start(tokens, 1)):
        with pytest.raises(ValueError, match="at least two grey levels, got 1"):
            call()
    with pytest.raises(ValueError, match="2 x 3 has 6 pixels, got 4 tokens"):
        dequantise(tokens, 4, 2, 3)
    with pytest.raises(ValueError, match="tokens from 0 to 2"):
        dequantise(tokens, 3, 2, 2)
