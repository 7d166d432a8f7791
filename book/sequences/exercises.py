"""The code exercises of the chapter on sequence modelling, with the mistakes that readers make in them.

Matrices are in the text's layout: a token is a column.
"""

import math
from collections import Counter
from itertools import pairwise

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise


def _pair_inputs(g: torch.Generator) -> list[tuple]:
    def words(*counted: tuple[str, int]) -> tuple:
        return ({tuple(word.split()): times for word, times in counted},)

    return [
        words(("h u g", 10), ("p u g", 5), ("p u n", 12), ("b u n", 4), ("h u g s", 5)),
        words(("y z", 2), ("a b", 2)),  # a tie, and a small input
        words(("a b a b", 1), ("x y", 3), ("y", 9)),
        words(("a b", 2), ("c d", 2), ("z x", 1)),
        words(("b a", 2), ("a b", 2)),
        words(("h a", 1), ("h e", 1), ("h o", 1), ("q u", 2)),
        words(("a n", 4), ("n g", 4), ("g n", 3), ("g k", 5)),
        words(("a a a", 2), ("x y", 3)),  # a pair that overlaps itself
        words(("a b a b a b", 2), ("x y", 3)),  # three times in one word
        words(("a z", 2), ("ab a", 2)),  # a tie whose joined texts stand in another order
        words(("a bc", 2), ("ab c", 2), ("x y", 3)),  # two pairs with the same joined text
    ]


@exercise("sequences.most_frequent_pair", inputs=_pair_inputs)
def most_frequent_pair(words: dict[tuple[str, ...], int]) -> tuple[str, str]:
    """The most frequent pair of neighbours in {word: count}; of equals, the first in alphabetical order.

    A word is a tuple of tokens. Every place where the pair stands counts, overlapping ones too, and as often
    as the word does. Pairs are compared as tuples: ("a", "z") comes before ("ab", "a").
    """
    counts: Counter = Counter()
    for tokens, times in words.items():
        for pair in pairwise(tokens):
            counts[pair] += times
    return min(counts, key=lambda pair: (-counts[pair], pair))


most_frequent_pair.add_mistakes("""
word counts ignored | += times => += 1
    You count each different word once. A word that occurs ten times has its pairs ten times.
pairs across words
    | = Counter() => = Counter((a[-1], b[0]) for a, b in pairwise(words) for _ in range(words[a]))
    You count pairs across the ends of words. The words stand in no order here: a pair lies within one
    word.
a pair once in each word | pairwise(tokens) => set(pairwise(tokens))
    You count a pair once for each word that has it. In a b a b the pair (a, b) stands twice.
ties the wrong way
    | min => max
    | -counts => counts
    Right except where pairs are equally frequent: of these take the first in alphabetical order, so that
    training twice gives the same merges.
the first pair met | (-counts[pair], pair) => -counts[pair]
    Right except where pairs are equally frequent: you return the one met first. Compare the pairs
    themselves too, and take the first in alphabetical order.
""")


def _merge_inputs(g: torch.Generator) -> list[tuple]:
    return [
        (list("abracadabra"), ("a", "b")),
        (list("aaaaa"), ("a", "a")),
        (list("aaa"), ("a", "a")),
        (["th", "e", "n", "th", "e"], ("th", "e")),
        (["o", "th", "e", "th", "he", "r"], ("th", "e")),
        (["ab", "c", "a", "bc"], ("a", "bc")),  # two pairs with the same joined text
        (["b", "a", "b"], ("b", "a")),
        (["x", "y"], ("x", "y")),
        (["x"], ("x", "y")),
        ([], ("x", "y")),
        (["ba", "b"], ("a", "b")),
    ]


@exercise("sequences.merge_pair", inputs=_merge_inputs)
def merge_pair(tokens: list[str], pair: tuple[str, str]) -> list[str]:
    """The list of tokens with each occurrence of the pair joined into one, from left to right.

    A token is part of one merge at most. The list that was given stays as it is.
    """
    merged: list[str] = []
    n = 0
    while n < len(tokens):
        if tuple(tokens[n : n + 2]) == pair:
            merged.append(pair[0] + pair[1])
            n += 2
        else:
            merged.append(tokens[n])
            n += 1
    return merged


