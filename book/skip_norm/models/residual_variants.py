"""Blocks that skip in another way than the book's, to see what the difference does."""

from collections.abc import Callable
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from tformer_lib.core.transformer import Block, TransformerConfig, make_norm


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


class BranchNormBlock(Block):
    """x + norm(f(x)): the norm stands at the end of the branch, as in OLMo 2 (2025).

    Nothing is normalised on the stream, and what a sublayer adds has the size of the norm's gain, whatever
    the sublayer's weights. Build it with `norm_placement="pre"`, so that the stack ends in a norm.
    """

    def residual(self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """The sublayer's output, normalised, added to its input."""
        return x + self.dropout(norm(sublayer(x)))


class SandwichBlock(Block):
    """x + norm'(f(norm(x))): a norm at both ends of the branch, as in CogView (2021) and Gemma 2 (2024).

    Build it with `norm_placement="pre"`. Its second norms are `self_attention_end` and `mlp_end`.
    """

    def __init__(self, config: TransformerConfig, **parts: Any):
        if config.cross_attention:
            raise ValueError("a sandwich of norms has no cross-attention here")
        super().__init__(config, **parts)
        self.self_attention_end, self.mlp_end = make_norm(config), make_norm(config)

    def residual(self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """The sublayer's output, normalised once more, added to its input."""
        end = self.self_attention_end if norm is self.self_attention_norm else self.mlp_end
        return x + self.dropout(end(sublayer(norm(x))))


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
