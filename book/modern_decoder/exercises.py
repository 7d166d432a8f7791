"""The code exercises of the chapter on modern decoders, with the mistakes that readers make in them.

Tensors are in the code's layout, a token a row, and weight matrices as `nn.Linear` keeps them, (out, in).
"""

import math

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise


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


qk_norm.add_mistakes("""
over all heads together | dim=-1 => dim=(1, 2)
    You divide by the root mean square of the whole row. Every head has its own: its scores are made from
    its Dh features alone.
length one | square().mean => square().sum
    You give each head's vector the length 1. Its root mean square is to be 1, so that its length is the
    root of Dh; otherwise all scores are Dh times too small.
mean subtracted | n_heads, -1) => n_heads, -1); heads = heads - heads.mean(dim=-1, keepdim=True)
    You subtract the mean first, which is LayerNorm. RMSNorm only divides.
heads interleaved
    | n_heads, -1) => -1, n_heads).mT
    | .flatten(1) => .mT.flatten(1)
    Your heads take every H-th feature. Head h owns Dh neighbouring features: the width is cut into (H,
    Dh), not (Dh, H).
""")


def _swiglu_inputs(g: torch.Generator) -> list[tuple]:
    def case(tokens: int, d: int, d_hidden: int, size: float = 1.0) -> tuple:
        shapes = (tokens, d), (d_hidden, d), (d_hidden, d), (d, d_hidden)
        return tuple(size * torch.randn(*shape, generator=g) for shape in shapes)

    return [
        case(3, 4, 6),
        case(2, 4, 4),  # square maps: nothing tells them from their transposes
        case(4, 3, 8),
        case(2, 3, 5, 3.0),  # gates far from zero
        case(1, 1, 1),
        (torch.tensor([[1.0]]), torch.tensor([[-2.0]]), torch.tensor([[3.0]]), torch.tensor([[1.0]])),
        (torch.zeros(2, 4), *case(2, 4, 6)[1:]),
    ]


@exercise("modern_decoder.swiglu", inputs=_swiglu_inputs, tolerance=1e-4)
def swiglu(x: Tensor, W_gate: Tensor, W_in: Tensor, W_out: Tensor) -> Tensor:
    """W_out (SiLU(W_gate x) * W_in x) for each token, SiLU(a) = a / (1 + exp(-a)): (N, D) -> (N, D)."""
    gate = x @ W_gate.T
    return (gate * gate.sigmoid() * (x @ W_in.T)) @ W_out.T


swiglu.add_mistakes("""
sigmoid for SiLU | gate * gate.sigmoid() => gate.sigmoid()
    Your gate is the sigmoid alone. SiLU multiplies it by its argument: a / (1 + exp(-a)).
SiLU on the other map | gate * gate.sigmoid() * (x @ W_in.T) => gate * F.silu(x @ W_in.T)
    You apply SiLU to W_in x. The gate is what W_gate makes, and SiLU goes there.
SiLU of the product | gate * gate.sigmoid() * (x @ W_in.T) => F.silu(gate * (x @ W_in.T))
    You multiply the two maps first and apply SiLU to the product. It belongs to the gate alone.
""")


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


share_heads.add_mistakes("""
repeat instead of repeat_interleave | => lambda k, n_heads: k.repeat(1, n_heads // k.shape[1], 1, 1)
    Your heads come as 0, 1, 0, 1: neighbours among the queries' heads get different keys. A group is
    neighbours: 0, 0, 1, 1, by repeat_interleave.
repeated along the tokens | dim=1 => dim=2
    You repeat tokens: the axis of the heads is the second, dim=1.
an axis of its own for the groups | dim=1) => dim=1).unflatten(1, (k.shape[1], -1))
    You return (B, H_kv, n_heads / H_kv, S, Dh). All heads lie along one axis: flatten the two.
""")


def _latent_inputs(g: torch.Generator) -> list[tuple]:
    def case(heads: int, d_head: int, d_latent: int, d_rotary: int, tokens: int) -> tuple:
        shapes = (heads, d_head), (heads, d_rotary), (tokens, d_latent), (tokens, d_rotary)
        return tuple(
            torch.randn(*shape, generator=g) for shape in (*shapes, *[(heads, d_head, d_latent)] * 2)
        )

    return [
        case(2, 3, 5, 2, 4),
        case(3, 2, 4, 4, 6),
        case(2, 4, 4, 2, 3),  # keys as wide as latents
        case(2, 3, 2, 2, 3),  # wider than latents
        case(1, 3, 4, 2, 5),  # one head
        case(2, 3, 5, 2, 1),  # the first token: nothing but itself
        _large_keys(g),
        _large_values(g),
    ]


def _large_keys(g: torch.Generator) -> tuple:
    """Every key would overflow. Moved to the query first, the same numbers are small."""

    def near(size: float, *shape: int) -> Tensor:
        return size * (1 + 0.05 * torch.randn(*shape, generator=g))

    maps = near(4e19, 2, 2, 4), 1e-19 * torch.randn(2, 2, 4, generator=g)  # 4 * 4e19 * 1e19 > 3.4e38
    return near(2e-38, 2, 2), torch.randn(2, 2, generator=g), near(1e19, 3, 4), near(1.0, 3, 2), *maps


