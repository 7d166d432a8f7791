"""The sliding window: each query sees its neighbours and nobody else (Beltagy et al. 2020)."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool
from torch import Tensor

from tformer_lib.core.attention import Backend
from tformer_lib.efficient.blocks import attend_blocks
from tformer_lib.efficient.key_masks import check_last


class SlidingWindow(Backend):
    """`Attend` under the mask -w < n - s < w, or 0 <= n - s < w if causal, in O(N w) time and memory.

    Cut into blocks of w tokens, a window reaches no further than the neighbouring blocks: N / w blocks of
    queries meet 3 w keys each (2 w if causal), and nothing else is computed. Queries are the last N of the
    S positions, as with a cache; keys that no window reaches are not touched. Fewer than w queries are one
    or two shorter blocks.

    Args:
        window: how many tokens w a causal query sees, itself and the w - 1 before it.
        causal: whether queries look back only; otherwise they see w - 1 tokens on each side.

    Raises:
        ValueError: if the window is empty; in forward, if there are more queries than keys, or shapes do
            not match.
        TypeError: in forward, if the mask is not boolean.
    """

    def __init__(self, window: int, *, causal: bool = False):
        super().__init__()
        if window < 1:
            raise ValueError(f"a window holds at least the token itself, got window={window}")
        self.window, self.causal = window, causal

    def rule(self, n: Tensor, s: Tensor) -> Tensor:
        """Whether a query at place n may see a key at place s."""
        near = (n - s).abs() < self.window
        return near & (s <= n) if self.causal else near

    def pattern(self, n: int) -> Bool[Tensor, "N N"]:
        """The mask under which `Attend` does the same."""
        places = torch.arange(n)
        return self.rule(places[:, None], places)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        check_last(q, k)
        n, s = q.shape[-2], k.shape[-2]
        unseen = max(0, s - n - self.window + 1)  # keys before all windows
        k, v = k[..., unseen:, :], v[..., unseen:, :]
        before = s - unseen - n  # keys before the first query, at most w - 1 of them
        q = F.pad(q, (0, 0, before, 0))
        if mask is not None:
            mask = torch.atleast_2d(mask)
            mask = mask if mask.shape[-1] == 1 else mask[..., unseen:]
            mask = mask if mask.shape[-2] == 1 else F.pad(mask, (0, 0, before, 0))
        block = max(1, min(self.window, n))
        blocks = -(-q.shape[-2] // block)
        reach = max(1, min(-(-(self.window - 1) // block), blocks - 1))  # blocks on one side
        rows = torch.arange(before // block, blocks, device=q.device)  # those that hold a query
        offsets = torch.arange(-reach, 1 if self.causal else reach + 1, device=q.device)
        columns = rows[:, None] + offsets
        y = attend_blocks(q, k, v, mask, block=block, rows=rows, columns=columns, rule=self.rule)
        first = before % block
        return y.flatten(-3, -2)[..., first : first + n, :]
