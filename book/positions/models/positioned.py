"""One language model with positions told in six ways, and its loss at every place of a window."""

import cmath
import math
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tformer_lib.core.attention import Attend, Backend, FusedAttend, masked_softmax
from tformer_lib.core.positions import LearnedPositions, Rotary, SinusoidalPositions
from tformer_lib.core.score_bias import ALiBi, RelativeBias
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.gpt import GPT
from tformer_lib.numbers import whole

POSITIONS = ("learned", "sinusoidal", "relative", "rotary", "alibi", "none")


class ScaledSinusoidal(SinusoidalPositions):
    """sqrt(D) x_n + P_n: embeddings are multiplied by sqrt(D) before (Vaswani et al. 2017, section 3.4).

    The table's entries are sines and cosines, beside which embeddings that start small are learned worse.
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
    model: Callable[[Tensor], Tensor],
    windows: Int[Tensor, "windows M"],
    *,
    keep: Bool[Tensor, "windows N"] | None = None,
    batch: int = 64,
) -> Float[Tensor, " N"]:
    """loss[n] = the mean over windows of -log p(x_{n+1} | x_1..x_n), in nats, for n = 1..N, N = M - 1.

    Entry n tells what n tokens of context are worth: the same text, cut so that it begins later, would be
    predicted with less.

    Args:
        model: makes logits (B, N, vocab) of tokens (B, N).
        windows: the text, one token more than is read.
        keep: which predictions count, such as those of `shared_text`; all of them if None.
        batch: how many windows are read at once.
    """
    keep = torch.ones_like(windows[:, 1:], dtype=torch.bool) if keep is None else keep
    total = torch.zeros(windows.shape[1] - 1)
    size = whole("batch", batch, 1)
    for part, counts in zip(windows.split(size), keep.split(size), strict=True):
        losses = F.cross_entropy(model(part[:, :-1]).mT, part[:, 1:], reduction="none")
        total += (losses * counts).sum(dim=0).to(total)
    return total / keep.sum(dim=0)


def overlapping_windows(
    ids: Int[Tensor, " T"], length: int, *, stride: int, count: int, places: int = 4
) -> Int[Tensor, "windows M"]:
    """`count` windows of `length` + 1 tokens, in runs that begin at `places` places of the sequence.

    Within a run each window begins `stride` tokens after the one before. Nearly every token is therefore
    predicted at many positions, `stride` apart, with the context that each allows. Averages over `stride`
    positions in a row are over nearly the same text; with `shared_text`, over exactly the same.

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


def shared_text(length: int, *, stride: int, count: int, places: int = 4) -> Bool[Tensor, "windows N"]:
    """Which predictions of `overlapping_windows` are of tokens that are predicted at every position.

    The first tokens of a run are only predicted early in a window, and the last ones only late. Without
    them each block of `stride` positions predicts the same tokens, and what differs is the position alone.

    Raises:
        ValueError: if `stride` does not divide `length`, or a run is too short for any token to be left.
    """
    run, blocks = math.ceil(count / places), length // stride
    if length % stride or run < blocks:
        raise ValueError(
            f"runs of {run} windows of {length} tokens, {stride} apart, share no token at all positions"
        )
    window, place = torch.arange(count)[:, None] % run, torch.arange(length) // stride
    return (window + place >= blocks - 1) & (window + place < run)


class OffsetAttend(Backend):
    """Rotary attention of a trained model with some offsets changed: a control, not a way to train.

    The score of a query at n and a key at s is a sum over hands i of Re(conj(k_i) q_i e^{i (n - s) w_i}).
    For a clamped hand n - s is never more than `length` - 1, the largest offset of a training at that length;
    or every offset from `length` on counts as another, which is given. Hands that are not clamped, and all
    offsets below `length`, are as `Rotary` makes them.

    Args:
        length: of the sequences of the training.
        clamped: the numbers of the hands that stop; or from each to the offset that counts, also a fraction.
        window: whether keys further back than that are hidden instead.
        temperature: whether scores are multiplied by ln(n) / ln(length) where n > length keys are seen.

    The layer that this backend belongs to must not turn queries and keys as well: its `rotary` is None.
    """

    def __init__(
        self,
        length: int,
        clamped: Sequence[int] | Mapping[int, float] = (),
        *,
        window: bool = False,
        temperature: bool = False,
    ):
        super().__init__()
        self.length = whole("length", length, 1)
        stops = clamped if isinstance(clamped, Mapping) else dict.fromkeys(clamped, self.length - 1)
        self.clamped: dict[int, float] = dict(stops)
        self.window, self.temperature = window, temperature

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """softmax(scores) v, the scores those of near keys or of far ones."""
        turn = Rotary(q.shape[-1])
        near_q, near_k = turn(q), turn(k)
        far_q, far_k = near_q.clone(), near_k.clone()
        for hand, offset in self.clamped.items():
            both, angle = slice(2 * hand, 2 * hand + 2), offset * 10000.0 ** (-2 * hand / q.shape[-1])
            far_k[..., both] = k[..., both]
            far_q[..., both] = torch.view_as_real(
                torch.view_as_complex(q[..., both].contiguous()) * cmath.rect(1, angle)
            )
        places = torch.arange(k.shape[-2])
        offsets = places[k.shape[-2] - q.shape[-2] :, None] - places
        scores = torch.where(offsets < self.length, near_q @ near_k.mT, far_q @ far_k.mT) / math.sqrt(
            q.shape[-1]
        )
        if self.temperature:
            seen = (places[k.shape[-2] - q.shape[-2] :] + 1).clamp(min=self.length)
            scores = scores * (seen.log() / math.log(self.length))[:, None]
        if self.window:
            near = offsets < self.length
            mask = near if mask is None else mask & near
        return masked_softmax(scores, mask) @ v
