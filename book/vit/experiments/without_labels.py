"""Images without labels: hidden patches to be filled in, and digits beside words that are spoken.

*Masked*: a masked autoencoder learns from the 4,000 digits of MNIST without their labels. What its encoder
is worth is then measured with 100 labels, ten of each digit, on 1,000 other digits: by logistic regression on
the mean of its outputs, and by training it on. Beside it stand the same encoder with its first weights, the
pixels themselves, and the same network trained from its first weights. Both trained networks have the same
steps and shifts; the rate of each is the best of four on 600 digits held back, with seed 0. A convolutional
network of as many parameters learns from the same labels, with the same steps and shifts, and the better of
two rates.

*Spoken*: an encoder of images and one of sounds learn by a contrastive loss which image goes with which
spoken word. A batch is some sets of ten pairs, one of each digit; the loss is that of each set. Then each of
1,000 other digits gets the word whose vector is nearest, said by a speaker that was not heard in training,
for each of the 18 such speakers. "without 7" leaves the digit 7 out of the training and asks for it all the
same.

*Shown*: two trainings with seed 0 are repeated for the pictures. One fills in hidden patches of three test
digits, the other compares four test digits with four words of one new speaker.

Each run is kept in `_build/without_labels`. About twenty minutes of one core. With `--add` what the record
holds is not run again, and its processor time counts on.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from tformer_book.kit.data.mnist import ImageBatches, mnist, shifted
from tformer_book.kit.data.speech import RATE, spoken_digits
from tformer_book.kit.records import record, recorded
from tformer_book.kit.runs import Runs
from tformer_book.vit.models.cnn import SmallCNN
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.patches import from_patches, to_patches
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.data.audio import log_mel
from tformer_lib.models.contrastive import contrastive_loss
from tformer_lib.models.masked_autoencoder import MaskedAutoencoder, reconstruction_loss
from tformer_lib.models.vit import ViT, image_loss
from tformer_lib.training import count_parameters, fit, seed_everything, width_for_budget

RUNS = Runs("without_labels")
SEEDS, HELD_BACK, LABELS = (0, 1, 2), 600, 10
MASKED: dict[str, Any] = {"steps": 2000, "batch": 128, "rate": 2e-3}
TUNED: dict[str, Any] = {"steps": 400, "batch": 64, "rates": (5e-4, 1e-3, 2e-3, 4e-3)}
CNN_RATES = (2e-3, 4e-3)
SPOKEN: dict[str, Any] = {"steps": 400, "sets": 6, "rate": 8e-3}
BETAS = (0.9, 0.95)
FILLED, NAMED, VOICE = (2, 5, 8), (1, 3, 5, 7), "m6"  # what is shown, and who says it


def vit(classes: int | None = None) -> ViT:
    """The chapter's vision transformer, with smaller patches."""
    config = TransformerConfig(d_model=48, n_heads=6, n_blocks=3)
    return ViT(config, image_size=28, patch_size=4, classes=classes, make_backend=FusedAttend)


def filled_in(seed: int, steps: int) -> MaskedAutoencoder:
    """A masked autoencoder, trained on all images."""
    seed_everything(seed)
    decoder = TransformerConfig(d_model=32, n_heads=4, n_blocks=1)
    model, generator = MaskedAutoencoder(vit(), decoder), torch.Generator().manual_seed(seed)
    batches = ImageBatches(*mnist("train"), batch=int(MASKED["batch"]), steps=steps, seed=seed, most=2)

    def loss(model: MaskedAutoencoder, batch: tuple[Tensor, Tensor]) -> Tensor:
        return reconstruction_loss(model, batch[0], model.draw(len(batch[0]), generator))

    fit(model, loss, batches, lr=MASKED["rate"], betas=BETAS)
    return model


@torch.no_grad()
def outputs(model: ViT, images: Tensor) -> Tensor:
    """The mean of what the encoder says of the patches."""
    return model.features(images)[:, 1:].mean(dim=1)


def few(seed: int) -> tuple[Tensor, Tensor]:
    """Ten images of each digit, from those that are not held back."""
    images, labels = (x[HELD_BACK:] for x in mnist("train"))
    generator = torch.Generator().manual_seed(seed)
    places = [(labels == digit).nonzero()[:, 0] for digit in range(10)]
    chosen = torch.cat([p[torch.randperm(len(p), generator=generator)[:LABELS]] for p in places])
    return images[chosen], labels[chosen]


def line(of: Callable[[Tensor], Tensor], seed: int) -> float:
    """The accuracy of a logistic regression on what `of` makes of images; its penalty is the best of five."""
    (x, labels), (test, answers) = few(seed), mnist("test")
    held, known = (part[:HELD_BACK] for part in mnist("train"))
    mean, spread = of(x).mean(dim=0), of(x).std(dim=0) + 1e-6

    def scaled(images: Tensor) -> Any:
        return ((of(images) - mean) / spread).numpy()

    models = [LogisticRegression(C=c, max_iter=2000).fit(scaled(x), labels) for c in (1e-3, 1e-2, 0.1, 1, 10)]
    best = max(models, key=lambda model: model.score(scaled(held), known))
    return round(float(best.score(scaled(test), answers)), 4)


