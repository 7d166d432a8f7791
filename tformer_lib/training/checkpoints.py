"""Checkpoints: model, optimisers, history and random generators in one file, replaced in one step."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from tformer_lib.files import replace_file
from tformer_lib.training.history import History
from tformer_lib.training.seeds import random_state

FILE = "checkpoint.safetensors"
SERIES = ("loss", "grad_norm", "lr")


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
    pickled, so that to load a stranger's checkpoint runs no code of theirs. The states of the random
    generators are those of this moment unless the checkpoint brings its own.

    Returns:
        The file's path.

    Raises:
        ValueError: if an optimiser moves parameters that are not the model's.
    """
    checkpoint = Checkpoint() if checkpoint is None else checkpoint
    names = _names(model)
    groups = [_groups(optimizer, names) for optimizer in optimizers]
    tensors = {f"model/{name}": value for name, value in model.state_dict().items()}
    for number, optimizer in enumerate(optimizers):
        tensors |= _optimizer_tensors(number, optimizer, names)
    for name in SERIES:
        tensors[f"history/{name}"] = torch.tensor(getattr(checkpoint.history, name), dtype=torch.float64)
    tensors |= {f"random/{k}": v for k, v in (checkpoint.random or random_state()).items()}
    tensors |= {f"pass_random/{k}": v for k, v in checkpoint.pass_random.items()}
    header = {
        "format": 1,
        "step": checkpoint.step,
        "seconds": checkpoint.history.seconds,
        "settings": checkpoint.settings,
        "notes": checkpoint.notes,
        "optimizers": groups,
    }
    # safetensors refuses tensors that share memory, as tied weights do: each is written out
    copies = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    path = Path(folder) / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, save(copies, {"checkpoint": json.dumps(header)}))
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
    defaults: dict[str, Any] | None = None,
) -> Checkpoint:
    """Put the state that `save_checkpoint` wrote into the model and the optimisers, where they are.

    All is compared before anything is changed. The global random generators stay as they are: their
    states are in what is returned.

    Args:
        folder: the checkpoint's.
        model: of the same make as the one saved; names, shapes and dtypes must agree.
        optimizers: likewise, in the same order; none, to load the model alone.
        settings: those that the run must have had; they are not compared if None.
        defaults: what a run had by a setting of which its checkpoint says nothing.

    Raises:
        FileNotFoundError: if there is no checkpoint.
        ValueError: if the file is no checkpoint, or anything differs; the message says what.
    """
    path = Path(folder) / FILE
    header, tensors = _read(path)
    if settings is not None:
        then = (defaults or {}) | header["settings"]
        _compare(path, "settings", *json.loads(json.dumps([then, settings])))
    wanted = {f"model/{name}": value for name, value in model.state_dict().items()}
    _compare_tensors(path, wanted, {k: v for k, v in tensors.items() if k.startswith("model/")})
    if optimizers:
        groups = [_groups(optimizer, _names(model)) for optimizer in optimizers]
        saved = header["optimizers"]
        if len(saved) != len(groups):
            raise ValueError(f"{path} holds {len(saved)} optimizers, and there are {len(groups)}")
        for then, now in zip(saved, json.loads(json.dumps(groups)), strict=True):
            _compare(path, "optimizer", then, now)
    model.load_state_dict({name.removeprefix("model/"): tensors[name] for name in wanted})
    for number, optimizer in enumerate(optimizers):
        _load_optimizer(number, optimizer, _names(model), tensors)
    series = {name: tensors[f"history/{name}"].tolist() for name in SERIES}
    return Checkpoint(
        step=header["step"],
        history=History(**series, seconds=header["seconds"]),
        settings=header["settings"],
        notes=header["notes"],
        random=_under("random/", tensors),
        pass_random=_under("pass_random/", tensors),
    )


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if not path.exists():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    try:
        with safe_open(path, "pt") as file:
            header = json.loads((file.metadata() or {})["checkpoint"])
            return header, {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no checkpoint, or not a whole one: {error}") from error


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _names(model: nn.Module) -> dict[int, str]:
    return {id(p): name for name, p in model.named_parameters()}


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
    }


def _load_optimizer(
    number: int, optimizer: torch.optim.Optimizer, names: dict[int, str], tensors: dict[str, Tensor]
) -> None:
    order = [p for group in optimizer.param_groups for p in group["params"]]
    state = {i: _under(f"optimizer/{number}/{names[id(p)]}/", tensors) for i, p in enumerate(order)}
    filled = {i: entries for i, entries in state.items() if entries}
    optimizer.load_state_dict({"state": filled, "param_groups": optimizer.state_dict()["param_groups"]})


def _compare(path: Path, what: str, then: dict[str, Any], now: dict[str, Any]) -> None:
    differences = [
        f"{key} was {then.get(key)!r} and is {now.get(key)!r}"
        for key in sorted(then.keys() | now.keys())
        if then.get(key) != now.get(key)
    ]
    if differences:
        raise ValueError(f"{path} is of another run; {what}: " + "; ".join(differences))


def _compare_tensors(path: Path, wanted: dict[str, Tensor], there: dict[str, Tensor]) -> None:
    def kind(tensor: Tensor) -> str:
        return f"{tuple(tensor.shape)} {tensor.dtype}"

    wrong = [f"missing {name}" for name in sorted(wanted.keys() - there.keys())]
    wrong += [f"left over {name}" for name in sorted(there.keys() - wanted.keys())]
    wrong += [
        f"{name} is {kind(there[name])} there and {kind(wanted[name])} here"
        for name in sorted(wanted.keys() & there.keys())
        if kind(wanted[name]) != kind(there[name])
    ]
    if wrong:
        raise ValueError(f"{path} does not fit this model: " + "; ".join(wrong).replace("model/", ""))
