"""How well a language model predicts: bits a character, bits a pixel."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor, nn

from tformer_lib.core.modes import evaluation
from tformer_lib.core.precision import precise
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.numbers import whole


@torch.no_grad()
def bits_per_character(model: nn.Module, ids: Int[Tensor, " T"], context: int, batch: int = 64) -> float:
    """Mean of -log2 p(x_{n+1} | more than `context` tokens before it) over a held-out text.

    Bits per token, that is, which for a model of characters are bits per character. The text is cut into
    windows of 2 * `context` tokens, each beginning in the middle of the one before, and of each window the
    second half of the predictions is counted: so each token is predicted once, and none with a short
    memory of what went before: a prediction reads context + 1 to 2 * `context` tokens. The first
    context + 1 tokens and a rest shorter than a window are not counted. The model is put into evaluation
    mode, and back.

    Args:
        model: maps tokens (B, N) to logits (B, N, vocab), of which those at n depend on tokens 1..n alone.
        ids: the text.
        context: half of the length at which the model reads.
        batch: how many windows are computed at a time.

    Raises:
        ValueError: if the text has not one window, or an argument is below 1.
    """
    context, batch = whole("context", context, 1), whole("batch", batch, 1)
    if len(ids) < 2 * context + 1:
        raise ValueError(f"a window takes {2 * context + 1} tokens, and the text has {len(ids)}")
    windows = ids.unfold(0, 2 * context + 1, context)
    total = 0.0
    with evaluation(model):
        for rows in windows.split(batch):
            logits = precise(model(rows[:, :-1])[:, context:])
            total += F.cross_entropy(
                logits.flatten(0, 1), rows[:, context + 1 :].flatten(), reduction="sum"
            ).item()
    return total / (len(windows) * context) / math.log(2)


@torch.no_grad()
def bits_per_pixel(model: GPT, rows: Int[Tensor, "B M"], batch: int = 100) -> float:
    """Mean of -log2 p(x_n | x_0..x_{n-1}) over all pixels; a row is the start token x_0 and an image."""
    if not len(rows):
        raise ValueError("there is no image whose pixels could be predicted")
    with evaluation(model):
        nats = sum(
            language_loss(model, part).item() * len(part) for part in rows.split(whole("batch", batch, 1))
        )
    return nats / len(rows) / math.log(2)
