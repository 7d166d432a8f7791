"""The code exercises of the chapter on pixels and sound, with the mistakes that readers make in them.

A token is a column: logits are (B, vocab, N), spectra and hidden states D x N, and a table of the next token
has a distribution in each column. Batches of token numbers have an image a row.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise

# Grey levels


def _grey_inputs(g: torch.Generator) -> list[tuple]:
    quarters = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0])  # borders; between them random greys lie
    below, above = (quarters.nextafter(torch.tensor(end)).clamp(0, 1) for end in (-1.0, 2.0))
    ramp = torch.linspace(0, 1, 12).reshape(1, 3, 4)
    images = [torch.rand(b, h, w, generator=g) for b, h, w in ((2, 3, 4), (3, 5, 2), (1, 4, 4))]
    images[0][0, 0, :2] = torch.tensor([0.0, 1.0])
    images[2][0, 3, 3] = 1.0
    return [
        (ramp, 4),
        *((x, levels) for x, levels in zip(images, (2, 16, 5), strict=True)),
        (torch.stack([below, quarters, above])[None], 4),
        (torch.tensor([[[0.5, 1.0]]]), 2),
        (torch.tensor([[[0.7]]]), 1),
    ]


@exercise("image_gpt.grey_tokens", inputs=_grey_inputs)
def grey_tokens(images: Tensor, levels: int) -> tuple[Tensor, Tensor]:
    """The numbers of the pixels' pieces and the pieces' middles: (B, h, w) -> whole (B, h w), real (B, h, w).
    [0, 1] is cut into `levels` equal pieces; a border belongs to the piece above it, 1 to the last.
    """
    pieces = (images * levels).long().clamp(max=levels - 1)
    return pieces.flatten(1), (pieces + 0.5) / levels


def _grey_with(
    number: Callable[[Tensor, int], Tensor] = lambda x, levels: (x * levels).floor(),
    value: Callable[[Tensor, int], Tensor] = lambda t, levels: (t + 0.5) / levels,
) -> Callable[[Tensor, int], tuple[Tensor, Tensor]]:
    """Other numbers of the pieces or other values for them."""

    def variant(images: Tensor, levels: int) -> tuple[Tensor, Tensor]:
        tokens = number(images, levels).clamp(0, levels - 1).long()
        return tokens.flatten(1), value(tokens, levels)

    return variant


def _white_too_high(images: Tensor, levels: int) -> tuple[Tensor, Tensor]:
    tokens = (images * levels).long()
    return tokens.flatten(1), (tokens + 0.5) / levels


def _ordered(order: Callable[[Tensor], Tensor]) -> Callable[[Tensor, int], tuple[Tensor, Tensor]]:
    """The tokens in another order."""

    def variant(images: Tensor, levels: int) -> tuple[Tensor, Tensor]:
        tokens, middles = grey_tokens(images, levels)
        return order(tokens.reshape(images.shape)), middles

    return variant


grey_tokens.mistake(
    "white one level too high",
    "White becomes the number `levels`, and the numbers end at levels - 1: the model's table has "
    "no such row. Clamp it into the last piece.",
    _white_too_high,
)

grey_tokens.mistake(
    "column by column",
    "Your tokens run down the columns. Raster order is that of reading: the top row first.",
    _ordered(lambda tokens: tokens.mT.flatten(1)),
)

grey_tokens.mistake(
    "an image in one piece",
    "Your tokens are still (B, height, width). A row of tokens is what the model reads: (B, N).",
    _ordered(lambda tokens: tokens),
)

grey_tokens.mistake(
    "the batch in one piece",
    "You run the images of the batch together. Each has a row of tokens of its own: (B, N).",
    _ordered(lambda tokens: tokens.flatten()),
)

grey_tokens.mistake(
    "rounded instead of cut",
    "You round levels times the grey value, so black has half a piece and everything else is "
    "moved up by half a level. The pieces are equal: take the floor.",
    _grey_with(lambda x, levels: (x * levels).round()),
)

grey_tokens.mistake(
    "border in the piece below",
    "Right but for borders: a grey on the border of two pieces belongs to the upper one. That is "
    "what the floor of levels times the grey does, and only 1 has no piece above.",
    _grey_with(lambda x, levels: (x * levels).ceil() - 1),
)

grey_tokens.mistake(
    "stretched over levels - 1",
    "You multiply by levels - 1 and round, so black and white have pieces of half the size. It "
    "is a common choice; here [0, 1] is cut into equal pieces.",
    _grey_with(lambda x, levels: (x * (levels - 1)).round(), lambda t, levels: t / (levels - 1)),
)

grey_tokens.mistake(
    "white alone in its piece",
    "You take the floor of levels - 1 times the grey value. Nothing but pure white gets the last "
    "number, and the image becomes darker.",
    _grey_with(lambda x, levels: (x * (levels - 1)).floor()),
)

grey_tokens.mistake(
    "lower end of the piece",
    "You give back the lower end of each piece, so images become darker, by half a piece on "
    "average, and by up to a whole one. The middle is never further off than half of it.",
    _grey_with(value=lambda t, levels: t / levels),
)

grey_tokens.mistake(
    "upper end of the piece",
    "You give back the upper end of each piece. The middle is never further off than half of it.",
    _grey_with(value=lambda t, levels: (t + 1) / levels),
)

grey_tokens.mistake(
    "black and white kept",
    "You divide by levels - 1, which brings black and white back as they were and moves the "
    "others towards the ends. The value of a token is the middle of its piece.",
    _grey_with(value=lambda t, levels: t / (levels - 1)),
)

# What a pixel may see


@exercise(
    "image_gpt.visible",
    inputs=lambda g: [
        (4, 5, 2, 1),
        (3, 3, 1, 2),
        (2, 6, 0, 4),
        (5, 2, 3, 0),
        (3, 4, 0, 0),  # nothing
        (3, 4, 2, 3),  # all but the last pixel
        (4, 3, 1, 1),
        (1, 4, 0, 2),
        (4, 1, 2, 0),
        (1, 1, 0, 0),
    ],
)
def visible(height: int, width: int, row: int, column: int) -> Tensor:
    """Booleans (height, width), True at the pixels before the one at `row` and `column` in raster order.
    Rows and columns are counted from 0.
    """
    number = torch.arange(height * width).reshape(height, width)
    return number < row * width + column


def _visible_where(
    sees: Callable[[Tensor, Tensor, int, int, int, int], Tensor],
) -> Callable[[int, int, int, int], Tensor]:
    """True where the row r and the column c of another pixel say so."""

    def variant(height: int, width: int, row: int, column: int) -> Tensor:
        r, c = torch.arange(height)[:, None], torch.arange(width)[None, :]
        return sees(r, c, row, column, height, width).expand(height, width)

    return variant


visible.mistake(
    "the pixel itself",
    "Your pixel sees itself. It is what is being asked for: whoever reads it has nothing left to predict.",
    _visible_where(lambda r, c, row, column, h, w: r * w + c <= row * w + column),
)

visible.mistake(
    "above and to the left only",
    "You show the rectangle above and to the left. The rows above have been written to their "
    "ends, so what stands above and to the right is known as well.",
    _visible_where(lambda r, c, row, column, h, w: (r <= row) & (c <= column) & ((r < row) | (c < column))),
)

visible.mistake(
    "column by column",
    "You write the image column by column. Raster order goes through the rows.",
    _visible_where(lambda r, c, row, column, h, w: c * h + r < column * h + row),
)

visible.mistake(
    "the future",
    "You show what comes after the pixel and hide what came before it.",
    _visible_where(lambda r, c, row, column, h, w: r * w + c > row * w + column),
)

visible.mistake(
    "everything else",
    "You hide the pixel alone, as BERT does with a word. A model that writes pixel after pixel "
    "has not written the later ones.",
    _visible_where(lambda r, c, row, column, h, w: (r != row) | (c != column)),
)

visible.mistake(
    "rows above only",
    "The rows above are there, and what stands to the left in the same row is missing.",
    _visible_where(lambda r, c, row, column, h, w: (r < row) & (c >= 0)),
)

visible.mistake(
    "own row only",
    "Your pixel sees its own row and not those above. To the model the image is one sequence, "
    "which does not begin anew with each row.",
    _visible_where(lambda r, c, row, column, h, w: (r == row) & (c < column)),
)

visible.mistake(
    "rows of the wrong length",
    "You number the pixels by row times height plus column. Between a pixel and the one below it "
    "lies a row, which is as long as the image is wide.",
    _visible_where(lambda r, c, row, column, h, w: r * h + c < row * h + column),
)

visible.mistake(
    "one sequence",
    "Your answer has the pixels in one row, as the model reads them. Return it as an image, (height, width).",
    lambda height, width, row, column: visible(height, width, row, column).flatten(),
)

# Bits per pixel


def _bits_inputs(g: torch.Generator) -> list[tuple]:
    def draw(b: int, levels: int, n: int, size: float = 2.0) -> tuple:
        Z = size * torch.randn(b, levels, n, generator=g)
        return Z, torch.randint(levels, (b, n), generator=g)

    # of the last case some probabilities are too small for a float
    return [draw(3, 4, 6), draw(2, 16, 9), draw(5, 5, 5), draw(1, 2, 4), draw(1, 2, 1), draw(2, 6, 5, 100.0)]


@exercise("image_gpt.bits_per_pixel", inputs=_bits_inputs)
def bits_per_pixel(Z: Tensor, tokens: Tensor) -> Tensor:
    """The mean of -log2 p(pixel) over all pixels: logits (B, levels, N), tokens (B, N) -> one number.
    Column n of the logits is about pixel n.
    """
    log_p = Z.log_softmax(dim=1).gather(1, tokens[:, None])
    return -log_p.mean() / math.log(2)


def _bits_made(
    of: Callable[[Tensor], Tensor], log_softmax: Callable[[Tensor], Tensor] = lambda Z: Z.log_softmax(1)
) -> Callable[[Tensor, Tensor], Tensor]:
    """Another number made of the pixels' log-probabilities (B, N)."""
    return lambda Z, tokens: of(log_softmax(Z).gather(1, tokens[:, None])[:, 0])


