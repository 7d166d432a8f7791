"""In-context learning: a causal transformer that reads examples (x_k, y_k) and predicts the next y."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tformer_lib.core.attention import Backend, FusedAttend
from tformer_lib.core.masks import causal_mask
from tformer_lib.core.score_bias import RelativeBias
from tformer_lib.core.transformer import Transformer, TransformerConfig


class InContextRegressor(nn.Module):
    """prediction_k = r . h(x_k) + c, h = Transformer(x_1, y_1, x_2, y_2, ...) under a causal mask.

    Each input and each output is a token: W_x x_k + b_x and W_y y_k + b_y. What comes out at x_k has read
    x_1, y_1, ..., y_{k-1}, x_k, and predicts y_k: all K predictions of a row are made, and trained, at once,
    as a language model's are (Garg et al. 2022, section 2). No weight changes from one regression to
    the next: what the model knows of this w it has from the tokens before.

    Args:
        config: sizes and choices of the stack.
        d: the number of entries of an input.
        positions: a module that adds positions to tokens, called on (B, 2K, D).
        rotary: turns queries and keys.
        make_backend: builds a backend for each attention layer.
    """

    def __init__(
        self,
        config: TransformerConfig,
        d: int,
        *,
        positions: nn.Module | None = None,
        rotary: nn.Module | None = None,
        make_backend: Callable[[], Backend] = FusedAttend,
    ):
        super().__init__()
        self.config, self.d = config, d
        self.read_x = nn.Linear(d, config.d_model)
        self.read_y = nn.Linear(1, config.d_model)
        self.positions = positions
        self.transformer = Transformer(config, rotary=rotary, make_backend=make_backend)
        self.read_out = nn.Linear(config.d_model, 1)

    def forward(self, x: Float[Tensor, "B K d"], y: Float[Tensor, "B K"]) -> Float[Tensor, "B K"]:
        """Predictions of y_1..y_K; the k-th does not depend on y_k, ..., y_K (the last is not read at all).

        Raises:
            ValueError: if inputs are not `d` wide, or there is not one output for each.
        """
        if x.ndim != 3 or x.shape[-1] != self.d:
            raise ValueError(f"x must have shape (B, K, d={self.d}), got {tuple(x.shape)}")
        if y.shape != x.shape[:2]:
            raise ValueError(
                f"each input needs one output: x has shape {tuple(x.shape)} and y {tuple(y.shape)}"
            )
        pairs = torch.stack((self.read_x(x), self.read_y(y[..., None])), dim=2)  # (B, K, 2, D)
        tokens = pairs.flatten(1, 2)  # (B, 2K, D): x_1, y_1, x_2, ...
        if self.positions is not None:
            tokens = self.positions(tokens)
        h = self.transformer(tokens, mask=causal_mask(tokens.shape[1], tokens.device))
        return self.read_out(h[:, 0::2])[..., 0]


def in_context_loss(model: Callable[[Tensor, Tensor], Tensor], batch: Sequence[Tensor]) -> Tensor:
    """The mean over rows and places of (prediction_k - y_k)^2 / d; the batch begins with x and y."""
    x, y = batch[0], batch[1]
    return (model(x, y) - y).square().mean() / x.shape[-1]


def in_context_regressor(config: TransformerConfig, d: int) -> InContextRegressor:
    """An `InContextRegressor` that sees places 0, 1, 2 and "further" back: a learned bias a layer and head.

    That is enough to tell which y belongs to which x, and says nothing of how many examples there are:
    the model reads longer rows than it was trained on (`RelativeBias`, Raffel et al. 2020).
    """

    def make_backend() -> FusedAttend:
        return FusedAttend(score_bias=RelativeBias(config.n_heads, n_buckets=4, max_distance=3))

    return InContextRegressor(config, d, make_backend=make_backend)
