"""The DiT against PyTorch's own pieces, and the flow against distributions whose velocity is known."""

import pytest
import torch
import torch.nn.functional as F

from tformer_lib import TransformerConfig
from tformer_lib.core.patches import to_patches
from tformer_lib.models.dit import DiT, DiTBlock, flow_images, flow_loss, time_features


def config(**changes):
    return TransformerConfig(**({"d_model": 8, "n_heads": 2, "n_blocks": 2} | changes))


def shaken(module, seed=0):
    """The module in float64, every parameter drawn anew: nothing is zero any more."""
    generator = torch.Generator().manual_seed(seed)
    for p in module.double().parameters():
        p.data = 0.4 * torch.randn(p.shape, generator=generator, dtype=torch.float64)
    return module


def by_torch(block, x, c):
    """The block from F.linear, F.layer_norm and F.scaled_dot_product_attention."""
    b1, s1, g1, b2, s2, g2 = F.linear(F.silu(c), block.six.weight, block.six.bias)[:, None].chunk(6, dim=-1)
    attention, mlp = block.self_attention, block.mlp
    y = F.layer_norm(x, (x.shape[2],)) * (1 + s1) + b1
    heads = [
        F.linear(y, w.weight, w.bias).unflatten(2, (2, -1)).transpose(1, 2)
        for w in (attention.W_q, attention.W_k, attention.W_v)
    ]
    mixed = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
    x = x + g1 * F.linear(mixed, attention.W_o.weight, attention.W_o.bias)
    y = F.layer_norm(x, (x.shape[2],)) * (1 + s2) + b2
    hidden = F.gelu(F.linear(y, mlp.W_in.weight, mlp.W_in.bias))
    return x + g2 * F.linear(hidden, mlp.W_out.weight, mlp.W_out.bias)


def test_a_block_is_what_torch_computes_from_its_pieces():
    block = shaken(DiTBlock(config()))
    x, c = torch.randn(3, 5, 8).double(), torch.randn(3, 8).double()
    torch.testing.assert_close(block(x, c[:, None]), by_torch(block, x, c))


def test_the_model_is_what_torch_computes_from_its_pieces():
    model = shaken(DiT(config(), image_size=6, patch_size=2, channels=3))
    x, t = torch.randn(4, 3, 6, 6).double(), torch.rand(4).double()
    c = model.time(time_features(t, 8))
    h = model.patch_embed(to_patches(x, 2)) + model.positions.table
    for block in model.transformer.blocks:
        h = by_torch(block, h, c)
    last = model.transformer.final_norm
    out = model.pixels(F.layer_norm(h, (8,), last.weight, last.bias))
    expected = F.fold(out.mT, (6, 6), kernel_size=2, stride=2)
    torch.testing.assert_close(model(x, t), expected)


def test_it_begins_as_the_identity_that_says_zero():
    model = DiT(config(), image_size=4, patch_size=2)
    x = torch.randn(2, 4, 8)
    for block in model.transformer.blocks:
        assert torch.equal(block(x, torch.randn(2, 1, 8)), x)
    assert torch.equal(model(torch.randn(3, 1, 4, 4), torch.rand(3)), torch.zeros(3, 1, 4, 4))


def test_the_time_matters_once_it_is_trained():
    model = shaken(DiT(config(), image_size=4, patch_size=2))
    x = torch.randn(1, 1, 4, 4).double().repeat(2, 1, 1, 1)
    early, late = model(x, torch.tensor([0.1, 0.9]).double())
    assert (early - late).abs().max() > 1e-2


def test_time_features_are_sines_and_cosines():
    features = time_features(torch.tensor([0.0, 0.5]), 4)
    expected = torch.tensor([[0.0, 0, 1, 1], [0.4794, -0.4678, 0.8776, -0.8839]])  # angles 0.5 and 500
    torch.testing.assert_close(features, expected, atol=1e-4, rtol=0)


def one_image(picture):
    """The velocity where the data are one image: x_t = (1 - t) a + t e, so that e - a = (x_t - a) / t."""
    return lambda x, t: (x - picture) / t[:, None, None, None]


def test_one_image_has_no_loss_and_is_drawn_in_any_number_of_steps():
    picture = torch.randn(1, 3, 3)
    model, noise = one_image(picture), torch.randn(5, 1, 3, 3)
    assert flow_loss(model, picture.expand(64, -1, -1, -1)) < 1e-8
    for steps in (1, 2, 7):
        drawn = flow_images(model, noise, steps)
        torch.testing.assert_close(drawn, picture.expand(5, -1, -1, -1), atol=1e-5, rtol=0)


