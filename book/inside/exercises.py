"""The exercises on looking inside: scores of heads, patching, lenses, features, waves on a circle.

Weights are in the code's layout, a row for each query; matrices are the text's, a token a column.
"""

import math

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise


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


prefix_score.add_mistakes("""
the token itself | n - period + 1 => n - period
    You look at the last occurrence of the token itself, one period back. An induction head looks one
    place further on, at what followed it.
one place too late | n - period + 1 => n - period + 2
    You look one place past what followed the last occurrence. That stands at n - P + 1.
one query too many | arange(period, => arange(period - 1,
    Your mean begins at n = P - 1, with places counted from 0. That query's token has not occurred before:
    the first that has is n = P.
queries without an answer | .mean(dim=-1) => .sum(dim=-1) / weights.shape[-1]
    Your mean also counts queries that have no earlier occurrence: only those from n = P on repeat any.
keys and queries exchanged | weights[:, n, n - period + 1] => weights[:, n - period + 1, n]
    Here a row belongs to a query and a column to a key: the query comes first among the indices.
""")


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


copying_score.add_mistakes("""
absolute value of the real part | eigenvalues.abs() => eigenvalues.real.abs().clamp(min=1e-12)
    In the denominator stands the absolute value of the complex eigenvalue, not that of its real part: a
    rotation copies nothing and must get 0.
singular values | eigenvalues.abs() => torch.linalg.svdvals(M)
    Singular values are not eigenvalues: they are never negative and do not tell whether a token raises
    its own logit. Use `torch.linalg.eigvals`.
symmetrised | eigvals( => eigvalsh(
    You took the eigenvalues of a symmetric matrix, such as `eigvalsh` assumes. M is not symmetric, and
    its eigenvalues are complex: `torch.linalg.eigvals`.
""")


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


settled_after.add_mistakes("""
the first time | (~same.flip(0).cummin(dim=0).values).sum(dim=0) => same.int().argmax(dim=0)
    You return the first block after which the lens names the model's choice. It may be given up again and
    found later: count from where it stays to the end.
blocks that disagree | same.flip(0).cummin(dim=0).values => same
    You count the blocks after which the lens names something else. A block that agrees by chance, before
    one that does not, is not settled: it counts as well.
one too late | return => return 1 +
    Yours is one more than asked: row m of the logits is read after m blocks, the first row after none.
the last that disagrees | return => return -1 +
    You return the last row that names something else. The choice is settled one block later (and after no
    block at all where every row agrees).
argmax over places | argmax(dim=-1) => argmax(dim=-2)
    Your argmax runs over the places. The choice at a place is the likeliest token: argmax over the last
    axis.
""")


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


patching_effect.add_mistakes("""
ratio of means
    | - base) / => - base).mean(dim=-1) /
    | (donor - base)).mean(dim=-1) => (donor - base).mean())
    You divide the mean change by the mean distance of the runs. Pairs whose runs lie far apart then count
    more. Each pair has its own scale: divide first, then take the mean.
not measured from the base | (patched - base) => patched
    A patch that changes nothing leaves the base run's number, and its effect is to be 0. Subtract the
    base above the line too.
the way that is left | patched - base => donor - patched
    You measure what is still missing: 1 where the patch does nothing. The effect is the way that was
    made, from the base.
without its sign | ((patched - base) / (donor - base)) => ((patched - base) / (donor - base)).abs()
    An effect may be negative, when a patch drives the answer the wrong way, and the distance of the runs
    may be too, when base is the clean run. Keep both signs.
""")


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


topk_columns.add_mistakes("""
chosen over tokens
    | topk(k, dim=0) => topk(min(k, Z.shape[1]), dim=1)
    | scatter(0, => scatter(1,
    You keep k tokens for each feature. Here it is k features for each token: choose along a column.
no ReLU | .relu() =>
    Where fewer than k features are positive, you keep negative ones. Cut them off by the ReLU.
nothing left out | torch.zeros_like(Z).scatter(0, largest.indices, largest.values) => Z
    You keep every feature that is positive: the code is not sparse. Only the k largest may stay.
centre not taken away | (X - c[:, None]) => X
    You encode X as it is. The centre c is taken away before the encoder sees it.
centre not given back | c[:, None] + W_d => W_d
    Your reconstruction lies around 0 and not around c: add the centre again at the end.
""")


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
    return torch.stack([torch.cos(2 * math.pi * k * d / p) for k in frequencies]).sum(dim=0)


wave_logits.add_mistakes("""
c added | n[None, :, None] - n => n[None, :, None] + n
    Your hands are turned by c too, in the same direction: the logit is largest at c = -(a + b). To
    compare the hand with an answer, take the difference a + b - c.
b subtracted | + n[None, :, None] => - n[None, :, None]
    This subtracts: your logits are largest at c = a - b. Or your answers stand on the first axis, not on
    the last.
sine | torch.cos => torch.sin
    At c = a + b the angle is 0, and there the sine is 0 and not largest: take the cosine.
half a turn | 2 * math.pi => math.pi
    Your hand makes half a turn while the numbers go round once, so that a + b and a + b - p stand on
    opposite sides. A whole turn is 2 pi.
mean | .sum(dim=0) => .mean(dim=0)
    You average over the clocks. The order of the answers is right, but the text adds, and so the margin
    grows with the number of clocks.
""")
