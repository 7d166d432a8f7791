"""Scores of answers: the share that is right, and the F1 of entities."""

from collections.abc import Callable, Sequence
from typing import Any

from jaxtyping import Int
from torch import Tensor


def accuracy(predicted: Int[Tensor, " B"], labels: Int[Tensor, " B"]) -> float:
    """The share of right answers.

    Raises:
        ValueError: if there is none to judge, or not one label for each.
    """
    if predicted.shape != labels.shape or not predicted.numel():
        raise ValueError(
            f"each answer needs a label, got shapes {tuple(predicted.shape)} and {tuple(labels.shape)}"
        )
    return float((predicted == labels).double().mean())


def word_tags(
    predicted: Int[Tensor, "B N"], first: Int[Tensor, "B N"], names: Sequence[str], lengths: Sequence[int]
) -> list[list[str]]:
    """A tag a word: that at its first piece, and "O" for a word that was cut off.

    Args:
        predicted: the number of a tag at each place, from `predict`.
        first: the number of the word that begins at each place, or -1, from `encode_sentences`.
        names: of the tags.
        lengths: the number of words in each sentence.
    """
    tags = [["O"] * n for n in lengths]
    for row, place in (first >= 0).nonzero().tolist():
        tags[row][int(first[row, place])] = names[int(predicted[row, place])]
    return tags


def entity_f1(true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """2 P R / (P + R) over entities: P of those predicted are true, R of the true ones are predicted.

    An entity is "B-x" and the "I-x" that follow; it counts where its type and both its ends are right, all
    types counted together (micro-average). An "I-x" that continues nothing makes no entity (seqeval's
    "strict" mode with the scheme IOB2). Without any entity on a side the score is 0.

    Raises:
        ImportError: if seqeval is not installed.
        ValueError: if there are not as many predicted tags as true ones.
    """
    return float(_seqeval("f1_score")(*_lists(true, predicted), average="micro", **_strict()))


def _seqeval(name: str) -> Callable[..., Any]:
    try:
        from seqeval import metrics  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError("scores of entities need seqeval: pip install seqeval") from error
    return getattr(metrics, name)


def _strict() -> dict[str, Any]:
    from seqeval.scheme import IOB2  # type: ignore[import-untyped]

    return {"mode": "strict", "scheme": IOB2, "zero_division": 0}


def _lists(true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> tuple[Any, Any]:
    if [len(tags) for tags in true] != [len(tags) for tags in predicted]:
        raise ValueError("there must be one predicted tag for each true one")
    return [list(tags) for tags in true], [list(tags) for tags in predicted]
