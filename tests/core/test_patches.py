"""Patches against unfold, a loop over squares, and their own inverse."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from tformer_lib.core import patches
from tformer_lib.core.patches import from_patches, patch_grid, to_patches


@given(
    batch=st.integers(1, 3),
    channels=st.integers(1, 3),
    rows=st.integers(1, 4),
    columns=st.integers(1, 4),
    size=st.integers(1, 4),
)
def test_patches_are_unfold_and_come_back(batch, channels, rows, columns, size):
    images = torch.randn(batch, channels, rows * size, columns * size)
    patches = to_patches(images, size)
    assert torch.equal(patches, F.unfold(images, size, stride=size).transpose(1, 2))
    assert torch.equal(from_patches(patches, size, rows * size, columns * size), images)


def test_patches_are_the_loop_over_squares():
    images = torch.arange(2 * 3 * 4 * 6.0).reshape(2, 3, 4, 6)
    patches = to_patches(images, 2)
    assert patches.shape == (2, 6, 12)
    for n in range(6):
        row, column = n // 3 * 2, n % 3 * 2
        assert torch.equal(patches[:, n], images[:, :, row : row + 2, column : column + 2].flatten(1))


@pytest.mark.parametrize("size", [0, 3, 4, 12])
def test_a_size_that_does_not_divide_is_an_error(size):
    with pytest.raises(ValueError, match=f"patches of {size} do not tile an image of 4 x 6"):
        to_patches(torch.zeros(1, 1, 4, 6), size)
    with pytest.raises(ValueError, match=f"patches of {size} do not tile an image of 4 x 6"):
        from_patches(torch.zeros(1, 6, 4), size, 4, 6)


@pytest.mark.parametrize("shape", [(1, 5, 4), (1, 6, 5)])
def test_patches_that_make_no_such_image_are_an_error(shape):
    with pytest.raises(ValueError, match="6 rows of a multiple of 4 numbers, got"):
        from_patches(torch.zeros(shape), 2, 4, 6)


def test_the_grid_counts_rows_and_columns():
    assert patch_grid(4, 6, 2) == (2, 3)
    for height, width, size in ((4, 6, 4), (4, 6, 0), (0, 6, 2), (4, -6, 2)):
        with pytest.raises(ValueError, match=f"patches of {size} do not tile an image of {height} x {width}"):
            patch_grid(height, width, size)


def test_the_data_and_the_core_have_one_function():
    assert to_patches is patches.to_patches
    assert from_patches is patches.from_patches
