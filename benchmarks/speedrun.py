"""The two-core speedrun: in how little processor time does a model learn what nanoGPT's recipe learns?

`python benchmarks/speedrun.py [--entry NAME] [--seeds 3] [--shares] [--record] [--add]` trains an entry from
each seed and prints what it needed. The rules:

1. The text is Shakespeare's plays, 34 to train on and 4 held out, in characters. An entry gets the first,
   the number of different characters and a seed, and nothing that was learned before its clock started.
2. The model holds at most 804,096 numbers, all of its tensors counted, and reads at most 64 characters.
   Its logits for a character depend on what stands before it in its window and on nothing else.
3. It wins a seed if its loss is no larger than that of nanoGPT's recipe from the same seed: the mean over
   all held-out text, cut into windows of 64 characters, each beginning where the one before ends.
4. Its time is the processor time of one thread, from before the model is built until it is returned, with
   that of processes it starts. The score is this time over that of the recipe's 2,000 steps, a step's cost
   being measured between the entry's own steps: a busy machine slows both.
5. There are two tables. In "gradients" a model begins with random numbers or constants, and only gradients
   of the loss change them. In "anything" all is allowed, counting the training text too.

An entry is a generator function, to be added to `ENTRIES`: `fast` in `tformer_lib/book/models/speedrun.py`
is one. It yields after each step, where its clock is stopped, and returns its model. If it has no steps, one
`yield` anywhere does.

The recipe's own run takes two minutes a seed and is kept in `_build/speedrun/`. `--shares` takes each of the
changes away that lead to our entry, and adds each of those that it was tried with. To have the ratio as most
laptops would, set ATEN_CPU_CAPABILITY=avx2, MKL_ENABLE_INSTRUCTIONS=AVX2 and ONEDNN_MAX_CPU_ISA=AVX2; each
run notes these variables and what the processor has. `--record` records all that is kept. `--add` counts what
the record in the repository holds as kept, so that only what is new is run.

No record says how our entry's settings were found: seeds 0, 1 and 2 may have been what they were tried on.
So `--first 3` runs three other seeds, which were first run when all settings stood. The held-out plays are
the same ones.
"""

import argparse
import os
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import torch
from recipe import Text, held_out, load, train
from runs import Runs
from torch import Tensor, nn

from tformer_lib.book.models.recipes import BASELINE, BATCH, CONTEXT
from tformer_lib.book.models.speedrun import CHANGES, PLAIN, Run, Settings, counts, fast
from tformer_lib.book.models.speedrun_tried import TRIED
from tformer_lib.book.recorded import record, recorded
from tformer_lib.data.windows import RandomWindows
from tformer_lib.models.language import language_loss
from tformer_lib.training import count_parameters, fit

LIMIT = 804_096  # nanoGPT's, with the 65 characters of tiny Shakespeare
SEEDS, LOOKS = 3, 8
HELD = ("ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")
FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16")  # as Linux calls them
Entry = Callable[[Tensor, int, int], Run]  # of the text, the number of different characters, the seed
ENTRIES: dict[str, tuple[str, Entry]] = {
    "fast": ("gradients", fast),
    "plain": ("gradients", partial(fast, settings=PLAIN)),
    "counts": ("anything", counts),
}


class Result(NamedTuple):
    """What `drive` returns."""

    model: nn.Module
    seconds: float
    steps: int


