"""The code exercises of the chapter on GPT, with the mistakes that readers make in them.

Keys and values are in the text's layout, a token a column; batches of token numbers and logits in the code's.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise

# What is read, and what is asked for


@exercise(
    "gpt.inputs_and_targets",
    inputs=lambda g: [
        (torch.randint(9, size, generator=g),) for size in ((2, 6), (3, 2), (4, 9), (5, 5), (1, 5), (1, 2))
    ],
)
def inputs_and_targets(batch: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens 1 to N as inputs, tokens 2 to N + 1 as targets: (B, N + 1) -> (B, N) and (B, N)."""
    return batch[:, :-1], batch[:, 1:]


inputs_and_targets.mistake(
    "targets not moved",
    "Each place is asked for the token that it reads. A model learns to copy it, its loss falls "
    "to zero, and it can predict nothing: the targets stand one place further on.",
    lambda batch: (batch[:, :-1], batch[:, :-1]),
)

inputs_and_targets.mistake(
    "moved the wrong way",
    "Each place is asked for the token before it, which it has read. The target of token n is token n + 1.",
    lambda batch: (batch[:, 1:], batch[:, :-1]),
)

inputs_and_targets.mistake(
    "moved by two",
    "You ask for the token after the next. One place further on is enough, and both parts then "
    "have N tokens a row.",
    lambda batch: (batch[:, :-2], batch[:, 2:]),
)

inputs_and_targets.mistake(
    "rolled around",
    "After the last token you ask for the first: `roll` is round. What follows the last token "
    "is not in the batch, so it is a target and not read.",
    lambda batch: (batch, batch.roll(-1, dims=1)),
)

inputs_and_targets.mistake(
    "all tokens read",
    "You read N + 1 tokens and have N targets. The last token is only asked for.",
    lambda batch: (batch, batch[:, 1:]),
)

inputs_and_targets.mistake(
    "only the last token asked",
    "You ask for the last token alone. Every token is a prediction of its own, of the one that follows it: "
    "N targets for N inputs.",
    lambda batch: (batch[:, :-1], batch[:, -1]),
)

