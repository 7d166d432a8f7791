"""Number words: an unlimited parallel text, English to German, whose alignment is known.

English says tens before units and German the other way about: forty-seven is siebenundvierzig,
"seven and forty". The words come from the package num2words.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Int
from torch import Tensor

from tformer_lib.data import BOS, EOS, PAD
from tformer_lib.tokenizers.specials import token_numbers


@lru_cache(maxsize=200_000)
def number_word(number: int, language: str) -> str:
    """The number in words as num2words writes it, for `language` "en", "de" or "fr".

    Raises:
        ValueError: if the number does not lie in 0..999,999.
    """
    from num2words import num2words  # type: ignore[import-untyped]

    if not 0 <= number <= 999_999:
        raise ValueError(f"number words are made for 0 to 999,999, got {number}")
    return num2words(number, lang=language)


def english_parts(number: int) -> list[str]:
    """47 -> ["forty", "seven"]: the English words, without comma and hyphen."""
    return number_word(number, "en").replace(",", "").replace("-", " ").split()


def german_parts(number: int) -> list[str]:
    """47 -> ["sieben", "und", "vierzig"]: the parts that the one German word is made of."""
    return split_german(number_word(number, "de"))


@lru_cache
def german_inventory() -> tuple[str, ...]:
    """The parts of German number words, longest first: 0 to 19, the tens, ein, und, hundert, tausend."""
    whole = {number_word(n, "de") for n in (*range(20), *range(20, 100, 10))}
    return tuple(sorted(whole | {"ein", "und", "hundert", "tausend"}, key=lambda part: (-len(part), part)))


def split_german(word: str) -> list[str]:
    """Cuts a German number word into parts, always taking the longest that fits; joined, they give it back.

    Raises:
        ValueError: if no part fits; the message says where.
    """
    parts: list[str] = []
    rest = word
    while rest:
        part = next((p for p in german_inventory() if rest.startswith(p)), None)
        if part is None:
            raise ValueError(f"cannot split {word!r}: no part of a German number begins {rest!r}")
        parts.append(part)
        rest = rest[len(part) :]
    return parts


class Vocabulary:
    """A word's number and a number's word; 0, 1, 2 are padding, begin and end, then words in order.

    Args:
        words: the words, each once or often; they are sorted.
    """

    def __init__(self, words: Iterable[str]):
        self.words = ["<pad>", "<bos>", "<eos>", *sorted(set(words))]
        self.ids = {word: i for i, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, words: Iterable[str]) -> list[int]:
        """The words' numbers.

        Raises:
            ValueError: if a word is not in the vocabulary.
        """
        words = list(words)
        unknown = [word for word in words if word not in self.ids]
        if unknown:
            raise ValueError(f"not in the vocabulary: {', '.join(map(repr, unknown))}")
        return [self.ids[word] for word in words]

    def decode(self, ids: Iterable[int] | Tensor) -> list[str]:
        """The words up to the end token, without begin and padding."""
        words = []
        for i in token_numbers(ids, len(self.words)):
            if i == EOS:
                break
            if i not in (PAD, BOS):
                words.append(self.words[i])
        return words


def split_numbers(upper: int, n_held_out: int, seed: int = 0) -> tuple[list[int], list[int]]:
    """The numbers 0..upper-1 divided at random into (train, held out), each in ascending order.

    Raises:
        ValueError: unless 0 < n_held_out < upper.
    """
    if not 0 < n_held_out < upper:
        raise ValueError(f"n_held_out must lie between 0 and upper={upper}, got {n_held_out}")
    order = torch.randperm(upper, generator=torch.Generator().manual_seed(seed)).tolist()
    return sorted(order[n_held_out:]), sorted(order[:n_held_out])


@dataclass
class NumberWords:
    """English and German number words of 0..upper-1, with numbers held out, both vocabularies, and batches.

    Args:
        upper: the numbers are those below it; at most a million.
        n_held_out: how many of them are never trained on.
        seed: of the division.
    """

    upper: int = 10_000
    n_held_out: int = 1_000
    seed: int = 0

    def __post_init__(self) -> None:
        self.train, self.held_out = split_numbers(self.upper, self.n_held_out, self.seed)
        small = range(min(self.upper, 1_000))  # every word occurs below 1,000, but for two
        extra = [1_000, 101_000] if self.upper > 1_000 else []
        self.english = Vocabulary(w for n in (*small, *extra) for w in english_parts(n))
        self.german = Vocabulary(w for n in (*small, *extra) for w in german_parts(n))

    def encode(self, numbers: Iterable[int]) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B T"]]:
        """(source, target): English words, and begin token, German parts, end token; padded with 0."""
        numbers = list(numbers)
        if not numbers:
            raise ValueError("there are no numbers to encode")
        sources = [self.english.encode(english_parts(n)) for n in numbers]
        targets = [[BOS, *self.german.encode(german_parts(n)), EOS] for n in numbers]
        return pad(sources), pad(targets)

    def batches(self, steps: int, batch_size: int, seed: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """`steps` batches of training pairs, drawn with replacement."""
        generator = torch.Generator().manual_seed(seed)
        for _ in range(steps):
            drawn = torch.randint(len(self.train), (batch_size,), generator=generator).tolist()
            yield self.encode(self.train[i] for i in drawn)


def pad(rows: list[list[int]]) -> Int[Tensor, "B S"]:
    """Rows of different lengths as one tensor, filled with padding at the end."""
    width = max(map(len, rows))
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
