"""The code exercises of the chapter on multi-head self-attention, with the mistakes that readers make.

Everything is in the code's layout: (B, N, D), a token a row, and weight matrices as `nn.Linear` keeps
them, (out, in).
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from tformer_book.kit.exercises.registry import exercise
from tformer_lib.core.attention import MultiHeadAttention

# Splitting and merging


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


def _split_by_view(x: Tensor, n_heads: int) -> Tensor:
    return x.reshape(len(x), n_heads, x.shape[1], -1)


def _split_interleaved(x: Tensor, n_heads: int) -> Tensor:
    return x.reshape(*x.shape[:2], -1, n_heads).permute(0, 3, 1, 2)


split_heads.mistake(
    "head split by view without transpose",
    "The shape is right and the contents are not: a single view to (B, H, N, Dh) hands whole tokens to the "
    "heads. View as (B, N, H, Dh), which cuts each token's width, and then transpose the two middle axes.",
    _split_by_view,
)

split_heads.mistake(
    "heads interleaved",
    "You gave each head every H-th feature. The library gives it Dh neighbouring features: view the width "
    "as (H, Dh), in this order.",
    _split_interleaved,
)

split_heads.mistake(
    "heads left behind the tokens",
    "You stopped at (B, N, H, Dh). Matrix products act on the last two axes, so these must be tokens and "
    "features: transpose axes 1 and 2.",
    lambda x, n_heads: x.view(*x.shape[:2], n_heads, -1),
)

split_heads.mistake(
    "heads in reverse order",
    "Head h must get the features from h Dh to (h+1) Dh; yours come last head first.",
    lambda x, n_heads: split_heads(x, n_heads).flip(1),
)

split_heads.mistake(
    "tokens behind the features",
    "You end with (B, H, Dh, N). The last axis holds a token's features: (B, H, N, Dh).",
    lambda x, n_heads: split_heads(x, n_heads).mT,
)


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


def _merge_by_view(x: Tensor) -> Tensor:
    return x.reshape(len(x), x.shape[2], -1)


def _merge_interleaved(x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1).flatten(2)


merge_heads.mistake(
    "merge without transposing back",
    "The shape is right and the contents are not: in (B, H, N, Dh) the rows of one head lie next to each "
    "other, not the heads of one token. Transpose axes 1 and 2 before you flatten.",
    _merge_by_view,
)

merge_heads.mistake(
    "heads in the wrong order: reversed",
    "The heads are concatenated last head first. W_o expects head 0 in the first Dh columns.",
    lambda x: merge_heads(x.flip(1)),
)

merge_heads.mistake(
    "heads in the wrong order: interleaved",
    "You put feature 0 of all heads first, then feature 1 of all heads. A head's features stay together: "
    "(B, N, H, Dh) before flattening, not (B, N, Dh, H).",
    _merge_interleaved,
)

merge_heads.mistake(
    "heads added",
    "You summed the heads. They are laid side by side; it is W_o that adds them up.",
    lambda x: x.sum(dim=1),
)

merge_heads.mistake(
    "not flattened",
    "You transposed back and left the heads apart, (B, N, H, Dh). Flatten the last two axes into one of "
    "width D.",
    lambda x: x.transpose(1, 2),
)

# A causal layer from its four matrices


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


def _lower(n: int, diagonal: int = 0) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool).tril(diagonal)


def _softmax(scores: Tensor, allowed: Tensor, fill: float = -math.inf, axis: int = -1) -> Tensor:
    return scores.masked_fill(~allowed, fill).softmax(dim=axis)


def _causal(
    scale: Callable[[int, int], float] = lambda width, n_heads: math.sqrt(width // n_heads),
    mask: Callable[[int], Tensor] = _lower,
    weigh: Callable[[Tensor, Tensor], Tensor] = _softmax,
    split: Callable[[Tensor, int], Tensor] = split_heads,
    merge: Callable[[Tensor], Tensor] = merge_heads,
) -> Callable[..., Tensor]:
    """A layer with another scale, mask, softmax, split or merge."""

    def variant(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, n_heads: int) -> Tensor:
        q, k, v = (split(x @ W.T, n_heads) for W in (W_q, W_k, W_v))
        scores = q @ k.mT / scale(x.shape[-1], n_heads)
        return merge(weigh(scores, mask(x.shape[1])) @ v) @ W_o.T

    return variant


causal_self_attention.mistake(
    "missing scale",
    "The scores are not scaled: divide them by the square root of Dh = D / H.",
    _causal(scale=lambda width, n_heads: 1.0),
)

causal_self_attention.mistake(
    "scale by the root of D instead of Dh",
    "You divide by the square root of D. Each head's dot product has Dh = D / H terms, so its standard "
    "deviation is the square root of Dh.",
    _causal(scale=lambda width, n_heads: math.sqrt(width)),
)

causal_self_attention.mistake(
    "scale by D",
    "You divide by D. It is the square root that is wanted, and of Dh = D / H, the number of terms in one "
    "head's dot product.",
    _causal(scale=lambda width, n_heads: float(width)),
)

causal_self_attention.mistake(
    "scale by Dh instead of its root",
    "You divide by Dh, the variance of a dot product; the standard deviation is its root. Either the root "
    "is missing, or you scale twice: scaled_dot_product_attention divides by the root already.",
    _causal(scale=lambda width, n_heads: float(width // n_heads)),
)

causal_self_attention.mistake(
    "scale by the root of H",
    "You divide by the root of the number of heads. A score is a sum over the Dh features of one head: the "
    "scale is the root of Dh = D / H.",
    _causal(scale=lambda width, n_heads: math.sqrt(n_heads)),
)

causal_self_attention.mistake(
    "softmax over the wrong axis",
    "Your softmax runs over the queries. A query's weights must sum to one over the keys, which are the "
    "last axis of q @ k.mT.",
    _causal(weigh=lambda s, m: _softmax(s, m, axis=-2)),
)

causal_self_attention.mistake(
    "softmax over heads",
    "Your softmax runs over the heads, dim 1 of (B, H, N, N), so that heads compete for a key, and one that "
    "is forbidden to all is 0/0. Weights sum to one over the keys, the last axis.",
    _causal(weigh=lambda s, m: _softmax(s, m, axis=1)),
)

causal_self_attention.mistake(
    "softmax over heads, with a finite fill",
    "Your softmax runs over the heads, dim 1 of (B, H, N, N). A forbidden key then gets 1/H from each, "
    "since they all have the same low score. Weights sum to one over the keys, the last axis.",
    _causal(weigh=lambda s, m: _softmax(s, m, fill=-1e9, axis=1)),
)

_OFF_BY_ONE = (
    "Your mask lacks the diagonal (`tril(-1)`, or `triu` for what is forbidden): a token may attend to "
    "itself. As it stands the first token sees nothing at all."
)

causal_self_attention.mistake(
    "causal mask off by one", _OFF_BY_ONE, _causal(mask=lambda n: _lower(n, diagonal=-1))
)

causal_self_attention.mistake(
    "causal mask off by one, with a finite fill",
    _OFF_BY_ONE + " With a large negative number for minus infinity it then reads everybody.",
    _causal(mask=lambda n: _lower(n, diagonal=-1), weigh=lambda s, m: _softmax(s, m, fill=-1e9)),
)

causal_self_attention.mistake(
    "causal mask off by one, in PyTorch's own attention",
    _OFF_BY_ONE + " scaled_dot_product_attention returns zeros for it.",
    _causal(mask=lambda n: _lower(n, diagonal=-1), weigh=lambda s, m: _softmax(s, m).nan_to_num(0.0)),
)

causal_self_attention.mistake(
    "causal mask off by one, the other way",
    "Each token sees its right neighbour, which is what it must not see: `tril(1)` is one diagonal too many.",
    _causal(mask=lambda n: _lower(n, diagonal=1)),
)

causal_self_attention.mistake(
    "triangle upside down",
    "Your mask is an upper triangle (`triu`): tokens read themselves and what comes after. Queries run down "
    "and keys across, so the past lies below the diagonal (`tril`).",
    _causal(mask=lambda n: _lower(n).T),
)

_INVERTED = (
    "Your mask is inverted: tokens read what comes after them and nothing before. True means 'may attend', "
    "so what gets minus infinity is ~mask."
)

causal_self_attention.mistake("mask inverted", _INVERTED, _causal(mask=lambda n: ~_lower(n)))

causal_self_attention.mistake(
    "mask inverted, with a finite fill",
    _INVERTED + " The last token, which may then see nothing, reads everybody.",
    _causal(mask=lambda n: ~_lower(n), weigh=lambda s, m: _softmax(s, m, fill=-1e9)),
)

causal_self_attention.mistake(
    "mask inverted, in PyTorch's own attention",
    _INVERTED + " PyTorch has both: True allows in scaled_dot_product_attention and forbids in "
    "nn.MultiheadAttention.",
    _causal(mask=lambda n: ~_lower(n), weigh=lambda s, m: _softmax(s, m).nan_to_num(0.0)),
)

causal_self_attention.mistake(
    "no mask",
    "Every token reads the whole sequence. Forbid the future: scores of later keys become minus infinity "
    "before the softmax.",
    _causal(mask=lambda n: torch.ones(n, n, dtype=torch.bool)),
)

causal_self_attention.mistake(
    "mask applied after softmax",
    "You zeroed weights after the softmax and did not renormalise. The future had its share of the "
    "denominator, so the rest no longer sum to one: mask the scores first.",
    _causal(weigh=lambda s, m: s.softmax(dim=-1) * m),
)


def _renormalised(scores: Tensor, allowed: Tensor) -> Tensor:
    weights = scores.softmax(dim=-1) * allowed
    return weights / weights.sum(dim=-1, keepdim=True)


causal_self_attention.mistake(
    "mask applied after softmax, then renormalised",
    "You zeroed weights after the softmax and renormalised. That is right until a future score lies far "
    "above all that is allowed, which then underflows to 0/0: mask the scores first.",
    _causal(weigh=_renormalised),
)

causal_self_attention.mistake(
    "scores multiplied by the mask",
    "You set the forbidden scores to 0, as multiplying by the mask does. That is an ordinary score, with "
    "exp(0) = 1: use minus infinity.",
    _causal(weigh=lambda s, m: _softmax(s, m, fill=0.0)),
)

causal_self_attention.mistake(
    "scores multiplied by the mask, then zeroed",
    "You set the forbidden scores to 0 and drop their weights afterwards. Meanwhile each had exp(0) = 1 in "
    "the denominator: use minus infinity before the softmax.",
    _causal(weigh=lambda s, m: (s * m).softmax(dim=-1) * m),
)

causal_self_attention.mistake(
    "a number that is not low enough",
    "You give forbidden scores a number such as -100. Where the allowed ones are lower still, it outweighs "
    "them: use minus infinity.",
    _causal(weigh=lambda s, m: _softmax(s, m, fill=-100.0)),
)


def _exponentials(scores: Tensor, allowed: Tensor) -> Tensor:
    e = scores.exp() * allowed
    return e / e.sum(dim=-1, keepdim=True)


causal_self_attention.mistake(
    "no maximum subtracted",
    "Right for moderate scores, NaN for large ones: exp(1000) overflows. Use softmax, or subtract each "
    "query's maximum first.",
    _causal(weigh=_exponentials),
)

causal_self_attention.mistake(
    "head split by view without transpose",
    "You split the heads with a single view to (B, H, N, Dh), which mixes tokens with one another. View as "
    "(B, N, H, Dh), then transpose axes 1 and 2.",
    _causal(split=_split_by_view),
)

causal_self_attention.mistake(
    "split and merge both by view",
    "You split and merged with a single view each. The shapes fit, but every head sees only some of the "
    "tokens: both need the transpose of axes 1 and 2.",
    _causal(split=_split_by_view, merge=_merge_by_view),
)

causal_self_attention.mistake(
    "merge without transposing back",
    "The heads are right, but you merge them without transposing back: (B, H, N, Dh) must become (B, N, H, "
    "Dh) before it is flattened.",
    _causal(merge=_merge_by_view),
)

causal_self_attention.mistake(
    "heads interleaved",
    "Your split gives each head every H-th feature, a view to (B, N, Dh, H). A head has Dh neighbouring "
    "features: view as (B, N, H, Dh).",
    _causal(split=_split_interleaved),
)

causal_self_attention.mistake(
    "heads interleaved, split and merged",
    "You split to (B, N, Dh, H) and merge in the same way. The features come back to their places, but each "
    "head has scored with every H-th feature: view as (B, N, H, Dh).",
    _causal(split=_split_interleaved, merge=_merge_interleaved),
)

causal_self_attention.mistake(
    "heads concatenated in the wrong order",
    "The heads are merged feature by feature instead of head by head; W_o expects head 0 in its first Dh "
    "columns.",
    _causal(merge=_merge_interleaved),
)

causal_self_attention.mistake(
    "heads concatenated in reverse",
    "The heads are merged last head first; W_o expects head 0 in its first Dh columns.",
    _causal(merge=lambda x: merge_heads(x.flip(1))),
)


def _without_transposing(
    x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, n_heads: int
) -> Tensor:
    q, k, v = ((x @ W.T).unflatten(-1, (n_heads, -1)) for W in (W_q, W_k, W_v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).flatten(2) @ W_o.T


causal_self_attention.mistake(
    "scaled_dot_product_attention without transposing",
    "You hand over (B, N, H, Dh), so that the heads of one token read each other and no token reads "
    "another. Transpose axes 1 and 2: attention acts on the last two.",
    _without_transposing,
)

causal_self_attention.mistake(
    "output projection forgotten",
    "You return the concatenated heads. W_o is missing: it is what lets the heads' results be combined.",
    lambda x, W_q, W_k, W_v, W_o, n_heads: causal_self_attention(
        x, W_q, W_k, W_v, torch.eye(len(W_o)), n_heads
    ),
)

causal_self_attention.mistake(
    "weights not transposed",
    "You computed x @ W. The matrices are (out, in), as nn.Linear keeps them, so that a row x becomes x @ "
    "W.T.",
    lambda x, W_q, W_k, W_v, W_o, n_heads: causal_self_attention(x, W_q.T, W_k.T, W_v.T, W_o.T, n_heads),
)

causal_self_attention.mistake(
    "output matrix not transposed",
    "Queries, keys and values are right, but at the end you computed y @ W_o. W_o is (out, in) like the "
    "others: y @ W_o.T.",
    lambda x, W_q, W_k, W_v, W_o, n_heads: causal_self_attention(x, W_q, W_k, W_v, W_o.T, n_heads),
)

causal_self_attention.mistake(
    "queries and keys exchanged",
    "You formed k @ q.mT, or took W_q for W_k. Queries run down and keys across: q @ k.mT.",
    lambda x, W_q, W_k, W_v, W_o, n_heads: causal_self_attention(x, W_k, W_q, W_v, W_o, n_heads),
)

causal_self_attention.mistake(
    "one head only",
    "You attend with the whole width at once. Split queries, keys and values into n_heads parts.",
    lambda x, W_q, W_k, W_v, W_o, n_heads: causal_self_attention(x, W_q, W_k, W_v, W_o, 1),
)

# Cross-attention, one head


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


def _read(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1) @ v


cross_attention.mistake(
    "context used for queries",
    "You let the context ask and x answer. The context is what is read: it gives keys and values; the "
    "queries come from x, and there is one output for each token of x.",
    lambda x, context, W_q, W_k, W_v: cross_attention(context, x, W_q, W_k, W_v),
)

cross_attention.mistake(
    "self-attention",
    "You never read the context: keys and values must come from it.",
    lambda x, context, W_q, W_k, W_v: cross_attention(x, x, W_q, W_k, W_v),
)

cross_attention.mistake(
    "self-attention of the context",
    "Queries, keys and values all come from the context. The queries are x's.",
    lambda x, context, W_q, W_k, W_v: cross_attention(context, context, W_q, W_k, W_v),
)

cross_attention.mistake(
    "keys from x",
    "The keys come from x and the values from the context, so that the weights of one belong to the other: "
    "both must come from the context.",
    lambda x, context, W_q, W_k, W_v: _read(x @ W_q.T, x @ W_k.T, context @ W_v.T),
)

cross_attention.mistake(
    "values from x",
    "The weights are right, but you apply them to values made from x. What is handed over is the context's.",
    lambda x, context, W_q, W_k, W_v: _read(x @ W_q.T, context @ W_k.T, x @ W_v.T),
)

cross_attention.mistake(
    "values not mapped",
    "You average the tokens of the context as they are. What is averaged are values, context @ W_v.T.",
    lambda x, context, W_q, W_k, W_v: _read(x @ W_q.T, context @ W_k.T, context),
)

cross_attention.mistake(
    "missing scale",
    "The scores are not scaled: divide them by the square root of the head's width.",
    lambda x, context, W_q, W_k, W_v: cross_attention(x, context, W_q * math.sqrt(len(W_q)), W_k, W_v),
)

cross_attention.mistake(
    "scale by Dh instead of its root",
    "You divide by the head's width; the standard deviation of a dot product is its root. Either the root "
    "is missing, or you scale twice: scaled_dot_product_attention divides by the root already.",
    lambda x, context, W_q, W_k, W_v: cross_attention(x, context, W_q / math.sqrt(len(W_q)), W_k, W_v),
)

cross_attention.mistake(
    "softmax over the wrong axis",
    "Your softmax runs over the queries. A query's weights must sum to one over the keys, which are the "
    "last axis of q @ k.mT.",
    lambda x, context, W_q, W_k, W_v: (
        ((x @ W_q.T) @ (context @ W_k.T).mT / math.sqrt(len(W_q))).softmax(dim=-2) @ (context @ W_v.T)
    ),
)

cross_attention.mistake(
    "weights not transposed",
    "You computed x @ W. The matrices are (out, in), as nn.Linear keeps them: x @ W.T.",
    lambda x, context, W_q, W_k, W_v: cross_attention(x, context, W_q.T, W_k.T, W_v.T),
)

cross_attention.mistake(
    "queries' and keys' matrices exchanged",
    "W_q maps x and W_k maps the context; you took the one for the other.",
    lambda x, context, W_q, W_k, W_v: cross_attention(x, context, W_k, W_q, W_v),
)

cross_attention.mistake(
    "causal mask",
    "You forbid later keys. The context is complete when it is read: every token of x may see all of it.",
    lambda x, context, W_q, W_k, W_v: F.scaled_dot_product_attention(
        x @ W_q.T, context @ W_k.T, context @ W_v.T, is_causal=True
    ),
)

# Evaluation


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


evaluate.mistake(
    "dropout on at evaluation",
    "The prediction is random: dropout was on. Call model.eval() before you predict; no_grad turns off "
    "gradients, not dropout.",
    lambda model, x: (model(x), model.training),
)

evaluate.mistake(
    "dropout on, whatever the mode was",
    "You switched the model to training before the prediction, which turns dropout on: model.eval() is the "
    "one you want.",
    lambda model, x: (model.train()(x), model.training),
)

evaluate.mistake(
    "left in evaluation mode",
    "The prediction is right, but the model stays in evaluation mode: if it was in training, the next step "
    "trains without dropout. Note model.training first and restore it.",
    lambda model, x: (evaluate(model, x)[0], False),
)

evaluate.mistake(
    "left in training mode",
    "The prediction is right, but you leave the model in training mode even if you found it in evaluation "
    "mode. Note model.training first and restore that.",
    lambda model, x: (evaluate(model, x)[0], True),
)

evaluate.mistake(
    "the mode turned over",
    "The prediction is right, and the model is left in the other mode than the one in which you found it. "
    "Note model.training before you call eval, and hand this to train.",
    lambda model, x: (evaluate(model, x)[0], not model.training),
)

evaluate.mistake(
    "output alone",
    "You return the output alone. Return the pair (output, model.training), so that the mode can be checked.",
    lambda model, x: evaluate(model, x)[0],
)

# Counting


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


count_parameters.mistake(
    "all heads counted for keys and values",
    "Right when n_kv_heads equals n_heads. With fewer, W_k and W_v have only n_kv_heads Dh rows.",
    lambda d, h, kv: 4 * d * (d + 1),
)

count_parameters.mistake(
    "biases forgotten",
    "You counted the matrices. Each linear map also has a bias, one number per output feature.",
    lambda d, h, kv: 2 * d * d + 2 * kv * (d // h) * d,
)

count_parameters.mistake(
    "four biases of full width",
    "The matrices are right. A bias has one number per output feature, so those of W_k and W_v have "
    "n_kv_heads Dh, not D.",
    lambda d, h, kv: 2 * d * d + 2 * kv * (d // h) * d + 4 * d,
)

count_parameters.mistake(
    "output projection forgotten",
    "Three projections are counted; W_o, D by D with D biases, is the fourth.",
    lambda d, h, kv: d * (d + 1) + 2 * kv * (d // h) * (d + 1),
)

count_parameters.mistake(
    "keys or values forgotten",
    "You count one map of n_kv_heads Dh rows. There are two, one for keys and one for values.",
    lambda d, h, kv: 2 * d * (d + 1) + kv * (d // h) * (d + 1),
)

count_parameters.mistake(
    "one head's keys and values",
    "You count keys and values of a single head. There are n_kv_heads of them, each Dh wide.",
    lambda d, h, kv: 2 * d * (d + 1) + 2 * (d // h) * (d + 1),
)

count_parameters.mistake(
    "full width for every head",
    "You gave each head matrices of full width. A head is Dh = D / H wide, so that all heads together cost "
    "what one of full width costs.",
    lambda d, h, kv: (h + 1) * d * (d + 1) + 2 * kv * d * (d + 1),
)
