"""Language models before the transformer, and the loss that all language models share."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tformer_lib.core.tokens import cross_entropy
from tformer_lib.inputs import check_ids, check_whole
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
        vocab_size: the number of tokens.
        context: how many tokens, the present one included, the model sees.
        d_embed: the width of a token's embedding.
        d_hidden: the width of the hidden layer.
    """

    def __init__(self, vocab_size: int, context: int, d_embed: int, d_hidden: int):
        super().__init__()
        self.context, self.start = whole("context", context, 1), whole("vocab_size", vocab_size, 1)
        self.embed = nn.Embedding(vocab_size + 1, d_embed)  # the last row is what stands before the text
        self.W_h = nn.Linear(context * d_embed, d_hidden)
        self.W_o = nn.Linear(d_hidden, vocab_size)

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
        vocab_size: the number of tokens.
        d_embed: the width of a token's embedding.
        d_hidden: the width of the state.
    """

    def __init__(self, vocab_size: int, d_embed: int, d_hidden: int):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_embed)
        self.gru = nn.GRU(d_embed, d_hidden, batch_first=True)
        self.W_o = nn.Linear(d_hidden, vocab_size)

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
