"""Backing off, against loops and at its limits."""

import math

import pytest
import torch

from tformer_book.image_gpt.models.pixel_backoff import backed_off_bits
from tformer_book.image_gpt.models.pixel_tables import ABOVE, LEFT, PixelTable

KNOWN = torch.randint(3, (20, 12), generator=torch.Generator().manual_seed(0))
NEW = torch.randint(3, (5, 12), generator=torch.Generator().manual_seed(1))


def tables():
    return [PixelTable(3, 3, 4, around).fit(KNOWN) for around in ([], [LEFT], [LEFT, ABOVE])]


def at(image, y, x):
    return int(image[y * 4 + x]) if y >= 0 and x >= 0 else None


def test_against_loops():
    reads = [[], [(0, -1)], [(0, -1), (-1, 0)]]
    total = 0.0
    for image in NEW:
        for y in range(3):
            for x in range(4):
                p = 1 / 3
                for steps in reads:
                    context = [at(image, y + dy, x + dx) for dy, dx in steps]
                    counts = [0, 0, 0]
                    for other in KNOWN:
                        for v in range(3):
                            for u in range(4):
                                if [at(other, v + dy, u + dx) for dy, dx in steps] == context:
                                    counts[at(other, v, u)] += 1
                    p = (counts[at(image, y, x)] + 2.0 * p) / (sum(counts) + 2.0)
                total -= math.log2(p)
    assert backed_off_bits(tables(), NEW, strength=2.0) == pytest.approx(total / NEW.numel(), rel=1e-4)


def test_a_table_that_has_counted_nothing_changes_nothing():
    empty = PixelTable(3, 3, 4, [LEFT, ABOVE])
    without, with_it = (backed_off_bits(found, NEW) for found in (tables()[:2], [*tables()[:2], empty]))
    assert with_it == pytest.approx(without)


def test_a_great_strength_is_the_uniform_distribution():
    assert backed_off_bits(tables(), NEW, strength=1e9) == pytest.approx(math.log2(3), abs=1e-4)


def test_bad_input():
    with pytest.raises(ValueError, match="one table or more"):
        backed_off_bits([], NEW)
    with pytest.raises(ValueError, match="same levels"):
        backed_off_bits([tables()[0], PixelTable(4, 3, 4)], NEW)
    with pytest.raises(ValueError, match="above 0"):
        backed_off_bits(tables(), NEW, strength=0.0)
