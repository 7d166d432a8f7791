"""Pixels as tokens: grey values rounded to a few levels, in the order in which one reads."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def quantise(images: Float[Tensor, "B 1 height width"], levels: int) -> Int[Tensor, "B N"]:
    """token_n = min(floor(levels * grey_n), levels - 1): N = height * width tokens, of which 0 is black.

    The interval from 0 to 1 is cut into `levels` equal pieces, and a pixel becomes the number of its piece.
    Pixels come in raster order: the top row from left to right, then the row below it.

    Raises:
        ValueError: if there are fewer than two levels, or a grey value lies outside [0, 1].
    """
    check_levels(levels)
    if not bool(((images >= 0) & (images <= 1)).all()):  # also where a value is no number
        raise ValueError("grey values lie in [0, 1], and these do not")
    return (images * levels).floor().clamp(max=levels - 1).long().flatten(1)


def dequantise(
    tokens: Int[Tensor, "B N"], levels: int, height: int, width: int
) -> Float[Tensor, "B 1 height width"]:
    """grey = (token + 1/2) / levels, the middle of the token's piece: the image to look at.

    No grey value is then further than 1 / (2 levels) from what it was, and to quantise it again gives the
    same token.

    Raises:
        ValueError: if there are fewer than two levels, a token is none of them, or N is not height * width.
    """
    check_levels(levels)
    if tokens.shape[1] != height * width:
        raise ValueError(
            f"an image of {height} x {width} has {height * width} pixels, got {tokens.shape[1]} tokens"
        )
    if not bool(((tokens >= 0) & (tokens < levels)).all()):
        raise ValueError(f"grey levels are tokens from 0 to {levels - 1}, and these are not all of them")
    return ((tokens + 0.5) / levels).view(-1, 1, height, width)


def with_start(tokens: Int[Tensor, "B N"], levels: int) -> Int[Tensor, "B M"]:
    """Each row behind one more token, number `levels`: something to read before the first pixel; M = N + 1.

    Raises:
        ValueError: if there are fewer than two levels.
    """
    check_levels(levels)
    return torch.nn.functional.pad(tokens, (1, 0), value=levels)


def check_levels(levels: int) -> None:
    """Raise a ValueError unless there are two levels or more."""
    if levels < 2:
        raise ValueError(f"there are at least two grey levels, got {levels}")
