"""What came after the block of this chapter, each part as small as it can be written, on the library's GPT.

Every class is a block, or a model, in which one thing is new; `newer.ipynb` explains and tries them, and
`experiments/modern_decoder.py` measures two. They are for training: none has a cache.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tformer_lib.core.attention import FusedAttend, MultiHeadAttention
from tformer_lib.core.tokens import TokenEmbedding, cross_entropy
from tformer_lib.core.transformer import Block, TransformerConfig, make_norm
from tformer_lib.models.gpt import GPT

AHEAD = 0.3  # the weight of the second loss


class ValueResidual(GPT):
    """v_m <- a_m v_1 + b_m W_v x in every block m but the first (Zhou et al. 2025); a = b = 1/2 at first."""

    def __init__(self, config: TransformerConfig, vocab_size: int, **parts: Any):
        super().__init__(config, vocab_size, **parts)
        first, *later = (m for m in self.modules() if isinstance(m, MultiHeadAttention))
        kept: dict[str, Tensor] = {}
        first.W_v.register_forward_hook(lambda layer, given, made: kept.update(v=made))
        for attention in later:
            setattr(attention, "W_v", MixedValues(attention.W_v, lambda: kept["v"]))  # noqa: B010


class MixedValues(nn.Module):
    """a v_1 + b W_v x."""

    def __init__(self, own: nn.Linear, first: Callable[[], Tensor]):
        super().__init__()
        self.own, self.first = own, first
        self.shares = nn.Parameter(torch.full((2,), 0.5))

    def forward(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N V"]:
        return self.shares[0] * self.first() + self.shares[1] * self.own(x)


class GatedAttention(MultiHeadAttention):
    """W_o (sigmoid(W_g x) * heads), with a number for each head, or for each entry (Qiu et al. 2025).

    Args:
        d_model, n_heads, parts: as `MultiHeadAttention` has them.
        gates: how many numbers the gate has, H or D.
    """

    def __init__(self, d_model: int, n_heads: int, *, gates: int, **parts: Any):
        super().__init__(d_model, n_heads, **parts)
        self.W_g = nn.Linear(d_model, gates, bias=False)
        self.gate = torch.ones(1)  # of the last call

    def forward(self, x: Float[Tensor, "B N D"], *others: Any, **named: Any) -> Float[Tensor, "B N D"]:
        self.gate = self.W_g(x).sigmoid()
        return super().forward(x, *others, **named)

    def merge_heads(self, x: Float[Tensor, "B H N Dh"]) -> Float[Tensor, "B N D"]:
        """The heads side by side, each entry times its gate."""
        heads = super().merge_heads(x)
        return heads * self.gate.repeat_interleave(heads.shape[-1] // self.gate.shape[-1], dim=-1)


def gated(per_entry: bool) -> type[Block]:
    """A block whose attention has a gate for each entry, or for each head."""

    class Gated(Block):
        def __init__(self, config: TransformerConfig, *, rotary: nn.Module | None = None, **parts: Any):
            super().__init__(config, rotary=rotary, **parts)
            self.self_attention = GatedAttention(
                config.d_model, config.n_heads, gates=config.d_model if per_entry else config.n_heads,
                bias=config.bias, qk_norm=config.qk_norm, rotary=rotary, backend=FusedAttend(),
            )  # fmt: skip

    return Gated


class DecayedNorm(nn.Module):
    """gain * x / rms(x), with gain = w or, zero-centred, 1 + w; the weight has two axes, so that it decays.

    Args:
        width: D.
        centred: whether w begins at 0 and the gain is 1 + w; else it begins at 1 and is the gain.
        eps: joins the mean square.
    """

    def __init__(self, width: int, centred: bool, eps: float = 1e-5):
        super().__init__()
        self.centred, self.eps = centred, eps
        self.weight = nn.Parameter(torch.full((1, width), 0.0 if centred else 1.0))

    def forward(self, x: Float[Tensor, "*axes D"]) -> Float[Tensor, "*axes D"]:
        gain = 1 + self.weight if self.centred else self.weight
        return F.rms_norm(x, x.shape[-1:], eps=self.eps) * gain[0]


def with_decayed_norms(model: nn.Module, centred: bool) -> None:
    """Puts a `DecayedNorm` in the place of every RMSNorm of the model."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.RMSNorm):
                setattr(module, name, DecayedNorm(child.weight.shape[0], centred, child.eps or 1e-5))


class TwoAhead(GPT):
    """Beside the next token it predicts the one after, from its state and the next token's embedding.

    h' = block(W [h_n; norm(e_{n+1})]), logits = E norm(h'), as in DeepSeek-V3 (2024), section 2.2, with one
    token more. Called as any GPT it is one: what predicts further is for training only.
    """

    def __init__(self, config: TransformerConfig, vocab_size: int, **parts: Any):
        super().__init__(config, vocab_size, **parts)
        self.norm_e, self.norm_end = make_norm(config), make_norm(config)
        self.merge = nn.Linear(2 * config.d_model, config.d_model, bias=False)
        shared = {name: parts[name] for name in ("rotary", "make_backend") if name in parts}
        self.ahead = Block(config, **shared)

    def loss(self, batch: Int[Tensor, "B M"]) -> Float[Tensor, ""]:
        """The loss of the next token, and `AHEAD` times that of the one after."""
        tokens, nexts, after = batch[:, :-1], batch[:, 1:], batch[:, 2:]
        x = self.embed(tokens)
        n = tokens.shape[1]
        mask = torch.ones(n, n, dtype=torch.bool, device=x.device).tril()
        h = self.transformer(x, mask=mask)
        near = cross_entropy((h @ self.embed.weight.T).flatten(0, 1), nexts.flatten())
        both = torch.cat([h[:, :-1], self.norm_e(x[:, 1:])], dim=-1)  # of n, and of the token after it
        further = self.norm_end(self.ahead(self.merge(both), mask=mask[1:, 1:]))
        far = cross_entropy((further @ self.embed.weight.T).flatten(0, 1), after.flatten())
        return near + AHEAD * far


class NgramEmbedding(TokenEmbedding):
    """E[x_n] + T_2[(x_{n-1}, x_n) mod R] + T_3[(x_{n-2}, x_{n-1}, x_n) mod R]: groups as one number.

    Args:
        count: the number of tokens.
        width: D.
        rows: R, of each table; a prime.
    """

    def __init__(self, count: int, width: int, rows: int = 1601):
        super().__init__(count, width, axes="B N")
        self.rows = rows
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(2))

    def forward(self, input: Int[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        x, code, n = super().forward(input), input, input.shape[1]
        for earlier, table in enumerate(self.tables, 1):
            code = code * self.num_embeddings + F.pad(input, (earlier, 0))[:, :n]  # a group's number
            x = x + table(code % self.rows)
        return x


class Ngrams(GPT):
    """A GPT with an `NgramEmbedding`; the head is still tied to its table of single tokens."""

    def __init__(self, config: TransformerConfig, vocab_size: int, **parts: Any):
        super().__init__(config, vocab_size, **parts)
        self.embed = NgramEmbedding(vocab_size, config.d_model)
