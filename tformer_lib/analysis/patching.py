"""A grid of patches: one activation at one place at a time, and what it does to the answer."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tformer_lib.analysis.activations import patch, record
from tformer_lib.core.modes import evaluation

Metric = Callable[[Any], Tensor]  # from what the model returns to one number for each example, (B,)


@torch.no_grad()
def patching_grid(
    model: nn.Module, base: tuple[Any, ...], donor: tuple[Any, ...], names: Sequence[str], metric: Metric
) -> Float[Tensor, "L N B"]:
    """metric(model(base)) with the activation of one name at one place taken from the run on `donor`.

    With the corrupted run as base and the clean run as donor this is denoising: does this place suffice? The
    other way about it is noising: is it needed? Both runs need one shape, token for token.

    Args:
        model: called as `model(*base)`; dropout is off.
        base: the inputs of the run that is patched.
        donor: those of the run that activations are taken from.
        names: of activations (B, N, D), as `record` takes them; all with the same N.
        metric: one number for each example.

    Returns:
        A row for each name, a column for each place, and the examples behind.

    Raises:
        ValueError: if no module has such a name, there is none, or the activations have no places or not
            equally many; if the metric does not give a number for each example.

    Source:
        Vig et al. 2020; Meng et al. 2022; Heimersheim and Nanda 2024 for the two directions.
    """
    names = list(names)
    with evaluation(model):
        with record(model, names) as given:
            model(*donor)
        shapes = {tuple(given[name].shape[:-1]) for name in names}
        if len(shapes) != 1 or len(next(iter(shapes))) != 2:
            raise ValueError(f"a grid needs activations (B, N, D) of one B and N, got {sorted(shapes)}")
        B, N = next(iter(shapes))
        grid = []
        for name in names:
            for place in range(N):
                with patch(model, {name: _taking(given[name], place)}):
                    found = metric(model(*base))
                if found.shape != (B,):
                    raise ValueError(f"the metric must give one number for each of {B} examples")
                grid.append(found)
    return torch.stack(grid).view(len(names), N, B)


def _taking(donor: Tensor, place: int) -> Callable[[Tensor], Tensor]:
    """A function that puts the donor's vector at one place of a copy."""

    def put(activation: Tensor) -> Tensor:
        if activation.shape != donor.shape:
            raise ValueError(
                f"both runs need one shape, got {tuple(activation.shape)} and {tuple(donor.shape)}"
            )
        patched = activation.clone()
        patched[:, place] = donor[:, place]
        return patched

    return put


def patching_effect(
    patched: Float[Tensor, "*grid B"], base: Float[Tensor, " B"], donor: Float[Tensor, " B"]
) -> Float[Tensor, "*grid B"]:
    """(patched - base) / (donor - base): 0 if the patch changes nothing, 1 if it carries all over.

    It may lie outside [0, 1]. Base and donor are the metric of both runs without a patch.

    Raises:
        ValueError: if both runs have the same metric in an example: then there is nothing to carry over.
    """
    if (base == donor).any():
        raise ValueError("both runs give the same number in an example: no effect can be measured there")
    return (patched - base) / (donor - base)
