"""The loss of two encoders that are to agree."""

import math

import pytest
import torch

from tformer_lib.models.contrastive import contrastive_loss


def test_definition():
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(2, 5, 7, generator=generator, dtype=torch.float64)
    total = 0.0
    for n in range(5):
        cosines = [torch.cosine_similarity(left[n], right[m], dim=0).item() / 0.2 for m in range(5)]
        back = [torch.cosine_similarity(left[m], right[n], dim=0).item() / 0.2 for m in range(5)]
        for scores in (cosines, back):
            total += math.log(sum(map(math.exp, scores))) - scores[n]
    torch.testing.assert_close(contrastive_loss(left, right, 0.2).item(), total / 10)


def test_agreement_and_ignorance():
    eye = torch.eye(6)
    assert contrastive_loss(eye, 3 * eye, 0.02).item() < 1e-6  # lengths do not count
    same = torch.ones(6, 6)
    assert contrastive_loss(same, same).item() == pytest.approx(math.log(6), abs=1e-5)


def test_it_is_symmetric():
    left, right = torch.randn(2, 4, 3)
    torch.testing.assert_close(contrastive_loss(left, right), contrastive_loss(right, left))


@pytest.mark.parametrize("shape", [(3, 4), (4, 5)])
def test_partners(shape):
    with pytest.raises(ValueError, match="each row has its partner"):
        contrastive_loss(torch.rand(4, 4), torch.rand(shape))


def test_temperature():
    with pytest.raises(ValueError, match="a temperature is positive"):
        contrastive_loss(torch.rand(2, 3), torch.rand(2, 3), 0.0)
