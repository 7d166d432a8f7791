"""Trained at length L, tested at L to 4L: six ways to tell positions, three seeds each, on Shakespeare.

Three variants come with them: without positions but with a mark in place of the first character of each
window, without positions and with four blocks in place of two, and, to compare, rotary with four blocks.

`python length_extrapolation.py` runs what has not been run yet and records it; with names, such as
`rotary "none, marked"`, it runs only those, and records once all runs are there. Finished runs are kept in
`_build/length_extrapolation/`. About thirteen minutes of one core.
"""

import argparse
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import torch
from torch import Tensor

from tformer_book.kit.data.text import shakespeare
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, means, rounded
from tformer_book.positions.models.positioned import (
    POSITIONS,
    loss_by_position,
    overlapping_windows,
    positioned_gpt,
    shared_text,
)
from tformer_lib.core.score_bias import RelativeBias
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.data.windows import RandomWindows
from tformer_lib.models.language import language_loss
from tformer_lib.tokenizers import CharTokenizer
from tformer_lib.training import fit, seed_everything

CONFIG = TransformerConfig(d_model=64, n_heads=4, n_blocks=2)
LENGTH, BATCH, STEPS, SEEDS = 64, 16, 1500, [0, 1, 2]
NAMES = (*POSITIONS, "none, marked", "none, 4 blocks", "rotary, 4 blocks")
BIN = 16  # positions that are averaged; also the stride of the windows
WINDOWS = 1000
RUNS = Runs("length_extrapolation")


class Prepared(NamedTuple):
    """What the models read: in training, and when they are judged."""

    train: Tensor  # all of the training text
    windows: Tensor  # of held-out text, (count, 4 LENGTH + 1)
    keep: Tensor  # which of their predictions are of characters that are predicted at every position
    vocab: int


@cache
def prepared(count: int) -> Prepared:
    """The training text, and `count` overlapping windows of the held-out text."""
    text = shakespeare("train")
    tokenizer = CharTokenizer.from_text(text)
    held_out = torch.tensor(tokenizer.encode(shakespeare("validation")))
    return Prepared(
        train=torch.tensor(tokenizer.encode(text)),
        windows=overlapping_windows(held_out, 4 * LENGTH, stride=BIN, count=count),
        keep=shared_text(4 * LENGTH, stride=BIN, count=count),
        vocab=tokenizer.vocab_size,
    )


def mark(windows: Tensor, token: int) -> Tensor:
    """The windows with `token` in the first place."""
    return torch.cat([torch.full_like(windows[:, :1], token), windows[:, 1:]], dim=1)


def run(name: str, seed: int) -> dict:
    """Trains one model and measures its loss at the positions 1..4L, averaged over bins."""
    text = prepared(WINDOWS)
    seed_everything(seed)
    way, _, variant = name.partition(", ")
    config = replace(CONFIG, n_blocks=4) if variant == "4 blocks" else CONFIG
    windows, vocab = text.windows, text.vocab
    batches: Iterable = RandomWindows(text.train, batch=BATCH, length=LENGTH, steps=STEPS, seed=seed)
    if variant == "marked":
        batches, windows, vocab = [mark(b, vocab) for b in batches], mark(windows, vocab), vocab + 1
    model = positioned_gpt(way, config, vocab, length=LENGTH, longest=4 * LENGTH)
    history = fit(model, language_loss, batches)
    loss = loss_by_position(model, windows)
    bias = model.transformer.blocks[0].self_attention.backend.score_bias
    learned = bias.table.tolist() if isinstance(bias, RelativeBias) else None
    return {
        "trained": round(sum(history.loss[-100:]) / 100, 4),
        "loss": rounded(means(loss.tolist(), BIN)),
        "bias": rounded(learned, 3),  # (H, buckets)
    }


def main() -> None:
    """Runs what is missing; records when nothing is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)}; all if none is given")
    torch.set_num_threads(1)
    for name in parser.parse_args().names or NAMES:
        for seed in SEEDS:
            RUNS.keep(name, seed, make=partial(run, name, seed))
    if all(RUNS.done(name, seed) for name in NAMES for seed in SEEDS):
        runs = {name: [RUNS.get(name, seed) for seed in SEEDS] for name in NAMES}
        seconds = sum(RUNS.seconds.values())
        settings = {"length": LENGTH, "bin": BIN, "batch": BATCH, "steps": STEPS}
        record("length_extrapolation", {**settings, "runs": runs}, seeds=SEEDS, cpu_seconds=seconds)


if __name__ == "__main__":
    main()
