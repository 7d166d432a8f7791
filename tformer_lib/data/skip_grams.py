"""Words and their neighbours: the pairs from which embeddings are learned."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

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
        for centre, context, far in (
            (left, right, reach[:-distance]),
            (right, left, reach[distance:]),
        ):
            kept = both & (far >= distance)
            centres.append(centre[kept])
            contexts.append(context[kept])
    if not centres:
        return ids[:0], ids[:0]
    return torch.from_numpy(np.concatenate(centres)), torch.from_numpy(np.concatenate(contexts))


class SkipGramBatches:
    """`steps` batches (centres (B,), neighbours (B,), noise (B, K)); noise from the unigram^0.75.

    Batches go through the pairs in random order, and again in another when they are through. To loop over
    them a second time gives the same batches again.

    Args:
        pairs: (centres, neighbours), as from `skip_gram_pairs`.
        batch: the number B of pairs.
        n_noise: the number K of noise words a pair.
        steps: the number of batches.
        seed: of order and noise.

    Raises:
        ValueError: if there are fewer pairs than a batch takes.
    """

    def __init__(
        self, pairs: tuple[Tensor, Tensor], *, batch: int, n_noise: int = 5, steps: int, seed: int = 0
    ):
        if len(pairs[0]) < batch:
            raise ValueError(f"a batch takes {batch} pairs, and there are {len(pairs[0])}")
        self.pairs, self.batch, self.n_noise, self.steps, self.seed = pairs, batch, n_noise, steps, seed
        self.noise = torch.bincount(pairs[1]).double().pow(0.75).cumsum(0)

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        generator = torch.Generator().manual_seed(self.seed)
        centres, contexts = self.pairs
        per_round = len(centres) // self.batch
        for step in range(self.steps):
            if step % per_round == 0:
                order = torch.randperm(len(centres), generator=generator)
            chosen = order[step % per_round * self.batch :][: self.batch]
            drawn = torch.rand(self.batch, self.n_noise, generator=generator, dtype=torch.float64)
            noise = torch.searchsorted(self.noise, drawn * self.noise[-1], right=True)
            yield centres[chosen], contexts[chosen], noise.clamp(max=len(self.noise) - 1)
