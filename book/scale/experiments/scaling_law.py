"""How large should a model be? IsoFLOP curves of GPTs on Shakespeare's plays, and a prediction.

Characters of 34 plays (`book/kit/data/text.py`), a context of 64, measured in nats a character
on 65,536 characters of the four plays held out. The modern GPT (rotary positions, RMS norm,
normalised queries and keys, SwiGLU, no biases, tied head) in thirteen sizes, 5 thousand to 2.7 million
parameters.

- Compute: C = T (6 P + 12 N D M) for P parameters that read T tokens in windows of N, with width D and M
  blocks: the products with the parameters forwards and backwards, and those of attention. P counts every
  parameter: the embedding too, since it is also the head, by which each token is multiplied.
- Batch: 16 windows of 64 characters, the same for all. The text is read in windows that do not overlap, in a
  new order and from a new first character at each reading: nothing is repeated before 4.5 million characters
  are read, and each run says how often it has read the text.
- Schedule: 5% warm-up, then a cosine down to a tenth, fitted to the length of each run. AdamW, decay 0.1,
  clipped at 1.
- Peak learning rate: at two sizes (`TUNING`) it is doubled from 0.002 until the loss rises. The vertex of the
  parabola through the best and its neighbours is taken; log lr is a straight line in log P through the two.
  This is measured on the same held-out characters as everything else.
- Five budgets, a factor of 3 apart, with six sizes each and three seeds. The sizes were chosen when the first
  runs of the smallest budgets showed where their lowest points are.
- Then, from these runs alone, what is expected at a budget 3 times the largest. `predict` sees no other run;
  the prediction was made before `--test` ran that budget, with the three sizes nearest to the predicted one.
  At that time the two larger budgets had one seed, and the prediction stays as it was made, from those runs.
  "hindsight" is what `predict` says of that budget from all seeds, which were run when the test was known.
- And how firm the exponent of the parametric law is: 300 fits to models drawn from the thirty, for three ways
  to count P, and for fewer models.

`python scaling_law.py` runs what has not been run yet; an hour and a half on one core. What is
finished is kept in `_build/scaling_law/`, or in the folder that `--folder` names. With `--add` what the
record in the repository holds is taken from there and only the rest is run. `--draws` makes only the last
part anew, from the runs in the record, in a minute and a half.
"""

import argparse
import dataclasses
import math
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer_book.kit.data.text import shakespeare
from tformer_book.kit.records import record, recorded
from tformer_book.kit.runs import BUILD, Runs, rounded
from tformer_book.scale.laws import bootstrap, bootstrap_isoflop, fit_isoflop, fit_parametric, interval
from tformer_lib import TransformerConfig
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import Rotary
from tformer_lib.models.gpt import GPT
from tformer_lib.models.initialisation import quiet_initialisation
from tformer_lib.models.language import language_loss
from tformer_lib.tokenizers import CharTokenizer
from tformer_lib.training import count_parameters, fit, seed_everything

CONTEXT, BATCH, HELD_OUT = 64, 16, 65_536
SIZES = {  # width: heads, blocks
    12: (1, 2),
    16: (1, 2),
    20: (1, 2),
    24: (1, 2),
    32: (2, 2),
    40: (2, 2),
    48: (2, 2),
    56: (2, 3),
    64: (4, 3),
    80: (4, 4),
    96: (4, 4),
    128: (4, 5),
    192: (6, 6),
}
BUDGETS = {  # FLOPs: widths, seeds when the prediction was made
    6.0e10: ((12, 16, 20, 24, 32, 40), 3),
    1.8e11: ((16, 20, 24, 32, 40, 48), 3),
    5.4e11: ((20, 24, 32, 40, 48, 64), 3),
    1.6e12: ((32, 40, 48, 56, 64, 96), 1),
    4.8e12: ((48, 56, 64, 80, 96, 128), 1),
}
SEEDS = 3
BEYOND = 1.44e13  # the budget that is predicted
LARGEST = 192  # run at that budget as well, far from the best size
TUNING = {24: 1.8e11, 96: 1.6e12}  # width: budget
LOWEST_RATE = 2e-3
DRAWS, KEPT = 300, (9, 12, 16, 20, 25)  # fits to models that are drawn, and how many models they keep


