"""The transformer: a configuration, the per-token MLP, the block, and the stack of blocks.

A `Transformer` maps (B, N, D) to (B, N, D); embeddings and heads belong to the models. What makes it
an encoder or a decoder is the mask it is called with; what makes it cross-attend is `cross_attention`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tformer_lib.core.attention import Attend, Backend, MultiHeadAttention
from tformer_lib.core.cache import KVCache, LayerCache, undone_if_refused
from tformer_lib.inputs import check_context, check_head_counts, check_tokens
from tformer_lib.numbers import check_fields, one_of, real, whole

Norm = Literal["layer", "rms"]
NormPlacement = Literal["pre", "post"]
Activation = Literal["gelu", "gelu_tanh", "relu", "squared_relu", "silu", "swiglu"]


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """The sizes and choices that define a transformer; letters are those of the text.

    Raises:
        TypeError: if a size is no whole number, a number none, or a switch neither True nor False.
        ValueError: if one is out of bounds, a choice is unknown, or heads do not divide the width.
    """

    d_model: int  # D, the width of a token
    n_heads: int  # H, query heads; each is Dh = D / H wide
    n_blocks: int  # M, the depth
    d_hidden: int | None = None  # F, the MLP's hidden width; 4 D if None
    n_kv_heads: int | None = None  # heads of keys and values; H if None
    norm: Norm = "layer"
    norm_placement: NormPlacement = "pre"
    norm_eps: float = 1e-5
    activation: Activation = "gelu"
    qk_norm: bool = False  # whether self-attention normalises queries and keys
    dropout: float = 0.0  # on attention weights, in the MLP, and on what a sublayer adds
    mlp_dropout: float | None = None  # in the MLP, if not the same
    bias: bool = True  # whether linears and LayerNorms add biases
    cross_attention: bool = False  # whether blocks also attend to a context

    def __post_init__(self) -> None:
        check_fields(self, dropout="[0, 1)", mlp_dropout="[0, 1)", norm_eps="(0, inf)")
        check_head_counts(self.d_model, self.n_heads, self.n_kv_heads)


def gelu_tanh(x: Tensor) -> Tensor:
    """GPT-2's approximation of GELU, x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    return F.gelu(x, approximate="tanh")


def squared_relu(x: Tensor) -> Tensor:
    """max(0, x)^2 (So et al. 2021)."""
    return F.relu(x).square()


PHI: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": gelu_tanh,
    "relu": F.relu,
    "squared_relu": squared_relu,
    "silu": F.silu,
}


