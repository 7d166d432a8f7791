"""Words and their neighbours: the pairs from which embeddings are learned."""

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor


def words_of(text: str) -> list[str]:
    """The words of a text in lower case: runs of letters, with apostrophes inside; numbers are left out."""
    return re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)*", text.lower())


def frequent_words(documents: Iterable[list[str]], min_count: int = 5) -> dict[str, int]:
    """The number of each word that occurs at least `min_count` times, the most frequent word first."""
    counts = Counter(word for words in documents for word in words)
    kept = sorted((-n, word) for word, n in counts.items() if n >= min_count)
    return {word: i for i, (_, word) in enumerate(kept)}


def skip_gram_pairs(
    ids: Int[Tensor, " T"], window: int = 5, subsample: float | int = 1e-3, seed: int = 0
) -> tuple[Int[Tensor, " P"], Int[Tensor, " P"]]:
    """All pairs (centre, neighbour) of a text, each in both directions.

    Mikolov et al. (2013b): a word whose share of the text is f stays with probability
    sqrt(subsample / f), at most 1, so that "the" and "of" do not take up the windows; then each centre
    looks r words to either side, r drawn from 1..window, so that near words count more.

    Args:
        ids: the words, one-dimensional; a negative number is a word that has none, or an end of document
            if `window` of them follow each other. It is in no pair.
        window: the largest distance.
        subsample: the share above which words are thinned out; 0 leaves all in.
        seed: of what is drawn.

    Raises:
        ValueError: if the window is below 1, or there is no word.
    """
    if window < 1 or not (ids >= 0).any():
        raise ValueError(f"pairs need a window of at least 1 and a word, got {window} and {len(ids)} places")
    generator = np.random.default_rng(seed)
    words = ids.numpy()
    if subsample > 0:
        counts = np.bincount(words[words >= 0])
        stay = np.sqrt(subsample * counts.sum() / counts.clip(min=1)).clip(max=1.0)
        words = words[(words < 0) | (generator.random(len(words)) < stay[words.clip(min=0)])]
    reach = generator.integers(1, window + 1, len(words))
    centres, contexts = [], []
    for distance in range(1, min(window, len(words) - 1) + 1):
        left, right = words[:-distance], words[distance:]
        both = (left >= 0) & (right >= 0)
        for centre, context, far in ((left, right, reach[:-distance]), (right, left, reach[distance:])):
            kept = both & (far >= distance)
            centres.append(centre[kept])
            contexts.append(context[kept])
    if not centres:
        return ids[:0], ids[:0]
    return torch.from_numpy(np.concatenate(centres)), torch.from_numpy(np.concatenate(contexts))
