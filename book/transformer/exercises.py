"""The code exercises of the chapter on the transformer, with the mistakes that readers make in them.

Tensors are in the code's layout: (B, N, D), a token a row.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from tformer_book.kit.exercises.registry import exercise

Part = Callable[[Tensor], Tensor]


def _block_inputs(g: torch.Generator) -> list[tuple]:
    def linear(width: int) -> nn.Linear:
        layer = nn.Linear(width, width)
        for parameter in layer.parameters():
            parameter.data = torch.randn(parameter.shape, generator=g)
        return layer

    def norm(width: int) -> nn.LayerNorm:
        layer = nn.LayerNorm(width)
        layer.weight.data = 1 + torch.rand(width, generator=g)
        return layer

    def draw(batch: int, n: int, width: int, placement: str) -> tuple:
        x = 1 + 2 * torch.randn(batch, n, width, generator=g)
        return (x, linear(width), linear(width), norm(width), norm(width), placement)

    sizes = ((2, 3, 4), (1, 5, 6), (2, 1, 3), (1, 1, 2))
    return [draw(*size, placement) for size in sizes for placement in ("pre", "post")]


@exercise("transformer.block", inputs=_block_inputs)
def block(x: Tensor, attention: Part, mlp: Part, norm_1: Part, norm_2: Part, placement: str) -> Tensor:
    """Attention and then the MLP, each with its norm and its skip: (B, N, D) -> (B, N, D).

    "pre" puts the norm before the sublayer, x + f(norm(x)); "post" puts it after the sum, norm(x + f(x)).
    """
    if placement == "pre":
        x = x + attention(norm_1(x))
        return x + mlp(norm_2(x))
    x = norm_1(x + attention(x))
    return norm_2(x + mlp(x))


block.add_mistakes("""
normalised input added back
    | x = x + attention(norm_1(x)) => x = norm_1(x) + attention(norm_1(x))
    | return x + mlp => return norm_2(x) + mlp
    With pre-norm you add the sublayer's output to the normalised input. The skip carries x itself: x +
    f(norm(x)).
second skip from the block's input
    | x = x + attention(norm_1(x)) => y = x + attention(norm_1(x))
    | return x + mlp(norm_2(x)) => return x + mlp(norm_2(y))
    | x = norm_1(x + attention(x)) => y = norm_1(x + attention(x))
    | norm_2(x + mlp(x)) => norm_2(x + mlp(y))
    Your MLP's result is added to what came into the block, so that attention's is lost from the stream.
    The second skip starts where the first ended.
norm of the sublayer's output alone
    | norm_1(x + attention(x)) => x + norm_1(attention(x))
    | norm_2(x + mlp(x)) => x + norm_2(mlp(x))
    With post-norm you normalise f(x) before you add it. The norm stands around the sum: norm(x + f(x)).
placements exchanged | placement == "pre" => placement == "post"
    You have the two placements the wrong way round: "pre" normalises what goes into a sublayer, "post"
    what comes out of the addition.
no skips | x + =>
    You pass on what the sublayers return and nothing else. Add it to what went in.
""")


@exercise(
    "transformer.warmup_cosine",
    inputs=lambda g: [
        *((step, 100, 10) for step in (0, 5, 8, 9, 10, 11, 60, 98, 99)),
        *((step, 7, 2) for step in (0, 1, 2, 3, 6)),
        *((step, 30, 20) for step in (7, 19, 20, 21, 29)),
        *((step, 4, 0) for step in (0, 2, 3)),  # no warm-up
    ],
)
def warmup_cosine(step: int, steps: int, warmup: int) -> float:
    """(step + 1) / warmup while step < warmup, then (1 + cos(pi x)) / 2: a float between 0 and 1.

    Steps are counted from 0, with step < steps; x is the share of the steps after the warm-up that is done.
    """
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / (steps - warmup)
    return (1 + math.cos(math.pi * done)) / 2


warmup_cosine.add_mistakes("""
first step wasted | (step + 1) / warmup => step / warmup
    At step 0 you return 0, so that the first gradient is computed for nothing. Count from one: (step + 1)
    / warmup.
