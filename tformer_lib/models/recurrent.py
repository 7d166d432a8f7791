"""Recurrent networks: the encoder-decoder, with attention (Bahdanau et al. 2015) and without it."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tformer_lib.core.attention import MaskedSoftmax
from tformer_lib.core.tokens import TokenEmbedding, cross_entropy
from tformer_lib.inputs import check_ids
from tformer_lib.numbers import whole


class Context(nn.Module):
    """How a step of the decoder reads the source: `context(query, keys, mask, projected)`.

    A subclass returns the context (B, Dk) and the weights (B, S). What it computes from the keys alone,
    it computes in `project`, once for all steps.
    """

    def project(self, keys: Float[Tensor, "B S Dk"]) -> Float[Tensor, "B S F"]:
        """What is the same for every query; the keys themselves if there is nothing to prepare."""
        return keys


class AdditiveAttention(Context):
    """c = sum_j a_j h_j with a = softmax(e) and e_j = w^T tanh(W_q q + W_k h_j).

    The h_j are keys and values at once: the encoder's states (Bahdanau et al. 2015, section 3.1 and
    appendix A.1.2). W_k h_j is the same at each step of the decoder, so that a caller who steps
    computes it once, with `project`.

    Args:
        d_query: the width of the query, the decoder's state.
        d_key: the width of the keys, the encoder's states.
        d_hidden: the width in which the two meet.

    Raises (forward):
        ValueError: if query or keys have another width, or the mask does not broadcast to (B, S).
        TypeError: if the mask is not boolean.
    """

    def __init__(self, d_query: int, d_key: int, d_hidden: int):
        super().__init__()
        self.W_q = nn.Linear(d_query, d_hidden, bias=False)
        self.W_k = nn.Linear(d_key, d_hidden, bias=False)
        self.w = nn.Linear(d_hidden, 1, bias=False)
        self.softmax = MaskedSoftmax()

    def project(self, keys: Float[Tensor, "B S Dk"]) -> Float[Tensor, "B S F"]:
        """W_k h_j for all j: the half of the score that no query changes."""
        check_width(self, "keys", keys, self.W_k.in_features)
        return self.W_k(keys)

    def forward(
        self,
        query: Float[Tensor, "B Dq"],
        keys: Float[Tensor, "B S Dk"],
        mask: Bool[Tensor, "..."] | None = None,
        projected: Float[Tensor, "B S F"] | None = None,
    ) -> tuple[Float[Tensor, "B Dk"], Float[Tensor, "B S"]]:
        """The context (B, Dk) and the weights (B, S); `mask` is boolean, True = may attend."""
        check_width(self, "query", query, self.W_q.in_features)
        projected = self.project(keys) if projected is None else projected
        scores = self.w(torch.tanh(self.W_q(query)[:, None] + projected)).squeeze(-1)
        weights = self.softmax(scores, mask)
        return torch.einsum("bs,bsd->bd", weights, keys), weights


class FinalState(Context):
    """c = [forward state after the last token; backward state after the first]: no attention.

    The context is the same whatever the query, and one vector for the whole source: the bottleneck of
    the first encoder-decoders (Sutskever et al. 2014; Cho et al. 2014). Called as `AdditiveAttention`
    is; nothing is weighed, and the weights it returns are zeros.
    """

    def forward(
        self,
        query: Float[Tensor, "B Dq"],
        keys: Float[Tensor, "B S Dk"],
        mask: Bool[Tensor, "..."] | None = None,
        projected: Float[Tensor, "B S Dk"] | None = None,
    ) -> tuple[Float[Tensor, "B Dk"], Float[Tensor, "B S"]]:
        """The context (B, Dk) and zeros (B, S); `mask` says where each source ends."""
        return final_state(keys, mask), keys.new_zeros(keys.shape[:2])


def check_width(module: nn.Module, name: str, tensor: Tensor, width: int) -> None:
    """Raise a ValueError unless `tensor` has the width that `module` was built for."""
    if tensor.shape[-1] != width:
        raise ValueError(
            f"{type(module).__name__} was built for {name} of width {width}, got shape {tuple(tensor.shape)}"
        )


def final_state(
    states: Float[Tensor, "B S Dk"], mask: Bool[Tensor, "B S"] | None = None
) -> Float[Tensor, "B Dk"]:
    """[forward half of the last real state; backward half of the first]: where each direction ends."""
    half = states.shape[-1] // 2
    batch = torch.arange(len(states), device=states.device)
    last = states.shape[1] - 1 if mask is None else mask.sum(dim=1) - 1
    return torch.cat((states[batch, last, :half], states[:, 0, half:]), dim=-1)


class GRUEncoder(nn.Module):
    """h_j = [forward GRU after tokens 1..j; backward GRU after tokens S..j], each H wide.

    State j has read the whole source, and read token j last in both directions (Bahdanau et al. 2015,
    section 3.2). Each sequence ends where its padding starts: padded batches are packed, so that the
    backward direction starts at the last real token and padding changes nothing.

    Raises (forward):
        ValueError: if a source has no token, or padding before a token, or a token is not in the vocabulary.
    """

    def __init__(self, vocab_size: int, d_embed: int, d_hidden: int, pad_id: int = 0):
        super().__init__()
        self.pad_id = pad_id
        self.embed = TokenEmbedding(vocab_size, d_embed)
        self.gru = nn.GRU(d_embed, d_hidden, batch_first=True, bidirectional=True)

    def forward(self, source: Int[Tensor, "B S"]) -> tuple[Float[Tensor, "B S Dk"], Bool[Tensor, "B S"]]:
        """The states (B, S, 2H), zeros at padding, and the mask (B, S), True at tokens."""
        check_ids(
            "tokens", source, self.embed.num_embeddings, "B S", least=1, device=self.embed.weight.device
        )
        mask = source != self.pad_id
        lengths = mask.sum(dim=1)
        places = torch.arange(source.shape[1], device=source.device)
        if not (lengths > 0).all() or not torch.equal(mask, places < lengths[:, None]):
            raise ValueError(f"a source needs a token, and its padding ({self.pad_id}) at the end")
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embed(source), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = nn.utils.rnn.pad_packed_sequence(
            self.gru(packed)[0], batch_first=True, total_length=source.shape[1]
        )
        return states, mask


class EncoderDecoder(nn.Module):
    """s_t = GRU([embed(y_{t-1}); c_t], s_{t-1}), with c_t = context(s_{t-1}, h_1..h_S).

    The next token's logits are W_o [s_t; c_t], and s_0 = tanh(W_s final_state(h)). This is Bahdanau et al.
    (2015), section 3 and appendix A, made plainer: they put a maxout layer before the logits, and begin
    from the backward direction's last state alone.

    Args:
        vocab_in: the number of source tokens.
        vocab_out: the number of target tokens.
        d_embed: the width of a token's embedding, on both sides.
        d_hidden: the width H of the decoder and of each of the encoder's directions.
        context: how a step reads the source: `AdditiveAttention(H, 2 * H, ...)` or `FinalState()`.
        pad_id: the number of "no token here".
        bos_id: the number of the token that a target begins with.
        eos_id: the number of the token that a target ends with.
    """

    def __init__(
        self,
        vocab_in: int,
        vocab_out: int,
        d_embed: int,
        d_hidden: int,
        *,
        context: Context,
        pad_id: int = 0,
        bos_id: int = 1,
        eos_id: int = 2,
    ):
        super().__init__()
        self.pad_id, self.bos_id, self.eos_id = pad_id, bos_id, eos_id
        self.encoder = GRUEncoder(vocab_in, d_embed, d_hidden, pad_id)
        self.embed = TokenEmbedding(vocab_out, d_embed)
        self.context = context
        self.cell = nn.GRUCell(d_embed + 2 * d_hidden, d_hidden)
        self.W_s = nn.Linear(2 * d_hidden, d_hidden)
        self.W_o = nn.Linear(3 * d_hidden, vocab_out)

    def encode(self, source: Int[Tensor, "B S"]) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        """The decoder's first state, and what each step reads: (states, mask, projected states)."""
        states, mask = self.encoder(source)
        first = torch.tanh(self.W_s(final_state(states, mask)))
        return first, (states, mask, self.context.project(states))

    def step(
        self, token: Int[Tensor, " B"], state: Float[Tensor, "B H"], memory: tuple[Tensor, Tensor, Tensor]
    ) -> tuple[Float[Tensor, "B vocab"], Float[Tensor, "B H"], Float[Tensor, "B S"]]:
        """One step of the decoder: the logits, the new state, and the weights it read with."""
        context, weights = self.context(state, *memory)
        state = self.cell(torch.cat((self.embed(token), context), dim=-1), state)
        return self.W_o(torch.cat((state, context), dim=-1)), state, weights

    def forward(
        self, source: Int[Tensor, "B S"], target_in: Int[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B T vocab"], Float[Tensor, "B T S"]]:
        """Teacher forcing: step t gets the true token t-1. Returns logits and weights of all steps."""
        state, memory = self.encode(source)
        logits, weights = [], []
        for token in target_in.unbind(dim=1):
            step_logits, state, step_weights = self.step(token, state, memory)
            logits.append(step_logits)
            weights.append(step_weights)
        return torch.stack(logits, dim=1), torch.stack(weights, dim=1)

    @torch.no_grad()
    def greedy(
        self, source: Int[Tensor, "B S"], max_len: int
    ) -> tuple[Int[Tensor, "B T"], Float[Tensor, "B T S"]]:
        """Each step gets the likeliest token of the step before, until all have ended or `max_len`.

        Returns the tokens (B, T), end token included and padding after it, and the weights (B, T, S).
        """
        max_len = whole("max_len", max_len, 1)
        state, memory = self.encode(source)
        token = source.new_full((len(source),), self.bos_id)
        ended = torch.zeros_like(token, dtype=torch.bool)
        tokens: list[Tensor] = []
        weights: list[Tensor] = []
        while len(tokens) < max_len and not ended.all():
            logits, state, step_weights = self.step(token, state, memory)
            token = logits.argmax(dim=-1).masked_fill(ended, self.pad_id)
            ended |= token == self.eos_id
            tokens.append(token)
            weights.append(step_weights)
        return torch.stack(tokens, dim=1), torch.stack(weights, dim=1)


def encoder_decoder_loss(model: EncoderDecoder, batch: tuple[Tensor, Tensor]) -> Float[Tensor, ""]:
    """Mean of -log p(y_t | y_1..y_{t-1}, source) over the real target tokens of a batch.

    A batch is (source (B, S), target (B, T)), a target being begin token, tokens, end token, padding.

    Raises:
        ValueError: if the targets hold nothing but padding.
    """
    source, target = batch
    logits, _ = model(source, target[:, :-1])
    return cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignored=model.pad_id)


def exact_match(
    model: EncoderDecoder, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]
) -> Bool[Tensor, " B"]:
    """Which sequences greedy decoding gets right from the first token to the end token."""
    truth = target[:, 1:]
    tokens, _ = model.greedy(source, max_len=truth.shape[1])
    tokens = F.pad(tokens, (0, truth.shape[1] - tokens.shape[1]), value=model.pad_id)
    return (tokens == truth).all(dim=1)
