"""Reading targets for the sake of writing them: what a model of translation knows after each row so far."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tformer_lib.models.recurrent import EncoderDecoder
from tformer_lib.models.translator import Translator
from tformer_lib.numbers import brief


@runtime_checkable
class TargetReader(Protocol):
    """The sources have been read; targets are read token by token, one row for each."""

    def read(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R vocab"]:
        """The next token of each row; returns the logits of the one after it."""
        ...

    def select(self, rows: Int[Tensor, " R"]) -> None:
        """Go on with these rows, in this order; a row may be taken several times, or not at all."""
        ...


class CachedReader:
    """The decoder of a `Translator`, with its keys and values kept, those of the source too."""

    def __init__(self, model: Translator, source: Int[Tensor, "B S"]):
        self.model, self.cache = model, model.new_cache()
        self.memory, self.mask = model.encode(source)

    def read(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R vocab"]:
        """The next token of each row; returns the logits of the one after it."""
        return self.model.decode(tokens[:, None], self.memory, self.mask, self.cache)[:, -1]

    def select(self, rows: Int[Tensor, " R"]) -> None:
        """Go on with these rows, in this order."""
        self.memory, self.mask = self.memory[rows], self.mask[rows]
        self.cache.select(rows)


class RecurrentReader:
    """The decoder of an `EncoderDecoder`, with its state."""

    def __init__(self, model: EncoderDecoder, source: Int[Tensor, "B S"]):
        self.model = model
        self.state, self.memory = model.encode(source)

    def read(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R vocab"]:
        """The next token of each row; returns the logits of the one after it."""
        logits, self.state, _ = self.model.step(tokens, self.state, self.memory)
        return logits

    def select(self, rows: Int[Tensor, " R"]) -> None:
        """Go on with these rows, in this order."""
        states, mask, projected = self.memory
        self.state, self.memory = self.state[rows], (states[rows], mask[rows], projected[rows])


def check_sources(source: Tensor) -> None:
    """Raise unless these are tokens (B, S), at least one of each."""
    if not isinstance(source, Tensor):
        raise TypeError(f"sources are a tensor of tokens (B, S), got {brief(source)}")
    if source.ndim != 2 or 0 in source.shape:
        raise ValueError(f"sources are tokens (B, S), at least one of each, got shape {tuple(source.shape)}")


def target_reader(model: Translator | EncoderDecoder, source: Int[Tensor, "B S"]) -> TargetReader:
    """A reader for the model, which has read the sources and nothing of a target.

    Raises:
        ValueError: if there is no source.
        TypeError: if the model is of neither kind.
    """
    check_sources(source)
    if isinstance(model, Translator):
        return CachedReader(model, source)
    if isinstance(model, EncoderDecoder):
        return RecurrentReader(model, source)
    raise TypeError(f"the model must be a Translator or an EncoderDecoder, got {type(model).__name__}")


def first_tokens(model: Translator | EncoderDecoder, source: Tensor) -> Int[Tensor, " B"]:
    """The begin token for each source."""
    return torch.full((len(source),), model.bos_id, device=source.device)
