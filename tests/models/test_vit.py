"""ViT: the sum of its parts, sizes that do not fit, positions on another grid, and the paper's sizes."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from tformer_book.kit.published import PUBLISHED
from tformer_lib import record_attention
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.patches import to_patches
from tformer_lib.core.positions import Rotary2D
from tformer_lib.core.transformer import Transformer, TransformerConfig
from tformer_lib.models.vit import ViT, image_loss, resize_positions
from tformer_lib.training import count_parameters

CONFIG = TransformerConfig(d_model=16, n_heads=2, n_blocks=2)


def build(seed=0, **parts):
    torch.manual_seed(seed)
    sizes = {"image_size": (8, 12), "patch_size": 4, "channels": 2, "classes": 5}
    model = ViT(CONFIG, **sizes | parts).eval()
    with torch.no_grad():  # what begins as zeros is random, so that it is seen
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape)
    return model


def images(batch=3, size=(8, 12), channels=2, seed=1):
    return torch.randn(batch, channels, *size, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("pool", ["class", "mean"])
def test_forward_is_cut_embed_add_encode_and_read(pool):
    model, x = build(pool=pool), images()
    rows = []
    for image in x:
        patches = [image[:, r : r + 4, c : c + 4].flatten() for r in (0, 4) for c in (0, 4, 8)]
        tokens = [model.patch_embed.weight @ patch + model.patch_embed.bias for patch in patches]
        if pool == "class":
            tokens.insert(0, model.class_token)
        rows.append(torch.stack(tokens) + model.positions.table)
    h = torch.stack(rows)
    for block in model.transformer.blocks:
        h = block(h)
    h = model.transformer.final_norm(h)
    torch.testing.assert_close(model.features(x), h)
    read = h[:, 0] if pool == "class" else h.mean(dim=1)
    torch.testing.assert_close(model(x), read @ model.head.weight.T + model.head.bias)


def test_the_patch_embedding_is_a_convolution_with_the_patch_as_stride():
    model, x = build(), images()
    kernel = model.patch_embed.weight.reshape(16, 2, 4, 4)
    convolved = F.conv2d(x, kernel, model.patch_embed.bias, stride=4).flatten(2).transpose(1, 2)
    torch.testing.assert_close(model.patch_embed(to_patches(x, 4)), convolved)


def test_the_encoder_is_the_one_of_all_chapters_and_can_be_looked_into():
    model, x = build(), images()
    assert type(model.transformer) is Transformer
    with record_attention(model) as weights:
        model(x)
    assert [w.shape for w in weights.values()] == 2 * [(3, 2, 7, 7)]


def test_any_backend_of_attention_gives_the_same():
    torch.testing.assert_close(build(make_backend=FusedAttend)(images()), build()(images()))


def test_without_classes_forward_is_what_a_head_would_read():
    model, x = build(classes=None), images()
    assert model.head is None
    torch.testing.assert_close(model(x), model.features(x)[:, 0])


def test_a_new_model_says_that_all_classes_are_as_likely():
    model = ViT(CONFIG, image_size=8, patch_size=4, classes=5)
    assert not model(images(channels=1, size=(8, 8))).any()


def test_without_positions_the_patches_could_come_in_any_order():
    x = images(size=(8, 8))
    swapped = torch.cat([x[..., 4:], x[..., :4]], dim=-1)  # the left half and the right half
    model = build(image_size=8)
    assert not torch.allclose(model(x), model(swapped), atol=1e-3)
    model.positions.table.data.zero_()
    torch.testing.assert_close(model(x), model(swapped))


def test_dropout_falls_on_the_embedded_patches_in_training_only():
    torch.manual_seed(0)
    config = TransformerConfig(d_model=16, n_heads=2, n_blocks=1, dropout=0.5)
    model = ViT(config, image_size=(8, 12), patch_size=4, channels=2)
    x, seen = images(), []
    model.transformer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model.train()(x)
    assert 0.3 < (seen[0] == 0).float().mean() < 0.7
    model.eval()
    torch.testing.assert_close(model(x), model(x))


@pytest.mark.parametrize("pool", ["class", "mean"])
def test_registers_stand_behind_the_class_token_without_a_place(pool):
    model, x, first = build(pool=pool, registers=3), images(), int(pool == "class")
    assert model.positions.max_len == 6 + first
    assert model.registers.shape == (3, 16)
    tokens = model.patch_embed(to_patches(x, 4)) + model.positions.table[first:]
    before = [model.registers.expand(3, 3, 16)]
    if pool == "class":
        before.insert(0, (model.class_token + model.positions.table[0]).expand(3, 1, 16))
    h = model.transformer(torch.cat([*before, tokens], dim=1))
    torch.testing.assert_close(model.features(x), h)
    read = h[:, 0] if pool == "class" else h[:, 3:].mean(dim=1)  # a mean is of patches only
    torch.testing.assert_close(model(x), model.head(read))
    logits = model(x)
    model.registers.data += torch.randn(3, 16)
    assert not torch.allclose(model(x), logits, atol=1e-3)  # and yet they matter
    assert build(pool=pool).registers is None
    assert model.resized((8, 16)).registers.shape == (3, 16)


@pytest.mark.parametrize("registers", [0, 2])
@pytest.mark.parametrize("pool", ["class", "mean"])
def test_rotary_replaces_the_table_and_grows_with_the_image(pool, registers):
    turn = Rotary2D(8, (2, 3), before=registers + (pool == "class"))
    model = build(pool=pool, registers=registers, rotary=turn)
    assert model.positions is None
    assert not any("positions" in name for name, _ in model.named_parameters())
    larger = model.resized((16, 20))
    assert larger(images(size=(16, 20))).shape == (3, 5)
    assert turn.grid == (2, 3)  # the model's own is as it was
    assert torch.equal(larger.resized((8, 12))(images()), model(images()))
    logits = model(images())
    for block in model.transformer.blocks:
        block.self_attention.rotary = None
    assert not torch.allclose(model(images()), logits, atol=1e-4)


@pytest.mark.parametrize(("grid", "before"), [((3, 2), 1), ((2, 3), 0), ((2, 3), 2)])
def test_rotary_for_another_grid_is_an_error(grid, before):
    with pytest.raises(ValueError, match=r"has a grid of \(2, 3\) behind 1 other tokens"):
        build(rotary=Rotary2D(8, grid, before=before))


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"image_size": (8, 13)}, "patches of 4 do not tile an image of 8 x 13"),
        ({"image_size": 10}, "patches of 4 do not tile an image of 10 x 10"),
        ({"patch_size": 0}, "patches of 0 do not tile an image of 8 x 12"),
        ({"pool": "max"}, "pool"),
    ],
)
def test_sizes_that_do_not_fit_are_errors(sizes, said):
    with pytest.raises(Exception, match=said):  # the run-time check of types sees an unknown pool first
        build(**sizes)


@pytest.mark.parametrize("wrong", [{"size": (12, 8)}, {"size": (8, 8)}, {"channels": 3}])
def test_images_that_the_model_was_not_made_for_are_errors(wrong):
    with pytest.raises(ValueError, match=r"reads images of .* = \(2, 8, 12\), got \("):
        build()(images(**wrong))


def test_resized_to_its_own_size_is_the_same_model():
    model = build()
    same = model.resized((8, 12))
    assert same is not model
    assert torch.equal(same(images()), model(images()))
    same.positions.table.data += 1
    same.patch_embed.weight.data += 1
    assert not torch.equal(same(images()), model(images()))


@pytest.mark.parametrize("pool", ["class", "mean"])
def test_resized_stretches_the_positions_and_keeps_all_else(pool):
    model = build(pool=pool)
    before = {name: p.clone() for name, p in model.state_dict().items()}
    larger = model.resized((16, 24))
    assert larger(images(size=(16, 24))).shape == (3, 5)
    assert larger.grid == (4, 6)
    assert larger.positions.max_len == 24 + (pool == "class")
    for name, p in larger.state_dict().items():
        assert name == "positions.table" or torch.equal(p, before[name])
    for name, p in model.state_dict().items():
        assert torch.equal(p, before[name])
    first = int(pool == "class")
    assert torch.equal(larger.positions.table[:first], model.positions.table[:first])
    old = model.positions.table[first:].detach().T.reshape(1, 16, 2, 3)
    new = larger.positions.table[first:].detach().T.reshape(1, 16, 4, 6)
    torch.testing.assert_close(new, F.interpolate(old, size=(4, 6), mode="bicubic"))
    assert larger.positions.table.requires_grad
    with pytest.raises(ValueError, match="do not tile an image of 9 x 12"):
        model.resized((9, 12))


def test_positions_that_climb_along_the_rows_still_do_when_stretched():
    rows = torch.arange(6.0).repeat_interleave(5)[:, None]
    found = resize_positions(rows, (6, 5), (12, 10)).reshape(12, 10)
    assert (found[1:-1, 0].diff() > 0).all()
    assert found.std(dim=1).max() < 1e-5
    assert abs(found.mean() - 2.5) < 1e-5


@given(
    rows=st.integers(1, 5),
    columns=st.integers(1, 5),
    more_rows=st.integers(1, 9),
    more_columns=st.integers(1, 9),
    kept=st.integers(0, 2),
)
def test_constant_positions_stay_constant(rows, columns, more_rows, more_columns, kept):
    table = torch.ones(rows * columns + kept, 3)
    table[:kept] = 7
    found = resize_positions(table, (rows, columns), (more_rows, more_columns))
    assert torch.equal(found[:kept], table[:kept])
    torch.testing.assert_close(found[kept:], torch.ones(more_rows * more_columns, 3))


def test_a_table_too_short_for_its_grid_is_an_error():
    with pytest.raises(ValueError, match="a grid of 2 x 3 patches needs more than 5 positions"):
        resize_positions(torch.zeros(5, 4), (2, 3), (4, 6))


@pytest.mark.parametrize(("name", "patch"), [("ViT-B/16", 16), ("ViT-L/16", 16), ("ViT-H/14", 14)])
def test_the_class_at_published_sizes_has_the_published_counts(name, patch):
    spec = PUBLISHED[name]
    with torch.device("meta"):
        model = ViT(spec.config, image_size=224, patch_size=patch, channels=3, classes=1000)
    assert count_parameters(model) == spec.parameters()
    assert model.positions.max_len == spec.length


def test_the_loss_is_the_mean_surprise_at_the_labels():
    model, x, labels = build(), images(), torch.tensor([4, 0, 2])
    expected = -model(x).softmax(-1)[torch.arange(3), labels].log().mean()
    torch.testing.assert_close(image_loss(model, (x, labels)), expected)


@pytest.mark.parametrize("options", [{}, {"pool": "mean", "registers": 2}])
def test_no_images_have_no_logits(options):
    model = build(**options)
    logits = model(torch.randn(0, 2, 8, 12))
    assert logits.shape == (0, 5)
    logits.sum().backward()
