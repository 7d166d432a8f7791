"""The code exercises of the chapter on long sequences, with the mistakes that readers make in them.

Queries, keys, values and outputs are in the text's layout, a token a column; so are scores, whose columns
belong to queries.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise

# The window


@exercise(
    "long_sequences.window_mask",
    inputs=lambda g: [
        (6, 2, False),
        (6, 2, True),
        (5, 1, True),
        (5, 1, False),
        (7, 3, True),
        *((5, w, causal) for w in (4, 5, 6) for causal in (True, False)),  # just not all tokens, all
        (4, 9, True),
        (4, 9, False),
        (1, 1, True),
        (1, 1, False),
    ],
)
def window_mask(n: int, w: int, causal: bool) -> Tensor:
    """Booleans (n, n), keys down, queries across: True where they are less than w tokens apart.
    If causal, also only where the key does not stand after the query. w is at least 1.
    """
    places = torch.arange(n)
    distance = places - places[:, None]  # from key, down, to query, across
    return (distance < w) & (distance >= 0) if causal else distance.abs() < w


def _window_where(
    near: Callable[[Tensor, int], Tensor] = lambda d, w: d.abs() < w,
    back: Callable[[Tensor], Tensor] = lambda d: d >= 0,
) -> Callable[[int, int, bool], Tensor]:
    """The mask with another border, or another past, of distances from key to query."""

    def variant(n: int, w: int, causal: bool) -> Tensor:
        d = torch.arange(n) - torch.arange(n)[:, None]
        return near(d, w) & back(d) if causal else near(d, w)

    return variant


window_mask.mistake(
    "one token too many",
    "Your window is one token too wide: w counts the query's own token, so the farthest that it "
    "sees is w - 1 places away.",
    _window_where(near=lambda d, w: d.abs() <= w),
)

window_mask.mistake(
    "window centred",
    "Your window reaches half of w to each side. Here w - 1 tokens are seen on a side, and a "
    "causal window is the half of it that lies in the past.",
    _window_where(near=lambda d, w: d.abs() <= w // 2),
)

window_mask.mistake(
    "looking ahead",
    "Your causal window looks into the future: this is the code's layout, or its mirror image. "
    "Keys are down and queries across, so a query's past is above the diagonal.",
    _window_where(back=lambda d: d <= 0),
)

window_mask.mistake(
    "own token hidden",
    "Your causal queries do not see their own token; the first of them sees nothing at all.",
    _window_where(back=lambda d: d > 0),
)

window_mask.mistake(
    "never causal",
    "You look both ways even where `causal` is true.",
    lambda n, w, causal: window_mask(n, w, False),
)

window_mask.mistake(
    "always causal",
    "You look back only even where `causal` is false.",
    lambda n, w, causal: window_mask(n, w, True),
)

window_mask.mistake(
    "window itself forgotten",
    "Everything on the right side is seen, however far away it is: the distance has to be compared with w.",
    _window_where(near=lambda d, w: torch.ones_like(d, dtype=torch.bool)),
)

window_mask.mistake(
    "absolute value forgotten",
    "Right for causal windows. Elsewhere the distance has two signs, and all that lies on one side "
    "is nearer than w in yours: compare its absolute value.",
    _window_where(near=lambda d, w: d < w),
)

window_mask.mistake(
    "mask inverted",
    "True stands where attention is forbidden. Here True means 'may attend'.",
    lambda n, w, causal: ~window_mask(n, w, causal),
)

# The online softmax

State = tuple[Tensor, Tensor, Tensor]


def _online_inputs(g: torch.Generator) -> list[tuple]:
    def draw(size: int, largest: float, state: tuple[float, float], d: int = 3) -> tuple:
        s, V = torch.randn(size, generator=g), torch.randn(d, size, generator=g)
        m, total = (torch.tensor(x) for x in state)
        return m, total, torch.randn(d, generator=g), s - s.max() + largest, V

    first = (
        torch.tensor(-math.inf),
        torch.tensor(0.0),
        torch.zeros(3),
        torch.tensor([2.0, 1.0]),
        torch.eye(3)[:, :2],
    )
    m, total, y, z, V = draw(4, 1.0, (0.5, 2.0))
    return [
        draw(4, 3.0, (1.0, 2.5)),
        draw(3, -1.0, (2.0, 1.5)),
        draw(1, 2.0, (2.0, 1.0)),  # as large as the maximum so far
        first,
        draw(5, 900.0, (890.0, 3.0)),
        draw(5, -890.0, (-900.0, 3.0)),
        (m, total, y, z.where(torch.tensor([False, True, False, True]), -math.inf), V),  # two keys hidden
        draw(1, 1.0, (0.0, 1.5), d=1),
        draw(1, 0.0, (1.0, 1.5), d=1),
    ]


@exercise("long_sequences.online_step", inputs=_online_inputs)
def online_step(m: Tensor, total: Tensor, y: Tensor, z: Tensor, V: Tensor) -> State:
    """The new m, total, y of one query, (), (), (Dv,), that has seen a tile's scores (T,) and values (Dv, T).
    total is the sum of exp(score - m) so far and y that of values times it. At first m is minus infinity and
    the sums are 0; a key's score may be minus infinity, but not all of a tile's.
    """
    new = torch.maximum(m, z.max())
    old, p = (m - new).exp(), (z - new).exp()
    return new, total * old + p.sum(), y * old + V @ p


def _online_with(
    top: Callable[[Tensor, Tensor], Tensor] = lambda m, z: torch.maximum(m, z.max()),
    old_total: Callable[[Tensor, Tensor], Tensor] = lambda m, new: (m - new).exp(),
    old_y: Callable[[Tensor, Tensor], Tensor] = lambda m, new: (m - new).exp(),
    add: Callable[[Tensor, Tensor], Tensor] = lambda V, p: V @ p,
) -> Callable[..., State]:
    """A step with another maximum, other factors for the old sums, or another sum of values."""

    def variant(m: Tensor, total: Tensor, y: Tensor, z: Tensor, V: Tensor) -> State:
        new = top(m, z)
        p = (z - new).exp()
        return new, total * old_total(m, new) + p.sum(), y * old_y(m, new) + add(V, p)

    return variant


def _one(m: Tensor, new: Tensor) -> Tensor:
    return torch.ones(())


def _inverse(m: Tensor, new: Tensor) -> Tensor:
    return (new - m).exp()


def _divided_at_once(m: Tensor, total: Tensor, y: Tensor, z: Tensor, V: Tensor) -> State:
    new, new_total, new_y = online_step(m, total, y, z, V)
    return new, new_total, new_y / new_total


online_step.mistake(
    "old sums not rescaled",
    "You add new exponentials to old ones that were taken relative to another maximum. Bring "
    "the old sums to the new maximum first.",
    _online_with(old_total=_one, old_y=_one),
)

online_step.mistake(
    "rescaled the wrong way",
    "Your factor for the old sums is exp(new - old), the inverse. A maximum that has grown makes "
    "what was summed before count less.",
    _online_with(old_total=_inverse, old_y=_inverse),
)

online_step.mistake(
    "weighted sum not rescaled",
    "You rescale the denominator but not the weighted sum of values; both were taken relative "
    "to the old maximum.",
    _online_with(old_y=_one),
)

online_step.mistake(
    "denominator not rescaled",
    "You rescale the weighted sum of values but not the denominator; both were taken relative "
    "to the old maximum.",
    _online_with(old_total=_one),
)

online_step.mistake(
    "maximum of the tile alone",
    "You take the maximum of the new tile. The maximum so far may be larger; the old sums are "
    "then blown up, and in a long sequence they overflow.",
    _online_with(top=lambda m, z: z.max()),
)

online_step.mistake(
    "maximum never updated",
    "You keep the first maximum. Starting at minus infinity that is NaN, and a larger score "
    "later on overflows.",
    _online_with(top=lambda m, z: m),
)

online_step.mistake(
    "mean of the tile",
    "You add the tile's weighted mean. What is added up are weighted sums; the division comes "
    "once, at the end.",
    _online_with(add=lambda V, p: V @ p / p.sum()),
)

online_step.mistake(
    "divided at once",
    "You divide the sum of values by the denominator already. A later tile changes both: they "
    "are carried along as sums, and divided once, at the end.",
    _divided_at_once,
)

# Two halves


def _merge_inputs(g: torch.Generator) -> list[tuple]:
    def draw(shift: float, d: int = 3, n: int = 4) -> tuple:
        Y_1, Y_2 = torch.randn(d, n, generator=g), torch.randn(d, n, generator=g)
        return Y_1, torch.randn(n, generator=g) + shift, Y_2, torch.randn(n, generator=g) + shift

    def at(a: list[float], b: list[float]) -> tuple:
        Y_1, _, Y_2, _ = draw(0.0, n=len(a))
        return Y_1, torch.tensor(a), Y_2, torch.tensor(b)

    return [
        draw(0.0),
        draw(3.0),
        draw(200.0),
        draw(-200.0),
        at([300.0, -300.0, 0.25, 2.0], [300.5, -301.0, 0.5, 2.0]),  # each query has its own size
        at([1000.0, -1000.0, 0.0], [-1000.0, 1000.0, 1.0]),  # the halves lie far apart
        at([1000.0, -1000.0], [1000.5, -1000.5]),  # float64 does not help
        draw(0.0, 1, 1),
    ]


@exercise("long_sequences.merge", inputs=_merge_inputs, tolerance=1e-4)  # 1000.5 has so many digits
def merge(Y_1: Tensor, a: Tensor, Y_2: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The outputs over both halves and log(e^a + e^b): (Dv, N), (N,), (Dv, N), (N,) -> (Dv, N), (N,).
    Each half's output counts in proportion to e^a or e^b, its denominator. The logarithms are finite, of any
    size, thousands among them.
    """
    first = torch.sigmoid(a - b)
    return first * Y_1 + (1 - first) * Y_2, torch.logaddexp(a, b)


