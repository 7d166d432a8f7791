"""A character is a token: the smallest vocabulary, the longest sequences."""

import os
from collections.abc import Iterable

from torch import Tensor

from tformer_lib.numbers import brief
from tformer_lib.tokenizers.specials import token_numbers
from tformer_lib.tokenizers.storage import load_json, save_json

KIND = "character tokenizer"


class CharTokenizer:
    """The number of a character is its place in the alphabet.

    Args:
        alphabet: all characters, each once.

    Raises:
        ValueError: if the alphabet is empty or holds a character twice.
    """

    def __init__(self, alphabet: str):
        if not alphabet:
            raise ValueError("the alphabet is empty")
        twice = sorted({c for c in alphabet if alphabet.count(c) > 1})
        if twice:
            raise ValueError(f"the alphabet holds {', '.join(map(repr, twice))} more than once")
        self.alphabet = alphabet
        self.ids = {character: i for i, character in enumerate(alphabet)}

    @classmethod
    def from_text(cls, text: str) -> "CharTokenizer":
        """The tokenizer whose alphabet is the text's characters, in order of their code points."""
        return cls("".join(sorted(set(text))))

    @property
    def vocab_size(self) -> int:
        """The number of characters."""
        return len(self.alphabet)

    def encode(self, text: str) -> list[int]:
        """A number for each character.

        Raises:
            TypeError: if the text is no string.
            ValueError: if a character is not in the alphabet; the message names it and its place.
        """
        if not isinstance(text, str):
            raise TypeError(f"a text is a string, got {brief(text)}")
        try:
            return [self.ids[character] for character in text]
        except KeyError as error:
            character = error.args[0]
            place = text.index(character)
            raise ValueError(f"character {place}, {character!r}, is not in the alphabet") from None

    def decode(self, ids: Iterable[int] | Tensor) -> str:
        """The characters with these numbers.

        Raises:
            ValueError: if a number is not that of a character.
            TypeError: if it is no whole number.
        """
        return "".join(self.alphabet[i] for i in token_numbers(ids, self.vocab_size))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the alphabet to a JSON file, in one step."""
        save_json(path, KIND, {"alphabet": self.alphabet})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "CharTokenizer":
        """The tokenizer that `save` wrote.

        Raises:
            ValueError: if the file is not one; the message says what is wrong with it.
        """
        content = load_json(path, KIND, {"alphabet": str})
        try:
            return cls(content["alphabet"])
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CharTokenizer) and self.alphabet == other.alphabet

    def __hash__(self) -> int:
        return hash(self.alphabet)
