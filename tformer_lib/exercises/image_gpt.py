"""The code exercises of the chapter on pixels and sound, with the mistakes that readers make in them.

A token is a column: logits are (B, vocab, N), spectra and hidden states D x N, and a table of the next token
has a distribution in each column. Batches of token numbers have an image a row.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tformer_lib.exercises.checker import Exercise, Mistake, register

# Grey levels


def _grey(
    number: Callable[[Tensor, int], Tensor] = lambda x, levels: (x * levels).floor(),
    most: int = 1,
    order: Callable[[Tensor], Tensor] = lambda t: t.flatten(1),
    value: Callable[[Tensor, int], Tensor] = lambda t, levels: (t + 0.5) / levels,
) -> Callable[[Tensor, int], tuple[Tensor, Tensor]]:
    """The numbers of the pixels' pieces in raster order, and the pieces' middles, with something changed."""

    def grey_tokens(images: Tensor, levels: int) -> tuple[Tensor, Tensor]:
        tokens = number(images, levels).clamp(max=levels - most).long()
        return order(tokens), value(tokens, levels)

    return grey_tokens


def _grey_inputs(g: torch.Generator) -> list[tuple]:
    ramp = torch.linspace(0, 1, 12).reshape(1, 3, 4)
    # (B, height, width); no value lies on a border of two pieces, but for black and white
    images = [torch.rand(b, h, w, generator=g) for b, h, w in ((2, 3, 4), (3, 5, 2), (1, 4, 4))]
    images[0][0, 0, :2] = torch.tensor([0.0, 1.0])
    images[2][0, 3, 3] = 1.0
    return [(ramp, 4), *((x, levels) for x, levels in zip(images, (2, 16, 5), strict=True))]


register(
    Exercise(
        name="image_gpt.grey_tokens",
        reference=_grey(),
        inputs=_grey_inputs,
        mistakes=(
            Mistake(
                "white one level too high",
                "White becomes the number `levels`, and the numbers end at levels - 1: the model's table has "
                "no such row. Clamp it into the last piece.",
                _grey(most=0),
            ),
            Mistake(
                "column by column",
                "Your tokens run down the columns. Raster order is that of reading: the top row first.",
                _grey(order=lambda t: t.mT.flatten(1)),
            ),
            Mistake(
                "an image in one piece",
                "Your tokens are still (B, height, width). A row of tokens is what the model reads: (B, N).",
                _grey(order=lambda t: t),
            ),
            Mistake(
                "rounded instead of cut",
                "You round levels times the grey value, so that black has half a piece and everything else "
                "is moved up by half a level. The pieces are equal: take the floor.",
                _grey(lambda x, levels: (x * levels).round()),
            ),
            Mistake(
                "stretched over levels - 1",
                "You multiply by levels - 1 and round, so that black and white have pieces of half the "
                "size. It is a common choice; here [0, 1] is cut into equal pieces.",
                _grey(lambda x, levels: (x * (levels - 1)).round(), value=lambda t, levels: t / (levels - 1)),
            ),
            Mistake(
                "white alone in its piece",
                "You take the floor of levels - 1 times the grey value. Nothing but pure white gets the last "
                "number, and the image becomes darker.",
                _grey(lambda x, levels: (x * (levels - 1)).floor()),
            ),
            Mistake(
                "lower end of the piece",
                "You give back the lower end of each piece, so that images become darker, by half a piece on "
                "average, and by up to a whole one. The middle is never further off than half of it.",
                _grey(value=lambda t, levels: t / levels),
            ),
            Mistake(
                "upper end of the piece",
                "You give back the upper end of each piece. The middle is never further off than half of it.",
                _grey(value=lambda t, levels: (t + 1) / levels),
            ),
            Mistake(
                "black and white kept",
                "You divide by levels - 1, which brings black and white back as they were and moves the "
                "others towards the ends. The value of a token is the middle of its piece.",
                _grey(value=lambda t, levels: t / (levels - 1)),
            ),
        ),
    )
)

# What a pixel may see


def _visible(
    sees: Callable[[Tensor, Tensor, int, int, int, int], Tensor] = lambda r, c, row, column, h, w: (
        r * w + c < row * w + column
    ),
) -> Callable[[int, int, int, int], Tensor]:
    """True at the pixels that come earlier in raster order, with something changed."""

    def visible(height: int, width: int, row: int, column: int) -> Tensor:
        r, c = torch.arange(height)[:, None], torch.arange(width)[None, :]
        return sees(r, c, row, column, height, width).expand(height, width)

    return visible


register(
    Exercise(
        name="image_gpt.visible",
        reference=_visible(),
        inputs=lambda g: [(4, 5, 2, 1), (3, 3, 1, 2), (2, 6, 0, 4), (5, 2, 3, 0), (3, 4, 0, 0)],
        mistakes=(
            Mistake(
                "the pixel itself",
                "Your pixel sees itself. It is what is being asked for: whoever reads it has nothing left to "
                "predict.",
                _visible(lambda r, c, row, column, h, w: r * w + c <= row * w + column),
            ),
            Mistake(
                "above and to the left only",
                "You show the rectangle above and to the left. The rows above have been written to their "
                "ends, so that what stands above and to the right is known as well.",
                _visible(
                    lambda r, c, row, column, h, w: (r <= row) & (c <= column) & ((r < row) | (c < column))
                ),
            ),
            Mistake(
                "column by column",
                "You write the image column by column. Raster order goes through the rows.",
                _visible(lambda r, c, row, column, h, w: c * h + r < column * h + row),
            ),
            Mistake(
                "the future",
                "You show what comes after the pixel and hide what came before it.",
                _visible(lambda r, c, row, column, h, w: r * w + c > row * w + column),
            ),
            Mistake(
                "everything else",
                "You hide the pixel alone, as BERT does with a word. A model that writes pixel after pixel "
                "has not written the later ones.",
                _visible(lambda r, c, row, column, h, w: (r != row) | (c != column)),
            ),
            Mistake(
                "rows above only",
                "The rows above are there, and what stands to the left in the same row is missing.",
                _visible(lambda r, c, row, column, h, w: (r < row) & (c >= 0)),
            ),
            Mistake(
                "own row only",
                "Your pixel sees its own row and not those above. To the model the image is one sequence, "
                "which does not begin anew with each row.",
                _visible(lambda r, c, row, column, h, w: (r == row) & (c < column)),
            ),
            Mistake(
                "rows of the wrong length",
                "You number the pixels by row times height plus column. Between a pixel and the one below it "
                "lies a row, which is as long as the image is wide.",
                _visible(lambda r, c, row, column, h, w: r * h + c < row * h + column),
            ),
        ),
    )
)

# Bits per pixel


def _log_p(Z: Tensor, tokens: Tensor, dim: int = 1) -> Tensor:
    return Z.log_softmax(dim).gather(1, tokens[:, None])[:, 0]


def _bits(
    mean: Callable[[Tensor], Tensor] = lambda log_p: log_p.mean(),
    unit: Callable[[Tensor], Tensor] = lambda nats: nats / math.log(2),
    dim: int = 1,
) -> Callable[[Tensor, Tensor], Tensor]:
    """-mean log2 p(pixel), with something changed."""
    return lambda Z, tokens: unit(-mean(_log_p(Z, tokens, dim)))


def _bits_inputs(g: torch.Generator) -> list[tuple]:
    def draw(b: int, levels: int, n: int) -> tuple:
        Z = 2 * torch.randn(b, levels, n, generator=g)
        return Z, torch.randint(levels, (b, n), generator=g)

    return [draw(3, 4, 6), draw(2, 16, 9), draw(5, 5, 5), draw(1, 2, 4)]


register(
    Exercise(
        name="image_gpt.bits_per_pixel",
        reference=_bits(),
        inputs=_bits_inputs,
        mistakes=(
            Mistake(
                "nats for bits",
                "These are nats. A bit is ln 2 nats, 0.69 of one: divide by it.",
                _bits(unit=lambda nats: nats),
            ),
            Mistake(
                "multiplied by ln 2",
                "You multiply by ln 2. A bit is smaller than a nat, so there are more of them: divide.",
                _bits(unit=lambda nats: nats * math.log(2)),
            ),
            Mistake(
                "per image",
                "These are bits per image. They grow with its size; divide by the number of pixels.",
                _bits(mean=lambda log_p: log_p.sum(1).mean()),
            ),
            Mistake(
                "of the whole batch",
                "You add up the bits of all pixels of all images. Their mean is wanted.",
                _bits(mean=lambda log_p: log_p.sum()),
            ),
            Mistake(
                "logarithm of the mean",
                "You average probabilities and take the logarithm at the end. The cost of a row of pixels is "
                "the logarithm of a product: average the logarithms.",
                _bits(mean=lambda log_p: log_p.exp().mean().log()),
            ),
            Mistake(
                "perplexity",
                "This is the perplexity, the number of levels among which the model hesitates. Bits are its "
                "logarithm to base 2.",
                _bits(unit=torch.exp),
            ),
            Mistake(
                "sign forgotten",
                "Your bits are negative. Log-probabilities are; their negatives are what a pixel costs.",
                _bits(unit=lambda nats: -nats / math.log(2)),
            ),
            Mistake(
                "softmax over the pixels",
                "Your probabilities sum to one over the pixels. A pixel is a column of Z, and its "
                "distribution over the levels runs down axis 1.",
                _bits(dim=2),
            ),
            Mistake(
                "shifted once more",
                "You compare column n with pixel n + 1. By the start token, which stands before the first "
                "pixel, column n of Z is about pixel n already.",
                lambda Z, tokens: _bits()(Z[:, :, :-1], tokens[:, 1:]),
            ),
        ),
    )
)

# The previous pixel


def _previous_pixel(
    add: float = 1.0,
    pairs: Callable[[Tensor, int], tuple[Tensor, Tensor]] = lambda tokens, levels: (
        torch.cat([torch.full_like(tokens[:, :1], levels), tokens[:, :-1]], dim=1).flatten(),
        tokens.flatten(),
    ),
    share: Callable[[Tensor], Tensor] = lambda counts: counts / counts.sum(0),
) -> Callable[[Tensor, int], Tensor]:
    """(count + 1) / (count of the previous + levels), levels x (levels + 1), with something changed."""

    def previous_pixel(tokens: Tensor, levels: int) -> Tensor:
        old, new = pairs(tokens, levels)
        ones = torch.ones(len(old))
        counts = torch.zeros(levels, levels + 1).index_put((new, old), ones, accumulate=True)
        return share(counts + add)

    return previous_pixel


def _within(tokens: Tensor, levels: int) -> tuple[Tensor, Tensor]:
    return tokens[:, :-1].flatten(), tokens[:, 1:].flatten()


def _through_all(tokens: Tensor, levels: int) -> tuple[Tensor, Tensor]:
    flat = tokens.flatten()
    return torch.cat([torch.tensor([levels]), flat[:-1]]), flat


def _unnormalised(tokens: Tensor, levels: int) -> Tensor:
    counts = _previous_pixel(add=0.0, share=lambda counts: counts)(tokens, levels)
    return (counts + 1) / (counts.sum(0) + 1)


def _seen_only(tokens: Tensor, levels: int) -> Tensor:
    counts = _previous_pixel(add=0.0, share=lambda counts: counts)(tokens, levels)
    return counts / counts.sum(0).clamp(min=1)


def _image_rows(g: torch.Generator) -> list[tuple]:
    # the last level is seen nowhere in the second batch
    rows = [torch.randint(top, (b, n), generator=g) for b, n, top in ((3, 9, 3), (4, 8, 4), (1, 12, 6))]
    return [(row, levels) for row, levels in zip(rows, (3, 5, 6), strict=True)]


register(
    Exercise(
        name="image_gpt.previous_pixel",
        reference=_previous_pixel(),
        inputs=_image_rows,
        mistakes=(
            Mistake(
                "next pixel down, previous across, exchanged",
                "In your table the next pixel goes across and the previous down. What is conditioned on is "
                "the column here, and a column sums to one.",
                lambda tokens, levels: _previous_pixel()(tokens, levels).T,
            ),
            Mistake(
                "normalised along the rows",
                "Your rows sum to one, which asks what came before a pixel. Each column, a previous pixel, "
                "has a distribution over the next.",
                _previous_pixel(share=lambda counts: counts / counts.sum(1, keepdim=True)),
            ),
            Mistake(
                "all pairs together",
                "You divide by the number of all pairs: these are joint probabilities. Given the previous "
                "pixel, its column sums to one.",
                _previous_pixel(share=lambda counts: counts / counts.sum()),
            ),
            Mistake(
                "add-one forgotten",
                "You do not add the ones. A pair that was never seen has probability 0 then, and costs "
                "infinitely many bits when it comes; a level that was never seen gives 0/0.",
                _previous_pixel(add=0.0),
            ),
            Mistake(
                "add-one forgotten, and 0/0 avoided",
                "You avoid 0/0, and pairs that were never seen still have probability 0: the first of them "
                "costs infinitely many bits. Add one to each count.",
                _seen_only,
            ),
            Mistake(
                "one added below instead of `levels`",
                "You add one to every count and one to the total, so that the columns sum to more than one. "
                "A one is added to each of `levels` counts: their total grows by `levels`.",
                _unnormalised,
            ),
            Mistake(
                "the first pixels not counted",
                "Your last column is uniform. What stands first in an image follows the start token, whose "
                "number is `levels`: count that, too.",
                _previous_pixel(pairs=_within),
            ),
            Mistake(
                "pairs across images",
                "You run the images together, so that the last pixel of one stands before the first of the "
                "next. Each image begins anew, with the start token.",
                _previous_pixel(pairs=_through_all),
            ),
        ),
    )
)

# What a hidden state knows


def _ridge(
    targets: Callable[[Tensor, int], Tensor] = lambda labels, classes: torch.nn.functional.one_hot(
        labels, classes
    ).T.float(),
    weight: Callable[[float, int], float] = lambda lam, n: lam,
    stack: Callable[[Tensor, Tensor], tuple[Tensor, ...]] = lambda H, ones: (H, ones),
    bias_too: bool = True,
) -> Callable[[Tensor, Tensor, int, float], Tensor]:
    """Y G^T (G G^T + lambda I)^-1 with G = [H; 1], with something changed; in float64."""

    def linear_probe(H: Tensor, labels: Tensor, classes: int, lam: float) -> Tensor:
        G = torch.cat(stack(H, torch.ones(1, H.shape[1]))).double()
        penalty = torch.eye(len(G), dtype=torch.float64)
        if not bias_too:
            penalty[-1, -1] = 0
        Y = targets(labels, classes).double()
        gram = G @ G.T + weight(lam, H.shape[1]) * penalty
        return (Y @ G.T @ torch.linalg.inv(gram)).float()

    return linear_probe


def _plus_minus(labels: Tensor, classes: int) -> Tensor:
    return 2 * torch.nn.functional.one_hot(labels, classes).T.float() - 1


def _probe_inputs(g: torch.Generator) -> list[tuple]:
    def draw(d: int, n: int, classes: int, lam: float) -> tuple:
        H = torch.randn(d, n, generator=g) + 0.5
        return H, torch.randint(classes, (n,), generator=g), classes, lam

    return [draw(3, 12, 3, 1.0), draw(5, 20, 4, 0.3), draw(2, 9, 2, 5.0), draw(6, 15, 5, 2.0)]


register(
    Exercise(
        name="image_gpt.linear_probe",
        reference=_ridge(),
        inputs=_probe_inputs,
        tolerance=1e-4,
        mistakes=(
            Mistake(
                "no bias",
                "Your W has D columns: the row of ones is missing, and with it the bias. All your scores are "
                "0 at the origin.",
                _ridge(stack=lambda H, ones: (H,)),
            ),
            Mistake(
                "ones above",
                "Your row of ones stands above H, so that the bias is the first column of W. Let it be the "
                "last.",
                _ridge(stack=lambda H, ones: (ones, H)),
            ),
            Mistake(
                "transposed",
                "Your W is (D + 1) x classes. Here states are columns, and W stands to the left of them.",
                lambda H, labels, classes, lam: _ridge()(H, labels, classes, lam).T,
            ),
            Mistake(
                "lambda forgotten",
                "The penalty is missing. Without it the matrix cannot be inverted where there are fewer "
                "images than features, and is nearly singular where there are hardly more.",
                _ridge(weight=lambda lam, n: 0.0),
            ),
            Mistake(
                "lambda times the number of images",
                "Your penalty is N times as strong: this minimises the mean of the squares and the penalty. "
                "Here it is their sum.",
                _ridge(weight=lambda lam, n: lam * n),
            ),
            Mistake(
                "lambda squared",
                "You add lambda squared. The penalty is lambda times the squares of W, and its derivative "
                "has lambda in it once.",
                _ridge(weight=lambda lam, n: lam**2),
            ),
            Mistake(
                "bias without its penalty",
                "You leave the bias out of the penalty, which is good practice and not what was asked: here "
                "all entries of W are penalised alike.",
                _ridge(bias_too=False),
            ),
            Mistake(
                "labels as numbers",
                "You fit the label as a number, as if a 9 were three times a 3. Each class has a row of its "
                "own, 1 for its images and 0 for the others.",
                _ridge(lambda labels, classes: labels[None].float()),
            ),
            Mistake(
                "minus one for the others",
                "Your targets are 1 and -1. They are 1 for the class of an image and 0 for the others.",
                _ridge(_plus_minus),
            ),
        ),
    )
)

# The axes of a spectrogram


def _axes(
    frames: Callable[[int, int, int], int] = lambda samples, frame, hop: 1 + (samples - frame) // hop,
    time: Callable[[Tensor, int, int, int], Tensor] = lambda n, rate, frame, hop: (
        (n * hop + frame / 2) / rate
    ),
    frequency: Callable[[Tensor, int, int], Tensor] = lambda k, rate, frame: k * rate / frame,
    bins: Callable[[int], int] = lambda frame: frame // 2 + 1,
) -> Callable[[int, int, int, int], tuple[Tensor, Tensor]]:
    """The middles of the frames in seconds and the DFT's frequencies in hertz, with something changed."""

    def axes(samples: int, rate: int, frame: int, hop: int) -> tuple[Tensor, Tensor]:
        n, k = (torch.arange(m).double() for m in (frames(samples, frame, hop), bins(frame)))
        return time(n, rate, frame, hop).float(), frequency(k, rate, frame).float()

    return axes


