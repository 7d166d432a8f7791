"""What the other parts of a decoder do when a head is cut: direct effects before and after."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from tformer_book.inside.attribution import frozen_norm
from tformer_lib.analysis.activations import patch, record
from tformer_lib.core.masks import causal_mask
from tformer_lib.models.gpt import GPT

Head = tuple[int, int]  # block and head, counted from 0
HANDED = "transformer.blocks.{}.self_attention.W_o.input"
WEIGHTS = "transformer.blocks.{}.self_attention.backend.softmax"


@dataclass(frozen=True)
class Effects:
    """Of one run, for each sequence the mean over the places that are asked.

    `logit` is the right token's minus the mean of all logits, which is a sum over parts of the stream:
    that of `heads` and `mlps` and what came before block `first`. Direct effects are taken with the last
    norm's denominator at `scale`; `frozen` is the logit with it.
    """

    loss: Float[Tensor, "B"]
    logit: Float[Tensor, "B"]
    frozen: Float[Tensor, "B"]
    heads: Float[Tensor, "B M H"]
    mlps: Float[Tensor, "B M"]  # 0 where there is none
    prefix: Float[Tensor, "B M H"]  # weight on what followed the token one period ago
    scale: Float[Tensor, "B T 1"]


@torch.no_grad()
def stream_before(model: GPT, tokens: Int[Tensor, "B N"], block: int) -> Float[Tensor, "B N D"]:
    """What this block reads: no later part of the model has to run for it."""
    x = model.embed(tokens)
    x = x if model.positions is None else model.positions(x)
    mask = causal_mask(tokens.shape[1], tokens.device)
    for earlier in list(model.transformer.blocks)[:block]:
        x = earlier(x, mask=mask)
    return x


@torch.no_grad()
def effects(
    model: GPT,
    tokens: Int[Tensor, "B N"],
    period: int,
    *,
    stream: Tensor,
    first: int = 0,
    scale: Tensor | None = None,
) -> Effects:
    """Run the blocks from `first` on, and take the right token's logit apart by heads and MLPs.

    Asked are the places of the second copy whose next token is known: n = P, ..., N - 2.

    Args:
        model: a pre-norm decoder, in evaluation mode.
        tokens: sequences that repeat after `period` tokens.
        period: P.
        stream: what block `first` reads, from `stream_before`.
        first: the first block to run, and to take apart.
        scale: the last norm's denominator for the direct effects; this run's own if None.
    """
    blocks: Any = list(model.transformer.blocks)
    numbers = range(first, len(blocks))
    with_mlp = hasattr(blocks[0], "mlp")
    names = [kind.format(m) for m in numbers for kind in (HANDED, WEIGHTS)]
    names += [f"transformer.blocks.{m}.mlp" for m in numbers if with_mlp]
    mask = causal_mask(tokens.shape[1], tokens.device)
    x = stream
    with record(model, names) as seen:
        for m in numbers:
            x = blocks[m](x, mask=mask)
    n = torch.arange(period, tokens.shape[1] - 1)
    x, right = x[:, n], tokens[:, n + 1]
    norm = model.transformer.final_norm
    weight: Any = (model.embed if model.head is None else model.head).weight
    logits = norm(x) @ weight.T
    loss = cross_entropy(logits.transpose(1, 2), right, reduction="none").mean(dim=1)
    logit = logits.gather(2, right[..., None])[..., 0] - logits.mean(dim=-1)

    u = weight[right] - weight.mean(dim=0)  # (B, T, D)
    own = _denominator(norm, x)
    scale = own if scale is None else scale
    direction = norm.weight * u / scale  # J is diagonal in an RMSNorm
    heads, mlps, prefix = [], [], []
    for m in numbers:
        layer = blocks[m].self_attention
        spoken = seen[HANDED.format(m)][:, n] * (direction @ layer.W_o.weight)
        heads.append(spoken.unflatten(-1, (layer.n_heads, -1)).sum(-1).mean(dim=1))  # (B, H)
        prefix.append(seen[WEIGHTS.format(m)][..., n, n - period + 1].mean(dim=-1))
        added = seen[f"transformer.blocks.{m}.mlp"][:, n] if with_mlp else torch.zeros_like(direction)
        mlps.append((added * direction).sum(-1).mean(dim=1))
    return Effects(
        loss,
        logit.mean(dim=1),
        (x * direction).sum(-1).mean(dim=1),
        torch.stack(heads, dim=1),
        torch.stack(mlps, dim=1),
        torch.stack(prefix, dim=1),
        scale,
    )


def _denominator(norm: Any, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T 1"]:
    """What an RMSNorm divides by, read off a part that is all ones."""
    ones = torch.ones_like(x)
    return (norm.weight / frozen_norm(norm, ones, x))[..., :1]


@contextmanager
def cut(model: GPT, heads: Iterable[Head], instead: Mapping[int, Float[Tensor, "_B N D"]]) -> Iterator[None]:
    """Within the `with`, these heads hand to W_o what `instead` holds for their block."""
    by_block: dict[int, list[int]] = {}
    for block, head in heads:
        by_block.setdefault(block, []).append(head)

    def change(block: int, numbers: list[int]) -> Any:
        def put(z: Tensor) -> Tensor:
            layer: Any = model.transformer.blocks[block]
            width = layer.self_attention.d_head
            new = z.clone()
            for h in numbers:
                new[..., h * width : (h + 1) * width] = instead[block][..., h * width : (h + 1) * width]
            return new

        return put

    with patch(model, {HANDED.format(m): change(m, numbers) for m, numbers in by_block.items()}):
        yield


@dataclass(frozen=True)
class Repair:
    """What a cut changes, a number a sequence; `own`, `heads`, `mlps` and `norm` add up to `logit`."""

    loss: Float[Tensor, "B"]
    logit: Float[Tensor, "B"]
    own: Float[Tensor, "B"]  # the direct effect of the heads that were cut
    heads: Float[Tensor, "B M H"]  # that of each other head; 0 at those that were cut
    mlps: Float[Tensor, "B M"]
    norm: Float[Tensor, "B"]  # because the last norm divides by something else
    prefix: Float[Tensor, "B M H"]


def repair(clean: Effects, after: Effects, heads: Iterable[Head], first: int = 0) -> Repair:
    """The difference of two runs; `after` was taken with the scale of `clean`."""
    change = after.heads - clean.heads
    gone = torch.zeros(change.shape[1:], dtype=torch.bool)
    for block, head in heads:
        gone[block - first, head] = True
    return Repair(
        after.loss - clean.loss,
        after.logit - clean.logit,
        change[:, gone].sum(dim=1),
        change.masked_fill(gone, 0.0),
        after.mlps - clean.mlps,
        after.logit - after.frozen,
        after.prefix - clean.prefix,
    )
