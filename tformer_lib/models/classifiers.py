"""What is put on a pre-trained encoder to fine-tune it: one answer a sequence, or one a token."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from tformer_lib.core.tokens import IGNORED, cross_entropy
from tformer_lib.models.bert import BERT


class _Classifier(nn.Module):
    """An encoder, dropout, and a linear layer with as many outputs as there are answers."""

    def __init__(self, bert: BERT, outputs: int):
        super().__init__()
        self.bert = bert
        self.dropout = nn.Dropout(bert.config.dropout)
        self.W = nn.Linear(bert.config.d_model, outputs)
        nn.init.xavier_uniform_(self.W.weight)
        nn.init.zeros_(self.W.bias)


class SequenceClassifier(_Classifier):
    """logits = W dropout(pooled) + b: (B, N) -> (B, classes), read at [CLS] (Devlin et al. 2019, figure 4b).

    Args:
        bert: the encoder, with a pooler; it is trained along.
        classes: the number of answers.
    """

    def __init__(self, bert: BERT, classes: int):
        super().__init__(bert, classes)

    def forward(
        self,
        tokens: Int[Tensor, "B N"],
        segments: Int[Tensor, "B N"] | None = None,
        mask: Tensor | None = None,
    ) -> Float[Tensor, "B classes"]:
        return self.W(self.dropout(self.bert.pooled(self.bert(tokens, segments, mask))))


class TokenClassifier(_Classifier):
    """logits_n = W dropout(h_n) + b: (B, N) -> (B, N, labels), an answer a token.

    Devlin et al. 2019, figure 4d, draw it for the names in a text.

    Args:
        bert: the encoder; it is trained along.
        labels: the number of answers.
    """

    def __init__(self, bert: BERT, labels: int):
        super().__init__(bert, labels)

    def forward(
        self,
        tokens: Int[Tensor, "B N"],
        segments: Int[Tensor, "B N"] | None = None,
        mask: Tensor | None = None,
    ) -> Float[Tensor, "B N labels"]:
        return self.W(self.dropout(self.bert(tokens, segments, mask)))


def classifier_loss(
    model: SequenceClassifier | TokenClassifier, batch: tuple[Tensor, Tensor | None, Tensor]
) -> Float[Tensor, ""]:
    """-mean log p(label), in nats, over sequences or over the tokens whose label is not `IGNORED`.

    A batch is (tokens (B, N), mask, labels (B,) or (B, N)).

    Raises:
        ValueError: if there is no label, or one is none of the model's.
    """
    tokens, mask, labels = batch
    return cross_entropy(model(tokens, None, mask).flatten(0, -2), labels.flatten(), ignored=IGNORED)
