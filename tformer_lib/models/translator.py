"""The encoder-decoder transformer of Vaswani et al. (2017): one sequence is read, another is written."""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tformer_lib.core.attention import Backend
from tformer_lib.core.cache import KVCache, already_read
from tformer_lib.core.masks import causal_mask, padding_mask
from tformer_lib.core.positions import SinusoidalPositions
from tformer_lib.core.tokens import TokenEmbedding, cross_entropy
from tformer_lib.core.transformer import Transformer, TransformerConfig
from tformer_lib.numbers import real, whole


class Translator(nn.Module):
    """logits_t = E h_t + c, with h = Decoder(y_1..y_t; Encoder(x)): what token t + 1 of the target may be.

    The encoder reads the source without a causal mask. The decoder reads the target under one, and in each
    block attends to what the encoder has made of the source (Vaswani et al. 2017, section 3). Embeddings are
    multiplied by the root of D before positions are added (section 3.4); the matrix E that makes them also
    makes the logits, and where source and target share a vocabulary, one matrix does all three.

    Args:
        config: sizes and choices of both stacks; it leaves `cross_attention` to this class.
        vocab_size: the number of source tokens, and of target tokens if they share a vocabulary.
        target_vocab_size: the number of target tokens, if they have a vocabulary and embeddings of their own.
        decoder_blocks: how many blocks the decoder has; as many as the encoder if None.
        positions: a module that adds positions to embeddings, used on both sides; sinusoidal if None.
        scale: whether embeddings are multiplied by the root of D.
        make_backend: builds a backend for each attention layer.
        pad_id: the number of "no token here", in source and target.
        bos_id: the number of the token that a target begins with.
        eos_id: the number of the token that a target ends with.

    Raises:
        ValueError: if `config.cross_attention` is set, or a special token is not in the target's vocabulary;
            in forward, if a token is not in its vocabulary.
        TypeError: if a number is not whole.
    """

    def __init__(
        self,
        config: TransformerConfig,
        vocab_size: int,
        *,
        target_vocab_size: int | None = None,
        decoder_blocks: int | None = None,
        positions: nn.Module | None = None,
        scale: bool = True,
        make_backend: Callable[[], Backend] | None = None,
        pad_id: int = 0,
        bos_id: int = 1,
        eos_id: int = 2,
    ):
        super().__init__()
        if config.cross_attention:
            raise ValueError("the decoder alone attends to a context: give a config without cross_attention")
        vocab_size = whole("vocab_size", vocab_size, 1)
        written = (
            vocab_size if target_vocab_size is None else whole("target_vocab_size", target_vocab_size, 1)
        )
        for name, number in (("pad_id", pad_id), ("bos_id", bos_id), ("eos_id", eos_id)):
            if not 0 <= whole(name, number) < written:
                raise ValueError(f"{name}={number} is not in the target's vocabulary of {written}")
        self.config, self.pad_id, self.bos_id, self.eos_id = config, pad_id, bos_id, eos_id
        self.scale = math.sqrt(config.d_model) if scale else 1.0
        self.embed = TokenEmbedding(vocab_size, config.d_model, axes="B N")
        self.embed_target = (
            self.embed if target_vocab_size is None else TokenEmbedding(written, config.d_model, axes="B T")
        )
        for table in dict.fromkeys((self.embed, self.embed_target)):
            nn.init.normal_(table.weight, std=config.d_model**-0.5)
        self.positions = SinusoidalPositions(config.d_model) if positions is None else positions
        self.dropout = nn.Dropout(config.dropout)
        blocks = config.n_blocks if decoder_blocks is None else decoder_blocks
        self.encoder = Transformer(config, make_backend=make_backend)
        self.decoder = Transformer(
            replace(config, n_blocks=blocks, cross_attention=True), make_backend=make_backend
        )
        self.bias = nn.Parameter(torch.zeros(written))

    def encode(self, source: Int[Tensor, "B S"]) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B 1 1 S"]]:
        """What the encoder makes of the source, and the mask that is False at its padding."""
        mask = padding_mask(source, self.pad_id)
        x = self.dropout(self.positions(self.scale * self.embed(source)))
        return self.encoder(x, mask=mask), mask

    def decode(
        self,
        target: Int[Tensor, "B T"],
        memory: Float[Tensor, "B S D"],
        memory_mask: Bool[Tensor, "B 1 #T S"] | None = None,
        cache: KVCache | None = None,
    ) -> Float[Tensor, "B T vocab"]:
        """Logits for the token after each of `target`, which follow those that `cache` holds.

        Padding at a target's end needs no mask: by the causal mask no token before it can see it. A mask of
        the memory is one for all of the target, (B, 1, 1, S), or one for each of its tokens, (B, 1, T, S).
        """
        past = already_read(cache)
        x = self.dropout(self.positions(self.scale * self.embed_target(target), past))
        t = target.shape[1]
        mask = causal_mask(t, target.device, past=past) if t > 1 else None  # a last token may see all
        h = self.decoder(x, memory, mask, memory_mask, cache)
        return h @ self.embed_target.weight.T + self.bias

    def forward(self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]) -> Float[Tensor, "B T vocab"]:
        """Teacher forcing: the logits at t are those after the true tokens 1..t."""
        return self.decode(target, *self.encode(source))

    def new_cache(self) -> KVCache:
        """An empty cache for the decoder."""
        return KVCache(self.decoder.config.n_blocks, context=True)


def translator_loss(
    model: Translator, batch: tuple[Tensor, Tensor], *, label_smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """Mean of -sum_v q(v) log p(v | y_1..y_{t-1}, x) over the real target tokens of a batch, in nats.

    q has 1 - label_smoothing on the true token and the rest spread evenly over the vocabulary (Szegedy et al.
    2016, section 7): with 0 this is -log p(y_t | ...). A batch is (source (B, S), target (B, T)), a target
    being begin token, tokens, end token, padding.

    Raises:
        ValueError: if `label_smoothing` lies outside [0, 1), or the targets hold nothing but padding.
    """
    label_smoothing = real("label_smoothing", label_smoothing, "[0, 1)")
    source, target = batch
    logits, true = model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten()
    return cross_entropy(logits, true, ignored=model.pad_id, label_smoothing=label_smoothing)
