"""What the changes from GPT-2's decoder to a modern one buy, each by itself: the longer experiments.

Characters of the book's plays, windows of 64, twelve at a time, one thread; models of 0.8 million parameters
(4 blocks, 4 heads, width 128), but for the mixtures. The loss is the mean over every third window of the
held-out plays. Three seeds of everything; a learning rate is the best of those that are named, with seed 0.
Where the best is the largest or the smallest, it is doubled or halved until that is no better: on the ladder,
and for the two starts that the chapter compares.

- `mixture`: every MLP is replaced by eight experts of half its width, of which a token uses two, so that as
  many products are computed; beside the dense model, a dense model with as many parameters in all, the
  mixture without its balance loss, and the mixture with a router that stays as it was drawn. All begin with
  GPT-2's weights and are trained by Muon. 300 steps.
- `weights`: the modern block with first weights between GPT-2's and the book's, under AdamW and under Muon.
  150 steps.
- `ladder`: from nanoGPT's recipe to the modern one, one change at a time, all with GPT-2's first weights: at
  150 steps, and at as many steps as the first recipe's processor time allows. A schedule ends with its run.
  What a step costs is measured by turns with nanoGPT's.
- `averages`: the ladder's SwiGLU rung, whose AdamW averages about ten gradients, under both optimisers with
  averages of other lengths, so that either can be compared with the other at the same. 150 steps.
- `choices`: which of three rates every rung would have got from another seed and other windows. 150 steps.
- `without`: the top of the ladder with one of its changes taken back, trained by Muon. 150 steps.
- `without_adamw`: the same under AdamW, and the top itself. 150 steps.
- `cache`: heads that share their keys and values, and multi-head latent attention. 150 steps.
- `speed`: what a step of the mixture costs, and one of the dense model with as many parameters, by turns with
  the dense model's.
- `since`: value residuals, and gates on attention, each alone on the ladder's top, at the rate of the top.
  150 steps.

`python modern_decoder.py [PART ...]` runs what has not been run yet and records it; what is done
is kept in `_build/modern_decoder/`. With `--add`, what the record in the repository holds counts as kept.
About 70 minutes of one core.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from tformer_book.kit.models.recipes import BASELINE, BATCH, CONTEXT, MODERN, Recipe
from tformer_book.kit.records import record, recorded
from tformer_book.kit.runs import Runs, summary
from tformer_book.modern_decoder.experiments.recipe import Text, held_out, load
from tformer_book.modern_decoder.since import ValueResidual, gated
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import Rotary
from tformer_lib.core.transformer import Block, TransformerConfig
from tformer_lib.data.windows import RandomWindows
from tformer_lib.efficient.latent import MultiHeadLatentAttention
from tformer_lib.efficient.mixture import MixtureOfExperts, active_parameters, mixtures, total_balance
from tformer_lib.models.gpt import GPT
from tformer_lib.models.initialisation import gpt2_initialisation, quiet_initialisation
from tformer_lib.models.language import language_loss
from tformer_lib.training import count_parameters, fit, seed_everything

RUNS = Runs("modern_decoder")
SEEDS, STEPS, MIXTURE_STEPS = [0, 1, 2], 150, 300
EXPERTS, CHOSEN, BALANCE = 8, 2, 0.01
HIDDEN = 340  # of the dense model; an expert has half
LOOKS = (1, 30, 100, 200, 300)  # the steps after which the experts' shares are noted
Loss = Callable[[nn.Module, Tensor], Tensor]


@dataclass(frozen=True)
class Trial:
    """A model and how it is trained."""

    recipe: Recipe
    block: type[Block] = Block
    model: type[GPT] = GPT
    first: Callable[[GPT], None] | None = None  # first weights; the recipe's if None
    balance: float = 0.0  # the factor of the experts' balance loss
    frozen: bool = False  # whether routers stay as they were drawn
    fit: Mapping[str, Any] = field(default_factory=dict)  # in place of the recipe's arguments

    def build(self, vocab: int) -> GPT:
        """The model with its first weights, drawn from the global generator."""
        if self.block is Block and self.model is GPT and self.first is None:
            return self.recipe.build(vocab)
        config, base = self.recipe.config, self.recipe.rotary_base
        rotary = Rotary(config.d_model // config.n_heads, base) if base else None
        model = self.model(config, vocab, rotary=rotary, make_backend=FusedAttend, block=self.block)
        (self.first or self.recipe.initialise or (lambda model: None))(model)
        for mixture in mixtures(model):
            mixture.router.requires_grad_(not self.frozen)
        return model

    def options(self, steps: int) -> dict[str, Any]:
        """Arguments of `fit`; the warm-up is a tenth of the steps at most."""
        return {**self.recipe.options(steps), **self.fit}

    def loss(self, model: nn.Module, batch: Tensor) -> Tensor:
        """The language loss, and the balance of the experts if it counts."""
        loss = language_loss(model, batch)
        return loss + self.balance * total_balance(model) if self.balance else loss


def run(trial: Trial, text: Text, steps: int, seed: int) -> dict[str, Any]:
    """Trains and judges one model."""
    seed_everything(seed)
    model = trial.build(text.vocab)
    start_loss = held_out(model, text.some)
    batches = RandomWindows(text.train, batch=BATCH, length=CONTEXT, steps=steps, seed=seed)
    loads: dict[str, list[list[float]]] = {}
    calls = [0]

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        if calls[0] in LOOKS and mixtures(model):
            loads[str(calls[0])] = shares(model, text.some[::4])
        calls[0] += 1
        return trial.loss(model, batch)

    start = time.process_time()
    fit(model, loss, batches, **trial.options(steps))
    seconds = time.process_time() - start
    result = {
        "steps": steps,
        "first_loss": round(start_loss, 4),
        "held_out": round(held_out(model, text.held[::3]), 4),
        "seconds": round(seconds, 1),
        "parameters": count_parameters(model),
    }
    if mixtures(model):
        loads[str(steps)] = shares(model, text.some[::4])
        result |= {"loads": loads, "active": active_parameters(model)}
    return result


@torch.no_grad()
def shares(model: nn.Module, windows: Tensor) -> list[list[float]]:
    """Of each block, the share of the tokens' choices that each expert gets."""
    model(windows[:, :-1])
    return [[round(share, 4) for share in mixture.load.tolist()] for mixture in mixtures(model)]


