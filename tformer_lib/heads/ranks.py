"""Whether two rows of numbers stand in the same order."""

import math

import torch
from jaxtyping import Bool, Float
from scipy.stats import kendalltau  # type: ignore[import-untyped]
from torch import Tensor


def kendall_tau(
    a: Float[Tensor, "B N"], b: Float[Tensor, "B N"], asked: Bool[Tensor, "B N"]
) -> Float[Tensor, "B"]:
    """(concordant - discordant) / pairs, row by row, over the entries asked: 1 same order, -1 reversed.

    Ties are counted as in Kendall's tau-b. A row with fewer than two different values has no tau: NaN.
    """
    taus = [
        kendalltau(x[k].cpu(), y[k].cpu()).statistic if k.sum() > 1 else math.nan
        for x, y, k in zip(a, b, asked, strict=True)
    ]
    return torch.tensor(taus, dtype=torch.float32)
