"""Associative recall when a question writes, and when it does not.

A state reads after it has written. So a token that asks for a value first writes one under the same key, and
a delta rule with rate 1 would overwrite the value that is asked for. Task, model and the choice of the
learning rate are those of `long_sequences.py` (*recall*). Here the places that ask are hidden as padding is,
and a state writes nothing there. Of the delta rule whose questions do write it is also recorded what rate it
has learned, on average, at pairs and at questions.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from tformer_book.kit.records import record, recorded
from tformer_book.kit.runs import Runs
from tformer_book.long_sequences.data.recall import associative_recall, recall_batches
from tformer_book.long_sequences.experiments.long_sequences import (
    BATCH,
    QUERIES,
    RATES,
    SEEDS,
    SIZES,
    STEPS,
    TASKS,
    WIDTH,
    delta,
    linear,
)
from tformer_book.long_sequences.models.recall import RecallModel, recall_accuracy, recall_loss
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.efficient.delta import DeltaAttend
from tformer_lib.training import fit, seed_everything

RUNS = Runs("long_questions")
MODELS = {"linear": linear, "delta": delta}


class QuietQuestions(RecallModel):
    """The model of the recall task, in which the places that ask write nothing."""

    def forward(self, keys: Tensor, values: Tensor) -> Tensor:
        """Logits of the values; a place without a value is hidden from all others."""
        x = self.embed_key(keys) + self.embed_value(values)
        return self.head(self.transformer(x, mask=(values > 0)[:, None, None, :]))


def run(name: str, quiet: bool, rate: float, seed: int) -> dict[str, Any]:
    """Trains one model; its accuracy, and the mean rates of a delta rule that writes everywhere."""
    seed_everything(seed)
    config = TransformerConfig(d_model=WIDTH, n_heads=2, n_blocks=1)
    model = (QuietQuestions if quiet else RecallModel)(config, **SIZES, make_backend=MODELS[name])
    pairs = TASKS["recall"]["pairs"]
    batches = recall_batches(STEPS, BATCH, (pairs[0], pairs[-1]), QUERIES, **SIZES, seed=seed)
    fit(model, recall_loss, batches, lr=rate)

    def asked(n: int, draw: int) -> Any:
        return associative_recall(
            500, n, QUERIES, **SIZES, generator=torch.Generator().manual_seed(draw + seed)
        )

    found = {
        "chosen_by": round(recall_accuracy(model, asked(pairs[-1], 2000)), 4),
        "right": {str(n): round(recall_accuracy(model, asked(n, 1000)), 4) for n in pairs},
    }
    if not quiet and name == "delta":
        found["rates"] = mean_rates(model, asked(pairs[-1], 1000))
    return found


@torch.no_grad()
def mean_rates(model: RecallModel, batch: Any) -> dict[str, float]:
    """The rate b_n of the delta rule, on average over pairs and over questions."""
    seen: list[Tensor] = []
    backend = model.transformer.blocks[0].self_attention.backend
    assert isinstance(backend, DeltaAttend)
    hook = backend.rate.register_forward_hook(lambda _m, _i, out: seen.append(out.sigmoid()))
    model(batch.keys, batch.values)
    hook.remove()
    (rates,) = seen  # (B, H, N, 1)
    per_place = rates.mean(dim=1)[..., 0]
    there = batch.values > 0
    return {
        "pairs": round(per_place[there].mean().item(), 4),
        "questions": round(per_place[~there].mean().item(), 4),
    }


def judged(name: str, quiet: bool) -> dict[str, Any]:
    """The best of the rates, by seed 0, and what three seeds recall at it."""

    def kept(rate: float, seed: int) -> dict[str, Any]:
        return RUNS.keep(name, str(quiet), rate, seed, make=partial(run, name, quiet, rate, seed))

    if quiet:
        sweep = {rate: kept(rate, 0)["chosen_by"] for rate in RATES}
        best = max(RATES, key=lambda rate: sweep[rate])
    else:  # chosen already
        before = recorded("long_sequences")["results"]["recall"][name]
        sweep, best = {float(r): x for r, x in before["chosen_by"].items()}, before["rate"]
    runs = [kept(best, seed) for seed in SEEDS]
    found = {
        "rate": best,
        "chosen_by": {str(rate): right for rate, right in sweep.items()},
        "seeds": [one["right"] for one in runs],
    }
    return found | ({"rates": [one["rates"] for one in runs]} if "rates" in runs[0] else {})


def main() -> None:
    """Makes what is not there yet, and records all of it."""
    torch.set_num_threads(1)
    results: dict[str, Any] = {"steps": STEPS, "batch": BATCH, "rates": list(RATES)}
    results["delta"] = judged("delta", quiet=False)
    for name in MODELS:
        results[f"{name}, quiet questions"] = judged(name, quiet=True)
    record("long_questions", results, seeds=list(SEEDS), cpu_seconds=sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
