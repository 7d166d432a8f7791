"""Three systems on one task: a recurrent encoder-decoder, the same with attention, and a transformer.

CLDR's phrases from English into German; about the same number of parameters and about the same processor time
for each, three seeds, and a learning rate that is the best of four on the validation part (seed 0). Scored
on the whole test part by exact match, BLEU and chrF, in all and by length. The transformers are
trained again with label smoothing, and measured token by token under teacher forcing. The first of each kind
is decoded with 1 to 8 beams and four length penalties, on the validation part. One more learns real interface
strings into French, of which twelve translations, drawn at random, are kept; and so is what the recurrent
model with attention looks at while it writes one date.

`python translation.py` runs what has not been run yet and records it; what is finished is kept in
`_build/translation/`. About forty minutes of one core.
"""

import random
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from statistics import mean
from typing import Any

import torch

from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, rounded, summary
from tformer_book.translation.data.translation import TranslationSet, translation_set
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.generation import translate
from tformer_lib.measures.translation import translation_scores
from tformer_lib.models.recurrent import AdditiveAttention, EncoderDecoder, FinalState, encoder_decoder_loss
from tformer_lib.models.translator import Translator, translator_loss
from tformer_lib.training import count_parameters, fit, load_checkpoint, save_checkpoint, seed_everything

RUNS = Runs("translation")
SEEDS = [0, 1, 2]
TOKENS, MAX_LEN, DROPOUT = 1000, 48, 0.1
SYSTEMS = {  # name: steps, learning rates to choose from, optimiser
    "recurrent": (1700, (3e-3, 6e-3, 1.2e-2, 2.4e-2), "adamw"),
    "attention": (1300, (3e-3, 6e-3, 1.2e-2, 2.4e-2), "adamw"),
    "transformer": (850, (2.5e-3, 5e-3, 1e-2, 2e-2), "muon"),
}
Model = EncoderDecoder | Translator
LENGTHS = (1, 6, 9, 13, 100)  # borders, in source tokens, of the groups
BEAMS, PENALTIES = (1, 2, 4, 8), (0.0, 0.5, 1.0, 1.5)


def build(system: str, vocab: int) -> Model:
    """An untrained model of the system."""
    if system == "transformer":
        config = TransformerConfig(d_model=96, n_heads=4, n_blocks=2, dropout=DROPOUT, activation="relu")
        return Translator(config, vocab, make_backend=lambda: FusedAttend(DROPOUT))
    context = AdditiveAttention(64, 128, 64) if system == "attention" else FinalState()
    return EncoderDecoder(vocab, vocab, 64, 64, context=context)


