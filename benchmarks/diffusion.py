"""Two ways to draw digits: pixel after pixel (ImageGPT), and all at once out of noise (DiT, flow matching).

Both transformers learn from the same 4,000 digits of 14 x 14 pixels in four greys, by Muon, in steps of 16
images. 600 steps of ImageGPT take about as long as 2,400 of the DiT; both are run with three seeds, and the
DiT with 600 steps as well. With one seed both get four times as many. A small CNN, trained on the labels of
the same 4,000 digits, is the judge:

*named*: completed halves that it names as what they were, 500 test digits, drawn once each. ImageGPT can be
given the upper half only; the DiT is given either.
*sure*: the share of 1,000 images drawn from nothing of which the judge is sure (probability 0.9 or more).
*distance*: the Fréchet distance between its last hidden layer on those 1,000 and on the 1,000 test digits.
*nearest*: the median distance to the nearest of the 4,000, over that of test digits: 1 for new digits.

Beside them stand 1,000 training digits, and images whose pixels are drawn independently, each as often light
as it is in the data. `python benchmarks/diffusion.py` runs what has not been run yet and records it. About
twenty-five minutes of one core.
"""

import time
from functools import partial
from typing import Any

import numpy as np
import torch
from image_gpt import BATCH, LEVELS, SEEDS, SIDE, build, data
from runs import Runs
from torch import Tensor, nn

from tformer_lib.book.datasets.mnist import ImageBatches
from tformer_lib.book.recorded import record
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.generation import generate
from tformer_lib.measures.language import bits_per_pixel
from tformer_lib.models.dit import DiT, flow_images, flow_loss
from tformer_lib.models.language import language_loss
from tformer_lib.models.vit import image_loss
from tformer_lib.training import count_parameters, fit, seed_everything

RUNS = Runs("diffusion")
PLAN = [  # way, steps, seeds
    ("ImageGPT", 600, SEEDS),
    ("DiT", 600, SEEDS),
    ("DiT", 2400, SEEDS),
    ("ImageGPT", 2400, SEEDS[:1]),
    ("DiT", 9600, SEEDS[:1]),
]
DRAWN, COMPLETED, HALF, EULER, RATE, SURE = 1000, 500, SIDE * SIDE // 2, 50, 1e-2, 0.9


def pictures(tokens: Tensor) -> Tensor:
    """Tokens as images from -1, black, to 1."""
    return (tokens.float() * 2 / (LEVELS - 1) - 1).reshape(-1, 1, SIDE, SIDE)


def levels(images: Tensor) -> Tensor:
    """The nearest grey of each pixel, as tokens."""
    return ((images + 1) * (LEVELS - 1) / 2).round().clamp(0, LEVELS - 1).long().flatten(1)


def judge() -> nn.Sequential:
    """A small CNN that names digits; its last but one layer has 64 numbers."""
    seed_everything(0)
    cnn = nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(64 * 9, 64), nn.ReLU(), nn.Linear(64, 10)),
    )
    rows, labels = data("train")
    batches = ImageBatches(pictures(rows[:, 1:]), labels, batch=64, steps=600)
    fit(cnn, image_loss, batches, lr=2e-3)
    return cnn.eval()


@torch.no_grad()
def named(cnn: nn.Module, tokens: Tensor, labels: Tensor) -> float:
    """The share of images that the judge names as they are labelled."""
    return (cnn(pictures(tokens)).argmax(dim=1) == labels).float().mean().item()


