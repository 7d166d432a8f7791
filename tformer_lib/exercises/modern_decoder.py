"""The code exercises of the chapter on modern decoders, with the mistakes that readers make."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tformer_lib.exercises.checker import Exercise, Mistake, register

# Normalised queries and keys


def _qk_norm(x: Tensor, n_heads: int, gain: Tensor) -> Tensor:
    heads = x.unflatten(-1, (n_heads, -1))
    rms = (heads.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt()
    return (gain * heads / rms).flatten(-2)


def _whole_width(x: Tensor, n_heads: int, gain: Tensor) -> Tensor:
    rms = (x.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt()
    return (gain * (x / rms).unflatten(-1, (n_heads, -1))).flatten(-2)


def _unit_length(x: Tensor, n_heads: int, gain: Tensor) -> Tensor:
    heads = x.unflatten(-1, (n_heads, -1))
    return (gain * heads / (heads.square().sum(dim=-1, keepdim=True) + 1e-6).sqrt()).flatten(-2)


def _centred(x: Tensor, n_heads: int, gain: Tensor) -> Tensor:
    heads = x.unflatten(-1, (n_heads, -1))
    return _qk_norm((heads - heads.mean(dim=-1, keepdim=True)).flatten(-2), n_heads, gain)


def _interleaved(x: Tensor, n_heads: int, gain: Tensor) -> Tensor:
    heads = x.unflatten(-1, (-1, n_heads))
    rms = (heads.square().mean(dim=-2, keepdim=True) + 1e-6).sqrt()
    return (gain[:, None] * heads / rms).flatten(-2)


def _over_tokens(x: Tensor, n_heads: int, gain: Tensor) -> Tensor:
    heads = x.unflatten(-1, (n_heads, -1))
    rms = (heads.square().mean(dim=-3, keepdim=True) + 1e-6).sqrt()
    return (gain * heads / rms).flatten(-2)


register(
    Exercise(
        name="modern_decoder.qk_norm",
        reference=_qk_norm,
        inputs=lambda g: [
            (torch.randn(5, 12, generator=g), 3, 1 + torch.rand(4, generator=g)),
            (10 * torch.randn(4, 8, generator=g), 2, torch.ones(4)),
            (torch.randn(3, 6, generator=g), 1, torch.rand(6, generator=g)),
            (torch.zeros(2, 8), 4, torch.ones(2)),
        ],
        mistakes=(
            Mistake(
                "over all heads together",
                "You divide by the root mean square of the whole row. Every head has its own: its scores are "
                "made from its Dh features alone.",
                _whole_width,
            ),
            Mistake(
                "length one",
                "You give each head's vector the length 1. Its root mean square is to be 1, so that its "
                "length is the root of Dh; otherwise all scores are Dh times too small.",
                _unit_length,
            ),
            Mistake(
                "mean subtracted",
                "You subtract the mean first, which is LayerNorm. RMSNorm only divides.",
                _centred,
            ),
            Mistake(
                "gain forgotten",
                "The gain is missing: each of the Dh features is multiplied by its own, the same for all "
                "heads.",
                lambda x, n_heads, gain: _qk_norm(x, n_heads, torch.ones_like(gain)),
            ),
            Mistake(
                "heads cut the wrong way",
                "Your heads take every H-th feature. Head h owns Dh neighbouring features: the width is cut "
                "into (H, Dh), not (Dh, H).",
                _interleaved,
            ),
            Mistake(
                "over the tokens",
                "You average over the tokens. A query is normalised by its own features, whoever stands "
                "beside it.",
                _over_tokens,
            ),
        ),
    )
)

# The hidden width of SwiGLU


def _swiglu_width(
    share: float = 2 / 3, rounded: Callable[[float], int] = lambda x: math.ceil(x - 1e-9)
) -> Callable[[int, int], int]:
    return lambda d_hidden, multiple: multiple * rounded(share * d_hidden / multiple)


register(
    Exercise(
        name="modern_decoder.swiglu_width",
        reference=_swiglu_width(),
        inputs=lambda g: [(16384, 256), (2304, 64), (2304, 256), (3072, 1), (512, 1), (100, 32)],
        mistakes=(
            Mistake(
                "half the width",
                "You halve the width, as if one matrix had become two. Two have become three: 3 F' = 2 F.",
                _swiglu_width(1 / 2),
            ),
            Mistake(
                "three halves",
                "Your width grows. There is one matrix more, so that each has to be narrower: 3 F' = 2 F.",
                _swiglu_width(3 / 2),
            ),
            Mistake(
                "rounded down",
                "You round down to the multiple; round up.",
                _swiglu_width(rounded=lambda x: math.floor(x + 1e-9)),
            ),
            Mistake(
                "rounded to the nearest",
                "You round to the nearest multiple; round up, so that the model is not smaller than the one "
                "it replaces.",
                _swiglu_width(rounded=round),
            ),
            Mistake(
                "not rounded to the multiple",
                "Your width is no multiple of what was asked for.",
                lambda d_hidden, multiple: math.ceil(2 * d_hidden / 3),
            ),
            Mistake(
                "a multiple too many",
                "You add a multiple even where the width is one already.",
                _swiglu_width(rounded=lambda x: math.floor(x + 1e-9) + 1),
            ),
        ),
    )
)

# Heads that share keys


def _share_heads(k: Tensor, n_heads: int) -> Tensor:
    return k.repeat_interleave(n_heads // k.shape[1], dim=1)


register(
    Exercise(
        name="modern_decoder.share_heads",
        reference=_share_heads,
        inputs=lambda g: [
            (torch.randn(2, 2, 3, 4, generator=g), 4),
            (torch.randn(1, 3, 5, 2, generator=g), 9),
            (torch.randn(2, 1, 3, 4, generator=g), 4),
            (torch.randn(2, 4, 3, 4, generator=g), 4),
        ],
        mistakes=(
            Mistake(
                "repeat instead of repeat_interleave",
                "Your heads come as 0, 1, 0, 1: neighbours among the queries' heads get different keys. A "
                "group is neighbours: 0, 0, 1, 1, by repeat_interleave.",
                lambda k, n_heads: k.repeat(1, n_heads // k.shape[1], 1, 1),
            ),
            Mistake(
                "repeated along the tokens",
                "You repeat tokens: the axis of the heads is the second, dim=1.",
                lambda k, n_heads: k.repeat_interleave(n_heads // k.shape[1], dim=2),
            ),
            Mistake(
                "n_heads copies of each",
                "Each head came n_heads times. It serves n_heads / H_kv heads of queries, and comes that "
                "often.",
                lambda k, n_heads: k.repeat_interleave(n_heads, dim=1),
            ),
            Mistake(
                "one head for all",
                "All heads of queries get the first head of keys. That is right for one head of keys, "
                "multi-query attention, and otherwise loses the others.",
                lambda k, n_heads: k[:, :1].expand(-1, n_heads, -1, -1),
            ),
        ),
    )
)

# The bytes of a cache


def _cache_bytes(
    both: int = 2, shared: bool = True, blocks: bool = True, each: int = 1
) -> Callable[..., int]:
    def count(
        n_blocks: int, d_model: int, n_heads: int, n_kv_heads: int, length: int, bytes_each: int
    ) -> int:
        heads = n_kv_heads if shared else n_heads
        return both * (n_blocks if blocks else 1) * heads * (d_model // n_heads) * length * bytes_each * each

    return count


register(
    Exercise(
        name="modern_decoder.cache_bytes",
        reference=_cache_bytes(),
        inputs=lambda g: [(96, 12288, 96, 96, 2048, 2), (30, 576, 9, 3, 1, 4), (4, 128, 4, 1, 64, 2)],
        mistakes=(
            Mistake(
                "keys only",
                "You counted half: both the keys and the values are kept.",
                _cache_bytes(both=1),
            ),
            Mistake(
                "every query's head",
                "You counted H heads, or made heads D / H_kv wide, which is the same. Only H_kv are kept, "
                "each D / H wide: heads of queries that share keys share them in the cache too.",
                _cache_bytes(shared=False),
            ),
            Mistake(
                "one block",
                "You counted one block. Each of the M blocks has keys and values of its own.",
                _cache_bytes(blocks=False),
            ),
            Mistake("bits", "You counted bits: a byte has eight of them.", _cache_bytes(each=8)),
            Mistake(
                "numbers instead of bytes",
                "You counted numbers. Each takes bytes_each bytes.",
                lambda m, d, h, g, n, b: _cache_bytes()(m, d, h, g, n, 1),
            ),
        ),
    )
)

# The steepest step


def _steepest(gradient: Tensor, norm: str) -> Tensor:
    if norm == "frobenius":
        return gradient / gradient.norm()
    if norm == "max":
        return gradient.sign()
    u, _, vh = torch.linalg.svd(gradient, full_matrices=False)
    return u @ vh


def _spectral(step: Callable[[Tensor], Tensor]) -> Callable[[Tensor, str], Tensor]:
    return lambda gradient, norm: step(gradient) if norm == "spectral" else _steepest(gradient, norm)


def _columns_to_length_one(gradient: Tensor) -> Tensor:
    return gradient / gradient.norm(dim=0, keepdim=True)


def _right_vectors_untransposed(gradient: Tensor) -> Tensor:
    u, _, vh = torch.linalg.svd(gradient, full_matrices=False)
    return u @ vh.mT


def _first_direction(gradient: Tensor) -> Tensor:
    u, _, vh = torch.linalg.svd(gradient, full_matrices=False)
    return u[:, :1] @ vh[:1]


register(
    Exercise(
        name="modern_decoder.steepest",
        reference=_steepest,
        inputs=lambda g: [
            (torch.randn(*shape, generator=g), norm)
            for shape in ((3, 3), (4, 4), (5, 2), (2, 4))
            for norm in ("frobenius", "max", "spectral")
        ],
        mistakes=(
            Mistake(
                "divided by the largest singular value",
                "With the spectral norm you return G divided by its largest singular value. Its norm is 1, "
                "but all smaller singular values are left below 1, where they gain less than they could.",
                _spectral(lambda gradient: gradient / torch.linalg.matrix_norm(gradient, 2)),
            ),
            Mistake(
                "V for its transpose",
                "torch.linalg.svd returns the transpose of V already. Multiply by it as it comes.",
                _spectral(_right_vectors_untransposed),
            ),
            Mistake(
                "one direction only",
                "With the spectral norm you return the outer product of the first singular vectors. All "
                "pairs may be had at once: the norm is that of the largest singular value, and they do not "
                "disturb each other.",
                _spectral(_first_direction),
            ),
            Mistake(
                "each column by its own length",
                "You give each column the length 1. Columns may still point the same way, and then the "
                "largest singular value exceeds 1.",
                _spectral(_columns_to_length_one),
            ),
            Mistake(
                "divided by the largest entry",
                'With "max" you divide by the largest entry, so that all others stay below what is allowed. '
                "Each entry may be 1 or -1: return the signs.",
                lambda g, norm: g / g.abs().max() if norm == "max" else _steepest(g, norm),
            ),
            Mistake(
                "sum of entries",
                "With the Frobenius norm you divide by the sum of the absolute entries. The norm is the root "
                "of the sum of squares.",
                lambda g, norm: g / g.abs().sum() if norm == "frobenius" else _steepest(g, norm),
            ),
        ),
        tolerance=1e-4,
    )
)

# Newton-Schulz

_TUNED = (3.4445, -4.7750, 2.0315)


def _orthogonalise(
    coefficients: tuple[float, float, float] = _TUNED,
    scale: Callable[[Tensor], Tensor] = torch.Tensor.norm,
    each_step: bool = False,
    extra: int = 0,
) -> Callable[[Tensor, int], Tensor]:
    a, b, c = coefficients

    def run(gradient: Tensor, steps: int) -> Tensor:
        x = gradient / scale(gradient)
        for _ in range(steps + extra):
            gram = x @ x.mT
            x = a * x + (b * gram + c * gram @ gram) @ x
            x = x / scale(x) if each_step else x
        return x

    return run


def _entries(gradient: Tensor, steps: int) -> Tensor:
    a, b, c = _TUNED
    x = gradient / gradient.norm()
    for _ in range(steps):
        x = a * x + b * x**3 + c * x**5
    return x


register(
    Exercise(
        name="modern_decoder.orthogonalise",
        reference=_orthogonalise(),
        inputs=lambda g: [
            (torch.randn(4, 4, generator=g), 5),
            (100 * torch.randn(3, 6, generator=g), 5),
            (torch.randn(6, 3, generator=g), 1),
            (torch.eye(3), 2),
        ],
        mistakes=(
            Mistake(
                "powers of entries",
                "You raise the entries to powers. The polynomial is one of matrices: X^3 stands for X X^T X, "
                "which changes the singular values and leaves their directions alone.",
                _entries,
            ),
            Mistake(
                "not normalised",
                "You begin with the gradient as it is. The polynomial is made for singular values between 0 "
                "and 1: divide by the Frobenius norm first.",
                _orthogonalise(scale=lambda x: torch.ones(())),
            ),
            Mistake(
                "divided by the largest entry",
                "You divide by the largest entry, which does not bound the singular values by 1. The "
                "Frobenius norm does, being the root of the sum of their squares.",
                _orthogonalise(scale=lambda x: x.abs().max()),
            ),
            Mistake(
                "normalised in every step",
                "You normalise in every step, which undoes what the step before has lifted. Once, at the "
                "beginning, is enough.",
                _orthogonalise(each_step=True),
            ),
            Mistake(
                "Newton and Schulz's coefficients",
                "You use the classical 1.5 and -0.5. Those converge to 1, but slowly; the exercise asks for "
                "Muon's three.",
                _orthogonalise((1.5, -0.5, 0.0)),
            ),
            Mistake(
                "sign of the middle term",
                "Your middle coefficient is positive. It is -4.7750, and pulls large singular values down.",
                _orthogonalise((3.4445, 4.7750, 2.0315)),
            ),
            Mistake(
                "fifth power forgotten",
                "The third term is missing, 2.0315 times (X X^T)^2 X.",
                _orthogonalise((3.4445, -4.7750, 0.0)),
            ),
            Mistake(
                "one step too many", "You take one step more than was asked for.", _orthogonalise(extra=1)
            ),
        ),
        tolerance=1e-4,
    )
)

# Two orders of the pairs


def _to_halves(weight: Tensor, n_heads: int) -> Tensor:
    return weight.unflatten(0, (n_heads, -1, 2)).transpose(1, 2).flatten(0, 2)


def _to_neighbours(weight: Tensor, n_heads: int) -> Tensor:
    return weight.unflatten(0, (n_heads, 2, -1)).transpose(1, 2).flatten(0, 2)


def _halves_exchanged(weight: Tensor, n_heads: int) -> Tensor:
    return weight.unflatten(0, (n_heads, -1, 2)).flip(2).transpose(1, 2).flatten(0, 2)


register(
    Exercise(
        name="modern_decoder.to_halves",
        reference=_to_halves,
        inputs=lambda g: [
            (torch.arange(12.0)[:, None] + torch.rand(12, 12, generator=g), 2),
            (torch.randn(8, 5, generator=g), 1),
            (torch.randn(18, 6, generator=g), 3),
        ],
        mistakes=(
            Mistake(
                "the way back",
                "This is the way back, from halves to neighbours. In your result, rows 2i and 2i + 1 come "
                "from i and i + Dh/2; it must be the other way round.",
                _to_neighbours,
            ),
            Mistake(
                "the whole width at once",
                "You reorder across all heads. Pairs live within a head: cut the rows into heads first.",
                lambda weight, n_heads: _to_halves(weight, 1),
            ),
            Mistake(
                "columns reordered",
                "You reorder the columns, which are features of the token. Those of the query are the rows.",
                lambda weight, n_heads: (
                    _to_halves(weight.mT, n_heads).mT if weight.shape[0] == weight.shape[1] else weight
                ),
            ),
            Mistake(
                "members exchanged",
                "Your first half holds the second members of the pairs, which turns all of them the other "
                "way round.",
                _halves_exchanged,
            ),
        ),
    )
)
