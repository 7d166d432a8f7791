"""Blocks that skip in another way than the book's, to see what the difference does."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from tformer_lib.core.transformer import Block


class NormedSkipBlock(Block):
    """norm(x) + f(norm(x)): what skips the sublayer is the *normalised* input.

    Some notes write pre-norm so, with one symbol for the input before and after the norm. It is neither
    pre- nor post-norm, and closer to the latter: the stream passes through every norm. Build it with
    `norm_placement="pre"`, so that the stack ends in a norm.
    """

    def residual(self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """The sublayer's output, added to its own input."""
        y = norm(x)
        return y + self.dropout(sublayer(y))


class NoSkipBlock(Block):
    """f(norm(x)), with nothing beside it: each sublayer replaces what it reads."""

    def residual(self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """The sublayer's output alone."""
        return self.dropout(sublayer(norm(x)))


def share_of_differences(x: Float[Tensor, "B N D"]) -> Float[Tensor, ""]:
    """||X - mean over tokens|| / ||X||, averaged over the batch: zero if all tokens are the same.

    The relative residual of Dong et al. (2021), with Frobenius norms.
    """
    differences = x - x.mean(dim=1, keepdim=True)
    return (differences.norm(dim=(1, 2)) / x.norm(dim=(1, 2))).mean()
