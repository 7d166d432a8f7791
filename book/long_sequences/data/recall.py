"""Associative recall: pairs of a key and a value, then keys whose values are asked for."""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from tformer_lib.core.tokens import IGNORED


class Recall(NamedTuple):
    """A batch of `pairs` places with a key and its value, followed by `queries` places with a key alone."""

    #: The key at each place, 0..n_keys - 1; within a row's pairs each is another.
    keys: Int[Tensor, "B N"]
    #: The value beside it, 1..n_values; 0 where it is asked for.
    values: Int[Tensor, "B N"]
    #: The value that is asked for, `IGNORED` at pairs.
    answers: Int[Tensor, "B N"]
    #: From a query back to the place of its pair; 0 at pairs.
    distances: Int[Tensor, "B N"]


def associative_recall(
    n_sequences: int,
    pairs: int,
    queries: int,
    *,
    n_keys: int,
    n_values: int,
    writes: int = 1,
    generator: torch.Generator | None = None,
) -> Recall:
    """Rows of random pairs and queries; within a row no pair is asked for twice. Chance is 1 / n_values.

    With several writes each key stands at so many places, in any order, each time with another draw of a
    value, and the last one is asked for.

    Args:
        n_sequences: the number of rows B.
        pairs: how many keys a row begins with.
        queries: how many of them are asked for, in random order; N = pairs * writes + queries.
        n_keys: the number of different keys.
        n_values: the number of different values.
        writes: how often each key is written.
        generator: where the chance comes from; PyTorch's own if None.

    Raises:
        ValueError: if a number is below 1, or there are more queries than pairs, or more pairs than keys.
    """
    if min(n_sequences, pairs, queries, n_keys, n_values, writes) < 1 or not queries <= pairs <= n_keys:
        raise ValueError(
            "need positive numbers and queries <= pairs <= n_keys, got "
            f"{n_sequences=}, {pairs=}, {queries=}, {n_keys=}, {n_values=}, {writes=}"
        )
    keys = torch.rand(n_sequences, n_keys, generator=generator).argsort(dim=1)[:, :pairs]
    places = pairs * writes
    values = torch.randint(1, n_values + 1, (n_sequences, places), generator=generator)
    asked = torch.rand(n_sequences, pairs, generator=generator).argsort(dim=1)[:, :queries]
    wanted = keys.gather(1, asked)
    if writes > 1:
        order = torch.rand(n_sequences, places, generator=generator).argsort(dim=1)
        keys = keys.repeat(1, writes).gather(1, order)
    here = keys[:, None, :] == wanted[:, :, None]  # (B, queries, places)
    last = (here * torch.arange(places)).amax(dim=-1)
    return Recall(
        keys=torch.cat((keys, wanted), dim=1),
        values=torch.cat((values, torch.zeros_like(wanted)), dim=1),
        answers=torch.cat((torch.full_like(values, IGNORED), values.gather(1, last)), dim=1),
        distances=torch.cat((torch.zeros_like(values), places + torch.arange(queries) - last), dim=1),
    )


def recall_batches(
    steps: int,
    batch: int,
    pairs: tuple[int, int],
    queries: int,
    *,
    n_keys: int,
    n_values: int,
    seed: int,
    writes: int = 1,
) -> list[Recall]:
    """`steps` batches to train on, each of one number of pairs, drawn evenly from (fewest, most).

    Raises:
        ValueError: unless queries <= fewest <= most <= n_keys.
    """
    generator = torch.Generator().manual_seed(seed)
    fewest, most = pairs
    if not queries <= fewest <= most <= n_keys:
        raise ValueError(f"need queries <= fewest <= most <= n_keys, got {pairs=}, {queries=}, {n_keys=}")
    drawn = torch.randint(fewest, most + 1, (steps,), generator=generator).tolist()
    return [
        associative_recall(
            batch, n, queries, n_keys=n_keys, n_values=n_values, writes=writes, generator=generator
        )
        for n in drawn
    ]