merge_pair.add_mistakes("""
second half kept | n += 2 => n += 1
    After a merge the second token of the pair is still there: step over both.
only the first place | n += 2 => return merged + tokens[n + 2 :]
    Only the first occurrence is merged. Go on to the end of the list.
text instead of tokens
    | => lambda tokens, pair: ' '.join(tokens).replace(' '.join(pair), ''.join(pair)).split()
    You replace in joined text, where the border between two tokens can match the inside of others.
    Compare token by token.
""")


def _image_inputs(g: torch.Generator) -> list[tuple]:
    return [
        (torch.randn(4, 4, generator=g), 2),
        (torch.randn(6, 9, generator=g), 3),
        (torch.arange(24.0).view(4, 6), 2),
        (torch.tensor([[1.0, 2.0], [3.0, 4.0]]), 1),
        (torch.tensor([[1.0, 2.0], [3.0, 4.0]]), 2),
        (torch.randn(6, 2, generator=g), 2),
        (torch.randn(3, 4, generator=g), 1),
    ]


@exercise("sequences.patch_columns", inputs=_image_inputs)
def patch_columns(image: Tensor, size: int) -> Tensor:
    """The square patches of a grey image, one in each column: (height, width) -> (size * size, patches).

    Patches stand in reading order, row by row, and so do the pixels within a patch. Both sides of the image
    are multiples of `size`.
    """
    height, width = image.shape
    blocks = image.reshape(height // size, size, width // size, size)
    return blocks.permute(1, 3, 0, 2).reshape(size * size, -1)


patch_columns.add_mistakes("""
patches in rows | (size * size, -1) => (size * size, -1).T
    Your patches are the rows. In the text's layout a token is a column: D x N.
a single reshape | => lambda image, size: image.reshape(-1, size * size).T
    A reshape alone cuts the image's memory into equal runs, and these are no squares: split height and
    width first, then bring the two axes within a patch together.
patches column by column | permute(1, 3, 0, 2) => permute(1, 3, 2, 0)
    The patches are right, their order is not: number them as one reads, row by row.
pixels of a patch column by column | permute(1, 3, 0, 2) => permute(3, 1, 0, 2)
    Each patch has its pixels column by column. Flatten it row by row.
""")


@exercise(
    "sequences.bits_per_character",
    inputs=lambda g: [(1.0, 10, 10), (3.2, 250, 1000), (0.0, 5, 5), (8.5, 1200, 5000), (2.0, 40, 10)],
)
def bits_per_character(nll: float, tokens: int, characters: int) -> float:
    """Bits per character of a text of so many tokens and characters, from its loss in nats per token."""
    return nll * tokens / (math.log(2) * characters)


bits_per_character.add_mistakes("""
nats for bits | math.log(2) * characters => characters
    These are nats. A bit is ln 2 nats: divide by it.
bits per token | nll * tokens / (math.log(2) * characters) => nll / math.log(2)
    These are bits per token. A token of several characters may cost more: count the bits of the whole
    text, then divide by its characters.
tokens and characters exchanged
    | nll * tokens / (math.log(2) * characters) => nll * characters / (math.log(2) * tokens)
    Tokens and characters are exchanged: there are tokens times nll nats in all, shared among the
    characters.
""")


def _bigram_inputs(g: torch.Generator) -> list[tuple]:
    def draw(n: int, vocab: int, weight: float) -> tuple:
        ids = torch.randint(vocab, (n,), generator=g)
        ids[:vocab] = torch.arange(vocab)  # each token occurs,
        ids[-1] = 0  # and the last one is not the only one of its kind
        return ids, vocab, weight

    return [
        draw(40, 4, 0.7),
        draw(30, 5, 0.5),
        draw(25, 3, 1.0),
        draw(20, 4, 0.0),
        (torch.tensor([1, 0, 0]), 2, 0.25),
        (torch.tensor([0, 1, 0, 1, 2]), 3, 0.6),  # nothing follows 2
        (torch.tensor([0, 1, 0, 0]), 4, 0.8),  # 2 and 3 never occur
        (torch.tensor([1]), 2, 0.9),  # nothing follows anything
    ]


@exercise("sequences.interpolated_bigram", inputs=_bigram_inputs)
def interpolated_bigram(ids: Tensor, vocab: int, weight: float) -> Tensor:
    """`weight` times the bigram's frequencies plus the rest times the unigram's: (vocab, vocab).

    Column s is the distribution of what follows token s, and sums to one. Where nothing ever follows s, its
    bigram is the unigram. The unigram counts all of `ids`, the first and the last one too.
    """
    counts = torch.zeros(vocab, vocab)
    for before, after in pairwise(ids.tolist()):
        counts[after, before] += 1
    unigram = torch.bincount(ids, minlength=vocab)[:, None] / len(ids)
    seen = counts.sum(dim=0)
    bigram = torch.where(seen > 0, counts / seen, unigram)
    return weight * bigram + (1 - weight) * unigram


interpolated_bigram.add_mistakes("""
rows instead of columns
    | return weight * bigram + (1 - weight) * unigram => return (weight * bigram + (1 - weight) * unigram).T
    Your rows sum to one. The table has a column for each token that came before; the column is the
    distribution of what follows.
a column of nothing | torch.where(seen > 0, counts / seen, unigram) => counts / seen
    Right wherever a token has been followed by another, NaN where it has not: its column of counts sums
    to zero. Let such a column be the unigram distribution.
a column of nothing left at zero | torch.where(seen > 0, counts / seen, unigram) => counts / seen.clamp(min=1)
    Where nothing has followed a token, your bigram is a column of zeros, and the mixture no longer sums
    to one. Let such a column be the unigram distribution.
weights exchanged | weight * bigram + (1 - weight) * unigram => (1 - weight) * bigram + weight * unigram
    The weight belongs to the bigram, and what is left of it to the unigram.
""")


def _gru_inputs(g: torch.Generator) -> list[tuple]:
    def draw(d: int, width: int, scale: float = 1.0) -> tuple:
        maps = [scale * torch.randn(width, d + width, generator=g) for _ in range(3)]
        return (torch.randn(d, generator=g), torch.randn(width, generator=g), *maps)

    # gates far beyond where exp overflows: the first number is kept, the second replaced
    shut = torch.tensor([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    sums = torch.tensor([[0.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    far = (torch.tensor([200.0]), torch.tensor([0.5, -1.0]), shut, shut.flip(0), sums)
    return [draw(3, 4), draw(1, 1), draw(2, 5), draw(4, 3, 3.0), draw(3, 3), far]


@exercise("sequences.gru_step", inputs=_gru_inputs)
def gru_step(x: Tensor, h: Tensor, W_z: Tensor, W_r: Tensor, W: Tensor) -> Tensor:
    """The new state z * h + (1 - z) * tanh(W [x; r * h]) of a GRU, from (D,), (H,) and three matrices.

    The matrices are (H, D + H), the new state is (H,). The gates are z = sigmoid(W_z [x; h]) and
    r = sigmoid(W_r [x; h]); there are no biases.
    """
    both = torch.cat((x, h))
    z, r = torch.sigmoid(W_z @ both), torch.sigmoid(W_r @ both)
    candidate = torch.tanh(W @ torch.cat((x, r * h)))
    return z * h + (1 - z) * candidate


gru_step.add_mistakes("""
update gate the wrong way | z * h + (1 - z) * candidate => (1 - z) * h + z * candidate
    Your update gate keeps the candidate where it should keep the old state: at z = 1 the state stays as
    it was.
reset gate forgotten | r * h => h
    The reset gate does nothing. It multiplies the old state where the candidate reads it.
reset gate on the whole input | torch.cat((x, r * h)) => torch.cat((r * x, r * h))
    The reset gate multiplies the old state only; the token is read in full.
reset gate after the matrix | W @ torch.cat((x, r * h)) => W[:, : len(x)] @ x + r * (W[:, len(x) :] @ h)
    This is PyTorch's variant, with the reset gate after the matrix. Here it multiplies the old state
    before the matrix sees it.
""")