bits_per_pixel.mistake(
    "nats for bits",
    "These are nats. A bit is ln 2 nats, 0.69 of one: divide by it.",
    _bits_made(lambda log_p: -log_p.mean()),
)

bits_per_pixel.mistake(
    "multiplied by ln 2",
    "You multiply by ln 2. A bit is smaller than a nat, so there are more of them: divide.",
    _bits_made(lambda log_p: -log_p.mean() * math.log(2)),
)

bits_per_pixel.mistake(
    "per image",
    "These are bits per image. They grow with its size; divide by the number of pixels.",
    _bits_made(lambda log_p: -log_p.sum(1).mean() / math.log(2)),
)

bits_per_pixel.mistake(
    "of the whole batch",
    "You add up the bits of all pixels of all images. Their mean is wanted.",
    _bits_made(lambda log_p: -log_p.sum() / math.log(2)),
)

bits_per_pixel.mistake(
    "logarithm of the mean",
    "You average probabilities and take the logarithm at the end. The cost of a row of pixels is "
    "the logarithm of a product: average the logarithms.",
    _bits_made(lambda log_p: -log_p.exp().mean().log2()),
)

bits_per_pixel.mistake(
    "perplexity",
    "This is the perplexity, the number of levels among which the model hesitates. Bits are its "
    "logarithm to base 2.",
    _bits_made(lambda log_p: (-log_p.mean()).exp()),
)

bits_per_pixel.mistake(
    "sign forgotten",
    "Your bits are negative. Log-probabilities are; their negatives are what a pixel costs.",
    _bits_made(lambda log_p: log_p.mean() / math.log(2)),
)

bits_per_pixel.mistake(
    "softmax over the pixels",
    "Your probabilities sum to one over the pixels. A pixel is a column of Z, and its "
    "distribution over the levels runs down axis 1.",
    _bits_made(lambda log_p: -log_p.mean() / math.log(2), lambda Z: Z.log_softmax(2)),
)

bits_per_pixel.mistake(
    "logarithm of a softmax",
    "Right for moderate logits. Where a probability is too small for a float, its logarithm is "
    "minus infinity: `log_softmax` computes the logarithm without the probability.",
    _bits_made(lambda log_p: -log_p.mean() / math.log(2), lambda Z: Z.softmax(1).log()),
)

