"""What a masked language model knows: scores at the places where it was asked."""

from collections.abc import Iterable

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from tformer_lib.core.modes import evaluation
from tformer_lib.core.precision import precise
from tformer_lib.core.tokens import IGNORED
from tformer_lib.models.bert import PretrainingBERT
from tformer_lib.numbers import whole

Batch = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]  # as `pretraining_loss` takes them


@torch.no_grad()
def place_scores(
    model: PretrainingBERT, batches: Iterable[Batch]
) -> tuple[Float[Tensor, " K"], Bool[Tensor, " K"]]:
    """log p(token) in nats, and whether the token is the likeliest one, at each of the K chosen places.

    A place is chosen if its target is not `IGNORED`; the order is that of the batches, row by row. Scores are
    of float32 at least. The model is in evaluation mode meanwhile.
    """
    log_p, right = [torch.empty(0)], [torch.empty(0, dtype=torch.bool)]
    with evaluation(model):
        for tokens, segments, mask, targets, _ in batches:
            places = targets != IGNORED
            logits, _ = model(tokens, segments, mask, places)
            true = targets[places]
            log_p.append(precise(logits).log_softmax(-1).gather(1, true[:, None])[:, 0].cpu())
            right.append((logits.argmax(-1) == true).cpu())
    return torch.cat(log_p), torch.cat(right)


def masked_scores(model: PretrainingBERT, batches: Iterable[Batch]) -> tuple[float, float]:
    """-mean log p(token) in nats over the chosen places, and the share where the token is the likeliest.

    Batches are those of `pretraining_loss`. Every place counts alike, however many a batch has.

    Raises:
        ValueError: if no place is chosen.
    """
    return means(*place_scores(model, batches))


def hidden_places(batches: Iterable[Batch], mask_id: int) -> list[Batch]:
    """The same batches, asked only where the model reads [MASK]; as a list, to be scored more than once.

    One chosen place in ten shows its token. To say what is seen there takes no context, and a model that
    has learnt no more is already better than the unigram over all chosen places; over these it is not.
    """
    return [
        (tokens, segments, mask, targets.where(tokens == mask_id, IGNORED), labels)
        for tokens, segments, mask, targets, labels in batches
    ]


def unigram_scores(counts: Num[Tensor, " vocab"], batches: Iterable[Batch]) -> tuple[float, float]:
    """What `masked_scores` is for p(w) = (counts_w + 1) / sum_v (counts_v + 1): the text around is not read.

    Args:
        counts: how often each token occurs in the training text.
        batches: of which the targets alone matter.

    Raises:
        ValueError: if no place is chosen, or a token has no count.
    """
    chosen = [targets[targets != IGNORED] for _, _, _, targets, _ in batches]
    true = torch.cat([torch.empty(0, dtype=torch.long), *chosen])
    if len(true) and int(true.max()) >= len(counts):
        raise ValueError(f"token {int(true.max())} has no count: there are {len(counts)} of them")
    smoothed = counts.double() + 1
    log_p = (smoothed / smoothed.sum()).log()
    return means(log_p[true], true == smoothed.argmax())


def means(log_p: Float[Tensor, " K"], right: Bool[Tensor, " K"]) -> tuple[float, float]:
    """The loss in nats and the accuracy.

    Raises:
        ValueError: if there is no place.
    """
    if not len(log_p):
        raise ValueError("there is nothing to score: no place is chosen in these batches")
    return -log_p.double().mean().item(), right.double().mean().item()


@torch.no_grad()
def next_sentence_accuracy(
    model: PretrainingBERT,
    pairs: tuple[Int[Tensor, "P N"], Int[Tensor, "P N"], Tensor, Int[Tensor, " P"]],
    batch: int = 64,
) -> float:
    """The share of pairs whose label, 0 for "follows" and 1 for "does not", has the higher logit.

    Args:
        model: with a `NextSentenceHead`.
        pairs: (tokens, segments, mask, labels), whole, such as `next_sentence_pairs` makes.
        batch: how many are computed at a time.

    Raises:
        ValueError: if the model has no such head, or there is no pair.
    """
    if model.next_sentence is None:
        raise ValueError("this model has no head for the next sentence")
    if not len(pairs[-1]):
        raise ValueError("there is no pair to judge")
    right, batch = 0, whole("batch", batch, 1)
    with evaluation(model):
        for tokens, segments, mask, labels in zip(*(part.split(batch) for part in pairs), strict=True):
            hidden = model.bert(tokens, segments, mask)
            follows = model.next_sentence(model.bert.pooled(hidden))
            right += int((follows.argmax(-1) == labels).sum())
    return right / len(pairs[-1])
