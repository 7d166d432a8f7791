"""Heads masked out, and what a loss misses without each."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tformer_lib.analysis.weights import attention_layers
from tformer_lib.core.modes import evaluation


@contextmanager
def mask_heads(model: nn.Module, heads: Iterable[tuple[int, int]]) -> Iterator[None]:
    """y = W_o concat(..., 0, ...) + b: within the `with`, the heads given add nothing to the stream.

    What they would hand to W_o is set to zero by a hook on W_o, so that no weight is touched; the hooks go
    when the block ends, also when it ends in an error. Nested calls add up.

    Args:
        model: any model with one `Transformer`; its backends may be fused.
        heads: pairs (block, head), counted from 0.

    Raises:
        ValueError: if there is no such head, or not exactly one `Transformer`.
    """
    layers = attention_layers(model)
    silent: dict[int, set[int]] = {}
    for block, head in heads:
        if not (0 <= block < len(layers) and 0 <= head < layers[block].n_heads):
            shape = f"{len(layers)} blocks with {layers[0].n_heads} heads each"
            raise ValueError(f"there is no head {head} in block {block}: the model has {shape}")
        silent.setdefault(block, set()).add(head)
    with ExitStack() as hooks:
        for block, numbers in silent.items():
            layer = layers[block]
            of_feature = torch.arange(layer.d_model) // layer.d_head
            features = torch.isin(of_feature, torch.tensor(sorted(numbers)))
            hook = layer.W_o.register_forward_pre_hook(
                lambda _module, inputs, features=features: (
                    inputs[0].masked_fill(features.to(inputs[0].device), 0.0),
                )
            )
            hooks.callback(hook.remove)
        yield


@torch.no_grad()
def ablation(model: nn.Module, loss: Callable[[nn.Module], Tensor | float]) -> Float[Tensor, "M H"]:
    """loss without head (m, h), all others there, minus loss with all of them; dropout is off.

    Args:
        model: any model with one `Transformer`.
        loss: measures the model, always on the same data.

    Source:
        Michel et al. 2019, who measure BLEU and accuracy.
    """
    layers = attention_layers(model)
    with evaluation(model):
        whole = float(loss(model))
        rise = torch.zeros(len(layers), layers[0].n_heads)
        for block, layer in enumerate(layers):
            for head in range(layer.n_heads):
                with mask_heads(model, [(block, head)]):
                    rise[block, head] = float(loss(model)) - whole
    return rise
