"""Reading for the sake of writing: a model's logits after a text that grows, with and without a cache."""

import torch
from jaxtyping import Float
from torch import Tensor

from tformer_lib.core.cache import KVCache
from tformer_lib.models.gpt import GPT
from tformer_lib.numbers import whole


class Reader:
    """The logits after rows of tokens that grow: it reads what is new, in the window the model may see.

    Args:
        model: a language model.
        context: the longest window (see `window_start`); `model.max_len` if None, and if that is None, all.
        use_cache: whether keys and values are kept from call to call.

    Raises:
        ValueError: if `context` is below 1 or beyond the model's `max_len`.
    """

    def __init__(self, model: GPT, *, context: int | None = None, use_cache: bool = True):
        context = None if context is None else whole("context", context, 1)
        if context is not None and model.max_len is not None and context > model.max_len:
            raise ValueError(f"context={context} is longer than the model's max_len={model.max_len}")
        self.model, self.use_cache = model, use_cache
        self.context = model.max_len if context is None else context
        self.begin(0)

    def begin(self, start: int) -> None:
        """A window that begins at this place, and of which nothing has been read yet."""
        self.start = start
        self.cache: KVCache | None = self.model.new_cache() if self.use_cache else None

    def read(self, rows: list[list[int]]) -> Float[Tensor, "B vocab"]:
        """Logits of the token after each row; all have one length, and go on where the last call's ended."""
        start = window_start(len(rows[0]), self.context)
        if start != self.start:
            self.begin(start)
        seen = 0 if self.cache is None else self.cache.length
        new = torch.tensor([row[start + seen :] for row in rows], device=self.model.embed.weight.device)
        return self.model(new, self.cache)[:, -1]

    def select(self, rows: list[int]) -> None:
        """Go on with these rows, in this order; a row may be taken several times, or not at all."""
        if self.cache is not None:
            self.cache.select(torch.tensor(rows, dtype=torch.long, device=self.model.embed.weight.device))


def window_start(n: int, context: int | None) -> int:
    """The smallest multiple of ceil(context / 2) from which no more than `context` of n tokens follow."""
    if context is None or n <= context:
        return 0
    half = -(-context // 2)
    return half * -(-(n - context) // half)
