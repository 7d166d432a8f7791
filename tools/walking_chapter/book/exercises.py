"""The exercises of the chapter A walking chapter."""

import torch
from torch import Tensor

from tformer_book.kit.exercises import exercise


def _inputs(generator: torch.Generator) -> list[tuple]:
    return [(torch.randn(3, 4, generator=generator),), (torch.randn(2, 5, generator=generator),)]


@exercise("walking.column_means", inputs=_inputs)
def column_means(X: Tensor) -> Tensor:
    """The mean of each column of X."""
    return X.mean(dim=0)


column_means.mistake(
    "rows for columns",
    "You have averaged each row. A column is a token: average over the first axis.",
    lambda X: X.mean(dim=1),
)
column_means.mistake(
    "one mean of all",
    "You have averaged all numbers at once. Each column has a mean of its own: name the axis.",
    lambda X: X.mean(),
)
