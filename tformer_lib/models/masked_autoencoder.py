"""Learning from images without labels: most patches are hidden, and their pixels are to be filled in."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tformer_lib.core.patches import to_patches
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.precision import precise
from tformer_lib.core.transformer import Transformer, TransformerConfig
from tformer_lib.inputs import check_real
from tformer_lib.models.vit import ViT


class MaskedAutoencoder(nn.Module):
    """loss = mean over hidden patches of ||x_n - W g_n + b||^2 / P, with g = Decoder(what the encoder saw).

    The encoder, a ViT, reads the visible patches only, each with the position of its place. Its outputs, made
    as wide as the decoder, go back to their places; at each hidden place stands one learned vector, the same
    for all. All get positions of the decoder's own, and after its blocks a linear map makes pixels of every
    column. After training the decoder is thrown away.

    Args:
        encoder: the ViT to be trained, with or without a class token; its head, if it has one, is not used.
        decoder: sizes and choices of the decoder's stack.
        hidden: the share of the patches that is hidden, rounded to whole patches.

    Raises:
        ValueError: if no patch would be hidden, or none seen; if the encoder has registers, or no table of
            positions.

    Source:
        He et al. 2022, section 3. They normalise each patch's pixels first, which we leave out.
    """

    def __init__(self, encoder: ViT, decoder: TransformerConfig, *, hidden: float = 0.75):
        super().__init__()
        if encoder.positions is None or encoder.registers is not None:
            raise ValueError("the encoder must have learned positions, and no registers")
        patches = encoder.grid[0] * encoder.grid[1]
        self.seen = patches - round(hidden * patches)
        if not 0 < self.seen < patches:
            raise ValueError(f"some of {patches} patches are hidden and some seen, got hidden={hidden}")
        self.encoder, self.decoder = encoder, Transformer(decoder)
        self.narrow = nn.Linear(encoder.config.d_model, decoder.d_model)
        self.blank = nn.Parameter(torch.zeros(decoder.d_model))
        self.positions = LearnedPositions(patches, decoder.d_model)
        self.pixels = nn.Linear(decoder.d_model, encoder.channels * encoder.patch_size**2)

    def draw(self, batch: int, generator: torch.Generator | None = None) -> Bool[Tensor, "B N"]:
        """For each image which patches are hidden, drawn anew; True is hidden."""
        patches = self.positions.max_len
        order = torch.rand(batch, patches, generator=generator).argsort(dim=1)
        return order >= self.seen

    def forward(
        self, images: Float[Tensor, "B C H W"], hidden: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N P"]:
        """The pixels that the model expects in every patch.

        Raises:
            ValueError: if not every image has as many visible patches as the model expects.
        """
        counts = (~hidden).sum(dim=1).unique().tolist()
        if counts not in ([self.seen], []):
            raise ValueError(f"every image shows {self.seen} patches, got images that show {counts}")
        vit = self.encoder
        check_real("images (pixels / 255)", images, vit.patch_embed.weight)
        assert vit.positions is not None  # seen to when the model was built
        x = vit.positions.table[-hidden.shape[1] :] + vit.patch_embed(to_patches(images, vit.patch_size))
        x = x[~hidden].unflatten(0, (len(images), self.seen))  # (B, seen, D)
        if vit.class_token is not None:
            first = (vit.class_token + vit.positions.table[0]).expand(len(images), 1, -1)
            x = torch.cat([first, x], dim=1)
        h = self.narrow(vit.transformer(x)[:, -self.seen :])
        full = self.blank.expand(*hidden.shape, -1).masked_scatter(~hidden[..., None], h)
        return self.pixels(self.decoder(self.positions(full)))


def reconstruction_loss(
    model: MaskedAutoencoder, images: Float[Tensor, "B C H W"], hidden: Bool[Tensor, "B N"]
) -> Float[Tensor, ""]:
    """The mean squared error of the pixels of hidden patches alone, in float32 at least."""
    target = to_patches(images, model.encoder.patch_size)
    return (precise(model(images, hidden)) - target)[hidden].square().mean()