bits_per_pixel.mistake(
    "shifted once more",
    "You compare column n with pixel n + 1. By the start token, which stands before the first "
    "pixel, column n of Z is about pixel n already.",
    lambda Z, tokens: bits_per_pixel(Z[:, :, :-1], tokens[:, 1:]),
)

# What a completion costs


class _Reader:
    """A causal toy in place of a GPT: logits of the tokens read so far, those of long ago counting less."""

    def __init__(self, table: Tensor):
        self.table = table

    def __call__(self, tokens: Tensor) -> Tensor:
        state, rows = torch.zeros(len(tokens), self.table.shape[1]), []
        for n in range(tokens.shape[1]):
            state = self.table[tokens[:, n]] + 0.6 * state
            rows.append(state)
        return torch.stack(rows, dim=1)

    def __repr__(self) -> str:
        return f"a model of {len(self.table)} tokens"


def _completion_inputs(g: torch.Generator) -> list[tuple]:
    def draw(b: int, n: int, given: int, levels: int) -> tuple:
        model = _Reader(2 * torch.randn(levels + 1, levels + 1, generator=g))
        return model, torch.randint(levels, (b, n), generator=g), given, levels

    return [
        draw(3, 8, 4, 4),
        draw(2, 9, 3, 2),
        draw(1, 6, 5, 3),  # only the last pixel is missing
        draw(4, 5, 0, 4),  # nothing is given
        draw(2, 2, 1, 5),
        draw(1, 1, 0, 2),
    ]


@exercise("image_gpt.completion_loss", inputs=_completion_inputs)
def completion_loss(model: Callable[[Tensor], Tensor], x: Tensor, given: int, levels: int) -> Tensor:
    """The mean of -ln p over the pixels from `given` on, each after all before it: (B, N) -> one number.
    The model turns tokens (B, n) into logits (B, n, levels + 1); the start token is `levels`.
    """
    rows = torch.nn.functional.pad(x, (1, 0), value=levels)
    logits = model(rows[:, :-1])[:, given:]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), x[:, given:].flatten())


def _completion_with(
    log_p: Callable[[Tensor, int], Tensor] = lambda Z, levels: Z.log_softmax(-1),
    read: Callable[[Tensor, int], Tensor] = lambda x, levels: torch.cat(
        [torch.full_like(x[:, :1], levels), x[:, :-1]], dim=1
    ),
    part: Callable[[Tensor, int], Tensor] = lambda costs, given: costs[:, given:],
    of: Callable[[Tensor], Tensor] = lambda costs: costs.mean(),
) -> Callable[[Callable, Tensor, int, int], Tensor]:
    """Another loss: other tokens read, another part of the pixels, or another number made of their costs."""

    def variant(model: Callable[[Tensor], Tensor], x: Tensor, given: int, levels: int) -> Tensor:
        costs = -log_p(model(read(x, levels)), levels).gather(2, x[:, :, None])[:, :, 0]
        return of(part(costs, given))

    return variant


def _half_alone(model: Callable[[Tensor], Tensor], x: Tensor, given: int, levels: int) -> Tensor:
    return completion_loss(model, x[:, given:], 0, levels)


def _without_start(model: Callable[[Tensor], Tensor], x: Tensor, given: int, levels: int) -> Tensor:
    first = max(given, 1)
    logits = model(x[:, :-1])[:, first - 1 :]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), x[:, first:].flatten())


completion_loss.mistake(
    "all pixels counted",
    "You average over all pixels. The given ones are read, and only those from `given` on are paid for.",
    _completion_with(part=lambda costs, given: costs),
)

completion_loss.mistake(
    "the given pixels counted",
    "You average over the pixels that are given. What is asked is the cost of those that are missing.",
    _completion_with(part=lambda costs, given: costs[:, :given]),
)

completion_loss.mistake(
    "the missing half read by itself",
    "Your model reads the missing pixels without the given ones before them. Let it read the whole row, and "
    "leave the given places out of the mean.",
    _half_alone,
)

completion_loss.mistake(
    "the pixel reads itself",
    "Your model reads the pixel that it is asked for. Put the start token before the row and leave the last "
    "pixel out: place n has then read the pixels before n.",
    _completion_with(read=lambda x, levels: x),
)

completion_loss.mistake(
    "no start token",
    "Your row has no start token. The model was trained on rows that begin with it, and without it there is "
    "nothing from which to predict the first pixel.",
    _without_start,
)

completion_loss.mistake(
    "start token 0",
    "Your start token is 0, which is a grey. Its number is `levels`, one more than the lightest grey.",
    _completion_with(read=lambda x, levels: torch.nn.functional.pad(x, (1, 0))[:, :-1]),
)

completion_loss.mistake(
    "one place too late",
    "You leave out the first missing pixel. The start token has moved the rows by one already: place `given` "
    "is asked for pixel `given`.",
    _completion_with(part=lambda costs, given: costs[:, given + 1 :]),
)

completion_loss.mistake(
    "summed",
    "You add up the costs. Their mean is wanted, over the missing pixels of all images.",
    _completion_with(of=lambda costs: costs.sum()),
)

completion_loss.mistake(
    "per image",
    "You add up the costs of an image and average over the images. Divide by the missing pixels, too.",
    _completion_with(of=lambda costs: costs.sum(1).mean()),
)

completion_loss.mistake(
    "divided by all pixels",
    "You divide by the number of all pixels. Only the missing ones were paid for.",
    lambda model, x, given, levels: (
        completion_loss(model, x, given, levels) * (x.shape[1] - given) / x.shape[1]
    ),
)

completion_loss.mistake(
    "bits for nats",
    "These are bits. The loss is in nats: a natural logarithm.",
    _completion_with(of=lambda costs: costs.mean() / math.log(2)),
)

completion_loss.mistake(
    "the start token left out of the softmax",
    "Your probabilities are among the greys alone. The model has levels + 1 outputs, and what the "
    "start token gets is missing elsewhere: take the softmax over all of them.",
    _completion_with(
        lambda Z, levels: torch.cat([Z[..., :levels].log_softmax(-1), torch.zeros_like(Z[..., :1])], dim=-1)
    ),
)

# The previous pixel


