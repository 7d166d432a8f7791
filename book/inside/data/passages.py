"""Random tokens among which a passage comes a second time: what can be foretold only by looking it up."""

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tformer_lib.numbers import whole


def repeated_passage(
    vocab_size: int,
    batch: int,
    *,
    first: int = 32,
    passage: int = 16,
    start: int | None = None,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "B N"]:
    """`first` different tokens in random order, then `passage` of them again: (B, first + passage).

    In a row that starts at place p, token first + i is token p + i again. Where p varies, neither a token nor
    its place says what follows; only what followed it before does.

    Args:
        vocab_size: how many tokens there are.
        batch: the number of rows B.
        first: how many different tokens a row begins with.
        passage: how many of them come again.
        start: where the passage begins, counted from 0, the same in all rows; if None each row draws its own.
        generator: where the chance comes from; PyTorch's own if None.

    Raises:
        TypeError: if a number is not whole.
        ValueError: if tokens or places are too few.
    """
    batch, passage = whole("batch", batch, 1), whole("passage", passage, 1)
    first, vocab_size = whole("first", first, passage), whole("vocab_size", vocab_size, 1)
    if first > vocab_size:
        raise ValueError(f"{first} different tokens cannot be drawn from a vocabulary of {vocab_size}")
    latest = first - passage
    tokens = torch.rand(batch, vocab_size, generator=generator).argsort(dim=1)[:, :first]
    if start is None:
        starts = torch.randint(0, latest + 1, (batch, 1), generator=generator)
    else:
        starts = torch.full((batch, 1), whole("start", start, 0, latest))
    return torch.cat([tokens, tokens.gather(1, starts + torch.arange(passage))], dim=1)


def passage_batches(
    steps: int,
    batch: int,
    vocab_size: int,
    *,
    seed: int,
    first: int = 32,
    passage: int = 16,
    start: int | None = None,
) -> list[Int[Tensor, "B N"]]:
    """`steps` batches of `repeated_passage` to train on."""
    generator = torch.Generator().manual_seed(seed)
    return [
        repeated_passage(vocab_size, batch, first=first, passage=passage, start=start, generator=generator)
        for _ in range(steps)
    ]


def passage_loss(model: nn.Module, tokens: Int[Tensor, "B N"], first: int = 32) -> Tensor:
    """Cross-entropy of the passage's tokens but its first, which nobody can know; in nats a token."""
    logits = model(tokens[:, :-1])[:, first:]  # (B, N - first - 1, vocab)
    return cross_entropy(logits.flatten(0, 1), tokens[:, first + 1 :].flatten())


def overlapping_pairs(
    vocab_size: int,
    batch: int,
    *,
    first: int = 32,
    places: tuple[int, int] = (5, 12),
    generator: torch.Generator | None = None,
) -> tuple[Int[Tensor, "B n"], Int[Tensor, "B n"], Int[Tensor, "B"], Int[Tensor, "B"]]:
    """Two runs that differ in two tokens: ... A B ... C D ... A, which B follows, and ... C B ... A D ... A.

    Args:
        vocab_size: how many tokens there are.
        batch: how many pairs of runs.
        first: how many tokens stand before the last A.
        places: where A and C stand in the first run, counted from 0.
        generator: where the chance comes from; PyTorch's own if None.

    Returns:
        The first run and the second, (B, first + 1) each, with what follows in either, B and D.

    Raises:
        ValueError: if the places leave no room for B and D.
    """
    i, j = places
    if not (i >= 0 and i + 1 < j and j + 1 < first):
        raise ValueError(f"A B and C D do not fit at the places {places} of {first}")
    rows = torch.rand(batch, vocab_size, generator=generator).argsort(dim=1)[:, :first]
    clean = torch.cat([rows, rows[:, i : i + 1]], dim=1)
    swapped = clean.clone()
    swapped[:, i], swapped[:, j] = clean[:, j], clean[:, i]
    return clean, swapped, clean[:, i + 1], clean[:, j + 1]
