"""Checkpoints: model, optimisers, history and random generators in one file, replaced in one step."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn

from tformer_lib.comparison import check_fits, clashes, differences, kinds, misfits, plain_name
from tformer_lib.core.modes import plain
from tformer_lib.files import DAMAGED, parse_json, replace_file
from tformer_lib.numbers import brief, real, whole
from tformer_lib.training.history import History
from tformer_lib.training.seeds import check_random_state, random_state

FILE = "checkpoint.safetensors"
FORMAT = 1
SERIES = ("loss", "grad_norm", "lr")
FIELDS = {"step": int, "settings": dict, "notes": dict, "optimizers": list}  # of the header


@dataclass
class Checkpoint:
    """What a checkpoint holds besides the model's and the optimisers' state."""

    step: int = 0  # the number of steps that are done
    history: History = field(default_factory=History)
    settings: dict[str, Any] = field(default_factory=dict)  # of the run, as JSON can hold them
    notes: dict[str, Any] = field(default_factory=dict)  # likewise
    random: dict[str, Tensor] = field(default_factory=dict)  # for `seeds.set_random_state`
    pass_random: dict[str, Tensor] = field(default_factory=dict)  # when the pass over the batches began


def save_checkpoint(
    folder: str | Path,
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer] = (),
    checkpoint: Checkpoint | None = None,
) -> Path:
    """Write `folder`/checkpoint.safetensors: tensors as safetensors, all else as JSON in its header.

    The file is written beside the old one, forced to disk, and put in its place by one `os.replace`:
    whenever the process is killed, the folder holds the old checkpoint or the new one, whole. Nothing is
    pickled, so that to load a stranger's checkpoint runs no code of theirs. A checksum over all of it tells
    a damaged file from a whole one. The states of the random generators are those of this moment unless the
    checkpoint brings its own.

    A model that `torch.compile`, DataParallel or DistributedDataParallel holds is saved as it would be
    without, and can be loaded so.

    Returns:
        The file's path.

    Raises:
        ValueError: if an optimiser moves parameters that are not the model's.
    """
    checkpoint, model = Checkpoint() if checkpoint is None else checkpoint, plain(model)
    names = _names(model)
    groups = [_groups(optimizer, names) for optimizer in optimizers]
    tensors = {f"model/{plain_name(name)}": value for name, value in model.state_dict().items()}
    for number, optimizer in enumerate(optimizers):
        tensors |= _optimizer_tensors(number, optimizer, names)
    for name in SERIES:
        tensors[f"history/{name}"] = torch.tensor(getattr(checkpoint.history, name), dtype=torch.float64)
    tensors |= {f"random/{k}": v for k, v in (checkpoint.random or random_state()).items()}
    tensors |= {f"pass_random/{k}": v for k, v in checkpoint.pass_random.items()}
    header = {
        "format": FORMAT,
        "step": whole("step", checkpoint.step, 0),
        "seconds": real("seconds", checkpoint.history.seconds, "[0, inf)"),
        "settings": checkpoint.settings,
        "notes": checkpoint.notes,
        "optimizers": groups,
    }
    # safetensors refuses tensors that share memory, as tied weights do: each is written out
    copies = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    text = json.dumps(header)
    path = Path(folder) / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, save(copies, {"checkpoint": text, "sha256": _checksum(text, copies)}))
    return path


def has_checkpoint(folder: str | Path) -> bool:
    """Whether there is a checkpoint in the folder."""
    return (Path(folder) / FILE).exists()


def load_checkpoint(
    folder: str | Path,
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer] = (),
    *,
    settings: dict[str, Any] | None = None,
) -> Checkpoint:
    """Put the state that `save_checkpoint` wrote into the model and the optimisers, where they are.

    All is compared before anything is changed: a load that is refused leaves model and optimisers as they
    were. The global random generators stay as they are in any case: their states are in what is returned.

    Args:
        folder: the checkpoint's.
        model: of the same make as the one saved; names, shapes and dtypes must agree, and what is one tensor
            here (tied weights) must be so there.
        optimizers: likewise, in the same order; none, to load the model alone.
        settings: those that the run must have had; they are not compared if None.

    Raises:
        FileNotFoundError: if there is no checkpoint.
        ValueError: if the file is no checkpoint, or damaged, or anything differs; the message says what.
    """
    checkpoint, put = open_checkpoint(folder, model, optimizers, settings=settings)
    put()
    return checkpoint


def open_checkpoint(
    folder: str | Path,
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer] = (),
    *,
    settings: dict[str, Any] | None = None,
) -> tuple[Checkpoint, Callable[[], None]]:
    """`load_checkpoint` in two parts: what is returned, all compared, and a function that changes the model.

    Raises:
        FileNotFoundError: as `load_checkpoint`.
        ValueError: likewise.
    """
    path, model = Path(folder) / FILE, plain(model)
    header, tensors = _read(path)
    if settings is not None:
        wrong = differences(*json.loads(json.dumps([header["settings"], settings])))
        check_fits(path, wrong, "is of another run; settings")
    wanted = {plain_name(name): value for name, value in model.state_dict().items()}
    weights = {plain_name(name): value for name, value in _under("model/", tensors).items()}
    check_fits(path, misfits(kinds(wanted), kinds(weights)) or clashes(wanted, weights))
    if optimizers:
        groups = [_groups(optimizer, _names(model)) for optimizer in optimizers]
        saved = header["optimizers"]
        if len(saved) != len(groups):
            raise ValueError(f"{path} holds {len(saved)} optimizers, and there are {len(groups)}")
        for number, (then, now) in enumerate(zip(saved, json.loads(json.dumps(groups)), strict=True)):
            if not isinstance(then, dict):
                raise ValueError(f"{path} is no checkpoint: an optimizer is {brief(then)}")
            check_fits(path, differences(then, now), "is of another run; optimizer")
            _compare_state(path, number, optimizers[number], _names(model), tensors)
    checkpoint = Checkpoint(
        step=header["step"],
        history=_history(path, header, tensors),
        settings=header["settings"],
        notes=header["notes"],
        random=_random(path, "random/", tensors),
        pass_random=_random(path, "pass_random/", tensors),
    )

    def put() -> None:
        model.load_state_dict({name: weights[plain_name(name)] for name in model.state_dict()})
        for number, optimizer in enumerate(optimizers):
            _load_optimizer(number, optimizer, _names(model), tensors)

    return checkpoint, put


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header and the tensors of a file that is whole."""
    if not path.exists():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        text = metadata["checkpoint"]
        header = parse_json(text)
    except DAMAGED as error:
        raise ValueError(f"{path} is no checkpoint, or not a whole one: {error}") from error
    if not isinstance(header, dict) or type(header.get("format")) is not int:
        raise ValueError(f"{path} is no checkpoint: it does not say of which format it is")
    if header["format"] != FORMAT:
        raise ValueError(f"{path} is of format {brief(header['format'])}, and only {FORMAT} is known here")
    if metadata.get("sha256") != _checksum(text, tensors):
        raise ValueError(f"{path} is damaged: its checksum is not that of its content")
    for name, kind in FIELDS.items():
        if type(header.get(name)) is not kind:
            raise ValueError(f"{path} is no checkpoint: its {name} is {brief(header.get(name))}")
    try:
        whole("step", header["step"], 0)
        real("seconds", header.get("seconds"), "[0, inf)")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is no checkpoint: {error}") from error
    return header, tensors


