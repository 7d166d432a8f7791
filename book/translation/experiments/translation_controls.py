"""Controls for Chapter 9: what its comparisons owe to chance, to a careless split, and to what else differs.

All on CLDR's phrases from English into German, three seeds unless a line says otherwise.

`page`: the page's own transformer and training. Four beams without a penalty against greedy search, with a
paired bootstrap of the difference for each seed.

`careless`: the same training after a random split of the same pairs; scores in all, and for test phrases with
and without a near copy in training.

`stacks`: the decoder alone of `decoder_only.py` with one thing changed at a time: positions that start again
at the target; a prefix mask (seeds 1 and 2: seed 0 stands in that record). At the rate that was better for
all three systems there.

`smoothed`: the recorded transformer of `translation.py` with label smoothing, trained again (seed 0): eight
beams with three penalties against greedy search on the validation part, each with a paired bootstrap.

`optimiser`: the recorded transformer of `translation.py` with what its recurrent networks have: AdamW and no
dropout. The rate is the best of five on the validation part, after a third of the steps (seed 0).

`pairs`: the bad score on interface strings may come from their number or their language. The same transformer
and training, label smoothing included, on phrases into French, cut to as many pairs as there are strings.

`python translation_controls.py` runs the parts that the record does not hold and records all; with
`--again` it runs every part. What is finished is kept in `_build/translation_controls/`. With names of parts
behind it, it runs these and records nothing. About half an hour of one core in all.
"""

import argparse
import random
import time
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tformer_book.kit.records import record, recorded
from tformer_book.kit.runs import Runs, rounded, summary
from tformer_book.translation.data.translation import TranslationSet, nearest_similarity, translation_set
from tformer_book.translation.experiments import decoder_only, translation
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import sinusoidal
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.generation import beam_search, greedy_search, translate
from tformer_lib.measures.translation import paired_bootstrap, translation_scores
from tformer_lib.models.translator import Translator, translator_loss
from tformer_lib.training import count_parameters, fit, seed_everything

RUNS = Runs("translation_controls")
SEEDS = [0, 1, 2]
STEPS, TOKENS, RATE = 650, 500, 1e-2  # the page's
SEARCHES = ((8, 0.0), (8, 1.0), (8, 1.5))  # beams and penalty
MEASURES = ("exact", "bleu", "chrf")
ADAMW_RATES = (6e-4, 1.25e-3, 2.5e-3, 5e-3, 1e-2)  # to choose from


def differences(one: list[str], other: list[str], references: list[str]) -> dict[str, float]:
    """BLEU of one minus that of the other, and what a thousand drawn tests make of it."""
    here, there = (translation_scores(found, references)["bleu"] for found in (one, other))
    drawn = paired_bootstrap(one, other, references)
    return {
        "gain": float(here) - float(there),
        "sd": drawn.std().item(),
        "above zero": (drawn > 0).float().mean().item(),
    }


def measures(found: list[str], references: list[str]) -> dict[str, float]:
    """Exact match, BLEU and chrF."""
    scores = translation_scores(found, references)
    return {name: float(scores[name]) for name in MEASURES}


def on_the_page(data: TranslationSet, seed: int) -> Translator:
    """The page's transformer after the page's training; seed 0 is the page's own."""
    seed_everything(seed)
    config = TransformerConfig(d_model=96, n_heads=4, n_blocks=2, activation="relu")
    model = Translator(config, data.vocab_size, make_backend=FusedAttend)
    batches = data.batches(STEPS, tokens=TOKENS, seed=seed)
    fit(model, translator_loss, batches, steps=STEPS, lr=RATE, warmup=STEPS // 10, optimizer="muon")
    return model


def page(data: TranslationSet, seed: int) -> dict[str, Any]:
    """Greedy search and four beams."""
    model = on_the_page(data, seed)
    english, german = map(list, zip(*data.test, strict=True))
    found = translate(model, data, english)
    source, _ = data.encode(data.test)
    narrow = greedy_search(model, source, translation.MAX_LEN)
    beams = beam_search(model, source, translation.MAX_LEN, num_beams=4, length_penalty=0.0)
    wide = [best for (best,) in beams]
    by_beams = [data.decode(one.tokens) for one in wide]
    pairs = list(zip(narrow, wide, strict=True))
    differ = [i for i, (a, b) in enumerate(pairs) if b.log_p - a.log_p > 1e-4]
    return {
        **measures(found, german),
        "beams": differences(by_beams, found, german),
        "changed": len(differ),
        "shorter": sum(len(wide[i].tokens) < len(narrow[i].tokens) for i in differ),
        "right by beams": sum(by_beams[i] == german[i] for i in differ),
        "right greedily": sum(found[i] == german[i] for i in differ),
    }


def carelessly_split(data: TranslationSet) -> TranslationSet:
    """The same pairs, divided at random into parts of the same sizes."""
    pairs = data.train + data.validation + data.test
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0)).tolist()
    pairs, held = [pairs[i] for i in order], len(data.test)
    return TranslationSet(pairs[2 * held :], pairs[held : 2 * held], pairs[:held])


