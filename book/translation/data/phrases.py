"""Phrases whose translation people agreed on: names, measures, dates and lists of Unicode's CLDR."""

from tformer_book.translation.data.phrase_formats import formatted_phrases
from tformer_book.translation.data.phrase_lists import listed_phrases
from tformer_book.translation.data.phrase_names import named_phrases
from tformer_lib.data.pairs import Pair, check_language, distinct_pairs


def phrase_pairs(language: str) -> list[Pair]:
    """About ten thousand phrases as (English, other), in an order that never changes.

    No English phrase stands there twice, both sides have words, and the sides differ. White space is
    single spaces, also where French has narrow ones. Digits aside there are more than nine thousand.

    Raises:
        ValueError: if `language` is not "fr" or "de".
        ImportError: if Babel is not installed.
    """
    check_language(language)
    every = (named_phrases(language), formatted_phrases(language), listed_phrases(language))
    return distinct_pairs(pair for some in every for pair in some)
