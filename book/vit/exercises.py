"""The code exercises of the chapter on the vision transformer, with the mistakes that readers make in them.

Tokens are columns, as in the text: tokens and tables of positions are D x N, and an attention matrix has
the keys down, the queries across, and columns that sum to one. Images are (C, H, W).
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from tformer_book.kit.exercises.registry import exercise


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


patch_embedding.add_mistakes("""
a single reshape | => lambda image, W, b, size: W @ image.reshape(-1, W.shape[1]).T + b[:, None]
    You reshape the image into its patches. A reshape moves no number, so your runs of C p p numbers are
    stripes of the image's memory and no squares.
stride one | stride=size => stride=1
    Your kernel moves by one pixel at a time, so the patches overlap and there are far too many. Patches
    lie side by side: the stride is their size.
channels last within a patch
    | W.reshape(len(W), -1, size, size) => W.reshape(len(W), size, size, -1).permute(0, 3, 1, 2)
    In your columns a patch has its pixels one after the other, each with all its channels. The order here
    is channel by channel, and in each the pixels row by row.
kernel turned around | -1, size, size) => -1, size, size).flip(2, 3)
    You turn the kernel by half a turn, as the convolution of signal processing does. What deep learning
    calls a convolution lays the kernel on as it is.
patches column by column | .flatten(1) => .mT.flatten(1)
    Each of your tokens is right, and they stand in the wrong order: patches are numbered as one reads,
    row by row.
""")


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


class_attention.add_mistakes("""
class token does not read itself | torch.cat([c[:, None], X], dim=1) => X
    Your class token reads the patches alone. It is a token like the others: one of its N + 1 keys, and of
    its values, is its own.
every token asks | W_q @ c => W_q @ tokens
    You return an output for each of the N + 1 tokens. The head of the model reads one of them: let the
    class token alone ask.
missing scale | / math.sqrt(len(q)) =>
    The scores are not scaled: divide them by the square root of Dh, the length of the query.
scale by Dh instead of its root | math.sqrt(len(q)) => len(q)
    Your scores are divided by Dh, either at once or by its root twice, for instance in q and again in K^T
    q. Divide once, by the square root: that is their standard deviation.
""")


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


resize_positions.add_mistakes("""
class token dropped | torch.cat([P[:, :1], grid[0].flatten(1)], dim=1) => grid[0].flatten(1)
    The class token's position is gone. It has a place in no grid, and is kept as it is, in front of the
    others.
along the sequence
    | .reshape(1, len(P), *old) => [None]
    | size=new, mode="bicubic" => size=new[0] * new[1], mode="linear"
    You keep the class token and interpolate the others along the sequence. So the end of one row is mixed
    with the beginning of the next: fold them into their grid first.
folded as if tokens were rows | reshape(1, len(P), *old) => reshape(1, *old, len(P)).permute(0, 3, 1, 2)
    You fold P as if a token were a row. Here a token is a column, so the features are the first axis and
    the grid comes after it: D x rows x columns.
rows and columns of the grid exchanged | => lambda P, old, new: resize_positions(P, old[::-1], new[::-1])
    You take the grids as (columns, rows). They are (rows, columns), and tokens are numbered row by row,
    which shows only where an image is not square.
corners aligned | align_corners=False => align_corners=True
    You align the corners, so that the outermost positions stay what they were. Then a step from patch to
    patch is not the same share of the image as its width: patches are areas, and it is the borders of the
    image that are aligned (`align_corners=False`).
""")


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


shift.add_mistakes("""
wrapped around
    | 0 <= y - d < height and 0 <= x - r < width => True
    | y - d, x - r => (y - d) % height, (x - r) % width
    What leaves on one side comes in on the other, as `roll` has it. Zeros come in.
the other direction | => lambda images, down, right: shift(images, -down, -right)
    Your images move up and to the left. With `down` positive, the pixel at row y comes from row y - down.
down and right exchanged | => lambda images, down, right: shift(images, right, down)
    You move by `down` along the width. Rows are the third axis of (B, C, H, W), and columns the fourth.
one shift for the whole batch
    | down.tolist(), right.tolist() => down[:1].tolist() * len(down), right[:1].tolist() * len(right)
    All images move as the first does. Each has its own shift: a batch moved as one shows the model fewer
    places.
""")


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


rollout.add_mistakes("""
last block first | in A.mean(dim=1) => in A.mean(dim=1).flip(0)
    Your product begins with the last block, which is right where tokens are rows. With tokens in columns
    a block multiplies from the right, so the first block's matrix stands leftmost.
skip forgotten | (torch.eye(len(R)) + block) / 2 => block
    You multiply the attention matrices alone. Beside each there is a skip connection, on which a token
    keeps what it was: that is the identity.
rows made to sum to one
    | (torch.eye(len(R)) + block) / 2 => F.normalize(torch.eye(len(R)) + block, p=1, dim=1)
    You divide each row by its sum, as one does where a row is a query. Here a query is a column, and the
    columns of (I + A) / 2 sum to one already: nothing is to be divided.
each head by itself | => lambda A: torch.stack([rollout(head[:, None]) for head in A.unbind(1)]).mean(0)
    You roll out each head by itself and average at the end. A token's heads are joined after every block,
    so the second block reads what all heads of the first have brought.
transposed | return R => return R.T
    The numbers are right and stand transposed: patches that are read go down, and those who read go
    across, so that the columns sum to one.
""")


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


count_parameters.add_mistakes("""
class token or its position forgotten | embedding + d + (n + 1) * d => embedding + (n + 1) * d
    You are D numbers short. Three things have this size and are easily forgotten: the class token, the
    position that it has of its own, and the bias of the patches' embedding.
class token and its position, or the final norm, forgotten | + 2 * d + head => + head
    You are 2D numbers short. Either the class token is missing together with its position, or the norm
    after the last block, which has a gain and a bias.
positions forgotten | + (n + 1) * d =>
    The positions are missing: they are learned, a column of length D for each token.
one channel | channels * patch => patch
    You embed patches of one channel. A patch is C p p numbers.
head's bias forgotten | d * classes + classes => d * classes
    The head has a bias, one number for each class.
""")