warm-up one step too long | step < warmup => 0 < warmup >= step
    At step == warmup you still climb, and reach more than 1. The warm-up is over as soon as `warmup`
    steps are done, and steps are counted from 0: step < warmup.
cosine begun at step 0 | (step - warmup) / (steps - warmup) => step / steps
    Your cosine counts from step 0, so that the rate drops where the warm-up ends. Its argument is the
    share of the steps after the warm-up that is done.
cosine over all steps | (steps - warmup) => steps
    You divide the steps since the warm-up by all steps, so that the rate never comes near 0. Only steps -
    warmup of them belong to the cosine.
""")


def _clip_inputs(g: torch.Generator) -> list[tuple]:
    def draw(scale: float) -> list[Tensor]:
        return [scale * torch.randn(*s, generator=g) for s in ((3, 4), (4,), (2, 2))]

    three, four = torch.tensor([3.0]), torch.tensor([-4.0])  # together of length 5
    return [
        (draw(1.0), 1.0),
        (draw(0.05), 1.0),
        (draw(1.0), 3.0),
        (draw(100.0), 0.5),
        *(([three, four], limit) for limit in (4.9, 5.0, 5.1, 6.5)),
        ([torch.tensor([[3.0, -4.0]])], 2.0),
        ([four], 1.0),
        ([torch.zeros(2), torch.zeros(3)], 1.0),
    ]


@exercise("transformer.clip", inputs=_clip_inputs, tolerance=2e-5)
def clip(gradients: list[Tensor], limit: float) -> list[Tensor]:
    """All gradients times limit / norm if their joint norm is above the limit, as they are otherwise.

    The norm is the root of the sum of the squares of all entries of all tensors. Tensors of any shapes in,
    tensors of the same shapes out.
    """
    norm = math.sqrt(sum(g.square().sum().item() for g in gradients))
    return [g * (limit / norm) for g in gradients] if norm > limit else gradients


clip.add_mistakes("""
each tensor by its own norm | => lambda gradients, limit: [clip([g], limit)[0] for g in gradients]
    You shorten each tensor by its own norm, which turns the gradient. There is one norm, that of all the
    tensors together.
entries clamped | => lambda gradients, limit: [g.clamp(-limit, limit) for g in gradients]
    You cut off single entries, which turns the gradient. Scale all of it by one number.
short gradients lengthened
    | limit / norm => torch.tensor(limit) / norm
    | if norm > limit else gradients =>
    You also lengthen gradients that are shorter than the limit. Leave those as they are: a gradient of
    zeros would even be divided by 0.
