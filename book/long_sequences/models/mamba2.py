"""Mamba-2's layer: a state that fades, between a short convolution and a gated norm.

Dao and Gu (2024), sections 3 and 7, with one group: all heads share their queries and keys. The state is that
of `tformer_lib.efficient.delta.delta_rule` without its correction; Mamba-2's C, B and x are queries, keys and
values.
"""

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tformer_lib.core.transformer import Block, TransformerConfig
from tformer_lib.efficient.delta import delta_rule
from tformer_lib.inputs import check_tokens
from tformer_lib.numbers import whole

LOWEST = -60.0  # of the logarithm of a gate, so that its exponential is never 0


class Past(NamedTuple):
    """All that the layer keeps of the tokens it has read, however many there were."""

    #: What the convolution still reads of the last tokens, (B, d_conv - 1, d_inner + 2 d_state).
    window: Tensor
    #: The states of the heads, (B, H, d_state, d_head).
    states: Tensor


class Mamba2(nn.Module):
    """S_n = a_n S_(n-1) + dt_n k_n^T v_n, y_n = q_n S_n + D v_n, a_n = exp(dt_n A), and what is around it.

    In full, for each token x of width D, with * entry by entry and conv over its last d_conv tokens:

        z, vkq, dt = split(W_in x);  v, k, q = split(silu(conv(vkq)));  dt = softplus(dt + dt_bias)
        out = W_out (norm(y * silu(z)))

    A < 0, D and dt_bias are one number for each head, norm is an RMSNorm over all heads' outputs together.

    Args:
        d_model: the width D of a token.
        d_inner: the width of the values of all heads together; 2 D if None.
        d_state: the width of queries and keys, which all heads share.
        d_head: the width of a head's values, which divides d_inner.
        d_conv: tokens that the convolution reads, its own among them; 1 leaves tokens apart.
        chunk: tokens in a chunk.

    Raises:
        TypeError: if a size is no whole number.
        ValueError: if one is below 1, or d_head does not divide d_inner; in forward, if the width is not D.
    """

    def __init__(
        self,
        d_model: int,
        *,
        d_inner: int | None = None,
        d_state: int = 64,
        d_head: int = 64,
        d_conv: int = 4,
        chunk: int = 64,
    ):
        super().__init__()
        self.d_model = whole("d_model", d_model, 1)
        self.d_inner = 2 * d_model if d_inner is None else whole("d_inner", d_inner, 1)
        self.d_state, self.d_head = whole("d_state", d_state, 1), whole("d_head", d_head, 1)
        self.d_conv, self.chunk = whole("d_conv", d_conv, 1), whole("chunk", chunk, 1)
        if self.d_inner % self.d_head:
            raise ValueError(f"d_head={d_head} does not divide d_inner={self.d_inner}")
        heads, mixed = self.d_inner // self.d_head, self.d_inner + 2 * self.d_state
        self.W_in = nn.Linear(d_model, self.d_inner + mixed + heads, bias=False)
        self.conv = nn.Conv1d(mixed, mixed, self.d_conv, groups=mixed)
        self.dt_bias = nn.Parameter(torch.empty(heads))
        self.log_decay = nn.Parameter(torch.empty(heads))  # log(-A)
        self.skip = nn.Parameter(torch.ones(heads))  # D of the equation
        self.norm = nn.RMSNorm(self.d_inner, eps=1e-5)
        self.W_out = nn.Linear(self.d_inner, d_model, bias=False)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """As in the published code: dt from 0.001 to 0.1, evenly in its logarithm, and -A from 1 to 16."""
        dt = torch.empty_like(self.dt_bias).uniform_(math.log(0.001), math.log(0.1)).exp()
        self.dt_bias.copy_(dt.expm1().log())  # of which softplus is dt
        self.log_decay.copy_(torch.empty_like(self.log_decay).uniform_(1, 16).log())

    def forward(self, x: Float[Tensor, "B N _D"]) -> Float[Tensor, "B N _D"]:
        return self.read(x)[0]

    def read(self, x: Float[Tensor, "B N _D"], past: Past | None = None) -> tuple[Tensor, Past]:
        """The outputs for N more tokens after `past`, and what is then kept: one token at a time, or all."""
        check_tokens("x", x, self.d_model, self.W_in.weight)
        past = self.nothing(x) if past is None else past
        mixed = self.d_inner + 2 * self.d_state
        z, vkq, dt = self.W_in(x).split((self.d_inner, mixed, len(self.skip)), dim=-1)
        window = torch.cat((past.window, vkq), dim=1)  # (B, d_conv - 1 + N, mixed)
        vkq = F.silu(self.conv(window.mT).mT)  # (B, N, mixed)
        v, k, q = vkq.split((self.d_inner, self.d_state, self.d_state), dim=-1)
        v = v.unflatten(-1, (-1, self.d_head)).transpose(1, 2)  # (B, H, N, d_head)
        k, q = (t[:, None].expand(-1, v.shape[1], -1, -1) for t in (k, q))  # (B, H, N, d_state)
        dt = F.softplus(dt + self.dt_bias).mT[..., None]  # (B, H, N, 1)
        gate = (dt * -self.log_decay.exp()[:, None, None]).clamp(min=LOWEST).exp()  # a = exp(dt A)
        y, states = delta_rule(q, k, v, dt, gate, past.states, correct=False, chunk=self.chunk)
        y = (y + self.skip[:, None, None] * v).transpose(1, 2).flatten(2)  # (B, N, d_inner)
        kept = window[:, window.shape[1] - (self.d_conv - 1) :]
        return self.W_out(self.norm(y * F.silu(z))), Past(kept, states)

    def nothing(self, x: Tensor) -> Past:
        """What is kept before the first token: zeros."""
        window = x.new_zeros(len(x), self.d_conv - 1, self.d_inner + 2 * self.d_state)
        return Past(window, x.new_zeros(len(x), len(self.skip), self.d_state, self.d_head))


class MambaBlock(Block):
    """A block with Mamba-2's layer in the place of attention; it looks back only, and takes no mask.

    Args:
        config: sizes and choices of the norms and the MLP.
        layer: the layer, as wide as the block.
    """

    def __init__(self, config: TransformerConfig, layer: Mamba2):
        super().__init__(config)
        self.layer = layer
        del self.self_attention

    def forward(self, x: Tensor, *nothing: Any) -> Tensor:
        """x + layer(norm(x)), then the MLP; what else a block is given must be None."""
        if any(each is not None for each in nothing):
            raise ValueError("a state reads what came before it: it takes no context, mask or cache")
        x = self.residual(x, self.self_attention_norm, self.layer)
        return self.residual(x, self.mlp_norm, self.mlp)
