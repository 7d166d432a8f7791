"""Lenses: what the last norm and the head would say of the stream after each block."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tformer_lib.analysis.activations import record
from tformer_lib.core.modes import evaluation, plain
from tformer_lib.core.precision import precise
from tformer_lib.models.gpt import GPT
from tformer_lib.numbers import real, whole


@torch.no_grad()
def stream_after_blocks(model: GPT, tokens: Int[Tensor, "B N"]) -> Float[Tensor, "M1 B N D"]:
    """x_0, ..., x_M: the stream before the first block and after each, (M + 1, B, N, D); dropout is off."""
    blocks = range(len(plain(model).transformer.blocks))
    names = ["transformer.blocks.0.input", *(f"transformer.blocks.{m}" for m in blocks)]
    with evaluation(model), record(model, names) as seen:
        model(tokens)
    return torch.stack([seen[name] for name in names])


def read_out(model: GPT, x: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch vocab"]:
    """The logit lens: E norm(x), the model's own way from the last stream to logits, for any stream x.

    Of the stream after the last block these are the model's logits.

    Source:
        nostalgebraist 2020.
    """
    model = plain(model)
    weight: Any = (model.embed if model.head is None else model.head).weight
    return model.transformer.final_norm(x) @ weight.T


class AffineLens(nn.Module):
    """A x / r + b, which begins as x / r; r is the root mean square of the streams that it will read.

    The last norm does not see the factor 1 / r, except through its epsilon: before training this is the logit
    lens. It keeps the entries of what is multiplied near 1 in every block, so that one learning rate serves
    all.

    Args:
        size: r.
        width: D.
    """

    def __init__(self, size: float, width: int):
        super().__init__()
        self.size = real("size", size, "(0, inf)")
        self.linear = nn.Linear(width, width)
        nn.init.eye_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch D"]:
        return self.linear(x / self.size)


def tuned_lens(
    model: GPT,
    x: Float[Tensor, "T D"],
    logits: Float[Tensor, "_T vocab"],
    *,
    steps: int = 600,
    batch: int = 512,
    lr: float = 3e-3,
    generator: torch.Generator | None = None,
) -> AffineLens:
    """The affine map A, b for which E norm(A x + b) is nearest to the model's own logits, by KL divergence.

    It minimises the mean of sum_v p_v (log p_v - log q_v), p being the softmax of `logits` and q that of the
    lens, by Adam with a learning rate that falls to zero in a straight line. The model's weights stay.

    Args:
        model: whose last norm and head are used.
        x: streams after one block, a row a place.
        logits: what the model said at these places.
        steps: how many batches are drawn.
        batch: places in each, drawn with replacement.
        lr: the first learning rate.
        generator: for the batches.

    Raises:
        ValueError: if there are not as many rows of logits as of streams, or a number is out of bounds.

    Source:
        Belrose et al. 2023.
    """
    steps, batch, lr = whole("steps", steps, 1), whole("batch", batch, 1), real("lr", lr, "(0, inf)")
    if len(x) != len(logits):
        raise ValueError(f"each place has a stream and logits, got {len(x)} and {len(logits)}")
    lens = AffineLens(float(precise(x).square().mean().sqrt()), x.shape[1])
    wanted = precise(logits.detach()).log_softmax(-1)
    optimizer = torch.optim.Adam(lens.parameters(), lr=lr)
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    for _ in range(steps):
        rows = torch.randint(len(x), (batch,), generator=generator)
        said = precise(read_out(model, lens(x[rows]))).log_softmax(-1)
        loss = F.kl_div(said, wanted[rows], log_target=True, reduction="batchmean")
        gradients = torch.autograd.grad(loss, list(lens.parameters()))
        for parameter, gradient in zip(lens.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
        falling.step()
    return lens.eval()
