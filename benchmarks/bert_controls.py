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

import copy
import time
from functools import partial
from itertools import chain

import torch
from runs import Runs

from tformer_lib.book.datasets.intents import few_per_intent, intent_names, intent_utterances, slot_tags
from tformer_lib.book.datasets.reviews import few_per_label, review_sentences
from tformer_lib.book.datasets.text import wikipedia, wikipedia_sentences
from tformer_lib.book.models.baselines import tfidf_logistic_regression
from tformer_lib.book.recorded import record
from tformer_lib.data.labelled import LabelledBatches, encode_sentences, label_first_pieces
from tformer_lib.data.masking import PretrainingBatches, mask_tokens
from tformer_lib.measures.labels import accuracy, entity_f1, word_tags
from tformer_lib.measures.masked import hidden_places, masked_scores
from tformer_lib.models.bert import BERT, PretrainingBERT, bert_config, pretraining_loss
from tformer_lib.models.classifiers import SequenceClassifier, TokenClassifier
from tformer_lib.tokenizers import WordPieceTokenizer
from tformer_lib.training import fine_tuning, fit, seed_everything

SEEDS = [0, 1, 2]
ARMS = {"from scratch": 2e-3, "Wikipedia": 4e-3, "then commands": 4e-3}  # with the page's learning rates


def encoded(commands, tokenizer, names, tags):
    """Tokens, mask, first places, intents, tags at first pieces."""
    tokens, mask, first = encode_sentences([u.words for u in commands], tokenizer, length=20)
    wanted = torch.tensor([names.index(u.intent) for u in commands])
    slots = label_first_pieces(first, [[tags.index(t) for t in u.tags] for u in commands])
    return tokens, mask, first, wanted, slots


def holes(tokens, mask, tokenizer, steps, seed):
    """Batches for `pretraining_loss`: commands with three tokens of ten hidden."""
    chance, nothing = torch.Generator().manual_seed(seed), torch.zeros(len(tokens), dtype=torch.long)
    for x, m, _ in LabelledBatches(tokens, mask, nothing, batch=64, steps=steps, seed=seed):
        inputs, targets = mask_tokens(x, tokenizer, share=0.3, generator=chance)
        yield inputs, None, m, targets, None


def run(tokenizer: WordPieceTokenizer, ids: torch.Tensor, seed: int) -> dict:
    """All of the page's steps with one seed."""
    old, new = map(wikipedia_sentences, ("train", "validation"))
    train, test = map(intent_utterances, ("train", "validation"))
    names, tags = intent_names(), slot_tags()
    hole, vocab = tokenizer.special_tokens["[MASK]"], tokenizer.vocab_size
    rows = [
        PretrainingBatches(old, tokenizer, batch=b, length=n, steps=steps, seed=seed, share=0.3)
        for b, n, steps in ((128, 12, 400), (64, 24, 600))
    ]
    exam = hidden_places(PretrainingBatches(new, tokenizer, batch=64, length=24, steps=20, seed=1), hole)
    seed_everything(seed)
    config = bert_config(d_model=64, n_heads=4, n_blocks=2, dropout=0.0)
    model = PretrainingBERT(BERT(config, vocab, max_len=24))
    counts = torch.bincount(ids, minlength=vocab) + 1.0
    model.masked_language.bias.data = (counts / counts.sum()).log()
    fit(model, pretraining_loss, chain(*rows), steps=1000, lr=6e-3, warmup=60, progress=False)
    loss, right = masked_scores(model, exam)

    everything, held = (encoded(part, tokenizer, names, tags) for part in (train, test))
    reader = copy.deepcopy(model)
    reader.next_sentence = None
    batches = holes(*everything[:2], tokenizer, 500, seed)
    fit(reader, pretraining_loss, batches, steps=500, lr=8e-3, warmup=40, progress=False)
    exam = hidden_places(holes(*held[:2], tokenizer, 20, 1), hole)
    result = {"loss": loss, "right": right, "commands": masked_scores(reader, exam)[0]}

    few = few_per_intent(train, 5, seed=seed)
    tokens, mask, _, wanted, slots = encoded(few, tokenizer, names, tags)
    starts = [fine_tuning.first_weights(model.bert), model.bert, reader.bert]
    on, off = names.index("HassTurnOn"), names.index("HassTurnOff")
    for (arm, lr), start in zip(ARMS.items(), starts, strict=True):
        answers = []
        for labels, head in (
            (wanted, partial(SequenceClassifier, classes=len(names))),
            (slots, partial(TokenClassifier, labels=len(tags))),
        ):
            batches = LabelledBatches(tokens, mask, labels, batch=32, steps=160, seed=seed)
            tuned = fine_tuning.fine_tune(start, head, batches, lr=lr, dropout=0.1, seed=seed, progress=False)
            answers.append(fine_tuning.predict(tuned, *held[:2]))
        said = answers[0]
        swapped = ((held[3] == on) & (said == off)) | ((held[3] == off) & (said == on))
        found = word_tags(answers[1], held[2], tags, [len(u.words) for u in test])
        result[arm] = {
            "intents": float(accuracy(answers[0], held[3])),
            "slots": float(entity_f1([u.tags for u in test], found)),
            "swapped": int(swapped.sum()),
            "of": int(((held[3] == on) | (held[3] == off)).sum()),
        }
    return result


def alone(tokenizer: WordPieceTokenizer, ids: torch.Tensor, seed: int, steps: int = 500) -> dict:
    """F1 of slots without Wikipedia, from random weights and after commands alone."""
    train, test = map(intent_utterances, ("train", "validation"))
    names, tags = intent_names(), slot_tags()
    hole, vocab = tokenizer.special_tokens["[MASK]"], tokenizer.vocab_size
    everything, held = (encoded(part, tokenizer, names, tags) for part in (train, test))
    seed_everything(seed)
    config = bert_config(d_model=64, n_heads=4, n_blocks=2, dropout=0.0)
    reader = PretrainingBERT(BERT(config, vocab, max_len=24), next_sentence=False)
    counts = torch.bincount(ids, minlength=vocab) + 1.0
    reader.masked_language.bias.data = (counts / counts.sum()).log()
    scratch = copy.deepcopy(reader.bert)
    batches = holes(*everything[:2], tokenizer, steps, seed)
    fit(reader, pretraining_loss, batches, steps=steps, lr=8e-3, warmup=40, progress=False)
    exam = hidden_places(holes(*held[:2], tokenizer, 20, 1), hole)
    result = {"commands": masked_scores(reader, exam)[0]}

    few = few_per_intent(train, 5, seed=seed)
    tokens, mask, _, _, slots = encoded(few, tokenizer, names, tags)
    for arm, start in {"from scratch": scratch, "commands alone": reader.bert}.items():
        batches = LabelledBatches(tokens, mask, slots, batch=32, steps=160, seed=seed)
        head = partial(TokenClassifier, labels=len(tags))
        tuned = fine_tuning.fine_tune(start, head, batches, lr=4e-3, dropout=0.1, seed=seed, progress=False)
        answers = fine_tuning.predict(tuned, *held[:2])
        found = word_tags(answers, held[2], tags, [len(u.words) for u in test])
        result[arm] = float(entity_f1([u.tags for u in test], found))
    return result


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
    text = " ".join(wikipedia("train"))
    tokenizer = WordPieceTokenizer.train(text, 2000)
    ids = torch.tensor(tokenizer.encode(text))
    results = {
        "pieces": [runs.keep("pieces", seed, make=partial(opinions, tokenizer, seed)) for seed in SEEDS],
        "alone": [runs.keep("alone", seed, make=partial(alone, tokenizer, ids, seed)) for seed in SEEDS],
        "alone_longer": [
            runs.keep("alone", seed, 1500, make=partial(alone, tokenizer, ids, seed, 1500)) for seed in SEEDS
        ],
        "runs": [runs.keep("page", seed, make=partial(run, tokenizer, ids, seed)) for seed in SEEDS],
    }
    seconds = max(time.process_time() - start, sum(runs.seconds.values()))
    print(record("bert_controls", results, seeds=SEEDS, cpu_seconds=seconds))


if __name__ == "__main__":
    main()
