"""Which decoders of attention alone continue a passage that comes again, and which of their heads do it.

On 32 random tokens of 64 and a passage of 16 of them again, for 600 steps and three seeds each: two layers;
one layer; one layer with as many heads and a few more parameters than two; one layer whose tokens are told
the one before; one layer, where the passage always begins at the same place. Along the way the loss on the
passage and the scores of each head; afterwards, for two layers, ablations, paths and attributions. Then two
layers and one on the plays of Chapter 8, in characters and in pieces, tested on random tokens that repeat.

Controls: both single layers for 3,000 steps at a smaller learning rate; two layers on passages with the
optimiser of the plays. And two layers once more, to read their circuit from the weights.

`python induction.py` runs what is neither recorded nor kept in `_build/induction/`, and adds it to
the record; with `--again` it runs all, about twenty minutes of one core.
"""

import argparse
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import product
from statistics import fmean
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from tformer_book.inside.attribution import logit_attribution
from tformer_book.inside.circuits import induction_scores, patch_path, repeated_tokens
from tformer_book.inside.data.passages import (
    overlapping_pairs,
    passage_batches,
    passage_loss,
    repeated_passage,
)
from tformer_book.inside.models.attention_only import TokenBefore, attention_only
from tformer_book.kit.data.text import shakespeare
from tformer_book.kit.records import record as write_record
from tformer_book.kit.records import recorded
from tformer_book.kit.runs import Runs, rounded
from tformer_lib import GPT, TransformerConfig
from tformer_lib.analysis import ablation, attention_weights, mask_heads, patch, record
from tformer_lib.core.positions import Rotary
from tformer_lib.data.windows import RandomWindows, consecutive_windows
from tformer_lib.models.language import language_loss
from tformer_lib.tokenizers import BPETokenizer, CharTokenizer
from tformer_lib.training import count_parameters, fit, seed_everything

SEEDS, VOCAB, BATCH, STEPS, LR = (0, 1, 2), 64, 64, 600, 1e-2
CHOICES: dict[str, Any] = {"norm": "rms", "bias": False}
TWO = TransformerConfig(d_model=64, n_heads=4, n_blocks=2, **CHOICES)
ONE = TransformerConfig(d_model=64, n_heads=4, n_blocks=1, **CHOICES)
WIDE = TransformerConfig(d_model=96, n_heads=8, n_blocks=1, **CHOICES)
SETTINGS: dict[str, tuple[TransformerConfig, bool, int | None]] = {  # sizes, told the one before, start
    "two layers": (TWO, False, None),
    "one layer": (ONE, False, None),
    "one wide layer": (WIDE, False, None),
    "one layer, told": (ONE, True, None),
    "one layer, fixed": (ONE, False, 8),
}
FIRST, PERIOD = 32, 24  # tokens before the passage; the period on which heads are scored
PLACES = (5, 12)  # of the two tokens that are exchanged
TEXT_STEPS, LENGTH, PIECES = 800, 128, 512
LONG_STEPS, LONG_LR = 3000, 3e-3  # of both single layers, once more
DISTANCES = range(15, 32)  # from a token of the passage back to what followed it before
RUNS = Runs("induction")


