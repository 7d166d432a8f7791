"""Masked convolutions see what comes before a pixel, and nothing else."""

import pytest
import torch

from tformer_book.image_gpt.models.pixel_cnn import PixelCNN
from tformer_lib.training import seed_everything

SIDE = 6


@pytest.mark.parametrize("place", [0, 1, 14, 35])
def test_a_pixel_moves_only_those_after_it(place):
    seed_everything(0)
    model = PixelCNN(3, SIDE, width=8, layers=2)
    tokens = torch.randint(3, (2, SIDE**2))
    changed = tokens.clone()
    changed[:, place] = (changed[:, place] + 1) % 3
    with torch.no_grad():
        moved = (model(changed) - model(tokens)).abs().amax(dim=(0, 1)) > 1e-6
    assert not moved[: place + 1].any()
    if place < SIDE**2 - 1:
        assert moved[place + 1] or place % SIDE == SIDE - 1


def test_shapes():
    assert PixelCNN(4, SIDE)(torch.zeros(3, SIDE**2, dtype=torch.long)).shape == (3, 4, SIDE**2)
