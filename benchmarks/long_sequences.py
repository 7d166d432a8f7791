"""Attention for long sequences: what each backend costs, and what it can no longer recall.

Three parts. *Cost*: forward and backward pass of one head of width 64 for N = 256 to 16,384: process time
(the best of several), the bytes that tensors hold at the peak, counted, and how far the memory of a fresh
process grows. *Crossing*: the forward pass of attention beside that of the MLP of the same block. *Recall*:
one block or two, 64 wide, learn to say which value stood beside a key (`tformer_lib.book.datasets.recall`),
with 8 to 64 pairs a sequence; accuracy by the number of pairs and by the distance.

Each result is kept in `_build/long_sequences`, so that the script may be stopped and begun again; delete the
folder to measure afresh. About twelve minutes in all; `--part cost` and so on measures one part, and the
record is written when all is there. Times are the machine's; the chapter asserts powers of N only.
"""

import argparse
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from runs import Runs, rounded
from torch import nn

from tformer_lib.book.datasets.recall import associative_recall, recall_batches
from tformer_lib.book.models.recall import RecallModel, recall_accuracy, recall_by_distance, recall_loss
from tformer_lib.book.recorded import record
from tformer_lib.core.attention import Attend, FusedAttend
from tformer_lib.core.transformer import MLP, TransformerConfig
from tformer_lib.efficient.linear import LinearAttend
from tformer_lib.efficient.low_rank import LowRankAttend
from tformer_lib.efficient.sliding import SlidingWindow
from tformer_lib.efficient.sparse import BlockSparse
from tformer_lib.efficient.tiled import TiledAttend
from tformer_lib.measures.memory import peak_memory
from tformer_lib.training import fit, seed_everything

