"""The code exercises of the chapter on BERT, with the mistakes that readers make in them.

Embeddings, outputs and logits are in the text's layout, a token a column, except in `bert.mean_pooling`. Of
tokens the numbers 0 to 4 are special: [PAD], [UNK], [CLS], [SEP], [MASK].
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from tformer_book.kit.exercises.registry import exercise

IGNORED = -100
CLS, SEP, MASK = 2, 3, 4
Ids = list[int]

# A pair of sentences in one row


@exercise(
    "bert.pack_pair",
    inputs=lambda g: [
        ([11, 12, 13], [21, 22], 7),  # one too many
        ([11, 12, 13], [21, 22], 8),  # exactly as many
        ([11, 12, 13], [21, 22], 12),
        ([11, 12, 13, 14, 15, 16], [21, 22, 23], 9),
        ([11, 12], [21, 22, 23, 24, 25], 8),
        ([11, 12, 13, 14, 15], [21, 22, 23, 24, 25], 10),
        ([11, 12, 13, 14, 15], [21, 22, 23, 24, 25], 9),
        ([11], [21], 5),
        ([11], [21], 4),
        ([], [21, 22], 4),
        ([], [21], 3),
    ],
)
def pack_pair(a: Ids, b: Ids, length: int) -> tuple[Ids, Ids]:
    """[CLS] A [SEP] B [SEP] in at most `length` >= 3 tokens, and a segment for each: two lists of ints.

    While the row is too long, the longer sentence loses a token, A at its front and B at its end; B loses it
    where both are equally long. Segment 0 reaches to the first [SEP], which is in it; the rest is segment 1.
    """
    a, b = list(a), list(b)
    while len(a) + len(b) + 3 > length:
        if len(a) > len(b):
            a.pop(0)
        else:
            b.pop()
    tokens = [CLS, *a, SEP, *b, SEP]
    return tokens, [0] * (len(a) + 2) + [1] * (len(b) + 1)


def _row(a: Ids, b: Ids) -> tuple[Ids, Ids]:
    """The row and the segments of sentences that are not cut."""
    return [CLS, *a, SEP, *b, SEP], [0] * (len(a) + 2) + [1] * (len(b) + 1)


def _lengths(a: Ids, b: Ids, length: int) -> tuple[int, int]:
    """How long the two sentences are when they fit."""
    segments = pack_pair(a, b, length)[1]
    return segments.count(0) - 2, segments.count(1) - 1


def _pack_with_early_segment(a: Ids, b: Ids, length: int) -> tuple[Ids, Ids]:
    tokens, segments = pack_pair(a, b, length)
    segments[tokens.index(SEP)] = 1
    return tokens, segments


pack_pair.mistake(
    "first [SEP] in the second segment",
    "The tokens are right, but your first [SEP] is in segment 1. It closes the first sentence "
    "and belongs to it.",
    _pack_with_early_segment,
)


def _pack_without_last(a: Ids, b: Ids, length: int) -> tuple[Ids, Ids]:
    tokens, segments = pack_pair(a, b, length)
    return tokens[:-1], segments[:-1]


pack_pair.mistake(
    "last [SEP] missing",
    "The second sentence is not closed: a [SEP] stands after each of the two, and is counted in the length.",
    _pack_without_last,
)

pack_pair.mistake(
    "last [SEP] missing and its place used",
    "There is one [SEP] only, between the sentences. Another one closes the second.",
    lambda a, b, length: _pack_without_last(a, b, length + 1),
)


def _pack_without_middle(a: Ids, b: Ids, length: int) -> tuple[Ids, Ids]:
    tokens, segments = pack_pair(a, b, length + 1)
    middle = tokens.index(SEP)
    return tokens[:middle] + tokens[middle + 1 :], segments[:middle] + segments[middle + 1 :]


pack_pair.mistake(
    "nothing between the sentences",
    "Where the first sentence ends cannot be seen from the tokens: a [SEP] stands there.",
    _pack_without_middle,
)


def _pack_with_second_cls(a: Ids, b: Ids, length: int) -> tuple[Ids, Ids]:
    tokens, segments = pack_pair(a, b, length - 1)
    second = tokens.index(SEP) + 1
    return [*tokens[:second], CLS, *tokens[second:]], [*segments, 1]


pack_pair.mistake(
    "a second [CLS]",
    "Your second sentence begins with a [CLS] of its own. There is one [CLS] a row, at its "
    "front: the answer for the whole row is read there.",
    _pack_with_second_cls,
)


def _pack_with_end_cut(a: Ids, b: Ids, length: int) -> tuple[Ids, Ids]:
    n, m = _lengths(a, b, length)
    return _row(a[:n], b[:m])


pack_pair.mistake(
    "the first sentence cut at its end",
    "You cut the end off the first sentence. Cut its front: what stands next to the second "
    "sentence tells most about whether it follows.",
    _pack_with_end_cut,
)


def _pack_with_front_cut(a: Ids, b: Ids, length: int) -> tuple[Ids, Ids]:
    n, m = _lengths(a, b, length)
    return _row(a[len(a) - n :], b[len(b) - m :])


pack_pair.mistake(
    "the second sentence cut at its front",
    "You cut the front off the second sentence. Cut its end: its first words are those that have "
    "to follow the first sentence.",
    _pack_with_front_cut,
)


def _pack_with_ends_exchanged(a: Ids, b: Ids, length: int) -> tuple[Ids, Ids]:
    n, m = _lengths(a, b, length)
    return _row(a[:n], b[len(b) - m :])


pack_pair.mistake(
    "cut at the two outer ends",
    "You cut A at its end and B at its front, so that the words on both sides of the border are lost. "
    "Cut A at its front and B at its end.",
    _pack_with_ends_exchanged,
)


def _pack_with_other_tie(a: Ids, b: Ids, length: int) -> tuple[Ids, Ids]:
    m, n = _lengths(b, a, length)
    return _row(a[len(a) - n :], b[:m])


pack_pair.mistake(
    "the first sentence cut where both are equally long",
    "Where both sentences are equally long you cut the first. It is the second that loses a token then: "
    "A is cut only if it is longer.",
    _pack_with_other_tie,
)

pack_pair.mistake(
    "only the second sentence cut",
    "You always cut the second sentence. The longer of the two loses a token, until both fit.",
    lambda a, b, length: _row(a, b[: length - 3 - len(a)]),
)

pack_pair.mistake(
    "one token too few",
    "You cut rows of exactly `length` tokens, which fit. Cut only while there are more.",
    lambda a, b, length: pack_pair(a, b, length - 1) if len(a) + len(b) + 3 >= length else _row(a, b),
)

pack_pair.mistake(
    "marks not counted",
    "Your rows are longer than `length`: [CLS] and the two [SEP] need three of the places.",
    lambda a, b, length: pack_pair(a, b, length + 3),
)


def _pack_with_segments_from_one(a: Ids, b: Ids, length: int) -> tuple[Ids, Ids]:
    tokens, segments = pack_pair(a, b, length)
    return tokens, [s + 1 for s in segments]


pack_pair.mistake(
    "segments from one",
    "Your segments are 1 and 2. They are rows of a table, counted from 0.",
    _pack_with_segments_from_one,
)

# Holes


def _hole_inputs(g: torch.Generator) -> list[tuple]:
    def draw(batch: int, n: int) -> tuple:
        tokens = torch.randint(5, 40, (batch, n), generator=g)
        tokens[:, 0], tokens[:, -1], tokens[0, -2] = CLS, SEP, 1
        u, v = torch.rand(2, batch, n, generator=g)
        words = torch.randint(5, 40, (batch, n), generator=g)
        return tokens, u, v, words

    tokens = torch.tensor([[CLS, 9, 8, 7, 6, SEP]])
    u = torch.tensor([[0.01, 0.02, 0.03, 0.04, 0.9, 0.05]])
    v = torch.tensor([[0.1, 0.3, 0.85, 0.95, 0.1, 0.85]])

    # u and v at the bounds, one below and one above, in double precision, where 0.8 is just 0.8
    bounds = torch.tensor([0.15, 0.8, 0.9], dtype=torch.double)
    edges = torch.stack([bounds - 1e-9, bounds, bounds + 1e-9], dim=1)
    v_edges = edges[1:].reshape(1, 6)
    ordinary = torch.arange(11, 17)[None]
    some = torch.full_like(edges, 0.5)
    special = torch.arange(7)[None]  # all special tokens and the first two ordinary ones

    def one(token: int, u: float, v: float) -> tuple:
        return torch.tensor([[token]]), torch.tensor([[u]]), torch.tensor([[v]]), torch.tensor([[30]])

    return [
        (tokens, u, v, torch.full_like(tokens, 30)),
        draw(3, 40),
        draw(2, 60),
        (ordinary[:, :3], edges[:1], some[:1], ordinary[:, :3] + 10),
        (ordinary, torch.zeros_like(v_edges), v_edges, ordinary + 10),
        *((special, torch.zeros(1, 7), torch.full((1, 7), v), special + 10) for v in (0.0, 0.85)),
        one(7, 0.1, 0.5),
        one(7, 0.1, 0.85),
        one(7, 0.1, 0.95),
        one(7, 0.2, 0.5),
        one(MASK, 0.1, 0.85),
    ]


@exercise("bert.mask_tokens", inputs=_hole_inputs)
def mask_tokens(tokens: Tensor, u: Tensor, v: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
    """What the model reads and what it is asked, by the 80/10/10 rule: whole numbers, (B, N) each.

    An ordinary token (above 4) is chosen if u < 0.15. It becomes [MASK] if v < 0.8, the token of `words` if
    0.8 <= v < 0.9, and stays otherwise. Targets are the chosen tokens as they were, and -100 elsewhere.
    """
    chosen = (tokens > MASK) & (u < 0.15)
    inputs = tokens.masked_fill(chosen & (v < 0.8), MASK)
    inputs = torch.where(chosen & (v >= 0.8) & (v < 0.9), words, inputs)
    return inputs, tokens.masked_fill(~chosen, IGNORED)


Condition = Callable[[Tensor], Tensor]


def _mask_with(
    choose: Callable[[Tensor, Tensor], Tensor] = lambda tokens, u: (tokens > MASK) & (u < 0.15),
    hide: Condition = lambda v: v < 0.8,
    replace: Condition = lambda v: (v >= 0.8) & (v < 0.9),
    target: Callable[[Tensor, Tensor], Tensor] = lambda tokens, inputs: tokens,
    asked: Condition = lambda v: v >= 0,
    ignored: int = IGNORED,
) -> Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
    """The rule with another choice, other intervals or other targets."""

    def variant(tokens: Tensor, u: Tensor, v: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        chosen = choose(tokens, u)
        inputs = tokens.masked_fill(chosen & hide(v), MASK)
        inputs = torch.where(chosen & replace(v), words, inputs)
        return inputs, target(tokens, inputs).masked_fill(~(chosen & asked(v)), ignored)

    return variant


mask_tokens.mistake(
    "special tokens hidden",
    "You also hide special tokens. To guess [CLS] and [SEP] teaches nothing, since where they "
    "stand is always known.",
    _mask_with(choose=lambda tokens, u: u < 0.15),
)

mask_tokens.mistake(
    "[MASK] taken for an ordinary token",
    "You let token 4 be chosen, which is [MASK] itself. The special tokens are 0 to 4: tokens > 4.",
    _mask_with(choose=lambda tokens, u: (tokens >= MASK) & (u < 0.15)),
)

mask_tokens.mistake(
    "u of exactly 0.15 chosen",
    "You choose a token where u is exactly 0.15. The bound doesn't belong to the interval: u < 0.15.",
    _mask_with(choose=lambda tokens, u: (tokens > MASK) & (u <= 0.15)),
)

mask_tokens.mistake(
    "every bound in the interval below",
    "At exactly 0.15, 0.8 and 0.9 you do what holds below them. A bound belongs to the interval above it: "
    "compare with <, and with >= where an interval begins.",
    _mask_with(
        choose=lambda tokens, u: (tokens > MASK) & (u <= 0.15),
        hide=lambda v: v <= 0.8,
        replace=lambda v: (v > 0.8) & (v <= 0.9),
    ),
)

mask_tokens.mistake(
    "bounds of v in the interval below",
    "At exactly 0.8 and 0.9 you do what holds below them. A bound belongs to the interval above it: "
    "[MASK] if v < 0.8, a random word if 0.8 <= v < 0.9.",
    _mask_with(hide=lambda v: v <= 0.8, replace=lambda v: (v > 0.8) & (v <= 0.9)),
)

mask_tokens.mistake(
    "v of exactly 0.8 hidden",
    "You hide a token where v is exactly 0.8. That is where the random words begin: [MASK] if v < 0.8.",
    _mask_with(hide=lambda v: v <= 0.8, replace=lambda v: (v > 0.8) & (v < 0.9)),
)

mask_tokens.mistake(
    "v of exactly 0.8 left alone",
    "Where v is exactly 0.8 you do nothing, since neither of your intervals has that bound. It belongs to "
    "the random words: v >= 0.8.",
    _mask_with(replace=lambda v: (v > 0.8) & (v < 0.9)),
)

mask_tokens.mistake(
    "v of exactly 0.9 replaced",
    "You replace a token where v is exactly 0.9. From 0.9 on it stays: random words need v < 0.9.",
    _mask_with(replace=lambda v: (v >= 0.8) & (v <= 0.9)),
)

mask_tokens.mistake(
    "kept tokens not asked",
    "The model is not asked for the chosen tokens that stay. It is asked for all that were "
    "chosen: that is why it has to keep an opinion of words that it can see.",
    _mask_with(asked=lambda v: v < 0.9),
)

mask_tokens.mistake(
    "only masks asked",
    "The model is asked at [MASK] alone. All chosen tokens are targets, also those that were "
    "replaced by a random word or stay.",
    _mask_with(asked=lambda v: v < 0.8),
)

mask_tokens.mistake(
    "targets everywhere",
    "You ask for every token. Most of them stand there to be read, so that the loss would be "
    "that of copying; targets are -100 except where a token was chosen.",
    lambda tokens, u, v, words: (mask_tokens(tokens, u, v, words)[0], tokens),
)

mask_tokens.mistake(
    "targets taken after hiding",
    "Your targets are what the model reads. It is asked for what stood there before.",
    _mask_with(target=lambda tokens, inputs: inputs),
)

mask_tokens.mistake(
    "all that is chosen hidden",
    "Every chosen token becomes [MASK]. Of ten, one becomes a random word and one stays, because "
    "no [MASK] occurs in the text that the model is for.",
    _mask_with(hide=lambda v: v >= 0, replace=lambda v: v < 0),
)

mask_tokens.mistake(
    "random words put over masks",
    "Your second rule, v < 0.1, takes a share of what is [MASK] already: 70% are hidden, 10% "
    "replaced, 20% stay. The intervals follow each other: up to 0.8, then up to 0.9.",
    _mask_with(replace=lambda v: v < 0.1),
)

mask_tokens.mistake(
    "all below 0.9 replaced",
    "Your second rule, v < 0.9, also replaces what is [MASK] already, so that none is left. Random words "
    "need 0.8 <= v as well.",
    _mask_with(replace=lambda v: v < 0.9),
)

mask_tokens.mistake(
    "nothing stays",
    "You replace all that is not hidden: 80% and 20%. Half of that rest stays as it is.",
    _mask_with(replace=lambda v: v >= 0.8),
)

mask_tokens.mistake(
    "last two intervals exchanged",
    "You keep up to 0.9 and replace from there on. The shares are right; but the draws are "
    "given, and [0.8, 0.9) stands for a random word.",
    _mask_with(replace=lambda v: v >= 0.9),
)

mask_tokens.mistake(
    "shares of all tokens",
    "You read 80% and 10% as shares of all tokens, and compare v with 0.15 times them. They are "
    "shares of the chosen.",
    _mask_with(hide=lambda v: v < 0.12, replace=lambda v: (v >= 0.12) & (v < 0.135)),
)

mask_tokens.mistake(
    "the others chosen",
    "You choose where u is above 0.15: 85% of the tokens. With so little left nothing can be guessed.",
    _mask_with(choose=lambda tokens, u: (tokens > MASK) & (u >= 0.15)),
)

mask_tokens.mistake(
    "not asked marked by zero",
    "Where nothing is asked your target is 0. That is a token, [PAD]; the mark is -100.",
    _mask_with(ignored=0),
)

# The input


def _embedding_inputs(g: torch.Generator) -> list[tuple]:
    def draw(n: int, d: int, vocab: int) -> tuple:
        tables = (torch.randn(d, size, generator=g) for size in (vocab, max(vocab, n) + 1, 2))
        segments = (torch.arange(n) > n // 2).long()
        gain, shift = 1 + torch.rand(d, generator=g), torch.randn(d, generator=g)
        return (torch.randint(vocab, (n,), generator=g), segments, *tables, gain, shift)

    def column(*features: float) -> tuple:
        """A token that is alone, and nothing added to it."""
        d = len(features)
        tables = torch.tensor(features)[:, None], torch.zeros(d, 1), torch.zeros(d, 2)
        return (torch.tensor([0]), torch.tensor([0]), *tables, torch.full((d,), 2.0), torch.ones(d))

    return [
        draw(5, 4, 9),
        draw(3, 6, 7),
        draw(1, 4, 5),
        draw(4, 4, 4),
        draw(1, 2, 1),
        column(1e-6, 3e-6, -2e-6),  # a variance as small as epsilon
        column(4.0, 4.0),  # none at all
        column(2001.0, 2002.0, 2003.0),  # far from zero, and close together
    ]


@exercise("bert.input_embedding", inputs=_embedding_inputs, tolerance=1e-4)
def input_embedding(
    tokens: Tensor, segments: Tensor, E: Tensor, P: Tensor, S: Tensor, gain: Tensor, shift: Tensor
) -> Tensor:
    """LayerNorm of E[tokens] + P + S[segments], a token a column: (N,), (N,) and tables (D, ...) -> (D, N).

    P may have more columns than there are tokens. The norm runs over the D features of a column, has gain and
    shift of shape (D,), and divides by sqrt(variance + 1e-12).
    """
    X = E[:, tokens] + P[:, : len(tokens)] + S[:, segments]
    X = X - X.mean(dim=0)
    X = X / (X.square().mean(dim=0) + 1e-12).sqrt()
    return gain[:, None] * X + shift[:, None]


Columns = Callable[[Tensor, Tensor, Tensor, Callable[[Tensor], Tensor]], Tensor]


def _layer_norm(X: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    return F.layer_norm(X.T, (len(X),), gain, shift, eps=1e-12).T


def _embedding_with(join: Columns) -> Callable[..., Tensor]:
    """The three columns of each token, and the norm, put together in another way."""

    def variant(
        tokens: Tensor, segments: Tensor, E: Tensor, P: Tensor, S: Tensor, gain: Tensor, shift: Tensor
    ) -> Tensor:
        columns = E[:, tokens], P[:, : len(tokens)], S[:, segments]
        return join(*columns, lambda X: _layer_norm(X, gain, shift))

    return variant


def _embedding_with_norm(norm: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """The right sum, normalised in another way."""

    def variant(
        tokens: Tensor, segments: Tensor, E: Tensor, P: Tensor, S: Tensor, gain: Tensor, shift: Tensor
    ) -> Tensor:
        X = E[:, tokens] + P[:, : len(tokens)] + S[:, segments]
        return gain[:, None] * norm(X) + shift[:, None]

    return variant


input_embedding.mistake(
    "norm before the sum",
    "You normalise the tokens' embeddings alone and add the rest afterwards. The norm comes "
    "last, over the sum of all three.",
    _embedding_with(lambda e, p, s, norm: norm(e) + p + s),
)

input_embedding.mistake(
    "segments after the norm",
    "Your segments are added to the normalised sum of the other two. All are under the norm.",
    _embedding_with(lambda e, p, s, norm: norm(e + p) + s),
)

input_embedding.mistake(
    "segments forgotten",
    "Nothing tells the two sentences apart: the column of S for each token's segment is missing.",
    _embedding_with(lambda e, p, s, norm: norm(e + p)),
)

input_embedding.mistake(
    "positions forgotten",
    "Your columns do not depend on where a token stands: add P.",
    _embedding_with(lambda e, p, s, norm: norm(e + s)),
)

input_embedding.mistake(
    "positions by token",
    "You look positions up by the number of the token. The n-th token gets the n-th column of P.",
    lambda tokens, segments, E, P, S, gain, shift: _layer_norm(
        E[:, tokens] + P[:, tokens] + S[:, segments], gain, shift
    ),
)

input_embedding.mistake(
    "norm across the tokens",
    "Mean and variance are taken over the tokens of a feature. They are those of each column, "
    "over its features.",
    _embedding_with_norm(
        lambda X: (X - X.mean(1, keepdim=True)) / (X.var(1, correction=0, keepdim=True) + 1e-12).sqrt()
    ),
)

input_embedding.mistake(
    "norm over all entries",
    "You take one mean and one variance for the whole matrix. Each column has its own, over its features.",
    _embedding_with_norm(lambda X: (X - X.mean()) / (X.var(correction=0) + 1e-12).sqrt()),
)

input_embedding.mistake(
    "norm forgotten",
    "The sum is right, and is not normalised: LayerNorm with its gain and shift comes after it.",
    _embedding_with(lambda e, p, s, norm: e + p + s),
)

input_embedding.mistake(
    "gain and shift forgotten",
    "Your columns are normalised and no more. Multiply each feature by its gain and add its shift.",
    _embedding_with(lambda e, p, s, norm: F.layer_norm((e + p + s).T, (len(e),), eps=1e-12).T),
)

input_embedding.mistake(
    "mean not subtracted",
    "You divide and do not subtract the mean, which is RMSNorm. LayerNorm centres each column first.",
    _embedding_with_norm(lambda X: X / (X.square().mean(0) + 1e-12).sqrt()),
)

input_embedding.mistake(
    "unbiased variance",
    "You divide the squares by D - 1, the default of `var` and `std`. LayerNorm takes their mean, over D.",
    _embedding_with_norm(lambda X: (X - X.mean(0)) / (X.var(0) + 1e-12).sqrt()),
)

input_embedding.mistake(
    "variance as a difference of squares",
    "Your variance is the mean square less the square of the mean. Far from zero both are large, and their "
    "difference loses its digits: subtract the mean first, then square.",
    _embedding_with_norm(
        lambda X: (X - X.mean(0)) / (X.square().mean(0) - X.mean(0).square() + 1e-12).sqrt()
    ),
)

input_embedding.mistake(
    "epsilon of PyTorch's default",
    "Your epsilon is 1e-5, the default of `layer_norm`. BERT's is 1e-12.",
    _embedding_with_norm(lambda X: (X - X.mean(0)) / (X.var(0, correction=0) + 1e-5).sqrt()),
)

input_embedding.mistake(
    "epsilon outside the root",
    "You add epsilon to the standard deviation. It is added to the variance, under the root.",
    _embedding_with_norm(lambda X: (X - X.mean(0)) / (X.var(0, correction=0).sqrt() + 1e-12)),
)

input_embedding.mistake(
    "epsilon forgotten",
    "Right for most columns, but one whose features are all equal gives 0/0: add 1e-12 to the variance.",
    _embedding_with_norm(lambda X: (X - X.mean(0)) / X.var(0, correction=0).sqrt()),
)

input_embedding.mistake(
    "embeddings scaled by the root of D",
    "You multiply the tokens' embeddings by the root of D, as Vaswani et al. (2017) do. BERT "
    "does not; it has a norm here.",
    _embedding_with(lambda e, p, s, norm: norm(len(e) ** 0.5 * e + p + s)),
)

# The loss at the holes


def _loss_inputs(g: torch.Generator) -> list[tuple]:
    def draw(batch: int, vocab: int, n: int, holes: list[tuple[int, int]]) -> tuple:
        targets = torch.full((batch, n), IGNORED)
        for row, place in holes:
            targets[row, place] = int(torch.randint(vocab, (), generator=g))
        targets[holes[0]] = 0
        return 2 * torch.randn(batch, vocab, n, generator=g), targets

    return [
        draw(1, 5, 4, [(0, 1), (0, 3)]),
        draw(3, 6, 7, [(0, 2), (1, 0), (1, 4), (1, 5), (2, 6)]),
        draw(2, 4, 4, [(1, 0), (1, 1), (1, 3)]),
        draw(3, 3, 3, [(row, place) for row in range(3) for place in range(3)]),  # all of them asked
        (torch.tensor([[[0.5], [2.0]]]), torch.tensor([[1]])),
        (torch.tensor([[[0.5], [2.0]]]), torch.tensor([[0]])),
        (torch.tensor([[[-120.0], [1.0]]]), torch.tensor([[0]])),  # a probability that underflows
        (torch.tensor([[[1000.0], [1001.0]]]), torch.tensor([[0]])),  # exponentials that overflow
    ]


@exercise("bert.masked_loss", inputs=_loss_inputs)
def masked_loss(Z: Tensor, targets: Tensor) -> float:
    """The mean of -ln p over all holes of the batch: (B, vocab, N) logits and (B, N) targets -> a number.

    The targets are -100 where nothing is asked. There is at least one hole.
    """
    asked = targets != IGNORED
    log_p = Z.log_softmax(dim=1).transpose(1, 2)[asked]  # (holes, vocab)
    return -log_p[torch.arange(len(log_p)), targets[asked]].mean().item()


def _at_targets(log_p: Tensor, targets: Tensor) -> Tensor:
    """-log p of each target, (B, N); 0 where nothing is asked."""
    picked = log_p.gather(1, targets.clamp(min=0)[:, None])[:, 0]
    return (-picked).masked_fill(targets == IGNORED, 0.0)


def _mean_at_holes(log_p: Tensor, targets: Tensor) -> Tensor:
    return _at_targets(log_p, targets).sum() / (targets != IGNORED).sum()


masked_loss.mistake(
    "divided by all places",
    "You add up over the holes and divide by all places, so that the loss shrinks with the share "
    "that was hidden. Divide by the number of holes.",
    lambda Z, targets: _at_targets(Z.log_softmax(1), targets).mean(),
)


def _loss_with_rows_first(Z: Tensor, targets: Tensor) -> Tensor:
    asked = (targets != IGNORED).sum(1)
    rows = _at_targets(Z.log_softmax(1), targets).sum(1) / asked.clamp(min=1)
    return rows[asked > 0].mean()


masked_loss.mistake(
    "mean of the rows' means",
    "You take the mean in each row first, and a row with one hole counts as much as one with "
    "five. Every hole counts alike.",
    _loss_with_rows_first,
)

masked_loss.mistake(
    "summed",
    "This is the sum over the holes. Their mean is asked for, or the loss would grow with the batch.",
    lambda Z, targets: _at_targets(Z.log_softmax(1), targets).sum(),
)

masked_loss.mistake(
    "divided by the batch",
    "You add up over the holes and divide by the number of rows. Divide by the number of holes.",
    lambda Z, targets: _at_targets(Z.log_softmax(1), targets).sum() / len(Z),
)

masked_loss.mistake(
    "softmax over the places",
    "Your probabilities sum to one over the places of a row. Here a token is a column, and its "
    "probabilities run down axis 1.",
    lambda Z, targets: _mean_at_holes(Z.log_softmax(2), targets),
)

masked_loss.mistake(
    "softmax over the batch",
    "Your probabilities sum to one over the batch. They run over the vocabulary, axis 1.",
    lambda Z, targets: _mean_at_holes(Z.log_softmax(0), targets),
)

masked_loss.mistake(
    "logits taken for log-probabilities",
    "You pick logits. They become log-probabilities by `log_softmax`.",
    lambda Z, targets: _mean_at_holes(Z, targets),
)

masked_loss.mistake(
    "logarithm of the softmax",
    "Right for moderate logits. A small probability underflows to 0, and its logarithm is minus infinity: "
    "`log_softmax` takes both steps at once.",
    lambda Z, targets: _mean_at_holes(Z.softmax(1).log(), targets),
)

masked_loss.mistake(
    "no maximum subtracted",
    "Right for small logits, but exp of a large one is infinite. `log_softmax` subtracts the largest first.",
    lambda Z, targets: _mean_at_holes(Z - Z.exp().sum(1, keepdim=True).log(), targets),
)

masked_loss.mistake(
    "quotient of exponentials",
    "Right for moderate logits. But exp of a large one is infinite, and that of one far below 0 is 0, which "
    "has no logarithm: use `log_softmax`.",
    lambda Z, targets: _mean_at_holes((Z.exp() / Z.exp().sum(1, keepdim=True)).log(), targets),
)


def _loss_with_zero_ignored(Z: Tensor, targets: Tensor) -> Tensor:
    return _mean_at_holes(Z.log_softmax(1), targets.masked_fill(targets == 0, IGNORED))


masked_loss.mistake(
    "token 0 not asked",
    "You leave out holes whose true token is number 0. Only -100 means that nothing is asked.",
    _loss_with_zero_ignored,
)

masked_loss.mistake(
    "every place asked",
    "You average over all places, with token 0 where nothing was asked. Places with -100 do not "
    "count at all.",
    lambda Z, targets: -Z.log_softmax(1).gather(1, targets.clamp(min=0)[:, None]).mean(),
)

# One vector for a sequence


@exercise(
    "bert.pooler",
    inputs=lambda g: [
        tuple(torch.randn(size, generator=g) for size in ((d, n), (d, d), (d,)))
        for d, n in ((4, 6), (3, 3), (5, 1), (6, 2), (2, 2), (1, 2), (1, 1))
    ],
)
def pooler(H: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """tanh(W h + b) of h, the first column, that of [CLS]: (D, N), (D, D) and (D,) -> (D,)."""
    return torch.tanh(W @ H[:, 0] + b)


pooler.mistake(
    "mean over the tokens",
    "You average all columns. The pooler reads one, that of [CLS].",
    lambda H, W, b: (W @ H.mean(1) + b).tanh(),
)

pooler.mistake(
    "last token",
    "You read the last column. [CLS] is the first.",
    lambda H, W, b: (W @ H[:, -1] + b).tanh(),
)

pooler.mistake(
    "first row",
    "You read the first row of H, one feature of all tokens. Here a token is a column.",
    lambda H, W, b: (W @ H[0] + b).tanh(),
)

pooler.mistake(
    "every token pooled",
    "You return a column for each token. The pooler reads the first column alone and returns one vector.",
    lambda H, W, b: (W @ H + b[:, None]).tanh(),
)

pooler.mistake(
    "tanh missing",
    "The map is linear so far: the tanh is missing.",
    lambda H, W, b: W @ H[:, 0] + b,
)

pooler.mistake(
    "bias after the tanh",
    "You add the bias after the tanh. It belongs under it, with W h.",
    lambda H, W, b: (W @ H[:, 0]).tanh() + b,
)

pooler.mistake(
    "bias forgotten",
    "The bias is missing: W h + b, and then the tanh.",
    lambda H, W, b: (W @ H[:, 0]).tanh(),
)

pooler.mistake(
    "W transposed",
    "You multiply by the transpose of W: for columns it is W h, for rows h W^T.",
    lambda H, W, b: (W.T @ H[:, 0] + b).tanh(),
)

# Labels of words, at pieces


@exercise(
    "bert.align_labels",
    inputs=lambda g: [
        ([-1, 0, 1, 1, 2, -1], [3, 1, 4]),
        ([-1, 0, 0, 0, 1, 2, 2, -1, -1, -1], [0, 2, 5]),
        ([-1, 0, -1], [7]),
        ([-1, 0, 1, 1, 2, -1], [6, 0, 2, 9, 9]),  # more words than found room
        ([-1, 0, 2, 2, -1], [5, 6, 8]),  # a word of which no piece is left
        ([-1, -1], []),
    ],
)
def align_labels(words: Ids, tags: Ids) -> Ids:
    """tags[w] at the first piece of each word w, and -100 everywhere else: a list as long as `words`.

    `words` has the word of each place, -1 at [CLS], with which it begins, at [SEP] and at padding. A word may
    be missing: `tags` is indexed by its number.
    """
    return [tags[w] if w >= 0 and w != words[n - 1] else IGNORED for n, w in enumerate(words)]


def _align_with(label: Callable[[Ids, Ids, int], int]) -> Callable[[Ids, Ids], Ids]:
    """Another label for each place."""
    return lambda words, tags: [label(words, tags, n) for n in range(len(words))]


def _begins(words: Ids, n: int) -> bool:
    return words[n] >= 0 and words[n] != words[n - 1]


def _ends(words: Ids, n: int) -> bool:
    return words[n] >= 0 and words[n] != words[n + 1]


align_labels.mistake(
    "label on all pieces",
    "Every piece of a word gets its label, so that a word cut into four counts four times in the "
    "loss. Only the first piece is asked.",
    _align_with(lambda words, tags, n: tags[words[n]] if words[n] >= 0 else IGNORED),
)

align_labels.mistake(
    "label on the last piece",
    "Your label stands on the last piece of each word. By agreement it is the first.",
    _align_with(lambda words, tags, n: tags[words[n]] if _ends(words, n) else IGNORED),
)

align_labels.mistake(
    "shifted by [CLS]",
    "Your labels begin at [CLS], one place too early: it stands before the first word.",
    lambda words, tags: [*align_labels(words, tags)[1:], IGNORED],
)

align_labels.mistake(
    "labels dealt out piece by piece",
    "You give the n-th label to the n-th place after [CLS]. From the first word that is cut, "
    "labels stand at other words: `words` says which word a piece is of.",
    _align_with(lambda words, tags, n: tags[n - 1] if words[n] >= 0 and n - 1 < len(tags) else IGNORED),
)


def _align_with_words_counted(words: Ids, tags: Ids) -> Ids:
    following = iter(tags)
    return [next(following) if _begins(words, n) else IGNORED for n in range(len(words))]


align_labels.mistake(
    "words counted",
    "You take the next tag at each new word. A word can be missing, and from there on all tags stand at the "
    "wrong words: `words` has the number of each.",
    _align_with_words_counted,
)

align_labels.mistake(
    "padding labelled O",
    "[CLS], [SEP] and padding have the label 0. Nothing is asked there; otherwise the model is "
    "paid for saying O where there is no word.",
    _align_with(
        lambda words, tags, n: 0 if words[n] < 0 else tags[words[n]] if _begins(words, n) else IGNORED
    ),
)

align_labels.mistake(
    "later pieces labelled O",
    "Later pieces have the label 0, that of O. They are not words of their own: nothing is asked there.",
    _align_with(
        lambda words, tags, n: IGNORED if words[n] < 0 else tags[words[n]] if _begins(words, n) else 0
    ),
)

align_labels.mistake(
    "everything else labelled O",
    "Wherever no word begins your label is 0. It must be -100, which the loss leaves out: 0 is an answer.",
    _align_with(lambda words, tags, n: tags[words[n]] if _begins(words, n) else 0),
)

align_labels.mistake(
    "minus one looked up",
    "[CLS], [SEP] and padding have the last word's tag: in Python -1 is the last place of a list. Give "
    "them -100.",
    _align_with(lambda words, tags, n: tags[words[n]] if n == 0 or words[n] != words[n - 1] else IGNORED),
)

# Entities

Sentences = list[list[str]]
Entity = tuple[int, str, int, int]  # sentence, type, first word, the word after the last


def _sentences(text: str) -> Sentences:
    """Sentences divided by |; o, and B or I with a type, for instance Bx for B-x."""
    return [[w if w == "O" else f"{w[0]}-{w[1:]}" for w in sentence.split()] for sentence in text.split("|")]


def _entity_inputs(g: torch.Generator) -> list[tuple]:
    pairs = [
        ("O Bx Ix O By", "O Bx Ix O Bz"),
        ("Bx Ix Ix O | O By O O | Bx O By Iy", "Bx Ix O O | O By O Bx | O O By Iy"),
        ("O Bx Ix O O By O", "O Bx Ix O Ix Iy O"),
        ("Bx Bx O By Iy", "Bx Bx O By Ix"),
        ("O O | Bx Ix O", "O O | O O O"),
        ("By O Bx Iy O Bx", "By O Bx Iy O O"),
        ("Bart Iart O Barea", "Bart Iarea O Barea"),  # types that begin alike
        ("O Bx | Ix O", "O Bx | O O"),  # nothing goes on in the next sentence
        ("Bx O | Bx O | By", "Bx O | Bx O | O"),  # at the same place of two sentences
        ("Bx O O | O By", "O O O | Bx By"),  # one of two kept, beside a wrong one
        ("Bx Ix O", "Bx Ix Ix"),
        ("O Bx Ix", "Bx Ix Ix"),
        ("Bx", "Bx"),
        ("Bx", "Ix"),
        ("O", "O"),
        ("O", "Bx"),
        (" | Bx", " | Bx"),
    ]
    return [(_sentences(true), _sentences(predicted)) for true, predicted in pairs]


@exercise("bert.entity_f1", inputs=_entity_inputs)
def entity_f1(true: Sentences, predicted: Sentences) -> float:
    """2 r / (t + p) for r entities found correctly, of t true and p predicted, 0 if r = 0: a float.

    An entity is a B- and the I- of its type that follow directly in the same sentence; an I- that continues
    nothing makes none. It is found correctly if its sentence, its type and both its ends are.
    """

    def entities(sentences: Sentences) -> set[Entity]:
        found = set()
        for s, tags in enumerate(sentences):
            for start, tag in enumerate(tags):
                if tag.startswith("B-"):
                    end = start + 1
                    while end < len(tags) and tags[end] == "I-" + tag[2:]:
                        end += 1
                    found.add((s, tag[2:], start, end))
        return found

    t, p = entities(true), entities(predicted)
    right = len(t & p)
    return 2 * right / (len(t) + len(p)) if right else 0.0


Score = Callable[[Sentences, Sentences], float]


def _entities(sentences: Sentences, loose: bool = False, join: bool = False) -> set[Entity]:
    """All entities; if loose, an I- that continues nothing begins one; if join, a B- can go on with one."""
    found = set()
    for s, tags in enumerate(sentences):
        begun: tuple[str, int] | None = None
        for n, tag in enumerate([*tags, "O"]):
            if begun is not None and tag[0] in ("IB" if join else "I") and tag[2:] == begun[0]:
                continue
            if begun is not None:
                found.add((s, begun[0], begun[1], n))
                begun = None
            if tag[0] == "B" or (loose and tag[0] == "I"):
                begun = (tag[2:], n)
    return found


def _f1(right: int, n_true: int, n_predicted: int) -> float:
    return 2 * right / (n_true + n_predicted) if right else 0.0


def _f1_of(real: set, found: set) -> float:
    return _f1(len(real & found), len(real), len(found))


def _f1_without(place: int) -> Score:
    """F1 of entities of which one thing is not looked at: 0 the sentence, 1 the type, 2 and 3 the ends."""

    def score(true: Sentences, predicted: Sentences) -> float:
        both = ({e[:place] + e[place + 1 :] for e in _entities(side)} for side in (true, predicted))
        return _f1_of(*both)

    return score


def _words(true: Sentences, predicted: Sentences) -> list[tuple[str, str]]:
    return [pair for t, p in zip(true, predicted, strict=True) for pair in zip(t, p, strict=True)]


def _f1_with_words_right(true: Sentences, predicted: Sentences) -> float:
    pairs = _words(true, predicted)
    return sum(t == p for t, p in pairs) / max(1, len(pairs))


entity_f1.mistake(
    "share of right words",
    "This is the share of words with the right tag. Most words are O, so that it is high for a "
    "model that finds nothing. Entities count.",
    _f1_with_words_right,
)


def _f1_with_words(true: Sentences, predicted: Sentences) -> float:
    pairs = _words(true, predicted)
    right = sum(t == p != "O" for t, p in pairs)
    return _f1(right, sum(t != "O" for t, _ in pairs), sum(p != "O" for _, p in pairs))


entity_f1.mistake(
    "words instead of entities",
    "You count words other than O. An entity of three words is one entity, right as a whole or not at all.",
    _f1_with_words,
)


def _f1_with_overlap(true: Sentences, predicted: Sentences) -> float:
    real, found = _entities(true), _entities(predicted)
    hit = [e for e in found if any(e[:2] == r[:2] and e[2] < r[3] and r[2] < e[3] for r in real)]
    return _f1(len(hit), len(real), len(found))


entity_f1.mistake(
    "overlap counted as right",
    "You count an entity as right where it overlaps a true one. Both its ends have to be right.",
    _f1_with_overlap,
)

entity_f1.mistake(
    "only the beginning compared",
    "You count an entity as right if it begins at the right word. It has to end there, too.",
    _f1_without(3),
)

entity_f1.mistake(
    "only the end compared",
    "You count an entity as right if it ends at the right word. It has to begin there, too.",
    _f1_without(2),
)

entity_f1.mistake(
    "type ignored",
    "You compare where entities stand and not what they are. The type has to be right, too.",
    _f1_without(1),
)

entity_f1.mistake(
    "sentence ignored",
    "You compare words' places without their sentence, so that entities at the same place of two sentences "
    "count as one, or as found where they are not.",
    _f1_without(0),
)


def _f1_with_sentences_joined(true: Sentences, predicted: Sentences) -> float:
    return entity_f1([[tag for tags in true for tag in tags]], [[tag for tags in predicted for tag in tags]])


entity_f1.mistake(
    "sentences joined",
    "You put all sentences into one list of tags. An I- at the beginning of a sentence then continues the "
    "entity before it; but none goes on from one sentence into the next.",
    _f1_with_sentences_joined,
)


def _f1_with_any_type(true: Sentences, predicted: Sentences) -> float:
    def entities(sentences: Sentences) -> set[Entity]:
        found = set()
        for s, tags in enumerate(sentences):
            for start, tag in enumerate(tags):
                if tag[0] == "B":
                    inside = [t[0] == "I" for t in tags[start + 1 :]]
                    found.add((s, tag[2:], start, start + [*inside, False].index(False)))
        return found

    return _f1_of(entities(true), entities(predicted))


entity_f1.mistake(
    "continued by any I",
    "Your entities go on with an I- of another type. Only an I- of the same type continues one.",
    _f1_with_any_type,
)

entity_f1.mistake(
    "I without B taken for a beginning",
    "You let an I- that continues nothing begin an entity, as some scorers do. Here an entity "
    "begins with B-.",
    lambda true, predicted: _f1_of(_entities(true, loose=True), _entities(predicted, loose=True)),
)

entity_f1.mistake(
    "neighbours joined",
    "You join two entities of one type that touch. A B- always begins a new one: that is what it is for.",
    lambda true, predicted: _f1_of(_entities(true, join=True), _entities(predicted, join=True)),
)


def _f1_with_mean_over_sentences(true: Sentences, predicted: Sentences) -> float:
    scores = [entity_f1([t], [p]) for t, p in zip(true, predicted, strict=True)]
    return sum(scores) / max(1, len(scores))


entity_f1.mistake(
    "mean over the sentences",
    "You take F1 in each sentence and average. Count over all sentences first: one without "
    "entities has no F1.",
    _f1_with_mean_over_sentences,
)


def _f1_with_mean_over_types(true: Sentences, predicted: Sentences) -> float:
    real, found = _entities(true), _entities(predicted)
    kinds = sorted({e[1] for e in real | found})
    scores = [_f1_of({e for e in real if e[1] == k}, {e for e in found if e[1] == k}) for k in kinds]
    return sum(scores) / max(1, len(kinds))


entity_f1.mistake(
    "mean over the types",
    "You average over types (macro F1), and a rare type weighs as much as a frequent one. Here "
    "all entities count alike (micro F1).",
    _f1_with_mean_over_types,
)


def _recall(true: Sentences, predicted: Sentences) -> float:
    real, found = _entities(true), _entities(predicted)
    return len(real & found) / max(1, len(real))


entity_f1.mistake(
    "recall alone",
    "This is the recall: a model that marks everything would do well. F1 also counts what was "
    "marked wrongly.",
    _recall,
)

entity_f1.mistake(
    "precision alone",
    "This is the precision: a model that marks one sure entity would do well. F1 also counts "
    "what was missed.",
    lambda true, predicted: _recall(predicted, true),
)

entity_f1.mistake(
    "plain mean of precision and recall",
    "You take the plain mean of precision and recall. F1 is their harmonic mean, which is small if one of "
    "them is.",
    lambda true, predicted: (_recall(true, predicted) + _recall(predicted, true)) / 2,
)

# One vector for a sentence


def _pooling_inputs(g: torch.Generator) -> list[tuple]:
    def draw(lengths: list[int], d: int) -> tuple:
        n = max(lengths)
        return torch.randn(len(lengths), n, d, generator=g), torch.arange(n) < torch.tensor(lengths)[:, None]

    H, real = draw([4, 2, 1], 5)
    one = torch.tensor([[[3.0, 4.0], [-2.0, 7.0]]])
    return [
        draw([4, 2], 3),
        draw([5, 1, 3], 4),
        draw([3, 6], 6),
        (H, real.flip(1)),  # padding in front
        (5 * draw([2, 3, 3], 3)[0], torch.tensor([[True, False, True], [True] * 3, [False, True, True]])),
        (one, torch.tensor([[True, False]])),
        (one, torch.tensor([[True, True]])),
    ]


@exercise("bert.mean_pooling", inputs=_pooling_inputs)
def mean_pooling(H: Tensor, real: Tensor) -> Tensor:
    """The mean over each sentence's real tokens, brought to length one: (B, N, D), bool (B, N) -> (B, D).

    Padding may stand anywhere. Each sentence has a real token.
    """
    total = (H * real[:, :, None]).sum(dim=1)  # its direction is that of the mean
    return total / total.norm(dim=1, keepdim=True)


def _real_mean(H: Tensor, real: Tensor) -> Tensor:
    return (H * real[..., None]).sum(1) / real.sum(1, keepdim=True)


def _unit(x: Tensor) -> Tensor:
    return x / x.norm(dim=-1, keepdim=True)


mean_pooling.mistake(
    "padding averaged in",
    "The padding's outputs are in your mean, so that a sentence's vector depends on how long its "
    "neighbours in the batch are.",
    lambda H, real: _unit(H.mean(1)),
)

mean_pooling.mistake(
    "padding alone averaged",
    "You average exactly the padding: the mask is the wrong way round. It is True at real tokens.",
    lambda H, real: _unit(_real_mean(H, ~real)),
)

mean_pooling.mistake(
    "not normalised",
    "Your vectors are not of length one: divide each by its norm. Dot products are cosines then.",
    _real_mean,
)

mean_pooling.mistake(
    "not normalised, divided by all places",
    "You divide by all places instead of the real ones, and then do not normalise, which would "
    "have made up for it.",
    lambda H, real: (H * real[..., None]).mean(1),
)

mean_pooling.mistake(
    "tokens normalised first",
    "You bring each token to length one before the mean, so that all count alike, and the mean "
    "is not of length one. Average first, normalise once.",
    lambda H, real: _real_mean(_unit(H), real),
)

mean_pooling.mistake(
    "normalised twice",
    "You normalise the tokens, too, which changes the mean's direction. Only the mean is normalised.",
    lambda H, real: _unit(_real_mean(_unit(H), real)),
)

mean_pooling.mistake(
    "[CLS] alone",
    "You take the first token. That is the pooler's way; here all real tokens are averaged.",
    lambda H, real: _unit(H[:, 0]),
)

mean_pooling.mistake(
    "largest instead of mean",
    "You take the largest entry of each feature over the real tokens. Their mean is asked for.",
    lambda H, real: _unit(H.masked_fill(~real[..., None], -math.inf).amax(1)),
)

mean_pooling.mistake(
    "padding taken to be at the end",
    "You average the first tokens, as many as are real. Padding may stand in front as well: use the mask.",
    lambda H, real: _unit(_real_mean(H, real.sort(dim=1, descending=True).values)),
)

mean_pooling.mistake(
    "normalised along the batch",
    "You divide by norms taken over the batch. Each sentence has its own, over its features.",
    lambda H, real: _real_mean(H, real) / _real_mean(H, real).norm(dim=0, keepdim=True),
)

mean_pooling.mistake(
    "divided by the norm of the batch",
    "You divide by one norm for the whole batch. Each sentence has its own: take it along the last axis.",
    lambda H, real: _real_mean(H, real) / _real_mean(H, real).norm(),
)

mean_pooling.mistake(
    "divided by the sum",
    "You divide by the sum of the entries. Length one means that their squares sum to one.",
    lambda H, real: _real_mean(H, real) / _real_mean(H, real).sum(-1, keepdim=True),
)

# Counting


@exercise(
    "bert.count_parameters",
    inputs=lambda g: [
        (30522, 512, 2, 768, 3072, 12),
        (30, 8, 3, 4, 12, 2),
        (11, 5, 1, 6, 7, 1),
        (7, 3, 2, 5, 4, 3),
        (1, 1, 1, 1, 1, 1),
        (3, 2, 1, 2, 1, 0),
    ],
)
def count_parameters(vocab: int, length: int, segments: int, d: int, f: int, blocks: int) -> int:
    """How many parameters BERT's encoder has, biases and LayerNorms included: a whole number.

    Three tables and the norm of their sum; the blocks, each with four maps of attention, two of the MLP and
    two norms; a pooler. No head.
    """
    tables = (vocab + length + segments) * d + 2 * d
    attention = 4 * (d * d + d)
    mlp = d * f + f + f * d + d
    norms = 4 * d
    return tables + blocks * (attention + mlp + norms) + d * d + d


def _count_changed(change: Callable[[int, int, int, int, int, int], int]) -> Callable[..., int]:
    """The right number, and what is counted too often or, below zero, forgotten."""
    return lambda *sizes: count_parameters(*sizes) + change(*sizes)


count_parameters.mistake(
    "segments forgotten",
    "The table of segments is missing: a column of length D for each kind of segment.",
    _count_changed(lambda vocab, length, segments, d, f, blocks: -segments * d),
)

count_parameters.mistake(
    "positions forgotten",
    "The positions are learned: a column of length D for each place.",
    _count_changed(lambda vocab, length, segments, d, f, blocks: -length * d),
)

count_parameters.mistake(
    "the embeddings' norm forgotten",
    "There is a norm before the first block, over the sum of the embeddings.",
    _count_changed(lambda vocab, length, segments, d, f, blocks: -2 * d),
)

count_parameters.mistake(
    "the blocks' norms forgotten",
    "The norms of the blocks are missing: two in each, with a gain and a shift for each feature.",
    _count_changed(lambda vocab, length, segments, d, f, blocks: -4 * d * blocks),
)

count_parameters.mistake(
    "the pooler forgotten",
    "The pooler belongs to the encoder: a D by D matrix and a bias.",
    _count_changed(lambda vocab, length, segments, d, f, blocks: -(d * d + d)),
)

count_parameters.mistake(
    "the pooler's bias forgotten",
    "You count the pooler's matrix and not its bias: it computes tanh(W h + b).",
    _count_changed(lambda vocab, length, segments, d, f, blocks: -d),
)

count_parameters.mistake(
    "a pooler in each block",
    "You count the pooler once a block. There is one, after the last.",
    _count_changed(lambda vocab, length, segments, d, f, blocks: (blocks - 1) * (d * d + d)),
)

count_parameters.mistake(
    "the head counted",
    "You count the masked language model's head. It is thrown away after pre-training, and the "
    "published sizes are those of the encoder.",
    _count_changed(lambda vocab, length, segments, d, f, blocks: d * d + 3 * d + vocab),
)

count_parameters.mistake(
    "an output matrix counted",
    "You count a matrix from D to the vocabulary. The head uses the embeddings for it, and is "
    "not part of the encoder.",
    _count_changed(lambda vocab, length, segments, d, f, blocks: vocab * d),
)

count_parameters.mistake(
    "a final norm counted",
    "You count a norm after the last block. With norms after the skips a block ends in one.",
    _count_changed(lambda vocab, length, segments, d, f, blocks: 2 * d),
)

count_parameters.mistake(
    "biases forgotten",
    "The biases of the blocks are missing: each linear map has one, as long as its output.",
    _count_changed(lambda vocab, length, segments, d, f, blocks: -(5 * d + f) * blocks),
)

count_parameters.mistake(
    "output projection forgotten",
    "Attention has four maps: queries, keys, values, and the one that joins the heads.",
    _count_changed(lambda vocab, length, segments, d, f, blocks: -(d * d + d) * blocks),
)
