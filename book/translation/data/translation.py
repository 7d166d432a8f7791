"""Translation from English: number words, phrases and interface strings, into French and German.

"numbers" are number words, exact and without end; "phrases" are CLDR's names, measures, dates and lists;
"interface" is what programs say to their users. The first two can be learnt almost wholly, the third not:
its sentences are free, and there are few of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tformer_book.kit.data.number_words import number_word
from tformer_book.translation.data.interface import interface_pairs
from tformer_book.translation.data.nearness import near_duplicates, nearest_similarity
from tformer_book.translation.data.pair_split import split_pairs
from tformer_book.translation.data.phrases import phrase_pairs
from tformer_book.translation.data.translation_set import TranslationSet
from tformer_lib.data.pairs import Pair, check_language

__all__ = [
    "TranslationSet",
    "interface_pairs",
    "near_duplicates",
    "nearest_similarity",
    "number_pairs",
    "phrase_pairs",
    "split_pairs",
    "translation_set",
]


def number_pairs(language: str, upper: int = 10_000) -> list[Pair]:
    """The numbers 0..upper-1 in words as (English, other): ("forty-seven", "siebenundvierzig").

    Raises:
        ValueError: if `language` is not "fr" or "de", or `upper` does not lie in 1..1,000,000.
        ImportError: if num2words is not installed.
    """
    check_language(language)
    if not 1 <= upper <= 1_000_000:
        raise ValueError(f"upper must lie between 1 and 1,000,000, got {upper}")
    return [(number_word(n, "en"), number_word(n, language)) for n in range(upper)]


@dataclass(frozen=True)
class Kind:
    """Where pairs come from, a fitting size of vocabulary, and how far apart training and test are kept."""

    pairs: Callable[[str], list[Pair]]
    vocab_size: int
    apart: float | None


KINDS = {
    "numbers": Kind(number_pairs, 400, None),  # each number has neighbours that differ in one word
    "phrases": Kind(phrase_pairs, 2_000, 0.8),
    "interface": Kind(interface_pairs, 2_000, 0.8),
}


def translation_set(
    kind: str, language: str, *, vocab_size: int | None = None, held_out: int = 500, seed: int = 0
) -> TranslationSet:
    """The pairs of one kind, divided by `split_pairs`, with the vocabulary of their training part.

    Of phrases and interface strings nothing is trained on that is nearly a text of validation or test, on
    either side (`apart` = 0.8).

    Args:
        kind: "numbers" (the first 10,000), "phrases" or "interface".
        language: "fr" or "de".
        vocab_size: the most tokens of the vocabulary; 400 for numbers and 2,000 otherwise if None.
        held_out: the number of pairs in the validation and in the test part.
        seed: of the division.

    Raises:
        ValueError: if there is no such kind or language, if `held_out` does not fit, or if `vocab_size` has
            no room for the bytes.
        ImportError: if a package is missing; the message names it.
    """
    if kind not in KINDS:
        raise ValueError(f"kind is one of {', '.join(map(repr, KINDS))}, got {kind!r}")
    chosen = KINDS[kind]
    parts = split_pairs(chosen.pairs(language), held_out=held_out, seed=seed, apart=chosen.apart)
    return TranslationSet(*parts, vocab_size=chosen.vocab_size if vocab_size is None else vocab_size)
