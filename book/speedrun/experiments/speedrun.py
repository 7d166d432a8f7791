"""The two-core speedrun: in how little processor time does a model learn what nanoGPT's recipe learns?

`python speedrun.py [--entry NAME] [--file FILE]` trains an entry from three seeds and prints what
it needed. The rules:

1. The text is Shakespeare's plays, 34 to train on and 4 held out, in characters. An entry gets the first,
   the number of different characters and a seed, and nothing that was learned before its clock started.
2. An entry is a file of at most 24,000 bytes whose dictionary ENTRIES has an object with two methods:
   `build(vocab)` makes a module, and `train(text, vocab, seed)` returns the tensors that it is to load. What
   counts as the model is what another process builds and loads them into. The tensors hold at most 804,096
   numbers of 32 bits; one of 64 bits counts twice.
3. The model reads windows of 64 characters. Its logits for a character depend on what stands before it in its
   window and on nothing else: not on what comes after, nor on windows beside it or read earlier.
4. It wins a seed if its mean loss over all held-out text, cut into windows of 64, is no larger than the
   smallest that nanoGPT's recipe reached in all of its recorded runs.
5. Its time is processor time of all that it starts, taken from outside: for training, from before its file is
   run until its process has ended; then for a first answer, from before the file is run in a fresh process
   until 64 windows are answered; and what it takes to answer all windows, as far as that is more than
   nanoGPT's model takes. The score is this time over that of 2,000 steps of nanoGPT's recipe, which are
   timed at the same time on the same core.
6. The referee draws a number once the file is there. The seeds come from both.
7. There are two tables. In "gradients" a model begins with random numbers or constants, and only gradients
   of the loss change them. In "anything" all is allowed, counting the training text too.

How they are held. The entry never runs in the referee's process, nor in the yardstick's. It runs on one core
and cannot write files. A second of the processes that answer reads all windows in an order that the referee
draws, and among them windows whose ends were exchanged from a random place on; their logits up to there must
be the same. So must be those of the process that gave the first answers.

On trust, for somebody to read in the file: that it reads no other file, the held-out plays and kept weights
least of all; that it holds no numbers that were learned; that only gradients were used, in that table; that
it does not undo limits, as an administrator's process can. Elsewhere than on Linux processes are not held to
one core, and one that outlives its parent is not counted.

`--shares` takes each of the changes away that lead to our entry, and adds each of those that it was tried
with. These are no contest: they run in one process, from seeds 0, 1 and 2, as `fast` does beside them.
`--again N` measures the first seed N more times. To have the ratio as most laptops would, set
ATEN_CPU_CAPABILITY=avx2, MKL_ENABLE_INSTRUCTIONS=AVX2 and ONEDNN_MAX_CPU_ISA=AVX2; each run notes these
variables and what the processor has. Finished runs are kept in `_build/speedrun/`, and so is the draw. What
nanoGPT's recipe reached is read from the record; `--baseline SEED` trains it again, in two minutes.
`--record` records all that is kept for the file as it is.
"""

import argparse
import contextlib
import hashlib
import math
import os
import secrets
import signal
import subprocess
import sys
import time
from functools import partial
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tformer_book.kit.models.recipes import CONTEXT
from tformer_book.kit.records import record, recorded
from tformer_book.kit.runs import Runs
from tformer_book.modern_decoder.experiments.recipe import Text, held_out, load
from tformer_book.speedrun.experiments.speedrun_child import receive, send
from tformer_book.speedrun.models import entries as speedrun
from tformer_book.speedrun.models import nanogpt
from tformer_book.speedrun.models import tried as speedrun_tried
from tformer_book.speedrun.models.entries import LIMIT
from tformer_lib.training import count_parameters, seed_everything

SEEDS, LONGEST, BATCH, FIRST = 3, 24_000, 128, 64
CUTS = 4  # batches of windows whose ends are exchanged
CLOSE = 1e-3  # what rounding may change in a logit
HELD = ("ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")
FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16")  # as Linux calls them
OURS = Path(speedrun.__file__)
VARIANTS = {
    "shares": {"fast": speedrun.Fast(), **speedrun.SHARES},
    "tried": speedrun_tried.TRIED,
}


class Where(NamedTuple):
    """An entry: a file, a dictionary in it, and a name in that."""

    file: Path
    table: str
    name: str


def derive(digest: str, draw: int, number: int) -> list[int]:
    """Seeds, from what was submitted and what the referee drew afterwards."""
    words = (f"{digest} {draw} {i}".encode() for i in range(number))
    return [int.from_bytes(hashlib.sha256(word).digest()[:4], "big") for word in words]


