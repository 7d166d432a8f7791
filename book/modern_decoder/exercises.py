"""The code exercises of the chapter on modern decoders, with the mistakes that readers make in them.

Tensors are in the code's layout, a token a row, and weight matrices as `nn.Linear` keeps them, (out, in).
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise

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

# The gated MLP


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


def _gated_with(
    join: Callable[[Tensor, Tensor], Tensor],
) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """Another way to join what the gate's map and the other map make of a token."""
    return lambda x, W_gate, W_in, W_out: join(x @ W_gate.T, x @ W_in.T) @ W_out.T


swiglu.mistake(
    "sigmoid for SiLU",
    "Your gate is the sigmoid alone. SiLU multiplies it by its argument: a / (1 + exp(-a)).",
    _gated_with(lambda gate, h: gate.sigmoid() * h),
)

swiglu.mistake(
    "SiLU on the other map",
    "You apply SiLU to W_in x. The gate is what W_gate makes, and SiLU goes there.",
    _gated_with(lambda gate, h: gate * torch.nn.functional.silu(h)),
)

swiglu.mistake(
    "SiLU of the product",
    "You multiply the two maps first and apply SiLU to the product. It belongs to the gate alone.",
    _gated_with(lambda gate, h: torch.nn.functional.silu(gate * h)),
)

swiglu.mistake(
    "SiLU on both",
    "You apply SiLU to both maps. The second, W_in x, is let through as it is.",
    _gated_with(lambda gate, h: torch.nn.functional.silu(gate) * torch.nn.functional.silu(h)),
)

swiglu.mistake(
    "no activation",
    "You multiply the two maps as they are. Apply SiLU to that of W_gate.",
    _gated_with(lambda gate, h: gate * h),
)

swiglu.mistake(
    "added",
    "You add the gate to the other map. A gate multiplies, entry by entry.",
    _gated_with(lambda gate, h: torch.nn.functional.silu(gate) + h),
)

swiglu.mistake(
    "other map left out",
    "You never use W_in: that is an MLP with SiLU and two matrices. Multiply by W_in x as well.",
    _gated_with(lambda gate, h: torch.nn.functional.silu(gate)),
)

swiglu.mistake(
    "GELU",
    "Your gate is GELU: that is GEGLU, a sister. SwiGLU takes SiLU, a / (1 + exp(-a)).",
    _gated_with(lambda gate, h: torch.nn.functional.gelu(gate) * h),
)

swiglu.mistake(
    "ReLU",
    "Your gate is ReLU, which is 0 below zero. SiLU, a / (1 + exp(-a)), is a little negative there.",
    _gated_with(lambda gate, h: gate.relu() * h),
)

