"""Language models before the transformer, and the loss that all language models share."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn


def language_loss(model: nn.Module, batch: Int[Tensor, "B M"]) -> Float[Tensor, ""]:
    """Mean over n of -log p(x_{n+1} | x_1..x_n) in nats: the cross-entropy of the next token.

    `model` maps tokens (B, N) to logits (B, N, vocab), of which those at n may depend on tokens 1..n
    alone; the batch holds N + 1 tokens a row.
    """
    logits = model(batch[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
