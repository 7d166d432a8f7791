"""Two photographs, and windows cut from them in which a digit hides."""

from functools import cache

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from tformer_book.kit.data.mnist import Split, digits

TRAINED = 0.6  # the share of a photograph's columns, from the left, that windows to train on are cut from


@cache
def photographs() -> dict[str, Float[Tensor, "3 427 640"]]:
    """The two photographs that scikit-learn brings with it, in [0, 1]: "china", a temple, and "flower".

    Both come from Flickr (users danielbuechele and vultilion) under the licence CC BY 2.0; scikit-learn's
    `datasets/images/README.txt` names the pages.
    """
    from sklearn.datasets import load_sample_image  # type: ignore[import-untyped]

    return {
        name: torch.from_numpy(np.array(load_sample_image(f"{name}.jpg"))).permute(2, 0, 1).float() / 255
        for name in ("china", "flower")
    }


def hidden_digits(
    split: Split, n: int, *, rows: int = 4, columns: int = 4, patch: int = 16, seed: int = 0
) -> tuple[Float[Tensor, "N 3 H W"], Int[Tensor, " N"], Int[Tensor, " N"]]:
    """Windows of the photographs with a digit in one of their patches: images, labels, and the digit's patch.

    A window is rows x columns patches large and is cut anywhere in the photograph; the 8 x 8 digit of
    `digits`, doubled in size until it fits, brightens its patch and covers it exactly. Windows to train on
    come from the left 60% of the photographs and those to test on from the rest, digits from the two
    halves of `digits`: no pixel is in both.

    Args:
        split: "train" or "test".
        n: how many.
        rows: of patches.
        columns: of patches.
        patch: the side of a patch, a multiple of 8.
        seed: of the draw.

    Raises:
        ValueError: if the split is neither, `patch` is no multiple of 8, a window does not fit, or `n`,
            `rows` or `columns` is below 1.
    """
    small, labels = digits(split)
    if patch < 8 or patch % 8:
        raise ValueError(f"a digit of 8 x 8 fills patches of a multiple of 8, got {patch}")
    if min(n, rows, columns) < 1:
        raise ValueError(f"n, rows and columns must be at least 1, got {n}, {rows} and {columns}")
    height, width = rows * patch, columns * patch
    generator = torch.Generator().manual_seed(seed)
    photos = torch.stack(list(photographs().values()))
    border = int(TRAINED * photos.shape[-1])
    photos = photos[..., :border] if split == "train" else photos[..., border:]
    if height > photos.shape[-2] or width > photos.shape[-1]:
        raise ValueError(
            f"a window of {height} x {width} does not fit in {photos.shape[-2]} x {photos.shape[-1]}"
        )

    def draw(below: int) -> Tensor:
        return torch.randint(below, (n,), generator=generator)

    photo, top = draw(len(photos)), draw(photos.shape[-2] - height + 1)
    left, chosen, place = draw(photos.shape[-1] - width + 1), draw(len(labels)), draw(rows * columns)
    images = torch.stack(
        [
            photos[p, :, t : t + height, s : s + width]
            for p, t, s in zip(photo.tolist(), top.tolist(), left.tolist(), strict=True)
        ]
    )
    large = small.repeat_interleave(patch // 8, dim=2).repeat_interleave(patch // 8, dim=3)
    for image, digit, at in zip(images, chosen.tolist(), place.tolist(), strict=True):
        row, column = at // columns * patch, at % columns * patch
        window = image[:, row : row + patch, column : column + patch]
        window.copy_(window.maximum(large[digit]))
    return images, labels[chosen], place
