"""Token numbers: looked at before they choose the rows of a table, or the entries of a distribution.

PyTorch says "index out of range in self" where a number is too large, and on a GPU it says less.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from tformer_lib.core.precision import precise
from tformer_lib.inputs import check_ids, check_targets
from tformer_lib.numbers import whole

IGNORED = -100  # as a target: nothing is asked at this place


class TokenEmbedding(nn.Embedding):
    """E[tokens]: a row of the table for each number, which must be one of the table's (`check_ids`).

    Args:
        count: the number of rows.
        width: of a row, D.
        name: what errors call the numbers.
        axes: the names of the axes that the numbers must have; any if None.

    Raises:
        TypeError: if a size is no whole number; in forward, if the numbers are none.
        ValueError: if a size is not positive; in forward, if a number has no row, or the axes are others.
    """

    def __init__(self, count: int, width: int, *, name: str = "tokens", axes: str | None = None):
        super().__init__(whole(f"the number of {name}", count, 1), whole("the width", width, 1))
        self.name, self.axes = name, axes

    def forward(self, input: Tensor) -> Tensor:
        check_ids(self.name, input, self.num_embeddings, self.axes, device=self.weight.device)
        return super().forward(input)


def cross_entropy(
    logits: Tensor, targets: Tensor, *, ignored: int = -100, label_smoothing: float = 0.0
) -> Tensor:
    """-mean log p(target) in nats, over the targets that are not `ignored`: PyTorch's, with a look at these.

    In float32 at least, whatever the logits are.

    Args:
        logits: (K, classes).
        targets: (K,).
        ignored: the target that asks for nothing.
        label_smoothing: as in `torch.nn.functional.cross_entropy`.

    Raises:
        TypeError: if the targets are not whole numbers.
        ValueError: if nothing is asked, if there are not as many targets as rows of logits, or if a target is
            none of the classes.
    """
    check_targets(logits, targets, ignored)
    return F.cross_entropy(
        precise(logits), targets.long(), ignore_index=ignored, label_smoothing=label_smoothing
    )
