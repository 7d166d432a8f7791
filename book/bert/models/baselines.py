"""What a fine-tuned model must beat: words counted and weighted, and each word's most frequent tag."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any


def tfidf_logistic_regression(C: float = 10.0) -> Any:
    """softmax(W x + b), where x_t = (1 + log count_t) log-rarity_t over words and pairs of words, |x| = 1.

    A pipeline of scikit-learn: `.fit(sentences, labels)`, `.predict(sentences)`, `.score(sentences, labels)`,
    with sentences as strings. Single words and pairs of neighbours are counted, one-letter words too;
    rarity is 1 + log((1 + R) / (1 + R_t)) with R_t of the R training sentences holding t (Salton and
    Buckley 1988).

    Args:
        C: the inverse weight of the penalty |W|^2 / 2 beside the summed losses. With 1, scikit-learn's
            default, a few sentences a class are fitted too loosely, since |x| = 1.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]

    count = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"(?u)\b\w+\b", sublinear_tf=True)
    return make_pipeline(count, LogisticRegression(C=C, max_iter=1000))


class MajorityTagger:
    """tag(word) = the tag that the word had most often in training, "O" for a word that it never saw.

    Neither the words around it nor its place count. Capitals are made small; of tags that are equally
    frequent, the one seen first is taken.
    """

    def __init__(self) -> None:
        self.tags: dict[str, str] = {}

    def fit(self, sentences: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> "MajorityTagger":
        """Count the tags of each word.

        Raises:
            ValueError: if the tags are not one a word.
        """
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for words, its in zip(sentences, tags, strict=True):
            for word, tag in zip(words, its, strict=True):
                counts[word.lower()][tag] += 1
        self.tags = {word: counter.most_common(1)[0][0] for word, counter in counts.items()}
        return self

    def predict(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """A tag a word."""
        return [[self.tags.get(word.lower(), "O") for word in words] for words in sentences]
