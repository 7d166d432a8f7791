"""The code exercises of the chapter on long sequences, with the mistakes that readers make in them.

Queries, keys, values and outputs are in the text's layout, a token a column; so are scores, whose columns
belong to queries.
"""

import math

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise


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


window_mask.add_mistakes("""
one token too many
    | distance < w => distance <= w
    | .abs() < w => .abs() <= w
    Your window is one token too wide: w counts the query's own token, so the farthest that it sees is w -
    1 places away.
looking ahead | places - places[:, None] => places[:, None] - places
    Your causal window looks into the future: this is the code's layout, or its mirror image. Keys are
    down and queries across, so a query's past is above the diagonal.
never causal | if causal else => if False else
    You look both ways even where `causal` is true.
absolute value forgotten | distance.abs() => distance
    Right for causal windows. Elsewhere the distance has two signs, and all that lies on one side is
    nearer than w in yours: compare its absolute value.
""")


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


online_step.add_mistakes("""
old sums not rescaled
    | total * old => total
    | y * old => y
    You add new exponentials to old ones that were taken relative to another maximum. Bring the old sums
    to the new maximum first.
rescaled the wrong way | (m - new).exp() => (new - m).exp()
    Your factor for the old sums is exp(new - old), the inverse. A maximum that has grown makes what was
    summed before count less.
weighted sum not rescaled | y * old => y
    You rescale the denominator but not the weighted sum of values; both were taken relative to the old
    maximum.
denominator not rescaled | total * old => total
    You rescale the weighted sum of values but not the denominator; both were taken relative to the old
    maximum.
maximum of the tile alone | torch.maximum(m, z.max()) => z.max()
    You take the maximum of the new tile. The maximum so far may be larger; the old sums are then blown
    up, and in a long sequence they overflow.
""")


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


merge.add_mistakes("""
plain average | torch.sigmoid(a - b) => 0.5
    You average the two outputs. A half with larger scores deserves the larger share: its part of the
    common denominator.
halves exchanged | a - b => b - a
    Each half gets the other one's share: the larger logarithm is to get the larger share.
logarithms added | torch.logaddexp(a, b) => a + b
    You add the logarithms, which multiplies the totals. The totals are to be added.
exponentials overflow
    | first = => a, b = a.exp(), b.exp(); first =
    | first * Y_1 + (1 - first) * Y_2, torch.logaddexp(a, b) => (a * Y_1 + b * Y_2) / (a + b), (a + b).log()
    Where the logarithms are large or very negative your exponentials overflow or vanish: subtract the
    larger logarithm first, as in every softmax.
""")


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


tile_backward.add_mistakes("""
softmax of the tile | (Z - L).exp() => Z.softmax(dim=0)
    You normalise over the tile. The weights were normalised over all keys, those of other tiles too:
    exp(Z - L), with the logarithm of the whole denominator that was kept.
mean over the tile | (Y * dY) => (A * (V.T @ dY))
    Your mean of the gradient runs over the tile's keys. It is over all keys, and one can have it without
    them: the sum of dY * Y over a query's features.
mean forgotten | - (Y * dY).sum(dim=0) =>
    You treat the weights as if each could grow by itself. They sum to one, and so the mean of the
    gradient under the weights is subtracted.
exponentials overflow | (Z - L).exp() => Z.exp() / L.exp()
    Right for moderate scores. exp(Z) / exp(L) overflows for large ones and is 0/0 for very negative ones:
    subtract before the exponential, exp(Z - L).
""")


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


linear_step.add_mistakes("""
read before written
    | => lambda U, u, q, k, v: (U @ (F.elu(q) + 1) / (u @ (F.elu(q) + 1)), *linear_step(U, u, q, k, v)[1:])
    The token reads the state before its own pair is in it. A causal query sees its own key.
not divided | / (u @ reads) =>
    You return the sum of values without its denominator, so outputs grow with the length of the past.
one not added | ) + 1 => )
    Your features are elu(x), which may be negative; then weights may be, and their sum may be zero. Add
    one.
""")


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


