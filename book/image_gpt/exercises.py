"""The code exercises of the chapter on pixels and sound, with the mistakes that readers make in them.

A token is a column: logits are (B, vocab, N), spectra and hidden states D x N, and a table of the next token
has a distribution in each column. Batches of token numbers have an image a row.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tformer_book.kit.exercises.registry import exercise


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


grey_tokens.add_mistakes("""
white one level too high | .clamp(max=levels - 1) =>
    White becomes the number `levels`, and the numbers end at levels - 1: the model's table has no such
    row. Clamp it into the last piece.
column by column | pieces.flatten(1) => pieces.mT.flatten(1)
    Your tokens run down the columns. Raster order is that of reading: the top row first.
stretched over levels - 1
    | (images * levels).long().clamp(max=levels - 1) => (images * (levels - 1)).round().long()
    | (pieces + 0.5) / levels => pieces / (levels - 1)
    You multiply by levels - 1 and round, so black and white have pieces of half the size. It is a common
    choice; here [0, 1] is cut into equal pieces.
lower end of the piece | pieces + 0.5 => pieces
    You give back the lower end of each piece, so images become darker, by half a piece on average, and by
    up to a whole one. The middle is never further off than half of it.
""")


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


visible.add_mistakes("""
the pixel itself | number < => number <=
    Your pixel sees itself. It is what is being asked for: whoever reads it has nothing left to predict.
above and to the left only
    | number < row * width + column => (number % width <= column) & (number < row * width + column)
    You show the rectangle above and to the left. The rows above have been written to their ends, so what
    stands above and to the right is known as well.
column by column
    | reshape(height, width) => reshape(width, height).T
    | row * width + column => column * height + row
    You write the image column by column. Raster order goes through the rows.
the future | number < => number >
    You show what comes after the pixel and hide what came before it.
""")


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


bits_per_pixel.add_mistakes("""
nats for bits | / math.log(2) =>
    These are nats. A bit is ln 2 nats, 0.69 of one: divide by it.
per image | log_p.mean() => log_p.mean() * Z.shape[2]
    These are bits per image. They grow with its size; divide by the number of pixels.
logarithm of the mean | -log_p.mean() / math.log(2) => -log_p.exp().mean().log2()
    You average probabilities and take the logarithm at the end. The cost of a row of pixels is the
    logarithm of a product: average the logarithms.
softmax over the pixels | dim=1 => dim=2
    Your probabilities sum to one over the pixels. A pixel is a column of Z, and its distribution over the
    levels runs down axis 1.
logarithm of a softmax | log_softmax(dim=1) => softmax(dim=1).log()
    Right for moderate logits. Where a probability is too small for a float, its logarithm is minus
    infinity: `log_softmax` computes the logarithm without the probability.
""")


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


completion_loss.add_mistakes("""
all pixels counted | given: => :
    You average over all pixels. The given ones are read, and only those from `given` on are paid for.
the pixel reads itself | model(rows[:, :-1]) => model(x)
    Your model reads the pixel that it is asked for. Put the start token before the row and leave the last
    pixel out: place n has then read the pixels before n.
start token 0 | value=levels => value=0
    Your start token is 0, which is a grey. Its number is `levels`, one more than the lightest grey.
one place too late | given: => given + 1 :
    You leave out the first missing pixel. The start token has moved the rows by one already: place
    `given` is asked for pixel `given`.
""")


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


previous_pixel.add_mistakes("""
next pixel down, previous across, exchanged | counts / counts.sum(dim=0) => (counts / counts.sum(dim=0)).T
    In your table the next pixel goes across and the previous down. What is conditioned on is the column
    here, and a column sums to one.
add-one forgotten | torch.ones(levels, => torch.zeros(levels,
    You do not add the ones. A pair that was never seen has probability 0 then, and costs infinitely many
    bits when it comes; a level that was never seen gives 0/0.
the first pixels not counted
    | torch.cat([start, tokens[:, :-1]], dim=1) => tokens[:, :-1]
    | tokens, before), torch.ones(tokens.shape) => tokens[:, 1:], before), torch.ones(before.shape)
    Your last column is uniform. What stands first in an image follows the start token, whose number is
    `levels`: count that, too.
pairs across images | start = => tokens = tokens.flatten()[None]; start =
    You run the images together, so the last pixel of one stands before the first of the next. Each image
    begins anew, with the start token.
""")


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
    distances = (y[:, None] - (1 - t) * X).square().sum(dim=0)
    posterior = (-distances / (2 * t**2)).softmax(dim=0)
    return (y - X @ posterior) / t


exact_velocity.add_mistakes("""
the image not shrunk | (1 - t) * X => X
    You compare y with the images themselves. At the time t an image x has become (1 - t) x, and the noise
    around that is what a normal density judges.
