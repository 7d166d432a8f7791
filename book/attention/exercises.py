"""The code exercises of the chapter on attention, with the mistakes that readers make in them.

Everything is in the text's layout: a token is a column, and so is its distribution over the keys.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from tformer_book.kit.exercises.registry import exercise

# Softmax


def _softmax_inputs(g: torch.Generator) -> list[tuple]:
    apart = torch.tensor([[0.0, 1000.0], [1.0, 1001.0], [-2.0, 998.0]])
    wide = torch.tensor([[0.0, 1.0], [-1000.0, 2.0], [1.0, 500.0]])
    return [
        (torch.randn(4, 3, generator=g),),
        (torch.randn(5, 5, generator=g),),
        (torch.tensor([[1.0, 2.0], [3.0, 0.0]]),),
        (torch.randn(1, 3, generator=g),),
        (torch.randn(4, 1, generator=g),),
        (apart,),
        (wide,),
        (torch.full((3, 2), -1000.0),),
    ]


@exercise("attention.softmax_columns", inputs=_softmax_inputs)
def softmax_columns(scores: Tensor) -> Tensor:
    """Softmax over the keys, which are the rows: (S, N) -> (S, N), each column sums to one.

    Scores may be large, of either sign, and far apart: 1000 in one column and 0 in another.
    """
    e = (scores - scores.amax(dim=0)).exp()
    return e / e.sum(dim=0)


softmax_columns.mistake(
    "softmax over rows",
    "Your rows sum to one. In the text's layout a query is a column, so each column is a distribution over "
    "the keys: normalise along dim 0.",
    lambda s: s.softmax(dim=1),
)

softmax_columns.mistake(
    "softmax over everything",
    "All entries together sum to one. Each query has a distribution of its own: sum along dim 0, with "
    "keepdim=True so that the division broadcasts over columns.",
    lambda s: s.flatten().softmax(dim=0).view(s.shape),
)

softmax_columns.mistake(
    "no maximum subtracted",
    "Right for small scores, NaN for large ones: exp(1000) overflows. Subtract each column's maximum first; "
    "the quotient does not change.",
    lambda s: s.exp() / s.exp().sum(dim=0),
)

softmax_columns.mistake(
    "one maximum for all columns",
    "You subtract the maximum of the whole matrix. A column that lies far below it underflows to 0/0: "
    "subtract the maximum of each column.",
    lambda s: (s - s.max()).exp() / (s - s.max()).exp().sum(dim=0),
)

softmax_columns.mistake(
    "scores divided without exponential",
    "You normalise the scores themselves. They may be negative; take the exponential first.",
    lambda s: s / s.sum(dim=0),
)

# Attention


def _qkv_inputs(g: torch.Generator) -> list[tuple]:
    def draw(dh: int, dv: int, n: int, s: int) -> tuple:
        sizes = ((dh, n), (dh, s), (dv, s))
        return tuple(torch.randn(*size, generator=g) for size in sizes)

    # whole numbers, so that scores are exact: hundreds apart, with ties
    q, k, v = (torch.randint(-3, 4, size, generator=g).float() for size in ((4, 3), (4, 5), (2, 5)))
    return [
        draw(4, 4, 5, 5),
        draw(9, 2, 3, 6),
        draw(2, 1, 1, 2),
        draw(3, 5, 1, 4),
        draw(3, 3, 4, 1),
        (10 * q, 10 * k, v),
    ]


@exercise("attention.attention_columns", inputs=_qkv_inputs)
def attention_columns(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Y = V softmax(K^T Q / sqrt(Dh)), tokens as columns: (Dh, N), (Dh, S), (Dv, S) -> (Dv, N).

    The softmax runs over the keys, the rows of K^T Q.
    """
    return v @ softmax_columns(k.T @ q / math.sqrt(q.shape[0]))


attention_columns.mistake(
    "missing scale",
    "The scores are not scaled: divide them by the square root of Dh, the number of rows of q.",
    lambda q, k, v: v @ softmax_columns(k.T @ q),
)

attention_columns.mistake(
    "scale by Dh instead of its root",
    "You divide by Dh. The standard deviation of a score is the square root of Dh; its variance is Dh. "
    "Either the root is missing, or you scale twice, once in q or k and once more in the scores.",
    lambda q, k, v: v @ softmax_columns(k.T @ q / q.shape[0]),
)

attention_columns.mistake(
    "multiplied by the root of Dh",
    "You multiply by the square root of Dh. The sum of Dh products is too large, not too small: divide.",
    lambda q, k, v: v @ softmax_columns(k.T @ q * math.sqrt(q.shape[0])),
)

