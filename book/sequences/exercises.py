"""The code exercises of the chapter on sequence modelling, with the mistakes that readers make in them.

Matrices are in the text's layout: a token is a column.
"""

import math
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise

# The most frequent pair


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


def _pair_counts(words: dict[tuple[str, ...], int]) -> Counter:
    counts: Counter = Counter()
    for tokens, times in words.items():
        counts.update(pair for pair in pairwise(tokens) for _ in range(times))
    return counts


most_frequent_pair.mistake(
    "word counts ignored",
    "You count each different word once. A word that occurs ten times has its pairs ten times.",
    lambda words: most_frequent_pair(dict.fromkeys(words, 1)),
)


def _pair_with_ends(words: dict[tuple[str, ...], int]) -> tuple[str, str]:
    counts = _pair_counts(words)
    for (left, times), (right, _) in pairwise(words.items()):
        counts[left[-1], right[0]] += times
    return min(counts, key=lambda pair: (-counts[pair], pair))


most_frequent_pair.mistake(
    "pairs across words",
    "You count pairs across the ends of words. The words stand in no order here: a pair lies within one "
    "word.",
    _pair_with_ends,
)


def _pair_once_a_word(words: dict[tuple[str, ...], int]) -> tuple[str, str]:
    counts: Counter = Counter()
    for tokens, times in words.items():
        counts.update(dict.fromkeys(pairwise(tokens), times))
    return min(counts, key=lambda pair: (-counts[pair], pair))


most_frequent_pair.mistake(
    "a pair once in each word",
    "You count a pair once for each word that has it. In a b a b the pair (a, b) stands twice.",
    _pair_once_a_word,
)


def _pair_without_overlap(words: dict[tuple[str, ...], int]) -> tuple[str, str]:
    counts: Counter = Counter()
    for tokens, times in words.items():
        last: dict[tuple, int] = {}  # where each pair was counted last
        for n, pair in enumerate(pairwise(tokens)):
            if last.get(pair) != n - 1:
                counts[pair] += times
                last[pair] = n
    return min(counts, key=lambda pair: (-counts[pair], pair))


most_frequent_pair.mistake(
    "overlapping pairs counted once",
    "In a a a you count (a, a) once. It stands in two places, and both count, although only one of them can "
    "be merged.",
    _pair_without_overlap,
)

most_frequent_pair.mistake(
    "ties the wrong way",
    "Right except where pairs are equally frequent: of these take the first in alphabetical order, so that "
    "training twice gives the same merges.",
    lambda words: max((counts := _pair_counts(words)), key=lambda pair: (counts[pair], pair)),
)

most_frequent_pair.mistake(
    "the first pair met",
    "Right except where pairs are equally frequent: you return the one met first. Compare the pairs "
    "themselves too, and take the first in alphabetical order.",
    lambda words: max((counts := _pair_counts(words)), key=counts.__getitem__),
)

most_frequent_pair.mistake(
    "ties by the joined text",
    "Right except where pairs are equally frequent: you compare their joined texts. Compare the pairs, "
    "first token by first token: (a, z) comes before (ab, a).",
    lambda words: min((counts := _pair_counts(words)), key=lambda pair: (-counts[pair], "".join(pair))),
)

most_frequent_pair.mistake(
    "most frequent token",
    "This is the most frequent token. What is merged is a pair of neighbours.",
    lambda words: min(
        (counts := Counter(token for word, times in words.items() for token in word * times)),
        key=lambda token: (-counts[token], token),
    ),
)

most_frequent_pair.mistake(
    "count instead of pair",
    "You return how often the pair occurs. Return the pair itself.",
    lambda words: max(_pair_counts(words).values()),
)

# Merging a pair


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


merge_pair.mistake(
    "second half kept",
    "After a merge the second token of the pair is still there: step over both.",
    lambda tokens, pair: [
        "".join(pair) if tuple(tokens[n : n + 2]) == pair else token for n, token in enumerate(tokens)
    ],
)


def _merge_first(tokens: list[str], pair: tuple[str, str]) -> list[str]:
    for n, neighbours in enumerate(pairwise(tokens)):
        if neighbours == pair:
            return [*tokens[:n], "".join(pair), *tokens[n + 2 :]]
    return list(tokens)


merge_pair.mistake(
    "only the first place",
    "Only the first occurrence is merged. Go on to the end of the list.",
    _merge_first,
)


