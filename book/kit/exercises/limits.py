"""A limit to how long a reader's function may take: what does not return is broken off where it stands."""

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any

AGAIN = 1.0  # seconds after which a function that swallowed the exception gets another
ON_THE_CLOCK = 10  # so many times the processor time may pass on the clock: another machine's is busy


class TimeUpError(BaseException):
    """A function took too long. No `Exception`, or a loop with `except Exception` would go on."""


def limited(function: Callable[[], Any], seconds: float | None) -> Any:
    """What the function returns, if it does so within so many seconds; without a limit if None.

    The seconds are of processor time, so that a busy machine breaks off nothing; ten times as many may pass
    on the clock. Another thread watches both. When the time is up it has Python raise an exception in this
    one, on all systems, and in a notebook's thread as well. The exception comes between two steps of Python:
    one long call into a compiled library comes to its end first.

    Raises:
        TimeUpError: if it does not.
    """
    if seconds is None:
        return function()
    watch = _Watch(seconds)
    try:
        try:
            watch.start()
            return function()
        finally:
            watch.stop()
    except TimeUpError:
        watch.stop()  # the exception may have come before the line above had taken effect
        raise


class _Watch:
    """Raises `TimeUpError` in the thread that made it, some time after `start` and never after `stop`."""

    def __init__(self, seconds: float):
        self.seconds, self.caller = min(seconds, threading.TIMEOUT_MAX / 2), threading.get_ident()
        self.lock, self.over = threading.Lock(), threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def start(self) -> None:
        self.thread.start()

    def watch(self) -> None:
        """The watching thread's work."""
        used, begun = time.process_time(), time.monotonic()
        step = min(self.seconds, max(self.seconds / 20, 0.01), 0.5)
        while not self.over.wait(step):
            late = time.monotonic() - begun >= ON_THE_CLOCK * self.seconds
            if not late and time.process_time() - used < self.seconds:
                continue
            with self.lock:  # so that nothing is raised once `stop` holds it
                if not self.over.is_set():
                    _raise_in(self.caller, TimeUpError)
            step = AGAIN

    def stop(self) -> None:
        """No exception is raised from here on, nor is one left that has not come through yet."""
        self.over.set()
        with self.lock:
            _raise_in(self.caller, None)


def _raise_in(thread: int, exception: type[BaseException] | None) -> None:
    """Have Python raise this in a thread, as soon as it runs; None takes back what has not been raised."""
    kind = None if exception is None else ctypes.py_object(exception)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), kind)
