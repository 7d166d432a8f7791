"""The key-value cache: what a causal model has already computed about the tokens it has read.

Under a causal mask the keys and values of a token never change when tokens follow, so that a model which
writes one token at a time needs to compute them once only.
"""

import torch
from jaxtyping import Float
from torch import Tensor


class LayerCache:
    """The keys and values of one attention layer so far, (B, H_kv, S, Dh) each, with room for more.

    Keys are stored as they enter the scores, turned by rotary positions where there are any; heads shared by
    several heads of queries are stored once. The room doubles when it is full, so that a token is moved
    about once on average, however many follow.

    Attributes:
        length: the number S of tokens held.
        context: a second cache beside this one, for a block that also attends to a context. The context does
            not grow: its keys and values are computed at the first call, and read at all others.
    """

    def __init__(self, context: "LayerCache | None" = None) -> None:
        self.length, self.context = 0, context
        self._keys: Tensor | None = None
        self._values: Tensor | None = None

    def extend(
        self, k: Float[Tensor, "B G N Dh"], v: Float[Tensor, "B G N Dv"]
    ) -> tuple[Float[Tensor, "B G S Dh"], Float[Tensor, "B G S Dv"]]:
        """Append the keys and values of N more tokens; returns those of all S tokens.

        Raises:
            RuntimeError: if gradients are being recorded: the tensors held are written in place.
            ValueError: if the batch, the heads or their width are not those of the tokens held.
        """
        if torch.is_grad_enabled() and (k.requires_grad or v.requires_grad):
            raise RuntimeError("a cache is for generating, not for training: use it under torch.no_grad()")
        self._keys = self._with_room(self._keys, k)
        self._values = self._with_room(self._values, v)
        start, self.length = self.length, self.length + k.shape[-2]
        self._keys[:, :, start : self.length] = k
        self._values[:, :, start : self.length] = v
        return self._keys[:, :, : self.length], self._values[:, :, : self.length]

    def _with_room(self, held: Tensor | None, new: Tensor) -> Tensor:
        """`held`, or a copy of it with at least twice its room, such that `new` fits behind it."""
        needed = self.length + new.shape[-2]
        if held is not None:
            expected, got = (*held.shape[:2], held.shape[-1]), (*new.shape[:2], new.shape[-1])
            if expected != got:
                raise ValueError(
                    f"the cache holds (batch, heads, width) = {expected}, and the new tokens have {got}"
                )
            if needed <= held.shape[-2]:
                return held
            needed = max(needed, 2 * held.shape[-2])
        room = new.new_empty(*new.shape[:2], needed, new.shape[-1])
        if held is not None:
            room[:, :, : self.length] = held[:, :, : self.length]
        return room

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order; a row may be taken several times, or not at all."""
        if self._keys is not None and self._values is not None:
            self._keys, self._values = self._keys[rows], self._values[rows]
        if self.context is not None:
            self.context.select(rows)


class KVCache:
    """A `LayerCache` for each of the M blocks of a stack.

    Give the same object to every call `model(tokens, cache=cache)`: each call reads the tokens that are new
    and sees all that came before. It holds 2 M H_kv Dh numbers a token.

    Args:
        n_blocks: the number of blocks M.
        context: whether the blocks also attend to a context.
    """

    def __init__(self, n_blocks: int, *, context: bool = False):
        self.layers = [LayerCache(LayerCache() if context else None) for _ in range(n_blocks)]

    @property
    def length(self) -> int:
        """The number S of tokens read so far."""
        return self.layers[0].length

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order, in all layers."""
        for layer in self.layers:
            layer.select(rows)
