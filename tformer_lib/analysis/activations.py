"""Activations by name: read them while a model runs, put others in their place."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from tformer_lib.analysis.recording import plain_modules
from tformer_lib.core.modes import as_written
from tformer_lib.numbers import brief

Replacement = Any  # a tensor, or a function of the activation that returns one
Handler = Callable[[Any], Any]  # what it returns, if anything, takes the activation's place
INPUT = ".input"


@contextmanager
def record(model: nn.Module, names: Iterable[str]) -> Iterator[dict[str, Tensor]]:
    """Yields a dict from each name to that activation, detached; it fills while the model runs.

    A name is that of a module in `model.named_modules()`, for what the module returns: "transformer.blocks.0"
    is the stream behind the first block, "transformer.blocks.0.mlp" what its MLP adds. With ".input" behind
    it, it is the module's first argument: "transformer.blocks.0.self_attention.W_o.input" are the outputs of
    all heads side by side. A module that runs several times keeps its last activation. The hooks go when the
    block ends, also when it ends in an error; the dict stays. A compiled model runs as it was written
    meanwhile; names are the same for a model that is compiled, or wrapped by `DistributedDataParallel`.

    Example:
        >>> with record(model, ["transformer.blocks.0"]) as seen:
        ...     model(tokens)
        >>> seen["transformer.blocks.0"].shape   # (B, N, D)

    Raises:
        ValueError: if no module has such a name, or there is no name.
        TypeError: while the model runs, if an activation is not a tensor.
    """
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        raise ValueError("there is nothing to record: give the names of some activations")
    seen: dict[str, Tensor] = {}

    def keep(name: str) -> Handler:
        def store(activation: Tensor) -> None:
            seen[name] = activation.detach()

        return store

    with _hooked(model, {name: keep(name) for name in names}):
        yield seen


@contextmanager
def patch(model: nn.Module, values: Mapping[str, Replacement]) -> Iterator[None]:
    """Within the `with`, each named activation is replaced: by a tensor, or by what a function makes of it.

    Names are those of `record`. To patch a part of an activation, give a function that changes that part of
    a copy. With what was recorded from another input this is activation patching (Vig et al. 2020; Meng et
    al. 2022): what the output owes to this activation, whatever it is correlated with.

    Example:
        >>> with patch(model, {"transformer.blocks.0.mlp": torch.zeros_like}):
        ...     model(tokens)   # without the first MLP

    Args:
        model: any; its weights are not touched, and the hooks go when the block ends.
        values: a tensor of the activation's shape, or a function of the activation that returns one.

    Raises:
        ValueError: if no module has such a name, or nothing is to be replaced; while the model runs, if the
            replacement has another shape.
        TypeError: if a value is neither a tensor nor a function; while the model runs, if an activation or
            its replacement is not a tensor.
        RuntimeError: at the end of the block, if none of these modules has run.
    """
    if not values:
        raise ValueError("there is nothing to patch: give a name and what to put in its place")
    for name, value in values.items():
        if not isinstance(value, Tensor) and not callable(value):
            raise TypeError(f"{name} can be replaced by a tensor or by a function's, got {brief(value)}")

    def put(name: str, value: Replacement) -> Handler:
        def replace(activation: Tensor) -> Tensor:
            new = value if isinstance(value, Tensor) else value(activation)
            if not isinstance(new, Tensor):
                raise TypeError(f"{name} must be replaced by a tensor, got {brief(new)}")
            if new.shape != activation.shape:
                raise ValueError(
                    f"{name} has the shape {tuple(activation.shape)}, its replacement {tuple(new.shape)}"
                )
            return new.to(activation)

        return replace

    with _hooked(model, {name: put(name, value) for name, value in values.items()}) as ran:
        yield
    check_ran(ran, values.keys())


def check_ran(ran: Collection[Any], names: Collection[str]) -> None:
    """Raise if none of the named parts of a model ran, though something in them was to be changed."""
    if names and not ran:
        raise RuntimeError(
            f"nothing was changed: the model did not run, or ran without {', '.join(names)}. What torch.jit "
            "or torch.export has made does not run these modules: look into the model itself"
        )


@contextmanager
def ablate(
    model: nn.Module, names: Iterable[str], how: str | Mapping[str, Tensor] = "zero"
) -> Iterator[None]:
    """Within the `with`, the named activations say nothing of the input: zero, or their mean.

    Args:
        model: any.
        names: as `record` takes them.
        how: "zero"; or "mean", over batch and places of the input that is read; or a dict from each name to
            a tensor that broadcasts to the activation, such as a mean over many texts.

    Raises:
        ValueError: if no module has such a name, `how` is unknown or lacks a name.
        RuntimeError: at the end of the block, if none of these modules has run.
    """
    names = [names] if isinstance(names, str) else list(names)
    if isinstance(how, Mapping):
        missing = [name for name in names if name not in how]
        if missing:
            raise ValueError(f"there is no value to put in the place of {', '.join(missing)}")
        values = {name: _expanding(how[name]) for name in names}
    elif how == "zero":
        values = dict.fromkeys(names, torch.zeros_like)
    elif how == "mean":
        values = dict.fromkeys(names, _mean)
    else:
        raise ValueError(f'how must be "zero", "mean" or a dict of tensors, got {brief(how)}')
    with patch(model, values):
        yield


def _mean(activation: Tensor) -> Tensor:
    dims = tuple(range(activation.ndim - 1))
    return activation.mean(dim=dims, keepdim=True).expand_as(activation)


def _expanding(value: Tensor) -> Handler:
    return lambda activation: value.expand_as(activation)


@contextmanager
def _hooked(model: nn.Module, handlers: Mapping[str, Handler]) -> Iterator[set[str]]:
    """Hooks that hand each named activation to its handler; what a handler returns takes its place.

    Yields the names of those that ran, which fill while the model does.
    """
    ran: set[str] = set()
    modules = plain_modules(model)
    with as_written(), ExitStack() as hooks:
        for name, handle in handlers.items():
            of_input = name.endswith(INPUT)
            module = modules.get(name.removesuffix(INPUT))
            if module is None or module is modules[""]:
                near = [known for known in modules if known and known.split(".")[-1] in name.split(".")][:4]
                hint = f"; there are {', '.join(near)}" if near else ""
                raise ValueError(f"{type(model).__name__} has no module {name.removesuffix(INPUT)!r}{hint}")
            if of_input:
                hook = module.register_forward_pre_hook(_on_input(name, handle, ran))
            else:
                hook = module.register_forward_hook(_on_output(name, handle, ran))
            hooks.callback(hook.remove)
        yield ran


def _on_input(name: str, handle: Handler, ran: set[str]) -> Callable:
    def hook(_module: nn.Module, inputs: tuple) -> tuple | None:
        if not inputs or not isinstance(inputs[0], Tensor):
            raise TypeError(f"{name} is no tensor, got {brief(inputs[0] if inputs else None)}")
        ran.add(name)
        new = handle(inputs[0])
        return None if new is None else (new, *inputs[1:])

    return hook


def _on_output(name: str, handle: Handler, ran: set[str]) -> Callable:
    def hook(_module: nn.Module, _inputs: tuple, output: Any) -> Tensor | None:
        if not isinstance(output, Tensor):
            raise TypeError(f"{name} is no tensor, got {brief(output)}")
        ran.add(name)
        return handle(output)

    return hook
