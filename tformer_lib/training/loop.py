"""The training loop."""

import sys
import time
from collections.abc import Callable, Iterable, Sized
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from tformer_lib.numbers import brief, whole
from tformer_lib.training.batches import BatchIterator
from tformer_lib.training.checkpoints import Checkpoint, has_checkpoint, open_checkpoint, save_checkpoint
from tformer_lib.training.history import History
from tformer_lib.training.plan import (
    Plan,
    check_depends,
    check_finite,
    check_folder,
    check_loss,
    clip_gradients,
    passed,
    trainable,
)
from tformer_lib.training.seeds import random_state, set_random_state


def fit(
    model: nn.Module,
    loss_fn: Callable[[Any, Any], Tensor],
    batches: Iterable[Any],
    *,
    steps: int | None = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 100,
    **numbers: Any,
) -> History:
    """For each batch: theta <- theta - step(grad of loss_fn(model, batch)), with clipping and a schedule.

    Nothing is moved between devices: model and batches stay where the caller put them
    (`default_device` names a good place).

    Args:
        model: trained in place; in training mode meanwhile, and in evaluation mode afterwards.
        loss_fn: called as `loss_fn(model, batch)`, returns a scalar.
        batches: anything to loop over. A list or a loader is begun again when it runs out.
        steps: how many batches to train on; one pass if None, which `batches` must have a length for.
        progress: whether to draw a bar on stderr; if None, only where stderr is a terminal. A notebook is
            none, so that no bar is stored in it: say True there to watch.
        checkpoint: a folder. Every `checkpoint_every` steps and at the end the run is saved in it, and a
            run that finds a checkpoint in it goes on from there, with the same result as if it had never
            stopped, to the last bit: optimiser, history, and random generators (dropout) go on, and so
            do the batches, those already taken being looped over and dropped. This holds where `batches`
            give the same again when the program is run again, as `RandomWindows`, a list, a seeded loader
            without worker processes do. A finished run is loaded and trained no further.
        checkpoint_every: the number of steps between checkpoints.
        **numbers: those of `tformer_lib.training.plan.Plan`: lr, weight_decay, warmup, clip, optimizer,
            betas, momentum and min_lr_ratio.

    Returns:
        The loss, the gradient's norm before clipping, and the learning rate of each step.

    Raises:
        ValueError: if there is no batch, or `steps` is neither given nor known, or the loss is no scalar or
            does not depend on the model, or no parameter wants a gradient, or Muon finds nothing to train;
            if the checkpoint is a file, is damaged, or is of another model, other batches or other arguments
            than these. Model and optimiser then are as they were. As well as `Plan`.
        TypeError: if the loss is no tensor; or as `Plan`.
        FloatingPointError: if a loss or a gradient is not finite; the message names the step.
    """
    plan = Plan(steps=passed(batches) if steps is None else steps, **numbers)
    steps, checkpoint_every = plan.steps, whole("checkpoint_every", checkpoint_every, 1)
    if not hasattr(batches, "__iter__") and not hasattr(batches, "__getitem__"):
        raise TypeError(f"batches must be something to loop over, got {brief(batches)}")
    if checkpoint is not None:
        check_folder(Path(checkpoint))
    parameters, optimizers = trainable(model), plan.make_optimizers(model)
    history, stream, first = History(), BatchIterator(batches, steps, remember=checkpoint is not None), 0
    settings = asdict(plan) | {"batches": len(batches) if isinstance(batches, Sized) else None}
    if checkpoint is not None and has_checkpoint(checkpoint):
        history, first = _resume(checkpoint, model, optimizers, settings, stream)
    start = time.perf_counter() - history.seconds
    model.train()
    with _bar(steps, first, progress) as bar:
        for step in range(first, steps):
            loss = loss_fn(model, stream.take())
            check_loss(loss)
            check_finite("the loss", loss, step, steps)
            check_depends(loss)
            model.zero_grad()
            loss.backward()
            norm = clip_gradients(parameters, plan.longest)
            check_finite("the gradient's norm", norm, step, steps)
            rate = plan.move(optimizers, step)
            history.loss.append(loss.item())
            history.grad_norm.append(norm.item())
            history.lr.append(rate)
            history.seconds = time.perf_counter() - start
            if checkpoint is not None and ((step + 1) % checkpoint_every == 0 or step + 1 == steps):
                _save(checkpoint, model, optimizers, settings, stream, history)
            bar.set_postfix(loss=f"{history.loss[-1]:.3f}", refresh=False)
            bar.update()
    model.eval()
    return history


def _bar(steps: int, first: int, progress: bool | None) -> "tqdm[Any]":
    if progress is None:
        progress = sys.stderr is not None and sys.stderr.isatty()
    return tqdm(total=steps, initial=first, unit="step", disable=not progress)


def _save(
    folder: str | Path,
    model: nn.Module,
    optimizers: list[torch.optim.Optimizer],
    settings: dict[str, Any],
    stream: BatchIterator,
    history: History,
) -> None:
    place = {"passes": stream.passes, "position": stream.position}
    checkpoint = Checkpoint(stream.taken, history, settings, place, random_state(), stream.random)
    save_checkpoint(folder, model, optimizers, checkpoint)


def _resume(
    folder: str | Path,
    model: nn.Module,
    optimizers: list[torch.optim.Optimizer],
    settings: dict[str, Any],
    stream: BatchIterator,
) -> tuple[History, int]:
    """What is done, and the number of the first step that is not; wound back to right after it.

    The stream is wound before the model is changed: to draw other batches is a reason to refuse as well.
    """
    saved, put = open_checkpoint(folder, model, optimizers, settings=settings)
    try:
        step = whole("step", saved.step, 0, settings["steps"])
        passes, position = (whole(name, saved.notes.get(name), 1, step) for name in ("passes", "position"))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the checkpoint in {folder} is of no run of these {settings['steps']} steps: {error}"
        ) from error
    if len(saved.history.loss) != step:
        raise ValueError(f"the checkpoint in {folder} has {len(saved.history.loss)} losses of {step} steps")
    if not saved.random or not saved.pass_random:
        raise ValueError(f"the checkpoint in {folder} lacks the states of the random generators")
    before = random_state()
    try:
        stream.wind(step, passes, position, saved.pass_random)
    except BaseException:
        set_random_state(before)
        raise
    put()
    set_random_state(saved.random)
    return saved.history, step