def _image_rows(g: torch.Generator) -> list[tuple]:
    # the last level is seen nowhere in the second batch
    sizes = ((3, 9, 3), (4, 8, 4), (1, 12, 6))
    rows = [torch.randint(top, (b, n), generator=g) for b, n, top in sizes]
    one_pixel_each = torch.tensor([[2], [0], [2]])
    return [
        *((row, levels) for row, levels in zip(rows, (3, 5, 6), strict=True)),
        (one_pixel_each, 4),
        (torch.tensor([[1, 1, 0, 1]]), 2),
        (torch.tensor([[1]]), 2),
    ]


@exercise("image_gpt.previous_pixel", inputs=_image_rows)
def previous_pixel(tokens: Tensor, levels: int) -> Tensor:
    """The table p(pixel | pixel before): tokens (B, N) -> (levels, levels + 1), whose columns sum to one.
    Column u is for a pixel after level u, and the last one for the first pixel of an image. A one is added to
    each count.
    """
    start = torch.full_like(tokens[:, :1], levels)
    before = torch.cat([start, tokens[:, :-1]], dim=1)
    counts = torch.ones(levels, levels + 1)
    counts.index_put_((tokens, before), torch.ones(tokens.shape), accumulate=True)
    return counts / counts.sum(dim=0)


def _counted(before: Tensor, tokens: Tensor, levels: int) -> Tensor:
    """How often each level (down) stands after each other one (across), from 0."""
    counts = torch.zeros(levels, levels + 1)
    return counts.index_put((tokens, before), torch.ones(tokens.shape), accumulate=True)


def _counts(tokens: Tensor, levels: int) -> Tensor:
    start = torch.full_like(tokens[:, :1], levels)
    return _counted(torch.cat([start, tokens[:, :-1]], dim=1), tokens, levels)


def _divided(share: Callable[[Tensor], Tensor]) -> Callable[[Tensor, int], Tensor]:
    """The table from the counts, in which no one was added, by another division."""
    return lambda tokens, levels: share(_counts(tokens, levels))


def _start_left_out(tokens: Tensor, levels: int) -> Tensor:
    counts = _counted(tokens[:, :-1], tokens[:, 1:], levels) + 1
    return counts / counts.sum(dim=0)


def _across_images(tokens: Tensor, levels: int) -> Tensor:
    return previous_pixel(tokens.flatten()[None], levels)


def _each_pair_once(tokens: Tensor, levels: int) -> Tensor:
    counts = _counts(tokens, levels).clamp(max=1) + 1
    return counts / counts.sum(dim=0)


previous_pixel.mistake(
    "next pixel down, previous across, exchanged",
    "In your table the next pixel goes across and the previous down. What is conditioned on is "
    "the column here, and a column sums to one.",
    lambda tokens, levels: previous_pixel(tokens, levels).T,
)

previous_pixel.mistake(
    "normalised along the rows",
    "Your rows sum to one, which asks what came before a pixel. Each column, a previous pixel, "
    "has a distribution over the next.",
    _divided(lambda counts: (counts + 1) / (counts + 1).sum(1, keepdim=True)),
)

previous_pixel.mistake(
    "all pairs together",
    "You divide by the number of all pairs: these are joint probabilities. Given the previous "
    "pixel, its column sums to one.",
    _divided(lambda counts: (counts + 1) / (counts + 1).sum()),
)

previous_pixel.mistake(
    "add-one forgotten",
    "You do not add the ones. A pair that was never seen has probability 0 then, and costs "
    "infinitely many bits when it comes; a level that was never seen gives 0/0.",
    _divided(lambda counts: counts / counts.sum(0)),
)

previous_pixel.mistake(
    "add-one forgotten, and 0/0 avoided",
    "You avoid 0/0, and pairs that were never seen still have probability 0: the first of them "
    "costs infinitely many bits. Add one to each count.",
    _divided(lambda counts: counts / counts.sum(0).clamp(min=1)),
)

previous_pixel.mistake(
    "one added below instead of `levels`",
    "You add one to every count and one to the total, so the columns sum to more than one. A one "
    "is added to each of `levels` counts: their total grows by `levels`.",
    _divided(lambda counts: (counts + 1) / (counts.sum(0) + 1)),
)

previous_pixel.mistake(
    "each pair counted once",
    "A pair counts once in your table, however often it is there: `counts[new, old] += 1` with "
    "tensors for indices adds one to each *place*. `index_put_(..., accumulate=True)` counts.",
    _each_pair_once,
)

previous_pixel.mistake(
    "the first pixels not counted",
    "Your last column is uniform. What stands first in an image follows the start token, whose "
    "number is `levels`: count that, too.",
    _start_left_out,
)

previous_pixel.mistake(
    "pairs across images",
    "You run the images together, so the last pixel of one stands before the first of the next. "
    "Each image begins anew, with the start token.",
    _across_images,
)

# Drawing out of noise


def _noisy(g: torch.Generator) -> list[tuple]:
    X = [torch.randn(d, s, generator=g) for d, s in ((3, 4), (1, 2), (5, 3))]
    y = [torch.randn(d, generator=g) for d in (3, 1, 5)]
    return [
        *((a, t, b) for a, t, b in zip(y, (0.5, 0.8, 0.35), X, strict=True)),
        (torch.tensor([0.5]), 0.5, torch.tensor([[-1.0, 1.0]])),
        (y[0], 1.0, X[0]),
        (torch.tensor([0.2, 0.1]), 0.02, torch.tensor([[1.0, -1.0], [1.0, 0.0]])),  # scores in the thousands
        (y[2], 0.6, X[2][:, :1]),
    ]


@exercise("image_gpt.exact_velocity", inputs=_noisy)
def exact_velocity(y: Tensor, t: float, X: Tensor) -> Tensor:
    """E[e - x | (1 - t) x + t e = y], (D,), x a column of X (D, S), each as likely, e ~ N(0, 1).
    0 < t <= 1.
    """
    return (y - X @ _posterior(y, t, X)) / t


def _posterior(y: Tensor, t: float, X: Tensor) -> Tensor:
    """How likely each column is."""
    return (-(y[:, None] - (1 - t) * X).square().sum(dim=0) / (2 * t**2)).softmax(dim=0)