attention_columns.mistake(
    "scale by the number of tokens",
    "You divide by the root of the number of queries. The sum in a dot product runs over features: the "
    "scale is the root of q.shape[0].",
    lambda q, k, v: v @ softmax_columns(k.T @ q / math.sqrt(q.shape[1])),
)

attention_columns.mistake(
    "scale by the number of keys",
    "You divide by the root of the number of keys. A score is a sum over features, however many keys there "
    "are: the scale is the root of q.shape[0].",
    lambda q, k, v: v @ softmax_columns(k.T @ q / math.sqrt(k.shape[1])),
)

attention_columns.mistake(
    "scale by the width of the values",
    "You divide by the root of the values' width. Scores are made of queries and keys, whose width is "
    "q.shape[0]; values may have another.",
    lambda q, k, v: v @ softmax_columns(k.T @ q / math.sqrt(v.shape[0])),
)

attention_columns.mistake(
    "scaled after the softmax",
    "You divide the weights, so that they no longer sum to one. The root belongs to the scores, inside the "
    "softmax.",
    lambda q, k, v: v @ softmax_columns(k.T @ q) / math.sqrt(q.shape[0]),
)

attention_columns.mistake(
    "softmax over queries",
    "Your softmax runs over the queries. The weights with which one query reads must sum to one over the "
    "keys: in K^T Q the keys are the rows, so normalise along dim 0.",
    lambda q, k, v: v @ (k.T @ q / math.sqrt(q.shape[0])).softmax(dim=1),
)

attention_columns.mistake(
    "queries and keys exchanged",
    "You formed Q^T K. With a token a column, the scores are K^T Q: keys down, queries across.",
    lambda q, k, v: v @ softmax_columns(q.T @ k / math.sqrt(q.shape[0])),
)

attention_columns.mistake(
    "scaled_dot_product_attention without transposing",
    "You take a token for a row, as PyTorch's function does and softmax(Q K^T) V says. Here it is a column, "
    "so that features read each other: transpose q, k and v before, and the result after.",
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
)

# Masked weights


def _mask_inputs(g: torch.Generator) -> list[tuple]:
    some = torch.rand(5, 4, generator=g) < 0.6
    some[0] = True  # here every query sees at least one key
    none = some.clone()
    none[:, 2] = False  # and here the third query sees none
    everything = torch.ones(3, 3, dtype=torch.bool)
    few = torch.tensor([[True], [False], [True]])
    # allowed: 1000; -1000 below a forbidden 2; -1000 with nothing forbidden; -18 below a forbidden 88
    far = torch.tensor(
        [[1000.0, -1000.0, -1000.0, -18.0], [1001.0, -1001.0, -1002.0, -19.0], [3.0, 2.0, -1001.0, 88.0]]
    )
    but_three = torch.ones(3, 4, dtype=torch.bool)
    but_three[2, [0, 1, 3]] = False
    return [
        (torch.randn(5, 4, generator=g), some),
        (torch.randn(3, 3, generator=g), everything),
        (torch.randn(5, 4, generator=g), none),
        (torch.tensor([[1.0], [2.0], [0.5]]), few),
        (torch.randn(1, 2, generator=g), torch.tensor([[True, False]])),
        (far, but_three),
    ]


