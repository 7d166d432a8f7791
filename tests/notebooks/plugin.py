"""The pytest plugin that runs the book's notebooks: nbval, and what nbval leaves open.

Every notebook runs in an empty folder and in the environment of `alone`, so one run shows both that its
committed outputs are right and that it runs alone. Outputs are compared strictly (see `outputs`), figures by
their pixels (see `notebook_figures`). Tags of a cell:

- `nbval-ignore-output`: texts may differ between machines; figures are compared all the same.
- `trained-figure`: the figure is drawn from training or timing; number, size and coarse structure are
  compared, more coarsely still if the cell is also tagged `timing`: a busy machine draws other times.

Pixels compare only between figures drawn by one version of matplotlib. Where the versions differ the
comparison is left out with a warning, and in CI (the variable CI is set) it fails. Pictures of a difference
are left under `_build/figure-diffs/`. What each notebook took is reported at the end, beside what it may
take on a quiet machine, a chapter less than its laboratory and its exercises; a slower or busier machine only
says so.
"""

import os
import shutil
import tempfile
import time
import warnings
from collections import defaultdict
from pathlib import Path

import notebook_figures as figures
import psutil
import pytest
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell, IPyNbFile, NbCellError

from tests.notebooks import alone
from tests.notebooks.outputs import comparable

TREE = Path(__file__).parents[2]
FOLDER = "TFORMER_ALONE"  # the variable that tells all processes of a run where the environment lies
PICTURES = Path("_build", "figure-diffs")


class FigureVersionWarning(UserWarning):
    """A figure was not compared: another version of matplotlib drew the committed one."""


class BookKernel(RunningKernel):
    """A kernel that keeps its history, as every front end does: without it a closing `;` hides nothing."""

    def execute_cell_input(self, cell_input, allow_stdin=None):
        return self.kc.execute(cell_input, store_history=True, allow_stdin=allow_stdin, stop_on_error=False)


class BookCell(IPyNbCell):
    """A code cell: run and compared by nbval, then its figures compared."""

    def setup(self):
        super().setup()
        tags = self.cell.metadata.get("tags", [])
        self.coarse = 0.0 if "trained-figure" not in tags else figures.COARSE
        if self.coarse and "timing" in tags:
            self.coarse = figures.TIMED

    def compare_outputs(self, test, ref, skip_compare=None):
        return super().compare_outputs(comparable(test), comparable(ref), skip_compare)

    def runtest(self):
        started = time.perf_counter()
        problems = []
        try:
            super().runtest()
        except NbCellError as error:
            if str(error) != "Cell outputs differ":
                raise
            problems.append(error.inner_traceback)
        finally:
            self.user_properties += [
                ("notebook_seconds", time.perf_counter() - started),
                ("notebook_cpu", self.parent.cpu_seconds()),
            ]
        if self.cell.execution_count is not None:
            problems += self.compare_figures()
        if problems:
            self.raise_cell_error("What the cell shows differs from what is committed", "\n\n".join(problems))

    def compare_figures(self) -> list[str]:
        """What is wrong with the cell's figures, each problem in words."""
        committed, fresh = figures.png_outputs(self.cell.outputs), figures.png_outputs(self.test_outputs)
        if len(committed) != len(fresh):
            return [f"Figures: the cell shows {len(fresh)}, {len(committed)} are committed."]
        if bare := figures.without_svg(self.test_outputs):
            return [f"Figures: {bare} without an SVG, which the site shows; is it made by new_figure?"]
        problems = []
        for i, (expected, actual) in enumerate(zip(committed, fresh, strict=True)):
            problem = figures.figure_problem(expected, actual, coarse=self.coarse)
            before, now = figures.drawn_by(expected), figures.drawn_by(actual)
            if not self.coarse and before != now:
                problem = f"committed by {before or 'unknown'}, drawn now by {now or 'unknown'}"
                if not in_ci():
                    message = f"{self.nodeid}: figure {i} is not compared: {problem}"
                    warnings.warn(message, FigureVersionWarning, stacklevel=1)
                    continue
                problem += "; install the pinned version, or run `make execute` with this one"
            if problem:
                paths = self.leave_pictures(i, expected, actual)
                problems.append("\n  ".join([f"Figure {i}: {problem}.", *map(str, paths)]))
        return problems

    def leave_pictures(self, i: int, expected: bytes, actual: bytes) -> list[Path]:
        folder = self.parent.pictures / f"cell-{self.cell_num}-figure-{i}"
        folder.mkdir(parents=True, exist_ok=True)
        difference = figures.difference_picture(expected, actual)
        pictures = {"expected.png": expected, "actual.png": actual, "difference.png": difference}
        for name, png in pictures.items():
            (folder / name).write_bytes(png)
        return [folder / name for name in pictures]


