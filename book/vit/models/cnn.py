"""A small convolutional network: what a vision transformer is measured against."""

from jaxtyping import Float
from torch import Tensor, nn


class SmallCNN(nn.Module):
    """Two rounds of convolution, ReLU and pooling, then one linear layer: (B, C, H, W) -> (B, classes).

    A convolution of 3 x 3 sees only neighbours and treats all places alike; pooling by 2 x 2 forgets by how
    little a stroke was shifted. In the manner of LeNet (LeCun et al. 1998), with the activations of today.

    Args:
        classes: the number of answers.
        channels: the numbers of a pixel.
        width: the channels after the first round; after the second there are twice as many.
            `tformer_lib.training.width_for_budget` finds the width for a number of parameters.
        image_size: the side of the images, a multiple of 4.

    Raises:
        ValueError: if two rounds of pooling do not divide `image_size`.
    """

    def __init__(self, classes: int, *, channels: int = 1, width: int = 32, image_size: int = 28):
        super().__init__()
        if image_size < 4 or image_size % 4:
            raise ValueError(f"image_size must be a multiple of 4, got {image_size}")
        self.conv_1 = nn.Conv2d(channels, width, kernel_size=3, padding=1)
        self.conv_2 = nn.Conv2d(width, 2 * width, kernel_size=3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(2 * width * (image_size // 4) ** 2, classes)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B classes"]:
        x = self.pool(self.conv_1(images).relu())
        x = self.pool(self.conv_2(x).relu())
        return self.head(x.flatten(1))
