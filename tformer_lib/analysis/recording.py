"""Looking inside a model while it runs, without a second forward path."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from torch import Tensor, nn

from tformer_lib.core.attention import MaskedSoftmax, MultiHeadAttention
from tformer_lib.core.modes import as_written, plain


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Yields a dict from the name of each attention layer to its weights (B, H, N, S).

    The dict fills during forward: a hook on the softmax of each `MultiHeadAttention` in `model` stores
    what the softmax returned (masked, before dropout, detached), so that nothing is computed twice.
    Names are those of `model.named_modules()`, such as "decoder.blocks.0.cross_attention"; a model
    that is itself a `MultiHeadAttention` has the name "attention". A layer that runs several times, or
    is reused under several names, keeps its last weights, under its first name. The hooks go when the
    block ends, also when it ends in an error; the dict stays. A model that is compiled runs as it was written
    meanwhile, and names do not tell that it is compiled, or wrapped by `DistributedDataParallel`.

    Example:
        >>> with record_attention(model) as weights:
        ...     model(x)
        >>> weights["blocks.0.self_attention"].shape   # (B, H, N, S)

    Raises:
        TypeError: if the backend of a layer never shows its weights; the message says what does.
        ValueError: if there is no attention layer in the model, or it is spread over several devices.
    """
    layers: dict[str, MultiHeadAttention] = {}
    for name, module in plain_modules(model).items():
        if isinstance(module, MultiHeadAttention) and module not in layers.values():
            layers[name or "attention"] = module
    if not layers:
        raise ValueError(f"there is no MultiHeadAttention in this {type(model).__name__}")
    softmaxes = [_softmax_of(name, layer) for name, layer in layers.items()]
    weights: dict[str, Tensor] = {}
    running: list[str] = []  # the layer whose forward is under way: layers may share one softmax

    def store(_module: nn.Module, _inputs: tuple, output: Tensor) -> None:
        if running:
            weights[running[-1]] = output.detach()

    with as_written(), ExitStack() as hooks:
        for name, layer in layers.items():
            enter = layer.register_forward_pre_hook(lambda *_, name=name: running.append(name))
            leave = layer.register_forward_hook(lambda *_: running.clear(), always_call=True)
            hooks.callback(enter.remove)
            hooks.callback(leave.remove)
        for softmax in set(softmaxes):
            hooks.callback(softmax.register_forward_hook(store).remove)
        yield weights


def _softmax_of(name: str, layer: MultiHeadAttention) -> MaskedSoftmax:
    """The softmax to listen to in `layer`."""
    for module in layer.backend.modules():
        if isinstance(module, MaskedSoftmax):
            return module
    kind = type(layer.backend).__name__
    remedy = f"build the model with Attend instead of {kind} to look inside"
    if hasattr(layer.backend, "pattern"):
        remedy += f": with the mask {kind}.pattern(N) it computes the same"
    raise TypeError(f"{name} has a {kind}, which never shows its weights: {remedy}")


def plain_modules(model: nn.Module) -> dict[str, nn.Module]:
    """Each module of `plain(model)` by its name there, whatever of it is wrapped.

    Raises:
        ValueError: if a `DataParallel` would run copies on several devices, each with a part of the batch.
    """
    for module in model.modules():
        if isinstance(module, nn.DataParallel) and len(module.device_ids) > 1:
            copies = f"{len(module.device_ids)} copies of this model, each on a part of the batch"
            raise ValueError(f"DataParallel runs {copies}: look into the model itself, its .module")
    found = {}
    for name, module in plain(model).named_modules():
        parts = [part for part in name.split(".") if part != "_orig_mod"]
        found[".".join(parts)] = plain(module)
    return found
