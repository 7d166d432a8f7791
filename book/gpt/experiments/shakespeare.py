"""Bits per character of GPTs on the plays of Chapter 8: with a million characters, and with all there are.

As on the page: letters as tokens, measured on the first 100,000 characters held out. The model of the page
is trained on the million and on all 34 plays, with two seeds; a wider one on all plays for 3,000 steps,
two thirds of one reading; and one of 2.7 million parameters, of the modern kind, which reads all plays
about once. Beside them n-grams, counted on the same two texts. Half an hour on one core.

`python shakespeare.py` runs what has not been run yet and records it; training that was stopped
goes on where it was. What is finished is kept in `_build/shakespeare/`, or in the folder that `--folder`
names.
"""

import argparse
import math
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tformer_book.kit.data.text import shakespeare
from tformer_book.kit.models.ngram import NGram
from tformer_book.kit.records import record
from tformer_book.kit.runs import BUILD, Runs
from tformer_lib import TransformerConfig
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import Rotary
from tformer_lib.data.windows import RandomWindows
from tformer_lib.measures.language import bits_per_character
from tformer_lib.models.gpt import GPT
from tformer_lib.models.initialisation import quiet_initialisation
from tformer_lib.models.language import language_loss
from tformer_lib.tokenizers import CharTokenizer
from tformer_lib.training import count_parameters, fit, seed_everything

MODERN = {"norm": "rms", "qk_norm": True, "activation": "swiglu", "d_hidden": 512, "bias": False}
SIZES = {  # configuration, batch, steps, and what fit is told beside them
    "page": (TransformerConfig(d_model=96, n_heads=4, n_blocks=4), 6, 700, {}),
    "longer": (TransformerConfig(d_model=128, n_heads=4, n_blocks=4), 8, 3000, {}),
    "largest": (
        TransformerConfig(d_model=192, n_heads=6, n_blocks=6, **MODERN),
        16,
        2400,
        {"weight_decay": 0.1, "min_lr_ratio": 0.05},
    ),
}
MODELS = (  # size, text, seed
    ("page", "million", 0),
    ("page", "million", 1),
    ("page", "all plays", 0),
    ("page", "all plays", 1),
    ("longer", "all plays", 0),
    ("largest", "all plays", 0),
)
LENGTH, ORDERS = 128, range(4, 10)


def count(ids: Tensor, held_out: Tensor, vocab: int) -> dict[str, Any]:
    """Bits per character of n-grams, and how many entries their tables have, by order."""
    tables = {order: NGram(order, vocab).fit(ids) for order in ORDERS}
    return {
        "bits": {order: model.nll(held_out) / math.log(2) for order, model in tables.items()},
        "entries": {order: sum(len(t.keys) for t in model.tables) for order, model in tables.items()},
    }


def run(
    size: str, name: str, seed: int, ids: Tensor, held_out: Tensor, vocab: int, checkpoint: Path
) -> dict[str, Any]:
    """One model, trained on the text of that name and measured."""
    config, batch, steps, options = SIZES[size]
    seed_everything(seed)
    rotary = Rotary(config.d_model // config.n_heads)
    model = GPT(config, vocab, rotary=rotary, make_backend=FusedAttend)
    if size == "largest":
        quiet_initialisation(model)
    windows = RandomWindows(ids, batch=batch, length=LENGTH, steps=steps, seed=seed)
    options = {"lr": 1e-2, "optimizer": "muon", **options}
    history = fit(model, language_loss, windows, checkpoint=checkpoint, **options)
    return {
        "size": size,
        "text": name,
        "seed": seed,
        "steps": steps,
        "read": batch * LENGTH * steps,
        "parameters": count_parameters(model),
        "seconds": history.seconds,  # on the clock
        "training": sum(history.loss[-50:]) / 50 / math.log(2),
        "held_out": bits_per_character(model, held_out, 64),
    }


def main() -> None:
    """Count, train, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=BUILD / "shakespeare", help="where runs are kept")
    runs = Runs(parser.parse_args().folder.absolute())
    tokenizer = CharTokenizer.from_text(shakespeare("train"))
    every, vocab = torch.tensor(tokenizer.encode(shakespeare("train"))), tokenizer.vocab_size
    texts = {"million": every[:1_000_000], "all plays": every}
    held_out = torch.tensor(tokenizer.encode(shakespeare("validation")[:100_000]))
    sizes = {name: len(ids) for name, ids in texts.items()}
    results: dict[str, Any] = {"characters": sizes, "ngram": {}, "entries": {}, "gpt": []}
    for name, ids in texts.items():
        counted = runs.keep("n-grams", name, make=partial(count, ids, held_out, vocab))
        results["ngram"][name], results["entries"][name] = counted["bits"], counted["entries"]
    for size, name, seed in MODELS:
        data = (texts[name], held_out, vocab, runs.checkpoint(size, name, seed))
        results["gpt"].append(runs.keep(size, name, seed, make=partial(run, size, name, seed, *data)))
    seeds = sorted({seed for *_, seed in MODELS})
    print(record("shakespeare", results, seeds=seeds, cpu_seconds=sum(runs.seconds.values())))


if __name__ == "__main__":
    main()
