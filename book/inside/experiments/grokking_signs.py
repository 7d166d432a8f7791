"""Are the waves of the moment a sign of a rule to come? The networks of `grokking.py` with 40% of the pairs.

`grokking.py` computes the restricted loss with the key frequencies of the *finished* network. Here the three
strongest frequencies of the embedding are taken afresh at every measurement, and the waves of a + b with
these frequencies are computed from the logits of unseen pairs alone. Beside them stand three frequencies at
random, mean of ten draws. Controls are networks that find no rule: answers dealt out at random, where there
is none, and training without weight decay. Three seeds each, 2,800 steps, all else as in `grokking.py`.

`python grokking_signs.py` runs what has not been run yet; about nine minutes of one core.
"""

from functools import partial

import torch
from torch import Tensor

from tformer_book.inside.experiments.grokking import DECAY, LR, D, P, numbers_of, score, significant
from tformer_book.inside.fourier import along_sum, fourier_power
from tformer_book.inside.models.modular_addition import (
    addition_table,
    answer_logits,
    modular_adder,
    shown_pairs,
    shuffled_answers,
    train_adder,
    unseen_pairs,
)
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs
from tformer_lib.training import seed_everything

SHARE, STEPS, EVERY, STRONGEST = 0.4, 2800, 100, 3
SEEDS = [0, 1, 2]
SETTINGS: dict[str, dict] = {
    "weight decay": {},
    "answers at random": {"shuffled": True},
    "no weight decay": {"decay": 0.0},
}
RUNS = Runs("grokking_signs")


def signs(logits: Tensor, numbers: Tensor, answers: Tensor, unseen: Tensor, draws: torch.Generator) -> dict:
    """What the three strongest frequencies of the embedding get right, computed from unseen pairs alone."""
    power = fourier_power(numbers)[1:]
    strongest = power.topk(STRONGEST).indices.add(1).tolist()
    drawn = [torch.randperm(P // 2, generator=draws)[:STRONGEST].add(1).tolist() for _ in range(10)]

    def restricted(frequencies: list[int]) -> float:
        return score(along_sum(logits, frequencies, unseen), answers, unseen)["accuracy"]

    return {
        "unseen": score(logits, answers, unseen)["accuracy"],
        "strongest": strongest,
        "power": float(power.topk(STRONGEST).values.sum() / power.sum()),
        "restricted": restricted(strongest),
        "at random": sum(map(restricted, drawn)) / len(drawn),
    }


def run(name: str, seed: int) -> dict:
    """Trains one network, measured every hundred steps."""
    setting = SETTINGS[name]
    tokens, answers = addition_table(P)
    if setting.get("shuffled"):
        answers = shuffled_answers(answers, seed)
    shown = shown_pairs(P, SHARE, seed)
    unseen = unseen_pairs(shown)
    seed_everything(seed)
    model = modular_adder(P, D, d_hidden=4 * D)
    draws = torch.Generator().manual_seed(seed)
    steps: list[int] = []
    seen: list[dict] = []

    @torch.no_grad()
    def watch(step: int) -> None:
        steps.append(step)
        seen.append(signs(answer_logits(model, tokens), numbers_of(model), answers, unseen, draws))

    train_adder(
        model,
        tokens[shown],
        answers[shown],
        steps=STEPS,
        lr=LR,
        weight_decay=setting.get("decay", DECAY),
        every=EVERY,
        watch=watch,
    )
    return significant({"steps": steps} | {key: [found[key] for found in seen] for key in seen[0]})


def main() -> None:
    """Runs what is missing, and records."""
    torch.set_num_threads(1)
    results = {
        name: [RUNS.keep(name, seed, make=partial(run, name, seed)) for seed in SEEDS] for name in SETTINGS
    }
    record("grokking_signs", results, seeds=SEEDS, cpu_seconds=sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
