"""`fit` against the loop written out by hand, its complaints, and parameter budgets."""

import copy
import io
import math
import random
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import Block, TransformerConfig
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.models.recurrent import AdditiveAttention, EncoderDecoder, FinalState
from tformer_lib.training import (
    count_parameters,
    default_device,
    fit,
    make_optimizers,
    seed_everything,
    warmup_cosine,
    width_for_budget,
)
from tformer_lib.training.optimizers import muon_matrices


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


def test_the_schedule_ends_at_a_share_of_the_peak(task):
    shares = [warmup_cosine(step, 110, 10, 0.1) for step in range(111)]
    assert shares[:11] == [warmup_cosine(step, 110, 10) for step in range(11)]
    assert shares[60] == pytest.approx(0.55)
    assert shares[110] == pytest.approx(0.1)
    assert warmup_cosine(70, 110, 10, 1.0) == 1.0
    model, batches = task
    history = fit(model, squared_error, batches, lr=0.1, warmup=2, min_lr_ratio=0.25)
    assert history.lr == pytest.approx([0.1 * warmup_cosine(step, 12, 2, 0.25) for step in range(12)])
    for final in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"min_lr_ratio is a share .* got"):
            fit(model, squared_error, batches, min_lr_ratio=final)


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_betas_are_adamws(name):
    optimizers = make_optimizers(gpt(), name, lr=0.1, weight_decay=0.2, betas=(0.8, 0.95))
    assert [g["betas"] for g in optimizers[-1].param_groups] == [(0.8, 0.95)] * 2
    plain = make_optimizers(gpt(), name, lr=0.1, weight_decay=0.2)
    assert [g["betas"] for g in plain[-1].param_groups] == [(0.9, 0.999)] * 2


def test_momentum_is_muons():
    for options, expected in ({}, 0.95), ({"momentum": 0.8}, 0.8):
        muon, _ = make_optimizers(gpt(), "muon", lr=0.1, weight_decay=0.2, **options)
        assert [g["momentum"] for g in muon.param_groups] == [expected]
    tokens = torch.randint(7, (4, 8), generator=torch.Generator().manual_seed(0))
    models = [gpt(), gpt(), gpt()]
    for model, momentum in zip(models, (0.95, 0.8, None), strict=True):
        options = {} if momentum is None else {"momentum": momentum}
        fit(model, language_loss, [tokens], steps=3, optimizer="muon", **options)
    first, second, plain = (model.transformer.blocks[0].mlp.W_in.weight for model in models)
    assert torch.equal(first, plain)
    assert not torch.equal(first, second)


def test_fit_hands_on_the_betas(task):
    model, batches = task
    by_hand = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(by_hand.parameters(), lr=0.1, betas=(0.5, 0.6), weight_decay=0.0)
    for batch in batches:
        optimizer.zero_grad()
        squared_error(by_hand, batch).backward()
        optimizer.step()
    options = {"lr": 0.1, "warmup": 0, "min_lr_ratio": 1.0, "clip": None, "weight_decay": 0.0}
    fit(model, squared_error, batches, betas=(0.5, 0.6), **options)
    for ours, theirs in zip(model.parameters(), by_hand.parameters(), strict=True):
        assert torch.equal(ours, theirs)


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


