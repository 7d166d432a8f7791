"""Runs notebooks as Colab would: `python tools/colab.py --python python3.12 [attention/chapter ...]`.

It makes an environment with the newest torch and numpy and nothing else of the book's, takes the notebooks
that readers open (`make notebooks` writes them) and runs each from its first cell. That cell finds the book
missing and installs it, with the very commands that it has for Colab; git is told to take this checkout for
the repository that they name, so that what is tested is the commit at hand. Without names the notebooks of
the chapter on attention are run: a chapter and, where there are such, its laboratory and its exercises.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import yaml
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "_build" / "html" / "notebooks" / "book"
SAMPLE = "attention"
OLDEST = (3, 12)
GIVEN = ("torch", "numpy", "ipykernel")  # what Colab has that matters here, and what a kernel needs
CELL_TIMEOUT = 3600  # seconds: it ends what hangs


def version_of(python: str) -> tuple[int, int]:
    """Major and minor version of an interpreter.

    Raises:
        SystemExit: if there is none of this name, or it is older than Colab's.
    """
    try:
        told = subprocess.run(
            [python, "-c", "import sys; print(*sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit(f"There is no Python at {python}.") from None
    major, minor = map(int, told.stdout.split())
    if (major, minor) < OLDEST:
        raise SystemExit(
            f"Colab has Python {'.'.join(map(str, OLDEST))} or newer; {python} is {major}.{minor}."
        )
    return major, minor


def named(names: list[str], folder: Path = NOTEBOOKS) -> list[Path]:
    """The files of notebooks ("attention/chapter"); without names those of the sample.

    Raises:
        SystemExit: if one is not there.
    """
    files = [folder / f"{name.removesuffix('.ipynb')}.ipynb" for name in names]
    files = files or sorted((folder / SAMPLE).glob("*.ipynb"))
    missing = [str(file.relative_to(folder)) for file in files if not file.exists()]
    if missing or not files:
        raise SystemExit(
            f"There is no {', '.join(missing) or SAMPLE} in {folder}: run `make notebooks` first."
        )
    return files


def redirected(environment: dict[str, str], repository: str, checkout: Path = ROOT) -> dict[str, str]:
    """The environment in which git takes the checkout for the repository."""
    count = int(environment.get("GIT_CONFIG_COUNT", "0"))
    told = {f"url.{checkout.as_uri()}.insteadOf": repository, "safe.directory": "*"}
    made = dict(environment)
    for place, (key, value) in enumerate(told.items(), start=count):
        made |= {f"GIT_CONFIG_KEY_{place}": key, f"GIT_CONFIG_VALUE_{place}": value}
    return made | {"GIT_CONFIG_COUNT": str(count + len(told))}


def make(python: str, folder: Path) -> Path:
    """A fresh environment with what Colab has; its interpreter."""
    subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
    inside = folder / "bin" / "python"
    command = [inside, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--upgrade", *GIVEN]
    subprocess.run(command, check=True)
    return inside


def run(python: Path, file: Path, environment: dict[str, str]) -> None:
    """Runs a notebook with this interpreter; errors are nbclient's."""
    notebook = nbformat.read(file, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    manager = KernelManager(kernel_name="python3")
    manager.kernel_spec.argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager.kernel_spec.env = {}
    with tempfile.TemporaryDirectory(prefix="colab-") as folder:
        client = NotebookClient(
            notebook, km=manager, timeout=CELL_TIMEOUT, resources={"metadata": {"path": folder}}
        )
        client.execute(env=environment)


def main(arguments: list[str] | None = None) -> int:
    """Makes the environment and runs the notebooks; 1 if any of them failed."""
    parser = argparse.ArgumentParser(description="Run notebooks in an environment like Colab's.")
    parser.add_argument(
        "notebooks", nargs="*", help="such as attention/chapter; all of attention if none is named"
    )
    parser.add_argument("--python", required=True, help="an interpreter as new as Colab's")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "_build" / "colab", help="where the environment is made"
    )
    options = parser.parse_args(arguments)
    files = named(options.notebooks)
    version_of(options.python)
    repository = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["repository"]["url"]
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    python = make(options.python, options.folder)
    failed = 0
    for file in files:
        release = json.loads(file.read_text("utf8"))["metadata"]["tformer"]["release"]
        started = time.time()
        try:
            run(python, file, redirected(clean, repository))
            said = "ran"
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            failed += 1
            said = "FAILED"
            print(error, file=sys.stderr)
        print(
            f"{file.parent.name}/{file.stem} at {release}: {said} in {time.time() - started:.0f} s",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