norms added | math.sqrt(sum(g.square().sum().item() => (sum(g.norm().item()
    You add the norms of the tensors. Lengths at right angles add as squares: the norm is the root of the
    sum of all squared entries.
root forgotten | math.sqrt => float
    You compare the squared norm with the limit: the root is missing.
""")


def _adamw_inputs(g: torch.Generator) -> list[tuple]:
    def draw(t: int, lr: float, decay: float, scale: float = 1.0) -> tuple:
        theta, gradient, m = (torch.randn(4, 3, generator=g) for _ in range(3))
        v = torch.rand(4, 3, generator=g)
        m, v = (torch.zeros(4, 3), torch.zeros(4, 3)) if t == 1 else (m, v)
        return (theta, scale * gradient, scale * m, scale**2 * v, t, lr, decay)

    def one(gradient: float, decay: float) -> tuple:
        """The first step of a single parameter."""
        return (torch.tensor([0.5]), torch.tensor([gradient]), torch.zeros(1), torch.zeros(1), 1, 0.1, decay)

    return [
        draw(1, 0.1, 0.0),
        draw(2, 0.1, 0.1),
        draw(7, 0.01, 0.5),
        draw(300, 0.2, 0.1),
        draw(3, 0.5, 0.2, scale=1e-8),  # as small as epsilon
        one(-2.0, 0.2),
        one(0.0, 0.0),  # 0/0 without epsilon
    ]


@exercise("transformer.adamw_step", inputs=_adamw_inputs)
def adamw_step(
    theta: Tensor, gradient: Tensor, m: Tensor, v: Tensor, t: int, lr: float, weight_decay: float
) -> tuple[Tensor, Tensor, Tensor]:
    """theta - lr * m_hat / (sqrt(v_hat) + epsilon) - lr * weight_decay * theta, and the new m and v.

    The betas are 0.9 and 0.999 and epsilon is 1e-8; t is counted from 1. m and v are returned as running
    averages, without the correction by 1 - beta^t. Four tensors of one shape in, three out.
    """
    m = 0.9 * m + 0.1 * gradient
    v = 0.999 * v + 0.001 * gradient**2
    update = m / (1 - 0.9**t) / ((v / (1 - 0.999**t)).sqrt() + 1e-8)
    return theta - lr * update - lr * weight_decay * theta, m, v


adamw_step.add_mistakes("""
decay added to the gradient
    | => lambda theta, g, m, v, t, lr, decay: adamw_step(theta, g + decay * theta, m, v, t, lr, 0.0)
    You add weight_decay * theta to the gradient, which is Adam with an L2 penalty: the decay is then
    divided by the root of v like everything else. AdamW shrinks theta beside it.
bias correction missing
    | m / (1 - 0.9**t) => m
    | v / (1 - 0.999**t) => v
    The averages start at zero and are too small at first: divide them by 1 - beta^t.
second average not corrected | (v / (1 - 0.999**t)).sqrt() => v.sqrt()
    You correct m and not v. Both start at zero: divide v by 1 - 0.999^t as well.
root forgotten | .sqrt() =>
    You divide by the second moment itself. It has a squared gradient's unit: take its root.
epsilon inside the root | .sqrt() + 1e-8) => + 1e-8).sqrt()
    Your epsilon stands under the root, where it counts as 1e-4. It is added to the root.
decay without the learning rate | - lr * weight_decay * theta => - weight_decay * theta
    You shrink theta by weight_decay alone; the decay is multiplied by the learning rate.
""")


@exercise(
    "transformer.count_block",
    inputs=lambda g: [
        (4, 16, False),
        (4, 16, True),
        (6, 10, True),
        (5, 3, False),
        (768, 3072, False),
        (1, 1, True),
        (1, 2, False),
    ],
)
def count_block(d_model: int, d_hidden: int, cross_attention: bool) -> int:
    """How many parameters a block has, biases and LayerNorms included: a whole number.

    One attention layer, or two with cross-attention, of four maps each; an MLP of two maps; a norm with gain
    and shift for each of these sublayers.
    """
    layers = 2 if cross_attention else 1
    attention = 4 * d_model**2 + 4 * d_model
    mlp = 2 * d_model * d_hidden + d_hidden + d_model
    return layers * attention + mlp + (layers + 1) * 2 * d_model


count_block.add_mistakes("""
biases forgotten
    | + 4 * d_model =>
    | + d_hidden + d_model =>
    You counted matrices and norms. Each linear map also has a bias, as long as its output.
norms forgotten | + (layers + 1) * 2 * d_model =>
    The norms are missing: each sublayer has one, with a gain and a shift for each feature.
the third norm forgotten | (layers + 1) * 2 => 2 * 2
    With cross-attention there are three sublayers, and so three norms.
output projection forgotten | 4 * d_model**2 + 4 * d_model => 3 * d_model**2 + 3 * d_model
    Attention has four maps: queries, keys, values, and the one that joins the heads.
""")
