"""What attention does not explain: weights beside what an answer loses without a token."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tformer_book.bert.ranks import kendall_tau
from tformer_lib.analysis.weights import Batch, attention_weights
from tformer_lib.core.modes import evaluation
from tformer_lib.core.precision import precise


@dataclass(frozen=True)
class Deletions:
    """Beside each other: what a place attends to, and which tokens the answer given there needs."""

    attention: Float[Tensor, "B M H N"]  # the weights of the place that answers
    change: Float[Tensor, "B N"]  # log p(answer) as it is, minus log p(answer) with this token replaced
    asked: Bool[Tensor, "B N"]  # the tokens that were replaced; the rest hold nothing

    def tau(self, blocks: slice = slice(None)) -> Float[Tensor, "B"]:
        """Kendall's tau, for each sequence, between weights (mean over heads, blocks) and |change|."""
        return kendall_tau(self.attention[:, blocks].mean(dim=(1, 2)), self.change.abs(), self.asked)


@torch.no_grad()
def attention_against_deletion(
    model: nn.Module,
    batch: Batch,
    answer: Callable[[nn.Module, Batch], Float[Tensor, "B classes"]],
    *,
    replacement: int,
    special: Iterable[int],
    places: int | Int[Tensor, "B"] = 0,
) -> Deletions:
    """For each token in turn: how much the answering place attends to it, and what its loss would change.

    The answer is the class that the model itself finds likeliest on the whole sequence. Each token that is
    neither special, nor padding, nor at the answering place is replaced by `replacement`, the others staying,
    and log p of that same class measured again. Dropout is off.

    Args:
        model: any model with one `Transformer`, whose layers are not fused.
        batch: what it reads; tokens first, then segments and mask as the model takes them.
        answer: logits, or log-probabilities, of the classes: for a `SequenceClassifier`
            `lambda model, batch: model(*batch)`; for holes the logits of the tokens there.
        replacement: the number of [MASK] or [UNK].
        special: numbers of tokens that are not replaced, among them that of padding.
        places: where the answer is read: 0 for [CLS], else one place a sequence.

    Source:
        The question, and the rank correlation with leaving one token out, are those of Jain and Wallace 2019,
        for attention on top of recurrent encoders. Here the encoder is a transformer, the token is replaced
        and not left out, so that the others keep their places, and log p(answer) is compared.
    """
    batch = batch[:3]
    tokens = batch[0]
    rows = torch.arange(len(tokens), device=tokens.device)
    places = torch.as_tensor(places, device=tokens.device).expand(len(tokens))
    attention = attention_weights(model, batch)[rows, :, :, places]
    numbers = torch.tensor(sorted(special), dtype=tokens.dtype, device=tokens.device)
    asked = ~torch.isin(tokens, numbers)
    asked[rows, places] = False
    with evaluation(model):
        whole = precise(answer(model, batch)).log_softmax(-1)
        best = whole.argmax(-1)
        change = torch.zeros(tokens.shape, device=tokens.device)
        for n in asked.any(dim=0).nonzero().flatten().tolist():
            fewer = tokens.clone()
            fewer[asked[:, n], n] = replacement
            found = precise(answer(model, (fewer, *batch[1:]))).log_softmax(-1)
            change[:, n] = (whole - found)[rows, best]
    return Deletions(attention, change * asked, asked)