def _merged_with(
    share: Callable[[Tensor, Tensor], Tensor] = lambda a, b: torch.sigmoid(a - b),
    both: Callable[[Tensor, Tensor], Tensor] = torch.logaddexp,
) -> Callable[..., tuple[Tensor, Tensor]]:
    """Another share of the first half, or another logarithm."""

    def variant(Y_1: Tensor, a: Tensor, Y_2: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        first = share(a, b)
        return first * Y_1 + (1 - first) * Y_2, both(a, b)

    return variant


def _merged_relative_to(top: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., tuple[Tensor, Tensor]]:
    """Exponentials relative to something made of both logarithms, which is added again afterwards."""

    def variant(Y_1: Tensor, a: Tensor, Y_2: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        m = top(a, b)
        first, second = (a - m).exp(), (b - m).exp()
        Y = (first * Y_1 + second * Y_2) / (first + second)
        return Y.to(Y_1.dtype), (m + (first + second).log()).to(a.dtype)

    return variant


merge.mistake(
    "plain average",
    "You average the two outputs. A half with larger scores deserves the larger share: its part "
    "of the common denominator.",
    _merged_with(share=lambda a, b: torch.full_like(a, 0.5)),
)

merge.mistake(
    "shares by the logarithms",
    "Your shares are the logarithms' own shares. Shares are of the totals, exp(a) and exp(b).",
    _merged_with(share=lambda a, b: a / (a + b)),
)

merge.mistake(
    "halves exchanged",
    "Each half gets the other one's share: the larger logarithm is to get the larger share.",
    _merged_with(share=lambda a, b: torch.sigmoid(b - a)),
)

merge.mistake(
    "logarithms added",
    "You add the logarithms, which multiplies the totals. The totals are to be added.",
    _merged_with(both=lambda a, b: a + b),
)

merge.mistake(
    "larger logarithm kept",
    "You keep the larger of the two logarithms. It is only a bound of the logarithm of the sum, "
    "and up to log 2 too small.",
    _merged_with(both=torch.maximum),
)

merge.mistake(
    "exponentials overflow",
    "Where the logarithms are large or very negative your exponentials overflow or vanish: "
    "subtract the larger logarithm first, as in every softmax.",
    _merged_relative_to(lambda a, b: torch.zeros(())),
)

merge.mistake(
    "float64 without a maximum",
    "In float64 the exponentials overflow later, beyond 709, but they do. Subtract each query's "
    "larger logarithm first; then float32 is enough.",
    _merged_relative_to(lambda a, b: torch.zeros(len(a), dtype=torch.float64)),
)

merge.mistake(
    "one maximum for all queries",
    "You subtract the largest logarithm of all queries. The exponentials of a query that lies "
    "far below it vanish, which gives 0/0: subtract each query's own, max(a, b).",
    _merged_relative_to(lambda a, b: torch.maximum(a.max(), b.max())),
)

merge.mistake(
    "mean of the logarithms subtracted",
    "You subtract the mean of the two logarithms. Where they lie far apart the exponential of "
    "the larger still overflows: subtract the larger itself.",
    _merged_relative_to(lambda a, b: (a + b) / 2),
)

merge.mistake(
    "always the first logarithm subtracted",
    "You subtract a. Where b is much larger exp(b - a) overflows: subtract the larger of the two.",
    _merged_relative_to(lambda a, b: a),
)

# The backward pass


def _backward_inputs(g: torch.Generator) -> list[tuple]:
    def draw(d: int, n: int, s: int, seen: int, shift: float = 0.0) -> tuple:
        """A tile of `seen` keys, out of s that the outputs have seen."""
        Z, V = 2 * torch.randn(s, n, generator=g) + shift, torch.randn(d, s, generator=g)
        return Z[:seen], Z.logsumexp(0), V[:, :seen], V @ Z.softmax(0), torch.randn(d, n, generator=g)

    return [
        draw(3, 4, 6, 2),
        draw(2, 3, 5, 3),
        draw(4, 2, 4, 4),
        draw(3, 3, 5, 3),
        draw(2, 3, 5, 3, shift=200.0),
        draw(2, 4, 5, 2, shift=-200.0),
        draw(1, 1, 3, 1),
    ]


@exercise("long_sequences.tile_backward", inputs=_backward_inputs)
def tile_backward(Z: Tensor, L: Tensor, V: Tensor, Y: Tensor, dY: Tensor) -> tuple[Tensor, Tensor]:
    """dZ (T, N) and dV (Dv, T) of a tile's scores (T, N) and values (Dv, T), with Y and dY (Dv, N), L (N,).
    L has the logarithms of the denominators over all keys, and the outputs Y have read all keys.
    """
    A = (Z - L).exp()
    dZ = A * (V.T @ dY - (Y * dY).sum(dim=0))
    return dZ, dY @ A.T


def _backward_with(
    weights: Callable[[Tensor, Tensor], Tensor] = lambda Z, L: (Z - L).exp(),
    mean: Callable[..., Tensor] = lambda A, dA, Y, dY: (Y * dY).sum(dim=0),
    outer: Callable[[Tensor, Tensor], Tensor] = lambda A, x: A * x,
) -> Callable[..., tuple[Tensor, Tensor]]:
    """The gradients with other weights A, another mean of dA, or another product of both."""

    def variant(Z: Tensor, L: Tensor, V: Tensor, Y: Tensor, dY: Tensor) -> tuple[Tensor, Tensor]:
        A, dA = weights(Z, L), V.T @ dY
        return outer(A, dA - mean(A, dA, Y, dY)), dY @ A.T

    return variant


tile_backward.mistake(
    "softmax of the tile",
    "You normalise over the tile. The weights were normalised over all keys, those of other "
    "tiles too: exp(Z - L), with the logarithm of the whole denominator that was kept.",
    _backward_with(weights=lambda Z, L: Z.softmax(0)),
)

tile_backward.mistake(
    "softmax over queries",
    "Your weights sum to one over the queries. Each query, a column of Z, has a distribution "
    "over all keys, whose denominator is kept in L: exp(Z - L).",
    _backward_with(weights=lambda Z, L: Z.softmax(1)),
)

tile_backward.mistake(
    "mean over the tile",
    "Your mean of the gradient runs over the tile's keys. It is over all keys, and one can have "
    "it without them: the sum of dY * Y over a query's features.",
    _backward_with(mean=lambda A, dA, Y, dY: (A * dA).sum(dim=0)),
)

tile_backward.mistake(
    "mean forgotten",
    "You treat the weights as if each could grow by itself. They sum to one, and so the mean of "
    "the gradient under the weights is subtracted.",
    _backward_with(mean=lambda A, dA, Y, dY: torch.zeros(())),
)

tile_backward.mistake(
    "weights forgotten",
    "Your gradient of the scores is not multiplied with the weights. A key with weight zero has no gradient.",
    _backward_with(outer=lambda A, x: x),
)

tile_backward.mistake(
    "denominator forgotten",
    "Your weights are exp(Z), without their denominator: subtract a query's logarithm L first.",
    _backward_with(weights=lambda Z, L: Z.exp()),
)

tile_backward.mistake(
    "divided by the logarithm",
    "You divide exp(Z) by L. L is the logarithm of the denominator: subtract it in the exponent.",
    _backward_with(weights=lambda Z, L: Z.exp() / L),
)

tile_backward.mistake(
    "exponentials overflow",
    "Right for moderate scores. exp(Z) / exp(L) overflows for large ones and is 0/0 for very "
    "negative ones: subtract before the exponential, exp(Z - L).",
    _backward_with(weights=lambda Z, L: Z.exp() / L.exp()),
)

tile_backward.mistake(
    "gradients exchanged",
    "Both gradients are right, and you return them in the other order: first that of the scores.",
    lambda Z, L, V, Y, dY: tile_backward(Z, L, V, Y, dY)[::-1],
)

# Linear attention


def _linear_inputs(g: torch.Generator) -> list[tuple]:
    def draw(dh: int, dv: int, past: int) -> tuple:
        k, v = torch.randn(dh, past, generator=g), torch.randn(dv, past, generator=g)
        features = torch.nn.functional.elu(k) + 1
        rest = (torch.randn(n, generator=g) for n in (dh, dh, dv))
        return v @ features.T, features.sum(dim=1), *rest

    return [
        draw(4, 3, 5),
        draw(3, 4, 1),
        draw(2, 2, 30),
        draw(3, 2, 0),  # the first token, which finds zeros
        draw(1, 1, 2),
        draw(1, 1, 0),
    ]


@exercise("long_sequences.linear_step", inputs=_linear_inputs)
def linear_step(U: Tensor, u: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(y, U', u'): output (Dv,) and new state of (Dv, Dh), (Dh,) after a token's q, k (Dh,) and v (Dv,).
    U' = U + v phi(k)^T, u' = u + phi(k) and y = U' phi(q) / (u' . phi(q)) with phi = elu + 1.
    """
    features = torch.nn.functional.elu(k) + 1
    U, u = U + torch.outer(v, features), u + features
    reads = torch.nn.functional.elu(q) + 1
    return U @ reads / (u @ reads), U, u


def _phi(x: Tensor) -> Tensor:
    return torch.nn.functional.elu(x) + 1


def _linear_with(
    on_q: Callable[[Tensor], Tensor] = _phi,
    on_k: Callable[[Tensor], Tensor] = _phi,
    divide: Callable[[Tensor, Tensor], Tensor] = lambda y, total: y / total,
) -> Callable[..., tuple[Tensor, Tensor, Tensor]]:
    """A step with other features, or without its division."""

    def variant(U: Tensor, u: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        U, u = U + torch.outer(v, on_k(k)), u + on_k(k)
        return divide(U @ on_q(q), u @ on_q(q)), U, u

    return variant


def _read_first(U: Tensor, u: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return U @ _phi(q) / (u @ _phi(q)), *linear_step(U, u, q, k, v)[1:]


def _output_last(U: Tensor, u: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    y, U, u = linear_step(U, u, q, k, v)
    return U, u, y


linear_step.mistake(
    "read before written",
    "The token reads the state before its own pair is in it. A causal query sees its own key.",
    _read_first,
)

linear_step.mistake(
    "state replaced",
    "You keep the new pair and forget all others: it is added to the state.",
    lambda U, u, q, k, v: linear_step(torch.zeros_like(U), torch.zeros_like(u), q, k, v),
)

linear_step.mistake(
    "not divided",
    "You return the sum of values without its denominator, so outputs grow with the length of the past.",
    _linear_with(divide=lambda y, total: y),
)

linear_step.mistake(
    "features of the query forgotten",
    "You read with the query itself. Similarity is the product of the features of both.",
    _linear_with(on_q=lambda x: x),
)

linear_step.mistake(
    "features of the key forgotten",
    "You write with the key itself. Similarity is the product of the features of both.",
    _linear_with(on_k=lambda x: x),
)

linear_step.mistake(
    "no features at all",
    "You compare query and key themselves. Their product may be negative, and no weight may be: "
    "take the features of both first, elu + 1.",
    _linear_with(on_q=lambda x: x, on_k=lambda x: x),
)

linear_step.mistake(
    "one not added",
    "Your features are elu(x), which may be negative; then weights may be, and their sum may be "
    "zero. Add one.",
    _linear_with(on_q=torch.nn.functional.elu, on_k=torch.nn.functional.elu),
)

linear_step.mistake(
    "output last",
    "You return the state first and the output last. The output comes first, then the new U and u.",
    _output_last,
)

# The delta rule


def _delta_inputs(g: torch.Generator) -> list[tuple]:
    def draw(dh: int, dv: int, n: int, size: float = 1.0) -> tuple:
        K = size * torch.nn.functional.normalize(torch.randn(dh, n, generator=g), dim=0)
        U, V = torch.randn(dv, dh, generator=g), torch.randn(dv, n, generator=g)
        return U, K, V, torch.rand(n, generator=g)

    U, K, V, _ = draw(4, 2, 5)
    return [
        draw(4, 3, 6),
        draw(3, 5, 4),
        draw(2, 2, 7, size=1.3),  # keys need not have length 1
        (U, K, V, torch.ones(5)),
        draw(3, 1, 2),
        draw(2, 3, 1),  # a chunk of one
    ]


@exercise("long_sequences.delta_writes", inputs=_delta_inputs)
def delta_writes(U: Tensor, K: Tensor, V: Tensor, beta: Tensor) -> Tensor:
    """C (Dv, n), whose column c_n token n of a chunk writes: (Dv, Dh), (Dh, n), (Dv, n), (n,) -> (Dv, n).
    c_n + beta_n sum over i < n of (k_i . k_n) c_i = beta_n (v_n - U k_n), U being the state before the chunk.
    """
    C = torch.zeros_like(V)
    for n in range(V.shape[1]):
        before = C[:, :n] @ (K[:, :n].T @ K[:, n])  # what the chunk has written so far, read by k_n
        C[:, n] = beta[n] * (V[:, n] - U @ K[:, n] - before)
    return C


def _writes_with(
    before: Callable[..., Tensor] = lambda C, K, V, b, n: C[:, :n] @ (K[:, :n].T @ K[:, n]),
    write: Callable[..., Tensor] = lambda b, wanted, before: b * (wanted - before),
) -> Callable[..., Tensor]:
    """The writes with another sum over the chunk, or another combination of it with what is wanted."""

    def variant(U: Tensor, K: Tensor, V: Tensor, beta: Tensor) -> Tensor:
        C = torch.zeros_like(V)
        for n in range(V.shape[1]):
            wanted = V[:, n] - U @ K[:, n]
            C[:, n] = write(beta[n], wanted, before(C, K, V, beta, n))
        return C

    return variant


def _backwards(U: Tensor, K: Tensor, V: Tensor, beta: Tensor) -> Tensor:
    return delta_writes(U, K.flip(1), V.flip(1), beta.flip(0)).flip(1)


def _own_key(U: Tensor, K: Tensor, V: Tensor, beta: Tensor) -> Tensor:
    system = (beta * (K.T @ K)).triu()
    return torch.linalg.solve(torch.eye(len(beta)) + system, beta * (V - U @ K), left=False)


delta_writes.mistake(
    "added without looking",
    "You write beta times the value, whatever the state says already. Only the error is written.",
    lambda U, K, V, beta: beta * V,
)

delta_writes.mistake(
    "state before the chunk alone",
    "Each of your tokens reads the state before the chunk. Token n also reads what the tokens before it "
    "in the chunk have written: the sum over i < n.",
    lambda U, K, V, beta: beta * (V - U @ K),
)

delta_writes.mistake(
    "state before the chunk forgotten",
    "Your chunk begins with an empty state. What U already answers to a key has to be subtracted from "
    "its value.",
    lambda U, K, V, beta: delta_writes(torch.zeros_like(U), K, V, beta),
)

delta_writes.mistake(
    "rate forgotten in the sum",
    "Your sum over earlier tokens is not multiplied by beta_n. The rate multiplies the whole error.",
    _writes_with(write=lambda b, wanted, before: b * wanted - before),
)

delta_writes.mistake(
    "the earlier tokens' rates in the sum",
    "Each term of your sum is multiplied by the rate of the token that wrote it, which is in c_i already. "
    "The sum as a whole is multiplied by beta_n, the rate of the token that writes now.",
    _writes_with(
        before=lambda C, K, V, b, n: (b[:n] * C[:, :n]) @ (K[:, :n].T @ K[:, n]),
        write=lambda b, wanted, before: b * wanted - before,
    ),
)

delta_writes.mistake(
    "rates forgotten",
    "You write the whole error, as if every rate were 1.",
    lambda U, K, V, beta: delta_writes(U, K, V, torch.ones_like(beta)),
)

delta_writes.mistake(
    "values in place of writes",
    "Your sum holds beta_i v_i, what earlier tokens would write if they only added. What they do write "
    "is c_i, which you have solved for already.",
    _writes_with(before=lambda C, K, V, b, n: (b[:n] * V[:, :n]) @ (K[:, :n].T @ K[:, n])),
)

delta_writes.mistake(
    "sign of the sum",
    "You add what the chunk has written so far. It is part of the state's answer, which is subtracted.",
    _writes_with(before=lambda C, K, V, b, n: -C[:, :n] @ (K[:, :n].T @ K[:, n])),
)

delta_writes.mistake(
    "later tokens",
    "You begin at the last token, so that each sees the writes after it. Causal writes see those before.",
    _backwards,
)

delta_writes.mistake(
    "own key in the sum",
    "Your sum runs to n itself. A token's error is that of the state before its own write: i < n.",
    _own_key,
)


def _gated_inputs(g: torch.Generator) -> list[tuple]:
    def draw(dh: int, dv: int, n: int) -> tuple:
        K = torch.nn.functional.normalize(torch.randn(dh, n, generator=g), dim=0)
        U, Q, V = (torch.randn(*shape, generator=g) for shape in ((dv, dh), (dh, n), (dv, n)))
        return U, Q, K, V, torch.rand(n, generator=g), 0.3 + 0.7 * torch.rand(n, generator=g)

    U, Q, K, V, beta, _ = draw(3, 2, 4)
    return [draw(4, 3, 6), draw(3, 5, 4), draw(2, 2, 7), (U, Q, K, V, beta, torch.ones(4)), draw(2, 3, 1)]


def _gated(
    state: Callable[[Tensor], Tensor] = lambda G: G,
    system: Callable[[Tensor], Tensor] = lambda D: D,
    read: Callable[[Tensor], Tensor] = lambda D: D,
    kept: Callable[[Tensor], Tensor] = lambda G: G[-1],
    written: Callable[[Tensor], Tensor] = lambda D: D[:, -1],
    products: Callable[[Tensor], Tensor] = lambda gate: gate.cumprod(0),
    between: Callable[[Tensor], Tensor] = lambda G: G / G[:, None],
) -> Callable[..., tuple[Tensor, Tensor]]:
    """A chunk of the gated delta rule, in which each place where a gate stands can be changed."""

    def variant(
        U: Tensor, Q: Tensor, K: Tensor, V: Tensor, beta: Tensor, gate: Tensor
    ) -> tuple[Tensor, Tensor]:
        G = products(gate)
        D = between(G)
        coefficients = (beta * system(D) * (K.T @ K)).triu(1)
        right = beta * (V - state(G) * (U @ K))
        C = torch.linalg.solve_triangular(coefficients, right, upper=True, left=False, unitriangular=True)
        Y = state(G) * (U @ Q) + C @ (read(D) * (K.T @ Q)).triu()
        return Y, kept(G) * U + (C * written(D)) @ K.T

    return variant


@exercise("long_sequences.gated_chunk", inputs=_gated_inputs)
def gated_chunk(
    U: Tensor, Q: Tensor, K: Tensor, V: Tensor, beta: Tensor, gate: Tensor
) -> tuple[Tensor, Tensor]:
    """(Y, U'), (Dv, n) and (Dv, Dh): a chunk of the gated delta rule after the state U (Dv, Dh).
    Q, K are (Dh, n), V is (Dv, n), beta and gate (n,). A token's gate multiplies the state before it writes.
    """
    G = gate.cumprod(dim=0)  # what is left of U at each token
    D = G / G[:, None]  # entry (i, n): what is left of write i at token n
    system = (beta * D * (K.T @ K)).triu(1)
    right = beta * (V - G * (U @ K))
    C = torch.linalg.solve_triangular(system, right, upper=True, left=False, unitriangular=True)
    Y = G * (U @ Q) + C @ (D * (K.T @ Q)).triu()
    return Y, G[-1] * U + (C * D[:, -1]) @ K.T


def _no_gate(x: Tensor) -> Tensor:
    return torch.ones_like(x)


gated_chunk.mistake(
    "gate forgotten",
    "This is the delta rule without a gate: nothing fades.",
    lambda U, Q, K, V, beta, gate: gated_chunk(U, Q, K, V, beta, torch.ones_like(gate)),
)

gated_chunk.mistake(
    "state does not fade for the tokens",
    "Token n finds the state before the chunk multiplied by all gates up to its own. In yours it finds "
    "all of it.",
    _gated(state=_no_gate),
)

gated_chunk.mistake(
    "writes do not fade inside the chunk",
    "The state before the chunk fades in yours, but the chunk's own writes do not. A write by token i is "
    "multiplied by every gate after i.",
    _gated(between=lambda G: torch.ones(len(G), len(G))),
)

gated_chunk.mistake(
    "system without gates",
    "The gates are missing from the triangular system: an earlier write that a key reads has faded in "
    "between.",
    _gated(system=_no_gate),
)

gated_chunk.mistake(
    "outputs without gates",
    "Your queries read the chunk's own writes as if they had not faded.",
    _gated(read=_no_gate),
)

gated_chunk.mistake(
    "old state kept whole",
    "The state that you hand on still holds all of U. All gates of the chunk have multiplied it.",
    _gated(kept=lambda G: torch.ones(())),
)

gated_chunk.mistake(
    "writes kept whole",
    "The state that you hand on holds the chunk's writes as they were written. Each has faded until the "
    "chunk's end.",
    _gated(written=lambda D: torch.ones(len(D))),
)

gated_chunk.mistake(
    "fades after writing",
    "Your gate multiplies the state after the token has written and read. It comes first: a token's own "
    "gate is in the product that multiplies the state before it.",
    lambda U, Q, K, V, beta, gate: _gated(products=lambda g: torch.cat((g[:1] * 0 + 1, g[:-1])).cumprod(0))(
        U, Q, K, V, beta, gate
    ),
)

gated_chunk.mistake(
    "last gate only",
    "You use each token's own gate alone. Between token i and token n every gate multiplies: a product.",
    _gated(products=lambda gate: gate),
)

gated_chunk.mistake(
    "quotient turned round",
    "Your factor between two tokens is the inverse, so writes grow. Between i and n it is G_n over G_i.",
    _gated(between=lambda G: G[:, None] / G),
)

gated_chunk.mistake(
    "gates before the write too",
    "You multiply a write by all gates up to token n, also by those before it was written. Divide by the "
    "product up to i.",
    _gated(between=lambda G: G.expand(len(G), len(G))),
)

gated_chunk.mistake(
    "state first",
    "You return the state first. The outputs come first, then the state.",
    lambda *inputs: gated_chunk(*inputs)[::-1],
)

# Low rank


def _low_rank_inputs(g: torch.Generator) -> list[tuple]:
    def draw(dh: int, dv: int, n: int, s: int, r: int) -> tuple:
        return tuple(
            torch.randn(*shape, generator=g) for shape in ((dh, n), (dh, s), (dv, s), (r, s), (r, s))
        )

    return [
        draw(4, 4, 5, 5, 2),
        draw(3, 5, 4, 6, 3),
        draw(2, 3, 1, 7, 4),
        draw(3, 3, 2, 4, 2),
        draw(2, 4, 3, 5, 1),  # a single mixture
        draw(1, 1, 1, 1, 2),
    ]


@exercise("long_sequences.low_rank_columns", inputs=_low_rank_inputs)
def low_rank_columns(Q: Tensor, K: Tensor, V: Tensor, E: Tensor, F: Tensor) -> Tensor:
    """V F^T softmax((K E^T)^T Q / sqrt(Dh)): (Dh, N), (Dh, S), (Dv, S), (r, S), (r, S) -> (Dv, N).
    The softmax runs over the r mixtures, for each query.
    """
    scores = (K @ E.T).T @ Q / math.sqrt(len(Q))
    return V @ F.T @ scores.softmax(dim=0)


def _low_rank_scaled(factor: Callable[[int, int, int], float]) -> Callable[..., Tensor]:
    """The output for queries that are longer by a factor, made of Dh, r and S."""
    return lambda Q, K, V, E, F: low_rank_columns(Q * factor(len(Q), *E.shape), K, V, E, F)


low_rank_columns.mistake(
    "E for the values too",
    "You mix the values by E. They have a matrix of their own, F.",
    lambda Q, K, V, E, F: low_rank_columns(Q, K, V, E, E),
)

low_rank_columns.mistake(
    "F for the keys too",
    "You mix the keys by F. They have a matrix of their own, E.",
    lambda Q, K, V, E, F: low_rank_columns(Q, K, V, F, F),
)

low_rank_columns.mistake(
    "matrices exchanged",
    "You mix the keys by F and the values by E; it is the other way about.",
    lambda Q, K, V, E, F: low_rank_columns(Q, K, V, F, E),
)

low_rank_columns.mistake(
    "softmax over queries",
    "Your weights sum to one over the queries. Each query, a column of scores, has a "
    "distribution over the r mixtures.",
    lambda Q, K, V, E, F: V @ F.T @ ((K @ E.T).T @ Q / math.sqrt(len(Q))).softmax(1),
)

low_rank_columns.mistake(
    "missing scale",
    "The scores are not divided by the root of Dh.",
    _low_rank_scaled(lambda dh, r, s: math.sqrt(dh)),
)

low_rank_columns.mistake(
    "scale by Dh instead of its root",
    "Your scores are divided by Dh, either at once or by its root twice, for instance in Q and "
    "again in the product. Divide once, by the square root.",
    _low_rank_scaled(lambda dh, r, s: 1 / math.sqrt(dh)),
)

low_rank_columns.mistake(
    "scale by the root of r",
    "You divide by the root of the rank. A score is still a sum over Dh features.",
    _low_rank_scaled(lambda dh, r, s: math.sqrt(dh / r)),
)

low_rank_columns.mistake(
    "scores mixed instead of keys' mean",
    "You take the softmax over all keys and mix the weights afterwards. That costs N by S "
    "scores, which the mixtures were there to avoid.",
    lambda Q, K, V, E, F: V @ F.T @ (E @ (K.T @ Q / math.sqrt(len(Q))).softmax(0)),
)

low_rank_columns.mistake(
    "keys and values not mixed",
    "This is attention over all S keys. Mix them first, to r: K E^T and V F^T.",
    lambda Q, K, V, E, F: V @ (K.T @ Q / math.sqrt(len(Q))).softmax(0),
)

low_rank_columns.mistake(
    "scaled_dot_product_attention without transposing",
    "You hand columns to `scaled_dot_product_attention`, which expects a token a row: it takes "
    "features for tokens. Transpose the three matrices, and its answer back.",
    lambda Q, K, V, E, F: torch.nn.functional.scaled_dot_product_attention(Q, K @ E.T, V @ F.T),
)

# Where it turns quadratic


@exercise(
    "long_sequences.crossing",
    inputs=lambda g: [
        (768, 3072, False),
        (12288, 49152, False),
        (4096, 14336, True),
        (64, 100, True),
        (5, 7, False),
        (5, 7, True),  # 10.5
        (1, 1, True),
    ],
)
def crossing(d_model: int, d_hidden: int, gated: bool) -> float:
    """The N at which 4 N D operations a token, attention's products, are those of the MLP: a real number.
    The MLP has two matrices, three if it is gated; a multiplication with its addition is two operations.
    """
    matrices = 3 if gated else 2
    return 2 * matrices * d_model * d_hidden / (4 * d_model)


def _crossing_of(mlp: Callable[[int, int, bool], float]) -> Callable[[int, int, bool], float]:
    """Where 4 N D is this many operations."""
    return lambda d_model, d_hidden, gated: mlp(d_model, d_hidden, gated) / (4 * d_model)


crossing.mistake(
    "scores alone",
    "You count the scores and not the weighted sum of the values, which costs as much again: "
    "4 N D operations a token in all.",
    lambda d_model, d_hidden, gated: 2 * crossing(d_model, d_hidden, gated),
)

crossing.mistake(
    "multiplications against operations",
    "You count multiplications on one side, and multiplications and additions on the other. "
    "A multiplication with its addition is two, on both sides.",
    lambda d_model, d_hidden, gated: crossing(d_model, d_hidden, gated) / 2,
)

crossing.mistake(
    "projections counted",
    "You count the four projections on the MLP's side. They do not grow with N either, and "
    "with them the point lies further out; here the question is about the MLP alone.",
    _crossing_of(lambda d, f, gated: (6 if gated else 4) * d * f + 8 * d * d),
)

crossing.mistake(
    "third matrix forgotten",
    "A gated MLP has three matrices; yours has two.",
    _crossing_of(lambda d, f, gated: 4 * d * f),
)

crossing.mistake(
    "third matrix always counted",
    "Your MLP has three matrices whether it is gated or not. Without a gate it has two.",
    _crossing_of(lambda d, f, gated: 6 * d * f),
)

crossing.mistake(
    "hidden width taken to be 4 D",
    "You take the hidden width to be 4 D. It is an argument.",
    _crossing_of(lambda d, f, gated: (6 if gated else 4) * d * 4 * d),
)

crossing.mistake(
    "rounded down",
    "You divide by `//`, which rounds down. The two costs may be equal between two whole lengths: "
    "return the quotient as it is.",
    lambda d_model, d_hidden, gated: crossing(d_model, d_hidden, gated) // 1,
)
