"""The code exercises of the chapter on machine translation, with the mistakes that readers make in them.

Logits, scores and outputs are in the text's layout, a token a column; batches of token numbers have a
sentence a row. Of tokens the numbers 0 to 2 are special: padding, begin, end.
"""

import math
from collections.abc import Sequence

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


shift.add_mistakes("""
not shifted | target[:, 1:] => target[:, :-1]
    Each place is asked for the token that it reads, so the loss would fall to zero by copying. What is
    asked for stands one place further on.
shifted the wrong way | target[:, :-1], target[:, 1:] => target[:, 1:], target[:, :-1]
    Each place is asked for the token before the one it reads. Having read tokens 1 to n, the decoder is
    asked for token n + 1.
end token not asked for | asked != PAD => (asked != PAD) & (asked != EOS)
    The end token does not count in your loss. It is to be predicted like every other: a decoder that was
    never asked for it does not know how to stop.
padding counted | asked != PAD => torch.ones_like(asked, dtype=torch.bool)
    You ask for padding, too. It is easy to predict after an end token, so the mean would look better the
    more of it there is in a batch.
counted by what is read | asked != PAD => read != PAD
    You count the places that read a real token. Where a sentence's end token is read, padding is asked
    for: what counts is that the token *asked for* is real.
""")


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


masks.add_mistakes("""
masks inverted | return words, causal, words => return ~words, ~causal, ~words
    Your masks are True where attention is forbidden, which is the convention of `nn.MultiheadAttention`.
    Here True means that a query may attend.
cross-attention masked by the target's padding | causal, words => causal, (target != PAD)[:, None, None, :]
    Your third mask comes from the target. Keys of cross-attention are tokens of the source, and it is
    their padding that must not be read.
cross-attention causal
    | causal, words => causal, words & torch.ones(n, source.shape[1], dtype=torch.bool).tril()
    Your cross-attention is causal. The source is there from the start, all of it: its word n has no
    reason to stay hidden from the target's word n - 1.
causal mask transposed | tril => triu
    Your decoder reads the future. Queries run down and keys across, so the past lies below the diagonal
    (`tril`).
padding in the decoder's mask, too | words, causal, => words, (target != PAD)[:, None, None, :] & causal,
    Your decoder's mask hides the target's padding as well. That does no harm and is not needed: padding
    stands at the end, where no real token sees it. Return the causal mask alone, (N, N).
""")


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


smoothed_loss.add_mistakes("""
spread over the wrong tokens only | surprise.mean(dim=1) => (surprise.sum(dim=1) - true) / (Z.shape[1] - 1)
    You spread epsilon over the V - 1 wrong tokens. In the text it is spread over the whole vocabulary,
    epsilon/V each, so the true token has a share of it, too.
padding counted | losses[targets != PAD].mean() => losses.mean()
    You average over all places. Padding is not to be predicted: only places whose target is not 0 count,
    in the sum and in the number that divides it.
mean of the sentences' means
    | losses[targets != PAD].mean() => ((losses * (targets != PAD)).sum(1) / (targets != PAD).sum(1)).mean()
    You take the mean in each sentence first, and a word in a short one weighs more than a word in a long
    one. Every real token counts alike.
bits for nats | .log_softmax(dim=1) => .log_softmax(dim=1) / math.log(2)
    Your logarithms are to base 2. The loss is in nats.
logarithm of a softmax | log_softmax(dim=1) => softmax(dim=1).log()
    Right for moderate logits. Where a probability is too small for a float, its logarithm is minus
    infinity: `log_softmax` computes the logarithm without the probability.
""")


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


beam_step.add_mistakes("""
best token of each beginning only
    | (log_p + step) => (log_p + step).masked_fill(step < step.amax(0), -math.inf)
    You continue each beginning by its best token. That is k greedy searches beside each other: all
    continuations compete, so a good beginning may leave several and a bad one none.
log p of the beginning forgotten | log_p + step => step
    You rank by the new token alone. The log p of what it continues has to be added: likely words after an
    unlikely beginning are still unlikely.
probabilities added | (log_p + step) => (log_p.exp() + step.exp()).log()
    You add probabilities of beginning and token. They are multiplied, which for their logarithms is a
    sum.
number taken apart as in code | i % k, i // k => i // len(step), i % len(step)
    You find the right entries and take their numbers apart the wrong way round. A row of this matrix has
    k entries, one for each beginning: entry i is token i // k after beginning i % k.
added down instead of across | log_p + step => log_p[:, None] + step
    You add the beginnings' log p along the tokens. A beginning is a column here, so its log p goes to all
    entries of its column, which is what `log_p + step` does.
""")


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


length_score.add_mistakes("""
multiplied | / len(tokens) => * len(tokens)
    You multiply by the length. Log p is negative and falls with every token; divided by the length it
    becomes comparable, multiplied it falls twice.
alpha on log p | log_p / len(tokens) ** alpha => -((-log_p) ** alpha) / len(tokens)
    Your exponent stands at log p. It belongs to the length, so that 0 leaves log p as it is.
length without the end token | len(tokens) => (len(tokens) - 1)
    Your length leaves out the end token. Its probability is a factor of p like the others, so it counts;
    without it the empty translation would have length 0.
worst first | , reverse=True =>
    Your scores are right, and the worst comes first. Scores are negative; the greatest, nearest to zero,
    is the best.
""")


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


bleu.add_mistakes("""
not clipped | min(found.count(gram), true.count(gram)) => found.count(gram) * (gram in true)
    You count every n-gram that occurs in the reference, so that "the the the" is right three times. Each
    counts at most as often as the reference has it.
mean of the sentences' scores
    | => lambda found, true: sum(bleu([f], [t]) if f else 0.0 for f, t in zip(found, true)) / len(found)
    You average the sentences' BLEU. A sentence without a common 4-gram counts 0 then: matches and totals
    are summed over the corpus before they are divided.
arithmetic mean
    | score = 100.0 => score = 0.0
    | score *= (matches / total) ** (1 / 4) if => score += 25 * matches / total if
    You average the four precisions. Their geometric mean is wanted, which is 0 if one of them is.
no brevity penalty | * min(1.0, math.exp(1 - r / c)) =>
    Your translations may be as short as they like: one sure word would have precision 1. Multiply by
    exp(1 - r/c) where they are shorter than the references.
lengths exchanged in the penalty | r / c => c / r
    Your penalty punishes long translations. It is for those that are shorter than the references: c is
    the translations' length, r the references', and the exponent 1 - r/c.
""")


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


cross_attention_columns.add_mistakes("""
keys from the target | W_k @ C => W_k @ X
    Your keys are the target's. Keys and values both come from the source: a weight says how much of which
    source token is read.
softmax over queries | dim=0 => dim=1
    Your weights sum to one over the target's tokens. Each target token has a distribution over the
    source: in K^T Q its scores are a column, so normalise along dim 0. Along dim 1 padding's scores are
    all minus infinity, and their softmax is NaN.
missing scale | / math.sqrt(len(Q)) =>
    The scores are not scaled: divide them by the square root of Dh, the number of rows of Q.
mask forgotten | .masked_fill(~real[:, None], -math.inf) =>
    Padding is read like words. Its scores become minus infinity before the softmax.
mask applied after softmax
    | scores.masked_fill(~real[:, None], -math.inf).softmax(dim=0) => scores.softmax(dim=0) * real[:, None]
    You zeroed the weights of padding after the softmax. They had their share of the denominator, so the
    others no longer sum to one: mask the scores.
""")
