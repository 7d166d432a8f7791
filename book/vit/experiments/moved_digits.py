"""Digits moved by two pixels: every method of the chapter on images, trained with and without shifts.

The methods learn from 4,000 digits of MNIST and are tested on 1,000 others, as they are and moved by two
pixels to the right. "With shifts" means for both networks that each image is moved by up to two pixels each
way when it comes up; logistic regression, 3-NN and the SVM get each image five times, as it is and moved four
times. The convolutional network and the vision transformer have as many parameters and the same optimiser,
steps and batches. The learning rate is the best of three for each network and each way of training, by 600
digits held back from the 4,000, with seed 0 (none is held back afterwards); the seeds 0, 1 and 2 are then
tested. "Longer" are both networks without shifts for 1,500 steps in place of 600, at the same rates. "ViT,
longer, Muon" has as many steps of Muon, as the chapter trains it, with a rate chosen for the chapter.

The transformer is also taught by a convolutional network that has learned from all 4,000 digits with shifts:
it learns the probabilities which that one gives of 1,000 digits, beside one that has their 1,000 labels and
one that has all 4,000. These three have the training of the chapter, 800 steps of Muon with shifts. For the
last, patches of the test digits are painted black in several orders, and how smooth the maps of its patch
embedding are is measured.

Each run is kept in `_build/moved_digits`. About half an hour of one core. With `--add` what the record holds
is not run again, and its processor time counts on.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from torch import Tensor, nn
from torch.nn.functional import pad

from tformer_book.kit.data.mnist import ImageBatches, mnist, shifted
from tformer_book.kit.records import record, recorded
from tformer_book.kit.runs import Runs
from tformer_book.vit.models.cnn import SmallCNN
from tformer_lib import record_attention
from tformer_lib.analysis import attention_rollout
from tformer_lib.core.patches import from_patches, to_patches
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.vit import ViT, image_loss
from tformer_lib.training import count_parameters, fit, seed_everything, width_for_budget

RUNS = Runs("moved_digits")
SEEDS, RATES, STEPS, BATCH, MOST = (0, 1, 2), (1e-3, 2e-3, 4e-3), 600, 64, 2
HELD_BACK = 600
BETAS, LONGER = (0.9, 0.95), 1500
MUON: dict[str, Any] = {"lr": 8e-3, "optimizer": "muon", "momentum": 0.9, "betas": BETAS}
PAGE_STEPS, PAINTED = 800, 4
CLASSICAL = {
    "logistic regression": lambda: LogisticRegression(C=0.1, max_iter=1000),
    "3-NN": lambda: KNeighborsClassifier(3),
    "SVM": lambda: SVC(C=10, gamma=0.02),
}
NETWORKS = ("CNN", "ViT")
WAYS = {"plain": False, "shifts": True}
STUDENTS = ("1,000 labels", "1,000 answers", "4,000 labels")


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


def train(
    name: str, rate: float, shifts: bool, seed: int, images: Tensor, labels: Tensor, steps: int = STEPS
) -> nn.Module:
    """A network trained on these images."""
    seed_everything(seed)
    model = network(name)
    most = MOST if shifts else 0
    batches = ImageBatches(images, labels, batch=BATCH, steps=steps, seed=seed, most=most)
    fit(model, image_loss, batches, lr=rate, betas=BETAS)
    return model


def longer(name: str, rate: float, seed: int) -> dict[str, float]:
    """A network trained for more steps, without shifts, and tested."""
    return tested(partial(accuracy, train(name, rate, False, seed, *mnist("train"), LONGER)))


def longer_muon(shifts: bool, seed: int) -> dict[str, float]:
    """The vision transformer trained as in the chapter and for longer."""
    images, labels = mnist("train")
    seed_everything(seed)
    model, most = network("ViT"), MOST if shifts else 0
    batches = ImageBatches(images, labels, batch=BATCH, steps=LONGER, seed=seed, most=most)
    fit(model, image_loss, batches, **MUON)
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


@cache
def teacher(rate: float) -> nn.Module:
    """The convolutional network, trained on all digits with shifts, with seed 0."""
    return train("CNN", rate, True, 0, *mnist("train"))


def student(kind: str, rate: float, seed: int) -> dict[str, Any]:
    """A ViT that learns from digits with shifts: from labels, or from the teacher of this rate."""
    few = 1000 if kind.startswith("1,000") else 4000
    images, labels = (x[:few] for x in mnist("train"))
    wise = teacher(rate) if kind.endswith("answers") else None
    seed_everything(seed)
    model = network("ViT")
    batches = ImageBatches(images, labels, batch=BATCH, steps=PAGE_STEPS, seed=seed, most=MOST)

    def answered() -> Iterator[tuple[Tensor, Tensor]]:
        assert wise is not None
        for x, _ in batches:
            with torch.no_grad():
                p = wise(x).softmax(dim=1)
            yield x, p

    if wise is None:
        fit(model, image_loss, batches, **MUON)
    else:
        fit(model, soft_loss, answered(), steps=PAGE_STEPS, **MUON)
    found: dict[str, Any] = tested(partial(accuracy, model))
    if kind == "4,000 labels":
        found["painted"] = painted(model)
        found["filters"] = smoothness(model)
    return found


def smoothness(model: nn.Module) -> float:
    """The correlation of neighbouring pixels' weights in the maps of the patch embedding, over all maps."""
    maps = model.patch_embed.weight.detach().unflatten(1, (7, 7))  # type: ignore[union-attr, operator]
    maps = maps - maps.mean(dim=(1, 2), keepdim=True)
    beside = [(maps[:, :, 1:] * maps[:, :, :-1]).mean(), (maps[:, 1:] * maps[:, :-1]).mean()]
    return round((sum(beside) / 2 / maps.square().mean()).item(), 4)


