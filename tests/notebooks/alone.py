"""The kernel in which the notebooks are tested: an environment that has only what a reader's has.

It holds the two wheels built from this tree, the packages that they declare, and ipykernel's; nothing else
of the test environment, and not the checkout. Everything but the wheels is linked,
so that it takes seconds and no network. One environment serves all processes of a test run.
"""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable
from email.parser import HeaderParser
from importlib.metadata import Distribution, distributions
from pathlib import Path

from filelock import FileLock
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

KERNEL = "tformer-alone"
THREADS = os.environ.get("TFORMER_THREADS", "1")  # tools/portable.py asks for more
# Threads and hash seed are fixed, so that a run can be repeated; nothing of the caller's Python settings.
ENVIRONMENT = {
    "OMP_NUM_THREADS": THREADS,
    "MKL_NUM_THREADS": THREADS,
    "PYTHONHASHSEED": "0",
    "PYTHONNOUSERSITE": "1",
    "PYTHONPATH": "",
}
HISTORY = "--HistoryManager.hist_file=:memory:"
PARTS = ("pyproject.toml", "README.md", "LICENSE", "tformer_lib", "book")


def prepare(folder: Path, tree: Path) -> Path:
    """Makes the environment and its kernel in `folder`, once; returns the Jupyter data folder."""
    jupyter, done = folder / "jupyter", folder / "done"
    with FileLock(folder / "lock"):
        if not done.exists():
            python, site = _empty_environment(folder / "env")
            needs = {"ipykernel"}
            for wheel in build_wheels(tree, folder / "wheels"):
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(site)
                    metadata = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
                    asked = HeaderParser().parsestr(archive.read(metadata).decode()).get_all("Requires-Dist")
                    needs.update(asked or [])
            link(closure(needs) - {"tformer-lib", "tformer-book"}, site)
            _write_kernelspec(jupyter / "kernels" / KERNEL, python, folder / "ipython")
            done.touch()
    return jupyter


def build_wheels(tree: Path, folder: Path) -> list[Path]:
    """Builds both wheels from a copy, so that no stale build folder gets into them."""
    source = folder / "source"
    source.mkdir(parents=True)
    for part in PARTS:
        if (tree / part).is_dir():
            shutil.copytree(tree / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(tree / part, source / part)
    build = f"from setuptools import build_meta; build_meta.build_wheel({str(folder)!r})"
    for project in (source, source / "book"):
        subprocess.run([sys.executable, "-c", build], cwd=project, check=True, capture_output=True)
    return sorted(folder.glob("*.whl"))


def closure(requirements: Iterable[str], extra: str = "") -> set[str]:
    """The installed distributions that the requirements need, with an extra, and what those need: names."""
    installed = {canonicalize_name(d.metadata["Name"]): d for d in distributions()}
    found: set[str] = set()
    waiting = [(Requirement(text), extra) for text in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        if name not in installed:
            raise ModuleNotFoundError(f"{requirement} is needed and not installed")
        if name in found and not requirement.extras:
            continue
        found.add(name)
        for text in installed[name].requires or []:
            waiting += [(Requirement(text), name) for name in ("", *requirement.extras)]
    return found


def link(names: set[str], site: Path) -> None:
    """Links the files of the named distributions; a folder shared with others is linked in parts."""
    wanted: dict[tuple[str, ...], Path] = {}
    shared: set[tuple[str, ...]] = set()
    for distribution in distributions():
        root = Path(str(distribution.locate_file("")))
        needed = canonicalize_name(distribution.metadata["Name"]) in names
        for parts in _files(distribution):
            if needed:
                wanted[parts] = root
            else:
                shared.update(parts[:i] for i in range(1, len(parts)))
    heads = {}
    for parts, root in wanted.items():
        own = (parts[:i] for i in range(1, len(parts)) if parts[:i] not in shared)
        heads[next(own, parts)] = root
    for parts, root in heads.items():
        target = site.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(root.joinpath(*parts))


def _files(distribution: Distribution) -> Iterable[tuple[str, ...]]:
    """Where each file of a distribution lies in site-packages; scripts and bytecode are left out."""
    for file in distribution.files or []:
        if file.parts[0] not in ("..", "__pycache__"):
            yield file.parts


def _empty_environment(folder: Path) -> tuple[Path, Path]:
    """A virtual environment without pip: its interpreter and its site-packages."""
    builder = venv.EnvBuilder(symlinks=os.name != "nt", with_pip=False)
    builder.create(folder)
    python = Path(builder.ensure_directories(folder).env_exe)
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    answer = subprocess.run([python, "-c", query], check=True, capture_output=True, text=True)
    return python, Path(answer.stdout.strip())


def _write_kernelspec(folder: Path, python: Path, ipython: Path) -> None:
    folder.mkdir(parents=True)
    specification = {
        "argv": [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}", HISTORY],
        "display_name": KERNEL,
        "language": "python",
        "env": {**ENVIRONMENT, "IPYTHONDIR": str(ipython)},
    }
    (folder / "kernel.json").write_text(json.dumps(specification, indent=1), "utf8")
