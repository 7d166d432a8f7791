"""The top-k autoencoder against a loop, and what training makes of data with known directions."""

import pytest
import torch
from torch.nn.functional import normalize

from tformer_book.inside.models.sparse_autoencoder import TopKAutoencoder, fit_autoencoder, matched_cosines


def test_keeps_the_k_largest_of_the_positive():
    torch.manual_seed(0)
    model = TopKAutoencoder(6, 20, 3, centre=torch.randn(6), scale=2.0)
    torch.nn.init.normal_(model.encoder.bias)
    x = torch.randn(2, 5, 6)
    z = model.encode(x)
    for at in torch.cartesian_prod(torch.arange(2), torch.arange(5)).tolist():
        one = x[*at]
        scores = model.encoder.weight @ ((one - model.centre) / 2) + model.encoder.bias
        kept = sorted(range(20), key=lambda i: -scores[i])[:3]
        expected = torch.tensor([max(scores[i].item(), 0) if i in kept else 0 for i in range(20)])
        torch.testing.assert_close(z[*at], expected)
        summed = sum(expected[i] * model.directions[i] for i in range(20))
        torch.testing.assert_close(model(x)[*at], model.centre + 2 * summed)


def test_a_code_of_no_features_is_refused():
    for k in (0, 5):
        with pytest.raises(ValueError, match=f"k = {k}"):
            TopKAutoencoder(3, 4, k)


def test_finds_the_directions_that_sparse_data_is_made_of():
    generator = torch.Generator().manual_seed(0)
    true = normalize(torch.randn(24, 16, generator=generator), dim=-1)
    active = torch.rand(8000, 24, generator=generator) < 0.06
    x = (active * (0.5 + torch.rand(8000, 24, generator=generator))) @ true
    state = torch.random.get_rng_state()
    model = fit_autoencoder(x, 24, 3, steps=800, seed=0, batch=256, lr=5e-3)
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.testing.assert_close(model.directions.norm(dim=-1), torch.ones(24))
    found = matched_cosines(true, model.directions.detach())
    assert (found > 0.9).float().mean() > 0.7
    again = fit_autoencoder(x, 24, 3, steps=5, seed=1, batch=256)
    assert torch.equal(again.directions, fit_autoencoder(x, 24, 3, steps=5, seed=1, batch=256).directions)


def test_matching_undoes_a_permutation():
    directions = torch.randn(9, 5, generator=torch.Generator().manual_seed(0))
    order = torch.randperm(9, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(matched_cosines(directions, 3 * directions[order]), torch.ones(9))
    assert len(matched_cosines(directions, directions[:4])) == 4