def careless(data: TranslationSet, seed: int) -> dict[str, Any]:
    """The page's training on the careless split, scored apart where a near copy was trained on."""
    model = on_the_page(data, seed)
    english, german = map(list, zip(*data.test, strict=True))
    found = translate(model, data, english)
    near = nearest_similarity(([one for one, _ in data.train], english)) >= 0.8
    right = torch.tensor([a == b for a, b in zip(found, german, strict=True)]).float()
    return {
        **measures(found, german),
        "near copies": int(near.sum()),
        "exact near": right[near].mean().item(),
        "exact far": right[~near].mean().item(),
    }


class Restarting(decoder_only.OneStack):
    """The decoder alone, with positions that start again at the target's begin token."""

    def placed(self, x: Tensor, sources: Tensor) -> Tensor:
        """Embeddings with their positions, which are counted in each text from 0."""
        places = torch.arange(x.shape[1])
        later = places >= sources[:, None]  # (B, N): the target
        places = torch.where(later, places - sources[:, None], places)
        return x + sinusoidal(x.shape[1], decoder_only.WIDTH)[places]


def one_stack(kind: str, data: TranslationSet, seed: int) -> dict[str, Any]:
    """Train a decoder alone as `decoder_only.run` does, and count the translations that never end."""
    begin = time.process_time()
    seed_everything(seed)
    steps = decoder_only.STEPS
    batches = data.batches(steps, tokens=decoder_only.TOKENS, seed=seed)
    system = Restarting if kind == "restarting" else decoder_only.OneStack
    model = system(data.vocab_size, prefix=kind == "prefix")
    loss = decoder_only.one_stack_loss
    fit(model, loss, batches, steps=steps, lr=RATE, warmup=steps // 10, optimizer="muon")
    seconds = round(time.process_time() - begin, 1)
    english, german = map(list, zip(*data.test, strict=True))
    tokens = decoder_only.written_tokens(model, data, english)
    found = [data.decode(one) for one in tokens]
    with torch.no_grad():
        validation = loss(model, data.encode(data.validation)).item()
    return {
        "seconds": seconds,
        "parameters": count_parameters(model),
        "validation": validation,
        **measures(found, german),
        "endless": sum(data.eos_id not in one for one in tokens),
        "exact by length": decoder_only.by_length(found, data),
    }


def smoothed(data: TranslationSet) -> dict[str, Any]:
    """The smoothed transformer of `translation.py` trained again: its translations by several searches."""
    lr, steps = 1e-2, translation.SYSTEMS["transformer"][0]  # the best of four rates there
    model = translation.trained("transformer", data, lr, 0, steps, 0.1)
    greedy = translation.scored(model, data, "validation")["translations"]
    references = [german for _, german in data.validation]
    result: dict[str, Any] = {"greedy": measures(greedy, references)}
    for beams, penalty in SEARCHES:
        options = {"num_beams": beams, "length_penalty": penalty}
        found = translation.scored(model, data, "validation", **options)["translations"]
        against = differences(found, greedy, references)
        result[f"{beams}, {penalty}"] = measures(found, references) | against
    return result


def by_adamw(data: TranslationSet, lr: float, seed: int, steps: int) -> Translator:
    """The recorded transformer of `translation.py`, by AdamW and without dropout."""
    seed_everything(seed)
    config = TransformerConfig(d_model=96, n_heads=4, n_blocks=2, activation="relu")
    model = Translator(config, data.vocab_size, make_backend=FusedAttend)
    batches = data.batches(steps, tokens=translation.TOKENS, seed=seed)
    fit(model, translator_loss, batches, steps=steps, lr=lr, warmup=steps // 10, optimizer="adamw")
    return model


def tried(data: TranslationSet, lr: float, steps: int) -> dict[str, Any]:
    """Its scores on the validation part at a rate."""
    found = translation.scored(by_adamw(data, lr, 0, steps), data, "validation")
    return {name: float(found[name]) for name in MEASURES}


def equal(data: TranslationSet, lr: float, seed: int, steps: int) -> dict[str, Any]:
    """Its scores on the test part, in all and by length, and the processor time of its training."""
    begin = time.process_time()
    model = by_adamw(data, lr, seed, steps)
    seconds = round(time.process_time() - begin, 1)
    found = translation.scored(model, data, "test")
    by_length = translation.by_length(found["translations"], data)
    return {"seconds": seconds, **{name: float(found[name]) for name in MEASURES}, "by length": by_length}


def fewer_phrases(pairs: int) -> TranslationSet:
    """Phrases into French, of whose training pairs so many are drawn; with a vocabulary of their own."""
    full = translation_set("phrases", "fr")
    return TranslationSet(random.Random(0).sample(full.train, pairs), full.validation, full.test)


def with_smoothing(data: TranslationSet, seed: int) -> dict[str, Any]:
    """The test scores of the training that `translation.py` gives interface strings, on these pairs."""
    steps = translation.SYSTEMS["transformer"][0]
    found = translation.scored(translation.trained("transformer", data, RATE, seed, steps, 0.1), data, "test")
    return {name: float(found[name]) for name in MEASURES}


def over_seeds(runs: list[dict[str, Any]], names: tuple[str, ...] = MEASURES) -> dict[str, Any]:
    """Each measure over the seeds."""
    return {name: summary([float(run[name]) for run in runs]) for name in names}


def page_part(data: TranslationSet) -> dict[str, Any]:
    """The page's training, by seed."""
    runs = [RUNS.keep("page", seed, make=partial(page, data, seed)) for seed in SEEDS]
    return {**over_seeds(runs), "runs": rounded(runs)}


def careless_part(data: TranslationSet) -> dict[str, Any]:
    """The careless split."""
    split = carelessly_split(data)
    runs = [RUNS.keep("careless", seed, make=partial(careless, split, seed)) for seed in SEEDS]
    table = over_seeds(runs, (*MEASURES, "exact near", "exact far"))
    return {
        **table,
        "near copies": runs[0]["near copies"],
        "test": len(split.test),
        "train": len(split.train),
    }


def stacks_part(data: TranslationSet) -> dict[str, Any]:
    """One stack, changed."""
    seeds = {"restarting": SEEDS, "prefix": SEEDS[1:]}
    table: dict[str, Any] = {"steps": decoder_only.STEPS, "lr": RATE}
    for kind, some in seeds.items():
        runs = [RUNS.keep(kind, seed, make=partial(one_stack, kind, data, seed)) for seed in some]
        table[kind] = {"seeds": some, "parameters": runs[0]["parameters"]}
        table[kind] |= over_seeds(runs, (*MEASURES, "validation", "seconds"))
        table[kind]["endless"] = [run["endless"] for run in runs]
        table[kind]["exact by length"] = rounded([run["exact by length"] for run in runs])
    return table


def smoothed_part(data: TranslationSet) -> dict[str, Any]:
    """Searches of the smoothed transformer."""
    return dict(rounded(RUNS.keep("smoothed", make=partial(smoothed, data))))


def optimiser_part(data: TranslationSet) -> dict[str, Any]:
    """AdamW without dropout, at the best of three rates."""
    steps, tuning = translation.SYSTEMS["transformer"][0], {}
    for lr in ADAMW_RATES:
        make = partial(tried, data, lr, steps // 3)
        tuning[lr] = RUNS.keep("adamw, validation", lr, steps // 3, make=make)["bleu"]
    lr = max(tuning, key=tuning.__getitem__)
    runs = [RUNS.keep("adamw", lr, seed, make=partial(equal, data, lr, seed, steps)) for seed in SEEDS]
    table: dict[str, Any] = {"steps": steps, "batch tokens": translation.TOKENS, "lr": lr}
    table |= {"tuning steps": steps // 3, "tuning": rounded(tuning, 2)}
    table |= over_seeds(runs, (*MEASURES, "seconds"))
    return table | {"by length": rounded([run["by length"] for run in runs])}


def pairs_part(_: TranslationSet) -> dict[str, Any]:
    """Phrases into French, cut to the number of strings."""
    fewer = fewer_phrases(len(translation_set("interface", "fr").train))
    runs = [RUNS.keep("fewer", seed, make=partial(with_smoothing, fewer, seed)) for seed in SEEDS]
    return {"pairs": len(fewer.train), "lr": RATE, **over_seeds(runs)}


PARTS = {
    "page": page_part,
    "careless": careless_part,
    "stacks": stacks_part,
    "smoothed": smoothed_part,
    "optimiser": optimiser_part,
    "pairs": pairs_part,
}


def main() -> None:
    """Run the parts that are named, or else those that the record lacks, and record all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; records nothing")
    parser.add_argument("--again", action="store_true", help="run also what the record holds")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = translation_set("phrases", "de")
    if options.parts:
        for name in options.parts:
            PARTS[name](data)
        return
    before = recorded("translation_controls")
    held = {} if options.again else before["results"]
    seconds = 0.0 if options.again else before["cpu_seconds"]
    results = {name: held[name] if name in held else make(data) for name, make in PARTS.items()}
    seconds += sum(RUNS.seconds.values())
    print(record("translation_controls", results, seeds=SEEDS, cpu_seconds=seconds))


if __name__ == "__main__":
    main()
