"""Random regressions are what they say; the predictors are those of numpy, example by example."""

import numpy as np
import pytest
import torch

from tformer_book.gpt.data.regressions import (
    RandomRegressions,
    Regressions,
    averaging,
    error_by_examples,
    least_squares,
    random_regressions,
    ridge,
)


def regressions(n=3, examples=8, d=3, noise=0.5, seed=0, **scales):
    generator = torch.Generator().manual_seed(seed)
    return random_regressions(n, examples, d, noise=noise, generator=generator, **scales)


def test_without_noise_outputs_are_the_products():
    r = regressions(noise=0.0)
    assert r.x.shape == (3, 8, 3)
    for b in range(3):
        for k in range(8):
            torch.testing.assert_close(r.y[b, k], r.x[b, k] @ r.w[b])
    torch.testing.assert_close(r.truth, r.y)


def test_scales_and_noise_change_what_they_name_and_nothing_else():
    plain, noisy = regressions(noise=0.0), regressions(noise=0.5)
    assert torch.equal(plain.x, noisy.x)
    assert torch.equal(plain.w, noisy.w)
    stretch = torch.tensor([3.0, 1.0, 0.5])
    scaled = regressions(noise=0.5, x_scale=stretch, w_scale=2.0)
    torch.testing.assert_close(scaled.x, plain.x * stretch)
    torch.testing.assert_close(scaled.w, plain.w * 2)
    torch.testing.assert_close(scaled.y - scaled.truth, noisy.y - noisy.truth)


def test_the_moments_are_those_of_the_prior():
    r = regressions(n=20_000, examples=4, d=2, noise=0.5)
    for values in (r.x, r.w):
        flat = values.reshape(-1, 2)
        torch.testing.assert_close(flat.mean(dim=0), torch.zeros(2), atol=0.03, rtol=0)
        torch.testing.assert_close(flat.T.cov(), torch.eye(2), atol=0.03, rtol=0)
    assert (r.y - r.truth).std().item() == pytest.approx(0.5, abs=0.01)
    assert (r.truth**2).mean().item() == pytest.approx(2, abs=0.06)


def test_batches_repeat_under_their_seed():
    batches = RandomRegressions(d=2, examples=5, batch=3, steps=4, noise=0.1, seed=1)
    assert len(batches) == 4
    first = list(batches)
    torch.manual_seed(7)
    for one, again in zip(first, batches, strict=True):
        assert isinstance(one, Regressions)
        assert one.x.shape == (3, 5, 2)
        assert all(torch.equal(a, b) for a, b in zip(one, again, strict=True))
    assert not torch.equal(first[0].w, first[1].w)
    other = RandomRegressions(d=2, examples=5, batch=3, steps=4, noise=0.1, seed=2)
    assert not torch.equal(first[0].x, next(iter(other)).x)


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_least_squares_is_that_of_numpy_and_the_shortest_where_many_fit(noise):
    r = regressions(noise=noise)
    predictions = least_squares(r.x, r.y)
    assert predictions[:, 0].tolist() == [0, 0, 0]
    for b in range(3):
        for k in range(1, 8):
            w = np.linalg.lstsq(r.x[b, :k].double().numpy(), r.y[b, :k].double().numpy())[0]
            assert predictions[b, k].item() == pytest.approx(r.x[b, k].double().numpy() @ w, abs=1e-4)


@pytest.mark.parametrize("penalty", [0.01, 0.25, 4.0])
def test_ridge_is_least_squares_with_the_prior_as_further_examples(penalty):
    """|y - Xw|^2 + penalty |w|^2 is the sum of squares of X with sqrt(penalty) I, and y with zeros, below."""
    r = regressions()
    predictions = ridge(r.x, r.y, penalty)
    for b in range(3):
        for k in range(8):
            X = np.vstack([r.x[b, :k].numpy(), np.sqrt(penalty) * np.eye(3)])
            w = np.linalg.lstsq(X, np.concatenate([r.y[b, :k].numpy(), np.zeros(3)]))[0]
            assert predictions[b, k].item() == pytest.approx(r.x[b, k].numpy() @ w, abs=1e-4)


def test_ridge_tends_to_least_squares_as_the_penalty_vanishes():
    r = regressions(noise=0.0)
    torch.testing.assert_close(ridge(r.x, r.y, 1e-7), least_squares(r.x, r.y), atol=1e-3, rtol=1e-3)


def test_ridge_with_the_variance_of_the_noise_errs_least():
    r = regressions(n=4000, examples=9, d=3, noise=0.7)
    errors = {p: error_by_examples(ridge(r.x, r.y, p), r.truth, 3) for p in (0.12, 0.49, 2.0)}
    least = error_by_examples(least_squares(r.x, r.y), r.truth, 3)
    for other in (errors[0.12], errors[2.0], least):
        assert (errors[0.49][2:] < other[2:]).all()
    assert least[3] > 2 * least[1]  # with as many examples as unknowns least squares is at its worst


def test_averaging_by_hand():
    r = regressions()
    predictions = averaging(r.x, r.y)
    for b in range(3):
        assert predictions[b, 0] == 0
        for k in range(1, 8):
            w = sum(r.y[b, i] * r.x[b, i] for i in range(k)) / k
            torch.testing.assert_close(predictions[b, k], w @ r.x[b, k])


@pytest.mark.parametrize("predict", [least_squares, averaging, lambda x, y: ridge(x, y, 0.25)])
def test_no_predictor_looks_at_what_it_predicts_or_beyond(predict):
    r = regressions()
    x, y = r.x.clone(), r.y.clone()
    x[:, 5:], y[:, 4:] = 9.0, -7.0
    torch.testing.assert_close(predict(x, y)[:, :5], predict(r.x, r.y)[:, :5])
    assert not torch.allclose(predict(x, y)[:, 5:], predict(r.x, r.y)[:, 5:])


def test_error_by_examples_is_a_mean_of_squares():
    predictions, truth = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[0.0, 2.0], [3.0, 4.0]])
    assert error_by_examples(predictions, truth, 2).tolist() == [2.5, 4.0]
    r = regressions(n=4000, noise=0.0)
    zero = error_by_examples(torch.zeros_like(r.y), r.truth, 3)
    torch.testing.assert_close(zero, torch.ones(8), atol=0.1, rtol=0)


def test_bad_numbers_are_named():
    with pytest.raises(ValueError, match="d=0"):
        random_regressions(1, 1, 0)
    with pytest.raises(ValueError, match="noise=-1"):
        random_regressions(1, 1, 1, noise=-1.0)
    with pytest.raises(ValueError, match="steps=0"):
        RandomRegressions(d=1, examples=1, batch=1, steps=0)
    with pytest.raises(ValueError, match="least_squares"):
        ridge(torch.ones(1, 2, 1), torch.ones(1, 2), 0.0)
