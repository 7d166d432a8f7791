"""Fine-tuning on few labels: a BERT from scratch and pre-trained ones, beside baselines that count words.

Commands to a voice assistant, on templates held out: their intents (accuracy, read at [CLS]) and their slots
(F1 of entities, a label a word) with 5, 20 and 100 labelled sentences an intent; and opinions on films with
5 to 1,000 sentences a side. Three seeds each: of the labelled sample, of the head, of dropout and the order.
Three encoders have one architecture and differ in what they were trained on before: nothing ("from scratch"),
Wikipedia, and in addition the text of the task's training part without its labels ("then commands", "then
reviews"). The fourth is MiniLM, larger and trained by others on very much more, where its package is
installed. Each learning rate is the best of three, chosen with 20 labels on templates (reviews: sentences)
held back from the training part; the third encoder takes that of the second. The validation part is only
measured on.

Needs the encoder that `python bert_pretraining.py` leaves in `_build/checkpoints/bert`.
`python bert_fine_tuning.py` runs what has not been run yet and records it; what is finished is
kept in `_build/bert_fine_tuning/`. An hour and a half of one core, nearly all of it for MiniLM.
"""

import copy
import hashlib
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from tformer_book.bert.data.intents import (
    Utterance,
    few_per_intent,
    intent_names,
    intent_utterances,
    slot_tags,
)
from tformer_book.bert.data.reviews import few_per_label, review_sentences
from tformer_book.bert.models.baselines import MajorityTagger, tfidf_logistic_regression
from tformer_book.kit.records import record
from tformer_book.kit.runs import BUILD, Runs, summary
from tformer_lib.core.attention import FusedAttend
from tformer_lib.data.labelled import LabelledBatches, encode_sentences, label_first_pieces
from tformer_lib.data.masking import mask_tokens
from tformer_lib.measures.labels import accuracy, entity_f1, word_tags
from tformer_lib.models.bert import BERT, PretrainingBERT, pretraining_loss
from tformer_lib.models.classifiers import SequenceClassifier, TokenClassifier
from tformer_lib.pretrained import load_minilm
from tformer_lib.pretrained.local import load_bert
from tformer_lib.tokenizers import WordPieceTokenizer
from tformer_lib.training import count_parameters, fit, seed_everything
from tformer_lib.training.fine_tuning import fine_tune, first_weights, predict

CHECKPOINT = BUILD / "checkpoints" / "bert"
SEEDS = [0, 1, 2]
SCRATCH, WIKIPEDIA = "from scratch", "Wikipedia"
THEN = {"intents": "then commands", "slots": "then commands", "reviews": "then reviews"}
MINILM, ITS_SHAPE = "MiniLM", "MiniLM's shape, from scratch"
LABELS = {"intents": [5, 20, 100], "slots": [5, 20, 100], "reviews": [5, 20, 100, 1000]}
LENGTH = {"intents": 24, "slots": 24, "reviews": 32}
TUNED_ON, BATCH = 20, 32
STEPS = {5: 200, 20: 200, 100: 300, 1000: 300}
ITS_STEPS = {5: 100, 20: 100, 100: 200, 1000: 200}  # of MiniLM, whose steps take twenty times as long
LRS, ITS_LRS = [1e-3, 2e-3, 4e-3], [1e-4, 2e-4, 5e-4]
DROPOUT = 0.1  # of every encoder while it is fine-tuned
FURTHER = 700  # steps of masked training on the task's text
SHARE, FURTHER_LR, FURTHER_BATCH = 0.3, 3e-3, 64


def loaded() -> tuple[PretrainingBERT, WordPieceTokenizer]:
    """The pre-trained model and its tokenizer."""
    try:
        return load_bert(CHECKPOINT)
    except FileNotFoundError:
        sys.exit(f"there is no encoder in {CHECKPOINT}: run `python bert_pretraining.py` first")


@dataclass
class Sample:
    """Sentences encoded, and the truth about them."""

    sentences: list[Any]  # of the data set: `Utterance`, or (text, label)
    tokens: Tensor
    mask: Tensor
    first: Tensor
    labels: Tensor


