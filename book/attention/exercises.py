"""The code exercises of the chapter on attention, with the mistakes that readers make in them.

Everything is in the text's layout: a token is a column, and so is its distribution over the keys.
"""

import math

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise


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


softmax_columns.add_mistakes("""
softmax over rows | dim=0 => dim=1, keepdim=True
    Your rows sum to one. In the text's layout a query is a column, so each column is a distribution over
    the keys: normalise along dim 0.
softmax over everything | => lambda s: s.flatten().softmax(dim=0).view(s.shape)
    All entries together sum to one. Each query has a distribution of its own: sum along dim 0, with
    keepdim=True so that the division broadcasts over columns.
no maximum subtracted | scores - scores.amax(dim=0) => scores
    Right for small scores, NaN for large ones: exp(1000) overflows. Subtract each column's maximum first;
    the quotient does not change.
one maximum for all columns | amax(dim=0) => max()
    You subtract the maximum of the whole matrix. A column that lies far below it underflows to 0/0:
    subtract the maximum of each column.
""")


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


attention_columns.add_mistakes("""
missing scale | / math.sqrt(q.shape[0]) =>
    The scores are not scaled: divide them by the square root of Dh, the number of rows of q.
scale by Dh instead of its root | math.sqrt(q.shape[0]) => q.shape[0]
    You divide by Dh. The standard deviation of a score is the square root of Dh; its variance is Dh.
    Either the root is missing, or you scale twice, once in q or k and once more in the scores.
softmax over queries | => lambda q, k, v: v @ (k.T @ q / math.sqrt(q.shape[0])).softmax(dim=1)
    Your softmax runs over the queries. The weights with which one query reads must sum to one over the
    keys: in K^T Q the keys are the rows, so normalise along dim 0.
queries and keys exchanged | k.T @ q => q.T @ k
    You formed Q^T K. With a token a column, the scores are K^T Q: keys down, queries across.
scaled_dot_product_attention without transposing | => F.scaled_dot_product_attention
    You take a token for a row, as PyTorch's function does and softmax(Q K^T) V says. Here it is a column,
    so that features read each other: transpose q, k and v before, and the result after.
""")


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


masked_weights.add_mistakes("""
mask applied after softmax | scores.masked_fill(~mask, lowest) => scores
    You zeroed weights after the softmax. The forbidden keys still had their share of the denominator, so
    the rest no longer sum to one: mask the scores first.
mask inverted | ~mask => mask
    Your weights lie exactly where the mask is False. Here True means 'may attend'.
mask inverted, with a finite fill
    | => lambda s, m: softmax_columns(s.masked_fill(m, torch.finfo(s.dtype).min))
    You forbid what the mask allows, and a column without any False becomes uniform. Here True means 'may
    attend', so what gets the low score is ~mask.
mask inverted, and NaN | => lambda s, m: s.masked_fill(m, -math.inf).softmax(dim=0)
    You forbid what the mask allows, and a column without any False becomes NaN. Here True means 'may
    attend', so what gets minus infinity is ~mask.
scores multiplied by the mask | => lambda s, m: softmax_columns(s * m)
    You set forbidden scores to 0, as multiplying by the mask does. A score of 0 is an ordinary score,
    with exp(0) = 1: use minus infinity, or the smallest finite number.
softmax over the wrong axis
    | softmax_columns(scores.masked_fill(~mask, lowest)) => scores.masked_fill(~mask, lowest).softmax(dim=1)
    The mask is right, and your rows sum to one. A query is a column: normalise along dim 0.
NaN where a query may see nothing | => lambda s, m: s.masked_fill(~m, -math.inf).softmax(dim=0)
    Right wherever a query may see a key, but a column without any allowed key computes 0/0. It should be
    zeros: fill with the smallest finite number, then zero what is forbidden.
uniform weights where a query may see nothing | .masked_fill(~mask, 0.0) =>
    A column without any allowed key came out uniform: the query reads keys that it may not see. Zero the
    forbidden weights once more after the softmax.
""")


@exercise("attention.causal_columns", inputs=lambda g: [(4,), (1,), (2,), (7,)])
def causal_columns(n: int) -> Tensor:
    """The causal mask with keys down and queries across: a boolean (N, N), True where key <= query."""
    return torch.ones(n, n, dtype=torch.bool).triu()


causal_columns.add_mistakes("""
causal mask off by one | triu() => triu(1)
    The diagonal is missing: a token may attend to itself. As it stands the first one sees nothing at all.
causal mask off by one, the other way | triu() => triu(-1)
    Each token sees its right neighbour, which is the one it is to predict.
the code's causal mask | triu => tril
    This is the mask of the code, with queries down. In the text queries run across, so the mask is its
    transpose: True where the row (key) is at or before the column (query).
mask inverted | triu() => tril(-1)
    True stands where attention is forbidden. Here True means 'may attend'.
""")


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


nadaraya_watson.add_mistakes("""
weights that do not sum to one
    | softmax_columns(-(distance**2) / (2 * h**2)) => torch.exp(-(distance**2) / (2 * h**2))
    You forgot the denominator: the kernel's values must be divided by their sum over the keys.
NaN for a small bandwidth
    | softmax_columns(-(distance**2) / (2 * h**2)) => torch.exp(-(distance**2) / (2 * h**2))
    | return values @ => e =
    | (2 * h**2)) => (2 * h**2)); return values @ (e / e.sum(dim=0))
    Right for moderate bandwidths, NaN for small ones, where every kernel value underflows to zero. Write
    it as a softmax of the exponents, which subtracts the largest.
factor two missing | 2 * h**2 => h**2
    You divide by h squared; the Gaussian's exponent has 2h squared.
softmax over the wrong axis
    | softmax_columns(-(distance**2) / (2 * h**2)) => (-(distance**2) / (2 * h**2)).softmax(dim=1)
    Your weights sum to one over the queries. Each query has weights of its own: normalise over the keys.
""")


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


score_gradient.add_mistakes("""
average not subtracted | - (A * inner).sum(dim=0) =>
    You took each weight to depend on its own score only. A score also enters the denominator of every
    other weight in its column, which subtracts the average.
plain average subtracted | (A * inner).sum(dim=0) => inner.mean(dim=0)
    The average over the keys must be weighted by the attention weights.
summed over queries | .sum(dim=0) => .sum(dim=1, keepdim=True)
    The average runs over the keys of one query: sum along dim 0.
factor A missing | A * (inner - => (inner -
    The difference from the average is right; the softmax's Jacobian also multiplies by A.
""")
