"""The code exercises of the chapter on BERT, with the mistakes that readers make in them.

Embeddings, outputs and logits are in the text's layout, a token a column, except in `bert.mean_pooling`. Of
tokens the numbers 0 to 4 are special: [PAD], [UNK], [CLS], [SEP], [MASK].
"""

from collections.abc import Callable

import torch
from torch import Tensor

from tformer_lib.exercises.checker import Exercise, Mistake, register

IGNORED = -100
CLS, SEP, MASK = 2, 3, 4
Ids = list[int]

# A pair of sentences in one row


def _pack(
    cut: Callable[[Ids, Ids, int], tuple[Ids, Ids]] | None = None,
    marks: int = 3,
    middle: tuple[int, ...] = (SEP,),
    middle_segment: int = 0,
    last: bool = True,
    segments_from: int = 0,
) -> Callable[[Ids, Ids, int], tuple[Ids, Ids]]:
    """[CLS] A [SEP] B [SEP] with its segments, with something changed."""

    def pack(a: Ids, b: Ids, length: int) -> tuple[Ids, Ids]:
        a, b = (cut or _cut_the_longer)(a, b, length - marks)
        end = [SEP] if last else []
        tokens = [CLS, *a, *middle, *b, *end]
        segments = [0] * (1 + len(a)) + [middle_segment] * len(middle) + [1] * (len(b) + len(end))
        return tokens, [segments_from + s for s in segments]

    return pack


def _cut_the_longer(a: Ids, b: Ids, room: int, front: bool = True, back: bool = True) -> tuple[Ids, Ids]:
    a, b = list(a), list(b)
    while len(a) + len(b) > room:
        if len(a) > len(b):
            a.pop(0 if front else -1)
        else:
            b.pop(-1 if back else 0)
    return a, b


register(
    Exercise(
        name="bert.pack_pair",
        reference=_pack(),
        inputs=lambda g: [
            ([11, 12, 13], [21, 22], 8),
            ([11, 12, 13], [21, 22], 12),
            ([11, 12, 13, 14, 15, 16], [21, 22, 23], 9),
            ([11, 12], [21, 22, 23, 24, 25], 8),
            ([11, 12, 13, 14, 15], [21, 22, 23, 24, 25], 10),
        ],
        mistakes=(
            Mistake(
                "first [SEP] in the second segment",
                "The tokens are right, but your first [SEP] is in segment 1. It closes the first sentence "
                "and belongs to it.",
                _pack(middle_segment=1),
            ),
            Mistake(
                "last [SEP] missing",
                "The second sentence is not closed: a [SEP] stands after each of the two, and is counted in "
                "the length.",
                _pack(last=False),
            ),
            Mistake(
                "last [SEP] missing and its place used",
                "There is one [SEP] only, between the sentences. Another one closes the second.",
                _pack(last=False, marks=2),
            ),
            Mistake(
                "nothing between the sentences",
                "Where the first sentence ends cannot be seen from the tokens: a [SEP] stands there.",
                _pack(middle=(), marks=2),
            ),
            Mistake(
                "a second [CLS]",
                "Your second sentence begins with a [CLS] of its own. There is one [CLS] a row, at its "
                "front: the answer for the whole row is read there.",
                _pack(middle=(SEP, CLS), marks=4),
            ),
            Mistake(
                "the first sentence cut at its end",
                "You cut the end off the first sentence. Cut its front: what stands next to the second "
                "sentence tells most about whether it follows.",
                _pack(lambda a, b, room: _cut_the_longer(a, b, room, front=False)),
            ),
            Mistake(
                "the second sentence cut at its front",
                "You cut the front off the second sentence. Cut its end: its first words are those that have "
                "to follow the first sentence.",
                _pack(lambda a, b, room: _cut_the_longer(a, b, room, back=False)),
            ),
            Mistake(
                "only the second sentence cut",
                "You always cut the second sentence. The longer of the two loses a token, until both fit.",
                _pack(lambda a, b, room: (list(a), b[: room - len(a)])),
            ),
            Mistake(
                "marks not counted",
                "Your rows are longer than `length`: [CLS] and the two [SEP] need three of the places.",
                _pack(marks=0),
            ),
            Mistake(
                "segments from one",
                "Your segments are 1 and 2. They are rows of a table, counted from 0.",
                _pack(segments_from=1),
            ),
        ),
    )
)

