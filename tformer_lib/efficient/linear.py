"""Linear attention: a kernel of features in place of exp(q . k), and sums that need no pairs.

Katharopoulos et al. (2020). Three forms of one function: `linear_attention`, over all pairs, is the
definition; `LinearAttend` groups the products so that no pair is formed; `LinearAttend.step` carries a
state of fixed size from token to token, as a recurrent network does.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tformer_lib.core.attention import Backend
from tformer_lib.core.precision import as_given, precise
from tformer_lib.efficient.key_masks import check_last, key_mask
from tformer_lib.inputs import check_qkv

FeatureMap = Callable[[Tensor], Tensor]


def elu_plus_one(x: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """phi(x) = elu(x) + 1: 1 + x above zero, exp(x) below; always positive."""
    return F.elu(x) + 1


def divided(sums: Float[Tensor, "*batch N Dv1"]) -> Float[Tensor, "*batch N Dv"]:
    """Weighted sums of (v, 1), divided by their last feature, the sum of the weights; 0 where it is 0."""
    total = sums[..., -1:]
    return sums[..., :-1] / total.masked_fill(total == 0, 1.0)


def with_one(v: Float[Tensor, "*batch S Dv"]) -> Float[Tensor, "*batch S Dv1"]:
    """(v, 1): one more feature, which sums up to the weights."""
    return F.pad(v, (0, 1), value=1.0)


def linear_attention(
    q: Float[Tensor, "*batch N Dh"],
    k: Float[Tensor, "*batch S Dh"],
    v: Float[Tensor, "*batch S Dv"],
    mask: Tensor | None = None,
    *,
    feature_map: FeatureMap = elu_plus_one,
) -> tuple[Float[Tensor, "*batch N Dv"], Float[Tensor, "*batch N S"]]:
    """w_ns = phi(q_n) . phi(k_s) / sum over s' of the same: the definition, pair by pair, with any mask.

    Returns the output and the weights, as `attention` does.
    """
    check_qkv(q, k, v, mask)
    with as_given(q):
        scores = precise(feature_map(q)) @ precise(feature_map(k)).mT
    if mask is not None:
        scores = scores.masked_fill(~mask, 0.0)
    total = scores.sum(dim=-1, keepdim=True)
    weights = (scores / total.masked_fill(total == 0, 1.0)).to(v.dtype)
    return weights @ v, weights


class LinearAttend(Backend):
    """phi(q) (phi(k)^T v), divided by phi(q) (phi(k)^T 1): O(N Dh Dv) time, and no pair of tokens.

    A causal query needs the sum over the keys up to its own place. The sequence is read in chunks: what
    lies before a chunk comes in as one matrix, the state, and pairs are formed within the chunk only.

    Args:
        feature_map: phi, applied to queries and keys entry by entry or otherwise; never negative, which is
            not checked. Negative features may make negative weights with a sum near zero, and outputs far
            outside of the values.
        causal: whether queries look back only; queries are then the last N of the S positions.
        chunk: the number of tokens in a chunk.

    Raises:
        ValueError: if a chunk is empty; in forward, if the mask is more than padding (and, if causal, the
            causal mask), or causal queries outnumber the keys.
        TypeError: in forward, if the mask is not boolean.
    """

    def __init__(
        self, feature_map: FeatureMap = elu_plus_one, *, causal: bool = False, chunk: int = 64
    ) -> None:
        super().__init__()
        if chunk < 1:
            raise ValueError(f"a chunk holds at least one token, got chunk={chunk}")
        self.feature_map, self.causal, self.chunk = feature_map, causal, chunk

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        keys = key_mask(mask, q, k, causal=self.causal, name="LinearAttend")
        if self.causal:
            check_last(q, k)
        dtype = v.dtype
        q, k, v = precise(self.feature_map(q)), precise(self.feature_map(k)), precise(with_one(v))
        if keys is not None:
            k = k * keys.mT
        with as_given(q):
            return divided(self.sums(q, k, v)).to(dtype)

    def sums(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """The weighted sums of (v, 1), for features of queries and keys."""
        if not self.causal:
            return q @ (k.mT @ v)
        past = k.shape[-2] - q.shape[-2]
        state = k[..., :past, :].mT @ v[..., :past, :]
        parts = (q, k[..., past:, :], v[..., past:, :])
        sums = []
        for q_c, k_c, v_c in zip(*(x.split(self.chunk, dim=-2) for x in parts), strict=True):
            sums.append(q_c @ state + (q_c @ k_c.mT).tril() @ v_c)
            state = state + k_c.mT @ v_c
        return torch.cat(sums, dim=-2)

    def step(
        self,
        q: Float[Tensor, "*batch 1 Dh"],
        k: Float[Tensor, "*batch 1 Dh"],
        v: Float[Tensor, "*batch 1 Dv"],
        state: Float[Tensor, "*batch Features Dv1"] | None = None,
    ) -> tuple[Float[Tensor, "*batch 1 Dv"], Float[Tensor, "*batch Features Dv1"]]:
        """One token: state + phi(k)^T (v, 1), then phi(q) state, divided. Returns output and new state.

        The state, (..., features, Dv + 1), with Dh features unless the map makes more of them, is all that is
        kept of the past, however long it was, in float32 at least; None is nothing. A step looks back,
        whatever `causal` says.

        Raises:
            ValueError: if there is more than one token.
        """
        if q.shape[-2] != 1 or k.shape[-2] != 1:
            raise ValueError(f"a step is one token, got {q.shape[-2]} queries and {k.shape[-2]} keys")
        with as_given(q):
            added = precise(self.feature_map(k)).mT @ precise(with_one(v))
            state = added if state is None else state + added
            return divided(precise(self.feature_map(q)) @ state).to(v.dtype), state