t for t squared | 2 * t**2 => 2 * t
    You divide the squared distance by 2 t. The noise is t e, whose variance is t squared.
the nearest image alone | X @ posterior => X[:, posterior.argmax()]
    You follow the most likely image. What is learned from squared errors is the mean over all of them.
the noise for the velocity | y - X @ => y - (1 - t) * X @
    You return the mean noise E[e | y]. The velocity is e - x.
exponentials without care | .softmax(dim=0) => .exp(); posterior = posterior / posterior.sum()
    For small t your exponentials are all zero, and 0/0 is no number. Subtract the largest score first, or
    let `softmax` do it.
""")


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


heun_images.add_mistakes("""
Euler's steps | if k > 1: => if False:
    These are Euler's steps: each follows the velocity where it begins. Heun's look once more at the end
    of that step and take the mean of both.
the last step like the others | if k > 1: => if True:
    Your last step asks for the velocity at t = 0, where the exact one divides by zero. Let the last step
    be Euler's.
second velocity at the old place | v(there, => v(x,
    Your second velocity is taken at the later time, but where the step began. Take it where Euler's step
    ends.
second velocity at the old time | v(there, (k - 1) / steps) => v(there, k / steps)
    Your second velocity is taken where Euler's step ends, but at the old time. There the time is t - 1 /
    steps.
not halved | steps)) / 2 => steps))
    You add both velocities, so each of your steps is twice as long. Take their mean.
midpoint | (first + v(there, (k - 1) / steps)) / 2 => v(x - h / 2 * first, (k - 0.5) / steps)
    This is the midpoint rule: one velocity, half a step ahead. Heun takes the mean of the velocities at
    both ends.
midpoint, in the last step too
    | if k > 1: => if True:
    | (first + v(there, (k - 1) / steps)) / 2 => v(x - h / 2 * first, (k - 0.5) / steps)
    These are steps of the midpoint method, which goes by the velocity half a step on. Heun's takes the
    mean of the velocity where the step begins and where Euler's step ends, and the last step is Euler's.
""")


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


linear_probe.add_mistakes("""
no bias | torch.cat([H, torch.ones(1, H.shape[1])]) => H
    Your W has D columns: the row of ones is missing, and with it the bias. All your scores are 0 at the
    origin.
transposed | return W.to(H.dtype) => return W.T.to(H.dtype)
    Your W is (D + 1) x classes. Here states are columns, and W stands to the left of them.
lambda times the number of images | + lam * => + H.shape[1] * lam *
    Your penalty is N times as strong: this minimises the mean of the squares and the penalty. Here it is
    their sum.
labels as numbers | torch.nn.functional.one_hot(labels, classes).T => labels[None]
    You fit the label as a number, as if a 9 were three times a 3. Each class has a row of its own, 1 for
    its images and 0 for the others.
""")


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


axes.add_mistakes("""
one frame too few | 1 + (samples => (samples
    You count the hops. There is one frame more than there are hops between frames.
frame's beginning | (n * hop + frame / 2) / rate => n * hop / rate
    These are the times at which the frames begin. What a frame shows lies around its middle, half a frame
    later.
samples for seconds | (n * hop + frame / 2) / rate => n * hop + frame / 2
    Your times are in samples. There are `rate` samples in a second.
frequencies up to the rate | frame // 2 + 1 => frame
    Your frequencies go up to the rate. Above half of it a real signal's spectrum only repeats itself
    backwards: F = frame // 2 + 1 bins are kept.
""")


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


mel_filterbank.add_mistakes("""
corners equally far apart in hertz
    | 2595 * math.log10(1 + rate / 2 / 700) => rate / 2
    | 700 * (10 ** (mels / 2595) - 1) => mels
    Your corners are equally far apart in hertz, so all triangles are equally wide. Space them in mel, and
    turn them into hertz afterwards.
logarithm and power of different bases | math.log10 => math.log
    You take a natural logarithm on the way to mel and a power of ten on the way back, which is no
    inverse: the corners lie far beyond half the rate.
two bands too few
    | n_mels + 2 => n_mels
    | i + n_mels => i + n_mels - 2
    You have n_mels corners and so n_mels - 2 triangles: each needs a corner on both sides. Take n_mels +
    2.
bands in columns | .clamp(min=0) => .clamp(min=0).T
    Your bands are columns. The bank stands to the left of a spectrum, F x N: it is n_mels x F.
negative outside | .clamp(min=0) =>
    Outside its triangle a line goes on below zero. A band counts nothing there: clamp at 0.
""")
