"""One language model with positions told in six ways, and its loss at every place of a window."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from tformer_lib.core.attention import Attend, FusedAttend
from tformer_lib.core.positions import LearnedPositions, Rotary, SinusoidalPositions
from tformer_lib.core.score_bias import ALiBi, RelativeBias
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.gpt import GPT
from tformer_lib.numbers import whole

POSITIONS = ("learned", "sinusoidal", "relative", "rotary", "alibi", "none")


class ScaledSinusoidal(SinusoidalPositions):
    """sqrt(D) x_n + P_n: embeddings are multiplied by sqrt(D) before (Vaswani et al. 2017, section 3.4).

    The table's entries are sines and cosines; small embeddings would drown in them.
    """

    def forward(self, x: Float[Tensor, "B N _D"], offset: int = 0) -> Float[Tensor, "B N _D"]:
        return super().forward(x * math.sqrt(self.d_model), offset)


def positioned_gpt(
    name: str,
    config: TransformerConfig,
    vocab_size: int,
    *,
    length: int,
    longest: int,
) -> GPT:
    """A `GPT` that differs from its siblings in how it learns where a token stands.

    Args:
        name: one of `POSITIONS`.
        config: sizes and choices.
        vocab_size: the number of tokens.
        length: of the sequences it will be trained on, which is the distance at
            which the relative bias stops telling distances apart.
        longest: the longest sequence it will read: rows of the learned table.

    Raises:
        ValueError: if the name is unknown.
    """
    heads, width = config.n_heads, config.d_model
    if name == "learned":
        learned = LearnedPositions(longest, width)
        return GPT(config, vocab_size, positions=learned, make_backend=FusedAttend)
    if name == "sinusoidal":
        return GPT(config, vocab_size, positions=ScaledSinusoidal(width), make_backend=FusedAttend)
    if name == "rotary":
        return GPT(config, vocab_size, rotary=Rotary(width // heads), make_backend=FusedAttend)
    if name == "alibi":
        return GPT(config, vocab_size, make_backend=lambda: FusedAttend(score_bias=ALiBi(heads)))
    if name == "relative":
        bias = RelativeBias(heads, max_distance=length)  # one for all blocks
        return GPT(config, vocab_size, make_backend=lambda: Attend(score_bias=bias))
    if name == "none":
        return GPT(config, vocab_size, make_backend=FusedAttend)
    raise ValueError(f"positions must be one of {POSITIONS}, got {name!r}")


@torch.no_grad()
def loss_by_position(
    model: Callable[[Tensor], Tensor], windows: Int[Tensor, "windows M"], *, batch: int = 64
) -> Float[Tensor, " N"]:
    """loss[n] = the mean over windows of -log p(x_{n+1} | x_1..x_n), in nats, for n = 1..N, N = M - 1.

    Entry n tells what n tokens of context are worth: the same text, cut so that it begins later, would be
    predicted with less.
    """
    total = torch.zeros(windows.shape[1] - 1)
    for part in windows.split(whole("batch", batch, 1)):
        logits = model(part[:, :-1])
        total += F.cross_entropy(logits.mT, part[:, 1:], reduction="none").sum(dim=0).to(total)
    return total / len(windows)


def overlapping_windows(
    ids: Int[Tensor, " T"], length: int, *, stride: int, count: int, places: int = 4
) -> Int[Tensor, "windows M"]:
    """`count` windows of `length` + 1 tokens, in runs that begin at `places` places of the sequence.

    Within a run each window begins `stride` tokens after the one before. Nearly every token is therefore
    predicted at many positions, `stride` apart, with the context that each allows, and averages over
    `stride` positions in a row are over nearly the same text: what differs is the position.

    Raises:
        ValueError: if the sequence is too short for them.
    """
    apart, run = len(ids) // places, math.ceil(count / places)
    if stride * (run - 1) + length + 1 > apart:
        raise ValueError(
            f"{count} windows of {length + 1} tokens do not fit into {len(ids)} at {places} places"
        )
    starts = (apart * torch.arange(places)[:, None] + stride * torch.arange(run)).flatten()[:count]
    return ids[starts[:, None] + torch.arange(length + 1)]
