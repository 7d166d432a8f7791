"""QK-norm beside branch norm and beside pre-norm: whose is the gain?

The models, the data and the first schedule of `norm_placement.py` (eight blocks, rate 0.001, no warm-up, 300
steps), with a norm of queries and keys. Those without it are in the records of `norm_placement.py` and
`norm_variants.py`. `python norm_qk.py` runs what has not been run yet and records it. Finished
runs are kept in `_build/norm_qk/`. About 2 minutes of one core.
"""

from functools import partial

import torch

from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs
from tformer_book.skip_norm.experiments import norm_placement as grid
from tformer_book.skip_norm.experiments.norm_placement import HEADS, LENGTH, SEEDS, STEPS, WIDTH
from tformer_book.skip_norm.models.residual_variants import BranchNormBlock
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import Block, TransformerConfig
from tformer_lib.models.gpt import GPT

BLOCKS = {"branch, QK-norm": BranchNormBlock, "pre, QK-norm": Block}
LR, WARMUP, DEPTH = 1e-3, 0, 8
RUNS = Runs("norm_qk")


def build(placement: str, depth: int, vocab: int) -> GPT:
    """The character model with a norm of queries and keys."""
    config = TransformerConfig(d_model=WIDTH, n_heads=HEADS, n_blocks=depth, qk_norm=True)
    positions = LearnedPositions(LENGTH, WIDTH)
    block = BLOCKS[placement]
    return GPT(config, vocab, positions=positions, make_backend=FusedAttend, block=block)


def main() -> None:
    """Runs what is missing and records it."""
    torch.set_num_threads(1)
    text = grid.shakespeare("train")
    tokenizer = grid.CharTokenizer.from_text(text)
    train = torch.tensor(tokenizer.encode(text))
    unseen = torch.tensor(tokenizer.encode(grid.shakespeare("validation")))
    windows = grid.consecutive_windows(unseen, LENGTH)
    held, vocab = windows[:: len(windows) // 256][:256], tokenizer.vocab_size

    def trained(placement: str, seed: int, build=build) -> dict:
        cell = (LR, WARMUP, DEPTH, placement, seed)
        return RUNS.keep(*cell, make=partial(grid.run, train, held, vocab, *cell, STEPS, build=build))

    runs = [trained(placement, seed) for placement in BLOCKS for seed in SEEDS]
    again = [trained("pre", 0, grid.build)]  # a run of the first record, to see that the two can be compared
    settings = {"width": WIDTH, "length": LENGTH, "batch": grid.BATCH, "steps": STEPS}
    results = {**settings, "runs": runs, "again": again}
    record("norm_qk", results, seeds=SEEDS, cpu_seconds=sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
