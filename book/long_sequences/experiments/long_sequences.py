"""Attention for long sequences: what each way of attending can still recall, each at its own learning rate.

Two tasks, from the chapter's `data.recall`. *Recall*: 8 to 64 pairs of a key and a value, then eight
keys whose values are asked for. *Rewriting*: 8 to 16 keys, each written twice in any order, of which the last
value is asked for. Every model is 64 wide and without positions. `MODELS` says how its blocks attend, with
two heads if nothing else is said. It is trained for 200 steps of 64 sequences. The learning rate is the best
of four for each model alike, by 64 pairs (16 keys) that are drawn apart, with seed 0; with it the seeds 0, 1
and 2 are then judged on others. `LONGER` names models that are
trained for 600 steps too, at smaller rates, and chosen and judged in the same way.

Each run is kept in `_build/long_sequences`, so that the script may be stopped and begun again. With `--add`
the models that the record in the repository holds stay as they are, and only new ones are run.
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch

from tformer_book.kit.records import record, recorded
from tformer_book.kit.runs import Runs
from tformer_book.long_sequences.data.recall import associative_recall, recall_batches
from tformer_book.long_sequences.models.recall import RecallModel, recall_accuracy, recall_loss
from tformer_lib.core.attention import Attend, Backend
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.efficient.delta import DeltaAttend
from tformer_lib.efficient.linear import LinearAttend
from tformer_lib.efficient.sliding import SlidingWindow
from tformer_lib.training import fit, seed_everything

RUNS = Runs("long_sequences")
SEEDS, RATES, STEPS, BATCH, WIDTH, QUERIES = (0, 1, 2), (3e-3, 1e-2, 2e-2, 4e-2), 200, 64, 64, 8
MORE_STEPS = 600
SIZES = {"n_keys": 128, "n_values": 16}
TASKS: dict[str, dict[str, Any]] = {
    "recall": {"pairs": (8, 16, 32, 64), "writes": 1},
    "rewriting": {"pairs": (8, 16), "writes": 2},
}


class Kind(NamedTuple):
    """A model: how each of its blocks attends, and the number of heads."""

    layers: tuple[Callable[[], Backend], ...]
    heads: int = 2


def linear() -> LinearAttend:
    """Linear attention that looks back, all of a sequence in one chunk."""
    return LinearAttend(causal=True, chunk=72)


def delta(**parts: bool) -> DeltaAttend:
    """A state of 32 x 32 in each head, all of a sequence in one chunk."""
    return DeltaAttend(WIDTH // 2, chunk=72, **parts)


def window() -> SlidingWindow:
    """A query sees itself and the 31 places before it."""
    return SlidingWindow(32, causal=True)


MODELS: dict[tuple[str, str], Kind] = {  # task and name
    ("rewriting", "linear"): Kind((linear,)),
    ("rewriting", "delta"): Kind((delta,)),
    ("rewriting", "gated"): Kind((partial(delta, gated=True, correct=False),)),
    ("recall", "linear"): Kind((linear,)),
    ("recall", "delta"): Kind((delta,)),
    ("recall", "delta without correction"): Kind((partial(delta, correct=False),)),
    ("recall", "gated delta"): Kind((partial(delta, gated=True),)),
    ("recall", "linear, one wide head"): Kind((linear,), heads=1),
    ("recall", "two windows"): Kind((window, window)),
    ("recall", "a window, then full"): Kind((window, Attend)),
    ("recall", "full, then a window"): Kind((Attend, window)),
    ("recall", "a window, then linear"): Kind((window, linear)),
    ("recall", "linear, then a window"): Kind((linear, window)),
    ("recall", "linear, then linear"): Kind((linear, linear)),
    ("recall", "linear, then full"): Kind((linear, Attend)),
    ("recall", "full, then linear"): Kind((Attend, linear)),
    ("recall", "delta, then full"): Kind((delta, Attend)),
    ("recall", "full, then delta"): Kind((Attend, delta)),
}
SMALL_RATES = (1e-3, 3e-3, 1e-2)
LONGER: dict[str, tuple[float, ...]] = {  # of the task "recall": the rates
    "a window, then linear": SMALL_RATES,
    "linear": SMALL_RATES,
    "delta": SMALL_RATES,
    "delta without correction": SMALL_RATES,
}


def run(task: str, name: str, rate: float, seed: int, steps: int = STEPS) -> dict[str, Any]:
    """Trains one model; its accuracy on what the rate is chosen by, and by the number of pairs."""
    seed_everything(seed)
    kind = MODELS[task, name]
    config = TransformerConfig(d_model=WIDTH, n_heads=kind.heads, n_blocks=len(kind.layers))
    layers = iter(kind.layers)
    model = RecallModel(config, **SIZES, make_backend=lambda: next(layers)())
    pairs, more = TASKS[task]["pairs"], SIZES | {"writes": TASKS[task]["writes"]}
    fit(
        model,
        recall_loss,
        recall_batches(steps, BATCH, (pairs[0], pairs[-1]), QUERIES, **more, seed=seed),
        lr=rate,
    )

    def right(n: int, draw: int) -> float:
        generator = torch.Generator().manual_seed(draw + seed)
        asked = associative_recall(500, n, QUERIES, **more, generator=generator)
        return round(recall_accuracy(model, asked), 4)

    return {"chosen_by": right(pairs[-1], 2000), "right": {str(n): right(n, 1000) for n in pairs}}


def judged(task: str, name: str, rates: tuple[float, ...] = RATES, steps: int = STEPS) -> dict[str, Any]:
    """The best of the rates, by seed 0, and what three seeds recall at it."""

    def kept(rate: float, seed: int) -> dict[str, Any]:
        key = (task, name, rate, seed) if steps == STEPS else (task, name, rate, seed, steps)
        return RUNS.keep(*key, make=partial(run, task, name, rate, seed, steps))

    sweep = {rate: kept(rate, 0)["chosen_by"] for rate in rates}
    best = max(rates, key=lambda rate: sweep[rate])
    return {
        "rate": best,
        "chosen_by": {str(rate): right for rate, right in sweep.items()},
        "seeds": [kept(best, seed)["right"] for seed in SEEDS],
    }


def main() -> None:
    """Makes what is not there yet, and records all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", action="store_true", help="run only what the record does not hold")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, Any] = {"steps": STEPS, "batch": BATCH, "rates": list(RATES)}
    spent = 0.0
    if options.add:
        there = recorded("long_sequences")
        assert results.items() <= there["results"].items(), "the record is of other runs"
        results, spent = there["results"], there["cpu_seconds"]
    for task, name in MODELS:
        if name not in results.setdefault(task, {}):
            results[task][name] = judged(task, name)
    longer = results.setdefault("longer", {"steps": MORE_STEPS})
    assert longer["steps"] == MORE_STEPS, "the record is of other runs"
    for name, rates in LONGER.items():
        if name not in longer:
            longer[name] = judged("recall", name, rates, MORE_STEPS)
    record("long_sequences", results, seeds=list(SEEDS), cpu_seconds=spent + sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
