"""What BERT's pre-training on 85 articles of Wikipedia comes to given more time than on the page.

The model of Chapter 7, half as wide again and on longer rows, learns both tasks of the paper. It is measured
on articles held out: the masked tokens by kind, against counting; the next sentence against three kinds of
wrong ones, beside a bag of words; and holes filled in, in sentences of ours and in sentences drawn at random.
The model goes to `_build/checkpoints/bert`, where `bert_fine_tuning.py` looks for it. A quarter of an hour on
one core.

With `--folder F` a run that is stopped goes on where it was when it is started again.
"""

import argparse
import random
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from tformer_book.bert.models.neighbours import SIDES, NeighbourTable, neighbour_scores
from tformer_book.kit.data.text import wikipedia_sentences
from tformer_book.kit.records import record
from tformer_book.kit.runs import BUILD, Runs, means
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.tokens import IGNORED
from tformer_lib.data.masking import PretrainingBatches
from tformer_lib.data.sentence_pairs import next_sentence_pairs
from tformer_lib.generation.filling import fill_in
from tformer_lib.measures.masked import (
    Batch,
    hidden_places,
    masked_scores,
    next_sentence_accuracy,
    place_scores,
    unigram_scores,
)
from tformer_lib.models.bert import BERT, PretrainingBERT, bert_config, pretraining_loss
from tformer_lib.pretrained.local import save_bert
from tformer_lib.tokenizers import WordPieceTokenizer
from tformer_lib.training import count_parameters, fit, seed_everything

VOCAB, LENGTH, BATCH, STEPS, SEED = 2000, 32, 128, 8000, 0
WIDTH, HEADS, BLOCKS = 96, 4, 2
RATE, WARMUP, OPTIMIZER = 3e-3, 200, "adamw"
BIN, EVERY = 100, 500  # steps: for means of the training loss, between two measurements
SEEN = (0, 10, 100, 1000, 10_000, 10**9)  # occurrences in the training text, as the buckets' borders
KINDS = ("other document", "same document", "swapped")
CHECKPOINT = BUILD / "checkpoints" / "bert"
SENTENCES = (
    "The capital of [MASK] is Paris.",
    "She was born in [MASK] 1950.",
    "He was the [MASK] of the United States.",
    "Most of the people live in the [MASK].",
    "The book was written [MASK] a philosopher.",
    "It is one [MASK] the largest cities in the world.",
    "In the [MASK] century, the empire was divided.",
    "Water is made of hydrogen and [MASK].",
    "They did not know what [MASK] do.",
    "The war began in 1914 and [MASK] in 1918.",
    "The king and the [MASK] lived in a palace.",
    "Two and two are [MASK].",
)


class Watch:
    """The loss, with a measurement of the held-out batches every so many steps, which is kept."""

    def __init__(self, runs: Runs, batches: list[Batch], pairs: tuple):
        self.runs, self.batches, self.pairs = runs, batches, pairs

    def __call__(self, model: PretrainingBERT, numbered: tuple[int, Batch]) -> Tensor:
        step, batch = numbered
        if step % EVERY == 0:
            self.runs.keep(step, make=partial(self.measure, model, step))
        return pretraining_loss(model, batch)

    def measure(self, model: PretrainingBERT, step: int) -> dict[str, float]:
        """The scores before this step."""
        loss, accuracy = masked_scores(model, self.batches)
        follows = next_sentence_accuracy(model, self.pairs)
        return {"step": step, "loss": loss, "accuracy": accuracy, "next_sentence": follows}


class Numbered:
    """Batches with their numbers."""

    def __init__(self, batches: PretrainingBatches):
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[tuple[int, Batch]]:
        return enumerate(self.batches)


def scores(log_p: Tensor, right: Tensor, where: Tensor) -> dict[str, float | int]:
    """The scores of some of the places."""
    n = int(where.sum())
    if n == 0:
        return {"places": 0}
    return {
        "places": n,
        "loss": -log_p[where].double().mean().item(),
        "accuracy": right[where].double().mean().item(),
    }