def _weighed(weights: Callable[[Tensor, float, Tensor], Tensor]) -> Callable[[Tensor, float, Tensor], Tensor]:
    """The velocity from other weights."""
    return lambda y, t, X: (y - X @ weights(y, t, X)) / t


def _distances(y: Tensor, t: float, X: Tensor) -> Tensor:
    return (y[:, None] - (1 - t) * X).square().sum(dim=0)


exact_velocity.mistake(
    "the image not shrunk",
    "You compare y with the images themselves. At the time t an image x has become (1 - t) x, and the noise "
    "around that is what a normal density judges.",
    _weighed(lambda y, t, X: (-(y[:, None] - X).square().sum(dim=0) / (2 * t**2)).softmax(dim=0)),
)

exact_velocity.mistake(
    "t for t squared",
    "You divide the squared distance by 2 t. The noise is t e, whose variance is t squared.",
    _weighed(lambda y, t, X: (-_distances(y, t, X) / (2 * t)).softmax(dim=0)),
)

exact_velocity.mistake(
    "the half forgotten",
    "You divide by t squared and not by twice that: a normal density is exp(-e^2 / 2).",
    _weighed(lambda y, t, X: (-_distances(y, t, X) / t**2).softmax(dim=0)),
)

exact_velocity.mistake(
    "distances for squared distances",
    "You take the distance itself. In the density stands its square.",
    _weighed(lambda y, t, X: (-_distances(y, t, X).sqrt() / (2 * t**2)).softmax(dim=0)),
)

exact_velocity.mistake(
    "the nearest image alone",
    "You follow the most likely image. What is learned from squared errors is the mean over all of them.",
    _weighed(lambda y, t, X: torch.eye(X.shape[1])[_posterior(y, t, X).argmax()]),
)

exact_velocity.mistake(
    "all images alike",
    "You take the mean of all images, whatever y is. Those that lie near y are more likely.",
    _weighed(lambda y, t, X: torch.full((X.shape[1],), 1 / X.shape[1])),
)

exact_velocity.mistake(
    "the noise for the velocity",
    "You return the mean noise E[e | y]. The velocity is e - x.",
    lambda y, t, X: (y - (1 - t) * (X @ _posterior(y, t, X))) / t,
)

exact_velocity.mistake(
    "towards the image",
    "Your velocity has the other sign: it leads to the images. Time runs from the image to the noise, and "
    "whoever draws goes against it.",
    lambda y, t, X: (X @ _posterior(y, t, X) - y) / t,
)

exact_velocity.mistake(
    "exponentials without care",
    "For small t your exponentials are all zero, and 0/0 is no number. Subtract the largest score first, or "
    "let `softmax` do it.",
    _weighed(lambda y, t, X: (e := (-_distances(y, t, X) / (2 * t**2)).exp()) / e.sum()),
)

# Heun's step


class _Field:
    """A velocity that is a linear map of the pixels and bends in time."""

    def __init__(self, matrix: Tensor, push: Tensor):
        self.matrix, self.push = matrix, push

    def __call__(self, x: Tensor, t: float) -> Tensor:
        return (1 + t * t) * x @ self.matrix + math.sin(3 * t) * self.push

    def __repr__(self) -> str:
        return f"a velocity of {len(self.push)} pixels"


class _ToTwo:
    """The exact velocity of a pixel that is -1 or 1 equally often; it has no value at t = 0."""

    def __call__(self, x: Tensor, t: float) -> Tensor:
        time = torch.tensor(t, dtype=x.dtype)  # a tensor divided by zero is not an error
        return (x - ((1 - time) * x / time.square()).tanh()) / time

    def __repr__(self) -> str:
        return "the exact velocity of a pixel that is -1 or 1"


def _fields(g: torch.Generator) -> list[tuple]:
    def draw(b: int, d: int, steps: int) -> tuple:
        field = _Field(torch.randn(d, d, generator=g) / d, torch.randn(d, generator=g))
        return field, torch.randn(b, d, generator=g), steps

    return [
        draw(2, 3, 4),
        draw(3, 2, 2),
        draw(1, 4, 7),
        draw(4, 1, 1),  # a single step
        (_ToTwo(), torch.tensor([[0.7], [-0.4], [1.3]]), 3),
        draw(2, 5, 10),
    ]


@exercise("image_gpt.heun_images", inputs=_fields)
def heun_images(v: Callable[[Tensor, float], Tensor], x: Tensor, steps: int) -> Tensor:
    """From noise x at t = 1 down to t = 0 along v, in equal steps of Heun's method, the last one of Euler's.
    A step of Heun's takes the mean of the velocity where it begins and where Euler's step would end.
    """
    h = 1 / steps
    for k in range(steps, 0, -1):
        first = v(x, k / steps)
        there = x - h * first
        if k > 1:
            there = x - h * (first + v(there, (k - 1) / steps)) / 2
        x = there
    return x


def _heun_with(
    step: Callable[[Callable, Tensor, float, float], Tensor], last: bool = False
) -> Callable[[Callable, Tensor, int], Tensor]:
    """Other steps from t to t - h; in the last, as in all others where `last` says so."""

    def variant(v: Callable[[Tensor, float], Tensor], x: Tensor, steps: int) -> Tensor:
        for k in range(steps, 0, -1):
            t, h = k / steps, 1 / steps
            x = step(v, x, t, h) if k > 1 or last else x - h * v(x, t)
        return x

    return variant


def _upwards(v: Callable[[Tensor, float], Tensor], x: Tensor, steps: int) -> Tensor:
    for k in range(steps):
        first = v(x, k / steps)
        x = x + (first + v(x + first / steps, (k + 1) / steps)) / 2 / steps
    return x


heun_images.mistake(
    "Euler's steps",
    "These are Euler's steps: each follows the velocity where it begins. Heun's look once more at the end of "
    "that step and take the mean of both.",
    _heun_with(lambda v, x, t, h: x - h * v(x, t)),
)

heun_images.mistake(
    "the last step like the others",
    "Your last step asks for the velocity at t = 0, where the exact one divides by zero. Let the last step "
    "be Euler's.",
    _heun_with(lambda v, x, t, h: x - h * (v(x, t) + v(x - h * v(x, t), t - h)) / 2, last=True),
)