@pytest.mark.parametrize("clip", [0.1, None])
def test_fit_is_pytorchs_loop_to_the_last_bit(clip):
    """AdamW, LambdaLR and clip_grad_norm_, in float32."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 1))
    by_hand = copy.deepcopy(model)
    batches = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(30)]
    parameters = list(by_hand.parameters())
    adamw = torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": 0.01},
            {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
        ],
        lr=3e-3,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(adamw, lambda step: warmup_cosine(step, 30, 4))
    losses, norms, rates = [], [], []
    for batch in batches:
        loss = squared_error(by_hand, batch)
        adamw.zero_grad()
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(parameters, math.inf if clip is None else clip).item())
        losses.append(loss.item())
        rates.append(schedule.get_last_lr()[0])
        adamw.step()
        schedule.step()
    history = fit(model, squared_error, batches, warmup=4, clip=clip)
    assert (history.loss, history.grad_norm, history.lr) == (losses, norms, rates)
    for ours, theirs in zip(model.parameters(), parameters, strict=True):
        assert torch.equal(ours, theirs)


def gpt():
    torch.manual_seed(0)
    model = GPT(
        TransformerConfig(d_model=8, n_heads=2, n_blocks=2, activation="swiglu"),
        vocab_size=7,
        positions=LearnedPositions(9, 8),
    )
    model.extra_head = nn.Linear(8, 3)
    return model


def test_which_parameters_muon_gets():
    model = gpt()
    muon, adamw = make_optimizers(model, "muon", lr=0.1, weight_decay=0.2)
    names = {id(p): name for name, p in model.named_parameters()}
    matrices = {names[id(p)] for p in muon.param_groups[0]["params"]}
    assert matrices == {
        f"transformer.blocks.{i}.{layer}.weight"
        for i in range(2)
        for layer in (
            *(f"self_attention.W_{w}" for w in "qkvo"),
            "mlp.W_in",
            "mlp.W_gate",
            "mlp.W_out",
        )
    }
    decayed, bare = ({names[id(p)] for p in group["params"]} for group in adamw.param_groups)
    assert decayed == {"embed.weight", "positions.table", "extra_head.weight"}
    assert matrices | decayed | bare == set(names.values())
    assert [g["weight_decay"] for o in (muon, adamw) for g in o.param_groups] == [0.2, 0.2, 0.0]


def test_muon_leaves_alone_what_is_frozen_or_shared():
    model = gpt()
    mlp = model.transformer.blocks[0].mlp
    mlp.W_in.weight.requires_grad_(False)
    model.extra_head = nn.Linear(8, 8)
    model.extra_head.weight = model.transformer.blocks[0].self_attention.W_q.weight
    model.transformer.blocks[1].mlp.W_in.weight = model.transformer.blocks[1].mlp.W_gate.weight
    found = {id(p) for p in muon_matrices(model)}
    assert len(found) == 14 - 3
    assert id(mlp.W_in.weight) not in found
    assert id(model.extra_head.weight) not in found
    assert len(muon_matrices(Block(TransformerConfig(d_model=8, n_heads=2, n_blocks=1)))) == 6


def test_a_muon_step_is_as_long_as_adamws():
    model = gpt()
    before = [p.detach().clone() for p in muon_matrices(model)]
    tokens = torch.randint(7, (4, 8), generator=torch.Generator().manual_seed(0))
    fit(model, language_loss, [tokens], lr=0.01, weight_decay=0.0, warmup=1, optimizer="muon")
    for p, old in zip(muon_matrices(model), before, strict=True):
        rms = (p - old).square().mean().sqrt().item()
        assert 0.0005 < rms < 0.005  # about 0.2 of the learning rate, AdamW's in the long run


def test_muon_trains():
    tokens = torch.randint(7, (4, 9), generator=torch.Generator().manual_seed(0))
    losses = {}
    for name in ("adamw", "muon"):
        history = fit(gpt(), language_loss, [tokens], steps=60, lr=0.02, warmup=5, optimizer=name)
        losses[name] = history.loss[-1]
    assert max(losses.values()) < 1.0


def test_optimizers_that_cannot_be(task):
    model, batches = task
    with pytest.raises(ValueError, match=r"one of \('adamw', 'muon'\), got 'sgd'"):
        fit(model, squared_error, batches, optimizer="sgd")
    with pytest.raises(ValueError, match="no Transformer or Block in this model"):
        fit(model, squared_error, batches, optimizer="muon")


class Screen(io.StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("progress", [True, False, None])
def test_the_bar_is_drawn_on_a_terminal_or_when_told(task, monkeypatch, terminal, progress):
    screen = Screen(terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    fit(*_arguments(task), progress=progress)
    drawn = terminal if progress is None else progress
    assert ("12/12" in screen.getvalue() and "loss=" in screen.getvalue()) == drawn
    assert drawn or screen.getvalue() == ""


def test_no_bar_without_stderr(task, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    fit(*_arguments(task))


def test_the_default_device(monkeypatch):
    for cuda, mps, expected in [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")]:
        monkeypatch.setattr(torch.cuda, "is_available", lambda cuda=cuda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda mps=mps: mps)
        assert default_device() == torch.device(expected)
