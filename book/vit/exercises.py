"""The code exercises of the chapter on the vision transformer, with the mistakes that readers make in them.

Tokens are columns, as in the text: tokens and tables of positions are D x N, and an attention matrix has
the keys down, the queries across, and columns that sum to one. Images are (C, H, W).
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from tformer_book.kit.exercises.registry import exercise

# Patches, embedded


def _patch_inputs(g: torch.Generator) -> list[tuple]:
    def draw(channels: int, height: int, width: int, size: int, d: int) -> tuple:
        image = torch.rand(channels, height, width, generator=g)
        W = torch.randn(d, channels * size * size, generator=g) / size
        return image, W, torch.randn(d, generator=g), size

    return [
        draw(3, 8, 12, 4, 5),
        draw(1, 6, 6, 2, 3),
        draw(2, 9, 6, 3, 4),
        draw(3, 4, 4, 4, 2),  # a single patch
        draw(2, 3, 2, 1, 3),  # patches of a pixel
        draw(1, 1, 2, 1, 1),
    ]


@exercise("vit.patch_embedding", inputs=_patch_inputs)
def patch_embedding(image: Tensor, W: Tensor, b: Tensor, size: int) -> Tensor:
    """b + W X of the patches' columns X: image (C, H, W), matrix (D, C size^2), bias (D,) -> (D, N).
    Patches are in reading order, and so are the pixels of each channel of a patch, channel after channel.
    """
    kernels = W.reshape(len(W), -1, size, size)
    grid = F.conv2d(image[None], kernels, b, stride=size)
    return grid[0].flatten(1)


def _patches_read(
    within: tuple[int, ...] = (0, 2, 4), which: tuple[int, ...] = (1, 3)
) -> Callable[[Tensor, Tensor, Tensor, int], Tensor]:
    """The embedding with other orders in a patch and of patches; axes are channel, row, y, column, x."""

    def variant(image: Tensor, W: Tensor, b: Tensor, size: int) -> Tensor:
        channels, height, width = image.shape
        cut = image.reshape(channels, height // size, size, width // size, size)
        return W @ cut.permute(*within, *which).reshape(W.shape[1], -1) + b[:, None]

    return variant


def _patches_convolved(
    image: Tensor, W: Tensor, b: Tensor, size: int, stride: int, padding: int = 0
) -> Tensor:
    kernels = W.reshape(len(W), -1, size, size)
    return F.conv2d(image[None], kernels, b, stride=stride, padding=padding)[0].flatten(1)


def _patches_turned(image: Tensor, W: Tensor, b: Tensor, size: int) -> Tensor:
    turned = W.reshape(len(W), -1, size, size).flip(2, 3).flatten(1)
    return patch_embedding(image, turned, b, size)


patch_embedding.mistake(
    "tokens in rows",
    "Your tokens are rows. In the text's layout each token is a column: D x N.",
    lambda image, W, b, size: patch_embedding(image, W, b, size).T,
)

patch_embedding.mistake(
    "a single reshape",
    "You reshape the image into its patches. A reshape moves no number, so your runs of C p p "
    "numbers are stripes of the image's memory and no squares.",
    lambda image, W, b, size: W @ image.reshape(-1, W.shape[1]).T + b[:, None],
)

patch_embedding.mistake(
    "a single reshape into columns",
    "You reshape the image into C p p rows. A reshape moves no number: the numbers of your "
    "columns come from all over the image, one from each stripe, and form no square.",
    lambda image, W, b, size: W @ image.reshape(W.shape[1], -1) + b[:, None],
)

patch_embedding.mistake(
    "stride one",
    "Your kernel moves by one pixel at a time, so the patches overlap and there are far too "
    "many. Patches lie side by side: the stride is their size.",
    lambda image, W, b, size: _patches_convolved(image, W, b, size, stride=1),
)

patch_embedding.mistake(
    "padded",
    "You pad the image, as one does to keep a picture's size. Patches tile the image as it is.",
    lambda image, W, b, size: _patches_convolved(image, W, b, size, stride=size, padding=size // 2),
)

patch_embedding.mistake(
    "channels last within a patch",
    "In your columns a patch has its pixels one after the other, each with all its channels. The "
    "order here is channel by channel, and in each the pixels row by row.",
    _patches_read(within=(2, 4, 0)),
)

patch_embedding.mistake(
    "pixels of a patch column by column",
    "The pixels of a patch come column by column in your answer. They are read row by row.",
    _patches_read(within=(0, 4, 2)),
)

patch_embedding.mistake(
    "patches column by column",
    "Each of your tokens is right, and they stand in the wrong order: patches are numbered as "
    "one reads, row by row.",
    _patches_read(which=(3, 1)),
)

patch_embedding.mistake(
    "kernel turned around",
    "You turn the kernel by half a turn, as the convolution of signal processing does. What "
    "deep learning calls a convolution lays the kernel on as it is.",
    _patches_turned,
)

patch_embedding.mistake(
    "bias forgotten",
    "The bias is missing: b is added to every token.",
    lambda image, W, b, size: patch_embedding(image, W, 0 * b, size),
)

# What the class token reads


def _class_inputs(g: torch.Generator) -> list[tuple]:
    def draw(d: int, n: int, dh: int) -> tuple:
        c, X = torch.randn(d, generator=g), torch.randn(d, n, generator=g)
        return c, X, *(torch.randn(dh, d, generator=g) for _ in range(3))

    one = torch.ones(1, 1)
    large = torch.tensor([16.0]), torch.tensor([[8.0, 15.9375]]), one, one, one  # scores 256, 128, 255
    return [draw(4, 5, 3), draw(6, 9, 2), draw(3, 1, 5), draw(5, 4, 4), draw(4, 3, 4), draw(1, 1, 1), large]


@exercise("vit.class_attention", inputs=_class_inputs)
def class_attention(c: Tensor, X: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
    """V softmax(K^T q / sqrt(Dh)): class token c (D,), patches X (D, N), matrices (Dh, D) -> (Dh,).
    The query is the class token's, and keys and values are those of all N + 1 tokens, its own the first.
    """
    tokens = torch.cat([c[:, None], X], dim=1)
    q, K, V = W_q @ c, W_k @ tokens, W_v @ tokens
    return V @ (K.T @ q / math.sqrt(len(q))).softmax(dim=0)


def _class_weighted(weights: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """What is read with other weights, made of the scaled scores (N + 1,)."""

    def variant(c: Tensor, X: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
        tokens = torch.cat([c[:, None], X], dim=1)
        return W_v @ tokens @ weights((W_k @ tokens).T @ (W_q @ c) / math.sqrt(len(W_q)))

    return variant


def _class_scaled(factor: Callable[[int, int, int], float]) -> Callable[..., Tensor]:
    """What a query reads that is longer by a factor, made of Dh, D and the number of tokens."""
    return lambda c, X, W_q, W_k, W_v: class_attention(
        c, X, W_q * factor(W_q.shape[0], W_q.shape[1], 1 + X.shape[1]), W_k, W_v
    )


def _patches_alone_read(c: Tensor, X: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
    scores = (W_k @ X).T @ (W_q @ c) / math.sqrt(len(W_q))
    return W_v @ X @ scores.softmax(dim=0)


def _own_value_left_out(c: Tensor, X: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
    scores = (W_k @ torch.cat([c[:, None], X], dim=1)).T @ (W_q @ c) / math.sqrt(len(W_q))
    return W_v @ X @ scores.softmax(dim=0)[1:]


def _all_ask(c: Tensor, X: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
    tokens = torch.cat([c[:, None], X], dim=1)
    scores = (W_k @ tokens).T @ (W_q @ tokens) / math.sqrt(len(W_q))
    return W_v @ tokens @ scores.softmax(dim=0)


def _mean_asks(c: Tensor, X: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
    tokens = torch.cat([c[:, None], X], dim=1)
    scores = (W_k @ tokens).T @ (W_q @ X.mean(dim=1)) / math.sqrt(len(W_q))
    return W_v @ tokens @ scores.softmax(dim=0)


class_attention.mistake(
    "class token does not read itself",
    "Your class token reads the patches alone. It is a token like the others: one of its "
    "N + 1 keys, and of its values, is its own.",
    _patches_alone_read,
)

class_attention.mistake(
    "its own value left out",
    "Your weights count the class token among the keys, and then its value is left out, so that "
    "the weights used do not sum to one.",
    _own_value_left_out,
)

class_attention.mistake(
    "every token asks",
    "You return an output for each of the N + 1 tokens. The head of the model reads one of "
    "them: let the class token alone ask.",
    _all_ask,
)

class_attention.mistake(
    "patches ask the class token",
    "Queries and keys are exchanged: your patches have the queries and the class token the key. "
    "It is the class token that asks.",
    lambda c, X, W_q, W_k, W_v: class_attention(c, X, W_k, W_q, W_v),
)

class_attention.mistake(
    "the mean of the patches asks",
    "Your query comes from the patches' mean. It is the class token's own: W_q times c.",
    _mean_asks,
)

class_attention.mistake(
    "mean of the values",
    "You average all values alike. That is mean pooling; the class token chooses whom it reads, "
    "by the softmax of its scores.",
    _class_weighted(lambda scores: torch.full_like(scores, 1 / len(scores))),
)

class_attention.mistake(
    "missing scale",
    "The scores are not scaled: divide them by the square root of Dh, the length of the query.",
    _class_scaled(lambda dh, d, n: math.sqrt(dh)),
)

class_attention.mistake(
    "scale by Dh instead of its root",
    "Your scores are divided by Dh, either at once or by its root twice, for instance in q and "
    "again in K^T q. Divide once, by the square root: that is their standard deviation.",
    _class_scaled(lambda dh, d, n: 1 / math.sqrt(dh)),
)

class_attention.mistake(
    "scale by the root of D",
    "You divide by the root of D. A score is a sum over the head's Dh features.",
    _class_scaled(lambda dh, d, n: math.sqrt(dh / d)),
)

class_attention.mistake(
    "scale by the number of tokens",
    "You divide by the root of the number of tokens. A score is a sum over Dh features, however "
    "many tokens are read.",
    _class_scaled(lambda dh, d, n: math.sqrt(dh / n)),
)

class_attention.mistake(
    "weights not normalised",
    "You exponentiate the scores and leave it at that. Weights sum to one: divide by their sum.",
    _class_weighted(torch.exp),
)

class_attention.mistake(
    "no maximum subtracted",
    "Right for small scores, NaN for large ones: exp(256) is more than a float can hold. "
    "`softmax` subtracts the largest score first, which changes no weight.",
    _class_weighted(lambda scores: scores.exp() / scores.exp().sum()),
)

# Positions for another image size

Grid = tuple[int, int]


def _position_inputs(g: torch.Generator) -> list[tuple]:
    def draw(d: int, old: Grid, new: Grid) -> tuple:
        return torch.randn(d, 1 + old[0] * old[1], generator=g), old, new

    return [
        draw(5, (3, 3), (6, 6)),
        draw(4, (2, 4), (4, 3)),
        draw(3, (5, 3), (2, 6)),
        draw(6, (4, 4), (3, 3)),
        draw(2, (2, 3), (2, 3)),
        draw(3, (3, 4), (1, 1)),
        draw(2, (1, 1), (2, 3)),
        draw(1, (1, 2), (1, 3)),
    ]


@exercise("vit.resize_positions", inputs=_position_inputs)
def resize_positions(P: Tensor, old: Grid, new: Grid) -> Tensor:
    """The class token's column and the grid interpolated bicubically: (D, 1 + old) -> (D, 1 + new).
    Grids are (rows, columns) in reading order, and corners are not aligned.
    """
    grid = P[:, 1:].reshape(1, len(P), *old)
    grid = F.interpolate(grid, size=new, mode="bicubic", align_corners=False)
    return torch.cat([P[:, :1], grid[0].flatten(1)], dim=1)


def _resized_by(mode: str, **options: bool) -> Callable[[Tensor, Grid, Grid], Tensor]:
    """The table resized by another interpolation."""

    def variant(P: Tensor, old: Grid, new: Grid) -> Tensor:
        grid = F.interpolate(P[:, 1:].reshape(1, len(P), *old), size=new, mode=mode, **options)
        return torch.cat([P[:, :1], grid[0].flatten(1)], dim=1)

    return variant


def _stretched(P: Tensor, n: int) -> Tensor:
    return F.interpolate(P[None], size=n, mode="linear", align_corners=False)[0]


def _folded_as_rows(P: Tensor, old: Grid, new: Grid) -> Tensor:
    grid = P[:, 1:].reshape(*old, len(P)).permute(2, 0, 1).flatten(1)
    return resize_positions(torch.cat([P[:, :1], grid], dim=1), old, new)


def _read_out_by_columns(P: Tensor, old: Grid, new: Grid) -> Tensor:
    first, grid = resize_positions(P, old, new).split([1, new[0] * new[1]], dim=1)
    return torch.cat([first, grid.unflatten(1, new).mT.flatten(1)], dim=1)


resize_positions.mistake(
    "class token dropped",
    "The class token's position is gone. It has a place in no grid, and is kept as it is, in "
    "front of the others.",
    lambda P, old, new: resize_positions(P, old, new)[:, 1:],
)

resize_positions.mistake(
    "class token put last",
    "The class token's column stands last in your table. It comes first, as before.",
    lambda P, old, new: resize_positions(P, old, new).roll(-1, dims=1),
)

resize_positions.mistake(
    "last column taken for the class token's",
    "You keep the last column as the class token's. It is the first.",
    lambda P, old, new: resize_positions(P.roll(1, dims=1), old, new).roll(-1, dims=1),
)

resize_positions.mistake(
    "class token in the interpolation",
    "You stretch the whole table as one sequence, the class token in it. Its column has no "
    "neighbours in the plane, and the patches' have theirs above and below as well.",
    lambda P, old, new: _stretched(P, 1 + new[0] * new[1]),
)

resize_positions.mistake(
    "along the sequence",
    "You keep the class token and interpolate the others along the sequence. So the end of one "
    "row is mixed with the beginning of the next: fold them into their grid first.",
    lambda P, old, new: torch.cat([P[:, :1], _stretched(P[:, 1:], new[0] * new[1])], dim=1),
)

resize_positions.mistake(
    "folded as if tokens were rows",
    "You fold P as if a token were a row. Here a token is a column, so the features are the "
    "first axis and the grid comes after it: D x rows x columns.",
    _folded_as_rows,
)

resize_positions.mistake(
    "rows and columns of the grid exchanged",
    "You take the grids as (columns, rows). They are (rows, columns), and tokens are numbered "
    "row by row, which shows only where an image is not square.",
    lambda P, old, new: resize_positions(P, old[::-1], new[::-1]),
)

resize_positions.mistake(
    "read out column by column",
    "Your grid is right, and you read it out column by column. Tokens are numbered row by row.",
    _read_out_by_columns,
)

resize_positions.mistake(
    "corners aligned",
    "You align the corners, so that the outermost positions stay what they were. Then a step "
    "from patch to patch is not the same share of the image as its width: patches are areas, "
    "and it is the borders of the image that are aligned (`align_corners=False`).",
    _resized_by("bicubic", align_corners=True),
)

resize_positions.mistake(
    "bilinear",
    "This is bilinear interpolation. Bicubic is wanted, which has no kinks.",
    _resized_by("bilinear", align_corners=False),
)

resize_positions.mistake(
    "nearest",
    "You repeat the nearest position, so several patches have the same. Interpolate between them.",
    _resized_by("nearest"),
)

resize_positions.mistake(
    "smoothed before it shrinks",
    "You smooth the grid where it shrinks (`antialias=True`), as one does with pictures. Some "
    "libraries do; here it is left out.",
    _resized_by("bicubic", align_corners=False, antialias=True),
)

# Shifts


def _shift_inputs(g: torch.Generator) -> list[tuple]:
    def images(*shape: int) -> Tensor:
        return torch.rand(shape, generator=g) + 0.1  # no pixel is zero

    def draw(b: int, channels: int, height: int, width: int, most: int) -> tuple:
        moves = (torch.randint(-most, most + 1, (b,), generator=g) for _ in range(2))
        return images(b, channels, height, width), *moves

    three = images(3, 1, 5, 4)
    return [
        (three, torch.tensor([2, -1, 0]), torch.tensor([1, 0, -2])),
        draw(4, 3, 6, 5, 3),
        draw(5, 1, 4, 7, 2),
        (three, torch.zeros(3, dtype=torch.long), torch.zeros(3, dtype=torch.long)),
        # by all but one pixel, by all, and by more: nothing is left
        (images(6, 2, 3, 4), torch.tensor([2, 3, 4, -2, -3, -7]), torch.tensor([0, 1, 0, 0, 0, 1])),
        (images(6, 1, 4, 3), torch.tensor([1, 0, 0, 0, 0, 1]), torch.tensor([2, 3, 5, -2, -3, -4])),
        (images(1, 1, 1, 2), torch.tensor([0]), torch.tensor([1])),
        (images(1, 1, 2, 1), torch.tensor([-1]), torch.tensor([0])),
    ]


@exercise("vit.shift", inputs=_shift_inputs)
def shift(images: Tensor, down: Tensor, right: Tensor) -> Tensor:
    """Images (B, C, H, W), each moved `down` and `right` by its own numbers (B,) of pixels; zeros come in.
    The answer has the images' shape. The numbers are whole and may be negative, or larger than the image.
    """
    moved = torch.zeros_like(images)
    _, _, height, width = images.shape
    for new, image, d, r in zip(moved, images, down.tolist(), right.tolist(), strict=True):
        for y in range(height):
            for x in range(width):
                if 0 <= y - d < height and 0 <= x - r < width:
                    new[:, y, x] = image[:, y - d, x - r]
    return moved


def _moved_from(place: Callable[[Tensor, int], Tensor]) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Images moved where a place outside, given with the length of its axis, is read from one inside."""

    def variant(images: Tensor, down: Tensor, right: Tensor) -> Tensor:
        height, width = images.shape[2:]
        rows = place(torch.arange(height) - down[:, None], height)
        columns = place(torch.arange(width) - right[:, None], width)
        triples = zip(images, rows, columns, strict=True)
        return torch.stack([image[:, y][:, :, x] for image, y, x in triples])

    return variant


