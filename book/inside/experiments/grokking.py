"""A transformer of one block learns addition modulo 53 from some of the pairs: by heart, then by waves.

Five settings with three seeds each: 60% of the pairs with weight decay, and without it; all pairs; answers
dealt out at random; and 40% of the pairs. Recorded by step: loss and accuracy on shown and unseen pairs, the
length of the weights, how concentrated the embedding's spectrum is, and the restricted and excluded losses.
Of the final network: its spectrum, what is left without some frequencies, and the symmetry of gradients.

"Unseen" is a pair (a, b) if neither it nor (b, a) was shown; "mirrored" if only (b, a) was.

`PREDICTIONS` was written before any run that is recorded. `python grokking.py` runs what has not
been run yet and records it; what is done is kept in `_build/grokking/`. About ten minutes of one core.
"""

import argparse
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from tformer_book.inside.fourier import (
    along_sum,
    by_sum,
    fourier_power,
    frequencies_holding,
    keep_frequencies,
)
from tformer_book.inside.models.modular_addition import (
    addition_table,
    answer_logits,
    gradient_symmetry,
    modular_adder,
    shown_pairs,
    shuffled_answers,
    train_adder,
    unseen_pairs,
)
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs
from tformer_lib.models.gpt import GPT
from tformer_lib.training import seed_everything

P, D, SHARE, STEPS = 53, 64, 0.6, 1000
LR, DECAY = 3e-3, 2.0
SEEDS = [0, 1, 2]
SETTINGS: dict[str, dict] = {
    "weight decay": {"every": 25},
    "no weight decay": {"decay": 0.0},
    "all pairs shown": {"share": 1.0, "steps": 1500},
    "answers at random": {"shuffled": True},
    "fewer pairs": {"share": 0.4, "every": 25, "steps": 1500},
    "modulo 29": {"p": 29, "d_model": 48, "d_hidden": 128, "lr": 5e-3, "every": 25, "seeds": [0, 1, 2, 3, 4]},
    "modulo 29, no weight decay": {"p": 29, "d_model": 48, "d_hidden": 128, "lr": 5e-3, "decay": 0.0},
}
MEASURED = ("weight decay", "fewer pairs", "modulo 29")  # closely: restricted loss, ablations, and so on
RUNS = Runs("grokking")

# What is expected of the network that has generalised, with the reason, and when it counts as having come
# true. "key" are the fewest frequencies that hold nine tenths of the power of the *embedding*, so that the
# predictions on the logits could fail. Numbers are of unseen pairs.
PREDICTIONS: dict[str, tuple[str, Callable[[dict], bool]]] = {
    "logits without key": (
        "If the sum is in the key waves alone, the rest says nothing: accuracy below 0.05 (chance: 0.02).",
        lambda found: found["logits without key"]["accuracy"] < 0.05,
    ),
    "logits of key alone": (
        "If other frequencies, and what does not depend on a + b, are leftovers, accuracy stays above 0.99.",
        lambda found: found["logits of key alone"]["accuracy"] > 0.99,
    ),
    "logits of key alone, loss": (
        "If these leftovers are noise, the loss does not rise.",
        lambda found: found["logits of key alone"]["loss"] <= found["whole"]["loss"],
    ),
    "logits without one other": (
        "A frequency that is not key carries nothing: without any one, accuracy changes by less than 0.01.",
        lambda found: abs(found["logits without one other"]["accuracy"] - found["whole"]["accuracy"]) < 0.01,
    ),
    "logits without one key": (
        "Each key wave carries a part of the margin: each costs more loss than any one of the others.",
        lambda found: (
            found["logits without one key"]["least loss"] > found["logits without one other"]["loss"]
        ),
    ),
    "embedding without key": (
        "All that is computed is computed from the key waves: accuracy below 0.05.",
        lambda found: found["embedding without key"]["accuracy"] < 0.05,
    ),
    "embedding of key alone": (
        "And from nothing else: accuracy stays above 0.99 (the mean embedding stays).",
        lambda found: found["embedding of key alone"]["accuracy"] > 0.99,
    ),
    "embedding without one other": (
        "A single frequency that is not key changes accuracy by less than 0.01.",
        lambda found: (
            abs(found["embedding without one other"]["accuracy"] - found["whole"]["accuracy"]) < 0.01
        ),
    ),
}


