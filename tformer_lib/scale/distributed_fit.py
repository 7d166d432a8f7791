"""The training loop on one process or many: the same batches, the same steps, the same weights."""

import copy
import inspect
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint as recomputed

from tformer_lib.core.transformer import Block
from tformer_lib.numbers import brief, flag, one_of, real, whole
from tformer_lib.scale.sharded_checkpoints import Saved, has_distributed, open_distributed, save_distributed
from tformer_lib.scale.together import gather
from tformer_lib.training.history import History
from tformer_lib.training.plan import (
    Plan,
    check_depends,
    check_finite,
    check_folder,
    check_loss,
    clip_gradients,
    trainable,
)
from tformer_lib.training.seeds import set_random_state

Strategy = Literal["ddp", "fsdp"]
Precision = Literal["float32", "bfloat16"]


def fit_distributed(
    model: nn.Module,
    loss_fn: Callable[[Any, Any], Tensor],
    batches: Any,
    *,
    strategy: str = "ddp",
    accumulate: int = 1,
    precision: str = "float32",
    recompute: bool = False,
    compiled: bool | str = False,
    targets: Callable[[Any], int | float] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 100,
    lengthen: bool = False,
    on_step: Callable[[int, History], None] | None = None,
    **numbers: Any,
) -> History:
    """`tformer_lib.training.fit` on every process of the group at once; without a group, on this one.

    Each process takes its rows of every global batch, and all take the step of the whole batch:

        g = 1/P sum over processes p of 1/A sum over parts a of grad loss_fn(model, rows of p, part a).

    That is the gradient of the mean over the batch where every part has equally many targets. Where it does
    not, `targets` counts them, and each part's loss is weighed by its share; g is then the mean over all
    targets of the global batch. The result is that of one process up to rounding, however many there are.

    Before the first step every process gets the weights of process 0. With "ddp", each holds the whole model
    (`DistributedDataParallel`) and gradients are averaged once a batch. With "fsdp", each holds a share of
    every parameter, gradient and moment, and gathers a `Block` when it is at work (`fully_shard`); gradients
    are averaged at every part, for else each process would hold whole ones until the last. The model stays
    sharded afterwards, and `whole_state` puts its weights together. Muon needs whole matrices: under "fsdp"
    each process gathers the averaged gradients, one matrix after the other, and repeats what all others
    compute from them.

    Args:
        model: trained in place; in training mode meanwhile, and in evaluation mode afterwards.
        loss_fn: called as `loss_fn(model, rows)`, returns the mean over these rows. It must call the model
            once, and as a whole.
        batches: an iterator over global batches with `shard(rank, world_size)`, `state_dict` and
            `load_state_dict`, such as `tformer_lib.data.shards.ShardBatches`; or anything that gives the
            same batches whenever it is looped over, which is put into `GlobalBatches`.
        strategy: "ddp" or "fsdp"; on one process without a group it makes no difference.
        accumulate: into how many parts a process cuts its rows, one after the other through the model.
        precision: "float32", which leaves the model in the type that it has; or "bfloat16", in which
            products are then formed (autocast; under "fsdp" whole blocks, with gradients summed in
            float32). Parameters and moments stay as they are.
        recompute: whether a `Block` forgets what it computed and does so again in the backward pass.
        compiled: whether each `Block` is compiled as it is first called, or the name of the backend of
            `torch.compile` that does it. The usual one takes a C++ compiler on a CPU; losses change by
            rounding.
        targets: counts the targets of some rows, of which every part needs one; None says that all parts
            have equally many, and there is a warning if the cross-entropies of the first step show that they
            have not, unless blocks are compiled.
        checkpoint: a folder, see `save_distributed`. A run that finds a checkpoint in it goes on from there,
            on any number of processes, with either strategy and any `accumulate`. On as many processes and
            in the same way the result is the same to the last bit; otherwise up to rounding, and with
            dropout only in distribution, since every process draws its own masks.
        checkpoint_every: the number of steps between checkpoints.
        lengthen: whether the checkpoint may be of a run of fewer `steps`, finished or not. What is done
            stays as it is; each later step has the learning rate that it has in a run of `steps`, so that
            the rate may rise where the shorter run ended. Where such a run is stopped makes no difference
            either, but it is not the run that had `steps` from the beginning.
        on_step: called by every process after each step, with its number from 0 and the history so far.
        **numbers: those of `tformer_lib.training.plan.Plan`: steps, of which each takes a global batch, lr,
            weight_decay, warmup, clip, optimizer, betas, momentum and min_lr_ratio.

    Returns:
        The loss of each global batch, the norm of its gradient before clipping, and the learning rate,
        the same on every process.

    Raises:
        ValueError: as `fit`; if `strategy` or `precision` is unknown; if processes and parts cannot share a
            batch evenly; if the processes were given different models or numbers; if `torchrun` started
            several processes, and no group is open; if blocks are to be compiled, and there is no compiler.
        TypeError: as `fit`; if `batches` cannot be looped over.
        FloatingPointError: on all processes, if a loss or a gradient is not finite; the message names the
            step.
    """
    plan = Plan(**numbers)
    strategy, precision = one_of("strategy", strategy, Strategy), one_of("precision", precision, Precision)
    accumulate = whole("accumulate", accumulate, 1)
    recompute, lengthen = flag("recompute", recompute), flag("lengthen", lengthen)
    backend = _backend(compiled)
    checkpoint_every = whole("checkpoint_every", checkpoint_every, 1)
    if checkpoint is not None:
        check_folder(Path(checkpoint))
    rank, world = _place()
    rows = (batches if hasattr(batches, "shard") else GlobalBatches(batches)).shard(rank, world)
    trainable(model)
    settings = asdict(plan) | {"precision": precision, "targets": targets is not None}
    given = [settings, strategy, accumulate, recompute, backend, checkpoint is not None]
    _same_everywhere(model, given)
    with ExitStack() as stack:
        if recompute or backend:
            stack.enter_context(_changed_blocks(model, recompute, backend))
        wrapped = _wrap(model, strategy, precision)
        parameters, optimizers = trainable(model), plan.make_optimizers(model)
        history, first = History(), 0
        if checkpoint is not None and has_distributed(checkpoint):
            history, first = _resume(checkpoint, model, optimizers, settings, rows, plan.steps, lengthen)
        else:
            _own_randomness(rank)
        start = time.perf_counter() - history.seconds
        stream = iter(rows)
        model.train()
        for step in range(first, plan.steps):
            parts = _cut(_next(stream, step, plan.steps), accumulate)
            shares = _shares(parts, targets)
            model.zero_grad()
            total = torch.zeros((), dtype=torch.float64)
            asked = [_Asked() for _ in parts]
            counting = step == first and targets is None and backend is None
            for number, (part, share) in enumerate(zip(parts, shares, strict=True)):
                with _speaking(wrapped, number + 1 == accumulate), _computing(model, precision):
                    with asked[number] if counting else nullcontext():
                        loss = loss_fn(wrapped, part)
                    check_loss(loss)
                    check_depends(loss)
                    (loss * share).backward()
                total += loss.detach().cpu().double() * share
            if counting:
                _warn_if_unequal([one.count for one in asked])
            total = _mean(total)
            check_finite("the loss", total, step, plan.steps)
            norm = clip_gradients(parameters, plan.longest)
            norm = norm.full_tensor() if isinstance(norm, DTensor) else norm
            check_finite("the gradient's norm", norm, step, plan.steps)
            rate = plan.move(optimizers, step)
            history.loss.append(total.item())
            history.grad_norm.append(norm.item())
            history.lr.append(rate)
            history.seconds = time.perf_counter() - start
            if checkpoint is not None and ((step + 1) % checkpoint_every == 0 or step + 1 == plan.steps):
                saved = Saved(step + 1, history, settings, rows.state_dict())
                save_distributed(checkpoint, model, optimizers, saved)
            if on_step is not None:
                on_step(step, history)
        model.zero_grad()
        model.eval()
    return history


