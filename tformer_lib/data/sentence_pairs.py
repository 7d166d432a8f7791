"""Pairs of spans of text, [CLS] A [SEP] B [SEP], in which B follows A or does not (Devlin et al. 2019)."""

import random
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from tformer_lib.core.masks import padding_mask
from tformer_lib.data.sentence_spans import DOES_NOT, FOLLOWS, NEGATIVES, Documents, SentenceSpans
from tformer_lib.tokenizers import WordPieceTokenizer

Ids = Sequence[int]


def special(tokenizer: WordPieceTokenizer, name: str) -> int:
    """The number of a special token.

    Raises:
        ValueError: if the tokenizer has no such special token.
    """
    if name not in tokenizer.special_tokens:
        there = ", ".join(tokenizer.special_tokens)
        raise ValueError(f"this needs a tokenizer with {name}: its special tokens are {there}")
    return tokenizer.special_tokens[name]


def pack(
    first_ids: Ids, second_ids: Ids | None, tokenizer: WordPieceTokenizer, length: int
) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
    """(tokens, segments): [CLS] A [SEP] B [SEP] [PAD]..., with segments 0...0 0 0 1...1 1 0....

    What is too long loses tokens of the longer of the two, one by one (of B where they are equal): A at
    its front and B at its end, so that what meets at the first [SEP] stays. Without a second span,
    [CLS] A [SEP], A loses its end.

    Args:
        first_ids: the tokens of A, none of them special.
        second_ids: those of B, or None.
        tokenizer: for the numbers of [CLS], [SEP] and [PAD].
        length: the number N of places.

    Raises:
        ValueError: if a span is empty, or `length` leaves no place for a token of each, or the tokenizer
            lacks a special token.

    Source:
        Devlin et al. 2019, section 3.1 and appendix A.2.
    """
    tokens, segments = pack_lists(first_ids, second_ids, tokenizer, length)
    return torch.tensor(tokens), torch.tensor(segments)


def pack_lists(
    first: Ids, second: Ids | None, tokenizer: WordPieceTokenizer, length: int
) -> tuple[list[int], list[int]]:
    """As `pack`, as lists: many rows are faster made into one tensor together."""
    pad, cls, sep = (special(tokenizer, name) for name in ("[PAD]", "[CLS]", "[SEP]"))
    spans = 1 if second is None else 2
    room = length - spans - 1
    if room < spans:
        raise ValueError(f"a length of {length} leaves no place for {spans} spans and their marks")
    if not first or (second is not None and not second):
        raise ValueError("a span without tokens cannot be packed")
    if second is None:
        tokens = [cls, *first[:room], sep]
        segments = [0] * len(tokens)
    else:
        n_first, n_second = fitted(len(first), len(second), room)
        tokens = [cls, *first[len(first) - n_first :], sep, *second[:n_second], sep]
        segments = [0] * (n_first + 2) + [1] * (n_second + 1)
    rest = length - len(tokens)
    return tokens + [pad] * rest, segments + [0] * rest


def fitted(n_first: int, n_second: int, room: int) -> tuple[int, int]:
    """How much is left of two spans when the longer loses tokens until both fit into `room`."""
    if n_first + n_second <= room:
        return n_first, n_second
    if n_first <= room // 2:
        return n_first, room - n_first
    n_second = min(n_second, room // 2)
    return room - n_second, n_second


def next_sentence_pairs(
    documents: Documents,
    tokenizer: WordPieceTokenizer,
    *,
    count: int,
    length: int,
    seed: int = 0,
    negatives: str = NEGATIVES[0],
) -> tuple[Int[Tensor, "P N"], Int[Tensor, "P N"], Bool[Tensor, "P 1 1 N"], Int[Tensor, " P"]]:
    """(tokens, segments, mask, labels) of `count` pairs for measuring, half of each label, mixed.

    Args:
        documents: the sentences of each document.
        tokenizer: cuts them.
        count: the number P of pairs; of an odd number one more follows.
        length: the number N of places.
        seed: of what is drawn.
        negatives: the second span where the label is 1. "other document": it comes from another document,
            as in the paper, so that the topic tells. "same document": from elsewhere in the document of the
            first, so that the topic does not. "swapped": the two follow each other, and are exchanged, so
            that order alone tells; this is the task of ALBERT (Lan et al. 2020).

    Raises:
        ValueError: if there is no such kind, or `count` is below 2, or as `pack` and `SentenceSpans`.
    """
    if negatives not in NEGATIVES:
        raise ValueError(f"negatives is one of {', '.join(map(repr, NEGATIVES))}, got {negatives!r}")
    if count < 2:
        raise ValueError(f"half of the pairs follow and half do not: count is 2 or more, got {count}")
    spans = SentenceSpans(documents, tokenizer)
    chance = random.Random(seed)
    labels = [FOLLOWS] * (count - count // 2) + [DOES_NOT] * (count // 2)
    chance.shuffle(labels)
    pairs = [spans.pair(chance, label, length - 3, negatives) for label in labels]
    rows = [pack_lists(first, second, tokenizer, length) for first, second in pairs]
    tokens, segments = (torch.tensor(side) for side in zip(*rows, strict=True))
    return tokens, segments, padding_mask(tokens, special(tokenizer, "[PAD]")), torch.tensor(labels)
