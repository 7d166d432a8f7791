"""What the stored model writes: one more stage of `gpt_stages`, and rules of sampling with eight seeds.

The model is the one that writes in the page (`tformer_book.kit.live`): 797,568 parameters, the block of
Chapter 8b, trained by `live_model`. Nothing is trained here. Recorded are, measured as in `gpt_stages`:

- its bits per character of held-out text and of as much text of training, and what it writes at temperature
  0.8 from the same seed;
- of texts written by temperature, top-k, top-p and min-p, with the same three settings each: the share of
  known words and how many of 1,000 words are different ones, with seeds 0 to 7. In `gpt_stages` there are two
  seeds a setting, too few to tell the rules apart.

`python live_sampling.py` runs what has not been run yet and records it. Three minutes of one core.
"""

from functools import partial
from typing import Any

import torch

from tformer_book.gpt.experiments.gpt_stages import (
    IDS,
    LETTERS,
    NEW,
    RULES,
    TEXT,
    TEXTS,
    TOKENIZER,
    counted,
    words_of,
    written,
)
from tformer_book.kit.live import live_model
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs
from tformer_lib.core.attention import FusedAttend
from tformer_lib.measures.language import bits_per_character
from tformer_lib.models.gpt import GPT

SEEDS = range(8)


def stored() -> GPT:
    """The stored model, with the faster attention."""
    model, letters = live_model()
    assert letters.alphabet == TOKENIZER.alphabet
    blocks: Any = model.transformer.blocks
    for block in blocks:
        block.self_attention.backend = FusedAttend()
    return model


def look(model: GPT) -> dict[str, Any]:
    """What `gpt_stages` records of a stage, but for the copying."""
    return {
        "held_out": bits_per_character(model, NEW[:25_600], 64),
        "training": bits_per_character(model, IDS[:25_600], 64),
        "text": written(model, 240, 1, 0, temperature=0.8)[0],
    }


def sampled(model: GPT, rule: str, value: float, known: set[str]) -> list[dict[str, float]]:
    """Known and different words of what is written by one setting, for each seed."""
    setting: dict[str, Any] = {rule: int(value) if rule == "top_k" else value}
    return [counted(written(model, LETTERS, TEXTS, seed, **setting), known) for seed in SEEDS]


def main() -> None:
    """Write, count, and record."""
    torch.set_num_threads(1)
    runs, model, known = Runs("live_sampling"), stored(), set(words_of(TEXT))
    results: dict[str, Any] = {"stage": runs.keep("stage", make=partial(look, model)), "sampling": {}}
    for rule, values in RULES.items():
        for value in values:
            make = partial(sampled, model, rule, value, known)
            results["sampling"][f"{rule} {value:g}"] = runs.keep("sampling", rule, value, make=make)
    print(record("live_sampling", results, seeds=list(SEEDS), cpu_seconds=sum(runs.seconds.values())))


if __name__ == "__main__":
    main()
