"""The exercises on looking inside: scores of heads, patching, lenses, features, waves on a circle.

Weights are in the code's layout, a row for each query; matrices are the text's, a token a column.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise

# Prefix matching


def _weights(g: torch.Generator, n: int, heads: int = 2) -> Tensor:
    """Causal attention weights (heads, n, n) at random."""
    scores = 2 * torch.randn(heads, n, n, generator=g)
    seen = torch.ones(n, n, dtype=torch.bool).tril()
    return scores.masked_fill(~seen, -torch.inf).softmax(dim=-1)


@exercise(
    "inside.prefix_score",
    inputs=lambda g: [
        (_weights(g, n, heads), period)
        for n, heads, period in ((8, 2, 4), (9, 3, 3), (7, 1, 6), (6, 2, 1), (10, 2, 5))
    ],
)
def prefix_score(weights: Tensor, period: int) -> Tensor:
    """(H,): mean over the queries n >= P, counted from 0, of the weight on place n - P + 1."""
    n = torch.arange(period, len(weights[0]))
    return weights[:, n, n - period + 1].mean(dim=-1)


def _prefix_at(
    offset: Callable[[Tensor, int], Tensor], first: Callable[[int], int] = lambda period: period
) -> Callable[[Tensor, int], Tensor]:
    """The mean weight on another place, or over other queries."""

    def variant(weights: Tensor, period: int) -> Tensor:
        n = torch.arange(first(period), weights.shape[-1])
        return weights[:, n, offset(n, period)].mean(dim=-1)

    return variant


prefix_score.mistake(
    "the token itself",
    "You look at the last occurrence of the token itself, one period back. An induction head looks one "
    "place further on, at what followed it.",
    _prefix_at(lambda n, period: n - period),
)

prefix_score.mistake(
    "one place too early",
    "You look at the place before the last occurrence. What followed it is one place after it, at n - P + 1.",
    _prefix_at(lambda n, period: n - period - 1),
)

prefix_score.mistake(
    "one place too late",
    "You look one place past what followed the last occurrence. That stands at n - P + 1.",
    _prefix_at(lambda n, period: n - period + 2),
)

prefix_score.mistake(
    "one query too many",
    "Your mean begins at n = P - 1, with places counted from 0. That query's token has not occurred before: "
    "the first that has is n = P.",
    _prefix_at(lambda n, period: n - period + 1, lambda period: period - 1),
)

prefix_score.mistake(
    "one query too few",
    "Your mean leaves out the first query that has an earlier occurrence: n = P, with places counted from 0.",
    _prefix_at(lambda n, period: n - period + 1, lambda period: period + 1),
)

prefix_score.mistake(
    "queries without an answer",
    "Your mean also counts queries that have no earlier occurrence: only those from n = P on repeat any.",
    lambda weights, period: (
        prefix_score(weights, period) * max(weights.shape[-1] - period, 0) / weights.shape[-1]
    ),
)

prefix_score.mistake(
    "keys and queries exchanged",
    "Here a row belongs to a query and a column to a key: the query comes first among the indices.",
    lambda weights, period: prefix_score(weights.mT, period),
)

prefix_score.mistake(
    "heads averaged",
    "The score is a number for each head: take the mean over queries and leave the heads apart.",
    lambda weights, period: prefix_score(weights, period).mean(),
)

# Copying


def _circuits(g: torch.Generator) -> list[tuple[Tensor]]:
    found = []
    for vocab, width, head in ((6, 5, 2), (7, 7, 3), (9, 4, 4)):
        E = torch.randn(width, vocab, generator=g)
        W = torch.randn(width, head, generator=g) @ torch.randn(head, width, generator=g)
        U = torch.randn(vocab, width, generator=g)
        found.append((U @ W @ E,))
    copying = torch.diag(torch.rand(5, generator=g)) + 0.1 * torch.randn(5, 5, generator=g)
    turns = [torch.tensor(rows) for rows in ([[0.0, -1.0], [1.0, 0.0]], [[1.0, -2.0], [2.0, 1.0]])]
    return [*found, (copying,), (-copying,), *((turn,) for turn in turns), (torch.eye(3),)]


@exercise("inside.copying_score", inputs=_circuits, tolerance=1e-4)
def copying_score(M: Tensor) -> Tensor:
    """Sum of the real parts of M's eigenvalues over the sum of their absolute values; M is (V, V)."""
    eigenvalues = torch.linalg.eigvals(M.double())
    return (eigenvalues.real.sum() / eigenvalues.abs().sum()).float()


