"""Labelled sentences as batches: one label a sentence, or one a word, which stands at its first WordPiece."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from tformer_lib.core.masks import padding_mask
from tformer_lib.core.tokens import IGNORED
from tformer_lib.tokenizers.wordpiece import WordPieceTokenizer


def encode_sentences(
    sentences: Sequence[str | Sequence[str]], tokenizer: WordPieceTokenizer, *, length: int | None = None
) -> tuple[Int[Tensor, "B N"], Bool[Tensor, "B 1 1 N"], Int[Tensor, "B N"]]:
    """Rows [CLS] pieces of the words [SEP] [PAD] ..., their mask, and where each word begins.

    `first[b, n]` is the number of the word of which the first piece stands at place n, and -1 where no word
    begins: at a later piece, at [CLS], [SEP] and padding. So from "playing house" cut into play ##ing house,
    first is -1, 0, -1, 1, -1. Whatever is known of words goes in at these places, and is read there.

    Args:
        sentences: each a string, cut into words at white space, or the words themselves.
        tokenizer: must have "[PAD]", "[CLS]" and "[SEP]".
        length: the greatest N, with [CLS] and [SEP]; a longer sentence loses its end and keeps its [SEP].
            N is no greater than the longest sentence needs.

    Returns:
        tokens (B, N), mask (B, 1, 1, N), which is True where there is no padding, and first (B, N).

    Raises:
        ValueError: if there are no sentences, if `length` has no room for a word, or if the tokenizer lacks
            one of the special tokens.
    """
    if not sentences:
        raise ValueError("there are no sentences")
    if length is not None and length < 3:
        raise ValueError(f"[CLS], a piece and [SEP] need a length of 3 or more, got {length}")
    special = tokenizer.special_tokens
    missing = [name for name in ("[PAD]", "[CLS]", "[SEP]") if name not in special]
    if missing:
        raise ValueError(f"the tokenizer has no special token {missing[0]!r}")
    rows, places = [], []
    for sentence in sentences:
        words = sentence.split() if isinstance(sentence, str) else sentence
        pieces = [tokenizer.encode(word) for word in words]
        row = [piece for word in pieces for piece in word]
        place = [-1 if i else number for number, word in enumerate(pieces) for i in range(len(word))]
        room = len(row) if length is None else length - 2
        rows.append([special["[CLS]"], *row[:room], special["[SEP]"]])
        places.append([-1, *place[:room], -1])
    n = max(map(len, rows))
    tokens = torch.tensor([row + [special["[PAD]"]] * (n - len(row)) for row in rows])
    first = torch.tensor([place + [-1] * (n - len(place)) for place in places])
    return tokens, padding_mask(tokens, special["[PAD]"]), first


def label_first_pieces(first: Int[Tensor, "B N"], tags: Sequence[Sequence[int]]) -> Int[Tensor, "B N"]:
    """labels[b, n] = tags[b][first[b, n]] where a word begins, and `IGNORED` elsewhere.

    Args:
        first: where words begin, from `encode_sentences`.
        tags: the number of each word's tag, sentence by sentence; those of words that were cut off are
            not used.

    Raises:
        ValueError: if there is not one list of tags a sentence, or one has fewer tags than words.
    """
    if len(tags) != len(first):
        raise ValueError(f"got {len(first)} sentences and tags for {len(tags)}")
    labels = torch.full_like(first, IGNORED)
    for row, (place, numbers) in enumerate(zip(first, tags, strict=True)):
        if place.max() >= len(numbers):
            raise ValueError(
                f"sentence {row} has a word {int(place.max())}, and its tags end at {len(numbers) - 1}"
            )
        begins = place >= 0
        labels[row, begins] = torch.tensor(numbers, dtype=labels.dtype)[place[begins]]
    return labels


class LabelledBatches:
    """`steps` batches (tokens, mask, labels), shuffled anew in each epoch; the same in each pass over them.

    Epochs follow each other without a gap, so that each batch has the same size, and a row is not seen for
    the (k + 1)-th time before every row has been seen k times. Places that are padding in every row of a
    batch are cut off it.

    Args:
        tokens: (R, N), all that is labelled.
        mask: (R, 1, 1, N), True where there is no padding.
        labels: (R,), one a sequence, or (R, N), one a token.
        batch: the number of rows in a batch.
        steps: the number of batches.
        seed: of the shuffling.

    Raises:
        ValueError: if shapes do not fit, or `batch` or `steps` is not positive.
    """

    def __init__(
        self,
        tokens: Int[Tensor, "R N"],
        mask: Bool[Tensor, "R 1 1 N"],
        labels: Int[Tensor, "..."],
        *,
        batch: int,
        steps: int,
        seed: int = 0,
    ):
        if labels.shape not in (tokens.shape, tokens.shape[:1]) or len(tokens) == 0:
            got = f"tokens {tuple(tokens.shape)} and labels {tuple(labels.shape)}"
            raise ValueError(f"there must be rows, with a label each or one a token: got {got}")
        if batch < 1 or steps < 1:
            raise ValueError(f"batch and steps must be positive, got {batch} and {steps}")
        self.tokens, self.mask, self.labels = tokens, mask, labels
        self.batch, self.steps, self.seed = batch, steps, seed

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        generator = torch.Generator().manual_seed(self.seed)
        rows = torch.empty(0, dtype=torch.int64)
        for _ in range(self.steps):
            while len(rows) < self.batch:
                rows = torch.cat((rows, torch.randperm(len(self.tokens), generator=generator)))
            now, rows = rows[: self.batch].to(self.tokens.device), rows[self.batch :]
            mask, labels = self.mask[now], self.labels[now]
            n = int(mask.sum(dim=-1).max())
            yield self.tokens[now, :n], mask[..., :n], labels[:, :n] if labels.ndim == 2 else labels
