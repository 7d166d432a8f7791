"""Drawing all pixels at once: a transformer that turns noise into images, step by step (flow matching)."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tformer_lib.core.attention import Backend
from tformer_lib.core.cache import LayerCache
from tformer_lib.core.patches import from_patches, patch_grid, to_patches
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.precision import precise
from tformer_lib.core.transformer import Block, Transformer, TransformerConfig
from tformer_lib.inputs import check_real
from tformer_lib.numbers import whole


class DiTBlock(Block):
    """x + g * f((1 + s) * norm(x) + b) for attention and MLP in turn; shifts b, scales s, gates g are of c.

    c is what the whole image has in common, here the time, and comes as a context of one token. b, s and g
    are six linear functions of SiLU(c), all zero at first, so that a block begins as the identity
    ("adaLN-Zero").

    Args:
        config: width, heads, hidden width, activation and biases; the norm is LayerNorm without weights.
        rotary: turns queries and keys.
        make_backend: builds the backend of the attention layer.

    Raises:
        ValueError: if `config` asks for cross-attention, RMSNorm or post-norm.

    Source:
        Peebles and Xie 2023, section 3.2.
    """

    def __init__(
        self,
        config: TransformerConfig,
        *,
        rotary: nn.Module | None = None,
        make_backend: Callable[[], Backend] | None = None,
    ):
        if config.cross_attention or (config.norm, config.norm_placement) != ("layer", "pre"):
            raise ValueError("a DiT's block has pre-norm, LayerNorm and no cross-attention")
        super().__init__(config, rotary=rotary, make_backend=make_backend)
        d = config.d_model
        self.self_attention_norm = nn.LayerNorm(d, eps=config.norm_eps, elementwise_affine=False)
        self.mlp_norm = nn.LayerNorm(d, eps=config.norm_eps, elementwise_affine=False)
        self.six = nn.Linear(d, 6 * d)
        nn.init.zeros_(self.six.weight)
        nn.init.zeros_(self.six.bias)

    def forward(
        self,
        x: Float[Tensor, "B N _D"],
        context: Float[Tensor, "B 1 _D"] | None = None,
        mask: Tensor | None = None,
        context_mask: Tensor | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "B N _D"]:
        if context is None or context.shape[1:] != (1, x.shape[2]):
            shape = None if context is None else tuple(context.shape)
            raise ValueError(f"the context is one vector for each image, (B, 1, {x.shape[2]}), got {shape}")
        if context_mask is not None or cache is not None:
            raise ValueError("every token of an image is there at once: no cache, and no mask of the context")
        b1, s1, g1, b2, s2, g2 = self.six(F.silu(context)).chunk(6, dim=-1)
        y = (1 + s1) * self.self_attention_norm(x) + b1
        x = x + g1 * self.dropout(self.self_attention(y, mask=mask))
        return x + g2 * self.dropout(self.mlp((1 + s2) * self.mlp_norm(x) + b2))


class DiT(nn.Module):
    """The velocity v(x, t) of every pixel: (B, C, H, W) and times (B,) -> (B, C, H, W).

    Patches of x become columns with learned positions; all blocks get the time (see `DiTBlock`); a linear
    map makes pixels of every column. The time is given as sines and cosines, through two layers.

    Args:
        config: sizes and choices of the blocks.
        image_size: the side of the square images.
        patch_size: the side of a patch; it divides the image's.
        channels: the numbers of a pixel.
        make_backend: builds a backend for each attention layer.

    Raises:
        ValueError: if patches do not tile the image, or the width is odd; in forward, if the images are of
            another size, or there is not one time for each.

    Source:
        Peebles and Xie 2023, figure 3, without labels and with a plain norm before the last map; they predict
        the noise, we the velocity (see `flow_loss`).
    """

    def __init__(
        self,
        config: TransformerConfig,
        *,
        image_size: int,
        patch_size: int,
        channels: int = 1,
        make_backend: Callable[[], Backend] | None = None,
    ):
        super().__init__()
        image_size, channels = whole("image_size", image_size, 1), whole("channels", channels, 1)
        patch_size, d = whole("patch_size", patch_size, 1), config.d_model
        rows, columns = patch_grid(image_size, image_size, patch_size)
        if d % 2:
            raise ValueError(f"the time becomes pairs of sine and cosine: d_model is even, got {d}")
        self.shape, self.patch_size, numbers = (channels, image_size, image_size), patch_size, patch_size**2
        self.patch_embed = nn.Linear(channels * numbers, d)
        self.positions = LearnedPositions(rows * columns, d)
        self.time = nn.Sequential(nn.Linear(d, d), nn.SiLU(), nn.Linear(d, d))
        self.transformer = Transformer(config, make_backend=make_backend, block=DiTBlock)
        self.pixels = nn.Linear(d, channels * numbers)
        nn.init.zeros_(self.pixels.weight)
        nn.init.zeros_(self.pixels.bias)

    def forward(self, x: Float[Tensor, "B C H W"], t: Float[Tensor, " T"]) -> Float[Tensor, "B C H W"]:
        if x.shape[1:] != self.shape or t.shape != x.shape[:1]:
            raise ValueError(
                f"this model reads images of {self.shape} and a time for each, got {tuple(x.shape)} and "
                f"{tuple(t.shape)}"
            )
        check_real("images", x, self.patch_embed.weight)
        c = self.time(time_features(t, self.patch_embed.out_features))[:, None]
        h = self.positions(self.patch_embed(to_patches(x, self.patch_size)))
        return from_patches(self.pixels(self.transformer(h, c)), self.patch_size, *self.shape[1:])


def time_features(t: Float[Tensor, " B"], d: int) -> Float[Tensor, "B D"]:
    """sin(w_i t) and cos(w_i t), with D / 2 angular frequencies w_i from 1 to 1,000 in equal ratios."""
    w = torch.logspace(0, 3, d // 2, device=t.device, dtype=t.dtype)
    angles = t[:, None] * w
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def flow_loss(
    model: Callable[[Tensor, Tensor], Tensor],
    images: Float[Tensor, "B C H W"],
    generator: torch.Generator | None = None,
) -> Float[Tensor, ""]:
    """mean ||v(x_t, t) - (e - x)||^2 over pixels, with x_t = (1 - t) x + t e, e ~ N(0, 1), t ~ U(0, 1).

    The time and the noise of each image are drawn anew. What minimises it is the mean velocity
    E[e - x | x_t]. The mean is taken in float32 at least.

    Source:
        Liu et al. 2023, equation 1 (with time the other way round); Lipman et al. 2023.
    """
    e = torch.randn(images.shape, generator=generator).to(images)
    t = torch.rand(len(images), generator=generator).to(images)
    s = t[:, None, None, None]
    velocity = precise(model((1 - s) * images + s * e, t))
    return (velocity - (precise(e) - images)).square().mean()


@torch.no_grad()
def flow_images(
    model: Callable[[Tensor, Tensor], Tensor],
    noise: Float[Tensor, "B C H W"],
    steps: int,
    given: Float[Tensor, "B C H W"] | None = None,
    known: Tensor | None = None,
) -> Float[Tensor, "B C H W"]:
    """x <- x - v(x, t) / steps, from t = 1, where x is the noise, down to t = 0 (Euler's method).

    Where `known` is True the pixels are those of `given`: before each step they are put on the straight line
    between the noise and what they are to become, so that the others see them as they would in training.

    Raises:
        ValueError: if there is no step, or only one of `given` and `known`.
    """
    if (given is None) != (known is None):
        raise ValueError("given says what the known pixels are, and known which: both or neither")
    x = noise
    for k in range(whole("steps", steps, 1), 0, -1):
        t = k / steps
        if given is not None and known is not None:
            x = torch.where(known, (1 - t) * given + t * noise, x)
        x = x - model(x, torch.full((len(x),), t).to(x)) / steps
    return x if given is None or known is None else torch.where(known, given, x)
