"""Where the norm stands: pre-norm, post-norm and norm(x) + f(norm(x)) over depth, warm-up and learning rate.

A character model of Shakespeare, 300 steps; 3 placements, 3 depths, 3 warm-ups (2 at the larger rate), 3
seeds; and 1,500 steps with 8 blocks and no warm-up, to see who is only late.
`python benchmarks/norm_placement.py` runs what has not been run yet and records it; `--seconds 150` stops
after that much processor time. Finished runs are kept in `_build/norm_placement/`. About 18 minutes of one
core.
"""

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import Block, TransformerConfig
from tformer_lib.data.text import shakespeare
from tformer_lib.data.tokenizers import CharTokenizer
from tformer_lib.data.windows import RandomWindows, consecutive_windows
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.models.residual_variants import NormedSkipBlock, share_of_differences
from tformer_lib.recorded import record
from tformer_lib.training import fit, seed_everything

PLACEMENTS = ("pre", "post", "normed skip")
DEPTHS, SEEDS = [2, 4, 8], [0, 1, 2]
SCHEDULES = [(1e-3, 0), (1e-3, 75), (1e-3, 150), (3e-3, 0), (3e-3, 150)]  # peak learning rate, warm-up
WIDTH, HEADS, LENGTH, BATCH, STEPS, LONGER, EVERY = 64, 4, 64, 8, 300, 1500, 100
RUNS = Path(__file__).parents[1] / "_build" / "norm_placement"


def build(placement: str, depth: int, vocab: int) -> GPT:
    """The character model with its norms in one of the three places."""
    config = TransformerConfig(WIDTH, HEADS, depth, norm_placement="post" if placement == "post" else "pre")
    return GPT(
        config,
        vocab,
        positions=LearnedPositions(LENGTH, WIDTH),
        attend=FusedAttend,
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


def means(values: list[float]) -> list[float]:
    """The means of EVERY values at a time."""
    return [round(sum(values[i : i + EVERY]) / EVERY, 4) for i in range(0, len(values), EVERY)]


def run(
    placement: str,
    depth: int,
    warmup: int,
    lr: float,
    seed: int,
    steps: int,
    train: Tensor,
    held: Tensor,
    vocab: int,
) -> dict[str, Any]:
    """Trains one model."""
    start = time.process_time()
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
        "train": means(history.loss),
        "grad_norm_first": round(history.grad_norm[0], 3),
        "grad_norm_largest": round(max(history.grad_norm), 3),
        "difference_share": [round(share, 4) for share in shares],  # before and after training
        "cpu_seconds": round(time.process_time() - start, 1),
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
    RUNS.mkdir(parents=True, exist_ok=True)
    text = shakespeare("train")
    tokenizer = CharTokenizer.from_text(text)
    train = torch.tensor(tokenizer.encode(text))
    windows = consecutive_windows(torch.tensor(tokenizer.encode(shakespeare("validation"))), LENGTH)
    held = windows[:: len(windows) // 256][:256]
    cells = itertools.product(SCHEDULES, DEPTHS, PLACEMENTS, SEEDS)
    grid = [(*schedule, depth, placement, seed, STEPS) for schedule, depth, placement, seed in cells]
    grid += [(1e-3, 0, 8, placement, seed, LONGER) for placement in PLACEMENTS for seed in SEEDS]
    paths = [
        RUNS / f"{placement.replace(' ', '_')}-{depth}-{lr}-{warmup}-{seed}-{steps}.json"
        for lr, warmup, depth, placement, seed, steps in grid
    ]
    for (lr, warmup, depth, placement, seed, steps), path in zip(grid, paths, strict=True):
        if not path.exists() and time.process_time() < options.seconds:
            result = run(placement, depth, warmup, lr, seed, steps, train, held, tokenizer.vocab_size)
            path.write_text(json.dumps(result))
            print(path.name, result["held_out"], result["cpu_seconds"], flush=True)
    if all(path.exists() for path in paths):
        runs = [json.loads(path.read_text()) for path in paths]
        seconds = sum(r.pop("cpu_seconds") for r in runs)
        settings = {"width": WIDTH, "length": LENGTH, "batch": BATCH, "steps": STEPS, "every": EVERY}
        baseline = {"unigram": round(unigram_loss(train, held, tokenizer.vocab_size), 4)}
        sorted_runs = {
            "runs": [r for r in runs if r["steps"] == STEPS],
            "longer": [r for r in runs if r["steps"] == LONGER],
        }
        record("norm_placement", {**settings, **baseline, **sorted_runs}, seeds=SEEDS, cpu_seconds=seconds)


if __name__ == "__main__":
    main()
