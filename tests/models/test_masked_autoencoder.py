"""The autoencoder of hidden patches."""

import pytest
import torch

from tformer_lib.core.patches import from_patches, to_patches
from tformer_lib.core.positions import Rotary2D
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.masked_autoencoder import MaskedAutoencoder, reconstruction_loss
from tformer_lib.models.vit import ViT
from tformer_lib.training import seed_everything

SMALL = TransformerConfig(d_model=16, n_heads=2, n_blocks=1)


def make(pool="class", hidden=0.75, seed=0):
    seed_everything(seed)
    vit = ViT(SMALL, image_size=8, patch_size=2, pool=pool)
    return MaskedAutoencoder(vit, TransformerConfig(d_model=12, n_heads=2, n_blocks=1), hidden=hidden).eval()


@pytest.mark.parametrize("pool", ["class", "mean"])
def test_shapes_and_counts(pool):
    model, images = make(pool), torch.rand(3, 1, 8, 8)
    hidden = model.draw(3)
    assert hidden.shape == (3, 16)
    assert hidden.sum(dim=1).tolist() == [12, 12, 12]
    assert model(images, hidden).shape == (3, 16, 4)


def test_every_patch_is_hidden_equally_often():
    shares = make().draw(4000, torch.Generator().manual_seed(0)).float().mean(dim=0)
    assert (shares - 0.75).abs().max() < 0.03


@pytest.mark.parametrize("pool", ["class", "mean"])
def test_what_is_hidden_is_not_read(pool):
    model, images = make(pool), torch.rand(2, 1, 8, 8)
    hidden = model.draw(2, torch.Generator().manual_seed(1))
    other = torch.where(hidden[..., None], torch.rand(2, 16, 4), to_patches(images, 2))
    with torch.no_grad():
        torch.testing.assert_close(model(from_patches(other, 2, 8, 8), hidden), model(images, hidden))
        seen = torch.where(hidden[..., None], to_patches(images, 2), torch.rand(2, 16, 4))
        assert not torch.allclose(
            model(from_patches(seen, 2, 8, 8), hidden), model(images, hidden), atol=1e-4
        )


def test_patches_go_back_to_their_places():
    """With identities for the maps, the decoder sees at each visible place what the encoder said of it."""
    model, images = make(), torch.rand(2, 1, 8, 8)
    hidden = model.draw(2, torch.Generator().manual_seed(2))
    caught = []
    model.decoder.register_forward_pre_hook(lambda _, inputs: caught.append(inputs[0]))
    with torch.no_grad():
        model(images, hidden)
        vit, table = model.encoder, model.encoder.positions.table
        for b in range(2):
            places = (~hidden[b]).nonzero()[:, 0]
            tokens = vit.patch_embed(to_patches(images[b : b + 1], 2)[0, places]) + table[1 + places]
            first = (vit.class_token + table[0])[None]
            h = model.narrow(vit.transformer(torch.cat([first, tokens])[None])[0, 1:])
            expected = model.blank.expand(16, -1).clone()
            expected[places] = h
            torch.testing.assert_close(caught[0][b], expected + model.positions.table)


def test_the_loss_counts_hidden_patches_only():
    model, images = make(), torch.rand(2, 1, 8, 8)
    hidden = model.draw(2, torch.Generator().manual_seed(3))
    errors = (model(images, hidden) - to_patches(images, 2)).square().mean(dim=2)
    expected = sum(errors[b, n] for b in range(2) for n in range(16) if hidden[b, n]) / 24
    torch.testing.assert_close(reconstruction_loss(model, images, hidden), expected)


def test_it_learns_to_fill_in():
    """Images of one grey each: what is seen says what is hidden."""
    model, generator = make().train(), torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(120):
        images = torch.rand(32, 1, 1, 1, generator=generator).expand(32, 1, 8, 8)
        loss = reconstruction_loss(model, images, model.draw(32, generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-10:]) / 10 < 0.02 < 1 / 12 < losses[0]


@pytest.mark.parametrize("hidden", [0.0, 0.01, 1.0])
def test_some_are_hidden_and_some_seen(hidden):
    with pytest.raises(ValueError, match="some of 16 patches are hidden"):
        make(hidden=hidden)


@pytest.mark.parametrize("parts", [{"registers": 2}, {"rotary": Rotary2D(8, (4, 4))}])
def test_the_encoder_has_a_table_and_no_registers(parts):
    with pytest.raises(ValueError, match="must have learned positions, and no registers"):
        MaskedAutoencoder(ViT(SMALL, image_size=8, patch_size=2, **parts), SMALL)


def test_all_images_show_as_many():
    with pytest.raises(ValueError, match="every image shows 4 patches"):
        make()(torch.rand(2, 1, 8, 8), torch.zeros(2, 16, dtype=torch.bool))


def test_no_images_have_no_pixels():
    assert make()(torch.rand(0, 1, 8, 8), torch.zeros(0, 16, dtype=torch.bool)).shape == (0, 16, 4)
