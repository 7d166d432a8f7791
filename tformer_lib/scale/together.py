"""What the processes of a group tell each other; a single process, without a group, is one of one."""

from collections.abc import Callable
from typing import Any

import torch.distributed as dist


def rank() -> int:
    """The number of this process."""
    return dist.get_rank() if dist.is_initialized() else 0


def processes() -> int:
    """How many there are."""
    return dist.get_world_size() if dist.is_initialized() else 1


def gather(value: Any) -> list[Any]:
    """The value of every process, in each of them."""
    if processes() == 1:
        return [value]
    found: list[Any] = [None] * processes()
    dist.all_gather_object(found, value)
    return found


def each(work: Callable[[], Any]) -> Any:
    """What `work` returns in this process, once every process has done it; an error in one ends it in all."""
    result, fault = None, None
    try:
        result = work()
    except Exception as error:
        fault = error
    try:
        raise_together(fault)
    except ValueError:
        if fault is not None:
            raise fault  # noqa: B904  the one that was found here, as it is
        raise
    return result


def raise_together(fault: Exception | None) -> None:
    """Raise in every process what one of them found, if one did."""
    found = gather(None if fault is None else (type(fault), str(fault)))
    first = next((each for each in found if each is not None), None)
    if first is not None:
        kind = first[0] if first[0] in (FileNotFoundError, ValueError) else ValueError
        raise kind(first[1]) from fault
