"""Digits moved by two pixels: every method of the chapter on images, trained with and without shifts.

The methods learn from 4,000 digits of MNIST and are tested on 1,000 others, as they are and moved by two
pixels to the right. "With shifts" means for both networks that each image is moved by up to two pixels each
way when it comes up; logistic regression, 3-NN and the SVM get each image five times, as it is and moved four
times. The convolutional network and the vision transformer have as many parameters and the same optimiser,
steps and batches. The learning rate is the best of three for each network and each way of training, by 600
digits held back from the 4,000, with seed 0 (none is held back afterwards); the seeds 0, 1 and 2 are then
tested.

"ViT, longer" has 1,500 steps of Muon, as the chapter trains it, with a rate chosen for the chapter. The
transformer is also taught by a convolutional network that has learned from all 4,000 digits with shifts:
it learns the probabilities which that one gives, of 1,000 digits or of all, beside one that has 1,000 labels.

Each run is kept in `_build/moved_digits`. About a quarter of an hour of one core.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from runs import Runs
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from torch import Tensor, nn
from torch.nn.functional import pad

from tformer_lib.book.datasets.mnist import ImageBatches, mnist, shifted
from tformer_lib.book.models.cnn import SmallCNN
from tformer_lib.book.recorded import record
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.vit import ViT, image_loss
from tformer_lib.training import count_parameters, fit, seed_everything, width_for_budget

RUNS = Runs("moved_digits")
SEEDS, RATES, STEPS, BATCH, MOST = (0, 1, 2), (1e-3, 2e-3, 4e-3), 600, 64, 2
HELD_BACK = 600
BETAS, LONGER = (0.9, 0.95), 1500
CLASSICAL = {
    "logistic regression": lambda: LogisticRegression(C=0.1, max_iter=1000),
    "3-NN": lambda: KNeighborsClassifier(3),
    "SVM": lambda: SVC(C=10, gamma=0.02),
}
NETWORKS = ("CNN", "ViT")


def network(name: str) -> nn.Module:
    """The vision transformer of the chapter, or a convolutional network of as many parameters."""
    config = TransformerConfig(d_model=48, n_heads=6, n_blocks=3)
    vit = ViT(config, image_size=28, patch_size=7, classes=10)
    if name == "ViT":
        return vit
    budget = count_parameters(vit)
    return SmallCNN(10, width=width_for_budget(lambda width: SmallCNN(10, width=width), budget))


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The share of images that the model names rightly."""
    return round((model(images).argmax(dim=1) == labels).float().mean().item(), 4)


def tested(right: Any) -> dict[str, float]:
    """The accuracy on the test digits, as they are and moved; `right(images, labels)` is the share."""
    images, labels = mnist("test")
    return {"as they are": right(images, labels), "moved": right(pad(images, (MOST, -MOST)), labels)}


def train(name: str, rate: float, shifts: bool, seed: int, images: Tensor, labels: Tensor) -> nn.Module:
    """A network trained on these images."""
    seed_everything(seed)
    model = network(name)
    most = MOST if shifts else 0
    batches = ImageBatches(images, labels, batch=BATCH, steps=STEPS, seed=seed, most=most)
    fit(model, image_loss, batches, lr=rate, betas=BETAS)
    return model


def longer(shifts: bool, seed: int) -> dict[str, float]:
    """The vision transformer trained as in the chapter and for longer."""
    images, labels = mnist("train")
    seed_everything(seed)
    model, most = network("ViT"), MOST if shifts else 0
    batches = ImageBatches(images, labels, batch=BATCH, steps=LONGER, seed=seed, most=most)
    fit(model, image_loss, batches, lr=8e-3, optimizer="muon", momentum=0.9, betas=BETAS)
    return tested(partial(accuracy, model))


def tried(name: str, rate: float, shifts: bool) -> float:
    """The accuracy on what is held back."""
    images, labels = mnist("train")
    model = train(name, rate, shifts, 0, images[HELD_BACK:], labels[HELD_BACK:])
    return accuracy(model, images[:HELD_BACK], labels[:HELD_BACK])