# Holes


def _hide(
    specials: bool = False,
    share: Callable[[Tensor], Tensor] = lambda u: u < 0.15,
    masked: Callable[[Tensor], Tensor] = lambda v: v < 0.8,
    random: Callable[[Tensor], Tensor] = lambda v: (v >= 0.8) & (v < 0.9),
    asked: Callable[[Tensor, Tensor, Tensor], Tensor] = lambda chosen, masked, random: chosen,
    target: Callable[[Tensor, Tensor], Tensor] = lambda tokens, inputs: tokens,
    ignored: int = IGNORED,
) -> Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
    """The 80/10/10 rule, with something changed."""

    def hide(tokens: Tensor, u: Tensor, v: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        chosen = share(u) if specials else share(u) & (tokens > MASK)
        hidden, replaced = chosen & masked(v), chosen & random(v)
        inputs = torch.where(hidden, MASK, tokens)
        inputs = torch.where(replaced, words, inputs)
        places = asked(chosen, hidden, replaced)
        return inputs, torch.where(places, target(tokens, inputs), ignored)

    return hide


def _hide_inputs(g: torch.Generator) -> list[tuple]:
    def draw(batch: int, n: int) -> tuple:
        tokens = torch.randint(5, 40, (batch, n), generator=g)
        tokens[:, 0], tokens[:, -1], tokens[0, -2] = CLS, SEP, 1
        u, v = torch.rand(2, batch, n, generator=g)
        words = torch.randint(5, 40, (batch, n), generator=g)
        return tokens, u, v, words

    tokens = torch.tensor([[CLS, 9, 8, 7, 6, SEP]])
    u = torch.tensor([[0.01, 0.02, 0.03, 0.04, 0.9, 0.05]])
    v = torch.tensor([[0.1, 0.3, 0.85, 0.95, 0.1, 0.85]])
    return [(tokens, u, v, torch.full_like(tokens, 30)), draw(3, 40), draw(2, 60)]


register(
    Exercise(
        name="bert.mask_tokens",
        reference=_hide(),
        inputs=_hide_inputs,
        mistakes=(
            Mistake(
                "special tokens hidden",
                "You also hide special tokens. To guess [CLS] and [SEP] teaches nothing, since where they "
                "stand is always known.",
                _hide(specials=True),
            ),
            Mistake(
                "kept tokens not asked",
                "The model is not asked for the chosen tokens that stay. It is asked for all that were "
                "chosen: that is why it has to keep an opinion of words that it can see.",
                _hide(asked=lambda chosen, masked, random: masked | random),
            ),
            Mistake(
                "only masks asked",
                "The model is asked at [MASK] alone. All chosen tokens are targets, also those that were "
                "replaced by a random word or stay.",
                _hide(asked=lambda chosen, masked, random: masked),
            ),
            Mistake(
                "targets everywhere",
                "You ask for every token. Most of them stand there to be read, so that the loss would be "
                "that of copying; targets are -100 except where a token was chosen.",
                _hide(asked=lambda chosen, masked, random: torch.ones_like(chosen)),
            ),
            Mistake(
                "targets taken after hiding",
                "Your targets are what the model reads. It is asked for what stood there before.",
                _hide(target=lambda tokens, inputs: inputs),
            ),
            Mistake(
                "all that is chosen hidden",
                "Every chosen token becomes [MASK]. Of ten, one becomes a random word and one stays, because "
                "no [MASK] occurs in the text that the model is for.",
                _hide(masked=lambda v: v >= 0, random=lambda v: v < 0),
            ),
            Mistake(
                "random words put over masks",
                "Your second rule, v < 0.1, takes a share of what is [MASK] already: 70% are hidden, 10% "
                "replaced, 20% stay. The intervals follow each other: up to 0.8, then up to 0.9.",
                _hide(random=lambda v: v < 0.1),
            ),
            Mistake(
                "nothing stays",
                "You replace all that is not hidden: 80% and 20%. Half of that rest stays as it is.",
                _hide(random=lambda v: v >= 0.8),
            ),
            Mistake(
                "last two intervals exchanged",
                "You keep up to 0.9 and replace from there on. The shares are right; but the draws are "
                "given, and [0.8, 0.9) stands for a random word.",
                _hide(random=lambda v: v >= 0.9),
            ),
            Mistake(
                "shares of all tokens",
                "You read 80% and 10% as shares of all tokens, and compare v with 0.15 times them. They are "
                "shares of the chosen.",
                _hide(masked=lambda v: v < 0.12, random=lambda v: (v >= 0.12) & (v < 0.135)),
            ),
            Mistake(
                "the others chosen",
                "You choose where u is above 0.15: 85% of the tokens. With so little left nothing can be "
                "guessed.",
                _hide(share=lambda u: u >= 0.15),
            ),
            Mistake(
                "not asked marked by zero",
                "Where nothing is asked your target is 0. That is a token, [PAD]; the mark is -100.",
                _hide(ignored=0),
            ),
        ),
    )
)

# The input


def _norm(x: Tensor, gain: Tensor, shift: Tensor, dim: int = 0) -> Tensor:
    x = x - x.mean(dim=dim, keepdim=True)
    return gain[:, None] * x / (x.square().mean(dim=dim, keepdim=True) + 1e-12).sqrt() + shift[:, None]


def _embed(
    join: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor] = lambda e, p, s, gain, shift: _norm(
        e + p + s, gain, shift
    ),
    positions: Callable[[Tensor, Tensor], Tensor] = lambda P, tokens: P[:, : len(tokens)],
) -> Callable[..., Tensor]:
    """norm(E[tokens] + P + S[segments]) in columns, with something changed."""

    def embed(
        tokens: Tensor, segments: Tensor, E: Tensor, P: Tensor, S: Tensor, gain: Tensor, shift: Tensor
    ) -> Tensor:
        return join(E[:, tokens], positions(P, tokens), S[:, segments], gain, shift)

    return embed