shift.mistake(
    "wrapped around",
    "What leaves on one side comes in on the other, as `roll` has it. Zeros come in.",
    _moved_from(lambda place, length: place % length),
)

shift.mistake(
    "edges repeated",
    "You repeat the outermost row or column where nothing comes in. Zeros come in.",
    _moved_from(lambda place, length: place.clamp(0, length - 1)),
)

shift.mistake(
    "the other direction",
    "Your images move up and to the left. With `down` positive, the pixel at row y comes from row y - down.",
    lambda images, down, right: shift(images, -down, -right),
)

shift.mistake(
    "down and right exchanged",
    "You move by `down` along the width. Rows are the third axis of (B, C, H, W), and columns the fourth.",
    lambda images, down, right: shift(images, right, down),
)

shift.mistake(
    "one shift for the whole batch",
    "All images move as the first does. Each has its own shift: a batch moved as one shows the "
    "model fewer places.",
    lambda images, down, right: shift(images, down[:1].expand_as(down), right[:1].expand_as(right)),
)

shift.mistake(
    "down only",
    "Your images move down by the right number and do not move sideways.",
    lambda images, down, right: shift(images, down, 0 * right),
)

shift.mistake(
    "right only",
    "Your images move sideways by the right number and do not move down.",
    lambda images, down, right: shift(images, 0 * down, right),
)

