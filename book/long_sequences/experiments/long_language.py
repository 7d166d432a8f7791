"""Language modelling by every way of attending: the same text, steps and batches, each at its own rate.

Shakespeare's plays as 512 kinds of token, in rows of 128. Half of the rows are the text as it stands; in the
others a passage of 64 tokens is told twice. A decoder of two blocks, 64 wide, has in turn each way of
attending. It is trained by Muon for 80 steps of 8 rows. The learning rate is the best of three, by 40 steps
with a seed of its own on text of its own; with it three seeds are then judged on other text. Of full
attention it is also recorded how much of its weight the keys carry that an indexer chooses, which is trained
beside the finished model. Two controls: the same training on running text alone, at the same rates, and what
full attention predicts after nothing, after another row and after its own.

Each run is kept in `_build/long_language`, so that the script may be stopped and begun again.
"""

import argparse
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from tformer_book.kit.data.text import shakespeare
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, rounded
from tformer_book.long_sequences.data.told import ToldTwice
from tformer_book.long_sequences.models.language import (
    IndexedAttend,
    Indexer,
    Pattern,
    Selected,
    SparseLater,
    TopAttend,
    at_random,
    by_indexer,
    exact,
    recent,
    select,
    small_language_model,
)
from tformer_lib.core.attention import Backend, FusedAttend
from tformer_lib.efficient.delta import DeltaAttend
from tformer_lib.efficient.linear import LinearAttend
from tformer_lib.efficient.sliding import SlidingWindow
from tformer_lib.efficient.sparse import BlockSparse
from tformer_lib.tokenizers import BPETokenizer
from tformer_lib.training import count_parameters, fit, seed_everything

RUNS = Runs("long_language")
SEEDS, PICKER, RATES = (0, 1, 2), 7, (0.01, 0.02, 0.04)
STEPS, PICKING, BATCH, PASSAGE, VOCAB, WIDTH, TOP = 80, 40, 8, 64, 512, 64, 16
BUCKETS = ((1, 8), (9, 16), (17, 32), (33, 64), (65, 128))  # places of what is predicted, counted from 1
AGAIN = (9, 64)  # places in the second telling
EXAM = 64  # rows
ALONE = ("full", "window", "delta")  # trained on running text alone as well


def window() -> Backend:
    """A query sees itself and the 15 tokens before it."""
    return SlidingWindow(TOP, causal=True)


def relays() -> Backend:
    """Stretches of 16 tokens, whose last 4 all later queries see."""
    return Pattern(BlockSparse(4, stride=4, causal=True).pattern)


