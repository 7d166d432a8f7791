"""What counting knows about the next pixel where a table of many neighbours leans on those of fewer."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from tformer_book.image_gpt.models.pixel_tables import PixelTable


def backed_off_bits(tables: Sequence[PixelTable], tokens: Int[Tensor, "B N"], strength: float = 4.0) -> float:
    """Mean of -log2 p_K, where p_k = (c_k(context, x) + s p_{k-1}) / (c_k(context) + s) and p_0 = 1 / L.

    Each table adds s counts, spread as the table before it says, so that a context that was never seen costs
    what the smaller one costs. The tables' own smoothing is not used.

    Args:
        tables: counted on training images, from the coarsest to the finest.
        tokens: the images that are asked.
        strength: s, how many counts the table before is worth.

    Raises:
        ValueError: without a table, for tables of different levels, or if the strength is not positive.
    """
    if not tables or len({table.levels for table in tables}) != 1:
        raise ValueError("backing off needs one table or more, all of the same levels")
    if strength <= 0:
        raise ValueError(f"strength is a number of counts above 0, got {strength}")
    p = torch.full(tokens.shape, 1 / tables[0].levels)
    for table in tables:
        rows = table.contexts(tokens)
        p = (table.counts[rows, tokens] + strength * p) / (table.counts.sum(dim=1)[rows] + strength)
    return -p.log().mean().item() / math.log(2)