def build(config: TransformerConfig, told: bool, vocab: int = VOCAB) -> GPT:
    """A decoder without MLPs, rotary positions, and a head of its own."""
    rotary = Rotary(config.d_model // config.n_heads)
    before = TokenBefore(config.d_model) if told else None
    return attention_only(config, vocab, rotary=rotary, positions=before, tied=False)


@torch.no_grad()
def measure(model: GPT, tests: Tensor, repeats: Tensor) -> dict[str, Any]:
    """The loss on the passage and the scores of all heads."""
    scores = induction_scores(model, repeats, PERIOD)
    return {
        "loss": passage_loss(model, tests).item(),
        "prefix": scores.prefix.flatten().tolist(),
        "previous": scores.previous.flatten().tolist(),
        "copying": scores.copying.flatten().tolist(),
    }


def watched(batches: Iterable, found: list, look: Any) -> Iterator:
    """The batches; before some of them the model is measured."""
    for step, batch in enumerate(batches):
        if step % 10 == 0 and (step <= 400 or step % 100 == 0):
            found.append({"step": step, **look()})
        yield batch


def passages(start: int | None) -> Tensor:
    """What every model is tested on."""
    generator = torch.Generator().manual_seed(12345)
    return repeated_passage(VOCAB, 256, start=start, generator=generator)


def scored_on(vocab: int, period: int = PERIOD) -> Tensor:
    """Random tokens that repeat, the same for every model."""
    return repeated_tokens(vocab, 64, period, generator=torch.Generator().manual_seed(54321))


def run(name: str, seed: int) -> dict[str, Any]:
    """One model, watched while it trains, and taken apart afterwards if it has two layers."""
    config, told, start = SETTINGS[name]
    seed_everything(seed)
    model = build(config, told)
    tests, repeats = passages(start), scored_on(VOCAB)
    along: list[dict[str, Any]] = []
    batches = passage_batches(STEPS, BATCH, VOCAB, seed=seed, start=start)
    look = partial(measure, model, tests, repeats)
    fit(
        model,
        passage_loss,
        watched(batches, along, look),
        steps=STEPS,
        lr=LR,
        warmup=20,
        betas=(0.9, 0.98),
    )
    along.append({"step": STEPS, **look()})
    result = {"parameters": count_parameters(model), "along": along, "loss": along[-1]["loss"]}
    result["right"] = accuracy(model, tests)
    if config.n_blocks == 2:
        result |= dissect(model, tests)
    return rounded(result, 3)


def long_run(name: str, seed: int) -> dict[str, Any]:
    """A single layer for five times the steps, at a smaller learning rate."""
    config, told, start = SETTINGS[name]
    seed_everything(seed)
    model = build(config, told)
    batches = passage_batches(LONG_STEPS, BATCH, VOCAB, seed=seed, start=start)
    fit(model, passage_loss, batches, steps=LONG_STEPS, lr=LONG_LR, warmup=20, betas=(0.9, 0.98))
    with torch.no_grad():
        return rounded({"loss": passage_loss(model, passages(start)).item()}, 3)


def muon_run(width: int, seed: int) -> dict[str, Any]:
    """Two layers on passages, trained as the models of plays are."""
    seed_everything(seed)
    model = build(TransformerConfig(d_model=width, n_heads=4, n_blocks=2, **CHOICES), False)
    batches = passage_batches(STEPS, BATCH, VOCAB, seed=seed)
    fit(model, passage_loss, batches, steps=STEPS, lr=LR, optimizer="muon")
    with torch.no_grad():
        return rounded({"loss": passage_loss(model, passages(None)).item()}, 3)


def weights_run(seed: int) -> dict[str, Any]:
    """Two layers again, trained as in `run`, read from their weights; and the same before any training."""
    seed_everything(seed)
    model = build(TWO, False)
    tests = passages(None)
    before = read_weights(model, tests)
    batches = passage_batches(STEPS, BATCH, VOCAB, seed=seed)
    fit(model, passage_loss, batches, steps=STEPS, lr=LR, warmup=20, betas=(0.9, 0.98))
    return rounded(read_weights(model, tests) | {"untrained": before}, 3)


@torch.no_grad()
def read_weights(model: GPT, tests: Tensor) -> dict[str, Any]:
    """Whether the second layer copies and matches, if its input is made of tokens alone.

    "own" heads of the first layer attend more to their own token than to the one before, the others are
    "back" heads. What a head writes of a token is W_o W_v norm(e), as if it gave all its weight to it. The
    stream of a token is its embedding, or what own heads write of it, or both; as controls the embedding and
    what the other heads write of it, or noise of the size that own heads write, or noise of its own size. A
    note is what back heads write.

    copy: for how many of the tokens U W_o W_v norm(x) is largest at the token itself, by head and for all
    heads together. match: for how many the score of norm(x) with a note is largest for the token's own note,
    means over the distances at which a passage finds its answer, by head. loss: on the passage, where the
    queries, keys and values of the second layer, or all three, read such streams in place of the true one.
    """
    blocks: Any = model.transformer.blocks
    head_layer: Any = model.head
    gains: Any = model.transformer.final_norm.weight
    first, second = blocks
    layer, reader = first.self_attention, second.self_attention
    heads, width = range(layer.n_heads), layer.d_head
    weights = attention_weights(model, (tests,)).mean(dim=0)[0]  # (H, N, N)
    itself = weights.diagonal(dim1=-2, dim2=-1)[:, 1:].mean(dim=-1)
    back = weights.diagonal(offset=-1, dim1=-2, dim2=-1).mean(dim=-1)
    own_heads = [h for h in heads if itself[h] > back[h]]
    back_heads = [h for h in heads if h not in own_heads]
    e = model.embed.weight  # (V, D)
    read = layer.W_v(first.self_attention_norm(e))

    def written(which: list[int]) -> Tensor:  # (V, D)
        parts = [
            read[:, h * width :][:, :width] @ layer.W_o.weight[:, h * width :][:, :width].T for h in which
        ]
        return sum(parts, torch.zeros_like(e))

    noise = torch.randn(e.shape, generator=torch.Generator().manual_seed(31))
    noise = noise / noise.norm(dim=-1, keepdim=True)
    own, notes = written(own_heads), written(back_heads)
    streams = {
        "embedding": e,
        "own": e + own,
        "own alone": own,
        "back": e + notes,
        "noise": e + noise * own.norm(dim=-1, keepdim=True),
        "short noise": e + noise * e.norm(dim=-1, keepdim=True),
    }
    found: dict[str, Any] = {"own heads": len(own_heads), "copy": {}, "match": {}, "loss": {}}
    lengths = {"embedding": e, "own": own, "notes": notes}
    found["length"] = {name: x.norm(dim=-1).mean().item() for name, x in lengths.items()}
    right = torch.arange(len(e))
    head_weight = head_layer.weight * gains  # (V, D)

    def by_head(linear: Any, x: Tensor) -> Tensor:  # (H, V, Dh)
        return linear(x).unflatten(-1, (-1, width)).movedim(-2, 0)

    for name, x in streams.items():
        normed = second.self_attention_norm(x)
        values = by_head(reader.W_v, normed)
        out = torch.stack(
            [values[h] @ (head_weight @ reader.W_o.weight[:, h * width :][:, :width]).T for h in heads]
        )  # (H, V, V): of a token read, the logits
        found["copy"][name] = {
            "heads": [(c.argmax(dim=-1) == right).float().mean().item() for c in out],
            "all": (out.sum(dim=0).argmax(dim=-1) == right).float().mean().item(),
        }
        queries = by_head(reader.W_q, normed)
        keys = by_head(reader.W_k, second.self_attention_norm(notes))
        rows = []
        for distance in DISTANCES:
            turned = reader.rotary(queries[:, :, None], offset=distance)[:, :, 0]
            scores = turned @ keys.mT  # (H, V queries, V notes)
            rows.append([(s.argmax(dim=-1) == right).float().mean().item() for s in scores])
        found["match"][name] = [fmean(column) for column in zip(*rows, strict=True)]

    tokens = tests[:, :-1]
    noted = torch.nn.functional.pad(notes[tokens[:, :-1]], (0, 0, 1, 0))  # of the token before
    streams_at = {name: x[tokens] for name, x in streams.items()} | {
        "own and notes": streams["own"][tokens] + noted,
        "own alone and notes": own[tokens] + noted,
        "embedding and notes": e[tokens] + noted,
    }
    noted_keys = ("own", "embedding and notes", "own and notes", "own alone and notes")
    kinds = {"q": streams, "v": streams, "k": noted_keys}
    for kind, names in kinds.items():
        found["loss"][kind] = {name: told_loss(model, tests, {kind: streams_at[name]}) for name in names}
    found["loss"]["all"] = {
        "own": told_loss(
            model, tests, {"q": streams_at["own"], "k": streams_at["own and notes"], "v": streams_at["own"]}
        ),
        "own alone": told_loss(
            model, tests, {"q": own[tokens], "k": streams_at["own alone and notes"], "v": own[tokens]}
        ),
        "embedding": told_loss(
            model, tests, {"q": e[tokens], "k": streams_at["embedding and notes"], "v": e[tokens]}
        ),
    }
    found["loss"]["true"] = passage_loss(model, tests).item()
    return found


def told_loss(model: GPT, tests: Tensor, told: dict[str, Tensor]) -> float:
    """The loss on the passage, where queries, keys or values of the second layer read these streams."""
    block: Any = model.transformer.blocks[1]

    def instead(kind: str) -> Any:
        value = getattr(block.self_attention, f"W_{kind}")(block.self_attention_norm(told[kind]))
        return lambda _: value

    changes = {f"transformer.blocks.1.self_attention.W_{kind}": instead(kind) for kind in told}
    with patch(model, changes):
        return passage_loss(model, tests).item()


@torch.no_grad()
def accuracy(model: GPT, tests: Tensor) -> float:
    """The share of the passage's tokens, but its first, that are the most probable ones."""
    said = model(tests[:, :-1])[:, FIRST:].argmax(dim=-1)
    return (said == tests[:, FIRST + 1 :]).float().mean().item()


@torch.no_grad()
def dissect(model: GPT, tests: Tensor) -> dict[str, Any]:
    """Loss without each head and each layer, with each path patched, and what gives the logit."""
    heads = range(model.config.n_heads)
    layers = {m: [(m, h) for h in heads] for m in (0, 1)}
    found: dict[str, Any] = {"without": ablation(model, lambda m: passage_loss(m, tests)).flatten().tolist()}
    for m, all_heads in layers.items():
        with mask_heads(model, all_heads):
            found[f"without layer {m}"] = passage_loss(model, tests).item()
    for kept in heads:  # of the second layer one head alone
        with mask_heads(model, [(1, h) for h in heads if h != kept]):
            found.setdefault("alone", []).append(passage_loss(model, tests).item())

    other = repeated_passage(VOCAB, len(tests), generator=torch.Generator().manual_seed(777))
    read, elsewhere = tests[:, :-1], other[:, :-1]

    def patched(senders: list[tuple[int, int]], receivers: list) -> float:
        with ExitStack() as paths:
            for receiver in receivers:
                paths.enter_context(patch_path(model, read, elsewhere, senders, receiver))
            return passage_loss(model, tests).item()

    found["paths"] = {kind: patched(layers[0], [(1, h, kind) for h in heads]) for kind in "qkv"}
    found["paths"]["logits"] = patched(layers[0], ["logits"])
    found["paths by head"] = {
        kind: [patched([(0, h)], [(1, r, kind) for r in heads]) for h in heads] for kind in "qkv"
    }
    weights = attention_weights(model, (tests,)).mean(dim=0)  # (M, H, N, N)
    found["own"] = weights.diagonal(dim1=-2, dim2=-1)[..., 1:].mean(dim=-1).flatten().tolist()
    found["pairs"] = pairs(model)
    parts = logit_attribution(model, tests[:, :-1], tests[:, 1:])
    found["parts"] = {part: value[:, FIRST:].mean().item() for part, value in parts.items()}
    # against the mean logit of all tokens, since a constant for all says nothing
    means = [logit_attribution(model, tests[:, :-1], torch.full_like(tests[:, 1:], v)) for v in range(VOCAB)]
    found["above mean"] = {
        part: found["parts"][part] - sum(one[part][:, FIRST:].mean().item() for one in means) / VOCAB
        for part in parts
    }
    return found


@torch.no_grad()
def pairs(model: GPT) -> dict[str, Any]:
    """Runs that differ in two tokens: which activations and which ways out of the first layer carry that."""
    heads = range(model.config.n_heads)
    generator = torch.Generator().manual_seed(99)
    clean, swapped, after, other = overlapping_pairs(VOCAB, 128, places=PLACES, generator=generator)

    def margin(tokens: Tensor) -> float:
        logits = model(tokens)[:, -1]
        return (logits.gather(1, after[:, None]) - logits.gather(1, other[:, None])).mean().item()

    found: dict[str, Any] = {"clean": margin(clean), "swapped": margin(swapped)}
    width = found["clean"] - found["swapped"]
    names = ["embed", "transformer.blocks.0", "transformer.blocks.1"]
    for name, kept, source in (("denoising", swapped, clean), ("noising", clean, swapped)):
        with record(model, names) as seen:
            model(source)
        found[name] = [
            [(patched_margin(margin, model, kept, at, seen[at], n) - found["swapped"]) / width
             for n in range(clean.shape[1])]
            for at in names
        ]  # fmt: skip
    for kind in "qkv":
        with ExitStack() as paths:
            for r in heads:
                paths.enter_context(patch_path(model, clean, swapped, [(0, h) for h in heads], (1, r, kind)))
            found[kind] = margin(clean)
    with patch_path(model, clean, swapped, [(0, h) for h in heads], "logits"):
        found["logits"] = margin(clean)
    found["k by head"] = []
    for h in heads:
        with ExitStack() as paths:
            for r in heads:
                paths.enter_context(patch_path(model, clean, swapped, (0, h), (1, r, "k")))
            found["k by head"].append(margin(clean))
    return found


def patched_margin(margin: Any, model: GPT, tokens: Tensor, name: str, source: Tensor, place: int) -> float:
    """The margin on `tokens` with one activation at one place taken from another run."""

    def put(activation: Tensor) -> Tensor:
        new = activation.clone()
        new[:, place] = source[:, place]
        return new

    with patch(model, {name: put}):
        return margin(tokens)


def text_ids(kind: str) -> tuple[Tensor, Tensor, int]:
    """A million characters to train on and 60,000 held out, as numbers, and how many tokens there are."""
    train, held_out = shakespeare("train")[:1_000_000], shakespeare("validation")[:60_000]
    if kind == "characters":
        tokenizer: Any = CharTokenizer.from_text(shakespeare("train"))
    else:
        tokenizer = BPETokenizer.train(train[:300_000], PIECES)
    ids = [torch.tensor(tokenizer.encode(text)) for text in (train, held_out)]
    return ids[0], ids[1], tokenizer.vocab_size


def run_text(kind: str, blocks: int, seed: int) -> dict[str, Any]:
    """One model trained on plays, and what it does with random tokens that repeat."""
    ids, held_out, vocab = text_ids(kind)
    used = ids.unique()  # bytes that the text has not are no test
    seed_everything(seed)
    config = TransformerConfig(d_model=96, n_heads=4, n_blocks=blocks, **CHOICES)
    model = build(config, False, vocab)
    repeats = used[scored_on(len(used), 40)]
    windows = consecutive_windows(held_out, LENGTH)[:128]

    @torch.no_grad()
    def look() -> dict[str, Any]:
        scores = induction_scores(model, repeats, 40)
        losses = cross_entropy(model(repeats[:, :-1]).mT, repeats[:, 1:], reduction="none").mean(dim=0)
        return {
            "prefix": scores.prefix.flatten().tolist(),
            "previous": scores.previous.flatten().tolist(),
            "copying": scores.copying.flatten().tolist(),
            "once": losses[:39].mean().item(),
            "again": losses[40:].mean().item(),
        }

    def every_hundred(batches: Iterable, found: list) -> Iterator:
        for step, batch in enumerate(batches):
            if step % 100 == 0:
                found.append({"step": step, **look()})
            yield batch

    along: list = []
    batches = RandomWindows(ids, batch=16, length=LENGTH, steps=TEXT_STEPS, seed=seed)
    fit(model, language_loss, every_hundred(batches, along), steps=TEXT_STEPS, lr=LR, optimizer="muon")
    along.append({"step": TEXT_STEPS, **look()})
    with torch.no_grad():
        nats = language_loss(model, windows).item()
    return rounded(
        {
            "parameters": count_parameters(model),
            "along": along,
            "nats": nats,
            "vocabulary": vocab,
            "used": len(used),
            "once": along[-1]["once"],
            "again": along[-1]["again"],
        },
        3,
    )


def main() -> None:
    """Runs what is missing; records when nothing is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--again", action="store_true", help="run also what the record holds")
    parser.add_argument("--only", nargs="*", help="of these parts: runs, text, long, muon, weights")
    options = parser.parse_args()
    torch.set_num_threads(1)
    texts = list(product(("characters", "pieces"), (2, 1)))
    makers = {  # of each part: its rows, what runs one, what the record keeps of it
        "runs": (SETTINGS, run, thinned),
        "text": ([f"{kind}, {blocks}" for kind, blocks in texts], named_text, thinned_text),
        "long": (("one layer", "one wide layer"), long_run, None),
        "muon": (("64", "96"), lambda width, seed: muon_run(int(width), seed), None),
        "weights": (("two layers",), lambda _, seed: weights_run(seed), None),
    }
    before = recorded("induction")
    seconds = 0.0 if options.again else before["cpu_seconds"]
    results: dict[str, Any] = {"vocab": VOCAB, "steps": STEPS, "batch": BATCH}
    for part, (names, make, thin) in makers.items():
        if part in before["results"] and not options.again:
            results[part] = before["results"][part]
        elif options.only is None or part in options.only:
            found = {
                name: [RUNS.keep(part, name, seed, make=partial(make, name, seed)) for seed in SEEDS]
                for name in names
            }
            results[part] = {name: [thin(r) for r in rows] if thin else rows for name, rows in found.items()}
    if all(part in results for part in makers):
        print(
            write_record(
                "induction", results, seeds=list(SEEDS), cpu_seconds=seconds + sum(RUNS.seconds.values())
            )
        )


def named_text(name: str, seed: int) -> dict[str, Any]:
    """`run_text` by the name that the record has for it."""
    kind, blocks = name.split(", ")
    return run_text(kind, int(blocks), seed)


def thinned(run: dict[str, Any]) -> dict[str, Any]:
    """What the page needs: along the way, columns; of one layer the loss alone."""
    rows = run["along"]
    names = ["step", "loss", "prefix", "previous"] if "pairs" in run else ["step", "loss"]
    kept = {**run, "along": {name: [row[name] for row in rows] for name in names}}
    if "pairs" in run:
        kept["copying"] = rows[-1]["copying"]
        kept["pairs"] = {name: value for name, value in run["pairs"].items() if name != "noising"}
        kept["pairs"]["mirror"] = max(
            abs(a + b - 1)
            for one, other in zip(run["pairs"]["denoising"], run["pairs"]["noising"], strict=True)
            for a, b in zip(one, other, strict=True)
        )
    return rounded(kept, 3)


def thinned_text(run: dict[str, Any]) -> dict[str, Any]:
    """Along the way, the largest prefix score of a head; at the end, all scores for the token before."""
    along = [{"step": row["step"], "prefix": max(row["prefix"])} for row in run["along"]]
    return {**run, "along": along, "previous": run["along"][-1]["previous"]}


if __name__ == "__main__":
    main()
