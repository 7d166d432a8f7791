"""How near the texts of a test come to those trained on, by the trigrams of letters that they share."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tformer_lib.data.pairs import Pair, normalise


def near_duplicates(
    train: Sequence[Pair], test: Sequence[Pair], *, threshold: float = 0.8, side: str = "english"
) -> float:
    """The share of the test whose nearest training text is no farther than `threshold`.

    Args:
        train: the pairs trained on.
        test: the pairs tested on.
        threshold: of `nearest_similarity`, from 0 (nothing in common) to 1 (the same trigrams). At 0.8 two
            texts of thirty letters differ in a letter or two.
        side: which texts are compared, "english" or "other"; or "both", where one training pair must be
            near on both sides.

    Raises:
        ValueError: if there is no such side, if the threshold does not lie in 0..1, or if a part is empty.
    """
    sides = {"english": (0,), "other": (1,), "both": (0, 1)}
    if side not in sides:
        raise ValueError(f'side is "english", "other" or "both", got {side!r}')
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold must lie between 0 and 1, got {threshold}")
    columns = [([pair[i] for pair in train], [pair[i] for pair in test]) for i in sides[side]]
    return (nearest_similarity(*columns) >= threshold).float().mean().item()


def nearest_similarity(*columns: tuple[Sequence[str], Sequence[str]]) -> Float[Tensor, "N"]:
    """max_t n(A_t ∩ B_n) / n(A_t ∪ B_n), with the trigrams A_t of training text t and B_n of test text n.

    That is Jaccard's measure of what two sets share, here of all three letters (and spaces) that follow one
    another after `normalise`; n() counts. Of several columns (the English texts, their translations) the
    least counts, before the nearest t is taken.

    Args:
        columns: (training texts, test texts), one or more times.

    Raises:
        ValueError: if there are no texts.
    """
    if not columns or any(len(texts) == 0 for column in columns for texts in column):
        raise ValueError("there must be texts to train on and texts to test")
    tables = [trigrams(*column) for column in columns]
    nearest = []
    for start in range(0, len(columns[0][1]), 200):
        shares = []
        for train, test in tables:
            some = test[start : start + 200]
            shared = torch.from_numpy((some @ train.T).toarray())
            sizes = torch.from_numpy(some.sum(1)).view(-1, 1) + torch.from_numpy(train.sum(1)).view(1, -1)
            shares.append(shared / (sizes - shared))
        nearest.append(torch.stack(shares).amin(0).amax(-1))
    return torch.cat(nearest)


def trigrams(train: Sequence[str], test: Sequence[str]) -> tuple[Any, Any]:
    """Which trigrams each text has: two sparse matrices of zeros and ones, (texts, trigrams)."""
    from sklearn.feature_extraction.text import CountVectorizer  # type: ignore[import-untyped]

    count = CountVectorizer(analyzer="char", ngram_range=(3, 3), binary=True, dtype="float32")
    train, test = ([f" {normalise(text) or ' '} " for text in texts] for texts in (train, test))
    count.fit([*train, *test])
    return count.transform(train), count.transform(test)