shift.mistake(
    "negative shifts left out",
    "Your images stay where a number is negative. They move up or to the left by that many pixels.",
    lambda images, down, right: shift(images, down.clamp(min=0), right.clamp(min=0)),
)

# Attention rollout


def _rollout_inputs(g: torch.Generator) -> list[tuple]:
    sizes = ((2, 1, 3), (3, 2, 4), (1, 3, 5), (4, 2, 6), (1, 1, 2), (2, 1, 1))
    return [(torch.randn(m, h, n, n, generator=g).mul(2).softmax(2),) for m, h, n in sizes]


@exercise("vit.rollout", inputs=_rollout_inputs)
def rollout(A: Tensor) -> Tensor:
    """The product of (I + mean over heads of A_m) / 2, the first block leftmost: (M, H, N, N) -> (N, N).
    Keys are down and queries across, in A and in the answer, so columns sum to one.
    """
    R = torch.eye(A.shape[-1])
    for block in A.mean(dim=1):
        R = R @ (torch.eye(len(R)) + block) / 2
    return R


def _rolled(
    heads: Callable[[Tensor], Tensor] = lambda A: A.mean(1),
    block: Callable[[Tensor], Tensor] = lambda A: (torch.eye(len(A)) + A) / 2,
    compose: Callable[[Tensor, Tensor], Tensor] = torch.matmul,
) -> Callable[[Tensor], Tensor]:
    """Rollout with something changed."""

    def variant(A: Tensor) -> Tensor:
        first, *others = (block(joined) for joined in heads(A))
        for other in others:
            first = compose(first, other)
        return first

    return variant


