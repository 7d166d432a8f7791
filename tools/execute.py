"""Runs notebooks in order in fresh kernels and saves their outputs: `python tools/execute.py [notebook ...]`.

Without names all of the book are run. Each kernel works in an empty folder, with one thread and a fixed
hash seed, as in the tests. What is saved depends on the run's results alone: no time stamps, no widget state,
no version of the kernel; cell ids stay. A second run without a change therefore leaves the files as they
were. A notebook that fails keeps its file; the error is shown with the cell.

Measured times are the exception, since no two runs agree on them. A cell whose picture, claim or text shows
one carries the tag `timing`: it keeps its committed outputs as long as nothing it depends on has changed (its
own code, the code above it, that of notebooks from which names are taken, tformer_lib, the versions of torch
and matplotlib; their digest stands in the cell's metadata as `tformer.ran`), provided that the new run agrees
with them: the same number and kinds of outputs, claims equal but for the value (which the new run held in its
band), figures of the same size and coarse structure. Otherwise the new outputs are saved.
"""

import argparse
import hashlib
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import nbformat
from chapters import notebooks
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from notebook_claims import CLAIM
from notebook_code import read_cells, taken_by
from notebook_figures import COARSE, figure_problem, png_outputs

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
CELL_TIMEOUT = 3600  # seconds: it ends what hangs, and no machine that is merely slow
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}


def execute(path: Path) -> None:
    """Runs one notebook and replaces its file, at once and only if every cell ran."""
    committed = nbformat.read(path, as_version=4)
    fresh = nbformat.from_dict(committed)
    for cell in code_cells(fresh):
        cell.outputs, cell.execution_count = [], None
    with tempfile.TemporaryDirectory(prefix="notebook-") as folder:
        client = NotebookClient(
            fresh,
            timeout=CELL_TIMEOUT,
            kernel_name="python3",
            coalesce_streams=True,
            record_timing=False,
            store_widget_state=False,
            extra_arguments=["--log-level=ERROR"],
        )
        client.execute(cwd=folder, env={**os.environ, **ENVIRONMENT})
    normalise(fresh)
    keep_timings(committed, fresh, path)
    nbformat.validate(fresh)
    write(path, nbformat.writes(fresh, indent=1) + "\n")


def code_cells(notebook: NotebookNode) -> Iterator[NotebookNode]:
    """The cells that run."""
    return (cell for cell in notebook.cells if cell.cell_type == "code")


def normalise(notebook: NotebookNode) -> None:
    """Takes out what a run leaves behind beside its results."""
    notebook.metadata.kernelspec = NotebookNode(KERNELSPEC)
    notebook.metadata.language_info = NotebookNode(name="python")
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        for key in ("execution", "ExecuteTime", "collapsed", "scrolled"):
            cell.metadata.pop(key, None)


def keep_timings(committed: NotebookNode, fresh: NotebookNode, path: Path) -> None:
    """Puts the committed outputs of `timing` cells back where nothing changed and the new ones agree."""
    digest = hashlib.sha256(surroundings())
    for other in sorted(taken_by(path)):
        for cell in read_cells(other):
            if cell["cell_type"] == "code":
                digest.update(b"\0" + "".join(cell["source"]).encode())
    for old, new in zip(code_cells(committed), code_cells(fresh), strict=True):
        digest.update(b"\0" + new.source.encode())
        if "timing" not in new.metadata.get("tags", []):
            new.metadata.pop("tformer", None)
            continue
        ran = digest.hexdigest()[:16]
        if old.metadata.get("tformer", {}).get("ran") == ran and agree(old.outputs, new.outputs):
            new.outputs = old.outputs
            for output in new.outputs:
                if "execution_count" in output:
                    output.execution_count = new.execution_count
        new.metadata["tformer"] = NotebookNode(ran=ran)


def surroundings() -> bytes:
    """What a cell's outputs depend on outside the notebook."""
    sources = sorted([*(ROOT / "tformer_lib").rglob("*.py"), *(ROOT / "book").rglob("*.py")])
    parts = [version("torch"), version("matplotlib"), *(s.read_text("utf8") for s in sources)]
    return "\0".join(parts).encode()


def agree(old: list[NotebookNode], new: list[NotebookNode]) -> bool:
    """Whether two lists of outputs say the same but for measured times."""
    if [_kind(output) for output in old] != [_kind(output) for output in new]:
        return False
    pairs = zip(png_outputs(old), png_outputs(new), strict=True)
    return not any(figure_problem(a, b, coarse=COARSE) for a, b in pairs)


def _kind(output: NotebookNode) -> tuple:
    """What kind of output it is; a claim with everything but its value."""
    data = output.get("data", {})
    claim = {key: value for key, value in data.get(CLAIM, {}).items() if key != "value"}
    return output.output_type, output.get("name"), sorted(data), sorted(claim.items())


def write(path: Path, text: str) -> None:
    """Replaces a file in one step."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-")
    with os.fdopen(handle, "w", encoding="utf8", newline="\n") as file:
        file.write(text)
    Path(name).chmod(path.stat().st_mode)
    Path(name).replace(path)


def main(arguments: list[str] | None = None) -> int:
    """Runs the notebooks; 1 if any of them failed."""
    parser = argparse.ArgumentParser(description="Run notebooks and save their outputs.")
    parser.add_argument("notebooks", nargs="*", type=Path, help="all of the book if none is named")
    failed = 0
    for path in parser.parse_args(arguments).notebooks or notebooks():
        clock, processor = time.perf_counter(), _children()
        try:
            execute(path)
            result = "saved"
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            failed += 1
            result = "FAILED, left as it was"
            print(error, file=sys.stderr)
        times = f"{time.perf_counter() - clock:7.1f} s {_children() - processor:7.1f} s of processor time"
        print(f"{times}  {path}: {result}", flush=True)
    return 1 if failed else 0


def _children() -> float:
    """Processor seconds of the kernels that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