heun_images.mistake(
    "midpoint, in the last step too",
    "These are steps of the midpoint method, which goes by the velocity half a step on. Heun's takes the "
    "mean of the velocity where the step begins and where Euler's step ends, and the last step is Euler's.",
    _heun_with(lambda v, x, t, h: x - h * v(x - h / 2 * v(x, t), t - h / 2), last=True),
)

heun_images.mistake(
    "second velocity at the old place",
    "Your second velocity is taken at the later time, but where the step began. Take it where "
    "Euler's step ends.",
    _heun_with(lambda v, x, t, h: x - h * (v(x, t) + v(x, t - h)) / 2),
)

heun_images.mistake(
    "second velocity at the old time",
    "Your second velocity is taken where Euler's step ends, but at the old time. There the time "
    "is t - 1 / steps.",
    _heun_with(lambda v, x, t, h: x - h * (v(x, t) + v(x - h * v(x, t), t)) / 2),
)

heun_images.mistake(
    "second velocity alone",
    "You follow the velocity at the end of Euler's step alone. Heun takes the mean of both.",
    _heun_with(lambda v, x, t, h: x - h * v(x - h * v(x, t), t - h)),
)

heun_images.mistake(
    "not halved",
    "You add both velocities, so each of your steps is twice as long. Take their mean.",
    _heun_with(lambda v, x, t, h: x - h * (v(x, t) + v(x - h * v(x, t), t - h))),
)

heun_images.mistake(
    "from the trial's end",
    "You go on from where Euler's step ended. That was a trial: the step begins again at the old x, with the "
    "mean velocity.",
    _heun_with(
        lambda v, x, t, h: (there := x - h * v(x, t)) - h * (v(x, t) + v(there, t - h)) / 2,
    ),
)

heun_images.mistake(
    "midpoint",
    "This is the midpoint rule: one velocity, half a step ahead. Heun takes the mean of the velocities at "
    "both ends.",
    _heun_with(lambda v, x, t, h: x - h * v(x - h / 2 * v(x, t), t - h / 2)),
)

heun_images.mistake(
    "further into noise",
    "You add the velocity, which leads into noise. Time goes down here: subtract it.",
    _heun_with(lambda v, x, t, h: x + h * (v(x, t) + v(x + h * v(x, t), t - h)) / 2),
)

heun_images.mistake(
    "upwards in time",
    "Your time goes from 0 to 1. Noise is at t = 1, and the images are at t = 0.",
    _upwards,
)

# What a hidden state knows


def _probe_inputs(g: torch.Generator) -> list[tuple]:
    def states(d: int, n: int) -> Tensor:
        return torch.randn(d, n, generator=g) + 0.5

    def draw(d: int, n: int, classes: int, lam: float) -> tuple:
        return states(d, n), torch.randint(classes, (n,), generator=g), classes, lam

    return [
        draw(3, 12, 3, 1.0),
        draw(5, 20, 4, 0.3),
        draw(2, 9, 2, 5.0),
        draw(6, 15, 5, 2.0),
        (states(3, 8), torch.tensor([0, 2, 2, 0, 0, 2, 0, 2]), 5, 0.5),  # no image of classes 1, 3 and 4
        (torch.tensor([[1.0, 3.0]]), torch.tensor([1, 0]), 2, 2.0),
    ]


@exercise("image_gpt.linear_probe", inputs=_probe_inputs, tolerance=1e-4)
def linear_probe(H: Tensor, labels: Tensor, classes: int, lam: float) -> Tensor:
    """The W that minimises ||W G - Y||^2 + lam ||W||^2: (D, B) states, (B,) labels -> (classes, D + 1).
    G is the states with a row of ones below, and column b of Y has a 1 at image b's class, else 0.
    """
    G = torch.cat([H, torch.ones(1, H.shape[1])]).to(torch.float64)
    Y = torch.nn.functional.one_hot(labels, classes).T.to(torch.float64)
    W = Y @ G.T @ torch.linalg.inv(G @ G.T + lam * torch.eye(len(G)))
    return W.to(H.dtype)


def _with_ones(H: Tensor) -> Tensor:
    return torch.cat([H, torch.ones(1, H.shape[1])])


def _one_hot(labels: Tensor, classes: int) -> Tensor:
    return torch.nn.functional.one_hot(labels, classes).T.float()


def _ridge(G: Tensor, Y: Tensor, penalty: Tensor) -> Tensor:
    """Y G^T (G G^T + penalty)^-1, by way of float64."""
    G, Y, penalty = G.double(), Y.double(), penalty.double()
    return (Y @ G.T @ torch.linalg.inv(G @ G.T + penalty)).float()


def _probe_of(targets: Callable[[Tensor, int], Tensor]) -> Callable[..., Tensor]:
    """The probe with other targets Y, made of the labels and the number of classes."""
    return lambda H, labels, classes, lam: _ridge(
        _with_ones(H), targets(labels, classes), lam * torch.eye(len(H) + 1)
    )


def _bias_free_of_penalty(H: Tensor, labels: Tensor, classes: int, lam: float) -> Tensor:
    penalty = torch.diag(torch.tensor([lam] * len(H) + [0.0]))
    return _ridge(_with_ones(H), _one_hot(labels, classes), penalty)


linear_probe.mistake(
    "no bias",
    "Your W has D columns: the row of ones is missing, and with it the bias. All your scores are "
    "0 at the origin.",
    lambda H, labels, classes, lam: _ridge(H, _one_hot(labels, classes), lam * torch.eye(len(H))),
)

linear_probe.mistake(
    "ones above",
    "Your row of ones stands above H, so the bias is the first column of W. Let it be the last.",
    lambda H, labels, classes, lam: linear_probe(H, labels, classes, lam).roll(1, dims=1),
)

linear_probe.mistake(
    "transposed",
    "Your W is (D + 1) x classes. Here states are columns, and W stands to the left of them.",
    lambda H, labels, classes, lam: linear_probe(H, labels, classes, lam).T,
)

linear_probe.mistake(
    "lambda forgotten",
    "The penalty is missing. Without it the matrix cannot be inverted where there are fewer "
    "images than features, and is nearly singular where there are hardly more.",
    lambda H, labels, classes, lam: linear_probe(H, labels, classes, 0.0),
)

