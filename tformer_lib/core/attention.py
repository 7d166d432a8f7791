"""Attention: the plain function of the text, two interchangeable backends, and the multi-head layer.

The text writes tokens as columns and the attention matrix A with columns that sum to one; the code
writes tokens as rows, so that the weights here are the transpose of A: rows (queries) sum to one.

In a signature's shapes a name that begins with an underscore, such as _Dh, is one that the function
compares itself, in order to say in an error what it was compared with.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tformer_lib.core.cache import LayerCache, already_read, undone_if_refused
from tformer_lib.core.precision import as_given, precise
from tformer_lib.inputs import (
    check_broadcast,
    check_crossing,
    check_head_counts,
    check_mask,
    check_qkv,
    check_tokens,
    refuse_gradients,
)
from tformer_lib.numbers import flag, real


def scaled_scores(
    q: Float[Tensor, "*batch N Dh"], k: Float[Tensor, "*batch S Dh"]
) -> Float[Tensor, "*batch N S"]:
    """q k^T / sqrt(Dh), in float32 at least: 64 products of 40 by 40 are more than float16 can hold."""
    with as_given(q):
        return precise(q) @ precise(k).mT / math.sqrt(q.shape[-1])


def masked_softmax(
    scores: Float[Tensor, "*batch N S"], mask: Tensor | None = None
) -> Float[Tensor, "*batch N S"]:
    """softmax over the keys that a query may see: exp(s_ij) / sum over allowed j' of exp(s_ij').

    Forbidden keys get exactly zero weight and zero gradient. A query that may see no key at all gets
    a row of zeros: forbidden scores become the smallest finite number rather than minus infinity, so
    that such a row never computes 0/0, and the second fill then removes what it holds.
    """
    check_mask(mask, tuple(scores.shape))
    if mask is None:
        return scores.softmax(dim=-1)
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


def attention(
    q: Float[Tensor, "*batch N Dh"],
    k: Float[Tensor, "*batch S _Dh"],
    v: Float[Tensor, "*batch _S Dv"],
    mask: Tensor | None = None,
) -> tuple[Float[Tensor, "*batch N Dv"], Float[Tensor, "*batch N S"]]:
    """softmax(q k^T / sqrt(Dh)) v: scaled dot-product attention (Vaswani et al. 2017, eq. 1).

    Args:
        q: queries, (..., N, Dh).
        k: keys, (..., S, Dh).
        v: values, (..., S, Dv).
        mask: boolean, True = may attend, broadcastable to (..., N, S). As everywhere in PyTorch,
            axes are matched from the right: a mask with two axes is read as (N, S).

    Returns:
        The output (..., N, Dv) and the weights (..., N, S), whose rows sum to one. A query that may
        attend to no key gets a row of zeros in both. A forbidden value must be a number all the same: it is
        multiplied by a weight of zero, and 0 times NaN is NaN.

    Raises:
        ValueError: if widths or lengths do not match, or the mask does not broadcast.
        TypeError: if the mask is not boolean.
    """
    check_qkv(q, k, v, mask)
    weights = masked_softmax(scaled_scores(q, k), mask).to(v.dtype)
    return weights @ v, weights


class MaskedSoftmax(nn.Module):
    """`masked_softmax` as a module, so that a forward hook can look at the weights."""

    def forward(
        self, scores: Float[Tensor, "*batch N S"], mask: Tensor | None = None
    ) -> Float[Tensor, "*batch N S"]:
        return masked_softmax(scores, mask)


def bias_for(q: Tensor, k: Tensor, score_bias: nn.Module | None) -> Tensor | None:
    """What `score_bias` adds to the scores of these queries and keys, in their dtype; None without one."""
    if score_bias is None:
        return None
    bias = score_bias(q.shape[-2], k.shape[-2]).to(q.dtype)
    check_broadcast("score bias", bias.shape, (*q.shape[:-1], k.shape[-2]))
    return bias


class Backend(nn.Module):
    """Outputs from queries, keys, values and a mask: the exchangeable part of `MultiHeadAttention`.

    A subclass says in `attend` how; the call checks shapes and mask first. It is called as `attention` is,
    `backend(q, k, v, mask)`; inside a layer the shapes are (B, H, N, Dh), (B, H, S, Dh) and (B, H, S, Dh).

    Raises:
        ValueError: in forward, if shapes do not match, or the mask does not broadcast to (..., N, S).
        TypeError: in forward, if the mask is not boolean, or the tensors are not of one dtype.
    """

    def forward(
        self,
        q: Float[Tensor, "*batch N Dh"],
        k: Float[Tensor, "*batch S _Dh"],
        v: Float[Tensor, "*batch _S Dv"],
        mask: Tensor | None = None,
    ) -> Float[Tensor, "*batch N Dv"]:
        check_qkv(q, k, v, mask)
        return self.attend(q, k, v, mask)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """The output (..., N, Dv), of inputs that fit each other."""
        raise NotImplementedError(f"{type(self).__name__} is a backend without a method `attend`")


class Attend(Backend):
    """dropout(softmax(q k^T / sqrt(Dh) + bias)) v, step by step: the backend one can look into.

    Args:
        dropout: the probability with which a weight is zeroed during training.
        score_bias: a module called as `score_bias(N, S)` that returns (H, N, S) numbers to be added
            to the scores, such as `tformer_lib.core.positions.ALiBi`.

    The softmax is a submodule of its own, which is where `record_attention` listens.
    """

    def __init__(self, dropout: float = 0.0, score_bias: nn.Module | None = None):
        super().__init__()
        self.score_bias = score_bias
        self.softmax = MaskedSoftmax()
        self.dropout = nn.Dropout(real("dropout", dropout, "[0, 1]"))

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """softmax(q k^T / sqrt(Dh) + bias) v, a line for each step."""
        scores = scaled_scores(q, k)
        bias = bias_for(q, k, self.score_bias)
        if bias is not None:
            scores = scores + bias
        return self.dropout(self.softmax(scores, mask)).to(v.dtype) @ v


class FusedAttend(Backend):
    """The same function as `Attend`, by `torch.nn.functional.scaled_dot_product_attention`.

    It need not keep the (N, S) weights in memory, and is faster on long sequences for it; the weights
    cannot be recorded, because nobody gets to see them. Arguments are those of `Attend`.
    """

    def __init__(self, dropout: float = 0.0, score_bias: nn.Module | None = None):
        super().__init__()
        self.score_bias = score_bias
        self.dropout = nn.Dropout(real("dropout", dropout, "[0, 1]"))

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """The same, by PyTorch's function; an empty row of the mask gives zeros."""
        bias = bias_for(q, k, self.score_bias)
        if mask is None:
            return self.kernel(q, k, v, bias)
        # Kernels differ in what they return for an empty row: it sees every key instead, and its output
        # is set to zero afterwards.
        mask = torch.atleast_2d(mask)
        empty = ~mask.any(dim=-1, keepdim=True)
        allowed = mask | empty
        allowed = allowed if bias is None else bias.where(allowed, -math.inf)
        return self.kernel(q, k, v, allowed).masked_fill(empty, 0.0)

    def kernel(self, q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None) -> Tensor:
        """PyTorch's function; `attn_mask` is boolean (True = may attend) or added to the scores."""
        dropout = self.dropout.p if self.training else 0.0
        return F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask, dropout_p=dropout)


