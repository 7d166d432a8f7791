"""The in-context regressor: shapes, what each prediction has read, its loss, and that it learns."""

import pytest
import torch

from tformer_book.gpt.data.regressions import (
    RandomRegressions,
    averaging,
    error_by_examples,
    random_regressions,
)
from tformer_book.gpt.models.in_context import InContextRegressor, in_context_loss, in_context_regressor
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import LearnedPositions, Rotary
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.training import fit

CONFIG = TransformerConfig(d_model=16, n_heads=2, n_blocks=2)
BUILDS = {
    "none": lambda: InContextRegressor(CONFIG, 3),
    "learned": lambda: InContextRegressor(CONFIG, 3, positions=LearnedPositions(12, 16)),
    "rotary": lambda: InContextRegressor(CONFIG, 3, rotary=Rotary(8)),
    "relative": lambda: in_context_regressor(CONFIG, 3),
}


def batch(examples=6, n=4):
    return random_regressions(n, examples, 3, noise=0.1, generator=torch.Generator().manual_seed(0))


@pytest.fixture(params=BUILDS)
def model(request):
    torch.manual_seed(0)
    return BUILDS[request.param]()


def test_a_prediction_reads_the_examples_before_it_and_its_own_input(model):
    r = batch()
    predictions = model(r.x, r.y)
    assert predictions.shape == (4, 6)
    for k in range(6):
        x, y = r.x.clone(), r.y.clone()
        x[:, k + 1 :], y[:, k:] = 5.0, -5.0
        torch.testing.assert_close(model(x, y)[:, : k + 1], predictions[:, : k + 1])
        for changed in ("x", "y")[: 1 + (k > 0)]:  # and it does read what it may
            x, y = r.x.clone(), r.y.clone()
            if changed == "x":
                x[:, k] += 1
            else:
                y[:, k - 1] += 1
            assert (model(x, y)[:, k] - predictions[:, k]).abs().min() > 1e-6


def test_rows_do_not_read_one_another(model):
    r = batch()
    torch.testing.assert_close(model(r.x[1:2], r.y[1:2]), model(r.x, r.y)[1:2])


def test_the_loss_is_the_mean_over_rows_and_places(model):
    r = batch()
    predictions = model(r.x, r.y)
    by_hand = [(predictions[b, k] - r.y[b, k]) ** 2 / 3 for b in range(4) for k in range(6)]
    loss = in_context_loss(model, r)
    torch.testing.assert_close(loss, torch.stack(by_hand).mean())
    torch.testing.assert_close(loss, error_by_examples(predictions, r.y, 3).mean())
    torch.testing.assert_close(in_context_loss(model, (r.x, r.y)), loss)


def test_every_parameter_is_trained(model):
    in_context_loss(model, batch()).backward()
    idle = [name for name, p in model.named_parameters() if p.grad is None]
    assert idle == []


def test_tokens_alternate(model):
    seen = []
    model.transformer.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    r = batch()
    model.positions = None
    model(r.x, r.y)
    torch.testing.assert_close(seen[0][:, 2], model.read_x(r.x[:, 1]))
    torch.testing.assert_close(seen[0][:, 3], model.read_y(r.y[:, 1, None]))


def test_the_relative_one_reads_longer_rows_and_has_its_own_bias_in_each_block():
    model = in_context_regressor(CONFIG, 3)
    r = batch(examples=40)
    assert model(r.x, r.y).shape == (4, 40)
    biases = [block.self_attention.backend.score_bias for block in model.transformer.blocks]
    assert biases[0] is not biases[1]
    assert biases[0].bucket(torch.tensor([0, 1, 2, 3, 4, 80])).tolist() == [0, 1, 2, 3, 3, 3]


def test_the_backend_may_be_another():
    model = InContextRegressor(CONFIG, 3, make_backend=FusedAttend)
    assert isinstance(model.transformer.blocks[0].self_attention.backend, FusedAttend)


def test_it_learns_from_examples():
    """A minute model after two hundred steps: the second example helps, and averaging is beaten."""
    torch.manual_seed(0)
    model = in_context_regressor(TransformerConfig(d_model=16, n_heads=2, n_blocks=2), 1)
    batches = RandomRegressions(d=1, examples=6, batch=32, steps=200)
    fit(model, in_context_loss, batches, lr=1e-2, optimizer="muon")
    r = random_regressions(500, 6, 1, generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        error = error_by_examples(model(r.x, r.y), r.truth, 1)
    assert error[0] > 0.8
    assert error[5] < 0.3
    assert error[5] < 0.5 * error_by_examples(averaging(r.x, r.y), r.truth, 1)[5]


def test_bad_shapes_are_named():
    model = in_context_regressor(CONFIG, 3)
    with pytest.raises(ValueError, match=r"d=3\), got \(4, 6, 2\)"):
        model(torch.zeros(4, 6, 2), torch.zeros(4, 6))


def test_the_number_of_outputs_is_named():
    model = in_context_regressor(CONFIG, 3)
    with pytest.raises((ValueError, TypeError), match=r"one output|Type-check"):
        model(torch.zeros(4, 6, 3), torch.zeros(4, 5))
