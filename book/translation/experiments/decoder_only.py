"""Two stacks or one? An encoder-decoder and a decoder alone, of equal size, on one task.

CLDR's phrases from English into German. The encoder-decoder is Chapter 9's: two blocks that read, two that
write, cross-attention between them. The decoder alone has four blocks of the same width, without
cross-attention, whose MLPs are wider so that the number of parameters is the same within 0.2%; it reads the
English phrase, a begin token and the German one as a single sequence, and is trained on the German part. It
is tried with two masks: causal throughout, or with the English part seen in both directions (a prefix mask).

Same pairs in the same order, steps, optimiser and schedule. Each system has the better of two learning rates
by its loss on the validation part (seed 0), and three seeds; the prefix mask has one. A lower rate is tried
as a control, for the other two, with seed 0. Scored greedily on the test part by exact match, in all and by
length, and by BLEU; a paired bootstrap compares seed 0 of each with that of the encoder-decoder.

`python decoder_only.py` runs what has not been run yet and records it; what is finished is kept in
`_build/decoder_only/`. About nine minutes of one core.
"""

import math
import time
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, rounded, summary
from tformer_book.translation.data.translation import TranslationSet, translation_set
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.masks import causal_mask
from tformer_lib.core.positions import SinusoidalPositions
from tformer_lib.core.tokens import TokenEmbedding, cross_entropy
from tformer_lib.core.transformer import Transformer, TransformerConfig
from tformer_lib.data.buckets import padded
from tformer_lib.generation import translate
from tformer_lib.measures.translation import paired_bootstrap, translation_scores
from tformer_lib.models.translator import Translator, translator_loss
from tformer_lib.training import count_parameters, fit, seed_everything

RUNS = Runs("decoder_only")
SYSTEMS = ("encoder-decoder", "decoder, causal", "decoder, prefix")
SEEDS, RATES, LOWER = [0, 1, 2], (1e-2, 2e-2), 5e-3
STEPS, TOKENS, MAX_LEN, WIDTH, HEADS = 500, 500, 48, 96, 4
LENGTHS = (1, 6, 9, 13, 100)  # borders, in source tokens, of the groups


class OneStack(nn.Module):
    """A causal transformer over the source and the target, one after the other.

    Embeddings, their scale, positions and the tied head are `Translator`'s. With `prefix`, tokens of the
    source see the whole source.
    """

    def __init__(self, vocab_size: int, *, prefix: bool):
        super().__init__()
        config = TransformerConfig(d_model=WIDTH, n_heads=HEADS, n_blocks=4, d_hidden=480, activation="relu")
        self.prefix, self.scale = prefix, math.sqrt(WIDTH)
        self.embed = TokenEmbedding(vocab_size, WIDTH, axes="B N")
        nn.init.normal_(self.embed.weight, std=WIDTH**-0.5)
        self.positions = SinusoidalPositions(WIDTH)
        self.stack = Transformer(config, make_backend=FusedAttend)
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, tokens: Tensor, sources: Tensor) -> Tensor:
        """Logits (B, N, vocab) for rows (B, N) whose first `sources` (B,) tokens are the source."""
        n = tokens.shape[1]
        mask = causal_mask(n)[None, None]
        if self.prefix:
            mask = mask | (torch.arange(n) < sources[:, None])[:, None, None, :]
        h = self.stack(self.placed(self.scale * self.embed(tokens), sources), mask=mask)
        return h @ self.embed.weight.T + self.bias

    def placed(self, x: Tensor, sources: Tensor) -> Tensor:
        """Embeddings with their positions, which are counted through both texts."""
        return self.positions(x)


def joined(source: Tensor, target: Tensor, pad: int) -> tuple[Tensor, Tensor]:
    """Each source followed by its target without a gap, padded at the end; and how long the sources are."""
    pairs = zip(source, target, strict=True)
    rows = [torch.cat((x[x != pad], y[y != pad])).tolist() for x, y in pairs]
    return padded(rows, pad), (source != pad).sum(dim=1)


