"""Which token comes next: from logits to probabilities, and from probabilities to a token."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tformer_lib.core.precision import precise
from tformer_lib.inputs import check_real
from tformer_lib.numbers import real, whole


def next_token_probabilities(
    logits: Float[Tensor, "*batch vocab"],
    *,
    temperature: float | int = 1.0,
    top_k: int | None = None,
    top_p: float | int | None = None,
    min_p: float | int | None = None,
) -> Float[Tensor, "*batch vocab"]:
    """softmax(logits / temperature), cut down to its most likely tokens: what the next one is drawn from.

    First the temperature divides the logits; then all but the `top_k` most likely tokens lose their
    probability; then, of the distribution that is left, all but the fewest that hold at least `top_p` of it
    between them (the nucleus of Holtzman et al. 2020); then all less likely than `min_p` times the most
    likely (Nguyen et al. 2025); what remains is divided by its sum.

    Args:
        logits: (..., vocab), finite, or minus infinity for a token that cannot come.
        temperature: below 1 sharpens, above 1 flattens. 0 is the limit: all probability on the token with
            the largest logit, the first of them if several have it.
        top_k: how many tokens stay; those as likely as the last of them stay too. All if None.
        top_p: the share of probability that stays. Of tokens equally likely at the border, any may. All of
            it if None or 1.
        min_p: a token stays if its probability is at least this share of the largest. All if None or 0.

    Returns:
        Probabilities (..., vocab), in float32 where the logits are in half precision.

    Raises:
        ValueError: if the temperature is negative or not finite, `top_k` is below 1, `top_p` lies outside
            (0, 1] or `min_p` outside [0, 1], or logits are NaN or infinite.
        TypeError: if one of these is no number, or `top_k` is not whole.
    """
    temperature, top_k, top_p, min_p = check_sampling(temperature, top_k, top_p, min_p)
    check_real("logits", logits)
    logits = precise(logits)
    largest, most_likely = _largest(logits)
    if temperature == 0:
        return torch.zeros_like(logits).scatter(-1, most_likely, 1.0)
    limits = torch.finfo(logits.dtype)  # a temperature beyond them would be 0 or infinite in this precision
    scores = (logits - largest) / min(max(temperature, limits.tiny), limits.max)
    if top_k is not None and top_k < scores.shape[-1]:
        last = scores.topk(top_k, dim=-1).values[..., -1:]
        scores = scores.masked_fill(scores < last, -math.inf)
    if top_p is not None and top_p < 1:
        ascending, order = scores.sort(dim=-1)
        outside = ascending.softmax(dim=-1).cumsum(dim=-1) <= 1 - top_p
        outside[..., -1] = False  # the most likely stays, however small top_p is
        scores = scores.masked_fill(outside.scatter(-1, order, outside), -math.inf)
    if min_p:
        scores = scores.masked_fill(scores < math.log(min_p), -math.inf)  # the largest score is 0
    return scores.softmax(dim=-1)


def choose(
    logits: Float[Tensor, "B vocab"],
    *,
    temperature: float | int = 1.0,
    top_k: int | None = None,
    top_p: float | int | None = None,
    min_p: float | int | None = None,
    generator: torch.Generator | None = None,
) -> Int[Tensor, " B"]:
    """A token for each row, drawn from `next_token_probabilities`; the most likely one at temperature 0."""
    if temperature == 0:
        return _largest(logits)[1].squeeze(-1)
    probabilities = next_token_probabilities(
        logits, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p
    )
    return torch.multinomial(probabilities, 1, generator=generator).squeeze(-1)


def check_sampling(
    temperature: float | int, top_k: int | None, top_p: float | int | None, min_p: float | int | None
) -> tuple[float, int | None, float | None, float | None]:
    """The arguments as Python's numbers; raises what `next_token_probabilities` says about them."""
    return (
        real("temperature", temperature, "[0, inf)"),
        None if top_k is None else whole("top_k", top_k, 1),
        None if top_p is None else real("top_p", top_p, "(0, 1]"),
        None if min_p is None else real("min_p", min_p, "[0, 1]"),
    )


def log_probabilities(logits: Float[Tensor, "*batch vocab"]) -> Float[Tensor, "*batch vocab"]:
    """log softmax(logits), in float32 at least; they are finite, or minus infinity for some but not all.

    Raises:
        ValueError: if they are others.
    """
    _largest(logits)
    return precise(logits).log_softmax(dim=-1)


def _largest(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The largest logit and its token, (..., 1) each; it tells of NaN and infinity anywhere in its row."""
    check_real("logits", logits)
    if not logits.ndim or not logits.shape[-1]:
        raise ValueError(f"logits must be (..., vocab), of one token at least, got {tuple(logits.shape)}")
    largest, token = logits.max(dim=-1, keepdim=True)
    if not largest.isfinite().all():
        raise ValueError(
            "logits must be finite, or minus infinity for some tokens but not all: some are NaN or infinite"
        )
    return largest, token
