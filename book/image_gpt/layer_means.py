"""What a language model's layers hold of a sequence, averaged over its places."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from tformer_lib.core.modes import as_written, evaluation, plain
from tformer_lib.core.precision import precise
from tformer_lib.models.gpt import GPT
from tformer_lib.numbers import whole


@torch.no_grad()
def layer_means(model: GPT, rows: Int[Tensor, "B M"], batch: int = 200) -> list[Float[Tensor, "B D"]]:
    """The mean over all places of what enters the first block, then of what leaves each block.

    M + 1 tensors for M blocks: an image's vector at each depth of the residual stream, before any final norm
    (Chen et al. 2020, section 2.4, average what follows the layer's norm). The last pixel is not read, as in
    training.
    """
    inside = plain(model).transformer
    states: list[list[Tensor]] = [[] for _ in range(len(inside.blocks) + 1)]
    hooks: list[RemovableHandle] = [
        plain(inside.blocks[0]).register_forward_pre_hook(
            lambda _block, inputs: states[0].append(precise(inputs[0]).mean(dim=1))
        )
    ]
    for depth, block in enumerate(map(plain, inside.blocks), start=1):
        hooks.append(
            block.register_forward_hook(
                lambda _block, _inputs, output, depth=depth: states[depth].append(precise(output).mean(dim=1))
            )
        )
    try:
        with as_written(), evaluation(model):
            for part in rows.split(whole("batch", batch, 1)):
                model(part[:, :-1])
    finally:
        for hook in hooks:
            hook.remove()
    return [torch.cat(parts) for parts in states]
