"""Checkpoints that many processes write together and any number of processes reads.

A checkpoint is a folder of its own, `step-00000200-1f0c9a2b`, beside which `latest.json` names the one that
counts::

    latest.json                    written last, by one os.replace: the folder, and the checksum of its index
    step-00000200-1f0c9a2b/
        index.json                 step, settings, history, state of the batches, checksums of the files below
        .metadata                  which part of which tensor lies in which file
        __0_0.distcp, __1_0.distcp what process 0 wrote, what process 1 wrote

The tensors are PyTorch's own format, `torch.distributed.checkpoint`.
"""

import errno
import io
import json
import pickle
import re
import shutil
import uuid
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)

from tformer_lib.comparison import Kind, check_fits, clashes, differences, kinds, misfits, plain_name, sharing
from tformer_lib.core.modes import plain
from tformer_lib.files import checksum_of, parse_json, replace_file
from tformer_lib.numbers import brief, whole
from tformer_lib.scale.together import each, gather, processes, raise_together, rank
from tformer_lib.training.checkpoints import SERIES
from tformer_lib.training.history import History
from tformer_lib.training.seeds import check_random_state, random_state

LATEST, INDEX, TABLE = "latest.json", "index.json", ".metadata"
KIND, FORMAT = "distributed checkpoint", 1
FOLDER = re.compile(r"step-\d{8,}-[0-9a-f]{8}")
TABLE_OF_PARTS = ("torch.distributed.checkpoint.metadata", "torch.distributed.checkpoint.filesystem")
ALLOWED = {("torch", "Size"), ("torch.serialization", "_get_layout")}  # and dtypes, and those classes


@dataclass
class Saved:
    """What a checkpoint of many processes holds besides the model's and the optimisers' state."""

    step: int = 0  # the number of steps that are done
    history: History = field(default_factory=History)
    settings: dict[str, Any] = field(default_factory=dict)  # of the run, as JSON can hold them
    batches: dict[str, Any] = field(default_factory=dict)  # where the global batches stand, likewise
    processes: int = 1  # how many wrote it
    random: list[dict[str, Tensor]] = field(default_factory=list)  # the generators of each of them


def save_distributed(
    folder: str | Path, model: nn.Module, optimizers: Sequence[torch.optim.Optimizer], saved: Saved
) -> Path:
    """Write a checkpoint, each process its own part; `folder`/latest.json then names it.

    All processes of the group call this together. Each writes into files of its own, in a folder that is
    new; process 0 then writes the index with the checksums of all files, and at last puts `latest.json` in
    its place by one `os.replace`. Whenever processes are killed, the latest checkpoint is the old one or the
    new one, whole. What lies in other folders of this kind is deleted after that. Of `saved` the random
    states are not read: those of this moment are written, for each process its own.

    Returns:
        The new checkpoint's folder.

    Raises:
        TypeError: if a setting is none that JSON can hold.
        OSError: if a file cannot be written: the error names it, or the new folder, which is then taken away;
            the checkpoint before it stays the latest. What fails in one process is an OSError or a
            ValueError in all others, so that none waits for it.
    """
    folder = Path(folder)
    name = gather(f"step-{saved.step:08d}-{uuid.uuid4().hex[:8]}")[0]
    place = folder / name
    weights, moments = get_state_dict(model, list(optimizers))
    states = {str(number): state for number, state in enumerate(gather(random_state()))}
    tensors = {"model": weights, "optim": {"state": moments.get("state", {})}, "random": states}
    try:
        _write(folder, place, model, optimizers, tensors, saved)
    except (OSError, ValueError):
        pointer = folder / LATEST
        if rank() == 0 and not (pointer.exists() and name in pointer.read_text("utf8")):
            shutil.rmtree(place, ignore_errors=True)  # half of it is of no use, and takes room
        raise
    return place


