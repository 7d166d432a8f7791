"""The code exercises of the chapter on skip connections and normalisation, with readers' mistakes.

Everything is in the code's layout: (B, N, D), a token a row.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from tformer_book.kit.exercises.registry import exercise

# LayerNorm


def _norm_inputs(g: torch.Generator) -> list[tuple]:
    def draw(batch: int, n: int, width: int, size: float, epsilon: float) -> tuple:
        x = 2.0 + size * torch.randn(batch, n, width, generator=g)
        return (x, torch.randn(width, generator=g), torch.randn(width, generator=g), epsilon)

    level = torch.full((1, 2, 4), 3.0)  # tokens whose features are all equal
    high = torch.tensor([[[2001.0, 2002.0, 2003.0]]])  # whose squares lose what they differ by
    return [
        draw(2, 5, 6, 3.0, 1e-5),
        draw(3, 4, 8, 1.0, 0.5),
        draw(1, 3, 4, 0.1, 1e-2),
        (torch.tensor([[[1.0, 4.0]]]), torch.tensor([2.0, 3.0]), torch.tensor([0.0, 1.0]), 0.25),
        (level, torch.ones(4), torch.tensor([1.0, 2.0, 3.0, 4.0]), 1e-5),
        (high, torch.tensor([1.0, 2.0, 3.0]), torch.zeros(3), 1e-5),
    ]


@exercise("skip_norm.layer_norm", inputs=_norm_inputs)
def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
    """gamma (x - mean) / sqrt(variance + epsilon) + beta for each token: (B, N, D), (D,), (D,) -> (B, N, D).

    Mean and variance are those of the token's D features; the variance divides by D.
    """
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, keepdim=True, correction=0)
    return gamma * (x - mean) / (variance + epsilon).sqrt() + beta


def _centred(x: Tensor, dim: int | tuple[int, ...] = -1) -> Tensor:
    return x - x.mean(dim=dim, keepdim=True)


def _variance(x: Tensor, dim: int | tuple[int, ...] = -1) -> Tensor:
    return x.var(dim=dim, keepdim=True, correction=0)


def _layer_norm_over(*dim: int) -> Callable[..., Tensor]:
    """LayerNorm with statistics over other axes."""
    return lambda x, gamma, beta, epsilon: (
        gamma * _centred(x, dim) / (_variance(x, dim) + epsilon).sqrt() + beta
    )


layer_norm.mistake(
    "statistics across the tokens",
    "You average over the tokens of a sequence, one mean for each feature. LayerNorm averages over the "
    "features of each token, which are the last axis, and no token sees another.",
    _layer_norm_over(1),
)

layer_norm.mistake(
    "statistics across the batch",
    "You average over the sequences of the batch. LayerNorm averages over the features of each token on its "
    "own: the last axis.",
    _layer_norm_over(0),
)

layer_norm.mistake(
    "statistics of BatchNorm",
    "You average over batch and tokens, which is BatchNorm in training. LayerNorm averages over the last "
    "axis, the features of one token.",
    _layer_norm_over(0, 1),
)

layer_norm.mistake(
    "one mean for a whole sequence",
    "You average over tokens and features together. Each token has its own mean and variance: the last axis "
    "alone.",
    _layer_norm_over(1, 2),
)

layer_norm.mistake(
    "unbiased variance",
    "Your variance divides by D - 1, which is what Tensor.var and Tensor.std do unless told otherwise. "
    "LayerNorm divides by D: correction=0.",
    lambda x, gamma, beta, epsilon: (
        gamma * _centred(x) / (x.var(dim=-1, keepdim=True) + epsilon).sqrt() + beta
    ),
)

layer_norm.mistake(
    "epsilon outside the root",
    "You add epsilon to the standard deviation. It is added to the variance, under the root; for tokens "
    "with little spread that is not the same.",
    lambda x, gamma, beta, epsilon: gamma * _centred(x) / (_variance(x).sqrt() + epsilon) + beta,
)

layer_norm.mistake(
    "epsilon outside the root, unbiased variance",
    "Two things at once: Tensor.std divides by D - 1 unless told correction=0, and epsilon is added to the "
    "variance, under the root, not to the standard deviation.",
    lambda x, gamma, beta, epsilon: gamma * _centred(x) / (x.std(dim=-1, keepdim=True) + epsilon) + beta,
)

layer_norm.mistake(
    "epsilon squared",
    "You add the square of epsilon to the variance. It is added as it is: variance + epsilon.",
    lambda x, gamma, beta, epsilon: gamma * _centred(x) / (_variance(x) + epsilon**2).sqrt() + beta,
)

layer_norm.mistake(
    "epsilon forgotten",
    "Epsilon is missing: a token whose features are all equal gives 0/0. Add it to the variance.",
    lambda x, gamma, beta, epsilon: gamma * _centred(x) / _variance(x).sqrt() + beta,
)

layer_norm.mistake(
    "an epsilon of its own",
    "You use 1e-5 whatever epsilon is. Add the argument: F.layer_norm, too, has a default of its own.",
    lambda x, gamma, beta, epsilon: layer_norm(x, gamma, beta, 1e-5),
)

layer_norm.mistake(
    "mean square less squared mean",
    "Right for small numbers. For tokens such as (2001, 2002, 2003) the mean of the squares and the square "
    "of the mean agree in all their digits but the last: subtract the mean first, then square.",
    lambda x, gamma, beta, epsilon: (
        gamma
        * _centred(x)
        / (x.square().mean(dim=-1, keepdim=True) - x.mean(dim=-1, keepdim=True).square() + epsilon).sqrt()
        + beta
    ),
)

layer_norm.mistake(
    "variance instead of standard deviation",
    "You divide by the variance. Divide by its root, so that the result has the variance 1.",
    lambda x, gamma, beta, epsilon: gamma * _centred(x) / (_variance(x) + epsilon) + beta,
)

layer_norm.mistake(
    "mean not subtracted",
    "You divide, but the mean is still there. Subtract it first.",
    lambda x, gamma, beta, epsilon: gamma * x / (_variance(x) + epsilon).sqrt() + beta,
)

layer_norm.mistake(
    "gain and bias forgotten",
    "The normalised tokens are right. Multiply them by gamma, feature by feature, and add beta.",
    lambda x, gamma, beta, epsilon: _centred(x) / (_variance(x) + epsilon).sqrt(),
)

layer_norm.mistake(
    "gain and bias exchanged",
    "Gamma and beta are exchanged: gamma multiplies, beta is added.",
    lambda x, gamma, beta, epsilon: layer_norm(x, beta, gamma, epsilon),
)

layer_norm.mistake(
    "bias multiplied by the gain",
    "You add beta before you multiply by gamma. Beta is added last.",
    lambda x, gamma, beta, epsilon: gamma * layer_norm(x, torch.ones_like(gamma), beta, epsilon),
)

layer_norm.mistake(
    "bias forgotten",
    "The gain is there and beta is not: add it at the end.",
    lambda x, gamma, beta, epsilon: layer_norm(x, gamma, torch.zeros_like(beta), epsilon),
)

layer_norm.mistake(
    "gain forgotten",
    "Beta is there and gamma is not: multiply the normalised tokens by it, feature by feature.",
    lambda x, gamma, beta, epsilon: layer_norm(x, torch.ones_like(gamma), beta, epsilon),
)

# RMSNorm


def _rms_inputs(g: torch.Generator) -> list[tuple]:
    zeros = (torch.zeros(1, 2, 4), torch.ones(4), 1e-5)
    single = (torch.tensor([[[-2.0], [1.0]]]), torch.tensor([3.0]), 0.5)
    return [*((x, gamma, epsilon) for x, gamma, _, epsilon in _norm_inputs(g)), zeros, single]


@exercise("skip_norm.rms_norm", inputs=_rms_inputs)
def rms_norm(x: Tensor, gamma: Tensor, epsilon: float) -> Tensor:
    """gamma x / sqrt(mean square + epsilon) for each token: (B, N, D), (D,) -> (B, N, D).

    The mean square is that of the token's D features; no mean is subtracted.
    """
    return gamma * x / (x.square().mean(dim=-1, keepdim=True) + epsilon).sqrt()


def _mean_square(x: Tensor, dim: int = -1) -> Tensor:
    return x.square().mean(dim=dim, keepdim=True)


rms_norm.mistake(
    "mean subtracted",
    "You subtract the mean first: that is LayerNorm without its bias. RMSNorm divides the token as it is.",
    lambda x, gamma, epsilon: rms_norm(_centred(x), gamma, epsilon),
)

rms_norm.mistake(
    "variance instead of mean square",
    "You divide by the standard deviation, in which the mean is subtracted. RMSNorm divides by the root of "
    "the mean square of the features as they are.",
    lambda x, gamma, epsilon: gamma * x / (_variance(x) + epsilon).sqrt(),
)

rms_norm.mistake(
    "norm instead of root mean square",
    "You divide by the token's length. The root mean square is that length over the root of D.",
    lambda x, gamma, epsilon: gamma * x / (x.square().sum(dim=-1, keepdim=True) + epsilon).sqrt(),
)

rms_norm.mistake(
    "epsilon outside the root",
    "You add epsilon to the root. It is added to the mean square, under the root.",
    lambda x, gamma, epsilon: gamma * x / (_mean_square(x).sqrt() + epsilon),
)

rms_norm.mistake(
    "epsilon forgotten",
    "Epsilon is missing: a token of zeros gives 0/0. Add it to the mean square, under the root.",
    lambda x, gamma, epsilon: gamma * x / _mean_square(x).sqrt(),
)

rms_norm.mistake(
    "an epsilon of its own",
    "You use 1e-5 whatever epsilon is. Add the argument, under the root.",
    lambda x, gamma, epsilon: rms_norm(x, gamma, 1e-5),
)

rms_norm.mistake(
    "root forgotten",
    "You divide by the mean square. Take its root.",
    lambda x, gamma, epsilon: gamma * x / (_mean_square(x) + epsilon),
)

rms_norm.mistake(
    "gain forgotten",
    "The normalised tokens are right. Multiply them by gamma, feature by feature.",
    lambda x, gamma, epsilon: rms_norm(x, torch.ones_like(gamma), epsilon),
)

rms_norm.mistake(
    "statistics across the tokens",
    "You average over the tokens. The mean square is taken over the features of each token, the last axis.",
    lambda x, gamma, epsilon: gamma * x / (_mean_square(x, dim=1) + epsilon).sqrt(),
)

# The gradient of LayerNorm


def _backward_inputs(g: torch.Generator) -> list[tuple]:
    return [
        (x, gamma, torch.randn(x.shape, generator=g), epsilon) for x, gamma, _, epsilon in _norm_inputs(g)
    ]


@exercise("skip_norm.layer_norm_backward", inputs=_backward_inputs, tolerance=1e-4)
def layer_norm_backward(x: Tensor, gamma: Tensor, gradient: Tensor, epsilon: float) -> Tensor:
    """dL/dx of LayerNorm, given `gradient` = dL/dy: (B, N, D), (D,), (B, N, D) -> (B, N, D).

    It is (g - mean(g) - hat * mean(hat * g)) / sqrt(variance + epsilon) with g = gamma * gradient and the
    normalised token hat, each mean being that of the token's D features.
    """
    sigma = (x.var(dim=-1, keepdim=True, correction=0) + epsilon).sqrt()
    hat, g = (x - x.mean(dim=-1, keepdim=True)) / sigma, gamma * gradient
    along = hat * (hat * g).mean(dim=-1, keepdim=True)
    return (g - g.mean(dim=-1, keepdim=True) - along) / sigma


def _sigma(x: Tensor, epsilon: float) -> Tensor:
    return (_variance(x) + epsilon).sqrt()


def _backward_variant(
    terms: Callable[[Tensor, Tensor], Tensor], sigma: Callable[[Tensor, float], Tensor] = _sigma
) -> Callable[..., Tensor]:
    """A gradient whose terms before the division are made of normalised token and g."""

    def variant(x: Tensor, gamma: Tensor, gradient: Tensor, epsilon: float) -> Tensor:
        size = sigma(x, epsilon)
        return terms(_centred(x) / size, gamma * gradient) / size

    return variant


def _along(hat: Tensor, g: Tensor) -> Tensor:
    return hat * (hat * g).mean(dim=-1, keepdim=True)


layer_norm_backward.mistake(
    "gain forgotten",
    "The gradient passes through gamma first: multiply it, feature by feature, before the rest.",
    lambda x, gamma, gradient, epsilon: layer_norm_backward(x, torch.ones_like(gamma), gradient, epsilon),
)

layer_norm_backward.mistake(
    "gain multiplied at the end",
    "You multiply by gamma at the end. Gamma stands after the norm, so the gradient passes through it first.",
    lambda x, gamma, gradient, epsilon: (
        gamma * layer_norm_backward(x, torch.ones_like(gamma), gradient, epsilon)
    ),
)

layer_norm_backward.mistake(
    "only divided by sigma",
    "You treat mean and variance as constants. They depend on every feature of the token, which is where "
    "the two other terms come from.",
    _backward_variant(lambda hat, g: g),
)

layer_norm_backward.mistake(
    "mean treated as a constant",
    "The term of the mean is missing: subtract the average of the gradient over the features.",
    _backward_variant(lambda hat, g: g - _along(hat, g)),
)

layer_norm_backward.mistake(
    "variance treated as a constant",
    "The term of the variance is missing: subtract x-hat times the average of gradient times x-hat.",
    _backward_variant(lambda hat, g: _centred(g)),
)

layer_norm_backward.mistake(
    "division by sigma forgotten",
    "The direction is right and the length is not: divide by sigma.",
    lambda x, gamma, gradient, epsilon: layer_norm_backward(x, gamma, gradient, epsilon) * _sigma(x, epsilon),
)

layer_norm_backward.mistake(
    "sums instead of averages",
    "You subtract sums over the features. Both terms are averages: divide by D.",
    _backward_variant(
        lambda hat, g: g - g.sum(dim=-1, keepdim=True) - hat * (hat * g).sum(dim=-1, keepdim=True)
    ),
)

layer_norm_backward.mistake(
    "averages over the tokens",
    "Both averages run over the features of one token, the last axis; a token's gradient does not depend on "
    "other tokens.",
    _backward_variant(
        lambda hat, g: g - g.mean(dim=1, keepdim=True) - hat * (hat * g).mean(dim=1, keepdim=True)
    ),
)

layer_norm_backward.mistake(
    "x for x-hat",
    "Your third term has the token as it came. It takes the normalised one, x-hat, in both places.",
    lambda x, gamma, gradient, epsilon: (
        (_centred(gamma * gradient) - _along(x, gamma * gradient)) / _sigma(x, epsilon)
    ),
)

layer_norm_backward.mistake(
    "unbiased variance",
    "Your variance divides by D - 1, which is what Tensor.var does unless told otherwise. LayerNorm divides "
    "by D: correction=0.",
    _backward_variant(
        lambda hat, g: _centred(g) - _along(hat, g),
        lambda x, epsilon: (x.var(dim=-1, keepdim=True) + epsilon).sqrt(),
    ),
)

layer_norm_backward.mistake(
    "epsilon forgotten",
    "Epsilon is missing: a token whose features are all equal gives 0/0. Sigma is the root of variance + "
    "epsilon.",
    lambda x, gamma, gradient, epsilon: layer_norm_backward(x, gamma, gradient, 0.0),
)

layer_norm_backward.mistake(
    "epsilon outside the root",
    "You add epsilon to the standard deviation. It is added to the variance, under the root.",
    _backward_variant(
        lambda hat, g: _centred(g) - _along(hat, g), lambda x, epsilon: _variance(x).sqrt() + epsilon
    ),
)

layer_norm_backward.mistake(
    "LayerNorm itself",
    "This is the output of LayerNorm, with the gradient for its bias. Wanted is dL/dx.",
    lambda x, gamma, gradient, epsilon: layer_norm(x, gamma, gradient, epsilon),
)

# GELU


@exercise(
    "skip_norm.gelu",
    inputs=lambda g: [
        (torch.randn(3, 5, generator=g),),
        (torch.linspace(-6, 6, 25),),
        (torch.tensor([1.0, -1.0]),),
        (torch.zeros(2),),
        (torch.tensor([-200.0, 200.0]),),
    ],
)
def gelu(x: Tensor) -> Tensor:
    """x Phi(x), entry by entry, with Phi(x) = (1 + erf(x / sqrt(2))) / 2, of any shape."""
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


gelu.mistake(
    "the gate alone",
    "You return the probability that the gate is open. Multiply it by x.",
    lambda x: 0.5 * (1 + torch.erf(x / math.sqrt(2))),
)

gelu.mistake(
    "erf without the root of two",
    "Phi(x) is (1 + erf(x / sqrt(2))) / 2; you left out the division by the root of two.",
    lambda x: x * 0.5 * (1 + torch.erf(x)),
)

gelu.mistake(
    "erf without its one",
    "erf lies between -1 and 1, and a probability between 0 and 1: Phi(x) is (1 + erf(x / sqrt(2))) / 2.",
    lambda x: x * 0.5 * torch.erf(x / math.sqrt(2)),
)

gelu.mistake(
    "density instead of distribution",
    "You multiply by the density of the normal distribution. The gate is open with the probability that a "
    "normal number is below x: the distribution function.",
    lambda x: x * torch.exp(-(x**2) / 2) / math.sqrt(2 * math.pi),
)

gelu.mistake(
    "one half forgotten",
    "1 + erf lies between 0 and 2. A probability is half of it.",
    lambda x: x * (1 + torch.erf(x / math.sqrt(2))),
)

gelu.mistake(
    "SiLU",
    "x times sigmoid(x) is SiLU, also called swish. GELU's gate is the normal distribution's.",
    lambda x: x * torch.sigmoid(x),
)

gelu.mistake(
    "sigmoid approximation",
    "x times sigmoid(1.702 x) is near, to two hundredths. The exact gate is wanted here.",
    lambda x: x * torch.sigmoid(1.702 * x),
)

gelu.mistake(
    "tanh approximation",
    "The formula with tanh is near, to a thousandth. The exact gate, by erf, is wanted here.",
    lambda x: F.gelu(x, approximate="tanh"),
)

gelu.mistake("ReLU", "That is ReLU, whose gate is open or shut.", lambda x: x.clamp(min=0))

# Where the norm stands


class _Map:
    """A function of a token, with a name for messages."""

    def __init__(self, name: str, function: Callable[[Tensor], Tensor]):
        self.name, self.function = name, function

    def __call__(self, x: Tensor) -> Tensor:
        return self.function(x)

    def __repr__(self) -> str:
        return self.name


def _placement_inputs(g: torch.Generator) -> list[tuple]:
    def draw(batch: int, n: int, width: int) -> tuple:
        weight = torch.randn(width, width, generator=g)
        gain = 1 + 0.3 * torch.randn(width, generator=g)
        return (
            3 * torch.randn(batch, n, width, generator=g) + 1,
            _Map("norm", lambda x: F.layer_norm(x, (width,), gain)),
            _Map("f", lambda x: torch.tanh(x @ weight)),
        )

    return [draw(2, 5, 6), draw(1, 1, 3), draw(1, 3, 4), draw(3, 1, 8)]


@exercise("skip_norm.placements", inputs=_placement_inputs)
def placements(
    x: Tensor, norm: Callable[[Tensor], Tensor], f: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """What pre-norm, post-norm and the normed skip make of x, in this order, all of the shape of x.

    They are x + f(norm(x)), norm(x + f(x)) and norm(x) + f(norm(x)).
    """
    normed = norm(x)
    return x + f(normed), norm(x + f(x)), normed + f(normed)


placements.mistake(
    "normalised input added back",
    "Your pre-norm adds the normalised input back, which is the third variant. What skips the sublayer is x "
    "itself: x + f(norm(x)).",
    lambda x, norm, f: (norm(x) + f(norm(x)), norm(x + f(x)), norm(x) + f(norm(x))),
)

placements.mistake(
    "pre-norm and the third variant exchanged",
    "The first and the third are exchanged: pre-norm adds x itself, the third norm(x).",
    lambda x, norm, f: placements(x, norm, f)[::-1],
)

placements.mistake(
    "pre-norm and post-norm exchanged",
    "The first and the second are exchanged: in pre-norm the norm stands before the sublayer.",
    lambda x, norm, f: (norm(x + f(x)), x + f(norm(x)), norm(x) + f(norm(x))),
)

placements.mistake(
    "post-norm and the third variant exchanged",
    "The second and the third are exchanged: post-norm normalises the sum, the third norm(x).",
    lambda x, norm, f: (x + f(norm(x)), norm(x) + f(norm(x)), norm(x + f(x))),
)

placements.mistake(
    "post-norm inside the branch",
    "Your post-norm normalises what the sublayer adds, and not the sum: norm(x + f(x)) puts the norm on the "
    "stream.",
    lambda x, norm, f: (x + f(norm(x)), x + norm(f(x)), norm(x) + f(norm(x))),
)

placements.mistake(
    "post-norm of pre-norm",
    "Your post-norm normalises twice, before the sublayer and after the sum. Its sublayer reads x as it is: "
    "norm(x + f(x)).",
    lambda x, norm, f: (x + f(norm(x)), norm(x + f(norm(x))), norm(x) + f(norm(x))),
)

placements.mistake(
    "post-norm without its skip",
    "Your post-norm lacks the skip: normalise the sum of x and f(x).",
    lambda x, norm, f: (x + f(norm(x)), norm(f(x)), norm(x) + f(norm(x))),
)

placements.mistake(
    "sublayer of the third variant reads x",
    "In the third variant the sublayer reads the normalised input as well: norm(x) + f(norm(x)).",
    lambda x, norm, f: (x + f(norm(x)), norm(x + f(x)), norm(x) + f(x)),
)

placements.mistake(
    "skips forgotten",
    "There are no skips: each variant adds the sublayer's output to something.",
    lambda x, norm, f: (f(norm(x)), norm(f(x)), f(norm(x))),
)
