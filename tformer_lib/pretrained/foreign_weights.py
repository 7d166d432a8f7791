"""Tensors from files, and from there into a model: each one used, each parameter filled, each shape compared.

Only safetensors files are read. A `.bin` file is a pickle, and to unpickle a file is to run whatever code
its author put there.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from tformer_lib.comparison import check_fits, kinds, misfits
from tformer_lib.files import DAMAGED, parse_json
from tformer_lib.pretrained.settings import Settings

Model = TypeVar("Model", bound=nn.Module)

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"


def as_is(tensor: Tensor) -> tuple[Tensor]:
    """The tensor, unchanged."""
    return (tensor,)


@dataclass(frozen=True)
class Source:
    """A tensor of a checkpoint, and what becomes of it.

    Args:
        name: the checkpoint's.
        shape: the one it must have there.
        targets: the names of the parameters made from it.
        convert: makes them, in this order.
    """

    name: str
    shape: tuple[int, ...]
    targets: tuple[str, ...]
    convert: Callable[[Tensor], Iterable[Tensor]] = as_is


def renamed(
    model: nn.Module,
    names: Mapping[str, str],
    convert: Mapping[str, Callable[[Tensor], Iterable[Tensor]]] | None = None,
) -> list[Source]:
    """Weights and biases that are the model's own under other names, in its shapes.

    Args:
        model: whose parameters they become.
        names: of the layers, theirs and ours; of each, what there is of a weight (or table) and a bias.
        convert: what a layer's tensors go through, by the last part of its name there.
    """
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    return [
        Source(
            f"{theirs}.{kind}",
            shapes[f"{ours}.{own}"],
            (f"{ours}.{own}",),
            (convert or {}).get(theirs.rpartition(".")[2], as_is),
        )
        for theirs, ours in names.items()
        for kind, own in (("weight", "weight"), ("bias", "bias"), ("weight", "table"))
        if f"{ours}.{own}" in shapes
    ]


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder by name, from `model.safetensors` or from the shards that an index lists.

    Raises:
        FileNotFoundError: if there is no safetensors file, or a shard is missing.
        ValueError: if a file is damaged, or a tensor is not in the shard that the index names.
    """
    if (folder / SINGLE).exists():
        return _read(folder / SINGLE)
    if not (folder / INDEX).exists():
        pickles = sorted(path.name for pattern in ("*.bin", "*.pt", "*.pth") for path in folder.glob(pattern))
        raise FileNotFoundError(
            f"{folder} has neither {SINGLE} nor {INDEX}"
            + (
                f". {', '.join(pickles)} would have to be unpickled, which runs any code that its author put "
                "there, and is not read here: ask for the checkpoint as safetensors"
                if pickles
                else ""
            )
        )
    places = _weight_map(folder / INDEX)
    tensors: dict[str, Tensor] = {}
    for shard in sorted(set(places.values())):
        if Path(shard).name != shard or shard in ("", ".", "..") or "\0" in shard:
            raise ValueError(f"{folder / INDEX} points out of its folder: {shard!r}")
        if not _is_file(folder / shard):
            raise FileNotFoundError(f"{folder / INDEX} names {shard}, which is missing")
        held = _read(folder / shard)
        named = {name for name, place in places.items() if place == shard}
        if held.keys() != named:
            differ = ", ".join(sorted(held.keys() ^ named))
            raise ValueError(f"{folder / INDEX} and {shard} disagree about which tensors it holds: {differ}")
        tensors |= held
    return tensors


def _read(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except DAMAGED as error:
        raise ValueError(f"{path} is no safetensors file, or not a whole one: {error}") from error


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long, or is none on this system
        return False


def _weight_map(path: Path) -> dict[str, str]:
    """The index: which file holds which tensor."""
    try:
        places = parse_json(path.read_text("utf8"))["weight_map"]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise ValueError(f"{path} is no index of shards: {error}") from error
    if not isinstance(places, dict) or not all(isinstance(place, str) for place in places.values()):
        raise ValueError(f"{path} is no index of shards: its weight_map must name a file for each tensor")
    return places


def built(settings: Settings, build: Callable[[], Model]) -> Model:
    """The model that `build` makes on the meta device, where nothing takes memory.

    Raises:
        ValueError: if it cannot be built; the message begins with the settings' place.
    """
    try:
        with torch.device("meta"):
            return build()
    except ValueError as error:
        if str(error).startswith(settings.where):
            raise
        raise ValueError(f"{settings.where}: {error}") from error
    except (RuntimeError, TypeError, OverflowError) as error:  # PyTorch's, of sizes beyond its own numbers
        first = str(error).strip().split("\n")[0]
        raise ValueError(f"{settings.where}: no model can be built of these sizes: {first}") from error


def fill(
    model: nn.Module,
    tensors: dict[str, Tensor],
    sources: Iterable[Source],
    *,
    where: str,
    dtype: torch.dtype = torch.float32,
    copies: dict[str, str] | None = None,
    ignored: str = r"(?!)",
) -> None:
    """Give a model on the meta device the tensors of a checkpoint as its parameters, in memory of their own.

    All is compared first: either the whole model is filled, or nothing of it.

    Args:
        model: on the meta device, so that nothing was initialised in order to be overwritten.
        tensors: what the checkpoint holds.
        sources: what it must hold.
        where: what errors call the checkpoint.
        dtype: the parameters'; tensors of another one are converted.
        copies: tensors that may be there again under another name: the copy's name and the original's.
        ignored: a pattern that matches the whole name of a tensor that carries nothing, such as a mask.

    Raises:
        ValueError: if a tensor is missing, left over, misshapen, not of floating-point numbers, not finite,
            or differs from what it should be a copy of, or if a parameter is not filled; the message names
            all of these.
    """
    sources, copies = list(sources), {} if copies is None else copies
    expected = {source.name: source for source in sources}
    targets = [target for source in expected.values() for target in source.targets]
    wanted = model.state_dict()
    if len(set(targets)) < len(targets) or len(expected) < len(sources):
        raise AssertionError("a tensor is read twice, or a parameter is filled twice")
    unread = tensors.keys() - expected.keys()
    spare = {name for name in unread if name in copies or re.fullmatch(ignored, name)}
    used = {name: tensor for name, tensor in tensors.items() if name not in spare}
    wrong = misfits({source.name: (source.shape, None) for source in sources}, kinds(used))
    wrong += [
        f"{name} should equal {copies[name]}, to which it is tied, and does not"
        for name in sorted(spare & copies.keys())
        if copies[name] in tensors and not torch.equal(tensors[name], tensors[copies[name]])
    ]
    wrong += [
        f"{name} holds NaN, or numbers that are infinite as {dtype}"
        for name in sorted(used.keys() & expected.keys())
        if used[name].is_floating_point() and not used[name].to(dtype).isfinite().all()
    ]
    wrong += [f"nothing fills {name}" for name in sorted(wanted.keys() - set(targets))]
    check_fits(where, wrong, "does not fit the model that it describes")
    state = {}
    for name, source in expected.items():
        for target, value in zip(source.targets, source.convert(tensors[name]), strict=True):
            # the order in memory stays as well: GPT-2's, input after input, is the quicker for one token
            state[target] = value.to(dtype, memory_format=torch.preserve_format, copy=True)
            if value.shape != wanted[target].shape:
                raise AssertionError(f"{name} became {tuple(value.shape)} for {target}")
    model.load_state_dict(state, assign=True)
