"""Attention for long sequences: what each way of attending can still recall, each at its own learning rate.

Two tasks of `tformer_lib.book.datasets.recall`. *Recall*: 8 to 64 pairs of a key and a value, then eight keys
whose values are asked for. *Rewriting*: 8 to 16 keys, each written twice in any order, of which the last
value is asked for. Every model is 64 wide, has one block and no positions, and is trained for 200 steps
of 64 sequences. The learning rate is the best of three for each model alike, by 64 pairs (16 keys) that are
drawn apart, with seed 0; with it the seeds 0, 1 and 2 are then judged on others.

Each run is kept in `_build/long_sequences`, so that the script may be stopped and begun again.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from runs import Runs

from tformer_lib.book.datasets.recall import associative_recall, recall_batches
from tformer_lib.book.models.recall import RecallModel, recall_accuracy, recall_loss
from tformer_lib.book.recorded import record
from tformer_lib.core.attention import Backend
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.efficient.delta import DeltaAttend
from tformer_lib.efficient.linear import LinearAttend
from tformer_lib.training import fit, seed_everything

RUNS = Runs("long_sequences")
SEEDS, RATES, STEPS, BATCH, WIDTH, QUERIES = (0, 1, 2), (3e-3, 1e-2, 2e-2), 200, 64, 64, 8
SIZES = {"n_keys": 128, "n_values": 16}
TASKS: dict[str, dict[str, Any]] = {
    "recall": {"pairs": (8, 16, 32, 64), "writes": 1},
    "rewriting": {"pairs": (8, 16), "writes": 2},
}
Make = Callable[[], Backend]


def linear() -> LinearAttend:
    """Linear attention that looks back, all of a sequence in one chunk."""
    return LinearAttend(causal=True, chunk=72)


MODELS: dict[tuple[str, str], Make] = {  # task and name
    ("rewriting", "linear"): linear,
    ("rewriting", "delta"): lambda: DeltaAttend(32, chunk=72),
    ("rewriting", "gated"): lambda: DeltaAttend(32, gated=True, correct=False, chunk=72),
    ("recall", "linear"): linear,
    ("recall", "delta"): lambda: DeltaAttend(32, chunk=72),
}


def run(task: str, name: str, rate: float, seed: int) -> dict[str, Any]:
    """Trains one model; its accuracy on what the rate is chosen by, and by the number of pairs."""
    seed_everything(seed)
    backend, config = MODELS[task, name](), TransformerConfig(d_model=WIDTH, n_heads=2, n_blocks=1)
    model = RecallModel(config, **SIZES, make_backend=lambda: backend)
    pairs, more = TASKS[task]["pairs"], SIZES | {"writes": TASKS[task]["writes"]}
    fit(
        model,
        recall_loss,
        recall_batches(STEPS, BATCH, (pairs[0], pairs[-1]), QUERIES, **more, seed=seed),
        lr=rate,
    )

    def right(n: int, draw: int) -> float:
        generator = torch.Generator().manual_seed(draw + seed)
        asked = associative_recall(500, n, QUERIES, **more, generator=generator)
        return round(recall_accuracy(model, asked), 4)

    return {"chosen_by": right(pairs[-1], 2000), "right": {str(n): right(n, 1000) for n in pairs}}


def main() -> None:
    """Makes what is not there yet, and records all of it."""
    torch.set_num_threads(1)
    results: dict[str, Any] = {"steps": STEPS, "batch": BATCH, "rates": list(RATES)}
    for task, name in MODELS:

        def kept(rate: float, seed: int, task: str = task, name: str = name) -> dict[str, Any]:
            return RUNS.keep(task, name, rate, seed, make=partial(run, task, name, rate, seed))

        sweep = {rate: kept(rate, 0) for rate in RATES}
        best = max(RATES, key=lambda rate: sweep[rate]["chosen_by"])
        results.setdefault(task, {})[name] = {
            "rate": best,
            "chosen_by": {str(rate): sweep[rate]["chosen_by"] for rate in RATES},
            "seeds": [kept(best, seed)["right"] for seed in SEEDS],
        }
    record("long_sequences", results, seeds=list(SEEDS), cpu_seconds=sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
