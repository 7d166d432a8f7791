"""GPT: a causal transformer over tokens (Radford et al. 2018, 2019)."""

from collections.abc import Callable

from jaxtyping import Float, Int
from torch import Tensor, nn

from tformer_lib.core.attention import Backend
from tformer_lib.core.cache import KVCache, already_read
from tformer_lib.core.masks import causal_mask
from tformer_lib.core.tokens import TokenEmbedding
from tformer_lib.core.transformer import Block, Transformer, TransformerConfig


class GPT(nn.Module):
    """logits_n = E h_n, with h = Transformer(positions(E[tokens])) under a causal mask.

    Token n's logits say what token n + 1 may be, and depend on tokens 1..n alone. The matrix E that turns
    tokens into vectors also turns vectors into logits: the head is tied (Press and Wolf 2017).

    Args:
        config: sizes and choices of the stack.
        vocab_size: the number of tokens.
        positions: a module that adds positions to embeddings, such as `LearnedPositions(max_len, D)`;
            none if the positions come in by `rotary`, by `make_backend`, or not at all.
        rotary: turns queries and keys.
        make_backend: builds a backend for each attention layer.
        block: what the stack is made of.
        tied: whether the head is E; otherwise logits_n = W h_n with a matrix W of its own.

    Raises:
        ValueError: in forward, if a token is not in the vocabulary, or the tokens are not (B, N).
        TypeError: in forward, if the tokens are not whole numbers.
    """

    def __init__(
        self,
        config: TransformerConfig,
        vocab_size: int,
        *,
        positions: nn.Module | None = None,
        rotary: nn.Module | None = None,
        make_backend: Callable[[], Backend] | None = None,
        block: type[Block] = Block,
        tied: bool = True,
    ):
        super().__init__()
        self.config = config
        self.embed = TokenEmbedding(vocab_size, config.d_model, axes="B N")
        nn.init.normal_(self.embed.weight, std=0.05)
        self.positions = positions
        self.dropout = nn.Dropout(config.dropout)
        self.transformer = Transformer(config, rotary=rotary, make_backend=make_backend, block=block)
        self.head = None if tied else nn.Linear(config.d_model, self.embed.num_embeddings, bias=False)

    @property
    def max_len(self) -> int | None:
        """The longest sequence the model can read; None where its positions set no limit."""
        return getattr(self.positions, "max_len", None)

    def new_cache(self) -> KVCache:
        """An empty cache for this model."""
        return KVCache(self.config.n_blocks)

    def forward(self, tokens: Int[Tensor, "B N"], cache: KVCache | None = None) -> Float[Tensor, "B N vocab"]:
        """Logits for the token after each of `tokens` (B, N), which follow those that `cache` holds."""
        past = already_read(cache)
        x = self.embed(tokens)
        if self.positions is not None:
            x = self.positions(x, past)
        n = tokens.shape[1]
        mask = causal_mask(n, tokens.device, past=past) if n > 1 else None  # a last token may see all
        h = self.transformer(self.dropout(x), mask=mask, cache=cache)
        return h @ (self.embed if self.head is None else self.head).weight.T
