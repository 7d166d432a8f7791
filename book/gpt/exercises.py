"""The code exercises of the chapter on GPT, with the mistakes that readers make in them.

Keys and values are in the text's layout, a token a column; batches of token numbers and logits in the code's.
"""

import math

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise


@exercise(
    "gpt.inputs_and_targets",
    inputs=lambda g: [
        (torch.randint(9, size, generator=g),) for size in ((2, 6), (3, 2), (4, 9), (5, 5), (1, 5), (1, 2))
    ],
)
def inputs_and_targets(batch: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens 1 to N as inputs, tokens 2 to N + 1 as targets: (B, N + 1) -> (B, N) and (B, N)."""
    return batch[:, :-1], batch[:, 1:]


inputs_and_targets.add_mistakes("""
targets not moved | batch[:, 1:] => batch[:, :-1]
    Each place is asked for the token that it reads. A model learns to copy it, its loss falls to zero,
    and it can predict nothing: the targets stand one place further on.
moved the wrong way | batch[:, :-1], batch[:, 1:] => batch[:, 1:], batch[:, :-1]
    Each place is asked for the token before it, which it has read. The target of token n is token n + 1.
rolled around | batch[:, :-1], batch[:, 1:] => batch, batch.roll(-1, dims=1)
    After the last token you ask for the first: `roll` is round. What follows the last token is not in the
    batch, so it is a target and not read.
all tokens read | batch[:, :-1] => batch
    You read N + 1 tokens and have N targets. The last token is only asked for.
""")


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


perplexity.add_mistakes("""
mean of the perplexities | (-log_p.mean()).exp() => (-log_p).exp().mean()
    You take the exponential of each surprise and then the mean. The mean comes first: one token that
    costs a great deal would otherwise decide everything.
sum instead of mean | mean => sum
    You take the exponential of the sum: one over the probability of the whole text, which grows with its
    length. Perplexity is per token.
two to the nats | .exp() => .exp2()
    Your loss is in nats and your base is 2. Either e to the nats or 2 to the bits.
softmax over the places | dim=1 => dim=0
    Your probabilities sum to one over the places of the text. They should over the vocabulary, the last
    axis.
""")


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


top_p.add_mistakes("""
the token on the border dropped
    | held < share => (held := held + float(p[token])) <= share + 1e-6
    | held += float(p[token]) => pass
    You stop before the share is reached. The nucleus holds at least the share, so the token that passes
    it belongs to it. Otherwise nothing is left if the likeliest alone passes it.
one token too many | held < share => held <= share + 1e-6
    Where the share is reached exactly you still take one more. A token stays if those before it hold less
    than the share.
not rescaled | kept / kept.sum() => kept
    What is left does not sum to one: divide by its sum.
divided by the share | kept.sum() => share
    You divide by the share. What is kept holds at least that, mostly more: divide by its own sum.
left in sorted order | kept / kept.sum() => (kept / kept.sum()).sort(descending=True).values
    The probabilities are right and stand in descending order: which token is which is lost. Put them back
    where they were.
""")


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


temperature_of_entropy.add_mistakes("""
logits multiplied | return middle => return 1 / middle
    You return the inverse of the temperature: it divides the logits, and a higher one makes the entropy
    larger.
bits for nats | entropy < nats => entropy / math.log(2) < nats
    Your entropy is in bits, from logarithms to base 2. Here it is wanted in nats.
effective number for entropy | entropy < nats => entropy.exp() < nats
    You bring the exponential of the entropy to the number given. It is the entropy itself that should be.
NaN for 0 log 0
    | torch.special.entr( => -torch.mul(
    | dim=-1)).sum() => dim=-1), (logits / middle).softmax(dim=-1).log()).sum()
    Right for moderate logits. A probability that underflows to 0 makes p * log p NaN, and no comparison
    with NaN is true: the term is 0, as in `torch.special.entr`.
""")


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


cached_step.add_mistakes("""
the new token does not see itself
    | (K.T @ q => (K[:, :-1].T @ q
    | V @ weights => V[:, :-1] @ weights
    You attend to what the cache held before. A query may read its own key and value too: append first,
    then attend.
cache not extended | return V @ weights, K, V => return V @ weights, K[:, :-1], V[:, :-1]
    The output is right, but you return the cache as it was: the next token could not read this one.
new token in front
    | [K, k[:, None]], dim=1), torch.cat([V, v[:, None]] => [k[:, None], K], dim=1), torch.cat([v[:, None], V]
    Your new column stands in front of the others. The output does not mind, but the order of the cache is
    that of the text.
missing scale | / math.sqrt(len(q)) =>
    The scores are not divided by the root of the queries' width.
scale by Dh instead of its root | math.sqrt(len(q)) => len(q)
    Your scores are divided by Dh: at once, or by its root twice, as happens if you scale the query and
    then call scaled_dot_product_attention. Divide by the root of Dh, once.
""")