@exercise("attention.masked_weights", inputs=_mask_inputs)
def masked_weights(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the keys that a query may see, the True rows of its column: (S, N), (S, N) -> (S, N).

    Forbidden keys get exactly 0, however large their score, and a column without any True is zeros.
    """
    lowest = torch.finfo(scores.dtype).min
    return softmax_columns(scores.masked_fill(~mask, lowest)).masked_fill(~mask, 0.0)


masked_weights.mistake(
    "mask applied after softmax",
    "You zeroed weights after the softmax. The forbidden keys still had their share of the denominator, so "
    "the rest no longer sum to one: mask the scores first.",
    lambda s, m: softmax_columns(s) * m,
)

masked_weights.mistake(
    "mask inverted",
    "Your weights lie exactly where the mask is False. Here True means 'may attend'.",
    lambda s, m: masked_weights(s, ~m),
)

masked_weights.mistake(
    "mask inverted, with a finite fill",
    "You forbid what the mask allows, and a column without any False becomes uniform. Here True means 'may "
    "attend', so what gets the low score is ~mask.",
    lambda s, m: softmax_columns(s.masked_fill(m, torch.finfo(s.dtype).min)),
)

masked_weights.mistake(
    "mask inverted, and NaN",
    "You forbid what the mask allows, and a column without any False becomes NaN. Here True means 'may "
    "attend', so what gets minus infinity is ~mask.",
    lambda s, m: s.masked_fill(m, -math.inf).softmax(dim=0),
)

masked_weights.mistake(
    "scores multiplied by the mask",
    "You set forbidden scores to 0, as multiplying by the mask does. A score of 0 is an ordinary score, "
    "with exp(0) = 1: use minus infinity, or the smallest finite number.",
    lambda s, m: softmax_columns(s * m),
)

masked_weights.mistake(
    "scores multiplied by the mask, then zeroed",
    "You set forbidden scores to 0 and drop their weights afterwards. Meanwhile each had exp(0) = 1 in the "
    "denominator: the scores must become minus infinity before the softmax.",
    lambda s, m: softmax_columns(s * m) * m,
)

masked_weights.mistake(
    "mask added to the scores",
    "You added the mask to the scores. That only raises allowed scores by one: forbidden ones must become "
    "minus infinity.",
    lambda s, m: softmax_columns(s + m),
)

masked_weights.mistake(
    "zero times minus infinity",
    "You multiply the mask by minus infinity, and 0 times infinity is NaN. Use masked_fill or torch.where.",
    lambda s, m: softmax_columns(s + ~m * -math.inf),
)

masked_weights.mistake(
    "softmax over the wrong axis",
    "The mask is right, and your rows sum to one. A query is a column: normalise along dim 0.",
    lambda s, m: s.masked_fill(~m, torch.finfo(s.dtype).min).softmax(dim=1).masked_fill(~m, 0.0),
)

masked_weights.mistake(
    "NaN where a query may see nothing",
    "Right wherever a query may see a key, but a column without any allowed key computes 0/0. It should be "
    "zeros: fill with the smallest finite number, then zero what is forbidden.",
    lambda s, m: s.masked_fill(~m, -math.inf).softmax(dim=0),
)

masked_weights.mistake(
    "uniform weights where a query may see nothing",
    "A column without any allowed key came out uniform: the query reads keys that it may not see. Zero the "
    "forbidden weights once more after the softmax.",
    lambda s, m: softmax_columns(s.masked_fill(~m, torch.finfo(s.dtype).min)),
)

masked_weights.mistake(
    "a number that is not low enough",
    "You give forbidden scores a number such as -100. Where the allowed ones are lower still, it outweighs "
    "them: use the smallest finite number.",
    lambda s, m: softmax_columns(s.masked_fill(~m, -100.0)),
)

masked_weights.mistake(
    "a number that is not low enough, then zeroed",
    "You give forbidden scores a number such as -100, and drop their weights afterwards. Where the allowed "
    "scores are lower still, nothing is left: use the smallest finite number.",
    lambda s, m: softmax_columns(s.masked_fill(~m, -100.0)) * m,
)


def _quotient(shift: Callable[[Tensor], Tensor | float], guarded: bool) -> Callable[[Tensor, Tensor], Tensor]:
    """Exponentials of the allowed scores, shifted somehow, over their sum, kept from being 0 or not."""

    def variant(s: Tensor, m: Tensor) -> Tensor:
        e = (s - shift(s)).exp() * m
        return e / (e.sum(dim=0).clamp(min=1e-30) if guarded else e.sum(dim=0))

    return variant


masked_weights.mistake(
    "no maximum subtracted",
    "Right for moderate scores, NaN for large ones: exp(1000) overflows. Subtract the maximum of the "
    "allowed scores in each column.",
    _quotient(lambda s: 0.0, guarded=True),
)

masked_weights.mistake(
    "no maximum subtracted, and no key to see",
    "There are two ways to NaN here: exp(1000) overflows, so subtract each column's maximum; and a column "
    "without any allowed key is 0/0, where zeros are wanted.",
    _quotient(lambda s: 0.0, guarded=False),
)

masked_weights.mistake(
    "maximum over forbidden keys too",
    "The maximum that you subtract, or that a softmax before the mask does, is a forbidden score. Far below "
    "it all that is allowed underflows to 0: mask first, so that the maximum is that of the allowed scores.",
    _quotient(lambda s: s.amax(dim=0), guarded=True),
)

masked_weights.mistake(
    "maximum over forbidden keys too, and no key to see",
    "You divide by a sum that may be 0: where nothing is allowed, and where all that is allowed lies far "
    "below a forbidden score. Mask first, take the maximum then, and let an empty column be zeros.",
    _quotient(lambda s: s.amax(dim=0), guarded=False),
)

masked_weights.mistake(
    "one maximum for all columns",
    "You subtract one maximum for the whole matrix. A column that lies far below it underflows to 0: "
    "subtract the maximum of each column's allowed scores.",
    _quotient(lambda s: s.max(), guarded=True),
)

masked_weights.mistake(
    "one maximum for all columns, and no key to see",
    "You divide by a sum that may be 0: in a column without any allowed key, and in one that lies far below "
    "the maximum of the whole matrix. Take the maximum of each column, and let an empty one be zeros.",
    _quotient(lambda s: s.max(), guarded=False),
)

# The causal mask


@exercise("attention.causal_columns", inputs=lambda g: [(4,), (1,), (2,), (7,)])
def causal_columns(n: int) -> Tensor:
    """The causal mask with keys down and queries across: a boolean (N, N), True where key <= query."""
    return torch.ones(n, n, dtype=torch.bool).triu()


causal_columns.mistake(
    "causal mask off by one",
    "The diagonal is missing: a token may attend to itself. As it stands the first one sees nothing at all.",
    lambda n: torch.ones(n, n, dtype=torch.bool).triu(1),
)

causal_columns.mistake(
    "causal mask off by one, the other way",
    "Each token sees its right neighbour, which is the one it is to predict.",
    lambda n: torch.ones(n, n, dtype=torch.bool).triu(-1),
)

causal_columns.mistake(
    "the code's causal mask",
    "This is the mask of the code, with queries down. In the text queries run across, so the mask is its "
    "transpose: True where the row (key) is at or before the column (query).",
    lambda n: torch.ones(n, n, dtype=torch.bool).tril(),
)

causal_columns.mistake(
    "mask inverted",
    "True stands where attention is forbidden. Here True means 'may attend'.",
    lambda n: torch.ones(n, n, dtype=torch.bool).tril(-1),
)

causal_columns.mistake(
    "mask of numbers",
    "The mask holds numbers. A mask is boolean, so that ~ and & mean what they say.",
    lambda n: torch.ones(n, n).triu(),
)

# Kernel regression


def _regression_inputs(g: torch.Generator) -> list[tuple]:
    def draw(n: int, s: int, h: float) -> tuple:
        return (*(2 * torch.rand(size, generator=g) for size in (n, s)), torch.randn(s, generator=g), h)

    # a narrow kernel: a query halfway between two keys, alone and beside one that stands on a key
    keys, values = torch.tensor([0.0, 2.0, 4.0]), torch.tensor([3.0, 5.0, 10.0])
    return [
        draw(5, 12, 0.3),
        draw(4, 4, 2.0),
        draw(3, 1, 0.5),
        (torch.tensor([1.0]), torch.tensor([0.0, 2.5]), torch.tensor([3.0, 5.0]), 1.0),
        (torch.tensor([1.0]), keys[:2], values[:2], 0.01),
        (torch.tensor([1.0, 4.0]), keys, values, 0.01),
    ]


@exercise("attention.nadaraya_watson", inputs=_regression_inputs)
def nadaraya_watson(query: Tensor, keys: Tensor, values: Tensor, h: float) -> Tensor:
    """The values' mean with weights exp(-(key - query)^2 / 2h^2), normalised: (N,), (S,), (S,) -> (N,).

    The bandwidth h may be so small that all these weights underflow; their quotients do not.
    """
    distance = keys[:, None] - query[None, :]
    return values @ softmax_columns(-(distance**2) / (2 * h**2))


def _kernel_variant(score: Callable[[Tensor, float], Tensor]) -> Callable[..., Tensor]:
    """A regression with another score, made of distances (keys down) and bandwidth."""
    return lambda query, keys, values, h: values @ softmax_columns(score(keys[:, None] - query, h))


def _gaussian(query: Tensor, keys: Tensor, h: float) -> Tensor:
    return torch.exp(-((keys[:, None] - query) ** 2) / (2 * h**2))


nadaraya_watson.mistake(
    "weights that do not sum to one",
    "You forgot the denominator: the kernel's values must be divided by their sum over the keys.",
    lambda query, keys, values, h: values @ _gaussian(query, keys, h),
)

nadaraya_watson.mistake(
    "NaN for a small bandwidth",
    "Right for moderate bandwidths, NaN for small ones, where every kernel value underflows to zero. Write "
    "it as a softmax of the exponents, which subtracts the largest.",
    lambda query, keys, values, h: (
        values @ (_gaussian(query, keys, h) / _gaussian(query, keys, h).sum(dim=0))
    ),
)


def _one_maximum(query: Tensor, keys: Tensor, values: Tensor, h: float) -> Tensor:
    exponents = -((keys[:, None] - query) ** 2) / (2 * h**2)
    e = (exponents - exponents.max()).exp()
    return values @ e / e.sum(dim=0)


nadaraya_watson.mistake(
    "one maximum for all queries",
    "You subtract the largest exponent of all. A query that is far from every key still underflows to 0/0: "
    "subtract the largest exponent of each query.",
    _one_maximum,
)

nadaraya_watson.mistake(
    "bandwidth not squared",
    "You divide by 2h. The Gaussian's exponent is the squared distance over 2h squared.",
    _kernel_variant(lambda d, h: -(d**2) / (2 * h)),
)

nadaraya_watson.mistake(
    "factor two missing",
    "You divide by h squared; the Gaussian's exponent has 2h squared.",
    _kernel_variant(lambda d, h: -(d**2) / h**2),
)

nadaraya_watson.mistake(
    "sign missing",
    "Far keys get the large weights: the exponent needs its minus sign.",
    _kernel_variant(lambda d, h: d**2 / (2 * h**2)),
)

nadaraya_watson.mistake(
    "distance not squared",
    "You use the distance itself; the Gaussian's exponent has its square.",
    _kernel_variant(lambda d, h: -d.abs() / (2 * h**2)),
)

nadaraya_watson.mistake(
    "softmax over the wrong axis",
    "Your weights sum to one over the queries. Each query has weights of its own: normalise over the keys.",
    lambda query, keys, values, h: values @ (-((keys[:, None] - query) ** 2) / (2 * h**2)).softmax(dim=1),
)

# The gradient of the scores


def _gradient_inputs(g: torch.Generator) -> list[tuple]:
    def draw(s: int, n: int, d: int) -> tuple:
        weights = torch.randn(s, n, generator=g).softmax(dim=0)
        return weights, torch.randn(d, s, generator=g), torch.randn(d, n, generator=g)

    one_hot = torch.eye(3)[:, [0, 2]]
    return [
        draw(5, 4, 3),
        draw(4, 4, 4),
        draw(1, 3, 2),
        (torch.tensor([[0.25], [0.75]]), torch.tensor([[1.0, 3.0]]), torch.tensor([[2.0]])),
        (one_hot, *draw(3, 2, 3)[1:]),
    ]


@exercise("attention.score_gradient", inputs=_gradient_inputs)
def score_gradient(A: Tensor, V: Tensor, G: Tensor) -> Tensor:
    """dL/dZ with entries A_sn (v_s - y_n)^T g_n, from (S, N), (D, S), (D, N) to (S, N).

    Y = VA is the output, G = dL/dY. The scores Z are those that the softmax is given, after scaling.
    """
    inner = V.T @ G
    return A * (inner - (A * inner).sum(dim=0))


score_gradient.mistake(
    "average not subtracted",
    "You took each weight to depend on its own score only. A score also enters the denominator of every "
    "other weight in its column, which subtracts the average.",
    lambda A, V, G: A * (V.T @ G),
)

score_gradient.mistake(
    "plain average subtracted",
    "The average over the keys must be weighted by the attention weights.",
    lambda A, V, G: A * (V.T @ G - (V.T @ G).mean(dim=0)),
)

score_gradient.mistake(
    "summed over queries",
    "The average runs over the keys of one query: sum along dim 0.",
    lambda A, V, G: A * (V.T @ G - (A * (V.T @ G)).sum(dim=1, keepdim=True)),
)

score_gradient.mistake(
    "gradient of the weights",
    "This is the gradient with respect to the weights A. One more step of the chain rule, through the "
    "softmax, leads to the scores.",
    lambda A, V, G: V.T @ G,
)

score_gradient.mistake(
    "factor A missing",
    "The difference from the average is right; the softmax's Jacobian also multiplies by A.",
    lambda A, V, G: V.T @ G - (A * (V.T @ G)).sum(dim=0),
)

score_gradient.mistake(
    "factors multiplied one by one",
    "You use A (1 - A), the derivative of a weight by its own score, for all of the Jacobian. Off its "
    "diagonal stands -A_r A_s: the other scores of the column count too.",
    lambda A, V, G: A * (1 - A) * (V.T @ G),
)