class GlobalBatches:
    """The batches of anything that gives the same ones whenever it is looped over, a share for each process.

    Process r of P gets of every batch of B rows the rows r B/P to (r + 1) B/P - 1. A batch is a tensor, or a
    tuple, list or dictionary of tensors, whose first axis counts the rows. What runs out is looped over
    again. The state is the number of batches that were taken; to go on, those are looped over and dropped.

    Args:
        batches: a list, `RandomWindows`, a loader that does not shuffle anew.

    Raises:
        TypeError: if `batches` cannot be looped over.
        ValueError: while iterating, if there is no batch, or the processes cannot share it evenly.
    """

    def __init__(self, batches: Any):
        if not hasattr(batches, "__iter__") and not hasattr(batches, "__getitem__"):
            raise TypeError(f"batches must be something to loop over, got {brief(batches)}")
        if iter(batches) is batches:
            raise TypeError(
                f"batches must begin anew whenever they are looped over; {brief(batches)} does not"
            )
        self.batches, self.rank, self.world_size, self.taken = batches, 0, 1, 0

    def shard(self, rank: int, world_size: int) -> "GlobalBatches":
        """The same batches from here on, of which each gives the rows of one process."""
        view = copy.copy(self)
        view.rank, view.world_size = whole("rank", rank, 0), whole("world_size", world_size, 1)
        return view

    def __iter__(self) -> Iterator[Any]:
        place = 0
        while True:
            before = place
            for batch in self.batches:
                place += 1
                if place > self.taken:
                    self.taken = place
                    yield _cut(batch, self.world_size, "processes")[self.rank]
            if place == before:
                raise ValueError(f"the batches ran out after {self.taken}")

    def state_dict(self) -> dict[str, Any]:
        """How many global batches were taken."""
        return {"batches": self.taken}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on behind them.

        Raises:
            ValueError: if the state is of other batches.
        """
        if not isinstance(state, dict) or state.keys() != {"batches"}:
            raise ValueError(f"this is no state of such batches: {brief(state)}")
        self.taken = whole("batches", state["batches"], 0)


def whole_state(model: nn.Module) -> dict[str, Tensor]:
    """The model's state with whole tensors, on every process, of a model that `fully_shard` has divided.

    All processes call this together. It is what `load_state_dict` of the undivided model takes.
    """
    return {
        name: (value.full_tensor() if isinstance(value, DTensor) else value).detach().clone()
        for name, value in model.state_dict().items()
    }


def _place() -> tuple[int, int]:
    """The number of this process, and of how many."""
    if dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    started = int(os.environ.get("WORLD_SIZE", "1"))
    if started > 1:
        raise ValueError(
            f"torchrun started {started} processes, and no group is open: call "
            "torch.distributed.init_process_group() first"
        )
    return 0, 1


def _backend(compiled: bool | str) -> str | None:
    """The backend of `torch.compile`, or None."""
    if isinstance(compiled, bool):
        return "inductor" if compiled else None
    known = torch.compiler.list_backends(exclude_tags=())
    if compiled not in known:
        raise ValueError(f"compiled must be a flag or one of {known}, got {brief(compiled)}")
    return compiled


def _same_everywhere(model: nn.Module, numbers: list[Any]) -> None:
    """Raise unless all processes were given models of one make, and the same numbers."""
    make = [(name, tuple(value.shape), str(value.dtype)) for name, value in model.state_dict().items()]
    found = gather((make, numbers))
    for rank, (other, theirs) in enumerate(found):
        if other != found[0][0]:
            raise ValueError(f"processes 0 and {rank} were given models of different makes")
        if theirs != found[0][1]:
            raise ValueError(
                f"processes 0 and {rank} were given different numbers: {found[0][1]} and {theirs}"
            )


def _wrap(model: nn.Module, strategy: str, precision: str) -> nn.Module:
    """The model as it is called: as it is, in DDP's wrapper, or sharded; with the weights of process 0."""
    if not dist.is_initialized():
        return model
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            if not isinstance(tensor, DTensor):
                dist.broadcast(tensor, 0)
    if strategy == "ddp":
        return DistributedDataParallel(model)
    if isinstance(model, FSDPModule):
        return model  # of an earlier call
    half = torch.bfloat16 if precision == "bfloat16" else None
    reduce = torch.float32 if half else None
    device = next(model.parameters()).device.type
    mesh = dist.device_mesh.init_device_mesh(device, (dist.get_world_size(),))
    for block in (module for module in model.modules() if isinstance(module, Block)):
        fully_shard(block, mesh=mesh, mp_policy=MixedPrecisionPolicy(half, reduce))
    output = torch.float32 if half else None
    fully_shard(model, mesh=mesh, mp_policy=MixedPrecisionPolicy(half, reduce, output))
    return model


