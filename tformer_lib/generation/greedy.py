"""Greedy search: at each step the likeliest token."""

import torch
from jaxtyping import Int
from torch import Tensor

from tformer_lib.core.modes import evaluation, plain
from tformer_lib.generation.hypotheses import Hypothesis, check_search, length_score
from tformer_lib.generation.sampling import log_probabilities
from tformer_lib.generation.target_reading import check_sources, first_tokens, target_reader
from tformer_lib.models.recurrent import EncoderDecoder
from tformer_lib.models.translator import Translator


@torch.no_grad()
def greedy_search(
    model: Translator | EncoderDecoder,
    source: Int[Tensor, "B S"],
    max_len: int,
    *,
    length_penalty: float = 0.0,
) -> list[Hypothesis]:
    """y_t = arg max p(. | y_1..y_{t-1}, x), until the end token or `max_len`: one target a source.

    A source whose target has ended leaves the batch.

    Args:
        model: reads in evaluation mode; afterwards it is back in the mode it was in.
        source: tokens (B, S).
        max_len: the greatest number of tokens of a target, with its end token.
        length_penalty: for the scores; it does not change what is found.

    Raises:
        ValueError: if `max_len` is below 1, there is no source, a token is not in the vocabulary,
            `length_penalty` is not finite, or the model's logits are NaN or infinite.
        TypeError: if `max_len` is no whole number.
    """
    length_penalty, (max_len,) = check_search(max_len, length_penalty)
    check_sources(source)
    model = plain(model)  # reading is done by its parts
    targets: list[list[int]] = [[] for _ in range(len(source))]
    log_p = [0.0] * len(source)
    with evaluation(model):
        reader, last = target_reader(model, source), first_tokens(model, source)
        writing = list(range(len(source)))
        for _ in range(max_len):
            best, last = log_probabilities(reader.read(last)).max(dim=-1)
            for row, gain, token in zip(writing, best.tolist(), last.tolist(), strict=True):
                targets[row].append(token)
                log_p[row] += gain
            going = (last != model.eos_id).nonzero().flatten()
            if len(going) < len(writing):
                writing = [writing[i] for i in going.tolist()]
                if not writing:
                    break
                reader.select(going)
                last = last[going]
    return [
        Hypothesis(tuple(target), total, length_score(total, len(target), length_penalty))
        for target, total in zip(targets, log_p, strict=True)
    ]