def runs(
    part: str, name: str, trial: Trial, text: Text, steps: int, seeds: list[int] | None = None
) -> list[dict[str, Any]]:
    """The runs of a trial, by seed; those that are kept are not made again."""
    return [RUNS.keep(part, name, steps, s, make=partial(run, trial, text, steps, s)) for s in seeds or SEEDS]


def best(
    part: str,
    name: str,
    trial: Trial,
    rates: tuple[float, ...],
    text: Text,
    steps: int,
    beyond: bool = False,
) -> tuple[Trial, dict[str, float]]:
    """The trial at the rate that is best with seed 0, and the losses by rate as far as they are kept.

    With `beyond`, a best rate that is the largest is doubled until that is no better, the smallest halved.
    """

    def at(rate: float) -> Trial:
        return replace(trial, fit={**trial.fit, "lr": rate})

    def loss(rate: float) -> float:
        first = runs(part, f"{name}, rate {rate}", at(rate), text, steps, SEEDS[:1])[0]
        return float(first["held_out"])

    def choose(among: tuple[float, ...]) -> float:
        made = RUNS.keep("choice", part, name, *among, make=lambda: {"rate": min(among, key=loss)})
        return float(made["rate"])

    chosen = choose(rates)
    while beyond and chosen in (min(rates), max(rates)):
        further = round(2 * chosen if chosen == max(rates) else chosen / 2, 6)
        rates = (*rates, further)
        if choose((chosen, further)) == chosen:
            break
        chosen = further
    kept = (rate for rate in sorted(rates) if RUNS.done(part, f"{name}, rate {rate}", steps, SEEDS[0]))
    return at(chosen), {str(rate): loss(rate) for rate in kept}


def judged(
    part: str, name: str, trial: Trial, text: Text, steps: int | None = None, **about: Any
) -> dict[str, Any]:
    """All seeds of a trial: the summary of their losses, and what is the same for all."""
    steps = steps or STEPS
    made = runs(part, name, trial, text, steps)
    first = made[0]
    losses = [r["held_out"] for r in made]
    result = {
        "name": name,
        "rate": trial.options(steps)["lr"],
        "optimizer": trial.options(steps).get("optimizer", "adamw"),
        "steps": steps,
        "parameters": first["parameters"],
        "held_out": summary(losses),
        "first_loss": summary([r["first_loss"] for r in made]),
        **about,
    }
    if "loads" in first:
        result |= {"active": first["active"], "loads": [r["loads"] for r in made]}
    return result


# --- mixtures ---


class Sparse(Block):
    """A block whose MLP is a mixture of experts, each half as wide."""

    def __init__(self, config: TransformerConfig, **parts: Any):
        super().__init__(config, **parts)
        self.mlp = MixtureOfExperts(
            config.d_model, config.d_hidden // 2, n_experts=EXPERTS, k=CHOSEN,
            activation=config.activation, bias=config.bias,
        )  # fmt: skip