copying_score.mistake(
    "absolute value of the real part",
    "In the denominator stands the absolute value of the complex eigenvalue, not that of its real part: a "
    "rotation copies nothing and must get 0.",
    lambda M: (lambda v: (v.real.sum() / v.real.abs().sum().clamp(min=1e-12)).float())(
        torch.linalg.eigvals(M.double())
    ),
)

copying_score.mistake(
    "sum of the absolute entries",
    "You divide the trace by the entries of M. In the denominator stand the absolute values of its "
    "eigenvalues.",
    lambda M: M.trace() / M.abs().sum(),
)

copying_score.mistake(
    "singular values",
    "Singular values are not eigenvalues: they are never negative and do not tell whether a token raises its "
    "own logit. Use `torch.linalg.eigvals`.",
    lambda M: M.trace() / torch.linalg.svdvals(M).sum(),
)

copying_score.mistake(
    "eigenvalues counted",
    "You count the eigenvalues with a positive real part. The score weighs them: the sum of real parts over "
    "the sum of absolute values.",
    lambda M: (lambda v: (v.real > 1e-9).double().mean().float())(torch.linalg.eigvals(M.double())),
)

copying_score.mistake(
    "not divided",
    "That is the sum of the real parts, which is the trace. Divide it by the sum of the absolute values, so "
    "that the score lies between -1 and 1.",
    lambda M: M.trace(),
)

copying_score.mistake(
    "symmetrised",
    "You took the eigenvalues of a symmetric matrix, such as `eigvalsh` assumes. M is not symmetric, and its "
    "eigenvalues are complex: `torch.linalg.eigvals`.",
    lambda M: (lambda v: (v.sum() / v.abs().sum()).float())(torch.linalg.eigvalsh(M.double())),
)

# Lenses


def _lens_inputs(g: torch.Generator) -> list[tuple]:
    made = [
        torch.randn(*shape, generator=g)
        for shape in ((5, 8, 3), (5, 8, 2), (4, 6, 3), (2, 6, 2), (1, 4, 5), (3, 1, 4), (6, 10, 2))
    ]
    steady = torch.randn(1, 5, 4, generator=g).expand(4, 5, 4) * torch.tensor([1.0, 2, 3, 4])[:, None, None]
    there_and_back = torch.zeros(4, 2, 3)
    there_and_back[[0, 1, 3], 0, 2] = 1.0  # found at once, given up after two blocks, found again
    there_and_back[2, 0, 0] = 1.0
    there_and_back[:3, 1, 0] = 1.0  # found by the last block only
    there_and_back[3, 1, 1] = 1.0
    return [(x,) for x in (*made, steady, there_and_back)]


@exercise("inside.settled_after", inputs=_lens_inputs)
def settled_after(logits: Tensor) -> Tensor:
    """Whole numbers (N,): after how many blocks the model's own choice is the lens's, and stays it.

    `logits` (M + 1, N, vocab) are the lens's after 0, 1, ..., M blocks; the last are the model's.
    """
    same = logits.argmax(dim=-1) == logits[-1].argmax(dim=-1)  # (M + 1, N)
    return (~same.flip(0).cummin(dim=0).values).sum(dim=0)


def _same(logits: Tensor) -> Tensor:
    return logits.argmax(dim=-1) == logits[-1].argmax(dim=-1)


settled_after.mistake(
    "the first time",
    "You return the first block after which the lens names the model's choice. It may be given up again "
    "and found later: count from where it stays to the end.",
    lambda logits: _same(logits).int().argmax(dim=0),
)

settled_after.mistake(
    "blocks that disagree",
    "You count the blocks after which the lens names something else. A block that agrees by chance, before "
    "one that does not, is not settled: it counts as well.",
    lambda logits: (~_same(logits)).sum(dim=0),
)

settled_after.mistake(
    "blocks left",
    "You count how many blocks there are from the settled one to the end. Asked is how many there "
    "were before.",
    lambda logits: _same(logits).flip(0).cummin(dim=0).values.sum(dim=0) - 1,
)

settled_after.mistake(
    "rows that agree",
    "You count the rows of logits that agree up to the end, the last one included. Asked is how many blocks "
    "come before them.",
    lambda logits: _same(logits).flip(0).cummin(dim=0).values.sum(dim=0),
)

settled_after.mistake(
    "one too late",
    "Yours is one more than asked: row m of the logits is read after m blocks, the first row after none.",
    lambda logits: settled_after(logits) + 1,
)

