"""The code exercises of the chapter on multi-head self-attention, with the mistakes that readers make.

Everything is in the code's layout: (B, N, D), a token a row, and weight matrices as `nn.Linear` keeps
them, (out, in).
"""

import math

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise
from tformer_lib.core.attention import MultiHeadAttention


@exercise(
    "multi_head.split_heads",
    inputs=lambda g: [
        (torch.randn(2, 5, 6, generator=g), 3),
        (torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2),
        (torch.randn(1, 4, 8, generator=g), 2),
        (torch.randn(1, 2, 4, generator=g), 2),
        (torch.randn(3, 1, 4, generator=g), 4),
        (torch.randn(2, 3, 5, generator=g), 1),
    ],
)
def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Cut each token's features into heads: (B, N, D) -> (B, H, N, Dh).

    Head h gets the neighbouring features h Dh to (h + 1) Dh - 1 of every token, where Dh = D / H.
    """
    batch, n, width = x.shape
    return x.view(batch, n, n_heads, width // n_heads).transpose(1, 2)


split_heads.add_mistakes("""
head split by view without transpose | => lambda x, n_heads: x.reshape(len(x), n_heads, x.shape[1], -1)
    The shape is right and the contents are not: a single view to (B, H, N, Dh) hands whole tokens to the
    heads. View as (B, N, H, Dh), which cuts each token's width, and then transpose the two middle axes.
heads interleaved | => lambda x, n_heads: x.reshape(*x.shape[:2], -1, n_heads).permute(0, 3, 1, 2)
    You gave each head every H-th feature. The library gives it Dh neighbouring features: view the width
    as (H, Dh), in this order.
heads left behind the tokens | .transpose(1, 2) =>
    You stopped at (B, N, H, Dh). Matrix products act on the last two axes, so these must be tokens and
    features: transpose axes 1 and 2.
""")


@exercise(
    "multi_head.merge_heads",
    inputs=lambda g: [
        (torch.randn(2, 3, 5, 2, generator=g),),
        (torch.tensor([[[[1.0], [2.0]], [[3.0], [4.0]]]]),),
        (torch.randn(1, 2, 2, 4, generator=g),),
        (torch.randn(2, 4, 1, 3, generator=g),),
        (torch.randn(2, 1, 4, 3, generator=g),),
    ],
)
def merge_heads(x: Tensor) -> Tensor:
    """Lay the heads of each token side by side, head 0 first: (B, H, N, Dh) -> (B, N, H Dh)."""
    return x.transpose(1, 2).flatten(2)


merge_heads.add_mistakes("""
merge without transposing back | => lambda x: x.reshape(len(x), x.shape[2], -1)
    The shape is right and the contents are not: in (B, H, N, Dh) the rows of one head lie next to each
    other, not the heads of one token. Transpose axes 1 and 2 before you flatten.
heads in the wrong order: reversed | x.transpose => x.flip(1).transpose
    The heads are concatenated last head first. W_o expects head 0 in the first Dh columns.
heads in the wrong order: interleaved | transpose(1, 2) => permute(0, 2, 3, 1)
    You put feature 0 of all heads first, then feature 1 of all heads. A head's features stay together:
    (B, N, H, Dh) before flattening, not (B, N, Dh, H).
