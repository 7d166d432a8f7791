"""The schedule of the learning rate, and which optimiser moves which parameter."""

import math

import torch
from torch import Tensor, nn

from tformer_lib.core.transformer import Block, Transformer
from tformer_lib.training.muon import Muon

OPTIMIZERS = ("adamw", "muon")


def warmup_cosine(step: int, steps: int, warmup: int, min_lr_ratio: float = 0.0) -> float:
    """The share of the peak learning rate at `step`, counted from 0.

    It climbs in a straight line over the first `warmup` steps to 1, then falls along half a cosine towards
    r = `min_lr_ratio`: r + (1 - r) (1 + cos(pi x)) / 2 with x the share of the other steps that is done.
    """
    if step < warmup:
        return (step + 1) / warmup
    cosine = 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))
    return min_lr_ratio + (1 - min_lr_ratio) * cosine


def muon_matrices(model: nn.Module) -> list[Tensor]:
    """The weights of every `nn.Linear` inside the model's transformer stacks: what Muon is for.

    Those are W_q, W_k, W_v and W_o of attention and the two or three matrices of each MLP. Not among them:
    embeddings, tables of positions, heads (a head stands outside the stack; so does one that is tied to
    an embedding), biases, norms, weights that are frozen, and any weight shared with a module outside.
    """
    stacks = [module for module in model.modules() if isinstance(module, Transformer | Block)]
    inside = {id(module): module for stack in stacks for module in stack.modules()}
    outside = {
        id(p)
        for module in model.modules()
        if not (id(module) in inside and isinstance(module, nn.Linear))
        for p in module.parameters(recurse=False)
    }
    linears = [module for module in inside.values() if isinstance(module, nn.Linear)]
    weights = {id(linear.weight): linear.weight for linear in linears}
    return [w for key, w in weights.items() if w.requires_grad and key not in outside]


def make_optimizers(
    model: nn.Module,
    name: str = "adamw",
    *,
    lr: float,
    weight_decay: float,
    betas: tuple[float, float] = (0.9, 0.999),
    momentum: float = 0.95,
) -> list[torch.optim.Optimizer]:
    """AdamW for every parameter; or Muon for the matrices of the stack and AdamW for the others.

    AdamW (Loshchilov and Hutter 2019) decays parameters of two or more dimensions and leaves biases and
    norms alone. Muon (Jordan et al. 2024) replaces the averaged gradient of a matrix by the nearest
    orthogonal one, nearly; its steps are scaled to the length of AdamW's (Liu et al. 2025), so that one
    learning rate and one weight decay serve both. `muon_matrices` says which parameters it gets.
    `betas` are AdamW's: how much of its averages of gradients and of their squares stays at each step;
    `momentum` is the same for Muon's average.

    Raises:
        ValueError: if the name is unknown, or Muon finds no matrix that it is for.
    """
    if name not in OPTIMIZERS:
        raise ValueError(f"optimizer must be one of {OPTIMIZERS}, got {name!r}")
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizers: list[torch.optim.Optimizer] = []
    if name == "muon":
        matrices = muon_matrices(model)
        if not matrices:
            raise ValueError("there is no Transformer or Block in this model whose matrices Muon could train")
        optimizers.append(Muon(matrices, lr=lr, weight_decay=weight_decay, momentum=momentum))
        taken = {id(p) for p in matrices}
        parameters = [p for p in parameters if id(p) not in taken]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return [*optimizers, torch.optim.AdamW(groups, lr=lr, betas=betas)]