settled_after.mistake(
    "the last that disagrees",
    "You return the last row that names something else. The choice is settled one block later (and after no "
    "block at all where every row agrees).",
    lambda logits: settled_after(logits) - 1,
)

settled_after.mistake(
    "from the start",
    "You ask how long the rows agree from the first one on. The choice has to stay until the last.",
    lambda logits: (~_same(logits).cummin(dim=0).values).sum(dim=0),
)

settled_after.mistake(
    "compared with the row before",
    "You count how often the lens changes its mind from a row to the next. Compare each row with the last, "
    "place by place.",
    lambda logits: (logits.argmax(dim=-1)[1:] != logits.argmax(dim=-1)[:-1]).sum(dim=0),
)

settled_after.mistake(
    "argmax over places",
    "Your argmax runs over the places. The choice at a place is the likeliest token: argmax over "
    "the last axis.",
    lambda logits: settled_after(logits.transpose(1, 2)),
)

settled_after.mistake(
    "shares instead of blocks",
    "You return for each block the share of places that are settled. Asked is, for each place, a number of "
    "blocks.",
    lambda logits: _same(logits).flip(0).cummin(dim=0).values.flip(0).float().mean(dim=1),
)

# The share of the way that a patch goes


def _patching_inputs(g: torch.Generator) -> list[tuple]:
    def draw(layers: int, places: int, pairs: int) -> tuple:
        patched = 3 * torch.randn(layers, places, pairs, generator=g)
        base = -4 + torch.rand(pairs, generator=g)
        way = 1 + 9 * torch.rand(pairs, generator=g)  # pairs differ in how far their runs lie apart
        return patched, base, base + way

    patched, base, donor = draw(2, 4, 6)
    return [draw(3, 5, 4), draw(2, 2, 2), draw(1, 3, 5), draw(4, 4, 4), (patched, donor, base), draw(2, 3, 1)]


@exercise("inside.patching_effect", inputs=_patching_inputs)
def patching_effect(patched: Tensor, base: Tensor, donor: Tensor) -> Tensor:
    """Mean over pairs of (patched - base) / (donor - base): (L, N, B), (B,), (B,) -> (L, N)."""
    return ((patched - base) / (donor - base)).mean(dim=-1)


patching_effect.mistake(
    "ratio of means",
    "You divide the mean change by the mean distance of the runs. Pairs whose runs lie far apart then count "
    "more. Each pair has its own scale: divide first, then take the mean.",
    lambda patched, base, donor: (patched - base).mean(dim=-1) / (donor - base).mean(),
)

patching_effect.mistake(
    "not measured from the base",
    "A patch that changes nothing leaves the base run's number, and its effect is to be 0. Subtract the base "
    "above the line too.",
    lambda patched, base, donor: (patched / (donor - base)).mean(dim=-1),
)

patching_effect.mistake(
    "divided by the donor's number",
    "If the patch carries everything over, the effect is to be 1. What is then changed is donor - base, not "
    "the donor's number.",
    lambda patched, base, donor: ((patched - base) / donor).mean(dim=-1),
)

patching_effect.mistake(
    "the way that is left",
    "You measure what is still missing: 1 where the patch does nothing. The effect is the way that was made, "
    "from the base.",
    lambda patched, base, donor: ((donor - patched) / (donor - base)).mean(dim=-1),
)

patching_effect.mistake(
    "without its sign",
    "An effect may be negative, when a patch drives the answer the wrong way, and the distance of the runs "
    "may be too, when base is the clean run. Keep both signs.",
    lambda patched, base, donor: ((patched - base) / (donor - base)).abs().mean(dim=-1),
)

patching_effect.mistake(
    "held between 0 and 1",
    "An effect may lie below 0 or above 1: a patch can do harm, or overshoot. Cutting it off there hides it.",
    lambda patched, base, donor: ((patched - base) / (donor - base)).clamp(0, 1).mean(dim=-1),
)

patching_effect.mistake(
    "only the sign of the distance lost",
    "With the clean run as base, donor - base is negative, and so is the change that a noising patch makes. "
    "The ratio is positive if the signs stay as they are.",
    lambda patched, base, donor: ((patched - base) / (donor - base).abs()).mean(dim=-1),
)

patching_effect.mistake(
    "not averaged",
    "You return a number for every pair. Take the mean over the pairs, which lie along the last axis.",
    lambda patched, base, donor: (patched - base) / (donor - base),
)

patching_effect.mistake(
    "summed",
    "You add the pairs up. An effect of 1 should stay 1, however many pairs there are: take their mean.",
    lambda patched, base, donor: ((patched - base) / (donor - base)).sum(dim=-1),
)