def _large_values(g: torch.Generator) -> tuple:
    """The first token's value would overflow. Its weight is 0, so that its latent does not count."""
    q, qr, C, R = (
        torch.randn(2, 3, generator=g),
        torch.ones(2, 2),
        torch.randn(4, 4, generator=g),
        torch.zeros(4, 2),
    )
    C[0], R[0] = 1e30, -500.0  # exp(-300) is 0
    maps = 1e-30 * torch.randn(2, 3, 4, generator=g), 1e10 * (1 + torch.rand(2, 3, 4, generator=g))
    return q, qr, C, R, *maps


@exercise("modern_decoder.latent_step", inputs=_latent_inputs, tolerance=1e-4)
def latent_step(q: Tensor, qr: Tensor, C: Tensor, R: Tensor, W_uk: Tensor, W_uv: Tensor) -> Tensor:
    """Each head's output for the newest token, from latents: (H, Dh).

    A score is ((W_uk^T q) c + qr r) / sqrt(Dh + Dr), and the output W_uv (sum of a_s c_s). q (H, Dh) and
    qr (H, Dr) are the newest token's, C (S, Dc) and R (S, Dr) are kept, its own last.
    """
    moved = (q[:, None] @ W_uk)[:, 0]
    scores = (moved @ C.mT + qr @ R.mT) / math.sqrt(q.shape[1] + qr.shape[1])
    return (W_uv @ (scores.softmax(dim=1) @ C)[..., None])[..., 0]


latent_step.add_mistakes("""
keys and values made
    | (moved @ C.mT + => (((C @ W_uk.mT) @ q[..., None])[..., 0] +
    | (W_uv @ (scores.softmax(dim=1) @ C)[..., None])[..., 0] => (a[:, None] @ (C @ W_uv.mT))[:, 0]
    | return => a = scores.softmax(dim=1); return
    The numbers are right, but you make a key and a value of every latent, which overflow on one of the
    inputs. In the absorbed form W_uk is applied once, to the query, and W_uv once, to the average.
keys made | (moved @ C.mT + => (((C @ W_uk.mT) @ q[..., None])[..., 0] +
    The numbers are right, but you make a key of every latent, which overflows on one of the inputs. In
    the absorbed form W_uk is applied once, to the query, which then meets the latents themselves.
values made
    | (W_uv @ (scores.softmax(dim=1) @ C)[..., None])[..., 0] => (a[:, None] @ (C @ W_uv.mT))[:, 0]
    | return => a = scores.softmax(dim=1); return
    The numbers are right, but you make a value of every latent, which overflows on one of the inputs. In
    the absorbed form the latents are averaged, and W_uv is applied once, to the average.
divided by the root of Dh | + qr.shape[1]) => )
    You divide by the root of Dh alone. Query and key are Dh + Dr wide: the rotary entries count.
divided by the root of the latent's width | q.shape[1] + => C.shape[1] +
    You divide by the root of Dc + Dr, the width of what meets in the absorbed form. The scores are those
    of the expanded form, whose queries and keys are Dh + Dr wide.
rotary part left out | moved @ C.mT + qr @ R.mT => moved @ C.mT
    Your scores hold no positions: add the products of qr with the rows of R, which all heads share.
""")


@exercise(
    "modern_decoder.gates",
    inputs=lambda g: [
        (torch.randn(6, 4, generator=g), 2),
        (2 * torch.randn(5, 8, generator=g), 3),
        (torch.randn(4, 3, generator=g), 1),
        (3 * torch.randn(7, 5, generator=g), 1),
        (torch.randn(3, 3, generator=g), 3),  # everyone is asked: a softmax
        (torch.tensor([[math.log(3.0), 0.0, math.log(2.0), -1.0]]), 2),  # 0.6 and 0.4
        (torch.tensor([[-1.0, -2.0, -4.0], [-3.0, -0.5, -2.0]]), 2),
        (90 * torch.randn(4, 6, generator=g), 2),  # too large for a bare exponential
    ],
)
def gates(z: Tensor, k: int) -> Tensor:
    """p_i / sum of the k largest p for the k experts with the largest p = softmax(z), else 0: (T, E).

    For k = 1 the quotient would always be 1, and the gate is p_i itself.
    """
    top = z.softmax(dim=1).topk(k, dim=1)
    found = top.values if k == 1 else top.values / top.values.sum(dim=1, keepdim=True)
    return torch.zeros_like(z).scatter(1, top.indices, found)


gates.add_mistakes("""
not rescaled | top.values if k == 1 else top.values / top.values.sum(dim=1, keepdim=True) => top.values
    With k > 1 the gates of a token must sum to one: divide the k largest probabilities by their sum.
one expert's gate is one | top.values if k == 1 else =>
    With k = 1 your gates are all 1: a probability divided by itself. The router would get no gradient.
    Take the probability.
all experts asked | top = z.softmax(dim=1).topk(k, dim=1) => return z.softmax(dim=1)
    Every expert has a gate above 0. Only the k with the largest probabilities are asked.
zero for minus infinity
    | => lambda z, k: (z * torch.zeros_like(z).scatter(1, z.topk(k, dim=1).indices, 1.0)).softmax(dim=1)
    You set the other logits to 0 before the softmax. An exponential of 0 is 1: set them to minus
    infinity.
in the order of the choice | z.softmax => z.sort(dim=1, descending=True).values.softmax
    Column j of your answer belongs to a token's j-th choice. It should belong to expert j: scatter them
    back.
""")