def submitted(file: Path) -> str:
    """The digest of a file.

    Raises:
        ValueError: if it is so long that it could hold a model.
    """
    content = file.read_bytes()
    if len(content) > LONGEST:
        raise ValueError(f"the file has {len(content):,} bytes, and {LONGEST:,} are allowed")
    return hashlib.sha256(content).hexdigest()


def a_core() -> int | None:
    """One that this process may use; None where the system does not say."""
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def children() -> set[int]:
    """This process's, as far as Linux tells."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for each in lists for pid in each.read_text().split()}


def adopt() -> None:
    """Makes processes this one's children when their parents end, on Linux."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


class Child:
    """A process of `speedrun_child.py`. `end` says what it and its descendants took since it was ready."""

    def __init__(self, role: str, work: Any, where: Where | None = None):
        adopt()
        self.others = children()
        core, own = a_core(), Path(__file__).with_name("speedrun_child.py")
        self.process = subprocess.Popen(
            [sys.executable, own, role, "any" if core is None else str(core), *map(str, where or ())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"},
        )
        self.ended: float | None = None
        self.tell(work)
        self.ready = self.hear()

    def tell(self, content: Any) -> None:
        """Sends a message."""
        assert self.process.stdin is not None
        send(self.process.stdin, content)

    def hear(self) -> Any:
        """The next message.

        Raises:
            ValueError: if there is none.
        """
        assert self.process.stdout is not None
        try:
            found = receive(self.process.stdout)
        except EOFError:
            raise ValueError("the entry's process ended without an answer") from None
        if isinstance(found, str):
            raise ValueError(f"the entry failed: {found}")
        return found

    def end(self) -> float:
        """Waits for the end.

        Raises:
            ValueError: if it left a process that still runs.
        """
        if self.ended is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            _, status, usage = os.wait4(self.process.pid, 0)
            self.process.returncode = os.waitstatus_to_exitcode(status)
            self.ended = usage.ru_utime + usage.ru_stime - float(self.ready)
            for pid in children() - self.others:
                ended, _, usage = os.wait4(pid, os.WNOHANG)
                if not ended:
                    raise ValueError("the entry left a process that still runs")
                self.ended += usage.ru_utime + usage.ru_stime
        return self.ended

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()
        for pid in children() - self.others:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]


def checked(found: Any) -> dict[str, Tensor]:
    """Copies of the tensors that an entry sent, and of nothing else.

    Raises:
        ValueError: if they are none, or hold too many numbers.
    """
    if not isinstance(found, dict) or not all(
        isinstance(name, str) and isinstance(each, Tensor) and each.layout is torch.strided
        for name, each in found.items()
    ):
        raise ValueError("`train` returns a dictionary of names and dense tensors")
    numbers = size(found)
    if numbers > LIMIT:
        raise ValueError(f"the model holds {numbers:,} numbers, and {LIMIT:,} are allowed")
    return {name: each.detach().clone() for name, each in found.items()}


def size(tensors: dict[str, Tensor]) -> int:
    """How many numbers of 32 bits tensors hold; the letters of their names count too, four as one."""
    held = sum(math.ceil(each.numel() * each.element_size() / 4) for each in tensors.values())
    return held + max(0, len("".join(tensors)) - 1000) // 4


def ask(child: Child, tokens: Tensor, vocab: int) -> Tensor:
    """The logits for windows.

    Raises:
        ValueError: if they have another shape or are not finite.
    """
    child.tell(tokens)
    logits = child.hear()
    if logits.shape != (*tokens.shape, vocab) or not logits.isfinite().all():
        raise ValueError(
            f"for tokens {tuple(tokens.shape)} the logits are {tuple(logits.shape)}, or not finite"
        )
    return logits.float()


