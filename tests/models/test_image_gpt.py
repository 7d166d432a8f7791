"""What is measured of ImageGPT, against the loss written out; counting tables, against counting by hand."""

import math

import pytest
import torch

from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.data.grey_levels import with_start
from tformer_lib.models.gpt import GPT
from tformer_lib.models.image_gpt import bits_per_pixel, choose_penalty, layer_means, linear_probe
from tformer_lib.models.pixel_tables import ABOVE, ABOVE_LEFT, ABOVE_RIGHT, LEFT, PixelTable

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


def test_a_probe_finds_what_a_line_separates_and_nothing_in_noise():
    generator = torch.Generator().manual_seed(0)
    x, noise = (torch.randn(400, 5, generator=generator) for _ in range(2))
    labels = (x[:, 0] + x[:, 1] > 0).long()
    assert linear_probe(x[:300], labels[:300], x[300:], labels[300:]) > 0.93
    assert 0.3 < linear_probe(noise[:300], labels[:300], noise[300:], labels[300:]) < 0.7
    constant = torch.cat([x, torch.ones(400, 1)], dim=1)  # a feature that never changes
    assert linear_probe(constant[:300], labels[:300], constant[300:], labels[300:]) > 0.93


def test_a_noisy_problem_gets_a_smaller_penalty_constant():
    generator = torch.Generator().manual_seed(0)
    x, step = torch.randn(300, 40, generator=generator), 0.2 * torch.randn(300, generator=generator)
    clean = torch.stack([x[:, 0], x[:, 0] + step], dim=1)  # told apart by a small difference
    noise = torch.randn(300, generator=generator)
    noisy_labels = (x[:, 0] + 3 * noise > 0).long()
    assert choose_penalty(x, noisy_labels) < choose_penalty(clean, (step > 0).long())


def test_a_table_by_hand():
    images = torch.tensor([[0, 1, 1, 1], [0, 0, 1, 1]])  # 2 x 2
    table = PixelTable(2, 2, 2, [LEFT], smoothing=1).fit(images)
    # at the left edge 0 twice and 1 twice; after 0 once 0 and once 1; after 1 twice 1
    p = table.log_probabilities(torch.tensor([[1, 1, 0, 1]])).exp()
    torch.testing.assert_close(p, torch.tensor([[1 / 2, 3 / 4, 1 / 2, 1 / 2]]))
    assert table.bits_per_pixel(torch.tensor([[1, 1, 0, 1]])) == pytest.approx((3 + math.log2(4 / 3)) / 4)


@pytest.mark.parametrize("by_place", [False, True])
@pytest.mark.parametrize("neighbours", [[], [LEFT], [ABOVE], [LEFT, ABOVE, ABOVE_LEFT, ABOVE_RIGHT]])
def test_tables_against_loops(neighbours, by_place):
    train = torch.randint(3, (20, 12), generator=torch.Generator().manual_seed(1))
    new = torch.randint(3, (3, 12), generator=torch.Generator().manual_seed(2))

    def context(image, y, x):
        grid = image.view(3, 4)
        inside = [0 <= y + d < 3 and 0 <= x + r < 4 for d, r in neighbours]
        read = [int(grid[y + d, x + r]) if i else -1 for (d, r), i in zip(neighbours, inside, strict=True)]
        return (*read, (y, x) if by_place else None)

    counts = {}
    for image in train:
        for y in range(3):
            for x in range(4):
                row = counts.setdefault(context(image, y, x), [0.5] * 3)
                row[image.view(3, 4)[y, x]] += 1
    expected = []
    for image in new:
        for y in range(3):
            for x in range(4):
                row = counts.get(context(image, y, x), [0.5] * 3)
                expected.append(math.log(row[image.view(3, 4)[y, x]] / sum(row)))
    table = PixelTable(3, 3, 4, neighbours, by_place=by_place).fit(train[:9]).fit(train[9:])
    torch.testing.assert_close(table.log_probabilities(new).flatten(), torch.tensor(expected))


@pytest.mark.parametrize("step", [(0, 0), (0, 1), (1, -1)])
def test_a_table_does_not_read_the_future(step):
    with pytest.raises(ValueError, match="before the pixel in raster order"):
        PixelTable(2, 2, 2, [step])


@pytest.mark.parametrize("step", [(-2, 0), (-1, 2), (0, -2), (-1, -20)])
def test_a_neighbour_lies_on_some_image(step):
    with pytest.raises(ValueError, match="on images of 2 x 2 there is no neighbour"):
        PixelTable(2, 2, 2, [step])


def test_a_table_takes_only_levels_of_its_images():
    table = PixelTable(3, 2, 3, [LEFT])
    for tokens in (torch.zeros(2, 7).long(), torch.zeros(6, 3).long()):
        with pytest.raises(ValueError, match=r"height \* width = 2 \* 3 tokens"):
            table.fit(tokens)
    for wrong in (3, -1):
        tokens = torch.tensor([[0, 1, 2, wrong, 0, 0]])
        for method in (table.fit, table.log_probabilities):
            with pytest.raises(ValueError, match="levels are 0 to 2"):
                method(tokens)
    assert table.counts.sum() == 0


def test_table_errors():
    with pytest.raises(ValueError, match="smoothing"):
        PixelTable(2, 2, 2, smoothing=0)