def _merge_from_right(tokens: list[str], pair: tuple[str, str]) -> list[str]:
    merged = list(tokens)
    n = len(merged) - 2
    while n >= 0:
        if tuple(merged[n : n + 2]) == pair:
            merged[n : n + 2] = ["".join(pair)]
            n -= 1
        n -= 1
    return merged


merge_pair.mistake(
    "from the right",
    "Where a token repeats, as in a a a, you merge from the right. Go from left to right.",
    _merge_from_right,
)


def _merge_drops_last(tokens: list[str], pair: tuple[str, str]) -> list[str]:
    merged = merge_pair(tokens, pair)
    return merged[:-1] if merged and merged[-1] == tokens[-1] else merged


merge_pair.mistake(
    "last token lost",
    "The last token is lost where no pair ends the list: one without a right neighbour stays.",
    _merge_drops_last,
)


def _merge_by_joined_text(tokens: list[str], pair: tuple[str, str]) -> list[str]:
    merged: list[str] = []
    n = 0
    while n < len(tokens):
        joined = n + 1 < len(tokens) and tokens[n] + tokens[n + 1] == "".join(pair)
        merged.append("".join(pair) if joined else tokens[n])
        n += 2 if joined else 1
    return merged


merge_pair.mistake(
    "joined texts compared",
    "You compare joined texts, for which (ab, c) is the same as (a, bc). They are different pairs: compare "
    "token by token.",
    _merge_by_joined_text,
)

merge_pair.mistake(
    "text instead of tokens",
    "You replace in joined text, where the border between two tokens can match the inside of others. "
    "Compare token by token.",
    lambda tokens, pair: " ".join(tokens).replace(" ".join(pair), "".join(pair)).split(),
)

# Patches


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


