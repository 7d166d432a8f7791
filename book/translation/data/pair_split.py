"""Dividing pairs so that nothing that was trained on comes back in the test, nor nearly."""

import random
from collections import defaultdict
from collections.abc import Sequence

import torch

from tformer_book.translation.data.nearness import nearest_similarity
from tformer_lib.data.pairs import Pair, normalise


def split_pairs(
    pairs: Sequence[Pair], *, held_out: int = 500, seed: int = 0, apart: float | None = None
) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """(train, validation, test), the last two of `held_out` pairs each, in an order drawn by the seed.

    Pairs of which either side has the same letters after `normalise` (spaces aside, so that "file name" is
    "Filename:") stand in one part, and so do pairs that are linked by others: the parts are made of connected
    components. A component of more than a twentieth of `held_out` is always trained on, so that no single
    phrase with its variants fills a test.

    Args:
        pairs: what to divide, each pair once.
        held_out: the number of pairs in validation and in test.
        seed: of the division.
        apart: leaves out of training what is nearly a held-out text: those pairs of which either side has
            this `nearest_similarity`, or a greater one, to that side of a held-out pair. None keeps all.

    Raises:
        ValueError: if `held_out` < 1, if `apart` does not lie between 0 and 1, or if there are too few small
            components to fill both parts and leave as many pairs to train on.
    """
    if held_out < 1:
        raise ValueError(f"held_out must be 1 or more, got {held_out}")
    if apart is not None and not 0 < apart <= 1:
        raise ValueError(f"apart must lie between 0 and 1, got {apart}")
    groups = components(pairs)
    random.Random(seed).shuffle(groups)
    parts: tuple[list[Pair], list[Pair], list[Pair]] = ([], [], [])
    for group in groups:
        small = len(group) <= max(1, held_out // 20)
        fits = (part for part in parts[1:] if small and len(part) + len(group) <= held_out)
        next(fits, parts[0]).extend(pairs[i] for i in group)
    sizes = tuple(map(len, parts))
    if sizes[1:] != (held_out, held_out) or sizes[0] < held_out:
        found = f"{len(pairs)} pairs in {len(groups)} groups"
        raise ValueError(f"{found} cannot spare two parts of {held_out}, they gave {sizes}")
    for part in parts:
        random.Random(seed).shuffle(part)
    train, validation, test = parts
    if apart is not None:
        held = [*validation, *test]
        near = torch.zeros(len(train), dtype=torch.bool)
        for side in (0, 1):
            near |= (
                nearest_similarity(([pair[side] for pair in held], [pair[side] for pair in train])) >= apart
            )
        train = [pair for pair, drop in zip(train, near.tolist(), strict=True) if not drop]
    return train, validation, test


def components(pairs: Sequence[Pair]) -> list[list[int]]:
    """The pairs' numbers in groups: within a group, each has the letters of another on one of the sides."""
    parent = list(range(len(pairs)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: dict[tuple[int, str], int] = {}
    for i, pair in enumerate(pairs):
        for side, text in enumerate(pair):
            letters = normalise(text).replace(" ", "")
            parent[root(i)] = root(first.setdefault((side, letters), i))
    groups = defaultdict(list)
    for i in range(len(pairs)):
        groups[root(i)].append(i)
    return list(groups.values())
