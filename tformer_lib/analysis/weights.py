"""The heads of a model: the layers that hold them, and their weights on a batch."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tformer_lib.analysis.recording import plain_modules, record_attention
from tformer_lib.core.attention import MultiHeadAttention
from tformer_lib.core.modes import evaluation, plain
from tformer_lib.core.transformer import Block, Transformer

Batch = tuple[Any, ...]  # (tokens, segments or None, mask or None, ...)


def attention_layers(model: nn.Module) -> list[MultiHeadAttention]:
    """The self-attention layers of the model's blocks, in order.

    Raises:
        ValueError: if there is not exactly one `Transformer` in the model.
    """
    blocks = (plain(block) for block in _transformer(model).blocks)
    layers = [plain(block.self_attention) for block in blocks if isinstance(block, Block)]
    return [layer for layer in layers if isinstance(layer, MultiHeadAttention)]


def _transformer(model: nn.Module) -> Transformer:
    found = [module for module in plain_modules(model).values() if isinstance(module, Transformer)]
    if len(found) != 1:
        raise ValueError(f"heads are counted in one Transformer; {type(model).__name__} has {len(found)}")
    return found[0]


@torch.no_grad()
def attention_weights(model: nn.Module, batch: Batch) -> Float[Tensor, "B M H N N"]:
    """The weights of every head on one batch, queries along the last axis but one; dropout is off."""
    stack = _transformer(model)
    with evaluation(model), record_attention(stack) as weights:
        model(*batch[:3])
    return torch.stack([weights[f"blocks.{m}.self_attention"] for m in range(len(stack.blocks))], dim=1)
