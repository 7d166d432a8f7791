"""Toy models of superposition: each on its own, and theory against Monte Carlo."""

import pytest
import torch

from tformer_book.inside.models import superposition as sup


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_features_are_as_dense_as_asked_and_uniform():
    x = sup.sparse_features(torch.tensor([[0.1, 0.5], [1.0, 0.0]]), 40_000, generator())
    assert (x > 0).float().mean(dim=1) == pytest.approx(torch.tensor([[0.1, 0.5], [1, 0]]), abs=0.01)
    assert x[1, :, 0].mean() == pytest.approx(0.5, abs=0.01)
    assert x[1, :, 0].var() == pytest.approx(1 / 12, abs=0.003)
    with pytest.raises(ValueError, match="probability"):
        sup.sparse_features(torch.tensor([[1.5]]), 3)


@pytest.mark.parametrize("linear", [False, True])
def test_models_side_by_side_are_single_models(linear):
    models = sup.ToyModels(3, 5, 2, linear=linear, generator=generator())
    with torch.no_grad():
        models.b.normal_(generator=generator(1))
        x = torch.rand(3, 7, 5, generator=generator(2))
        for i in range(3):
            expected = x[i] @ models.W[i].T @ models.W[i] + models.b[i]
            torch.testing.assert_close(models(x)[i], expected if linear else expected.relu())


@pytest.mark.parametrize(("p", "r"), [(0.1, 1.0), (0.5, 0.4), (1.0, 0.2)])
def test_closed_forms_are_what_monte_carlo_finds(p, r):
    x = sup.sparse_features(torch.full((1, 2), p), 400_000, generator())
    importance = torch.tensor([[1.0, r]])
    shared = torch.stack((x[..., 0] - x[..., 1], x[..., 1] - x[..., 0]), dim=-1).relu()
    assert sup.weighted_error(x, shared, importance).item() == pytest.approx(sup.share_loss(p, r), rel=0.05)
    dropped = torch.stack((x[..., 0], torch.full_like(x[..., 1], p / 2)), dim=-1)
    assert sup.weighted_error(x, dropped, importance).item() == pytest.approx(sup.drop_loss(p, r), rel=0.02)


def test_the_losses_meet_at_the_boundary():
    for r in (0.05, 0.3, 1.0):
        p = sup.sharing_boundary(r)
        assert sup.drop_loss(p, r) == pytest.approx(sup.share_loss(p, r))
        assert sup.drop_loss(0.9 * p, r) > sup.share_loss(0.9 * p, r)
        assert sup.drop_loss(min(1.0, 1.1 * p), r) < sup.share_loss(min(1.0, 1.1 * p), r)
    assert sup.sharing_boundary(1.0) == pytest.approx(4 / 7)
    assert sup.sharing_boundary(1.0, 1.0, 1.0, 1.0) == pytest.approx(1 / 3)  # features that are 0 or 1


def test_the_midpoint_rule_is_near_the_closed_forms():
    W, b = torch.tensor([[1.0, -1.0], [1.0, 0.0]]), torch.tensor([[0.0, 0.0], [0.0, 0.15]])
    p, r = torch.full((2,), 0.3), torch.full((2,), 0.6)
    expected = [sup.share_loss(0.3, 0.6), sup.drop_loss(0.3, 0.6)]
    assert sup.exact_error(W, b, p, r, 64).tolist() == pytest.approx(expected, rel=0.01)


def test_training_finds_the_pair():
    density = torch.full((4, 2), 0.1)
    models = sup.ToyModels(4, 2, 1, generator=generator())
    draws = generator(3)
    sup.train_toys(
        models, lambda b: sup.sparse_features(density, b, draws), torch.ones(4, 2), steps=400, lr=0.03
    )
    products = models.W[:, 0].prod(dim=-1)
    assert products.min().item() == pytest.approx(-1, abs=0.1)
