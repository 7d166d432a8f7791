"""The delta rule: a state that corrects what it holds, and a gate that lets it forget.

Schlag et al. (2021) write in a state only what it does not yet say; Yang et al. (2024) compute a chunk of
such writes at once; Yang et al. (2025) add a gate. Two forms of one function: `delta_rule_steps`, token by
token, is the definition; `delta_rule` works in chunks. A gate without the correction is a decaying linear
attention.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tformer_lib.core.attention import Backend
from tformer_lib.core.precision import as_given, precise
from tformer_lib.efficient.key_masks import key_mask
from tformer_lib.inputs import check_qkv


def delta_rule_steps(
    q: Float[Tensor, "*batch N Dh"],
    k: Float[Tensor, "*batch N Dh"],
    v: Float[Tensor, "*batch N Dv"],
    rate: Float[Tensor, "*batch N 1"],
    gate: Float[Tensor, "*batch N 1"] | None = None,
    state: Float[Tensor, "*batch Dh Dv"] | None = None,
    *,
    correct: bool = True,
) -> tuple[Float[Tensor, "*batch N Dv"], Float[Tensor, "*batch Dh Dv"]]:
    """S_n = g_n S_(n-1) + b_n k_n^T (v_n - k_n g_n S_(n-1)), y_n = q_n S_n: the definition.

    Args:
        q: queries, (..., N, Dh).
        k: keys, (..., N, Dh), of unit length as a rule: a write of rate 1 is then read back exactly.
        v: values, (..., N, Dv).
        rate: b, how much of the error is corrected, 0 to 1.
        gate: g, what is kept of the state, above 0 to 1; None keeps all.
        state: what was there before, (..., Dh, Dv); None is nothing.
        correct: False writes b_n k_n^T v_n, whatever the state says already: linear attention with a gate.

    Returns:
        The outputs, and the last state in float32 at least, in which all is computed.

    Raises:
        ValueError: if queries, keys and values do not fit each other, or are not equally many.
    """
    _check(q, k, v)
    dtype, (q, k, v, rate, gate, state) = v.dtype, _widened(q, k, v, rate, gate, state)
    outputs = [v[..., :0, :]]
    with as_given(q):
        for n in range(q.shape[-2]):
            q_n, k_n, v_n, b_n = (x[..., n : n + 1, :] for x in (q, k, v, rate))
            state = state * gate[..., n : n + 1, :]
            error = v_n - k_n @ state if correct else v_n
            state = state + k_n.mT @ (b_n * error)
            outputs.append(q_n @ state)
    return torch.cat(outputs, dim=-2).to(dtype), state


def delta_rule(
    q: Float[Tensor, "*batch N Dh"],
    k: Float[Tensor, "*batch N Dh"],
    v: Float[Tensor, "*batch N Dv"],
    rate: Float[Tensor, "*batch N 1"],
    gate: Float[Tensor, "*batch N 1"] | None = None,
    state: Float[Tensor, "*batch Dh Dv"] | None = None,
    *,
    correct: bool = True,
    chunk: int = 32,
) -> tuple[Float[Tensor, "*batch N Dv"], Float[Tensor, "*batch Dh Dv"]]:
    """`delta_rule_steps` in chunks: C solves (I + b tril(K K^T, -1)) C = b (V - K S), S' = S + K^T C.

    The rows of C are what a chunk's tokens write. A token's error depends on the writes before it in the
    chunk, and on no others: a triangular system of chunk equations, which is solved at once. With a gate each
    product of tokens n and s carries what the gates between them have left, and each with S what all of them
    have. Arguments and returns are those of `delta_rule_steps`; `chunk` is the number of tokens in a chunk.

    Raises:
        ValueError: as there, or if a chunk is empty.
    """
    _check(q, k, v)
    if chunk < 1:
        raise ValueError(f"a chunk holds at least one token, got chunk={chunk}")
    dtype, (q, k, v, rate, gate, state) = v.dtype, _widened(q, k, v, rate, gate, state)
    if not q.shape[-2]:
        return v.to(dtype), state
    outputs, parts = [], (x.split(chunk, dim=-2) for x in (q, k, v, rate, gate))
    with as_given(q):
        for q_c, k_c, v_c, b_c, g_c in zip(*parts, strict=True):
            logs = g_c.log().cumsum(dim=-2)
            left, between = logs.exp(), (logs - logs.mT).tril().exp()  # of the state; of a write by token s
            writes = b_c * v_c
            if correct:
                system = (b_c * between * (k_c @ k_c.mT)).tril(-1)  # its diagonal is taken to be 1
                right = b_c * (v_c - left * (k_c @ state))
                writes = torch.linalg.solve_triangular(system, right, upper=False, unitriangular=True)
            outputs.append(left * (q_c @ state) + (between * (q_c @ k_c.mT)).tril() @ writes)
            state = left[..., -1:, :] * state + (k_c * between[..., -1:, :].mT).mT @ writes
    return torch.cat(outputs, dim=-2).to(dtype), state


def _widened(
    q: Tensor, k: Tensor, v: Tensor, rate: Tensor, gate: Tensor | None, state: Tensor | None
) -> list[Tensor]:
    """All of them in float32 at least: a gate that keeps all in the place of none, and an empty state."""
    gate = torch.ones_like(rate) if gate is None else gate
    state = q.new_zeros(*q.shape[:-2], q.shape[-1], v.shape[-1]) if state is None else state
    return [precise(x) for x in (q, k, v, rate, gate, state)]


def _check(q: Tensor, k: Tensor, v: Tensor) -> None:
    check_qkv(q, k, v)
    if q.shape[-2] != k.shape[-2]:
        raise ValueError(f"a token reads and writes, got {q.shape[-2]} queries and {k.shape[-2]} keys")


class DeltaAttend(Backend):
    """`delta_rule` of keys and queries of unit length, with a learned rate and, if wanted, a learned gate.

    b_n = sigmoid(w . k_n + a), and g_n = sigmoid(w' . k_n + a') likewise, begun near 1: a token says by its
    key how much is corrected and how much is kept. Heads of a layer share w and a. Always causal, without a
    cache.

    Args:
        d_head: the width Dh of a head.
        gated: whether the state may forget.
        correct: False leaves the correction out: linear attention without a denominator.
        chunk: the number of tokens in a chunk.

    Raises:
        ValueError: if a size is below 1; in forward, if queries and keys differ in number, or the mask says
            more than padding and the causal mask.
        TypeError: in forward, if the mask is not boolean.
    """

    def __init__(self, d_head: int, *, gated: bool = False, correct: bool = True, chunk: int = 32) -> None:
        super().__init__()
        if min(d_head, chunk) < 1:
            raise ValueError(f"d_head and chunk must be at least 1, got d_head={d_head}, chunk={chunk}")
        self.rate = nn.Linear(d_head, 1)
        self.gate = nn.Linear(d_head, 1) if gated else None
        if self.gate is not None:
            nn.init.constant_(self.gate.bias, 4.0)  # a gate of 0.98
        self.correct, self.chunk = correct, chunk

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        keys = key_mask(mask, q, k, causal=True, name="DeltaAttend")
        rate = precise(self.rate(k)).sigmoid()
        gate = None if self.gate is None else precise(self.gate(k)).sigmoid()
        if keys is not None:  # padding writes nothing, and lets nothing be forgotten
            rate = rate * keys.mT
            gate = None if gate is None else gate.masked_fill(~keys.mT, 1.0)
        q, k = F.normalize(precise(q), dim=-1), F.normalize(precise(k), dim=-1)
        read, _ = delta_rule(q, k, precise(v), rate, gate, correct=self.correct, chunk=self.chunk)
        return read.to(v.dtype)
