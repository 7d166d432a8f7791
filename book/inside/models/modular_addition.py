"""Addition modulo p for a transformer of one block: the table, the pairs shown, the network, its training."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tformer_lib.core.modes import as_written, plain
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.gpt import GPT


def addition_table(p: int) -> tuple[Int[Tensor, "p p 3"], Int[Tensor, "p p"]]:
    """The tokens a, b, "=" of every pair, and a + b modulo p; "=" is token p."""
    n = torch.arange(p)
    a, b = n[:, None].expand(p, p), n[None, :].expand(p, p)
    return torch.stack((a, b, torch.full((p, p), p)), dim=2), (a + b) % p


def shuffled_answers(answers: Int[Tensor, "p _p"], seed: int = 0) -> Int[Tensor, "p _p"]:
    """The same answers for other pairs: no rule is left but that (a, b) and (b, a) have one answer."""
    p = len(answers)
    above = torch.triu_indices(p, p)
    order = torch.randperm(above.shape[1], generator=torch.Generator().manual_seed(seed))
    table = torch.empty_like(answers)
    table[above[0], above[1]] = answers[above[0][order], above[1][order]]
    table[above[1], above[0]] = table[above[0], above[1]]
    return table


def shown_pairs(p: int, share: float, seed: int = 0) -> Bool[Tensor, "p p"]:
    """Which pairs are for training: this share of all, chosen at random.

    Of the others, a network that treats a and b alike knows (b, a) where it has learned (a, b) by heart; that
    it has found the rule only shows on `unseen_pairs`.

    Raises:
        ValueError: if the share is not between 0 and 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share is above 0 and at most 1, got {share}")
    order = torch.randperm(p * p, generator=torch.Generator().manual_seed(seed))
    shown = torch.zeros(p * p, dtype=torch.bool)
    shown[order[: round(share * p * p)]] = True
    return shown.reshape(p, p)


def unseen_pairs(shown: Bool[Tensor, "p p"]) -> Bool[Tensor, "p p"]:
    """The pairs (a, b) that were not shown, and of which (b, a) was not shown either."""
    return ~(shown | shown.T)


def modular_adder(p: int, d_model: int = 64, n_heads: int = 4, d_hidden: int = 256) -> GPT:
    """The GPT of one block that reads a, b, "="; it has no norms and no biases, so that it is easy to read.

    Args:
        p: the modulus; the vocabulary is 0, ..., p - 1 and "=".
        d_model: the width D.
        n_heads: H.
        d_hidden: the hidden width F of the MLP, whose activation is ReLU.
    """
    config = TransformerConfig(
        d_model=d_model, n_heads=n_heads, n_blocks=1, d_hidden=d_hidden, activation="relu", bias=False
    )
    model = GPT(config, p + 1, positions=LearnedPositions(3, d_model), tied=False)
    model.transformer.final_norm = nn.Identity()
    for block in model.transformer.blocks:
        block.self_attention_norm, block.mlp_norm = nn.Identity(), nn.Identity()
    return model


def answer_logits(model: GPT, tokens: Int[Tensor, "*pairs 3"]) -> Float[Tensor, "*pairs p"]:
    """The logits of the numbers 0, ..., p - 1 behind "="."""
    p = model.embed.num_embeddings - 1
    return model(tokens.reshape(-1, 3))[:, -1, :p].reshape(*tokens.shape[:-1], p)


def train_adder(
    model: GPT,
    tokens: Int[Tensor, "pairs 3"],
    answers: Int[Tensor, "pairs"],
    *,
    steps: int,
    lr: float = 3e-3,
    weight_decay: float = 1.0,
    every: int = 50,
    watch: Callable[[int], None] = lambda step: None,
) -> None:
    """AdamW on the cross-entropy of all pairs at once; `watch(step)` is called before steps 0, `every`, ...

    It is called once more at the end. The learning rate rises over the first ten steps and then stays.
    """
    optimiser = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.98), weight_decay=weight_decay)
    for step in range(steps):
        if step % every == 0:
            watch(step)
        for group in optimiser.param_groups:
            group["lr"] = lr * min(1.0, (step + 1) / 10)
        loss = F.cross_entropy(answer_logits(model, tokens), answers)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    watch(steps)


def gradient_symmetry(model: GPT, triples: Int[Tensor, "T 3"]) -> float:
    """The mean cosine between the gradients of the logit of c with respect to the embeddings of a and b.

    If the two embeddings enter only by their sum, it is 1.

    Args:
        model: a `modular_adder`.
        triples: rows a, b, c.

    Source:
        Zhong et al. 2023, definition 4.1.
    """
    p = model.embed.num_embeddings - 1
    read: list[Tensor] = []

    def remember(_module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
        read.append(output.detach().requires_grad_())
        return read[0]

    hook = plain(model).embed.register_forward_hook(remember)
    try:
        tokens = torch.cat((triples[:, :2], torch.full_like(triples[:, :1], p)), dim=1)
        with as_written():
            chosen = answer_logits(model, tokens).gather(1, triples[:, 2:])
    finally:
        hook.remove()
    (slopes,) = torch.autograd.grad(chosen.sum(), read[0])
    return float(F.cosine_similarity(slopes[:, 0], slopes[:, 1], dim=-1).mean())
