"""The code exercises of the chapter on positions, with the mistakes that readers make in them."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tformer_lib.exercises.checker import Exercise, Mistake, register

# The sinusoidal table, a position a column


def _rates(d: int, base: float = 10000.0, step: int = 2) -> Tensor:
    """w_i = base^(-step i / d), i = 0 .. d/2 - 1."""
    return base ** (-step * torch.arange(d // 2) / d)


def _table(angles: Tensor, first: Callable = torch.sin, second: Callable = torch.cos) -> Tensor:
    """(pairs, N) angles -> (D, N): the waves of pair i in rows 2i and 2i + 1."""
    return torch.stack((first(angles), second(angles)), dim=1).flatten(0, 1)


def _sinusoidal_columns(n: int, d: int) -> Tensor:
    return _table(_rates(d)[:, None] * torch.arange(n))


register(
    Exercise(
        name="positions.sinusoidal_columns",
        reference=_sinusoidal_columns,
        inputs=lambda g: [(4, 6), (5, 2), (1, 4), (6, 8)],
        tolerance=1e-4,
        mistakes=(
            Mistake(
                "a position a row",
                "This is the table of the code, a position a row. In the text's layout a position is a "
                "column: transpose it.",
                lambda n, d: _sinusoidal_columns(n, d).T,
            ),
            Mistake(
                "sines first, then cosines",
                "All sines stand above all cosines. Here the two of one rate are neighbours: rows 2i and "
                "2i + 1. Stack them along a new axis and flatten it.",
                lambda n, d: torch.cat([(a := _rates(d)[:, None] * torch.arange(n)).sin(), a.cos()]),
            ),
            Mistake(
                "sine and cosine exchanged",
                "The even rows hold the sines, so that the first position is 0, 1, 0, 1, and so on.",
                lambda n, d: _table(_rates(d)[:, None] * torch.arange(n), torch.cos, torch.sin),
            ),
            Mistake(
                "positions counted from one",
                "You count positions from 1. The first column belongs to position 0.",
                lambda n, d: _table(_rates(d)[:, None] * torch.arange(1, n + 1)),
            ),
            Mistake(
                "rates fall half as fast",
                "Your rates are base^(-i/D); the exponent has 2i, so that the slowest is near 1/10000.",
                lambda n, d: _table(_rates(d, step=1)[:, None] * torch.arange(n)),
            ),
            Mistake(
                "one rate for all rows",
                "All pairs turn at the rate 1. The rate of pair i is 10000^(-2i/D).",
                lambda n, d: _table(torch.ones(d // 2, 1) * torch.arange(n)),
            ),
        ),
    )
)

# The matrix that shifts the table


def _shift_matrix(k: int, d: int, sign: float = 1.0, rates: Callable = _rates) -> Tensor:
    matrix = torch.zeros(d, d)
    for i, angle in enumerate((k * rates(d)).tolist()):
        c, s = math.cos(angle), sign * math.sin(angle)
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor([[c, s], [-s, c]])
    return matrix


def _halves(k: int, d: int) -> Tensor:
    a = k * _rates(d)
    c, s = torch.diag(a.cos()), torch.diag(a.sin())
    return torch.cat([torch.cat([c, s], dim=1), torch.cat([-s, c], dim=1)])


register(
    Exercise(
        name="positions.shift_matrix",
        reference=_shift_matrix,
        inputs=lambda g: [(1, 4), (3, 6), (-2, 8), (0, 4)],
        tolerance=1e-4,
        mistakes=(
            Mistake(
                "shift in the wrong direction",
                "Your matrix takes p_n to p_(n-k). With the sine above the cosine the block is "
                "[[cos, sin], [-sin, cos]], the transpose of the usual rotation matrix.",
                lambda k, d: _shift_matrix(k, d, sign=-1.0),
            ),
            Mistake(
                "one angle for all pairs",
                "All blocks turn by k. Block i turns by k times the rate of its pair, 10000^(-2i/D).",
                lambda k, d: _shift_matrix(k, d, rates=lambda d: torch.ones(d // 2)),
            ),
            Mistake(
                "blocks made of halves",
                "You turn row i with row i + D/2. The table has the two waves of one rate in neighbouring "
                "rows, so the blocks of two stand along the diagonal.",
                _halves,
            ),
            Mistake(
                "rates in the wrong order",
                "The first pair is the fastest, with rate 1; your blocks run from slow to fast.",
                lambda k, d: _shift_matrix(k, d, rates=lambda d: _rates(d).flip(0)),
            ),
        ),
    )
)

# Buckets


def _bucket(offset: int, n_buckets: int, max_distance: int) -> int:
    distance, exact = max(offset, 0), n_buckets // 2
    if distance < exact:
        return distance
    growth = math.log(distance / exact) / math.log(max_distance / exact)
    return min(exact + int((n_buckets - exact) * growth), n_buckets - 1)


def _bucket_variant(
    distance: Callable[[int], int] = lambda o: max(o, 0),
    exact: Callable[[int], int] = lambda k: k // 2,
    clamp: bool = True,
    whole: Callable[[float], int] = int,
    linear: bool = False,
) -> Callable[[int, int, int], int]:
    """The rule with something changed."""

    def bucket(offset: int, n_buckets: int, max_distance: int) -> int:
        d, e = distance(offset), exact(n_buckets)
        if d < e:
            return d
        growth = (d - e) / (max_distance - e) if linear else math.log(d / e) / math.log(max_distance / e)
        far = e + whole((n_buckets - e) * growth)
        return min(far, n_buckets - 1) if clamp else far

    return bucket


register(
    Exercise(
        name="positions.bucket",
        reference=_bucket,
        inputs=lambda g: [(o, k, m) for k, m in ((32, 128), (8, 20)) for o in (-3, 0, 2, 5, 11, 17, 45, 500)],
        mistakes=(
            Mistake(
                "the last bucket left open",
                "Right up to the largest distance, and beyond it you return buckets that do not exist: the "
                "last bucket, K - 1, takes everything further away.",
                _bucket_variant(clamp=False),
            ),
            Mistake(
                "keys that stand later",
                "You take the absolute value. A causal query does not look ahead; offsets below zero go to "
                "bucket 0.",
                _bucket_variant(distance=abs),
            ),
            Mistake(
                "rounded instead of floored",
                "You round to the nearest bucket. A bucket begins where the logarithm reaches a whole "
                "number: take the floor.",
                _bucket_variant(whole=round),
            ),
            Mistake(
                "ranges of equal width",
                "Your far buckets are equally wide. They grow geometrically: use the logarithm of the "
                "distance over K/2.",
                _bucket_variant(linear=True),
            ),
            Mistake(
                "a quarter exact",
                "Half of the buckets hold one offset each, 0 to K/2 - 1; you stop at a quarter.",
                _bucket_variant(exact=lambda k: k // 4),
            ),
        ),
    )
)

# Rotary


def _turn(
    x: Tensor,
    rates: Callable[[int], Tensor] = _rates,
    sign: float = 1.0,
    first: int = 0,
    mix: bool = True,
    halves: bool = False,
) -> Tensor:
    """Rotary positions for x (N, Dh), right by default and wrong in whatever is changed."""
    n, d = x.shape
    angles = torch.arange(first, first + n)[:, None] * rates(d)
    cos, sin = angles.cos(), sign * angles.sin()
    a, b = (x[:, : d // 2], x[:, d // 2 :]) if halves else (x[:, 0::2], x[:, 1::2])
    turned = (a * cos - b * sin, a * sin + b * cos) if mix else (a * cos, b * sin)
    return torch.cat(turned, dim=1) if halves else torch.stack(turned, dim=-1).flatten(1)


register(
    Exercise(
        name="positions.rotary",
        reference=_turn,
        inputs=lambda g: [(torch.randn(*size, generator=g),) for size in ((5, 4), (3, 2), (1, 6), (7, 8))],
        tolerance=1e-4,
        mistakes=(
            Mistake(
                "turned the other way",
                "You turn clockwise. Scores come out the same as long as queries and keys agree, but the "
                "library and the paper turn by plus n w.",
                lambda x: _turn(x, sign=-1.0),
            ),
            Mistake(
                "pairs made of halves",
                "You pair feature i with i + Dh/2. Some libraries do; here pairs are neighbours, as in the "
                "paper. Weights trained with one do not fit the other.",
                lambda x: _turn(x, halves=True),
            ),
            Mistake(
                "positions counted from one",
                "You count positions from 1. No score shows it, but the first token should stay as it is.",
                lambda x: _turn(x, first=1),
            ),
            Mistake(
                "one rate for all pairs",
                "All pairs turn at the rate 1. Pair i turns at 10000^(-2i/Dh).",
                lambda x: _turn(x, rates=lambda d: torch.ones(d // 2)),
            ),
            Mistake(
                "rates fall half as fast",
                "Your rates are 10000^(-i/Dh); the exponent has 2i.",
                lambda x: _turn(x, rates=lambda d: _rates(d, step=1)),
            ),
            Mistake(
                "scaled instead of turned",
                "You multiply one feature by the cosine and its neighbour by the sine. A rotation mixes the "
                "two: (a cos - b sin, a sin + b cos).",
                lambda x: _turn(x, mix=False),
            ),
            Mistake(
                "positions added",
                "You add sines and cosines. Rotary positions multiply: each pair is turned by its angle.",
                lambda x: x + _sinusoidal_columns(*x.shape).T,
            ),
        ),
    )
)

# ALiBi, keys down and queries across


def _alibi_columns(n: int, n_heads: int, sign: float = -1.0, power: float = 8.0, start: int = 1) -> Tensor:
    heads = torch.arange(start, start + n_heads)
    slopes = 2.0 ** (-power * heads / n_heads)
    places = torch.arange(n)
    distance = (places[None, :] - places[:, None]).clamp(min=0)
    return sign * slopes[:, None, None] * distance


register(
    Exercise(
        name="positions.alibi_columns",
        reference=_alibi_columns,
        inputs=lambda g: [(4, 8), (3, 2), (1, 4), (5, 1)],
        mistakes=(
            Mistake(
                "sign missing",
                "Your bias rewards distance. It is a penalty, and must be negative for keys further back.",
                lambda n, h: _alibi_columns(n, h, sign=1.0),
            ),
            Mistake(
                "queries down",
                "Here keys run down and queries across, as in the text: entry [h, s, n] is -m_h (n - s). "
                "Yours is its transpose.",
                lambda n, h: _alibi_columns(n, h).mT,
            ),
            Mistake(
                "slopes from one",
                "Heads count from 1 in the slopes: the first is 2^(-8/H), not 1.",
                lambda n, h: _alibi_columns(n, h, start=0),
            ),
            Mistake(
                "slopes that do not depend on H",
                "You use 2^(-h). The slopes are 2^(-8h/H): whatever the number of heads, the last is 2^(-8).",
                lambda n, h: (
                    -(2.0 ** -torch.arange(1, h + 1))[:, None, None]
                    * (torch.arange(n)[None, :] - torch.arange(n)[:, None]).clamp(min=0)
                ),
            ),
            Mistake(
                "one slope for all heads",
                "All heads have the same slope. Give head h the slope 2^(-8h/H), so that some look far and "
                "some near.",
                lambda n, h: _alibi_columns(n, 1).expand(h, n, n),
            ),
            Mistake(
                "later keys rewarded",
                "For keys after the query, n - s is negative and your bias positive. A mask hides it in a "
                "causal model, but write zero there.",
                lambda n, h: (
                    -(2.0 ** (-8 * torch.arange(1, h + 1) / h))[:, None, None]
                    * (torch.arange(n)[None, :] - torch.arange(n)[:, None])
                ),
            ),
        ),
    )
)
