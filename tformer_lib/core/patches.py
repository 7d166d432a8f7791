"""Images as tokens: patches, and the image again."""

from jaxtyping import Float
from torch import Tensor

from tformer_lib.inputs import check_patches


def to_patches(images: Float[Tensor, "B C H W"], size: int) -> Float[Tensor, "B N P"]:
    """Cuts images into N = (H / size) (W / size) squares, each a row of P = C * size * size numbers.

    Patches come in reading order, row by row; within one come its channels, and in each its pixels, row by
    row. This is `torch.nn.functional.unfold` with stride `size`, transposed, and no more than a view and
    a permutation (Dosovitskiy et al. 2021).

    Raises:
        ValueError: if `size` does not divide height and width.
    """
    batch, channels, height, width = images.shape
    rows, columns = patch_grid(height, width, size)
    grid = images.reshape(batch, channels, rows, size, columns, size)
    return grid.permute(0, 2, 4, 1, 3, 5).reshape(batch, rows * columns, channels * size * size)


def from_patches(
    patches: Float[Tensor, "B N P"], size: int, height: int, width: int
) -> Float[Tensor, "B C H W"]:
    """The images that `to_patches` cut up: its exact inverse.

    Raises:
        ValueError: if patches of this size, number and width do not make an image of `height` x `width`.
    """
    batch, n, numbers = patches.shape
    rows, columns = patch_grid(height, width, size)
    check_patches(n, numbers, (rows, columns), size)
    channels = numbers // (size * size)
    grid = patches.reshape(batch, rows, columns, channels, size, size)
    return grid.permute(0, 3, 1, 4, 2, 5).reshape(batch, channels, height, width)


def patch_grid(height: int, width: int, size: int) -> tuple[int, int]:
    """How many rows and columns of patches tile an image.

    Raises:
        ValueError: if they do not tile it.
    """
    if size < 1 or height < 1 or width < 1 or height % size or width % size:
        raise ValueError(f"patches of {size} do not tile an image of {height} x {width}")
    return height // size, width // size