def _patches_in_order(*order: int) -> Callable[[Tensor, int], Tensor]:
    """Patches with the four axes (block row, row within, block column, column within) in another order."""
    return lambda image, size: (
        image.reshape(len(image) // size, size, -1, size).permute(*order).reshape(size * size, -1)
    )


patch_columns.mistake(
    "patches in rows",
    "Your patches are the rows. In the text's layout a token is a column: D x N.",
    lambda image, size: patch_columns(image, size).T,
)

patch_columns.mistake(
    "a single reshape",
    "A reshape alone cuts the image's memory into equal runs, and these are no squares: split height and "
    "width first, then bring the two axes within a patch together.",
    lambda image, size: image.reshape(-1, size * size).T,
)

patch_columns.mistake(
    "a single reshape, not transposed",
    "A reshape alone moves no number, so it cannot cut squares: split height and width into (which patch, "
    "where within it), and bring the two axes within a patch to the front.",
    lambda image, size: image.reshape(size * size, -1),
)

patch_columns.mistake(
    "patches column by column",
    "The patches are right, their order is not: number them as one reads, row by row.",
    _patches_in_order(1, 3, 2, 0),
)

patch_columns.mistake(
    "pixels of a patch column by column",
    "Each patch has its pixels column by column. Flatten it row by row.",
    _patches_in_order(3, 1, 0, 2),
)

patch_columns.mistake(
    "everything column by column",
    "You read patches, and the pixels within them, column by column. Both go row by row.",
    _patches_in_order(3, 1, 2, 0),
)

patch_columns.mistake(
    "pixels that lie apart",
    "Your patches are made of pixels that lie apart. Split an axis into (which patch, where within it), in "
    "this order: height // size first, then size.",
    lambda image, size: (
        image.reshape(size, len(image) // size, size, -1).permute(0, 2, 1, 3).reshape(size * size, -1)
    ),
)

# Bits per character


@exercise(
    "sequences.bits_per_character",
    inputs=lambda g: [(1.0, 10, 10), (3.2, 250, 1000), (0.0, 5, 5), (8.5, 1200, 5000), (2.0, 40, 10)],
)
def bits_per_character(nll: float, tokens: int, characters: int) -> float:
    """Bits per character of a text of so many tokens and characters, from its loss in nats per token."""
    return nll * tokens / (math.log(2) * characters)


bits_per_character.mistake(
    "nats for bits",
    "These are nats. A bit is ln 2 nats: divide by it.",
    lambda nll, tokens, characters: nll * tokens / characters,
)

bits_per_character.mistake(
    "bits per token",
    "These are bits per token. A token of several characters may cost more: count the bits of the whole "
    "text, then divide by its characters.",
    lambda nll, tokens, characters: nll / math.log(2),
)

bits_per_character.mistake(
    "one token's bits for the whole text",
    "You share the bits of one token among all characters. The text has `tokens` of them: multiply first.",
    lambda nll, tokens, characters: nll / (math.log(2) * characters),
)

bits_per_character.mistake(
    "tokens and characters exchanged",
    "Tokens and characters are exchanged: there are tokens times nll nats in all, shared among the "
    "characters.",
    lambda nll, tokens, characters: nll * characters / (math.log(2) * tokens),
)

bits_per_character.mistake(
    "multiplied by ln 2",
    "You multiply by ln 2. A bit is smaller than a nat (0.69 of one), so there are more of them: divide.",
    lambda nll, tokens, characters: nll * math.log(2) * tokens / characters,
)

bits_per_character.mistake(
    "perplexity",
    "This is a perplexity, the exponential of the cross-entropy. Bits are its logarithm, base 2.",
    lambda nll, tokens, characters: math.exp(nll * tokens / characters),
)

# A bigram mixed with a unigram


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


def _unigram(ids: Tensor, vocab: int) -> Tensor:
    return torch.bincount(ids, minlength=vocab)[:, None] / len(ids)


def _pair_table(ids: Tensor, vocab: int) -> Tensor:
    """How often each token (down) follows each (across)."""
    flat = torch.bincount(ids[1:] * vocab + ids[:-1], minlength=vocab**2)
    return flat.view(vocab, vocab).float()


def _mixture(bigram: Callable, unigram: Callable = _unigram) -> Callable[[Tensor, int, float], Tensor]:
    """A mixture with another bigram, made of counts and unigram, or another unigram."""

    def variant(ids: Tensor, vocab: int, weight: float) -> Tensor:
        single = unigram(ids, vocab)
        return weight * bigram(_pair_table(ids, vocab), _unigram(ids, vocab)) + (1 - weight) * single

    return variant


def _columns(counts: Tensor, unigram: Tensor) -> Tensor:
    return torch.where(counts.sum(dim=0) > 0, counts / counts.sum(dim=0), unigram)


interpolated_bigram.mistake(
    "rows instead of columns",
    "Your rows sum to one. The table has a column for each token that came before; the column is the "
    "distribution of what follows.",
    lambda ids, vocab, weight: interpolated_bigram(ids, vocab, weight).T,
)

interpolated_bigram.mistake(
    "a column of nothing",
    "Right wherever a token has been followed by another, NaN where it has not: its column of counts sums "
    "to zero. Let such a column be the unigram distribution.",
    _mixture(lambda counts, unigram: counts / counts.sum(dim=0)),
)

interpolated_bigram.mistake(
    "a column of nothing left at zero",
    "Where nothing has followed a token, your bigram is a column of zeros, and the mixture no longer sums "
    "to one. Let such a column be the unigram distribution.",
    _mixture(lambda counts, unigram: counts / counts.sum(dim=0).clamp(min=1)),
)

interpolated_bigram.mistake(
    "weights exchanged",
    "The weight belongs to the bigram, and what is left of it to the unigram.",
    lambda ids, vocab, weight: interpolated_bigram(ids, vocab, 1 - weight),
)

interpolated_bigram.mistake(
    "joint instead of conditional",
    "You divide by the number of all pairs, which gives the probability of the pair. Divide each column by "
    "its own sum: what follows, given what came before.",
    _mixture(lambda counts, unigram: counts / counts.sum()),
)

interpolated_bigram.mistake(
    "unigram across",
    "The unigram is added across the columns. What follows runs down: add it as a column, unigram[:, None].",
    _mixture(_columns, lambda ids, vocab: _unigram(ids, vocab).T),
)

interpolated_bigram.mistake(
    "uniform instead of unigram",
    "You mix with the uniform distribution. Frequent characters are a better guess: mix with the unigram.",
    _mixture(_columns, lambda ids, vocab: 1 / vocab),
)

interpolated_bigram.mistake(
    "unigram without the last token",
    "Your unigram counts the tokens that something follows. Count all of `ids`, the last one too.",
    lambda ids, vocab, weight: _mixture(
        lambda counts, _: _columns(counts, counts.sum(dim=0)[:, None] / counts.sum()),
        lambda ids, vocab: _unigram(ids[:-1], vocab),
    )(ids, vocab, weight),
)

interpolated_bigram.mistake(
    "unigram without the first token",
    "Your unigram counts the tokens that follow another. Count all of `ids`, the first one too.",
    lambda ids, vocab, weight: _mixture(
        lambda counts, _: _columns(counts, counts.sum(dim=1)[:, None] / counts.sum()),
        lambda ids, vocab: _unigram(ids[1:], vocab),
    )(ids, vocab, weight),
)

# One step of a GRU


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


def _gru_variant(step: Callable) -> Callable[..., Tensor]:
    """A step made of token, state, both gates and the candidate's matrix."""

    def variant(x: Tensor, h: Tensor, W_z: Tensor, W_r: Tensor, W: Tensor) -> Tensor:
        both = torch.cat((x, h))
        return step(x, h, torch.sigmoid(W_z @ both), torch.sigmoid(W_r @ both), W)

    return variant


gru_step.mistake(
    "update gate the wrong way",
    "Your update gate keeps the candidate where it should keep the old state: at z = 1 the state stays as "
    "it was.",
    _gru_variant(lambda x, h, z, r, W: (1 - z) * h + z * torch.tanh(W @ torch.cat((x, r * h)))),
)

gru_step.mistake(
    "reset gate forgotten",
    "The reset gate does nothing. It multiplies the old state where the candidate reads it.",
    _gru_variant(lambda x, h, z, r, W: z * h + (1 - z) * torch.tanh(W @ torch.cat((x, h)))),
)

gru_step.mistake(
    "candidate without tanh",
    "The candidate is not squashed: without its tanh a state can grow without bound.",
    _gru_variant(lambda x, h, z, r, W: z * h + (1 - z) * (W @ torch.cat((x, r * h)))),
)

gru_step.mistake(
    "reset gate on the whole input",
    "The reset gate multiplies the old state only; the token is read in full.",
    _gru_variant(lambda x, h, z, r, W: z * h + (1 - z) * torch.tanh(W @ torch.cat((r * x, r * h)))),
)

gru_step.mistake(
    "reset gate after the matrix",
    "This is PyTorch's variant, with the reset gate after the matrix. Here it multiplies the old state "
    "before the matrix sees it.",
    _gru_variant(
        lambda x, h, z, r, W: z * h + (1 - z) * torch.tanh(W[:, : len(x)] @ x + r * (W[:, len(x) :] @ h))
    ),
)

gru_step.mistake(
    "gates exchanged",
    "The two gates are exchanged: W_z makes the update gate, which mixes, and W_r the reset gate.",
    lambda x, h, W_z, W_r, W: gru_step(x, h, W_r, W_z, W),
)

gru_step.mistake(
    "old state forgotten",
    "You return the share of the candidate alone. The old state has the rest: add z * h.",
    _gru_variant(lambda x, h, z, r, W: (1 - z) * torch.tanh(W @ torch.cat((x, r * h)))),
)


def _gru_without_sigmoid(x: Tensor, h: Tensor, W_z: Tensor, W_r: Tensor, W: Tensor) -> Tensor:
    z, r = W_z @ torch.cat((x, h)), W_r @ torch.cat((x, h))
    return z * h + (1 - z) * torch.tanh(W @ torch.cat((x, r * h)))


gru_step.mistake(
    "gates without sigmoid",
    "Your gates are not between 0 and 1: each is the sigmoid of its matrix times [x; h].",
    _gru_without_sigmoid,
)


def _gru_state_first(x: Tensor, h: Tensor, W_z: Tensor, W_r: Tensor, W: Tensor) -> Tensor:
    both = torch.cat((h, x))
    z, r = torch.sigmoid(W_z @ both), torch.sigmoid(W_r @ both)
    return z * h + (1 - z) * torch.tanh(W @ torch.cat((r * h, x)))


gru_step.mistake(
    "state above the token",
    "You stack the old state above the token. In [x; h] the token comes first.",
    _gru_state_first,
)


def _gru_overflowing(x: Tensor, h: Tensor, W_z: Tensor, W_r: Tensor, W: Tensor) -> Tensor:
    z, r = ((m @ torch.cat((x, h))).exp() for m in (W_z, W_r))
    z, r = z / (1 + z), r / (1 + r)
    return z * h + (1 - z) * torch.tanh(W @ torch.cat((x, r * h)))


gru_step.mistake(
    "sigmoid that overflows",
    "Right for moderate numbers, NaN for large ones: e^a / (1 + e^a) becomes inf / inf. Use torch.sigmoid, "
    "or 1 / (1 + e^-a).",
    _gru_overflowing,
)