def _embed_inputs(g: torch.Generator) -> list[tuple]:
    def draw(n: int, d: int, vocab: int) -> tuple:
        tables = (torch.randn(d, size, generator=g) for size in (vocab, vocab, 2))
        segments = (torch.arange(n) > n // 2).long()
        gain, shift = 1 + torch.rand(d, generator=g), torch.randn(d, generator=g)
        return (torch.randint(vocab, (n,), generator=g), segments, *tables, gain, shift)

    return [draw(5, 4, 9), draw(3, 6, 7), draw(1, 4, 5)]


register(
    Exercise(
        name="bert.input_embedding",
        reference=_embed(),
        inputs=_embed_inputs,
        tolerance=1e-4,
        mistakes=(
            Mistake(
                "norm before the sum",
                "You normalise the tokens' embeddings alone and add the rest afterwards. The norm comes "
                "last, over the sum of all three.",
                _embed(lambda e, p, s, gain, shift: _norm(e, gain, shift) + p + s),
            ),
            Mistake(
                "segments after the norm",
                "Your segments are added to the normalised sum of the other two. All are under the norm.",
                _embed(lambda e, p, s, gain, shift: _norm(e + p, gain, shift) + s),
            ),
            Mistake(
                "segments forgotten",
                "Nothing tells the two sentences apart: the column of S for each token's segment is missing.",
                _embed(lambda e, p, s, gain, shift: _norm(e + p, gain, shift)),
            ),
            Mistake(
                "positions forgotten",
                "Your columns do not depend on where a token stands: add P.",
                _embed(lambda e, p, s, gain, shift: _norm(e + s, gain, shift)),
            ),
            Mistake(
                "positions by token",
                "You look positions up by the number of the token. The n-th token gets the n-th column of P.",
                _embed(positions=lambda P, tokens: P[:, tokens]),
            ),
            Mistake(
                "norm across the tokens",
                "Mean and variance are taken over the tokens of a feature. They are those of each column, "
                "over its features.",
                _embed(lambda e, p, s, gain, shift: _norm(e + p + s, gain, shift, dim=1)),
            ),
            Mistake(
                "norm forgotten",
                "The sum is right, and is not normalised: LayerNorm with its gain and shift comes after it.",
                _embed(lambda e, p, s, gain, shift: e + p + s),
            ),
            Mistake(
                "embeddings scaled by the root of D",
                "You multiply the tokens' embeddings by the root of D, as Vaswani et al. (2017) do. BERT "
                "does not; it has a norm here.",
                _embed(lambda e, p, s, gain, shift: _norm(len(e) ** 0.5 * e + p + s, gain, shift)),
            ),
        ),
    )
)

# The loss at the holes


def _at_targets(log_p: Tensor, targets: Tensor) -> Tensor:
    """-log p of each target, (B, N); 0 where nothing is asked."""
    picked = log_p.gather(1, targets.clamp(min=0)[:, None])[:, 0]
    return -picked * (targets != IGNORED)


def _rows_first(Z: Tensor, targets: Tensor) -> Tensor:
    asked = (targets != IGNORED).sum(1)
    rows = _at_targets(Z.log_softmax(1), targets).sum(1) / asked.clamp(min=1)
    return rows[asked > 0].mean()


def _zero_ignored(Z: Tensor, targets: Tensor) -> Tensor:
    targets = targets.masked_fill(targets == 0, IGNORED)
    return _mean_at_holes(_at_targets(Z.log_softmax(1), targets), targets)


def _all_asked(Z: Tensor, targets: Tensor) -> Tensor:
    picked = Z.log_softmax(1).gather(1, targets.clamp(min=0)[:, None])
    return -picked.mean()


def _mean_at_holes(surprises: Tensor, targets: Tensor) -> Tensor:
    return surprises.sum() / (targets != IGNORED).sum()


def _loss_inputs(g: torch.Generator) -> list[tuple]:
    def draw(batch: int, vocab: int, n: int, holes: list[tuple[int, int]]) -> tuple:
        targets = torch.full((batch, n), IGNORED)
        for row, place in holes:
            targets[row, place] = int(torch.randint(vocab, (), generator=g))
        targets[holes[0]] = 0
        return 2 * torch.randn(batch, vocab, n, generator=g), targets

    return [
        draw(1, 5, 4, [(0, 1), (0, 3)]),
        draw(3, 6, 7, [(0, 2), (1, 0), (1, 4), (1, 5), (2, 6)]),
        draw(2, 4, 4, [(1, 0), (1, 1), (1, 3)]),
    ]


register(
    Exercise(
        name="bert.masked_loss",
        reference=lambda Z, targets: _mean_at_holes(_at_targets(Z.log_softmax(1), targets), targets),
        inputs=_loss_inputs,
        mistakes=(
            Mistake(
                "divided by all places",
                "You add up over the holes and divide by all places, so that the loss shrinks with the share "
                "that was hidden. Divide by the number of holes.",
                lambda Z, targets: _at_targets(Z.log_softmax(1), targets).mean(),
            ),
            Mistake(
                "mean of the rows' means",
                "You take the mean in each row first, and a row with one hole counts as much as one with "
                "five. Every hole counts alike.",
                _rows_first,
            ),
            Mistake(
                "summed",
                "This is the sum over the holes. Their mean is asked for, or the loss would grow with the "
                "batch.",
                lambda Z, targets: _at_targets(Z.log_softmax(1), targets).sum(),
            ),
            Mistake(
                "softmax over the places",
                "Your probabilities sum to one over the places of a row. Here a token is a column, and its "
                "probabilities run down axis 1.",
                lambda Z, targets: _mean_at_holes(_at_targets(Z.log_softmax(2), targets), targets),
            ),
            Mistake(
                "softmax over the batch",
                "Your probabilities sum to one over the batch. They run over the vocabulary, axis 1.",
                lambda Z, targets: _mean_at_holes(_at_targets(Z.log_softmax(0), targets), targets),
            ),
            Mistake(
                "logits taken for log-probabilities",
                "You pick logits. They become log-probabilities by `log_softmax`.",
                lambda Z, targets: _mean_at_holes(_at_targets(Z, targets), targets),
            ),
            Mistake(
                "token 0 not asked",
                "You leave out holes whose true token is number 0. Only -100 means that nothing is asked.",
                _zero_ignored,
            ),
            Mistake(
                "every place asked",
                "You average over all places, with token 0 where nothing was asked. Places with -100 do not "
                "count at all.",
                _all_asked,
            ),
        ),
    )
)

# One vector for a sequence

register(
    Exercise(
        name="bert.pooler",
        reference=lambda H, W, b: (W @ H[:, 0] + b).tanh(),
        inputs=lambda g: [
            tuple(torch.randn(size, generator=g) for size in ((d, n), (d, d), (d,)))
            for d, n in ((4, 6), (3, 3), (5, 1), (6, 2))
        ],
        mistakes=(
            Mistake(
                "mean over the tokens",
                "You average all columns. The pooler reads one, that of [CLS].",
                lambda H, W, b: (W @ H.mean(1) + b).tanh(),
            ),
            Mistake(
                "last token",
                "You read the last column. [CLS] is the first.",
                lambda H, W, b: (W @ H[:, -1] + b).tanh(),
            ),
            Mistake(
                "first row",
                "You read the first row of H, one feature of all tokens. Here a token is a column.",
                lambda H, W, b: (W @ H[0] + b).tanh(),
            ),
            Mistake(
                "tanh missing",
                "The map is linear so far: the tanh is missing.",
                lambda H, W, b: W @ H[:, 0] + b,
            ),
            Mistake(
                "bias after the tanh",
                "You add the bias after the tanh. It belongs under it, with W h.",
                lambda H, W, b: (W @ H[:, 0]).tanh() + b,
            ),
            Mistake(
                "bias forgotten",
                "The bias is missing: W h + b, and then the tanh.",
                lambda H, W, b: (W @ H[:, 0]).tanh(),
            ),
            Mistake(
                "W transposed",
                "You multiply by the transpose of W: for columns it is W h, for rows h W^T.",
                lambda H, W, b: (W.T @ H[:, 0] + b).tanh(),
            ),
        ),
    )
)

# Labels of words, at pieces


def _align(
    label: Callable[[Ids, Ids, int], int] = lambda words, tags, n: (
        tags[words[n]] if words[n] >= 0 and words[n] != words[n - 1] else IGNORED
    ),
) -> Callable[[Ids, Ids], Ids]:
    """A label for each place; words[0] is that of [CLS], -1."""
    return lambda words, tags: [label(words, tags, n) for n in range(len(words))]


def _aligned(words: Ids, n: int) -> bool:
    return words[n] >= 0 and words[n] != words[n - 1]


def _ends(words: Ids, n: int) -> bool:
    return words[n] >= 0 and words[n] != words[n + 1]


register(
    Exercise(
        name="bert.align_labels",
        reference=_align(),
        inputs=lambda g: [
            ([-1, 0, 1, 1, 2, -1], [3, 1, 4]),
            ([-1, 0, 0, 0, 1, 2, 2, -1, -1, -1], [0, 2, 5]),
            ([-1, 0, -1], [7]),
            ([-1, 0, 1, 1, 2, -1], [6, 0, 2, 9, 9]),
        ],
        mistakes=(
            Mistake(
                "label on all pieces",
                "Every piece of a word gets its label, so that a word cut into four counts four times in the "
                "loss. Only the first piece is asked.",
                _align(lambda words, tags, n: tags[words[n]] if words[n] >= 0 else IGNORED),
            ),
            Mistake(
                "label on the last piece",
                "Your label stands on the last piece of each word. By agreement it is the first.",
                _align(lambda words, tags, n: tags[words[n]] if _ends(words, n) else IGNORED),
            ),
            Mistake(
                "shifted by [CLS]",
                "Your labels begin at [CLS], one place too early: it stands before the first word.",
                lambda words, tags: [*_align()(words, tags)[1:], IGNORED],
            ),
            Mistake(
                "labels dealt out piece by piece",
                "You give the n-th label to the n-th place after [CLS]. From the first word that is cut, "
                "labels stand at other words: `words` says which word a piece is of.",
                _align(
                    lambda words, tags, n: tags[n - 1] if words[n] >= 0 and n - 1 < len(tags) else IGNORED
                ),
            ),
            Mistake(
                "padding labelled O",
                "[CLS], [SEP] and padding have the label 0. Nothing is asked there; otherwise the model is "
                "paid for saying O where there is no word.",
                _align(
                    lambda words, tags, n: (
                        0 if words[n] < 0 else tags[words[n]] if _aligned(words, n) else IGNORED
                    )
                ),
            ),
            Mistake(
                "later pieces labelled O",
                "Later pieces have the label 0, that of O. They are not words of their own: nothing is asked "
                "there.",
                _align(
                    lambda words, tags, n: (
                        IGNORED if words[n] < 0 else tags[words[n]] if _aligned(words, n) else 0
                    )
                ),
            ),
            Mistake(
                "everything else labelled O",
                "Wherever no word begins your label is 0. It must be -100, which the loss leaves out: 0 is "
                "an answer.",
                _align(lambda words, tags, n: tags[words[n]] if _aligned(words, n) else 0),
            ),
        ),
    )
)

# Entities

Sentences = list[list[str]]
Entity = tuple[int, str, int, int]  # sentence, type, first word, the word after the last


def _entities(
    sentences: Sentences, loose: bool = False, typed: bool = True, join: bool = False
) -> set[Entity]:
    """B-x with the I-x that follow; if loose, an I-x that continues nothing begins one, too."""
    found = set()
    for s, tags in enumerate(sentences):
        begun: tuple[str, int] | None = None
        for n, tag in enumerate([*tags, "O"]):
            kind = tag[2:]
            goes_on = begun is not None and tag[0] in ("IB" if join else "I") and kind == begun[0]
            if goes_on:
                continue
            if begun is not None:
                found.add((s, begun[0] if typed else "", begun[1], n))
                begun = None
            if tag[0] == "B" or (loose and tag[0] == "I"):
                begun = (kind, n)
    return found


def _f1(right: int, n_true: int, n_predicted: int) -> float:
    return 2 * right / (n_true + n_predicted) if right else 0.0


def _entity_f1(**change: bool) -> Callable[[Sentences, Sentences], float]:
    def entity_f1(true: Sentences, predicted: Sentences) -> float:
        real, found = _entities(true, **change), _entities(predicted, **change)
        return _f1(len(real & found), len(real), len(found))

    return entity_f1


def _words(true: Sentences, predicted: Sentences) -> list[tuple[str, str]]:
    return [pair for t, p in zip(true, predicted, strict=True) for pair in zip(t, p, strict=True)]


def _word_f1(true: Sentences, predicted: Sentences) -> float:
    pairs = _words(true, predicted)
    right = sum(t == p != "O" for t, p in pairs)
    return _f1(right, sum(t != "O" for t, _ in pairs), sum(p != "O" for _, p in pairs))


def _overlap_f1(true: Sentences, predicted: Sentences) -> float:
    real, found = _entities(true), _entities(predicted)
    hit = [e for e in found if any(e[:2] == r[:2] and e[2] < r[3] and r[2] < e[3] for r in real)]
    return _f1(len(hit), len(real), len(found))


def _mean_over_sentences(true: Sentences, predicted: Sentences) -> float:
    scores = [_entity_f1()([t], [p]) for t, p in zip(true, predicted, strict=True)]
    return sum(scores) / len(scores)


def _mean_over_types(true: Sentences, predicted: Sentences) -> float:
    real, found = _entities(true), _entities(predicted)
    kinds = sorted({e[1] for e in real | found})
    parts = [({e for e in real if e[1] == k}, {e for e in found if e[1] == k}) for k in kinds]
    return sum(_f1(len(r & f), len(r), len(f)) for r, f in parts) / max(1, len(kinds))


def _share(of_true: bool) -> Callable[[Sentences, Sentences], float]:
    def share(true: Sentences, predicted: Sentences) -> float:
        real, found = _entities(true), _entities(predicted)
        return len(real & found) / max(1, len(real if of_true else found))

    return share


def _sentences(text: str) -> Sentences:
    """Sentences divided by |; o, and B or I with the letter of a type."""
    return [[w if w == "O" else f"{w[0]}-{w[1:]}" for w in sentence.split()] for sentence in text.split("|")]


register(
    Exercise(
        name="bert.entity_f1",
        reference=_entity_f1(),
        inputs=lambda g: [
            (_sentences("O Bx Ix O By"), _sentences("O Bx Ix O Bz")),
            (
                _sentences("Bx Ix Ix O | O By O O | Bx O By Iy"),
                _sentences("Bx Ix O O | O By O Bx | O O By Iy"),
            ),
            (_sentences("O Bx Ix O O By O"), _sentences("O Bx Ix O Ix Iy O")),
            (_sentences("Bx Bx O By Iy"), _sentences("Bx Bx O By Ix")),
            (_sentences("O O | Bx Ix O"), _sentences("O O | O O O")),
            (_sentences("By O Bx Iy O Bx"), _sentences("By O Bx Iy O O")),
        ],
        mistakes=(
            Mistake(
                "share of right words",
                "This is the share of words with the right tag. Most words are O, so that it is high for a "
                "model that finds nothing. Entities count.",
                lambda true, predicted: (
                    sum(t == p for t, p in _words(true, predicted)) / len(_words(true, predicted))
                ),
            ),
            Mistake(
                "words instead of entities",
                "You count words other than O. An entity of three words is one entity, right as a whole or "
                "not at all.",
                _word_f1,
            ),
            Mistake(
                "overlap counted as right",
                "You count an entity as right where it overlaps a true one. Both its ends have to be right.",
                _overlap_f1,
            ),
            Mistake(
                "type ignored",
                "You compare where entities stand and not what they are. The type has to be right, too.",
                _entity_f1(typed=False),
            ),
            Mistake(
                "I without B taken for a beginning",
                "You let an I- that continues nothing begin an entity, as some scorers do. Here an entity "
                "begins with B-.",
                _entity_f1(loose=True),
            ),
            Mistake(
                "neighbours joined",
                "You join two entities of one type that touch. A B- always begins a new one: that is what it "
                "is for.",
                _entity_f1(join=True),
            ),
            Mistake(
                "mean over the sentences",
                "You take F1 in each sentence and average. Count over all sentences first: one without "
                "entities has no F1.",
                _mean_over_sentences,
            ),
            Mistake(
                "mean over the types",
                "You average over types (macro F1), and a rare type weighs as much as a frequent one. Here "
                "all entities count alike (micro F1).",
                _mean_over_types,
            ),
            Mistake(
                "recall alone",
                "This is the recall: a model that marks everything would do well. F1 also counts what was "
                "marked wrongly.",
                _share(of_true=True),
            ),
            Mistake(
                "precision alone",
                "This is the precision: a model that marks one sure entity would do well. F1 also counts "
                "what was missed.",
                _share(of_true=False),
            ),
        ),
    )
)

# One vector for a sentence


def _real_mean(H: Tensor, real: Tensor) -> Tensor:
    return (H * real[..., None]).sum(1) / real.sum(1, keepdim=True)


def _unit(x: Tensor) -> Tensor:
    return x / x.norm(dim=-1, keepdim=True)


register(
    Exercise(
        name="bert.mean_pooling",
        reference=lambda H, real: _unit(_real_mean(H, real)),
        inputs=lambda g: [
            (torch.randn(len(lengths), max(lengths), d, generator=g), torch.arange(max(lengths)) < real)
            for lengths, d in (([4, 2], 3), ([5, 1, 3], 4), ([3, 6], 6))
            for real in [torch.tensor(lengths)[:, None]]
        ],
        mistakes=(
            Mistake(
                "padding averaged in",
                "The padding's outputs are in your mean, so that a sentence's vector depends on how long its "
                "neighbours in the batch are.",
                lambda H, real: _unit(H.mean(1)),
            ),
            Mistake(
                "not normalised",
                "Your vectors are not of length one: divide each by its norm. Dot products are cosines then.",
                _real_mean,
            ),
            Mistake(
                "not normalised, divided by all places",
                "You divide by all places instead of the real ones, and then do not normalise, which would "
                "have made up for it.",
                lambda H, real: (H * real[..., None]).mean(1),
            ),
            Mistake(
                "tokens normalised first",
                "You bring each token to length one before the mean, so that all count alike, and the mean "
                "is not of length one. Average first, normalise once.",
                lambda H, real: _real_mean(_unit(H), real),
            ),
            Mistake(
                "normalised twice",
                "You normalise the tokens, too, which changes the mean's direction. Only the mean is "
                "normalised.",
                lambda H, real: _unit(_real_mean(_unit(H), real)),
            ),
            Mistake(
                "[CLS] alone",
                "You take the first token. That is the pooler's way; here all real tokens are averaged.",
                lambda H, real: _unit(H[:, 0]),
            ),
            Mistake(
                "normalised along the batch",
                "You divide by norms taken over the batch. Each sentence has its own, over its features.",
                lambda H, real: _real_mean(H, real) / _real_mean(H, real).norm(dim=0, keepdim=True),
            ),
            Mistake(
                "divided by the sum",
                "You divide by the sum of the entries. Length one means that their squares sum to one.",
                lambda H, real: _real_mean(H, real) / _real_mean(H, real).sum(-1, keepdim=True),
            ),
        ),
    )
)

# Counting


def _count(
    segmented: bool = True,
    positions: bool = True,
    embed_norm: bool = True,
    pooler: int = 1,
    head: bool = False,
    output: bool = False,
    final_norm: bool = False,
    biases: bool = True,
) -> Callable[[int, int, int, int, int, int], int]:
    def count(vocab: int, length: int, segments: int, d: int, f: int, blocks: int) -> int:
        columns = vocab + (length if positions else 0) + (segments if segmented else 0)
        tables = columns * d + (2 * d if embed_norm else 0)
        block = 4 * d * d + 2 * d * f + 4 * d + (5 * d + f if biases else 0)
        rest = pooler * (d * d + d) + (d * d + 3 * d + vocab if head else 0)
        return tables + blocks * block + rest + (vocab * d if output else 0) + (2 * d if final_norm else 0)

    return count


register(
    Exercise(
        name="bert.count_parameters",
        reference=_count(),
        inputs=lambda g: [(30522, 512, 2, 768, 3072, 12), (30, 8, 3, 4, 12, 2), (11, 5, 1, 6, 7, 1)],
        mistakes=(
            Mistake(
                "segments forgotten",
                "The table of segments is missing: a column of length D for each kind of segment.",
                _count(segmented=False),
            ),
            Mistake(
                "positions forgotten",
                "The positions are learned: a column of length D for each place.",
                _count(positions=False),
            ),
            Mistake(
                "the embeddings' norm forgotten",
                "There is a norm before the first block, over the sum of the embeddings.",
                _count(embed_norm=False),
            ),
            Mistake(
                "the pooler forgotten",
                "The pooler belongs to the encoder: a D by D matrix and a bias.",
                _count(pooler=0),
            ),
            Mistake(
                "a pooler in each block",
                "You count the pooler once a block. There is one, after the last.",
                lambda *sizes: _count(pooler=sizes[-1])(*sizes),
            ),
            Mistake(
                "the head counted",
                "You count the masked language model's head. It is thrown away after pre-training, and the "
                "published sizes are those of the encoder.",
                _count(head=True),
            ),
            Mistake(
                "an output matrix counted",
                "You count a matrix from D to the vocabulary. The head uses the embeddings for it, and is "
                "not part of the encoder.",
                _count(output=True),
            ),
            Mistake(
                "a final norm counted",
                "You count a norm after the last block. With norms after the skips a block ends in one.",
                _count(final_norm=True),
            ),
            Mistake(
                "biases forgotten",
                "The biases of the blocks are missing: each linear map has one, as long as its output.",
                _count(biases=False),
            ),
        ),
    )
)