@contextmanager
def _changed_blocks(model: nn.Module, recompute: bool, backend: str | None) -> Iterator[None]:
    """Each block is compiled; its forward pass keeps its input alone, and is done again on the way back."""
    if backend:
        device = next(model.parameters()).device
        try:
            torch.compile(lambda x: x.relu() + 1, backend=backend)(torch.ones(2, device=device))
        except Exception as error:  # what is missing differs: a compiler, its headers, Python's
            raise ValueError(
                f"PyTorch cannot compile here with {backend!r} ({str(error).splitlines()[0]}): on a CPU it "
                "takes a C++ compiler and Python's headers. Without `compiled` it goes on as it is"
            ) from error
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    if not blocks:
        raise ValueError("there is no Block in this model that could be computed again or compiled")
    for block in blocks:
        if backend:
            block.forward = torch.compile(block.forward, backend=backend)  # type: ignore[method-assign]
        if recompute:
            block.forward = partial(recomputed, block.forward, use_reentrant=False)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for block in blocks:
            del block.forward


def _speaking(model: nn.Module, last: bool) -> AbstractContextManager[Any]:
    """DDP averages gradients over processes at the last part of a batch only."""
    return model.no_sync() if isinstance(model, DistributedDataParallel) and not last else nullcontext()


def _computing(model: nn.Module, precision: str) -> AbstractContextManager[Any]:
    """Autocast, unless `fully_shard` sees to the types."""
    if precision == "float32" or isinstance(model, FSDPModule):
        return nullcontext()
    return torch.autocast(next(model.parameters()).device.type, torch.bfloat16)