@exercise(
    "modern_decoder.balance",
    inputs=lambda g: [
        (torch.randn(6, 4, generator=g).softmax(dim=1), 2),
        ((3 * torch.randn(9, 3, generator=g)).softmax(dim=1), 1),
        ((2 * torch.randn(5, 8, generator=g)).softmax(dim=1), 3),
        (torch.randn(7, 3, generator=g).softmax(dim=1), 2),
        (torch.randn(4, 4, generator=g).softmax(dim=1), 4),  # everyone is chosen: 1
        (torch.tensor([[0.7, 0.2, 0.1]]), 1),
        (torch.tensor([[0.1, 0.2, 0.7], [0.2, 0.1, 0.7]]), 1),
        (torch.tensor([[0.8, 0.2], [0.6, 0.4], [0.7, 0.3], [0.1, 0.9]]), 1),
    ],
)
def balance(p: Tensor, k: int) -> Tensor:
    """E sum_i f_i P_i: f_i the share of the T k choices that fell on expert i, P_i its mean p.

    Each token chooses the k experts with its largest p (T, E).
    """
    chosen = p.topk(k, dim=1).indices
    f = torch.bincount(chosen.flatten(), minlength=p.shape[1]) / chosen.numel()
    return p.shape[1] * (f * p.mean(dim=0)).sum()


balance.add_mistakes("""
factor E forgotten | p.shape[1] * =>
    The factor E is missing, or the sum over the experts is a mean. With both right the loss is 1 when all
    experts get equally many tokens.
divided by the tokens | chosen.numel() => len(p)
    You divide the counts by T. Each token makes k choices, T k in all, and the f_i must sum to one.
one choice for each token | topk(k, => topk(1,
    You count each token's best expert alone. It chooses k of them, and all its choices count.
""")


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


steepest.add_mistakes("""
divided by the largest singular value | u @ v_transposed => gradient / torch.linalg.matrix_norm(gradient, 2)
    With the spectral norm you return G divided by its largest singular value. Its norm is 1, but all
    smaller singular values are left below 1, where they gain less than they could.
V for its transpose | u @ v_transposed => u @ v_transposed.mT
    torch.linalg.svd returns the transpose of V already. Multiply by it as it comes.
full singular matrices | , full_matrices=False =>
    Right for square gradients. Otherwise U and V have columns without a singular value, and their shapes
    do not fit: torch.linalg.svd(gradient, full_matrices=False).
""")


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
        (torch.zeros(2, 3), 5),  # what W_q gets first if W_o begins as zero
        (torch.zeros(3, 2), 0),
    ],
    tolerance=1e-4,
)
def orthogonalise(gradient: Tensor, steps: int) -> Tensor:
    """X = G / |G|, the Frobenius norm, then `steps` times X <- a X + (b X X^T + c (X X^T)^2) X: both (m, n).

    The coefficients are Muon's, a = 3.4445, b = -4.7750 and c = 2.0315. A gradient of zeros stays zero.
    """
    x = gradient / gradient.norm().clamp_min(1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x


orthogonalise.add_mistakes("""
powers of entries | (-4.7750 * gram + 2.0315 * gram @ gram) @ x => -4.7750 * x**3 + 2.0315 * x**5
    You raise the entries to powers. The polynomial is one of matrices: X^3 stands for X X^T X, which
    changes the singular values and leaves their directions alone.
zero divided by zero | .clamp_min(1e-7) =>
    Right for every gradient but that of zeros: there you divide by 0, and the step is NaN. Divide by at
    least 1e-7.
not normalised | / gradient.norm().clamp_min(1e-7) =>
    You begin with the gradient as it is. The polynomial is made for singular values between 0 and 1:
    divide by the Frobenius norm first.
divided by the largest singular value | gradient.norm() => torch.linalg.matrix_norm(gradient, 2)
    You divide by the largest singular value. That would do, but it takes a decomposition, which the
    iteration is there to avoid: divide by the Frobenius norm.
one step only | range(steps) => range(min(1, steps))
    You take one step, whatever `steps` says. Does the loop return too early, or begin anew each time?
""")


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


to_halves.add_mistakes("""
the way back | view(n_heads, -1, 2, => view(n_heads, 2, -1,
    This is the way back, from halves to neighbours. In your result, rows 2i and 2i + 1 come from i and i
    + Dh/2; it must be the other way round.
the whole width at once | n_heads, -1 => 1, -1
    You reorder across all heads. Pairs live within a head: cut the rows into heads first.
order of the rows unchanged | .transpose(1, 2) =>
    Your rows are where they were. Between the two views the axes of the pairs and of their members change
    places.
""")