def painted(model: nn.Module) -> dict[str, list[float]]:
    """The accuracy on the test digits with 0, 1, 2, ... patches painted black, by the order of painting."""
    images, labels = mnist("test")
    with torch.no_grad(), record_attention(model) as weights:
        model(images)
    rolled, patches = attention_rollout(weights)[:, 0, 1:], to_patches(images, 7)
    orders = {
        "highest rollout": rolled,
        "most ink": patches.sum(dim=2),
        "one order for all": rolled.mean(dim=0).expand(len(images), -1),
        "at random": torch.rand(rolled.shape, generator=torch.Generator().manual_seed(0)),
        "lowest rollout": -rolled,
    }
    found = {}
    for name, score in orders.items():
        order, left = score.argsort(dim=1, descending=True), patches.clone()
        found[name] = [accuracy(model, images, labels)]
        for k in range(PAINTED):
            left[torch.arange(len(images)), order[:, k]] = 0
            found[name].append(accuracy(model, from_patches(left, 7, 28, 28), labels))
    return found


def restore() -> float:
    """Keep what the record in the repository holds as if it had been run here; how long all of it took."""
    there = recorded("moved_digits")
    table = there["results"]["table"]
    runs: dict[tuple[Any, ...], Any] = {}
    for way, shifts in WAYS.items():
        for name in CLASSICAL:
            runs[name, shifts] = table[name][way]
        for name in NETWORKS:
            own = table[name][way]
            for rate, right in own["held back"].items():
                runs["try", name, float(rate), shifts] = right
            rows: dict[tuple[Any, ...], Any] = {("judge", name, own["rate"], shifts): own}
            if way == "plain":
                rows["longer", name, own["rate"]] = table[f"{name}, longer"][way]
            if name == "ViT":
                rows["longer, Muon", shifts] = table["ViT, longer, Muon"][way]
            for key, found in rows.items():
                for i, seed in enumerate(SEEDS):
                    runs[*key, seed] = {kind: found[kind][i] for kind in ("as they are", "moved")}
    for i, seed in enumerate(SEEDS):
        for kind, found in there["results"]["students"].items():
            runs["student", kind, seed] = found[i]
    for key, result in runs.items():
        if not RUNS.done(*key):
            RUNS.put(*key, result=result, seconds=0.0)
    return float(there["cpu_seconds"])


def main() -> None:
    """Makes what is not there yet, and records all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", action="store_true", help="run only what the record does not hold")
    spent = restore() if parser.parse_args().add else 0.0
    torch.set_num_threads(1)
    table: dict[str, dict[str, Any]] = {}
    for name in CLASSICAL:
        table[name] = {
            way: RUNS.keep(name, shifts, make=partial(classical, name, shifts))
            for way, shifts in WAYS.items()
        }

    def seeds(*key: Any, make: Callable[..., dict[str, float]]) -> dict[str, list[float]]:
        runs = [RUNS.keep(*key, seed, make=partial(make, seed=seed)) for seed in SEEDS]
        return {kind: [run[kind] for run in runs] for kind in runs[0]}

    chosen: dict[tuple[str, bool], float] = {}
    for name in NETWORKS:
        table[name] = {"parameters": count_parameters(network(name))}
        for way, shifts in WAYS.items():
            sweep = {
                rate: RUNS.keep("try", name, rate, shifts, make=partial(tried, name, rate, shifts))
                for rate in RATES
            }
            best = max(RATES, key=lambda rate: sweep[rate])
            chosen[name, shifts] = best
            table[name][way] = {
                "rate": best,
                "held back": {str(rate): found for rate, found in sweep.items()},
                **seeds("judge", name, best, shifts, make=partial(judged, name, best, shifts)),
            }
    for name in NETWORKS:
        best = chosen[name, False]
        found = seeds("longer", name, best, make=partial(longer, name, best))
        plain = {"rate": best, **found}
        table[f"{name}, longer"] = {"parameters": table[name]["parameters"], "plain": plain}
    table["ViT, longer, Muon"] = {"parameters": table["ViT"]["parameters"]} | {
        way: seeds("longer, Muon", shifts, make=partial(longer_muon, shifts)) for way, shifts in WAYS.items()
    }
    rate = chosen["CNN", True]
    students = {
        kind: [RUNS.keep("student", kind, seed, make=partial(student, kind, rate, seed)) for seed in SEEDS]
        for kind in STUDENTS
    }
    results = {
        "steps": {"short": STEPS, "longer": LONGER, "students": PAGE_STEPS},
        "batch": BATCH,
        "rates": list(RATES),
        "table": table,
        "students": students,
    }
    record("moved_digits", results, seeds=list(SEEDS), cpu_seconds=spent + sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
