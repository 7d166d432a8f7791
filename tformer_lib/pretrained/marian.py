"""Checkpoints of Marian's translators, as `transformers` saves them (Junczys-Dowmunt et al. 2018).

Of this family are the models opus-mt of the University of Helsinki. Encoder and decoder are those of Vaswani
et al. (2017), post-norm; the matrices stand there as here, (out, in).
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tformer_lib.core.attention import Backend
from tformer_lib.core.cache import KVCache
from tformer_lib.core.positions import PAIRS, sinusoidal
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.inputs import check_tokens
from tformer_lib.models.translator import Translator
from tformer_lib.numbers import brief, multiple
from tformer_lib.pretrained.foreign_weights import Source, renamed
from tformer_lib.pretrained.settings import ACTIVATIONS, Settings

SHARED = "model.shared.weight"
ATTENTIONS = {"self_attn": "self_attention", "encoder_attn": "cross_attention"}
MATRICES = {"q_proj": "W_q", "k_proj": "W_k", "v_proj": "W_v", "out_proj": "W_o"}
IGNORED = r"model\.(en|de)coder\.embed_positions\.weight"  # sines and cosines, which are computed here


class HalvedPositions(nn.Module):
    """x_n + P_n with P[n, i] = sin(n w_i) and P[n, D/2 + i] = cos(n w_i), w_i = 10000^(-2i/D).

    The numbers of `SinusoidalPositions` in another order: all sines first, then all cosines.

    Args:
        d_model: the width D, even.
    """

    def __init__(self, d_model: int):
        super().__init__()
        self.d_model = multiple("d_model", d_model, 2, PAIRS)

    def forward(self, x: Float[Tensor, "B N _D"], offset: int = 0) -> Float[Tensor, "B N _D"]:
        check_tokens("x", x, self.d_model)
        table = sinusoidal(x.shape[1], self.d_model, offset=offset, device=x.device, dtype=x.dtype)
        return x + torch.cat((table[:, 0::2], table[:, 1::2]), dim=1)


class Marian(Translator):
    """logits_t = E h_t + c, but minus infinity for the begin token: it is the padding, and is never written.

    A target begins with the token that also pads. Without a rule the decoder might write it; `transformers`
    forbids it when it writes, and this class in its logits.

    Args:
        config: sizes and choices of both stacks.
        vocab_size: the number of tokens, of source and target together.
        pad_id: the number of the token that pads and begins.
        options: as for `Translator`.

    Raises:
        ValueError: as for `Translator`.
    """

    def __init__(self, config: TransformerConfig, vocab_size: int, *, pad_id: int, **options: Any):
        positions = HalvedPositions(config.d_model)
        super().__init__(config, vocab_size, positions=positions, pad_id=pad_id, bos_id=pad_id, **options)

    def decode(
        self,
        target: Int[Tensor, "B T"],
        memory: Float[Tensor, "B S D"],
        memory_mask: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> Float[Tensor, "B T vocab"]:
        """Logits for the token after each of `target`, as `Translator.decode` computes them."""
        logits = super().decode(target, memory, memory_mask, cache)
        never = torch.arange(logits.shape[-1], device=logits.device) == self.pad_id
        return logits.masked_fill(never, float("-inf"))


def build(
    settings: Settings, make_backend: Callable[[], Backend] | None = None, names: Iterable[str] = ()
) -> Marian:
    """The model that the settings describe, without dropout.

    Raises:
        ValueError: if a setting is missing, makes no sense, or asks for what `Marian` does not do.
    """
    for name, only in (
        ("normalize_before", False),
        ("normalize_embedding", False),
        ("add_final_layer_norm", False),
        ("static_position_embeddings", True),
        ("share_encoder_decoder_embeddings", True),
        ("tie_word_embeddings", True),
    ):
        settings.one_of(name, only)
    heads, hidden = settings.whole("encoder_attention_heads"), settings.whole("encoder_ffn_dim")
    settings.one_of("decoder_attention_heads", heads)
    settings.one_of("decoder_ffn_dim", hidden)
    phi = settings.one_of("activation_function", *ACTIVATIONS, "swish", "silu")
    vocab = settings.whole("vocab_size")
    settings.one_of("decoder_vocab_size", vocab)
    pad, eos = _token(settings, "pad_token_id", vocab), _token(settings, "eos_token_id", vocab)
    settings.one_of("decoder_start_token_id", pad)
    config = TransformerConfig(
        d_model=settings.whole("d_model"),
        n_heads=heads,
        n_blocks=settings.blocks("encoder_layers"),
        d_hidden=hidden,
        norm_placement="post",
        activation=ACTIVATIONS.get(phi, "silu"),  # type: ignore[arg-type]
    )
    return Marian(
        config,
        vocab,
        pad_id=pad,
        eos_id=eos,
        decoder_blocks=settings.blocks("decoder_layers"),
        scale=settings.flag("scale_embedding", False),
        make_backend=make_backend,
    )


def _token(settings: Settings, name: str, vocab: int) -> int:
    value = settings.get(name)
    if type(value) is not int or not 0 <= value < vocab:
        raise ValueError(
            f"{settings.where}: {name} must be a token's number below {vocab}, got {brief(value)}"
        )
    return value


def copies(model: Marian, names: Iterable[str]) -> dict[str, str]:
    """What a file may hold again: the one matrix, where it embeds and where it makes the logits."""
    again = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
    return dict.fromkeys(again, SHARED)


def twice(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """The matrix E under its two names; the model has one module for both."""
    return tensor, tensor


def sources(model: Marian, names: Iterable[str]) -> list[Source]:
    """What the file must hold for this model."""
    vocab, d = model.embed.num_embeddings, model.config.d_model
    found = [
        Source(SHARED, (vocab, d), ("embed.weight", "embed_target.weight"), twice),
        Source("final_logits_bias", (1, vocab), ("bias",), lambda row: (row[0],)),
    ]
    layers: dict[str, str] = {}
    for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        attentions = ("self_attn", "encoder_attn") if side == "decoder" else ("self_attn",)
        for i in range(stack.config.n_blocks):
            theirs, ours = f"model.{side}.layers.{i}", f"{side}.blocks.{i}"
            for name in attentions:
                target = f"{ours}.{ATTENTIONS[name]}"
                layers |= {f"{theirs}.{name}.{kind}": f"{target}.{W}" for kind, W in MATRICES.items()}
                layers[f"{theirs}.{name}_layer_norm"] = f"{target}_norm"
            layers |= {f"{theirs}.fc1": f"{ours}.mlp.W_in", f"{theirs}.fc2": f"{ours}.mlp.W_out"}
            layers[f"{theirs}.final_layer_norm"] = f"{ours}.mlp_norm"
    return found + renamed(model, layers)
