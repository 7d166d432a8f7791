"""`fit` against the loop written out by hand, its complaints, and parameter budgets."""

import copy
import math
import random
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from tformer_lib.models.recurrent import AdditiveAttention, EncoderDecoder, FinalState
from tformer_lib.training import count_parameters, fit, seed_everything, warmup_cosine, width_for_budget


def squared_error(model, batch):
    x, y = batch
    return (model(x) - y).square().mean()


@pytest.fixture
def task():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    batches = [(torch.randn(5, 3).double(), torch.randn(5, 1).double()) for _ in range(12)]
    return model, batches


@pytest.mark.parametrize("clip", [0.5, None])
def test_fit_is_the_loop_by_hand(task, clip):
    model, batches = task
    by_hand = copy.deepcopy(model)
    lr, decay, warmup, steps = 1e-2, 0.1, 4, len(batches)
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in by_hand.parameters()]
    losses, norms = [], []
    for t, batch in enumerate(batches):
        loss = squared_error(by_hand, batch)
        gradients = torch.autograd.grad(loss, list(by_hand.parameters()))
        norm = math.sqrt(sum(g.square().sum().item() for g in gradients))
        scale = min(1.0, clip / (norm + 1e-6)) if clip else 1.0
        rise, fall = (t + 1) / warmup, 0.5 * (1 + math.cos(math.pi * (t - warmup) / (steps - warmup)))
        rate = lr * (rise if t < warmup else fall)
        for p, g, (m, v) in zip(by_hand.parameters(), gradients, moments, strict=True):
            g = g * scale
            m.mul_(0.9).add_(0.1 * g)
            v.mul_(0.999).add_(0.001 * g * g)
            step = (m / (1 - 0.9 ** (t + 1))) / ((v / (1 - 0.999 ** (t + 1))).sqrt() + 1e-8)
            p.data -= rate * (step + (decay * p.data if p.ndim >= 2 else 0.0))
        losses.append(loss.item())
        norms.append(norm)
    history = fit(model, squared_error, batches, lr=lr, weight_decay=decay, warmup=warmup, clip=clip)
    assert history.loss == pytest.approx(losses, abs=1e-10)
    assert history.grad_norm == pytest.approx(norms, abs=1e-10)
    for ours, theirs in zip(model.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_the_history_and_the_mode(task):
    model, batches = task
    modes = []

    def loss_fn(model, batch):
        modes.append(model.training)
        return squared_error(model, batch)

    history = fit(model, loss_fn, batches, lr=1e-2, warmup=4)
    assert len(history.loss) == len(history.grad_norm) == len(history.lr) == 12
    assert history.lr[3] == max(history.lr) == pytest.approx(1e-2)
    assert history.seconds > 0
    assert all(modes)
    assert not model.training


def test_it_prints_nothing(task, capsys):
    fit(*_arguments(task), warmup=2)
    assert capsys.readouterr() == ("", "")


def _arguments(task):
    model, batches = task
    return model, squared_error, batches


def test_a_list_is_begun_again(task):
    model, batches = task
    seen = []

    def loss_fn(model, batch):
        seen.append(next(i for i, b in enumerate(batches) if b is batch))
        return squared_error(model, batch)

    fit(model, loss_fn, batches[:3], steps=7)
    assert seen == [0, 1, 2, 0, 1, 2, 0]


def test_a_generator_is_taken_from_no_further_than_needed(task):
    model, batches = task
    stream = iter(batches)
    fit(model, squared_error, stream, steps=5)
    assert next(stream) is batches[5]


def test_frozen_parameters_stay(task):
    model, batches = task
    model[0].weight.requires_grad_(False)
    before = model[0].weight.clone()
    fit(model, squared_error, batches)
    assert torch.equal(model[0].weight, before)


def test_no_batches(task):
    model, batches = task
    with pytest.raises(ValueError, match="nothing to train on: 0 steps"):
        fit(model, squared_error, [])
    with pytest.raises(ValueError, match="nothing to train on: 0 steps"):
        fit(model, squared_error, batches, steps=0)
    with pytest.raises(ValueError, match="no length"):
        fit(model, squared_error, iter(batches))
    with pytest.raises(ValueError, match="ran out after 12 of 13 steps"):
        fit(model, squared_error, iter(batches), steps=13)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_with_the_step(task, bad):
    model, batches = task
    losses = iter([1.0, 1.0, bad])
    before = None

    def loss_fn(model, batch):
        nonlocal before
        before = [p.detach().clone() for p in model.parameters()]
        return squared_error(model, batch) * next(losses)

    with pytest.raises(FloatingPointError, match=f"the loss is {bad} at step 2 of 12"):
        fit(model, loss_fn, batches)
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))


def test_a_gradient_that_is_not_finite_stops_too(task):
    model, batches = task
    with pytest.raises(FloatingPointError, match="gradient's norm is nan at step 0"):
        fit(model, lambda m, b: sum(p.square().sum() for p in m.parameters()).mul(0).sqrt(), batches)


def test_a_loss_is_a_scalar(task):
    model, batches = task
    with pytest.raises(ValueError, match=r"scalar, got shape \(5, 1\)"):
        fit(model, lambda m, b: m(b[0]), batches)


def test_the_schedule():
    shares = [warmup_cosine(step, 110, 10) for step in range(111)]
    assert shares[:10] == pytest.approx([0.1 * (i + 1) for i in range(10)])
    assert shares[10] == 1.0
    assert shares[60] == pytest.approx(0.5)
    assert shares[110] == pytest.approx(0.0)
    assert all(a > b for a, b in pairwise(shares[10:]))
    assert warmup_cosine(0, 5, 0) == 1.0


def test_seeds():
    def draw():
        return random.random(), np.random.rand(), torch.rand(()).item()  # noqa: NPY002

    seed_everything(3)
    first = draw()
    assert draw() != first
    seed_everything(3)
    assert draw() == first


def test_two_runs_from_one_seed_are_one_run(task):
    _, batches = task

    def run():
        seed_everything(1)
        return fit(nn.Linear(3, 1).double(), squared_error, batches).loss

    assert run() == run()


def test_parameters_are_counted_once():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    assert count_parameters(model) == 24
    model[1].weight = model[0].weight
    assert count_parameters(model) == 15
    model[0].bias.requires_grad_(False)
    assert count_parameters(model) == 12


@pytest.mark.parametrize("width", [1, 2, 48, 100])
def test_the_width_of_a_budget_gives_the_nearest_count(width):
    def build(width):
        return EncoderDecoder(15, 15, 32, width, context=FinalState())

    attending = EncoderDecoder(15, 15, 32, width, context=AdditiveAttention(width, 2 * width, width))
    budget = count_parameters(attending)
    found = width_for_budget(build, budget)
    error = abs(count_parameters(build(found)) - budget)
    assert all(error <= abs(count_parameters(build(max(1, w))) - budget) for w in (found - 1, found + 1))
    assert width < 40 or error / budget < 0.02


def test_a_budget_out_of_reach():
    with pytest.raises(ValueError, match=r"budget of 3 .* widths 1 to 8 give: 7 to 56"):
        width_for_budget(lambda width: nn.Linear(6, width), 3, max_width=8)
    with pytest.raises(ValueError, match="budget of 57"):
        width_for_budget(lambda width: nn.Linear(6, width), 57, max_width=8)