class MLP(nn.Module):
    """W_out phi(W_in x), for each token on its own; phi is GELU, or ReLU as in Vaswani et al. (2017), eq. 2.

    "gelu_tanh" is GPT-2's approximation of GELU by a tanh; "squared_relu" is max(0, x)^2 (So et al. 2021),
    "silu" is x times its sigmoid.
    SwiGLU multiplies two branches, entry by entry: W_out (SiLU(W_gate x) * W_in x) (Shazeer 2020).

    Args:
        d_model: the width D.
        d_hidden: the hidden width F; 4 D if None.
        activation: "gelu", "gelu_tanh", "relu", "squared_relu", "silu" or "swiglu".
        bias: whether the linears add biases.
        dropout: the probability with which a hidden feature is zeroed during training.
    """

    def __init__(
        self,
        d_model: int,
        d_hidden: int | None = None,
        *,
        activation: Activation = "gelu",
        bias: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__()
        d_model = whole("d_model", d_model, 1)
        d_hidden = 4 * d_model if d_hidden is None else whole("d_hidden", d_hidden, 1)
        self.activation = one_of("activation", activation, Activation)
        self.W_in = nn.Linear(d_model, d_hidden, bias=bias)
        self.W_gate = nn.Linear(d_model, d_hidden, bias=bias) if activation == "swiglu" else None
        self.W_out = nn.Linear(d_hidden, d_model, bias=bias)
        self.dropout = nn.Dropout(real("dropout", dropout, "[0, 1]"))
        for linear in (self.W_in, self.W_gate, self.W_out):
            if linear is not None:
                nn.init.xavier_uniform_(linear.weight)
                if linear.bias is not None:
                    nn.init.zeros_(linear.bias)

    def forward(self, x: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch D"]:
        hidden = self.W_in(x)
        hidden = PHI[self.activation](hidden) if self.W_gate is None else F.silu(self.W_gate(x)) * hidden
        return self.W_out(self.dropout(hidden))


def make_norm(config: TransformerConfig) -> nn.Module:
    """LayerNorm (Ba et al. 2016) or RMSNorm (Zhang and Sennrich 2019) over the D features of each token."""
    if config.norm == "rms":
        return nn.RMSNorm(config.d_model, eps=config.norm_eps)
    return nn.LayerNorm(config.d_model, eps=config.norm_eps, bias=config.bias)


class Block(nn.Module):
    """x + f(norm(x)) for each sublayer f in turn (pre-norm), or norm(x + f(x)) (post-norm).

    The sublayers are self-attention, cross-attention where `config.cross_attention`, and the MLP.
    Post-norm is the order of Vaswani et al. (2017), pre-norm that of GPT-2; figure 1 of Xiong et al. (2020)
    draws them side by side.

    Args:
        config: sizes and choices.
        rotary: turns queries and keys in self-attention.
        make_backend: builds a backend for each attention layer, cross-attention too; `Attend` with the
            config's dropout if None.
    """

    def __init__(
        self,
        config: TransformerConfig,
        *,
        rotary: nn.Module | None = None,
        make_backend: Callable[[], Backend] | None = None,
    ):
        super().__init__()

        def attention_layer(rotary: nn.Module | None, qk_norm: bool) -> MultiHeadAttention:
            return MultiHeadAttention(
                config.d_model,
                config.n_heads,
                n_kv_heads=config.n_kv_heads,
                bias=config.bias,
                rotary=rotary,
                qk_norm=qk_norm,
                backend=Attend(config.dropout) if make_backend is None else make_backend(),
            )

        self.config = config
        self.self_attention_norm = make_norm(config)
        self.self_attention = attention_layer(rotary, config.qk_norm)
        if config.cross_attention:
            self.cross_attention_norm = make_norm(config)
            self.cross_attention = attention_layer(None, False)
        self.mlp_norm = make_norm(config)
        self.mlp = MLP(
            config.d_model,
            config.d_hidden,
            activation=config.activation,
            bias=config.bias,
            dropout=config.dropout if config.mlp_dropout is None else config.mlp_dropout,
        )
        self.dropout = nn.Dropout(config.dropout)

    def residual(self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """The skip connection around a sublayer, with its norm inside (pre) or after (post)."""
        if self.config.norm_placement == "pre":
            return x + self.dropout(sublayer(norm(x)))
        return norm(x + self.dropout(sublayer(x)))

    @undone_if_refused
    def forward(
        self,
        x: Float[Tensor, "B N _D"],
        context: Float[Tensor, "B S _D"] | None = None,
        mask: Tensor | None = None,
        context_mask: Tensor | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "B N _D"]:
        """`mask` rules self-attention (N by N), `context_mask` cross-attention (N by S).

        A `cache` holds the keys and values of self-attention for the tokens before `x`, and those of the
        context.
        """
        check_tokens("x", x, self.config.d_model, self.self_attention.W_o.weight)
        check_context(self.config.cross_attention, context, context_mask)
        x = self.residual(
            x, self.self_attention_norm, lambda y: self.self_attention(y, mask=mask, cache=cache)
        )
        if context is not None:
            read = None if cache is None else cache.context
            x = self.residual(
                x, self.cross_attention_norm, lambda y: self.cross_attention(y, context, context_mask, read)
            )
        return self.residual(x, self.mlp_norm, self.mlp)


class Transformer(nn.Module):
    """block_M(...block_1(x)): (B, N, D) -> (B, N, D). Pre-norm stacks end in one more norm.

    An encoder is called without a causal mask and a decoder with one; an encoder-decoder is two of
    these, the second built with `cross_attention=True` and called with the first one's output.

    Args:
        config: sizes and choices.
        rotary: one module, shared by all blocks, that turns queries and keys.
        make_backend: builds a backend for each attention layer, for instance `FusedAttend`, or
            `lambda: Attend(score_bias=ALiBi(n_heads))`; it then carries its own dropout.
        block: what the stack is made of: `Block`, or a subclass that, for instance, skips differently.

    Raises:
        TypeError: if `make_backend` is a backend, and so builds none.
    """

    def __init__(
        self,
        config: TransformerConfig,
        *,
        rotary: nn.Module | None = None,
        make_backend: Callable[[], Backend] | None = None,
        block: type[Block] = Block,
    ):
        super().__init__()
        if isinstance(make_backend, nn.Module):
            its = type(make_backend).__name__
            raise TypeError(f"each layer builds a backend: make_backend={its}, or lambda: {its}(...)")
        self.config = config
        self.blocks = nn.ModuleList(
            block(config, rotary=rotary, make_backend=make_backend) for _ in range(config.n_blocks)
        )
        self.final_norm = make_norm(config) if config.norm_placement == "pre" else nn.Identity()

    @undone_if_refused
    def forward(
        self,
        x: Float[Tensor, "B N _D"],
        context: Float[Tensor, "B S _D"] | None = None,
        mask: Tensor | None = None,
        context_mask: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> Float[Tensor, "B N _D"]:
        layers = [None] * len(self.blocks) if cache is None else cache.for_blocks(len(self.blocks))
        for block, layer in zip(self.blocks, layers, strict=True):
            x = block(x, context, mask, context_mask, layer)
        return self.final_norm(x)
