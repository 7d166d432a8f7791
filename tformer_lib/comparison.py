"""What a checkpoint holds against what a model needs: every loader asks here before it changes anything."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from tformer_lib.numbers import brief

Kind = tuple[tuple[int, ...], torch.dtype | None]  # shape and dtype, or None: any float


def plain_name(name: str) -> str:
    """The name of a tensor in a checkpoint: without what `torch.compile` puts in where it compiled a part."""
    return name.replace("_orig_mod.", "")


def kinds(state: Mapping[str, Tensor]) -> dict[str, Kind]:
    """Shape and dtype of each tensor, in the order of their names."""
    return {name: (tuple(state[name].shape), state[name].dtype) for name in sorted(state)}


def misfits(wanted: Mapping[str, Kind], there: Mapping[str, Kind]) -> list[str]:
    """What is missing, left over, or of another shape or dtype there; empty if all fits."""
    wrong = [f"missing {name}" for name in wanted if name not in there]
    wrong += [f"left over {name}" for name in sorted(there.keys() - wanted.keys())]
    for name in (name for name in wanted if name in there):
        (shape, dtype), (its_shape, its_dtype) = wanted[name], there[name]
        if dtype is None and shape != its_shape:
            wrong.append(f"{name} has shape {its_shape}, not {shape}")
        elif dtype is None and its_dtype is not None and not its_dtype.is_floating_point:
            wrong.append(f"{name} holds {its_dtype}, not floating-point numbers")
        elif dtype is not None and wanted[name] != there[name]:
            wrong.append(f"{name} is {its_shape} {its_dtype} there and {shape} {dtype} here")
    return wrong


def differences(then: Mapping[str, Any], now: Mapping[str, Any], by: str = "") -> list[str]:
    """Which entries of two dictionaries differ: "x was 1 and is 2", or "x was moved by A and is by B"."""
    was, is_, show = (f"was {by}", "is by", str) if by else ("was", "is", brief)
    return [
        f"{key} {was} {show(then.get(key))} and {is_} {show(now.get(key))}"
        for key in sorted(then.keys() | now.keys())
        if then.get(key) != now.get(key)
    ]


def check_fits(where: Any, wrong: Collection[str], what: str = "does not fit this model") -> None:
    """Raise a ValueError that says all that is wrong with the checkpoint in this place, if anything is."""
    if wrong:
        raise ValueError(f"{where} {what}: " + "; ".join(wrong))


def sharing(state: Mapping[str, Tensor]) -> list[list[str]]:
    """The names whose tensors lie in one memory, as tied weights do, group by group."""
    groups: defaultdict[Any, list[str]] = defaultdict(list)
    for name, value in state.items():
        local = _local(value)
        if not local.is_meta and local.numel():
            groups[local.untyped_storage().data_ptr(), local.dtype].append(name)
    return [names for names in groups.values() if len(names) > 1]


def clashes(state: Mapping[str, Tensor], there: Mapping[str, Tensor]) -> list[str]:
    """Which tensors of a checkpoint differ although the model has one memory for them.

    They are written into a copy of that memory, one after the other; what then reads otherwise than it was
    written has been overwritten.
    """
    wrong = []
    for names in sharing(state):
        here = {name: _local(state[name]) for name in names}
        first = here[names[0]]
        memory = first.new_empty(first.untyped_storage().nbytes() // first.element_size())
        places = {
            name: memory.as_strided(value.size(), value.stride(), value.storage_offset())
            for name, value in here.items()
        }
        for name, place in places.items():
            place.copy_(_local(there[name]))
        if any(not _same(place, _local(there[name])) for name, place in places.items()):
            wrong.append(f"{' and '.join(names)} are one tensor in this model, and there they differ")
    return wrong


def _same(a: Tensor, b: Tensor) -> bool:
    b = b.to(a.device)
    return bool(((a == b) | (a.isnan() & b.isnan())).all())


def _local(tensor: Tensor) -> Tensor:
    """This process's part of a tensor that several share out among them."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor
