"""Toy sequences: random symbols, to be reversed."""

import torch
from jaxtyping import Int
from torch import Tensor

from tformer_lib.data import BOS, EOS, PAD

Pair = tuple[Tensor, Tensor]


def random_symbols(
    n_sequences: int,
    length: int | tuple[int, int],
    n_symbols: int,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "B S"]:
    """Rows of symbols drawn evenly from 3..n_symbols+2 (0, 1, 2 are padding, begin and end).

    Args:
        n_sequences: the number of rows B.
        length: the length of every row, or the (shortest, longest) between which each row's length
            is drawn evenly; shorter rows are padded at the end.
        n_symbols: the number of different symbols.
        generator: where the chance comes from; PyTorch's own if None.

    Raises:
        ValueError: if a number is below 1, or the shortest length above the longest.
    """
    shortest, longest = (length, length) if isinstance(length, int) else length
    if min(n_sequences, shortest, n_symbols) < 1 or shortest > longest:
        raise ValueError(
            f"need n_sequences, length and n_symbols of at least 1 and shortest <= longest, got "
            f"n_sequences={n_sequences}, length={length}, n_symbols={n_symbols}"
        )
    symbols = torch.randint(3, 3 + n_symbols, (n_sequences, longest), generator=generator)
    lengths = torch.randint(shortest, longest + 1, (n_sequences, 1), generator=generator)
    return symbols.masked_fill(torch.arange(longest) >= lengths, PAD)


def as_target(tokens: Int[Tensor, "B S"]) -> Int[Tensor, "B T"]:
    """[begin, tokens, end, padding]: what a decoder is trained on; T = S + 2."""
    n, s = tokens.shape
    target = torch.full((n, s + 2), PAD)
    target[:, 0] = BOS
    target[:, 1:-1] = tokens
    target[torch.arange(n), 1 + (tokens != PAD).sum(dim=1)] = EOS
    return target


def reverse(tokens: Int[Tensor, "B S"]) -> Int[Tensor, "B S"]:
    """Each row back to front, its padding left at the end."""
    lengths = (tokens != PAD).sum(dim=1, keepdim=True)
    places = torch.arange(tokens.shape[1])
    return tokens.gather(1, torch.where(places < lengths, lengths - 1 - places, places))


def reversal(
    n_sequences: int,
    length: int | tuple[int, int],
    n_symbols: int,
    generator: torch.Generator | None = None,
) -> Pair:
    """(source, target) with the target the source back to front; arguments as for `random_symbols`."""
    source = random_symbols(n_sequences, length, n_symbols, generator)
    return source, as_target(reverse(source))


def reversal_batches(
    steps: int, batch_size: int, lengths: tuple[int, int], n_symbols: int, seed: int
) -> list[Pair]:
    """`steps` batches to train on, each of one length (so without padding) drawn evenly from `lengths`."""
    generator = torch.Generator().manual_seed(seed)
    shortest, longest = lengths
    drawn = torch.randint(shortest, longest + 1, (steps,), generator=generator).tolist()
    return [reversal(batch_size, length, n_symbols, generator) for length in drawn]
