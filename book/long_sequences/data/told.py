"""Language in which context matters: windows of a text, and passages that are told twice."""

from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor


class ToldTwice:
    """`steps` batches (B, 2 L + 1): B / 2 rows of a text, and B / 2 with a passage told twice.

    Such a row is a passage of L tokens, the same L tokens again, and the token that follows it in the text.
    To loop over it a second time gives the same batches again.

    Args:
        ids: the text, (T,).
        passage: the length L.
        batch: the number of rows, even.
        steps: the number of batches.
        seed: of the random places.

    Raises:
        ValueError: if the batch is odd, or the text shorter than a row.
    """

    def __init__(self, ids: Int[Tensor, " T"], *, passage: int, batch: int, steps: int, seed: int):
        if batch % 2 or len(ids) < 2 * passage + 1:
            raise ValueError(
                f"need an even batch and {2 * passage + 1} tokens, got {batch=}, {len(ids)} tokens"
            )
        self.ids, self.passage, self.batch, self.steps, self.seed = ids, passage, batch, steps, seed

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Int[Tensor, "B M"]]:
        generator = torch.Generator().manual_seed(self.seed)
        for _ in range(self.steps):
            starts = torch.randint(len(self.ids) - 2 * self.passage, (self.batch, 1), generator=generator)
            rows = self.ids[starts + torch.arange(2 * self.passage + 1)]
            twice = rows[self.batch // 2 :]
            twice[:, self.passage :] = twice[:, : self.passage + 1].clone()
            yield rows
