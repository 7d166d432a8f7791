"""The code exercises of the chapter on the transformer, with the mistakes that readers make."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from tformer_lib.exercises.checker import Exercise, Mistake, register

# A block from its parts

Part = Callable[[Tensor], Tensor]


def _block(x: Tensor, attention: Part, mlp: Part, norm_1: Part, norm_2: Part, placement: str) -> Tensor:
    if placement == "pre":
        x = x + attention(norm_1(x))
        return x + mlp(norm_2(x))
    x = norm_1(x + attention(x))
    return norm_2(x + mlp(x))


def _block_normalised_input(
    x: Tensor, f: Part, g: Part, norm_1: Part, norm_2: Part, placement: str
) -> Tensor:
    if placement == "post":
        return _block(x, f, g, norm_1, norm_2, "post")
    x = norm_1(x) + f(norm_1(x))
    return norm_2(x) + g(norm_2(x))


def _block_first_input(x: Tensor, f: Part, g: Part, norm_1: Part, norm_2: Part, placement: str) -> Tensor:
    if placement == "pre":
        return x + g(norm_2(x + f(norm_1(x))))
    return norm_2(x + g(norm_1(x + f(x))))


def _block_parallel(x: Tensor, f: Part, g: Part, norm_1: Part, norm_2: Part, placement: str) -> Tensor:
    if placement == "pre":
        return x + f(norm_1(x)) + g(norm_2(x))
    return norm_2(norm_1(x + f(x)) + g(x))


def _block_norm_of_output(x: Tensor, f: Part, g: Part, norm_1: Part, norm_2: Part, placement: str) -> Tensor:
    if placement == "pre":
        return _block(x, f, g, norm_1, norm_2, "pre")
    x = x + norm_1(f(x))
    return x + norm_2(g(x))


def _block_one_norm(x: Tensor, f: Part, g: Part, norm_1: Part, norm_2: Part, placement: str) -> Tensor:
    return _block(x, f, g, norm_1, norm_1, placement)


def _swapped(placement: str) -> str:
    return "post" if placement == "pre" else "pre"


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

    return [draw(2, 3, 4, "pre"), draw(1, 5, 6, "post"), draw(1, 1, 4, "pre"), draw(2, 1, 4, "post")]


register(
    Exercise(
        name="transformer.block",
        reference=_block,
        inputs=_block_inputs,
        mistakes=(
            Mistake(
                "normalised input added back",
                "With pre-norm you add the sublayer's output to the normalised input. The skip carries x "
                "itself: x + f(norm(x)).",
                _block_normalised_input,
            ),
            Mistake(
                "second skip from the block's input",
                "Your MLP's result is added to what came into the block, so that attention's is lost from "
                "the stream. The second skip starts where the first ended.",
                _block_first_input,
            ),
            Mistake(
                "sublayers side by side",
                "Your MLP reads the block's input. It must read what attention has left behind: two "
                "sublayers, one after the other.",
                _block_parallel,
            ),
            Mistake(
                "norm of the sublayer's output alone",
                "With post-norm you normalise f(x) before you add it. The norm stands around the sum: "
                "norm(x + f(x)).",
                _block_norm_of_output,
            ),
            Mistake(
                "placements exchanged",
                'You have the two placements the wrong way round: "pre" normalises what goes into a '
                "sublayer, post what comes out of the addition.",
                lambda x, f, g, a, b, placement: _block(x, f, g, a, b, _swapped(placement)),
            ),
            Mistake(
                "no skips",
                "You pass on what the sublayers return and nothing else. Add it to what went in.",
                lambda x, f, g, a, b, placement: g(b(f(a(x)))) if placement == "pre" else b(g(a(f(x)))),
            ),
            Mistake(
                "one norm for both",
                "Both sublayers use norm_1. Each has a norm with parameters of its own.",
                _block_one_norm,
            ),
        ),
    )
)

# The learning rate


def _warmup_cosine(step: int, steps: int, warmup: int) -> float:
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def _cosine_from_start(step: int, steps: int, warmup: int) -> float:
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * step / steps))


def _cosine_without_shift(step: int, steps: int, warmup: int) -> float:
    if step < warmup:
        return (step + 1) / warmup
    return math.cos(math.pi * (step - warmup) / max(1, steps - warmup))


def _linear_decay(step: int, steps: int, warmup: int) -> float:
    if step < warmup:
        return (step + 1) / warmup
    return 1 - (step - warmup) / max(1, steps - warmup)


def _from_zero(step: int, steps: int, warmup: int) -> float:
    return step / warmup if step < warmup else _warmup_cosine(step, steps, warmup)


def _quarter_period(step: int, steps: int, warmup: int) -> float:
    if step < warmup:
        return (step + 1) / warmup
    return math.cos(0.5 * math.pi * (step - warmup) / max(1, steps - warmup))


register(
    Exercise(
        name="transformer.warmup_cosine",
        reference=_warmup_cosine,
        inputs=lambda g: [
            (0, 100, 10),
            (5, 100, 10),
            (9, 100, 10),
            (10, 100, 10),
            (60, 100, 10),
            (99, 100, 10),
        ],
        mistakes=(
            Mistake(
                "first step wasted",
                "At step 0 you return 0, so that the first gradient is computed for nothing. Count from one: "
                "(step + 1) / warmup.",
                _from_zero,
            ),
            Mistake(
                "cosine begun at step 0",
                "Your cosine counts from step 0, so that the rate drops where the warm-up ends. Its argument "
                "is the share of the steps after the warm-up that is done.",
                _cosine_from_start,
            ),
            Mistake(
                "cosine not shifted",
                "Your rate becomes negative halfway, which climbs the loss. The cosine runs from 1 to -1; "
                "the rate is half of one plus it.",
                _cosine_without_shift,
            ),
            Mistake(
                "quarter of a period",
                "You use a quarter of the period, cos from 0 to pi/2. Half a period is wanted, which also "
                "ends flat: (1 + cos(pi x)) / 2.",
                _quarter_period,
            ),
            Mistake(
                "linear decay",
                "After the warm-up you fall in a straight line; the task is half a cosine.",
                _linear_decay,
            ),
            Mistake(
                "no warm-up",
                "The warm-up is missing: over the first steps the rate climbs in a straight line to 1.",
                lambda step, steps, warmup: _warmup_cosine(step + warmup, steps + warmup, warmup),
            ),
        ),
    )
)

# Clipping


def _norm(gradients: list[Tensor]) -> Tensor:
    return torch.cat([g.flatten() for g in gradients]).norm()


def _clip(gradients: list[Tensor], limit: float) -> list[Tensor]:
    norm = _norm(gradients)
    return [g * (limit / norm) for g in gradients] if norm > limit else gradients


def _clip_inputs(g: torch.Generator) -> list[tuple]:
    def draw(scale: float) -> list[Tensor]:
        return [scale * torch.randn(*s, generator=g) for s in ((3, 4), (4,), (2, 2))]

    return [(draw(1.0), 1.0), (draw(0.05), 1.0), (draw(1.0), 3.0), ([torch.zeros(2), torch.zeros(3)], 1.0)]


def _each(gradients: list[Tensor], limit: float) -> list[Tensor]:
    return [g * (limit / g.norm()) if g.norm() > limit else g for g in gradients]


def _sum_of_norms(gradients: list[Tensor], limit: float) -> list[Tensor]:
    total = sum(float(g.norm()) for g in gradients)
    return [g * (limit / total) for g in gradients] if total > limit else gradients


def _squared(gradients: list[Tensor], limit: float) -> list[Tensor]:
    norm = _norm(gradients)
    return [g * (limit / norm**2) for g in gradients] if norm**2 > limit else gradients


def _always(gradients: list[Tensor], limit: float) -> list[Tensor]:
    return [g * (limit / _norm(gradients)) for g in gradients]


def _always_safe(gradients: list[Tensor], limit: float) -> list[Tensor]:
    return [g * (limit / (_norm(gradients) + 1e-6)) for g in gradients]


_ALWAYS = "You also lengthen gradients that are shorter than the limit. Leave those as they are."

register(
    Exercise(
        name="transformer.clip",
        reference=_clip,
        inputs=_clip_inputs,
        mistakes=(
            Mistake(
                "each tensor by its own norm",
                "You shorten each tensor by its own norm, which turns the gradient. There is one norm, that "
                "of all the tensors together.",
                _each,
            ),
            Mistake(
                "entries clamped",
                "You cut off single entries, which turns the gradient. Scale all of it by one number.",
                lambda gradients, limit: [g.clamp(-limit, limit) for g in gradients],
            ),
            Mistake("short gradients lengthened", _ALWAYS, _always),
            Mistake("short gradients lengthened, zero spared", _ALWAYS + " Zero was spared.", _always_safe),
            Mistake(
                "norms added",
                "You add the norms of the tensors. Lengths at right angles add as squares: the norm is the "
                "root of the sum of all squared entries.",
                _sum_of_norms,
            ),
            Mistake(
                "root forgotten",
                "You compare the squared norm with the limit: the root is missing.",
                _squared,
            ),
        ),
        tolerance=2e-5,
    )
)

# AdamW


def _adamw(
    correct: bool = True,
    square: bool = True,
    root: bool = True,
    coupled: bool = False,
    decayed: bool = True,
    with_rate: bool = True,
    exchanged: bool = False,
    power_off: int = 0,
) -> Callable[..., tuple[Tensor, Tensor, Tensor]]:
    """One step of AdamW, right by default and wrong in whatever is changed."""

    def step(
        theta: Tensor, gradient: Tensor, m: Tensor, v: Tensor, t: int, lr: float, weight_decay: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        beta_1, beta_2 = (0.999, 0.9) if exchanged else (0.9, 0.999)
        if coupled:
            gradient = gradient + weight_decay * theta
        m = beta_1 * m + (1 - beta_1) * gradient
        v = beta_2 * v + (1 - beta_2) * (gradient**2 if square else gradient.abs())
        m_hat, v_hat = m, v
        if correct:
            m_hat, v_hat = m / (1 - beta_1 ** (t + power_off)), v / (1 - beta_2 ** (t + power_off))
        update = m_hat / ((v_hat.sqrt() if root else v_hat) + 1e-8)
        if decayed and not coupled:
            theta = theta - (lr if with_rate else 1.0) * weight_decay * theta
        return theta - lr * update, m, v

    return step


def _adamw_inputs(g: torch.Generator) -> list[tuple]:
    def draw(t: int, lr: float, decay: float) -> tuple:
        theta, gradient, m = (torch.randn(4, 3, generator=g) for _ in range(3))
        v = torch.rand(4, 3, generator=g)
        m, v = (torch.zeros(4, 3), torch.zeros(4, 3)) if t == 1 else (m, v)
        return (theta, gradient, m, v, t, lr, decay)

    return [draw(1, 0.1, 0.0), draw(2, 0.1, 0.1), draw(7, 0.01, 0.5), draw(300, 0.2, 0.1)]


register(
    Exercise(
        name="transformer.adamw_step",
        reference=_adamw(),
        inputs=_adamw_inputs,
        mistakes=(
            Mistake(
                "decay added to the gradient",
                "You add weight_decay * theta to the gradient, which is Adam with an L2 penalty: the decay "
                "is then divided by the root of v like everything else. AdamW shrinks theta beside it.",
                _adamw(coupled=True),
            ),
            Mistake(
                "bias correction missing",
                "The averages start at zero and are too small at first: divide them by 1 - beta^t.",
                _adamw(correct=False),
            ),
            Mistake(
                "steps counted from zero",
                "Your correction uses t + 1 as if t were counted from zero; here the first step is t = 1.",
                _adamw(power_off=1),
            ),
            Mistake(
                "root forgotten",
                "You divide by the second moment itself. It has a squared gradient's unit: take its root.",
                _adamw(root=False),
            ),
            Mistake(
                "second average of the gradient's size",
                "Your second average is of |g|. It is of the square of g.",
                _adamw(square=False),
            ),
            Mistake(
                "decay without the learning rate",
                "You shrink theta by weight_decay alone; the decay is multiplied by the learning rate.",
                _adamw(with_rate=False),
            ),
            Mistake(
                "no decay",
                "The weight decay is missing: theta also loses lr * weight_decay * theta.",
                _adamw(decayed=False),
            ),
            Mistake(
                "betas exchanged",
                "The two betas are exchanged: 0.9 is for the gradient, 0.999 for its square.",
                _adamw(exchanged=True),
            ),
        ),
    )
)

# Counting


def _count(
    biases: bool = True,
    norms: bool = True,
    norm_of_cross: bool = True,
    bias_of_norm: bool = True,
    one_mlp_bias: bool = False,
    projections: int = 4,
    hidden_is_4: bool = False,
) -> Callable[[int, int, bool], int]:
    def count(d_model: int, d_hidden: int, cross_attention: bool) -> int:
        d, f = d_model, 4 * d_model if hidden_is_4 else d_hidden
        layers = 2 if cross_attention else 1
        attention = projections * (d * d + (d if biases else 0))
        mlp = 2 * d * f
        if biases:
            mlp += d if one_mlp_bias else d + f
        n_norms = (layers if norm_of_cross else 1) + 1 if norms else 0
        return layers * attention + mlp + n_norms * d * (2 if bias_of_norm else 1)

    return count


register(
    Exercise(
        name="transformer.count_block",
        reference=_count(),
        inputs=lambda g: [(4, 16, False), (6, 10, True), (768, 3072, False), (1, 1, True)],
        mistakes=(
            Mistake(
                "biases forgotten",
                "You counted matrices and norms. Each linear map also has a bias, as long as its output.",
                _count(biases=False),
            ),
            Mistake(
                "norms forgotten",
                "The norms are missing: each sublayer has one, with a gain and a shift for each feature.",
                _count(norms=False),
            ),
            Mistake(
                "the norm's shift forgotten",
                "A LayerNorm has two numbers for each feature, a gain and a shift.",
                _count(bias_of_norm=False),
            ),
            Mistake(
                "the third norm forgotten",
                "With cross-attention there are three sublayers, and so three norms.",
                _count(norm_of_cross=False),
            ),
            Mistake(
                "one bias in the MLP",
                "The MLP has two biases, one of length F inside and one of length D at its end.",
                _count(one_mlp_bias=True),
            ),
            Mistake(
                "output projection forgotten",
                "Attention has four maps: queries, keys, values, and the one that joins the heads.",
                _count(projections=3),
            ),
            Mistake(
                "hidden width taken to be 4 D",
                "You took the hidden width to be 4 D; it is an argument here.",
                _count(hidden_is_4=True),
            ),
        ),
    )
)
