"""Attention rollout: which inputs an output would rest on, were attention all there is."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor


def attention_rollout(
    weights: Mapping[str, Tensor] | Sequence[Tensor], *, residual: float = 0.5
) -> Float[Tensor, "B N N"]:
    """R = R_M ... R_2 R_1 with R_m = (1 - r) mean over heads of A_m + r I: rows are outputs, and sum to one.

    A token keeps the share r of itself at each block, for the skip connection, and takes the rest from where
    attention points; a product over the blocks follows all the paths. Values, MLPs, and how long the vectors
    are that get added play no part in it, so that it is a reading of the weights, and no proof of what the
    model relies on.

    Source:
        Abnar and Zuidema 2020, section 3.

    Args:
        weights: (B, H, N, N) of each block, from the first to the last, as `record_attention` yields them
            for an encoder.
        residual: r, the share of the skip connection; 0.5 in the paper.

    Raises:
        ValueError: if there are no weights, shapes differ or are not square, or `residual` is no share.
    """
    blocks = list(weights.values()) if isinstance(weights, Mapping) else list(weights)
    if not blocks:
        raise ValueError("there are no weights to roll out")
    if not 0 <= residual <= 1:
        raise ValueError(f"residual is a share, in [0, 1], got {residual}")
    shapes = {tuple(block.shape) for block in blocks}
    if len({(shape[0], *shape[2:]) for shape in shapes}) > 1 or any(
        len(shape) != 4 or shape[-1] != shape[-2] for shape in shapes
    ):
        raise ValueError(f"each block must have weights (B, H, N, N) of one B and N, got {sorted(shapes)}")
    rollout = torch.eye(blocks[0].shape[-1], dtype=blocks[0].dtype, device=blocks[0].device)
    for block in blocks:
        mixed = (1 - residual) * block.mean(dim=1)
        mixed.diagonal(dim1=1, dim2=2).add_(residual)
        rollout = mixed @ rollout
    return rollout