rollout.mistake(
    "last block first",
    "Your product begins with the last block, which is right where tokens are rows. With tokens "
    "in columns a block multiplies from the right, so the first block's matrix stands leftmost.",
    lambda A: rollout(A.flip(0)),
)

rollout.mistake(
    "skip forgotten",
    "You multiply the attention matrices alone. Beside each there is a skip connection, on which "
    "a token keeps what it was: that is the identity.",
    _rolled(block=lambda A: A),
)

rollout.mistake(
    "rows made to sum to one",
    "You divide each row by its sum, as one does where a row is a query. Here a query is a column, and the "
    "columns of (I + A) / 2 sum to one already: nothing is to be divided.",
    _rolled(block=lambda A: (torch.eye(len(A)) + A) / (torch.eye(len(A)) + A).sum(1, keepdim=True)),
)

rollout.mistake(
    "identity added and not shared",
    "You add the identity and do not halve. The columns of I + A sum to two, and those of the "
    "product to two to the power of the number of blocks.",
    lambda A: rollout(A) * 2 ** len(A),
)

rollout.mistake(
    "attention alone halved",
    "You add the identity whole and halve the attention, so the columns sum to more than one. "
    "Half of a token passes on the skip: halve their sum.",
    _rolled(block=lambda A: torch.eye(len(A)) + A / 2),
)

