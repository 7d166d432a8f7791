"""The vision transformer's checkpoints: the reference's numbers, and errors that say why."""

import json
import random

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from tests.pretrained.reference import transformers
from tformer_lib.core.attention import FusedAttend
from tformer_lib.models.vit import ViT
from tformer_lib.pretrained import load

KINDS = ["ViTModel", "ViTForImageClassification"]


def random_settings(seed):
    """Sizes and choices of a tiny ViT; no two sizes are equal, so that none can stand for another."""
    draw = random.Random(seed)
    heads, patch = draw.choice([1, 2, 3, 5]), draw.choice([2, 3, 4])
    return {
        "num_attention_heads": heads,
        "hidden_size": heads * draw.choice([4, 7, 10]),
        "num_hidden_layers": draw.randint(1, 4),
        "intermediate_size": draw.choice([19, 37, 71]),
        "hidden_act": ["gelu", "gelu_new", "relu", "gelu_pytorch_tanh"][seed % 4],
        "layer_norm_eps": draw.choice([1e-12, 1e-5, 1e-2]),
        "image_size": patch * draw.randint(2, 5),
        "patch_size": patch,
        "num_channels": draw.choice([1, 2, 3]),
        "num_labels": draw.choice([2, 6, 11]),
        "initializer_range": 0.15,
    }


def reference(kind, seed=0, **settings):
    """A random model of transformers; gains, biases, class token and positions are random as well."""
    torch.manual_seed(seed)
    config = transformers.ViTConfig(**{**random_settings(seed), **settings})
    model = getattr(transformers, kind)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim in (1, 3):
                parameter += 0.2 * torch.randn(parameter.shape)
    return model


def images(config, size=None, seed=1):
    size = config.image_size if size is None else size
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, config.num_channels, size, size, generator=generator)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", KINDS)
def test_the_numbers_are_those_of_the_reference(tmp_path, kind, seed):
    theirs = reference(kind, seed)
    theirs.save_pretrained(tmp_path)
    ours, x = load(tmp_path), images(theirs.config)
    assert type(ours) is ViT
    assert not ours.training
    with torch.no_grad():
        if kind == "ViTModel":
            assert ours.head is None
            expected, found = theirs(x).last_hidden_state, ours.features(x)
        else:
            expected, found = theirs(x).logits, ours(x)
            body = theirs.vit(x).last_hidden_state
            assert_close(ours.features(x), body, atol=1e-5, rtol=0)
            assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())
    assert expected.std() > 0.02  # there is something to compare
    assert_close(found, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("seed", range(4))
def test_positions_for_another_size_are_those_of_the_reference(tmp_path, seed):
    theirs = reference("ViTForImageClassification", seed)
    theirs.save_pretrained(tmp_path)
    size = theirs.config.image_size + 3 * theirs.config.patch_size
    x = images(theirs.config, size)
    with torch.no_grad():
        expected = theirs(x, interpolate_pos_encoding=True).logits
        assert_close(load(tmp_path).resized(size)(x), expected, atol=1e-5, rtol=0)


def test_positions_and_the_class_token_matter_to_the_reference():
    theirs = reference("ViTForImageClassification", 1)  # or the comparison could not see them go wrong
    x = images(theirs.config)
    with torch.no_grad():
        before = theirs(x).logits
        for name in ("cls_token", "position_embeddings"):
            parameter = getattr(theirs.vit.embeddings, name)
            kept = parameter.clone()
            parameter.zero_()
            assert (theirs(x).logits - before).abs().max() > 1e-3
            parameter.copy_(kept)


def test_a_backend_and_a_precision_can_be_chosen(tmp_path):
    theirs = reference("ViTForImageClassification", 2)
    theirs.save_pretrained(tmp_path)
    x = images(theirs.config)
    assert_close(load(tmp_path, make_backend=FusedAttend)(x), load(tmp_path)(x))
    assert load(tmp_path, dtype=torch.bfloat16).head.weight.dtype == torch.bfloat16


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vit")
    reference("ViTForImageClassification", 3).save_pretrained(folder)
    return load_file(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())


def written(folder, tensors, settings):
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


def test_each_tensor_is_needed(tmp_path, saved):
    tensors, settings = saved
    for name in tensors:
        fewer = {other: tensor for other, tensor in tensors.items() if other != name}
        with pytest.raises(ValueError, match=f"missing {name}"):
            load(written(tmp_path, fewer, settings))


def test_a_tensor_that_the_model_has_no_place_for_is_an_error(tmp_path, saved):
    tensors, settings = saved
    more = {**tensors, "vit.embeddings.mask_token": torch.zeros(1, 1, 4)}
    with pytest.raises(ValueError, match=r"left over vit\.embeddings\.mask_token"):
        load(written(tmp_path, more, settings))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"qkv_bias": False}, "qkv_bias=False is not supported here, only True"),
        ({"hidden_act": "silu"}, "hidden_act='silu' is not supported here"),
        ({"patch_size": None}, "patch_size must be a positive whole number, got None"),
        ({"image_size": [8, 8]}, r"image_size must be a positive whole number, got \[8, 8\]"),
        ({"image_size": 1001}, r"config\.json: patches of \d do not tile an image of 1001 x 1001"),
        ({"id2label": ["a"]}, r"id2label must name the classes, got \['a'\]"),
        ({"architectures": "ViT"}, "architectures must be a list of names, got 'ViT'"),
        ({"num_attention_heads": 997}, "n_heads must divide d_model"),
        ({"id2label": {"0": "a"}}, r"classifier\.weight has shape .*, not \(1, "),
    ],
)
def test_settings_that_this_model_cannot_have_are_errors(tmp_path, saved, change, said):
    tensors, settings = saved
    with pytest.raises(ValueError, match=said):
        load(written(tmp_path, tensors, {**settings, **change}))


def test_a_head_that_the_settings_promise_is_missed(tmp_path, saved):
    tensors, settings = saved
    body = {name: tensor for name, tensor in tensors.items() if not name.startswith("classifier.")}
    with pytest.raises(ValueError, match=r"missing classifier\.weight"):
        load(written(tmp_path, body, settings))
    assert load(written(tmp_path, body, {**settings, "architectures": ["ViTModel"]})).head is None
