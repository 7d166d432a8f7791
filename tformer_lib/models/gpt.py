"""GPT: a causal transformer over tokens (Radford et al. 2018, 2019)."""

from collections.abc import Callable

from jaxtyping import Float, Int
from torch import Tensor, nn

from tformer_lib.core.masks import causal_mask
from tformer_lib.core.transformer import Block, Transformer, TransformerConfig


class GPT(nn.Module):
    """logits_n = E h_n, with h = Transformer(positions(E[tokens])) under a causal mask.

    Token n's logits say what token n + 1 may be, and depend on tokens 1..n alone. The matrix E that turns
    tokens into vectors also turns vectors into logits: the head is tied (Press and Wolf 2017).

    Args:
        config: sizes and choices of the stack.
        vocab: the number of tokens.
        positions: a module that adds positions to embeddings, such as `LearnedPositions(max_len, D)`;
            none if the positions come in by `rotary`, by `attend`, or not at all.
        rotary: turns queries and keys.
        attend: builds a backend for each attention layer.
        block: what the stack is made of.
    """

    def __init__(
        self,
        config: TransformerConfig,
        vocab: int,
        *,
        positions: nn.Module | None = None,
        rotary: nn.Module | None = None,
        attend: Callable[[], nn.Module] | None = None,
        block: type[Block] = Block,
    ):
        super().__init__()
        self.embed = nn.Embedding(vocab, config.d_model)
        nn.init.normal_(self.embed.weight, std=0.05)
        self.positions = nn.Identity() if positions is None else positions
        self.transformer = Transformer(config, rotary=rotary, attend=attend, block=block)

    def forward(self, tokens: Int[Tensor, "B N"]) -> Float[Tensor, "B N vocab"]:
        x = self.positions(self.embed(tokens))
        mask = causal_mask(tokens.shape[1], tokens.device)
        return self.transformer(x, mask=mask) @ self.embed.weight.T