def trained(
    system: str, data: TranslationSet, lr: float, seed: int, steps: int, smoothing: float = 0.0
) -> Model:
    """A model after training."""
    seed_everything(seed)
    model = build(system, data.vocab_size)
    loss: Callable[..., Any] = encoder_decoder_loss
    if system == "transformer":
        loss = partial(translator_loss, label_smoothing=smoothing)
    batches = data.batches(steps, tokens=TOKENS, seed=seed)
    fit(model, loss, batches, steps=steps, lr=lr, warmup=steps // 10, optimizer=SYSTEMS[system][2])
    return model.eval()


def scored(model: Model, data: TranslationSet, part: str, **search: Any) -> dict[str, Any]:
    """The scores of a part, and its translations."""
    sources, references = zip(*data.part(part), strict=True)
    found = translate(model, data, sources, max_len=MAX_LEN, **search)
    return {**translation_scores(found, references), "translations": found}


def by_length(translations: list[str], data: TranslationSet) -> list[dict[str, Any]]:
    """Exact match and BLEU of the test part, by the number of source tokens."""
    lengths = [len(data.tokenizer.encode(source)) for source, _ in data.test]
    groups = []
    for low, high in pairwise(LENGTHS):
        rows = [i for i, n in enumerate(lengths) if low <= n < high]
        scores = translation_scores([translations[i] for i in rows], [data.test[i][1] for i in rows])
        groups.append(
            {"from": low, "below": high, "pairs": len(rows)} | {k: scores[k] for k in ("exact", "bleu")}
        )
    return groups


def run(
    system: str, data: TranslationSet, lr: float, seed: int, *, part: str = "test", smoothing: float = 0.0
) -> dict[str, Any]:
    """Train and score; the weights are kept."""
    begin = time.process_time()
    model = trained(system, data, lr, seed, SYSTEMS[system][0], smoothing)
    seconds = round(time.process_time() - begin, 1)
    result: dict[str, Any] = {"seconds": seconds, "parameters": count_parameters(model)}
    result |= scored(model, data, part)
    if part == "test":
        save_checkpoint(RUNS.checkpoint(system, smoothing, seed), model)
        result["by length"] = by_length(result["translations"], data)
    return result


def loaded(system: str, data: TranslationSet, smoothing: float, seed: int) -> Model:
    """A model that `run` has trained and kept."""
    model = build(system, data.vocab_size)
    load_checkpoint(RUNS.checkpoint(system, smoothing, seed), model)
    return model.eval()


@torch.no_grad()
def forced(data: TranslationSet, smoothing: float, seed: int) -> dict[str, Any]:
    """Under teacher forcing on the test part: nats a token, the share right, the mean top probability."""
    source, target = data.encode(data.test)
    model, asked = loaded("transformer", data, smoothing, seed), target[:, 1:]
    log_p = model(source, target[:, :-1]).log_softmax(dim=-1)[asked != data.pad_id]
    top, guess = log_p.max(dim=-1)
    asked = asked[asked != data.pad_id]
    nats = -log_p.gather(1, asked[:, None]).mean().item()
    return {"nats": nats, "right": (guess == asked).float().mean().item(), "sure": top.exp().mean().item()}


@torch.no_grad()
def aligned(data: TranslationSet) -> dict[str, Any]:
    """What the recurrent model with attention, seed 0, reads while it writes one date of the test part."""
    pair = next(pair for pair in data.test if "March 14" in pair[0])
    source, target = data.encode([pair])
    weights = loaded("attention", data, 0.0, 0)(source, target[:, :-1])[1][0]
    return {"pair": pair, "weights": rounded(weights.tolist(), 3)}


def decoded(data: TranslationSet, smoothing: float) -> dict[str, Any]:
    """BLEU and lengths of the transformer of seed 0 by beams and length penalty, on the validation part."""
    model = loaded("transformer", data, smoothing, 0)
    reference = mean(len(data.tokenizer.encode(target)) for _, target in data.validation)
    table: dict[str, Any] = {"reference length": reference}
    for beams in BEAMS:
        for penalty in PENALTIES:
            result = scored(model, data, "validation", num_beams=beams, length_penalty=penalty)
            found = result.pop("translations")
            result["length"] = mean(len(data.tokenizer.encode(text)) for text in found)
            table[f"{beams}, {penalty}"] = {k: v for k, v in result.items() if "signature" not in k}
    return table


def interface(lr: float) -> dict[str, Any]:
    """The transformer on interface strings, English to French."""
    data = translation_set("interface", "fr")
    begin = time.process_time()
    model = trained("transformer", data, lr, 0, SYSTEMS["transformer"][0], 0.1)
    seconds = round(time.process_time() - begin, 1)
    result = scored(model, data, "test")
    drawn = random.Random(0).sample(range(len(data.test)), 12)
    found = result.pop("translations")
    result["examples"] = [[*data.test[i], found[i]] for i in drawn]
    return {"seconds": seconds, "pairs": len(data.train), **result}


def over_seeds(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Each measure over the seeds."""
    return {
        name: summary(rounded([run[name] for run in runs])) for name in ("exact", "bleu", "chrf", "seconds")
    }


def main() -> None:
    """Run what is missing and record."""
    torch.set_num_threads(1)
    data = translation_set("phrases", "de")
    results: dict[str, Any] = {"pairs": len(data.train), "vocab": data.vocab_size, "systems": {}}
    chosen = {}
    for system, (steps, lrs, optimizer) in SYSTEMS.items():
        tuning = {}
        for lr in lrs:
            make = partial(run, system, data, lr, 0, part="validation")
            tuning[lr] = RUNS.keep("tuning", system, lr, make=make)["bleu"]
        chosen[system] = lr = max(tuning, key=tuning.__getitem__)
        runs = [RUNS.keep(system, lr, seed, make=partial(run, system, data, lr, seed)) for seed in SEEDS]
        table: dict[str, Any] = {"parameters": runs[0]["parameters"], "steps": steps, "optimizer": optimizer}
        table |= {"lr": lr, "tuning": rounded(tuning, 2)}
        table |= over_seeds(runs)
        table["by length"] = [result["by length"] for result in runs]
        results["systems"][system] = table
        results["signatures"] = [runs[0]["bleu signature"], runs[0]["chrf signature"]]
    lr = chosen["transformer"]
    smoothed = []
    for seed in SEEDS:
        make = partial(run, "transformer", data, lr, seed, smoothing=0.1)
        smoothed.append(RUNS.keep("smoothed", lr, seed, make=make))
    results["smoothed"] = over_seeds(smoothed)
    results["forced"] = {
        str(s): [RUNS.keep("forced", s, seed, make=partial(forced, data, s, seed)) for seed in SEEDS]
        for s in (0.0, 0.1)
    }
    results["decoding"] = {
        str(s): RUNS.keep("decoding", s, make=partial(decoded, data, s)) for s in (0.0, 0.1)
    }
    results["interface"] = RUNS.keep("interface", make=partial(interface, lr))
    results["alignment"] = RUNS.keep("alignment", make=partial(aligned, data))
    print(record("translation", results, seeds=SEEDS, cpu_seconds=sum(RUNS.seconds.values())))


if __name__ == "__main__":
    main()