delta_writes.add_mistakes("""
added without looking | V[:, n] - U @ K[:, n] - before => V[:, n]
    You write beta times the value, whatever the state says already. Only the error is written.
state before the chunk alone | - before =>
    Each of your tokens reads the state before the chunk. Token n also reads what the tokens before it in
    the chunk have written: the sum over i < n.
rate forgotten in the sum | (V[:, n] - U @ K[:, n] - before) => (V[:, n] - U @ K[:, n]) - before
    Your sum over earlier tokens is not multiplied by beta_n. The rate multiplies the whole error.
the earlier tokens' rates in the sum
    | C[:, :n] @ => (beta[:n] * C[:, :n]) @
    | (V[:, n] - U @ K[:, n] - before) => (V[:, n] - U @ K[:, n]) - before
    Each term of your sum is multiplied by the rate of the token that wrote it, which is in c_i already.
    The sum as a whole is multiplied by beta_n, the rate of the token that writes now.
own key in the sum | beta[n] * (V => beta[n] / (1 + beta[n] * K[:, n] @ K[:, n]) * (V
    Your sum runs to n itself. A token's error is that of the state before its own write: i < n.
""")


def _gated_inputs(g: torch.Generator) -> list[tuple]:
    def draw(dh: int, dv: int, n: int) -> tuple:
        K = torch.nn.functional.normalize(torch.randn(dh, n, generator=g), dim=0)
        U, Q, V = (torch.randn(*shape, generator=g) for shape in ((dv, dh), (dh, n), (dv, n)))
        return U, Q, K, V, torch.rand(n, generator=g), 0.3 + 0.7 * torch.rand(n, generator=g)

    U, Q, K, V, beta, _ = draw(3, 2, 4)
    return [draw(4, 3, 6), draw(3, 5, 4), draw(2, 2, 7), (U, Q, K, V, beta, torch.ones(4)), draw(2, 3, 1)]


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


gated_chunk.add_mistakes("""
gate forgotten | gate.cumprod => torch.ones_like(gate).cumprod
    This is the delta rule without a gate: nothing fades.
writes do not fade inside the chunk | G / G[:, None] => torch.ones(len(G), len(G))
    The state before the chunk fades in yours, but the chunk's own writes do not. A write by token i is
    multiplied by every gate after i.
system without gates | beta * D * => beta *
    The gates are missing from the triangular system: an earlier write that a key reads has faded in
    between.
outputs without gates | C @ (D * (K.T @ Q)) => C @ (K.T @ Q)
    Your queries read the chunk's own writes as if they had not faded.
fades after writing | gate.cumprod(dim=0) => torch.cat((torch.ones(1), gate[:-1])).cumprod(dim=0)
    Your gate multiplies the state after the token has written and read. It comes first: a token's own
    gate is in the product that multiplies the state before it.
""")


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


low_rank_columns.add_mistakes("""
E for the values too | F.T => E.T
    You mix the values by E. They have a matrix of their own, F.
softmax over queries | dim=0 => dim=1
    Your weights sum to one over the queries. Each query, a column of scores, has a distribution over the
    r mixtures.
missing scale | / math.sqrt(len(Q)) =>
    The scores are not divided by the root of Dh.
scores mixed instead of keys' mean
    | => lambda Q, K, V, E, F: V @ F.T @ (E @ (K.T @ Q / math.sqrt(len(Q))).softmax(0))
    You take the softmax over all keys and mix the weights afterwards. That costs N by S scores, which the
    mixtures were there to avoid.
""")


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


crossing.add_mistakes("""
scores alone | (4 * d_model) => (2 * d_model)
    You count the scores and not the weighted sum of the values, which costs as much again: 4 N D
    operations a token in all.
projections counted | matrices * d_model * d_hidden => (matrices * d_model * d_hidden + 4 * d_model**2)
    You count the four projections on the MLP's side. They do not grow with N either, and with them the
    point lies further out; here the question is about the MLP alone.
third matrix forgotten | 3 if gated else 2 => 2
    A gated MLP has three matrices; yours has two.
""")
