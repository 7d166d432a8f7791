"""Byte-pair encoding on bytes: the tokenizer of GPT-2, trained here from scratch.

A text is a sequence of bytes, and any byte is a token, so that no text is unknown. Then the most
frequent pair of neighbouring tokens becomes a token, and the most frequent pair of what that gives, and
so on: common words end as one token, rare ones as a few.
"""

import os
from collections import Counter
from collections.abc import Iterable, Sequence

from torch import Tensor

from tformer_lib.numbers import whole
from tformer_lib.tokenizers.merging import apply_merges, learn_merges
from tformer_lib.tokenizers.pretokenise import BYTES, CUTS, from_visible, utf8, visible
from tformer_lib.tokenizers.specials import WordMemory, check_specials, split_specials, token_numbers
from tformer_lib.tokenizers.storage import load_json, save_json

KIND = "byte-pair tokenizer"


class BPETokenizer:
    """Bytes, then merges: encoding applies the merges in the order in which they were learnt.

    Numbers 0 to 255 are the bytes in GPT-2's order (`pretokenise.BYTES`: those that can be seen first),
    then come the tokens of the merges in their order, and the special tokens last. These are GPT-2's
    own numbers, and those of the library `tokenizers`. Published vocabularies are of this kind with
    differences, for which the last three arguments are there.

    Args:
        merges: pairs of tokens, in the order in which they are merged.
        special_tokens: names of tokens that stand for no bytes; they take part in no merge.
        merge_counts: how often each pair occurred when it was merged; empty if that is not known.
        cut: how a text is cut into words, across which nothing merges: one of `pretokenise.CUTS`.
        specials_first: whether the special tokens have the first numbers and not the last.
        left_out: bytes that are no tokens, because the text of the training did not have them.

    Raises:
        ValueError: if a merge is of tokens that do not exist yet or stands there twice, if there are not
            as many counts as merges, if a special token is empty or stands there twice, if there is no such
            cut, or if a byte is left out twice.

    Source:
        Sennrich, Haddow and Birch 2016; on bytes: Radford et al. 2019, section 2.2.
    """

    def __init__(
        self,
        merges: Iterable[tuple[bytes, bytes]],
        special_tokens: Sequence[str] = (),
        *,
        merge_counts: Iterable[int] = (),
        cut: str = "gpt2",
        specials_first: bool = False,
        left_out: bytes = b"",
    ):
        if cut not in CUTS:
            raise ValueError(f"cut must be one of {', '.join(map(repr, CUTS))}, got {cut!r}")
        if len(set(left_out)) < len(left_out):
            raise ValueError(f"a byte is left out twice: {left_out!r}")
        self.cut, self.specials_first, self.left_out = cut, specials_first, bytes(left_out)
        names = check_specials(special_tokens)
        first = len(names) if specials_first else 0
        self.merges = [(left, right) for left, right in merges]
        self.merge_counts = list(merge_counts)
        if self.merge_counts and len(self.merge_counts) != len(self.merges):
            raise ValueError(f"{len(self.merge_counts)} counts for {len(self.merges)} merges")
        kept = [bytes([byte]) for byte in BYTES if byte not in self.left_out]
        self.vocab: dict[bytes, int] = {byte: number for number, byte in enumerate(kept, first)}
        self._ranks: dict[tuple[int, int], tuple[int, int]] = {}
        for rank, (left, right) in enumerate(self.merges):
            for token in (left, right):
                if token not in self.vocab:
                    raise ValueError(f"merge {rank} is of {token!r}, which is no token by then")
            pair = self.vocab[left], self.vocab[right]
            if pair in self._ranks:
                raise ValueError(f"merge {rank}, of {left!r} and {right!r}, stands there twice")
            self._ranks[pair] = rank, self.vocab.setdefault(left + right, first + len(self.vocab))
        start = 0 if specials_first else len(self.vocab)
        self.special_tokens = {name: number for number, name in enumerate(names, start)}
        special_bytes = [utf8(name) for name in names]
        self._bytes = [*special_bytes, *self.vocab] if specials_first else [*self.vocab, *special_bytes]
        self._words = WordMemory(self._encode_word)

    @classmethod
    def train(
        cls, text: str, vocab_size: int, special_tokens: Sequence[str] = (), *, cut: str = "gpt2"
    ) -> "BPETokenizer":
        """Learn merges from a text until there are `vocab_size` tokens, bytes and special tokens included.

        A text whose words are all one token each has no pair left; then there are fewer. The name of a
        special token in the text is ordinary text.

        Raises:
            ValueError: if `vocab_size` is less than 256 plus the number of special tokens, if the text is
                not Unicode (see `encode`), if a special token is empty or stands there twice, or if there
                is no such `cut`.
        """
        cls((), cut=cut)  # says what is wrong with the cut
        names = check_specials(special_tokens)
        if whole("vocab_size", vocab_size) < len(BYTES) + len(names):
            least = f"256 bytes and {len(names)} special tokens make {256 + len(names)}"
            raise ValueError(f"vocab_size is too small: {least}, got {vocab_size}")
        utf8(text)  # says where a text is not Unicode
        count = Counter(CUTS[cut](text))
        number = {byte: i for i, byte in enumerate(BYTES)}
        words = [[number[byte] for byte in word.encode("utf8")] for word in count]
        tokens = [bytes([byte]) for byte in BYTES]
        learnt = [
            (tokens[merge.left], tokens[merge.right], merge.times)
            for merge in learn_merges(
                words, list(count.values()), tokens, lambda left, right: left + right, vocab_size - len(names)
            )
        ]
        counts = [count for *_, count in learnt]
        return cls([(left, right) for left, right, _ in learnt], names, merge_counts=counts, cut=cut)

    @classmethod
    def from_gpt2(cls, vocab: dict[str, int], merges: str | Iterable[str | Sequence[str]]) -> "BPETokenizer":
        """The tokenizer of GPT-2's published files.

        Args:
            vocab: what `encoder.json` holds: a token, in visible characters, and its number.
            merges: the text of `vocab.bpe`, or its merges, each "left right" or (left, right).

        Raises:
            ValueError: if a merge cannot be read, or if the numbers in `vocab` are not bytes, merges and
                special tokens in this order.
        """
        lines = merges.splitlines() if isinstance(merges, str) else merges
        pairs = [line.split(" ") if isinstance(line, str) else line for line in lines]
        pairs = [pair for pair in pairs if list(pair) != [""] and pair[0] != "#version:"]
        for pair in pairs:
            if len(pair) != 2:
                raise ValueError(f"a merge is of two tokens, got {' '.join(pair)!r}")
        learnt = [(from_visible(left), from_visible(right)) for left, right in pairs]
        made = set(map(visible, cls(learnt).vocab))
        tokenizer = cls(learnt, sorted((name for name in vocab if name not in made), key=vocab.__getitem__))
        ours = {visible(token): i for token, i in tokenizer.vocab.items()} | tokenizer.special_tokens
        wrong = [token for token in ours if vocab.get(token) != ours[token]]
        if wrong:
            has = f"{vocab.get(wrong[0])} in the vocabulary and {ours[wrong[0]]} by the merges"
            raise ValueError(f"vocabulary and merges do not belong together: {wrong[0]!r} is {has}")
        return tokenizer

    @property
    def vocab_size(self) -> int:
        """The number of tokens, special ones included."""
        return len(self._bytes)

    def token_bytes(self, number: int) -> bytes:
        """The bytes of a token; of a special token those of its name.

        Raises:
            ValueError: if there is no token with this number.
        """
        if not 0 <= number < self.vocab_size:
            raise ValueError(f"there is no token {number}: they are numbered 0 to {self.vocab_size - 1}")
        return self._bytes[number]

    def encode(self, text: str, allow_special: Iterable[str] = ()) -> list[int]:
        """The text's tokens; `decode` gives the text back.

        Args:
            text: any Unicode text.
            allow_special: the special tokens that the text may contain. A name that is not given here is
                text like any other, so that nobody can forge an end of text by writing it.

        Raises:
            ValueError: if `allow_special` names an unknown token, if the text has a lone surrogate, or if it
                has a byte that is no token (see `left_out`), which other libraries drop without a word.
        """
        ids: list[int] = []
        for piece, special in split_specials(text, allow_special, self.special_tokens):
            if special:
                ids.append(self.special_tokens[piece])
                continue
            for word in CUTS[self.cut](piece):
                ids += self._words[word]
        return ids

    def _encode_word(self, word: str) -> list[int]:
        """A word's bytes, merged."""
        for character in word if self.left_out else ():
            if set(character.encode("utf8")) & set(self.left_out):
                raise ValueError(f"{character!r} has a byte that is no token of this vocabulary")
        return apply_merges([self.vocab[bytes([byte])] for byte in word.encode("utf8")], self._ranks)

    def decode(self, ids: Iterable[int] | Tensor) -> str:
        """The text of the tokens; special tokens as their names.

        A list that begins or ends inside a character (a token can be part of one) shows the replacement
        character U+FFFD there.

        Raises:
            ValueError: if there is no token with one of the numbers.
            TypeError: if one is no whole number.
        """
        return b"".join(map(self.token_bytes, token_numbers(ids, self.vocab_size))).decode(
            "utf8", errors="replace"
        )

    def truncate(self, vocab_size: int) -> "BPETokenizer":
        """The tokenizer that training would have given with this smaller `vocab_size`, without the training.

        Raises:
            ValueError: if `vocab_size` is less than 256 plus the special tokens, or more than there are.
        """
        least = len(BYTES) - len(self.left_out) + len(self.special_tokens)
        if not least <= whole("vocab_size", vocab_size) <= self.vocab_size:
            raise ValueError(f"vocab_size must lie between {least} and {self.vocab_size}, got {vocab_size}")
        kept, tokens = 0, set[bytes]()
        size = vocab_size - least
        while len(tokens) < size:
            tokens.add(b"".join(self.merges[kept]))
            kept += 1
        return type(self)(
            self.merges[:kept],
            tuple(self.special_tokens),
            merge_counts=self.merge_counts[:kept],
            cut=self.cut,
            specials_first=self.specials_first,
            left_out=self.left_out,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write merges, their counts and the special tokens to one JSON file, in one step."""
        merges = [f"{visible(left)} {visible(right)}" for left, right in self.merges]
        content = {
            "special_tokens": list(self.special_tokens),
            "merges": merges,
            "merge_counts": self.merge_counts,
            "cut": self.cut,
            "specials_first": self.specials_first,
            "left_out": visible(self.left_out),
        }
        save_json(path, KIND, content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "BPETokenizer":
        """The tokenizer that `save` wrote.

        Raises:
            ValueError: if the file is not one; the message says what is wrong with it.
        """
        content = load_json(
            path,
            KIND,
            {"special_tokens": list[str], "merges": list[str], "merge_counts": list[int]},
            {"cut": "gpt2", "specials_first": False, "left_out": ""},
        )
        try:
            merges = []
            for written in content["merges"]:
                if written.count(" ") != 1:
                    raise ValueError(f"a merge is two tokens with a space between, got {written!r}")
                left, right = written.split(" ")
                merges.append((from_visible(left), from_visible(right)))
            return cls(
                merges,
                content["special_tokens"],
                merge_counts=content["merge_counts"],
                cut=content["cut"],
                specials_first=content["specials_first"],
                left_out=from_visible(content["left_out"]),
            )
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BPETokenizer):
            return NotImplemented
        ours = self.merges, self._bytes, self.special_tokens, self.cut
        return ours == (other.merges, other._bytes, other.special_tokens, other.cut)

    __hash__ = None  # type: ignore[assignment]