def tuned(start: ViT, rate: float, seed: int) -> ViT:
    """A classifier that begins as `start`, trained on the few labels with shifts."""
    seed_everything(seed)
    model = vit(10)
    model.load_state_dict(start.state_dict(), strict=False)
    batches = ImageBatches(*few(seed), batch=TUNED["batch"], steps=TUNED["steps"], seed=seed, most=2)
    fit(model, image_loss, batches, lr=rate, betas=BETAS)
    return model


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The share of images that the model names rightly."""
    return round((model(images).argmax(dim=1) == labels).float().mean().item(), 4)


def cnn() -> SmallCNN:
    """A convolutional network with as many parameters as the classifier."""
    budget = count_parameters(vit(10))
    return SmallCNN(10, width=width_for_budget(lambda width: SmallCNN(10, width=width), budget))


def convolutional(rate: float, seed: int) -> dict[str, float]:
    """The convolutional network, trained on the few labels with shifts: held back, and on the test."""
    seed_everything(seed)
    model = cnn()
    batches = ImageBatches(*few(seed), batch=TUNED["batch"], steps=TUNED["steps"], seed=seed, most=2)
    fit(model, image_loss, batches, lr=rate, betas=BETAS)
    held, known = (part[:HELD_BACK] for part in mnist("train"))
    return {"held back": accuracy(model, held, known), "test": accuracy(model, *mnist("test"))}


def masked(seed: int) -> dict[str, Any]:
    """One seed of the masked autoencoder, with all that it is compared with."""
    model, generator = filled_in(seed, int(MASKED["steps"])), torch.Generator().manual_seed(1000)
    test, answers = mnist("test")
    hidden = model.draw(len(test), generator)
    with torch.no_grad():
        loss = reconstruction_loss(model, test, hidden).item()
        size = model.encoder.patch_size
        mean = to_patches(mnist("train")[0].mean(dim=0, keepdim=True), size)
        by_mean = (mean - to_patches(test, size))[hidden].square().mean().item()
    seed_everything(100 + seed)
    first = vit()
    found: dict[str, Any] = {"loss": round(loss, 4), "by the mean image": round(by_mean, 4)}
    found["pixels, line"] = line(lambda images: images.flatten(1), seed)
    for name, encoder in (("untrained", first), ("filled in", model.encoder)):
        found[f"{name}, line"] = line(partial(outputs, encoder), seed)
        sweep = {}
        if seed == 0:
            held, known = (part[:HELD_BACK] for part in mnist("train"))
            sweep = {rate: accuracy(tuned(encoder, rate, 0), held, known) for rate in TUNED["rates"]}
            found[f"{name}, rates"] = {str(rate): right for rate, right in sweep.items()}
            RATE_OF[name] = max(sweep, key=lambda rate: sweep[rate])
        found[f"{name}, tuned"] = accuracy(tuned(encoder, RATE_OF[name], seed), test, answers)
    return found


RATE_OF: dict[str, float] = {}  # chosen with seed 0


def sounds(split: str) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Log-mel spectrograms as standardised images of one channel, the digits and the speakers."""
    parts = {name: spoken_digits(name) for name in ("train", split)}
    pictures = {
        name: log_mel(clips.signals, rate=RATE, frame=256, hop=128, n_mels=40, floor=1e-2)[:, None]
        for name, clips in parts.items()
    }
    mean, spread = pictures["train"].mean(), pictures["train"].std()
    return (pictures[split] - mean) / spread, parts[split].labels, parts[split].voices


class Pair(nn.Module):
    """An encoder of images and one of sounds, each with a linear map to vectors of the same width."""

    def __init__(self, width: int = 32):
        super().__init__()
        eye, ear = (TransformerConfig(d_model=48, n_heads=6, n_blocks=blocks) for blocks in (3, 2))
        self.eye = ViT(eye, image_size=28, patch_size=7, classes=width, make_backend=FusedAttend)
        self.ear = ViT(ear, image_size=(40, 64), patch_size=8, classes=width, make_backend=FusedAttend)
        for encoder in (self.eye, self.ear):
            assert encoder.head is not None
            nn.init.xavier_uniform_(encoder.head.weight)  # a head of zeros has no direction


def paired(left_out: int | None, seed: int) -> Pair:
    """A pair of encoders, trained."""
    seed_everything(seed)
    images, labels = mnist("train")
    clips, words, _ = sounds("train")
    digits = [digit for digit in range(10) if digit != left_out]
    by_digit = [((labels == d).nonzero()[:, 0], (words == d).nonzero()[:, 0]) for d in digits]
    generator, sets = torch.Generator().manual_seed(seed), int(SPOKEN["sets"])

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        for _ in range(int(SPOKEN["steps"])):
            drawn = [
                [p[torch.randint(len(p), (sets,), generator=generator)] for p in pair] for pair in by_digit
            ]
            seen, heard = (torch.stack(column, dim=1).flatten() for column in zip(*drawn, strict=True))
            yield shifted(images[seen], 2, generator=generator), clips[heard]

    def loss(model: Pair, batch: tuple[Tensor, Tensor]) -> Tensor:
        left, right = model.eye(batch[0]), model.ear(batch[1])
        pairs = zip(left.split(len(digits)), right.split(len(digits)), strict=True)
        return torch.stack([contrastive_loss(a, b, 0.1) for a, b in pairs]).mean()

    model = Pair()
    fit(
        model,
        loss,
        batches(),
        steps=int(SPOKEN["steps"]),
        lr=SPOKEN["rate"],
        betas=BETAS,
        optimizer="muon",
        momentum=0.9,
    )
    return model


