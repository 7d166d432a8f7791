"""Recorded results: what the scripts in `benchmarks/` measured where a notebook would take too long.

Each is a JSON file of this folder, written by the script of the same name. The notebooks draw from it,
say so, and run a reduced form of the same experiment.
"""

import json
import platform
import resource
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tformer_lib.files import replace_file

FOLDER = Path(__file__).parent


def recorded(name: str) -> dict[str, Any]:
    """What `benchmarks/<name>.py` recorded: command, seeds, versions, cpu_seconds, results.

    Raises:
        FileNotFoundError: if there is no such record; the message names those that there are.
    """
    path = FOLDER / f"{name}.json"
    if not path.exists():
        there = ", ".join(sorted(p.stem for p in FOLDER.glob("*.json"))) or "none"
        raise FileNotFoundError(f"there is no record {name!r}; recorded are: {there}")
    return json.loads(path.read_text("utf8"))


def record(
    name: str, results: Any, *, seeds: list[int], cpu_seconds: float | None = None, folder: Path = FOLDER
) -> Path:
    """Write the record of `benchmarks/<name>.py`, in one step, with versions and processor time.

    Args:
        name: of the script, without its ending.
        results: anything that JSON can hold.
        seeds: of the runs.
        cpu_seconds: the processor time; this process's so far if None.
        folder: where to write.
    """
    if cpu_seconds is None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        cpu_seconds = used.ru_utime + used.ru_stime
    content = {
        "command": f"python benchmarks/{name}.py",
        "seeds": seeds,
        "versions": {"python": platform.python_version(), "torch": version("torch")},
        "cpu_seconds": round(cpu_seconds, 1),
        "results": results,
    }
    path = folder / f"{name}.json"
    replace_file(path, (json.dumps(content, indent=1) + "\n").encode())
    return path