rollout.mistake(
    "heads summed",
    "You add up the heads. Their mean has columns that sum to one.",
    _rolled(heads=lambda A: A.sum(1)),
)

rollout.mistake(
    "heads' greatest weights",
    "You take the greatest weight over the heads, as some variants do. Then columns no longer "
    "sum to one: take the mean.",
    _rolled(heads=lambda A: A.amax(1)),
)

rollout.mistake(
    "each head by itself",
    "You roll out each head by itself and average at the end. A token's heads are joined after "
    "every block, so the second block reads what all heads of the first have brought.",
    lambda A: torch.stack([rollout(head[:, None]) for head in A.unbind(1)]).mean(0),
)

rollout.mistake(
    "blocks averaged",
    "You average over the blocks. They come one after the other: their matrices are multiplied.",
    lambda A: rollout(A.mean(0, keepdim=True)),
)

rollout.mistake(
    "last block alone",
    "You show the last block alone. Its tokens are mixtures already, and not the patches whose "
    "places they stand at.",
    lambda A: rollout(A[-1:]),
)

rollout.mistake(
    "entries multiplied",
    "You multiply entry by entry. A way through two blocks may pass through any token between "
    "them, and a matrix product sums over these.",
    _rolled(compose=torch.mul),
)

rollout.mistake(
    "transposed",
    "The numbers are right and stand transposed: patches that are read go down, and those who "
    "read go across, so that the columns sum to one.",
    lambda A: rollout(A).T,
)

