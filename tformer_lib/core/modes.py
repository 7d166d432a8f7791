"""How a model runs for a while: in evaluation mode, and as it was written rather than compiled."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn


@contextmanager
def evaluation(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside the `with`; afterwards every module is back in the mode it was in.

    The mode is the model's, not the caller's. Several threads can share a model that is in evaluation mode
    already; of one in training mode the first thread to finish would switch dropout on again for the others.
    """
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def as_written() -> AbstractContextManager[None]:
    """Within the `with`, what `torch.compile` has made runs as it was written: compiled code calls no hooks
    that came after it."""
    if "torch._dynamo" not in sys.modules:  # nothing has been compiled, and to import it takes a second
        return nullcontext()
    return torch.compiler.set_stance("force_eager")


def plain(model: nn.Module) -> Any:
    """The model within the wrappers of `torch.compile`, `DataParallel` and `DistributedDataParallel`."""
    parallel = (nn.DataParallel, nn.parallel.DistributedDataParallel)
    while True:
        inner = model.module if isinstance(model, parallel) else getattr(model, "_orig_mod", None)
        if not isinstance(inner, nn.Module):
            return model
        model = inner
