"""Low-rank attention: S keys and values are summed up in r of them (Wang et al. 2020)."""

import torch
from torch import Tensor, nn

from tformer_lib.core.attention import Backend, attention
from tformer_lib.core.precision import as_given, precise
from tformer_lib.efficient.key_masks import key_mask


class LowRankAttend(Backend):
    """attention(q, E k, F v) with learned matrices E and F, (r, S): O(N r) time and memory.

    The matrices mix places, and belong to places: there is a longest sequence, and a shorter one uses their
    first columns. Every mixture holds tokens from everywhere, so that nothing can be causal. Keys and values
    of padding are zeroed before they are mixed. All heads of a layer share E and F.

    Args:
        max_len: the longest sequence.
        rank: the number r of mixtures.

    Raises:
        ValueError: if a number is below 1; in forward, if there are more than `max_len` keys, or the mask is
            more than padding.
        TypeError: in forward, if the mask is not boolean.
    """

    def __init__(self, max_len: int, rank: int):
        super().__init__()
        if min(max_len, rank) < 1:
            raise ValueError(f"max_len and rank must be at least 1, got max_len={max_len}, rank={rank}")
        self.max_len, self.rank = max_len, rank
        self.E = nn.Parameter(torch.empty(rank, max_len))
        self.F = nn.Parameter(torch.empty(rank, max_len))
        for matrix in (self.E, self.F):  # a mixture of max_len unit keys is then about of unit size
            nn.init.normal_(matrix, std=max_len**-0.5)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        s = k.shape[-2]
        if s > self.max_len:
            raise ValueError(f"E and F were made for max_len={self.max_len} keys, and there are {s}")
        keys = key_mask(mask, q, k, causal=False, name="LowRankAttend")
        if keys is not None:
            k, v = k * keys.mT, v * keys.mT
        with as_given(q):  # sums over all places, in float32 at least
            keys_met, values_met = (precise(m[:, :s]) @ precise(x) for m, x in ((self.E, k), (self.F, v)))
            return attention(precise(q), keys_met, values_met)[0].to(v.dtype)