class Readings:
    """Batches (B, N + 1) of windows that do not overlap, in a new order at each reading of the text.

    `looks` maps a number of steps to something that is called when so many have been made.
    """

    def __init__(self, ids: Tensor, steps: int, seed: int, looks: dict[int, Any] | None = None):
        self.ids, self.steps, self.seed, self.looks = ids, steps, seed, looks or {}

    def __len__(self) -> int:
        return self.steps

    def windows(self) -> Iterator[Tensor]:
        """Starts of one batch after the other."""
        generator = torch.Generator().manual_seed(self.seed)
        while True:
            first = torch.randint(CONTEXT, (), generator=generator)
            starts = torch.arange(int(first), len(self.ids) - CONTEXT, CONTEXT)
            starts = starts[torch.randperm(len(starts), generator=generator)]
            yield from (part for part in starts.split(BATCH) if len(part) == BATCH)

    def __iter__(self) -> Iterator[Tensor]:
        within = torch.arange(CONTEXT + 1)
        for step, starts in zip(range(self.steps), self.windows(), strict=False):
            if step in self.looks:
                self.looks[step]()
            yield self.ids[starts[:, None] + within]


def build(width: int, vocab: int) -> GPT:
    """The modern GPT of that width."""
    heads, blocks = SIZES[width]
    config = TransformerConfig(
        d_model=width,
        n_heads=heads,
        n_blocks=blocks,
        norm="rms",
        qk_norm=True,
        activation="swiglu",
        d_hidden=8 * round(width / 3),
        bias=False,
    )
    model = GPT(config, vocab, rotary=Rotary(width // heads), make_backend=FusedAttend)
    quiet_initialisation(model)
    return model


def size(width: int, vocab: int) -> dict[str, int]:
    """What one model costs: all parameters, those of the embedding, FLOPs of training by one token."""
    with torch.device("meta"):
        parameters = count_parameters(build(width, vocab))
    _, blocks = SIZES[width]
    attention = 12 * CONTEXT * width * blocks
    return {
        "parameters": parameters,
        "embedding": vocab * width,
        "attention": attention,  # FLOPs a token
        "flops": 6 * parameters + attention,
    }


def steps_for(budget: float, width: int, vocab: int) -> int:
    """How many batches the budget buys."""
    return max(1, round(budget / size(width, vocab)["flops"] / (BATCH * CONTEXT)))


@torch.no_grad()
def held_out_loss(model: nn.Module, windows: Tensor) -> float:
    """Nats a character, each window alone."""
    total = 0.0
    for rows in windows.split(64):
        total += F.cross_entropy(
            model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten(), reduction="sum"
        ).item()
    return total / windows[:, 1:].numel()


def run(
    width: int, budget: float, lr: float, seed: int, ids: Tensor, windows: Tensor, vocab: int
) -> dict[str, Any]:
    """One model at one budget; and its loss in mid-schedule, when each smaller budget was spent."""
    steps = steps_for(budget, width, vocab)
    seed_everything(seed)
    model, on_the_way = build(width, vocab), {}

    def look(budget: float) -> None:
        on_the_way[f"{budget:.1e}"] = held_out_loss(model, windows)

    marks = {
        steps_for(smaller, width, vocab): partial(look, smaller) for smaller in BUDGETS if smaller < budget
    }
    looks = {step: mark for step, mark in marks.items() if 50 <= step < steps} if seed == 0 else {}
    history = fit(
        model,
        language_loss,
        Readings(ids, steps, seed, looks),
        lr=lr,
        weight_decay=0.1,
        betas=(0.9, 0.99),
        warmup=max(1, round(0.05 * steps)),
        min_lr_ratio=0.1,
    )
    tokens = steps * BATCH * CONTEXT
    return {
        "width": width,
        "budget": budget,
        "seed": seed,
        "lr": lr,
        "steps": steps,
        "tokens": tokens,
        "readings": tokens / len(ids),
        **size(width, vocab),
        "loss": held_out_loss(model, windows),
        "training": sum(history.loss[-20:]) / len(history.loss[-20:]),
        "on_the_way": on_the_way,
    }


def best_rate(losses: dict[float, float]) -> float:
    """The vertex of the parabola, in log lr, through the best rate and its neighbours."""
    rates = sorted(losses)
    best = min(range(len(rates)), key=lambda i: losses[rates[i]])
    if best in (0, len(rates) - 1):
        return rates[best]
    before, here, after = (losses[rates[best + i]] for i in (-1, 0, 1))
    shift = (before - after) / (2 * (before - 2 * here + after))
    return rates[best] * (rates[best + 1] / rates[best]) ** shift


def learning_rate(width: int, tuned: dict[int, float], vocab: int) -> float:
    """log lr on a straight line in log N through the two sizes that were tuned."""
    (small, at_small), (large, at_large) = sorted(tuned.items())
    x, x0, x1 = (math.log(size(w, vocab)["parameters"]) for w in (width, small, large))
    return math.exp(math.log(at_small) + (x - x0) / (x1 - x0) * math.log(at_large / at_small))


def means_over_seeds(runs: list[dict[str, Any]]) -> list[list[float]]:
    """Compute, sizes, tokens and losses, one of each for every size at every budget."""
    found: dict[tuple[float, int], list[dict[str, Any]]] = {}
    for each in runs:
        found.setdefault((each["budget"], each["width"]), []).append(each)
    rows = [
        (budget, same[0]["parameters"], same[0]["tokens"], fmean(each["loss"] for each in same))
        for (budget, _), same in sorted(found.items())
    ]
    return [list(column) for column in zip(*rows, strict=True)]


def predict(runs: list[dict[str, Any]], vocab: int, widths: Iterable[int] = ()) -> dict[str, Any]:
    """Of the budget beyond: the best size by its power law, and losses by the parametric law.

    The losses are those of the widths, or of the three nearest to the best size if none are given.
    """
    compute, sizes, tokens, losses = means_over_seeds(runs)
    known = [size(width, vocab) for width in SIZES]
    grid = np.exp(np.linspace(math.log(known[0]["parameters"]), math.log(known[-1]["parameters"]), 2001))
    logs = [[math.log(each[name]) for each in known] for name in ("parameters", "flops")]
    affordable = BEYOND / np.exp(np.interp(np.log(grid), *logs))  # tokens, by size
    best = fit_isoflop(compute, sizes, tokens, losses).size
    others = bootstrap_isoflop(compute, sizes, tokens, losses, repeats=1000)
    law = fit_parametric(sizes, tokens, losses)
    laws = bootstrap(fit_parametric, sizes, tokens, losses, repeats=300)
    nearest = sorted(SIZES, key=lambda w: abs(math.log(size(w, vocab)["parameters"] / best(BEYOND))))[:3]
    tested = {}
    for width in sorted(widths or nearest):
        run = size(width, vocab)["parameters"], BEYOND / size(width, vocab)["flops"]
        tested[width] = {"loss": law(*run), "interval": interval([other(*run) for other in laws])}
    return {
        "budget": BEYOND,
        "exponent": best.exponent,
        "exponent_interval": interval([other.size.exponent for other in others]),
        "size": best(BEYOND),
        "size_interval": interval([other.size(BEYOND) for other in others]),
        "law": dataclasses.asdict(law),
        "law_size": float(grid[law(grid, affordable).argmin()]),
        "law_size_interval": interval([grid[other(grid, affordable).argmin()] for other in laws]),
        "loss": float(law(grid, affordable).min()),
        "loss_interval": interval([other(grid, affordable).min() for other in laws]),
        "tested": tested,
    }


def exponent(*columns: np.ndarray) -> float:
    """The parametric law's exponent of the best size, from sizes, tokens and losses."""
    return fit_parametric(*columns, starts=2).exponent


def draw(runs: list[dict[str, Any]], vocab: int) -> dict[str, Any]:
    """The exponent's spread over models drawn from all: by what P counts, and by how many are kept.

    A draw takes the same models in each way to count, so that the ways can be compared within it.
    """
    _, sizes, tokens, losses = (np.array(column) for column in means_over_seeds(runs))
    known = {each["parameters"]: each for each in (size(width, vocab) for width in SIZES)}
    embedding = np.array([known[n]["embedding"] for n in sizes.tolist()])
    attention = np.array([known[n]["attention"] / 6 for n in sizes.tolist()])
    ways = {
        "all parameters": sizes,
        "without the embedding": sizes - embedding,
        "cost of a token / 6, with attention": sizes + attention,
    }
    drawn = {
        name: np.array(bootstrap(exponent, counted, tokens, losses, repeats=DRAWS))
        for name, counted in ways.items()
    }
    counted = {}
    for name, found in drawn.items():
        change = found - drawn["all parameters"]
        counted[name] = {
            "interval": interval(found),
            "change": interval(change),
            "rises": int((change > 0).sum()),
            "falls": int((change < 0).sum()),
        }
    kept = {
        n: interval(bootstrap(exponent, sizes, tokens, losses, size=n, repeats=DRAWS, seed=n)) for n in KEPT
    }
    return {"repeats": DRAWS, "counted": counted, "kept": kept}


def draw_from_record() -> Path:
    """The record with `draw` made anew from its runs."""
    there, start = recorded("scaling_law"), time.process_time()
    results = there["results"]
    runs = [each | results["sizes"][str(each["width"])] for each in results["runs"]]
    results["draws"] = rounded(draw(runs, results["text"]["vocab"]), 5)
    seconds = there["cpu_seconds"] + time.process_time() - start
    return record("scaling_law", results, seeds=there["seeds"], cpu_seconds=seconds)


def keep_recorded(runs: Runs) -> float:
    """Keep what the record holds as if it had been run here; the processor time that all of it took."""
    there = recorded("scaling_law")
    results = there["results"]
    sizes = results["sizes"]
    for width, tuned in results["tuning"].items():
        for lr, loss in tuned["losses"].items():
            runs.put("rate", int(width), float(lr), result={"loss": loss}, seconds=0.0)
    for each in results["runs"] + results["tested"] + results["largest"]:
        known = {
            name: sizes[str(each["width"])][name]
            for name in ("parameters", "embedding", "attention", "flops")
        }
        whole = {"steps": each["tokens"] // (BATCH * CONTEXT), **known, **each}
        runs.put("fit", each["budget"], each["width"], each["seed"], result=whole, seconds=0.0)
    runs.put("prediction", result=results["prediction"], seconds=0.0)
    for name in {"hindsight", "draws"} & results.keys():
        runs.put(name, len(results["runs"]), result=results[name], seconds=0.0)
    return there["cpu_seconds"]


def known_then(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs from which the prediction was made."""
    return [each for each in runs if each["seed"] < BUDGETS[each["budget"]][1]]


def main() -> None:
    """Tune, train, predict, and with `--test` compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=BUILD / "scaling_law", help="where runs are kept")
    parser.add_argument("--test", action="store_true", help="run the budget that is predicted")
    parser.add_argument("--draws", action="store_true", help="only this part, from the runs in the record")
    parser.add_argument("--add", action="store_true", help="run only what the record does not hold")
    options = parser.parse_args()
    if options.draws:
        print(draw_from_record())
        return
    runs = Runs(options.folder.absolute())
    spent = keep_recorded(runs) if options.add else 0.0
    text = shakespeare("train")
    tokenizer = CharTokenizer.from_text(text)
    ids, vocab = torch.tensor(tokenizer.encode(text)), tokenizer.vocab_size
    other = torch.tensor(tokenizer.encode(shakespeare("validation")))
    every = other.unfold(0, CONTEXT + 1, CONTEXT)
    windows = every[torch.linspace(0, len(every) - 1, HELD_OUT // CONTEXT).long()]
    tuning: dict[int, dict[float, float]] = {}
    for width, budget in TUNING.items():
        losses, lr = tuning.setdefault(width, {}), LOWEST_RATE
        while not losses or min(losses.values()) == losses[lr / 2]:
            make = partial(run, width, budget, lr, 100, ids, windows, vocab)
            losses[lr] = runs.keep("rate", width, lr, make=make)["loss"]
            lr *= 2
    tuned = {width: best_rate(losses) for width, losses in tuning.items()}

    def train(budget: float, width: int, seed: int) -> dict[str, Any]:
        lr = learning_rate(width, tuned, vocab)
        make = partial(run, width, budget, lr, seed, ids, windows, vocab)
        return runs.keep("fit", budget, width, seed, make=make)

    fitted = [
        train(budget, width, seed)
        for seed in range(SEEDS)
        for budget, (widths, _) in BUDGETS.items()
        for width in widths
    ]
    prediction = runs.keep("prediction", make=partial(predict, known_then(fitted), vocab))
    test = options.test or options.add  # the record holds it
    widths = [int(width) for width in prediction["tested"]]
    hindsight = runs.keep("hindsight", len(fitted), make=partial(predict, fitted, vocab, widths))
    tested = [train(BEYOND, width, 0) for width in widths] if test else []
    largest = [train(BEYOND, LARGEST, 0)] if test else []
    kept = ("width", "budget", "seed", "lr", "tokens", "readings", "loss", "training", "on_the_way")
    results = {
        "text": {"characters": len(ids), "measured": HELD_OUT, "vocab": vocab},
        "context": CONTEXT,
        "batch": BATCH,
        "tuning": {w: {"budget": TUNING[w], "losses": tuning[w], "best": tuned[w]} for w in TUNING},
        "sizes": {width: {"blocks": SIZES[width][1], **size(width, vocab)} for width in SIZES},
        "runs": [{name: each[name] for name in kept} for each in fitted],
        "prediction": prediction,
        "hindsight": hindsight,
        "tested": [{name: each[name] for name in kept} for each in tested],
        "largest": [{name: each[name] for name in kept} for each in largest],
        "draws": runs.keep("draws", len(fitted), make=partial(draw, fitted, vocab)),
    }
    print(
        record(
            "scaling_law",
            rounded(results, 5),
            seeds=[0, 1, 2],
            cpu_seconds=spent + sum(runs.seconds.values()),
        )
    )


if __name__ == "__main__":
    main()
