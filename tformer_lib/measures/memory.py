"""How much memory a computation holds at its peak, counted tensor by tensor."""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class _Counter(TorchDispatchMode):
    """Adds up the storages that operations make, and takes off those that are freed."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.peak = 0, 0
        self.known: set[int] = set()

    def _free(self, key: int, size: int) -> None:
        self.known.discard(key)
        self.now -= size

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        inputs = {x.untyped_storage()._cdata for x in tree_leaves((args, kwargs)) if torch.is_tensor(x)}
        result = func(*args, **(kwargs or {}))
        for x in tree_leaves(result):
            if not torch.is_tensor(x):
                continue
            storage = x.untyped_storage()
            key, size = storage._cdata, storage.nbytes()
            if key in self.known or key in inputs:  # a view, or written in place
                continue
            self.known.add(key)
            self.now += size
            weakref.finalize(storage, self._free, key, size)
        self.peak = max(self.peak, self.now)
        return result


def peak_memory(function: Callable[[], Any]) -> int:
    """The most bytes that tensors made within `function()` held at one time, its backward passes included.

    Exact and the same on every machine, because it counts what operations return and when it is freed. What
    an operation uses and frees within itself is not seen, nor are tensors made outside.
    """
    with _Counter() as counter:
        function()
    return counter.peak
