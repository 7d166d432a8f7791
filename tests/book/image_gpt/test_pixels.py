"""Attention by distance on the image, against loops."""

import math

import pytest
import torch

from tformer_book.image_gpt.pixels import attention_by_offset

HEIGHT, WIDTH = 3, 4


def test_against_loops():
    n = HEIGHT * WIDTH
    scores = torch.randn(2, 3, n, n, generator=torch.Generator().manual_seed(0))
    weights = scores.masked_fill(~torch.ones(n, n).tril().bool(), -math.inf).softmax(dim=-1)
    shares, chance = attention_by_offset(weights, HEIGHT, WIDTH)
    assert shares.shape == (3, HEIGHT, 2 * WIDTH - 1)
    for r in range(HEIGHT):
        for c in range(-WIDTH + 1, WIDTH):
            found, equal = [], []
            for y in range(HEIGHT):
                for x in range(WIDTH):
                    pixel, other = y * WIDTH + x, (y - r) * WIDTH + x + c
                    if y - r < 0 or not 0 <= x + c < WIDTH or other >= pixel:
                        continue
                    found.append(weights[:, 1, pixel, other + 1].mean())  # behind the start token
                    equal.append(1 / (pixel + 1))
            if found:
                torch.testing.assert_close(shares[1, r, c + WIDTH - 1], torch.stack(found).mean())
                assert chance[r, c + WIDTH - 1].item() == pytest.approx(sum(equal) / len(equal))
            else:
                assert shares[1, r, c + WIDTH - 1].isnan()


def test_a_head_that_reads_its_own_place_looks_left():
    n = HEIGHT * WIDTH
    shares, _ = attention_by_offset(torch.eye(n).expand(1, 1, n, n), HEIGHT, WIDTH)
    assert shares[0, 0, WIDTH - 2] == 1
    assert shares[0, 1, WIDTH - 1] == 0


def test_another_size():
    with pytest.raises(ValueError, match="3 x 4 are read as 12 tokens, got 11"):
        attention_by_offset(torch.eye(11).expand(1, 1, 11, 11), HEIGHT, WIDTH)


def test_with_a_margin_near_steps_are_means_over_the_same_pixels():
    n = HEIGHT * WIDTH
    weights = torch.rand(1, 1, n, n, generator=torch.Generator().manual_seed(0))
    shares, chance = attention_by_offset(weights, HEIGHT, WIDTH, margin=1)
    inside = [y * WIDTH + x for y in (1, 2) for x in (1, 2)]
    for (up, right), back in {(0, -1): 1, (1, 0): WIDTH, (1, -1): WIDTH + 1, (1, 1): WIDTH - 1}.items():
        expected = torch.stack([weights[0, 0, i, i - back + 1] for i in inside]).mean()
        torch.testing.assert_close(shares[0, up, right + WIDTH - 1], expected)
        assert chance[up, right + WIDTH - 1].item() == pytest.approx(sum(1 / (i + 1) for i in inside) / 4)


@pytest.mark.parametrize("margin", [-1, 2, 3])
def test_a_margin_that_leaves_no_pixel(margin):
    n = HEIGHT * WIDTH
    with pytest.raises(ValueError, match="no pixel"):
        attention_by_offset(torch.eye(n).expand(1, 1, n, n), HEIGHT, WIDTH, margin=margin)