def exchange(windows: Tensor, number: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Windows whose ends are those of others, from a random place on; which they are, and the places.

    The other one is, where there is such, one that has the same character in front of that place and another
    behind it: something changes, and no pair of neighbours tells that they do not belong together.
    """
    which = torch.randint(len(windows), (number,), generator=generator)
    places = torch.randint(1, windows.shape[1], (number,), generator=generator)
    mixed = windows[which].clone()
    for row, place in zip(mixed, places.tolist(), strict=True):
        some = windows[torch.randperm(len(windows), generator=generator)[:256]]
        same, differs = some[:, place - 1] == row[place - 1], some[:, place] != row[place]
        row[place:] = some[(2 * same + differs).argmax(), place:]
    return mixed, which, places


class Answers(NamedTuple):
    """What `examine` finds."""

    loss: float
    first: float  # seconds to a first answer
    all: float  # seconds to all of them
    windows: int  # that were read for it


def examine(
    where: Where, tensors: dict[str, Tensor], held: Tensor, vocab: int, generator: torch.Generator
) -> Answers:
    """Loss and time of what another process builds and loads the tensors into.

    Raises:
        ValueError: if its logits depend on what they must not depend on.
    """
    windows = held[:, :-1].contiguous()
    some = torch.randperm(len(windows), generator=generator)[:FIRST]
    with Child("answer", (tensors, vocab), where) as child:
        child.tell("go")
        early = ask(child, windows[some], vocab)
        first = child.end()
    mixed, which, places = exchange(windows, CUTS * BATCH, generator)
    rows = torch.cat([windows, mixed])
    logits = torch.empty(*rows.shape, vocab)
    with Child("answer", (tensors, vocab), where) as child:
        child.tell("go")
        for order in torch.randperm(len(rows), generator=generator).split(BATCH):
            logits[order] = ask(child, rows[order], vocab)
        seconds = child.end()
    logits, others = logits[: len(windows)], logits[len(windows) :]
    if not torch.allclose(early, logits[some], rtol=0, atol=CLOSE):
        raise ValueError("the logits of a window depend on the windows beside it, or on those read before")
    before = torch.arange(windows.shape[1]) < places[:, None]
    if ((others - logits[which]).abs().amax(-1) > CLOSE)[before].any():
        raise ValueError("the logits for a character depend on what comes after it")
    loss = F.cross_entropy(logits.flatten(0, 1), held[:, 1:].flatten()).item()
    return Answers(loss, first, seconds, len(rows))


def measure(where: Where, text: Text, seed: int) -> dict[str, Any]:
    """One run of an entry: its loss, its time, and its time over that of nanoGPT's steps."""
    submitted(where.file)
    windows = text.held[:BATCH].contiguous()
    with (
        Child("pace", (text.train, text.vocab, windows)) as pace,
        Child("train", (text.train, text.vocab, seed), where) as child,
    ):
        pace.tell("go")
        child.tell("go")
        tensors = checked(child.hear())
        training = child.end()
        pace.tell("stop")
        cost = pace.hear()
    generator = torch.Generator().manual_seed(secrets.randbits(32))
    answers = examine(where, tensors, text.held, text.vocab, generator)
    return {
        "loss": round(answers.loss, 4),
        **score(training, answers, cost),
        "numbers": size(tensors),
        "machine": machine(),
    }


def beside(entry: speedrun.Fast, text: Text, seed: int) -> dict[str, float]:
    """A variant of our entry in this process, to be compared with `fast` itself, which is run likewise."""
    start = time.process_time()
    tensors = entry.train(text.train, text.vocab, seed)
    seconds, model = time.process_time() - start, entry.build(text.vocab)
    model.load_state_dict(tensors)
    return {"loss": round(held_out(model, text.held), 4), "cpu_seconds": round(seconds, 2)}


def score(training: float, answers: Answers, cost: dict[str, float]) -> dict[str, float]:
    """What counts of the time, in seconds, and its share of nanoGPT's 2,000 steps."""
    beyond = max(0.0, answers.all - answers.windows * cost["window"])
    seconds = training + answers.first + beyond
    return {
        "ratio": round(seconds / (nanogpt.STEPS * cost["step"]), 4),
        "cpu_seconds": round(seconds, 2),
        "first_answer": round(answers.first, 2),
        "beyond": round(beyond, 2),
        "baseline_ms": round(1000 * cost["step"], 1),
        "baseline_steps": cost["steps"],
    }


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
    seed_everything(seed)
    start = time.process_time()
    model = nanogpt.NanoGPT(text.vocab)
    for _ in nanogpt.steps(model, nanogpt.batches(text.train, seed)):
        pass
    return {
        "loss": round(held_out(model, text.held), 4),
        "cpu_seconds": round(time.process_time() - start, 2),
        "numbers": count_parameters(model),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "machine": machine(),
    }


def row(name: str, seed: int, result: dict[str, Any], goal: float) -> str:
    """A line of the table."""
    wins = "wins" if result["loss"] <= goal else "loses"
    return (
        f"{name:40s} seed {seed}: loss {result['loss']:.4f} ({goal:.4f}, {wins}), ratio "
        f"{result['ratio']:.4f}, {result['cpu_seconds']:.1f} CPU-seconds, {result['numbers']:,} numbers"
    )


def baselines(kept: Runs) -> list[dict[str, Any]]:
    """The recipe's runs: those that are recorded, by this loop or by the library's `fit`, and those kept."""
    lines = {(line["loop"], line["seed"]): line for line in recorded("speedrun")["results"]["baseline"]}
    for (kind, *key), result in kept.kept().items():
        if kind == "baseline":
            lines["plain", key[0]] = {"loop": "plain", "seed": key[0]} | result
    return [lines[key] for key in sorted(lines)]


def variants(kind: str, kept: Runs) -> list[dict[str, Any]]:
    """Those of our entry, as recorded or as kept: the loss, and the time as a share of the entry's own."""
    found = {key: result for key, result in kept.kept().items() if key[0] in VARIANTS}
    own = {key[3]: run["cpu_seconds"] for key, run in found.items() if key[:2] == ("shares", "fast")}
    lines = {(line["name"], line["seed"]): line for line in recorded("speedrun")["results"][kind]}
    for (of, name, _, seed), run in found.items():
        if of == kind:
            time_ = round(run["cpu_seconds"] / own[seed], 3)
            lines[name, seed] = {"name": name, "seed": seed, "loss": run["loss"], "time": time_}
    return [lines[key] for key in sorted(lines)]


def gather(kept: Runs) -> None:
    """Record what is kept for our entries as they are."""
    found, digest = kept.kept(), submitted(OURS)
    draw = found["draw", digest]
    seeds, base = derive(digest, draw, SEEDS), baselines(kept)
    tables: dict[str, list[dict[str, Any]]] = {"entry": [], "again": []}
    for (kind, *key), result in sorted(found.items(), key=lambda item: str(item[0])):
        if kind in tables and key[2] in seeds:
            about = dict(zip(("name", "instructions", "seed", "at"), key, strict=False))
            table = "anything" if key[0] == "counts" else "gradients"
            tables[kind].append(about | {"table": table} | result)
    results = {
        "limit": LIMIT,
        "context": CONTEXT,
        "drawn": {"submitted": digest, "draw": draw, "seeds": seeds},
        "goal": min(line["loss"] for line in base),
        "baseline": base,
        "entries": tables["entry"],
        "again": tables["again"],
        **{kind: variants(kind, kept) for kind in VARIANTS},
    }
    spent = sum(line["cpu_seconds"] for line in chain(base, *tables.values()))
    record("speedrun", results, seeds=seeds, cpu_seconds=spent)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--file", type=Path, default=OURS, help="where the entry is; ours if none")
    parser.add_argument("--entry", default="fast", help="which one of the file's")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many")
    parser.add_argument("--baseline", type=int, nargs="*", default=[], help="seeds of nanoGPT's recipe")
    parser.add_argument("--again", type=int, default=0, help="how often to measure the first seed again")
    parser.add_argument("--shares", action="store_true", help="our entry without each of its changes")
    parser.add_argument("--record", action="store_true", help="record all that is kept")
    options = parser.parse_args()
    torch.set_num_threads(1)
    kept, text, instructions = Runs("speedrun"), load(None), torch.backends.cpu.get_cpu_capability()
    for seed in options.baseline:
        kept.keep("baseline", seed, make=partial(baseline, text, seed))
    goal = min(line["loss"] for line in baselines(kept))
    digest = submitted(options.file)
    draw = kept.keep("draw", digest, make=lambda: secrets.randbits(32))
    for seed in derive(digest, draw, options.seeds):
        runs = {("entry", options.entry): Where(options.file, "ENTRIES", options.entry)}
        for (kind, name), where in runs.items():
            make = partial(measure, where, text, seed)
            print(row(name, seed, kept.keep(kind, name, instructions, seed, make=make), goal), flush=True)
    for seed in range(options.seeds) if options.shares else ():
        for kind, entries in VARIANTS.items():
            for name, entry in entries.items():
                kept.keep(kind, name, instructions, seed, make=partial(beside, entry, text, seed))
    (seed,) = derive(digest, draw, 1)
    where = Where(options.file, "ENTRIES", options.entry)
    for i in range(options.again):
        make = partial(measure, where, text, seed)
        found = kept.keep("again", options.entry, instructions, seed, time.strftime("%H:%M:%S"), make=make)
        print(row(f"{options.entry}, again {i}", seed, found, goal), flush=True)
    if options.record:
        gather(kept)


if __name__ == "__main__":
    main()
