"""Windows of a long text: the batches on which language models train."""

from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor


class RandomWindows:
    """`steps` batches of shape (B, N + 1): windows that start at random places of one long sequence.

    A window holds N + 1 tokens because a language model reads the first N and predicts the last N. To
    loop over it a second time gives the same batches again.

    Args:
        ids: the sequence, one-dimensional.
        batch: the number B of windows in a batch.
        length: the number N of tokens that the model reads.
        steps: the number of batches.
        seed: of the random places.

    Raises:
        ValueError: if the sequence is not one-dimensional, or shorter than a window.
    """

    def __init__(self, ids: Int[Tensor, "*T"], *, batch: int, length: int, steps: int, seed: int = 0):
        check_long(ids, length)
        self.ids, self.batch, self.length, self.steps, self.seed = ids, batch, length, steps, seed

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Int[Tensor, "B M"]]:
        generator = torch.Generator().manual_seed(self.seed)
        within = torch.arange(self.length + 1)
        for _ in range(self.steps):
            starts = torch.randint(len(self.ids) - self.length, (self.batch, 1), generator=generator)
            yield self.ids[(starts + within).to(self.ids.device)]


def consecutive_windows(ids: Int[Tensor, "*T"], length: int) -> Int[Tensor, "windows M"]:
    """Windows of `length` + 1 tokens, each beginning with the last token of the one before.

    Each token but the first is predicted exactly once; a rest shorter than a window is left out. These
    are for measuring.

    Raises:
        ValueError: as `RandomWindows`.
    """
    check_long(ids, length)
    return ids.unfold(0, length + 1, length)


def check_long(ids: Tensor, length: int) -> None:
    """Raise unless this is one sequence, of a window at least."""
    if ids.ndim != 1:
        raise ValueError(f"windows are cut from one long sequence, got shape {tuple(ids.shape)}")
    if len(ids) < length + 1:
        raise ValueError(f"a window takes {length + 1} tokens, and the sequence has {len(ids)}")