def by_kind(
    model: PretrainingBERT, tokenizer: WordPieceTokenizer, counts: Tensor, batches: list[Batch]
) -> dict[str, object]:
    """Scores by what stands at the place, and at [MASK] places by what stood there."""
    log_p, right = place_scores(model, batches)
    true = torch.cat([b[3][b[3] != IGNORED] for b in batches])
    read = torch.cat([b[0][b[3] != IGNORED] for b in batches])
    unigram = ((counts + 1.0) / (counts + 1.0).sum()).log()[true]
    hidden = read == tokenizer.special_tokens["[MASK]"]
    inside = torch.tensor([token.startswith("##") for token in tokenizer.tokens])[true]
    letter = torch.tensor([token[:1].isalpha() for token in tokenizer.tokens])[true]
    kinds = {"words": letter, "pieces": inside, "marks and digits": ~letter & ~inside}
    seen = {"mask": hidden, "random": ~hidden & (read != true), "kept": read == true}

    def both(where: Tensor) -> dict[str, object]:
        return scores(log_p, right, where) | {"unigram": scores(unigram, right, where).get("loss")}

    buckets = []
    for low, high in pairwise(SEEN):
        where = hidden & (counts[true] >= low) & (counts[true] < high)
        buckets.append({"from": low, "below": high, **both(where)})
    return {
        "seen": {name: both(where) for name, where in seen.items()},
        "kinds": {name: both(hidden & where) for name, where in kinds.items()},
        "buckets": buckets,
    }


def overlap(pairs: tuple, words: TfidfVectorizer | None = None) -> tuple[np.ndarray, TfidfVectorizer]:
    """(cosine of the TF-IDF vectors of A and B, number of tokens in both), a row a pair."""
    tokens, segments = pairs[0], pairs[1]
    sides = [
        [
            " ".join(str(t) for t in row[which == side].tolist() if t > 4)
            for row, which in zip(tokens, segments, strict=True)
        ]
        for side in (0, 1)
    ]
    if words is None:
        words = TfidfVectorizer(analyzer=str.split, sublinear_tf=True).fit(sides[0] + sides[1])
    first, second = (words.transform(side) for side in sides)
    cosine = np.asarray(first.multiply(second).sum(1))[:, 0]
    shared = np.asarray((first > 0).multiply(second > 0).sum(1))[:, 0]
    return np.stack((cosine, shared), 1), words


def next_sentence(
    model: PretrainingBERT, train: list[list[str]], held_out: list[list[str]], tokenizer: WordPieceTokenizer
) -> dict[str, object]:
    """Accuracy on held-out pairs with three kinds of wrong ones, of the model and of a bag of words."""
    options = {"length": LENGTH, "tokenizer": tokenizer}
    fitted = next_sentence_pairs(train, count=6000, seed=1, **options)
    features, words = overlap(fitted)
    regression = LogisticRegression().fit(features, fitted[-1].numpy())
    result: dict[str, object] = {"pairs": 2000}
    for kind in KINDS:
        pairs = next_sentence_pairs(held_out, count=2000, seed=2, negatives=kind, **options)
        result[kind] = {
            "model": next_sentence_accuracy(model, pairs),
            "words": float(regression.score(overlap(pairs, words)[0], pairs[-1].numpy())),
        }
    return result


def holes(
    model: PretrainingBERT, tokenizer: WordPieceTokenizer, held_out: list[list[str]]
) -> list[dict[str, object]]:
    """Twelve held-out sentences drawn at random, one ordinary token of each hidden at random."""
    chance = random.Random(SEED)
    sentences = [s for article in held_out for s in article]
    found = []
    while len(found) < len(SENTENCES):
        sentence = chance.choice(sentences)
        ids = tokenizer.encode(sentence)
        if not 8 <= len(ids) <= LENGTH - 2:
            continue
        place = chance.randrange(len(ids))
        true = ids[place]
        shown = [tokenizer.tokens[i] for i in ids]
        shown[place] = "[MASK]"
        tokens = [tokenizer.special_tokens["[CLS]"], *ids, tokenizer.special_tokens["[SEP]"]]
        tokens[place + 1] = tokenizer.special_tokens["[MASK]"]
        with torch.no_grad():
            p = model(torch.tensor([tokens]))[0][0, place + 1].softmax(-1)
        best = p.topk(5)
        found.append(
            {
                "text": " ".join(shown).replace(" ##", ""),
                "true": tokenizer.tokens[true],
                "p": p[true].item(),
                "rank": int((p > p[true]).sum()) + 1,
                "guesses": [
                    [tokenizer.tokens[i], v]
                    for i, v in zip(best.indices.tolist(), best.values.tolist(), strict=True)
                ],
            }
        )
    return found