class MultiHeadAttention(nn.Module):
    """MHA(x) = concat(head_1, ..., head_H) W_o^T, with head_h = attention(x W_q,h^T, c W_k,h^T, c W_v,h^T).

    Here c is the context; without one it is x itself (self-attention). Vaswani et al. (2017), section 3.2.2.

    Args:
        d_model: the width D of the tokens.
        n_heads: the number of heads H; each is Dh = D / H wide.
        n_kv_heads: how many heads keys and values have (Ainslie et al. 2023: 1 is multi-query, a
            divisor of H is grouped-query attention); H if None.
        bias: whether the four projections add biases.
        dropout: the probability with which an attention weight is zeroed during training.
        rotary: a module applied to queries (B, H, N, Dh) and keys, such as
            `tformer_lib.core.positions.Rotary`; self-attention only.
        qk_norm: whether each query and each key is divided by its root mean square, with a learned gain,
            before positions turn it (Dehghani et al. 2023, section 2, with RMSNorm in place of LayerNorm):
            scores then stay within bounds, however large the projections grow.
        backend: what makes outputs of queries, keys and values; an `Attend` if None. It brings its
            own dropout.

    Raises:
        ValueError: if H does not divide D, `n_kv_heads` does not divide H, `dropout` is no probability or is
            given beside `backend`; in forward, if a width is not D or the mask does not broadcast.
        TypeError: if a size is no whole number; in forward, if the mask is not boolean, or `x` has another
            dtype than the weights.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        rotary: nn.Module | None = None,
        qk_norm: bool = False,
        backend: Backend | None = None,
    ):
        super().__init__()
        d_model, n_heads, n_kv_heads = check_head_counts(d_model, n_heads, n_kv_heads)
        bias, qk_norm = flag("bias", bias), flag("qk_norm", qk_norm)
        if backend is not None and dropout:
            raise ValueError(f"{type(backend).__name__} brings its own dropout: give it dropout={dropout}")
        self.d_model, self.n_heads, self.n_kv_heads = d_model, n_heads, n_kv_heads
        self.d_head = d_model // n_heads
        self.W_q = nn.Linear(d_model, d_model, bias=bias)
        self.W_k = nn.Linear(d_model, n_kv_heads * self.d_head, bias=bias)
        self.W_v = nn.Linear(d_model, n_kv_heads * self.d_head, bias=bias)
        self.W_o = nn.Linear(d_model, d_model, bias=bias)
        self.norm_q = nn.RMSNorm(self.d_head, eps=1e-6) if qk_norm else nn.Identity()
        self.norm_k = nn.RMSNorm(self.d_head, eps=1e-6) if qk_norm else nn.Identity()
        self.rotary = rotary
        self.backend = Attend(dropout) if backend is None else backend
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier-uniform weights (Glorot and Bengio 2010, eq. 16) and zero biases."""
        for linear in (self.W_q, self.W_k, self.W_v, self.W_o):
            nn.init.xavier_uniform_(linear.weight)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)

    def split_heads(self, x: Float[Tensor, "B N _"]) -> Float[Tensor, "B _ N Dh"]:
        """(B, N, H*Dh) -> (B, H, N, Dh). The view cuts the width into heads; the transpose then brings
        the heads forward. A single view to (B, H, N, Dh) would mix tokens with one another."""
        return x.view(*x.shape[:2], x.shape[-1] // self.d_head, self.d_head).transpose(1, 2)

    def merge_heads(self, x: Float[Tensor, "B H N Dh"]) -> Float[Tensor, "B N _"]:
        """(B, H, N, Dh) -> (B, N, H*Dh), the inverse of `split_heads`."""
        return x.transpose(1, 2).flatten(2)

    def share_heads(self, x: Float[Tensor, "B G N Dh"]) -> Float[Tensor, "B H N Dh"]:
        """(B, n_kv_heads, N, Dh) -> (B, H, N, Dh): each head serves H / n_kv_heads heads of queries."""
        if self.n_kv_heads == self.n_heads:
            return x
        return x.repeat_interleave(self.n_heads // self.n_kv_heads, dim=1)

    @undone_if_refused
    def forward(
        self,
        x: Float[Tensor, "B N _D"],
        context: Float[Tensor, "B S _D"] | None = None,
        mask: Tensor | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "B N _D"]:
        """Attend from `x` (B, N, D) to `context` (B, S, D), or to `x` itself; returns (B, N, D).

        The mask is boolean, True = may attend, and broadcastable to (B, H, N, S): (N, S) for all heads
        and sequences, (B, 1, 1, S) for padding, (B, 1, N, S) for both; axes are matched from the right,
        so that a padding mask of shape (B, S) is not one of these (`padding_mask` makes the right one).
        A query that may see no key gets nothing but the bias of W_o.

        With a `cache`, `x` are the tokens that follow those it holds: their keys and values join it, and S
        counts all of them. A call that raises leaves the cache as it was.
        """
        check_tokens("x", x, self.d_model, self.W_q.weight)
        if context is not None:
            check_tokens("context", context, self.d_model, self.W_q.weight)
            check_crossing(context.shape[1], already_read(cache), self.rotary)
        past = already_read(cache)
        q = self.norm_q(self.split_heads(self.W_q(x)))
        if context is not None and cache is not None and past > 0:
            refuse_gradients(q)
            k, v = cache.held()  # a context does not grow: it has been read at the first call
        else:
            source = x if context is None else context
            k = self.norm_k(self.split_heads(self.W_k(source)))
            v = self.split_heads(self.W_v(source))
            if self.rotary is not None:
                q, k = self.rotary(q, past), self.rotary(k, past)
            if cache is not None:
                k, v = cache.extend(k, v)
        k, v = self.share_heads(k), self.share_heads(v)
        return self.W_o(self.merge_heads(self.backend(q, k, v, mask)))
