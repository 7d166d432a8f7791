"""The code exercises of the chapter on positions, with the mistakes that readers make in them."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise

# The sinusoidal table, a position a column


@exercise(
    "positions.sinusoidal_columns",
    inputs=lambda g: [(4, 6), (5, 2), (1, 4), (6, 8), (2, 2), (8, 8)],
    tolerance=1e-4,
)
def sinusoidal_columns(n: int, d: int) -> Tensor:
    """The table of positions 0 to N - 1, one in each column: a (D, N) of real numbers, D even.

    Rows 2i and 2i + 1 are the sine and the cosine of position times 10000^(-2i/D).
    """
    rates = 10000.0 ** (-torch.arange(0, d, 2) / d)
    angles = rates[:, None] * torch.arange(n)
    return torch.stack((angles.sin(), angles.cos()), dim=1).flatten(0, 1)


def _rates(d: int) -> Tensor:
    """The rate of each pair, 10000^(-2i/D)."""
    return 10000.0 ** (-torch.arange(0, d, 2) / d)


def _slow_rates(d: int) -> Tensor:
    return 10000.0 ** (-torch.arange(d // 2) / d)


def _rates_to_the_end(d: int) -> Tensor:
    return 10000.0 ** (-torch.arange(d // 2) / max(d // 2 - 1, 1))


def _waves(angles: Tensor) -> Tensor:
    """Angles (pairs, N) to the table (D, N)."""
    return torch.stack((angles.sin(), angles.cos()), dim=1).flatten(0, 1)


sinusoidal_columns.mistake(
    "a position a row",
    "This is the table of the code, a position a row. In the text's layout a position is a column: "
    "transpose it.",
    lambda n, d: sinusoidal_columns(n, d).T,
)

sinusoidal_columns.mistake(
    "sines first, then cosines",
    "All sines stand above all cosines. Here the two of one rate are neighbours: rows 2i and 2i + 1. Stack "
    "them along a new axis and flatten it.",
    lambda n, d: torch.cat([(angles := _rates(d)[:, None] * torch.arange(n)).sin(), angles.cos()]),
)

sinusoidal_columns.mistake(
    "sine and cosine exchanged",
    "The even rows hold the sines, so that the first position is 0, 1, 0, 1, and so on.",
    lambda n, d: _waves(math.pi / 2 - _rates(d)[:, None] * torch.arange(n)),
)

sinusoidal_columns.mistake(
    "positions counted from one",
    "You count positions from 1. The first column belongs to position 0.",
    lambda n, d: _waves(_rates(d)[:, None] * torch.arange(1, n + 1)),
)

sinusoidal_columns.mistake(
    "rates fall half as fast",
    "Your rates are 10000^(-i/D); the exponent has 2i, so that the slowest is near 1/10000.",
    lambda n, d: _waves(_slow_rates(d)[:, None] * torch.arange(n)),
)

sinusoidal_columns.mistake(
    "rates fall twice as fast",
    "Your rates are 10000^(-4i/D): `torch.arange(0, d, 2)` holds 2i already, so do not double it.",
    lambda n, d: _waves(_rates(d)[:, None] ** 2 * torch.arange(n)),
)


def _rate_for_each_row(n: int, d: int) -> Tensor:
    angles = (10000.0 ** (-torch.arange(d) / d))[:, None] * torch.arange(n)
    return torch.where(torch.arange(d)[:, None] % 2 == 0, angles.sin(), angles.cos())


sinusoidal_columns.mistake(
    "a rate for each row",
    "Each row has a rate of its own, 10000^(-row/D). The sine and the cosine of a pair share one, or they "
    "are no hand of a clock: 10000^(-2i/D) for rows 2i and 2i + 1.",
    _rate_for_each_row,
)

sinusoidal_columns.mistake(
    "slowest rate exactly 1/10000",
    "You divide by D/2 - 1, so that the slowest rate is 1/10000 itself, as some code does. Here the "
    "exponent is -2i/D.",
    lambda n, d: _waves(_rates_to_the_end(d)[:, None] * torch.arange(n)),
)

sinusoidal_columns.mistake(
    "rates that grow",
    "Your rates grow from pair to pair: the exponent -2i/D needs its minus sign.",
    lambda n, d: _waves(10000.0 ** (torch.arange(0, d, 2) / d)[:, None] * torch.arange(n)),
)

sinusoidal_columns.mistake(
    "one rate for all rows",
    "All pairs turn at the rate 1. The rate of pair i is 10000^(-2i/D).",
    lambda n, d: _waves(torch.ones(d // 2, 1) * torch.arange(n)),
)

# The matrix that shifts the table


@exercise(
    "positions.shift_matrix",
    inputs=lambda g: [(1, 4), (2, 2), (3, 6), (-2, 8), (0, 4), (10, 4)],
    tolerance=1e-4,
)
def shift_matrix(k: int, d: int) -> Tensor:
    """The (D, D) matrix that takes the sinusoidal p_n to p_(n+k), for columns and any n; k may be negative.

    On the diagonal it has the blocks [[cos a, sin a], [-sin a, cos a]] with a = k 10000^(-2i/D).
    """
    blocks = []
    for i in range(d // 2):
        angle = k * 10000.0 ** (-2 * i / d)
        c, s = math.cos(angle), math.sin(angle)
        blocks.append(torch.tensor([[c, s], [-s, c]]))
    return torch.block_diag(*blocks)


def _blocks(angles: Tensor) -> Tensor:
    """The matrix with a block for each angle."""
    c, s = torch.diag_embed(angles.cos()), torch.diag_embed(angles.sin())
    eye, turn = torch.eye(2), torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    return torch.kron(c, eye) + torch.kron(s, turn)


shift_matrix.mistake(
    "shift in the wrong direction",
    "Your matrix takes p_n to p_(n-k). With the sine above the cosine the block is [[cos, sin], [-sin, "
    "cos]], the transpose of the usual rotation matrix.",
    lambda k, d: shift_matrix(-k, d),
)

shift_matrix.mistake(
    "one angle for all pairs",
    "All blocks turn by k. Block i turns by k times the rate of its pair, 10000^(-2i/D).",
    lambda k, d: _blocks(k * torch.ones(d // 2)),
)

shift_matrix.mistake(
    "shifted by one, whatever k",
    "You shift by one place. The angle of a block is k times its rate.",
    lambda k, d: shift_matrix(1, d),
)

shift_matrix.mistake(
    "rates fall half as fast",
    "Your rates are 10000^(-i/D); the exponent has 2i, as in the table.",
    lambda k, d: _blocks(k * _slow_rates(d)),
)


def _blocks_of_halves(k: int, d: int) -> Tensor:
    c, s = torch.diag((k * _rates(d)).cos()), torch.diag((k * _rates(d)).sin())
    return torch.cat([torch.cat([c, s], dim=1), torch.cat([-s, c], dim=1)])


shift_matrix.mistake(
    "blocks made of halves",
    "You turn row i with row i + D/2. The table has the two waves of one rate in neighbouring rows, so the "
    "blocks of two stand along the diagonal.",
    _blocks_of_halves,
)

shift_matrix.mistake(
    "rates in the wrong order",
    "The first pair is the fastest, with rate 1; your blocks run from slow to fast.",
    lambda k, d: _blocks(k * _rates(d).flip(0)),
)

# Rotary


@exercise(
    "positions.rotary",
    inputs=lambda g: [
        (torch.randn(5, 4, generator=g),),
        (torch.tensor([[1.0, 0.0], [1.0, 0.0]]),),
        (torch.randn(3, 2, generator=g),),
        (torch.randn(1, 6, generator=g),),
        (torch.randn(7, 8, generator=g),),
        (torch.randn(6, 6, generator=g),),
    ],
    tolerance=1e-4,
)
def rotary(x: Tensor) -> Tensor:
    """Turn each pair of neighbouring features of token n by n 10000^(-2i/Dh): (N, Dh) -> (N, Dh), Dh even.

    The pair (a, b) becomes (a cos - b sin, a sin + b cos). The first token stands at place 0.
    """
    n, d = x.shape
    rates = 10000.0 ** (-torch.arange(0, d, 2) / d)
    angles = torch.arange(n)[:, None] * rates
    cos, sin = angles.cos(), angles.sin()
    a, b = x[:, 0::2], x[:, 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(1)


def _turned(
    rates: Callable[[int], Tensor] = _rates, first: int = 0, sign: int = 1
) -> Callable[[Tensor], Tensor]:
    """Rotary positions with other rates, another first place, or the other way round."""

    def variant(x: Tensor) -> Tensor:
        places = sign * torch.arange(first, first + len(x))
        pairs = torch.view_as_complex(x.reshape(len(x), -1, 2))
        return torch.view_as_real(pairs * torch.exp(1j * places[:, None] * rates(x.shape[1]))).flatten(1)

    return variant


rotary.mistake(
    "turned the other way",
    "You turn clockwise. Scores come out the same as long as queries and keys agree, but the library and "
    "the paper turn by plus n w.",
    _turned(sign=-1),
)


def _rotary_of_halves(x: Tensor) -> Tensor:
    angles = torch.arange(len(x))[:, None] * _rates(x.shape[1])
    a, b = x.chunk(2, dim=1)
    return torch.cat((a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), dim=1)


rotary.mistake(
    "pairs made of halves",
    "You pair feature i with i + Dh/2. Some libraries do; here pairs are neighbours, as in the paper. "
    "Weights trained with one do not fit the other.",
    _rotary_of_halves,
)

rotary.mistake(
    "pairs left in halves",
    "The pairs are neighbours and correctly turned, but all first features come before all second ones: "
    "stack the two along a new last axis and flatten it.",
    lambda x: torch.cat((rotary(x)[:, 0::2], rotary(x)[:, 1::2]), dim=1),
)

rotary.mistake(
    "positions counted from one",
    "You count positions from 1. No score shows it, but the first token should stay as it is.",
    _turned(first=1),
)

rotary.mistake(
    "one rate for all pairs",
    "All pairs turn at the rate 1. Pair i turns at 10000^(-2i/Dh).",
    _turned(lambda d: torch.ones(d // 2)),
)

rotary.mistake(
    "rates fall half as fast",
    "Your rates are 10000^(-i/Dh); the exponent has 2i.",
    _turned(_slow_rates),
)

rotary.mistake(
    "rates in the wrong order",
    "The first pair is the fastest, with rate 1; yours run from slow to fast.",
    _turned(lambda d: _rates(d).flip(0)),
)


def _scaled(x: Tensor) -> Tensor:
    angles = torch.arange(len(x))[:, None] * _rates(x.shape[1])
    return torch.stack((x[:, 0::2] * angles.cos(), x[:, 1::2] * angles.sin()), dim=-1).flatten(1)


rotary.mistake(
    "scaled instead of turned",
    "You multiply one feature by the cosine and its neighbour by the sine. A rotation mixes the two: (a cos "
    "- b sin, a sin + b cos).",
    _scaled,
)


def _mirrored(x: Tensor) -> Tensor:
    angles = torch.arange(len(x))[:, None] * _rates(x.shape[1])
    a, b = x[:, 0::2], x[:, 1::2]
    turned = (a * angles.cos() + b * angles.sin(), a * angles.sin() + b * angles.cos())
    return torch.stack(turned, dim=-1).flatten(1)


rotary.mistake(
    "both signs plus",
    "Both of your sums have a plus, which is no rotation and changes lengths: (a cos - b sin, a sin + b "
    "cos).",
    _mirrored,
)


def _overwritten(x: Tensor) -> Tensor:
    angles = torch.arange(len(x))[:, None] * _rates(x.shape[1])
    a, b = x[:, 0::2], x[:, 1::2]
    a = a * angles.cos() - b * angles.sin()
    b = a * angles.sin() + b * angles.cos()
    return torch.stack((a, b), dim=-1).flatten(1)


rotary.mistake(
    "the first feature overwritten",
    "You turn the second feature of a pair with the first one already turned. Both need the old values: "
    "compute the two before you write either. A slice of x is a view and changes along with x.",
    _overwritten,
)

rotary.mistake(
    "positions added",
    "You add sines and cosines. Rotary positions multiply: each pair is turned by its angle.",
    lambda x: x + sinusoidal_columns(*x.shape).T,
)

# Buckets


def _bucket_inputs(g: torch.Generator) -> list[tuple]:
    # offsets on both sides of a bound, and on it only where rounding cannot matter: E and the last
    few = [(offset, 4, 16) for offset in (-1, 0, 1, 2, 3, 5, 6, 15, 16, 17)]
    some = [(offset, 8, 64) for offset in (-5, 0, 3, 4, 5, 7, 9, 15, 17, 31, 33, 63, 64, 65)]
    many = [(offset, 32, 128) for offset in (-3, 2, 15, 16, 17, 18, 19, 45, 98, 99, 127, 128, 129, 500)]
    return few + some + many


@exercise("positions.bucket", inputs=_bucket_inputs)
def bucket(offset: int, n_buckets: int, max_distance: int) -> int:
    """The bucket, 0 to K - 1, of the offset n - s of a key in a causal model; below zero it is bucket 0.

    Offsets d below E = K/2 have one each. Further away it is E + floor((K - E) ln(d/E) / ln(max_distance/E)),
    or K - 1 if that is less. K is even, and max_distance > E.
    """
    distance, exact = max(offset, 0), n_buckets // 2
    if distance < exact:
        return distance
    growth = math.log(distance / exact) / math.log(max_distance / exact)
    return min(exact + math.floor((n_buckets - exact) * growth), n_buckets - 1)


def _bucket_variant(
    distance: Callable[[int], int] = lambda offset: max(offset, 0),
    exact: Callable[[int], int] = lambda n_buckets: n_buckets // 2,
    growth: Callable[[int, int, int], float] = lambda d, e, most: math.log(d / e) / math.log(most / e),
    whole: Callable[[float], int] = math.floor,
    last: Callable[[int, int], int] = lambda far, n_buckets: min(far, n_buckets - 1),
) -> Callable[[int, int, int], int]:
    """The rule with a part of it changed."""

    def variant(offset: int, n_buckets: int, max_distance: int) -> int:
        d, e = distance(offset), exact(n_buckets)
        if d < e:
            return d
        return last(e + whole((n_buckets - e) * growth(d, e, max_distance)), n_buckets)

    return variant


bucket.mistake(
    "the last bucket left open",
    "Right up to the largest distance, and beyond it you return buckets that do not exist: the last bucket, "
    "K - 1, takes everything further away.",
    _bucket_variant(last=lambda far, n_buckets: far),
)

bucket.mistake(
    "one bucket too many",
    "From the largest distance on you return bucket K. Buckets count from 0, so that the last is K - 1.",
    _bucket_variant(last=min),
)

bucket.mistake(
    "keys that stand later",
    "You take the absolute value. A causal query does not look ahead; offsets below zero go to bucket 0.",
    _bucket_variant(distance=abs),
)

bucket.mistake(
    "offset turned around",
    "You take s - n for the offset. It is n - s: a key that stands earlier has a positive one.",
    _bucket_variant(distance=lambda offset: max(-offset, 0)),
)

bucket.mistake(
    "offsets below zero left",
    "You return the offset itself where it is below zero. Such a key stands later, and goes to bucket 0.",
    _bucket_variant(distance=lambda offset: offset),
)

bucket.mistake(
    "rounded instead of floored",
    "You round to the nearest bucket. A bucket begins where the logarithm reaches a whole number: take the "
    "floor.",
    _bucket_variant(whole=round),
)

bucket.mistake(
    "rounded up",
    "You round up. A bucket begins where the logarithm reaches a whole number: take the floor.",
    _bucket_variant(whole=math.ceil),
)

bucket.mistake(
    "ranges of equal width",
    "Your far buckets are equally wide. They grow geometrically: use the logarithm of the distance over K/2.",
    _bucket_variant(growth=lambda d, e, most: (d - e) / (most - e)),
)

bucket.mistake(
    "logarithm of the distance alone",
    "You divide ln(distance) by ln(largest distance). Both are measured in units of E = K/2, so that the "
    "first far bucket begins at E: ln(distance/E) / ln(largest/E).",
    _bucket_variant(growth=lambda d, e, most: math.log(d) / math.log(most)),
)

bucket.mistake(
    "exact buckets not added",
    "Your far buckets begin at 0 again, where the near ones are. Add E = K/2.",
    _bucket_variant(last=lambda far, n_buckets: min(far, n_buckets - 1) - n_buckets // 2),
)

bucket.mistake(
    "a quarter exact",
    "Half of the buckets hold one offset each, 0 to K/2 - 1; you stop at a quarter.",
    _bucket_variant(exact=lambda n_buckets: n_buckets // 4),
)

# ALiBi, keys down and queries across


@exercise("positions.alibi_columns", inputs=lambda g: [(4, 8), (3, 2), (2, 1), (1, 4), (5, 1), (4, 4)])
def alibi_columns(n: int, n_heads: int) -> Tensor:
    """ALiBi's biases -2^(-8h/H) (n - s) with keys down and queries across: (H, S, N) with S = N.

    Heads count from h = 1. Where the key s stands after the query n, the bias is 0.
    """
    slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
    places = torch.arange(n)
    distance = (places[None, :] - places[:, None]).clamp(min=0)
    return -slopes[:, None, None] * distance


def _slopes(n_heads: int) -> Tensor:
    return 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)


def _biases(slopes: Tensor, n: int) -> Tensor:
    return -slopes[:, None, None] * (torch.arange(n)[None, :] - torch.arange(n)[:, None]).clamp(min=0)


alibi_columns.mistake(
    "sign missing",
    "Your bias rewards distance. It is a penalty, and must be negative for keys further back.",
    lambda n, n_heads: -alibi_columns(n, n_heads),
)

alibi_columns.mistake(
    "queries down",
    "Here keys run down and queries across, as in the text: entry [h, s, n] is -m_h (n - s). Yours is its "
    "transpose.",
    lambda n, n_heads: alibi_columns(n, n_heads).mT,
)

alibi_columns.mistake(
    "slopes from one",
    "Heads count from 1 in the slopes: the first is 2^(-8/H), not 1.",
    lambda n, n_heads: _biases(2.0 ** (-8 * torch.arange(n_heads) / n_heads), n),
)

alibi_columns.mistake(
    "slopes that do not depend on H",
    "You use 2^(-h). The slopes are 2^(-8h/H): whatever the number of heads, the last is 2^(-8).",
    lambda n, n_heads: _biases(2.0 ** -torch.arange(1, n_heads + 1), n),
)

alibi_columns.mistake(
    "slopes in reverse",
    "The first head has the steepest slope, 2^(-8/H), and the last 2^(-8); yours stand in the other order.",
    lambda n, n_heads: alibi_columns(n, n_heads).flip(0),
)

alibi_columns.mistake(
    "one slope for all heads",
    "All heads have the same slope. Give head h the slope 2^(-8h/H), so that some look far and some near.",
    lambda n, n_heads: alibi_columns(n, 1).expand(n_heads, n, n),
)

alibi_columns.mistake(
    "later keys rewarded",
    "For keys after the query, n - s is negative and your bias positive. A mask hides it in a causal model, "
    "but write zero there.",
    lambda n, n_heads: alibi_columns(n, n_heads) - alibi_columns(n, n_heads).mT,
)

alibi_columns.mistake(
    "later keys penalised",
    "You take the absolute distance. A key after the query gets 0 here; the causal mask takes care of it.",
    lambda n, n_heads: alibi_columns(n, n_heads) + alibi_columns(n, n_heads).mT,
)

alibi_columns.mistake(
    "later keys forbidden",
    "You put minus infinity where a key stands after the query. That is the mask's work; the bias is 0 "
    "there.",
    lambda n, n_heads: alibi_columns(n, n_heads) + torch.full((n, n), -math.inf).tril(-1),
)
