"""A decoder of attention layers alone, and two that are built by hand."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from tformer_lib.core.transformer import Block, TransformerConfig
from tformer_lib.models.gpt import GPT


class AttentionBlock(Block):
    """x + attention(norm(x)): a block without an MLP."""

    def __init__(self, config: TransformerConfig, **parts: Any):
        super().__init__(config, **parts)
        del self.mlp, self.mlp_norm

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        mask: Tensor | None = None,
        context_mask: Tensor | None = None,
        cache: Any = None,
    ) -> Tensor:
        return self.residual(
            x, self.self_attention_norm, lambda y: self.self_attention(y, mask=mask, cache=cache)
        )


def attention_only(config: TransformerConfig, vocab_size: int, *, normed: bool = True, **options: Any) -> GPT:
    """A GPT without MLPs; with `normed=False` without norms too, so that it is a sum over paths.

    Source:
        Elhage et al. 2021.
    """
    model = GPT(config, vocab_size, block=AttentionBlock, **options)
    if not normed:
        model.transformer.final_norm = nn.Identity()
        blocks: Any = model.transformer.blocks
        for block in blocks:
            block.self_attention_norm = nn.Identity()
    return model


class TokenBefore(nn.Module):
    """x_n + W x_(n-1): each token is told the one before it, so that one layer can do what else takes two.

    It stands where positions are added.
    """

    def __init__(self, d_model: int):
        super().__init__()
        self.before = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor, past: int = 0) -> Tensor:
        if past:
            raise ValueError("the token before the first is not kept: read the whole sequence at once")
        return x + pad(self.before(x[:, :-1]), (0, 0, 1, 0))


class OneHotPositions(nn.Module):
    """x + P: place n has the unit vector n, behind two fields as wide as the vocabulary."""

    def __init__(self, vocab_size: int, max_len: int):
        super().__init__()
        table = torch.zeros(max_len, 2 * vocab_size + max_len)
        table[:, 2 * vocab_size :] = torch.eye(max_len)
        self.register_buffer("table", table)
        self.max_len = max_len

    def forward(self, x: Tensor, past: int = 0) -> Tensor:
        return x + self.get_buffer("table")[past : past + x.shape[1]]


@torch.no_grad()
def built_induction(vocab_size: int, max_len: int, *, sharp: float = 200.0, connected: bool = True) -> GPT:
    """Two attention layers whose weights are written down, not trained, and which continue what has repeated.

    The stream has three fields: the token, the token before, the place. Head 0.0 looks at place n - 1 and
    copies its token into the second field. Head 1.0 compares its token with the second fields, finds the
    place behind the last occurrence of its token, and copies the token that stands there to the logits.
    Heads 0.1 and 1.1 do nothing.

    Args:
        vocab_size: the number of tokens V; the stream is 2 V + max_len wide.
        max_len: the longest sequence.
        sharp: the score of a match; the others are 0.
        connected: False lets head 1.0 compare with the *first* field. It then looks at its own token, and
            continues nothing, although both of its heads copy.
    """
    V, width = vocab_size, 2 * vocab_size + max_len
    if width % 2:
        raise ValueError(f"max_len must be even, for two heads of one width, got {max_len}")
    config = TransformerConfig(d_model=width, n_heads=2, n_blocks=2, bias=False)
    half = width // 2
    if max(V + 1, max_len) > half:
        raise ValueError(f"a head of width {half} cannot hold {V} tokens or {max_len} places")
    model = attention_only(config, V, normed=False, positions=OneHotPositions(V, max_len), tied=False)
    for p in model.parameters():
        p.zero_()
    model.embed.weight[:, :V] = torch.eye(V)
    head: Any = model.head
    head.weight[:, :V] = torch.eye(V)
    root = half**0.5
    blocks: Any = model.transformer.blocks
    before, match = (block.self_attention for block in blocks)
    place = 2 * V
    for n in range(1, max_len):
        before.W_q.weight[n - 1, place + n] = sharp * root  # place n asks for place n - 1
    before.W_k.weight[:max_len, place : place + max_len] = torch.eye(max_len)
    before.W_v.weight[:V, :V] = torch.eye(V)
    before.W_o.weight[V : 2 * V, :V] = torch.eye(V)  # into the second field
    match.W_q.weight[:V, :V] = sharp * root * torch.eye(V)
    field = slice(V, 2 * V) if connected else slice(0, V)
    match.W_k.weight[:V, field] = torch.eye(V)
    match.W_q.weight[V, :V] = sharp * root  # 1 for any token: place 0 has no token before it,
    match.W_k.weight[V, place] = -1.0  # and whatever it holds is not to match
    match.W_v.weight[:V, :V] = torch.eye(V)
    match.W_o.weight[:V, :V] = 2 * torch.eye(V)  # more than the 1 that the token itself has in the stream
    return model.eval()
