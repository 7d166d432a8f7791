"""Training mode and evaluation mode, and the module that others hold."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel


@contextmanager
def evaluation(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside the `with`; afterwards every module is back in the mode it was in."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def unwrapped(model: nn.Module) -> Any:
    """The module itself, of one that `torch.compile`, DataParallel or DistributedDataParallel holds."""
    while True:
        if isinstance(model, DataParallel | DistributedDataParallel):
            model = model.module
        elif "_orig_mod" in model._modules:  # torch.compile's own class is named only when it is imported
            model = model.get_submodule("_orig_mod")
        else:
            return model