def clock() -> float:
    """Processor time of this process and of those that it started."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def drive(entry: Entry, text: Tensor, vocab: int, seed: int, between: Callable[[int], None]) -> Result:
    """Run an entry; `between(steps)` is called after each of its steps, and that time is not counted.

    Raises:
        ValueError: if the entry sets more than one thread to work, or returns no model.
    """
    seconds, steps, text = 0.0, 0, text.clone()
    start = clock()
    run = entry(text, vocab, seed)
    while True:
        try:
            next(run)
        except StopIteration as end:
            seconds += clock() - start
            if not isinstance(end.value, nn.Module):
                raise ValueError(f"an entry returns its model, an nn.Module, got {end.value!r}") from None
            return Result(end.value.eval(), seconds, steps)
        seconds, steps = seconds + clock() - start, steps + 1
        if torch.get_num_threads() != 1:
            raise ValueError(f"an entry computes in one thread, and this one in {torch.get_num_threads()}")
        with torch.random.fork_rng():
            between(steps)
        start = clock()


def size(model: nn.Module) -> int:
    """How many numbers all tensors of a model hold.

    Raises:
        ValueError: if there are too many.
    """
    numbers = sum(tensor.numel() for tensor in chain(model.parameters(), model.buffers()))
    if numbers > LIMIT:
        raise ValueError(f"the model holds {numbers:,} numbers, and {LIMIT:,} are allowed")
    return numbers


@torch.no_grad()
def check_reading(model: nn.Module, windows: Tensor) -> None:
    """Raise a ValueError unless the logits are those of what stands before, in this window."""
    rows = windows[:4, :-1]
    logits = model(rows)
    if logits.shape[:2] != rows.shape:
        raise ValueError(f"for tokens {tuple(rows.shape)} the logits are {tuple(logits.shape)}")
    half = rows.shape[1] // 2
    other = torch.cat([rows[:, :half], rows[:, half:].flip(1)], dim=1)
    if not torch.allclose(model(other)[:, :half], logits[:, :half], atol=1e-4):
        raise ValueError("the logits for a character depend on what comes after it")
    if not torch.allclose(model(rows[:1]), logits[:1], atol=1e-4):
        raise ValueError("the logits of a window depend on the windows beside it")


class Pace:
    """What a step of nanoGPT's recipe costs on the machine as it is: `look` makes a few."""

    def __init__(self, text: Text):
        self.text, self.costs = text, []
        self.model = BASELINE.build(text.vocab)

    def look(self, steps: int = 4) -> None:
        """Makes steps and keeps their costs, but for the first, which warms up."""
        ticks: list[float] = []

        def loss(model: nn.Module, batch: Tensor) -> Tensor:
            ticks.append(time.process_time())
            return language_loss(model, batch)

        batches = RandomWindows(self.text.train, batch=BATCH, length=CONTEXT, steps=steps + 2)
        fit(self.model, loss, batches, **BASELINE.options(steps + 2))
        self.costs += [after - before for before, after in pairwise(ticks)][1:]

    def step(self) -> float:
        """Seconds of a step: the mean of the middle half."""
        costs, quarter = sorted(self.costs), len(self.costs) // 4
        return fmean(costs[quarter : len(costs) - quarter])


def machine(about: Path = Path("/proc/cpuinfo")) -> dict[str, Any]:
    """What a run runs on: the variables that hold libraries back, and the processor (None if not Linux)."""
    lines = about.read_text("utf8").splitlines() if about.exists() else []
    found = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    flags = found.get("flags", "").split()
    return {
        "held": {name: os.environ.get(name) for name in HELD},
        "processor": found.get("model name"),
        "has": [flag for flag in FLAGS if flag in flags] if flags else None,
    }


def baseline(text: Text, seed: int) -> dict[str, Any]:
    """nanoGPT's recipe, whole."""
    steps = BASELINE.fit["steps"]
    model, timer = train(BASELINE, text, steps, seed, lambda timer, model: None)
    return {
        "loss": round(held_out(model, text.held), 4),
        "cpu_seconds": round(timer.seconds(), 2),
        "parameters": count_parameters(model),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "machine": machine(),
    }


