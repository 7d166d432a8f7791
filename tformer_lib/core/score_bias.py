"""Positions in the scores: biases that depend on how far apart a query and a key stand.

A score bias is a module called as `bias(N, S)` that returns (H, N, S) numbers, which a backend adds to the
scores before the softmax: `Attend(score_bias=ALiBi(n_heads))`. Queries are taken to be the last N of the S
positions, as when a model that has read S - N tokens reads N more.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tformer_lib.inputs import check_buckets
from tformer_lib.numbers import whole


def _offsets(n: int, s: int, device: torch.device | None = None) -> Int[Tensor, "N S"]:
    """offsets[i, j] = place of query i - place of key j, with the queries at S - N, ..., S - 1."""
    n, s = whole("the number of queries", n, 0), whole("the number of keys", s, 0)
    if n > s:
        raise ValueError(f"queries are the last of the keys' positions, got {n} queries and {s} keys")
    places = torch.arange(s, device=device)
    return places[s - n :, None] - places


class ALiBi(nn.Module):
    """bias[h, n, s] = -m_h |n - s|: attention with linear biases (Press et al. 2022, section 3).

    The slopes are m_h = 2^(-8h/H) for h = 1..H, the paper's geometric sequence; its authors' code uses
    another rule where H is not a power of two. The paper is causal, where n - s is never negative; the
    absolute value extends it to encoders.

    Raises:
        ValueError: if there is no head; in forward, if there are more queries than keys.
    """

    slopes: Tensor

    def __init__(self, n_heads: int):
        super().__init__()
        n_heads = whole("n_heads", n_heads, 1)
        slopes = [2.0 ** (-8.0 * h / n_heads) for h in range(1, n_heads + 1)]
        self.register_buffer("slopes", torch.tensor(slopes), persistent=False)

    def forward(self, n: int, s: int) -> Float[Tensor, "H N S"]:
        return -self.slopes[:, None, None] * _offsets(n, s, self.slopes.device).abs()


class RelativeBias(nn.Module):
    """bias[h, n, s] = b_h[bucket(n - s)]: a learned number for each range of offsets (Raffel et al. 2020).

    Their section 2.1. Of K buckets the first E = K / 2 hold one offset each, 0 to E - 1; the others grow
    geometrically, bucket(d) = E + floor((K - E) ln(d / E) / ln(d_max / E)), up to the distance d_max, and
    the last holds whatever is further away. A causal bias puts keys that stand later into bucket 0 (the mask
    hides them); one for both directions gives them half of the buckets. Layers may share a module, as T5's
    do.

    Args:
        n_heads: the number of heads H; each has its own numbers, which start at zero.
        n_buckets: the number of buckets.
        max_distance: the distance d_max from which on all offsets share the last bucket.
        causal: whether queries look back only.

    Raises:
        ValueError: if there is no head, or the buckets cannot be formed; in forward, if there are more
            queries than keys.
    """

    def __init__(self, n_heads: int, *, n_buckets: int = 32, max_distance: int = 128, causal: bool = True):
        super().__init__()
        n_buckets, max_distance = check_buckets(n_buckets, max_distance, causal)
        self.n_buckets, self.max_distance, self.causal = n_buckets, max_distance, causal
        self.table = nn.Parameter(torch.zeros(whole("n_heads", n_heads, 1), n_buckets))

    def bucket(self, offset: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
        """The number of the bucket that holds each offset n - s."""
        n_buckets = self.n_buckets if self.causal else self.n_buckets // 2
        distance = offset.clamp(min=0) if self.causal else offset.abs()
        exact = n_buckets // 2
        ratio = (distance.clamp(min=exact).double() / exact).log() / math.log(self.max_distance / exact)
        far = exact + ((n_buckets - exact) * ratio + 1e-9).long()  # 1e-9 makes up for rounding
        bucket = torch.where(distance < exact, distance, far.clamp(max=n_buckets - 1))
        return bucket if self.causal else bucket + n_buckets * (offset < 0)

    def forward(self, n: int, s: int) -> Float[Tensor, "H N S"]:
        return self.table[:, self.bucket(_offsets(n, s)).to(self.table.device)]
