"""A finished run is kept, so that no script beside this one computes it twice.

Below that stands what several of them do with the numbers.
"""

import hashlib
import json
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from tformer_lib.files import replace_file

BUILD = Path(__file__).resolve().parents[2] / "_build"
Part = str | int | float  # of a key


class Runs:
    """The runs of one script, each in a JSON file of `_build/<folder>/`.

    `runs.keep("page", 0, make=train)` calls `train` the first time; after that it reads what `train`
    returned. The words and numbers before `make` are the run's key. If its file is deleted, the run is made
    again.

    Args:
        folder: under `_build/`, or anywhere if the path is absolute.
    """

    def __init__(self, folder: str | Path):
        self.folder = BUILD / folder
        self.seconds: dict[tuple[Part, ...], float] = {}  # processor time of each run that was asked for

    def path(self, *key: Part) -> Path:
        """The file of a run: the key in plain letters, and a digest that tells like ones apart."""
        words = re.sub(r"[^0-9A-Za-z.]+", "-", " ".join(map(str, key))).strip("-.")[:80]
        digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:8]
        return self.folder / f"{words}-{digest}.json"

    def checkpoint(self, *key: Part) -> Path:
        """A folder for what a run saves on its way."""
        return self.path(*key).with_suffix("")

    def done(self, *key: Part) -> bool:
        """Whether the run is kept."""
        return self.path(*key).exists()

    def get(self, *key: Part) -> Any:
        """The result of a run that is kept, as JSON gives it back: keys are strings, tuples are lists."""
        content = json.loads(self.path(*key).read_text("utf8"))
        self.seconds[key] = content["cpu_seconds"]
        return content["result"]

    def keep(self, *key: Part, make: Callable[[], Any], again: bool = False) -> Any:
        """The result of a run, made now if it is not kept.

        The processor time is kept with it. A run that goes on from its `checkpoint` spends only a part of
        it in this process. If its result says under "seconds" how long all of it took, as `History.seconds`
        does, that counts instead.

        Args:
            key: the run's.
            make: returns the result, something that JSON can hold.
            again: whether to make the run even if it is kept.
        """
        if again or not self.done(*key):
            goes_on = self.checkpoint(*key).exists()
            self.folder.mkdir(parents=True, exist_ok=True)
            start = time.process_time()
            result = make()
            seconds = time.process_time() - start
            found = result if isinstance(result, dict) else {}
            if goes_on:
                seconds = max(seconds, found.get("seconds", 0.0))
            self.put(*key, result=result, seconds=seconds)
            shown = (f"{name} {number:.4g}" for name, number in found.items() if isinstance(number, float))
            print(*key, f"({seconds:.1f} s)", *shown, flush=True)
        return self.get(*key)

    def put(self, *key: Part, result: Any, seconds: float) -> None:
        """Keep a result that is there already, as one from a record is, with the processor time it took."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {"key": key, "cpu_seconds": round(seconds, 1), "result": result}
        replace_file(self.path(*key), json.dumps(content).encode())

    def kept(self) -> dict[tuple[Part, ...], Any]:
        """All results that are kept, by their keys."""
        contents = [json.loads(path.read_text("utf8")) for path in sorted(self.folder.glob("*.json"))]
        return {tuple(content["key"]): content["result"] for content in contents}


def rounded(values: Any, digits: int = 4) -> Any:
    """`values` with every float in it rounded, also inside lists and dictionaries."""
    if isinstance(values, float):
        return round(values, digits)
    if isinstance(values, dict):
        return {name: rounded(value, digits) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [rounded(value, digits) for value in values]
    return values


def means(values: Sequence[float], every: int) -> list[float]:
    """The means of the first `every` values, of the next, and so on."""
    return [fmean(values[i : i + every]) for i in range(0, len(values), every)]


def summary(scores: Sequence[float]) -> dict[str, Any]:
    """Mean, standard deviation and each seed's score."""
    return rounded({"mean": fmean(scores), "sd": stdev(scores), "scores": list(scores)})
