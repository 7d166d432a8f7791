"""Bits per character of GPTs on the plays of Chapter 8: with a million characters, and with all there are.

As on the page: letters as tokens, measured on the first 100,000 characters held out. The model of the page
is trained on the million and on all 34 plays, with two seeds; a wider one on all plays for 3,000 steps,
two thirds of one reading; and one of 2.7 million parameters, made as in Chapter 8b, which reads all plays
about once. Beside them n-grams, counted on the same two texts. Half an hour on one core.

With `--folder F` a run that is stopped goes on where it was when it is started again.
"""

import argparse
import math
import time
from pathlib import Path

import torch

from tformer_lib import TransformerConfig
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import Rotary
from tformer_lib.data.text import shakespeare
from tformer_lib.data.tokenizers import CharTokenizer
from tformer_lib.data.windows import RandomWindows
from tformer_lib.models.gpt import GPT
from tformer_lib.models.initialisation import quiet_initialisation
from tformer_lib.models.language import bits_per_character, language_loss
from tformer_lib.models.ngram import NGram
from tformer_lib.recorded import record
from tformer_lib.training import count_parameters, fit, seed_everything

MODERN = {"norm": "rms", "qk_norm": True, "activation": "swiglu", "d_hidden": 512, "bias": False}
SIZES = {  # configuration, batch, steps, and what fit is told beside them
    "page": (TransformerConfig(96, 4, 4), 6, 700, {}),
    "longer": (TransformerConfig(128, 4, 4), 8, 3000, {}),
    "largest": (TransformerConfig(192, 6, 6, **MODERN), 16, 2400, {"weight_decay": 0.1, "final": 0.05}),
}
RUNS = {  # seeds
    ("page", "million"): (0, 1),
    ("page", "all plays"): (0, 1),
    ("longer", "all plays"): (0,),
    ("largest", "all plays"): (0,),
}
LENGTH, ORDERS = 128, range(4, 10)


def main() -> None:
    """Count, train, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where checkpoints go")
    folder = parser.parse_args().folder
    tokenizer = CharTokenizer.from_text(shakespeare("train"))
    every, vocab = torch.tensor(tokenizer.encode(shakespeare("train"))), tokenizer.vocab_size
    texts = {"million": every[:1_000_000], "all plays": every}
    held_out = torch.tensor(tokenizer.encode(shakespeare("validation")[:100_000]))
    clock = folder / "seconds.txt" if folder else None
    before = float(clock.read_text()) if clock and clock.exists() else 0.0
    sizes = {name: len(ids) for name, ids in texts.items()}
    results: dict = {"characters": sizes, "ngram": {}, "entries": {}, "gpt": []}
    try:
        for name, ids in texts.items():
            tables = {order: NGram(order, vocab).fit(ids) for order in ORDERS}
            results["ngram"][name] = {k: table.nll(held_out) / math.log(2) for k, table in tables.items()}
            results["entries"][name] = {k: sum(len(t.keys) for t in m.tables) for k, m in tables.items()}
            print(name, results["ngram"][name], flush=True)
        for (size, name), seeds in RUNS.items():
            config, batch, steps, options = SIZES[size]
            for seed in seeds:
                seed_everything(seed)
                rotary = Rotary(config.d_model // config.n_heads)
                model = GPT(config, vocab, rotary=rotary, attend=FusedAttend)
                if size == "largest":
                    quiet_initialisation(model)
                windows = RandomWindows(texts[name], batch=batch, length=LENGTH, steps=steps, seed=seed)
                place = folder / f"{size}-{name}-{seed}".replace(" ", "-") if folder else None
                options = {"lr": 1e-2, "optimizer": "muon", **options}
                history = fit(model, language_loss, windows, checkpoint=place, **options)
                run = {
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
                results["gpt"].append(run)
                print(run, flush=True)
    finally:
        used = before + time.process_time()
        if clock:
            clock.parent.mkdir(parents=True, exist_ok=True)
            clock.write_text(f"{used:.1f}")
    seeds = sorted({seed for seeds in RUNS.values() for seed in seeds})
    print(record("shakespeare", results, seeds=seeds, cpu_seconds=used))


if __name__ == "__main__":
    main()