RUNS = Runs("long_sequences")
LENGTHS = (256, 512, 1024, 2048, 4096, 8192, 16384)
WIDTH, SEEDS = 64, (0, 1, 2)
COSTS: dict[str, Callable[[int], nn.Module]] = {  # from a name to the backend for N tokens
    "Attend": lambda n: Attend(),
    "PyTorch": lambda n: FusedAttend(),
    "tiled": lambda n: TiledAttend(256),
    "blocks": lambda n: BlockSparse(64, stride=math.isqrt(n) // 8),  # 8 sqrt(N) keys, and its own block
    "window": lambda n: SlidingWindow(128),
    "low-rank": lambda n: LowRankAttend(n, 128),
    "linear": lambda n: LinearAttend(),
    "linear, causal": lambda n: LinearAttend(causal=True),
}

N_KEYS, N_VALUES, QUERIES, PAIRS, STEPS, BATCH = 128, 16, 8, (8, 16, 32, 64), 400, 64
RECALL: dict[str, Callable[[], nn.Module]] = {
    "full": Attend,
    "window": lambda: SlidingWindow(32, causal=True),
    "blocks": lambda: BlockSparse(8, local=2, stride=4),
    "linear": LinearAttend,
    "low-rank": lambda: LowRankAttend(PAIRS[-1] + QUERIES, 32),
    "low-rank, r = N": lambda: LowRankAttend(PAIRS[-1] + QUERIES, PAIRS[-1] + QUERIES),
}
LONGER = 1600  # steps, for linear attention alone, which is still learning after 400
ONE_BLOCK = {"low-rank, by places": lambda: by_places(PAIRS[-1] + QUERIES, 32)}  # begins with places apart


def by_places(max_len: int, rank: int) -> LowRankAttend:
    """Low-rank attention whose mixtures begin as the first places, one each, and not at random."""
    backend = LowRankAttend(max_len, rank)
    with torch.no_grad():
        for matrix in (backend.E, backend.F):
            matrix.copy_(torch.eye(rank, max_len))
    return backend


def milliseconds(function: Callable[[], Any], seconds: float = 1.5) -> float:
    """The shortest process time of a call: three calls at least, and no more after `seconds`."""
    times: list[float] = []
    while len(times) < 3 or (sum(times) < seconds and len(times) < 50):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return round(1000 * min(times), 4)


def training_step(backend: nn.Module, n: int) -> Callable[[], None]:
    """Forward and backward pass of N tokens through one head."""
    q, k, v = (torch.randn(1, 1, n, WIDTH, requires_grad=True) for _ in range(3))

    def step() -> None:
        backend(q, k, v).sum().backward()
        for x in (q, k, v, *backend.parameters()):
            x.grad = None

    return step


def highest() -> int:
    """The most memory that this process has held so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would begin with what the parent process held
        (line,) = (x for x in status.read_text("utf8").splitlines() if x.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def grown(name: str, n: int) -> None:
    """For a fresh process: prints by how many bytes one training step raised the highest memory use."""
    step = training_step(COSTS[name](n), n)
    training_step(COSTS[name](256), 256)()  # what is loaded at the first call
    before = highest()
    step()
    print(highest() - before)


def cost(name: str, n: int) -> dict[str, float]:
    """Milliseconds, counted bytes and bytes by which a process grows, of one training step."""
    seed_everything(0)
    step = training_step(COSTS[name](n), n)
    step()
    arguments = [sys.executable, __file__, "--grown", name, str(n)]
    child = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return {"ms": milliseconds(step), "counted": peak_memory(step), "grown": int(child.stdout)}


@torch.no_grad()
def crossing(width: int) -> dict[str, list[float]]:
    """Milliseconds of a forward pass of the MLP and of the products and softmax of attention, 4 heads."""
    mlp, found = MLP(width).eval(), {"n": [], "MLP": [], "Attend": [], "PyTorch": []}
    for n in (256, 512, 1024, 2048, 4096):
        x, q = torch.randn(1, n, width), torch.randn(1, 4, n, width // 4)
        found["n"].append(n)
        found["MLP"].append(milliseconds(lambda x=x: mlp(x), 1.0))
        for name, backend in (("Attend", Attend()), ("PyTorch", FusedAttend())):
            found[name].append(milliseconds(lambda b=backend, q=q: b(q, q, q), 1.0))
    return found


def recall(name: str, blocks: int, seed: int, steps: int = STEPS) -> dict[str, Any]:
    """Trains and asks; accuracy by the number of pairs, and by distance with the most pairs."""
    seed_everything(seed)
    attend = (RECALL | ONE_BLOCK)[name]
    model = RecallModel(
        TransformerConfig(d_model=WIDTH, n_heads=2, n_blocks=blocks), N_KEYS, N_VALUES, make_backend=attend
    )
    sizes = {"n_keys": N_KEYS, "n_values": N_VALUES}
    batches = recall_batches(steps, BATCH, (PAIRS[0], PAIRS[-1]), QUERIES, **sizes, seed=seed)
    losses = fit(model, recall_loss, batches).loss
    exam = torch.Generator().manual_seed(1000 + seed)
    results: dict[str, Any] = {"loss": round(sum(losses[-50:]) / 50, 4), "by_pairs": {}}
    for pairs in PAIRS:
        batch = associative_recall(500, pairs, QUERIES, **sizes, generator=exam)
        results["by_pairs"][pairs] = round(recall_accuracy(model, batch), 4)
        if pairs == PAIRS[-1]:
            results["by_distance"] = rounded(recall_by_distance(model, batch))
    return results


def main() -> None:
    """Measures what is not there yet; records when nothing is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("cost", "crossing", "recall"), help="measure this part alone")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin nothing new after so many")
    parser.add_argument("--grown", nargs=2, metavar=("NAME", "N"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.grown:
        return grown(options.grown[0], int(options.grown[1]))
    work: dict[tuple[str | int, ...], Callable[[], Any]] = {}
    if options.part in (None, "cost"):
        work |= {("cost", b, n): partial(cost, b, n) for n in LENGTHS for b in COSTS}
    if options.part in (None, "crossing"):
        work |= {("crossing", d): partial(crossing, d) for d in (128, 256, 512)}
    if options.part in (None, "recall"):
        work |= {
            ("recall", f"{m} blocks", b, s): partial(recall, b, m, s)
            for m in (1, 2)
            for s in SEEDS
            for b in (RECALL | ONE_BLOCK if m == 1 else RECALL)
        }
        work |= {
            ("recall", f"1 blocks, {LONGER} steps", "linear", s): partial(recall, "linear", 1, s, LONGER)
            for s in SEEDS
        }
    start = time.monotonic()
    results: dict[str | int, Any] = {}
    for key, measure in work.items():
        if time.monotonic() - start > options.seconds:
            raise SystemExit(f"stopped before {' / '.join(map(str, key))}; run again to go on")
        place = results
        for part in key[:-1]:
            place = place.setdefault(part, {})
        place[key[-1]] = RUNS.keep(*key, make=measure)
    if options.part is None:
        seconds = sum(RUNS.seconds.values())
        settings = {
            "recall_steps": STEPS,
            "recall_batch": BATCH,
            "recall_longer": LONGER,
            "queries": QUERIES,
            "width": WIDTH,
        }
        record("long_sequences", settings | results, seeds=list(SEEDS), cpu_seconds=seconds)


if __name__ == "__main__":
    main()
