"""Controls for Chapter 7: how much its findings on few labels owe to one pre-training run, and to pieces.

`runs`: the page's own recipe three times, each with its own seed for first weights, batches and holes: 1,000
steps on Wikipedia (rows of 12, then of 24), 500 steps on commands without their labels, and then five
labelled sentences an intent, on which the encoder is fine-tuned from scratch, after Wikipedia and after the
commands. Recorded for each: accuracy of intents, F1 of slots, and how often "on" is taken for "off" or "off"
for "on".

`alone`: the same seeds without Wikipedia: slots from scratch at the learning rate of the other arms, and
after 500 steps on commands from random weights. Is the gain Wikipedia's, or the commands'? `alone_longer`:
the same after 1,500 steps on commands, as many as on Wikipedia and commands together.

`pieces`: opinions on films, 1,000 sentences a side, three draws: a logistic regression on TF-IDF of words and
of the tokenizer's pieces, both with pairs of neighbours. If cutting words up were what costs the encoder its
lead, it would cost this one something as well.

Eight minutes of one core.
"""

import time
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tformer_book.bert.data.intents import few_per_intent
from tformer_book.bert.data.reviews import few_per_label, review_sentences
from tformer_book.bert.experiments.bert_page import READING, ROWS, Page
from tformer_book.bert.models.baselines import tfidf_logistic_regression
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs
from tformer_lib.data.labelled import LabelledBatches
from tformer_lib.measures.labels import accuracy, entity_f1, word_tags
from tformer_lib.measures.masked import masked_scores
from tformer_lib.models.bert import BERT
from tformer_lib.models.classifiers import SequenceClassifier, TokenClassifier
from tformer_lib.tokenizers import WordPieceTokenizer
from tformer_lib.training import fine_tuning

BOTH = READING + sum(steps for *_, steps in ROWS)  # steps on Wikipedia and commands together
SEEDS = [0, 1, 2]
ARMS = {"from scratch": 2e-3, "Wikipedia": 4e-3, "then commands": 4e-3}  # with the page's learning rates


def tuned_on_few(page: Page, start: BERT, head: Any, labels: str, lr: float, seed: int) -> Tensor:
    """Answers on the held-out commands after fine-tuning on five labelled ones an intent."""
    few, held = page.encoded(few_per_intent(page.train, 5, seed=seed)), page.encoded(page.test)
    batches = LabelledBatches(few.tokens, few.mask, getattr(few, labels), batch=32, steps=160, seed=seed)
    tuned = fine_tuning.fine_tune(start, head, batches, lr=lr, dropout=0.1, seed=seed, progress=False)
    return fine_tuning.predict(tuned, held.tokens, held.mask)


def slots(page: Page, start: BERT, lr: float, seed: int) -> float:
    """F1 of slots on the held-out commands."""
    answers = tuned_on_few(page, start, partial(TokenClassifier, labels=len(page.tags)), "slots", lr, seed)
    first, lengths = page.encoded(page.test).first, [len(u.words) for u in page.test]
    return float(entity_f1([u.tags for u in page.test], word_tags(answers, first, page.tags, lengths)))


def run(page: Page, seed: int) -> dict:
    """All of the page's steps with one seed."""
    model = page.pretrained(seed)
    loss, right = masked_scores(model, page.wikipedia_exam())
    reader = page.read_on(model, seed)
    result = {"loss": loss, "right": right, "commands": masked_scores(reader, page.exam())[0]}
    starts = [fine_tuning.first_weights(model.bert), model.bert, reader.bert]
    on, off = page.names.index("HassTurnOn"), page.names.index("HassTurnOff")
    true = page.encoded(page.test).intents
    for (arm, lr), start in zip(ARMS.items(), starts, strict=True):
        head = partial(SequenceClassifier, classes=len(page.names))
        said = tuned_on_few(page, start, head, "intents", lr, seed)
        swapped = ((true == on) & (said == off)) | ((true == off) & (said == on))
        result[arm] = {
            "intents": float(accuracy(said, true)),
            "slots": slots(page, start, lr, seed),
            "swapped": int(swapped.sum()),
            "of": int(((true == on) | (true == off)).sum()),
        }
    return result


def alone(page: Page, seed: int, steps: int) -> dict:
    """F1 of slots without Wikipedia, from random weights and after commands alone."""
    fresh = page.fresh(seed, next_sentence=False)
    reader = page.read_on(fresh, seed, steps)
    return {
        "commands": masked_scores(reader, page.exam())[0],
        "from scratch": slots(page, fresh.bert, 4e-3, seed),
        "commands alone": slots(page, reader.bert, 4e-3, seed),
    }


def opinions(tokenizer: WordPieceTokenizer, seed: int) -> dict:
    """Accuracy on held-out opinions, of words and of pieces, and the share of words that are cut up."""
    held, truth = zip(*review_sentences("validation"), strict=True)
    texts, labels = zip(*few_per_label(review_sentences("train"), 1000, seed=seed), strict=True)

    def cut(text: str) -> str:
        """The pieces as words, in letters that the vectoriser keeps together."""
        return " ".join(f"p{i}" for i in tokenizer.encode(text))

    words = tfidf_logistic_regression().fit(texts, labels).score(held, truth)
    pieces = tfidf_logistic_regression().fit([cut(t) for t in texts], labels)
    return {"words": float(words), "pieces": float(pieces.score([cut(t) for t in held], truth))}


def main() -> None:
    """Run what has not been run yet, and write the record."""
    start = time.process_time()
    torch.set_num_threads(1)
    runs = Runs("bert_controls")
    page = Page()
    tokenizer = page.tokenizer
    results = {
        "pieces": [runs.keep("pieces", seed, make=partial(opinions, tokenizer, seed)) for seed in SEEDS],
        "alone": [
            runs.keep("alone", seed, READING, make=partial(alone, page, seed, READING)) for seed in SEEDS
        ],
        "alone_longer": [
            runs.keep("alone", seed, BOTH, make=partial(alone, page, seed, BOTH)) for seed in SEEDS
        ],
        "runs": [runs.keep("page", seed, READING, make=partial(run, page, seed)) for seed in SEEDS],
    }
    seconds = max(time.process_time() - start, sum(runs.seconds.values()))
    print(record("bert_controls", results, seeds=SEEDS, cpu_seconds=seconds))


if __name__ == "__main__":
    main()
