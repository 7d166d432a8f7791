"""The code exercises of the chapter on BERT, with the mistakes that readers make in them.

Embeddings, outputs and logits are in the text's layout, a token a column, except in `bert.mean_pooling`. Of
tokens the numbers 0 to 4 are special: [PAD], [UNK], [CLS], [SEP], [MASK].
"""

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise

IGNORED = -100
CLS, SEP, MASK = 2, 3, 4
Ids = list[int]


@exercise(
    "bert.pack_pair",
    inputs=lambda g: [
        ([11, 12, 13], [21, 22], 7),  # one too many
        ([11, 12, 13], [21, 22], 8),  # exactly as many
        ([11, 12, 13], [21, 22], 12),
        ([11, 12, 13, 14, 15, 16], [21, 22, 23], 9),
        ([11, 12], [21, 22, 23, 24, 25], 8),
        ([11, 12, 13, 14, 15], [21, 22, 23, 24, 25], 10),
        ([11, 12, 13, 14, 15], [21, 22, 23, 24, 25], 9),
        ([11], [21], 5),
        ([11], [21], 4),
        ([], [21, 22], 4),
        ([], [21], 3),
    ],
)
def pack_pair(a: Ids, b: Ids, length: int) -> tuple[Ids, Ids]:
    """[CLS] A [SEP] B [SEP] in at most `length` >= 3 tokens, and a segment for each: two lists of ints.

    While the row is too long, the longer sentence loses a token, A at its front and B at its end; B loses it
    where both are equally long. Segment 0 reaches to the first [SEP], which is in it; the rest is segment 1.
    """
    a, b = list(a), list(b)
    while len(a) + len(b) + 3 > length:
        if len(a) > len(b):
            a.pop(0)
        else:
            b.pop()
    tokens = [CLS, *a, SEP, *b, SEP]
    return tokens, [0] * (len(a) + 2) + [1] * (len(b) + 1)


pack_pair.add_mistakes("""
first [SEP] in the second segment
    | (len(a) + 2) => (len(a) + 1)
    | (len(b) + 1) => (len(b) + 2)
    The tokens are right, but your first [SEP] is in segment 1. It closes the first sentence and belongs
    to it.
last [SEP] missing
    | *b, SEP] => *b]
    | (len(b) + 1) => len(b)
    The second sentence is not closed: a [SEP] stands after each of the two, and is counted in the length.
the first sentence cut at its end | a.pop(0) => a.pop()
    You cut the end off the first sentence. Cut its front: what stands next to the second sentence tells
    most about whether it follows.
marks not counted | + 3 > length => > length
    Your rows are longer than `length`: [CLS] and the two [SEP] need three of the places.
""")


def _hole_inputs(g: torch.Generator) -> list[tuple]:
    def draw(batch: int, n: int) -> tuple:
        tokens = torch.randint(5, 40, (batch, n), generator=g)
        tokens[:, 0], tokens[:, -1], tokens[0, -2] = CLS, SEP, 1
        u, v = torch.rand(2, batch, n, generator=g)
        words = torch.randint(5, 40, (batch, n), generator=g)
        return tokens, u, v, words

    tokens = torch.tensor([[CLS, 9, 8, 7, 6, SEP]])
    u = torch.tensor([[0.01, 0.02, 0.03, 0.04, 0.9, 0.05]])
    v = torch.tensor([[0.1, 0.3, 0.85, 0.95, 0.1, 0.85]])

    # u and v at the bounds, one below and one above, in double precision, where 0.8 is just 0.8
    bounds = torch.tensor([0.15, 0.8, 0.9], dtype=torch.double)
    edges = torch.stack([bounds - 1e-9, bounds, bounds + 1e-9], dim=1)
    v_edges = edges[1:].reshape(1, 6)
    ordinary = torch.arange(11, 17)[None]
    some = torch.full_like(edges, 0.5)
    special = torch.arange(7)[None]  # all special tokens and the first two ordinary ones

    def one(token: int, u: float, v: float) -> tuple:
        return torch.tensor([[token]]), torch.tensor([[u]]), torch.tensor([[v]]), torch.tensor([[30]])

    return [
        (tokens, u, v, torch.full_like(tokens, 30)),
        draw(3, 40),
        draw(2, 60),
        (ordinary[:, :3], edges[:1], some[:1], ordinary[:, :3] + 10),
        (ordinary, torch.zeros_like(v_edges), v_edges, ordinary + 10),
        *((special, torch.zeros(1, 7), torch.full((1, 7), v), special + 10) for v in (0.0, 0.85)),
        one(7, 0.1, 0.5),
        one(7, 0.1, 0.85),
        one(7, 0.1, 0.95),
        one(7, 0.2, 0.5),
        one(MASK, 0.1, 0.85),
    ]