patching_effect.mistake(
    "averaged over places",
    "You average over an axis of the grid. Layers and places stay; pairs lie along the last axis.",
    lambda patched, base, donor: ((patched - base) / (donor - base)).mean(dim=1),
)

# Sparse autoencoders


def _autoencoder_inputs(g: torch.Generator) -> list[tuple]:
    def draw(d: int, features: int, n: int, k: int, shift: float = 0.0) -> tuple:
        X, W_e = torch.randn(d, n, generator=g), torch.randn(features, d, generator=g)
        b, W_d = torch.randn(features, generator=g) + shift, torch.randn(d, features, generator=g)
        return X, W_e, b, W_d, torch.randn(d, generator=g), k

    return [
        draw(3, 8, 5, 2),
        draw(4, 6, 6, 3),
        draw(2, 5, 3, 5),  # all may be kept
        draw(3, 7, 4, 4, shift=-2.0),  # fewer than k are positive
        draw(3, 7, 1, 2),
        draw(5, 5, 8, 1),
        draw(3, 6, 4, 6, shift=-9.0),  # none is
        draw(1, 4, 4, 2),
    ]


@exercise("inside.topk_columns", inputs=_autoencoder_inputs)
def topk_columns(X: Tensor, W_e: Tensor, b: Tensor, W_d: Tensor, c: Tensor, k: int) -> Tensor:
    """c + W_d Z for the tokens (D, N) of X, with Z the k largest entries in each column of
    ReLU(W_e (X - c) + b), where they stand, and 0 elsewhere.
    """
    Z = (W_e @ (X - c[:, None]) + b[:, None]).relu()
    largest = Z.topk(k, dim=0)
    Z = torch.zeros_like(Z).scatter(0, largest.indices, largest.values)
    return c[:, None] + W_d @ Z


def _kept(Z: Tensor, k: int, dim: int = 0) -> Tensor:
    largest = Z.topk(min(k, Z.shape[dim]), dim=dim)
    return torch.zeros_like(Z).scatter(dim, largest.indices, largest.values)


def _with(
    code: Callable[[Tensor, int], Tensor] = lambda Z, k: _kept(Z.relu(), k),
    into: Callable[[Tensor, Tensor], Tensor] = lambda X, c: X - c,
    back: Callable[[Tensor, Tensor], Tensor] = lambda Y, c: c + Y,
) -> Callable[..., Tensor]:
    """The autoencoder with another code, or another use of the centre."""

    def variant(X: Tensor, W_e: Tensor, b: Tensor, W_d: Tensor, c: Tensor, k: int) -> Tensor:
        return back(W_d @ code(W_e @ into(X, c[:, None]) + b[:, None], k), c[:, None])

    return variant


def _by_threshold_of_all(Z: Tensor, k: int) -> Tensor:
    flat = Z.relu().flatten()
    return _kept(flat, k * Z.shape[1]).view_as(Z)


topk_columns.mistake(
    "chosen over tokens",
    "You keep k tokens for each feature. Here it is k features for each token: choose along a column.",
    _with(code=lambda Z, k: _kept(Z.relu(), k, dim=1)),
)

topk_columns.mistake(
    "chosen over the whole batch",
    "You keep the k N largest of the whole batch, so that some tokens get more than k features and others "
    "fewer. Keep k in each column.",
    _with(code=_by_threshold_of_all),
)

topk_columns.mistake(
    "no ReLU",
    "Where fewer than k features are positive, you keep negative ones. Cut them off by the ReLU.",
    _with(code=_kept),
)

topk_columns.mistake(
    "largest in absolute value",
    "You choose the features that are largest in absolute value, and the negative among them then take a "
    "place and add nothing. Apply the ReLU before you choose.",
    _with(code=lambda Z, k: torch.zeros_like(Z).scatter(0, Z.abs().topk(k, 0).indices, 1.0) * Z.relu()),
)

topk_columns.mistake(
    "ones in place of the values",
    "Your code says which features are on, not how strongly. Keep their values.",
    _with(code=lambda Z, k: (_kept(Z.relu(), k) > 0).float()),
)

topk_columns.mistake(
    "nothing left out",
    "You keep every feature that is positive: the code is not sparse. Only the k largest may stay.",
    _with(code=lambda Z, k: Z.relu()),
)

topk_columns.mistake(
    "one too few",
    "You keep k - 1 features of each token: k of them may stay, the k-th largest among them.",
    _with(code=lambda Z, k: _kept(Z.relu(), k - 1)),
)

