"""Where the norm stands: pre-norm, post-norm and norm(x) + f(norm(x)) over depth, warm-up and learning rate.

A character model of Shakespeare, 300 steps; 3 placements, 3 depths, 3 warm-ups (2 at the larger rate), 3
seeds; and 1,500 steps with 8 blocks and no warm-up, to see who is only late.
`python norm_placement.py` runs what has not been run yet and records it; `--seconds 150` stops
after that much processor time. Finished runs are kept in `_build/norm_placement/`. About 18 minutes of one
core.
"""

import argparse
import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tformer_book.kit.data.text import shakespeare
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, means, rounded
from tformer_book.skip_norm.models.residual_variants import NormedSkipBlock, share_of_differences
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import Block, TransformerConfig
from tformer_lib.data.windows import RandomWindows, consecutive_windows
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.tokenizers import CharTokenizer
from tformer_lib.training import fit, seed_everything

PLACEMENTS = ("pre", "post", "normed skip")
DEPTHS, SEEDS = [2, 4, 8], [0, 1, 2]
SCHEDULES = [(1e-3, 0), (1e-3, 75), (1e-3, 150), (3e-3, 0), (3e-3, 150)]  # peak learning rate, warm-up
WIDTH, HEADS, LENGTH, BATCH, STEPS, LONGER, EVERY = 64, 4, 64, 8, 300, 1500, 100
RUNS = Runs("norm_placement")


def build(placement: str, depth: int, vocab: int) -> GPT:
    """The character model with its norms in one of the three places."""
    config = TransformerConfig(
        d_model=WIDTH, n_heads=HEADS, n_blocks=depth, norm_placement="post" if placement == "post" else "pre"
    )
    return GPT(
        config,
        vocab,
        positions=LearnedPositions(LENGTH, WIDTH),
        make_backend=FusedAttend,
        block=NormedSkipBlock if placement == "normed skip" else Block,
    )


@torch.no_grad()
def difference_share(model: GPT, tokens: Tensor) -> float:
    """||X - mean over tokens|| / ||X|| after the last block: zero if all tokens have become the same."""
    kept = []
    tap = model.transformer.blocks[-1].register_forward_hook(lambda *call: kept.append(call[-1]))
    model(tokens)
    tap.remove()
    return share_of_differences(kept[0]).item()


def run(
    train: Tensor,
    held: Tensor,
    vocab: int,
    lr: float,
    warmup: int,
    depth: int,
    placement: str,
    seed: int,
    steps: int,
    build: Callable[[str, int, int], GPT] = build,
) -> dict[str, Any]:
    """Trains one model."""
    seed_everything(seed)
    model = build(placement, depth, vocab)
    shares = [difference_share(model, held[:8, :-1])]
    batches = RandomWindows(train, batch=BATCH, length=LENGTH, steps=steps, seed=seed)
    history = fit(model, language_loss, batches, lr=lr, warmup=warmup)
    shares.append(difference_share(model, held[:8, :-1]))
    with torch.no_grad():
        loss = sum(language_loss(model, some).item() for some in held.split(32)) / len(held.split(32))
    return {
        "placement": placement,
        "depth": depth,
        "warmup": warmup,
        "lr": lr,
        "seed": seed,
        "steps": steps,
        "held_out": round(loss, 4),
        "train": rounded(means(history.loss, EVERY)),
        "grad_norm_first": round(history.grad_norm[0], 3),
        "grad_norm_largest": round(max(history.grad_norm), 3),
        "difference_share": rounded(shares),  # before and after training
    }


def unigram_loss(train: Tensor, held: Tensor, vocab: int) -> float:
    """The loss of a model that knows how often each character occurs, and nothing else."""
    frequencies = torch.bincount(train, minlength=vocab) / len(train)
    return -frequencies.log()[held[:, 1:].flatten()].mean().item()


def main() -> None:
    """Runs what is missing; records when nothing is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of processor time")
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = shakespeare("train")
    tokenizer = CharTokenizer.from_text(text)
    train = torch.tensor(tokenizer.encode(text))
    windows = consecutive_windows(torch.tensor(tokenizer.encode(shakespeare("validation"))), LENGTH)
    held = windows[:: len(windows) // 256][:256]
    cells = itertools.product(SCHEDULES, DEPTHS, PLACEMENTS, SEEDS)
    grid = [(*schedule, depth, placement, seed, STEPS) for schedule, depth, placement, seed in cells]
    grid += [(1e-3, 0, 8, placement, seed, LONGER) for placement in PLACEMENTS for seed in SEEDS]
    for cell in grid:
        if time.process_time() < options.seconds:
            RUNS.keep(*cell, make=partial(run, train, held, tokenizer.vocab_size, *cell))
    if all(RUNS.done(*cell) for cell in grid):
        runs = [RUNS.get(*cell) for cell in grid]
        seconds = sum(RUNS.seconds.values())
        settings = {"width": WIDTH, "length": LENGTH, "batch": BATCH, "steps": STEPS, "every": EVERY}
        baseline = {"unigram": round(unigram_loss(train, held, tokenizer.vocab_size), 4)}
        sorted_runs = {
            "runs": [r for r in runs if r["steps"] == STEPS],
            "longer": [r for r in runs if r["steps"] == LONGER],
        }
        record("norm_placement", {**settings, **baseline, **sorted_runs}, seeds=SEEDS, cpu_seconds=seconds)


if __name__ == "__main__":
    main()
