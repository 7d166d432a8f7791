"""A small language model whose attention is exchanged, and a selection of keys that is learned.

Every layer's queries, keys and values pass through a short convolution, so that a key knows which characters
came before its own; there are no other positions. What follows is any `Backend`.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tformer_lib import TransformerConfig
from tformer_lib.core.attention import Backend, FusedAttend, masked_softmax, scaled_scores
from tformer_lib.core.transformer import Block
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss


class ConvolvedLinear(nn.Linear):
    """y_n = sum over i of t_i * (W x_(n-i) + b), entry by entry; t begins near (1, 0, ..., 0).

    Args:
        d_in, d_out: the widths.
        taps: how many tokens are seen, the present one included.
    """

    def __init__(self, d_in: int, d_out: int, taps: int = 4):
        super().__init__(d_in, d_out)
        self.taps = nn.Parameter(torch.eye(taps)[:, :1] + 0.02 * torch.randn(taps, d_out))

    def forward(self, x: Float[Tensor, "B N _"]) -> Float[Tensor, "B N _"]:
        y, n = super().forward(x), x.shape[1]
        padded = F.pad(y, (0, 0, len(self.taps) - 1, 0))
        return sum(
            (tap * padded[:, len(self.taps) - 1 - i :][:, :n] for i, tap in enumerate(self.taps)),
            torch.zeros_like(y),
        )


class ConvolvedBlock(Block):
    """A block in which W_q, W_k and W_v are `ConvolvedLinear`: a short convolution, as in DeltaNet's layers.

    At first W_k = W_q, and a key is that of the token *before*. So a query finds what came after an earlier
    occurrence of its own token, without having to learn it.
    """

    def __init__(self, config: TransformerConfig, **parts: object):
        super().__init__(config, **parts)  # type: ignore[arg-type]
        for name in ("W_q", "W_k", "W_v"):
            setattr(self.self_attention, name, ConvolvedLinear(config.d_model, config.d_model))
        self.self_attention.reset_parameters()
        q, k = self.self_attention.W_q, self.self_attention.W_k
        with torch.no_grad():
            k.weight.copy_(q.weight)
            k.taps.copy_(k.taps.roll(1, 0))  # type: ignore[operator]


class Pattern(FusedAttend):
    """Attention under one more mask, which is made for N tokens by `pattern(N)`; it saves no work."""

    def __init__(self, pattern: Callable[[int], Bool[Tensor, "N N"]]):
        super().__init__()
        self.pattern = pattern

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return super().attend(q, k, v, self.pattern(q.shape[-2]))


def top_keys(
    scores: Float[Tensor, "*batch N S"], mask: Bool[Tensor, "N S"], top: int
) -> Bool[Tensor, "*batch N S"]:
    """Of the keys that a query may see, the `top` with the largest scores; all, where there are no more."""
    best = scores.masked_fill(~mask, -torch.inf).topk(min(top, scores.shape[-1])).indices
    chosen = torch.zeros(scores.shape, dtype=torch.bool).scatter_(
        -1, best, torch.tensor(True).expand_as(best)
    )
    return chosen & mask


class TopAttend(Backend):
    """Attention to the `top` keys with the largest scores, for each head; to all while `dense`."""

    def __init__(self, top: int):
        super().__init__()
        self.top, self.dense = top, False

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        scores = scaled_scores(q, k)
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril() if mask is None else mask
        seen = mask if self.dense else top_keys(scores.detach(), mask, self.top)
        return masked_softmax(scores, seen) @ v


class Indexer(nn.Module):
    """I_ns = sum over j of w_nj ReLU(a_nj . b_s): a cheap score of key s for query n (DeepSeek-AI 2025).

    The small queries a_nj and their weights w_nj are linear in a token's query, the small key b_s in its key.
    Queries and keys get no gradient from here.

    Args:
        d_model: the width of a token's queries (and keys), all heads side by side.
        n_heads: the number J of small heads.
        d_head: their width.
    """

    def __init__(self, d_model: int, n_heads: int = 2, d_head: int = 8):
        super().__init__()
        self.n_heads = n_heads
        self.W_a = nn.Linear(d_model, n_heads * d_head, bias=False)
        self.W_b = nn.Linear(d_model, d_head, bias=False)
        self.W_w = nn.Linear(d_model, n_heads)

    def forward(self, q: Float[Tensor, "B H N Dh"], k: Float[Tensor, "B H N Dh"]) -> Float[Tensor, "B N N"]:
        q, k = (x.detach().transpose(1, 2).flatten(2) for x in (q, k))  # (B, N, D)
        a = self.W_a(q).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)  # (B, J, N, d)
        b = self.W_b(k)[:, None]  # (B, 1, N, d)
        w = self.W_w(q).transpose(1, 2)[..., None]  # (B, J, N, 1)
        return (w * F.relu(a @ b.mT)).sum(dim=1)


class IndexedAttend(Backend):
    """Attention to the `top` keys that an `Indexer` scores highest, the same for all heads.

    `loss` is left by each call: the mean over queries of KL(t_n || softmax(I_n)), where t_n is the weight
    that attention gives to each key that it sees, the mean of its heads. It trains the indexer and nothing
    else, and the text's loss does not reach the indexer. While `dense` is True all keys are seen.
    """

    def __init__(self, d_model: int, top: int):
        super().__init__()
        self.indexer = Indexer(d_model)
        self.top, self.dense = top, False
        self.loss: Tensor | None = None

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        index = self.indexer(q, k)  # (B, N, N)
        mask = torch.ones(index.shape[-2:], dtype=torch.bool).tril() if mask is None else mask
        seen = mask.expand_as(index) if self.dense else top_keys(index.detach(), mask, self.top)
        weights = masked_softmax(scaled_scores(q, k), seen[:, None])
        self.loss = indexer_loss(index, weights.detach().mean(dim=1), seen)
        return weights @ v


def indexer_loss(
    index: Float[Tensor, "B N S"], target: Float[Tensor, "B N S"], seen: Bool[Tensor, "B N S"]
) -> Float[Tensor, ""]:
    """Mean over n of sum over s of t_ns log(t_ns / p_ns), with p_n = softmax(I_n) over the seen keys."""
    log_p = index.masked_fill(~seen, torch.finfo(index.dtype).min).log_softmax(dim=-1)
    return (torch.special.xlogy(target, target) - target * log_p).sum(dim=-1).mean()


def small_language_model(
    vocab: int, layers: Sequence[Callable[[], Backend]], *, d_model: int = 64, n_heads: int = 2
) -> GPT:
    """A decoder with a block for each of `layers`, which build their backends; no positions."""
    config = TransformerConfig(d_model=d_model, n_heads=n_heads, n_blocks=len(layers), d_hidden=2 * d_model)
    rest = iter(layers)
    return GPT(config, vocab, block=ConvolvedBlock, make_backend=lambda: next(rest)())


class Selected(Backend):
    """Attention to the `top` keys that a rule scores highest, in a model that is trained already.

    `kept` is left by each call: the share of full attention's weight that lies on these keys, for each query
    the mean of its heads, (B, N). `own` is the share on the best `top` keys of each head, (B, H, N).

    Args:
        top: how many keys a query reads.
        rule: of the queries, the keys and attention's own weights (B, H, N, N) the scores (B, N, N).
    """

    def __init__(self, top: int, rule: Callable[[Tensor, Tensor, Tensor], Tensor]):
        super().__init__()
        self.top, self.rule = top, rule
        self.kept: Tensor | None = None
        self.own: Tensor | None = None

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        scores = scaled_scores(q, k)
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril() if mask is None else mask
        weights = masked_softmax(scores, mask)
        seen = top_keys(self.rule(q, k, weights), mask, self.top)[:, None]  # (B, 1, N, N)
        self.kept = (weights * seen).sum(dim=-1).mean(dim=1)
        self.own = weights.topk(min(self.top, weights.shape[-1]), dim=-1).values.sum(dim=-1)
        return masked_softmax(scores, seen) @ v


def exact(q: Tensor, k: Tensor, weights: Tensor) -> Tensor:
    """The mean of the heads' own weights."""
    return weights.mean(dim=1)


def recent(q: Tensor, k: Tensor, weights: Tensor) -> Tensor:
    """The later, the better."""
    return torch.arange(weights.shape[-1], dtype=weights.dtype).expand_as(weights[:, 0])


def at_random(q: Tensor, k: Tensor, weights: Tensor) -> Tensor:
    """Any, drawn anew for each query."""
    return torch.rand_like(weights[:, 0])


def by_indexer(indexer: Indexer) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """What an indexer says."""
    return lambda q, k, weights: indexer(q, k)


class SparseLater:
    """The language's loss and the indexers'; the first `dense` calls let all keys be seen."""

    def __init__(self, dense: int):
        self.dense, self.calls = dense, 0

    def __call__(self, model: nn.Module, batch: Int[Tensor, "B M"]) -> Float[Tensor, ""]:
        select(model, self.calls >= self.dense)
        self.calls += 1
        loss = language_loss(model, batch)
        for module in model.modules():
            if isinstance(module, IndexedAttend) and module.loss is not None:
                loss = loss + module.loss
        return loss


def select(model: nn.Module, selecting: bool) -> None:
    """Whether a model's layers that can select keys do so."""
    for module in model.modules():
        if isinstance(module, IndexedAttend | TopAttend):
            module.dense = not selecting