linear_probe.mistake(
    "lambda times the number of images",
    "Your penalty is N times as strong: this minimises the mean of the squares and the penalty. "
    "Here it is their sum.",
    lambda H, labels, classes, lam: linear_probe(H, labels, classes, lam * H.shape[1]),
)

linear_probe.mistake(
    "lambda squared",
    "You add lambda squared. The penalty is lambda times the squares of W, and its derivative "
    "has lambda in it once.",
    lambda H, labels, classes, lam: linear_probe(H, labels, classes, lam**2),
)

linear_probe.mistake(
    "lambda added everywhere",
    "You add lambda to every entry of G G^T. The squares of W have no mixed terms, so lambda "
    "belongs on the diagonal alone: lambda times the identity.",
    lambda H, labels, classes, lam: _ridge(
        _with_ones(H), _one_hot(labels, classes), torch.full((len(H) + 1, len(H) + 1), lam)
    ),
)

linear_probe.mistake(
    "bias without its penalty",
    "You leave the bias out of the penalty, which is good practice and not what was asked: here "
    "all entries of W are penalised alike.",
    _bias_free_of_penalty,
)

linear_probe.mistake(
    "`classes` not looked at",
    "You take the number of classes from the labels. A class may have no image among these; it "
    "has a row of W all the same: `one_hot(labels, classes)`.",
    _probe_of(lambda labels, classes: torch.nn.functional.one_hot(labels).T),
)

linear_probe.mistake(
    "labels as numbers",
    "You fit the label as a number, as if a 9 were three times a 3. Each class has a row of its "
    "own, 1 for its images and 0 for the others.",
    _probe_of(lambda labels, classes: labels[None]),
)

linear_probe.mistake(
    "minus one for the others",
    "Your targets are 1 and -1. They are 1 for the class of an image and 0 for the others.",
    _probe_of(lambda labels, classes: 2 * _one_hot(labels, classes) - 1),
)

# The axes of a spectrogram