def small_weights(model: GPT) -> None:
    """GPT-2's first weights for any block: N(0, 0.02^2), what joins the stream over sqrt(2M)."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            joins = name.endswith(("W_o", "W_out"))
            nn.init.normal_(module.weight, std=0.02 / (2 * model.config.n_blocks) ** (0.5 * joins))


def mixture_trials() -> dict[str, Trial]:
    """The mixture, and the models that it is compared with."""

    def with_width(hidden: int) -> Recipe:
        return replace(MODERN, config=replace(MODERN.config, d_hidden=hidden))

    small = {"first": small_weights}
    sparse = {"block": Sparse, **small}
    dense, wide = with_width(HIDDEN), with_width(HIDDEN // 2 * EXPERTS)
    return {
        "dense": Trial(dense, **small),
        "mixture": Trial(dense, balance=BALANCE, **sparse),
        "mixture, no balance loss": Trial(dense, **sparse),
        "mixture, fixed router": Trial(dense, balance=0.0, frozen=True, **sparse),
        "dense, as many parameters": Trial(wide, **small),
    }


def mixture(text: Text) -> list[dict[str, Any]]:
    """The mixture and its rivals, trained and judged."""
    rows = []
    for name, trial in mixture_trials().items():
        active = HIDDEN if "many" not in name else HIDDEN // 2 * EXPERTS
        rows.append(judged("mixture", name, trial, text, MIXTURE_STEPS, mlp_width=active))
    return rows


def speed(text: Text) -> list[dict[str, Any]]:
    """What a step costs in steps of the dense model."""
    trials = mixture_trials()
    rows = []
    for name in ("mixture", "dense, as many parameters"):
        make = partial(costs, trials[name], text, trials["dense"])
        rows.append({"name": name, "cost": RUNS.keep("step", name, make=make)})
    return rows


# --- first weights ---


def embeddings(std: float) -> Callable[[GPT], None]:
    """Draws the embeddings anew."""

    def draw(model: GPT) -> None:
        nn.init.normal_(model.embed.weight, std=std)

    return draw


def both(*parts: Callable[[GPT], None]) -> Callable[[GPT], None]:
    """One after the other."""

    def all_of_them(model: GPT) -> None:
        for part in parts:
            part(model)

    return all_of_them


FIRST: dict[str, Callable[[GPT], None]] = {
    "GPT-2's": gpt2_initialisation,
    "GPT-2's, outputs 0": both(gpt2_initialisation, quiet_initialisation),
    "GPT-2's, embeddings 0.05": both(gpt2_initialisation, embeddings(0.05)),
    "Xavier": lambda model: None,
    "Xavier, outputs 0": quiet_initialisation,
    "Xavier, embeddings 0.02": embeddings(0.02),
}
COMPARED = ("GPT-2's", "Xavier, outputs 0")  # the second is the recipe's quiet start
RATES = {"adamw": (2e-3, 4e-3), "muon": (1e-2, 2e-2)}


def weights(text: Text) -> list[dict[str, Any]]:
    """First weights under both optimisers, each at the better of two rates."""
    rows = []
    for optimizer, rates in RATES.items():
        for name, first in FIRST.items():
            called = f"{name}, {optimizer}"
            trial = Trial(MODERN, first=first, fit={"optimizer": optimizer})
            trial, tried = best("weights", called, trial, rates, text, STEPS, beyond=name in COMPARED)
            row = judged("weights", f"{called}, rate {trial.fit['lr']}", trial, text, first=name, tried=tried)
            rows.append(row | {"name": called})
    return rows


# --- one change at a time ---


RUNG_RATES = {"adamw": (1e-3, 2e-3, 4e-3), "muon": (5e-3, 1e-2, 2e-2)}


def ladder() -> list[tuple[str, Recipe]]:
    """The recipes, each with the changes of those before it; first weights are GPT-2's throughout."""
    rungs = [("nanoGPT", BASELINE)]

    def then(name: str, config: dict[str, Any] | None = None, **changes: Any) -> None:
        last = rungs[-1][1]
        rungs.append((name, replace(last, config=replace(last.config, **(config or {})), **changes)))

    then("rotary positions", rotary_base=10000.0)
    then("RMSNorm", {"norm": "rms"})
    then("QK-norm", {"qk_norm": True})
    then("SwiGLU", {"activation": "swiglu", "d_hidden": 341})
    then("Muon", fit={**BASELINE.fit, "optimizer": "muon"})
    then("Muon's average of five", fit={**BASELINE.fit, "optimizer": "muon", "momentum": 0.8})
    then("rotary base 100", rotary_base=100.0)
    return rungs