def frechet(a: np.ndarray, b: np.ndarray) -> float:
    """|m_a - m_b|^2 + trace(C_a + C_b - 2 (C_a C_b)^(1/2)) of two sets of vectors, a row each."""
    covariances = [np.cov(x, rowvar=False) for x in (a, b)]
    roots = np.linalg.eigvals(covariances[0] @ covariances[1]).real.clip(min=0) ** 0.5
    return float(((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(sum(covariances)) - 2 * roots.sum())


@torch.no_grad()
def quality(cnn: nn.Sequential, tokens: Tensor) -> dict[str, float]:
    """What the judge and the nearest neighbours say of images that were drawn."""
    known, new = data("train")[0][:, 1:], data("test")[0][:, 1:]
    features = [cnn[:-1](pictures(x)).double().numpy() for x in (tokens, new)]
    sure = cnn(pictures(tokens)).softmax(dim=1).amax(dim=1) >= SURE
    mine, theirs = (torch.cdist(x.float(), known.float()).amin(dim=1).median() for x in (tokens, new))
    return {
        "sure": sure.float().mean().item(),
        "distance": frechet(*features),
        "nearest": (mine / theirs).item(),
    }


def draw_gpt(model: nn.Module, prompts: Tensor, generator: torch.Generator) -> Tensor:
    """The images that begin as the prompts; where the start token is written, black."""
    missing = SIDE**2 + 1 - prompts.shape[1]
    written = torch.tensor(generate(model, prompts.tolist(), missing, generator=generator))[:, 1:]
    return written.where(written < LEVELS, 0)


def image_gpt(cnn: nn.Sequential, steps: int, seed: int) -> dict[str, Any]:
    """ImageGPT, trained and judged."""
    (rows, labels), (new, new_labels) = data("train"), data("test")
    model = build("page", seed)
    batches = ImageBatches(rows, labels, batch=BATCH, steps=steps, seed=seed)
    start = time.process_time()
    fit(model, lambda model, batch: language_loss(model, batch[0]), batches, lr=RATE, optimizer="muon")
    trained = time.process_time() - start
    draw = torch.Generator().manual_seed(seed)
    start = time.process_time()
    drawn = draw_gpt(model, torch.full((DRAWN, 1), LEVELS), draw)
    seconds = time.process_time() - start
    upper = draw_gpt(model, new[:COMPLETED, : HALF + 1], draw)
    return {
        "parameters": count_parameters(model),
        "bits": bits_per_pixel(model, new),
        "train seconds": trained,
        "draw seconds": seconds / DRAWN,
        "named upper": named(cnn, upper, new_labels[:COMPLETED]),
        "named lower": None,
        "pictures": drawn[:24].tolist(),
        **quality(cnn, drawn),
    }


def dit(cnn: nn.Sequential, steps: int, seed: int) -> dict[str, Any]:
    """A DiT, trained and judged."""
    (rows, labels), (new, new_labels) = data("train"), data("test")
    seed_everything(seed)
    config = TransformerConfig(d_model=64, n_heads=4, n_blocks=3)
    model = DiT(config, image_size=SIDE, patch_size=2, make_backend=FusedAttend)
    noise = torch.Generator().manual_seed(seed)
    batches = ImageBatches(pictures(rows[:, 1:]), labels, batch=BATCH, steps=steps, seed=seed)
    start = time.process_time()
    fit(model, lambda model, batch: flow_loss(model, batch[0], noise), batches, lr=RATE, optimizer="muon")
    trained = time.process_time() - start
    draw = torch.Generator().manual_seed(seed)
    start = time.process_time()
    drawn = levels(flow_images(model.eval(), torch.randn(DRAWN, 1, SIDE, SIDE, generator=draw), EULER))
    seconds = time.process_time() - start
    asked, named_as = pictures(new[:COMPLETED, 1:]), new_labels[:COMPLETED]
    first = (torch.arange(SIDE**2) < HALF).reshape(1, 1, SIDE, SIDE)
    found = {}
    for part, known in (("upper", first), ("lower", ~first)):
        start_noise = torch.randn(asked.shape, generator=draw)
        tokens = levels(flow_images(model, start_noise, EULER, given=asked, known=known))
        found[f"named {part}"] = named(cnn, tokens, named_as)
    with torch.no_grad():
        repeats = [flow_loss(model, pictures(new[:, 1:]), draw).item() for _ in range(8)]
    return {
        "parameters": count_parameters(model),
        "loss": sum(repeats) / len(repeats),
        "train seconds": trained,
        "draw seconds": seconds / DRAWN,
        "pictures": drawn[:24].tolist(),
        **found,
        **quality(cnn, drawn),
    }


def rivals(cnn: nn.Sequential) -> dict[str, Any]:
    """What the judge says of digits that people wrote, whole, and of halves that nobody completed."""
    known, (new, labels) = data("train")[0][:, 1:], data("test")
    new = new[:, 1:]
    draw = torch.Generator().manual_seed(0)
    some = known[torch.randperm(len(known), generator=draw)[:DRAWN]]
    shares = torch.stack([(known == level).float().mean(dim=0) for level in range(LEVELS)], dim=1)
    pixels = torch.multinomial(shares, DRAWN, replacement=True, generator=draw).T
    first = torch.arange(SIDE**2) < HALF
    black = {"upper": torch.where(first, new, 0), "lower": torch.where(first, 0, new)}
    left = {part: named(cnn, x[:COMPLETED], labels[:COMPLETED]) for part, x in black.items()}
    return {
        "test digits": {"named": named(cnn, new[:COMPLETED], labels[:COMPLETED])} | quality(cnn, new),
        "training digits": quality(cnn, some) | {"nearest": None},
        "independent pixels": quality(cnn, pixels),
        "black instead": left,
    }


def main() -> None:
    """Run what is missing, and record everything."""
    cnn = judge()
    runs = []
    for name, steps, seeds in PLAN:
        for seed in seeds:
            way = {"ImageGPT": image_gpt, "DiT": dit}[name]
            result = RUNS.keep(name, steps, seed, make=partial(way, cnn, steps, seed))
            runs.append({"name": name, "steps": steps, "seed": seed} | result)
    record(
        "diffusion",
        {"runs": runs, "others": rivals(cnn), "euler": EULER, "sure": SURE},
        seeds=SEEDS,
        cpu_seconds=sum(RUNS.seconds.values()),
    )


if __name__ == "__main__":
    main()
