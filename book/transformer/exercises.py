"""The code exercises of the chapter on the transformer, with the mistakes that readers make in them.

Tensors are in the code's layout: (B, N, D), a token a row.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from tformer_book.kit.exercises.registry import exercise

# A block from its parts

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


def _block_with_normalised_skip(x: Tensor, f: Part, g: Part, a: Part, b: Part, placement: str) -> Tensor:
    if placement == "post":
        return block(x, f, g, a, b, "post")
    x = a(x) + f(a(x))
    return b(x) + g(b(x))


block.mistake(
    "normalised input added back",
    "With pre-norm you add the sublayer's output to the normalised input. The skip carries x "
    "itself: x + f(norm(x)).",
    _block_with_normalised_skip,
)


def _block_with_first_input(x: Tensor, f: Part, g: Part, a: Part, b: Part, placement: str) -> Tensor:
    if placement == "pre":
        return x + g(b(x + f(a(x))))
    return b(x + g(a(x + f(x))))


block.mistake(
    "second skip from the block's input",
    "Your MLP's result is added to what came into the block, so that attention's is lost from "
    "the stream. The second skip starts where the first ended.",
    _block_with_first_input,
)


def _block_with_parallel_parts(x: Tensor, f: Part, g: Part, a: Part, b: Part, placement: str) -> Tensor:
    if placement == "pre":
        return x + f(a(x)) + g(b(x))
    return b(a(x + f(x)) + g(x))


block.mistake(
    "sublayers side by side",
    "Your MLP reads the block's input. It must read what attention has left behind: two "
    "sublayers, one after the other.",
    _block_with_parallel_parts,
)


def _block_with_normed_outputs(x: Tensor, f: Part, g: Part, a: Part, b: Part, placement: str) -> Tensor:
    if placement == "pre":
        return block(x, f, g, a, b, "pre")
    x = x + a(f(x))
    return x + b(g(x))


block.mistake(
    "norm of the sublayer's output alone",
    "With post-norm you normalise f(x) before you add it. The norm stands around the sum: norm(x + f(x)).",
    _block_with_normed_outputs,
)

block.mistake(
    "placements exchanged",
    'You have the two placements the wrong way round: "pre" normalises what goes into a '
    'sublayer, "post" what comes out of the addition.',
    lambda x, f, g, a, b, placement: block(x, f, g, a, b, "post" if placement == "pre" else "pre"),
)

block.mistake(
    "always pre-norm",
    'You return the pre-norm block whatever `placement` says. With "post" the norm comes after the sum.',
    lambda x, f, g, a, b, placement: block(x, f, g, a, b, "pre"),
)

block.mistake(
    "always post-norm",
    'You return the post-norm block whatever `placement` says. With "pre" a norm comes before the sublayer.',
    lambda x, f, g, a, b, placement: block(x, f, g, a, b, "post"),
)

block.mistake(
    "no skips",
    "You pass on what the sublayers return and nothing else. Add it to what went in.",
    lambda x, f, g, a, b, placement: g(b(f(a(x)))) if placement == "pre" else b(g(a(f(x)))),
)

block.mistake(
    "no norms",
    "Your block doesn't use its norms. Each sublayer has one: before it with pre-norm, after the sum with "
    "post-norm.",
    lambda x, f, g, a, b, placement: x + f(x) + g(x + f(x)),
)

block.mistake(
    "one norm for both",
    "Both sublayers use norm_1. Each has a norm with parameters of its own.",
    lambda x, f, g, a, b, placement: block(x, f, g, a, a, placement),
)

block.mistake(
    "MLP before attention",
    "Your MLP comes first. Attention is the first sublayer, so that the MLP reads what it has gathered.",
    lambda x, f, g, a, b, placement: block(x, g, f, a, b, placement),
)

# The learning rate


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


def _after_warmup(rate: Callable[[int, int, int], float]) -> Callable[[int, int, int], float]:
    """The right warm-up, and something else after it."""
    return lambda step, steps, warmup: (step + 1) / warmup if step < warmup else rate(step, steps, warmup)


warmup_cosine.mistake(
    "first step wasted",
    "At step 0 you return 0, so that the first gradient is computed for nothing. Count from one: "
    "(step + 1) / warmup.",
    lambda step, steps, warmup: step / warmup if step < warmup else warmup_cosine(step, steps, warmup),
)

warmup_cosine.mistake(
    "warm-up one step too long",
    "At step == warmup you still climb, and reach more than 1. The warm-up is over as soon as "
    "`warmup` steps are done, and steps are counted from 0: step < warmup.",
    lambda step, steps, warmup: (
        (step + 1) / warmup if step <= warmup and warmup else warmup_cosine(step, steps, warmup)
    ),
)

warmup_cosine.mistake(
    "cosine begun at step 0",
    "Your cosine counts from step 0, so that the rate drops where the warm-up ends. Its argument "
    "is the share of the steps after the warm-up that is done.",
    _after_warmup(lambda step, steps, warmup: (1 + math.cos(math.pi * step / steps)) / 2),
)

warmup_cosine.mistake(
    "cosine over all steps",
    "You divide the steps since the warm-up by all steps, so that the rate never comes near 0. "
    "Only steps - warmup of them belong to the cosine.",
    _after_warmup(lambda step, steps, warmup: (1 + math.cos(math.pi * (step - warmup) / steps)) / 2),
)

warmup_cosine.mistake(
    "cosine one step ahead",
    "Your cosine is a step ahead: at step == warmup no step of it is done yet, and the rate is still 1. "
    "Only the warm-up counts from one.",
    _after_warmup(
        lambda step, steps, warmup: (1 + math.cos(math.pi * (step + 1 - warmup) / (steps - warmup))) / 2
    ),
)

warmup_cosine.mistake(
    "zero at the last step",
    "Your cosine reaches 0 at step steps - 1, whose gradient is then computed for nothing. The equation "
    "divides by steps - warmup and reaches 0 only after the last step.",
    _after_warmup(
        lambda step, steps, warmup: (1 + math.cos(math.pi * (step - warmup) / (steps - warmup - 1))) / 2
    ),
)

warmup_cosine.mistake(
    "cosine not shifted",
    "Your rate becomes negative halfway, which climbs the loss. The cosine runs from 1 to -1; "
    "the rate is half of one plus it.",
    _after_warmup(lambda step, steps, warmup: math.cos(math.pi * (step - warmup) / (steps - warmup))),
)

warmup_cosine.mistake(
    "quarter of a period",
    "You use a quarter of the period, cos from 0 to pi/2. Half a period is wanted, which also "
    "ends flat: (1 + cos(pi x)) / 2.",
    _after_warmup(lambda step, steps, warmup: math.cos(math.pi / 2 * (step - warmup) / (steps - warmup))),
)

warmup_cosine.mistake(
    "linear decay",
    "After the warm-up you fall in a straight line; the task is half a cosine.",
    _after_warmup(lambda step, steps, warmup: 1 - (step - warmup) / (steps - warmup)),
)

warmup_cosine.mistake(
    "no warm-up",
    "The warm-up is missing: over the first steps the rate climbs in a straight line to 1.",
    lambda step, steps, warmup: warmup_cosine(step + warmup, steps + warmup, warmup),
)

# Clipping


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


clip.mistake(
    "each tensor by its own norm",
    "You shorten each tensor by its own norm, which turns the gradient. There is one norm, that "
    "of all the tensors together.",
    lambda gradients, limit: [g * (limit / g.norm()) if g.norm() > limit else g for g in gradients],
)

clip.mistake(
    "entries clamped",
    "You cut off single entries, which turns the gradient. Scale all of it by one number.",
    lambda gradients, limit: [g.clamp(-limit, limit) for g in gradients],
)


def _clip_with_norm(
    length: Callable[[Tensor], Tensor | float],
) -> Callable[[list[Tensor], float], list[Tensor]]:
    """Clipped as it should be, by another length of all the entries."""

    def variant(gradients: list[Tensor], limit: float) -> list[Tensor]:
        norm = length(torch.cat([g.flatten() for g in gradients]))
        return [g * (limit / norm) for g in gradients] if norm > limit else gradients

    return variant


def _joint_norm(gradients: list[Tensor]) -> Tensor:
    return torch.cat([g.flatten() for g in gradients]).norm()


_LENGTHENED = "You also lengthen gradients that are shorter than the limit. Leave those as they are"

clip.mistake(
    "short gradients lengthened",
    f"{_LENGTHENED}: a gradient of zeros would even be divided by 0.",
    lambda gradients, limit: [g * (limit / _joint_norm(gradients)) for g in gradients],
)

clip.mistake(
    "short gradients lengthened, zero spared",
    f"{_LENGTHENED}. Only zero is spared so far.",
    lambda gradients, limit: [g * (limit / (_joint_norm(gradients) + 1e-6)) for g in gradients],
)

clip.mistake(
    "limit forgotten",
    "You scale long gradients to length 1, whatever the limit is: multiply by limit / norm.",
    lambda gradients, limit: (
        [g / _joint_norm(gradients) for g in gradients] if _joint_norm(gradients) > limit else gradients
    ),
)


def _clip_with_added_norms(gradients: list[Tensor], limit: float) -> list[Tensor]:
    total = sum(float(g.norm()) for g in gradients)
    return [g * (limit / total) for g in gradients] if total > limit else gradients


clip.mistake(
    "norms added",
    "You add the norms of the tensors. Lengths at right angles add as squares: the norm is the "
    "root of the sum of all squared entries.",
    _clip_with_added_norms,
)

clip.mistake(
    "root forgotten",
    "You compare the squared norm with the limit: the root is missing.",
    _clip_with_norm(lambda entries: entries.square().sum()),
)

clip.mistake(
    "root mean square",
    "You take the mean of the squares. The norm is the root of their sum, however many entries there are.",
    _clip_with_norm(lambda entries: entries.square().mean().sqrt()),
)

clip.mistake(
    "largest entry",
    "You measure the gradient by its largest entry. Its norm is the root of the sum of all squared entries.",
    _clip_with_norm(lambda entries: entries.abs().max()),
)

# AdamW


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


Step = tuple[Tensor, Tensor, Tensor]
Quotient = Callable[[Tensor, Tensor], Tensor]


def _adamw_with(
    average: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]] = lambda g, m, v: (
        0.9 * m + 0.1 * g,
        0.999 * v + 0.001 * g**2,
    ),
    corrected: Callable[[Tensor, Tensor, int], tuple[Tensor, Tensor]] = lambda m, v, t: (
        m / (1 - 0.9**t),
        v / (1 - 0.999**t),
    ),
    quotient: Quotient = lambda m, v: m / (v.sqrt() + 1e-8),
) -> Callable[..., Step]:
    """A step with other averages, another correction or another quotient."""

    def step(
        theta: Tensor, gradient: Tensor, m: Tensor, v: Tensor, t: int, lr: float, weight_decay: float
    ) -> Step:
        m, v = average(gradient, m, v)
        update = quotient(*corrected(m, v, t))
        return theta - lr * update - lr * weight_decay * theta, m, v

    return step


adamw_step.mistake(
    "decay added to the gradient",
    "You add weight_decay * theta to the gradient, which is Adam with an L2 penalty: the decay "
    "is then divided by the root of v like everything else. AdamW shrinks theta beside it.",
    lambda theta, g, m, v, t, lr, decay: adamw_step(theta, g + decay * theta, m, v, t, lr, 0.0),
)

adamw_step.mistake(
    "bias correction missing",
    "The averages start at zero and are too small at first: divide them by 1 - beta^t.",
    _adamw_with(corrected=lambda m, v, t: (m, v)),
)

adamw_step.mistake(
    "second average not corrected",
    "You correct m and not v. Both start at zero: divide v by 1 - 0.999^t as well.",
    _adamw_with(corrected=lambda m, v, t: (m / (1 - 0.9**t), v)),
)

adamw_step.mistake(
    "first average not corrected",
    "You correct v and not m. Both start at zero: divide m by 1 - 0.9^t as well.",
    _adamw_with(corrected=lambda m, v, t: (m, v / (1 - 0.999**t))),
)

adamw_step.mistake(
    "steps counted from zero",
    "Your correction uses t + 1 as if t were counted from zero; here the first step is t = 1.",
    _adamw_with(corrected=lambda m, v, t: (m / (1 - 0.9 ** (t + 1)), v / (1 - 0.999 ** (t + 1)))),
)


def _adamw_with_corrected_averages(
    theta: Tensor, g: Tensor, m: Tensor, v: Tensor, t: int, lr: float, decay: float
) -> Step:
    theta, m, v = adamw_step(theta, g, m, v, t, lr, decay)
    return theta, m / (1 - 0.9**t), v / (1 - 0.999**t)


adamw_step.mistake(
    "corrected averages handed on",
    "The new theta is right, but you return the corrected averages. The next step needs m and v as they "
    "are: it corrects them itself.",
    _adamw_with_corrected_averages,
)

adamw_step.mistake(
    "averages not handed on",
    "The new theta is right, but you return the old m and v, so that nothing is ever averaged.",
    lambda theta, g, m, v, *rest: (adamw_step(theta, g, m, v, *rest)[0], m, v),
)

adamw_step.mistake(
    "root forgotten",
    "You divide by the second moment itself. It has a squared gradient's unit: take its root.",
    _adamw_with(quotient=lambda m, v: m / (v + 1e-8)),
)

adamw_step.mistake(
    "epsilon inside the root",
    "Your epsilon stands under the root, where it counts as 1e-4. It is added to the root.",
    _adamw_with(quotient=lambda m, v: m / (v + 1e-8).sqrt()),
)

adamw_step.mistake(
    "epsilon forgotten",
    "Right for ordinary gradients, but a gradient that has always been 0 gives 0/0: add 1e-8 to the root.",
    _adamw_with(quotient=lambda m, v: m / v.sqrt()),
)

adamw_step.mistake(
    "epsilon too large",
    "Your epsilon is 1e-6, so that parameters with tiny gradients hardly move. Here it is 1e-8.",
    _adamw_with(quotient=lambda m, v: m / (v.sqrt() + 1e-6)),
)

adamw_step.mistake(
    "second average of the gradient's size",
    "Your second average is of |g|. It is of the square of g.",
    _adamw_with(average=lambda g, m, v: (0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g.abs())),
)

adamw_step.mistake(
    "sums instead of averages",
    "You add the whole gradient to m and its whole square to v. In an average the new part weighs 1 - beta.",
    _adamw_with(average=lambda g, m, v: (0.9 * m + g, 0.999 * v + g**2)),
)

adamw_step.mistake(
    "betas exchanged",
    "The two betas are exchanged: 0.9 is for the gradient, 0.999 for its square.",
    _adamw_with(
        average=lambda g, m, v: (0.999 * m + 0.001 * g, 0.9 * v + 0.1 * g**2),
        corrected=lambda m, v, t: (m / (1 - 0.999**t), v / (1 - 0.9**t)),
    ),
)


def _adamw_with_plain_decay(
    theta: Tensor, g: Tensor, m: Tensor, v: Tensor, t: int, lr: float, decay: float
) -> Step:
    moved, m, v = adamw_step(theta, g, m, v, t, lr, 0.0)
    return moved - decay * theta, m, v


adamw_step.mistake(
    "decay without the learning rate",
    "You shrink theta by weight_decay alone; the decay is multiplied by the learning rate.",
    _adamw_with_plain_decay,
)


def _adamw_with_late_decay(
    theta: Tensor, g: Tensor, m: Tensor, v: Tensor, t: int, lr: float, decay: float
) -> Step:
    moved, m, v = adamw_step(theta, g, m, v, t, lr, 0.0)
    return moved - lr * decay * moved, m, v


adamw_step.mistake(
    "decay of the new theta",
    "You take the step first and then shrink what came out. Both terms are computed from the theta that "
    "came in.",
    _adamw_with_late_decay,
)

adamw_step.mistake(
    "no decay",
    "The weight decay is missing: theta also loses lr * weight_decay * theta.",
    lambda theta, g, m, v, t, lr, decay: adamw_step(theta, g, m, v, t, lr, 0.0),
)

# Counting


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


def _layers(cross_attention: bool) -> int:
    return 2 if cross_attention else 1


count_block.mistake(
    "biases forgotten",
    "You counted matrices and norms. Each linear map also has a bias, as long as its output.",
    lambda d, f, cross: count_block(d, f, cross) - _layers(cross) * 4 * d - f - d,
)

count_block.mistake(
    "norms forgotten",
    "The norms are missing: each sublayer has one, with a gain and a shift for each feature.",
    lambda d, f, cross: count_block(d, f, cross) - (_layers(cross) + 1) * 2 * d,
)

count_block.mistake(
    "biases and norms forgotten",
    "You counted the matrices alone. Each linear map also has a bias, and each sublayer a norm with a gain "
    "and a shift.",
    lambda d, f, cross: _layers(cross) * 4 * d**2 + 2 * d * f,
)

count_block.mistake(
    "the norm's shift forgotten",
    "A LayerNorm has two numbers for each feature, a gain and a shift.",
    lambda d, f, cross: count_block(d, f, cross) - (_layers(cross) + 1) * d,
)

count_block.mistake(
    "one norm for the block",
    "You counted a single norm. Each sublayer has one of its own.",
    lambda d, f, cross: count_block(d, f, cross) - _layers(cross) * 2 * d,
)

count_block.mistake(
    "the third norm forgotten",
    "With cross-attention there are three sublayers, and so three norms.",
    lambda d, f, cross: count_block(d, f, cross) - (2 * d if cross else 0),
)

count_block.mistake(
    "cross-attention forgotten",
    "You count the same with and without cross-attention. It is an attention layer more, with its norm.",
    lambda d, f, cross: count_block(d, f, False),
)

count_block.mistake(
    "one bias in the MLP",
    "The MLP has two biases, one of length F inside and one of length D at its end.",
    lambda d, f, cross: count_block(d, f, cross) - f,
)

count_block.mistake(
    "output projection forgotten",
    "Attention has four maps: queries, keys, values, and the one that joins the heads.",
    lambda d, f, cross: count_block(d, f, cross) - _layers(cross) * (d**2 + d),
)

count_block.mistake(
    "one matrix in the MLP",
    "You counted one of the MLP's matrices. It has two, from D to F and back from F to D.",
    lambda d, f, cross: count_block(d, f, cross) - d * f,
)

count_block.mistake(
    "hidden width taken to be 4 D",
    "You took the hidden width to be 4 D; it is an argument here.",
    lambda d, f, cross: count_block(d, 4 * d, cross),
)
