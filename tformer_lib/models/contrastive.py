"""Two encoders that learn to agree: vectors of what belongs together are to be alike."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from tformer_lib.core.precision import as_given, precise
from tformer_lib.core.tokens import cross_entropy


def contrastive_loss(
    left: Float[Tensor, "B D"], right: Float[Tensor, "M E"], temperature: float = 0.07
) -> Float[Tensor, ""]:
    """Mean of -log softmax(S)_nn along rows and along columns, S = cosines of left and right / temperature.

    Row n of `left` belongs to row n of `right`, and the other B - 1 rows are what it is to be told from, in
    both directions. In float32 at least.

    Raises:
        ValueError: if there are not as many of one as of the other, widths differ, or the temperature is not
            positive.

    Source:
        van den Oord et al. 2018, equation 4, for one direction; Radford et al. 2021, figure 3, for both.
    """
    if left.shape != right.shape:
        raise ValueError(f"each row has its partner: got {tuple(left.shape)} and {tuple(right.shape)}")
    if temperature <= 0:
        raise ValueError(f"a temperature is positive, got {temperature}")
    with as_given(left):
        scores = normalize(precise(left), dim=1) @ normalize(precise(right), dim=1).mT / temperature
    own = torch.arange(len(scores), device=scores.device)
    return (cross_entropy(scores, own) + cross_entropy(scores.mT, own)) / 2
