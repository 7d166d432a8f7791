"""What is it about far offsets that hurts a rotary model? Controls for `length_controls.py`, three seeds.

Trained rotary models are read again: some hands count every offset beyond the training as one and the same,
or hand 3 stands at one angle for all of them; and places are divided by 4, with offsets rounded down or not.
Recipe, sizes and text are those of `length_controls.py`. Two single runs come with them: rotary trained with
the base 500,000, and no positions at width 88.

`python length_hands.py` runs what has not been run yet and records it; with names it runs only
those, and records once all runs are there. About six minutes of one core.
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, means, rounded
from tformer_book.positions.experiments.length_controls import HANDS, WINDOWS, by_offset, changed
from tformer_book.positions.experiments.length_extrapolation import (
    BATCH,
    BIN,
    CONFIG,
    LENGTH,
    SEEDS,
    STEPS,
    prepared,
)
from tformer_book.positions.experiments.length_extrapolation import WINDOWS as MANY
from tformer_book.positions.models.positioned import loss_by_position, positioned_gpt
from tformer_lib.core.attention import Backend, masked_softmax
from tformer_lib.core.positions import Rotary
from tformer_lib.data.windows import RandomWindows
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.training import count_parameters, fit, seed_everything

STOPS, ANGLES, FAST = (0, 16, 32, 48, 63), (0, 60, 90, 150, 180, 246), (0, 1, 2)
OTHERS = [i for i in range(HANDS) if i != 3]
EXTRAS = ("rotary, base 500,000", "none, width 88")
RUNS = Runs("length_hands")


class Divided(Backend):
    """Rotary attention whose hands turn by (n - s) w_i / 4, or by floor((n - s) / 4) w_i."""

    def __init__(self, *, whole: bool):
        super().__init__()
        self.whole = whole

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """softmax(scores) v; the pairs of a query and of a key are complex numbers."""
        places = torch.arange(q.shape[-2])
        offsets = (places[:, None] - places) / 4
        offsets = offsets.floor() if self.whole else offsets
        q, k = (torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) for x in (q, k))
        scores = torch.zeros(())
        for i in range(HANDS):
            turns = torch.exp(1j * offsets * 10000.0 ** (-i / HANDS))
            scores = scores + (k[..., None, :, i].conj() * q[..., :, None, i] * turns).real
        return masked_softmax(scores / math.sqrt(2 * HANDS), mask) @ v


def divided(layer: torch.nn.Module, *, whole: bool) -> None:
    """Takes the rotation out of a layer and puts `Divided` in."""
    layer.rotary, layer.backend = None, Divided(whole=whole)


def controls(model: GPT, measure: Callable) -> dict:
    """The loss by bins of a trained rotary model that is read in other ways."""
    per_place = math.degrees(10000.0 ** (-3 / HANDS))  # of hand 3
    ways: dict[str, dict[int, float]] = {
        f"all hands at {c}": dict.fromkeys(range(HANDS), float(c)) for c in STOPS
    }
    ways |= {f"all but hand 3 at {c}": dict.fromkeys(OTHERS, float(c)) for c in STOPS[1:]}
    ways["hands 0 to 2 at 48"] = dict.fromkeys(FAST, 48.0)
    ways |= {f"hand 3 at {angle} degrees": {3: angle / per_place} for angle in ANGLES}
    return {name: measure(changed(model, by_offset(stops))) for name, stops in ways.items()}


def run(name: str, seed: int) -> dict:
    """Trains one model and measures it."""
    text = prepared(WINDOWS)
    config = replace(CONFIG, d_model=88) if name == "none, width 88" else CONFIG
    seed_everything(seed)
    model = positioned_gpt(name.partition(", ")[0], config, text.vocab, length=LENGTH, longest=4 * LENGTH)
    if name == "rotary, base 500,000":
        for block in model.transformer.blocks:
            block.self_attention.rotary = Rotary(2 * HANDS, 500_000.0)
    fit(model, language_loss, RandomWindows(text.train, batch=BATCH, length=LENGTH, steps=STEPS, seed=seed))
    found: dict = {"parameters": count_parameters(model)}
    if name == "none, width 88":  # on the windows of `length_extrapolation.py`, as far as it was trained
        many = prepared(MANY).windows[:, : LENGTH + 1]
        return found | {"loss": rounded(means(loss_by_position(model, many).tolist(), BIN))}

    def measure(model: GPT, length: int = 4 * LENGTH) -> list[float]:
        losses = loss_by_position(model, text.windows[:, : length + 1], keep=text.keep[:, :length])
        return rounded(means(losses.tolist(), BIN))

    found["loss"] = {"as trained": measure(model)}
    if name == "rotary":
        found["loss"] |= controls(model, measure)
        for way, whole in (("divided by 4", False), ("divided by 4, rounded down", True)):
            found["loss"][way] = measure(changed(model, partial(divided, whole=whole)), LENGTH)
    return found


def main() -> None:
    """Runs what is missing; records when nothing is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of rotary, {', '.join(EXTRAS)}; all if none is given")
    torch.set_num_threads(1)
    wanted = {("rotary", seed) for seed in SEEDS} | {(name, 0) for name in EXTRAS}
    names = parser.parse_args().names
    for name, seed in sorted(wanted, reverse=True):
        if not names or name in names:
            RUNS.keep(name, seed, make=partial(run, name, seed))
    if all(RUNS.done(*key) for key in wanted):
        runs = {
            name: [RUNS.get(n, s) for n, s in sorted(wanted) if n == name] for name in ("rotary", *EXTRAS)
        }
        settings = {"length": LENGTH, "bin": BIN, "batch": BATCH, "steps": STEPS, "windows": WINDOWS}
        record(
            "length_hands",
            {**settings, "runs": runs},
            seeds=SEEDS,
            cpu_seconds=sum(RUNS.seconds.values()),
        )


if __name__ == "__main__":
    main()
