"""Digits with shifts: the vision transformer of the chapter and its CNN, trained for 3,000 steps.

In `moved_digits.py` it learns from 4,000 digits, each moved by up to two pixels each way when it comes up, in
800 and in 1,500 steps. Here it has 3,000, with the same batches, optimiser and rate, and a cosine schedule of
its own: is it still behind the CNN of as many parameters, which has 600 steps there? And behind that CNN with
3,000 steps, too, of AdamW at the rate that `moved_digits.py` chose for it? The seeds 0, 1 and 2 are tested on
1,000 other digits, as they are, moved two pixels to the right, and in all nine places that are two pixels or
none away in each direction. Which test digits are named wrongly is recorded.

*Hundred* is a small experiment beside it: why the CNN of `without_labels.py` is better on 100 digits than
that of `vision.py`. The training of `vision.py` is repeated on the digits of the other.

Each run is kept in `_build/long_training`. About twenty minutes of one core. With `--add` the runs that the
record holds are taken from there, and only the others are made.
"""

import argparse
from functools import partial
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from tformer_book.kit.data.mnist import ImageBatches, mnist
from tformer_book.kit.records import record, recorded
from tformer_book.kit.runs import Runs
from tformer_book.vit.experiments import moved_digits, vision, without_labels
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.vit import ViT, image_loss
from tformer_lib.training import count_parameters, fit, seed_everything

RUNS = Runs("long_training")
SEEDS, STEPS, BATCH, MOST = (0, 1, 2), 3000, 64, 2
NETWORKS = ("ViT", "CNN")


def network(name: str) -> nn.Module:
    """The vision transformer of the chapter, with fused attention, or a CNN of as many parameters."""
    if name == "CNN":
        return moved_digits.network(name)
    config = TransformerConfig(d_model=48, n_heads=6, n_blocks=3)
    return ViT(config, image_size=28, patch_size=7, classes=10, make_backend=FusedAttend)


@torch.no_grad()
def wrong(model: nn.Module, images: Tensor, labels: Tensor) -> list[int]:
    """Which images the model names wrongly."""
    guesses = torch.cat([model(part).argmax(dim=1) for part in images.split(250)])
    return (guesses != labels).nonzero()[:, 0].tolist()


def training(name: str) -> dict[str, Any]:
    """How `moved_digits.py` trains this network with shifts."""
    if name == "ViT":
        return moved_digits.MUON
    rate = recorded("moved_digits")["results"]["table"][name]["shifts"]["rate"]
    return {"lr": rate, "betas": moved_digits.BETAS}


def judged(name: str, seed: int) -> dict[str, Any]:
    """A network trained with shifts: which test digits it names wrongly, as they are and moved."""
    images, labels = mnist("train")
    test, answers = mnist("test")
    seed_everything(seed)
    model = network(name)
    batches = ImageBatches(images, labels, batch=BATCH, steps=STEPS, seed=seed, most=MOST)
    fit(model, image_loss, batches, **training(name))
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


def restore() -> float:
    """Keep what the record holds as if it had been run here; how long all of it took."""
    there = recorded("long_training")
    for i, seed in enumerate(SEEDS):
        rows = {("judge", name): there["results"].get(name) for name in NETWORKS}
        for key, found in (rows | {("hundred",): there["results"]["hundred"]}).items():
            if found and not RUNS.done(*key, seed):
                RUNS.put(*key, seed, result=found[i], seconds=0.0)
    return float(there["cpu_seconds"])


def main() -> None:
    """Makes what is not there yet, and records all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", action="store_true", help="run only what the record does not hold")
    spent = restore() if parser.parse_args().add else 0.0
    torch.set_num_threads(1)
    results = {
        "steps": STEPS,
        "batch": BATCH,
        "parameters": {name: count_parameters(network(name)) for name in NETWORKS},
        "hundred": [RUNS.keep("hundred", seed, make=partial(hundred, seed)) for seed in SEEDS],
    }
    for name in NETWORKS:
        results[name] = [RUNS.keep("judge", name, seed, make=partial(judged, name, seed)) for seed in SEEDS]
    record("long_training", results, seeds=list(SEEDS), cpu_seconds=spent + sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
