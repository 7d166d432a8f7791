"""The small convolutional network: what it computes, and at what width it has as many parameters as asked."""

import pytest
import torch
import torch.nn.functional as F

from tformer_book.vit.models.cnn import SmallCNN
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.vit import ViT
from tformer_lib.training import count_parameters, width_for_budget


def test_forward_is_two_rounds_and_a_linear_layer():
    torch.manual_seed(0)
    model, x = SmallCNN(5, channels=2, width=3, image_size=12), torch.randn(4, 2, 12, 12)
    h = x
    for conv in (model.conv_1, model.conv_2):
        h = F.max_pool2d(F.conv2d(h, conv.weight, conv.bias, padding=1).clamp(min=0), 2)
    assert h.shape == (4, 6, 3, 3)
    expected = h.reshape(4, -1) @ model.head.weight.T + model.head.bias
    torch.testing.assert_close(model(x), expected)


def test_before_its_head_it_treats_all_places_alike():
    torch.manual_seed(0)
    model, x = SmallCNN(5, width=4), torch.zeros(1, 1, 28, 28)
    x[..., 8:16, 8:16] = torch.rand(8, 8)
    for conv in (model.conv_1, model.conv_2):  # with a bias, edges would differ from what lies inside
        torch.nn.init.zeros_(conv.bias)
    moved = x.roll(4, dims=-1)
    maps = [model.pool(model.conv_2(model.pool(model.conv_1(i).relu())).relu()) for i in (x, moved)]
    torch.testing.assert_close(maps[0].roll(1, dims=-1)[..., 1:6], maps[1][..., 1:6])


def test_it_can_have_as_many_parameters_as_a_vision_transformer():
    budget = count_parameters(
        ViT(TransformerConfig(d_model=64, n_heads=4, n_blocks=4), image_size=28, patch_size=4, classes=10)
    )
    width = width_for_budget(lambda width: SmallCNN(10, width=width), budget)
    assert abs(count_parameters(SmallCNN(10, width=width)) / budget - 1) < 0.05


@pytest.mark.parametrize("size", [0, 2, 10, 27])
def test_a_size_that_cannot_be_halved_twice_is_an_error(size):
    with pytest.raises(ValueError, match=f"image_size must be a multiple of 4, got {size}"):
        SmallCNN(10, image_size=size)
