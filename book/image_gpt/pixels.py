"""Where a model of pixels looks: attention by distance on the image, not in the sequence."""

import torch
from jaxtyping import Float
from torch import Tensor


def attention_by_offset(
    weights: Float[Tensor, "B H N N"], height: int, width: int, *, margin: int = 0
) -> tuple[Float[Tensor, "H rows columns"], Float[Tensor, "rows columns"]]:
    """The mean weight on the pixel `r` rows above and `c` columns right of the one that is predicted.

    The model read a start token and all pixels but the last, so that key s holds pixel s - 1, and the query
    at n, counted from 0, predicts pixel n. The pixel to its left is the one that the query holds itself.
    Entry [r, c + width - 1] is a mean over those pixels whose neighbour at this step is on the image; where
    there is none, it is not a number. Weights on the start token are left out of the map, and that it may be
    read as well is part of the chance.

    With a margin only pixels at least so far from the top and from both sides are asked. All steps up to
    that length are then means over the same pixels; without it each step has pixels of its own, and the first
    row, which has a pixel to the left and none above, counts for one step and not for the other.

    Args:
        weights: of one layer, as `record_attention` gives them.
        height: of the images; N = height * width.
        width: of the images.
        margin: rows below the top and columns from the sides at which the pixels begin that are asked.

    Returns:
        The weights by head, and beside them what equal weights on all that may be read would give.

    Raises:
        ValueError: if N is not height * width, or no pixel is so far from the edges.
    """
    n = height * width
    if weights.shape[-1] != n:
        raise ValueError(f"images of {height} x {width} are read as {n} tokens, got {weights.shape[-1]}")
    if not 0 <= margin < min(height, (width + 1) // 2):
        raise ValueError(f"images of {height} x {width} have no pixel {margin} from the edges")
    place = torch.arange(n)
    asked, read = place[:, None], (place - 1)[None, :]
    column = asked % width
    inside = (asked // width >= margin) & (column >= margin) & (column < width - margin)
    seen = (read >= 0) & (read < asked) & inside
    above = (asked // width - read // width)[seen]
    right = (read % width - asked % width)[seen]
    cell = above * (2 * width - 1) + right + width - 1
    size = height * (2 * width - 1)
    times = torch.zeros(size).index_add_(0, cell, torch.ones(len(cell)))

    def mean_by_cell(values: Float[Tensor, "K N N"]) -> Float[Tensor, "K rows columns"]:
        sums = torch.zeros(len(values), size).index_add_(1, cell, values[:, seen])
        return (sums / times).view(-1, height, 2 * width - 1)

    equal = torch.ones(n, n).tril()
    return mean_by_cell(weights.mean(dim=0)), mean_by_cell((equal / equal.sum(1, keepdim=True))[None])[0]