# Counting


def _count_inputs(g: torch.Generator) -> list[tuple]:
    return [
        (224, 16, 3, 768, 3072, 12, 1000),
        (28, 4, 1, 64, 128, 3, 10),
        (8, 2, 2, 5, 7, 1, 3),
        (12, 12, 1, 6, 11, 2, 2),  # a single patch
        (6, 2, 3, 4, 9, 0, 5),  # no block
    ]


@exercise("vit.count_parameters", inputs=_count_inputs)
def count_parameters(image: int, patch: int, channels: int, d: int, f: int, blocks: int, classes: int) -> int:
    """How many numbers a ViT learns that reads square images, a whole number.
    Patch embedding, class token, positions, blocks, the norm after the last of them, and head; linear maps
    have a bias, norms a gain and a bias.
    """
    n = (image // patch) ** 2
    embedding = channels * patch**2 * d + d
    block = 4 * (d * d + d) + d * f + f + f * d + d + 4 * d  # the last 4 d are the norms'
    head = d * classes + classes
    return embedding + d + (n + 1) * d + blocks * block + 2 * d + head


def _count_less(missing: Callable[..., int]) -> Callable[..., int]:
    """The count without what is forgotten, made of the sizes."""
    return lambda *sizes: count_parameters(*sizes) - missing(*sizes)


count_parameters.mistake(
    "class token or its position forgotten",
    "You are D numbers short. Three things have this size and are easily forgotten: the class "
    "token, the position that it has of its own, and the bias of the patches' embedding.",
    _count_less(lambda image, patch, channels, d, f, blocks, classes: d),
)

count_parameters.mistake(
    "class token and its position, or the final norm, forgotten",
    "You are 2D numbers short. Either the class token is missing together with its position, or "
    "the norm after the last block, which has a gain and a bias.",
    _count_less(lambda image, patch, channels, d, f, blocks, classes: 2 * d),
)

count_parameters.mistake(
    "positions forgotten",
    "The positions are missing: they are learned, a column of length D for each token.",
    _count_less(lambda image, patch, channels, d, f, blocks, classes: ((image // patch) ** 2 + 1) * d),
)

count_parameters.mistake(
    "tokens along one side only",
    "You have a position for each patch along one side. The image is square: there are "
    "(image // patch) squared of them.",
    _count_less(
        lambda image, patch, channels, d, f, blocks, classes: ((image // patch) ** 2 - image // patch) * d
    ),
)

count_parameters.mistake(
    "one channel",
    "You embed patches of one channel. A patch is C p p numbers.",
    _count_less(lambda image, patch, channels, d, f, blocks, classes: (channels - 1) * patch**2 * d),
)

count_parameters.mistake(
    "biases of the blocks forgotten",
    "The biases of the blocks are missing: each linear map has one, as long as its output.",
    _count_less(lambda image, patch, channels, d, f, blocks, classes: blocks * (5 * d + f)),
)

count_parameters.mistake(
    "biases of the MLP forgotten",
    "The biases of the blocks' MLPs are missing: the first is F long, the second D.",
    _count_less(lambda image, patch, channels, d, f, blocks, classes: blocks * (d + f)),
)

count_parameters.mistake(
    "norms of the blocks forgotten",
    "You are 4D numbers short in each block. Either its two norms are missing, each with a gain and "
    "a bias, or the biases of the four matrices of attention.",
    _count_less(lambda image, patch, channels, d, f, blocks, classes: blocks * 4 * d),
)

count_parameters.mistake(
    "head forgotten",
    "The head is missing: a matrix from D to the classes, and a bias.",
    _count_less(lambda image, patch, channels, d, f, blocks, classes: d * classes + classes),
)

count_parameters.mistake(
    "head's bias forgotten",
    "The head has a bias, one number for each class.",
    _count_less(lambda image, patch, channels, d, f, blocks, classes: classes),
)