def test_the_loss_is_the_equation():
    images = torch.randn(50, 1, 2, 2)
    generator = torch.Generator().manual_seed(3)
    loss = flow_loss(lambda x, t: x * t[:, None, None, None], images, generator)
    generator.manual_seed(3)
    e, total = torch.randn(images.shape, generator=generator), 0.0
    times = torch.rand(50, generator=generator)
    for x, noise, t in zip(images, e, times, strict=True):
        mixed = (1 - t) * x + t * noise
        total += ((t * mixed - (noise - x)) ** 2).mean().item() / 50
    assert loss.item() == pytest.approx(total, rel=1e-5)


def test_a_normal_distribution_is_drawn_as_it_is():
    """For data of N(m, s^2) everything is linear, and the flow takes the noise e to m + s e."""
    m, s = 2.0, 0.5

    def velocity(x, t):
        t = t[:, None, None, None]
        spread = (1 - t) ** 2 * s**2 + t**2  # the variance of x_t
        shift = (x - (1 - t) * m) / spread
        return t * shift - (m + (1 - t) * s**2 * shift)  # E[e | x_t] - E[x | x_t]

    noise = torch.randn(200, 1, 1, 1, dtype=torch.float64)
    drawn = flow_images(velocity, noise, 2000)
    torch.testing.assert_close(drawn, m + s * noise, atol=5e-3, rtol=0)


def test_known_pixels_stay_and_are_seen_by_the_others():
    known = torch.tensor([[True, False]])
    given = torch.tensor([[[[3.0, 99.0]]]])

    def copy(x, t):
        """Pulls the right pixel to what the left one is to become: x_t = (1 - t) a + t e."""
        t = t[:, None, None, None]
        a = given[..., :1].expand(len(x), -1, -1, -1)
        return (x - a.repeat(1, 1, 1, 2)) / t

    drawn = flow_images(copy, torch.randn(4, 1, 1, 2), 5, given=given.expand(4, -1, -1, -1), known=known)
    torch.testing.assert_close(drawn, torch.full((4, 1, 1, 2), 3.0), atol=1e-5, rtol=0)
    seen = []
    noise = torch.randn(1, 1, 1, 2)
    flow_images(lambda x, t: seen.append((t.item(), x.clone())) or 0 * x, noise, 4, given=given, known=known)
    for t, x in seen:
        expected = (1 - t) * 3.0 + t * noise[0, 0, 0, 0].item()
        assert x[0, 0, 0, 0].item() == pytest.approx(expected, abs=1e-6)


def test_it_learns_two_images():
    torch.manual_seed(0)
    model = DiT(config(d_model=16), image_size=4, patch_size=2)
    two = torch.stack([torch.eye(4), 1 - torch.eye(4)])[:, None] * 2 - 1
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(300):
        loss = flow_loss(model, two.repeat(16, 1, 1, 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    drawn = flow_images(model, torch.randn(50, 1, 4, 4), 20)
    nearest = (drawn[:, None] - two[None]).square().mean(dim=(2, 3, 4)).amin(dim=1)
    assert nearest.median() < 0.1
    assert min((drawn * two[k]).mean(dim=(1, 2, 3)).gt(0).sum() for k in (0, 1)) >= 5  # both are drawn


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image_size": 5}, "do not tile"),
        ({"config": config(d_model=9, n_heads=3)}, "d_model is even"),
        ({"config": config(norm="rms")}, "LayerNorm"),
        ({"config": config(norm_placement="post")}, "pre-norm"),
        ({"config": config(cross_attention=True)}, "no cross-attention"),
    ],
)
def test_what_cannot_be_built_is_refused(changes, message):
    arguments = {"config": config(), "image_size": 4, "patch_size": 2} | changes
    with pytest.raises(ValueError, match=message):
        DiT(arguments.pop("config"), **arguments)


def test_what_does_not_fit_is_refused():
    model = DiT(config(), image_size=4, patch_size=2)
    with pytest.raises(ValueError, match="a time for each"):
        model(torch.zeros(2, 1, 4, 4), torch.zeros(3))
    with pytest.raises(ValueError, match="images of"):
        model(torch.zeros(2, 1, 6, 6), torch.zeros(2))
    with pytest.raises(ValueError, match="one vector for each image"):
        model.transformer.blocks[0](torch.zeros(2, 4, 8))
    with pytest.raises(ValueError, match="no cache"):
        model.transformer.blocks[0](
            torch.zeros(2, 4, 8), torch.zeros(2, 1, 8), context_mask=torch.ones(1).bool()
        )
    with pytest.raises(ValueError, match="both or neither"):
        flow_images(model, torch.zeros(1, 1, 4, 4), 2, given=torch.zeros(1, 1, 4, 4))
    with pytest.raises(ValueError, match="steps"):
        flow_images(model, torch.zeros(1, 1, 4, 4), 0)
