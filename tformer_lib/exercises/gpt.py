"""The code exercises of the chapter on GPT, with the mistakes that readers make in them.

Keys and values are in the text's layout, a token a column; batches of token numbers and logits in the code's.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tformer_lib.exercises.checker import Exercise, Mistake, register

# What is read, and what is asked for


def _inputs_and_targets(batch: Tensor) -> tuple[Tensor, Tensor]:
    return batch[:, :-1], batch[:, 1:]


register(
    Exercise(
        name="gpt.inputs_and_targets",
        reference=_inputs_and_targets,
        inputs=lambda g: [
            (torch.randint(9, size, generator=g),) for size in ((2, 6), (3, 2), (4, 9), (1, 5))
        ],
        mistakes=(
            Mistake(
                "targets not moved",
                "Each place is asked for the token that it reads. A model learns to copy it, its loss falls "
                "to zero, and it can predict nothing: the targets stand one place further on.",
                lambda batch: (batch[:, :-1], batch[:, :-1]),
            ),
            Mistake(
                "moved the wrong way",
                "Each place is asked for the token before it, which it has read. The target of token n is "
                "token n + 1.",
                lambda batch: (batch[:, 1:], batch[:, :-1]),
            ),
            Mistake(
                "moved by two",
                "You ask for the token after the next. One place further on is enough, and both parts then "
                "have N tokens a row.",
                lambda batch: (batch[:, :-2], batch[:, 2:]),
            ),
            Mistake(
                "rolled around",
                "After the last token you ask for the first: `roll` is round. What follows the last token "
                "is not in the batch, so it is a target and not read.",
                lambda batch: (batch, batch.roll(-1, dims=1)),
            ),
            Mistake(
                "all tokens read",
                "You read N + 1 tokens and have N targets. The last token is only asked for.",
                lambda batch: (batch, batch[:, 1:]),
            ),
            Mistake(
                "moved along the batch",
                "You move rows, so that one text is asked for another. Tokens of a text lie along the "
                "second axis.",
                lambda batch: (batch[:-1], batch[1:]),
            ),
        ),
    )
)

# Perplexity


def _surprises(logits: Tensor, targets: Tensor, dim: int = -1) -> Tensor:
    return -logits.log_softmax(dim=dim)[torch.arange(len(targets)), targets]


register(
    Exercise(
        name="gpt.perplexity",
        reference=lambda logits, targets: _surprises(logits, targets).mean().exp(),
        inputs=lambda g: [
            (2 * torch.randn(n, vocab, generator=g), torch.randint(vocab, (n,), generator=g))
            for n, vocab in ((5, 7), (1, 3), (8, 4))
        ],
        tolerance=1e-4,
        mistakes=(
            Mistake(
                "mean of the perplexities",
                "You take the exponential of each surprise and then the mean. The mean comes first: one "
                "token that costs a great deal would otherwise decide everything.",
                lambda logits, targets: _surprises(logits, targets).exp().mean(),
            ),
            Mistake(
                "sum instead of mean",
                "You take the exponential of the sum: one over the probability of the whole text, which "
                "grows with its length. Perplexity is per token.",
                lambda logits, targets: _surprises(logits, targets).sum().exp(),
            ),
            Mistake(
                "two to the nats",
                "Your loss is in nats and your base is 2. Either e to the nats or 2 to the bits.",
                lambda logits, targets: 2 ** _surprises(logits, targets).mean(),
            ),
            Mistake(
                "loss instead of perplexity",
                "This is the cross-entropy. The perplexity is its exponential.",
                lambda logits, targets: _surprises(logits, targets).mean(),
            ),
            Mistake(
                "softmax over the places",
                "Your probabilities sum to one over the places of the text. They should over the "
                "vocabulary, the last axis.",
                lambda logits, targets: _surprises(logits, targets, dim=0).mean().exp(),
            ),
            Mistake(
                "logits taken for log-probabilities",
                "Logits are not normalised: take `log_softmax` before you pick the targets.",
                lambda logits, targets: (-logits[torch.arange(len(targets)), targets]).mean().exp(),
            ),
        ),
    )
)

# The nucleus


def _top_p_variant(
    keep: Callable[[Tensor, float], Tensor] = lambda p, share: p.cumsum(0) - p < share,
    descending: bool = True,
    back: bool = True,
    rescale: Callable[[Tensor], Tensor] = lambda kept: kept / kept.sum(),
) -> Callable[[Tensor, float], Tensor]:
    """The fewest of the likeliest tokens that hold `share`, with something changed."""

    def top_p(p: Tensor, share: float) -> Tensor:
        order = p.argsort(descending=descending, stable=True)
        kept = p[order] * keep(p[order], share)
        if back:
            kept = torch.zeros_like(p).scatter(0, order, kept)
        return rescale(kept)

    return top_p


_HALVES = torch.tensor([0.125, 0.5, 0.125, 0.25])

register(
    Exercise(
        name="gpt.top_p",
        reference=_top_p_variant(),
        inputs=lambda g: [
            (_HALVES, 0.75),
            (_HALVES, 0.3),
            (torch.tensor([0.1, 0.15, 0.4, 0.35]), 0.8),
            *((torch.randn(9, generator=g).mul(2).softmax(0), share) for share in (0.5, 0.9, 1.0)),
        ],
        mistakes=(
            Mistake(
                "the token on the border dropped",
                "You stop before the share is reached. The nucleus holds at least the share, so the token "
                "that passes it belongs to it. Otherwise nothing is left if the likeliest alone passes it.",
                _top_p_variant(lambda p, share: p.cumsum(0) <= share),
            ),
            Mistake(
                "one token too many",
                "Where the share is reached exactly you still take one more. A token stays if those before "
                "it hold less than the share.",
                _top_p_variant(lambda p, share: p.cumsum(0) - p <= share),
            ),
            Mistake(
                "not rescaled",
                "What is left does not sum to one: divide by its sum.",
                _top_p_variant(rescale=lambda kept: kept),
            ),
            Mistake(
                "left in sorted order",
                "The probabilities are right and stand in descending order: which token is which is lost. "
                "Put them back where they were.",
                _top_p_variant(back=False),
            ),
            Mistake(
                "the unlikely end kept",
                "You add up from the least likely token. Begin with the likeliest.",
                _top_p_variant(descending=False),
            ),
            Mistake(
                "a threshold for each token",
                "You compare each probability with 1 - p. The share is of the sum, over tokens from the "
                "likeliest on.",
                _top_p_variant(lambda p, share: p >= 1 - share),
            ),
            Mistake(
                "probabilities taken for logits",
                "You rescale by a softmax of probabilities, which flattens them. They are positive already: "
                "divide by their sum.",
                _top_p_variant(rescale=lambda kept: kept.masked_fill(kept == 0, -math.inf).softmax(0)),
            ),
        ),
    )
)

# The temperature of an entropy


def _entropy(logits: Tensor, temperature: float) -> float:
    p = (logits.double() / temperature).softmax(-1)
    return -torch.special.xlogy(p, p).sum().item()


def _temperature(logits: Tensor, nats: float) -> float:
    low, high = 1e-3, 1e3
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _entropy(logits, middle) < nats else (low, middle)
    return math.sqrt(low * high)


register(
    Exercise(
        name="gpt.temperature_of_entropy",
        reference=_temperature,
        inputs=lambda g: [
            (2 * torch.randn(n, generator=g), nats) for n, nats in ((8, 1.2), (20, 1.7), (5, 1.4))
        ],
        tolerance=2e-3,
        mistakes=(
            Mistake(
                "logits multiplied",
                "You return the inverse of the temperature: it divides the logits, and a higher one makes "
                "the entropy larger.",
                lambda logits, nats: 1 / _temperature(logits, nats),
            ),
            Mistake(
                "bits for nats",
                "Your entropy is in bits, from logarithms to base 2. Here it is wanted in nats.",
                lambda logits, nats: _temperature(logits, nats * math.log(2)),
            ),
            Mistake(
                "effective number for entropy",
                "You bring the exponential of the entropy to the number given. It is the entropy itself that "
                "should be.",
                lambda logits, nats: _temperature(logits, math.log(nats)),
            ),
        ),
    )
)

# A step with a cache


def _attend(q: Tensor, K: Tensor, V: Tensor, scale: bool = True) -> Tensor:
    scores = K.T @ q / (math.sqrt(len(q)) if scale else 1.0)
    return V @ scores.softmax(0)


def _append(K: Tensor, k: Tensor) -> Tensor:
    return torch.cat([K, k[:, None]], dim=1)


def _cached_step(
    q: Tensor, k: Tensor, v: Tensor, K: Tensor, V: Tensor, scale: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    K, V = _append(K, k), _append(V, v)
    return _attend(q, K, V, scale), K, V


def _step_inputs(g: torch.Generator) -> list[tuple]:
    def case(dh: int, dv: int, s: int) -> tuple:
        sizes = ((dh,), (dh,), (dv,), (dh, s), (dv, s))
        return tuple(2 * torch.randn(size, generator=g) for size in sizes)

    return [case(4, 4, 5), case(2, 3, 1), case(6, 2, 8), case(3, 3, 0)]


register(
    Exercise(
        name="gpt.cached_step",
        reference=_cached_step,
        inputs=_step_inputs,
        mistakes=(
            Mistake(
                "the new token does not see itself",
                "You attend to what the cache held before. A query may read its own key and value too: "
                "append first, then attend.",
                lambda q, k, v, K, V: (_attend(q, K, V), _append(K, k), _append(V, v)),
            ),
            Mistake(
                "cache not extended",
                "The output is right, but you return the cache as it was: the next token could not read "
                "this one.",
                lambda q, k, v, K, V: (_cached_step(q, k, v, K, V)[0], K, V),
            ),
            Mistake(
                "new token in front",
                "Your new column stands in front of the others. The output does not mind, but the order of "
                "the cache is that of the text.",
                lambda q, k, v, K, V: (
                    _cached_step(q, k, v, K, V)[0],
                    torch.cat([k[:, None], K], dim=1),
                    torch.cat([v[:, None], V], dim=1),
                ),
            ),
            Mistake(
                "scale missing",
                "The scores are not divided by the root of the queries' width.",
                lambda q, k, v, K, V: _cached_step(q, k, v, K, V, scale=False),
            ),
            Mistake(
                "a token a row",
                "Your cache has a token a row, as code has it. Here a token is a column.",
                lambda q, k, v, K, V: (_cached_step(q, k, v, K, V)[0], _append(K, k).T, _append(V, v).T),
            ),
        ),
    )
)
