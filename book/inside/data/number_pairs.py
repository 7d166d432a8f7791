"""Number words whose answer is known word by word: pairs of numbers that differ in one digit."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from tformer_book.kit.data.number_words import NumberWords, english_parts, german_parts
from tformer_lib.data import BOS, EOS, PAD
from tformer_lib.numbers import whole

# "seven thousand three hundred and forty seven" and the end token: all numbers of a grid have these places.
SLOTS = ("thousands", "“thousand”", "hundreds", "“hundred”", "“and”", "tens", "units", "end")
DIGITS = {  # of a number: its value, its place in English, its place in German, the begin token being 0
    "tens": (10, 5, 7),
    "units": (1, 6, 5),
}


BLANK = BOS  # in place of a word: no source has a begin token


@dataclass(frozen=True)
class NumberPairs:
    """Clean and corrupted numbers, word by word the same but for one digit, up to the word that is asked."""

    kind: str  # the digit that differs
    clean: list[int]
    corrupted: list[int]
    clean_source: Int[Tensor, "B S"]
    corrupted_source: Int[Tensor, "B S"]
    target: Int[Tensor, "B T"]  # the German words before the one that is asked, the same in both
    right: Int[Tensor, " B"]  # the clean number's next word
    wrong: Int[Tensor, " B"]  # the corrupted number's

    def swapped(self) -> "NumberPairs":
        """The same pairs with the two numbers in each other's role."""
        return NumberPairs(
            self.kind,
            self.corrupted,
            self.clean,
            self.corrupted_source,
            self.clean_source,
            self.target,
            self.wrong,
            self.right,
        )

    def difference(self, logits: Tensor) -> Tensor:
        """logit(clean word) - logit(corrupted word) at the last place: (B, T, vocab) -> (B,)."""
        rows = torch.arange(len(self.right))
        return logits[rows, -1, self.right] - logits[rows, -1, self.wrong]


def with_end(source: Int[Tensor, "B S"]) -> Int[Tensor, "B S1"]:
    """The end token behind the last word of each row."""
    lengths = (source != PAD).sum(dim=1, keepdim=True)
    longer = torch.cat([source, torch.full_like(source[:, :1], PAD)], dim=1)
    return longer.scatter(1, lengths, EOS)


def number_batches(
    data: NumberWords, steps: int, batch: int, seed: int = 0, *, blanks: float = 0.0
) -> Iterator[tuple[Tensor, Tensor]]:
    """`NumberWords.batches` with an end token behind each source, and a share of its words blanked out."""
    generator = torch.Generator().manual_seed(seed)
    for source, target in data.batches(steps, batch, seed):
        longer = with_end(source)
        if blanks:
            hit = (torch.rand(longer.shape, generator=generator) < blanks) & (longer > EOS)
            longer = longer.masked_fill(hit, BLANK)
        yield longer, target


def full_numbers(numbers: Iterable[int]) -> list[int]:
    """Those of four digits without 0 and with tens from twenty on: they have all of `SLOTS`."""
    return [n for n in numbers if n > 1000 and n // 100 % 10 and n // 10 % 10 > 1 and n % 10]


def number_pairs(
    data: NumberWords, kind: str, numbers: Iterable[int], seed: int = 0, *, blank: bool = False
) -> NumberPairs:
    """Each of these numbers, and one that differs in its tens or its units; which one is drawn.

    With `blank` the corrupted source has no word in that place; what the drawn number would say is still
    the wrong answer.

    Args:
        data: the vocabularies.
        kind: "tens" or "units".
        numbers: clean ones, all `full_numbers`.
        seed: of the draw.

    Raises:
        ValueError: if the kind is unknown, or a number is not full, or there is none.
    """
    if kind not in DIGITS:
        raise ValueError(f"pairs differ in {' or '.join(DIGITS)}, got {kind!r}")
    clean = [whole("a number", n) for n in numbers]
    if not clean or len(full_numbers(clean)) != len(clean):
        raise ValueError("pairs are made of numbers such as 7347: four digits, none 0, tens from 20 on")
    value, place, asked = DIGITS[kind]
    generator = torch.Generator().manual_seed(seed)
    corrupted = []
    for n in clean:
        digit = n // value % 10
        others = [d for d in range(2 if kind == "tens" else 1, 10) if d != digit]
        drawn = others[int(torch.randint(len(others), (), generator=generator))]
        corrupted.append(n + (drawn - digit) * value)
    (first, target), (second, other) = data.encode(clean), data.encode(corrupted)
    corrupted_source = with_end(second)
    if blank:
        corrupted_source[:, place] = BLANK
    return NumberPairs(
        kind=kind,
        clean=clean,
        corrupted=corrupted,
        clean_source=with_end(first),
        corrupted_source=corrupted_source,
        target=target[:, :asked],
        right=target[:, asked],
        wrong=other[:, asked],
    )


def words_read(number: int) -> list[str]:
    """The English words and the end."""
    return [*english_parts(number), "end"]


def words_written(number: int) -> list[str]:
    """The German parts, as the decoder reads them: behind the beginning."""
    return ["begin", *german_parts(number)]