def _checksum(text: str, tensors: dict[str, Tensor]) -> str:
    """SHA-256 of the header's text and of the tensors by name, with their shapes, dtypes and bytes."""
    found = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        value = tensors[name]
        found.update(f"\n{name} {tuple(value.shape)} {value.dtype}\n".encode())
        found.update(value.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def _history(path: Path, header: dict[str, Any], tensors: dict[str, Tensor]) -> History:
    """The history: three series, each of one length."""
    series = {name: tensors.get(f"history/{name}") for name in SERIES}
    lengths = set()
    for name, values in series.items():
        if values is None or values.ndim != 1 or values.dtype != torch.float64:
            raise ValueError(f"{path} is no checkpoint: it has no {name} of each step")
        lengths.add(len(values))
    if len(lengths) != 1:
        raise ValueError(f"{path} is no checkpoint: its history has series of lengths {sorted(lengths)}")
    lists = {name: values.tolist() for name, values in series.items() if values is not None}
    return History(**lists, seconds=header["seconds"])


def _random(path: Path, prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The states of the generators under this name, if there are any."""
    state = _under(prefix, tensors)
    try:
        if state:
            check_random_state(state)
    except ValueError as error:
        raise ValueError(f"{path} is no checkpoint: {error}") from error
    return state


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _names(model: nn.Module) -> dict[int, str]:
    return {id(p): plain_name(name) for name, p in model.named_parameters()}


def _groups(optimizer: torch.optim.Optimizer, names: dict[int, str]) -> dict[str, Any]:
    """What defines an optimiser: its kind, and each group's options and parameters; not the moving lr."""
    if any(id(p) not in names for group in optimizer.param_groups for p in group["params"]):
        raise ValueError(f"{type(optimizer).__name__} moves parameters that are not the model's")
    groups = [
        {k: v for k, v in group.items() if k not in ("params", "lr")}
        | {"params": [names[id(p)] for p in group["params"]]}
        for group in optimizer.param_groups
    ]
    return {"kind": type(optimizer).__name__, "groups": groups}


def _optimizer_tensors(
    number: int, optimizer: torch.optim.Optimizer, names: dict[int, str]
) -> dict[str, Tensor]:
    """An optimiser's state, as optimizer/<number>/<parameter>/<entry>."""
    return {
        f"optimizer/{number}/{names[id(p)]}/{entry}": value
        for p, state in optimizer.state.items()
        for entry, value in state.items()
        if isinstance(value, Tensor)  # SGD without momentum says None
    }


def _load_optimizer(
    number: int, optimizer: torch.optim.Optimizer, names: dict[int, str], tensors: dict[str, Tensor]
) -> None:
    order = [p for group in optimizer.param_groups for p in group["params"]]
    state = {i: _under(f"optimizer/{number}/{names[id(p)]}/", tensors) for i, p in enumerate(order)}
    filled = {i: entries for i, entries in state.items() if entries}
    optimizer.load_state_dict({"state": filled, "param_groups": optimizer.state_dict()["param_groups"]})


def _compare_state(
    path: Path,
    number: int,
    optimizer: torch.optim.Optimizer,
    names: dict[int, str],
    tensors: dict[str, Tensor],
) -> None:
    """Each parameter that an optimiser has moved has all that the others have, in its own shape."""
    start, wrong = f"optimizer/{number}/", []
    shapes = {names[id(p)]: p.shape for group in optimizer.param_groups for p in group["params"]}
    entries: dict[str, set[str]] = {}
    for name, value in _under(start, tensors).items():
        parameter, _, entry = name.rpartition("/")
        if parameter not in shapes:
            wrong.append(f"left over {start}{name}")
        elif value.shape not in (shapes[parameter], torch.Size([])) or not value.is_floating_point():
            wrong.append(f"{start}{name} is {tuple(value.shape)} {value.dtype}")
        entries.setdefault(parameter, set()).add(entry)
    every = set().union(*entries.values())
    wrong += [f"missing {start}{p}/{e}" for p, there in entries.items() for e in sorted(every - there)]
    check_fits(path, wrong, "does not fit this optimizer")
