"""Muon against the polynomial on singular values, against PyTorch's own, and its errors."""

import copy

import pytest
import torch
from torch import nn

from tformer_lib.training.muon import QUINTIC, Muon, orthogonalise

SHAPES = [(6, 6), (4, 9), (9, 4), (1, 5), (128, 341), (512, 128)]
TORCH_MUON = getattr(torch.optim, "Muon", None)  # came with PyTorch 2.9
needs_torchs = pytest.mark.skipif(TORCH_MUON is None, reason="this PyTorch has no Muon of its own")


def matrix(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def polynomial(sigma, steps):
    a, b, c = QUINTIC
    for _ in range(steps):
        sigma = a * sigma + b * sigma**3 + c * sigma**5
    return sigma


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_it_acts_on_singular_values_alone(shape, steps):
    G = matrix(*shape)
    U, sigma, Vt = torch.linalg.svd(G / G.norm(), full_matrices=False)
    expected = U @ torch.diag(polynomial(sigma, steps)) @ Vt
    torch.testing.assert_close(orthogonalise(G, steps, torch.float64), expected)
    torch.testing.assert_close(orthogonalise(G.float(), steps), expected.float(), atol=1e-4, rtol=1e-4)


def test_where_singular_values_end():
    ends = polynomial(torch.linspace(0.01, 1, 10_001, dtype=torch.float64), 5)
    assert 0.68 < ends.min() < ends.max() < 1.14


@pytest.mark.parametrize("shape", SHAPES)
def test_a_common_factor_and_a_transposition(shape):
    G = matrix(*shape)
    expected = orthogonalise(G, precision=torch.float64)
    torch.testing.assert_close(orthogonalise(1e-3 * G, precision=torch.float64), expected)
    torch.testing.assert_close(orthogonalise(G.mT, precision=torch.float64), expected.mT)


def test_zeros_stay_zeros_and_types_stay():
    assert orthogonalise(torch.zeros(3, 4)).count_nonzero() == 0
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        assert orthogonalise(matrix(3, 4, dtype=torch.float64).to(dtype)).dtype == dtype


@needs_torchs
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("precision", "tolerance"), [(torch.bfloat16, 1e-6), (torch.float32, 0.03)])
def test_steps_equal_pytorchs(shape, precision, tolerance):
    """In bfloat16 up to a rounding of the last bit now and then; in float32 up to bfloat16's precision."""
    ours = nn.Parameter(matrix(*shape, dtype=torch.float32))
    theirs = copy.deepcopy(ours)
    options = {"lr": 0.02, "weight_decay": 0.1, "momentum": 0.9}
    optimizers = [
        Muon([ours], **options, precision=precision),
        TORCH_MUON([theirs], **options, adjust_lr_fn="match_rms_adamw"),
    ]
    length = 0.2 * max(shape) ** 0.5 * options["lr"]
    for step in range(4):
        for parameter, optimizer in zip((ours, theirs), optimizers, strict=True):
            parameter.grad = matrix(*shape, dtype=torch.float32, seed=step + 1)
            optimizer.step()
    difference = (ours - theirs).norm() / (4 * length * min(shape) ** 0.5)
    assert difference < max(tolerance, 1e-6), difference


def test_two_steps_by_hand():
    W = nn.Parameter(matrix(3, 5))
    start, gradients = W.detach().clone(), [matrix(3, 5, seed=s) for s in (1, 2)]
    optimizer = Muon([W], lr=0.1, weight_decay=0.3, momentum=0.6, precision=torch.float64)
    average, expected = torch.zeros(3, 5, dtype=torch.float64), start
    for G in gradients:
        W.grad = G
        optimizer.step()
        average = 0.6 * average + 0.4 * G
        update = orthogonalise(0.4 * G + 0.6 * average, precision=torch.float64)
        expected = (1 - 0.1 * 0.3) * expected - 0.2 * 5**0.5 * 0.1 * update
    torch.testing.assert_close(W.detach(), expected)


def test_a_closure_and_a_parameter_without_gradient():
    used, unused = (nn.Parameter(matrix(2, 3)) for _ in range(2))
    before = unused.detach().clone()

    def closure():
        loss = used.square().sum()
        loss.backward()
        return loss

    first = Muon([used, unused], lr=0.1, weight_decay=0.1)
    assert first.step(closure) > used.square().sum()
    assert torch.equal(unused, before)


def test_what_cannot_be():
    with pytest.raises(ValueError, match=r"for matrices, got a tensor of shape \(3,\)"):
        Muon([nn.Parameter(torch.ones(3))], lr=0.1)
    for name, wrong in (("lr", -1.0), ("weight_decay", float("nan")), ("momentum", 1.0)):
        with pytest.raises(ValueError, match=rf"{name} must lie in \[0, (inf|1)\), got"):
            Muon([nn.Parameter(torch.ones(2, 2))], **{"lr": 0.1, name: wrong})
