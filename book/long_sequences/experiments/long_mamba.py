"""Mamba-2's layer on the two recall tasks of `long_sequences.py`, trained and judged as there, at one rate.

A block with the layer in the place of attention: a state of 2,048 numbers, as many as the delta rule's,
here as 8 heads with 8 values each for shared keys of width 32. Once as published, and once without the
convolution, so that each token is alone, and with a decay that begins a hundred times slower. Nothing is
searched: the learning rate is 0.01, at which `long_sequences.py` has tried all others too. Recorded is also
what is left of the first pair, in each head, when the last question asks.

Each run is kept in `_build/long_mamba`.
"""

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs
from tformer_book.long_sequences.data.recall import associative_recall, recall_batches
from tformer_book.long_sequences.experiments.long_sequences import (
    BATCH,
    QUERIES,
    SIZES,
    STEPS,
    TASKS,
    WIDTH,
)
from tformer_book.long_sequences.models.mamba2 import Mamba2, MambaBlock
from tformer_book.long_sequences.models.recall import RecallModel, recall_accuracy, recall_loss
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.training import fit, seed_everything

RUNS = Runs("long_mamba")
RATE, HEADS = 1e-2, 8
MODELS = {  # tokens that the convolution reads, and by what the decay is divided at the start
    "as published": (4, 1.0),
    "no convolution, slower decay": (1, 100.0),
}
PLAN = (  # task, model, seeds
    ("recall", "as published", (0, 1)),
    ("recall", "no convolution, slower decay", (0, 1, 2)),
    ("rewriting", "no convolution, slower decay", (0, 1, 2)),
)


class RecallMamba(RecallModel):
    """The model of the recall task, with Mamba-2's layer where its blocks attend."""

    def __init__(self, d_conv: int, slower: float = 1.0):
        config = TransformerConfig(d_model=WIDTH, n_heads=2, n_blocks=1)
        super().__init__(config, **SIZES)
        widths = {"d_inner": WIDTH, "d_state": WIDTH // 2, "d_head": WIDTH // HEADS}
        layer = Mamba2(WIDTH, **widths, d_conv=d_conv, chunk=72)
        with torch.no_grad():
            layer.log_decay -= math.log(slower)
        self.transformer.blocks = nn.ModuleList([MambaBlock(config, layer)])


def run(task: str, name: str, rate: float, seed: int, steps: int = STEPS) -> dict[str, Any]:
    """Trains one model; its accuracy on what the rate is chosen by, and by the number of pairs."""
    seed_everything(seed)
    model = RecallMamba(*MODELS[name])
    pairs, more = TASKS[task]["pairs"], SIZES | {"writes": TASKS[task]["writes"]}
    batches = recall_batches(steps, BATCH, (pairs[0], pairs[-1]), QUERIES, **more, seed=seed)
    fit(model, recall_loss, batches, lr=rate)

    def asked(n: int, draw: int) -> Any:
        return associative_recall(
            500, n, QUERIES, **more, generator=torch.Generator().manual_seed(draw + seed)
        )

    return {
        "chosen_by": round(recall_accuracy(model, asked(pairs[-1], 2000)), 4),
        "right": {str(n): round(recall_accuracy(model, asked(n, 1000)), 4) for n in pairs},
        "kept": kept_after(model, asked(pairs[-1], 1000)),
    }


@torch.no_grad()
def kept_after(model: RecallMamba, batch: Any) -> list[float]:
    """What is left, on average, of the first pair when the last question asks: a head's gates, multiplied."""
    layer = model.transformer.blocks[0].layer
    assert isinstance(layer, Mamba2)
    seen: list[Tensor] = []
    hook = layer.W_in.register_forward_hook(lambda _m, _i, out: seen.append(out))
    model(batch.keys, batch.values)
    hook.remove()
    dt = torch.nn.functional.softplus(seen[0][..., -len(layer.skip) :] + layer.dt_bias)  # (B, N, H)
    left = (-layer.log_decay.exp() * dt[:, 1:].sum(dim=1)).exp()
    return [round(x, 4) for x in left.mean(dim=0).tolist()]


def main() -> None:
    """Makes what is not there yet, and records all of it."""
    torch.set_num_threads(1)
    results: dict[str, Any] = {"steps": STEPS, "batch": BATCH, "rate": RATE}
    for task, name, seeds in PLAN:
        runs = [RUNS.keep(task, name, RATE, s, make=partial(run, task, name, RATE, s)) for s in seeds]
        results.setdefault(task, {})[name] = runs
    record("long_mamba", results, seeds=[0, 1, 2], cpu_seconds=sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
