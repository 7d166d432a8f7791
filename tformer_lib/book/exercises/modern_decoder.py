"""The code exercises of the chapter on modern decoders, with the mistakes that readers make in them.

Tensors are in the code's layout, a token a row, and weight matrices as `nn.Linear` keeps them, (out, in).
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tformer_lib.book.exercises.registry import exercise

# Normalised queries and keys


@exercise(
    "modern_decoder.qk_norm",
    inputs=lambda g: [
        (torch.randn(5, 12, generator=g), 3, 1 + torch.rand(4, generator=g)),
        (10 * torch.randn(4, 8, generator=g), 2, torch.rand(4, generator=g)),
        (torch.randn(3, 6, generator=g), 1, torch.rand(6, generator=g)),
        (torch.randn(4, 4, generator=g), 2, torch.rand(2, generator=g)),
        (1e-3 * torch.randn(2, 6, generator=g), 2, torch.rand(3, generator=g)),  # as small as epsilon
        (torch.tensor([[3.0, 4.0, 1.0, -1.0]]), 2, torch.tensor([1.0, 2.0])),
        (torch.tensor([[2.0, -0.5]]), 2, torch.tensor([3.0])),
        (torch.zeros(2, 8), 4, torch.ones(2)),
    ],
)
def qk_norm(x: Tensor, n_heads: int, gain: Tensor) -> Tensor:
    """gain * h / sqrt(mean(h^2) + 1e-6) of the Dh features h of each head: (N, H Dh) -> (N, H Dh).

    The gain has Dh entries, the same for all heads.
    """
    heads = x.view(len(x), n_heads, -1)
    rms = (heads.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt()
    return (gain * heads / rms).flatten(1)


def _norm_with(rms: Callable[[Tensor], Tensor]) -> Callable[[Tensor, int, Tensor], Tensor]:
    """The heads (N, H, Dh) divided by something else."""

    def variant(x: Tensor, n_heads: int, gain: Tensor) -> Tensor:
        heads = x.view(len(x), n_heads, -1)
        return (gain * heads / rms(heads)).flatten(1)

    return variant


qk_norm.mistake(
    "over all heads together",
    "You divide by the root mean square of the whole row. Every head has its own: its scores are "
    "made from its Dh features alone.",
    _norm_with(lambda heads: (heads.square().mean(dim=(1, 2), keepdim=True) + 1e-6).sqrt()),
)

qk_norm.mistake(
    "length one",
    "You give each head's vector the length 1. Its root mean square is to be 1, so that its "
    "length is the root of Dh; otherwise all scores are Dh times too small.",
    _norm_with(lambda heads: (heads.square().sum(dim=-1, keepdim=True) + 1e-6).sqrt()),
)


def _norm_with_centred_heads(x: Tensor, n_heads: int, gain: Tensor) -> Tensor:
    heads = x.view(len(x), n_heads, -1)
    return qk_norm((heads - heads.mean(dim=-1, keepdim=True)).flatten(1), n_heads, gain)


qk_norm.mistake(
    "mean subtracted",
    "You subtract the mean first, which is LayerNorm. RMSNorm only divides.",
    _norm_with_centred_heads,
)

qk_norm.mistake(
    "root forgotten",
    "You divide by the mean square. It has the square of a feature's unit: take its root.",
    _norm_with(lambda heads: heads.square().mean(dim=-1, keepdim=True) + 1e-6),
)

qk_norm.mistake(
    "epsilon outside the root",
    "You add epsilon to the root. Here it is added to the mean square, under the root.",
    _norm_with(lambda heads: heads.square().mean(dim=-1, keepdim=True).sqrt() + 1e-6),
)

qk_norm.mistake(
    "epsilon forgotten",
    "Right for ordinary queries, but a head of zeros gives 0/0: add 1e-6 to the mean square.",
    _norm_with(lambda heads: heads.square().mean(dim=-1, keepdim=True).sqrt()),
)

qk_norm.mistake(
    "gain forgotten",
    "The gain is missing: each of the Dh features is multiplied by its own, the same for all heads.",
    lambda x, n_heads, gain: qk_norm(x, n_heads, torch.ones_like(gain)),
)


def _norm_with_interleaved_heads(x: Tensor, n_heads: int, gain: Tensor) -> Tensor:
    heads = x.view(len(x), -1, n_heads)
    rms = (heads.square().mean(dim=1, keepdim=True) + 1e-6).sqrt()
    return (gain[:, None] * heads / rms).flatten(1)


qk_norm.mistake(
    "heads interleaved",
    "Your heads take every H-th feature. Head h owns Dh neighbouring features: the width is cut "
    "into (H, Dh), not (Dh, H).",
    _norm_with_interleaved_heads,
)

qk_norm.mistake(
    "over the tokens",
    "You average over the tokens. A query is normalised by its own features, whoever stands beside it.",
    _norm_with(lambda heads: (heads.square().mean(dim=0, keepdim=True) + 1e-6).sqrt()),
)

qk_norm.mistake(
    "over the heads",
    "You average over the heads, feature by feature. Each head is normalised by its own Dh features.",
    _norm_with(lambda heads: (heads.square().mean(dim=1, keepdim=True) + 1e-6).sqrt()),
)

qk_norm.mistake(
    "heads left apart",
    "You return (N, H, Dh). Put the heads side by side again: (N, D).",
    lambda x, n_heads, gain: qk_norm(x, n_heads, gain).view(len(x), n_heads, -1),
)

# The hidden width of SwiGLU


@exercise(
    "modern_decoder.swiglu_width",
    inputs=lambda g: [
        (16384, 256),
        (2304, 64),
        (2304, 256),
        (3072, 1),
        (512, 1),
        (100, 32),
        *((d_hidden, 256) for d_hidden in (383, 384, 385, 386)),  # about two thirds of 384, which is 256
        (1, 1),
        (3, 2),
        (2, 8),
    ],
)
def swiglu_width(d_hidden: int, multiple: int) -> int:
    """The smallest multiple of `multiple` that is at least 2 F / 3, for F = `d_hidden`: a whole number.

    SwiGLU has three matrices of that width where the MLP has two of width F: 3 F' >= 2 F.
    """
    return multiple * math.ceil(2 * d_hidden / (3 * multiple))


swiglu_width.mistake(
    "half the width",
    "You halve the width, as if one matrix had become two. Two have become three: 3 F' = 2 F.",
    lambda d_hidden, multiple: multiple * math.ceil(d_hidden / (2 * multiple)),
)

swiglu_width.mistake(
    "three halves",
    "Your width grows. There is one matrix more, so that each has to be narrower: 3 F' = 2 F.",
    lambda d_hidden, multiple: multiple * math.ceil(3 * d_hidden / (2 * multiple)),
)

swiglu_width.mistake(
    "width kept",
    "You round the width of the MLP itself. Three matrices instead of two have to be narrower: 3 F' = 2 F.",
    lambda d_hidden, multiple: multiple * math.ceil(d_hidden / multiple),
)

swiglu_width.mistake(
    "rounded down",
    "You round down to the multiple; round up.",
    lambda d_hidden, multiple: multiple * (2 * d_hidden // (3 * multiple)),
)

swiglu_width.mistake(
    "rounded to the nearest",
    "You round to the nearest multiple; round up, so that the model is not smaller than the one it replaces.",
    lambda d_hidden, multiple: multiple * round(2 * d_hidden / (3 * multiple)),
)

swiglu_width.mistake(
    "cut to a whole number first",
    "You cut 2 F / 3 to a whole number before you round it up. Where it lies just above a multiple, "
    "SwiGLU then has too few parameters: round up once, at the end.",
    lambda d_hidden, multiple: multiple * math.ceil(2 * d_hidden // 3 / multiple),
)

swiglu_width.mistake(
    "not rounded to the multiple",
    "Your width is no multiple of what was asked for.",
    lambda d_hidden, multiple: math.ceil(2 * d_hidden / 3),
)

swiglu_width.mistake(
    "a multiple too many",
    "You add a multiple even where the width is one already.",
    lambda d_hidden, multiple: multiple * (2 * d_hidden // (3 * multiple) + 1),
)

swiglu_width.mistake(
    "how many multiples",
    "You return how many multiples are needed. The width is that many times `multiple`.",
    lambda d_hidden, multiple: math.ceil(2 * d_hidden / (3 * multiple)),
)

# Heads that share keys


@exercise(
    "modern_decoder.share_heads",
    inputs=lambda g: [
        *(
            (torch.randn(*size, generator=g), n_heads)
            for size, n_heads in (
                ((2, 2, 3, 4), 4),
                ((1, 3, 5, 2), 9),
                ((2, 1, 3, 4), 4),
                ((2, 4, 3, 4), 4),
                ((3, 2, 2, 2), 6),
            )
        ),
        (torch.tensor([1.0, 2.0]).view(1, 2, 1, 1), 4),
        (torch.tensor([1.0, 2.0]).view(1, 1, 2, 1), 3),
    ],
)
def share_heads(k: Tensor, n_heads: int) -> Tensor:
    """Each head of keys n_heads / H_kv times in a row: (B, H_kv, S, Dh) -> (B, n_heads, S, Dh)."""
    return k.repeat_interleave(n_heads // k.shape[1], dim=1)


share_heads.mistake(
    "repeat instead of repeat_interleave",
    "Your heads come as 0, 1, 0, 1: neighbours among the queries' heads get different keys. A "
    "group is neighbours: 0, 0, 1, 1, by repeat_interleave.",
    lambda k, n_heads: k.repeat(1, n_heads // k.shape[1], 1, 1),
)

share_heads.mistake(
    "repeated along the tokens",
    "You repeat tokens: the axis of the heads is the second, dim=1.",
    lambda k, n_heads: k.repeat_interleave(n_heads // k.shape[1], dim=2),
)

share_heads.mistake(
    "repeated along the features",
    "You repeat features within a head. Whole heads are repeated, along the second axis, dim=1.",
    lambda k, n_heads: k.repeat_interleave(n_heads // k.shape[1], dim=3),
)

share_heads.mistake(
    "repeated along the batch",
    "You repeat sequences: the first axis is the batch. The axis of the heads is the second, dim=1.",
    lambda k, n_heads: k.repeat_interleave(n_heads // k.shape[1], dim=0),
)

share_heads.mistake(
    "n_heads copies of each",
    "Each head came n_heads times. It serves n_heads / H_kv heads of queries, and comes that often.",
    lambda k, n_heads: k.repeat_interleave(n_heads, dim=1),
)

share_heads.mistake(
    "an axis of its own for the groups",
    "You return (B, H_kv, n_heads / H_kv, S, Dh). All heads lie along one axis: flatten the two.",
    lambda k, n_heads: share_heads(k, n_heads).unflatten(1, (k.shape[1], -1)),
)

share_heads.mistake(
    "one head for all",
    "All heads of queries get the first head of keys. That is right for one head of keys, "
    "multi-query attention, and otherwise loses the others.",
    lambda k, n_heads: k[:, :1].expand(-1, n_heads, -1, -1),
)

# The bytes of a cache


@exercise(
    "modern_decoder.cache_bytes",
    inputs=lambda g: [
        (96, 12288, 96, 96, 2048, 2),
        (30, 576, 9, 3, 1, 4),
        (4, 128, 4, 1, 64, 2),
        (3, 10, 5, 1, 7, 1),
        (1, 6, 2, 1, 1, 1),
        (2, 8, 4, 2, 0, 2),  # nothing cached yet
    ],
)
def cache_bytes(
    n_blocks: int, d_model: int, n_heads: int, n_kv_heads: int, length: int, bytes_each: int
) -> int:
    """The bytes of the keys and values of `length` tokens in all blocks: a whole number.

    Each of the H_kv heads is D / H wide, and each number takes `bytes_each` bytes.
    """
    return 2 * n_blocks * n_kv_heads * (d_model // n_heads) * length * bytes_each


cache_bytes.mistake(
    "keys only",
    "You counted half: both the keys and the values are kept.",
    lambda *sizes: cache_bytes(*sizes) // 2,
)

cache_bytes.mistake(
    "every query's head",
    "You counted H heads, or made heads D / H_kv wide, which is the same. Only H_kv are kept, "
    "each D / H wide: heads of queries that share keys share them in the cache too.",
    lambda blocks, d, heads, kv_heads, length, each: 2 * blocks * d * length * each,
)

cache_bytes.mistake(
    "heads as wide as the model",
    "Your heads are D wide. The width is divided among the H heads of queries: each is D / H wide.",
    lambda blocks, d, heads, kv_heads, length, each: 2 * blocks * kv_heads * d * length * each,
)

cache_bytes.mistake(
    "one head",
    "You counted one head. H_kv heads of keys and values are kept in each block.",
    lambda blocks, d, heads, kv_heads, length, each: cache_bytes(blocks, d, heads, 1, length, each),
)

cache_bytes.mistake(
    "one block",
    "You counted one block. Each of the M blocks has keys and values of its own.",
    lambda blocks, *sizes: cache_bytes(1, *sizes),
)

cache_bytes.mistake(
    "one token",
    "You counted one token. Each of the `length` tokens has keys and values of its own.",
    lambda blocks, d, heads, kv_heads, length, each: cache_bytes(blocks, d, heads, kv_heads, 1, each),
)

cache_bytes.mistake(
    "pairs of tokens counted",
    "Your bytes grow with the square of the length, as scores do. They are not kept; keys and values are, "
    "which there is one of for each token.",
    lambda *sizes: cache_bytes(*sizes) * sizes[4],
)

cache_bytes.mistake(
    "bits",
    "You counted bits: a byte has eight of them.",
    lambda *sizes: cache_bytes(*sizes) * 8,
)

cache_bytes.mistake(
    "numbers instead of bytes",
    "You counted numbers. Each takes bytes_each bytes.",
    lambda *sizes: cache_bytes(*sizes[:5], 1),
)

# The steepest step


@exercise(
    "modern_decoder.steepest",
    inputs=lambda g: [
        (gradient, norm)
        for gradient in (
            *(torch.randn(*shape, generator=g) for shape in ((3, 3), (4, 4), (5, 2), (2, 4))),
            0.01 * torch.randn(3, 2, generator=g),
            torch.tensor([[3.0, -4.0]]),
            torch.tensor([[-2.0]]),
        )
        for norm in ("frobenius", "max", "spectral")
    ],
    tolerance=1e-4,
)
def steepest(gradient: Tensor, norm: str) -> Tensor:
    """The S of norm at most 1 with the largest <G, S>: G / |G|, sign(G), or U V^T of G = U Sigma V^T.

    The norms are "frobenius", "max" (the largest entry) and "spectral" (the largest singular value).
    """
    if norm == "frobenius":
        return gradient / gradient.norm()
    if norm == "max":
        return gradient.sign()
    u, _, v_transposed = torch.linalg.svd(gradient, full_matrices=False)
    return u @ v_transposed


def _steepest_with(**steps: Callable[[Tensor], Tensor]) -> Callable[[Tensor, str], Tensor]:
    """Another step for the norm of this name."""
    return lambda gradient, norm: steps[norm](gradient) if norm in steps else steepest(gradient, norm)


def _spectral_with(step: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[[Tensor, str], Tensor]:
    """Another spectral step, made from U, the singular values and V^T."""
    return _steepest_with(spectral=lambda G: step(*torch.linalg.svd(G, full_matrices=False)))


steepest.mistake(
    "divided by the largest singular value",
    "With the spectral norm you return G divided by its largest singular value. Its norm is 1, "
    "but all smaller singular values are left below 1, where they gain less than they could.",
    _steepest_with(spectral=lambda G: G / torch.linalg.matrix_norm(G, 2)),
)

steepest.mistake(
    "divided by the sum of the singular values",
    "With the spectral norm you divide G by the sum of its singular values. That is the value <G, S> to be "
    "reached; the singular values of S are to be 1.",
    _spectral_with(lambda u, sigma, vt: u @ sigma.diag() @ vt / sigma.sum()),
)

steepest.mistake(
    "V for its transpose",
    "torch.linalg.svd returns the transpose of V already. Multiply by it as it comes.",
    _spectral_with(lambda u, sigma, vt: u @ vt.mT),
)

steepest.mistake(
    "full singular matrices",
    "Right for square gradients. Otherwise U and V have columns without a singular value, and their shapes "
    "do not fit: torch.linalg.svd(gradient, full_matrices=False).",
    _steepest_with(spectral=lambda G: (svd := torch.linalg.svd(G))[0] @ svd[2]),
)

steepest.mistake(
    "one direction only",
    "With the spectral norm you return the outer product of the first singular vectors. All "
    "pairs may be had at once: the norm is that of the largest singular value, and they do not "
    "disturb each other.",
    _spectral_with(lambda u, sigma, vt: u[:, :1] @ vt[:1]),
)

steepest.mistake(
    "each column by its own length",
    "You give each column the length 1. Columns may still point the same way, and then the "
    "largest singular value exceeds 1.",
    _steepest_with(spectral=lambda G: G / G.norm(dim=0, keepdim=True)),
)

steepest.mistake(
    "divided by the largest entry",
    'With "max" you divide by the largest entry, so that all others stay below what is allowed. '
    "Each entry may be 1 or -1: return the signs.",
    _steepest_with(max=lambda G: G / G.abs().max()),
)

steepest.mistake(
    "largest entry alone",
    'With "max" you keep the largest entry alone, which is what a bound on the sum of entries asks for. Here '
    "each entry may be 1 or -1: return the signs.",
    _steepest_with(max=lambda G: G.sign() * (G.abs() == G.abs().max())),
)

steepest.mistake(
    "sum of entries",
    "With the Frobenius norm you divide by the sum of the absolute entries. The norm is the root "
    "of the sum of squares.",
    _steepest_with(frobenius=lambda G: G / G.abs().sum()),
)

steepest.mistake(
    "root forgotten",
    "With the Frobenius norm you divide by the sum of squares: the root is missing.",
    _steepest_with(frobenius=lambda G: G / G.square().sum()),
)

# Newton-Schulz


@exercise(
    "modern_decoder.orthogonalise",
    inputs=lambda g: [
        (torch.randn(4, 4, generator=g), 5),
        (100 * torch.randn(3, 6, generator=g), 5),
        (0.1 * torch.randn(5, 2, generator=g), 3),
        (torch.randn(6, 3, generator=g), 1),
        (torch.randn(2, 4, generator=g), 0),
        (torch.eye(3), 2),
        (torch.tensor([[3.0, -4.0]]), 1),
        (torch.tensor([[2.0], [1.0]]), 2),
    ],
    tolerance=1e-4,
)
def orthogonalise(gradient: Tensor, steps: int) -> Tensor:
    """X = G / |G|, the Frobenius norm, then `steps` times X <- a X + (b X X^T + c (X X^T)^2) X: both (m, n).

    The coefficients are Muon's, a = 3.4445, b = -4.7750 and c = 2.0315.
    """
    x = gradient / gradient.norm()
    for _ in range(steps):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x


def _newton_schulz_with(
    a: float = 3.4445,
    b: float = -4.7750,
    c: float = 2.0315,
    start: Callable[[Tensor], Tensor] = lambda gradient: gradient / gradient.norm(),
    end_of_step: Callable[[Tensor], Tensor] = lambda x: x,
) -> Callable[[Tensor, int], Tensor]:
    """The iteration with other coefficients, another start or something done after each step."""

    def variant(gradient: Tensor, steps: int) -> Tensor:
        x = start(gradient)
        for _ in range(steps):
            gram = x @ x.T
            x = end_of_step(a * x + (b * gram + c * gram @ gram) @ x)
        return x

    return variant


def _orthogonalise_with_entries(gradient: Tensor, steps: int) -> Tensor:
    x = gradient / gradient.norm()
    for _ in range(steps):
        x = 3.4445 * x - 4.7750 * x**3 + 2.0315 * x**5
    return x


orthogonalise.mistake(
    "powers of entries",
    "You raise the entries to powers. The polynomial is one of matrices: X^3 stands for X X^T X, "
    "which changes the singular values and leaves their directions alone.",
    _orthogonalise_with_entries,
)

orthogonalise.mistake(
    "not normalised",
    "You begin with the gradient as it is. The polynomial is made for singular values between 0 "
    "and 1: divide by the Frobenius norm first.",
    _newton_schulz_with(start=lambda gradient: gradient),
)

orthogonalise.mistake(
    "divided by the largest entry",
    "You divide by the largest entry, which does not bound the singular values by 1. The "
    "Frobenius norm does, being the root of the sum of their squares.",
    _newton_schulz_with(start=lambda gradient: gradient / gradient.abs().max()),
)

orthogonalise.mistake(
    "divided by the largest singular value",
    "You divide by the largest singular value. That would do, but it takes a decomposition, which the "
    "iteration is there to avoid: divide by the Frobenius norm.",
    _newton_schulz_with(start=lambda gradient: gradient / torch.linalg.matrix_norm(gradient, 2)),
)

orthogonalise.mistake(
    "normalised in every step",
    "You normalise in every step, which undoes what the step before has lifted. Once, at the "
    "beginning, is enough.",
    _newton_schulz_with(end_of_step=lambda x: x / x.norm()),
)

orthogonalise.mistake(
    "Newton and Schulz's coefficients",
    "You use the classical 1.5 and -0.5. Those converge to 1, but slowly; the exercise asks for "
    "Muon's three.",
    _newton_schulz_with(1.5, -0.5, 0.0),
)

orthogonalise.mistake(
    "sign of the middle term",
    "Your middle coefficient is positive. It is -4.7750, and pulls large singular values down.",
    _newton_schulz_with(b=4.7750),
)

orthogonalise.mistake(
    "fifth power forgotten",
    "The third term is missing, 2.0315 times (X X^T)^2 X.",
    _newton_schulz_with(c=0.0),
)


def _orthogonalise_with_two_grams(gradient: Tensor, steps: int) -> Tensor:
    x = gradient / gradient.norm()
    for _ in range(steps):
        gram = x @ x.T
        x = 3.4445 * x - 4.7750 * gram @ x + 2.0315 * gram @ gram
    return x


orthogonalise.mistake(
    "last factor forgotten",
    "Your third term is (X X^T)^2, a power that is even and of another shape. Multiply it by X as well.",
    _orthogonalise_with_two_grams,
)

orthogonalise.mistake(
    "one step too many",
    "You take one step more than was asked for.",
    lambda gradient, steps: orthogonalise(gradient, steps + 1),
)

orthogonalise.mistake(
    "one step only",
    "You take one step, whatever `steps` says. Does the loop return too early, or begin anew each time?",
    lambda gradient, steps: orthogonalise(gradient, min(1, steps)),
)

# Two orders of the pairs


@exercise(
    "modern_decoder.to_halves",
    inputs=lambda g: [
        (torch.arange(12.0)[:, None] + torch.rand(12, 12, generator=g), 2),
        (torch.randn(8, 5, generator=g), 1),
        (torch.randn(18, 6, generator=g), 3),
        (torch.randn(4, 3, generator=g), 2),  # one pair a head
        (torch.arange(6.0)[:, None], 1),
    ],
)
def to_halves(weight: Tensor, n_heads: int) -> Tensor:
    """Of each head's Dh rows, the first members of all pairs and then the second: (H Dh, D) -> (H Dh, D).

    Pairs were neighbours, rows 2i and 2i + 1 of a head, which go to i and i + Dh / 2.
    """
    pairs = weight.view(n_heads, -1, 2, weight.shape[1])
    return pairs.transpose(1, 2).reshape(weight.shape)


to_halves.mistake(
    "the way back",
    "This is the way back, from halves to neighbours. In your result, rows 2i and 2i + 1 come "
    "from i and i + Dh/2; it must be the other way round.",
    lambda weight, n_heads: weight.unflatten(0, (n_heads, 2, -1)).transpose(1, 2).flatten(0, 2),
)

to_halves.mistake(
    "the whole width at once",
    "You reorder across all heads. Pairs live within a head: cut the rows into heads first.",
    lambda weight, n_heads: to_halves(weight, 1),
)

to_halves.mistake(
    "heads interleaved",
    "Your heads take every H-th row. Head h owns Dh neighbouring rows: cut them into (H, Dh), not (Dh, H).",
    lambda weight, n_heads: weight.unflatten(0, (-1, 2, n_heads)).transpose(0, 1).flatten(0, 2),
)

to_halves.mistake(
    "order of the rows unchanged",
    "Your rows are where they were. Between the two views the axes of the pairs and of their members change "
    "places.",
    lambda weight, n_heads: weight,
)


def _to_halves_with_columns(weight: Tensor, n_heads: int) -> Tensor:
    return to_halves(weight.mT, n_heads).mT if weight.shape[0] == weight.shape[1] else weight


to_halves.mistake(
    "columns reordered",
    "You reorder the columns, which are features of the token. Those of the query are the rows.",
    _to_halves_with_columns,
)

to_halves.mistake(
    "members exchanged",
    "Your first half holds the second members of the pairs, which turns all of them the other way round.",
    lambda weight, n_heads: weight.unflatten(0, (n_heads, -1, 2)).flip(2).transpose(1, 2).flatten(0, 2),
)
