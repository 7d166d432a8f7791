"""Counting tables of pixels, against counting by hand."""

import math

import pytest
import torch

from tformer_book.image_gpt.models.pixel_tables import ABOVE, ABOVE_LEFT, ABOVE_RIGHT, LEFT, PixelTable


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
