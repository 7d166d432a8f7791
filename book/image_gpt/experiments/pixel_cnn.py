"""Masked convolutions on the pixels of the chapter on ImageGPT: its GPT's steps, and four times as many.

Four times as many steps take about as long as the GPT's. `python pixel_cnn.py` runs what has not
been run yet and records it; what is finished is kept in `_build/pixel_cnn/`. Three minutes of one core.
"""

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tformer_book.image_gpt.experiments.image_gpt import BATCH, LEVELS, SEEDS, SIDE, data
from tformer_book.image_gpt.models.pixel_cnn import PixelCNN
from tformer_book.kit.data.mnist import ImageBatches
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs
from tformer_lib.training import count_parameters, fit, seed_everything

RUNS = Runs("pixel_cnn")
STEPS = (450, 1800)


def loss(model: nn.Module, batch: Any) -> Tensor:
    """Nats per pixel; the start token and the labels are left alone."""
    pixels = batch[0][:, 1:]
    return cross_entropy(model(pixels), pixels)


def run(steps: int, seed: int) -> dict[str, Any]:
    """One model, trained and measured."""
    rows, labels = data("train")
    seed_everything(seed)
    model = PixelCNN(LEVELS, SIDE)
    batches = ImageBatches(rows, labels, batch=BATCH, steps=steps, seed=seed)
    history = fit(model, loss, batches, lr=1e-2, optimizer="adamw")
    with torch.no_grad():
        bits = loss(model.eval(), data("test")).item() / math.log(2)
    parameters = count_parameters(model)
    return {"steps": steps, "seed": seed, "parameters": parameters, "bits": bits, "seconds": history.seconds}


def main() -> None:
    """Run what is missing, and record everything."""
    results = []
    for key in [(steps, seed) for steps in STEPS for seed in SEEDS]:
        result = RUNS.keep(*key, make=partial(run, *key))
        results.append(result | {"cpu_seconds": RUNS.seconds[key]})
    record("pixel_cnn", {"runs": results}, seeds=SEEDS, cpu_seconds=sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