def costs(trial: Trial, text: Text, rival: Trial, turns: int = 6) -> float:
    """What a step costs in steps of the rival, taken by turns: the middle one of several ratios."""

    def timed(each: Trial) -> float:
        seed_everything(0)
        model, ticks = each.build(text.vocab), []

        def loss(model: nn.Module, batch: Tensor) -> Tensor:
            ticks.append(time.process_time())
            return each.loss(model, batch)

        fit(model, loss, RandomWindows(text.train, batch=BATCH, length=CONTEXT, steps=20), **each.options(20))
        return median(after - before for before, after in pairwise(ticks[3:]))

    ratios = [timed(trial) / timed(rival) for _ in range(turns)]
    return round(median(ratios), 2)


def climb(text: Text) -> list[dict[str, Any]]:
    """The ladder at equal steps and at equal time; each rung at its best rate."""
    rows = []
    for name, recipe in ladder():
        rates = RUNG_RATES[recipe.fit.get("optimizer", "adamw")]
        trial, tried = best("ladder", name, Trial(recipe), rates, text, STEPS, beyond=True)
        called = f"{name}, rate {trial.fit['lr']}"
        make = partial(costs, Trial(recipe), text, Trial(BASELINE))
        cost = RUNS.keep("step", name, make=make) if rows else 1.0
        about = {"cost": cost, "equal": "steps", "tried": tried}
        rows.append(judged("ladder", called, trial, text, **about) | {"name": name})
        steps = round(STEPS / cost)
        rows.append(
            judged("ladder", called, trial, text, steps, **about | {"equal": "time"}) | {"name": name}
        )
    return rows


AVERAGES = (("adamw", 0.8), ("adamw", 0.95), ("muon", 0.9))  # what the ladder's own rungs leave out


def averages(text: Text) -> list[dict[str, Any]]:
    """The SwiGLU rung with averages of gradients of other lengths, each at its best rate."""
    rung, rows = dict(ladder())["SwiGLU"], []
    for optimizer, kept in AVERAGES:
        own = {"betas": (kept, 0.99)} if optimizer == "adamw" else {"optimizer": "muon", "momentum": kept}
        name, trial = f"{optimizer}, {kept}", Trial(replace(rung, fit={**BASELINE.fit, **own}))
        trial, tried = best("averages", name, trial, RUNG_RATES[optimizer], text, STEPS, beyond=True)
        called = f"{name}, rate {trial.fit['lr']}"
        rows.append(judged("averages", called, trial, text, kept=kept, tried=tried) | {"name": name})
    return rows


def choices(text: Text) -> list[dict[str, Any]]:
    """Of every rung the rates around its own, with a seed and on windows that are not reported."""
    seed, other = SEEDS[-1] + 1, text._replace(held=text.held[1::12])  # the others' are every third from 0
    rows = []
    for name, recipe in ladder():
        rates = RUNG_RATES[recipe.fit.get("optimizer", "adamw")]
        own = best("ladder", name, Trial(recipe), rates, text, STEPS, beyond=True)[0].fit["lr"]
        tried = {}
        for rate in (round(own / 2, 6), own, 2 * own):
            trial = Trial(recipe, fit={"lr": rate})
            found = runs("choices", f"{name}, rate {rate}", trial, other, STEPS, [seed])[0]
            tried[str(rate)] = found["held_out"]
        rows.append({"name": name, "seed": seed, "rate": own, "tried": tried})
    return rows


def without(text: Text, part: str = "without", optimizer: str = "muon") -> list[dict[str, Any]]:
    """The ladder's top with one of its changes taken back, each at its best rate."""
    top = dict(ladder())["rotary base 100"]
    if optimizer == "adamw":
        top = replace(top, fit=BASELINE.fit)
    changes: dict[str, dict[str, Any]] = {
        "QK-norm": {"config": replace(top.config, qk_norm=False)},
        "SwiGLU": {"config": replace(top.config, activation="gelu", d_hidden=None)},
        "RMSNorm": {"config": replace(top.config, norm="layer")},
        "rotary positions": {"rotary_base": None},
    }
    if part != "without":  # there the top is the ladder's
        changes = {"nothing": {}, **changes}
    rows = []
    for name, change in changes.items():
        trial = Trial(replace(top, **change))
        trial, tried = best(part, name, trial, RUNG_RATES[optimizer], text, STEPS, beyond=True)
        rate = trial.fit["lr"]
        rows.append(judged(part, f"{name}, rate {rate}", trial, text, tried=tried) | {"name": name})
    return rows


