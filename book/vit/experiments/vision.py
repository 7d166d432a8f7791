"""MNIST-5k: accuracy against the number of training images, and against the size of the patches; three seeds.

Logistic regression, an SVM, 3-NN, a convolutional network and a vision transformer of as many parameters, the
last two also with shifts of up to two pixels, learn from 100, 300, 1,000 and 4,000 images, as many of each
digit; a seed draws the images, the same for all, and the first weights. The transformer's patches are 7 x 7;
with all images and shifts, in fewer steps, 4 x 4, 7 x 7 and 14 x 14 are compared, and mean pooling with the
class token, with the same seeds. Constants and learning rates were chosen on 600 images held back from the
training part; the test part is only measured on.

`python vision.py` runs what has not been run yet and records it; what is finished is kept in
`_build/vision/`. With `--seconds S` it stops after the first run that ends later. About twenty
minutes of one core.
"""

import argparse
import time
from functools import partial

import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from torch import Tensor, nn

from tformer_book.kit.data.mnist import ImageBatches, mnist
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, rounded
from tformer_book.vit.models.cnn import SmallCNN
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.vit import Pool, ViT, image_loss
from tformer_lib.training import count_parameters, fit, seed_everything, width_for_budget

SEEDS, SIZES = [0, 1, 2], [100, 300, 1000, 4000]
PATCHES, PATCH_SEEDS = [4, 7, 14], SEEDS
CONFIG = TransformerConfig(d_model=48, n_heads=6, n_blocks=4)
VIT = {"lr": 8e-3, "optimizer": "muon", "momentum": 0.9, "betas": (0.9, 0.95)}
CNN = {"lr": 2e-3, "betas": (0.9, 0.95)}
VIT_STEPS = {100: 400, 300: 600, 1000: 1000, 4000: 1500}
PATCH_STEPS = 1000
CNN_STEPS = {100: 200, 300: 300, 1000: 400, 4000: 500}
BATCH, MOST = 64, 2  # images a step; the largest shift
CLASSICAL = {
    "logistic regression": lambda: LogisticRegression(C=0.1, max_iter=1000),
    "SVM": lambda: SVC(C=10, gamma=0.02),
    "3-NN": lambda: KNeighborsClassifier(3),
}
NEURAL = ["CNN", "CNN + shifts", "ViT", "ViT + shifts"]
RUNS = Runs("vision")


def vit(patch: int = 7, pool: Pool = "class") -> ViT:
    """The vision transformer of the chapter."""
    return ViT(CONFIG, image_size=28, patch_size=patch, classes=10, pool=pool)


def cnn() -> SmallCNN:
    """The convolutional network with as many parameters."""
    budget = count_parameters(vit())
    return SmallCNN(10, width=width_for_budget(lambda width: SmallCNN(10, width=width), budget))


def few(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """n training images, as many of each digit."""
    images, labels = mnist("train")
    generator = torch.Generator().manual_seed(seed)
    places = [(labels == digit).nonzero()[:, 0] for digit in range(10)]
    chosen = torch.cat([p[torch.randperm(len(p), generator=generator)[: n // 10]] for p in places])
    return images[chosen], labels[chosen]


@torch.no_grad()
def accuracy(model: nn.Module) -> float:
    """The share of the test images that the model names rightly."""
    images, labels = mnist("test")
    return (model(images).argmax(dim=1) == labels).float().mean().item()


def run(name: str, n: int, seed: int, patch: int | None = None) -> dict:
    """One model trained and tested."""
    images, labels = few(n, seed)
    start = time.process_time()
    if name in CLASSICAL:
        model = CLASSICAL[name]().fit(images.flatten(1), labels)
        test, answers = mnist("test")
        return {"accuracy": model.score(test.flatten(1), answers), "seconds": time.process_time() - start}
    seed_everything(seed)
    if name.startswith("ViT"):
        network: nn.Module = vit(patch or 7, "mean" if "mean" in name else "class")
        options, steps = VIT, VIT_STEPS[n] if patch is None else PATCH_STEPS
    else:
        network, options, steps = cnn(), CNN, CNN_STEPS[n]
    most = MOST if "shifts" in name else 0
    fit(
        network,
        image_loss,
        ImageBatches(images, labels, batch=BATCH, steps=steps, seed=seed, most=most),
        **options,
    )
    seconds = time.process_time() - start
    result = {"accuracy": accuracy(network), "seconds": seconds, "parameters": count_parameters(network)}
    if patch is not None and isinstance(network, ViT):
        places = network.positions.table.detach()[-network.grid[0] * network.grid[1] :]
        places = torch.nn.functional.normalize(places - places.mean(dim=0), dim=1)
        result["cosines"] = rounded((places @ places.T).tolist(), 2)
    return result


def main() -> None:
    """Runs what is missing; records when nothing is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of processor time, then stop")
    seconds = parser.parse_args().seconds
    torch.set_num_threads(1)
    cells: list[tuple] = [(name, n, s) for s in SEEDS for n in SIZES for name in (*CLASSICAL, *NEURAL)]
    for seed in PATCH_SEEDS:
        cells += [("ViT + shifts", 4000, seed, patch) for patch in PATCHES]
        cells.append(("ViT + shifts, mean", 4000, seed, 7))
    for cell in cells:
        if not RUNS.done(*cell) and time.process_time() > seconds:
            return
        RUNS.keep(*cell, make=partial(run, *cell))
    found = {cell: RUNS.get(*cell) for cell in cells}

    def scores(name: str, n: int, *patch: int) -> list[float]:
        seeds = PATCH_SEEDS if patch else SEEDS
        return rounded([found[name, n, seed, *patch]["accuracy"] for seed in seeds])

    def patched(patch: int) -> dict:
        runs = [found["ViT + shifts", 4000, seed, patch] for seed in PATCH_SEEDS]
        return {
            "tokens": (28 // patch) ** 2 + 1,
            "parameters": runs[0]["parameters"],
            "accuracy": scores("ViT + shifts", 4000, patch),
            "seconds": round(sum(run["seconds"] for run in runs) / len(runs), 1),
        }

    results = {
        "steps": {"ViT": VIT_STEPS, "CNN": CNN_STEPS, "patches": PATCH_STEPS},
        "batch": BATCH,
        "parameters": {name: found[name, 4000, 0]["parameters"] for name in ("CNN", "ViT")},
        "accuracy": {name: {n: scores(name, n) for n in SIZES} for name in (*CLASSICAL, *NEURAL)},
        "cosines": found["ViT + shifts", 4000, 0, 4]["cosines"],  # of positions, patches of 4
        "mean pooling": scores("ViT + shifts, mean", 4000, 7),
        "patches": {patch: patched(patch) for patch in PATCHES},
    }
    record("vision", results, seeds=SEEDS, cpu_seconds=sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
