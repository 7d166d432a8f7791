"""What happens before tokens are made: a text is cut into words, and no token crosses a cut."""

import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any

from tformer_lib.numbers import brief

# The 256 bytes in GPT-2's order: first those that print as one visible character, then the others.
BYTES = [*range(33, 127), *range(161, 173), *range(174, 256)]
BYTES += [byte for byte in range(256) if byte not in BYTES]
# In files a byte stands as one visible character: itself, or for the others one from U+0100 on (a space: Ġ).
VISIBLE = {byte: chr(byte if i < 188 else 256 + i - 188) for i, byte in enumerate(BYTES)}
BYTE = {character: byte for byte, character in VISIBLE.items()}


def visible(token: bytes) -> str:
    """A token as GPT-2's files write it, a character a byte: b" the" becomes "Ġthe"."""
    return "".join(VISIBLE[byte] for byte in token)


def from_visible(written: str) -> bytes:
    """The bytes of a token that is written as `visible` writes it.

    Raises:
        ValueError: if a character stands for no byte.
    """
    try:
        return bytes(BYTE[character] for character in written)
    except KeyError as error:
        raise ValueError(f"{written!r} is no token: {error.args[0]!r} stands for no byte") from None


@lru_cache
def gpt2_pattern() -> Any:
    """GPT-2's cut: English endings after an apostrophe; a run of letters, of digits or of other signs, each
    with the space before it; a run of white space, whose last space is left to the word that follows.

    Source:
        Radford et al. 2019, section 2.2; the pattern is that of the code published with it.

    Raises:
        ImportError: if the package regex is not installed; Python's re does not know classes of letters.
    """
    import regex  # type: ignore[import-untyped]

    return regex.compile(r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


def gpt2_words(text: str) -> list[str]:
    """The text in pieces, which joined give it back: "We're here" -> ["We", "'re", " here"]."""
    return gpt2_pattern().findall(text)


def gpt2_words_and_digits(text: str) -> list[str]:
    """As `gpt2_words`, with each digit a word of its own: " in 1984" -> [" in", " ", "1", "9", "8", "4"].

    A digit is whatever Unicode calls a number. What stands between two is cut as a text for itself, so that
    its last space stays outside the digit. The tokens of 7 and of 1984 then have something to do with each
    other, which those of GPT-2 have not.

    Source:
        Touvron et al. 2023, section 2.1 (digits one by one).
    """
    pieces = _number().split(text)  # what is between numbers, and the numbers, in turn
    return [word for i, piece in enumerate(pieces) for word in ([piece] if i % 2 else gpt2_words(piece))]


@lru_cache
def _number() -> Any:
    gpt2_pattern()  # says what is missing
    import regex

    return regex.compile(r"(\p{N})")


CUTS: dict[str, Callable[[str], list[str]]] = {
    "gpt2": gpt2_words,
    "gpt2, single digits": gpt2_words_and_digits,
}


def utf8(text: str) -> bytes:
    """The text's bytes.

    Raises:
        TypeError: if it is no string.
        ValueError: if a character is half of a surrogate pair, which has no bytes of its own; the message
            says where.
    """
    if not isinstance(text, str):
        raise TypeError(f"a text is a string, got {brief(text)}")
    try:
        return text.encode("utf8")
    except UnicodeEncodeError as error:
        where = f"character {error.start}, {text[error.start]!r}"
        raise ValueError(f"{where}, is half of a surrogate pair: this is not Unicode text") from None


def bert_normalise(text: str) -> str:
    """BERT's uncased text: no control characters or accents, small letters, spaces around Chinese characters.

    Control characters are those of Unicode's categories Cc and Cf. A character that this Python's Unicode
    does not know yet, or one for private use, stays; the libraries of Hugging Face drop it.

    Source:
        Devlin et al. 2019; the rules are those of the code published with it.
    """
    decomposed = unicodedata.normalize("NFD", "".join(map(_kept, text)))
    # letter by letter: the whole string's lower() would treat a Greek sigma at the end of a word differently
    return "".join(map(_plain, decomposed))


@cache  # there are far fewer different characters than characters
def _kept(character: str) -> str:
    """A space for white space, nothing for a control character, and spaces around a Chinese one."""
    if character in "\t\n\r" or unicodedata.category(character)[0] == "Z":
        return " "
    if character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cf"):
        return ""
    return f" {character} " if is_chinese(character) else character


@cache
def _plain(character: str) -> str:
    """The small letter; nothing for an accent that has been taken off its letter."""
    return "" if unicodedata.category(character) == "Mn" else character.lower()


def is_chinese(character: str) -> bool:
    """Whether the character is in one of Unicode's blocks of Chinese characters, which carry no spaces."""
    code = ord(character)
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0xF900 <= code <= 0xFAFF
        or 0x20000 <= code <= 0x2CEAF
        or 0x2F800 <= code <= 0x2FA1F
    )


@cache
def is_punctuation(character: str) -> bool:
    """Whether BERT takes it for punctuation: all ASCII signs ("$" too), and Unicode's punctuation."""
    ascii_sign = (
        character.isascii() and character.isprintable() and not (character.isalnum() or character == " ")
    )
    return ascii_sign or unicodedata.category(character)[0] == "P"


def bert_words(text: str) -> Iterator[str]:
    """Normalised text cut at white space, with each punctuation mark a word of its own."""
    for chunk in bert_normalise(text).split():
        word = ""
        for character in chunk:
            if is_punctuation(character):
                if word:
                    yield word
                yield character
                word = ""
            else:
                word += character
        if word:
            yield word
