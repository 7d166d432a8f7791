"""The code exercises of the chapter on machine translation, with the mistakes that readers make in them.

Logits, scores and outputs are in the text's layout, a token a column; batches of token numbers have a
sentence a row. Of tokens the numbers 0 to 2 are special: padding, begin, end.
"""

import math
from collections.abc import Callable, Sequence
from itertools import chain

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise

PAD, BOS, EOS = 0, 1, 2


def _padded(g: torch.Generator, lengths: Sequence[int], *, begin: bool = False) -> Tensor:
    """Random sentences with their end tokens, (B, N); the lengths count special tokens."""
    rows = torch.full((len(lengths), max(lengths)), PAD)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = torch.randint(3, 20, (length,), generator=g)
        row[length - 1] = EOS
        if begin:
            row[0] = BOS
    return rows


# What the decoder reads, and what it is asked for


def _shift_inputs(g: torch.Generator) -> list[tuple]:
    batches = ([6, 3, 4], [5, 5], [2, 7], [4], [3, 2], [2])  # lengths; 2 is a begin and an end token
    return [(_padded(g, lengths, begin=True),) for lengths in batches]


@exercise("translation.shift", inputs=_shift_inputs)
def shift(target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What the decoder reads, what it is asked for, where that counts: (B, T) -> three times (B, T - 1).
    The first two are token numbers, the third is boolean: True where the token asked for is no padding.
    """
    read, asked = target[:, :-1], target[:, 1:]
    return read, asked, asked != PAD


shift.mistake(
    "not shifted",
    "Each place is asked for the token that it reads, so the loss would fall to zero by copying. "
    "What is asked for stands one place further on.",
    lambda t: (t[:, :-1], t[:, :-1], t[:, :-1] != PAD),
)

shift.mistake(
    "shifted the wrong way",
    "Each place is asked for the token before the one it reads. Having read tokens 1 to n, the "
    "decoder is asked for token n + 1.",
    lambda t: (t[:, 1:], t[:, :-1], t[:, :-1] != PAD),
)

shift.mistake(
    "last token read, too",
    "You read all tokens, and there is one more of them than of those asked for. What follows "
    "the last is not known, so the last is only asked for.",
    lambda t: (t, t[:, 1:], t[:, 1:] != PAD),
)

shift.mistake(
    "rolled around",
    "After the last token you ask for the begin token: `roll` is round. The last token is not "
    "read, and the first not asked for.",
    lambda t: (t, t.roll(-1, dims=1), t.roll(-1, dims=1) != PAD),
)

shift.mistake(
    "begin token not read",
    "You leave the begin token out of what is read, so nothing asks for the first word. In "
    "translating, the begin token is all that the decoder has to start from.",
    lambda t: (t[:, 1:-1], t[:, 2:], t[:, 2:] != PAD),
)

shift.mistake(
    "end token not asked for",
    "The end token does not count in your loss. It is to be predicted like every other: a "
    "decoder that was never asked for it does not know how to stop.",
    lambda t: (t[:, :-1], t[:, 1:], (t[:, 1:] != PAD) & (t[:, 1:] != EOS)),
)

shift.mistake(
    "padding counted",
    "You ask for padding, too. It is easy to predict after an end token, so the mean would look "
    "better the more of it there is in a batch.",
    lambda t: (t[:, :-1], t[:, 1:], torch.ones_like(t[:, 1:], dtype=torch.bool)),
)

shift.mistake(
    "counted by what is read",
    "You count the places that read a real token. Where a sentence's end token is read, padding "
    "is asked for: what counts is that the token *asked for* is real.",
    lambda t: (t[:, :-1], t[:, 1:], t[:, :-1] != PAD),
)

shift.mistake(
    "padding alone counted",
    "Your third tensor is True at padding. Here True means that a place counts.",
    lambda t: (t[:, :-1], t[:, 1:], t[:, 1:] == PAD),
)

# Three masks


def _masks_inputs(g: torch.Generator) -> list[tuple]:
    lengths = (([5, 3], [4, 6]), ([4, 2, 1], [2, 4, 3]), ([3, 6], [2, 3]), ([2], [1]), ([1], [2]))
    return [(_padded(g, source), _padded(g, target, begin=True)) for source, target in lengths]


@exercise("translation.masks", inputs=_masks_inputs)
def masks(source: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Who may attend (down) to whom (across): (B, S), (B, N) -> booleans (B, 1, 1, S), (N, N), (B, 1, 1, S).
    True where allowed: in the encoder, the decoder's self-attention and its cross-attention; 0 is padding.
    """
    words = (source != PAD)[:, None, None, :]
    n = target.shape[1]
    causal = torch.ones(n, n, dtype=torch.bool).tril()
    return words, causal, words


def _words(tokens: Tensor) -> Tensor:
    return (tokens != PAD)[:, None, None, :]


def _causal(queries: Tensor, keys: Tensor) -> Tensor:
    return torch.ones(queries.shape[1], keys.shape[1], dtype=torch.bool).tril()


masks.mistake(
    "masks inverted",
    "Your masks are True where attention is forbidden, which is the convention of "
    "`nn.MultiheadAttention`. Here True means that a query may attend.",
    lambda s, t: (~_words(s), ~_causal(t, t), ~_words(s)),
)

masks.mistake(
    "masks to be added",
    "Your masks are numbers to be added to scores: 0 where a query may attend, minus infinity "
    "elsewhere. Booleans are wanted, True where it may.",
    lambda s, t: tuple(torch.zeros(m.shape).masked_fill(~m, -math.inf) for m in masks(s, t)),
)

masks.mistake(
    "cross-attention masked by the target's padding",
    "Your third mask comes from the target. Keys of cross-attention are tokens of the source, "
    "and it is their padding that must not be read.",
    lambda s, t: (_words(s), _causal(t, t), _words(t)),
)

masks.mistake(
    "cross-attention causal",
    "Your cross-attention is causal. The source is there from the start, all of it: its word n "
    "has no reason to stay hidden from the target's word n - 1.",
    lambda s, t: (_words(s), _causal(t, t), _words(s) & _causal(t, s)),
)

masks.mistake(
    "encoder causal",
    "Your encoder is causal. It reads a sentence that is complete, so each word may attend to "
    "those after it.",
    lambda s, t: (_words(s) & _causal(s, s), _causal(t, t), _words(s)),
)

masks.mistake(
    "causal mask transposed",
    "Your decoder reads the future. Queries run down and keys across, so the past lies below "
    "the diagonal (`tril`).",
    lambda s, t: (_words(s), _causal(t, t).T, _words(s)),
)

masks.mistake(
    "causal mask off by one",
    "Your decoder's tokens do not see themselves, and the first sees nothing. Each place reads "
    "the token that stands there: the diagonal belongs to the mask.",
    lambda s, t: (_words(s), _causal(t, t).tril(-1), _words(s)),
)

masks.mistake(
    "decoder not causal",
    "Your decoder's mask hides padding and nothing else, so each place sees the word that it is "
    "asked for. It has to be causal.",
    lambda s, t: (_words(s), _words(t), _words(s)),
)

masks.mistake(
    "padding in the decoder's mask, too",
    "Your decoder's mask hides the target's padding as well. That does no harm and is not "
    "needed: padding stands at the end, where no real token sees it. Return the causal mask "
    "alone, (N, N).",
    lambda s, t: (_words(s), _words(t) & _causal(t, t), _words(s)),
)

masks.mistake(
    "padding forbidden to ask",
    "You forbid padding to ask, instead of forbidding others to read it. A query that may read "
    "nothing gets NaN from its softmax; a mask of padding is one over keys, the last axis.",
    lambda s, t: (_words(s).mT, _causal(t, t), _words(t).mT),
)

# Smoothed labels


def _smoothed_inputs(g: torch.Generator) -> list[tuple]:
    def draw(vocab: int, lengths: Sequence[int], epsilon: float, size: float = 2.0) -> tuple:
        targets = _padded(g, lengths).clamp(max=vocab - 1)
        return size * torch.randn(len(lengths), vocab, max(lengths), generator=g), targets, epsilon

    return [
        draw(5, [4, 2], 0.1),
        draw(8, [3, 6, 1], 0.2),
        draw(6, [6, 5], 0.05),
        draw(4, [3, 1], 0.0),
        draw(7, [2, 4], 0.9),
        draw(3, [1], 0.3),
        draw(5, [4, 3, 2], 0.1, size=100.0),  # some probabilities are too small for a float
    ]


@exercise("translation.smoothed_loss", inputs=_smoothed_inputs)
def smoothed_loss(Z: Tensor, targets: Tensor, epsilon: float) -> Tensor:
    """The mean of -sum_v q(v) ln p(v) over real tokens: (B, V, N) logits, (B, N) targets -> one number.
    q has epsilon / V on each of the V tokens and 1 - epsilon on the true one besides; 0 is padding.
    """
    surprise = -Z.log_softmax(dim=1)
    true = surprise.gather(1, targets[:, None])[:, 0]
    losses = (1 - epsilon) * true + epsilon * surprise.mean(dim=1)
    return losses[targets != PAD].mean()


def _smoothed_towards(q: Callable[[Tensor, float, int], Tensor], dim: int = 1) -> Callable[..., Tensor]:
    """The loss against another q, made of the true token's one-hot vector, epsilon and V."""

    def variant(Z: Tensor, targets: Tensor, epsilon: float) -> Tensor:
        true = torch.zeros_like(Z).scatter(1, targets[:, None], 1.0)
        losses = -(q(true, epsilon, Z.shape[1]) * Z.log_softmax(dim)).sum(1)
        return losses[targets != PAD].mean()

    return variant


def _smoothed_averaged(mean: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """The loss with another mean of the losses (B, N), given which tokens are real."""

    def variant(Z: Tensor, targets: Tensor, epsilon: float) -> Tensor:
        surprise = -Z.log_softmax(dim=1)
        true = surprise.gather(1, targets[:, None])[:, 0]
        return mean((1 - epsilon) * true + epsilon * surprise.mean(dim=1), targets != PAD)

    return variant


def _smoothed_by_logarithm_of_softmax(Z: Tensor, targets: Tensor, epsilon: float) -> Tensor:
    surprise = -Z.softmax(dim=1).log()
    true = surprise.gather(1, targets[:, None])[:, 0]
    return ((1 - epsilon) * true + epsilon * surprise.mean(dim=1))[targets != PAD].mean()


smoothed_loss.mistake(
    "spread over the wrong tokens only",
    "You spread epsilon over the V - 1 wrong tokens. In the text it is spread over the whole "
    "vocabulary, epsilon/V each, so the true token has a share of it, too.",
    _smoothed_towards(lambda true, eps, V: (1 - eps) * true + eps / (V - 1) * (1 - true)),
)

smoothed_loss.mistake(
    "true token without its share",
    "Your q does not sum to one: each wrong token has epsilon/V and the true one 1 - epsilon. "
    "The true token has its epsilon/V as well.",
    _smoothed_towards(lambda true, eps, V: (1 - eps) * true + eps / V * (1 - true)),
)

smoothed_loss.mistake(
    "epsilon for each token",
    "Each token has the whole epsilon in your q. It is shared out: epsilon/V for each.",
    _smoothed_towards(lambda true, eps, V: (1 - eps) * true + eps),
)

smoothed_loss.mistake(
    "epsilon and the rest exchanged",
    "You give epsilon to the true token and spread the rest. It is epsilon, the small number, "
    "that is spread.",
    _smoothed_towards(lambda true, eps, V: eps * true + (1 - eps) / V),
)

smoothed_loss.mistake(
    "not smoothed",
    "This is the plain cross-entropy, whatever epsilon is. A share epsilon of q is spread over "
    "the whole vocabulary.",
    _smoothed_towards(lambda true, eps, V: true),
)

smoothed_loss.mistake(
    "softmax over the places",
    "Your probabilities sum to one over the places of a sentence. A token is a column here, and "
    "its distribution over the vocabulary runs down axis 1.",
    _smoothed_towards(lambda true, eps, V: (1 - eps) * true + eps / V, dim=2),
)

smoothed_loss.mistake(
    "padding counted",
    "You average over all places. Padding is not to be predicted: only places whose target is "
    "not 0 count, in the sum and in the number that divides it.",
    _smoothed_averaged(lambda losses, real: losses.mean()),
)

smoothed_loss.mistake(
    "divided by all places",
    "You add up over real tokens and divide by all places, so the loss shrinks with the padding "
    "of a batch. Divide by the number of real tokens.",
    _smoothed_averaged(lambda losses, real: (losses * real).mean()),
)

smoothed_loss.mistake(
    "mean of the sentences' means",
    "You take the mean in each sentence first, and a word in a short one weighs more than a "
    "word in a long one. Every real token counts alike.",
    _smoothed_averaged(lambda losses, real: ((losses * real).sum(1) / real.sum(1)).mean()),
)

smoothed_loss.mistake(
    "sum of the losses",
    "You add up the losses of all real tokens. Divide by their number: a mean does not depend on "
    "the size of a batch.",
    _smoothed_averaged(lambda losses, real: losses[real].sum()),
)

smoothed_loss.mistake(
    "bits for nats",
    "Your logarithms are to base 2. The loss is in nats.",
    lambda Z, targets, epsilon: smoothed_loss(Z, targets, epsilon) / math.log(2),
)

smoothed_loss.mistake(
    "logarithm of a softmax",
    "Right for moderate logits. Where a probability is too small for a float, its logarithm is "
    "minus infinity: `log_softmax` computes the logarithm without the probability.",
    _smoothed_by_logarithm_of_softmax,
)

# A step of beam search

Continuation = tuple[int, int, float]


def _beam_inputs(g: torch.Generator) -> list[tuple]:
    def draw(vocab: int, k: int) -> tuple:
        """Without ties, and the beginnings in no order."""
        log_p = -torch.rand(k, generator=g).mul(2).cumsum(0)[torch.randperm(k, generator=g)] - 1
        return log_p, (1.5 * torch.randn(vocab, k, generator=g)).log_softmax(0)

    _, step = draw(7, 3)
    beginning = torch.tensor([0.0, -60.0, -70.0])  # like the first step, where only one may go on
    by_pencil = torch.tensor([[0.4, 0.9], [0.35, 0.06], [0.25, 0.04]]).log()
    return [
        (torch.tensor([0.6, 0.4]).log(), by_pencil),
        (beginning, step),
        *(draw(vocab, k) for vocab, k in ((7, 3), (5, 5), (12, 4), (9, 1), (6, 2), (2, 3), (2, 2), (2, 1))),
    ]


@exercise("translation.beam_step", inputs=_beam_inputs)
def beam_step(log_p: Tensor, step: Tensor) -> list[Continuation]:
    """The k likeliest continuations, best first: (k,), (vocab, k) -> k times (beginning, token, log p).
    Column j of `step` has the log-probabilities of the token after beginning j. The first two are whole
    numbers, the last is the whole continuation's; no two continuations are equally likely.
    """
    k = len(log_p)
    best, places = (log_p + step).flatten().topk(k)
    return [(i % k, i // k, total) for i, total in zip(places.tolist(), best.tolist(), strict=True)]


def _best(scores: Tensor, largest: bool = True) -> list[Continuation]:
    """The k best entries of scores (vocab, k)."""
    vocab, k = scores.shape
    entries = [(j, v, scores[v, j].item()) for v in range(vocab) for j in range(k)]
    return sorted(entries, key=lambda entry: entry[2], reverse=largest)[:k]


def _beam_without(left_out: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., list[Continuation]]:
    """A step in which some continuations do not take part."""
    return lambda log_p, step: _best((log_p + step).masked_fill(left_out(log_p, step), -math.inf))


beam_step.mistake(
    "best token of each beginning only",
    "You continue each beginning by its best token. That is k greedy searches beside each other: "
    "all continuations compete, so a good beginning may leave several and a bad one none.",
    _beam_without(lambda log_p, step: step < step.amax(0)),
)

beam_step.mistake(
    "likeliest beginning only",
    "All your continuations are of the likeliest beginning. The others take part as well: what "
    "is less likely now may be more likely a token later.",
    _beam_without(lambda log_p, step: (log_p < log_p.max()).expand_as(step)),
)

beam_step.mistake(
    "first beginning only",
    "All your continuations are of the first beginning. The others take part as well, and they "
    "come in no particular order.",
    _beam_without(lambda log_p, step: (torch.arange(len(log_p)) > 0).expand_as(step)),
)

beam_step.mistake(
    "log p of the beginning forgotten",
    "You rank by the new token alone. The log p of what it continues has to be added: likely "
    "words after an unlikely beginning are still unlikely.",
    lambda log_p, step: _best(step),
)

beam_step.mistake(
    "log p of the token returned",
    "The continuations are the right ones, and you return the new token's log p. Return that of "
    "the whole continuation: the next step needs it.",
    lambda log_p, step: [(j, v, step[v, j].item()) for j, v, _ in beam_step(log_p, step)],
)

beam_step.mistake(
    "probabilities added",
    "You add probabilities of beginning and token. They are multiplied, which for their logarithms is a sum.",
    lambda log_p, step: _best((log_p.exp() + step.exp()).log()),
)

beam_step.mistake(
    "probabilities returned",
    "The order is right, and you return probabilities. Keep their logarithms: over a long "
    "sentence the product becomes too small for a float.",
    lambda log_p, step: [(j, v, math.exp(total)) for j, v, total in beam_step(log_p, step)],
)

beam_step.mistake(
    "number taken apart as in code",
    "You find the right entries and take their numbers apart the wrong way round. A row of this "
    "matrix has k entries, one for each beginning: entry i is token i // k after beginning "
    "i % k.",
    lambda log_p, step: [
        ((v * len(log_p) + j) // len(step), (v * len(log_p) + j) % len(step), total)
        for j, v, total in beam_step(log_p, step)
    ],
)

beam_step.mistake(
    "added down instead of across",
    "You add the beginnings' log p along the tokens. A beginning is a column here, so its log p "
    "goes to all entries of its column, which is what `log_p + step` does.",
    lambda log_p, step: _best(log_p[:, None] + step),
)

beam_step.mistake(
    "token first",
    "Beginning and token are exchanged in what you return.",
    lambda log_p, step: [(v, j, total) for j, v, total in beam_step(log_p, step)],
)

beam_step.mistake(
    "worst first",
    "You return the least likely. The greatest log p come first.",
    lambda log_p, step: _best(log_p + step, largest=False),
)

beam_step.mistake(
    "best last",
    "These are the k likeliest continuations, in ascending order. The best comes first.",
    lambda log_p, step: beam_step(log_p, step)[::-1],
)

# Ranking what has ended

Found = list[tuple[list[int], float]]


def _ranking_inputs(g: torch.Generator) -> list[tuple]:
    def draw(*lengths: int) -> Found:
        return [
            (
                [*torch.randint(3, 20, (n - 1,), generator=g).tolist(), EOS],
                -(0.3 + torch.rand(n, generator=g)).sum().item(),
            )
            for n in lengths
        ]

    pencil = [([5, EOS], -2.0), ([5, 6, 7, EOS], -3.0), ([5, 6, 7, 8, 9, EOS], -4.2)]
    tied = [([5, 6, EOS], -6.0), ([7, EOS], -2.0), ([8, 9, 3, EOS], -4.0), ([EOS], -1.0)]
    return [
        *((pencil, alpha) for alpha in (0.0, 0.5, 1.0)),
        ([([EOS], -1.7), *draw(4, 7)], 1.0),
        (draw(5, 2, 6), 0.6),
        (draw(3, 9, 6, 4), 1.5),
        (tied, 1.0),
        ([([EOS], -1.5), ([4, EOS], -1.75)], 1.0),
        ([], 1.0),
    ]


@exercise("translation.length_score", inputs=_ranking_inputs)
def length_score(found: Found, alpha: float) -> list[tuple[int, float]]:
    """(place in `found`, ln p / length^alpha) of each (tokens, ln p), best first, ties in their order there.
    The tokens have their end token and no begin token. Places are whole numbers, from 0.
    """
    scores = [(i, log_p / len(tokens) ** alpha) for i, (tokens, log_p) in enumerate(found)]
    return sorted(scores, key=lambda scored: scored[1], reverse=True)


def _ranked_by(score: Callable[[float, int, float], float]) -> Callable[..., list[tuple[int, float]]]:
    """The ranking by another score of log p, length and alpha."""

    def variant(found: Found, alpha: float) -> list[tuple[int, float]]:
        scores = [(i, score(log_p, len(tokens), alpha)) for i, (tokens, log_p) in enumerate(found)]
        return sorted(scores, key=lambda scored: -scored[1])

    return variant


length_score.mistake(
    "multiplied",
    "You multiply by the length. Log p is negative and falls with every token; divided by the "
    "length it becomes comparable, multiplied it falls twice.",
    _ranked_by(lambda log_p, length, alpha: log_p * length**alpha),
)

length_score.mistake(
    "alpha on log p",
    "Your exponent stands at log p. It belongs to the length, so that 0 leaves log p as it is.",
    _ranked_by(lambda log_p, length, alpha: -((-log_p) ** alpha) / length),
)

length_score.mistake(
    "alpha on the quotient",
    "You raise the whole quotient to alpha. Only the length is.",
    _ranked_by(lambda log_p, length, alpha: -((-log_p / length) ** alpha)),
)

length_score.mistake(
    "alpha a factor",
    "You multiply the length by alpha. Alpha is the length's exponent: with 0 you would divide "
    "by zero, and the score is to be log p itself.",
    _ranked_by(lambda log_p, length, alpha: log_p / (length * alpha)),
)

length_score.mistake(
    "alpha ignored",
    "You divide by the length whatever alpha is. With alpha = 0 the score is log p itself.",
    _ranked_by(lambda log_p, length, alpha: log_p / length),
)

length_score.mistake(
    "length ignored",
    "These are the log p themselves. Divide each by its length to the power of alpha.",
    _ranked_by(lambda log_p, length, alpha: log_p),
)

length_score.mistake(
    "length without the end token",
    "Your length leaves out the end token. Its probability is a factor of p like the others, so "
    "it counts; without it the empty translation would have length 0.",
    _ranked_by(lambda log_p, length, alpha: log_p / (length - 1) ** alpha),
)

length_score.mistake(
    "length with a begin token",
    "Your length is greater by one. The begin token was given, has no probability in p, and is not counted.",
    _ranked_by(lambda log_p, length, alpha: log_p / (length + 1) ** alpha),
)

length_score.mistake(
    "the penalty of Wu et al.",
    "You divide by ((5 + length) / 6)^alpha, as Wu et al. (2016) do. Here it is length^alpha.",
    _ranked_by(lambda log_p, length, alpha: log_p / ((5 + length) / 6) ** alpha),
)

length_score.mistake(
    "probability instead of its logarithm",
    "You divide probabilities. They fall by factors, which no power of the length makes up for: "
    "divide log p.",
    _ranked_by(lambda log_p, length, alpha: math.exp(log_p) / length**alpha),
)

length_score.mistake(
    "worst first",
    "Your scores are right, and the worst comes first. Scores are negative; the greatest, "
    "nearest to zero, is the best.",
    lambda found, alpha: sorted(length_score(found, alpha), key=lambda scored: scored[1]),
)

length_score.mistake(
    "ties turned round",
    "Right but for ties: you sort in ascending order and turn the list round, and equal scores "
    "with it. `sorted(..., reverse=True)` leaves equal scores as they came.",
    lambda found, alpha: sorted(sorted(length_score(found, alpha)), key=lambda scored: scored[1])[::-1],
)

length_score.mistake(
    "not sorted",
    "Your scores are right and stand in the order of `found`. The best comes first.",
    lambda found, alpha: sorted(length_score(found, alpha)),
)

# BLEU

Words = list[str]


def _bleu_inputs(g: torch.Generator) -> list[tuple]:
    def corpus(lengths: Sequence[int], change: float, drop: float) -> tuple[list[Words], list[Words]]:
        """References of these lengths, and translations with some words changed and some left out."""

        def word() -> str:
            return "abcdef"[int(torch.randint(6, (), generator=g))]

        def happens(share: float) -> bool:
            return torch.rand((), generator=g).item() < share

        references = [[word() for _ in range(n)] for n in lengths]
        kept = [[w for i, w in enumerate(words) if i == 0 or not happens(drop)] for words in references]
        return [[word() if happens(change) else w for w in words] for words in kept], references

    short = corpus([12, 9, 14, 2], 0.1, 0.15)
    four = [*"abcd"]
    return [
        ([["the"] * 5, ["a", "b", "c", "d", "e"]], [["the", "a", "b"], ["a", "b", "c", "d", "e"]]),
        short,
        short[::-1],  # translations that are too long
        corpus([10, 20, 7], 0.2, 0.0),
        corpus([8, 8], 0.0, 0.0),
        ([["a", "b", "c"]], [["a", "b", "c"]]),  # no 4-grams
        ([[*"abcdef"], []], [[*"abcdef"], ["a"]]),  # an empty translation; one word too few
        ([four], [four]),
        ([four], [[*four, "e"]]),
        ([[*four, "e"]], [four]),
        # the words differ, what they make together does not
        ([[*four, "e", "ab", "c"]], [[*four, "e", "a", "bc"]]),
    ]


@exercise("translation.bleu", inputs=_bleu_inputs)
def bleu(translations: list[Words], references: list[Words]) -> float:
    """100 min(1, exp(1 - r/c)) times the geometric mean of pi_1 to pi_4, of two lists of lists of words.
    pi_n is the share of the translations' n-grams that are matched, counted over the whole corpus; 0 if there
    are none. c words are in the translations, at least one, and r in the references.
    """
    score = 100.0
    for n in (1, 2, 3, 4):
        matches, total = 0, 0
        for translation, reference in zip(translations, references, strict=True):
            found, true = (
                [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
                for words in (translation, reference)
            )
            matches += sum(min(found.count(gram), true.count(gram)) for gram in set(found))
            total += len(found)
        score *= (matches / total) ** (1 / 4) if total else 0.0
    c, r = (sum(len(words) for words in side) for side in (translations, references))
    return score * min(1.0, math.exp(1 - r / c))


def _n_grams(words: Words, n: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def _clipped(found: list, true: list) -> int:
    return sum(min(found.count(gram), true.count(gram)) for gram in set(found))


def _bleu_with(
    n_grams: Callable[[Words, int], list] = _n_grams,
    matches: Callable[[list, list], int] = _clipped,
    total: Callable[[list, list], int] = lambda found, true: len(found),
    mean: Callable[[list[float]], float] = lambda precisions: math.prod(precisions) ** (1 / 4),
    penalty: Callable[[int, int], float] = lambda c, r: min(1.0, math.exp(1 - r / c)),
) -> Callable[[list[Words], list[Words]], float]:
    """BLEU with something changed."""

    def variant(translations: list[Words], references: list[Words]) -> float:
        precisions = []
        for n in (1, 2, 3, 4):
            pairs = [(n_grams(t, n), n_grams(r, n)) for t, r in zip(translations, references, strict=True)]
            possible = sum(total(*pair) for pair in pairs)
            precisions.append(sum(matches(*pair) for pair in pairs) / possible if possible else 0.0)
        c, r = (sum(map(len, texts)) for texts in (translations, references))
        return 100 * penalty(c, r) * mean(precisions)

    return variant


def _bleu_by_sentence(translations: list[Words], references: list[Words]) -> float:
    pairs = zip(translations, references, strict=True)
    return sum(bleu([t], [r]) if t else 0.0 for t, r in pairs) / len(translations)


def _bleu_of_one_text(translations: list[Words], references: list[Words]) -> float:
    return bleu([[*chain(*translations)]], [[*chain(*references)]])


bleu.mistake(
    "not clipped",
    'You count every n-gram that occurs in the reference, so that "the the the" is right three '
    "times. Each counts at most as often as the reference has it.",
    _bleu_with(matches=lambda found, true: sum(gram in true for gram in found)),
)

bleu.mistake(
    "each n-gram once",
    "You compare sets, in which a repeated n-gram counts once. It counts as often as it is in both.",
    _bleu_with(
        matches=lambda found, true: len(set(found) & set(true)), total=lambda found, true: len(set(found))
    ),
)

bleu.mistake(
    "n-grams joined to strings",
    'You join the words of an n-gram, and "ab", "c" becomes the same as "a", "bc". Compare tuples of words.',
    _bleu_with(n_grams=lambda words, n: ["".join(gram) for gram in _n_grams(words, n)]),
)

bleu.mistake(
    "mean of the sentences' scores",
    "You average the sentences' BLEU. A sentence without a common 4-gram counts 0 then: matches "
    "and totals are summed over the corpus before they are divided.",
    _bleu_by_sentence,
)

bleu.mistake(
    "corpus as one text",
    "You join the sentences and count once. Now n-grams run over the borders of sentences, and "
    "a word may match one in another sentence's reference.",
    _bleu_of_one_text,
)

bleu.mistake(
    "recall instead of precision",
    "You divide by the n-grams of the references. Precision is a share of the translation's "
    "n-grams; what it leaves out is punished by the brevity penalty.",
    _bleu_with(total=lambda found, true: len(true)),
)

bleu.mistake(
    "arithmetic mean",
    "You average the four precisions. Their geometric mean is wanted, which is 0 if one of them is.",
    _bleu_with(mean=lambda precisions: sum(precisions) / 4),
)

bleu.mistake(
    "root forgotten",
    "You multiply the four precisions and leave it at that. Their geometric mean is the fourth "
    "root of the product.",
    _bleu_with(mean=math.prod),
)

bleu.mistake(
    "no brevity penalty",
    "Your translations may be as short as they like: one sure word would have precision 1. "
    "Multiply by exp(1 - r/c) where they are shorter than the references.",
    _bleu_with(penalty=lambda c, r: 1.0),
)

bleu.mistake(
    "lengths exchanged in the penalty",
    "Your penalty punishes long translations. It is for those that are shorter than the "
    "references: c is the translations' length, r the references', and the exponent 1 - r/c.",
    _bleu_with(penalty=lambda c, r: min(1.0, math.exp(1 - c / r))),
)

bleu.mistake(
    "penalty greater than one",
    "Your factor rewards long translations: it is greater than 1 for them. It is never more "
    "than 1; what is too long is punished by the precisions already.",
    _bleu_with(penalty=lambda c, r: math.exp(1 - r / c)),
)

bleu.mistake(
    "the quotient itself as penalty",
    "Your penalty is c/r, the share of the length. It is exp(1 - r/c), which falls faster.",
    _bleu_with(penalty=lambda c, r: min(1.0, c / r)),
)

bleu.mistake(
    "a share for per cent",
    "Your scores go from 0 to 1. BLEU goes from 0 to 100: multiply by 100.",
    lambda translations, references: bleu(translations, references) / 100,
)

# Reading the source


def _cross_inputs(g: torch.Generator) -> list[tuple]:
    def draw(n: int, s: int, d: int, dh: int, padding: int) -> tuple:
        X, C = torch.randn(d, n, generator=g), torch.randn(d, s, generator=g)
        W = (torch.randn(dh, d, generator=g) for _ in range(3))
        return X, C, torch.arange(s) < s - padding, *W

    one = torch.ones(1, 1)
    far = torch.tensor([[-10.0, -10.125, 3.0]])  # scores -160, -162, and padding's 48
    return [
        draw(4, 6, 4, 3, 2),
        draw(5, 5, 3, 2, 1),
        draw(3, 4, 5, 5, 0),
        draw(1, 3, 4, 2, 2),
        draw(4, 4, 6, 4, 1),
        draw(1, 2, 1, 1, 0),
        (16 * one, far, torch.tensor([True, True, False]), one, one, one),
    ]


@exercise("translation.cross_attention_columns", inputs=_cross_inputs)
def cross_attention_columns(
    X: Tensor, C: Tensor, real: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor
) -> Tensor:
    """V softmax(K^T Q / sqrt(Dh)), Q of X (D, N), K and V of C (D, S), W's (Dh, D) -> (Dh, N).
    `real` (S,) is boolean and False at padding, which gets no weight; at least one token is real.
    """
    Q, K, V = W_q @ X, W_k @ C, W_v @ C
    scores = K.T @ Q / math.sqrt(len(Q))
    A = scores.masked_fill(~real[:, None], -math.inf).softmax(dim=0)
    return V @ A


def _cross_weighted(weights: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """Cross-attention with other weights, made of the scaled scores (S, N) and of `real` (S, 1)."""

    def variant(X: Tensor, C: Tensor, real: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
        scores = (W_k @ C).T @ (W_q @ X) / math.sqrt(len(W_q))
        return W_v @ C @ weights(scores, real[:, None])

    return variant


def _cross_scaled(factor: Callable[[int, int], float]) -> Callable[..., Tensor]:
    """Cross-attention with queries that are longer by a factor, made of Dh and D."""
    return lambda X, C, real, W_q, W_k, W_v: cross_attention_columns(
        X, C, real, W_q * factor(*W_q.shape), W_k, W_v
    )


def _cross_with_target_keys(
    X: Tensor, C: Tensor, real: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor
) -> Tensor:
    scores = (W_k @ X).T @ (W_q @ X) / math.sqrt(len(W_q))
    return W_v @ C @ scores.masked_fill(~real[:, None], -math.inf).softmax(dim=0)


def _cross_with_target_values(
    X: Tensor, C: Tensor, real: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor
) -> Tensor:
    scores = (W_k @ C).T @ (W_q @ X) / math.sqrt(len(W_q))
    return W_v @ X @ scores.masked_fill(~real[:, None], -math.inf).softmax(dim=0)


def _cross_by_sdpa(X: Tensor, C: Tensor, real: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
    Q, K, V = W_q @ X, W_k @ C, W_v @ C
    return torch.nn.functional.scaled_dot_product_attention(Q, K, V, attn_mask=real)


cross_attention_columns.mistake(
    "source and target exchanged",
    "The source asks and the target answers. The decoder asks: its columns X give the queries, "
    "and there is one output for each of them.",
    lambda X, C, real, W_q, W_k, W_v: cross_attention_columns(C, X, real, W_q, W_k, W_v),
)

cross_attention_columns.mistake(
    "keys from the target",
    "Your keys are the target's. Keys and values both come from the source: a weight says how "
    "much of which source token is read.",
    _cross_with_target_keys,
)

cross_attention_columns.mistake(
    "values from the target",
    "You compare with the source and then read the target. What is read are values of the same "
    "tokens that gave the keys.",
    _cross_with_target_values,
)

cross_attention_columns.mistake(
    "softmax over queries",
    "Your weights sum to one over the target's tokens. Each target token has a distribution "
    "over the source: in K^T Q its scores are a column, so normalise along dim 0. Along dim 1 "
    "padding's scores are all minus infinity, and their softmax is NaN.",
    _cross_weighted(lambda S, real: S.masked_fill(~real, -math.inf).softmax(1)),
)

cross_attention_columns.mistake(
    "missing scale",
    "The scores are not scaled: divide them by the square root of Dh, the number of rows of Q.",
    _cross_scaled(lambda dh, d: math.sqrt(dh)),
)

cross_attention_columns.mistake(
    "scale by Dh instead of its root",
    "Your scores are divided by Dh, either at once or by its root twice, for instance in Q and "
    "again in K^T Q. Divide once, by the square root: that is their standard deviation.",
    _cross_scaled(lambda dh, d: 1 / math.sqrt(dh)),
)

cross_attention_columns.mistake(
    "scale by the root of D",
    "You divide by the root of D. A score is a sum over the head's Dh features, and its "
    "standard deviation is the root of Dh.",
    _cross_scaled(lambda dh, d: math.sqrt(dh / d)),
)

cross_attention_columns.mistake(
    "mask forgotten",
    "Padding is read like words. Its scores become minus infinity before the softmax.",
    _cross_weighted(lambda S, real: S.softmax(0)),
)

cross_attention_columns.mistake(
    "mask applied after softmax",
    "You zeroed the weights of padding after the softmax. They had their share of the "
    "denominator, so the others no longer sum to one: mask the scores.",
    _cross_weighted(lambda S, real: S.softmax(0) * real),
)

cross_attention_columns.mistake(
    "scores multiplied by the mask",
    "You set padding's scores to 0. A score of 0 is an ordinary score, with exp(0) = 1: fill in "
    "minus infinity.",
    _cross_weighted(lambda S, real: (S * real).softmax(0)),
)

cross_attention_columns.mistake(
    "mask added to the scores",
    "You add the mask to the scores, which raises those of the words by one and hides nothing. "
    "What is added has to be minus infinity at padding.",
    _cross_weighted(lambda S, real: (S + real).softmax(0)),
)

cross_attention_columns.mistake(
    "-100 for minus infinity",
    "You give padding a score of -100. Where the scores of all words are lower still, padding "
    "is read and nothing else: fill in minus infinity.",
    _cross_weighted(lambda S, real: S.masked_fill(~real, -100.0).softmax(0)),
)

cross_attention_columns.mistake(
    "mask inverted",
    "You read padding and hide the words: True in `real` means that a token may be read.",
    _cross_weighted(lambda S, real: S.masked_fill(real, -math.inf).softmax(0)),
)

cross_attention_columns.mistake(
    "scaled_dot_product_attention without transposing",
    "You hand columns to `scaled_dot_product_attention`, which expects a token a row: it takes "
    "the Dh features for tokens. Transpose Q, K and V, and its answer back.",
    _cross_by_sdpa,
)
