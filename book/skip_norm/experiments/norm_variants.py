"""More places for the norm, RMSNorm in LayerNorm's place, and what each block of a trained stack is worth.

The models, the data and the schedules of `norm_placement.py`, whose record has the other runs: norm on the
branch, x + norm(f(x)), and sandwich norm, x + norm'(f(norm(x))); pre-norm with RMSNorm; and pre-norm and
post-norm trained for longer, in which each block in turn is left out. `python norm_variants.py`
runs what has not been run yet and records it. Finished runs are kept in `_build/norm_variants/`. About 10
minutes of one core.
"""

import itertools
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, rounded
from tformer_book.skip_norm.experiments import norm_placement as grid
from tformer_book.skip_norm.experiments.norm_placement import HEADS, LENGTH, SCHEDULES, SEEDS, STEPS, WIDTH
from tformer_book.skip_norm.models.residual_variants import BranchNormBlock, SandwichBlock
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import Block, TransformerConfig
from tformer_lib.data.windows import RandomWindows
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.training import fit, seed_everything

BLOCKS = {"branch": BranchNormBlock, "sandwich": SandwichBlock}
LONGER = 750  # steps
RUNS = Runs("norm_variants")


def build(placement: str, depth: int, vocab: int) -> GPT:
    """The character model with one of the placements; "pre rms" is pre-norm with RMSNorm."""
    if placement in grid.PLACEMENTS:
        return grid.build(placement, depth, vocab)
    norm = "rms" if placement == "pre rms" else "layer"
    config = TransformerConfig(d_model=WIDTH, n_heads=HEADS, n_blocks=depth, norm=norm)
    block = BLOCKS.get(placement, Block)
    positions = LearnedPositions(LENGTH, WIDTH)
    return GPT(config, vocab, positions=positions, make_backend=FusedAttend, block=block)


@torch.no_grad()
def held_out(model: GPT, held: Tensor) -> float:
    """The mean loss on held-out windows."""
    return sum(language_loss(model, some).item() for some in held.split(32)) / len(held.split(32))


@torch.no_grad()
def worth(model: GPT, held: Tensor) -> dict[str, list[float]]:
    """Of each block: what it changes, relative to what it reads, and the loss if it is left out."""
    changes: list[float] = []

    def watch(block: Any, read: tuple, out: Tensor) -> None:
        changes.append(((out - read[0]).norm() / read[0].norm()).item())

    taps = [block.register_forward_hook(watch) for block in model.transformer.blocks]
    model(held[:32, :-1])
    for tap in taps:
        tap.remove()
    losses = []
    for block in model.transformer.blocks:
        tap = block.register_forward_hook(lambda block, read, out: read[0])
        losses.append(held_out(model, held))
        tap.remove()
    return {"changes": rounded(changes), "without": rounded(losses)}


def longer(
    train: Tensor, held: Tensor, vocab: int, warmup: int, depth: int, placement: str, seed: int
) -> dict[str, Any]:
    """Trains one model for longer and leaves out its blocks one by one."""
    seed_everything(seed)
    model = build(placement, depth, vocab)
    batches = RandomWindows(train, batch=grid.BATCH, length=LENGTH, steps=LONGER, seed=seed)
    fit(model, language_loss, batches, lr=1e-3, warmup=warmup)
    found = {"placement": placement, "depth": depth, "warmup": warmup, "seed": seed}
    return {**found, "held_out": round(held_out(model, held), 4), **worth(model, held)}


def cells() -> list[tuple]:
    """Learning rate, warm-up, depth, placement, seed of each run of the grid."""
    found = itertools.product(SCHEDULES, (8,), BLOCKS, SEEDS)
    shallow = itertools.product([(1e-3, 0)], (4,), BLOCKS, SEEDS)
    rms = itertools.product([(1e-3, 0)], (4, 8), ["pre rms"], SEEDS)
    return [(*schedule, *others) for schedule, *others in (*found, *shallow, *rms)]


def main() -> None:
    """Runs what is missing and records it."""
    torch.set_num_threads(1)
    text = grid.shakespeare("train")
    tokenizer = grid.CharTokenizer.from_text(text)
    train = torch.tensor(tokenizer.encode(text))
    unseen = torch.tensor(tokenizer.encode(grid.shakespeare("validation")))
    windows = grid.consecutive_windows(unseen, LENGTH)
    held = windows[:: len(windows) // 256][:256]
    vocab = tokenizer.vocab_size
    runs = [
        RUNS.keep(*cell, make=partial(grid.run, train, held, vocab, *cell, STEPS, build=build))
        for cell in cells()
    ]
    again = [  # a run of the other record, to see that the two can be compared
        RUNS.keep("again", *cell, make=partial(grid.run, train, held, vocab, *cell, STEPS))
        for cell in [(1e-3, 0, 8, "pre", 0), (1e-3, 150, 8, "post", 0)]
    ]
    kinds = itertools.product([("pre", 0), ("pre", LONGER // 2), ("post", LONGER // 2)], SEEDS)
    blocks = [
        RUNS.keep(
            "longer", name, warmup, seed, make=partial(longer, train, held, vocab, warmup, 8, name, seed)
        )
        for (name, warmup), seed in kinds
    ]
    settings = {"width": WIDTH, "length": LENGTH, "batch": grid.BATCH, "steps": STEPS, "longer": LONGER}
    results = {**settings, "runs": runs, "again": again, "blocks": blocks}
    record("norm_variants", results, seeds=SEEDS, cpu_seconds=sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