def one_stack_loss(model: OneStack, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean of -log p over the target's tokens after the begin token."""
    tokens, sources = joined(*batch, pad=TranslationSet.pad_id)
    asked = tokens[:, 1:].clone()
    places = torch.arange(asked.shape[1])
    asked[places < sources[:, None]] = TranslationSet.pad_id  # the source and the begin token are given
    logits = model(tokens[:, :-1], sources)
    return cross_entropy(logits.flatten(0, 1), asked.flatten(), ignored=TranslationSet.pad_id)


@torch.no_grad()
def written_tokens(model: OneStack, data: TranslationSet, sources: list[str]) -> list[list[int]]:
    """Greedy translations, all sources of one length at a time; one that never ends has MAX_LEN tokens."""
    rows = [[*data.tokenizer.encode(text), data.eos_id, data.bos_id] for text in sources]
    found: dict[int, list[int]] = {}
    for length in sorted({len(row) for row in rows}):
        numbers = [i for i, row in enumerate(rows) if len(row) == length]
        tokens = torch.tensor([rows[i] for i in numbers])
        for _ in range(MAX_LEN):
            best = model(tokens, torch.full((len(tokens),), length - 1))[:, -1].argmax(dim=-1)
            tokens = torch.cat((tokens, best[:, None]), dim=1)
            found |= dict(zip(numbers, tokens[:, length:].tolist(), strict=True))
            going = (best != data.eos_id).nonzero().flatten()
            if not len(going):
                break
            tokens, numbers = tokens[going], [numbers[i] for i in going.tolist()]
    return [found[i] for i in range(len(rows))]


def written(model: OneStack, data: TranslationSet, sources: list[str]) -> list[str]:
    """The same as texts."""
    return [data.decode(tokens) for tokens in written_tokens(model, data, sources)]


def run(system: str, data: TranslationSet, lr: float, seed: int) -> dict[str, Any]:
    """Train; the loss on the validation part, and the scores of the test part."""
    begin = time.process_time()
    seed_everything(seed)
    batches = data.batches(STEPS, tokens=TOKENS, seed=seed)
    settings: dict[str, Any] = {"steps": STEPS, "lr": lr, "warmup": STEPS // 10, "optimizer": "muon"}
    model: Translator | OneStack
    if system == "encoder-decoder":
        config = TransformerConfig(d_model=WIDTH, n_heads=HEADS, n_blocks=2, activation="relu")
        model = Translator(config, data.vocab_size, make_backend=FusedAttend)
        fit(model, translator_loss, batches, **settings)
        write, loss = partial(translate, model, data, max_len=MAX_LEN), translator_loss
    else:
        model = OneStack(data.vocab_size, prefix=system.endswith("prefix"))
        fit(model, one_stack_loss, batches, **settings)
        write, loss = partial(written, model, data), one_stack_loss
    result: dict[str, Any] = {
        "seconds": round(time.process_time() - begin, 1),
        "parameters": count_parameters(model),
    }
    with torch.no_grad():
        result["validation"] = loss(model, data.encode(data.validation)).item()
    sources, references = zip(*data.test, strict=True)
    result["translations"] = write(list(sources))
    scores = translation_scores(result["translations"], references)
    result |= {name: scores[name] for name in ("exact", "bleu", "chrf")}
    return result


def by_length(translations: list[str], data: TranslationSet) -> list[float]:
    """Exact match of the test part in groups of like source length."""
    lengths = [len(data.tokenizer.encode(source)) for source, _ in data.test]
    right = [found == pair[1] for found, pair in zip(translations, data.test, strict=True)]
    groups = [
        [r for r, n in zip(right, lengths, strict=True) if low <= n < high] for low, high in pairwise(LENGTHS)
    ]
    return [sum(group) / len(group) for group in groups]


def over(scores: list[float]) -> dict[str, Any]:
    """Mean and each seed's score; a deviation needs two."""
    return summary(scores) if len(scores) > 1 else rounded({"mean": scores[0], "scores": scores})


def main() -> None:
    """Run what is missing and record."""
    torch.set_num_threads(1)
    data = translation_set("phrases", "de")
    references = [german for _, german in data.test]
    results: dict[str, Any] = {"steps": STEPS, "batch tokens": TOKENS, "systems": {}}
    first: dict[str, list[str]] = {}
    for system in SYSTEMS:
        tuning = {}
        for lr in RATES:
            made = RUNS.keep(system, lr, 0, make=partial(run, system, data, lr, 0))
            tuning[lr] = round(made["validation"], 4)
        lr = min(tuning, key=tuning.__getitem__)
        seeds = SEEDS[:1] if system.endswith("prefix") else SEEDS
        runs = [RUNS.keep(system, lr, seed, make=partial(run, system, data, lr, seed)) for seed in seeds]
        first[system] = runs[0]["translations"]
        table: dict[str, Any] = {"parameters": runs[0]["parameters"], "lr": lr, "tuning": tuning}
        for name in ("exact", "bleu", "chrf"):
            table[name] = over([made[name] for made in runs])
        table["seconds"] = over([made["seconds"] for made in runs])
        table["exact by length"] = [rounded(by_length(made["translations"], data)) for made in runs]
        results["systems"][system] = table
    results["lower rate"] = {"lr": LOWER}
    for system in SYSTEMS[:2]:
        made = RUNS.keep(system, LOWER, 0, make=partial(run, system, data, LOWER, 0))
        results["lower rate"][system] = rounded(
            {name: made[name] for name in ("validation", "exact", "bleu")}
        )
    results["bootstrap"] = {}
    for system in SYSTEMS[1:]:
        drawn = paired_bootstrap(first[system], first[SYSTEMS[0]], references)
        results["bootstrap"][system] = rounded({"mean": drawn.mean().item(), "sd": drawn.std().item()}, 3)
    print(record("decoder_only", results, seeds=SEEDS, cpu_seconds=sum(RUNS.seconds.values())))


if __name__ == "__main__":
    main()
