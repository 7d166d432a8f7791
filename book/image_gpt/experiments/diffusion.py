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
as it is in the data.

*Tuning.* `TRIES` names learning rates for both, and whether the rate falls to zero along a cosine or stays.
Each is tried once, with seed 0, half of the steps above and 3,500 of the training digits. The other 500
choose: ImageGPT by its bits per pixel, the DiT by its loss, at the same times and with the same noise for
all. They choose for the DiT's weights as they are in the end and for running averages of them, too:
a <- a + (w - a) / h after each step, with h a share of the steps (`SHARES`). What is chosen is trained anew
on the 4,000 with three seeds, if it is not among the runs above.

*Completing.* A DiT is not made for it. Before each of the 50 steps the pixels that are known are put on the
line between their noise and what they are to be ("repainting"); it was never trained to look at them so. "DiT
told" is: it has two channels more, the known pixels without noise and a map of where they are, and learns
from images of which the upper half, the lower half or nothing is known, a third of them each, by the loss on
the other pixels. All else is as chosen for the DiT.

`python diffusion.py` runs what has not been run yet and records it. With `--add` it runs only
what the record does not hold. About forty minutes of one core.
"""

import argparse
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from tformer_book.image_gpt.experiments.image_gpt import BATCH, LEVELS, SEEDS, SIDE, build, data
from tformer_book.kit.data.mnist import ImageBatches
from tformer_book.kit.records import record, recorded
from tformer_book.kit.runs import Runs
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.generation import generate
from tformer_lib.measures.language import bits_per_pixel
from tformer_lib.models.dit import DiT, flow_images, flow_loss
from tformer_lib.models.gpt import GPT
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
    ("DiT told", 2400, SEEDS),
    ("DiT tuned", 2400, SEEDS),
    ("ImageGPT tuned", 600, SEEDS),
]
DRAWN, COMPLETED, HALF, EULER, SURE = 1000, 500, SIDE * SIDE // 2, 50, 0.9


class Setting(NamedTuple):
    """How a model is trained: the largest rate, its last value over that, and how long an average reaches."""

    rate: float
    last: float = 0.0
    share: float | None = None  # of the steps; None for the weights as they are in the end


UNTUNED, ALL = Setting(1e-2), slice(None)
RATES, SHARES, HELD_OUT = (5e-3, 1e-2, 2e-2), (0.02, 0.1), 500
TRIES = {
    "ImageGPT": [Setting(rate) for rate in RATES],
    "DiT": [*(Setting(rate) for rate in RATES), *(Setting(rate, 1.0) for rate in RATES[:2])],
}
TRIED_STEPS = {"ImageGPT": 300, "DiT": 1200}


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


def train_gpt(steps: int, seed: int, setting: Setting, part: slice = ALL) -> GPT:
    """ImageGPT, trained on a part of the training digits."""
    rows, labels = (x[part] for x in data("train"))
    model = build("page", seed)
    batches = ImageBatches(rows, labels, batch=BATCH, steps=steps, seed=seed)
    loss: Any = lambda model, batch: language_loss(model, batch[0])  # noqa: E731
    fit(model, loss, batches, lr=setting.rate, min_lr_ratio=setting.last, optimizer="muon")
    return model


def image_gpt(cnn: nn.Sequential, steps: int, seed: int, setting: Setting = UNTUNED) -> dict[str, Any]:
    """ImageGPT, trained and judged."""
    new, new_labels = data("test")
    start = time.process_time()
    model = train_gpt(steps, seed, setting)
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


class Told(nn.Module):
    """A DiT that reads two channels more: the known pixels, 0 elsewhere, and a map, 1 where they are."""

    def __init__(self, model: DiT):
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, t: Tensor, given: Tensor, known: Tensor) -> Tensor:
        where = known.to(x).expand_as(x)
        return self.model(torch.cat([x, given * where, where], dim=1), t)[:, :1]


FIRST = (torch.arange(SIDE**2) < HALF).reshape(1, 1, SIDE, SIDE)  # the upper half
KNOWN = {"upper": FIRST, "lower": ~FIRST, "nothing": FIRST & ~FIRST}


def told_loss(model: nn.Module, images: Tensor, noise: torch.Generator) -> Tensor:
    """The loss of flow matching on the pixels that are not known; of each image, what is known is drawn."""
    which = torch.randint(len(KNOWN), (len(images),), generator=noise)
    known = torch.cat([*KNOWN.values()])[which]
    unknown = (~known).float()
    e = torch.randn(images.shape, generator=noise)
    t = torch.rand(len(images), generator=noise)
    s = t[:, None, None, None]
    wrong = model((1 - s) * images + s * e, t, images, known) - (e - images)
    return (unknown * wrong.square()).sum() / unknown.sum()


def train_dit(
    steps: int,
    seed: int,
    setting: Setting,
    shares: Sequence[float] = SHARES,
    part: slice = ALL,
    told: bool = False,
) -> dict[float | None, nn.Module]:
    """A DiT, trained on a part of the training digits; by share of the steps, averages of its weights."""
    rows, labels = (x[part] for x in data("train"))
    seed_everything(seed)
    config = TransformerConfig(d_model=64, n_heads=4, n_blocks=3)
    channels = 3 if told else 1
    dit = DiT(config, image_size=SIDE, patch_size=2, channels=channels, make_backend=FusedAttend)
    model = Told(dit) if told else dit
    averages = {
        share: AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(1 - 1 / max(1, share * steps)))
        for share in shares
    }
    noise = torch.Generator().manual_seed(seed)
    batches = ImageBatches(pictures(rows[:, 1:]), labels, batch=BATCH, steps=steps, seed=seed)

    def average(model: nn.Module) -> None:
        for mean in averages.values():
            mean.update_parameters(model)

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        average(model)  # after the step before
        return (told_loss if told else flow_loss)(model, batch[0], noise)

    fit(model, loss, batches, lr=setting.rate, min_lr_ratio=setting.last, optimizer="muon")
    average(model)
    return {None: model.eval()} | {share: mean.module.eval() for share, mean in averages.items()}


@torch.no_grad()
def dit_loss(model: nn.Module, images: Tensor, draw: torch.Generator, told: bool = False) -> float:
    """The loss of flow matching, each image at eight times; nothing is known."""
    if told:
        known = KNOWN["nothing"]
        repeats = [flow_loss(partial(model, given=images, known=known), images, draw) for _ in range(8)]
    else:
        repeats = [flow_loss(model, images, draw) for _ in range(8)]
    return sum(loss.item() for loss in repeats) / len(repeats)


def dit(
    cnn: nn.Sequential, steps: int, seed: int, setting: Setting = UNTUNED, told: bool = False
) -> dict[str, Any]:
    """A DiT, trained and judged."""
    new, new_labels = data("test")
    start = time.process_time()
    shares = [setting.share] if setting.share else []
    model = train_dit(steps, seed, setting, shares, told=told)[setting.share]
    trained = time.process_time() - start
    asked, named_as = pictures(new[:COMPLETED, 1:]), new_labels[:COMPLETED]
    draw = torch.Generator().manual_seed(seed)

    def moved(images: Tensor, known: Tensor) -> Any:
        return partial(model, given=images, known=known) if told else model

    start = time.process_time()
    noise = torch.randn(DRAWN, 1, SIDE, SIDE, generator=draw)
    drawn = levels(flow_images(moved(noise, KNOWN["nothing"]), noise, EULER))
    seconds = time.process_time() - start
    found = {}
    for part in ("upper", "lower"):
        noise, known = torch.randn(asked.shape, generator=draw), KNOWN[part]
        tokens = levels(flow_images(moved(asked, known), noise, EULER, given=asked, known=known))
        found[f"named {part}"] = named(cnn, tokens, named_as)
    return {
        "parameters": count_parameters(model),
        "loss": dit_loss(model, pictures(new[:, 1:]), draw, told),
        "train seconds": trained,
        "draw seconds": seconds / DRAWN,
        "pictures": drawn[:24].tolist(),
        **found,
        **quality(cnn, drawn),
    }


def tried(way: str, setting: Setting) -> dict[str, float]:
    """What 500 training digits say that the model has not seen: by "weights", or the share of an average."""
    steps, known, held = TRIED_STEPS[way], slice(HELD_OUT, None), slice(HELD_OUT)
    rows = data("train")[0][held]
    if way == "ImageGPT":
        return {"weights": bits_per_pixel(train_gpt(steps, 0, setting, known), rows)}
    models, images = train_dit(steps, 0, setting, part=known), pictures(rows[:, 1:])
    return {
        "weights" if share is None else str(share): dit_loss(model, images, torch.Generator().manual_seed(0))
        for share, model in models.items()
    }


def chosen(tries: list[dict[str, Any]], way: str) -> Setting:
    """The setting with the least of what the 500 say."""
    found = {}
    for one in (one for one in tries if one["name"] == way):
        for average, score in one["held out"].items():
            share = None if average == "weights" else float(average)
            found[Setting(one["rate"], one["last"], share)] = score
    return min(found, key=lambda setting: found[setting])


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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", action="store_true", help="run only what the record does not hold")
    before: dict[str, Any] = {"results": {"runs": []}, "cpu_seconds": 0.0}
    if parser.parse_args().add:
        before = recorded("diffusion")
    results = before["results"]
    there = {(run["name"], run["steps"], run["seed"]): run for run in results["runs"]}
    tries = results.get("tries", [])
    tried_there = {(one["name"], one["rate"], one["last"]) for one in tries}
    for way, settings in TRIES.items():
        for setting in settings:
            key = (way, setting.rate, setting.last)
            if key not in tried_there:
                found = RUNS.keep("try", *key, make=partial(tried, way, setting))
                one = dict(zip(("name", "rate", "last"), key, strict=True))
                tries.append(one | {"steps": TRIED_STEPS[way], "held out": found})
    best = {way: chosen(tries, way) for way in TRIES}
    cnn = judge()
    others = rivals(cnn)
    if "others" in results:
        distances = [found["training digits"]["distance"] for found in (results["others"], others)]
        assert abs(distances[0] - distances[1]) < 0.01, "the judge is another one"
    runs = []
    for name, steps, seeds in PLAN:
        setting = UNTUNED if name in best else best[name.split()[0]]
        if name.endswith("tuned") and setting == UNTUNED:
            continue  # is among the runs above
        make = image_gpt if name.startswith("ImageGPT") else partial(dit, told=name == "DiT told")
        for seed in seeds:
            key = (name, steps, seed)
            if key not in there:
                kept = (*key, *map(str, setting)) if setting != UNTUNED else key
                result = RUNS.keep(*kept, make=partial(make, cnn, steps, seed, setting))
                there[key] = dict(zip(("name", "steps", "seed"), key, strict=True)) | result
            runs.append(there[key])
    record(
        "diffusion",
        {
            "runs": runs,
            "tries": tries,
            "chosen": {way: setting._asdict() for way, setting in best.items()},
            "others": results.get("others", others),
            "euler": EULER,
            "sure": SURE,
        },
        seeds=SEEDS,
        cpu_seconds=before["cpu_seconds"] + sum(RUNS.seconds.values()),
    )


if __name__ == "__main__":
    main()
