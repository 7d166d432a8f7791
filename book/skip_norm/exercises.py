"""The code exercises of the chapter on skip connections and normalisation, with readers' mistakes.

Everything is in the code's layout: (B, N, D), a token a row.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from tformer_book.kit.exercises.registry import exercise


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


layer_norm.add_mistakes("""
statistics across the tokens | dim=-1 => dim=1
    You average over the tokens of a sequence, one mean for each feature. LayerNorm averages over the
    features of each token, which are the last axis, and no token sees another.
statistics of BatchNorm | dim=-1 => dim=(0, 1)
    You average over batch and tokens, which is BatchNorm in training. LayerNorm averages over the last
    axis, the features of one token.
unbiased variance | , correction=0 =>
    Your variance divides by D - 1, which is what Tensor.var and Tensor.std do unless told otherwise.
    LayerNorm divides by D: correction=0.
epsilon outside the root | (variance + epsilon).sqrt() => (variance.sqrt() + epsilon)
    You add epsilon to the standard deviation. It is added to the variance, under the root; for tokens
    with little spread that is not the same.
epsilon outside the root, unbiased variance
    | , correction=0 =>
    | (variance + epsilon).sqrt() => (variance.sqrt() + epsilon)
    Two things at once: Tensor.std divides by D - 1 unless told correction=0, and epsilon is added to the
    variance, under the root, not to the standard deviation.
epsilon forgotten | variance + epsilon => variance
    Epsilon is missing: a token whose features are all equal gives 0/0. Add it to the variance.
mean square less squared mean
    | x.var(dim=-1, keepdim=True, correction=0) => x.square().mean(dim=-1, keepdim=True) - mean.square()
    Right for small numbers. For tokens such as (2001, 2002, 2003) the mean of the squares and the square
    of the mean agree in all their digits but the last: subtract the mean first, then square.
""")


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


rms_norm.add_mistakes("""
mean subtracted | => lambda x, gamma, epsilon: rms_norm(x - x.mean(dim=-1, keepdim=True), gamma, epsilon)
    You subtract the mean first: that is LayerNorm without its bias. RMSNorm divides the token as it is.
norm instead of root mean square | square().mean => square().sum
    You divide by the token's length. The root mean square is that length over the root of D.
epsilon outside the root | keepdim=True) + epsilon).sqrt() => keepdim=True).sqrt() + epsilon)
    You add epsilon to the root. It is added to the mean square, under the root.
root forgotten | .sqrt() =>
    You divide by the mean square. Take its root.
""")


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


layer_norm_backward.add_mistakes("""
only divided by sigma | g - g.mean(dim=-1, keepdim=True) - along => g
    You treat mean and variance as constants. They depend on every feature of the token, which is where
    the two other terms come from.
mean treated as a constant | - g.mean(dim=-1, keepdim=True) =>
    The term of the mean is missing: subtract the average of the gradient over the features.
variance treated as a constant | keepdim=True) - along => keepdim=True)
    The term of the variance is missing: subtract x-hat times the average of gradient times x-hat.
sums instead of averages
    | (hat * g).mean => (hat * g).sum
    | g.mean => g.sum
    You subtract sums over the features. Both terms are averages: divide by D.
""")


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


gelu.add_mistakes("""
erf without the root of two | x / math.sqrt(2) => x
    Phi(x) is (1 + erf(x / sqrt(2))) / 2; you left out the division by the root of two.
one half forgotten | * 0.5 =>
    1 + erf lies between 0 and 2. A probability is half of it.
SiLU | 0.5 * (1 + torch.erf(x / math.sqrt(2))) => torch.sigmoid(x)
    x times sigmoid(x) is SiLU, also called swish. GELU's gate is the normal distribution's.
tanh approximation | => lambda x: F.gelu(x, approximate="tanh")
    The formula with tanh is near, to a thousandth. The exact gate, by erf, is wanted here.
""")


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


placements.add_mistakes("""
normalised input added back | return x + f(normed) => return normed + f(normed)
    Your pre-norm adds the normalised input back, which is the third variant. What skips the sublayer is x
    itself: x + f(norm(x)).
pre-norm and post-norm exchanged | x + f(normed), norm(x + f(x)), => norm(x + f(x)), x + f(normed),
    The first and the second are exchanged: in pre-norm the norm stands before the sublayer.
post-norm inside the branch | norm(x + f(x)) => x + norm(f(x))
    Your post-norm normalises what the sublayer adds, and not the sum: norm(x + f(x)) puts the norm on the
    stream.
post-norm without its skip | norm(x + f(x)) => norm(f(x))
    Your post-norm lacks the skip: normalise the sum of x and f(x).
""")
