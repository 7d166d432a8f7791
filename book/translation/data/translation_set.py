"""A set of translations: three parts, one vocabulary for both languages, batches and statistics."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from jaxtyping import Int
from torch import Tensor

from tformer_lib.data import BOS, EOS, PAD
from tformer_lib.data.buckets import BucketedBatches, padded, padding_share
from tformer_lib.data.pairs import Pair
from tformer_lib.tokenizers import BPETokenizer
from tformer_lib.tokenizers.specials import token_numbers

SPECIAL = ("[PAD]", "[BOS]", "[EOS]")
PARTS = ("train", "validation", "test")


@dataclass
class TranslationSet:
    """Pairs to train on, to choose by and to test on, and one byte-pair vocabulary for both languages.

    The vocabulary is learnt from the training part, both sides of it. Its first numbers are padding, begin
    and end: `pad_id` 0, `bos_id` 1, `eos_id` 2, as everywhere in this package.

    Args:
        train: (English, other), trained on.
        validation: for choices made while training.
        test: for the last measure.
        vocab_size: the most tokens of the vocabulary, 256 bytes and three special tokens among them.

    Raises:
        ValueError: if there is nothing to train on, or `vocab_size` is too small.
    """

    train: list[Pair] = field(repr=False)
    validation: list[Pair] = field(repr=False)
    test: list[Pair] = field(repr=False)
    vocab_size: int = 2_000
    pad_id: ClassVar[int] = PAD
    bos_id: ClassVar[int] = BOS
    eos_id: ClassVar[int] = EOS

    def __post_init__(self) -> None:
        if not self.train:
            raise ValueError("there are no pairs to train on")
        text = "\n".join(side for pair in self.train for side in pair)
        learnt = BPETokenizer.train(text, self.vocab_size, SPECIAL)
        self.tokenizer = BPETokenizer(
            learnt.merges, SPECIAL, merge_counts=learnt.merge_counts, specials_first=True
        )
        self.vocab_size = self.tokenizer.vocab_size
        self._rows = self.token_rows(self.train)

    def token_rows(self, pairs: Iterable[Pair]) -> tuple[list[list[int]], list[list[int]]]:
        """(sources, targets) as lists of tokens: text [EOS], and [BOS] text [EOS]."""
        encode = self.tokenizer.encode
        rows = [([*encode(one), self.eos_id], [self.bos_id, *encode(two), self.eos_id]) for one, two in pairs]
        return [source for source, _ in rows], [target for _, target in rows]

    def encode(self, pairs: Sequence[Pair]) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B T"]]:
        """(source, target): English [EOS], and [BOS] translation [EOS]; padded at the end.

        Raises:
            ValueError: if there are no pairs.
        """
        if not pairs:
            raise ValueError("there are no pairs to encode")
        sources, targets = self.token_rows(pairs)
        return padded(sources, self.pad_id), padded(targets, self.pad_id)

    def decode(self, ids: Iterable[int] | Tensor) -> str:
        """The text of one row up to its [EOS], without special tokens."""
        kept: list[int] = []
        for number in token_numbers(ids, self.vocab_size):
            if number == self.eos_id:
                break
            if number not in (self.pad_id, self.bos_id):
                kept.append(number)
        return self.tokenizer.decode(kept)

    def batches(
        self, steps: int, *, tokens: int = 1_500, seed: int = 0, bucketed: bool = True
    ) -> BucketedBatches:
        """`steps` batches (source, target) of training pairs of like length; see `BucketedBatches`."""
        sources, targets = self._rows
        return BucketedBatches(
            sources, targets, steps=steps, tokens=tokens, bucketed=bucketed, pad_id=self.pad_id, seed=seed
        )

    def samples(self, n: int, seed: int = 0, part: str = "test") -> list[Pair]:
        """`n` pairs of a part, drawn at random, not picked.

        Raises:
            ValueError: if there is no such part, or if it has fewer pairs.
        """
        pairs = self.part(part)
        if not 1 <= n <= len(pairs):
            raise ValueError(
                f"the {part} part has {len(pairs)} pairs: n must lie between 1 and that, got {n}"
            )
        return random.Random(seed).sample(pairs, n)

    def part(self, name: str) -> list[Pair]:
        """The pairs of the part "train", "validation" or "test".

        Raises:
            ValueError: if there is no such part.
        """
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        if name not in parts:
            raise ValueError(f"the parts are {', '.join(map(repr, parts))}, got {name!r}")
        return parts[name]

    def statistics(self, *, tokens: int = 1_500) -> dict[str, int | float]:
        """Numbers of pairs, lengths, distinct words, and the share of padding in an epoch's batches.

        Lengths and words are of the training part; tokens count without [BOS] and [EOS], and words are what
        stands between spaces.

        Args:
            tokens: the greatest number of places in a batch's target.
        """
        numbers: dict[str, int | float] = {f"pairs, {name}": len(self.part(name)) for name in PARTS}
        for side, (language, added) in enumerate((("English", 1), ("other", 2))):
            words = [pair[side].split() for pair in self.train]
            for unit, lengths in (
                ("words", [len(row) for row in words]),
                ("tokens", [len(row) - added for row in self._rows[side]]),
            ):
                numbers[f"{language}: mean {unit}"] = sum(lengths) / len(lengths)
                numbers[f"{language}: most {unit}"] = max(lengths)
            numbers[f"{language}: distinct words"] = len({word for row in words for word in row})
        numbers["vocabulary"] = self.vocab_size
        for name, bucketed in (("padding, in buckets", True), ("padding, without", False)):
            steps = self.batches(1, tokens=tokens, bucketed=bucketed).steps_per_epoch
            numbers[name] = padding_share(self.batches(steps, tokens=tokens, bucketed=bucketed), self.pad_id)
        return numbers