""")


def _layer_inputs(g: torch.Generator) -> list[tuple]:
    def draw(batch: int, n: int, width: int, n_heads: int) -> tuple:
        x, *w = (torch.randn(*s, generator=g) for s in ((batch, n, width), *[(width, width)] * 4))
        return (x, *w, n_heads)

    # whole numbers, so that scores are exact: hundreds apart, some forbidden ones far above the allowed
    far = torch.tensor([[[2.0, 0.0, 0.0, 0.0], [4.0, 1.0, 0.0, 0.0], [-2.0, 0.0, 1.0, 0.0]]])
    one, turned = torch.eye(4), torch.eye(4).roll(1, 0)
    return [
        draw(2, 5, 8, 2),
        draw(1, 4, 6, 3),
        draw(1, 2, 1, 1),
        draw(1, 2, 2, 2),
        draw(3, 3, 6, 3),
        draw(2, 1, 4, 2),
        draw(1, 6, 4, 1),
        (far, 10 * one, -10 * one, turned, one + turned, 1),
    ]


@exercise("multi_head.causal_self_attention", inputs=_layer_inputs)
def causal_self_attention(
    x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, n_heads: int
) -> Tensor:
    """Causal multi-head self-attention without biases: (B, N, D) and four matrices (D, D) -> (B, N, D).

    Scores are scaled by the root of Dh = D / H; token n reads tokens 0 to n, itself among them.
    """
    n, width = x.shape[1:]
    q, k, v = (split_heads(x @ W.T, n_heads) for W in (W_q, W_k, W_v))
    scores = q @ k.mT / math.sqrt(width // n_heads)
    future = torch.ones(n, n, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, -math.inf).softmax(dim=-1)
    return merge_heads(weights @ v) @ W_o.T


causal_self_attention.add_mistakes("""
missing scale | / math.sqrt(width // n_heads) =>
    The scores are not scaled: divide them by the square root of Dh = D / H.
scale by the root of D instead of Dh | width // n_heads => width
    You divide by the square root of D. Each head's dot product has Dh = D / H terms, so its standard
    deviation is the square root of Dh.
scale by Dh instead of its root | math.sqrt(width // n_heads) => (width // n_heads)
    You divide by Dh, the variance of a dot product; the standard deviation is its root. Either the root
    is missing, or you scale twice: scaled_dot_product_attention divides by the root already.
softmax over the wrong axis | softmax(dim=-1) => softmax(dim=-2)
    Your softmax runs over the queries. A query's weights must sum to one over the keys, which are the
    last axis of q @ k.mT.
causal mask off by one | triu(1) => triu()
    Your mask lacks the diagonal (`tril(-1)`, or `triu` for what is forbidden): a token may attend to
    itself. As it stands the first token sees nothing at all.
causal mask off by one, with a finite fill
    | triu(1) => triu()
    | -math.inf => -1e9
    Your mask lacks the diagonal (`tril(-1)`, or `triu` for what is forbidden): a token may attend to
    itself. As it stands the first token sees nothing at all. With a large negative number for minus
    infinity it then reads everybody.
causal mask off by one, the other way | triu(1) => triu(2)
    Each token sees its right neighbour, which is what it must not see: `tril(1)` is one diagonal too
    many.
mask inverted | triu(1) => tril()
    Your mask is inverted: tokens read what comes after them and nothing before. True means 'may attend',
    so what gets minus infinity is ~mask.
mask inverted, with a finite fill
    | triu(1) => tril()
    | -math.inf => -1e9
    Your mask is inverted: tokens read what comes after them and nothing before. True means 'may attend',
    so what gets minus infinity is ~mask. The last token, which may then see nothing, reads everybody.
no mask | scores.masked_fill(future, -math.inf) => scores
    Every token reads the whole sequence. Forbid the future: scores of later keys become minus infinity
    before the softmax.
mask applied after softmax
    | scores.masked_fill(future, -math.inf).softmax(dim=-1) => scores.softmax(dim=-1) * ~future
    You zeroed weights after the softmax and did not renormalise. The future had its share of the
    denominator, so the rest no longer sum to one: mask the scores first.
head split by view without transpose
    | split_heads(x @ W.T, n_heads) => (x @ W.T).reshape(len(x), n_heads, n, -1)
    You split the heads with a single view to (B, H, N, Dh), which mixes tokens with one another. View as
    (B, N, H, Dh), then transpose axes 1 and 2.
merge without transposing back | merge_heads(weights @ v) => (weights @ v).reshape(x.shape)
    The heads are right, but you merge them without transposing back: (B, H, N, Dh) must become (B, N, H,
    Dh) before it is flattened.
output projection forgotten | @ W_o.T =>
    You return the concatenated heads. W_o is missing: it is what lets the heads' results be combined.
weights not transposed | .T =>
    You computed x @ W. The matrices are (out, in), as nn.Linear keeps them, so that a row x becomes x @
    W.T.
""")


def _cross_inputs(g: torch.Generator) -> list[tuple]:
    def draw(n: int, s: int, d: int, width: int, batch: int = 2) -> tuple:
        sizes = ((batch, n, d), (batch, s, d), (d, d), (d, d), (width, d))
        return tuple(torch.randn(*size, generator=g) for size in sizes)

    # whole numbers, so that scores are exact: hundreds apart
    x, context = (torch.randint(-3, 4, (1, n, 4), generator=g).float() for n in (2, 3))
    return [
        draw(5, 5, 4, 4),
        draw(3, 6, 4, 5),
        draw(1, 2, 1, 1, batch=1),
        draw(4, 1, 3, 3),
        draw(1, 4, 3, 3),
        (x, context, 10 * torch.eye(4), torch.eye(4).roll(1, 0) * 10, torch.eye(4)),
    ]


@exercise("multi_head.cross_attention", inputs=_cross_inputs)
def cross_attention(x: Tensor, context: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
    """One head, in which x reads the context: (B, N, D), (B, S, D) and three matrices -> (B, N, Dv).

    Queries come from x, keys and values from the context, and scores are scaled by the root of the queries'
    width. There are no biases and no output matrix. W_v is (Dv, D), the others are (D, D).
    """
    q, k, v = x @ W_q.T, context @ W_k.T, context @ W_v.T
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1) @ v


cross_attention.add_mistakes("""
context used for queries | => lambda x, context, *w: cross_attention(context, x, *w)
    You let the context ask and x answer. The context is what is read: it gives keys and values; the
    queries come from x, and there is one output for each token of x.
self-attention | context @ => x @
    You never read the context: keys and values must come from it.
keys from x | context @ W_k.T => x @ W_k.T
    The keys come from x and the values from the context, so that the weights of one belong to the other:
    both must come from the context.
missing scale | / math.sqrt(q.shape[-1]) =>
    The scores are not scaled: divide them by the square root of the head's width.
softmax over the wrong axis | dim=-1 => dim=-2
    Your softmax runs over the queries. A query's weights must sum to one over the keys, which are the
    last axis of q @ k.mT.
""")


class _Layer(MultiHeadAttention):
    """A layer with dropout and a short name, for messages."""

    def __repr__(self) -> str:
        return f"a layer in {'training' if self.training else 'evaluation'} mode"


def _evaluate_inputs(g: torch.Generator) -> list[tuple]:
    def draw(training: bool, n: int, width: int, n_heads: int) -> tuple:
        model = _Layer(width, n_heads, dropout=0.5)
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.randn(p.shape, generator=g))
        return model.train(training), torch.randn(2, n, width, generator=g)

    return [draw(True, 6, 8, 2), draw(False, 6, 8, 2), draw(True, 2, 1, 1), draw(False, 1, 2, 2)]


@exercise("multi_head.evaluate", inputs=_evaluate_inputs)
def evaluate(model: torch.nn.Module, x: Tensor) -> tuple[Tensor, bool]:
    """The model's output without dropout, and `model.training` as it is afterwards: what it was before."""
    was_training = model.training
    model.eval()
    with torch.no_grad():
        y = model(x)
    model.train(was_training)
    return y, model.training


evaluate.add_mistakes("""
dropout on at evaluation | model.eval() => pass
    The prediction is random: dropout was on. Call model.eval() before you predict; no_grad turns off
    gradients, not dropout.
left in evaluation mode | model.train(was_training) => pass
    The prediction is right, but the model stays in evaluation mode: if it was in training, the next step
    trains without dropout. Note model.training first and restore it.
left in training mode | train(was_training) => train()
    The prediction is right, but you leave the model in training mode even if you found it in evaluation
    mode. Note model.training first and restore that.
""")


@exercise(
    "multi_head.count_parameters",
    inputs=lambda g: [(512, 8, 8), (768, 12, 4), (64, 4, 1), (6, 3, 3), (6, 3, 1), (2, 1, 1)],
    tolerance=1e-9,
)
def count_parameters(d_model: int, n_heads: int, n_kv_heads: int) -> int:
    """The number of weights and biases in a layer whose keys and values have `n_kv_heads` heads.

    The four maps have biases; every head is d_model / n_heads wide.
    """
    kv_width = n_kv_heads * (d_model // n_heads)
    return 2 * d_model * (d_model + 1) + 2 * kv_width * (d_model + 1)


count_parameters.add_mistakes("""
all heads counted for keys and values | n_kv_heads * => n_heads *
    Right when n_kv_heads equals n_heads. With fewer, W_k and W_v have only n_kv_heads Dh rows.
biases forgotten | d_model + 1 => d_model
    You counted the matrices. Each linear map also has a bias, one number per output feature.
output projection forgotten | return 2 * d_model => return d_model
    Three projections are counted; W_o, D by D with D biases, is the fourth.
full width for every head | => lambda d, h, kv: (h + 1) * d * (d + 1) + 2 * kv * d * (d + 1)
    You gave each head matrices of full width. A head is Dh = D / H wide, so that all heads together cost
    what one of full width costs.
""")
