"""Why do models trained at length L fail, or not, at 4L? Controls for `length_extrapolation.py`, three seeds.

ALiBi with the slopes of its paper and with others; and trained rotary and relative models that are read
again with changed offsets, frequencies or temperatures (`rotary_controls`, `level_tail`). Recipe, sizes and
text are those of the other script; but every position is judged by the same characters (`shared_text`).

`python length_controls.py` runs what has not been run yet and records it; with names, such as
`rotary "alibi, steep"`, it runs only those, and records once all runs are there. About nine minutes of one
core.
"""

import argparse
import copy
from collections.abc import Callable
from functools import partial

import torch

from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, means, rounded
from tformer_book.positions.experiments.length_extrapolation import (
    BATCH,
    BIN,
    CONFIG,
    LENGTH,
    SEEDS,
    STEPS,
    prepared,
)
from tformer_book.positions.models.positioned import OffsetAttend, loss_by_position, positioned_gpt
from tformer_lib.core.positions import Rotary
from tformer_lib.core.score_bias import ALiBi, RelativeBias
from tformer_lib.data.windows import RandomWindows
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.training import fit, seed_everything

STEEP = [1.0, 1 / 4, 1 / 16, 1 / 256]
NAMES = ("rotary", "alibi", "alibi, steep", "relative")
WINDOWS = 320
HANDS = 8  # of a head of width 16
RUNS = Runs("length_controls")
Change = Callable[[torch.nn.Module], None]


def changed(model: GPT, change: Change) -> GPT:
    """A copy of the model, each of its attention layers changed."""
    model = copy.deepcopy(model)
    for block in model.transformer.blocks:
        change(block.self_attention)
    return model


def by_offset(clamped: list[int] | dict[int, float], **options: bool) -> Change:
    """Rotary positions whose `clamped` hands stop at the last offset of the training, or at a given one."""

    def change(layer: torch.nn.Module) -> None:
        layer.rotary = None
        layer.backend = OffsetAttend(LENGTH, clamped, **options)

    return change


def with_frequencies(base: float, divisors: list[float] | None = None) -> Change:
    """Rotary positions of another base, or with divided frequencies."""

    def change(layer: torch.nn.Module) -> None:
        rescale = None if divisors is None else (lambda w: w / torch.tensor(divisors, dtype=w.dtype))
        layer.rotary = Rotary(2 * HANDS, base, rescale=rescale)

    return change


def rotary_controls(model: GPT, measure: Callable) -> dict:
    """The loss by bins of a trained rotary model that is read in other ways."""
    every = list(range(HANDS))
    ways = {"all hands clamped": by_offset(every)}
    ways |= {f"hand {i} clamped": by_offset([i]) for i in every[:5]}
    ways["hands 5 to 7 clamped"] = by_offset(every[5:])
    ways["all but hand 3 clamped"] = by_offset([i for i in every if i != 3])
    ways["window of 64"] = by_offset([], window=True)
    ways["all hands clamped, temperature"] = by_offset(every, temperature=True)
    ways["all hands divided by 4"] = with_frequencies(10_000.0, [4.0] * HANDS)
    ways["hands 3 to 7 divided by 4"] = with_frequencies(10_000.0, [1.0] * 3 + [4.0] * (HANDS - 3))
    ways["base for 4 times the length"] = with_frequencies(10_000.0 * 4 ** (HANDS / (HANDS - 1)))
    return {name: measure(changed(model, change)) for name, change in ways.items()}


def level_tail(layer: torch.nn.Module) -> None:
    """Gives all buckets beyond the 28th its number."""
    layer.backend.score_bias.table.data[:, 28:] = layer.backend.score_bias.table.data[:, 27:28]


def run(name: str, seed: int) -> dict:
    """Trains one model and measures its loss at the positions 1..4L, averaged over bins, in several ways."""
    text = prepared(WINDOWS)
    seed_everything(seed)
    way = name.partition(", ")[0]
    model = positioned_gpt(way, CONFIG, text.vocab, length=LENGTH, longest=4 * LENGTH)
    for block in model.transformer.blocks:
        bias = block.self_attention.backend.score_bias
        if isinstance(bias, ALiBi) and name.endswith("steep"):
            bias.slopes.copy_(torch.tensor(STEEP))
    history = fit(
        model, language_loss, RandomWindows(text.train, batch=BATCH, length=LENGTH, steps=STEPS, seed=seed)
    )

    def measure(model: GPT) -> list[float]:
        return rounded(means(loss_by_position(model, text.windows, keep=text.keep).tolist(), BIN))

    found = {"as trained": measure(model)}
    if name == "rotary":
        found |= rotary_controls(model, measure)
    if isinstance(bias, RelativeBias):
        found["last buckets level"] = measure(changed(model, level_tail))
    return {"trained": round(sum(history.loss[-100:]) / 100, 4), "loss": found}


def main() -> None:
    """Runs what is missing; records when nothing is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)}; all if none is given")
    torch.set_num_threads(1)
    for name in parser.parse_args().names or NAMES:
        for seed in SEEDS:
            RUNS.keep(name, seed, make=partial(run, name, seed))
    if all(RUNS.done(name, seed) for name in NAMES for seed in SEEDS):
        runs = {name: [RUNS.get(name, seed) for seed in SEEDS] for name in NAMES}
        settings = {"length": LENGTH, "bin": BIN, "batch": BATCH, "steps": STEPS, "windows": WINDOWS}
        seconds = sum(RUNS.seconds.values())
        record("length_controls", {**settings, "runs": runs}, seeds=SEEDS, cpu_seconds=seconds)


if __name__ == "__main__":
    main()
