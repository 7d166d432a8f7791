"""Digits with shifts: the vision transformer of the chapter, trained for 3,000 steps.

In `moved_digits.py` it learns from 4,000 digits, each moved by up to two pixels each way when it comes up, in
800 and in 1,500 steps. Here it has 3,000, with the same batches, optimiser and rate, and a cosine schedule of
its own: is it still behind the CNN of as many parameters, which has 600 steps there? The seeds 0, 1 and 2 are
tested on 1,000 other digits, as they are, moved two pixels to the right, and in all nine places that are two
pixels or none away in each direction. Which test digits are named wrongly is recorded.

*Hundred* is a small experiment beside it: why the CNN of `without_labels.py` is better on 100 digits than
that of `vision.py`. The training of `vision.py` is repeated on the digits of the other.

Each run is kept in `_build/long_training`. About ten minutes of one core.
"""

from functools import partial
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from tformer_book.kit.data.mnist import ImageBatches, mnist
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs
from tformer_book.vit.experiments import moved_digits, vision, without_labels
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.vit import ViT, image_loss
from tformer_lib.training import count_parameters, fit, seed_everything

RUNS = Runs("long_training")
SEEDS, STEPS, BATCH, MOST = (0, 1, 2), 3000, 64, 2


def network() -> ViT:
    """The vision transformer of the chapter."""
    config = TransformerConfig(d_model=48, n_heads=6, n_blocks=3)
    return ViT(config, image_size=28, patch_size=7, classes=10, make_backend=FusedAttend)


@torch.no_grad()
def wrong(model: nn.Module, images: Tensor, labels: Tensor) -> list[int]:
    """Which images the model names wrongly."""
    guesses = torch.cat([model(part).argmax(dim=1) for part in images.split(250)])
    return (guesses != labels).nonzero()[:, 0].tolist()


def judged(seed: int) -> dict[str, Any]:
    """The transformer trained with shifts: which test digits it names wrongly, as they are and moved."""
    images, labels = mnist("train")
    test, answers = mnist("test")
    seed_everything(seed)
    model = network()
    batches = ImageBatches(images, labels, batch=BATCH, steps=STEPS, seed=seed, most=MOST)
    fit(model, image_loss, batches, **moved_digits.MUON)
    ways = {(d, r): wrong(model, pad(test, (r, -r, d, -d)), answers) for d in (-2, 0, 2) for r in (-2, 0, 2)}
    return {
        "wrong": ways[0, 0],
        "wrong, moved": ways[0, MOST],
        "nine places": round(fmean(len(found) for found in ways.values()) / len(test), 5),
        "training": round(len(wrong(model, images, labels)) / len(labels), 5),
    }


def hundred(seed: int) -> float:
    """The accuracy of a CNN trained as `vision.py` does on the 100 digits of `without_labels.py`."""
    seed_everything(seed)
    model, steps, options = vision.cnn(), vision.CNN_STEPS[100], dict[str, Any](vision.CNN)
    batches = ImageBatches(*without_labels.few(seed), batch=BATCH, steps=steps, seed=seed, most=MOST)
    fit(model, image_loss, batches, **options)
    test, answers = mnist("test")
    return round(1 - len(wrong(model, test, answers)) / len(test), 4)


def main() -> None:
    """Makes what is not there yet, and records all of it."""
    torch.set_num_threads(1)
    runs, few = [], []
    for seed in SEEDS:
        runs.append(RUNS.keep("judge", "ViT", seed, make=partial(judged, seed)))
        few.append(RUNS.keep("hundred", seed, make=partial(hundred, seed)))
    results = {
        "steps": STEPS,
        "batch": BATCH,
        "parameters": count_parameters(network()),
        "ViT": runs,
        "hundred": few,
    }
    record("long_training", results, seeds=list(SEEDS), cpu_seconds=sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
