"""Photographs, and the digits hidden in windows of them: where they should be, in no part of both splits."""

import pytest
import torch

from tformer_book.kit.data.mnist import digits
from tformer_book.vit.data.photographs import TRAINED, hidden_digits, photographs
from tformer_lib.core.patches import to_patches


def test_there_are_two_photographs():
    photos = photographs()
    assert list(photos) == ["china", "flower"]
    for photo in photos.values():
        assert photo.shape == (3, 427, 640)
        assert 0 <= photo.min() < 0.05
        assert 0.95 < photo.max() <= 1


@pytest.mark.parametrize(("split", "patch"), [("train", 16), ("test", 16), ("test", 8)])
def test_one_patch_holds_the_digit_and_all_else_is_the_photograph(split, patch):
    images, labels, places = hidden_digits(split, 12, rows=3, columns=4, patch=patch)
    assert images.shape == (12, 3, 3 * patch, 4 * patch)
    small, of = digits(split)
    patches = to_patches(images, patch).reshape(12, 12, 3, patch, patch)
    border = int(TRAINED * 640)
    columns = slice(border) if split == "train" else slice(border, None)
    photos = [photo[..., columns] for photo in photographs().values()]
    for image, label, place, cut in zip(images, labels, places, patches, strict=True):
        held = cut[place].amin(dim=0)[
            patch // 16 :: patch // 8, patch // 16 :: patch // 8
        ]  # one pixel in each square
        assert any((held >= digit[0]).all() for digit in small[of == label])
        outside = torch.ones(3 * patch, 4 * patch, dtype=torch.bool)
        row, column = divmod(int(place), 4)
        outside[row * patch : (row + 1) * patch, column * patch : (column + 1) * patch] = False
        corner = (0, 0) if place else (-1, -1)  # a pixel of the photograph, to find the window by
        found = False
        for photo in photos:
            windows = photo.unfold(1, 3 * patch, 1).unfold(2, 4 * patch, 1)
            same = (windows[..., corner[0], corner[1]] == image[:, corner[0], corner[1], None, None]).all(0)
            for top, left in same.nonzero().tolist():
                window = photo[:, top : top + 3 * patch, left : left + 4 * patch]
                found |= bool((window == image)[:, outside].all() and (window <= image).all())
        assert found


def test_draws_are_repeatable_and_differ_by_seed():
    first, again, other = (hidden_digits("train", 5, seed=seed) for seed in (3, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], other[0])
    assert photographs()["china"].equal(photographs()["china"])


def test_labels_and_places_are_spread():
    _, labels, places = hidden_digits("train", 600)
    assert labels.bincount(minlength=10).min() > 30
    assert places.bincount(minlength=16).min() > 15


def test_the_photographs_are_not_drawn_on():
    before = {name: photo.clone() for name, photo in photographs().items()}
    hidden_digits("train", 20)
    assert all(torch.equal(before[name], photo) for name, photo in photographs().items())


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"patch": 12}, "a multiple of 8, got 12"),
        ({"patch": 0}, "a multiple of 8, got 0"),
        ({"columns": 17}, "a window of 64 x 272 does not fit in 427 x 256"),
        ({"rows": 27}, "a window of 432 x 64 does not fit"),
        ({"n": 0}, "at least 1, got 0, 4 and 4"),
        ({"rows": -1}, "at least 1, got 1, -1 and 4"),
    ],
)
def test_windows_that_cannot_be_are_errors(sizes, said):
    with pytest.raises(ValueError, match=said):
        hidden_digits("test", **{"n": 1, **sizes})