def delta(**parts: bool) -> Backend:
    """A state of 32 x 32 in each head."""
    return DeltaAttend(WIDTH // 2, chunk=64, **parts)


linear = partial(LinearAttend, causal=True)
MODELS: dict[str, tuple[Callable[[], Backend], ...]] = {  # how the blocks attend
    "full": (FusedAttend, FusedAttend),
    "window": (window, window),
    "linear": (linear, linear),
    "delta": (delta, delta),
    "gated delta": (partial(delta, gated=True),) * 2,
    "indexer": (partial(IndexedAttend, WIDTH, TOP),) * 2,
    "top keys": (partial(TopAttend, TOP),) * 2,
    "window, then full": (window, FusedAttend),
    "relays": (relays, relays),
    "delta, then full": (delta, FusedAttend),
    "full, then window": (FusedAttend, window),
    "full, then delta": (FusedAttend, delta),
    "gated linear": (partial(delta, gated=True, correct=False),) * 2,
}


@cache
def tokenizer() -> BPETokenizer:
    """Byte pairs, counted in the first plays."""
    return BPETokenizer.train(shakespeare("train")[:200_000], VOCAB)


@cache
def texts() -> dict[str, Tensor]:
    """The text to train on, that by which rates are chosen, and the one that is judged by, as tokens."""
    held_out = torch.tensor(tokenizer().encode(shakespeare("validation")[:120_000]))
    half = len(held_out) // 2
    return {
        "train": torch.tensor(tokenizer().encode(shakespeare("train")[:1_000_000])),
        "choose": held_out[:half],
        "judge": held_out[half:],
    }


def exam(part: str) -> Tensor:
    """Rows to be judged by: half of them as the text stands, half told twice."""
    return next(iter(ToldTwice(texts()[part], passage=PASSAGE, batch=2 * EXAM, steps=1, seed=100)))


@torch.no_grad()
def judged(model: nn.Module, rows: Tensor) -> dict[str, Any]:
    """Bits per token: by place in running text, over all of it, and when a passage is told again."""
    select(model, True)
    logits = model(rows[:, :-1]).log_softmax(dim=-1)
    bits = -logits.gather(-1, rows[:, 1:, None])[..., 0] / torch.tensor(2.0).log()
    plain, twice = bits[: len(bits) // 2], bits[len(bits) // 2 :]
    again = twice[:, PASSAGE - 1 :][:, AGAIN[0] - 1 : AGAIN[1]].mean().item()
    return {
        "by place": [plain[:, first - 1 : last].mean().item() for first, last in BUCKETS],
        "mean": plain.mean().item(),
        "again": again,
    }


def trained(name: str, rate: float, seed: int, steps: int, *, twice: bool = True) -> nn.Module:
    """A model, trained; on running text alone if not `twice`, with as many rows a step."""
    seed_everything(seed)
    model = small_language_model(VOCAB, MODELS[name], d_model=WIDTH)
    batches: Any = ToldTwice(
        texts()["train"], passage=PASSAGE, batch=BATCH if twice else 2 * BATCH, steps=steps, seed=seed
    )
    batches = batches if twice else [rows[:BATCH] for rows in batches]
    fit(model, SparseLater(steps // 2), batches, lr=rate, optimizer="muon", warmup=10)
    return model


def alone(name: str, rate: float, seed: int) -> dict[str, Any]:
    """One model that no passage was told twice in training, judged."""
    return rounded(judged(trained(name, rate, seed, STEPS, twice=False), exam("judge")))


def closer(rate: float, seed: int) -> dict[str, Any]:
    """A model of full attention: what the context is worth to it, and where its weight lies."""
    model = trained("full", rate, seed, STEPS)
    rows = exam("judge")
    found: dict[str, Any] = {"after": after(model, rows[:EXAM])}
    layers = [block.self_attention for block in model.transformer.blocks]  # type: ignore[union-attr]
    for name, rule in {"own": exact, "random": at_random}.items():
        for layer in layers:
            layer.backend = Selected(TOP, rule)
        bits = judged(model, rows)
        found[name] = {"again": bits["again"]}
        if name == "own":  # of each layer's heads, the weight on the head's own best keys, told again
            own = [layer.backend.own[EXAM:, :, PASSAGE + AGAIN[0] :] for layer in layers]
            found[name]["kept again"] = [one.mean(dim=(0, 2)).tolist() for one in own]
    return rounded(found)


@torch.no_grad()
def after(model: nn.Module, rows: Tensor, few: int = 8) -> dict[str, float]:
    """Bits of the same tokens, `few` at a time, after nothing, after another row's text and after their own.

    In all three a token is predicted from at least one token of its own row, and at most `few`; what differs
    is the text before these.
    """

    def bits(rows: Tensor) -> Tensor:
        logits = model(rows[:, :-1]).log_softmax(dim=-1)
        return -logits.gather(-1, rows[:, 1:, None])[..., 0] / torch.tensor(2.0).log()

    found: dict[str, list[Tensor]] = {"nothing": [], "another": [], "own": []}
    whole, other = bits(rows), rows.roll(1, 0)
    for start in range(PASSAGE, 2 * PASSAGE, few):
        found["nothing"].append(bits(rows[:, start : start + few + 1]).mean())
        mixed = torch.cat([other[:, :start], rows[:, start : start + few + 1]], dim=1)
        found["another"].append(bits(mixed)[:, start:].mean())
        found["own"].append(whole[:, start : start + few].mean())
    return {name: torch.stack(each).mean().item() for name, each in found.items()}


def pick(name: str, rate: float) -> dict[str, Any]:
    """What a rate is chosen by."""
    found = judged(trained(name, rate, PICKER, PICKING), exam("choose"))
    return rounded({"chosen_by": (found["mean"] + found["again"]) / 2})


def run(name: str, rate: float, seed: int) -> dict[str, Any]:
    """One model, judged; for full attention also what is kept by a choice of keys."""
    model = trained(name, rate, seed, STEPS)
    found = judged(model, exam("judge")) | {"parameters": count_parameters(model)}
    return rounded(found | ({"chosen": chosen(model, seed)} if name == "full" else {}))


def chosen(model: nn.Module, seed: int) -> dict[str, Any]:
    """Of a finished model of full attention: the weight of the keys of each rule, and the bits with them."""
    layers = [block.self_attention for block in model.transformer.blocks]  # type: ignore[union-attr]
    untrained = [Indexer(WIDTH) for _ in layers]
    learned = indexers(model, seed)
    rules: dict[str, list[Callable[..., Tensor]]] = {
        "exact": [exact, exact],
        "learned": [by_indexer(one) for one in learned],
        "untrained": [by_indexer(one) for one in untrained],
        "recent": [recent, recent],
    }
    found = {}
    for name, pair in rules.items():
        for layer, rule in zip(layers, pair, strict=True):
            layer.backend = Selected(TOP, rule)
        bits = judged(model, exam("judge"))
        kept = [
            layer.backend.kept for layer in layers
        ]  # (B, N) each; of late queries in running text, and again
        found[name] = {
            "kept": [one[:EXAM, PASSAGE:].mean().item() for one in kept],
            "kept again": [one[EXAM:, PASSAGE + AGAIN[0] :].mean().item() for one in kept],
            "mean": bits["mean"],
            "again": bits["again"],
        }
    return found


def indexers(model: nn.Module, seed: int, steps: int = 60) -> list[Indexer]:
    """Trains an indexer for each layer of a finished model, whose own weights stay."""
    layers = [block.self_attention for block in model.transformer.blocks]  # type: ignore[union-attr]
    backends = [IndexedAttend(WIDTH, TOP) for _ in layers]
    for layer, backend in zip(layers, backends, strict=True):
        layer.backend = backend
    select(model, False)
    model.requires_grad_(False)
    for backend in backends:
        backend.requires_grad_(True)
    optimizer = torch.optim.AdamW([p for b in backends for p in b.parameters()], lr=1e-2)
    for batch in ToldTwice(texts()["train"], passage=PASSAGE, batch=BATCH, steps=steps, seed=50 + seed):
        model(batch[:, :-1])
        loss = torch.stack([backend.loss for backend in backends if backend.loss is not None]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [backend.indexer for backend in backends]


def main() -> None:
    """Makes what is not there yet, and records all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--done", action="store_true", help="record what is there, and run nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, Any] = {"steps": STEPS, "batch": BATCH, "rates": list(RATES), "models": {}}
    for name in MODELS:
        keys = [("pick", name, rate) for rate in RATES]
        if options.done and not all(RUNS.done(*key) for key in keys):
            continue
        sweep = {key[-1]: RUNS.keep(*key, make=partial(pick, *key[1:]))["chosen_by"] for key in keys}
        best = min(RATES, key=lambda rate: sweep[rate])
        if options.done and not all(RUNS.done(name, best, seed) for seed in SEEDS):
            continue
        results["models"][name] = {
            "rate": best,
            "chosen_by": {str(rate): bits for rate, bits in sweep.items()},
            "seeds": [RUNS.keep(name, best, seed, make=partial(run, name, best, seed)) for seed in SEEDS],
        }
    rates = {name: found["rate"] for name, found in results["models"].items()}
    results["running text alone"] = {
        name: [
            RUNS.keep("alone", name, rates[name], seed, make=partial(alone, name, rates[name], seed))
            for seed in SEEDS
        ]
        for name in ALONE
        if name in rates
    }
    results["full, closer"] = [
        RUNS.keep("closer", rates["full"], seed, make=partial(closer, rates["full"], seed)) for seed in SEEDS
    ]
    record("long_language", results, seeds=list(SEEDS), cpu_seconds=sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
