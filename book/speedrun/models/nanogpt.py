"""nanoGPT's recipe for a processor in a plain loop: the speedrun's yardstick.

`recipes.BASELINE` is the same recipe with the library's model and `training.fit`, which check what they are
given at every step and take longer for it. Here nothing is checked, so that nobody wins by that.
"""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer_book.kit.models.recipes import BATCH, CONTEXT, NANOGPT

WIDTH, HEADS, BLOCKS, STD = 128, 4, 4, 0.02
STEPS: int = NANOGPT["steps"]


class Block(nn.Module):
    """x + attention(norm(x)), then x + MLP(norm(x)), without biases."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(WIDTH, bias=False) for _ in range(2))
        self.W_qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.W_o = nn.Linear(WIDTH, WIDTH, bias=False)
        self.W_in = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.W_out = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, D) to (B, N, D)."""
        b, n, _ = x.shape
        parts = self.W_qkv(self.norm1(x)).split(WIDTH, dim=2)
        q, k, v = (part.view(b, n, HEADS, WIDTH // HEADS).transpose(1, 2) for part in parts)
        read = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.W_o(read.transpose(1, 2).reshape(b, n, WIDTH))
        return x + self.W_out(F.gelu(self.W_in(self.norm2(x))))


class NanoGPT(nn.Module):
    """Four blocks between an embedding, with learned positions, and a head tied to it."""

    def __init__(self, vocab: int):
        super().__init__()
        self.embed, self.places = nn.Embedding(vocab, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        for name, weight in self.named_parameters():
            inward = name.endswith(("W_o.weight", "W_out.weight"))
            if weight.ndim == 2:
                nn.init.normal_(weight, std=STD / (2 * BLOCKS) ** 0.5 if inward else STD)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (B, N, vocab) for the token after each."""
        x = self.embed(tokens) + self.places.weight[: tokens.shape[1]]
        return self.norm(self.blocks(x)) @ self.embed.weight.T


def batches(text: Tensor, seed: int) -> Iterator[Tensor]:
    """Windows of 65 characters that begin anywhere, twelve at a time; for ever."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        starts = torch.randint(len(text) - CONTEXT, (BATCH,), generator=generator)
        yield torch.stack([text[i : i + CONTEXT + 1] for i in starts.tolist()])


def rate(step: int) -> float:
    """The learning rate: up on a line, down on a cosine to a tenth."""
    peak, warmup, least = NANOGPT["lr"], NANOGPT["warmup"], NANOGPT["min_lr_ratio"]
    if step < warmup:
        return peak * (step + 1) / warmup
    down = (1 + math.cos(math.pi * (step - warmup) / (STEPS - warmup))) / 2
    return peak * (least + (1 - least) * down)


def steps(model: nn.Module, batches: Iterator[Tensor]) -> Iterator[float]:
    """Trains; yields the loss of each of the 2,000 steps."""
    weights = list(model.parameters())
    groups = [
        {"params": [w for w in weights if w.ndim >= 2], "weight_decay": NANOGPT["weight_decay"]},
        {"params": [w for w in weights if w.ndim < 2], "weight_decay": 0.0},
    ]
    adam = torch.optim.AdamW(groups, lr=NANOGPT["lr"], betas=NANOGPT["betas"])
    for step in range(STEPS):
        for group in adam.param_groups:
            group["lr"] = rate(step)
        batch = next(batches)
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        adam.step()
        adam.zero_grad(set_to_none=True)
        yield loss.item()
