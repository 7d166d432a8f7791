"""Circuits of heads: induction, what a head copies, and which head reads what another has written."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tformer_lib.analysis.activations import patch, record
from tformer_lib.analysis.weights import attention_weights
from tformer_lib.core.attention import MultiHeadAttention
from tformer_lib.core.modes import evaluation, plain
from tformer_lib.models.gpt import GPT
from tformer_lib.numbers import whole


def repeated_tokens(
    vocab_size: int, batch: int, period: int, *, repeats: int = 2, generator: torch.Generator | None = None
) -> Int[Tensor, "B N"]:
    """`period` different tokens at random, and the same again: (B, repeats * period).

    From the second copy on each token can be foretold by what followed it before, and by nothing else.

    Raises:
        TypeError: if a size is no whole number.
        ValueError: if there are fewer tokens than `period`, or a size is below 1.
    """
    vocab_size, batch, period = (
        whole(name, value, 1)
        for name, value in (("vocab_size", vocab_size), ("batch", batch), ("period", period))
    )
    repeats = whole("repeats", repeats, 1)
    if period > vocab_size:
        raise ValueError(f"{period} different tokens cannot be drawn from a vocabulary of {vocab_size}")
    order = torch.rand(batch, vocab_size, generator=generator).argsort(dim=1)[:, :period]
    return order.repeat(1, repeats)


@dataclass(frozen=True)
class InductionScores:
    """Numbers for every head, (M, H)."""

    prefix: Float[Tensor, "M H"]  # weight that a token puts on what followed its last occurrence
    previous: Float[Tensor, "M H"]  # weight on the token before
    copying: Float[Tensor, "M H"]  # sum of the OV circuit's eigenvalues over the sum of their sizes


@torch.no_grad()
def induction_scores(model: GPT, tokens: Int[Tensor, "B N"], period: int) -> InductionScores:
    """For each head: prefix matching, attention to the token before, and copying.

    With a = attention from place n to place s on sequences that repeat after P tokens,
    prefix = mean over n >= P of a(n, n - P + 1), previous = mean over n >= 1 of a(n, n - 1).
    Copying is sum(Re l_i) / sum |l_i| over the eigenvalues l_i of the circuit from tokens to logits,
    E W_o W_v E^T with the gains of both norms: 1 if the head raises, of each token it reads, mostly the
    token's own logit.

    Args:
        model: a decoder whose backends show their weights (`Attend`).
        tokens: (B, N) with N > P, such as `repeated_tokens` makes.
        period: P.

    Raises:
        ValueError: if no token comes a second time, or the sequences do not repeat.

    Source:
        Olsson et al. 2022, "program" definitions of prefix matching and copying; Elhage et al. 2021 for the
        eigenvalues.
    """
    period = whole("period", period, 1)
    N = tokens.shape[1]
    if period >= N:
        raise ValueError(f"nothing comes twice in {N} tokens with a period of {period}")
    if not torch.equal(tokens[:, period:], tokens[:, : N - period]):
        raise ValueError(f"these tokens do not repeat after {period}")
    weights = attention_weights(model, (tokens,)).mean(dim=0)  # (M, H, N, N)
    n = torch.arange(period, N)
    prefix = weights[..., n, n - period + 1].mean(dim=-1)
    n = torch.arange(1, N)
    return InductionScores(prefix, weights[..., n, n - 1].mean(dim=-1), copying_scores(model))


@torch.no_grad()
def copying_scores(model: GPT) -> Float[Tensor, "M H"]:
    """sum(Re l_i) / sum |l_i| over the eigenvalues of E_out J W_o W_v J E_in^T, for each head.

    It is 0 where all eigenvalues are. J are the linear parts of the norms, centring and gains. The matrix is
    vocabulary by vocabulary; its eigenvalues other than 0 are those of W_v J E_in^T E_out J W_o, as wide as a
    head.
    """
    model = plain(model)
    into: Any = model.embed.weight
    out: Any = (model.embed if model.head is None else model.head).weight
    blocks = [plain(block) for block in plain(model.transformer).blocks]
    scores = torch.zeros(len(blocks), model.config.n_heads)
    for m, block in enumerate(blocks):
        layer = block.self_attention
        read = _linear_part(block.self_attention_norm, into)  # (vocab, D)
        written = _linear_part(model.transformer.final_norm, layer.W_o.weight.T)  # (H Dh, D)
        values = layer.share_heads(layer.split_heads((read @ layer.W_v.weight.T)[None]))[0]  # (H, vocab, Dh)
        for h in range(layer.n_heads):
            back = out @ written[h * layer.d_head : (h + 1) * layer.d_head].T  # (vocab, Dh)
            eigenvalues = torch.linalg.eigvals((values[h].T @ back).double())
            size = eigenvalues.abs().sum()
            scores[m, h] = eigenvalues.real.sum() / size if size > 0 else 0.0
    return scores


def _linear_part(norm: nn.Module, x: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch D"]:
    """Centring and gains of a norm, without its division and its bias."""
    if isinstance(norm, nn.LayerNorm):
        x = x - x.mean(dim=-1, keepdim=True)
    gain = getattr(norm, "weight", None)
    return x if gain is None else gain * x


@contextmanager
def patch_path(
    model: GPT,
    tokens: Int[Tensor, "B N"],
    other: Int[Tensor, "_B _N"],
    sender: tuple[int, int] | Sequence[tuple[int, int]],
    receiver: tuple[int, int, str] | str,
) -> Iterator[None]:
    """Within the `with`, one head's queries, keys or values read of a sender what it says to other tokens.

    k' = W_k norm(x + W_o (z' - z)), with x the stream that the receiver reads, z what the sender hands to
    W_o on `tokens` and z' what it does on `other`: only the direct way from sender to receiver is changed.
    All other parts read what they read before, unless they come behind the receiver. Run the model on
    `tokens` inside.

    Args:
        model: a decoder with pre-norm blocks, or without norms.
        tokens: the run that is patched.
        other: the run that the sender's output is taken from, of the same shape.
        sender: (block, head), counted from 0; or several, whose changes add up.
        receiver: (block, head, "q", "k" or "v"), in a later block; or "logits", for what the head adds to
            them itself. For several receivers open several of these, one inside the other.

    Raises:
        ValueError: if there is no such head or no sender, the receiver does not come behind each sender, a
            norm stands behind the additions, or the shapes differ.

    Source:
        Goldowsky-Dill et al. 2023, path patching; Wang et al. 2023 for senders and receivers.
    """
    called, model = model, plain(model)
    blocks = [plain(block) for block in plain(model.transformer).blocks]
    if model.config.norm_placement != "pre":
        raise ValueError("a path can be patched in pre-norm blocks only: post-norm divides the stream again")
    if tokens.shape != other.shape:
        raise ValueError(f"both runs need one shape, got {tuple(tokens.shape)} and {tuple(other.shape)}")
    senders: list[Any] = [sender] if len(sender) == 2 and isinstance(sender[0], int) else list(sender)
    if not senders:
        raise ValueError("there is no sender")
    for one in senders:
        _check_head(model, one)
    if isinstance(receiver, str):
        if receiver != "logits":
            raise ValueError(f'a receiver is (block, head, "q", "k" or "v") or "logits", got {receiver!r}')
        entry, norm = "transformer.final_norm.input", model.transformer.final_norm
    else:
        to, head, kind = receiver
        _check_head(model, (to, head))
        if kind not in ("q", "k", "v"):
            raise ValueError(f'a head receives by "q", "k" or "v", got {kind!r}')
        last = max(block for block, _ in senders)
        if to <= last:
            raise ValueError(f"block {to} does not come behind block {last}: no path leads there")
        entry = f"transformer.blocks.{to}.self_attention_norm.input"
        norm = blocks[to].self_attention_norm
    handed = {block: f"transformer.blocks.{block}.self_attention.W_o.input" for block, _ in senders}
    with torch.no_grad(), evaluation(model):
        with record(model, [*handed.values(), entry]) as here:
            called(tokens)
        with record(model, handed.values()) as there:
            called(other)
    change = torch.zeros_like(here[entry])  # (B, N, D)
    for block, one in dict.fromkeys(map(tuple, senders)):
        layer: MultiHeadAttention = blocks[block].self_attention
        columns = slice(one * layer.d_head, (one + 1) * layer.d_head)
        new, old = there[handed[block]][..., columns], here[handed[block]][..., columns]
        change = change + (new - old) @ layer.W_o.weight[:, columns].T
    if isinstance(receiver, str):
        with patch(model, {entry: here[entry] + change}):
            yield
        return
    reader = blocks[to].self_attention
    width = reader.d_head
    place = head if kind == "q" else head // (reader.n_heads // reader.n_kv_heads)
    linear = getattr(reader, f"W_{kind}")
    with torch.no_grad():
        told = linear(norm(here[entry] + change))[..., place * width : (place + 1) * width]

    def one_head(activation: Tensor) -> Tensor:
        new = activation.clone()
        new[..., place * width : (place + 1) * width] = told
        return new

    with patch(model, {f"transformer.blocks.{to}.self_attention.W_{kind}": one_head}):
        yield


def _check_head(model: GPT, at: tuple[int, int]) -> None:
    block, head = at
    model = plain(model)
    if not (0 <= block < model.config.n_blocks and 0 <= head < model.config.n_heads):
        shape = f"{model.config.n_blocks} blocks with {model.config.n_heads} heads each"
        raise ValueError(f"there is no head {head} in block {block}: the model has {shape}")
