"""Functions on the numbers 0, ..., p - 1, counted in a circle, as sums of waves.

On a circle of p numbers the waves are cos(2 pi k n / p) and sin(2 pi k n / p) with the frequencies
k = 0, 1, ..., p // 2. A network that adds modulo p may hold its numbers as such waves; here is measured
which of them a table of embeddings or of logits holds, and some are taken out.

Source:
    Nanda et al. 2023.
"""

import math
from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def fourier_power(table: Float[Tensor, "p *features"]) -> Float[Tensor, "K"]:
    """P_k = the squared length of the part of a table that turns k times while n goes round once.

    The parts are orthogonal, so that the P_k add up to the squared length of the table.

    Each column of the table is a function of n = 0, ..., p - 1. Entry k, of K = p // 2 + 1, adds up over the
    columns; entry 0 is that of their means.

    Args:
        table: a row for each number, such as embeddings (p, D).

    Raises:
        ValueError: if the table has no row.
    """
    p = _rows(table)
    waves = torch.fft.rfft(table.reshape(p, -1), dim=0)
    power = waves.abs().square().sum(dim=1) / p
    power[1 : (p + 1) // 2] *= 2  # frequency k and its mirror image p - k; k = p / 2 is its own
    return power


def frequencies_holding(power: Float[Tensor, "K"], share: float = 0.9) -> list[int]:
    """The fewest frequencies, the strongest first, that hold this share of the power; 0 does not count.

    Args:
        power: of each frequency from 0 on, as `fourier_power` returns it.
        share: above 0 and at most 1.

    Raises:
        ValueError: if the share is out of bounds, or there is no power beside that of frequency 0.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share is above 0 and at most 1, got {share}")
    turning = power[1:]
    if power.ndim != 1 or not turning.sum() > 0:
        raise ValueError("power has one axis, and some of it at other frequencies than 0")
    strongest = turning.sort(descending=True, stable=True)
    held = strongest.values.double().cumsum(dim=0) / strongest.values.double().sum()
    enough = int((held < share - 1e-12).sum()) + 1
    return [int(k) + 1 for k in strongest.indices[:enough]]


def keep_frequencies(
    table: Float[Tensor, "p *features"], frequencies: Iterable[int]
) -> Float[Tensor, "p *features"]:
    """The part of a table, along its first axis, that has these frequencies; with 0 among them, the mean too.

    What is left without them is `table - keep_frequencies(table, frequencies)`: the two are orthogonal.

    Args:
        table: a row for each number 0, ..., p - 1.
        frequencies: of 0, ..., p // 2.

    Raises:
        ValueError: if there is no such frequency.
    """
    p = _rows(table)
    waves = torch.fft.rfft(table, dim=0)
    kept = _chosen(frequencies, p).to(waves.device)
    waves = torch.where(kept.view(-1, *[1] * (table.ndim - 1)), waves, torch.zeros_like(waves))
    return torch.fft.irfft(waves, n=p, dim=0)


def by_sum(
    logits: Float[Tensor, "p _p C"], counted: Bool[Tensor, "p _p"] | None = None
) -> Float[Tensor, "p C"]:
    """m[s, c] = the mean of logits[a, b, c] over the pairs with a + b = s modulo p.

    Of all functions of a + b modulo p, its rows are the nearest to the logits.

    Args:
        logits: an answer's C logits for each pair (a, b).
        counted: which pairs take part; all if None.

    Raises:
        ValueError: if the first two axes differ in length, or no pair with some sum is counted.
    """
    p = _pairs(logits)
    n = torch.arange(p, device=logits.device)
    a, b = n.expand(p, p), (n[:, None] - n) % p  # row s: the pairs with this sum
    if counted is None:
        return logits[a, b].mean(dim=1)
    weights = counted[a, b].to(logits.dtype)
    if not weights.any(dim=1).all():
        raise ValueError(f"for each sum a pair is counted, got none for {int((~weights.any(dim=1)).sum())}")
    return (logits[a, b] * weights[:, :, None]).sum(dim=1) / weights.sum(dim=1)[:, None]


def along_sum(
    logits: Float[Tensor, "p _p C"], frequencies: Iterable[int], counted: Bool[Tensor, "p _p"] | None = None
) -> Float[Tensor, "p _p C"]:
    """The part of logits[a, b, c] in the waves cos(2 pi k (a + b) / p) and sin(2 pi k (a + b) / p).

    With the key frequencies of a network, this is what its *restricted* loss is computed from, and
    `logits - along_sum(logits, frequencies)` is what its *excluded* loss is computed from. What a network
    knows about some pairs is spread over all pairs of the same sum; with `counted` it comes from these alone.

    Args:
        logits: an answer's C logits for each pair (a, b).
        frequencies: the k; 0 is the mean over all pairs.
        counted: the pairs that it is computed from, as in `by_sum`; all if None.

    Raises:
        ValueError: as `by_sum` and `keep_frequencies`.
    """
    p = _pairs(logits)
    n = torch.arange(p, device=logits.device)
    return keep_frequencies(by_sum(logits, counted), frequencies)[(n[:, None] + n) % p]


def clock_logits(
    p: int, frequencies: Sequence[int], weights: Sequence[float] | None = None
) -> Float[Tensor, "p p p"]:
    """logits[a, b, c] = sum_k w_k cos(2 pi k (a + b - c) / p): addition by turning the hands of clocks.

    With positive weights they are largest at c = a + b modulo p, and only there, exactly when no number
    above 1 divides p and all k.

    Args:
        p: the modulus.
        frequencies: how often each hand goes round while c goes round once.
        weights: of the hands; 1 each if None.

    Raises:
        ValueError: if p is not positive, or there are not as many weights as frequencies, or none.
    """
    weights = [1.0] * len(frequencies) if weights is None else weights
    if p < 1 or not frequencies or len(weights) != len(frequencies):
        raise ValueError(
            f"p is positive and each frequency has a weight, got {p=}, {len(frequencies)} frequencies and "
            f"{len(weights)} weights"
        )
    n = torch.arange(p)
    turned = torch.zeros(p)
    for k, weight in zip(frequencies, weights, strict=True):
        turned += weight * torch.cos(2 * math.pi * ((k * n) % p) / p)
    return turned[(n[:, None, None] + n[None, :, None] - n) % p]


def _rows(table: Tensor) -> int:
    if table.ndim < 1 or table.shape[0] < 1:
        raise ValueError(f"a table has a row for each number, and at least one, got {tuple(table.shape)}")
    return table.shape[0]


def _pairs(logits: Tensor) -> int:
    if logits.shape[0] != logits.shape[1]:
        raise ValueError(f"logits are (p, p, C), a row for each pair, got {tuple(logits.shape)}")
    return logits.shape[0]


def _chosen(frequencies: Iterable[int], p: int) -> Bool[Tensor, "K"]:
    """Which of 0, ..., p // 2 are meant."""
    kept = torch.zeros(p // 2 + 1, dtype=torch.bool)
    for k in frequencies:
        if not 0 <= k <= p // 2:
            raise ValueError(f"on a circle of {p} numbers frequencies are 0 to {p // 2}, got {k}")
        kept[k] = True
    return kept