def _write(
    folder: Path,
    place: Path,
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer],
    tensors: dict[str, Any],
    saved: Saved,
) -> None:
    """The files of a checkpoint in its folder, and then the pointer to it."""
    name = place.name
    each(lambda: place.mkdir(parents=True, exist_ok=True))
    with warnings.catch_warnings(), _plain_errors(place):
        warnings.filterwarnings("ignore", "torch.distributed is disabled")  # one process says so each time
        dcp.save(tensors, storage_writer=dcp.FileSystemWriter(place), no_dist=processes() == 1)
    mine = [*place.glob(f"__{rank()}_*"), *([place / TABLE] if rank() == 0 else [])]
    sums = gather(each(lambda: {path.name: checksum_of(path) for path in mine}))

    def finish() -> None:
        if rank():
            return
        index = {
            "kind": KIND,
            "format": FORMAT,
            "step": whole("step", saved.step, 0),
            "processes": processes(),
            "settings": saved.settings,
            "batches": saved.batches,
            "optimizers": _movers(model, optimizers),
            "history": {series: getattr(saved.history, series) for series in (*SERIES, "seconds")},
            "files": {name: found for part in sums for name, found in part.items()},
        }
        replace_file(place / INDEX, json.dumps(index).encode())
        pointer = {"kind": KIND, "folder": name, "sha256": checksum_of(place / INDEX)}
        replace_file(folder / LATEST, json.dumps(pointer).encode())
        for other in folder.iterdir():
            if other.name != name and FOLDER.fullmatch(other.name) and other.is_dir():
                shutil.rmtree(other, ignore_errors=True)

    each(finish)  # nobody goes on, or returns, before the new one counts


@contextmanager
def _plain_errors(place: Path) -> Iterator[None]:
    """PyTorch gathers what failed in which process in an exception that is no `Exception`; here it is one.

    On a full disk the first of them is one of its own file format, with the system's behind it.
    """
    try:
        yield
    except CheckpointException as error:
        faults: list[BaseException] = [fault for fault, _ in error.failures.values()]
        chain = list(faults)
        for fault in chain:
            chain += [each for each in (fault.__cause__, fault.__context__) if each is not None]
        known = next((each for each in chain if isinstance(each, OSError) and each.errno), None)
        if known is not None:
            raise OSError(known.errno, known.strerror, known.filename or str(place)) from error
        if any(isinstance(each, OSError | RuntimeError) for each in faults):
            raise OSError(errno.EIO, str(faults[0]).partition("\n")[0], str(place)) from error
        raise (faults[0] if faults else RuntimeError(str(error))) from error


def steps_done(folder: str | Path) -> int:
    """The number of steps that the latest checkpoint holds, 0 if there is none; this process alone looks.

    Raises:
        ValueError: if it is none, or damaged.
    """
    folder = Path(folder)
    return _read_index(folder)[1]["step"] if (folder / LATEST).exists() else 0


def has_distributed(folder: str | Path) -> bool:
    """Whether there is a checkpoint in the folder; all processes hear what process 0 sees."""
    return gather((Path(folder) / LATEST).exists())[0]


def load_distributed(
    folder: str | Path,
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer] = (),
    *,
    settings: dict[str, Any] | None = None,
) -> Saved:
    """Put what `save_distributed` wrote into model and optimisers, whatever number of processes wrote it.

    How the tensors are divided over processes now need not be how they were then: whole, sharded by rows, or
    for another number of processes. All processes call this together. Checksums, names, shapes, dtypes and
    settings are compared before anything is changed; if one process finds a fault, all raise the same error.

    PyTorch pickles the table of its parts. It is read only if it names no classes but those of such tables.

    Args:
        folder: the one handed to `save_distributed`.
        model: of the same make as the one saved.
        optimizers: likewise; none, to load the model alone.
        settings: those that the run must have had; they are not compared if None.

    Raises:
        FileNotFoundError: if there is no checkpoint.
        ValueError: if it is none, or damaged, or anything differs; the message says what.
    """
    saved, put = open_distributed(folder, model, optimizers, settings=settings)
    put()
    return saved


