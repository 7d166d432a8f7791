"""The loop that learns a vocabulary: again and again, the most frequent pair of neighbours becomes a token.

To count all pairs anew for each merge would take one pass over the text a merge. Here the counts are
kept, and a merge changes only the words that contain its pair.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

Pair = tuple[int, int]


class Merge(NamedTuple):
    """One merge: the numbers of the two tokens, the number of what they become, and how often they met."""

    left: int
    right: int
    new: int
    times: int


def learn_merges(
    words: list[list[int]], counts: list[int], tokens: list[Any], join: Callable[[Any, Any], Any], size: int
) -> Iterator[Merge]:
    """Merge the most frequent pair until there are `size` tokens or no pair is left; yields each merge.

    Among pairs of equal count the one with the smaller numbers comes first, the left number deciding
    before the right one (the order of the library `tokenizers`). `words` and `tokens` are changed in
    place: after each merge they are as it left them.

    Args:
        words: the different words of a text, each a list of token numbers.
        counts: how often each word occurs.
        tokens: the tokens so far; a new one is appended and its number is its place.
        join: what two tokens make together.
        size: the number of tokens at which to stop.

    Source:
        Sennrich, Haddow and Birch 2016, section 3.2. The heap that is put right only when a pair comes
        to its top is the device of the library's trainer.
    """
    numbers = {token: number for number, token in enumerate(tokens)}
    pairs: defaultdict[Pair, int] = defaultdict(int)  # pair -> how often it occurs
    where: defaultdict[Pair, set[int]] = defaultdict(set)  # pair -> the words that hold it, or once held it
    for w, word in enumerate(words):
        for pair in pairwise(word):
            pairs[pair] += counts[w]
            where[pair].add(w)
    heap = [(-count, pair) for pair, count in pairs.items()]
    heapq.heapify(heap)
    while heap and len(tokens) < size:
        negative, pair = heapq.heappop(heap)
        if -negative != pairs[pair]:  # the count has changed since the pair went in; after its merge it is 0
            if pairs[pair] > 0:
                heapq.heappush(heap, (-pairs[pair], pair))
            continue
        token = join(tokens[pair[0]], tokens[pair[1]])
        if token not in numbers:  # two pairs can spell the same token: (ab, c) and (a, bc)
            numbers[token] = len(tokens)
            tokens.append(token)
        new = numbers[token]
        changed: set[Pair] = set()
        for w in where.pop(pair):
            for neighbours, change in merge_in_word(words[w], pair, new):
                pairs[neighbours] += change * counts[w]
                if change > 0:
                    where[neighbours].add(w)
                    changed.add(neighbours)
        for neighbours in changed:
            if pairs[neighbours] > 0:
                heapq.heappush(heap, (-pairs[neighbours], neighbours))
        yield Merge(*pair, new, -negative)


def merge_in_word(word: list[int], pair: Pair, new: int) -> list[tuple[Pair, int]]:
    """Replace the pair by `new`, from left to right, in place; gives (pair, +1 or -1) for each change."""
    left, right = pair
    changes: list[tuple[Pair, int]] = []
    merged: list[int] = []
    i = 0
    while i < len(word):
        if word[i] == left and i + 1 < len(word) and word[i + 1] == right:
            changes.append((pair, -1))
            if merged:
                changes += [((merged[-1], left), -1), ((merged[-1], new), 1)]
            if i + 2 < len(word):
                changes += [((right, word[i + 2]), -1), ((new, word[i + 2]), 1)]
            merged.append(new)
            i += 2
        else:
            merged.append(word[i])
            i += 1
    word[:] = merged
    return changes


def apply_merges(ids: list[int], merges: dict[Pair, tuple[int, int]]) -> list[int]:
    """Merge a word as training did: always the earliest learnt of the pairs present, the leftmost first.

    The neighbours of each token are kept as links and the pairs in a heap, so that a word of n tokens
    takes n log n steps, a very long one too.

    Args:
        ids: the word's tokens.
        merges: pair -> (its place in the order of merges, the token it becomes).
    """
    ids = list(ids)
    after = list(range(1, len(ids) + 1))
    before = list(range(-1, len(ids) - 1))
    found = ((merges.get(pair), i, pair) for i, pair in enumerate(pairwise(ids)))
    heap = [(merge[0], i, pair) for merge, i, pair in found if merge]
    heapq.heapify(heap)
    while heap:
        _, i, pair = heapq.heappop(heap)
        j = after[i]
        if j == len(ids) or (ids[i], ids[j]) != pair:  # one of the two has been merged since
            continue
        ids[i], ids[j] = merges[pair][1], -1
        after[i] = after[j]
        if after[i] < len(ids):
            before[after[i]] = i
        for k in (before[i], i):
            if k >= 0 and after[k] < len(ids) and (ids[k], ids[after[k]]) in merges:
                pair = ids[k], ids[after[k]]
                heapq.heappush(heap, (merges[pair][0], k, pair))
    return [number for number in ids if number >= 0]
