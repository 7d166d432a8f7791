"""Does the best learning rate survive a wider model? Standard and maximal update parametrisation, 3 seeds.

A GPT of two blocks and four heads reads characters of the plays, 16 windows of 32 a step, 150 steps of Adam
with warm-up and a cosine, at widths 32, 64, 128 and 256, with eight learning rates each. The two
parametrisations are the same at width 32 (`WidthRules`); everything else is equal at all widths: the windows
of a seed, the schedule, the tokens, no weight decay, no clipping. Recorded is the loss on held-out plays at
the end; null where training left the finite numbers.

"one rule" is a control at width 256: the standard parametrisation in which only the learning rates of the
matrices follow muP ("rates"), or only the readout's first values and the scores ("values").

`python mup.py` runs what has not been run yet and records it; what is done is kept in
`_build/mup/`. About fifteen minutes of one core.
"""

import argparse
import math

import torch

from tformer_book.kit.data.text import shakespeare
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, rounded
from tformer_book.scale.mup import WidthRules, train_by_rules
from tformer_lib import TransformerConfig
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.data.windows import RandomWindows, consecutive_windows
from tformer_lib.models.language import language_loss
from tformer_lib.tokenizers import CharTokenizer
from tformer_lib.training import seed_everything

SEEDS, BASE, WIDTHS, LENGTH, BATCH, STEPS = [0, 1, 2], 32, [32, 64, 128, 256], 32, 16, 150
RATES = [1e-3 * 2**k for k in range(8)]
RUNS = Runs("mup")


def data() -> tuple[torch.Tensor, torch.Tensor, int]:
    """Characters for training and held out, and how many different ones there are."""
    text = shakespeare("train")
    tokens = CharTokenizer.from_text(text)
    known = set(text)
    held = "".join(c for c in shakespeare("validation")[:40_000] if c in known)
    return (
        torch.tensor(tokens.encode(text)),
        consecutive_windows(torch.tensor(tokens.encode(held)), LENGTH)[:512],
        tokens.vocab_size,
    )


def run(values: WidthRules, rates: WidthRules, width: int, lr: float, seed: int) -> dict[str, float | None]:
    """The held-out loss of one training: first values and scores by one set of rules, rates by the other."""
    train, held, vocab = data()
    seed_everything(seed)
    config = TransformerConfig(d_model=width, n_heads=4, n_blocks=2)
    model = values.gpt(config, vocab, positions=LearnedPositions(LENGTH, width), embedding_std=0.1)
    windows = RandomWindows(train, batch=BATCH, length=LENGTH, steps=STEPS, seed=seed)
    losses = train_by_rules(model, language_loss, windows, rules=rates, lr=lr, steps=STEPS)
    with torch.no_grad():
        loss = language_loss(model, held).item()
    finite = math.isfinite(loss) and len(losses) == STEPS
    return {"loss": round(loss, 4) if finite else None}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    parser.add_argument("--only", action="store_true", help="keep the runs and record nothing")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    standard, mup = WidthRules(BASE, "standard"), WidthRules(BASE, "mup")
    pairs = {"standard": (standard, standard), "mup": (mup, mup)}
    for seed in asked.seeds:
        for width in asked.widths:
            for name, (values, rates) in pairs.items():
                for lr in RATES:
                    RUNS.keep(name, width, lr, seed, make=lambda: run(values, rates, width, lr, seed))  # noqa: B023
    if not asked.only:
        controls = {"rates": (standard, mup), "values": (mup, standard)}
        for name, (values, rates) in controls.items():
            for lr in RATES[1:6]:
                RUNS.keep(name, WIDTHS[-1], lr, 0, make=lambda: run(values, rates, WIDTHS[-1], lr, 0))  # noqa: B023
        kept = RUNS.kept()
        results = {
            "rates": RATES,
            "widths": WIDTHS,
            "base": BASE,
            "steps": STEPS,
            "loss": {
                name: {
                    str(width): [[kept[name, width, lr, seed]["loss"] for lr in RATES] for seed in SEEDS]
                    for width in WIDTHS
                }
                for name in pairs
            },
            "one rule": {
                name: {
                    "rates": RATES[1:6],
                    "loss": [kept[name, WIDTHS[-1], lr, 0]["loss"] for lr in RATES[1:6]],
                }
                for name in controls
            },
        }
        record("mup", rounded(results), seeds=SEEDS, cpu_seconds=sum(RUNS.seconds.values()))
