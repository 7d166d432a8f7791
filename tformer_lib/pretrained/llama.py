"""Checkpoints of Llama's family, as `transformers` saves them (Touvron et al. 2023).

RMSNorm, SwiGLU, rotary positions, and keys and values shared by groups of heads. The rows of W_q and W_k
stand in another order there: see `neighbours`.
"""

from collections.abc import Callable, Iterable
from functools import partial

from torch import Tensor

from tformer_lib.core.attention import Backend
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.gpt import GPT
from tformer_lib.pretrained.foreign_weights import Source, renamed
from tformer_lib.pretrained.rope import rotary
from tformer_lib.pretrained.settings import Settings

IGNORED = r"(model\.)?layers\.\d+\.self_attn\.rotary_emb\.inv_freq"  # the frequencies, which we compute
LAYER = {  # theirs and ours, within a layer
    "input_layernorm": "self_attention_norm",
    "post_attention_layernorm": "mlp_norm",
    "self_attn.q_proj": "self_attention.W_q",
    "self_attn.k_proj": "self_attention.W_k",
    "self_attn.v_proj": "self_attention.W_v",
    "self_attn.o_proj": "self_attention.W_o",
    "mlp.gate_proj": "mlp.W_gate",
    "mlp.up_proj": "mlp.W_in",
    "mlp.down_proj": "mlp.W_out",
}


def build(
    settings: Settings, make_backend: Callable[[], Backend] | None = None, names: Iterable[str] = ()
) -> GPT:
    """The model that the settings describe, without dropout; the names of the tensors change nothing.

    It reads sequences of any length: `max_position_embeddings`, beyond which the weights were not trained,
    changes no number.

    Raises:
        ValueError: if a setting is missing, makes no sense, or asks for what `GPT` does not do.
    """
    settings.one_of("hidden_act", "silu", "swish")
    mistral = settings.get("model_type") == "mistral"
    window = settings.values.get("sliding_window", 4096 if mistral else None)
    if mistral and window is not None:
        raise ValueError(f"{settings.where}: sliding_window={window} is not supported, only null")
    bias = settings.flag("attention_bias", False)
    if settings.flag("mlp_bias", False) != bias:
        raise ValueError(
            f"{settings.where}: attention_bias and mlp_bias must agree, got {bias} and {not bias}"
        )
    width, heads = settings.whole("hidden_size"), settings.whole("num_attention_heads")
    if width % heads or settings.whole("head_dim", width // heads) * heads != width:
        raise ValueError(
            f"{settings.where}: hidden_size={width} must be num_attention_heads={heads} times head_dim, "
            f"got head_dim={settings.get('head_dim')}"
        )
    config = TransformerConfig(
        d_model=width,
        n_heads=heads,
        n_blocks=settings.blocks("num_hidden_layers"),
        d_hidden=settings.whole("intermediate_size"),
        n_kv_heads=settings.whole("num_key_value_heads", 8 if mistral else heads),
        norm="rms",
        norm_eps=settings.number("rms_norm_eps", 1e-6),
        activation="swiglu",
        bias=bias,
    )
    return GPT(
        config,
        settings.whole("vocab_size"),
        rotary=rotary(settings, width // heads),
        make_backend=make_backend,
        tied=settings.flag("tie_word_embeddings", False),
    )


def prefix(names: Iterable[str]) -> str:
    """What the names begin with: "model.", or nothing where the stack was saved without its head."""
    return "model." if any(name.startswith("model.") for name in names) else ""


def copies(model: GPT, names: Iterable[str]) -> dict[str, str]:
    """What a file may hold twice: a tied head."""
    return {"lm_head.weight": f"{prefix(names)}embed_tokens.weight"} if model.head is None else {}


def neighbours(tensor: Tensor, n_heads: int) -> tuple[Tensor]:
    """The rows of W_q or W_k, head by head, from the order (0, Dh/2, 1, Dh/2 + 1, ...) into ours.

    Rotary positions turn pairs of features. Our `Rotary` pairs neighbours, (2i, 2i + 1), and `transformers`
    pairs (i, i + Dh/2). Which features are paired is a matter of names: take the rows of W_q, and with them
    the features of the queries, in the order that makes each pair neighbours. With the same done to the keys
    every q . k is the sum of the same products. Values are not turned, and stay.
    """
    half = tensor.shape[0] // (2 * n_heads)
    halves = tensor.reshape(n_heads, 2, half, *tensor.shape[1:])
    return (halves.transpose(1, 2).reshape(tensor.shape),)


def sources(model: GPT, names: Iterable[str]) -> list[Source]:
    """What the file must hold for this model."""
    start, config = prefix(names), model.config
    layers = {f"{start}embed_tokens": "embed", f"{start}norm": "transformer.final_norm"}
    if model.head is not None:
        layers["lm_head"] = "head"
    for i in range(config.n_blocks):
        layer, block = f"{start}layers.{i}", f"transformer.blocks.{i}"
        layers |= {f"{layer}.{name}": f"{block}.{target}" for name, target in LAYER.items()}
    heads, kv_heads = config.n_heads, config.n_kv_heads or config.n_heads
    turned = {"q_proj": partial(neighbours, n_heads=heads), "k_proj": partial(neighbours, n_heads=kv_heads)}
    return renamed(model, layers, turned)
