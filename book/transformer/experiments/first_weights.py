"""Controls for chapter 6: which of the small first weights delay a model, and whether one needs a warm-up.

Three seeds each. "parts": the masked characters of `initialisation.py`, post-norm, 1,000 steps, where only
some linear maps start from N(0, 0.02^2) and the others by Xavier's rule; "only ..." has it the other way
round. "warm-up": a decoder of two blocks, 300 steps, at two rates with warm-up and without. Each run is kept
as it ends; a second start goes on from there.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, means, rounded
from tformer_book.transformer.experiments.initialisation import (
    BATCH,
    EVERY,
    LENGTH,
    SEEDS,
    SMALL,
    data,
    masked_loss,
    masked_model,
    unigram,
)
from tformer_lib import TransformerConfig
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.data.windows import RandomWindows, consecutive_windows
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.training import fit, seed_everything

PARTS = {  # which maps an entry is about; the readout is the last module of the model
    "queries and keys": ("W_q", "W_k"),
    "values and output": ("W_v", "W_o"),
    "attention": ("W_q", "W_k", "W_v", "W_o"),
    "MLP": ("W_in", "W_out"),
    "readout": ("3",),
}
WINDOW, WIDTH, HEADS = 64, 64, 4


def mixed_model(n: int, part: str, only: bool) -> nn.Sequential:
    """Xavier's rule for all maps but those of the part, or, if `only`, for those of the part alone."""
    model = masked_model(n, "post", "xavier")
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Linear) and (name.split(".")[-1] in PARTS[part]) != only:
            nn.init.normal_(layer.weight, std=SMALL)
    return model


def masked_run(part: str, only: bool, seed: int) -> dict:
    """One run of "parts"."""
    train, held, n = data()
    seed_everything(seed)
    model = mixed_model(n, part, only)
    windows = RandomWindows(train, batch=BATCH, length=LENGTH, steps=1000, seed=seed)
    history = fit(model, masked_loss, windows, lr=2e-3, warmup=50)
    torch.manual_seed(0)
    with torch.no_grad():
        end = masked_loss(model, consecutive_windows(held, LENGTH)[:1000])
    return rounded({"loss": means(history.loss, EVERY), "held_out": end.item()})


def gpt_run(lr: float, warmup: int, seed: int) -> dict:
    """One run of "warm-up"."""
    train, held, n = data()
    seed_everything(seed)
    config = TransformerConfig(d_model=WIDTH, n_heads=HEADS, n_blocks=2)
    model = GPT(config, n, positions=LearnedPositions(WINDOW, WIDTH))
    windows = RandomWindows(train, batch=16, length=WINDOW, steps=300, seed=seed)
    history = fit(model, language_loss, windows, lr=lr, warmup=warmup, weight_decay=0.01, clip=1.0)
    with torch.no_grad():
        end = language_loss(model, consecutive_windows(held, WINDOW)[:200])
    return rounded({"loss": means(history.loss, EVERY), "held_out": end.item()})


def gathered(runs: Runs, *key: str | float, make: Callable[[int], dict]) -> dict:
    """All seeds of one entry side by side."""
    found = [runs.keep(*key, seed, make=partial(make, seed)) for seed in SEEDS]
    return {name: [one[name] for one in found] for name in found[0]}


if __name__ == "__main__":
    torch.set_num_threads(1)
    runs = Runs("first_weights")
    parts, warm = {}, {}
    for only in (False, True):
        for part in PARTS if not only else ("attention", "MLP"):
            name = f"only {part} by Xavier" if only else f"{part} small"
            parts[name] = gathered(runs, "parts", name, make=partial(masked_run, part, only))
    for lr in (5e-3, 2e-2):
        for warmup in (0, 30):
            make = partial(gpt_run, lr, warmup)
            warm[f"rate {lr}, warm-up {warmup}"] = gathered(runs, "warm", lr, warmup, make=make)
    results = {"every": EVERY, "unigram": unigram(), "parts": parts, "warm-up": warm}
    record("first_weights", results, seeds=SEEDS, cpu_seconds=sum(runs.seconds.values()))
