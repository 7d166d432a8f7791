"""What the held-out text costs."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor, nn

from tformer_lib.core.modes import evaluation
from tformer_lib.data.shards import Shards
from tformer_lib.numbers import whole


@dataclass(frozen=True)
class Score:
    """What a held-out text costs, beside two ways of knowing less."""

    tokens: int
    characters: int  # of the documents, without their ends
    nats: float  # a token
    bits: float  # a character
    counts_bits: float  # a character, for one who knows how often each token comes in the training text
    nothing_bits: float  # and for one who knows how many tokens there are


@torch.no_grad()
def text_nats(model: nn.Module, ids: Int[Tensor, " T"], context: int, batch: int = 64) -> float:
    """Sum over n >= 2 of -log p(x_n | at least half of `context` tokens before it, where there are as many).

    The text is read in windows of `context` inputs, each half a window after the one before; of each, only
    the predictions that no window before has made are counted. So every token but the first is predicted
    exactly once.

    Args:
        model: maps tokens (B, N) to logits (B, N, vocab); the logits at n depend on tokens 1..n alone.
        ids: the text; its first token is given.
        context: the tokens that the model reads at most.
        batch: how many windows are computed at a time.

    Raises:
        ValueError: if there is nothing to predict, or a number is out of bounds.
    """
    context, batch = whole("context", context, 1), whole("batch", batch, 1)
    last = len(ids) - 1
    if last < 1:
        raise ValueError(f"there is nothing to predict in a text of {len(ids)} tokens")
    length, stride = min(context, last), max(1, context // 2)
    starts = [*range(0, last - length, stride), last - length]
    reached, fresh = 0, []  # how many predictions of each window are new
    for start in starts:
        fresh.append(start + length - reached)
        reached = start + length
    windows = ids.unfold(0, length + 1, 1)[starts]
    new = torch.arange(length, 0, -1) <= torch.tensor(fresh)[:, None]  # (windows, N)
    device = next(model.parameters()).device
    total = 0.0
    with evaluation(model):
        for rows, counted in zip(windows.split(batch), new.split(batch), strict=True):
            rows = rows.to(device)
            logits = model(rows[:, :-1])
            nats = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten(), reduction="none")
            total += nats.cpu().double()[counted.flatten()].sum().item()
    return total


def reading(
    model: nn.Module, shards: Shards, context: int, *, tokens: int | None = None, batch: int = 64
) -> tuple[float, Int[Tensor, " T"]]:
    """(nats, the tokens) of the beginning of the held-out part, its first document begun as if one had ended.

    Args:
        model: as in `text_nats`.
        shards: whose held-out part is read.
        context: as in `text_nats`.
        tokens: how many tokens, from the beginning, are predicted; all if None.
        batch: as in `text_nats`.

    Raises:
        ValueError: if nothing was held out, or a number is out of bounds.
    """
    held_out = shards.tokens("held_out")
    if not held_out:
        raise ValueError("nothing was held out: there is no text to evaluate on")
    count = held_out if tokens is None else min(held_out, whole("tokens", tokens, 1))
    ids = shards.read("held_out", 0, count)
    return text_nats(model, torch.cat([torch.tensor([shards.end]), ids]), context, batch), ids


def score(
    model: nn.Module, shards: Shards, context: int, *, tokens: int | None = None, batch: int = 64
) -> Score:
    """The cost of the held-out documents in nats and bits; arguments and errors are those of `reading`."""
    nats, ids = reading(model, shards, context, tokens=tokens, batch=batch)
    text = shards.tokenizer.decode(ids[ids != shards.end])
    seen = torch.ones(shards.vocab_size)
    for start in range(0, shards.tokens("train"), 1 << 22):
        part = shards.read("train", start, min(start + (1 << 22), shards.tokens("train")))
        seen += torch.bincount(part, minlength=shards.vocab_size)
    by_counts = -(seen.double() / seen.sum()).log()[ids].sum().item()
    to_bits = 1 / math.log(2) / max(len(text), 1)
    return Score(
        tokens=len(ids),
        characters=len(text),
        nats=nats / len(ids),
        bits=nats * to_bits,
        counts_bits=by_counts * to_bits,
        nothing_bits=len(ids) * math.log(shards.vocab_size) * to_bits,
    )
