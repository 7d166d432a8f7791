"""nanoGPT's recipe for a processor against a modern one: steps and CPU-seconds to the same held-out loss.

`python recipe.py [TEXT FILE]` trains both in one go, on one thread, and prints what each needs to
reach the loss at which nanoGPT's recipe ends after its 2,000 steps. Of a text file the first 90% of the
characters are trained on and the others held out; without one, the text is Shakespeare's plays as the book
divides them. The loss is that of all of the held-out text, cut into windows of 64 characters, each of which
begins where the one before ends; the clock is the process's own and stands still while it is measured. About
three minutes.

With `--ladder`, the changes from one recipe to the other are made one at a time, each at 1,000 steps; with
`--plays` or `--tiny` a result is kept in `_build/recipe/` under that heading, and all that is kept is
recorded. `--seconds 250` stops the ladder after that much processor time, to be called again. About 20
minutes.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer_book.kit.data.text import shakespeare
from tformer_book.kit.models.recipes import BASELINE, BATCH, CONTEXT, LADDER, MODERN, SIDE, Recipe
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs
from tformer_lib.data.windows import RandomWindows, consecutive_windows
from tformer_lib.models.language import language_loss
from tformer_lib.tokenizers import CharTokenizer
from tformer_lib.training import count_parameters, fit, seed_everything

LADDER_STEPS, POINTS, SEEDS = 1000, 20, [0, 1, 2]


class Text(NamedTuple):
    """Numbered characters to train on, windows that are held out, a part of those, and the vocabulary."""

    train: Tensor
    held: Tensor
    some: Tensor
    vocab: int


def load(path: Path | None) -> Text:
    """A text file, or the book's plays."""
    if path is None:
        train, held = shakespeare("train"), shakespeare("validation")
    else:
        text = path.read_text(encoding="utf-8")
        train, held = text[: int(0.9 * len(text))], text[int(0.9 * len(text)) :]
    tokenizer = CharTokenizer.from_text(train + held)
    windows = consecutive_windows(torch.tensor(tokenizer.encode(held)), CONTEXT)
    some = windows[:: max(1, len(windows) // 256)][:256]
    return Text(torch.tensor(tokenizer.encode(train)), windows, some, tokenizer.vocab_size)


@torch.no_grad()
def held_out(model: nn.Module, windows: Tensor) -> float:
    """Mean loss in nats over all predictions in the windows."""
    was = model.training
    model.eval()
    total = 0.0
    for rows in windows.split(128):
        logits = model(rows[:, :-1]).flatten(0, 1)
        total += F.cross_entropy(logits, rows[:, 1:].flatten(), reduction="sum").item()
    model.train(was)
    return total / (len(windows) * CONTEXT)


class Clock:
    """`language_loss`; between steps `look(clock, model)` is called, and that time is not counted."""

    def __init__(self, look: Callable[["Clock", nn.Module], None]):
        self.look, self.step, self.looking = look, 0, 0.0
        self.end: float | None = None
        self.start = time.process_time()

    def seconds(self) -> float:
        """Processor time of training so far."""
        end = time.process_time() if self.end is None else self.end
        return end - self.start - self.looking

    def stop(self) -> None:
        """Training is over; what follows is not counted."""
        self.end = time.process_time()

    def __call__(self, model: nn.Module, batch: Tensor) -> Tensor:
        if self.step:
            self.end = start = time.process_time()
            self.look(self, model)
            self.looking, self.end = self.looking + time.process_time() - start, None
        self.step += 1
        return language_loss(model, batch)


Look = Callable[[Clock, nn.Module], None]


def train(recipe: Recipe, text: Text, steps: int, seed: int, look: Look) -> tuple[nn.Module, Clock]:
    """Trains a recipe's model; `look(clock, model)` is called between steps."""
    seed_everything(seed)
    model = recipe.build(text.vocab)
    batches = RandomWindows(text.train, batch=BATCH, length=CONTEXT, steps=steps, seed=seed)
    clock = Clock(look)
    fit(model, clock, batches, **recipe.options(steps))
    clock.stop()
    return model, clock


def run(recipe: Recipe, text: Text, seed: int, rival: dict[str, Any] | None = None) -> dict[str, Any]:
    """One recipe: its curve on some of the held-out text, its end, and where it reaches the `rival`'s end.

    It has reached it when the loss on all of the held-out text, which is measured every five steps once the
    loss on some is near, is no larger.
    """
    steps = recipe.fit["steps"]
    curve: list[tuple[int, float, float]] = []
    reached: list[dict[str, float]] = []

    def note(clock: Clock, model: nn.Module) -> dict[str, float]:
        loss = round(held_out(model, text.held), 4)
        return {"steps": clock.step, "cpu_seconds": round(clock.seconds(), 2), "loss": loss}

    def look(clock: Clock, model: nn.Module) -> None:
        seconds, loss = clock.seconds(), None
        if clock.step % (steps // POINTS) == 0:
            loss = held_out(model, text.some)
            curve.append((clock.step, round(seconds, 2), round(loss, 4)))
        if rival is None or reached or clock.step < steps // 2 or clock.step % 5:
            return
        loss = held_out(model, text.some) if loss is None else loss
        if loss < rival["curve"][-1][2] + 0.02:
            now = note(clock, model)
            if now["loss"] <= rival["end"]["loss"]:
                reached.append(now)

    model, clock = train(recipe, text, steps, seed, look)
    end = note(clock, model)
    curve.append((steps, end["cpu_seconds"], round(held_out(model, text.some), 4)))
    if rival is None or (not reached and end["loss"] <= rival["end"]["loss"]):
        reached.append(end)
    print(recipe.name, "ends:", end, flush=True)
    return {
        "parameters": count_parameters(model),
        "milliseconds_a_step": round(1000 * end["cpu_seconds"] / steps, 1),
        "curve": curve,
        "end": end,
        "reached": reached[0] if reached else None,
    }


def race(text: Text, seed: int = 0) -> dict[str, Any]:
    """Both recipes, one after the other: what each needs to the loss at which the first ends."""
    results: dict[str, Any] = {"seed": seed, BASELINE.name: run(BASELINE, text, seed)}
    results[MODERN.name] = run(MODERN, text, seed, results[BASELINE.name])
    first, second = (results[recipe.name]["reached"] for recipe in (BASELINE, MODERN))
    if second is not None:
        results["ratio_of_steps"] = round(second["steps"] / first["steps"], 4)
        results["ratio_of_cpu_seconds"] = round(second["cpu_seconds"] / first["cpu_seconds"], 4)
    return results


def show(results: dict[str, Any]) -> None:
    """What `race` found, for people."""
    target = results[BASELINE.name]["end"]["loss"]
    print(f"to a held-out loss of {target:.4f} nats:")
    for recipe in (BASELINE, MODERN):
        found = results[recipe.name]["reached"]
        needs = f"{found['steps']} steps, {found['cpu_seconds']:.1f} CPU-seconds" if found else "not reached"
        print(f"  {recipe.name:9s} {results[recipe.name]['parameters']:,} parameters: {needs}")
    if "ratio_of_steps" in results:
        print(f"  ratio: {results['ratio_of_steps']:.3f} of the steps,", end=" ")
        print(f"{results['ratio_of_cpu_seconds']:.3f} of the CPU-seconds")


def rung(recipe: Recipe, text: Text, seed: int) -> dict[str, Any]:
    """One rung of the ladder: its loss on some of the held-out text along the way, and on all at the end."""
    every = LADDER_STEPS // POINTS
    losses: list[float] = []
    seconds: list[float] = []

    def look(clock: Clock, model: nn.Module) -> None:
        if clock.step % every == 0:
            seconds.append(round(clock.seconds(), 2))
            losses.append(round(held_out(model, text.some), 4))

    model, clock = train(recipe, text, LADDER_STEPS, seed, look)
    total = clock.seconds()
    return {
        "name": recipe.name,
        "seed": seed,
        "held_out": round(held_out(model, text.held), 4),
        "cpu_seconds": round(total, 2),
        "steps": [every * i for i in range(1, POINTS + 1)],
        "losses": [*losses, round(held_out(model, text.some), 4)],
        "seconds": [*seconds, round(total, 2)],
        "parameters": count_parameters(model),
        "cached_numbers_a_token": 2 * recipe.config.n_blocks * kv_width(recipe),
    }


def kv_width(recipe: Recipe) -> int:
    """How many numbers the keys of one token in one block are."""
    config = recipe.config
    return (config.n_kv_heads or config.n_heads) * config.d_model // config.n_heads


def gather() -> None:
    """Record all that is kept."""
    results: dict[str, Any] = {"context": CONTEXT, "batch": BATCH, "ladder_steps": LADDER_STEPS}
    seconds, seeds = 0.0, set()
    for heading in ("tiny_shakespeare", "plays"):
        kept = Runs(f"recipe/{heading}").kept()
        ladder = [result for (kind, *_), result in kept.items() if kind == "rung"]
        order = {recipe.name: i for i, recipe in enumerate((*LADDER, *SIDE))}
        ladder.sort(key=lambda r: (order[r["name"]], r["seed"]))
        races = [result for (kind, *_), result in kept.items() if kind == "race"]
        races.sort(key=lambda r: r["seed"])
        seconds += sum(r["cpu_seconds"] for r in ladder)
        seconds += sum(r[recipe.name]["end"]["cpu_seconds"] for r in races for recipe in (BASELINE, MODERN))
        seeds |= {r["seed"] for r in (*ladder, *races)}
        results[heading] = {"races": races, "ladder": ladder}
    record("recipe", results, seeds=sorted(seeds), cpu_seconds=seconds)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", help="a text; the book's plays if none")
    parser.add_argument("--ladder", action="store_true", help="one change at a time")
    parser.add_argument("--tiny", action="store_true", help="record it as tiny Shakespeare")
    parser.add_argument("--plays", action="store_true", help="record it as the book's plays")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of processor time")
    parser.add_argument("--seed", type=int, default=0, help="of the race")
    options = parser.parse_args()
    torch.set_num_threads(1)
    heading = "tiny_shakespeare" if options.tiny else "plays" if options.plays else None
    kept = Runs(f"recipe/{heading or 'unnamed'}")
    text = load(options.file)
    if options.ladder:
        runs = [(recipe, SEEDS[0]) for recipe in LADDER]
        runs += [(recipe, SEEDS[1]) for recipe in (BASELINE, MODERN)]
        runs += [(recipe, SEEDS[0]) for recipe in SIDE]
        runs += [(recipe, SEEDS[2]) for recipe in (BASELINE, MODERN)]
        for recipe, seed in runs:
            if time.process_time() < options.seconds:
                kept.keep("rung", recipe.name, seed, make=partial(rung, recipe, text, seed))
    else:
        show(kept.keep("race", options.seed, make=partial(race, text, options.seed), again=True))
    if heading:
        gather()


if __name__ == "__main__":
    main()
