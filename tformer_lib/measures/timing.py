"""What a token costs: processor time, with and without a cache."""

import statistics
import time

import torch

from tformer_lib.core.modes import evaluation
from tformer_lib.generation.reading import Reader
from tformer_lib.models.gpt import GPT
from tformer_lib.numbers import whole


@torch.no_grad()
def time_per_token(model: GPT, length: int, *, use_cache: bool, repeats: int = 9) -> float:
    """Processor time, in seconds, from a text of `length` tokens to the logits of the token after it.

    With a cache the model has read all tokens but the last before the clock starts; without one, it reads
    all of them while the clock runs. It is the median over the last `repeats` tokens of the text, so that
    the length is right to within half of that. What the text says does not matter to the time.

    Args:
        model: a language model, on the processor.
        length: how long the text is when its last token has been read.
        use_cache: whether the keys and values of the tokens before are there.
        repeats: how many times to measure.

    Raises:
        ValueError: if `repeats` is below 1 or not below `length`, or the text is longer than the model's
            `max_len`.
    """
    if not 1 <= whole("repeats", repeats) < whole("length", length):
        raise ValueError(f"repeats must be at least 1 and less than length={length}, got {repeats}")
    if model.max_len is not None and length > model.max_len:
        raise ValueError(f"length={length} is longer than the model's max_len={model.max_len}")
    text = [i % model.embed.num_embeddings for i in range(length)]
    reader, times = Reader(model, use_cache=use_cache), []
    with evaluation(model):
        reader.read([text[:-repeats]])
        for n in range(length - repeats + 1, length + 1):
            start = time.process_time()
            reader.read([text[:n]])
            times.append(time.process_time() - start)
    return statistics.median(times)
