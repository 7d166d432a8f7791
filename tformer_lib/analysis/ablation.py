"""Heads masked out, and what a loss misses without each."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tformer_lib.analysis.activations import check_ran
from tformer_lib.analysis.recording import plain_modules
from tformer_lib.analysis.weights import attention_layers
from tformer_lib.core.attention import MultiHeadAttention
from tformer_lib.core.modes import as_written, evaluation


@contextmanager
def mask_heads(model: nn.Module, heads: Iterable[tuple[int | str, int]]) -> Iterator[None]:
    """y = W_o concat(..., 0, ...) + b: within the `with`, the heads given add nothing to the stream.

    What they would hand to W_o is set to zero by a hook on W_o, so that no weight is touched; the hooks go
    when the block ends, also when it ends in an error. Nested calls add up.

    Args:
        model: any model with attention layers; its backends may be fused.
        heads: pairs (block, head), counted from 0, of the self-attention in a model with one `Transformer`;
            or (name, head) with the name of a `MultiHeadAttention` in `model.named_modules()`, such as
            "decoder.blocks.0.cross_attention".

    Raises:
        ValueError: if there is no such head or layer, or a block is counted and there is not exactly one
            `Transformer`.
        RuntimeError: at the end of the block, if none of these layers has run.
    """
    silent: dict[MultiHeadAttention, set[int]] = {}
    names: dict[MultiHeadAttention, str] = {}
    for where, head in heads:
        layer = _layer(model, where, head)
        silent.setdefault(layer, set()).add(head)
        names[layer] = where if isinstance(where, str) else f"the attention of block {where}"
    ran: set[MultiHeadAttention] = set()

    def silence(features: Tensor) -> Callable:
        return lambda _module, inputs: (inputs[0].masked_fill(features.to(inputs[0].device), 0.0),)

    with as_written(), ExitStack() as hooks:
        for layer, numbers in silent.items():
            of_feature = torch.arange(layer.d_model) // layer.d_head
            features = torch.isin(of_feature, torch.tensor(sorted(numbers)))
            seen = layer.register_forward_pre_hook(lambda module, _inputs: ran.add(module))
            hook = layer.W_o.register_forward_pre_hook(silence(features))
            hooks.callback(seen.remove)
            hooks.callback(hook.remove)
        yield
    check_ran(ran, names.values())


def _layer(model: nn.Module, where: int | str, head: int) -> MultiHeadAttention:
    """The attention layer that a pair of `mask_heads` names, which has this head."""
    if isinstance(where, str):
        named = {n: m for n, m in plain_modules(model).items() if isinstance(m, MultiHeadAttention)}
        if where not in named:
            known = ", ".join(repr(name) for name in named) or "none"
            raise ValueError(f"there is no attention layer {where!r}; the model's are {known}")
        if not 0 <= head < named[where].n_heads:
            raise ValueError(f"there is no head {head} in {where}: it has {named[where].n_heads} heads")
        return named[where]
    layers = attention_layers(model)
    if not (0 <= where < len(layers) and 0 <= head < layers[where].n_heads):
        shape = f"{len(layers)} blocks with {layers[0].n_heads} heads each"
        raise ValueError(f"there is no head {head} in block {where}: the model has {shape}")
    return layers[where]


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
