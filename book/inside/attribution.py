"""What each part of a decoder adds to a logit."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tformer_lib.analysis.activations import record
from tformer_lib.core.modes import evaluation, plain
from tformer_lib.core.precision import precise
from tformer_lib.models.gpt import GPT


@torch.no_grad()
def logit_attribution(
    model: GPT,
    tokens: Int[Tensor, "B N"],
    answers: Int[Tensor, "_B _N"],
    against: Int[Tensor, "_B _N"] | None = None,
) -> dict[str, Float[Tensor, "B N"]]:
    """u . norm(x) = sum_c u . J x_c + u . b: what each part c of the stream adds to the logit of an answer.

    The stream before the last norm is a sum x = sum_c x_c of the embedding, the positions, each head and
    each MLP. The norm is linear once its denominator is held at the value that it has for x, with J its
    matrix and b its bias, so that the parts add up to the logit exactly. A part with a negative number speaks
    against the answer. What a part does through later ones is counted there, not here.

    Args:
        model: a decoder with pre-norm blocks, or without norms; dropout is off.
        tokens: what it reads.
        answers: for each place the token whose logit is taken apart.
        against: if given, the logit of `answers` minus that of these is taken apart instead.

    Returns:
        The parts with their names, which are "embedding", "positions", "head m.h" and "MLP m" of block m,
        counted from 0, and "biases" for those of W_o and the last norm. The sum of all parts is the logit.

    Raises:
        ValueError: if the blocks have their norms behind the additions, or the shapes differ.

    Source:
        Elhage et al. 2021, "the logit as a sum over paths"; nostalgebraist 2020 reads the stream so.
    """
    called, model = model, plain(model)
    if model.config.norm_placement != "pre":
        raise ValueError("the stream is a sum of parts with pre-norm blocks only: post-norm divides it again")
    for name, given in (("answers", answers), ("against", against)):
        if given is not None and given.shape != tokens.shape:
            raise ValueError(f"tokens are {tuple(tokens.shape)}, but {name} {tuple(given.shape)}")
    blocks = [plain(block) for block in plain(model.transformer).blocks]
    stem = "transformer.blocks.{}.{}"
    names = ["embed", "transformer.final_norm.input"]
    names += ["positions"] if model.positions is not None else []
    for m, block in enumerate(blocks):
        names.append(stem.format(m, "self_attention.W_o.input"))
        names += [stem.format(m, "mlp")] if hasattr(block, "mlp") else []
    with evaluation(model), record(model, names) as seen:
        called(tokens)
    seen = {name: precise(activation) for name, activation in seen.items()}

    parts = {"embedding": seen["embed"]}
    if model.positions is not None:
        parts["positions"] = seen["positions"] - seen["embed"]
    biases = torch.zeros_like(seen["embed"])
    for m, block in enumerate(blocks):
        layer = block.self_attention
        heads = layer.split_heads(seen[stem.format(m, "self_attention.W_o.input")])  # (B, H, N, Dh)
        for h in range(layer.n_heads):
            columns = precise(layer.W_o.weight)[:, h * layer.d_head : (h + 1) * layer.d_head]
            parts[f"head {m}.{h}"] = heads[:, h] @ columns.T
        if layer.W_o.bias is not None:
            biases = biases + layer.W_o.bias
        if hasattr(block, "mlp"):
            parts[f"MLP {m}"] = seen[stem.format(m, "mlp")]
    parts["biases"] = biases

    weight: Any = precise((model.embed if model.head is None else model.head).weight)
    direction = weight[answers] if against is None else weight[answers] - weight[against]  # (B, N, D)
    stream, norm = seen["transformer.final_norm.input"], model.transformer.final_norm
    found = {name: (frozen_norm(norm, part, stream) * direction).sum(-1) for name, part in parts.items()}
    bias: Any = getattr(norm, "bias", None)
    if bias is not None:
        found["biases"] = found["biases"] + direction @ precise(bias)
    return found


def frozen_norm(
    norm: nn.Module, part: Float[Tensor, "*batch D"], stream: Float[Tensor, "*batch D"]
) -> Float[Tensor, "*batch D"]:
    """J part: the norm of a part of the stream with the denominator of the whole, without the bias.

    Raises:
        TypeError: if the norm is neither LayerNorm nor RMSNorm nor Identity.
    """
    if isinstance(norm, nn.Identity):
        return part
    if isinstance(norm, nn.LayerNorm):
        size = (stream.var(dim=-1, correction=0, keepdim=True) + norm.eps).sqrt()
        part = part - part.mean(dim=-1, keepdim=True)
    elif isinstance(norm, nn.RMSNorm):
        eps = torch.finfo(stream.dtype).eps if norm.eps is None else norm.eps
        size = (stream.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    else:
        raise TypeError(f"a LayerNorm, an RMSNorm or no norm can be taken apart, got {type(norm).__name__}")
    return part / size if norm.weight is None else norm.weight * part / size
