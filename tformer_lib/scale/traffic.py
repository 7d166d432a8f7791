"""What processes say to each other: counted call by call, and what the formulas predict.

A process that takes part in a collective on `size` bytes among n processes sends, in a ring,

    all-gather, reduce-scatter: (n - 1) / n * size,    all-reduce: 2 (n - 1) / n * size,

where `size` is that of the whole: of what an all-gather returns, of what a reduce-scatter is given. A ring
sends no more than any algorithm must (Patarasuk and Yuan 2009, for the all-reduce).
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tformer_lib.numbers import real, whole

# How often the whole, less one share, passes through each process of a ring.
_ROUNDS = {
    "all_reduce": 2,
    "all_gather": 1,
    "reduce_scatter": 1,
    "all_to_all": 1,
    "broadcast": 1,
    "reduce": 1,
}


def _ring(size: int | float, n: int, rounds: int) -> float:
    size, n = real("size", size, "[0, inf)"), whole("n", n, 1)
    return rounds * (n - 1) * size / n


def all_reduce_bytes(size: int | float, n: int) -> float:
    """2 (n - 1) / n * size: what each of n processes sends so that all hold the sum of their tensors.

    Args:
        size: the bytes of one process's tensor.
        n: the number of processes.
    """
    return _ring(size, n, 2)


def all_gather_bytes(size: int | float, n: int) -> float:
    """(n - 1) / n * size: what each of n processes sends so that all hold what each had one n-th of.

    Args:
        size: the bytes of the whole, which all hold at the end.
        n: the number of processes.
    """
    return _ring(size, n, 1)


def reduce_scatter_bytes(size: int | float, n: int) -> float:
    """(n - 1) / n * size: what each of n processes sends so that each holds one n-th of the sum.

    Args:
        size: the bytes of one process's tensor, before.
        n: the number of processes.
    """
    return _ring(size, n, 1)


def data_parallel_bytes(parameters: int, n: int, itemsize: int = 4) -> float:
    """2 (n - 1) / n * P * itemsize: one all-reduce of the gradient of P parameters a step.

    Args:
        parameters: P, those with a gradient.
        n: the number of processes.
        itemsize: the bytes of a number.
    """
    return all_reduce_bytes(whole("parameters", parameters, 0) * whole("itemsize", itemsize, 1), n)


def sharded_bytes(parameters: int, n: int, itemsize: int = 4, kept: int = 0) -> float:
    """3 (n - 1) / n * P * itemsize: the weights gathered on the way forward and back, the gradient scattered.

    Args:
        parameters: P.
        n: the number of processes.
        itemsize: the bytes of a number.
        kept: of these parameters, how many stay gathered until the way back, so that they travel twice.

    Raises:
        ValueError: if more are kept than there are.
    """
    size = whole("parameters", parameters, 0) * whole("itemsize", itemsize, 1)
    if whole("kept", kept, 0) > parameters:
        raise ValueError(f"of {parameters} parameters {kept} cannot be kept")
    return (
        2 * all_gather_bytes(size, n) - all_gather_bytes(kept * itemsize, n) + reduce_scatter_bytes(size, n)
    )


def tensor_parallel_bytes(activation: int, sublayers: int, n: int, itemsize: int = 4) -> float:
    """2 * sublayers * 2 (n - 1) / n * activation: all-reduces of (B, N, D), one forward and one back each.

    Args:
        activation: B N D, the numbers that a sublayer returns.
        sublayers: attention layers and MLPs together, 2 for each block.
        n: the number of processes.
        itemsize: the bytes of a number.
    """
    size = whole("activation", activation, 0) * whole("itemsize", itemsize, 1)
    return 2 * whole("sublayers", sublayers, 0) * all_reduce_bytes(size, n)


def pipeline_bytes(activation: int, stage: int, n: int, itemsize: int = 4) -> int:
    """What one stage of n sends in a step: B N D forward but for the last, as much back but for the first.

    Args:
        activation: B N D of the whole batch, all micro-batches together.
        stage: which, from 0.
        n: the number of stages.
        itemsize: the bytes of a number.

    Raises:
        ValueError: if there is no such stage.
    """
    size = whole("activation", activation, 0) * whole("itemsize", itemsize, 1)
    if not 0 <= whole("stage", stage) < whole("n", n, 1):
        raise ValueError(f"stages are counted from 0 to {n - 1}, got {stage}")
    return size * ((stage < n - 1) + (stage > 0))


def ring_attention_bytes(activation: int, n: int, itemsize: int = 4, *, backward: bool = False) -> float:
    """2 (n - 1) / n * B N D for one layer: each share of keys and values passes all processes but one.

    The way back, as autograd takes it, sends as much again: the gradients of what came return by the way it
    took, and the shares are still there. (To keep none of them, Liu et al. let the shares travel twice.)

    Args:
        activation: B N D, the numbers in the keys of the whole sequence; the values are as many.
        n: the number of processes.
        itemsize: the bytes of a number.
        backward: whether the way back is counted too.
    """
    size = 2 * whole("activation", activation, 0) * whole("itemsize", itemsize, 1)
    return (2 if backward else 1) * all_gather_bytes(size, n)


@dataclass(frozen=True)
class Message:
    """One call.

    Args:
        kind: "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "send",
            "recv" or "barrier".
        size: the bytes of the whole tensor, as the formulas count it.
        processes: how many take part.
    """

    kind: str
    size: int
    processes: int

    @property
    def sent(self) -> int | float:
        """The bytes that this process sends, all of a `send`, none of a `recv`, a ring's for the others.

        Of a broadcast and of a reduce it is the mean over the processes.
        """
        if self.kind in _ROUNDS:
            return _ring(self.size, self.processes, _ROUNDS[self.kind])
        return self.size if self.kind == "send" else 0


class Traffic(TorchDispatchMode):
    """Sees every collective and every message that the block makes, in the process it runs in::

        with Traffic() as traffic:
            loss(ddp(x)).backward()
        traffic.sent, traffic.calls()

    PyTorch gives each operation to a dispatch mode before it is carried out, the backward pass's too; c10d's
    are written down, whoever asked for them: DDP's reducer, FSDP2, DTensor, a pipeline's stages, or the block
    itself. It counts what is asked for, at a ring's price; the backend may do it otherwise (gloo, for one,
    makes a reduce-scatter of an all-reduce). What other threads send is not seen; compiled models have
    not been tried.

    Attributes:
        messages: the calls in their order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[Message] = []

    @property
    def sent(self) -> int | float:
        """The bytes that this process sent."""
        return sum(message.sent for message in self.messages)

    def calls(self) -> dict[str, int]:
        """How often each kind was called."""
        return dict(Counter(message.kind for message in self.messages))

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else PyTorch loads its compiler to keep it away, a second for each process

    def __torch_dispatch__(
        self, func: Any, types: Iterable[type], args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if any("DTensor" in kind.__name__ for kind in types):
            return NotImplemented  # it comes again in parts, messages among them
        result = func(*args, **(kwargs or {}))
        space, _, name = func._schema.name.partition("::")
        if space in ("c10d", "_c10d_functional", "_c10d_functional_autograd") and name not in _SILENT:
            self.messages.append(_message(name, args, result))
        return result


_SILENT = {"wait_tensor", "_wrap_tensor_autograd"}


def _bytes(tensors: Any) -> int:
    """The bytes of a tensor, or of all in a list of lists."""
    if isinstance(tensors, Tensor):
        return tensors.numel() * tensors.element_size()
    return sum(map(_bytes, tensors))


# From an operation's name to its kind, and to what is whole: an argument, or the result.
_FIRST, _SECOND, _RESULT = (lambda a, r: a[0]), (lambda a, r: a[1]), (lambda a, r: r)
_NONE = lambda a, r: ()  # noqa: E731
_OPERATIONS: dict[str, tuple[str, Callable[[tuple, Any], Any]]] = {
    "allreduce_": ("all_reduce", _FIRST),
    "allreduce_coalesced_": ("all_reduce", _FIRST),
    "all_reduce": ("all_reduce", _FIRST),
    "all_reduce_": ("all_reduce", _FIRST),
    "all_reduce_coalesced": ("all_reduce", _FIRST),
    "all_reduce_coalesced_": ("all_reduce", _FIRST),
    "allgather_": ("all_gather", _FIRST),
    "_allgather_base_": ("all_gather", _FIRST),
    "allgather_coalesced_": ("all_gather", _FIRST),
    "allgather_into_tensor_coalesced_": ("all_gather", _FIRST),
    "all_gather_into_tensor": ("all_gather", _RESULT),
    "all_gather_into_tensor_out": ("all_gather", _RESULT),
    "all_gather_into_tensor_coalesced": ("all_gather", _RESULT),
    "reduce_scatter_": ("reduce_scatter", _SECOND),
    "_reduce_scatter_base_": ("reduce_scatter", _SECOND),
    "reduce_scatter_tensor_coalesced_": ("reduce_scatter", _SECOND),
    "reduce_scatter_tensor": ("reduce_scatter", _FIRST),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter", _FIRST),
    "alltoall_": ("all_to_all", _SECOND),
    "alltoall_base_": ("all_to_all", _SECOND),
    "all_to_all_single": ("all_to_all", _FIRST),
    "broadcast_": ("broadcast", _FIRST),
    "broadcast": ("broadcast", _FIRST),
    "reduce_": ("reduce", _FIRST),
    "send": ("send", _FIRST),
    "recv_": ("recv", _FIRST),
    "recv_any_source_": ("recv", _FIRST),
    "barrier": ("barrier", _NONE),
    "monitored_barrier_": ("barrier", _NONE),
}


def _message(name: str, args: tuple, result: Any) -> Message:
    """What the call was.

    Raises:
        NotImplementedError: if it is a call whose bytes are not known here: better than to miss them.
    """
    if name not in _OPERATIONS:
        raise NotImplementedError(f"the traffic of {name!r} is not counted yet")
    kind, whole_of = _OPERATIONS[name]
    return Message(kind, _bytes(whole_of(args, result)), 2 if kind in ("send", "recv") else _processes(args))


def _processes(args: tuple[Any, ...]) -> int:
    """The size of the process group among the arguments: an object, or its name."""
    of_name: Any = dist.distributed_c10d._resolve_process_group
    for value in args:
        if isinstance(value, str) and value not in ("sum", "avg", "min", "max", "product"):
            return of_name(value).size()
        if isinstance(value, torch.ScriptObject):
            try:
                return dist.ProcessGroup.unbox(value).size()
            except (RuntimeError, TypeError):
                continue  # the reduction's name
    return dist.get_world_size()