def score(logits: Tensor, answers: Tensor, pairs: Tensor) -> dict[str, float]:
    """Loss and accuracy on these pairs; logits (p, p, p)."""
    logits, answers = logits[pairs].double(), answers[pairs]
    return {
        "loss": float(F.cross_entropy(logits, answers)),
        "accuracy": float((logits.argmax(dim=1) == answers).double().mean()),
    }


def numbers_of(model: GPT) -> Tensor:
    """The embeddings (p, D) of the numbers, without that of "="."""
    return model.embed.weight[:-1].detach()


@torch.no_grad()
def with_embedding(model: GPT, tokens: Tensor, numbers: Tensor) -> Tensor:
    """The logits, when the numbers are embedded otherwise."""
    before = model.embed.weight.clone()
    model.embed.weight[:-1] = numbers
    logits = answer_logits(model, tokens)
    model.embed.weight.copy_(before)
    return logits


@torch.no_grad()
def ablations(model: GPT, tokens: Tensor, answers: Tensor, unseen: Tensor, key: list[int]) -> dict:
    """Scores on unseen pairs with frequencies removed from the logits, and from the embedding."""
    logits, numbers, p = answer_logits(model, tokens), numbers_of(model), len(answers)
    others = [k for k in range(1, p // 2 + 1) if k not in key]

    def worst(scores: list[dict[str, float]]) -> dict[str, float]:
        return {
            "accuracy": min(s["accuracy"] for s in scores),
            "loss": max(s["loss"] for s in scores),
            "least loss": min(s["loss"] for s in scores),
        }

    def cut(k: list[int]) -> dict[str, float]:
        return score(logits - along_sum(logits, k), answers, unseen)

    def embedded(table: Tensor) -> dict[str, float]:
        return score(with_embedding(model, tokens, table), answers, unseen)

    def thinned(k: list[int]) -> dict[str, float]:
        return embedded(numbers - keep_frequencies(numbers, k))

    draws = torch.Generator().manual_seed(0)
    some = [torch.randperm(p // 2, generator=draws)[: len(key)].add(1).tolist() for _ in range(10)]
    return {
        "whole": score(logits, answers, unseen),
        "logits without key": cut(key),
        "logits of key alone": score(along_sum(logits, key), answers, unseen),
        "logits without all others": cut(others),
        "logits without one other": worst([cut([k]) for k in others]),
        "logits without one key": worst([cut([k]) for k in key]),
        "embedding without key": thinned(key),
        "embedding of key alone": embedded(keep_frequencies(numbers, [0, *key])),
        "embedding without one other": worst([thinned([k]) for k in others]),
        "embedding without one key": worst([thinned([k]) for k in key]),
        "as many frequencies at random": {
            "accuracy": sum(score(along_sum(logits, k), answers, unseen)["accuracy"] for k in some)
            / len(some)
        },
    }


def run(name: str, seed: int) -> dict:
    """Trains one network and measures it."""
    setting = SETTINGS[name]
    p = setting.get("p", P)
    tokens, answers = addition_table(p)
    if setting.get("shuffled"):
        answers = shuffled_answers(answers, seed)
    shown = shown_pairs(p, setting.get("share", SHARE), seed)
    unseen, mirrored = unseen_pairs(shown), shown.T & ~shown
    seed_everything(seed)
    model = modular_adder(p, setting.get("d_model", D), d_hidden=setting.get("d_hidden", 4 * D))
    steps: list[int] = []
    seen: list[tuple[Tensor, Tensor, float]] = []

    @torch.no_grad()
    def watch(step: int) -> None:
        norm = sum(float(p.square().sum()) for p in model.parameters()) ** 0.5
        steps.append(step)
        seen.append((answer_logits(model, tokens), numbers_of(model).clone(), norm))

    train_adder(
        model,
        tokens[shown],
        answers[shown],
        steps=setting.get("steps", STEPS),
        lr=setting.get("lr", LR),
        weight_decay=setting.get("decay", DECAY),
        every=setting.get("every", 100),
        watch=watch,
    )
    power = fourier_power(numbers_of(model))
    key = frequencies_holding(power, 0.9)
    of_shown = [score(logits, answers, shown) for logits, _, _ in seen]
    spectra = [fourier_power(numbers) for _, numbers, _ in seen]
    result: dict = {
        "steps": steps,
        "shown loss": [s["loss"] for s in of_shown],
        "shown accuracy": [s["accuracy"] for s in of_shown],
        "norm": [norm for _, _, norm in seen],
        "holding": [len(frequencies_holding(power, 0.9)) for power in spectra],
        "in key": [float(power[key].sum() / power[1:].sum()) for power in spectra],
        "key": key,
        "parameters": sum(p.numel() for p in model.parameters()),
    }
    memorised = next((i for i, s in enumerate(of_shown) if s["accuracy"] >= 0.999), len(steps) - 1)
    for when, i in (("first", 0), ("memorised", memorised), ("last", len(steps) - 1)):
        result[f"spectrum, {when}"] = (spectra[i][1:] / spectra[i][1:].sum()).tolist()
    result["memorised at"] = steps[memorised]
    if unseen.any():
        of_unseen = [score(logits, answers, unseen) for logits, _, _ in seen]
        result |= {
            "unseen loss": [s["loss"] for s in of_unseen],
            "unseen accuracy": [s["accuracy"] for s in of_unseen],
            "mirrored accuracy": [score(logits, answers, mirrored)["accuracy"] for logits, _, _ in seen],
        }
    if name in MEASURED:
        draws = torch.Generator().manual_seed(0)
        triples = torch.randint(p, (400, 3), generator=draws)
        restricted = [score(along_sum(logits, key), answers, unseen) for logits, _, _ in seen]
        sums = addition_table(p)[1][unseen].unique()  # of few pairs some sums may all be known
        apart = [
            score(along_sum(logits, key, unseen), answers, unseen) for logits, _, _ in seen if len(sums) == p
        ]
        excluded = [score(logits - along_sum(logits, key), answers, shown) for logits, _, _ in seen]
        logits = seen[-1][0]
        along = fourier_power(by_sum(logits))[1:]
        result |= {
            "restricted loss": [s["loss"] for s in restricted],
            "restricted loss, unseen alone": [s["loss"] for s in apart],
            "restricted accuracy, unseen alone": [s["accuracy"] for s in apart],
            "excluded loss": [s["loss"] for s in excluded],
            "spectrum of logits": (along / along.sum()).tolist(),
            "gradient symmetry": gradient_symmetry(model, triples),
            "ablations": ablations(model, tokens, answers, unseen, key),
        }
        result["came true"] = {
            name: bool(test(result["ablations"])) for name, (_, test) in PREDICTIONS.items()
        }
    return significant(result)


def thinned(name: str, found: dict) -> dict:
    """What of a run goes into the record: every 50 steps of the main runs, every 100 of the others."""
    n = len(found["steps"])
    every = 4 if name == "modulo 29" else 2 if name in MEASURED else 1
    curves = {k: v[::every] for k, v in found.items() if isinstance(v, list) and len(v) == n and k != "key"}
    rest = {k: v for k, v in found.items() if k not in curves}
    if name != "weight decay":
        rest = {k: v for k, v in rest.items() if not k.startswith("spectrum")}
    if name.startswith("modulo 29"):
        curves = {k: v for k, v in curves.items() if k in ("steps", "unseen accuracy", "holding")}
    when = found["steps"].index(found["memorised at"])
    for who in ("mirrored", "unseen"):
        if f"{who} accuracy" in found:
            rest[f"{who} then"] = found[f"{who} accuracy"][when]
    return rest | curves


def significant(values):
    """Every number with four significant digits."""
    if isinstance(values, float):
        return float(f"{values:.4g}")
    if isinstance(values, dict):
        return {name: significant(value) for name, value in values.items()}
    if isinstance(values, list):
        return [significant(value) for value in values]
    return values


def main() -> None:
    """Runs what is missing; records when nothing is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SETTINGS)}; all if none is given")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    seeds = {name: setting.get("seeds", SEEDS) for name, setting in SETTINGS.items()}
    for name in arguments.names or SETTINGS:
        for seed in seeds[name]:
            RUNS.keep(name, seed, make=partial(run, name, seed))
    if all(RUNS.done(name, seed) for name in SETTINGS for seed in seeds[name]):
        results = {
            "p": P,
            "d_model": D,
            "share": SHARE,
            "lr": LR,
            "weight_decay": DECAY,
            "predictions": {name: why for name, (why, _) in PREDICTIONS.items()},
            "runs": {
                name: [thinned(name, RUNS.get(name, seed)) for seed in seeds[name]] for name in SETTINGS
            },
        }
        record("grokking", results, seeds=[0, 1, 2, 3, 4], cpu_seconds=sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