register(
    Exercise(
        name="image_gpt.axes",
        reference=_axes(),
        inputs=lambda g: [
            (8000, 8000, 256, 128),
            (1000, 500, 100, 30),
            (77, 10, 16, 5),
            (64, 32, 64, 16),
            (4000, 16000, 400, 160),
        ],
        mistakes=(
            Mistake(
                "as many frames as hops",
                "You count a frame for each hop. The last frame has to end within the signal, so that the "
                "hops have samples - frame samples to go.",
                _axes(frames=lambda samples, frame, hop: samples // hop),
            ),
            Mistake(
                "one frame too few",
                "You count the hops. There is one frame more than there are hops between frames.",
                _axes(frames=lambda samples, frame, hop: (samples - frame) // hop),
            ),
            Mistake(
                "a frame for the rest",
                "You have a frame more, which would reach beyond the end of the signal. A rest that is "
                "shorter than a frame is left out.",
                _axes(frames=lambda samples, frame, hop: 1 + math.ceil((samples - frame) / hop)),
            ),
            Mistake(
                "frame's beginning",
                "These are the times at which the frames begin. What a frame shows lies around its middle, "
                "half a frame later.",
                _axes(time=lambda n, rate, frame, hop: n * hop / rate),
            ),
            Mistake(
                "half a hop instead of half a frame",
                "You add half a hop. The middle of a frame lies half a *frame* after its beginning, however "
                "far the next is away.",
                _axes(time=lambda n, rate, frame, hop: (n + 0.5) * hop / rate),
            ),
            Mistake(
                "frames side by side",
                "You place the frames side by side. They overlap: from one to the next it is a hop.",
                _axes(time=lambda n, rate, frame, hop: (n + 0.5) * frame / rate),
            ),
            Mistake(
                "samples for seconds",
                "Your times are in samples. There are `rate` samples in a second.",
                _axes(time=lambda n, rate, frame, hop: n * hop + frame / 2),
            ),
            Mistake(
                "frequencies up to the rate",
                "Your frequencies go up to the rate. Above half of it a real signal's spectrum only repeats "
                "itself backwards: F = frame // 2 + 1 bins are kept.",
                _axes(bins=lambda frame: frame),
            ),
            Mistake(
                "rate shared among the kept bins",
                "You divide the rate by the number of bins kept. Bin k is a wave that goes k times into the "
                "*frame*: k * rate / frame.",
                _axes(frequency=lambda k, rate, frame: k * rate / len(k)),
            ),
            Mistake(
                "bins counted from one",
                "Your first bin is the slowest wave. Bin 0 is there as well, the mean, at 0 Hz.",
                _axes(frequency=lambda k, rate, frame: (k + 1) * rate / frame),
            ),
            Mistake(
                "bin numbers for hertz",
                "Your frequencies are numbers of bins. Bin k goes k times into a frame, which lasts "
                "frame / rate seconds.",
                _axes(frequency=lambda k, rate, frame: k),
            ),
        ),
    )
)

# Mel bands


def _to_mel(f: Tensor) -> Tensor:
    return 2595 * (1 + f / 700).log10()


def _to_hertz(m: Tensor) -> Tensor:
    return 700 * (10 ** (m / 2595) - 1)


def _bank(
    to_mel: Callable[[Tensor], Tensor] = _to_mel,
    to_hertz: Callable[[Tensor], Tensor] = _to_hertz,
    more: int = 2,
    step: Callable[[int, int], float] = lambda rate, frame: rate / frame,
    axis: Callable[[Tensor], Tensor] = lambda f: f,
    slopes: Callable[[Tensor, Tensor], Tensor] = torch.minimum,
    least: float = 0.0,
    area: bool = False,
) -> Callable[[int, int, int], Tensor]:
    """Triangles between corners that are equally far apart in mel, n_mels x F, with something changed."""

    def mel_filterbank(n_mels: int, frame: int, rate: int) -> Tensor:
        top = to_mel(torch.tensor(rate / 2, dtype=torch.float64)).item()  # 0 Hz is 0 mel
        corners = axis(to_hertz(torch.linspace(0, top, n_mels + more, dtype=torch.float64)))
        f = axis(torch.arange(frame // 2 + 1).double() * step(rate, frame))
        left, middle, right = (c[:, None] for c in (corners[:-2], corners[1:-1], corners[2:]))
        bank = slopes((f - left) / (middle - left), (right - f) / (right - middle)).clamp(min=least)
        return (bank * 2 / (right - left) if area else bank).float()

    return mel_filterbank


def _plateau(rising: Tensor, falling: Tensor) -> Tensor:
    return rising.clamp(0, 1) * (falling > 0)


register(
    Exercise(
        name="image_gpt.mel_filterbank",
        reference=_bank(),
        inputs=lambda g: [(4, 64, 8000), (10, 256, 16000), (3, 32, 4000), (6, 128, 11025)],
        mistakes=(
            Mistake(
                "corners equally far apart in hertz",
                "Your corners are equally far apart in hertz, so that all triangles are equally wide. Space "
                "them in mel, and turn them into hertz afterwards.",
                _bank(lambda f: f, lambda m: m),
            ),
            Mistake(
                "logarithm and power of different bases",
                "You take a natural logarithm on the way to mel and a power of ten on the way back, which "
                "is no inverse: the corners lie far beyond half the rate.",
                _bank(lambda f: 2595 * (1 + f / 700).log()),
            ),
            Mistake(
                "two bands too few",
                "You have n_mels corners and so n_mels - 2 triangles: each needs a corner on both sides. "
                "Take n_mels + 2.",
                _bank(more=0),
            ),
            Mistake(
                "a band too few",
                "You have n_mels + 1 corners, enough for bands that lie side by side. Triangles overlap, and "
                "need one corner more.",
                _bank(more=1),
            ),
            Mistake(
                "bands in columns",
                "Your bands are columns. The bank stands to the left of a spectrum, F x N: it is n_mels x F.",
                lambda n_mels, frame, rate: _bank()(n_mels, frame, rate).T,
            ),
            Mistake(
                "rate shared among the kept bins",
                "Your bins are rate / F apart, so that the last of them lies far above half the rate. They "
                "are rate / frame apart.",
                _bank(step=lambda rate, frame: rate / (frame // 2 + 1)),
            ),
            Mistake(
                "negative outside",
                "Outside its triangle a line goes on below zero. A band counts nothing there: clamp at 0.",
                _bank(least=-math.inf),
            ),
            Mistake(
                "no falling side",
                "Your bands rise and then stay at 1 until they end. Each falls again from its middle corner "
                "to its right one.",
                _bank(slopes=_plateau),
            ),
            Mistake(
                "straight in mel",
                "Your sides are straight in mel, which some programs do. Here they are straight in hertz: "
                "the corners come from the mel scale, and nothing else.",
                _bank(axis=_to_mel),
            ),
            Mistake(
                "equal areas",
                "You divide by the bands' widths, as Slaney's version does, so that all have the same area. "
                "Here all have the same height, 1.",
                _bank(area=True),
            ),
        ),
    )
)
