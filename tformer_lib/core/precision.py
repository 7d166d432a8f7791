"""Precision: scores, sums and means in float32 at least, whatever they are made of.

In half precision a product of forties overflows (float16), and a mean has three digits (bfloat16), so that it
depends on how many terms are added at a time.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from jaxtyping import Float
from torch import Tensor


def precise(x: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """`x` in float32 at least: half precision is widened, and all else comes back as it is."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def as_given(x: Tensor) -> AbstractContextManager[None]:
    """Within the `with`, products are formed in the type of their factors, under `torch.autocast` too."""
    device = x.device.type
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        return torch.autocast(device, enabled=False)
    return nullcontext()
