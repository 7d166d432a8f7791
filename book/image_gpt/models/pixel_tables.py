"""What counting knows about the next pixel: tables of grey levels, by place and by the pixels around."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

LEFT, ABOVE, ABOVE_LEFT, ABOVE_RIGHT = (0, -1), (-1, 0), (-1, -1), (-1, 1)


class PixelTable:
    """p(x_n | its neighbours) = (c(neighbours, x_n) + a) / (c(neighbours) + a L), counted on images.

    Neighbours are pixels that come before x_n in raster order, and beyond the edge of the image stands a
    level of its own. Without neighbours this is the histogram of all pixels, and by place that of each.

    Args:
        levels: the number L of grey levels.
        height: of the images.
        width: of the images.
        neighbours: steps (down, right) from a pixel to those that are read, such as `LEFT` = (0, -1).
        by_place: whether each pixel of the image has a table of its own.
        smoothing: a, which is added to every count.

    Raises:
        ValueError: if a neighbour does not come before the pixel or lies beyond every image, or an
            argument is not positive; and from each method, if tokens are not levels of such images.
    """

    def __init__(
        self,
        levels: int,
        height: int,
        width: int,
        neighbours: Sequence[tuple[int, int]] = (),
        *,
        by_place: bool = False,
        smoothing: float | int = 0.5,
    ):
        if min(levels, height, width) < 1 or smoothing <= 0:
            raise ValueError(f"levels, height, width, smoothing: {levels, height, width, smoothing}")
        for step in neighbours:
            if step >= (0, 0):
                raise ValueError(f"a neighbour comes before the pixel in raster order, {step} does not")
            if -step[0] >= height or abs(step[1]) >= width:
                raise ValueError(f"on images of {height} x {width} there is no neighbour at {step}")
        self.levels, self.height, self.width = levels, height, width
        self.neighbours, self.by_place, self.smoothing = tuple(neighbours), by_place, smoothing
        contexts = (levels + 1) ** len(self.neighbours) * (height * width if by_place else 1)
        self.counts = torch.zeros(contexts, levels)

    def contexts(self, tokens: Int[Tensor, "B N"]) -> Int[Tensor, "B N"]:
        """The row of the table that speaks for each pixel."""
        if tokens.shape[1] != self.height * self.width:
            size = f"height * width = {self.height} * {self.width}"
            raise ValueError(f"an image has N = {size} tokens, got {tokens.shape[1]}")
        if not bool(((tokens >= 0) & (tokens < self.levels)).all()):
            raise ValueError(f"levels are 0 to {self.levels - 1}, and these tokens are not all of them")
        images = tokens.reshape(-1, self.height, self.width)
        reach = max([0, *(max(-down, abs(right)) for down, right in self.neighbours)])
        padded = torch.nn.functional.pad(images, (reach, reach, reach, 0), value=self.levels)
        row = torch.zeros_like(images)
        for down, right in self.neighbours:
            lines = padded[:, reach + down : reach + down + self.height]
            row = row * (self.levels + 1) + lines[:, :, reach + right : reach + right + self.width]
        row = row.flatten(1)
        if self.by_place:
            row = row * (self.height * self.width) + torch.arange(row.shape[1])
        return row

    def fit(self, tokens: Int[Tensor, "B N"]) -> "PixelTable":
        """Counts these images, and returns the table itself."""
        pairs = (self.contexts(tokens) * self.levels + tokens).flatten()
        self.counts += torch.bincount(pairs, minlength=self.counts.numel()).view_as(self.counts)
        return self

    def log_probabilities(self, tokens: Int[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        """log p of each pixel, in nats, given its neighbours."""
        smoothed = self.counts + self.smoothing
        p = smoothed / smoothed.sum(dim=1, keepdim=True)
        return p[self.contexts(tokens), tokens].log()

    def bits_per_pixel(self, tokens: Int[Tensor, "B N"]) -> float:
        """Mean of -log2 p over all pixels of these images."""
        return -self.log_probabilities(tokens).mean().item() / math.log(2)