@exercise(
    "image_gpt.axes",
    inputs=lambda g: [
        (8000, 8000, 256, 128),
        (1000, 500, 100, 30),
        (77, 10, 16, 5),
        (64, 32, 64, 16),  # a single frame
        (63 + 16, 32, 64, 16),  # a sample too few for another
        (64 + 16, 32, 64, 16),  # just enough for it
        (4000, 16000, 400, 160),
        (90, 40, 26, 10),
        (30, 8, 4, 9),  # hops longer than frames
        (4, 2, 2, 1),
    ],
)
def axes(samples: int, rate: int, frame: int, hop: int) -> tuple[Tensor, Tensor]:
    """The middles of the frames (N,) in seconds, and the frequencies of the bins (F,) in hertz.
    Frames begin every `hop` samples and end within the signal; an even number of samples is a frame. Bins
    are rate / frame apart, from 0 to half the rate.
    """
    n = torch.arange(1 + (samples - frame) // hop)
    k = torch.arange(frame // 2 + 1)
    return (n * hop + frame / 2) / rate, k * rate / frame


def _axes_with(
    frames: Callable[[int, int, int], int] = lambda samples, frame, hop: 1 + (samples - frame) // hop,
    time: Callable[[Tensor, int, int, int], Tensor] = lambda n, rate, frame, hop: (
        (n * hop + frame / 2) / rate
    ),
    bins: Callable[[int], int] = lambda frame: frame // 2 + 1,
    frequency: Callable[[Tensor, int, int], Tensor] = lambda k, rate, frame: k * rate / frame,
) -> Callable[[int, int, int, int], tuple[Tensor, Tensor]]:
    """The axes with another number of frames or bins, or with other values for them."""

    def variant(samples: int, rate: int, frame: int, hop: int) -> tuple[Tensor, Tensor]:
        n, k = torch.arange(frames(samples, frame, hop)), torch.arange(bins(frame))
        return time(n, rate, frame, hop).float(), frequency(k, rate, frame).float()

    return variant


axes.mistake(
    "as many frames as hops",
    "You count a frame for each hop. The last frame has to end within the signal, so the hops "
    "have samples - frame samples to go.",
    _axes_with(frames=lambda samples, frame, hop: samples // hop),
)

axes.mistake(
    "one frame too few",
    "You count the hops. There is one frame more than there are hops between frames.",
    _axes_with(frames=lambda samples, frame, hop: (samples - frame) // hop),
)

axes.mistake(
    "a frame for the rest",
    "You have a frame more, which would reach beyond the end of the signal. A remainder that is "
    "shorter than a frame is left out.",
    _axes_with(frames=lambda samples, frame, hop: 1 + math.ceil((samples - frame) / hop)),
)

axes.mistake(
    "frame's beginning",
    "These are the times at which the frames begin. What a frame shows lies around its middle, "
    "half a frame later.",
    _axes_with(time=lambda n, rate, frame, hop: n * hop / rate),
)

axes.mistake(
    "half a hop instead of half a frame",
    "You add half a hop. The middle of a frame lies half a *frame* after its beginning, however "
    "far the next is away.",
    _axes_with(time=lambda n, rate, frame, hop: (n + 0.5) * hop / rate),
)

axes.mistake(
    "frames side by side",
    "You place the frames side by side. They overlap: from one to the next it is a hop.",
    _axes_with(time=lambda n, rate, frame, hop: (n + 0.5) * frame / rate),
)

axes.mistake(
    "samples for seconds",
    "Your times are in samples. There are `rate` samples in a second.",
    _axes_with(time=lambda n, rate, frame, hop: n * hop + frame / 2),
)

axes.mistake(
    "frequencies up to the rate",
    "Your frequencies go up to the rate. Above half of it a real signal's spectrum only repeats "
    "itself backwards: F = frame // 2 + 1 bins are kept.",
    _axes_with(bins=lambda frame: frame),
)

axes.mistake(
    "a bin too few",
    "You keep frame // 2 bins. There is one more: bin 0, the mean, comes before the frame // 2 waves.",
    _axes_with(bins=lambda frame: frame // 2),
)

axes.mistake(
    "rate shared among the kept bins",
    "You divide the rate by the number of bins kept. Bin k is a wave that goes k times into the "
    "*frame*: k * rate / frame.",
    _axes_with(frequency=lambda k, rate, frame: k * rate / len(k)),
)

axes.mistake(
    "bins counted from one",
    "Your first bin is the slowest wave. Bin 0 is there as well, the mean, at 0 Hz.",
    _axes_with(frequency=lambda k, rate, frame: (k + 1) * rate / frame),
)

axes.mistake(
    "bin numbers for hertz",
    "Your frequencies are numbers of bins. Bin k goes k times into a frame, which lasts "
    "frame / rate seconds.",
    _axes_with(frequency=lambda k, rate, frame: k),
)

# Mel bands


@exercise(
    "image_gpt.mel_filterbank",
    inputs=lambda g: [
        (4, 64, 8000),
        (10, 256, 16000),
        (3, 32, 4000),
        (6, 128, 11025),
        (5, 101, 8000),  # an odd frame
        (2, 9, 5000),
        (1, 6, 8000),
    ],
    tolerance=1e-4,  # for those who compute in float32
)
def mel_filterbank(n_mels: int, frame: int, rate: int) -> Tensor:
    """Triangles of height 1 between n_mels + 2 corners, at the bins' frequencies: (n_mels, frame // 2 + 1).
    The corners lie equally far apart in m = 2595 log10(1 + f / 700), from 0 Hz to half the rate; sides are
    straight in hertz, and bins rate / frame apart.
    """
    top = 2595 * math.log10(1 + rate / 2 / 700)  # 0 Hz is 0 mel
    mels = torch.linspace(0, top, n_mels + 2, dtype=torch.float64)
    corners = 700 * (10 ** (mels / 2595) - 1)
    left, middle, right = (corners[i : i + n_mels, None] for i in range(3))
    f = torch.arange(frame // 2 + 1) * rate / frame
    rising, falling = (f - left) / (middle - left), (right - f) / (right - middle)
    return torch.minimum(rising, falling).clamp(min=0).to(torch.float32)


def _to_mel(f: Tensor) -> Tensor:
    return 2595 * (1 + f / 700).log10()


def _to_hertz(m: Tensor) -> Tensor:
    return 700 * (10 ** (m / 2595) - 1)


def _bank_with(
    to_mel: Callable[[Tensor], Tensor] = _to_mel,
    to_hertz: Callable[[Tensor], Tensor] = _to_hertz,
    more: int = 2,
    last: float = 0.5,
    bins: Callable[[int, int], Tensor] = lambda frame, rate: torch.arange(frame // 2 + 1) * rate / frame,
    axis: Callable[[Tensor], Tensor] = lambda f: f,
    sides: Callable[[Tensor, Tensor], Tensor] = lambda up, down: torch.minimum(up, down).clamp(min=0),
    area: bool = False,
) -> Callable[[int, int, int], Tensor]:
    """A bank with something changed."""

    def variant(n_mels: int, frame: int, rate: int) -> Tensor:
        top = to_mel(torch.tensor(last * rate, dtype=torch.float64)).item()
        corners = axis(to_hertz(torch.linspace(0, top, n_mels + more, dtype=torch.float64)))
        f = axis(bins(frame, rate).double())
        left, middle, right = (c[:, None] for c in (corners[:-2], corners[1:-1], corners[2:]))
        bank = sides((f - left) / (middle - left), (right - f) / (right - middle))
        return (bank * 2 / (right - left) if area else bank).float()

    return variant


mel_filterbank.mistake(
    "corners equally far apart in hertz",
    "Your corners are equally far apart in hertz, so all triangles are equally wide. Space them "
    "in mel, and turn them into hertz afterwards.",
    _bank_with(lambda f: f, lambda m: m),
)

mel_filterbank.mistake(
    "logarithm and power of different bases",
    "You take a natural logarithm on the way to mel and a power of ten on the way back, which "
    "is no inverse: the corners lie far beyond half the rate.",
    _bank_with(lambda f: 2595 * (1 + f / 700).log()),
)

mel_filterbank.mistake(
    "two bands too few",
    "You have n_mels corners and so n_mels - 2 triangles: each needs a corner on both sides. "
    "Take n_mels + 2.",
    _bank_with(more=0),
)

mel_filterbank.mistake(
    "a band too few",
    "You have n_mels + 1 corners, enough for bands that lie side by side. Triangles overlap, and "
    "need one corner more.",
    _bank_with(more=1),
)

mel_filterbank.mistake(
    "bands in columns",
    "Your bands are columns. The bank stands to the left of a spectrum, F x N: it is n_mels x F.",
    lambda n_mels, frame, rate: mel_filterbank(n_mels, frame, rate).T,
)

mel_filterbank.mistake(
    "corners up to the rate",
    "Your last corner lies at the rate. Frequencies end at half of it, so your upper bands lie "
    "beyond every bin.",
    _bank_with(last=1.0),
)

mel_filterbank.mistake(
    "rate shared among the kept bins",
    "Your bins are rate / F apart, so the last of them lies far above half the rate. They are "
    "rate / frame apart.",
    _bank_with(bins=lambda frame, rate: torch.arange(frame // 2 + 1) * rate / (frame // 2 + 1)),
)

mel_filterbank.mistake(
    "bins spread up to half the rate",
    "Right for even frames. Bins are rate / frame apart, so the last bin of an odd frame lies "
    "half a step below half the rate.",
    _bank_with(bins=lambda frame, rate: torch.linspace(0, rate / 2, frame // 2 + 1)),
)

mel_filterbank.mistake(
    "negative outside",
    "Outside its triangle a line goes on below zero. A band counts nothing there: clamp at 0.",
    _bank_with(sides=torch.minimum),
)

mel_filterbank.mistake(
    "no falling side",
    "Your bands rise and then stay at 1 until they end. Each falls again from its middle corner "
    "to its right one.",
    _bank_with(sides=lambda up, down: up.clamp(0, 1) * (down > 0)),
)

mel_filterbank.mistake(
    "straight in mel",
    "Your sides are straight in mel, which some programs do. Here they are straight in hertz: "
    "the corners come from the mel scale, and nothing else.",
    _bank_with(axis=_to_mel),
)

mel_filterbank.mistake(
    "equal areas",
    "You divide by the bands' widths, as Slaney's version does, so that all have the same area. "
    "Here all have the same height, 1.",
    _bank_with(area=True),
)
