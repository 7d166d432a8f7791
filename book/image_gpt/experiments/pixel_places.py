"""Does it help a GPT of pixels to be told of rows and columns? Four ways to say where a pixel stands.

"places" is the chapter's: one learned vector for each of the 196. "rows and columns" adds a vector for the
row and one for the column, 28 in all, so that pixels above each other share one. "shuffled" has as many
vectors, on a plane on which the pixels lie in a random order, another one for each seed: it says where a
pixel stands, and nothing of rows and columns. "none" says nothing. The model of the chapter otherwise: two
blocks, 450 steps of 16 images, three seeds.

`python pixel_places.py` runs what has not been run yet and records it; what is finished is kept in
`_build/pixel_places/`. With `--add` it runs only what the record does not hold. Eight minutes of one core.
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tformer_book.image_gpt.experiments.image_gpt import BATCH, LEVELS, SEEDS, SIDE, data
from tformer_book.kit.data.mnist import ImageBatches
from tformer_book.kit.records import record, recorded
from tformer_book.kit.runs import Runs
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.measures.language import bits_per_pixel
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.training import count_parameters, fit, seed_everything

RUNS = Runs("pixel_places")
STEPS, WIDTH = 450, 64


class RowsAndColumns(nn.Module):
    """x_n + r_i + c_j, with i the row and j the column of the pixel that is asked for in place n.

    If `shuffled`, of the pixel in place o(n), with o an order drawn at random.
    """

    def __init__(self, side: int, d_model: int, *, shuffled: bool = False):
        super().__init__()
        self.side, self.max_len = side, side * side
        self.order = torch.randperm(side * side) if shuffled else torch.arange(side * side)
        self.rows = nn.Parameter(torch.randn(side, d_model) * 0.02)
        self.columns = nn.Parameter(torch.randn(side, d_model) * 0.02)

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        n = self.order[offset : offset + x.shape[1]]
        return x + self.rows[n // self.side] + self.columns[n % self.side]


WAYS: dict[str, Callable[[], nn.Module | None]] = {
    "places": lambda: LearnedPositions(SIDE * SIDE, WIDTH),
    "rows and columns": lambda: RowsAndColumns(SIDE, WIDTH),
    "shuffled": lambda: RowsAndColumns(SIDE, WIDTH, shuffled=True),
    "none": lambda: None,
}


def run(way: str, seed: int) -> dict[str, Any]:
    """One model, trained and measured."""
    rows, labels = data("train")
    seed_everything(seed)
    config = TransformerConfig(d_model=WIDTH, n_heads=4, n_blocks=2)
    model = GPT(config, LEVELS + 1, positions=WAYS[way](), make_backend=FusedAttend)
    batches = ImageBatches(rows, labels, batch=BATCH, steps=STEPS, seed=seed)
    fit(model, lambda model, batch: language_loss(model, batch[0]), batches, lr=1e-2, optimizer="muon")
    bits = bits_per_pixel(model, data("test")[0])
    return {"way": way, "seed": seed, "parameters": count_parameters(model), "bits": bits}


def main() -> None:
    """Run what is missing, and record everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", action="store_true", help="run only what the record does not hold")
    there: dict[tuple[str, int], Any] = {}
    spent = 0.0
    if parser.parse_args().add:
        before = recorded("pixel_places")
        there = {(result["way"], result["seed"]): result for result in before["results"]["runs"]}
        spent = before["cpu_seconds"]
    keys = [(way, seed) for way in WAYS for seed in SEEDS]
    results = [there[key] if key in there else RUNS.keep(*key, make=partial(run, *key)) for key in keys]
    cpu_seconds = spent + sum(RUNS.seconds.values())
    record("pixel_places", {"runs": results}, seeds=SEEDS, cpu_seconds=cpu_seconds)


if __name__ == "__main__":
    main()