def measure(entry: Entry, text: Text, seed: int, *, every: int = 30) -> dict[str, Any]:
    """One run of an entry: its loss, its time, and its time over that of nanoGPT's steps."""
    pace = Pace(text)
    pace.look()

    def between(steps: int) -> None:
        if steps % every == 0:
            pace.look()

    done = drive(entry, text.train, text.vocab, seed, between)
    pace.look()
    check_reading(done.model, text.held)
    whole = BASELINE.fit["steps"] * pace.step()
    return {
        "loss": round(held_out(done.model, text.held), 4),
        "ratio": round(done.seconds / whole, 4),
        "cpu_seconds": round(done.seconds, 2),
        "steps": done.steps,
        "baseline_ms": round(1000 * pace.step(), 1),
        "numbers": size(done.model),
        "machine": machine(),
    }


def row(name: str, seed: int, result: dict[str, Any], target: float) -> str:
    """A line of the table."""
    wins = "wins" if result["loss"] <= target else "loses"
    return (
        f"{name:32s} seed {seed}: loss {result['loss']:.4f} ({target:.4f}, {wins}), ratio "
        f"{result['ratio']:.4f}, {result['cpu_seconds']:.1f} CPU-seconds, {result['numbers']:,} numbers"
    )


def restore(kept: Runs) -> None:
    """Keep what is recorded and not kept, the goals among it."""
    results = recorded("speedrun")["results"]
    runs = {("baseline", line["seed"]): line for line in results["baseline"]}
    for kind, name in (("entry", "entries"), ("share", "shares"), ("tried", "tried")):
        runs |= {(kind, run["name"], run["instructions"], run["seed"]): run for run in results[name]}
    about = {"name", "instructions", "seed", "target", "table"}
    for key, line in runs.items():
        if not kept.done(*key):
            own = about if key[0] != "baseline" else {"seed"}
            result = {name: value for name, value in line.items() if name not in own}
            kept.put(*key, result=result, seconds=line["cpu_seconds"])


def gather(kept: Runs) -> None:
    """Record all that is kept."""
    found = kept.kept()
    bases = {key[1]: result for key, result in found.items() if key[0] == "baseline"}
    tables: dict[str, list[dict[str, Any]]] = {"entry": [], "share": [], "tried": []}
    for (kind, *key), result in sorted(found.items(), key=lambda item: str(item[0])):
        if kind in tables:
            name, instructions, seed = key
            about = {"name": name, "instructions": instructions, "seed": seed, "target": bases[seed]["loss"]}
            tables[kind].append(about | result)
    for line in tables["entry"]:
        line["table"] = ENTRIES[line["name"]][0]
    results = {
        "limit": LIMIT,
        "context": CONTEXT,
        "baseline": [{"seed": seed, **result} for seed, result in sorted(bases.items())],
        "entries": tables["entry"],
        "shares": tables["share"],
        "tried": tables["tried"],
    }
    spent = sum(line["cpu_seconds"] for line in (*results["baseline"], *chain(*tables.values())))
    record("speedrun", results, seeds=sorted(bases), cpu_seconds=spent)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entry", default="fast", choices=ENTRIES, help="which one")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--shares", action="store_true", help="our entry without each of its changes")
    parser.add_argument("--record", action="store_true", help="record all that is kept")
    parser.add_argument("--add", action="store_true", help="run only what the record does not hold")
    options = parser.parse_args()
    torch.set_num_threads(1)
    kept, text, instructions = Runs("speedrun"), load(None), torch.backends.cpu.get_cpu_capability()
    if options.add:
        restore(kept)
    for seed in range(options.first, options.first + options.seeds):
        target = kept.keep("baseline", seed, make=partial(baseline, text, seed))["loss"]
        runs = {("entry", options.entry): ENTRIES[options.entry][1]}
        if options.shares:
            without = {name: replace(Settings(), **fields) for name, fields in CHANGES.items()}
            runs |= {("share", name): partial(fast, settings=each) for name, each in without.items()}
            runs |= {("tried", name): partial(fast, **how) for name, how in TRIED.items()}
        for (kind, name), entry in runs.items():
            make = partial(measure, entry, text, seed)
            print(row(name, seed, kept.keep(kind, name, instructions, seed, make=make), target), flush=True)
    if options.record:
        gather(kept)


if __name__ == "__main__":
    main()
