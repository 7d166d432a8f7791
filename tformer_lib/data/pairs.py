"""Pairs of texts, an English one and its translation: tidying them, and when two texts count as one."""

import re
import unicodedata
from collections.abc import Iterable

Pair = tuple[str, str]

LANGUAGES = {"fr": "French", "de": "German"}
INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
PLACEHOLDER = re.compile(  # %(name)s, %1, %s; ${name}, $name; {name}, {0}
    r"%\(\w+\)[sdrif]|%\d+|%[sdrif](?![^\W\d_])|\$\{[\w/-]*\}|\$[a-z_]\w*|\{[\w!:.]*\}"
)


def check_language(language: str) -> None:
    """Nothing, where there are translations into the language.

    Raises:
        ValueError: if `language` is not "fr" or "de".
    """
    if language not in LANGUAGES:
        known = " or ".join(f'"{code}" ({name})' for code, name in LANGUAGES.items())
        raise ValueError(f"English is translated into {known}, got {language!r}")


def tidy(text: str) -> str:
    """The text in Unicode's composed form, without invisible marks, its white space single spaces."""
    return " ".join(INVISIBLE.sub("", unicodedata.normalize("NFC", text)).split())


def normalise(text: str) -> str:
    """The words alone: small letters, without placeholders, digits, punctuation and symbols.

    "Delete %(count)s files?" and "delete 3 files" are both "delete files".
    """
    text = unicodedata.normalize("NFKC", PLACEHOLDER.sub(" ", text)).casefold()
    return " ".join(re.sub(r"[\W\d_]+", " ", text).split())


def distinct_pairs(pairs: Iterable[Pair]) -> list[Pair]:
    """Tidy pairs whose sides differ and have words; of an English text's translations the first is kept.

    A word is two letters or more that are not a placeholder's.
    """
    kept: dict[str, str] = {}
    for english, other in ((tidy(one), tidy(two)) for one, two in pairs):
        if english.casefold() != other.casefold() and has_word(english) and has_word(other):
            kept.setdefault(english, other)
    return list(kept.items())


def has_word(text: str) -> bool:
    """Whether two letters or more follow one another, placeholders aside."""
    return any(len(word) > 1 for word in normalise(text).split())
