"""Training mode and evaluation mode."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


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