def judged(name: str, rate: float, shifts: bool, seed: int) -> dict[str, float]:
    """A network trained on all and tested."""
    return tested(partial(accuracy, train(name, rate, shifts, seed, *mnist("train"))))


def classical(name: str, shifts: bool) -> dict[str, float]:
    """A method without seeds; the shifts are drawn once."""
    images, labels = mnist("train")
    if shifts:
        generator = torch.Generator().manual_seed(0)
        images = torch.cat([images, *(shifted(images, MOST, generator=generator) for _ in range(4))])
        labels = labels.repeat(5)
    method = CLASSICAL[name]().fit(images.flatten(1), labels)
    return tested(lambda x, y: round(float(method.score(x.flatten(1), y)), 4))


def soft_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """-sum_k p_k log q_k, averaged: p of the teacher, q of the model, for images moved alike for both."""
    images, probabilities = batch
    return -(probabilities * model(images).log_softmax(dim=1)).sum(dim=1).mean()


def taught(rates: dict[str, float], seed: int) -> dict[str, dict[str, float]]:
    """ViTs that learn from digits with shifts: from 1,000 labels, or from a teacher's answers."""
    images, labels = mnist("train")
    teacher = train("CNN", rates["CNN"], True, seed, images, labels)
    alone = train("ViT", rates["ViT"], True, seed, images[:1000], labels[:1000])
    found = {"teacher": tested(partial(accuracy, teacher)), "1,000 labels": tested(partial(accuracy, alone))}
    for few in (1000, 4000):
        seed_everything(seed)
        model = network("ViT")
        batches = ImageBatches(images[:few], labels[:few], batch=BATCH, steps=STEPS, seed=seed, most=MOST)

        def answered(batches: ImageBatches = batches) -> Iterator[tuple[Tensor, Tensor]]:
            for x, _ in batches:
                with torch.no_grad():
                    p = teacher(x).softmax(dim=1)
                yield x, p

        fit(model, soft_loss, answered(), steps=STEPS, lr=rates["ViT"], betas=BETAS)
        found[f"{few:,} answers"] = tested(partial(accuracy, model))
    return found


def main() -> None:
    """Makes what is not there yet, and records all of it."""
    torch.set_num_threads(1)
    table: dict[str, dict[str, Any]] = {}
    for name in CLASSICAL:
        table[name] = {
            way: RUNS.keep(name, shifts, make=partial(classical, name, shifts))
            for way, shifts in (("plain", False), ("shifts", True))
        }
    chosen: dict[str, float] = {}
    for name in NETWORKS:
        table[name] = {"parameters": count_parameters(network(name))}
        for way, shifts in (("plain", False), ("shifts", True)):
            sweep = {
                rate: RUNS.keep("try", name, rate, shifts, make=partial(tried, name, rate, shifts))
                for rate in RATES
            }
            best = max(RATES, key=lambda rate: sweep[rate])
            seeds = [
                RUNS.keep("judge", name, best, shifts, seed, make=partial(judged, name, best, shifts, seed))
                for seed in SEEDS
            ]
            table[name][way] = {
                "rate": best,
                "held back": {str(rate): found for rate, found in sweep.items()},
                **{kind: [run[kind] for run in seeds] for kind in seeds[0]},
            }
            if shifts:
                chosen[name] = best
    table["ViT, longer"] = {"parameters": table["ViT"]["parameters"]}
    for way, shifts in (("plain", False), ("shifts", True)):
        seeds = [RUNS.keep("longer", shifts, seed, make=partial(longer, shifts, seed)) for seed in SEEDS]
        table["ViT, longer"][way] = {kind: [run[kind] for run in seeds] for kind in seeds[0]}
    distilled = [RUNS.keep("teach", seed, make=partial(taught, chosen, seed)) for seed in SEEDS]
    results = {"steps": STEPS, "batch": BATCH, "rates": list(RATES), "table": table, "distilled": distilled}
    record("moved_digits", results, seeds=list(SEEDS), cpu_seconds=sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
