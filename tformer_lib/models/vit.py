"""The vision transformer: patches for tokens, the encoder as it is, and a linear layer on one vector."""

import copy
from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tformer_lib.core.attention import Backend
from tformer_lib.core.patches import patch_grid, to_patches
from tformer_lib.core.positions import LearnedPositions, Rotary2D
from tformer_lib.core.tokens import cross_entropy
from tformer_lib.core.transformer import Transformer, TransformerConfig
from tformer_lib.inputs import check_real
from tformer_lib.numbers import one_of, whole

Pool = Literal["class", "mean"]


class ViT(nn.Module):
    """logits = W h_0 + b, with h = Transformer([c, E x_1 + e, ..., E x_N + e] + P).

    (B, C, H, W) -> (B, classes). x_n are the numbers of patch n, c is the class token, and h_0 the output in
    its place; with `pool="mean"` there is no c, and the mean of h_1 ... h_N is read instead. Nothing but E, P
    and the order of `to_patches` knows that the tokens came from an image.

    Args:
        config: sizes and choices of the stack; the defaults, pre-norm and GELU, are those of the paper.
        image_size: height and width, or one number for both.
        patch_size: the side of a patch; it divides both.
        channels: the numbers of a pixel.
        classes: of the head; without them (None) `forward` returns the vector that a head would read.
        pool: "class" or "mean".
        registers: how many more learned columns stand behind the class token and before the patches. They
            have no place in the image, all tokens can read them, and no head does.
        rotary: turns queries and keys by row and column; there is then no table P, and the model can be
            `resized` without one.
        make_backend: builds a backend for each attention layer; it then carries its own dropout.

    Raises:
        ValueError: if patches do not tile the image, `pool` is unknown, or `rotary` was made for another grid
            or other tokens before it; in forward, if the images are of another size, or have other channels.
        TypeError: in forward, if pixels are no floating-point numbers, as those of uint8 are not.

    Source:
        Dosovitskiy et al. 2021, equations 1 to 4; registers: Darcet et al. 2024; rotary: Heo et al. 2024.
    """

    def __init__(
        self,
        config: TransformerConfig,
        *,
        image_size: int | tuple[int, int],
        patch_size: int,
        channels: int = 1,
        classes: int | None = None,
        pool: Pool = "class",
        registers: int = 0,
        rotary: Rotary2D | None = None,
        make_backend: Callable[[], Backend] | None = None,
    ):
        super().__init__()
        patch_size, channels = whole("patch_size", patch_size), whole("channels", channels, 1)
        classes = None if classes is None else whole("classes", classes, 1)
        registers = whole("registers", registers, 0)
        self.config, self.patch_size, self.channels = config, patch_size, channels
        self.pool = one_of("pool", pool, Pool)
        self.image_size = _pair(image_size)
        n, d = self.grid[0] * self.grid[1], config.d_model
        self.patch_embed = nn.Linear(channels * patch_size * patch_size, d)
        self.class_token = nn.Parameter(torch.zeros(d)) if pool == "class" else None
        self.registers = nn.Parameter(torch.empty(registers, d).normal_(std=0.02)) if registers else None
        self.before = (pool == "class") + registers  # how many tokens stand before the patches
        self._check_rotary(rotary)
        self.positions = LearnedPositions(n + (pool == "class"), d) if rotary is None else None
        self.rotary = rotary
        self.dropout = nn.Dropout(config.dropout)
        self.transformer = Transformer(config, rotary=rotary, make_backend=make_backend)
        self.head = None if classes is None else nn.Linear(d, classes)
        nn.init.xavier_uniform_(self.patch_embed.weight)
        nn.init.zeros_(self.patch_embed.bias)
        if self.head is not None:
            nn.init.zeros_(self.head.weight)
            nn.init.zeros_(self.head.bias)

    def _check_rotary(self, rotary: Rotary2D | None) -> None:
        """Raise what the class says about `rotary`."""
        if rotary is None or (rotary.grid, rotary.before) == (self.grid, self.before):
            return
        raise ValueError(
            f"this model has a grid of {self.grid} behind {self.before} other tokens, and rotary was made "
            f"for {rotary.grid} behind {rotary.before}"
        )

    @property
    def grid(self) -> tuple[int, int]:
        """The rows and columns of patches."""
        return patch_grid(*self.image_size, self.patch_size)

    def features(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B N D"]:
        """The outputs at all places: the class token's, where there is one, the registers', the patches'."""
        if images.shape[1:] != (self.channels, *self.image_size):
            expected = (self.channels, *self.image_size)
            raise ValueError(
                f"this model reads images of (channels, height, width) = {expected}, got "
                f"{tuple(images.shape[1:])}; resized() gives a model for another size"
            )
        check_real("images (pixels / 255)", images, self.patch_embed.weight)
        x = self.patch_embed(to_patches(images, self.patch_size))
        if self.class_token is not None:
            x = torch.cat([self.class_token.expand(len(x), 1, -1), x], dim=1)
        if self.positions is not None:
            x = self.positions(x)
        if self.registers is not None:
            first, registers = int(self.class_token is not None), self.registers.expand(len(x), -1, -1)
            x = torch.cat([x[:, :first], registers, x[:, first:]], dim=1)
        return self.transformer(self.dropout(x))

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B out"]:
        h = self.features(images)
        pooled = h[:, self.before :].mean(dim=1) if self.class_token is None else h[:, 0]
        return pooled if self.head is None else self.head(pooled)

    def resized(self, image_size: int | tuple[int, int]) -> "ViT":
        """A copy for images of another size: its position table is this one's, stretched over the new grid.

        The positions of the patches are interpolated as an image with D channels is (the paper, section 3.2,
        says 2-D interpolation; bicubic as in most libraries); the class token's stays, and so does everything
        else. At the model's own size the copy is exact. With `rotary` there is no table, and rows and columns
        are counted on in the new grid.

        Raises:
            ValueError: if patches do not tile the new size.
        """
        new = copy.deepcopy(self)
        new.image_size = _pair(image_size)
        if new.rotary is not None:
            new.rotary.grid = new.grid  # one module, which all blocks of the copy share
        if new.positions is not None and self.positions is not None and new.grid != self.grid:
            new.positions.table = nn.Parameter(
                resize_positions(self.positions.table.detach(), self.grid, new.grid)
            )
            new.positions.max_len = len(new.positions.table)
        return new


def resize_positions(
    table: Float[Tensor, "N D"], old: tuple[int, int], new: tuple[int, int]
) -> Float[Tensor, "M D"]:
    """Position vectors for a new grid of patches, by bicubic interpolation between those of the old one.

    Rows that the table has beyond the old grid's stand before it, as a class token's does, and are kept.

    Raises:
        ValueError: if the table has fewer rows than the old grid has patches.
    """
    kept = len(table) - old[0] * old[1]
    if kept < 0:
        raise ValueError(f"a grid of {old[0]} x {old[1]} patches needs more than {len(table)} positions")
    if old == new:
        return table.clone()
    grid = table[kept:].T.reshape(1, -1, *old)
    stretched = F.interpolate(grid, size=new, mode="bicubic", align_corners=False)
    return torch.cat([table[:kept], stretched.flatten(2)[0].T])


def image_loss(model: nn.Module, batch: tuple[Tensor, Int[Tensor, " B"]]) -> Float[Tensor, ""]:
    """-mean log p(label), in nats, of a model of images; a batch is (images (B, C, H, W), labels (B,))."""
    images, labels = batch
    return cross_entropy(model(images), labels)


def _pair(size: int | tuple[int, int]) -> tuple[int, int]:
    if isinstance(size, tuple | list) and len(size) == 2:
        return whole("the height", size[0]), whole("the width", size[1])
    return (whole("image_size", size),) * 2
