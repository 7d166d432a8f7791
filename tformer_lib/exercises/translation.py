"""The code exercises of the chapter on machine translation, with the mistakes that readers make in them.

Logits, scores and outputs are in the text's layout, a token a column; batches of token numbers have a
sentence a row. Of tokens the numbers 0 to 2 are special: padding, begin, end.
"""

import math
from collections.abc import Callable, Sequence
from itertools import chain

import torch
from torch import Tensor

from tformer_lib.exercises.checker import Exercise, Mistake, register

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


def _shift(
    read: Callable[[Tensor], Tensor] = lambda t: t[:, :-1],
    asked: Callable[[Tensor], Tensor] = lambda t: t[:, 1:],
    counts: Callable[[Tensor, Tensor], Tensor] = lambda read, asked: asked != PAD,
) -> Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]:
    """All but the last token, all but the first, and where the latter is real, with something changed."""

    def shift(target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return read(target), asked(target), counts(read(target), asked(target))

    return shift


register(
    Exercise(
        name="translation.shift",
        reference=_shift(),
        inputs=lambda g: [
            (_padded(g, lengths, begin=True),) for lengths in ([6, 3, 4], [5, 5], [2, 7], [4], [3, 2])
        ],
        mistakes=(
            Mistake(
                "not shifted",
                "Each place is asked for the token that it reads. The loss would fall to zero by copying: "
                "what is asked for stands one place further on.",
                _shift(asked=lambda t: t[:, :-1]),
            ),
            Mistake(
                "shifted the wrong way",
                "Each place is asked for the token before the one it reads. Having read tokens 1 to n, the "
                "decoder is asked for token n + 1.",
                _shift(read=lambda t: t[:, 1:], asked=lambda t: t[:, :-1]),
            ),
            Mistake(
                "last token read, too",
                "You read all tokens, and there is one more of them than of those asked for. What follows "
                "the last is not known, so the last is only asked for.",
                _shift(read=lambda t: t),
            ),
            Mistake(
                "rolled around",
                "After the last token you ask for the begin token: `roll` is round. The last token is not "
                "read, and the first not asked for.",
                _shift(read=lambda t: t, asked=lambda t: t.roll(-1, dims=1)),
            ),
            Mistake(
                "begin token not read",
                "You leave the begin token out of what is read, so that nothing asks for the first word. In "
                "translating, the begin token is all that the decoder has to start from.",
                _shift(read=lambda t: t[:, 1:-1], asked=lambda t: t[:, 2:]),
            ),
            Mistake(
                "end token not asked for",
                "The end token does not count in your loss. It is to be predicted like every other: a "
                "decoder that was never asked for it does not know how to stop.",
                _shift(counts=lambda read, asked: (asked != PAD) & (asked != EOS)),
            ),
            Mistake(
                "padding counted",
                "You ask for padding, too. It is easy to predict after an end token, so the mean would look "
                "better the more of it there is in a batch.",
                _shift(counts=lambda read, asked: torch.ones_like(asked, dtype=torch.bool)),
            ),
            Mistake(
                "counted by what is read",
                "You count the places that read a real token. Where a sentence's end token is read, padding "
                "is asked for: what counts is that the token *asked for* is real.",
                _shift(counts=lambda read, asked: read != PAD),
            ),
            Mistake(
                "padding alone counted",
                "Your third tensor is True at padding. Here True means that a place counts.",
                _shift(counts=lambda read, asked: asked == PAD),
            ),
        ),
    )
)

# Three masks


def _keys(tokens: Tensor) -> Tensor:
    return (tokens != PAD)[:, None, None, :]


def _causal(queries: int, keys: int, diagonal: int = 0) -> Tensor:
    return torch.ones(queries, keys, dtype=torch.bool).tril(diagonal)


def _masks(
    encoder: Callable[[Tensor, Tensor], Tensor] = lambda source, target: _keys(source),
    decoder: Callable[[Tensor, int], Tensor] = lambda target, n: _causal(n, n),
    cross: Callable[[Tensor, Tensor], Tensor] = lambda source, target: _keys(source),
) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]:
    """The source's padding, the decoder's causal mask, the source's padding, with something changed."""

    def masks(source: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return encoder(source, target), decoder(target, target.shape[1]), cross(source, target)

    return masks


register(
    Exercise(
        name="translation.masks",
        reference=_masks(),
        inputs=lambda g: [
            (_padded(g, source), _padded(g, target, begin=True))
            for source, target in (([5, 3], [4, 6]), ([4, 2, 1], [2, 4, 3]), ([3, 6], [2, 3]), ([2], [1]))
        ],
        mistakes=(
            Mistake(
                "masks inverted",
                "Your masks are True where attention is forbidden, which is the convention of "
                "`nn.MultiheadAttention`. Here True means that a query may attend.",
                _masks(
                    lambda source, target: ~_keys(source),
                    lambda target, n: ~_causal(n, n),
                    lambda source, target: ~_keys(source),
                ),
            ),
            Mistake(
                "cross-attention masked by the target's padding",
                "Your third mask comes from the target. Keys of cross-attention are tokens of the source, "
                "and it is their padding that must not be read.",
                _masks(cross=lambda source, target: _keys(target)),
            ),
            Mistake(
                "cross-attention causal",
                "Your cross-attention is causal. The source is there from the start, all of it: its word n "
                "has no reason to stay hidden from the target's word n - 1.",
                _masks(
                    cross=lambda source, target: _keys(source) & _causal(target.shape[1], source.shape[1])
                ),
            ),
            Mistake(
                "encoder causal",
                "Your encoder is causal. It reads a sentence that is complete, so each word may attend to "
                "those after it.",
                _masks(
                    encoder=lambda source, target: _keys(source) & _causal(source.shape[1], source.shape[1])
                ),
            ),
            Mistake(
                "causal mask transposed",
                "Your decoder reads the future. Queries run down and keys across, so that the past lies "
                "below the diagonal (`tril`).",
                _masks(decoder=lambda target, n: _causal(n, n).T),
            ),
            Mistake(
                "causal mask off by one",
                "Your decoder's tokens do not see themselves, and the first sees nothing. Each place reads "
                "the token that stands there: the diagonal belongs to the mask.",
                _masks(decoder=lambda target, n: _causal(n, n, -1)),
            ),
            Mistake(
                "decoder not causal",
                "Your decoder's mask hides padding and nothing else, so that each place sees the word that "
                "it is asked for. It has to be causal.",
                _masks(decoder=lambda target, n: _keys(target)),
            ),
            Mistake(
                "padding in the decoder's mask, too",
                "Your decoder's mask hides the target's padding as well. That does no harm and is not "
                "needed: padding stands at the end, where no real token sees it. Return the causal mask "
                "alone, (N, N).",
                _masks(decoder=lambda target, n: _keys(target) & _causal(n, n)),
            ),
            Mistake(
                "padding forbidden to ask",
                "You forbid padding to ask, instead of forbidding others to read it. A query that may read "
                "nothing gets NaN from its softmax; a mask of padding is one over keys, the last axis.",
                _masks(
                    lambda source, target: _keys(source).mT,
                    cross=lambda source, target: _keys(target).mT,
                ),
            ),
        ),
    )
)

# Smoothed labels


def _smoothed(
    q: Callable[[Tensor, float], Tensor] = lambda true, eps: (1 - eps) * true + eps / true.shape[1],
    dim: int = 1,
    mean: Callable[[Tensor, Tensor], Tensor] = lambda losses, real: losses[real].mean(),
) -> Callable[[Tensor, Tensor, float], Tensor]:
    """-sum_v q(v) log p(v), averaged over the real tokens, with something changed."""

    def smoothed_loss(Z: Tensor, targets: Tensor, eps: float) -> Tensor:
        true = torch.zeros_like(Z).scatter(1, targets[:, None], 1.0)
        losses = -(q(true, eps) * Z.log_softmax(dim)).sum(1)
        return mean(losses, targets != PAD)

    return smoothed_loss


def _smoothed_inputs(g: torch.Generator) -> list[tuple]:
    def draw(vocab: int, lengths: Sequence[int], eps: float) -> tuple:
        targets = _padded(g, lengths).clamp(max=vocab - 1)
        return 2 * torch.randn(len(lengths), vocab, max(lengths), generator=g), targets, eps

    return [draw(5, [4, 2], 0.1), draw(8, [3, 6, 1], 0.2), draw(6, [6, 5], 0.05), draw(4, [3, 1], 0.0)]


register(
    Exercise(
        name="translation.smoothed_loss",
        reference=_smoothed(),
        inputs=_smoothed_inputs,
        mistakes=(
            Mistake(
                "spread over the wrong tokens only",
                "You spread epsilon over the V - 1 wrong tokens. In the text it is spread over the whole "
                "vocabulary, epsilon/V each, so that the true token has a share of it, too.",
                _smoothed(lambda true, eps: (1 - eps) * true + eps / (true.shape[1] - 1) * (1 - true)),
            ),
            Mistake(
                "true token without its share",
                "Your q does not sum to one: each wrong token has epsilon/V and the true one 1 - epsilon. "
                "The true token has its epsilon/V as well.",
                _smoothed(lambda true, eps: (1 - eps) * true + eps / true.shape[1] * (1 - true)),
            ),
            Mistake(
                "epsilon for each token",
                "Each token has the whole epsilon in your q. It is shared out: epsilon/V for each.",
                _smoothed(lambda true, eps: (1 - eps) * true + eps),
            ),
            Mistake(
                "epsilon and the rest exchanged",
                "You give epsilon to the true token and spread the rest. It is epsilon, the small number, "
                "that is spread.",
                _smoothed(lambda true, eps: eps * true + (1 - eps) / true.shape[1]),
            ),
            Mistake(
                "padding counted",
                "You average over all places. Padding is not to be predicted: only places whose target is "
                "not 0 count, in the sum and in the number that divides it.",
                _smoothed(mean=lambda losses, real: losses.mean()),
            ),
            Mistake(
                "divided by all places",
                "You add up over real tokens and divide by all places, so that the loss shrinks with the "
                "padding of a batch. Divide by the number of real tokens.",
                _smoothed(mean=lambda losses, real: (losses * real).mean()),
            ),
            Mistake(
                "mean of the sentences' means",
                "You take the mean in each sentence first, and a word in a short one weighs more than a "
                "word in a long one. Every real token counts alike.",
                _smoothed(mean=lambda losses, real: ((losses * real).sum(1) / real.sum(1)).mean()),
            ),
            Mistake(
                "bits for nats",
                "Your logarithms are to base 2. The loss is in nats.",
                _smoothed(mean=lambda losses, real: losses[real].mean() / math.log(2)),
            ),
            Mistake(
                "softmax over the places",
                "Your probabilities sum to one over the places of a sentence. A token is a column here, and "
                "its distribution over the vocabulary runs down axis 1.",
                _smoothed(dim=2),
            ),
        ),
    )
)

# A step of beam search

Continuation = tuple[int, int, float]


def _beam_step(
    total: Callable[[Tensor, Tensor], Tensor] = lambda log_p, step: log_p + step,
    place: Callable[[int, int, int], tuple[int, int]] = lambda i, vocab, k: (i % k, i // k),
    allowed: Callable[[Tensor], Tensor] = torch.ones_like,
    descending: bool = True,
) -> Callable[[Tensor, Tensor], list[Continuation]]:
    """The k best of vocab x k continuations, with something changed."""

    def beam_step(log_p: Tensor, step: Tensor) -> list[Continuation]:
        scores = total(log_p, step)
        scores = scores.masked_fill(allowed(scores) == 0, -math.inf if descending else math.inf)
        best = scores.flatten().argsort(descending=descending, stable=True)[: len(log_p)]
        return [(*place(i, *step.shape), scores.flatten()[i].item()) for i in best.tolist()]

    return beam_step


def _beam_inputs(g: torch.Generator) -> list[tuple]:
    def draw(vocab: int, k: int) -> tuple:
        log_p = -torch.rand(k, generator=g).mul(2).cumsum(0) - 1
        return log_p, (1.5 * torch.randn(vocab, k, generator=g)).log_softmax(0)

    _, step = draw(7, 3)
    beginning = torch.tensor([0.0, -60.0, -70.0])  # like the first step, where only one may go on
    by_pencil = torch.tensor([[0.4, 0.9], [0.35, 0.05], [0.25, 0.05]]).log()
    return [
        (torch.tensor([0.6, 0.4]).log(), by_pencil),
        (beginning, step),
        *(draw(vocab, k) for vocab, k in ((7, 3), (5, 5), (12, 4), (9, 1), (6, 2))),
    ]


register(
    Exercise(
        name="translation.beam_step",
        reference=_beam_step(),
        inputs=_beam_inputs,
        mistakes=(
            Mistake(
                "best token of each beginning only",
                "You continue each beginning by its best token. That is k greedy searches beside each other: "
                "all continuations compete, so that a good beginning may leave several and a bad one none.",
                _beam_step(allowed=lambda scores: (scores == scores.amax(0)).int()),
            ),
            Mistake(
                "likeliest beginning only",
                "All your continuations are of the likeliest beginning. The others take part as well: what "
                "is less likely now may be more likely a token later.",
                _beam_step(allowed=lambda scores: (torch.arange(scores.shape[1]) == 0).expand(scores.shape)),
            ),
            Mistake(
                "log p of the beginning forgotten",
                "You rank by the new token alone. The log p of what it continues has to be added: likely "
                "words after an unlikely beginning are still unlikely.",
                _beam_step(lambda log_p, step: step),
            ),
            Mistake(
                "probabilities added",
                "You add probabilities of beginning and token. They are multiplied, which for their "
                "logarithms is a sum.",
                _beam_step(lambda log_p, step: (log_p.exp() + step.exp()).log()),
            ),
            Mistake(
                "probabilities returned",
                "The order is right, and you return probabilities. Keep their logarithms: over a long "
                "sentence the product becomes too small for a float.",
                _beam_step(lambda log_p, step: (log_p + step).exp()),
            ),
            Mistake(
                "number taken apart as in code",
                "You find the right entries and take their numbers apart the wrong way round. A row of this "
                "matrix has k entries, one for each beginning: entry i is token i // k after beginning "
                "i % k.",
                _beam_step(place=lambda i, vocab, k: (i // vocab, i % vocab)),
            ),
            Mistake(
                "added down instead of across",
                "You add the beginnings' log p along the tokens. A beginning is a column here, so its log p "
                "goes to all entries of its column, which is what `log_p + step` does.",
                _beam_step(lambda log_p, step: log_p[:, None] + step),
            ),
            Mistake(
                "token first",
                "Beginning and token are exchanged in what you return.",
                _beam_step(place=lambda i, vocab, k: (i // k, i % k)),
            ),
            Mistake(
                "worst first",
                "You return the least likely. The greatest log p come first.",
                _beam_step(descending=False),
            ),
        ),
    )
)

# Ranking what has ended

Found = list[tuple[list[int], float]]


def _ranking(
    score: Callable[[float, int, float], float] = lambda log_p, length, alpha: log_p / length**alpha,
    length: Callable[[list[int]], int] = len,
    best_first: bool = True,
) -> Callable[[Found, float], list[tuple[int, float]]]:
    """(place, log p / length^alpha), best first, with something changed."""

    def length_score(found: Found, alpha: float) -> list[tuple[int, float]]:
        scores = [(i, score(log_p, length(tokens), alpha)) for i, (tokens, log_p) in enumerate(found)]
        return sorted(scores, key=lambda scored: scored[1], reverse=best_first)

    return length_score


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
    return [
        *((pencil, alpha) for alpha in (0.0, 0.5, 1.0)),
        ([([EOS], -1.7), *draw(4, 7)], 1.0),
        (draw(5, 2, 6), 0.6),
        (draw(3, 9, 6, 4), 1.5),
    ]


register(
    Exercise(
        name="translation.length_score",
        reference=_ranking(),
        inputs=_ranking_inputs,
        mistakes=(
            Mistake(
                "multiplied",
                "You multiply by the length. Log p is negative and falls with every token; divided by the "
                "length it becomes comparable, multiplied it falls twice.",
                _ranking(lambda log_p, length, alpha: log_p * length**alpha),
            ),
            Mistake(
                "alpha on log p",
                "Your exponent stands at log p. It belongs to the length, so that 0 leaves log p as it is.",
                _ranking(lambda log_p, length, alpha: -((-log_p) ** alpha) / length),
            ),
            Mistake(
                "alpha on the quotient",
                "You raise the whole quotient to alpha. Only the length is.",
                _ranking(lambda log_p, length, alpha: -((-log_p / length) ** alpha)),
            ),
            Mistake(
                "alpha ignored",
                "You divide by the length whatever alpha is. With alpha = 0 the score is log p itself.",
                _ranking(lambda log_p, length, alpha: log_p / length),
            ),
            Mistake(
                "length without the end token",
                "Your length leaves out the end token. Its probability is a factor of p like the others, so "
                "it counts; without it the empty translation would have length 0.",
                _ranking(length=lambda tokens: len(tokens) - 1),
            ),
            Mistake(
                "length with a begin token",
                "Your length is greater by one. The begin token was given, has no probability in p, and is "
                "not counted.",
                _ranking(length=lambda tokens: len(tokens) + 1),
            ),
            Mistake(
                "the penalty of Wu et al.",
                "You divide by ((5 + length) / 6)^alpha, as Wu et al. (2016) do. Here it is length^alpha.",
                _ranking(lambda log_p, length, alpha: log_p / ((5 + length) / 6) ** alpha),
            ),
            Mistake(
                "probability instead of its logarithm",
                "You divide probabilities. They fall by factors, which no power of the length makes up for: "
                "divide log p.",
                _ranking(lambda log_p, length, alpha: math.exp(log_p) / length**alpha),
            ),
            Mistake(
                "worst first",
                "Your scores are right, and the worst comes first. Scores are negative; the greatest, "
                "nearest to zero, is the best.",
                _ranking(best_first=False),
            ),
        ),
    )
)

# BLEU

Words = list[str]


def _n_grams(words: Words, n: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def _clipped(found: list, true: list) -> int:
    return sum(min(found.count(gram), true.count(gram)) for gram in set(found))


def _geometric(precisions: list[float]) -> float:
    return math.prod(precisions) ** (1 / len(precisions))


def _bleu(
    matches: Callable[[list, list], int] = _clipped,
    possible: Callable[[list, list], int] = lambda found, true: len(found),
    mean: Callable[[list[float]], float] = _geometric,
    penalty: Callable[[int, int], float] = lambda c, r: min(1.0, math.exp(1 - r / c)),
) -> Callable[[list[Words], list[Words]], float]:
    """100 min(1, e^(1 - r/c)) times the mean of the four precisions, with something changed."""

    def bleu(translations: list[Words], references: list[Words]) -> float:
        precisions = []
        for n in (1, 2, 3, 4):
            pairs = [(_n_grams(t, n), _n_grams(r, n)) for t, r in zip(translations, references, strict=True)]
            total = sum(possible(*pair) for pair in pairs)
            precisions.append(sum(matches(*pair) for pair in pairs) / total if total else 0.0)
        c, r = (sum(map(len, texts)) for texts in (translations, references))
        return 100 * penalty(c, r) * mean(precisions)

    return bleu


def _by_sentence(translations: list[Words], references: list[Words]) -> float:
    scores = [_bleu()([t], [r]) for t, r in zip(translations, references, strict=True)]
    return sum(scores) / len(scores)


def _one_text(translations: list[Words], references: list[Words]) -> float:
    return _bleu()([[*chain(*translations)]], [[*chain(*references)]])


def _bleu_inputs(g: torch.Generator) -> list[tuple]:
    def corpus(lengths: Sequence[int], change: float, drop: float) -> tuple[list[Words], list[Words]]:
        references = [["abcdef"[i] for i in torch.randint(6, (n,), generator=g)] for n in lengths]
        translations = []
        for words in references:
            u, other = torch.rand(2, len(words), generator=g), torch.randint(6, (len(words),), generator=g)
            kept = [
                "abcdef"[other[i]] if u[0, i] < change else w
                for i, w in enumerate(words)
                if u[1, i] >= drop or i == 0
            ]
            translations.append(kept)
        return translations, references

    short = corpus([12, 9, 14, 2], 0.1, 0.15)
    return [
        ([["the"] * 5, ["a", "b", "c", "d", "e"]], [["the", "a", "b"], ["a", "b", "c", "d", "e"]]),
        short,
        short[::-1],  # translations that are too long
        corpus([10, 20, 7], 0.2, 0.0),
        corpus([8, 8], 0.0, 0.0),
        ([["a", "b", "c"]], [["a", "b", "c"]]),
    ]


register(
    Exercise(
        name="translation.bleu",
        reference=_bleu(),
        inputs=_bleu_inputs,
        mistakes=(
            Mistake(
                "not clipped",
                'You count every n-gram that occurs in the reference, so that "the the the" is right three '
                "times. Each counts at most as often as the reference has it.",
                _bleu(lambda found, true: sum(gram in true for gram in found)),
            ),
            Mistake(
                "each n-gram once",
                "You compare sets, in which a repeated n-gram counts once. It counts as often as it is in "
                "both.",
                _bleu(lambda found, true: len(set(found) & set(true)), lambda found, true: len(set(found))),
            ),
            Mistake(
                "mean of the sentences' scores",
                "You average the sentences' BLEU. A sentence without a common 4-gram counts 0 then: matches "
                "and totals are summed over the corpus before they are divided.",
                _by_sentence,
            ),
            Mistake(
                "corpus as one text",
                "You join the sentences and count once. Now n-grams run over the borders of sentences, and "
                "a word may match one in another sentence's reference.",
                _one_text,
            ),
            Mistake(
                "recall instead of precision",
                "You divide by the n-grams of the references. Precision is a share of the translation's "
                "n-grams; what it leaves out is punished by the brevity penalty.",
                _bleu(possible=lambda found, true: len(true)),
            ),
            Mistake(
                "arithmetic mean",
                "You average the four precisions. Their geometric mean is wanted, which is 0 if one of them "
                "is.",
                _bleu(mean=lambda precisions: sum(precisions) / len(precisions)),
            ),
            Mistake(
                "no brevity penalty",
                "Your translations may be as short as they like: one sure word would have precision 1. "
                "Multiply by exp(1 - r/c) where they are shorter than the references.",
                _bleu(penalty=lambda c, r: 1.0),
            ),
            Mistake(
                "lengths exchanged in the penalty",
                "Your penalty punishes long translations. It is for those that are shorter than the "
                "references: c is the translations' length, r the references', and the exponent 1 - r/c.",
                _bleu(penalty=lambda c, r: min(1.0, math.exp(1 - c / r))),
            ),
            Mistake(
                "penalty greater than one",
                "Your factor rewards long translations: it is greater than 1 for them. It is never more "
                "than 1; what is too long is punished by the precisions already.",
                _bleu(penalty=lambda c, r: math.exp(1 - r / c)),
            ),
        ),
    )
)

# Reading the source


def _cross(
    queries: Callable[[Tensor, Tensor], Tensor] = lambda X, C: X,
    keys: Callable[[Tensor, Tensor], Tensor] = lambda X, C: C,
    values: Callable[[Tensor, Tensor], Tensor] = lambda X, C: C,
    scale: Callable[[Tensor, Tensor], float] = lambda Q, X: math.sqrt(len(Q)),
    weights: Callable[[Tensor, Tensor], Tensor] = lambda S, real: S.masked_fill(
        ~real[:, None], -math.inf
    ).softmax(0),
) -> Callable[..., Tensor]:
    """V softmax(K^T Q / sqrt(Dh)) in columns, K and V of the source, with something changed."""

    def cross_attention(X: Tensor, C: Tensor, real: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
        Q, K, V = W_q @ queries(X, C), W_k @ keys(X, C), W_v @ values(X, C)
        return V @ weights(K.T @ Q / scale(Q, X), real)

    return cross_attention


def _cross_inputs(g: torch.Generator) -> list[tuple]:
    def draw(n: int, s: int, d: int, dh: int, padding: int) -> tuple:
        X, C = torch.randn(d, n, generator=g), torch.randn(d, s, generator=g)
        W = (torch.randn(dh, d, generator=g) for _ in range(3))
        return X, C, torch.arange(s) < s - padding, *W

    return [draw(4, 6, 4, 3, 2), draw(5, 5, 3, 2, 1), draw(3, 4, 5, 5, 0), draw(1, 3, 4, 2, 2)]


register(
    Exercise(
        name="translation.cross_attention_columns",
        reference=_cross(),
        inputs=_cross_inputs,
        mistakes=(
            Mistake(
                "source and target exchanged",
                "The source asks and the target answers. The decoder asks: its columns X give the queries, "
                "and there is one output for each of them.",
                _cross(lambda X, C: C, lambda X, C: X, lambda X, C: X),
            ),
            Mistake(
                "keys from the target",
                "Your keys are the target's. Keys and values both come from the source: a weight says how "
                "much of which source token is read.",
                _cross(keys=lambda X, C: X),
            ),
            Mistake(
                "values from the target",
                "You compare with the source and then read the target. What is read are values of the same "
                "tokens that gave the keys.",
                _cross(values=lambda X, C: X),
            ),
            Mistake(
                "softmax over queries",
                "Your weights sum to one over the target's tokens. Each target token has a distribution "
                "over the source: in K^T Q its scores are a column, so normalise along dim 0. Along dim 1 "
                "padding's scores are all minus infinity, and their softmax is NaN.",
                _cross(weights=lambda S, real: S.masked_fill(~real[:, None], -math.inf).softmax(1)),
            ),
            Mistake(
                "missing scale",
                "The scores are not scaled: divide them by the square root of Dh, the number of rows of Q.",
                _cross(scale=lambda Q, X: 1.0),
            ),
            Mistake(
                "scale by the root of D",
                "You divide by the root of D. A score is a sum over the head's Dh features, and its "
                "standard deviation is the root of Dh.",
                _cross(scale=lambda Q, X: math.sqrt(len(X))),
            ),
            Mistake(
                "mask forgotten",
                "Padding is read like words. Its scores become minus infinity before the softmax.",
                _cross(weights=lambda S, real: S.softmax(0)),
            ),
            Mistake(
                "mask applied after softmax",
                "You zeroed the weights of padding after the softmax. They had their share of the "
                "denominator, so the others no longer sum to one: mask the scores.",
                _cross(weights=lambda S, real: S.softmax(0) * real[:, None]),
            ),
            Mistake(
                "mask inverted",
                "You read padding and hide the words: True in `real` means that a token may be read.",
                _cross(weights=lambda S, real: S.masked_fill(real[:, None], -math.inf).softmax(0)),
            ),
        ),
    )
)
