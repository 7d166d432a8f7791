"""`python -m tformer_lib.train` as a new user runs it, on the 38 plays: whole, killed, on two processes.

A run is a folder of text files, a file of settings and one command. Seeds 0 to 2 train without a stop and
are measured on the first 50,000 tokens of the four plays that are held out. With seed 0 the same command is
then run in a new folder, killed by SIGKILL at about steps 60 and 110, and given again each time; and once
more under torchrun on two processes, killed at about step 90. The weights are compared with those of the run
that was never stopped. Three minutes of processor time.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import torch

from tformer_book.kit.data.text import shakespeare_plays
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs
from tformer_lib.runs.log import read_log
from tformer_lib.runs.settings import Settings
from tformer_lib.runs.steps import trained
from tformer_lib.training import count_parameters

SEEDS, STEPS = (0, 1, 2), 150
SETTINGS = {
    "tokenizer": {"vocab_size": 1024},
    "train": {"steps": STEPS, "checkpoint_every": 25},
    "evaluate": {"tokens": 50_000},
}
TWO = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


def command(folder: Path, out: str, *, seed: int = 0, step: str = "all", two: bool = False) -> list[str]:
    """What the user types."""
    options = [step, "--config=settings.yaml", "--data.folder=plays", f"--out={out}", f"--train.seed={seed}"]
    return [sys.executable, *(TWO if two else []), "-m", "tformer_lib.train", *options]


def run(folder: Path, ask: list[str], out: str, kill_at: int | None = None) -> int | None:
    """Run it to its end, or kill it when its log has reached a step; returns the last step in the log."""
    log = folder / out / "log.csv"
    with open(folder / f"{out}.txt", "a") as heard:
        process = subprocess.Popen(ask, cwd=folder, stdout=heard, stderr=heard, env={**os.environ})
        while process.poll() is None:
            time.sleep(0.2)
            rows = read_log(log) if kill_at else []
            if rows and kill_at and rows[-1]["step"] >= kill_at:
                for each in [*psutil.Process(process.pid).children(recursive=True), process]:
                    each.kill()
                process.wait()
                return int(read_log(log)[-1]["step"])
    if process.returncode:
        raise RuntimeError((folder / f"{out}.txt").read_text()[-2000:])
    return None


def weights(folder: Path, out: str) -> dict[str, torch.Tensor]:
    """The trained model's tensors."""
    return trained(Settings(out=str(folder / out)))[0].state_dict()


def whole(folder: Path, seed: int) -> dict[str, Any]:
    """A run that is not stopped, and its score."""
    out = f"whole-{seed}"
    run(folder, command(folder, out, seed=seed), out)
    network, shards = trained(Settings(out=str(folder / out)))
    end = read_log(folder / out / "log.csv")[-1]
    score = json.loads((folder / out / "held_out.json").read_text())
    sample = json.loads((folder / out / "samples.json").read_text())[0]
    parts = {
        split: {k: shards.index[split][k] for k in ("documents", "characters", "tokens")}
        for split in ("train", "held_out")
    }
    return {
        "score": score,
        "parts": parts,
        "parameters": count_parameters(network),
        "loss": end["loss"],
        "predicted": int(end["tokens"]),
        "seconds": end["processor_seconds"],
        "sample": sample[:300],
    }


def stopped(folder: Path, out: str, kills: tuple[int, ...], two: bool) -> dict[str, Any]:
    """A run that is killed at each of these steps, and gone on with, against the one that is not."""
    ask = command(folder, out, step="train", two=two)
    tokens = [*command(folder, out, step="tokenise")]
    run(folder, tokens, out)
    at = [run(folder, ask, out, kill) for kill in kills]
    run(folder, ask, out)
    mine, other = weights(folder, out), weights(folder, "whole-0")
    losses = [[row["loss"] for row in read_log(folder / name / "log.csv")] for name in (out, "whole-0")]
    said = (folder / f"{out}.txt").read_text().splitlines()
    return {
        "killed_at": at,
        "went_on_after": [int(line.split()[-1]) for line in said if line.startswith("going on after")],
        "same": all(torch.equal(mine[name], other[name]) for name in other),
        "largest_difference": max(float((mine[name] - other[name]).abs().max()) for name in other),
        "loss_difference": max(abs(a - b) for a, b in zip(*losses, strict=True)),
        "seconds": read_log(folder / out / "log.csv")[-1]["processor_seconds"],
    }


def main() -> None:
    """Runs what has not been run yet, and records it."""
    runs = Runs("scale_recipe")
    folder = runs.checkpoint("files")
    (folder / "plays").mkdir(parents=True, exist_ok=True)
    for title, text in shakespeare_plays().items():
        (folder / "plays" / f"{title}.txt").write_text(text, "utf8")
    (folder / "settings.yaml").write_text(json.dumps(SETTINGS), "utf8")
    found = {
        "whole": [runs.keep("whole", seed, make=lambda seed=seed: whole(folder, seed)) for seed in SEEDS],
        "killed": runs.keep("killed", make=lambda: stopped(folder, "killed", (60, 110), False)),
        "two": runs.keep("two", make=lambda: stopped(folder, "two", (90,), True)),
        "steps": STEPS,
    }
    for each in found["whole"]:
        each["score"] = {name: round(value, 4) for name, value in each["score"].items()}
        each["sample"] = each["sample"].splitlines()[:8]
    spent = sum(run["seconds"] for run in (*found["whole"], found["killed"], found["two"]))
    print(record("scale_recipe", found, seeds=list(SEEDS), cpu_seconds=spent))


if __name__ == "__main__":
    main()