def spoken(left_out: int | None, seed: int) -> dict[str, Any]:
    """How many of the test digits get their word from a pair that is trained, by speaker."""
    model = paired(left_out, seed)
    test, answers = mnist("test")
    new, said, voices = sounds("test")
    normal = partial(nn.functional.normalize, dim=1)
    with torch.no_grad():
        eyes, ears = normal(model.eye(test)), normal(model.ear(new))
    by_voice = {}
    for voice in sorted(set(voices)):
        mine = torch.tensor([who == voice for who in voices])
        names = torch.stack([ears[mine & (said == digit)][0] for digit in range(10)])  # one take of each
        guesses = (eyes @ names.T).argmax(dim=1)
        asked = answers == left_out if left_out is not None else torch.ones_like(answers, dtype=torch.bool)
        by_voice[voice] = round((guesses == answers)[asked].float().mean().item(), 4)
    return by_voice


@torch.no_grad()
def shown_words() -> list[list[float]]:
    """Cosines of four test digits, down, with four words of a new speaker, across; the first training."""
    with torch.enable_grad():
        model = paired(None, 0)
    test, answers = mnist("test")
    new, said, voices = sounds("test")
    mine = torch.tensor([who == VOICE for who in voices])
    images = torch.stack([test[answers == digit][0] for digit in NAMED])
    words = torch.stack([new[mine & (said == digit)][0] for digit in NAMED])
    eyes, ears = (nn.functional.normalize(x, dim=1) for x in (model.eye(images), model.ear(words)))
    return [[round(cosine, 3) for cosine in row] for row in (eyes @ ears.T).tolist()]


@torch.no_grad()
def shown_patches() -> dict[str, Any]:
    """Which patches of three test digits are hidden, and what the first training fills in, in per cent."""
    with torch.enable_grad():
        model = filled_in(0, int(MASKED["steps"]))
    test, answers = mnist("test")
    images = torch.stack([test[answers == digit][0] for digit in FILLED])
    size, side = model.encoder.patch_size, images.shape[-1]
    hidden = model.draw(len(images), torch.Generator().manual_seed(1000))
    patches = torch.where(hidden[..., None], model(images, hidden), to_patches(images, size))
    ink = (100 * from_patches(patches, size, side, side)[:, 0].clamp(0, 1)).round().int()
    return {"hidden": hidden.int().tolist(), "ink": ink.tolist()}


def restore() -> float:
    """Keep what the record in the repository holds as if it had been run here; how long all of it took."""
    there = recorded("without_labels")
    found = there["results"]
    runs: dict[tuple[Any, ...], Any] = {
        ("CNN", float(rate), 0): run for rate, run in found["CNN"]["rates"].items()
    }
    for i, seed in enumerate(SEEDS):
        runs["masked", seed] = found["masked"][i]
        runs["CNN", found["CNN"]["rate"], seed] = found["CNN"]["runs"][i]
        for name, heard in found["spoken"].items():
            runs["spoken", name, seed] = heard[i]
    for name, what in found.get("shown", {}).items():
        runs["shown", name] = what
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
    filled = []
    for seed in SEEDS:
        filled.append(RUNS.keep("masked", seed, make=partial(masked, seed)))
        for name in ("untrained", "filled in"):
            rates = filled[0][f"{name}, rates"]
            RATE_OF[name] = float(max(rates, key=rates.get))
    heard = {
        name: [RUNS.keep("spoken", name, seed, make=partial(spoken, out, seed)) for seed in SEEDS]
        for name, out in (("all digits", None), ("without 7", 7))
    }
    sweep = {rate: RUNS.keep("CNN", rate, 0, make=partial(convolutional, rate, 0)) for rate in CNN_RATES}
    best = max(sweep, key=lambda rate: sweep[rate]["held back"])
    results = {
        "masked": filled,
        "CNN": {
            "rates": sweep,
            "rate": best,
            "runs": [RUNS.keep("CNN", best, seed, make=partial(convolutional, best, seed)) for seed in SEEDS],
        },
        "spoken": heard,
        "shown": {
            name: RUNS.keep("shown", name, make=make)
            for name, make in (("words", shown_words), ("patches", shown_patches))
        },
        "settings": {"masked": MASKED, "tuned": TUNED, "spoken": SPOKEN},
    }
    record("without_labels", results, seeds=list(SEEDS), cpu_seconds=spent + sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
