"""Recorded results: what an experiment measured where a notebook would take too long.

Each is a JSON file, `records/NAME.json` in its chapter's folder, written by the script `experiments/NAME.py`
beside it. The notebooks draw from it, say so, and run a reduced form of the same experiment.
"""

import json
import platform
import re
import resource
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tformer_lib.files import replace_file

BOOK = Path(__file__).parents[1]
NUMBERS = re.compile(r'\[[^\[\]{}"]*\]')


def records() -> dict[str, Path]:
    """Where each record lies, by name."""
    return {path.stem: path for path in sorted(BOOK.glob("*/records/*.json"))}


def laid_out(content: Any) -> str:
    """JSON with an entry a line, but numbers that stand in a row on one."""
    text = json.dumps(content, indent=1)
    return (
        NUMBERS.sub(lambda row: " ".join(row[0].split()).replace("[ ", "[").replace(" ]", "]"), text) + "\n"
    )


def recorded(name: str) -> dict[str, Any]:
    """What `experiments/<name>.py` recorded: command, seeds, versions, cpu_seconds, results.

    Raises:
        FileNotFoundError: if there is no such record; the message names those that there are.
    """
    there = records()
    if name not in there:
        raise FileNotFoundError(f"there is no record {name!r}; recorded are: {', '.join(there) or 'none'}")
    return json.loads(there[name].read_text("utf8"))


def record(
    name: str, results: Any, *, seeds: list[int], cpu_seconds: float | None = None, folder: Path | None = None
) -> Path:
    """Write the record of `experiments/<name>.py`, in one step, with versions and processor time.

    Args:
        name: of the script, without its ending.
        results: anything that JSON can hold.
        seeds: of the runs.
        cpu_seconds: the processor time; this process's so far if None.
        folder: where to write; if None, `records` beside the folder in which the script lies.

    Raises:
        FileNotFoundError: if no folder is given and no chapter has such a script.
    """
    if cpu_seconds is None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        cpu_seconds = used.ru_utime + used.ru_stime
    scripts = list(BOOK.glob(f"*/experiments/{name}.py"))
    if not scripts and folder is None:
        raise FileNotFoundError(f"no chapter has a script experiments/{name}.py whose record this would be")
    module = f"tformer_book.{scripts[0].parts[-3]}.experiments.{name}" if scripts else name
    content = {
        "command": f"python -m {module}",
        "seeds": seeds,
        "versions": {"python": platform.python_version(), "torch": version("torch")},
        "cpu_seconds": round(cpu_seconds, 1),
        "results": results,
    }
    path = (folder or scripts[0].parents[1] / "records") / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, laid_out(content).encode())
    return path
