"""Block-sparse attention: a drawing of the mask, one square a block (Child et al. 2019)."""

import torch
from jaxtyping import Bool
from torch import Tensor

from tformer_lib.core.attention import Backend
from tformer_lib.efficient.blocks import attend_blocks, in_blocks


class BlockSparse(Backend):
    """`Attend` under a mask made of whole blocks, of which only those that are seen are computed.

    A block of queries sees (a) the blocks less than `local` away, its own among them; (b) with a `stride`,
    all of its own stretch of so many blocks, and the last block of every stretch ("fixed" attention in Child
    et al. 2019, section 4.3, in whole blocks): what an end has collected from its stretch in one layer, all
    others may read in the next, so that two layers reach every block; (c) the first `n_global` blocks, which
    in turn see everything unless causal (Beltagy et al. 2020, section 3.1). Self-attention only.

    Args:
        block: the number b of tokens in a block.
        local: how many blocks a query sees on each side, its own included.
        stride: the length of a stretch, in blocks; None for none.
        n_global: the number of global blocks.
        causal: whether queries look back only, in their own block too.

    Raises:
        ValueError: if a number is too small; in forward, if queries and keys differ in number.
        TypeError: in forward, if the mask is not boolean.
    """

    def __init__(
        self,
        block: int,
        *,
        local: int = 1,
        stride: int | None = None,
        n_global: int = 0,
        causal: bool = False,
    ):
        super().__init__()
        if min(block, local, 1 if stride is None else stride) < 1 or n_global < 0:
            raise ValueError(
                "block, local and stride must be at least 1 and n_global at least 0, got "
                f"block={block}, local={local}, stride={stride}, n_global={n_global}"
            )
        self.block, self.local, self.stride, self.n_global = block, local, stride, n_global
        self.causal = causal

    def layout(self, n_blocks: int) -> Bool[Tensor, "C C"]:
        """layout[i, j]: whether block i of the queries sees block j of the keys."""
        j = torch.arange(n_blocks)
        i = j[:, None]
        seen = (i - j).abs() < self.local
        if self.stride is not None:
            seen = seen | (i // self.stride == j // self.stride) | ((j + 1) % self.stride == 0)
        seen = seen | (j < self.n_global) | (i < self.n_global)
        return seen & (j <= i) if self.causal else seen

    def rule(self, n: Tensor, s: Tensor) -> Tensor:
        """Whether, of blocks that meet, a query at place n may see a key at place s."""
        if self.causal:
            return s <= n
        return torch.ones(torch.broadcast_shapes(n.shape, s.shape), dtype=torch.bool, device=n.device)

    def pattern(self, n: int) -> Bool[Tensor, "N N"]:
        """The mask under which `Attend` does the same."""
        layout = self.layout(-(-n // self.block))
        for axis in (0, 1):
            layout = layout.repeat_interleave(self.block, axis)
        places = torch.arange(n)
        return layout[:n, :n] & self.rule(places[:, None], places)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        n = q.shape[-2]
        if n != k.shape[-2]:
            raise ValueError(
                f"BlockSparse is for self-attention without a cache, got {n} queries, {k.shape[-2]} keys"
            )
        layout = self.layout(-(-n // self.block)).to(q.device)
        counts = layout.sum(dim=1)
        rows, outputs = [counts.new_zeros(0)], [in_blocks(v, self.block)[..., :0, :, :]]
        for count in counts.unique().tolist():  # blocks that see equally many are computed together
            rows.append((counts == count).nonzero()[:, 0])
            columns = layout[rows[-1]].nonzero()[:, 1].unflatten(0, (-1, count))
            y = attend_blocks(q, k, v, mask, block=self.block, rows=rows[-1], columns=columns, rule=self.rule)
            outputs.append(y)
        order = torch.cat(rows).argsort()
        return torch.cat(outputs, dim=-3)[..., order, :, :].flatten(-3, -2)[..., :n, :]