@exercise("bert.mask_tokens", inputs=_hole_inputs)
def mask_tokens(tokens: Tensor, u: Tensor, v: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
    """What the model reads and what it is asked, by the 80/10/10 rule: whole numbers, (B, N) each.

    An ordinary token (above 4) is chosen if u < 0.15. It becomes [MASK] if v < 0.8, the token of `words` if
    0.8 <= v < 0.9, and stays otherwise. Targets are the chosen tokens as they were, and -100 elsewhere.
    """
    chosen = (tokens > MASK) & (u < 0.15)
    inputs = tokens.masked_fill(chosen & (v < 0.8), MASK)
    inputs = torch.where(chosen & (v >= 0.8) & (v < 0.9), words, inputs)
    return inputs, tokens.masked_fill(~chosen, IGNORED)


mask_tokens.add_mistakes("""
special tokens hidden | (tokens > MASK) & =>
    You also hide special tokens. To guess [CLS] and [SEP] teaches nothing, since where they stand is
    always known.
kept tokens not asked | ~chosen => ~(chosen & (v < 0.9))
    The model is not asked for the chosen tokens that stay. It is asked for all that were chosen: that is
    why it has to keep an opinion of words that it can see.
only masks asked | ~chosen => ~(chosen & (v < 0.8))
    The model is asked at [MASK] alone. All chosen tokens are targets, also those that were replaced by a
    random word or stay.
targets everywhere | tokens.masked_fill(~chosen, IGNORED) => tokens
    You ask for every token. Most of them stand there to be read, so that the loss would be that of
    copying; targets are -100 except where a token was chosen.
random words put over masks | (v >= 0.8) & (v < 0.9) => (v < 0.1)
    Your second rule, v < 0.1, takes a share of what is [MASK] already: 70% are hidden, 10% replaced, 20%
    stay. The intervals follow each other: up to 0.8, then up to 0.9.
""")


def _embedding_inputs(g: torch.Generator) -> list[tuple]:
    def draw(n: int, d: int, vocab: int) -> tuple:
        tables = (torch.randn(d, size, generator=g) for size in (vocab, max(vocab, n) + 1, 2))
        segments = (torch.arange(n) > n // 2).long()
        gain, shift = 1 + torch.rand(d, generator=g), torch.randn(d, generator=g)
        return (torch.randint(vocab, (n,), generator=g), segments, *tables, gain, shift)

    def column(*features: float) -> tuple:
        """A token that is alone, and nothing added to it."""
        d = len(features)
        tables = torch.tensor(features)[:, None], torch.zeros(d, 1), torch.zeros(d, 2)
        return (torch.tensor([0]), torch.tensor([0]), *tables, torch.full((d,), 2.0), torch.ones(d))

    return [
        draw(5, 4, 9),
        draw(3, 6, 7),
        draw(1, 4, 5),
        draw(4, 4, 4),
        draw(1, 2, 1),
        column(1e-6, 3e-6, -2e-6),  # a variance as small as epsilon
        column(4.0, 4.0),  # none at all
        column(2001.0, 2002.0, 2003.0),  # far from zero, and close together
    ]


@exercise("bert.input_embedding", inputs=_embedding_inputs, tolerance=1e-4)
def input_embedding(
    tokens: Tensor, segments: Tensor, E: Tensor, P: Tensor, S: Tensor, gain: Tensor, shift: Tensor
) -> Tensor:
    """LayerNorm of E[tokens] + P + S[segments], a token a column: (N,), (N,) and tables (D, ...) -> (D, N).

    P may have more columns than there are tokens. The norm runs over the D features of a column, has gain and
    shift of shape (D,), and divides by sqrt(variance + 1e-12).
    """
    X = E[:, tokens] + P[:, : len(tokens)] + S[:, segments]
    X = X - X.mean(dim=0)
    X = X / (X.square().mean(dim=0) + 1e-12).sqrt()
    return gain[:, None] * X + shift[:, None]


input_embedding.add_mistakes("""
norm before the sum
    | + P[:, : len(tokens)] + S[:, segments] =>
    | + shift[:, None] => + shift[:, None] + P[:, : len(tokens)] + S[:, segments]
    You normalise the tokens' embeddings alone and add the rest afterwards. The norm comes last, over the
    sum of all three.
segments forgotten | + S[:, segments] =>
    Nothing tells the two sentences apart: the column of S for each token's segment is missing.
norm across the tokens | mean(dim=0) => mean(dim=1, keepdim=True)
    Mean and variance are taken over the tokens of a feature. They are those of each column, over its
    features.
epsilon of PyTorch's default | 1e-12 => 1e-5
    Your epsilon is 1e-5, the default of `layer_norm`. BERT's is 1e-12.
""")


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
        draw(3, 3, 3, [(row, place) for row in range(3) for place in range(3)]),  # all of them asked
        (torch.tensor([[[0.5], [2.0]]]), torch.tensor([[1]])),
        (torch.tensor([[[0.5], [2.0]]]), torch.tensor([[0]])),
        (torch.tensor([[[-120.0], [1.0]]]), torch.tensor([[0]])),  # a probability that underflows
        (torch.tensor([[[1000.0], [1001.0]]]), torch.tensor([[0]])),  # exponentials that overflow
    ]


@exercise("bert.masked_loss", inputs=_loss_inputs)
def masked_loss(Z: Tensor, targets: Tensor) -> float:
    """The mean of -ln p over all holes of the batch: (B, vocab, N) logits and (B, N) targets -> a number.

    The targets are -100 where nothing is asked. There is at least one hole.
    """
    asked = targets != IGNORED
    log_p = Z.log_softmax(dim=1).transpose(1, 2)[asked]  # (holes, vocab)
    return -log_p[torch.arange(len(log_p)), targets[asked]].mean().item()


masked_loss.add_mistakes("""
divided by all places | .mean().item() => .sum().item() / targets.numel()
    You add up over the holes and divide by all places, so that the loss shrinks with the share that was
    hidden. Divide by the number of holes.
mean of the rows' means
    | return - => rows =
    | .mean().item() => .split(asked.sum(1).tolist()); return -torch.stack([r.mean() for r in rows]).nanmean()
    You take the mean in each row first, and a row with one hole counts as much as one with five. Every
    hole counts alike.
summed | mean() => sum()
    This is the sum over the holes. Their mean is asked for, or the loss would grow with the batch.
softmax over the places | dim=1 => dim=2
    Your probabilities sum to one over the places of a row. Here a token is a column, and its
    probabilities run down axis 1.
logarithm of the softmax | log_softmax(dim=1) => softmax(dim=1).log()
    Right for moderate logits. A small probability underflows to 0, and its logarithm is minus infinity:
    `log_softmax` takes both steps at once.
""")


@exercise(
    "bert.pooler",
    inputs=lambda g: [
        tuple(torch.randn(size, generator=g) for size in ((d, n), (d, d), (d,)))
        for d, n in ((4, 6), (3, 3), (5, 1), (6, 2), (2, 2), (1, 2), (1, 1))
    ],
)
def pooler(H: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """tanh(W h + b) of h, the first column, that of [CLS]: (D, N), (D, D) and (D,) -> (D,)."""
    return torch.tanh(W @ H[:, 0] + b)


pooler.add_mistakes("""
mean over the tokens | H[:, 0] => H.mean(dim=1)
    You average all columns. The pooler reads one, that of [CLS].
last token | H[:, 0] => H[:, -1]
    You read the last column. [CLS] is the first.
first row | H[:, 0] => H[0]
    You read the first row of H, one feature of all tokens. Here a token is a column.
tanh missing | torch.tanh =>
    The map is linear so far: the tanh is missing.
""")


@exercise(
    "bert.align_labels",
    inputs=lambda g: [
        ([-1, 0, 1, 1, 2, -1], [3, 1, 4]),
        ([-1, 0, 0, 0, 1, 2, 2, -1, -1, -1], [0, 2, 5]),
        ([-1, 0, -1], [7]),
        ([-1, 0, 1, 1, 2, -1], [6, 0, 2, 9, 9]),  # more words than found room
        ([-1, 0, 2, 2, -1], [5, 6, 8]),  # a word of which no piece is left
        ([-1, -1], []),
    ],
)
def align_labels(words: Ids, tags: Ids) -> Ids:
    """tags[w] at the first piece of each word w, and -100 everywhere else: a list as long as `words`.

    `words` has the word of each place, -1 at [CLS], with which it begins, at [SEP] and at padding. A word may
    be missing: `tags` is indexed by its number.
    """
    return [tags[w] if w >= 0 and w != words[n - 1] else IGNORED for n, w in enumerate(words)]


align_labels.add_mistakes("""
label on all pieces | and w != words[n - 1] =>
    Every piece of a word gets its label, so that a word cut into four counts four times in the loss. Only
    the first piece is asked.
label on the last piece | w != words[n - 1] => w != words[n + 1]
    Your label stands on the last piece of each word. By agreement it is the first.
shifted by [CLS] | => lambda words, tags: [*align_labels(words, tags)[1:], IGNORED]
    Your labels begin at [CLS], one place too early: it stands before the first word.
labels dealt out piece by piece
    | tags[w] if w >= 0 and w != words[n - 1] => tags[n - 1] if w >= 0 and n - 1 < len(tags)
    You give the n-th label to the n-th place after [CLS]. From the first word that is cut, labels stand
    at other words: `words` says which word a piece is of.
padding labelled O | else IGNORED => else 0 if w < 0 else IGNORED
    [CLS], [SEP] and padding have the label 0. Nothing is asked there; otherwise the model is paid for
    saying O where there is no word.
""")


Sentences = list[list[str]]
Entity = tuple[int, str, int, int]  # sentence, type, first word, the word after the last


def _sentences(text: str) -> Sentences:
    """Sentences divided by |; o, and B or I with a type, for instance Bx for B-x."""
    return [[w if w == "O" else f"{w[0]}-{w[1:]}" for w in sentence.split()] for sentence in text.split("|")]


def _entity_inputs(g: torch.Generator) -> list[tuple]:
    pairs = [
        ("O Bx Ix O By", "O Bx Ix O Bz"),
        ("Bx Ix Ix O | O By O O | Bx O By Iy", "Bx Ix O O | O By O Bx | O O By Iy"),
        ("O Bx Ix O O By O", "O Bx Ix O Ix Iy O"),
        ("Bx Bx O By Iy", "Bx Bx O By Ix"),
        ("O O | Bx Ix O", "O O | O O O"),
        ("By O Bx Iy O Bx", "By O Bx Iy O O"),
        ("Bart Iart O Barea", "Bart Iarea O Barea"),  # types that begin alike
        ("O Bx | Ix O", "O Bx | O O"),  # nothing goes on in the next sentence
        ("Bx O | Bx O | By", "Bx O | Bx O | O"),  # at the same place of two sentences
        ("Bx O O | O By", "O O O | Bx By"),  # one of two kept, beside a wrong one
        ("Bx Ix O", "Bx Ix Ix"),
        ("O Bx Ix", "Bx Ix Ix"),
        ("Bx", "Bx"),
        ("Bx", "Ix"),
        ("O", "O"),
        ("O", "Bx"),
        (" | Bx", " | Bx"),
    ]
    return [(_sentences(true), _sentences(predicted)) for true, predicted in pairs]


@exercise("bert.entity_f1", inputs=_entity_inputs)
def entity_f1(true: Sentences, predicted: Sentences) -> float:
    """2 r / (t + p) for r entities found correctly, of t true and p predicted, 0 if r = 0: a float.

    An entity is a B- and the I- of its type that follow directly in the same sentence; an I- that continues
    nothing makes none. It is found correctly if its sentence, its type and both its ends are.
    """

    def entities(sentences: Sentences) -> set[Entity]:
        found = set()
        for s, tags in enumerate(sentences):
            for start, tag in enumerate(tags):
                if tag.startswith("B-"):
                    end = start + 1
                    while end < len(tags) and tags[end] == "I-" + tag[2:]:
                        end += 1
                    found.add((s, tag[2:], start, end))
        return found

    t, p = entities(true), entities(predicted)
    right = len(t & p)
    return 2 * right / (len(t) + len(p)) if right else 0.0


entity_f1.add_mistakes("""
share of right words
    | t, p = => pairs = [p for both in zip(true, predicted) for p in zip(*both)]; t, p =
    | 2 * right / (len(t) + len(p)) if right else 0.0 => sum(a == b for a, b in pairs) / max(1, len(pairs))
    This is the share of words with the right tag. Most words are O, so that it is high for a model that
    finds nothing. Entities count.
overlap counted as right
    | len(t & p) => sum(any(e[:2] == r[:2] and e[2] < r[3] and r[2] < e[3] for r in t) for e in p)
    You count an entity as right where it overlaps a true one. Both its ends have to be right.
only the beginning compared | start, end)) => start))
    You count an entity as right if it begins at the right word. It has to end there, too.
type ignored | (s, tag[2:], start => (s, start
    You compare where entities stand and not what they are. The type has to be right, too.
I without B taken for a beginning
    | tag.startswith("B-") => "B" in tag or "I" in tag and [*tags[:start], "O"][start - 1][1:] != tag[1:]
    You let an I- that continues nothing begin an entity, as some scorers do. Here an entity begins with
    B-.
mean over the sentences
    | => lambda true, predicted: sum(entity_f1([t], [p]) for t, p in zip(true, predicted)) / max(1, len(true))
    You take F1 in each sentence and average. Count over all sentences first: one without entities has no
    F1.
""")


def _pooling_inputs(g: torch.Generator) -> list[tuple]:
    def draw(lengths: list[int], d: int) -> tuple:
        n = max(lengths)
        return torch.randn(len(lengths), n, d, generator=g), torch.arange(n) < torch.tensor(lengths)[:, None]

    H, real = draw([4, 2, 1], 5)
    one = torch.tensor([[[3.0, 4.0], [-2.0, 7.0]]])
    return [
        draw([4, 2], 3),
        draw([5, 1, 3], 4),
        draw([3, 6], 6),
        (H, real.flip(1)),  # padding in front
        (5 * draw([2, 3, 3], 3)[0], torch.tensor([[True, False, True], [True] * 3, [False, True, True]])),
        (one, torch.tensor([[True, False]])),
        (one, torch.tensor([[True, True]])),
    ]


@exercise("bert.mean_pooling", inputs=_pooling_inputs)
def mean_pooling(H: Tensor, real: Tensor) -> Tensor:
    """The mean over each sentence's real tokens, brought to length one: (B, N, D), bool (B, N) -> (B, D).

    Padding may stand anywhere. Each sentence has a real token.
    """
    total = (H * real[:, :, None]).sum(dim=1)  # its direction is that of the mean
    return total / total.norm(dim=1, keepdim=True)


mean_pooling.add_mistakes("""
padding averaged in | * real[:, :, None] =>
    The padding's outputs are in your mean, so that a sentence's vector depends on how long its neighbours
    in the batch are.
not normalised | total / total.norm(dim=1, keepdim=True) => total / real.sum(dim=1, keepdim=True)
    Your vectors are not of length one: divide each by its norm. Dot products are cosines then.
[CLS] alone | (H * real[:, :, None]).sum(dim=1) => H[:, 0]
    You take the first token. That is the pooler's way; here all real tokens are averaged.
divided by the norm of the batch
    | total / total.norm(dim=1, keepdim=True) => (mean := total / real.sum(dim=1, keepdim=True)) / mean.norm()
    You divide by one norm for the whole batch. Each sentence has its own: take it along the last axis.
""")


@exercise(
    "bert.count_parameters",
    inputs=lambda g: [
        (30522, 512, 2, 768, 3072, 12),
        (30, 8, 3, 4, 12, 2),
        (11, 5, 1, 6, 7, 1),
        (7, 3, 2, 5, 4, 3),
        (1, 1, 1, 1, 1, 1),
        (3, 2, 1, 2, 1, 0),
    ],
)
def count_parameters(vocab: int, length: int, segments: int, d: int, f: int, blocks: int) -> int:
    """How many parameters BERT's encoder has, biases and LayerNorms included: a whole number.

    Three tables and the norm of their sum; the blocks, each with four maps of attention, two of the MLP and
    two norms; a pooler. No head.
    """
    tables = (vocab + length + segments) * d + 2 * d
    attention = 4 * (d * d + d)
    mlp = d * f + f + f * d + d
    norms = 4 * d
    return tables + blocks * (attention + mlp + norms) + d * d + d


count_parameters.add_mistakes("""
segments forgotten | vocab + length + segments => vocab + length
    The table of segments is missing: a column of length D for each kind of segment.
the embeddings' norm forgotten | + segments) * d + 2 * d => + segments) * d
    There is a norm before the first block, over the sum of the embeddings.
the pooler forgotten | + d * d + d =>
    The pooler belongs to the encoder: a D by D matrix and a bias.
the head counted | return tables => return d * d + 3 * d + vocab + tables
    You count the masked language model's head. It is thrown away after pre-training, and the published
    sizes are those of the encoder.
biases forgotten
    | (d * d + d) => d * d
    | d * f + f + f * d + d => 2 * d * f
    The biases of the blocks are missing: each linear map has one, as long as its output.
""")
