"""A transformer that is asked what stood beside a key."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tformer_lib.core.attention import Backend
from tformer_lib.core.tokens import IGNORED, TokenEmbedding, cross_entropy
from tformer_lib.core.transformer import Transformer, TransformerConfig

RecallBatch = tuple[Tensor, Tensor, Tensor, Tensor]  # keys, values, answers, distances


class RecallModel(nn.Module):
    """logits_n = W h_n, with h = Transformer(E_key[keys] + E_value[values]), without positions.

    A place may hold a pair: the sum of two embeddings; value 0 is none. What is remembered of a pair is
    up to the attention.

    Args:
        config: sizes and choices of the stack.
        n_keys: the number of keys, 0..n_keys - 1.
        n_values: the number of values, 1..n_values.
        make_backend: builds a backend for each attention layer.
    """

    def __init__(
        self,
        config: TransformerConfig,
        n_keys: int,
        n_values: int,
        *,
        make_backend: Callable[[], Backend] | None = None,
    ):
        super().__init__()
        self.embed_key = TokenEmbedding(n_keys, config.d_model, name="keys", axes="B N")
        self.embed_value = TokenEmbedding(n_values + 1, config.d_model, name="values", axes="B N")
        self.transformer = Transformer(config, make_backend=make_backend)
        self.head = nn.Linear(config.d_model, n_values + 1)

    def forward(self, keys: Int[Tensor, "B N"], values: Int[Tensor, "B N"]) -> Float[Tensor, "B N vocab"]:
        return self.head(self.transformer(self.embed_key(keys) + self.embed_value(values)))


def recall_loss(model: nn.Module, batch: RecallBatch) -> Tensor:
    """Mean nats of the right value, over the places that ask for one.

    Raises:
        ValueError: if none does.
    """
    keys, values, answers, _ = batch
    return cross_entropy(model(keys, values).flatten(0, 1), answers.flatten(), ignored=IGNORED)


@torch.no_grad()
def recall_hits(model: nn.Module, batch: RecallBatch) -> Bool[Tensor, "B queries"]:
    """Whether the most probable value is the right one, for each place that asks for one."""
    keys, values, answers, _ = batch
    hits = model(keys, values).argmax(dim=-1) == answers
    return hits[answers != IGNORED].unflatten(0, (len(answers), -1))


def recall_accuracy(model: nn.Module, batch: RecallBatch) -> float:
    """The share of right answers."""
    return recall_hits(model, batch).float().mean().item()