def _next(stream: Iterator[Any], step: int, steps: int) -> Any:
    try:
        return next(stream)
    except StopIteration:
        raise ValueError(f"the batches ran out after {step} of {steps} steps") from None


def _cut(batch: Any, parts: int, what: str = "parts") -> list[Any]:
    """Equal shares of the rows, in order."""
    if isinstance(batch, Tensor):
        if batch.ndim == 0 or len(batch) % parts:
            size = len(batch) if batch.ndim else 1
            raise ValueError(f"a batch of {size} rows cannot be shared by {parts} {what} evenly")
        return list(batch.chunk(parts)) if len(batch) else [batch] * parts
    if isinstance(batch, dict):
        cut = [_cut(value, parts, what) for value in batch.values()]
        return [dict(zip(batch, values, strict=True)) for values in zip(*cut, strict=True)]
    if isinstance(batch, tuple | list):
        cut = [_cut(value, parts, what) for value in batch]
        return [type(batch)(values) for values in zip(*cut, strict=True)]
    raise TypeError(f"a batch is a tensor, or a tuple, list or dictionary of tensors, got {brief(batch)}")


def _shares(parts: Sequence[Any], targets: Callable[[Any], int | float] | None) -> list[float]:
    """What each part's loss is multiplied with before processes average their sums."""
    if targets is None:
        return [1 / len(parts)] * len(parts)
    counts = [real("the number of targets", targets(part), "[0, inf)") for part in parts]
    sums = [math.fsum(counts), sum(count == 0 for count in counts)]
    mean, empty = _mean(torch.tensor(sums, dtype=torch.float64)).tolist()
    if empty:
        raise ValueError("a part of this batch has no target: give it fewer parts, or drop rows without any")
    return [count / mean for count in counts]


class _Asked(TorchFunctionMode):
    """Counts the targets that cross-entropies are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.cross_entropy:
            given = inspect.signature(F.cross_entropy).bind(*args, **kwargs).arguments
            if not given["target"].is_floating_point():
                self.count += int((given["target"] != given.get("ignore_index", -100)).sum())
        return func(*args, **kwargs)


def _warn_if_unequal(counts: Sequence[int]) -> None:
    """Warn if the parts of a batch, those of all processes together, have not equally many targets."""
    sums = torch.tensor([sum(counts), sum(c * c for c in counts)], dtype=torch.float64) / len(counts)
    mean, square = _mean(sums).tolist()
    if square > mean * mean:
        warnings.warn(
            f"the parts of this batch have unequally many targets ({', '.join(map(str, counts))} on this "
            "process), and each part's mean counts alike: say targets=... for the mean over all targets",
            stacklevel=3,
        )


def _mean(value: Tensor) -> Tensor:
    """Over processes."""
    if not dist.is_initialized():
        return value
    device = "cpu" if "gloo" in dist.get_backend() else "cuda"
    value = value.to(device)
    dist.all_reduce(value)
    return value / dist.get_world_size()


def _own_randomness(rank: int) -> None:
    """Other dropout masks on each process: process r seeds its generator with that of process 0, plus r."""
    if dist.is_initialized():
        seed = [torch.initial_seed()]
        dist.broadcast_object_list(seed)
        if rank:
            torch.manual_seed((seed[0] + rank) % 2**63)


def _resume(
    folder: str | Path,
    model: nn.Module,
    optimizers: list[torch.optim.Optimizer],
    settings: dict[str, Any],
    rows: Any,
    steps: int,
    lengthen: bool,
) -> tuple[History, int]:
    """What is done, and the number of the first step that is not; the batches stand right behind it."""
    free = ("steps",) if lengthen else ()
    saved, put = open_distributed(folder, model, optimizers, settings=settings, free=free)
    if saved.settings["steps"] > steps:
        raise ValueError(
            f"the checkpoint in {folder} is of a run of {saved.settings['steps']} steps, not {steps}"
        )
    if saved.step > steps:
        raise ValueError(f"the checkpoint in {folder} is of {saved.step} steps, and there are {steps}")
    rows.load_state_dict(saved.batches)
    put()
    rank, _ = _place()
    if rank < saved.processes:
        set_random_state(saved.random[rank])
    else:
        torch.manual_seed((int(saved.random[0]["torch"][:8].view(torch.int64)) + rank + saved.step) % 2**63)
    return saved.history, saved.step
