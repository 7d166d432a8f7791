"""GPT on pixels: bits per pixel, what a linear probe finds at each depth, and where attention goes.

MNIST's 5,000 digits at 14 x 14 pixels and four grey levels, 4,000 to train on. "page" is the model of the
chapter with three seeds; "deeper" has twice as many blocks and two and a half times as many steps. Beside
them tables that count, the probe on an untrained model of the same shape, and the probe on the pixels.

`python image_gpt.py` runs what has not been run yet and records it; what is finished is kept in
`_build/image_gpt/`, with checkpoints. A quarter of an hour of one core.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from tformer_book.image_gpt.grey_levels import quantise, with_start
from tformer_book.image_gpt.layer_means import layer_means
from tformer_book.image_gpt.models.pixel_tables import ABOVE, ABOVE_LEFT, ABOVE_RIGHT, LEFT, PixelTable
from tformer_book.image_gpt.pixels import attention_by_offset
from tformer_book.image_gpt.probing import linear_probe
from tformer_book.kit.data.mnist import ImageBatches, mnist
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs
from tformer_lib.analysis.recording import record_attention
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.measures.language import bits_per_pixel
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.training import count_parameters, fit, seed_everything

RUNS = Runs("image_gpt")
LEVELS, SIDE, BATCH = 4, 14, 16
SEEDS = [0, 1, 2]
SIZES = {"page": (4, 600), "deeper": (8, 1500)}  # blocks, steps
MODELS = [*(("page", seed) for seed in SEEDS), ("deeper", 0)]
NEAR = {"left": (0, -1), "above": (1, 0)}  # rows up, columns right


def data(split: Any) -> tuple[Tensor, Tensor]:
    """Rows of tokens, the start token first, and labels."""
    images, labels = mnist(split)
    small = torch.nn.functional.avg_pool2d(images, 2)
    return with_start(quantise(small, LEVELS), LEVELS), labels


def build(size: str, seed: int, make_backend: Any = FusedAttend) -> GPT:
    """A model that has learned nothing."""
    seed_everything(seed)
    config = TransformerConfig(d_model=64, n_heads=4, n_blocks=SIZES[size][0])
    return GPT(config, LEVELS + 1, positions=LearnedPositions(SIDE * SIDE, 64), make_backend=make_backend)


def probes(model: GPT) -> list[float]:
    """The accuracy of the probe at each depth."""
    (rows, labels), (new, new_labels) = data("train"), data("test")
    pairs = zip(layer_means(model, rows), layer_means(model, new), strict=True)
    return [linear_probe(known, labels, asked, new_labels) for known, asked in pairs]


def attention(model: GPT, size: str) -> dict[str, Any]:
    """By layer and head the mean weight on the pixels to the left and above, and what chance would give."""
    looking = build(size, 0, make_backend=None)
    looking.load_state_dict(model.state_dict())
    looking.eval()
    with torch.no_grad(), record_attention(looking) as weights:
        looking(data("test")[0][:100, :-1])
    found: dict[str, Any] = {name: [] for name in NEAR}
    for layer in weights.values():
        shares, chance = attention_by_offset(layer, SIDE, SIDE)
        for name, (up, right) in NEAR.items():
            found[name].append(shares[:, up, right + SIDE - 1].tolist())
            found[f"chance {name}"] = chance[up, right + SIDE - 1].item()
    return found


def run(size: str, seed: int) -> dict[str, Any]:
    """One model, trained and measured."""
    (rows, labels), (new, _) = data("train"), data("test")
    model, steps = build(size, seed), SIZES[size][1]
    untrained = probes(model) if seed == 0 else None
    history = fit(
        model,
        lambda model, batch: language_loss(model, batch[0]),
        ImageBatches(rows, labels, batch=BATCH, steps=steps, seed=seed),
        lr=1e-2,
        optimizer="muon",
        checkpoint=RUNS.checkpoint(size, seed),
    )
    return {
        "size": size,
        "seed": seed,
        "blocks": SIZES[size][0],
        "steps": steps,
        "parameters": count_parameters(model),
        "bits": bits_per_pixel(model, new),
        "train_bits": bits_per_pixel(model, rows[:1000]),
        "probe": probes(model),
        "untrained_probe": untrained,
        "attention": attention(model, size),
        "seconds": history.seconds,
    }


def tables() -> dict[str, float]:
    """Bits per pixel of what counts."""
    rows, new = data("train")[0][:, 1:], data("test")[0][:, 1:]
    four = [LEFT, ABOVE, ABOVE_LEFT, ABOVE_RIGHT]
    plans: dict[str, tuple[list[tuple[int, int]], bool]] = {
        "all pixels": ([], False),
        "each pixel": ([], True),
        "left": ([LEFT], False),
        "left and above": ([LEFT, ABOVE], False),
        "four neighbours": (four, False),
        "four neighbours, each pixel": (four, True),
    }
    return {
        name: PixelTable(LEVELS, SIDE, SIDE, around, by_place=place).fit(rows).bits_per_pixel(new)
        for name, (around, place) in plans.items()
    }


def main() -> None:
    """Run what is missing, and record everything."""
    results = []
    for key in MODELS:
        result = RUNS.keep(*key, make=partial(run, *key))
        results.append(result | {"cpu_seconds": RUNS.seconds[key]})
    (rows, labels), (new, new_labels) = data("train"), data("test")
    pixels = linear_probe(rows[:, 1:].float(), labels, new[:, 1:].float(), new_labels)
    record(
        "image_gpt",
        {"runs": results, "tables": tables(), "pixels": pixels},
        seeds=SEEDS,
        cpu_seconds=sum(RUNS.seconds.values()),
    )


if __name__ == "__main__":
    main()
