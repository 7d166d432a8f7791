"""The processes of one run: what the first does for all, and how all learn of an error."""

import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from filelock import FileLock, Timeout

from tformer_lib.scale.together import gather, rank
from tformer_lib.training.seeds import default_device

Work = TypeVar("Work", bound=Callable[..., Any])
LAUNCHER = os.getppid()  # which started this process
PATIENCE = timedelta(hours=12)  # the first process may have long texts to cut


EXPECTED = (OSError, ValueError, TypeError, ImportError)  # what users can mend; else all of it is shown


class RunError(ValueError):
    """An error that all processes know of, in words for the user."""


@contextmanager
def process_group() -> Iterator[None]:
    """Open the group of the processes that torchrun started; of a single process there is none."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    end_with_launcher()
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=PATIENCE)
    try:
        yield
    finally:
        dist.destroy_process_group()


def end_with_launcher(interval: float = 1.0) -> threading.Event:
    """End this process when its launcher is gone: one that is killed cannot end its workers itself.

    They would go on, keep their memory and processors, and hold the run's folder. Nothing is lost by ending
    them, as by no kill.

    Returns:
        An event that ends the watch.
    """
    done = threading.Event()

    def watch() -> None:
        while not done.wait(interval):
            if os.getppid() != LAUNCHER:
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    return done


def first(work: Callable[[], Any]) -> Any:
    """What process 0 makes of `work`, while the others wait; they get None.

    Raises:
        RunError: in every process, if it fails in the first.
    """
    result: Any = None
    fault: Exception | None = None
    if rank() == 0:
        try:
            result = work()
        except Exception as error:
            fault = error
    text = None if fault is None else str(fault) or type(fault).__name__
    if dist.is_initialized():
        found = [text]
        dist.broadcast_object_list(found, src=0)
        text = found[0]
    if text is None:
        return result
    if fault is None or isinstance(fault, EXPECTED):
        raise RunError(text) from fault
    raise fault


def by_first(work: Work) -> Work:
    """A function that process 0 calls alone, while the others wait as in `first`."""

    @functools.wraps(work)
    def called(*args: Any, **kwargs: Any) -> Any:
        return first(lambda: work(*args, **kwargs))

    return called  # type: ignore[return-value]


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """No second run in this folder as long as the block lasts; a killed run leaves the folder free.

    Raises:
        RunError: in every process, if another run is in it.
    """
    lock = FileLock(folder / ".lock", blocking=False)

    def take() -> None:
        try:
            lock.acquire()
        except Timeout as error:
            raise ValueError(
                f"another run is training in {folder}: wait until it ends, or take another --out"
            ) from error

    first(take)
    try:
        yield
    finally:
        lock.release()


def total(value: float) -> float:
    """The sum of the values of all processes, which call this together."""
    return sum(gather(value))


def device_for(name: str | None) -> torch.device:
    """The device of that name, or the best of this process.

    Raises:
        ValueError: if there is none of that name.
    """
    try:
        device = default_device() if name is None else torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device {name}: {str(error).splitlines()[0]}") from error
    return device
