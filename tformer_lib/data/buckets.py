"""Batches of pairs of like length: what is filled up with padding costs time and teaches nothing."""

from collections.abc import Iterable, Iterator, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from tformer_lib.data import PAD

Tokens = Sequence[Sequence[int]]


def padded(rows: Tokens, pad_id: int = PAD) -> Int[Tensor, "B S"]:
    """Rows of different lengths as one tensor, filled with `pad_id` at the end.

    Raises:
        ValueError: if there are no rows.
    """
    if not rows:
        raise ValueError("there are no rows to pad")
    width = max(map(len, rows))
    return torch.tensor([[*row, *[pad_id] * (width - len(row))] for row in rows], dtype=torch.int64)


class BucketedBatches:
    """`steps` batches (source (B, S), target (B, T)), each of about `tokens` places in the target.

    In every epoch the pairs are shuffled, sorted by length (that of the longer side, then that of both
    together), so that neighbours are of like length, and cut into batches with B T <= `tokens`; then the
    batches are shuffled. Epochs follow one another: a pair is read once in each. Each pass over the object
    gives the same batches.

    Args:
        sources: the tokens of each source.
        targets: the tokens of each target.
        steps: the number of batches.
        tokens: the most places of a batch's target, padding included.
        bucketed: False leaves the sorting out, to see what it saves.
        pad_id: the number of "no token here".
        seed: of the shuffling.

    Raises:
        ValueError: if there is not a source for each target, or none at all, if `steps` is not positive, or
            if a target is longer than `tokens`.
    """

    def __init__(
        self,
        sources: Tokens,
        targets: Tokens,
        *,
        steps: int,
        tokens: int,
        bucketed: bool = True,
        pad_id: int = PAD,
        seed: int = 0,
    ):
        if len(sources) != len(targets) or not sources:
            raise ValueError(f"got {len(sources)} sources and {len(targets)} targets")
        if steps < 1:
            raise ValueError(f"steps must be positive, got {steps}")
        if (longest := max(map(len, targets))) > tokens:
            raise ValueError(f"a target has {longest} tokens, and a batch is to have {tokens} at most")
        self.sources, self.targets = sources, targets
        self.steps, self.tokens, self.bucketed, self.pad_id, self.seed = steps, tokens, bucketed, pad_id, seed
        self._lengths = torch.tensor(
            [(max(len(s), len(t)), len(s) + len(t)) for s, t in zip(sources, targets, strict=True)]
        )

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        generator = torch.Generator().manual_seed(self.seed)
        waiting: list[list[int]] = []
        for _ in range(self.steps):
            if not waiting:
                waiting = self.epoch(generator)
            now = waiting.pop()
            yield (
                padded([self.sources[i] for i in now], self.pad_id),
                padded([self.targets[i] for i in now], self.pad_id),
            )

    @property
    def steps_per_epoch(self) -> int:
        """The number of batches in the first epoch; later ones may have one more or less."""
        return len(self.epoch(torch.Generator().manual_seed(self.seed)))

    def epoch(self, generator: torch.Generator) -> list[list[int]]:
        """The pairs' numbers, each once, as batches in random order."""
        order = torch.randperm(len(self.targets), generator=generator)
        if self.bucketed:
            longer, both = self._lengths[order].unbind(1)
            order = order[(longer * (int(both.max()) + 1) + both).argsort(stable=True)]
        batches: list[list[int]] = []
        width = 0
        for i in order.tolist():
            width = max(width, len(self.targets[i]))
            if not batches or width * (len(batches[-1]) + 1) > self.tokens:
                batches.append([])
                width = len(self.targets[i])
            batches[-1].append(i)
        return [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]


def padding_share(batches: Iterable[tuple[Tensor, Tensor]], pad_id: int = PAD) -> float:
    """The share of places, of sources and targets together, that hold padding.

    Raises:
        ValueError: if there are no batches.
    """
    empty = places = 0
    for batch in batches:
        for side in batch:
            empty += int((side == pad_id).sum())
            places += side.numel()
    if not places:
        raise ValueError("there are no batches")
    return empty / places