class MaskedRows:
    """Batches for `pretraining_loss`: whole sentences with holes, no pairs."""

    def __init__(self, tokens: Tensor, mask: Tensor, tokenizer: WordPieceTokenizer, steps: int):
        nothing = torch.zeros(len(tokens), dtype=torch.int64)
        self.rows = LabelledBatches(tokens, mask, nothing, batch=FURTHER_BATCH, steps=steps)
        self.tokenizer = tokenizer

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        generator = torch.Generator().manual_seed(0)
        for tokens, mask, nothing in self.rows:
            inputs, targets = mask_tokens(tokens, self.tokenizer, share=SHARE, generator=generator)
            yield inputs, torch.zeros_like(tokens), mask, targets, nothing


class Task:
    """One of the three: its sentences, its head, its score and its baseline."""

    def __init__(self, name: str, tokenizer: WordPieceTokenizer, longest: int):
        self.name, self.tokenizer, self.length = name, tokenizer, min(LENGTH[name], longest)
        commands = name != "reviews"
        self.train: list[Any] = intent_utterances("train") if commands else review_sentences("train")
        self.few: Callable[..., list[Any]] = few_per_intent if commands else few_per_label
        tags = slot_tags() if name == "slots" else []
        self.names: list[Any] = {"intents": intent_names(), "slots": tags, "reviews": [0, 1]}[name]

    def validation(self) -> list[Any]:
        """What is measured on."""
        return intent_utterances("validation") if self.name != "reviews" else review_sentences("validation")

    def words(self, sentence: Any) -> Any:
        """The words of a command, the string of a review."""
        return sentence.words if isinstance(sentence, Utterance) else sentence[0]

    def truth(self, sentence: Any) -> Any:
        """The intent, the tags, or the opinion."""
        if isinstance(sentence, Utterance):
            return sentence.tags if self.name == "slots" else sentence.intent
        return sentence[1]

    def held_back(self) -> tuple[list[Any], list[Any]]:
        """The training part in two, for choosing learning rates: a quarter of each intent's templates, at
        most 40 sentences an intent, or 1,000 sentences on films; intents of one template are not in it."""
        if self.name == "reviews":
            return self.train[1000:], self.train[:1000]
        templates = defaultdict(set)
        for u in self.train:
            templates[u.intent].add(u.template)
        held = set()
        for intent, mine in sorted(templates.items()):
            if len(mine) > 1:
                held |= set(random.Random(intent).sample(sorted(mine), max(1, len(mine) // 4)))
        rest = [u for u in self.train if u.template not in held]
        return rest, few_per_intent([u for u in self.train if u.template in held], 40, seed=0)

    def encode(self, sentences: list[Any]) -> Sample:
        """Tokens and labels."""
        tokens, mask, first = encode_sentences(
            [self.words(s) for s in sentences], self.tokenizer, length=self.length
        )
        number = {name: i for i, name in enumerate(self.names)}
        truth = [self.truth(s) for s in sentences]
        if self.name == "slots":
            labels = label_first_pieces(first, [[number[tag] for tag in tags] for tags in truth])
        else:
            labels = torch.tensor([number[name] for name in truth])
        return Sample(sentences, tokens, mask, first, labels)

    def head(self, bert: BERT) -> nn.Module:
        """A new head on an encoder."""
        kind = TokenClassifier if self.name == "slots" else SequenceClassifier
        return kind(bert, len(self.names))

    def tags(self, predicted: Tensor, test: Sample) -> list[list[str]]:
        """The predicted tag of each word."""
        lengths = [len(u.words) for u in test.sentences]
        return word_tags(predicted, test.first, self.names, lengths)

    def score(self, predicted: Tensor, test: Sample) -> float:
        """F1 of entities for slots, accuracy else."""
        if self.name == "slots":
            return entity_f1([u.tags for u in test.sentences], self.tags(predicted, test))
        return accuracy(predicted, test.labels)

    def baseline(self, few: list[Any], test: list[Any]) -> float:
        """The score of what counts words."""
        truth = [self.truth(s) for s in few]
        if self.name == "slots":
            tagger = MajorityTagger().fit([u.words for u in few], truth)
            return entity_f1([u.tags for u in test], tagger.predict([u.words for u in test]))
        text = [s if isinstance(s, str) else " ".join(s) for s in map(self.words, (*few, *test))]
        model = tfidf_logistic_regression().fit(text[: len(few)], truth)
        return float(model.score(text[len(few) :], [self.truth(s) for s in test]))


@dataclass
class Arm:
    """A way to start, and how it is fine-tuned."""

    task: Task
    runs: Runs  # where its results are kept
    start: Callable[[int], BERT]  # of a seed
    steps: dict[int, int]
    lrs: list[float]
    labels: list[int]
    lr_of: str = ""  # another arm's learning rate, in place of one's own

    def result(self, source: list[Any], n: int, lr: float, seed: int, test: Sample) -> dict[str, Any]:
        """Trained on n labels a class from the source: what it predicts, and the score of that."""
        few = self.task.encode(self.task.few(source, n, seed=seed))
        options: dict[str, Any] = {"batch": BATCH, "steps": self.steps[n], "seed": seed}
        batches = LabelledBatches(few.tokens, few.mask, few.labels, **options)
        model = fine_tune(self.start(seed), self.task.head, batches, lr=lr, dropout=DROPOUT, seed=seed)
        predicted = predict(model, test.tokens, test.mask)
        return {"score": self.task.score(predicted, test), "predicted": predicted.tolist()}


def trained_further(model: PretrainingBERT, task: Task) -> BERT:
    """The encoder after further masked training on the sentences of the task's training part, unlabelled."""
    model = copy.deepcopy(model)
    model.next_sentence = None
    seed_everything(0)
    sample = task.encode(task.train)
    batches = MaskedRows(sample.tokens, sample.mask, task.tokenizer, FURTHER)
    fit(model, pretraining_loss, batches, lr=FURTHER_LR, warmup=FURTHER // 10)
    return model.bert


def tuned(arms: dict[str, Arm]) -> dict[str, dict[str, float]]:
    """{arm: {learning rate: score on what is held back}}."""
    scores: dict[str, dict[str, float]] = {}
    for name, arm in arms.items():
        if arm.lr_of:
            continue
        rest, held = arm.task.held_back()
        test = arm.task.encode(held)
        scores[name] = {}
        for lr in arm.lrs:
            run = partial(arm.result, rest, TUNED_ON, lr, 100, test)
            score = arm.runs.keep("tuning", arm.task.name, name, lr, make=run)["score"]
            scores[name][str(lr)] = round(score, 4)
    return scores


def cells(arms: dict[str, Arm], lrs: dict[str, float]) -> dict[str, dict[str, Any]]:
    """{arm: {labels: score, mean, sd}}, with the baseline as one of the arms."""
    table: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, arm in arms.items():
        task = arm.task
        test = task.encode(task.validation())
        for n in arm.labels:
            scores = []
            for seed in SEEDS:
                run = partial(arm.result, task.train, n, lrs[name], seed, test)
                scores.append(arm.runs.keep(task.name, n, name, seed, make=run)["score"])
            table[name][str(n)] = summary(scores)
    task, validation = arms[SCRATCH].task, arms[SCRATCH].task.validation()
    counting = "majority tagger" if task.name == "slots" else "TF-IDF + logistic regression"
    for n in LABELS[task.name]:
        samples = [task.few(task.train, n, seed=seed) for seed in SEEDS]
        table[counting][str(n)] = summary([task.baseline(few, validation) for few in samples])
        table["labelled sentences"][str(n)] = [len(few) for few in samples]
    return dict(table)


def confusions(name: str, arm: Arm, n: int, top: int = 30) -> list[dict[str, Any]]:
    """The pairs of intents confused most: how many of one's sentences, over all seeds, went to the other."""
    task = arm.task
    validation = task.validation()
    total = Counter(u.intent for u in validation)
    wrong: Counter[tuple[str, str]] = Counter()
    for seed in SEEDS:
        answers = arm.runs.get(task.name, n, name, seed)["predicted"]
        pairs = zip(validation, answers, strict=True)
        wrong.update((u.intent, task.names[i]) for u, i in pairs if u.intent != task.names[i])
    return [
        {"true": a, "predicted": b, "count": count, "of": total[a] * len(SEEDS)}
        for (a, b), count in wrong.most_common(top)
    ]


def worth(table: dict[str, Any], arm: str) -> dict[str, float | None]:
    """For each number n of labels: with how many labels "from scratch" scores what `arm` does with n.

    Between the measured numbers the score is taken to be a straight line in log n; None beyond them.
    """
    numbers = sorted(map(int, table[SCRATCH]))
    scores = [table[SCRATCH][str(n)]["mean"] for n in numbers]
    result: dict[str, float | None] = {}
    for n in numbers:
        goal, result[str(n)] = table[arm][str(n)]["mean"], None
        for (a, low), (b, high) in pairwise(zip(numbers, scores, strict=True)):
            if low <= goal <= high and low < high:
                result[str(n)] = round(a * (b / a) ** ((goal - low) / (high - low)), 1)
                break
    return result


def minilm_arms(name: str, runs: Runs) -> dict[str, Arm]:
    """MiniLM, and its architecture from scratch with the fewest labels; none without its package."""
    try:
        minilm, tokenizer = load_minilm(make_backend=FusedAttend)
    except ImportError as error:
        print(error)
        return {}
    task = Task(name, tokenizer, minilm.max_len)
    arms = {MINILM: Arm(task, runs, lambda seed: minilm, ITS_STEPS, ITS_LRS, LABELS[name])}
    if name != "reviews":
        arms[ITS_SHAPE] = Arm(task, runs, lambda seed: first_weights(minilm, seed=seed), STEPS, ITS_LRS, [5])
    return arms


def our_arms(name: str, model: PretrainingBERT, tokenizer: WordPieceTokenizer, runs: Runs) -> dict[str, Arm]:
    """The three encoders of one architecture."""
    task = Task(name, tokenizer, model.bert.max_len)
    then: list[BERT] = []

    def further(seed: int) -> BERT:
        if not then:
            then.append(trained_further(model, task))
        return then[0]

    return {
        SCRATCH: Arm(task, runs, lambda seed: first_weights(model.bert, seed=seed), STEPS, LRS, LABELS[name]),
        WIKIPEDIA: Arm(task, runs, lambda seed: model.bert, STEPS, LRS, LABELS[name]),
        THEN[name]: Arm(task, runs, further, STEPS, LRS, LABELS[name], WIKIPEDIA),
    }


def measured(arms: dict[str, Arm]) -> tuple[dict[str, Any], dict[str, Any], dict[str, float]]:
    """The scores, those of the learning rates tried, and the ones chosen."""
    tuning = tuned(arms)
    lrs = {name: float(max(scores, key=lambda lr: scores[lr])) for name, scores in tuning.items()}
    lrs |= {name: lrs[arm.lr_of] for name, arm in arms.items() if arm.lr_of}
    return cells(arms, lrs), tuning, lrs


def main() -> None:
    """Runs what is missing and records."""
    torch.set_num_threads(1)
    model, tokenizer = loaded()
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()
    ours, minilms = Runs(f"bert_fine_tuning/{digest[:8]}"), Runs("bert_fine_tuning/minilm")
    results: dict[str, Any] = {}
    for name in LABELS:
        arms = our_arms(name, model, tokenizer, ours)
        task = arms[SCRATCH].task
        table, tuning, lrs = measured(arms | minilm_arms(name, minilms))
        results[name] = {
            "scores": table,
            "tuning": tuning,
            "lr": lrs,
            "worth": {arm: worth(table, arm) for arm in (WIKIPEDIA, THEN[name])},
            "validation": len(task.validation()),
            "classes": len(task.names),
            "length": task.length,
        }
        if name == "intents":
            results[name]["confusions"] = {each: confusions(each, arm, 5) for each, arm in arms.items()}
    results["settings"] = {
        "parameters": count_parameters(model.bert),
        "d_model": model.bert.config.d_model,
        "blocks": model.bert.config.n_blocks,
        "vocab": tokenizer.vocab_size,
        "steps": {str(n): steps for n, steps in STEPS.items()},
        "steps of MiniLM": {str(n): steps for n, steps in ITS_STEPS.items()},
        "batch": BATCH,
        "dropout": DROPOUT,
        "further": FURTHER,
    }
    seconds = sum(ours.seconds.values()) + sum(minilms.seconds.values())
    print(record("bert_fine_tuning", results, seeds=SEEDS, cpu_seconds=seconds))


if __name__ == "__main__":
    main()
