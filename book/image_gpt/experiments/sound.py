"""Spoken digits, on speakers that were never heard: the vision transformer on mel spectrograms, and a line.

"page" is the model of the chapter with three seeds. Beside it, with one seed each: no moved copies of the
clips; no positions; and other patches. With three seeds each, on the same moved copies, batches and steps: a
multilayer perceptron and a convolutional network of about as many parameters, trained with AdamW, since Muon
is for the matrices of a transformer; the perceptron with the better of two learning rates, the network with
one. The logistic regression sees the same moved copies and, beside that,
the clips alone; its penalty is the best of four on every fifth training speaker, held back.
`python sound.py` runs what has not been run yet and records it; what is finished is kept in
`_build/sound/`. Five minutes of one core.
"""

from functools import partial
from itertools import pairwise
from typing import Any

import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from tformer_book.kit.data.mnist import ImageBatches
from tformer_book.kit.data.speech import RATE, Clips, spoken_digits
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.data.audio import log_mel
from tformer_lib.models.vit import ViT, image_loss
from tformer_lib.training import count_parameters, fit, seed_everything

RUNS = Runs("sound")
SEEDS = [0, 1, 2]
FRAME, HOP, BANDS, FLOOR = 256, 128, 40, 1e-2
MOVES = (-6, -3, 0, 3, 6)  # frames by which copies of a clip are moved, end to beginning
STEPS, BATCH = 400, 32
TOLERANCE = 1e-3  # of the logistic regression, as in the chapter
MODELS = [*(("page", seed) for seed in SEEDS), ("not moved", 0), ("no positions", 0), ("4 x 4 patches", 0)]
RATES = {"perceptron": (1e-3, 3e-3), "convolutions": (3e-3,)}
OTHERS = [(name, rate, seed) for name, rates in RATES.items() for rate in rates for seed in SEEDS]


def pictures(clips: Clips) -> Tensor:
    """Log-mel spectrograms as images of one channel, not yet standardised."""
    return log_mel(clips.signals, rate=RATE, frame=FRAME, hop=HOP, n_mels=BANDS, floor=FLOOR)[:, None]


def data() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images and labels to train on, and those of other speakers."""
    train, test = spoken_digits("train"), spoken_digits("test")
    x, new = pictures(train), pictures(test)
    mean, spread = x.mean(), x.std()
    return (x - mean) / spread, train.labels, (new - mean) / spread, test.labels


def copies(x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Each picture at all of `MOVES`, and its labels."""
    return torch.cat([x.roll(by, -1) for by in MOVES]), labels.repeat(len(MOVES))


def line(c: float, x: Tensor, labels: Tensor, new: Tensor, new_labels: Tensor) -> float:
    """The accuracy of a logistic regression on the same pictures."""
    model = LogisticRegression(C=c, tol=TOLERANCE, max_iter=500).fit(x.flatten(1).numpy(), labels.numpy())
    return float(model.score(new.flatten(1).numpy(), new_labels.numpy()))


def choose() -> dict[str, float]:
    """The accuracy on training speakers held back, by penalty."""
    x, labels, *_ = data()
    voices = spoken_digits("train").voices
    held = set(sorted(set(voices))[::5])
    back = torch.tensor([voice in held for voice in voices])
    known = copies(x[~back], labels[~back])
    return {str(c): line(c, *known, x[back], labels[back]) for c in (0.01, 0.1, 1.0, 10.0)}


def run(name: str, seed: int) -> dict[str, Any]:
    """One model, trained and measured, on all unseen speakers and on each."""
    x, labels, new, new_labels = data()
    seed_everything(seed)
    model = ViT(
        TransformerConfig(d_model=64, n_heads=4, n_blocks=2),
        image_size=(BANDS, x.shape[-1]),
        patch_size=4 if name == "4 x 4 patches" else 8,
        classes=10,
        make_backend=FusedAttend,
    )
    if name == "no positions":
        nn.init.zeros_(model.positions.table)
        model.positions.table.requires_grad_(False)
    moved, repeated = (x, labels) if name == "not moved" else copies(x, labels)
    batches = ImageBatches(moved, repeated, batch=BATCH, steps=STEPS, seed=seed)
    history = fit(model, image_loss, batches, lr=1e-2, optimizer="muon")
    with torch.no_grad():
        right = (model(new).argmax(dim=1) == new_labels).float()
        known = (model(x).argmax(dim=1) == labels).float().mean().item()
    voices = spoken_digits("test").voices
    return {
        "name": name,
        "seed": seed,
        "parameters": count_parameters(model),
        "steps": STEPS,
        "accuracy": right.mean().item(),
        "train_accuracy": known,
        "by_digit": [right[new_labels == digit].mean().item() for digit in range(10)],
        "by_speaker": {
            who: right[torch.tensor([v == who for v in voices])].mean().item() for who in sorted(set(voices))
        },
        "seconds": history.seconds,
    }


def convolutions() -> nn.Module:
    """Four convolutions of 3 x 3, the first three pooled by two, a mean over all places, a linear layer."""
    widths, layers = (1, 24, 48, 72), []
    for before, after in pairwise(widths):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(72, 80, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(80, 10))


def perceptron(inputs: int) -> nn.Module:
    """Two hidden layers on the whole picture."""
    hidden = 41
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(inputs, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, 10),
    )


def run_other(name: str, rate: float, seed: int) -> dict[str, Any]:
    """A model that is no transformer, on the same batches."""
    x, labels, new, new_labels = data()
    seed_everything(seed)
    model = convolutions() if name == "convolutions" else perceptron(x[0].numel())
    batches = ImageBatches(*copies(x, labels), batch=BATCH, steps=STEPS, seed=seed)
    history = fit(model, image_loss, batches, lr=rate, optimizer="adamw")
    with torch.no_grad():
        accuracy = (model(new).argmax(dim=1) == new_labels).float().mean().item()
    return {
        "name": name,
        "rate": rate,
        "seed": seed,
        "parameters": count_parameters(model),
        "steps": STEPS,
        "accuracy": accuracy,
        "seconds": history.seconds,
    }


def main() -> None:
    """Run what is missing, and record everything."""
    results = []
    for key in MODELS:
        result = RUNS.keep(*key, make=partial(run, *key))
        results.append(result | {"cpu_seconds": RUNS.seconds[key]})
    others = []
    for key in OTHERS:
        result = RUNS.keep(*key, make=partial(run_other, *key))
        others.append(result | {"cpu_seconds": RUNS.seconds[key]})
    chosen = choose()
    best = max(chosen, key=lambda c: chosen[c])
    x, labels, *asked = data()
    regression = {
        "held_back": chosen,
        "C": float(best),
        "accuracy": line(float(best), *copies(x, labels), *asked),
        "not moved": line(float(best), x, labels, *asked),
    }
    print(regression)
    record(
        "sound",
        {"runs": results, "others": others, "line": regression},
        seeds=SEEDS,
        cpu_seconds=sum(RUNS.seconds.values()),
    )


if __name__ == "__main__":
    main()
