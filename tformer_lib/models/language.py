"""Language models before the transformer, and the loss that all language models share."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tformer_lib.core.tokens import check_ids, check_whole, cross_entropy
from tformer_lib.models.modes import evaluation
from tformer_lib.numbers import whole


def language_loss(model: nn.Module, batch: Int[Tensor, "B M"]) -> Float[Tensor, ""]:
    """Mean over n of -log p(x_{n+1} | x_1..x_n) in nats: the cross-entropy of the next token.

    `model` maps tokens (B, N) to logits (B, N, vocab), of which those at n may depend on tokens 1..n
    alone; the batch holds N + 1 tokens a row.

    Raises:
        ValueError: if there is no next token, or one is not in the vocabulary.
    """
    check_whole("the batch", batch, "B M")
    logits = model(batch[:, :-1])
    return cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())


class MLPLanguageModel(nn.Module):
    """logits_n = W_o tanh(W_h [embed(x_{n-context+1}); ...; embed(x_n)] + b_h) + b_o: a fixed window.

    The embeddings of the last `context` tokens stand side by side, each place with weights of its own
    (Bengio et al. 2003, without the direct connections from embeddings to logits). Before the first token
    stand as many copies of one learned vector as the window lacks.

    Args:
        vocab: the number of tokens.
        context: how many tokens, the present one included, the model sees.
        d_embed: the width of a token's embedding.
        d_hidden: the width of the hidden layer.
    """

    def __init__(self, vocab: int, context: int, d_embed: int, d_hidden: int):
        super().__init__()
        self.context, self.start = whole("context", context, 1), whole("vocab", vocab, 1)
        self.embed = nn.Embedding(vocab + 1, d_embed)  # the last row is what stands before the text
        self.W_h = nn.Linear(context * d_embed, d_hidden)
        self.W_o = nn.Linear(d_hidden, vocab)

    def forward(self, tokens: Int[Tensor, "B N"]) -> Float[Tensor, "B N vocab"]:
        """At each place the logits of the token after it."""
        check_ids("tokens", tokens, self.start, "B N", least=1)
        padded = F.pad(tokens, (self.context - 1, 0), value=self.start)
        windows = self.embed(padded.unfold(1, self.context, 1)).flatten(2)
        return self.W_o(torch.tanh(self.W_h(windows)))


class GRULanguageModel(nn.Module):
    """logits_n = W_o s_n + b_o with s_n = GRU(embed(x_n), s_{n-1}) and s_0 = 0: a state of fixed size.

    The state has read every token so far, in order (Cho et al. 2014; Mikolov et al. 2010 for language).

    Args:
        vocab: the number of tokens.
        d_embed: the width of a token's embedding.
        d_hidden: the width of the state.
    """

    def __init__(self, vocab: int, d_embed: int, d_hidden: int):
        super().__init__()
        self.embed = nn.Embedding(vocab, d_embed)
        self.gru = nn.GRU(d_embed, d_hidden, batch_first=True)
        self.W_o = nn.Linear(d_hidden, vocab)

    def forward(self, tokens: Int[Tensor, "B N"]) -> Float[Tensor, "B N vocab"]:
        """At each place the logits of the token after it."""
        return self.read(tokens)[0]

    def read(
        self, tokens: Int[Tensor, "B N"], state: Float[Tensor, "1 B H"] | None = None
    ) -> tuple[Float[Tensor, "B N vocab"], Float[Tensor, "1 B H"]]:
        """The logits, and the state after the last token, from which reading can go on."""
        check_ids("tokens", tokens, self.embed.num_embeddings, "B N", least=1)
        states, state = self.gru(self.embed(tokens), state)
        return self.W_o(states), state


@torch.no_grad()
def bits_per_character(model: nn.Module, ids: Int[Tensor, " T"], context: int, batch: int = 64) -> float:
    """Mean of -log2 p(x_{n+1} | more than `context` tokens before it) over a held-out text.

    Bits per token, that is, which for a model of characters are bits per character. The text is cut into
    windows of 2 * `context` tokens, each beginning in the middle of the one before, and of each window the
    second half of the predictions is counted: so each token is predicted once, and none with a short
    memory of what went before: a prediction reads context + 1 to 2 * `context` tokens. The first
    context + 1 tokens and a rest shorter than a window are not counted. The model is put into evaluation
    mode, and back.

    Args:
        model: maps tokens (B, N) to logits (B, N, vocab), of which those at n depend on tokens 1..n alone.
        ids: the text.
        context: half of the length at which the model reads.
        batch: how many windows are computed at a time.

    Raises:
        ValueError: if the text has not one window, or an argument is below 1.
    """
    context, batch = whole("context", context, 1), whole("batch", batch, 1)
    if len(ids) < 2 * context + 1:
        raise ValueError(f"a window takes {2 * context + 1} tokens, and the text has {len(ids)}")
    windows = ids.unfold(0, 2 * context + 1, context)
    total = 0.0
    with evaluation(model):
        for rows in windows.split(batch):
            logits = model(rows[:, :-1])[:, context:]
            total += F.cross_entropy(
                logits.flatten(0, 1), rows[:, context + 1 :].flatten(), reduction="sum"
            ).item()
    return total / (len(windows) * context) / math.log(2)