def open_distributed(
    folder: str | Path,
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer] = (),
    *,
    settings: dict[str, Any] | None = None,
    free: Collection[str] = (),
) -> tuple[Saved, Callable[[], None]]:
    """`load_distributed` in two parts: what is returned, all compared, and a function that changes the model.

    Settings of the names in `free` may differ.

    Raises:
        FileNotFoundError: as `load_distributed`.
        ValueError: likewise.
    """
    folder = Path(folder)
    place, fault = folder, None
    index: dict[str, Any] = {}
    random: dict[str, dict[str, Tensor]] = {}
    shared: dict[str, Tensor] = {}
    try:
        place, index = _read_index(folder)
        _check_files(place, index["files"])
        parts = _read_table(place)
        if settings is not None:
            then, now = json.loads(json.dumps([index["settings"], settings]))
            then, now = ({k: s[k] for k in s if k not in free} for s in (then, now))
            check_fits(place, differences(then, now), "is of another run")
        there = {name.removeprefix("model."): part for name, part in parts.items() if name[:6] == "model."}
        check_fits(place, misfits(kinds(_weights(model)), there))
        shared = _weights_in_one_memory(model)
        if optimizers:
            _compare_moments(place, parts, index["optimizers"], model, optimizers)
        random = _room_for_random(place, parts, index["processes"])
    except (OSError, ValueError) as error:
        fault = error
    raise_together(fault)
    tied = {name: torch.empty_like(value) for name, value in shared.items()}
    _read(place, {"random": random, "model": tied})
    try:
        check_fits(place, clashes(shared, tied))
        for state in random.values():
            _check_random(place, state)
    except ValueError as error:
        fault = error
    raise_together(fault)
    saved = Saved(
        step=index["step"],
        history=History(**index["history"]),
        settings=index["settings"],
        batches=index["batches"],
        processes=index["processes"],
        random=[random[str(number)] for number in range(index["processes"])],
    )

    def put() -> None:
        if not optimizers:
            weights = get_model_state_dict(model)
            _read(place, {"model": weights})
            set_model_state_dict(model, weights)
            return
        weights, moments = get_state_dict(model, list(optimizers))
        _read(place, {"model": weights, "optim": {"state": moments["state"]}})
        set_state_dict(model, list(optimizers), model_state_dict=weights, optim_state_dict=moments)

    return saved, put


def _read(place: Path, tensors: dict[str, Any]) -> None:
    """Fill the tensors with what the checkpoint holds of them."""
    with warnings.catch_warnings(), _plain_errors(place):
        warnings.filterwarnings("ignore", "torch.distributed is disabled")  # one process says so each time
        dcp.load(tensors, storage_reader=dcp.FileSystemReader(place), no_dist=processes() == 1)


def _read_index(folder: Path) -> tuple[Path, dict[str, Any]]:
    """The latest checkpoint's folder and its index, which is the one that `latest.json` means."""
    path = folder / LATEST
    if not path.exists():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    pointer = _json(path, {"folder": str, "sha256": str})
    if not FOLDER.fullmatch(pointer["folder"]):
        raise ValueError(f"{path} is no checkpoint: it names the folder {brief(pointer['folder'])}")
    place = folder / pointer["folder"]
    if not (place / INDEX).is_file():
        raise ValueError(f"{place} is no checkpoint, or not a whole one: {INDEX} is missing")
    if checksum_of(place / INDEX) != pointer["sha256"]:
        raise ValueError(f"{place / INDEX} is damaged: its checksum is not the one in {LATEST}")
    kinds: dict[str, type] = {"format": int, "step": int, "processes": int}
    kinds |= dict.fromkeys(("settings", "batches", "optimizers", "history", "files"), dict)
    index = _json(place / INDEX, kinds)
    if index["format"] != FORMAT:
        raise ValueError(f"{place} is of format {brief(index['format'])}, and only {FORMAT} is known here")
    whole("step", index["step"], 0)
    whole("processes", index["processes"], 1)
    history = index["history"]
    if history.keys() != {*SERIES, "seconds"} or any(len(history[s]) != index["step"] for s in SERIES):
        raise ValueError(f"{place} is no checkpoint: its history is not one of {index['step']} steps")
    return place, index