class BookNotebook(IPyNbFile):
    """A notebook, its kernel and the empty folder in which the kernel runs."""

    workplace: Path | None = None

    @property
    def pictures(self) -> Path:
        return self.config.rootpath / PICTURES / self.path.stem

    def collect(self):
        for cell in super().collect():
            yield BookCell.from_parent(
                self, name=cell.name, cell_num=cell.cell_num, cell=cell.cell, options=cell.options
            )

    def setup(self):
        os.environ["JUPYTER_PATH"] = str(alone.prepare(Path(os.environ[FOLDER]), TREE))
        shutil.rmtree(self.pictures, ignore_errors=True)
        self.workplace = Path(tempfile.mkdtemp(prefix="notebook-"))
        timeout = self.config.option.nbval_kernel_startup_timeout
        self.kernel = BookKernel(alone.KERNEL, cwd=str(self.workplace), startup_timeout=timeout)
        self.setup_sanitize_files()

    def get_sanitize_files(self):
        return [*super().get_sanitize_files(), str(Path(__file__).with_name("sanitize.cfg"))]

    def cpu_seconds(self) -> float:
        """Processor time of the kernel so far; less in the way of other load than the clock is."""
        try:
            times = psutil.Process(self.kernel.km.provisioner.pid).cpu_times()
        except (psutil.Error, AttributeError):  # the kernel has died
            return 0.0
        return times.user + times.system

    def teardown(self):
        super().teardown()
        if self.workplace:
            shutil.rmtree(self.workplace, ignore_errors=True)


def in_ci() -> bool:
    """Whether this is a run where nothing may be left out."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def pytest_addoption(parser):
    parser.addini(
        "notebook_cpu_budget", "processor seconds a notebook may take when all is quiet", default="90"
    )
    parser.addini("chapter_cpu_budget", "the same of a chapter, which all readers run", default="45")


def pytest_configure(config):
    budgets = (float(config.getini(f"{name}_cpu_budget")) for name in ("chapter", "notebook"))
    config.pluginmanager.register(Durations(*budgets), "notebook-durations")
    if FOLDER not in os.environ:  # the first process of the run; workers and nested runs inherit it
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="tformer-alone-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(FOLDER), ignore_errors=True))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    collected = yield
    return [
        BookNotebook.from_parent(parent, path=c.path) if isinstance(c, IPyNbFile) else c for c in collected
    ]


class Durations:
    """Adds up what the cells took, in the process that reports, and shows it for each notebook at the end."""

    def __init__(self, of_chapter: float, of_others: float):
        self.of_chapter, self.of_others = of_chapter, of_others
        self.seconds = defaultdict(float)
        self.cpu = defaultdict(float)

    def pytest_runtest_logreport(self, report):
        properties = dict(report.user_properties)
        if report.when == "call" and "notebook_seconds" in properties:
            notebook = report.nodeid.split("::")[0]
            self.seconds[notebook] += properties["notebook_seconds"]
            self.cpu[notebook] = max(self.cpu[notebook], properties["notebook_cpu"])

    def pytest_terminal_summary(self, terminalreporter):
        if self.seconds:
            terminalreporter.section("notebooks: time on the clock, processor time")
        for notebook, seconds in sorted(self.seconds.items()):
            used = self.cpu[notebook]
            most = self.of_chapter if Path(notebook).stem == "chapter" else self.of_others
            more = f"  (more than the {most:g} s of a quiet machine)" if used > most else ""
            terminalreporter.line(f"{seconds:7.1f} s {used:7.1f} s  {notebook}{more}")
        if self.cpu:
            terminalreporter.line(f"{sum(self.seconds.values()):7.1f} s {sum(self.cpu.values()):7.1f} s  all")
