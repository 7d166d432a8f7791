"""Several processes that work on one thing, started from one program."""

import logging
import signal
import tempfile
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import cloudpickle
import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from tformer_lib.numbers import real, whole

START_METHOD = "spawn"  # a new Python for each process: what a notebook's threads hold is not copied
LOGGERS = ("torch.distributed.elastic.multiprocessing.api", "torch.multiprocessing.spawn")


def launch(
    function: Callable[..., Any], processes: int = 2, *args: Any, timeout: float | int = 300
) -> list[Any]:
    """`[function(*args), ...]`, a result for each process: what `torchrun` does, started from Python.

    PyTorch's elastic launcher starts the processes on this machine, each with `RANK`, `WORLD_SIZE` and
    `LOCAL_RANK` in its environment, and each with the default process group open: gloo on processors. A
    process computes with one thread. The function goes over by value, so that one that is written in a
    notebook will do; what it returns must be picklable. A tensor that comes back is a copy.

    Args:
        function: runs in every process; `torch.distributed.get_rank()` says in which.
        processes: how many.
        args: handed to each of them.
        timeout: the seconds for which a process waits for another before it gives up.

    Raises:
        ValueError: if `processes` is less than 1, or `timeout` is not positive.
        TypeError: if the function cannot be called.
        RuntimeError: if a process fails. The others are ended; the message names the process that failed
            first, and what it raised, or the signal that ended it.
    """
    processes = whole("processes", processes, 1)
    timeout = real("timeout", timeout, "(0, inf)")
    if not callable(function):
        raise TypeError(f"function must be something to call, got {type(function).__name__}")
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        monitor_interval=0.05,
        start_method=START_METHOD,
    )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as errors:
        payload = cloudpickle.dumps((function, args, timeout, errors))
        try:
            with _signals_as_they_were(), _quietly():
                results = elastic_launch(config, _work)(payload)
        except ChildFailedError as error:
            raise RuntimeError(_what_failed(error, Path(errors))) from error
    return [cloudpickle.loads(results[rank]) for rank in range(processes)]


@contextmanager
def _signals_as_they_were() -> Iterator[None]:
    """The launcher handles signals in a way of its own, and leaves it at that when it is done."""
    names = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
    before = {number: signal.getsignal(number) for name in names if (number := getattr(signal, name, None))}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                if handler is not None:  # one that Python did not install
                    signal.signal(number, handler)


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the launcher's log of a failure: what failed is raised."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _work(payload: bytes) -> bytes:
    """What one process does.

    An error is written down before the process group is closed. The others learn of it by a closed
    connection, so that what they then raise is written later than its cause.
    """
    function, args, timeout, errors = cloudpickle.loads(payload)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=timeout))
    try:
        return cloudpickle.dumps(function(*args))
    except BaseException as error:
        text = "".join(traceback.format_exception_only(error)).strip()
        trace = traceback.format_exc()
        path = Path(errors) / f"{time.time_ns():020d}-{dist.get_rank()}"
        path.with_suffix(".part").write_text(f"{text}\n\n{trace}", "utf8")
        path.with_suffix(".part").rename(path)
        raise
    finally:
        dist.destroy_process_group()


def _what_failed(error: ChildFailedError, errors: Path) -> str:
    """The first process to fail, and what it said; a process that was killed said nothing."""
    rank, failure = error.get_first_failure()
    if failure.exitcode < 0:
        return f"process {rank} of the run was ended by {failure.signal_name()}"
    written = {path.name.partition("-")[2]: path for path in sorted(errors.iterdir(), reverse=True)}
    if str(rank) not in written:
        return f"process {rank} of the run ended without a word, with exit code {failure.exitcode}"
    first = min((path for path in written.values() if not path.suffix), key=lambda path: path.name)
    return f"process {first.name.partition('-')[2]} of the run failed: {first.read_text('utf8')}"
