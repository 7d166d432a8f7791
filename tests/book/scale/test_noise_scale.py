"""The noise scale against closed forms, enumeration, and gradients one example at a time."""

import math
from itertools import product

import pytest
import torch
import torch.distributed as dist
from torch import nn

from tformer_book.scale.noise_scale import (
    BatchTradeOff,
    NoiseScale,
    fit_trade_off,
    flat_gradient,
    mean_scale,
    measure_noise,
    noise_across_processes,
    noise_from_gradients,
    noise_from_sizes,
)
from tformer_lib.scale import launch


def half_squares(model, batch):
    """Mean over the rows (x, y) of (w x - y)^2 / 2."""
    return 0.5 * (model(batch[:, :-1])[:, 0] - batch[:, -1]).square().mean()


def linear_data(n, weights, noise, seed):
    """Rows (x, y) with x from N(0, I) and y = weights x + noise e."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, len(weights), generator=generator, dtype=torch.float64)
    y = x @ weights + noise * torch.randn(n, generator=generator, dtype=torch.float64)
    return torch.cat([x, y[:, None]], dim=1)


@pytest.mark.parametrize(("sizes", "length"), [((1, 2), 3), ((2, 3), 3), ((1, 4), 2)])
def test_unbiased_over_all_batches_that_can_be_drawn(sizes, length):
    """The expectation by enumeration: examples are drawn with replacement from `length` gradients."""
    gradients = torch.randn(length, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    G = gradients.mean(dim=0)
    signal, noise = G.square().sum(), (gradients - G).square().sum(dim=1).mean()
    small, big = (
        torch.stack([gradients[list(i)].mean(dim=0).square().sum() for i in product(range(length), repeat=b)])
        .mean()
        .item()
        for b in sizes
    )
    found = noise_from_sizes(small, big, *sizes)
    assert found.signal == pytest.approx(signal.item())
    assert found.noise == pytest.approx(noise.item())
    assert found.scale == pytest.approx((noise / signal).item())


def test_closed_form_of_linear_regression():
    """With d = w - w*: G = d, tr Sigma = (D + 1) |d|^2 + D s^2."""
    D, s = 6, 0.7
    weights = torch.linspace(-1, 1, D, dtype=torch.float64)
    model = nn.Linear(D, 1, bias=False).double()
    nn.init.zeros_(model.weight)
    data = linear_data(400_000, weights, s, seed=0)
    before = model.weight.clone()
    found = measure_noise(model, half_squares, data.split(500))
    d2 = weights.square().sum().item()
    assert found.signal == pytest.approx(d2, rel=0.02)
    assert found.noise == pytest.approx((D + 1) * d2 + D * s**2, rel=0.05)
    assert found.scale == pytest.approx(D + 1 + D * s**2 / d2, rel=0.05)
    assert torch.equal(model.weight, before)
    assert model.weight.grad is None


def test_gradients_of_batches_agree_with_gradients_of_examples():
    """At batch size 1 the noise is the sample variance, with k - 1 below."""
    gradients = torch.randn(7, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64) + 1
    found = noise_from_gradients(gradients, 1)
    assert found.noise == pytest.approx(gradients.var(dim=0).sum().item())
    mean = gradients.mean(dim=0)
    assert found.signal == pytest.approx((mean.square().sum() - gradients.var(dim=0).sum() / 7).item())


def test_measuring_is_the_same_from_batches_and_from_their_gradients():
    model = nn.Linear(3, 1, bias=False).double()
    batches = linear_data(40, torch.ones(3, dtype=torch.float64), 1.0, seed=2).split(8)
    rows = []
    for batch in batches:
        model.zero_grad()
        half_squares(model, batch).backward()
        rows.append(flat_gradient(model))
    by_rows, by_model = (
        noise_from_gradients(torch.stack(rows), 8),
        measure_noise(model, half_squares, batches),
    )
    assert by_model.signal == pytest.approx(by_rows.signal)
    assert by_model.noise == pytest.approx(by_rows.noise)


def test_processes_find_what_one_finds_and_average_their_gradients():
    data = linear_data(32, torch.ones(3, dtype=torch.float64), 1.0, seed=3)

    def loss_of(model, batch):
        return 0.5 * (model(batch[:, :-1])[:, 0] - batch[:, -1]).square().mean()

    def work(rows):
        torch.manual_seed(0)
        model = nn.Linear(3, 1, bias=False).double()
        loss_of(model, rows.chunk(dist.get_world_size())[dist.get_rank()]).backward()
        found = noise_across_processes(model, len(rows) // dist.get_world_size())
        return found.signal, found.noise, flat_gradient(model)

    results = launch(work, 2, data)
    torch.manual_seed(0)
    model = nn.Linear(3, 1, bias=False).double()
    expected = measure_noise(model, loss_of, data.chunk(2))
    loss_of(model, data).backward()
    for signal, noise, gradient in results:
        assert (signal, noise) == pytest.approx((expected.signal, expected.noise))
        torch.testing.assert_close(gradient, flat_gradient(model))


def test_mean_is_of_signal_and_noise_apart():
    mean = mean_scale([NoiseScale(1.0, 10.0), NoiseScale(3.0, 2.0)])
    assert mean == NoiseScale(2.0, 6.0)
    assert mean.scale == 3.0
    assert NoiseScale(-0.1, 1.0).scale == math.inf


def test_trade_off_is_found_again_and_is_a_hyperbola():
    curve = BatchTradeOff(50.0, 400.0)
    batches = [1.0, 2.0, 4.0, 8.0, 64.0]
    steps = [curve.steps(b) for b in batches]
    found = fit_trade_off(batches, steps)
    assert (found.least_steps, found.least_examples) == pytest.approx((50, 400))
    assert found.critical_batch == pytest.approx(8)
    assert curve.steps(8.0) == 100
    for b, s in zip(batches, steps, strict=True):
        assert (s / 50 - 1) * (b * s / 400 - 1) == pytest.approx(1)


def test_bad_input():
    with pytest.raises(ValueError, match="larger than batch_small=8"):
        noise_from_sizes(2.0, 1.0, 8, 8)
    with pytest.raises(ValueError, match="small"):
        noise_from_sizes(-1.0, 1.0, 1, 8)
    with pytest.raises(ValueError, match="batch_small"):
        noise_from_sizes(2.0, 1.0, 0, 8)
    with pytest.raises(ValueError, match="k of 2 or more"):
        noise_from_gradients(torch.ones(1, 4), 8)
    with pytest.raises(ValueError, match="small"):
        noise_from_gradients(torch.full((2, 4), torch.nan), 8)
    with pytest.raises(ValueError, match="no measurement"):
        mean_scale([])
    with pytest.raises(ValueError, match="no gradient"):
        flat_gradient(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="equally large"):
        measure_noise(nn.Linear(2, 1), half_squares, [torch.ones(2, 3), torch.ones(3, 3)])
    with pytest.raises(RuntimeError, match="no process group"):
        noise_across_processes(nn.Linear(2, 1), 4)
    with pytest.raises(ValueError, match="needs its steps"):
        fit_trade_off([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="two batch sizes"):
        fit_trade_off([2.0, 2.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="each of steps"):
        fit_trade_off([1.0, 2.0], [1.0, 0.0])
    with pytest.raises(ValueError, match="no such curve"):
        fit_trade_off([1.0, 2.0], [10.0, 20.0])