# --- what the cache holds ---


class Latent(Block):
    """A block with latent attention whose latent and rotary part are 48 and 16 wide."""

    def __init__(self, config: TransformerConfig, rotary: nn.Module | None = None, **parts: Any):
        super().__init__(config, rotary=rotary, **parts)
        self.self_attention = MultiHeadLatentAttention(
            config.d_model, config.n_heads, d_latent=48, d_rotary=16, base=rotary.base,
            backend=FusedAttend(),
        )  # fmt: skip


def cache(text: Text) -> list[dict[str, Any]]:
    """Four, two and one heads of keys and values, and latents."""
    rows = []
    for n in (4, 2, 1):
        recipe = replace(MODERN, config=replace(MODERN.config, n_kv_heads=n, qk_norm=False))
        trial = Trial(recipe, first=small_weights)
        about = {"cached": 2 * n * 32 * MODERN.config.n_blocks}
        rows.append(judged("cache", f"{n} heads of keys and values", trial, text, **about))
    plain = replace(MODERN, config=replace(MODERN.config, qk_norm=False))
    trial = Trial(plain, block=Latent, first=small_weights)
    rows.append(judged("cache", "latents", trial, text, cached=64 * MODERN.config.n_blocks))
    return rows


# --- what came since ---


SINCE: dict[str, dict[str, Any]] = {
    "value residual": {"model": ValueResidual},
    "gated attention": {"block": gated(per_entry=False)},
}


def since(text: Text) -> list[dict[str, Any]]:
    """The ladder's top, whose own runs are the ladder's, with one part more, at the top's rate."""
    top = dict(ladder())["rotary base 100"]
    top, rows = replace(top, fit={**top.fit, "lr": RUNG_RATES["muon"][1]}), []
    for name, changes in SINCE.items():
        trial = Trial(top, **changes)
        rate = trial.options(STEPS)["lr"]
        rows.append(judged("since", f"{name}, rate {rate}", trial, text) | {"name": name})
    return rows


PARTS: dict[str, Callable[[Text], list[dict[str, Any]]]] = {
    "mixture": mixture,
    "weights": weights,
    "ladder": climb,
    "averages": averages,
    "choices": choices,
    "without": without,
    "without_adamw": partial(without, part="without_adamw", optimizer="adamw"),
    "cache": cache,
    "speed": speed,
    "since": since,
}


def restore() -> None:
    """Keep what is recorded and not kept: whole parts, and of searched rates the best one's runs."""
    content = recorded("modern_decoder")

    def put(*key: Any, result: Any) -> None:
        if not RUNS.done(*key):
            RUNS.put(*key, result=result, seconds=0.0)

    put("recorded before", result={"seconds": content["cpu_seconds"]})
    for part, rows in content["results"].items():
        put("part", part, result=rows)
        if part == "choices":
            for row in rows:
                for rate, loss in row["tried"].items():
                    put(part, f"{row['name']}, rate {rate}", STEPS, row["seed"], result={"held_out": loss})
        if part not in ("weights", "ladder", "averages", "without", "without_adamw", "since"):
            continue
        for row in rows:
            own = {name: row[name] for name in ("steps", "parameters")}
            for seed, loss, first in zip(
                content["seeds"], row["held_out"]["scores"], row["first_loss"]["scores"], strict=True
            ):
                result = {**own, "held_out": loss, "first_loss": first}
                put(part, f"{row['name']}, rate {row['rate']}", row["steps"], seed, result=result)
            for rate, loss in row.get("tried", {}).items():
                put(part, f"{row['name']}, rate {rate}", STEPS, SEEDS[0], result={"held_out": loss})
            rates = (RATES if part == "weights" else RUNG_RATES)[row["optimizer"]]
            nearest = min(max(row["rate"], min(rates)), max(rates))
            put("choice", part, row["name"], *rates, result={"rate": nearest})
            if "cost" in row:
                put("step", row["name"], result=row["cost"])


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all of them if none is named")
    parser.add_argument("--add", action="store_true", help="run only what the record does not hold")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.add:
        restore()
    text = load(None)
    for part in options.parts or PARTS:
        rows = PARTS[part](text)
        RUNS.keep("part", part, make=lambda rows=rows: rows, again=True)
    kept = RUNS.kept()
    results = {part: kept["part", part] for part in PARTS if ("part", part) in kept}
    spent = sum(r["seconds"] for r in kept.values() if isinstance(r, dict) and "seconds" in r)
    record("modern_decoder", results, seeds=SEEDS, cpu_seconds=spent)


if __name__ == "__main__":
    main()
