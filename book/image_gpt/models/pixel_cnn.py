"""Masked convolutions on grey levels: what a GPT of pixels is measured against."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import conv2d, one_hot


class Masked(nn.Conv2d):
    """A convolution that sees the rows above and the pixels to the left, and the pixel itself if `own`."""

    mask: Tensor

    def __init__(self, channels: int, width: int, size: int, *, own: bool):
        super().__init__(channels, width, size, padding=size // 2)
        mask, middle = torch.zeros(size, size), size // 2
        mask[:middle], mask[middle, : middle + own] = 1, 1
        self.register_buffer("mask", mask)

    def forward(self, x: Float[Tensor, "B channels h w"]) -> Float[Tensor, "B width h w"]:
        return conv2d(x, self.weight * self.mask, self.bias, padding=self.padding)


class PixelCNN(nn.Module):
    """Logits of each pixel from the pixels before it: (B, N) -> (B, levels, N), N = side^2.

    In the manner of van den Oord et al. (2016), much smaller: a first convolution that does not see its own
    pixel, then residual ones that do, since what stands there by now is made of earlier pixels alone.
    """

    def __init__(self, levels: int, side: int, *, width: int = 48, layers: int = 3):
        super().__init__()
        self.levels, self.side = levels, side
        self.first = Masked(levels + 1, width, 5, own=False)
        self.rest = nn.ModuleList(Masked(width, width, 3, own=True) for _ in range(layers))
        self.last = nn.Conv2d(width, levels, 1)

    def forward(self, tokens: Int[Tensor, "B N"]) -> Float[Tensor, "B levels N"]:
        x = one_hot(tokens, self.levels).float().mT.unflatten(2, (self.side, self.side))
        x = torch.cat([x, torch.ones_like(x[:, :1])], dim=1)  # 1 on the image, 0 beyond its edge
        x = self.first(x).relu()
        for layer in self.rest:
            x = x + layer(x).relu()
        return self.last(x).flatten(2)