inputs_and_targets.mistake(
    "cut in the middle",
    "You cut each window into two halves. Both parts have N of the N + 1 tokens, a place apart.",
    lambda batch: (batch[:, : batch.shape[1] // 2], batch[:, batch.shape[1] // 2 :]),
)

inputs_and_targets.mistake(
    "moved along the batch",
    "You move rows, so that one text is asked for another. Tokens of a text lie along the second axis.",
    lambda batch: (batch[:-1], batch[1:]),
)

# Perplexity


def _perplexity_inputs(g: torch.Generator) -> list[tuple]:
    def draw(n: int, vocab: int) -> tuple:
        return 2 * torch.randn(n, vocab, generator=g), torch.randint(vocab, (n,), generator=g)

    rare = torch.tensor([[-120.0, 1.0], *[[0.5, 0.0]] * 11]), torch.zeros(12, dtype=torch.long)
    return [
        draw(5, 7),
        draw(1, 3),
        draw(8, 4),
        draw(3, 3),
        draw(400, 7),  # the probability of the whole text underflows
        rare,  # and here that of one token
        (torch.tensor([[1000.0, 1001.0]]), torch.tensor([0])),  # exponentials that overflow
        (torch.tensor([[0.5, 2.0], [1.0, -1.0]]), torch.tensor([0, 1])),
    ]


@exercise("gpt.perplexity", inputs=_perplexity_inputs, tolerance=1e-4)
def perplexity(logits: Tensor, targets: Tensor) -> float:
    """exp of the mean of -ln p(target): logits (N, vocab) and targets (N,) -> a number."""
    log_p = logits.log_softmax(dim=1)[torch.arange(len(targets)), targets]
    return (-log_p.mean()).exp().item()


def _surprises(log_p: Tensor, targets: Tensor) -> Tensor:
    return -log_p[torch.arange(len(targets)), targets]


perplexity.mistake(
    "mean of the perplexities",
    "You take the exponential of each surprise and then the mean. The mean comes first: one "
    "token that costs a great deal would otherwise decide everything.",
    lambda logits, targets: _surprises(logits.log_softmax(-1), targets).exp().mean(),
)

perplexity.mistake(
    "sum instead of mean",
    "You take the exponential of the sum: one over the probability of the whole text, which "
    "grows with its length. Perplexity is per token.",
    lambda logits, targets: _surprises(logits.log_softmax(-1), targets).sum().exp(),
)

perplexity.mistake(
    "two to the nats",
    "Your loss is in nats and your base is 2. Either e to the nats or 2 to the bits.",
    lambda logits, targets: 2 ** _surprises(logits.log_softmax(-1), targets).mean(),
)

perplexity.mistake(
    "e to the bits",
    "Your loss is in bits and your base is e. Either e to the nats or 2 to the bits.",
    lambda logits, targets: (_surprises(logits.log_softmax(-1), targets).mean() / math.log(2)).exp(),
)

perplexity.mistake(
    "loss instead of perplexity",
    "This is the cross-entropy. The perplexity is its exponential.",
    lambda logits, targets: _surprises(logits.log_softmax(-1), targets).mean(),
)

perplexity.mistake(
    "sign missing",
    "You return one over the perplexity. The surprise is minus the logarithm of the probability.",
    lambda logits, targets: (-_surprises(logits.log_softmax(-1), targets).mean()).exp(),
)

perplexity.mistake(
    "softmax over the places",
    "Your probabilities sum to one over the places of the text. They should over the "
    "vocabulary, the last axis.",
    lambda logits, targets: _surprises(logits.log_softmax(0), targets).mean().exp(),
)

perplexity.mistake(
    "logits taken for log-probabilities",
    "Logits are not normalised: take `log_softmax` before you pick the targets.",
    lambda logits, targets: _surprises(logits, targets).mean().exp(),
)

perplexity.mistake(
    "logarithm of the softmax",
    "Right for moderate logits. A small probability underflows to 0, and its logarithm is minus infinity: "
    "`log_softmax` takes both steps at once.",
    lambda logits, targets: _surprises(logits.softmax(-1).log(), targets).mean().exp(),
)

perplexity.mistake(
    "no maximum subtracted",
    "Right for small logits, but exp of a large one is infinite. `log_softmax` subtracts the largest first.",
    lambda logits, targets: (
        _surprises(logits - logits.exp().sum(-1, keepdim=True).log(), targets).mean().exp()
    ),
)

perplexity.mistake(
    "quotient of exponentials",
    "Right for moderate logits. But exp of a large one is infinite, and that of one far below 0 is 0, which "
    "has no logarithm: use `log_softmax`.",
    lambda logits, targets: (
        _surprises((logits.exp() / logits.exp().sum(-1, keepdim=True)).log(), targets).mean().exp()
    ),
)

perplexity.mistake(
    "probabilities multiplied",
    "Right for short texts. A product of hundreds of probabilities underflows to 0: add up their logarithms.",
    lambda logits, targets: (
        logits.softmax(-1)[torch.arange(len(targets)), targets].prod() ** (-1 / len(targets))
    ),
)

# The nucleus


def _top_p_inputs(g: torch.Generator) -> list[tuple]:
    halves = torch.tensor([0.125, 0.5, 0.125, 0.25])
    return [
        *((halves, share) for share in (0.75, 0.5, 0.3, 0.8, 0.7, 0.95)),
        (torch.tensor([0.1, 0.15, 0.4, 0.35]), 0.8),
        *((torch.randn(9, generator=g).mul(2).softmax(0), share) for share in (0.5, 0.9, 1.0)),
        (torch.full((4,), 0.25), 0.6),  # all are equally likely
        (torch.tensor([0.25, 0.5, 0.25]), 0.6),
        (torch.tensor([0.25, 0.75]), 0.75),
        (torch.ones(1), 0.5),
    ]


@exercise("gpt.top_p", inputs=_top_p_inputs)
def top_p(p: Tensor, share: float) -> Tensor:
    """The fewest of the likeliest tokens that hold at least `share`, divided by their sum: both (vocab,).

    They stay in their places; the others are 0. Of equally likely tokens the first stays. 0 < share <= 1.
    """
    kept, held = torch.zeros_like(p), 0.0
    for token in sorted(range(len(p)), key=lambda i: -p[i]):
        if held < share:
            kept[token] = p[token]
            held += float(p[token])
    return kept / kept.sum()


def _top_p_with(
    keep: Callable[[Tensor, float], Tensor] = lambda p, share: p.cumsum(0) - p < share,
    sort: Callable[[Tensor], Tensor] = lambda p: p.argsort(descending=True, stable=True),
    put: Callable[[Tensor, Tensor], Tensor] = lambda kept, order: torch.zeros_like(kept).scatter(
        0, order, kept
    ),
    rescale: Callable[[Tensor], Tensor] = lambda kept: kept / kept.sum(),
) -> Callable[[Tensor, float], Tensor]:
    """The nucleus with other tokens kept, another order, other places or other weights."""

    def variant(p: Tensor, share: float) -> Tensor:
        order = sort(p)
        return rescale(put(p[order] * keep(p[order], share), order))

    return variant


top_p.mistake(
    "the token on the border dropped",
    "You stop before the share is reached. The nucleus holds at least the share, so the token "
    "that passes it belongs to it. Otherwise nothing is left if the likeliest alone passes it.",
    _top_p_with(keep=lambda p, share: p.cumsum(0) <= share),
)

top_p.mistake(
    "stops short even of the exact share",
    "You keep tokens while their sum is below the share. The one that reaches it belongs to the nucleus: "
    "look at the sum of those before it.",
    _top_p_with(keep=lambda p, share: p.cumsum(0) < share),
)

top_p.mistake(
    "one token too many",
    "Where the share is reached exactly you still take one more. A token stays if those before "
    "it hold less than the share.",
    _top_p_with(keep=lambda p, share: p.cumsum(0) - p <= share),
)


def _top_p_with_all_ties(p: Tensor, share: float) -> Tensor:
    least = p[top_p(p, share) > 0].min()
    kept = p * (p >= least)
    return kept / kept.sum()


top_p.mistake(
    "all ties kept",
    "You keep every token that is as likely as the last one needed. The fewest that hold the share are asked "
    "for: of equally likely tokens the first stay.",
    _top_p_with_all_ties,
)

top_p.mistake(
    "the last of equal tokens kept",
    "Of equally likely tokens you keep the last. Here the first stays: sort with descending=True and "
    "stable=True instead of reversing an ascending order.",
    _top_p_with(sort=lambda p: p.argsort(stable=True).flip(0)),
)

top_p.mistake(
    "not rescaled",
    "What is left does not sum to one: divide by its sum.",
    _top_p_with(rescale=lambda kept: kept),
)

top_p.mistake(
    "divided by the share",
    "You divide by the share. What is kept holds at least that, mostly more: divide by its own sum.",
    lambda p, share: _top_p_with(rescale=lambda kept: kept / share)(p, share),
)

top_p.mistake(
    "left in sorted order",
    "The probabilities are right and stand in descending order: which token is which is lost. "
    "Put them back where they were.",
    _top_p_with(put=lambda kept, order: kept),
)

top_p.mistake(
    "order applied twice",
    "To put the probabilities back you index with the order once more. That sorts again: write to those "
    "places instead, out[order] = kept.",
    _top_p_with(put=lambda kept, order: kept[order]),
)

top_p.mistake(
    "the unlikely end kept",
    "You add up from the least likely token. Begin with the likeliest.",
    _top_p_with(sort=lambda p: p.argsort(stable=True)),
)

top_p.mistake(
    "not sorted",
    "You add up in the order of the vocabulary. Begin with the likeliest token: sort first.",
    _top_p_with(sort=lambda p: torch.arange(len(p))),
)

top_p.mistake(
    "a threshold for each token",
    "You compare each probability with 1 - p. The share is of the sum, over tokens from the likeliest on.",
    _top_p_with(keep=lambda p, share: p >= 1 - share),
)

top_p.mistake(
    "probabilities taken for logits",
    "You rescale by a softmax of probabilities, which flattens them. They are positive already: "
    "divide by their sum.",
    _top_p_with(rescale=lambda kept: kept.masked_fill(kept == 0, -math.inf).softmax(0)),
)

# The temperature of an entropy

_LOWEST, _HIGHEST = 1e-3, 1e3  # temperatures between which is searched


@exercise(
    "gpt.temperature_of_entropy",
    inputs=lambda g: [
        *((2 * torch.randn(n, generator=g), nats) for n, nats in ((8, 1.2), (20, 1.7), (5, 1.4), (6, 0.1))),
        (1000 + 30 * torch.randn(6, generator=g), 0.9),  # at temperature 1 a probability underflows
        (0.01 * torch.randn(7, generator=g), 1.3),
        (torch.tensor([0.0, 1.0]), 0.5),
        (torch.tensor([0.0, 300.0]), 0.2),
    ],
    tolerance=2e-3,
)
def temperature_of_entropy(logits: Tensor, nats: float) -> float:
    """The temperature T at which softmax(logits / T) has an entropy of `nats`: (vocab,) logits -> a float.

    0 < nats < ln vocab, and T is between 0.001 and 1000; right to one part in 500.
    """
    low, high = _LOWEST, _HIGHEST
    while not math.isclose(low, high):
        middle = math.sqrt(low * high)
        entropy = torch.special.entr((logits / middle).softmax(dim=-1)).sum()
        low, high = (middle, high) if entropy < nats else (low, middle)
    return middle


def _temperature_with(entropy: Callable[[Tensor], Tensor]) -> Callable[[Tensor, float], float]:
    """The temperature at which another measure of the tempered logits has the value."""

    def variant(logits: Tensor, nats: float) -> float:
        low, high = _LOWEST, _HIGHEST
        while not math.isclose(low, high):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if entropy(logits / middle) < nats else (low, middle)
        return middle

    return variant


temperature_of_entropy.mistake(
    "logits multiplied",
    "You return the inverse of the temperature: it divides the logits, and a higher one makes "
    "the entropy larger.",
    lambda logits, nats: 1 / temperature_of_entropy(logits, nats),
)

temperature_of_entropy.mistake(
    "bits for nats",
    "Your entropy is in bits, from logarithms to base 2. Here it is wanted in nats.",
    lambda logits, nats: temperature_of_entropy(logits, nats * math.log(2)),
)

temperature_of_entropy.mistake(
    "effective number for entropy",
    "You bring the exponential of the entropy to the number given. It is the entropy itself that should be.",
    _temperature_with(lambda z: torch.special.entr(z.softmax(-1)).sum().exp()),
)

temperature_of_entropy.mistake(
    "probabilities tempered",
    "You divide the probabilities by the temperature and take a softmax of them. The temperature divides the "
    "logits, before the only softmax.",
    lambda logits, nats: temperature_of_entropy(logits.softmax(-1), nats),
)

temperature_of_entropy.mistake(
    "NaN for 0 log 0",
    "Right for moderate logits. A probability that underflows to 0 makes p * log p NaN, and no comparison "
    "with NaN is true: the term is 0, as in `torch.special.entr`.",
    _temperature_with(lambda z: -(z.softmax(-1) * z.softmax(-1).log()).sum()),
)

# A step with a cache


def _step_inputs(g: torch.Generator) -> list[tuple]:
    def draw(dh: int, dv: int, s: int) -> tuple:
        sizes = ((dh,), (dh,), (dv,), (dh, s), (dv, s))
        return tuple(2 * torch.randn(size, generator=g) for size in sizes)

    return [draw(4, 4, 5), draw(2, 3, 1), draw(6, 2, 8), draw(3, 3, 3), draw(3, 3, 0), draw(1, 1, 1)]


@exercise("gpt.cached_step", inputs=_step_inputs)
def cached_step(q: Tensor, k: Tensor, v: Tensor, K: Tensor, V: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """K' = [K, k], V' = [V, v], and y = V' softmax(K'^T q / sqrt(Dh)): returns y, K' and V'.

    q and k are (Dh,), v is (Dv,); K (Dh, S) and V (Dv, S) have a token a column, and may have none yet.
    """
    K, V = torch.cat([K, k[:, None]], dim=1), torch.cat([V, v[:, None]], dim=1)
    weights = (K.T @ q / math.sqrt(len(q))).softmax(dim=0)
    return V @ weights, K, V


Cached = tuple[Tensor, Tensor, Tensor]


def _step_with(read: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[..., Cached]:
    """The right cache, and another output made from the query and all keys and values."""

    def variant(q: Tensor, k: Tensor, v: Tensor, K: Tensor, V: Tensor) -> Cached:
        _, K, V = cached_step(q, k, v, K, V)
        return read(q, K, V), K, V

    return variant


cached_step.mistake(
    "the new token does not see itself",
    "You attend to what the cache held before. A query may read its own key and value too: "
    "append first, then attend.",
    _step_with(lambda q, K, V: V[:, :-1] @ (K[:, :-1].T @ q / math.sqrt(len(q))).softmax(0)),
)

cached_step.mistake(
    "cache not extended",
    "The output is right, but you return the cache as it was: the next token could not read this one.",
    lambda q, k, v, K, V: (cached_step(q, k, v, K, V)[0], K, V),
)

cached_step.mistake(
    "new token in front",
    "Your new column stands in front of the others. The output does not mind, but the order of "
    "the cache is that of the text.",
    lambda q, k, v, K, V: (
        cached_step(q, k, v, K, V)[0],
        torch.cat([k[:, None], K], dim=1),
        torch.cat([v[:, None], V], dim=1),
    ),
)

cached_step.mistake(
    "missing scale",
    "The scores are not divided by the root of the queries' width.",
    _step_with(lambda q, K, V: V @ (K.T @ q).softmax(0)),
)

cached_step.mistake(
    "scale by Dh instead of its root",
    "Your scores are divided by Dh: at once, or by its root twice, as happens if you scale the query and "
    "then call scaled_dot_product_attention. Divide by the root of Dh, once.",
    _step_with(lambda q, K, V: V @ (K.T @ q / len(q)).softmax(0)),
)

cached_step.mistake(
    "scale by the number of tokens",
    "You divide by the root of the number of keys. A score is a sum over features: the scale is the root of "
    "their number, len(q).",
    _step_with(lambda q, K, V: V @ (K.T @ q / math.sqrt(K.shape[1])).softmax(0)),
)

cached_step.mistake(
    "softmax over the wrong axis",
    "All your weights are 1, so that you return the sum of all values: the softmax runs over the single "
    "query. It runs over the keys.",
    _step_with(lambda q, K, V: V @ (K.T @ q[:, None] / math.sqrt(len(q))).softmax(1)[:, 0]),
)

cached_step.mistake(
    "softmax forgotten",
    "You weigh the values with the scores. The weights are the softmax of the scores over the keys.",
    _step_with(lambda q, K, V: V @ (K.T @ q / math.sqrt(len(q)))),
)

cached_step.mistake(
    "a token a row",
    "Your cache has a token a row, as code has it. Here a token is a column.",
    lambda q, k, v, K, V: tuple(x.T if x.ndim == 2 else x for x in cached_step(q, k, v, K, V)),
)
