"""Waves on a circle of numbers: against sums written out in NumPy, and on tables whose waves are known."""

import math

import numpy as np
import pytest
import torch

from tformer_book.inside.fourier import (
    along_sum,
    by_sum,
    clock_logits,
    fourier_power,
    frequencies_holding,
    keep_frequencies,
)

LENGTHS = [1, 2, 5, 6, 11]


def waves(p, k):
    """An orthonormal basis of what turns k times, as columns."""
    n = np.arange(p)
    found = [np.cos(2 * np.pi * k * n / p), np.sin(2 * np.pi * k * n / p)]
    if k == 0 or 2 * k == p:
        found = found[:1]
    return np.stack([wave / np.linalg.norm(wave) for wave in found], axis=1)


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("p", LENGTHS)
def test_power_is_that_of_projections_on_the_waves_and_adds_up(p, generator):
    table = torch.randn(p, 3, 2, generator=generator, dtype=torch.float64)
    power = fourier_power(table)
    flat = table.reshape(p, -1).numpy()
    wanted = [np.square(waves(p, k).T @ flat).sum() for k in range(p // 2 + 1)]
    np.testing.assert_allclose(power, wanted, atol=1e-12)
    assert power.sum() == pytest.approx(table.square().sum())


@pytest.mark.parametrize("p", LENGTHS)
def test_kept_frequencies_are_the_projection(p, generator):
    table = torch.randn(p, 4, generator=generator, dtype=torch.float64)
    for chosen in ([], [0], [p // 2], list(range(p // 2 + 1))):
        basis = np.concatenate([np.zeros((p, 1)), *(waves(p, k) for k in set(chosen))], axis=1)
        kept = keep_frequencies(table, chosen)
        np.testing.assert_allclose(kept, basis @ (basis.T @ table.numpy()), atol=1e-12)
        torch.testing.assert_close(keep_frequencies(kept, chosen), kept)
    torch.testing.assert_close(kept, table)  # all of them


def test_a_table_without_features_is_one_function():
    n = torch.arange(7)
    wave = 3 + torch.cos(2 * math.pi * 2 * n / 7)
    torch.testing.assert_close(fourier_power(wave), torch.tensor([63.0, 0, 3.5, 0]), atol=1e-5, rtol=0)


def test_the_strongest_frequencies_that_hold_a_share():
    power = torch.tensor([100.0, 1, 6, 3])
    assert frequencies_holding(power, 0.5) == [2]
    assert frequencies_holding(power, 0.6) == [2]
    assert frequencies_holding(power, 0.9) == [2, 3]
    assert frequencies_holding(power, 1.0) == [2, 3, 1]


def test_logits_by_sum_are_means_over_pairs(generator):
    p = 5
    logits = torch.randn(p, p, 3, generator=generator)
    found = by_sum(logits)
    for s in range(p):
        wanted = sum(logits[a, (s - a) % p] for a in range(p)) / p
        torch.testing.assert_close(found[s], wanted)


def test_only_counted_pairs_take_part(generator):
    p = 5
    logits = torch.randn(p, p, 3, generator=generator)
    counted = torch.rand(p, p, generator=generator) < 0.6
    counted[:, 0] = True
    found = by_sum(logits, counted)
    for s in range(p):
        pairs = [(a, (s - a) % p) for a in range(p) if counted[a, (s - a) % p]]
        torch.testing.assert_close(found[s], torch.stack([logits[pair] for pair in pairs]).mean(dim=0))
    changed = torch.where(counted[:, :, None], logits, torch.full_like(logits, 100.0))
    torch.testing.assert_close(along_sum(changed, [1], counted), along_sum(logits, [1], counted))
    torch.testing.assert_close(by_sum(logits, torch.ones(p, p, dtype=torch.bool)), by_sum(logits))
    with pytest.raises(ValueError, match="got none for 1"):
        by_sum(logits, (torch.arange(p)[:, None] + torch.arange(p)) % p != 2)


def test_the_part_along_the_sum_is_the_projection_on_waves_of_all_pairs(generator):
    p = 7
    logits = torch.randn(p, p, 4, generator=generator, dtype=torch.float64)
    a, b = np.meshgrid(np.arange(p), np.arange(p), indexing="ij")
    for chosen in ([2], [0], [1, 3]):
        basis = []
        for k in chosen:
            for wave in (np.cos, np.sin):
                column = wave(2 * np.pi * k * (a + b) / p).reshape(-1)
                if np.linalg.norm(column) > 1e-9:
                    basis.append(column / np.linalg.norm(column))
        basis = np.stack(basis, axis=1)
        wanted = basis @ (basis.T @ logits.reshape(p * p, 4).numpy())
        np.testing.assert_allclose(along_sum(logits, chosen).reshape(p * p, 4), wanted, atol=1e-12)


def test_logits_built_from_known_frequencies_give_them_back():
    p = 11
    logits = clock_logits(p, [2, 5], [1.0, 0.5])
    power = fourier_power(by_sum(logits))
    assert frequencies_holding(power, 0.999) == [2, 5]
    assert power[2] / power[5] == pytest.approx(4, rel=1e-4)
    torch.testing.assert_close(along_sum(logits, [2, 5]), logits, atol=1e-5, rtol=0)
    rest = logits - along_sum(logits, [2])
    torch.testing.assert_close(rest, clock_logits(p, [5], [0.5]), atol=1e-5, rtol=0)
    other = torch.randn(p, 1, 3, generator=torch.Generator().manual_seed(0)).expand(p, p, 3)  # of a alone
    assert along_sum(other, [1, 2, 3, 4, 5]).abs().max() < 1e-5


CLOCKS = [(12, [3], False), (12, [3, 4], True), (12, [5], True), (7, [3], True), (12, [2, 4], False)]


@pytest.mark.parametrize(("p", "ks", "right"), CLOCKS)
def test_the_clock_adds_where_no_number_divides_modulus_and_frequencies(p, ks, right):
    logits = clock_logits(p, ks)
    n = torch.arange(p)
    answer = (n[:, None] + n) % p
    for a in range(p):
        for b in range(p):
            wanted = sum(
                torch.cos(torch.tensor(2 * math.pi * k * (a + b - c) / p)) for k in ks for c in (3 % p,)
            )
            assert logits[a, b, 3 % p] == pytest.approx(float(wanted), abs=1e-5)
    others = logits.scatter(2, answer[:, :, None], -math.inf).amax(dim=2)
    at_answer = logits.gather(2, answer[:, :, None])[:, :, 0]
    assert bool((at_answer - others > 1e-3).all()) == right


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        fourier_power(torch.zeros(0, 3))
    with pytest.raises(ValueError, match="0 to 3, got 4"):
        keep_frequencies(torch.zeros(7), [4])
    with pytest.raises(ValueError, match="share"):
        frequencies_holding(torch.ones(3), 0.0)
    with pytest.raises(ValueError, match="other frequencies"):
        frequencies_holding(torch.tensor([1.0, 0.0]))
    with pytest.raises(ValueError, match=r"\(p, p, C\)"):
        along_sum(torch.zeros(3, 4, 3), [1])
    with pytest.raises(ValueError, match="each frequency has a weight"):
        clock_logits(5, [1], [1.0, 2.0])
    with pytest.raises(ValueError, match="each frequency has a weight"):
        clock_logits(5, [])
