"""Token numbers: looked at before they choose the rows of a table, or the entries of a distribution.

PyTorch says "index out of range in self" where a number is too large, and on a GPU it says less.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer_lib.core.precision import precise
from tformer_lib.numbers import brief, whole

IGNORED = -100  # as a target: nothing is asked at this place


def check_whole(name: str, ids: Tensor, axes: str | None = None) -> None:
    """Raise unless `ids` are whole numbers that can choose rows, on as many axes as `axes` has names.

    Raises:
        TypeError: if they are no tensor of int64 or int32.
        ValueError: if they have other axes.
    """
    if not isinstance(ids, Tensor):
        raise TypeError(f"{name} must be a tensor of whole numbers, got {brief(ids)}")
    if ids.layout != torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got one of layout {ids.layout}")
    if ids.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} must be whole numbers of dtype int64 or int32, got {ids.dtype}")
    if axes is not None and ids.ndim != len(axes.split()):
        raise ValueError(f"{name} must have shape ({', '.join(axes.split())}), got {tuple(ids.shape)}")


def check_ids(
    name: str,
    ids: Tensor,
    count: int,
    axes: str | None = None,
    *,
    least: int = 0,
    device: torch.device | None = None,
) -> None:
    """Raise unless `ids` are whole numbers from 0 to `count` - 1, on as many axes as `axes` has names.

    Args:
        name: what errors call them.
        ids: the numbers.
        count: how many different ones there are, such as the size of the vocabulary.
        axes: the names of their axes, such as "B N"; any number of axes if None.
        least: how long each axis must be.
        device: where they must be; anywhere if None.

    Raises:
        TypeError: if they are no tensor of whole numbers that can choose rows (int64 or int32).
        ValueError: if they have other axes, are elsewhere, or one lies outside; the message says how far.
            While `torch.compile` or `torch.export` traces, and afterwards in what they made, no number is
            read: only axes and types are checked.
    """
    check_whole(name, ids, axes)
    if any(side < least for side in ids.shape):
        raise ValueError(f"{name} must be at least {least} along each axis, got shape {tuple(ids.shape)}")
    if device is not None and ids.device.type != device.type:
        raise ValueError(f"{name} must be on {device}, with their table, got {ids.device}")
    readable = not (ids.is_meta or torch.compiler.is_compiling())
    if readable and ids.numel():
        least, greatest = (int(x) for x in ids.aminmax())
        if least < 0 or greatest >= count:
            raise ValueError(
                f"{name} must lie in 0 to {count - 1}, of which there are {count}; these go from {least} "
                f"to {greatest}"
            )


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
    if logits.shape[:-1] != targets.shape:
        raise ValueError(
            f"each row of logits needs one target, got {tuple(logits.shape)} and {tuple(targets.shape)}"
        )
    asked = targets[targets != ignored]
    if not asked.numel():
        raise ValueError("there is nothing to predict: none of these targets asks for anything")
    check_ids("targets", asked, logits.shape[-1])
    return F.cross_entropy(
        precise(logits), targets.long(), ignore_index=ignored, label_smoothing=label_smoothing
    )
