"""From sentences to sentences: a trained model translates, and its translations are scored."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from tformer_lib.core.modes import plain
from tformer_lib.generation.beam import beam_search
from tformer_lib.models.recurrent import EncoderDecoder
from tformer_lib.models.translator import Translator
from tformer_lib.numbers import whole


@runtime_checkable
class Codec(Protocol):
    """What `translate` asks of a data set: sentences to tokens and back; a `TranslationSet` has it."""

    def encode(self, pairs: Sequence[tuple[str, str]]) -> tuple[Tensor, Tensor]:
        """Sources and targets, (B, S) and (B, T), padded."""
        ...

    def decode(self, ids: Iterable[int]) -> str:
        """The text of a target."""
        ...


def translate(
    model: Translator | EncoderDecoder,
    data: Codec,
    sentences: Sequence[str],
    *,
    num_beams: int = 1,
    length_penalty: float = 1.0,
    max_len: int = 64,
    batch: int = 100,
) -> list[str]:
    """The best translation that `beam_search` finds for each sentence; one beam is greedy search.

    Sentences of like length are translated together; the order of the result is that of the sentences.

    Args:
        model: reads in evaluation mode; afterwards it is back in the mode it was in.
        data: turns sentences into the model's tokens and back.
        sentences: what to translate.
        num_beams: how many beginnings are kept.
        length_penalty: as for `beam_search`.
        max_len: the greatest number of tokens of a translation, with its end token.
        batch: how many sentences are translated at once.

    Raises:
        ValueError: if `batch` is below 1, or `beam_search` refuses its arguments.
    """
    batch = whole("batch", batch, 1)
    if isinstance(sentences, str):
        raise TypeError(f"sentences are given as a list of strings, got the one string {sentences!r}")
    device = plain(model).embed.weight.device
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    found = [""] * len(sentences)
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        source, _ = data.encode([(sentences[i], "") for i in rows])
        options: dict[str, Any] = {"num_beams": num_beams, "length_penalty": length_penalty}
        for i, (best, *_) in zip(
            rows, beam_search(model, source.to(device), max_len, **options), strict=True
        ):
            found[i] = data.decode(best.tokens)
    return found