topk_columns.mistake(
    "centre not taken away",
    "You encode X as it is. The centre c is taken away before the encoder sees it.",
    _with(into=lambda X, c: X),
)

topk_columns.mistake(
    "centre not given back",
    "Your reconstruction lies around 0 and not around c: add the centre again at the end.",
    _with(back=lambda Y, c: Y),
)

topk_columns.mistake(
    "centre forgotten",
    "The centre c is missing twice: it is taken away before the encoder and added after the decoder.",
    _with(into=lambda X, c: X, back=lambda Y, c: Y),
)

topk_columns.mistake(
    "bias forgotten",
    "You leave out the encoder's bias b, which decides how strongly a feature must be there to be seen.",
    lambda X, W_e, b, W_d, c, k: topk_columns(X, W_e, torch.zeros_like(b), W_d, c, k),
)

topk_columns.mistake(
    "encoder transposed for a decoder",
    "You decode by the encoder's transpose. The decoder W_d is a matrix of its own.",
    lambda X, W_e, b, W_d, c, k: topk_columns(X, W_e, b, W_e.T, c, k),
)

# Addition by waves


def _clocks(
    *,
    angle: Callable[[Tensor, Tensor, Tensor], Tensor] = lambda a, b, c: a + b - c,
    wave: Callable[[Tensor], Tensor] = torch.cos,
    turn: float = 2 * math.pi,
    mean: bool = False,
    squared: bool = False,
    product: bool = False,
) -> Callable[[int, list[int]], Tensor]:
    """The logits from another angle, another wave, another way to bring the clocks together."""

    def variant(p: int, frequencies: list[int]) -> Tensor:
        n = torch.arange(p)
        turned = angle(n[:, None, None], n[None, :, None], n[None, None, :])
        said = torch.stack([wave(turn * k * turned / p) for k in frequencies])
        if squared:
            said = said.square()
        if product:
            return said.prod(dim=0)
        return said.mean(dim=0) if mean else said.sum(dim=0)

    return variant


@exercise(
    "inside.wave_logits",
    inputs=lambda g: [
        (5, [1]),
        (5, [1, 2]),
        (7, [2, 3]),
        (12, [3, 4]),
        (9, torch.randint(1, 5, (3,), generator=g).tolist()),
        (1, [0]),
        (4, [2]),
    ],
    tolerance=1e-4,
)
def wave_logits(p: int, frequencies: list[int]) -> Tensor:
    """logits[a, b, c] = the sum over the frequencies k of cos(2 pi k (a + b - c) / p): (p, p, p)."""
    n = torch.arange(p)
    d = n[:, None, None] + n[None, :, None] - n  # a + b - c
    return sum(torch.cos(2 * math.pi * k * d / p) for k in frequencies) + torch.zeros(p, p, p)


wave_logits.mistake(
    "c added",
    "Your hands are turned by c too, in the same direction: the logit is largest at c = -(a + b). "
    "To compare the hand with an answer, take the difference a + b - c.",
    _clocks(angle=lambda a, b, c: a + b + c),
)

wave_logits.mistake(
    "b subtracted",
    "This subtracts: your logits are largest at c = a - b. Or your answers stand on the first axis, not "
    "on the last.",
    _clocks(angle=lambda a, b, c: a - b - c),
)

wave_logits.mistake(
    "sine",
    "At c = a + b the angle is 0, and there the sine is 0 and not largest: take the cosine.",
    _clocks(wave=torch.sin),
)

wave_logits.mistake(
    "half a turn",
    "Your hand makes half a turn while the numbers go round once, so that a + b and a + b - p stand on "
    "opposite sides. A whole turn is 2 pi.",
    _clocks(turn=math.pi),
)

wave_logits.mistake(
    "degrees",
    "The angles look like degrees. A whole turn is 2 pi for `torch.cos`, not 360.",
    _clocks(turn=360.0),
)

wave_logits.mistake(
    "mean",
    "You average over the clocks. The order of the answers is right, but the text adds, and so the margin "
    "grows with the number of clocks.",
    _clocks(mean=True),
)

wave_logits.mistake(
    "product",
    "You multiply what the clocks say. Two clocks that both say -1 would then agree on a wrong answer; add.",
    _clocks(product=True),
)

wave_logits.mistake(
    "squared",
    "Squared, a cosine of -1 counts as much as one of 1.",
    _clocks(squared=True),
)

wave_logits.mistake(
    "first clock alone",
    "Only the first of the frequencies is used.",
    lambda p, frequencies: wave_logits(p, frequencies[:1]),
)
