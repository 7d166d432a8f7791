"""The key-value cache: what a causal model has already computed about the tokens it has read.

Under a causal mask the keys and values of a token never change when tokens follow, so that a model which
writes one token at a time needs to compute them once only.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from jaxtyping import Float
from torch import Tensor

from tformer_lib.inputs import check_joins, check_rows, refuse_gradients
from tformer_lib.numbers import brief, whole

Forward = TypeVar("Forward", bound=Callable[..., Any])


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
            ValueError: if the batch, the heads or their width are not those of the tokens held, or there is
                not one value for each key.
            TypeError: if their dtype is another.
        """
        refuse_gradients(k, v)
        check_joins((self._keys, self._values), k, v)
        self._keys = self._with_room(self._keys, k)
        self._values = self._with_room(self._values, v)
        start, self.length = self.length, self.length + k.shape[-2]
        self._keys[:, :, start : self.length] = k
        self._values[:, :, start : self.length] = v
        return self.held()

    def held(self) -> tuple[Float[Tensor, "B G S Dh"], Float[Tensor, "B G S Dv"]]:
        """The keys and values of all S tokens.

        Raises:
            RuntimeError: if nothing has been read.
        """
        if self._keys is None or self._values is None:
            raise RuntimeError("the cache holds no tokens yet")
        return self._keys[:, :, : self.length], self._values[:, :, : self.length]

    def _with_room(self, held: Tensor | None, new: Tensor) -> Tensor:
        """`held`, or a copy of it with at least twice its room, such that `new` fits behind it."""
        needed = self.length + new.shape[-2]
        if held is not None:
            if needed <= held.shape[-2]:
                return held
            needed = max(needed, 2 * held.shape[-2])
        room = new.new_empty(*new.shape[:2], needed, new.shape[-1])
        if held is not None:
            room[:, :, : self.length] = held[:, :, : self.length]
        return room

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order; a row may be taken several times, or not at all.

        Raises:
            TypeError: if the rows are neither whole numbers nor booleans.
            ValueError: if they are not on one axis, or one is not in the batch.
        """
        check_rows(rows, None if self._keys is None else len(self._keys))
        if self._keys is not None and self._values is not None:
            self._keys, self._values = self._keys[rows], self._values[rows]
        if self.context is not None:
            self.context.select(rows)

    def state(self) -> tuple[Any, ...]:
        """What `restore` needs, without a copy: what lies beyond `length` tokens may be written over."""
        return self.length, self._keys, self._values, None if self.context is None else self.context.state()

    def restore(self, state: tuple[Any, ...]) -> None:
        """Be as when `state` was called. What has been read since is forgotten."""
        self.length, self._keys, self._values, context = state
        if self.context is not None:
            self.context.restore(context)


class KVCache:
    """A `LayerCache` for each of the M blocks of a stack.

    Give the same object to every call `model(tokens, cache=cache)`: each call reads the tokens that are new
    and sees all that came before. It holds 2 M H_kv Dh numbers a token.

    Args:
        n_blocks: the number of blocks M.
        context: whether the blocks also attend to a context.

    Raises:
        TypeError: if `n_blocks` is no whole number.
        ValueError: if it is not positive.
    """

    def __init__(self, n_blocks: int, *, context: bool = False):
        n_blocks = whole("n_blocks", n_blocks, 1)
        self.layers = [LayerCache(LayerCache() if context else None) for _ in range(n_blocks)]

    @property
    def length(self) -> int:
        """The number S of tokens read so far."""
        return self.layers[0].length

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order, in all layers; raises as `LayerCache.select` does."""
        for layer in self.layers:
            layer.select(rows)

    def for_blocks(self, n_blocks: int) -> list[LayerCache]:
        """The layers, for a stack of as many blocks.

        Raises:
            ValueError: if they are not as many.
        """
        if len(self.layers) != n_blocks:
            raise ValueError(f"the cache is for {len(self.layers)} blocks, and the stack has {n_blocks}")
        return self.layers

    def state(self) -> tuple[Any, ...]:
        """What `restore` needs."""
        return tuple(layer.state() for layer in self.layers)

    def restore(self, state: tuple[Any, ...]) -> None:
        """Be as when `state` was called."""
        for layer, its in zip(self.layers, state, strict=True):
            layer.restore(its)


def already_read(cache: "KVCache | LayerCache | None") -> int:
    """How many tokens a cache holds; 0 without one.

    Raises:
        TypeError: if it is something else, such as the targets that other libraries take here.
    """
    if cache is None:
        return 0
    if not isinstance(cache, KVCache | LayerCache):
        instead = "for the loss of the next tokens call tformer_lib.language_loss(model, tokens)"
        raise TypeError(f"a cache is what model.new_cache() makes, got {brief(cache)}; {instead}")
    return cache.length


def undone_if_refused(forward: Forward) -> Forward:
    """A `forward` that leaves the caches among its arguments as they were, if it raises.

    A mask that does not fit is found out behind the first layer's keys and values, and an interrupt may come
    anywhere. Tokens that were read halfway would be seen by all calls that follow.
    """

    @functools.wraps(forward)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        given = (*args[1:], *kwargs.values())
        caches = [(x, x.state()) for x in given if isinstance(x, LayerCache | KVCache)]
        try:
            return forward(*args, **kwargs)
        except BaseException:
            for cache, state in caches:
                cache.restore(state)
            raise

    return guarded  # type: ignore[return-value]