def main() -> None:
    """Train, measure, save the model, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=BUILD / "bert_pretraining")
    runs = Runs(parser.parse_args().folder.absolute())
    runs.folder.mkdir(parents=True, exist_ok=True)
    clock = runs.folder / "seconds.txt"
    before = float(clock.read_text()) if clock.exists() else 0.0
    train, held_out = wikipedia_sentences("train"), wikipedia_sentences("validation")
    tokenizer = WordPieceTokenizer.train("\n".join(s for article in train for s in article), VOCAB)
    sep = tokenizer.special_tokens["[SEP]"]
    ids = torch.tensor([i for article in train for s in article for i in [*tokenizer.encode(s), sep]])
    counts = torch.bincount(ids, minlength=VOCAB)
    counts[list(tokenizer.special_tokens.values())] = 0
    options = {"batch": 64, "length": LENGTH, "seed": 99}
    measured = list(PretrainingBatches(held_out, tokenizer, steps=60, **options))
    hidden = hidden_places(measured, tokenizer.special_tokens["[MASK]"])
    pairs = next_sentence_pairs(held_out, tokenizer, count=1000, length=LENGTH, seed=3)
    batches = PretrainingBatches(train, tokenizer, batch=BATCH, length=LENGTH, steps=STEPS, seed=SEED)
    watch = Watch(runs, hidden[:20], pairs)

    seed_everything(SEED)
    config = bert_config(d_model=WIDTH, n_heads=HEADS, n_blocks=BLOCKS, dropout=0.0)
    model = PretrainingBERT(BERT(config, VOCAB, max_len=LENGTH, make_backend=FusedAttend))
    with torch.no_grad():
        model.masked_language.bias.copy_(((counts + 1.0) / (counts + 1.0).sum()).log())
    try:
        history = fit(
            model,
            watch,
            Numbered(batches),
            lr=RATE,
            warmup=WARMUP,
            optimizer=OPTIMIZER,
            checkpoint=runs.checkpoint("model"),
            checkpoint_every=EVERY,
        )
    finally:
        used = before + time.process_time()
        clock.write_text(f"{used:.1f}")
    runs.keep(STEPS, make=partial(watch.measure, model, STEPS))
    save_bert(CHECKPOINT, model, tokenizer)

    table = NeighbourTable(VOCAB).fit(ids)
    baselines = {"unigram": unigram_scores(counts, hidden)}
    baselines |= {side: neighbour_scores(table, hidden, side) for side in SIDES}
    baselines["model"] = masked_scores(model, hidden)
    results = {
        "model": {
            "width": WIDTH,
            "heads": HEADS,
            "blocks": BLOCKS,
            "length": LENGTH,
            "vocab": VOCAB,
            "parameters": count_parameters(model),
            "encoder": count_parameters(model.bert),
        },
        "training": {
            "articles": len(train),
            "sentences": sum(map(len, train)),
            "tokens": int((ids != sep).sum()),
            "batch": BATCH,
            "steps": STEPS,
            "lr": RATE,
            "optimizer": OPTIMIZER,
            "seconds": history.seconds,
            "bin": BIN,
            "loss": means(history.loss, BIN),
        },
        "held_out": {"articles": len(held_out), "places": int(sum((b[3] != IGNORED).sum() for b in hidden))},
        "curve": [runs.get(step) for step in range(0, STEPS + 1, EVERY)],
        "scores": {name: {"loss": value[0], "accuracy": value[1]} for name, value in baselines.items()},
        **by_kind(model, tokenizer, counts, measured),
        "fill_in": {
            "ours": [{"text": text, "guesses": fill_in(model, tokenizer, text)[0]} for text in SENTENCES],
            "held_out": holes(model, tokenizer, held_out),
        },
        "next_sentence": next_sentence(model, train, held_out, tokenizer),
    }
    print(record("bert_pretraining", results, seeds=[SEED], cpu_seconds=before + time.process_time()))


if __name__ == "__main__":
    main()