def _json(path: Path, kinds: dict[str, type]) -> dict[str, Any]:
    try:
        found = parse_json(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is no checkpoint, or not a whole one: {error}") from error
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise ValueError(f"{path} is no checkpoint: it does not say that it is one")
    for name, kind in kinds.items():
        if type(found.get(name)) is not kind:
            raise ValueError(f"{path} is no checkpoint: its {name} is {brief(found.get(name))}")
    return found


def _check_files(place: Path, files: dict[str, str]) -> None:
    """Each process compares its share of the files with their checksums."""
    if TABLE not in files or any(Path(name).name != name for name in files):
        raise ValueError(f"{place} is no checkpoint: its files are {brief(sorted(files))}")
    for name in sorted(files)[rank() :: processes()]:
        if not (place / name).is_file():
            raise ValueError(f"{place} is not a whole checkpoint: {name} is missing")
        if checksum_of(place / name) != files[name]:
            raise ValueError(f"{place / name} is damaged: its checksum is not the one in {INDEX}")


class _TableReader(pickle.Unpickler):
    """Builds the classes of a table of parts, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] in ("torch", "pathlib"):
            found = super().find_class(module, name)
            if isinstance(found, type) and (module in TABLE_OF_PARTS or issubclass(found, PurePath)):
                return found
            if isinstance(found, torch.dtype) or (module, name) in ALLOWED:
                return found
        raise pickle.UnpicklingError(f"it names {module}.{name}")


def _read_table(place: Path) -> dict[str, Kind]:
    """Shape and dtype of each tensor, by name."""
    try:
        table = _TableReader(io.BytesIO((place / TABLE).read_bytes())).load()
        return {
            name: (tuple(part.size), part.properties.dtype)
            for name, part in table.state_dict_metadata.items()
        }
    except (pickle.UnpicklingError, AttributeError, LookupError, EOFError, TypeError, ImportError) as error:
        raise ValueError(f"{place / TABLE} is no table of a checkpoint's parts: {error}") from error


def _compare_moments(
    place: Path,
    parts: dict[str, Kind],
    then: dict[str, str],
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer],
) -> None:
    """Each parameter is moved by an optimiser of the same kind, and what that remembers has its shape."""
    now, start = _movers(model, optimizers), "optim.state."
    wrong = differences(then, now, "moved by")
    shapes = {plain_name(name): tuple(value.shape) for name, value in plain(model).named_parameters()}
    for part, (shape, _) in parts.items():
        name = part.removeprefix(start).rpartition(".")[0]
        if part.startswith(start) and not wrong and (name not in now or shape not in ((), shapes[name])):
            wrong = [f"{part} has shape {shape}"]
    check_fits(place, wrong, "does not fit these optimizers")


def _movers(model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> dict[str, str]:
    """For each parameter that is trained the kind of its optimiser."""
    names = {id(p): plain_name(name) for name, p in plain(model).named_parameters()}
    return {
        names[id(p)]: type(optimizer).__name__
        for optimizer in optimizers
        for group in optimizer.param_groups
        for p in group["params"]
    }


def _weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: value for name, value in get_model_state_dict(model).items() if isinstance(value, Tensor)}


def _weights_in_one_memory(model: nn.Module) -> dict[str, Tensor]:
    """The tied weights."""
    weights = _weights(model)
    return {name: weights[name] for names in sharing(weights) for name in names}


def _room_for_random(place: Path, parts: dict[str, Kind], processes: int) -> dict[str, dict[str, Tensor]]:
    """Empty tensors for the states of the generators of each process that wrote."""
    room: dict[str, dict[str, Tensor]] = {str(number): {} for number in range(processes)}
    for name, (shape, dtype) in parts.items():
        if name.startswith("random."):
            _, number, generator = name.split(".", 2)
            if number not in room:
                raise ValueError(f"{place} is no checkpoint: it has a state of process {brief(number)}")
            room[number][generator] = torch.empty(shape, dtype=dtype)
    if not all(room.values()):
        raise ValueError(f"{place} lacks the states of the random generators")
    return room


def _check_random(place: Path, state: dict[str, Tensor]) -> None:
    try:
        check_random_state(state)
    except ValueError as error:
        raise ValueError(f"{place} is no checkpoint: {error}") from error
