"""The log of a run: a line of a table every few steps, on stderr, in a CSV file and for TensorBoard."""

import csv
import errno
import io
import math
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tformer_lib.files import replace_file
from tformer_lib.runs.group import first, total
from tformer_lib.scale.together import rank
from tformer_lib.training.history import History

COLUMNS = ("step", "loss", "grad_norm", "lr", "tokens", "processor_seconds", "held_out")


class Log:
    """Called after each step, in every process; the first one writes.

    A run that goes on from a checkpoint may have logged more steps than the checkpoint holds, or fewer if it
    was killed in between: lines of steps that are done again are dropped first, and missing ones are added.

    Args:
        folder: of the run.
        every: the steps between lines; the last step has one in any case.
        steps: of the whole run.
        tokens: that are predicted in a step.
        tensorboard: whether to write for TensorBoard too.
        read_every: the steps between readings of the held-out text.
        read: reads it, in every process, and returns nats a token; None if it is not read meanwhile.
        ends: further steps that have a line: those at which the run ended before it was lengthened.

    Raises:
        ImportError: if TensorBoard is asked for and not installed.
    """

    def __init__(
        self,
        folder: Path,
        *,
        every: int,
        steps: int,
        tokens: int,
        tensorboard: bool,
        read_every: int = 1,
        read: Callable[[], float] | None = None,
        ends: Collection[int] = (),
    ):
        self.path, self.every, self.steps, self.tokens = folder / "log.csv", every, steps, tokens
        self.read_every, self.read, self.ends = read_every, read, ends
        self.writer_type: Any = None
        if tensorboard and rank() == 0:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise ImportError(
                    'tensorboard is not installed: pip install "tformer-lib[train]", '
                    "or --train.tensorboard=false"
                ) from error
            self.writer_type = SummaryWriter
        self.writer: Any = None
        self.begun, self.before, self.started = False, 0.0, time.process_time()

    def __call__(self, step: int, history: History) -> None:
        """Write the line of this step, if it has one.

        Raises:
            RunError: in every process, if it cannot be written; what was written of it is taken back.
        """
        if not self.begun:
            self._begin(step, history)
        done = step + 1
        if not self._has_line(done):
            return
        seconds = self.before + total(time.process_time() - self.started)
        held_out = self.read() if self.read is not None and self._is_read(done) else math.nan
        row = self._row(done, history, seconds, held_out)
        first(lambda: self._write(done, row))

    def _write(self, done: int, row: tuple[int | float, ...]) -> None:
        text = io.StringIO()
        csv.writer(text).writerow(_written(row))
        append(self.path, text.getvalue().encode())
        held_out = row[-1]
        heard = "" if math.isnan(held_out) else f"  held out {held_out:.3f}"
        line = f"step {done}/{self.steps}  loss {row[1]:.3f}{heard}  lr {row[3]:.2e}  {row[5]:.0f} s"
        print(line, file=sys.stderr, flush=True)
        if self.writer is not None:
            with self._naming_tensorboard():
                for name, value in zip(COLUMNS[1:], row[1:], strict=True):
                    if not math.isnan(value):
                        self.writer.add_scalar(name, value, done)
                self.writer.flush()

    @contextmanager
    def _naming_tensorboard(self) -> Iterator[None]:
        """Its writer is a thread of its own, whose errors do not say which file they are about."""
        try:
            yield
        except OSError as error:
            code = error.errno or errno.EIO
            raise OSError(
                code, error.strerror or str(error), str(self.path.parent / "tensorboard")
            ) from error

    def _has_line(self, done: int) -> bool:
        return done % self.every == 0 or done == self.steps or done in self.ends or self._is_read(done)

    def _is_read(self, done: int) -> bool:
        return self.read is not None and (done % self.read_every == 0 or done == self.steps)

    def _row(self, done: int, history: History, seconds: float, held_out: float) -> tuple[int | float, ...]:
        """The line of a step; its loss is the mean since the line before."""
        recent = history.loss[(done - 1) // self.every * self.every : done]
        loss, norm = sum(recent) / len(recent), history.grad_norm[done - 1]
        rate, tokens = history.lr[done - 1], done * self.tokens
        return done, round(loss, 6), round(norm, 6), rate, tokens, round(seconds, 2), round(held_out, 6)

    def _begin(self, step: int, history: History) -> None:
        """The lines of the steps that are done: all from the history but the times and what was read."""
        self.begun, rows = True, []
        there = {row["step"]: (row["processor_seconds"], row["held_out"]) for row in read_log(self.path)}
        for done in filter(self._has_line, range(1, step + 1)):
            self.before, held_out = there.get(done, (self.before, math.nan))
            rows.append(_written(self._row(done, history, self.before, held_out)))
        first(lambda: self._write_all(step, rows))

    def _write_all(self, step: int, rows: list[list[int | float | str]]) -> None:
        text = io.StringIO()
        csv.writer(text).writerows([COLUMNS, *rows])
        replace_file(self.path, text.getvalue().encode())
        if self.writer_type is not None:
            with self._naming_tensorboard():
                self.writer = self.writer_type(str(self.path.parent / "tensorboard"), purge_step=step + 1)
        if 0 < step < self.steps:
            print(f"going on after step {step}", file=sys.stderr, flush=True)

    def close(self, history: History) -> None:
        """Finish TensorBoard's file; add what is missing if the last kill came behind the last step."""
        if not self.begun:
            self.writer_type = None
            self._begin(self.steps, history)
        if self.writer is not None:
            with self._naming_tensorboard():
                self.writer.close()


def append(path: Path, content: bytes) -> None:
    """Add `content` to the file's end, whole or not at all.

    Raises:
        OSError: if it cannot be written; the error names the file, which is as it was.
    """
    size = path.stat().st_size if path.exists() else 0
    try:
        with open(path, "ab") as file:
            file.write(content)
    except OSError as error:
        if path.exists():
            os.truncate(path, size)
        raise OSError(error.errno, error.strerror, str(path)) from error


def _written(row: Sequence[int | float]) -> list[int | float | str]:
    """As it stands in the file: what is not known is empty."""
    return ["" if math.isnan(value) else value for value in row]


def read_log(path: Path) -> list[dict[str, float]]:
    """The lines of a log; one that was cut off when a run was killed, and all after it, are left out.

    What the held-out text costs is `nan` where it was not read.
    """
    rows: list[dict[str, float]] = []
    if not path.is_file():
        return rows
    lines = path.read_text("utf-8").splitlines(keepends=True)
    for line in lines[1:]:
        try:
            values = [float(value) if value.strip() else math.nan for value in line.split(",")]
        except ValueError:
            break
        if len(values) != len(COLUMNS) or not line.endswith("\n"):
            break
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows
