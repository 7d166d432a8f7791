"""Bits a pixel against the loss written out."""

import math

import pytest
import torch

from tformer_book.image_gpt.grey_levels import with_start
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.measures.language import bits_per_pixel
from tformer_lib.models.gpt import GPT

LEVELS = 3
PIXELS = torch.randint(LEVELS, (7, 6), generator=torch.Generator().manual_seed(0))
ROWS = with_start(PIXELS, LEVELS)


def model():
    torch.manual_seed(0)
    config = TransformerConfig(d_model=8, n_heads=2, n_blocks=2, dropout=0.5)
    return GPT(config, LEVELS + 1, positions=LearnedPositions(6, 8))


def test_bits_per_pixel_is_the_mean_over_all_pixels_in_evaluation_mode():
    gpt = model().train()
    bits = bits_per_pixel(gpt, ROWS, batch=3)
    assert gpt.training
    gpt.eval()
    log_p = gpt(ROWS[:, :-1]).log_softmax(-1).gather(-1, PIXELS[..., None])
    assert bits == pytest.approx(-log_p.mean().item() / math.log(2), rel=1e-5)
