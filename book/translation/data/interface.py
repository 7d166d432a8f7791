"""What programs say to their users, in English and as volunteers translated it: buttons, hints, errors.

The programs are JupyterLab, the project tracker Trac, and the content manager Plone. Only their catalogues
are read, no code of theirs runs.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

from tformer_book.kit.data.text import lacks, package_folder
from tformer_book.translation.data.catalogues import read_catalogue
from tformer_lib.data.pairs import PLACEHOLDER, Pair, check_language, distinct_pairs, tidy

SOURCES = (  # package, version, the language's name in it, files
    ("jupyterlab_language_pack_{long}", "4.5.post3", "locale/{long}/LC_MESSAGES/*.json"),
    ("trac", "1.6", "locale/{short}/LC_MESSAGES/messages*.mo"),
    ("plone.app.locales", "6.0.12", "locales/{short}/LC_MESSAGES/*.po"),
)
LONG = {"fr": "fr_FR", "de": "de_DE"}
MOST_WORDS, MOST_CHARACTERS = 20, 150

TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
NAME = re.compile(r"[a-z]+(?:[_.][a-z0-9]+)+")  # a message that is only a key


def interface_pairs(language: str) -> list[Pair]:
    """Several thousand messages as (English, other), in an order that never changes.

    Placeholders stand as they are, and both sides have the same ones. Left out are messages of more than
    20 words or 150 characters, those with markup, and those not translated. Of two translations of one
    English text the first is kept.

    Raises:
        ValueError: if `language` is not "fr" or "de".
        ImportError: if a program's package is not installed; the message says how to install it.
        FileNotFoundError: if it is, and has no catalogues.
    """
    check_language(language)
    return list(usable_messages(language))


@cache
def usable_messages(language: str) -> tuple[Pair, ...]:
    """What `interface_pairs` gives."""
    return tuple(distinct_pairs(pair for pair in messages(language) if usable(*pair)))


def messages(language: str) -> Iterator[Pair]:
    """Every message of every program, entities of HTML as characters."""
    for package, version, pattern in SOURCES:
        package, pattern = (text.format(long=LONG[language], short=language) for text in (package, pattern))
        files = sorted(package_folder(package, version).glob(pattern))
        if not files:
            raise FileNotFoundError(lacks(package, version, f"the catalogues {pattern}"))
        for file in files:
            for english, other in read_catalogue(file):
                yield html.unescape(english), html.unescape(other)


def usable(english: str, other: str) -> bool:
    """Whether both sides are short, without markup, with the same placeholders, and English is no key."""
    sides = tidy(english), tidy(other)
    if any(len(side.split()) > MOST_WORDS or not 1 < len(side) <= MOST_CHARACTERS for side in sides):
        return False
    if any(TAG.search(side) for side in sides) or NAME.fullmatch(sides[0]):
        return False
    one, two = (Counter(PLACEHOLDER.findall(side)) for side in sides)
    return one == two
