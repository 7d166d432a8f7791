"""The code exercises of the chapter on positions, with the mistakes that readers make in them."""

import math

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise


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


sinusoidal_columns.add_mistakes("""
a position a row | flatten(0, 1) => flatten(0, 1).T
    This is the table of the code, a position a row. In the text's layout a position is a column:
    transpose it.
sines first, then cosines
    | stack => cat
    | , dim=1).flatten(0, 1) => )
    All sines stand above all cosines. Here the two of one rate are neighbours: rows 2i and 2i + 1. Stack
    them along a new axis and flatten it.
rates fall half as fast | torch.arange(0, d, 2) => torch.arange(d // 2)
    Your rates are 10000^(-i/D); the exponent has 2i, so that the slowest is near 1/10000.
a rate for each row
    | torch.arange(0, d, 2) => torch.arange(d)
    | torch.stack((angles.sin(), angles.cos()), dim=1) => (even := torch.arange(d)[:, None] % 2 == 0)
    | .flatten(0, 1) => .where(even, angles.cos()).where(~even, angles.sin())
    Each row has a rate of its own, 10000^(-row/D). The sine and the cosine of a pair share one, or they
    are no hand of a clock: 10000^(-2i/D) for rows 2i and 2i + 1.
""")


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


shift_matrix.add_mistakes("""
shift in the wrong direction | [[c, s], [-s, c]] => [[c, -s], [s, c]]
    Your matrix takes p_n to p_(n-k). With the sine above the cosine the block is [[cos, sin], [-sin,
    cos]], the transpose of the usual rotation matrix.
one angle for all pairs | k * 10000.0 ** (-2 * i / d) => k
    All blocks turn by k. Block i turns by k times the rate of its pair, 10000^(-2i/D).
shifted by one, whatever k | k * 10000.0 => 10000.0
    You shift by one place. The angle of a block is k times its rate.
rates fall half as fast | -2 * i => -i
    Your rates are 10000^(-i/D); the exponent has 2i, as in the table.
""")


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


rotary.add_mistakes("""
turned the other way | a * cos - b * sin, a * sin + b * cos => a * cos + b * sin, b * cos - a * sin
    You turn clockwise. Scores come out the same as long as queries and keys agree, but the library and
    the paper turn by plus n w.
pairs made of halves
    | x[:, 0::2], x[:, 1::2] => x.chunk(2, dim=1)
    | torch.stack => torch.cat
    | .flatten(1) =>
    You pair feature i with i + Dh/2. Some libraries do; here pairs are neighbours, as in the paper.
    Weights trained with one do not fit the other.
positions counted from one | torch.arange(n) => torch.arange(1, n + 1)
    You count positions from 1. No score shows it, but the first token should stay as it is.
one rate for all pairs | 10000.0 ** (-torch.arange(0, d, 2) / d) => torch.ones(d // 2)
    All pairs turn at the rate 1. Pair i turns at 10000^(-2i/Dh).
the first feature overwritten
    | return torch.stack((a * cos - b * sin, => a = a * cos - b * sin; return torch.stack((a,
    You turn the second feature of a pair with the first one already turned. Both need the old values:
    compute the two before you write either. A slice of x is a view and changes along with x.
""")


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


bucket.add_mistakes("""
the last bucket left open
    | min(exact + => exact +
    | growth), n_buckets - 1) => growth)
    Right up to the largest distance, and beyond it you return buckets that do not exist: the last bucket,
    K - 1, takes everything further away.
one bucket too many | n_buckets - 1 => n_buckets
    From the largest distance on you return bucket K. Buckets count from 0, so that the last is K - 1.
keys that stand later | max(offset, 0) => abs(offset)
    You take the absolute value. A causal query does not look ahead; offsets below zero go to bucket 0.
rounded instead of floored | math.floor => round
    You round to the nearest bucket. A bucket begins where the logarithm reaches a whole number: take the
    floor.
""")


@exercise("positions.alibi_columns", inputs=lambda g: [(4, 8), (3, 2), (2, 1), (1, 4), (5, 1), (4, 4)])
def alibi_columns(n: int, n_heads: int) -> Tensor:
    """ALiBi's biases -2^(-8h/H) (n - s) with keys down and queries across: (H, S, N) with S = N.

    Heads count from h = 1. Where the key s stands after the query n, the bias is 0.
    """
    slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
    places = torch.arange(n)
    distance = (places[None, :] - places[:, None]).clamp(min=0)
    return -slopes[:, None, None] * distance


alibi_columns.add_mistakes("""
sign missing | -slopes => slopes
    Your bias rewards distance. It is a penalty, and must be negative for keys further back.
queries down | places[None, :] - places[:, None] => places[:, None] - places[None, :]
    Here keys run down and queries across, as in the text: entry [h, s, n] is -m_h (n - s). Yours is its
    transpose.
slopes from one | torch.arange(1, n_heads + 1) => torch.arange(n_heads)
    Heads count from 1 in the slopes: the first is 2^(-8/H), not 1.
one slope for all heads | torch.arange(1, n_heads + 1) / n_heads => torch.ones(n_heads)
    All heads have the same slope. Give head h the slope 2^(-8h/H), so that some look far and some near.
later keys rewarded | .clamp(min=0) =>
    For keys after the query, n - s is negative and your bias positive. A mask hides it in a causal model,
    but write zero there.
""")
