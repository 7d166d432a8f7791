"""BERT: an encoder that reads both ways, and the heads with which it is pre-trained (Devlin et al. 2019)."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tformer_lib.core.attention import Backend
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.tokens import IGNORED, TokenEmbedding, cross_entropy
from tformer_lib.core.transformer import PHI, Activation, Transformer, TransformerConfig


def bert_config(
    *,
    d_model: int,
    n_heads: int,
    n_blocks: int,
    d_hidden: int | None = None,
    dropout: float = 0.1,
    activation: Activation = "gelu",
    norm_eps: float = 1e-12,
) -> TransformerConfig:
    """The choices of BERT at any size: norms after the skips, GELU, no dropout inside the MLP."""
    return TransformerConfig(
        d_model=d_model,
        n_heads=n_heads,
        n_blocks=n_blocks,
        d_hidden=d_hidden,
        norm_placement="post",
        norm_eps=norm_eps,
        activation=activation,
        dropout=dropout,
        mlp_dropout=0.0,
    )


class BERT(nn.Module):
    """h = Transformer(dropout(norm(E[tokens] + P + S[segments]))): (B, N) -> (B, N, D), every token sees all.

    Dropout is where the paper has it: on the embeddings, on attention weights, on what a sublayer adds.

    Args:
        config: sizes and choices of the stack, such as `bert_config` makes.
        vocab_size: the number of tokens.
        max_len: the longest sequence, 512 in the paper.
        segments: how many kinds of segment there are; 2 in the paper, for the sentences of a pair.
        pooler: whether there is a `pooler`, which `pooled` needs.
        make_backend: builds a backend for each attention layer; it then carries its own dropout.
    """

    def __init__(
        self,
        config: TransformerConfig,
        vocab_size: int,
        *,
        max_len: int = 512,
        segments: int = 2,
        pooler: bool = True,
        make_backend: Callable[[], Backend] | None = None,
    ):
        super().__init__()
        self.config = config
        self.embed = TokenEmbedding(vocab_size, config.d_model, axes="B N")
        self.positions = LearnedPositions(max_len, config.d_model)
        self.segments = TokenEmbedding(segments, config.d_model, name="segments", axes="B N")
        self.embed_norm = nn.LayerNorm(config.d_model, eps=config.norm_eps)
        self.dropout = nn.Dropout(config.dropout)
        self.transformer = Transformer(config, make_backend=make_backend)
        self.pooler = nn.Linear(config.d_model, config.d_model) if pooler else None
        nn.init.normal_(self.embed.weight, std=0.05)
        nn.init.normal_(self.segments.weight, std=0.02)
        if self.pooler is not None:
            nn.init.xavier_uniform_(self.pooler.weight)
            nn.init.zeros_(self.pooler.bias)

    @property
    def max_len(self) -> int:
        """The longest sequence the model can read."""
        return self.positions.max_len

    def forward(
        self,
        tokens: Int[Tensor, "B N"],
        segments: Int[Tensor, "B N"] | None = None,
        mask: Tensor | None = None,
    ) -> Float[Tensor, "B N D"]:
        """The outputs at all places.

        Args:
            tokens: token numbers; the first of each row is [CLS].
            segments: the segment that each token belongs to; all 0 if None.
            mask: which tokens may be attended to, such as `padding_mask(tokens, pad_id)`.

        Raises:
            ValueError: if the sequence is longer than `max_len`, a token or a segment is not one of the
                model's, or shapes do not fit.
        """
        segments = torch.zeros_like(tokens) if segments is None else segments
        if segments.shape != tokens.shape:
            got = f"tokens {tuple(tokens.shape)} and segments {tuple(segments.shape)}"
            raise ValueError(f"each token belongs to one segment: got {got}")
        x = self.positions(self.embed(tokens)) + self.segments(segments)
        return self.transformer(self.dropout(self.embed_norm(x)), mask=mask)

    def pooled(self, hidden: Float[Tensor, "B N D"]) -> Float[Tensor, "B D"]:
        """tanh(W h_1 + b): the output at [CLS], the first place, as one vector for the whole sequence.

        Raises:
            ValueError: if the model was made, or saved, without a pooler; or if there is no first place.
        """
        if self.pooler is None:
            raise ValueError("this BERT has no pooler: its checkpoint was saved without one")
        if not hidden.shape[1]:
            raise ValueError(f"there is no [CLS] in a sequence without tokens, got {tuple(hidden.shape)}")
        return self.pooler(hidden[:, 0]).tanh()


class MaskedLanguageHead(nn.Module):
    """logits = E norm(phi(W h + b)) + c, with the embedding matrix E for a head: it is tied, c is its bias.

    Args:
        config: of the model: width, activation, and the norm's epsilon.
        vocab_size: the number of tokens.

    Raises:
        ValueError: if the activation is SwiGLU, which is a product of two branches and no function of W h.

    Source:
        Devlin et al. 2019, section 3.1; the transform before E stands in the code published with it.
    """

    def __init__(self, config: TransformerConfig, vocab_size: int):
        super().__init__()
        if config.activation not in PHI:
            raise ValueError(
                f"the head before E takes one of the activations {tuple(PHI)}, got {config.activation!r}"
            )
        self.phi = PHI[config.activation]
        self.W = nn.Linear(config.d_model, config.d_model)
        self.norm = nn.LayerNorm(config.d_model, eps=config.norm_eps)
        self.bias = nn.Parameter(torch.zeros(vocab_size))
        nn.init.xavier_uniform_(self.W.weight)
        nn.init.zeros_(self.W.bias)

    def forward(
        self, hidden: Float[Tensor, "*batch D"], table: Float[Tensor, "vocab D"]
    ) -> Float[Tensor, "*batch vocab"]:
        return self.norm(self.phi(self.W(hidden))) @ table.T + self.bias


class NextSentenceHead(nn.Module):
    """logits = W pooled + b, (B, D) -> (B, 2): 0 for "the second sentence follows", 1 for "it does not"."""

    def __init__(self, d_model: int):
        super().__init__()
        self.W = nn.Linear(d_model, 2)
        nn.init.xavier_uniform_(self.W.weight)
        nn.init.zeros_(self.W.bias)

    def forward(self, pooled: Float[Tensor, "B D"]) -> Float[Tensor, "B 2"]:
        return self.W(pooled)


class PretrainingBERT(nn.Module):
    """A `BERT` with the two heads of its pre-training.

    Args:
        bert: the encoder; it is trained along, and kept afterwards.
        next_sentence: whether there is a `NextSentenceHead`, for which the encoder needs its pooler.
    """

    def __init__(self, bert: BERT, *, next_sentence: bool = True):
        super().__init__()
        self.bert = bert
        self.masked_language = MaskedLanguageHead(bert.config, bert.embed.num_embeddings)
        self.next_sentence = NextSentenceHead(bert.config.d_model) if next_sentence else None

    def forward(
        self,
        tokens: Int[Tensor, "B N"],
        segments: Int[Tensor, "B N"] | None = None,
        mask: Tensor | None = None,
        places: Bool[Tensor, "B N"] | None = None,
    ) -> tuple[Tensor, Float[Tensor, "B 2"] | None]:
        """Logits for the tokens, and for whether the second sentence follows; None without that head.

        With `places` the tokens' logits are (K, vocab), for the K places that are True alone, row by row:
        in training only one in seven is asked. Without, they are (B, N, vocab).
        """
        hidden = self.bert(tokens, segments, mask)
        asked = hidden if places is None else hidden[places]
        logits = self.masked_language(asked, self.bert.embed.weight)
        return logits, None if self.next_sentence is None else self.next_sentence(self.bert.pooled(hidden))


def pretraining_loss(
    model: PretrainingBERT, batch: tuple[Tensor, Tensor, Tensor | None, Tensor, Tensor]
) -> Float[Tensor, ""]:
    """-mean log p(token) over the chosen places - mean log p(follows or not) over the pairs, in nats.

    A batch is (tokens (B, N), segments (B, N), mask, targets (B, N), labels (B,)): targets hold the true
    token at the chosen places and `IGNORED` elsewhere, labels 0 where the second sentence follows. The
    second term is left out for a model without that head.

    Raises:
        ValueError: if no place is chosen, or a target is not in the vocabulary.
    """
    tokens, segments, mask, targets, labels = batch
    places = targets != IGNORED
    logits, follows = model(tokens, segments, mask, places)
    loss = cross_entropy(logits, targets[places])
    return loss if follows is None else loss + cross_entropy(follows, labels)
