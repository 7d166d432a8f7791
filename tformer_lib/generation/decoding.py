"""Writing: a language model reads what there is, a token is chosen and appended, and so on."""

from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import Tensor

from tformer_lib.core.modes import evaluation
from tformer_lib.generation.prompts import parse_prompts, parse_stops
from tformer_lib.generation.reading import Reader
from tformer_lib.generation.sampling import check_sampling, choose
from tformer_lib.models.gpt import GPT
from tformer_lib.numbers import brief, whole


@torch.no_grad()
def generate(
    model: GPT,
    prompt: Sequence | Tensor,
    max_new_tokens: int,
    *,
    temperature: float | int = 1.0,
    top_k: int | None = None,
    top_p: float | int | None = None,
    min_p: float | int | None = None,
    generator: torch.Generator | None = None,
    stop: int | Collection[int] | None = None,
    use_cache: bool = True,
    context: int | None = None,
) -> list[int] | list[list[int]]:
    """x_{n+1} ~ p(. | x_1..x_n), again and again: the prompt, and what the model writes after it.

    Several prompts are continued at once. They need not be of one length: the batch reads as many tokens
    as the shortest has, and from there on a row that is still inside its prompt takes its prompt's next
    token, whatever the model thinks. So no padding is needed, and all rows stand at the same position.

    At temperature 0 a row is what it would be alone (but for rounding, which may decide between two logits
    that agree to the last digits). A sampled row depends on its neighbours as well, because one generator
    draws for all of them; the same prompts with the same seed give the same texts, with cache or without.

    The model sees at most `context` tokens. Of a longer text it sees a window, which begins at the smallest
    multiple of ceil(context / 2) that leaves no more than `context` tokens, and is read from position 0 as
    if nothing came before. The window so stays where it is for half its length; only when it moves does
    one with a cache have to be read anew.

    Args:
        model: reads in evaluation mode; afterwards it is back in the mode it was in. Threads that share a
            model put it into evaluation mode beforehand, or the first to finish puts dropout back for all.
        prompt: token numbers: one sequence, or several (a list of lists, or a tensor (B, N)).
        max_new_tokens: how many tokens each row gets beyond its own prompt, unless it stops before.
        temperature: see `next_token_probabilities`; 0 takes the most likely token.
        top_k: how many tokens may come, see there.
        top_p: what share of the probability may come, see there.
        min_p: how likely a token must be beside the likeliest, see there.
        generator: draws the tokens, on the model's device; PyTorch's own if None.
        stop: a token, or several: a row ends with the first of them that the model writes.
        use_cache: whether keys and values are kept; without, every token reads the whole window.
        context: the longest window; `model.max_len` if None, and if that is None, all there is.

    Returns:
        The prompt and what follows it, a list of numbers; a list of such lists for several prompts.

    Raises:
        ValueError: if a prompt is empty, a token is not in the vocabulary, `max_new_tokens` is negative,
            `context` is below 1 or beyond the model's `max_len`, the generator is on another device than
            the model, or `next_token_probabilities` refuses its arguments.
        TypeError: if a token, a stop token or a count is no whole number.
    """
    vocab_size, device = model.embed.num_embeddings, model.embed.weight.device
    prompts, several = parse_prompts(prompt, vocab_size)
    stops = parse_stops(stop, vocab_size)
    temperature, top_k, top_p, min_p = check_sampling(temperature, top_k, top_p, min_p)
    max_new_tokens = whole("max_new_tokens", max_new_tokens, 0)
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(f"generator must be a torch.Generator, got {brief(generator)}")
    if generator is not None and generator.device.type != device.type:
        raise ValueError(f"the generator is on {generator.device}, and the model is on {device}")
    reader = Reader(model, context=context, use_cache=use_cache)
    rows = [list(p) for p in prompts]
    rules: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}

    def ended(row: int) -> bool:
        written = len(rows[row]) - len(prompts[row])
        return written >= max_new_tokens or (written > 0 and rows[row][-1] in stops)

    writing = [row for row in range(len(rows)) if not ended(row)]
    with evaluation(model):
        while writing:
            n = min(len(rows[row]) for row in writing)
            logits = reader.read([rows[row][:n] for row in writing])
            chosen = choose(logits, **rules, generator=generator)
            for row, token in zip(writing, chosen.tolist(), strict=True):
                if len(rows[row]) == n:  # a longer one is still inside its prompt
                    rows[row].append(token)
            going = [i for i, row in enumerate(writing) if not ended(row)]
            if len(going) < len(writing):
                reader.select(going)
                writing = [writing[i] for i in going]
    return rows if several else rows[0]
