"""Layer means are the residual stream, averaged."""

import torch

from tformer_book.image_gpt.grey_levels import with_start
from tformer_book.image_gpt.layer_means import layer_means
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.gpt import GPT

LEVELS = 3
PIXELS = torch.randint(LEVELS, (7, 6), generator=torch.Generator().manual_seed(0))
ROWS = with_start(PIXELS, LEVELS)


def model():
    torch.manual_seed(0)
    config = TransformerConfig(d_model=8, n_heads=2, n_blocks=2, dropout=0.5)
    return GPT(config, LEVELS + 1, positions=LearnedPositions(6, 8))


def test_layer_means_are_the_residual_stream():
    gpt = model()
    means = layer_means(gpt, ROWS, batch=3)
    gpt.eval()
    x = gpt.positions(gpt.embed(ROWS[:, :-1]))
    mask = torch.ones(6, 6).tril().bool()
    torch.testing.assert_close(means[0], x.mean(dim=1))
    for block, mean in zip(gpt.transformer.blocks, means[1:], strict=True):
        x = block(x, mask=mask)
        torch.testing.assert_close(mean, x.mean(dim=1))
    assert not any(block._forward_hooks or block._forward_pre_hooks for block in gpt.transformer.blocks)