swiglu.mistake(
    "maps back left out",
    "You return F' features a token. The last map, W_out, takes them back to D.",
    lambda x, W_gate, W_in, W_out: torch.nn.functional.silu(x @ W_gate.T) * (x @ W_in.T),
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

# One token against a cache of latents


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


def _latent_with(
    root: Callable[[int, int, int], float] = lambda head, rotary, latent: head + rotary,
    place: float = 1.0,
    weights: Callable[[Tensor], Tensor] = lambda scores: scores.softmax(dim=1),
    content: float = 1.0,
    keys: bool = False,
    values: bool = False,
) -> Callable[..., Tensor]:
    """Another divisor, parts of the scores left out, other weights, or keys and values for every token."""

    def variant(q: Tensor, qr: Tensor, C: Tensor, R: Tensor, W_uk: Tensor, W_uv: Tensor) -> Tensor:
        met = ((C @ W_uk.mT) @ q[..., None])[..., 0] if keys else (q[:, None] @ W_uk)[:, 0] @ C.mT
        scores = content * met + place * qr @ R.mT
        a = weights(scores / math.sqrt(root(q.shape[1], qr.shape[1], C.shape[1])))  # (H, S)
        return (a[:, None] @ (C @ W_uv.mT))[:, 0] if values else (W_uv @ (a @ C)[..., None])[..., 0]

    return variant


latent_step.mistake(
    "keys and values made",
    "The numbers are right, but you make a key and a value of every latent, which overflow on one of the "
    "inputs. In the absorbed form W_uk is applied once, to the query, and W_uv once, to the average.",
    _latent_with(keys=True, values=True),
)

latent_step.mistake(
    "keys made",
    "The numbers are right, but you make a key of every latent, which overflows on one of the inputs. In "
    "the absorbed form W_uk is applied once, to the query, which then meets the latents themselves.",
    _latent_with(keys=True),
)

latent_step.mistake(
    "values made",
    "The numbers are right, but you make a value of every latent, which overflows on one of the inputs. In "
    "the absorbed form the latents are averaged, and W_uv is applied once, to the average.",
    _latent_with(values=True),
)

latent_step.mistake(
    "divided by the root of Dh",
    "You divide by the root of Dh alone. Query and key are Dh + Dr wide: the rotary entries count.",
    _latent_with(root=lambda head, rotary, latent: head),
)

latent_step.mistake(
    "divided by the root of the latent's width",
    "You divide by the root of Dc + Dr, the width of what meets in the absorbed form. The scores are those "
    "of the expanded form, whose queries and keys are Dh + Dr wide.",
    _latent_with(root=lambda head, rotary, latent: latent + rotary),
)

latent_step.mistake(
    "divided by the root of the latent's width alone",
    "You divide by the root of Dc. The scores are those of queries and keys that are Dh + Dr wide.",
    _latent_with(root=lambda head, rotary, latent: latent),
)

latent_step.mistake(
    "not divided",
    "You do not divide the scores. Divide by the root of Dh + Dr.",
    _latent_with(root=lambda head, rotary, latent: 1),
)

latent_step.mistake(
    "rotary part left out",
    "Your scores hold no positions: add the products of qr with the rows of R, which all heads share.",
    _latent_with(place=0.0),
)

latent_step.mistake(
    "rotary part alone",
    "Your scores are those of the rotary part alone. Add those of the queries with the latents.",
    _latent_with(content=0.0),
)

latent_step.mistake(
    "softmax over the heads",
    "Your softmax goes over the heads. Each head has its own weights, which sum to one over the tokens.",
    _latent_with(weights=lambda scores: scores.softmax(dim=0)),
)

latent_step.mistake(
    "newest token left out",
    "The newest token does not see itself. Its latent is the last row of C, and counts like the others.",
    _latent_with(
        weights=lambda scores: torch.cat([scores[:, :-1].softmax(dim=1), 0 * scores[:, -1:]], dim=1),
    ),
)

latent_step.mistake(
    "maps exchanged",
    "You moved W_uv to the query and applied W_uk to the average. W_uk makes keys, W_uv values.",
    lambda q, qr, C, R, W_uk, W_uv: latent_step(q, qr, C, R, W_uv, W_uk),
)

latent_step.mistake(
    "keys for values",
    "You apply W_uk to the average of the latents. That averages keys; the values are W_uv's.",
    lambda q, qr, C, R, W_uk, W_uv: latent_step(q, qr, C, R, W_uk, W_uk),
)

latent_step.mistake(
    "the first head's maps for all",
    "All heads use the maps of the first. W_uk[h] and W_uv[h] belong to head h; only C and R are shared.",
    lambda q, qr, C, R, W_uk, W_uv: latent_step(
        q, qr, C, R, W_uk[:1].expand_as(W_uk), W_uv[:1].expand_as(W_uv)
    ),
)

latent_step.mistake(
    "average of latents returned",
    "You return each head's average of the latents, (H, Dc). Its values are made from that: apply W_uv once.",
    lambda q, qr, C, R, W_uk, W_uv: latent_step(
        q, qr, C, R, W_uk, torch.eye(C.shape[1]).expand(len(q), -1, -1)
    ),
)

# Who is asked, and how much each answer counts


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


def _asked(z: Tensor, k: int) -> Tensor:
    """True at the k largest logits of each token."""
    return torch.zeros_like(z, dtype=torch.bool).scatter(1, z.topk(k, dim=1).indices, value=True)


gates.mistake(
    "not rescaled",
    "With k > 1 the gates of a token must sum to one: divide the k largest probabilities by their sum.",
    lambda z, k: z.softmax(dim=1) * _asked(z, k),
)

gates.mistake(
    "one expert's gate is one",
    "With k = 1 your gates are all 1: a probability divided by itself. The router would get no gradient. "
    "Take the probability.",
    lambda z, k: gates(z, k) if k > 1 else _asked(z, k).float(),
)

gates.mistake(
    "all experts asked",
    "Every expert has a gate above 0. Only the k with the largest probabilities are asked.",
    lambda z, k: z.softmax(dim=1),
)

gates.mistake(
    "equal gates",
    "You give the k experts equal gates. A likelier expert counts more.",
    lambda z, k: _asked(z, k).float() / k,
)

gates.mistake(
    "zero for minus infinity",
    "You set the other logits to 0 before the softmax. An exponential of 0 is 1: set them to minus infinity.",
    lambda z, k: (z * _asked(z, k)).softmax(dim=1),
)

gates.mistake(
    "softmax over the tokens",
    "Your softmax runs over the tokens. The experts of one token compete with each other: dim=1.",
    lambda z, k: z.softmax(dim=0) * _asked(z, k),
)

gates.mistake(
    "logits divided by their sum",
    "You divide the logits by their sum. Logits may be negative: make probabilities of them first.",
    lambda z, k: z * _asked(z, k) / (z * _asked(z, k)).sum(dim=1, keepdim=True),
)

gates.mistake(
    "the least likely asked",
    "You ask the k experts with the smallest logits. `topk` gives the largest unless told otherwise.",
    lambda z, k: gates(-z, k),
)

gates.mistake(
    "in the order of the choice",
    "Column j of your answer belongs to a token's j-th choice. It should belong to expert j: scatter them "
    "back.",
    lambda z, k: gates(z.sort(dim=1, descending=True).values, k),
)

# A loss that keeps experts busy


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


def _shares(p: Tensor, k: int) -> Tensor:
    """Of the choices, by expert."""
    chosen = p.topk(k, dim=1).indices
    return torch.bincount(chosen.flatten(), minlength=p.shape[1]) / chosen.numel()


balance.mistake(
    "factor E forgotten",
    "The factor E is missing, or the sum over the experts is a mean. With both right the loss is 1 when all "
    "experts get equally many tokens.",
    lambda p, k: balance(p, k) / p.shape[1],
)

balance.mistake(
    "divided by the tokens",
    "You divide the counts by T. Each token makes k choices, T k in all, and the f_i must sum to one.",
    lambda p, k: balance(p, k) * k,
)

balance.mistake(
    "counts instead of shares",
    "You take the counts themselves. Divide them by their sum, T k.",
    lambda p, k: balance(p, k) * len(p) * k,
)

balance.mistake(
    "probabilities summed",
    "You sum the probabilities over the tokens. Take their mean: the loss must not grow with the batch.",
    lambda p, k: balance(p, k) * len(p),
)

balance.mistake(
    "mean over the experts, and no factor",
    "You take the mean over the experts. Sum over them, and multiply by E.",
    lambda p, k: balance(p, k) / p.shape[1] ** 2,
)

balance.mistake(
    "shares squared",
    "You multiply the shares by themselves. They are made of counts and pass no gradient: one factor must be "
    "the mean probability.",
    lambda p, k: p.shape[1] * (_shares(p, k) ** 2).sum(),
)

balance.mistake(
    "probabilities squared",
    "You multiply the mean probabilities by themselves. One factor is how often each expert was chosen.",
    lambda p, k: p.shape[1] * (p.mean(dim=0) ** 2).sum(),
)

balance.mistake(
    "one choice for each token",
    "You count each token's best expert alone. It chooses k of them, and all its choices count.",
    lambda p, k: balance(p, 1),
)

balance.mistake(
    "the least likely experts",
    "You count the experts with the smallest probabilities. A token goes to the k with the largest.",
    lambda p, k: (
        p.shape[1]
        * (
            torch.bincount(p.topk(k, dim=1, largest=False).indices.flatten(), minlength=p.shape[1])
            / (len(p) * k)
            * p.mean(dim=0)
        ).sum()
    ),
)

balance.mistake(
    "only the probabilities of the chosen",
    "Your mean looks at an expert's probability only where it was chosen. Take the mean over all tokens.",
    lambda p, k: (
        p.shape[1]
        * (
            _shares(p, k)
            * torch.zeros_like(p).scatter(1, p.topk(k, dim=1).indices, p.topk(k, dim=1).values).mean(dim=0)
        ).sum()
    ),
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


def _newton_schulz_with(
    a: float = 3.4445,
    b: float = -4.7750,
    c: float = 2.0315,
    start: Callable[[Tensor], Tensor] = lambda gradient: gradient / gradient.norm().clamp_min(1e-7),
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
    x = gradient / gradient.norm().clamp_min(1e-7)
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
    "zero divided by zero",
    "Right for every gradient but that of zeros: there you divide by 0, and the step is NaN. Divide by at "
    "least 1e-7.",
    _newton_schulz_with(start=lambda gradient: gradient / gradient.norm()),
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
    _newton_schulz_with(start=lambda gradient: gradient / gradient.abs().max().clamp_min(1e-7)),
)

orthogonalise.mistake(
    "divided by the largest singular value",
    "You divide by the largest singular value. That would do, but it takes a decomposition, which the "
    "iteration is there to avoid: divide by the Frobenius norm.",
    _newton_schulz_with(
        start=lambda gradient: gradient / torch.linalg.matrix_norm(gradient, 2).clamp_min(1e-7),
    ),
)

orthogonalise.mistake(
    "normalised in every step",
    "You normalise in every step, which undoes what the step before has lifted. Once, at the "
    "beginning, is enough.",
    _newton_schulz_with(end_of_step=lambda x: x / x.norm().clamp_min(1e-7)),
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
    x = gradient / gradient.norm().clamp_min(1e-7)
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
