"""The code exercises of the chapter on the vision transformer, with the mistakes that readers make in them.

Tokens are columns, as in the text: tokens and tables of positions are D x N, and an attention matrix has
the keys down, the queries across, and columns that sum to one. Images are (C, H, W).
"""

from collections.abc import Callable
from functools import reduce

import torch
from torch import Tensor
from torch.nn import functional as F

from tformer_lib.exercises.checker import Exercise, Mistake, register

# Patches, embedded


def _embed(
    within: tuple[int, ...] = (0, 2, 4),
    which: tuple[int, ...] = (1, 3),
    matrix: Callable[[Tensor, int], Tensor] = lambda W, size: W,
    bias: float = 1.0,
) -> Callable[[Tensor, Tensor, Tensor, int], Tensor]:
    """b + W X for the columns X of patches, with something changed; axes are C, row, y, column, x."""

    def patch_embedding(image: Tensor, W: Tensor, b: Tensor, size: int) -> Tensor:
        channels, height, width = image.shape
        cut = image.reshape(channels, height // size, size, width // size, size)
        X = cut.permute(*within, *which).reshape(channels * size * size, -1)
        return matrix(W, size) @ X + bias * b[:, None]

    return patch_embedding


def _turned(W: Tensor, size: int) -> Tensor:
    return W.reshape(len(W), -1, size, size).flip(2, 3).flatten(1)


def _by_convolution(image: Tensor, W: Tensor, b: Tensor, size: int, **changed: int) -> Tensor:
    kernel = W.reshape(len(W), -1, size, size)
    return F.conv2d(image[None], kernel, b, **({"stride": size} | changed))[0].flatten(1)


def _patch_inputs(g: torch.Generator) -> list[tuple]:
    def draw(channels: int, height: int, width: int, size: int, d: int) -> tuple:
        image = torch.rand(channels, height, width, generator=g)
        W = torch.randn(d, channels * size * size, generator=g) / size
        return image, W, torch.randn(d, generator=g), size

    return [draw(3, 8, 12, 4, 5), draw(1, 6, 6, 2, 3), draw(2, 9, 6, 3, 4), draw(3, 4, 4, 4, 2)]


register(
    Exercise(
        name="vit.patch_embedding",
        reference=_embed(),
        inputs=_patch_inputs,
        mistakes=(
            Mistake(
                "tokens in rows",
                "Your tokens are rows. In the text's layout each token is a column: D x N.",
                lambda image, W, b, size: _embed()(image, W, b, size).T,
            ),
            Mistake(
                "a single reshape",
                "You reshape the image into its patches. A reshape moves no number, so your runs of C p p "
                "numbers are stripes of the image's memory and no squares.",
                lambda image, W, b, size: W @ image.reshape(-1, W.shape[1]).T + b[:, None],
            ),
            Mistake(
                "stride one",
                "Your kernel moves by one pixel at a time, so that the patches overlap and there are far too "
                "many. Patches lie side by side: the stride is their size.",
                lambda image, W, b, size: _by_convolution(image, W, b, size, stride=1),
            ),
            Mistake(
                "padded",
                "You pad the image, as one does to keep a picture's size. Patches tile the image as it is.",
                lambda image, W, b, size: _by_convolution(image, W, b, size, padding=size // 2),
            ),
            Mistake(
                "channels last within a patch",
                "In your columns a patch has its pixels one after the other, each with all its channels. The "
                "order here is channel by channel, and in each the pixels row by row.",
                _embed((2, 4, 0)),
            ),
            Mistake(
                "pixels of a patch column by column",
                "The pixels of a patch come column by column in your answer. They are read row by row.",
                _embed((0, 4, 2)),
            ),
            Mistake(
                "patches column by column",
                "Each of your tokens is right, and they stand in the wrong order: patches are numbered as "
                "one reads, row by row.",
                _embed(which=(3, 1)),
            ),
            Mistake(
                "kernel turned around",
                "You turn the kernel by half a turn, as the convolution of signal processing does. What "
                "deep learning calls a convolution lays the kernel on as it is.",
                _embed(matrix=_turned),
            ),
            Mistake(
                "bias forgotten",
                "The bias is missing: b is added to every token.",
                _embed(bias=0.0),
            ),
        ),
    )
)

# What the class token reads


def _class_attention(
    query: Callable[[Tensor, Tensor], Tensor] = lambda c, X: c,
    read: Callable[[Tensor, Tensor], Tensor] = lambda c, X: torch.cat([c[:, None], X], dim=1),
    scale: Callable[[Tensor, Tensor], float] = lambda c, q: len(q) ** 0.5,
    weights: Callable[[Tensor], Tensor] = lambda scores: scores.softmax(0),
    values: Callable[[Tensor, Tensor], Tensor] = lambda W_v, tokens: W_v @ tokens,
) -> Callable[..., Tensor]:
    """V softmax(K^T q / sqrt(Dh)) for the one query of the class token, with something changed."""

    def class_attention(c: Tensor, X: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
        tokens = read(c, X)
        q = W_q @ query(c, X)
        scores = (W_k @ tokens).T @ q / scale(c, q)
        return values(W_v, tokens) @ weights(scores)

    return class_attention


def _all_ask(c: Tensor, X: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
    tokens = torch.cat([c[:, None], X], dim=1)
    scores = (W_k @ tokens).T @ (W_q @ tokens) / len(W_q) ** 0.5
    return W_v @ tokens @ scores.softmax(0)


def _patches_ask(c: Tensor, X: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
    tokens = torch.cat([c[:, None], X], dim=1)
    scores = (W_q @ tokens).T @ (W_k @ c) / len(W_q) ** 0.5
    return W_v @ tokens @ scores.softmax(0)


def _without_first_value(W_v: Tensor, tokens: Tensor) -> Tensor:
    V = W_v @ tokens
    return torch.cat([torch.zeros_like(V[:, :1]), V[:, 1:]], dim=1)


def _class_inputs(g: torch.Generator) -> list[tuple]:
    def draw(d: int, n: int, dh: int) -> tuple:
        c, X = torch.randn(d, generator=g), torch.randn(d, n, generator=g)
        return c, X, *(torch.randn(dh, d, generator=g) for _ in range(3))

    return [draw(4, 5, 3), draw(6, 9, 2), draw(3, 1, 5), draw(5, 4, 4)]


register(
    Exercise(
        name="vit.class_attention",
        reference=_class_attention(),
        inputs=_class_inputs,
        mistakes=(
            Mistake(
                "class token does not read itself",
                "Your class token reads the patches alone. It is a token like the others: one of its "
                "N + 1 keys, and of its values, is its own.",
                _class_attention(read=lambda c, X: X),
            ),
            Mistake(
                "its own value left out",
                "Your weights count the class token among the keys, and then its value is left out, so that "
                "the weights used do not sum to one.",
                _class_attention(values=_without_first_value),
            ),
            Mistake(
                "every token asks",
                "You return an output for each of the N + 1 tokens. The head of the model reads one of "
                "them: let the class token alone ask.",
                _all_ask,
            ),
            Mistake(
                "patches ask the class token",
                "Queries and keys are exchanged: your patches have the queries and the class token the key. "
                "It is the class token that asks.",
                _patches_ask,
            ),
            Mistake(
                "the mean of the patches asks",
                "Your query comes from the patches' mean. It is the class token's own: W_q times c.",
                _class_attention(query=lambda c, X: X.mean(1)),
            ),
            Mistake(
                "mean of the values",
                "You average all values alike. That is mean pooling; the class token chooses whom it reads, "
                "by the softmax of its scores.",
                _class_attention(weights=lambda scores: torch.full_like(scores, 1 / len(scores))),
            ),
            Mistake(
                "missing scale",
                "The scores are not scaled: divide them by the square root of Dh, the length of the query.",
                _class_attention(scale=lambda c, q: 1.0),
            ),
            Mistake(
                "scale by the root of D",
                "You divide by the root of D. A score is a sum over the head's Dh features.",
                _class_attention(scale=lambda c, q: len(c) ** 0.5),
            ),
            Mistake(
                "weights not normalised",
                "You exponentiate the scores and leave it at that. Weights sum to one: divide by their sum.",
                _class_attention(weights=torch.exp),
            ),
        ),
    )
)

# Positions for another image size

Grid = tuple[int, int]


def _bicubic(grid: Tensor, new: Grid) -> Tensor:
    return F.interpolate(grid[None], size=new, mode="bicubic", align_corners=False)[0]


def _resize(
    interpolate: Callable[[Tensor, Grid], Tensor] = _bicubic,
    fold: Callable[[Tensor, Grid], Tensor] = lambda P, old: P.reshape(-1, *old),
    unfold: Callable[[Tensor], Tensor] = lambda grid: grid.flatten(1),
    join: Callable[[Tensor, Tensor], tuple[Tensor, ...]] = lambda first, rest: (first, rest),
) -> Callable[[Tensor, Grid, Grid], Tensor]:
    """The class token's column, then the grid of the others interpolated, with something changed."""

    def resize_positions(P: Tensor, old: Grid, new: Grid) -> Tensor:
        resized = unfold(interpolate(fold(P[:, 1:], old), new))
        return torch.cat(join(P[:, :1], resized), dim=1)

    return resize_positions


def _along(P: Tensor, n: int) -> Tensor:
    return F.interpolate(P[None], size=n, mode="linear", align_corners=False)[0]


def _mode(mode: str, **options: bool) -> Callable[[Tensor, Grid], Tensor]:
    return lambda grid, new: F.interpolate(grid[None], size=new, mode=mode, **options)[0]


def _last_is_class(P: Tensor, old: Grid, new: Grid) -> Tensor:
    return _resize()(P.roll(1, dims=1), old, new).roll(-1, dims=1)


def _position_inputs(g: torch.Generator) -> list[tuple]:
    def draw(d: int, old: Grid, new: Grid) -> tuple:
        return torch.randn(d, 1 + old[0] * old[1], generator=g), old, new

    return [
        draw(5, (3, 3), (6, 6)),
        draw(4, (2, 4), (4, 3)),
        draw(3, (5, 3), (2, 6)),
        draw(6, (4, 4), (3, 3)),
        draw(2, (2, 3), (2, 3)),
    ]


register(
    Exercise(
        name="vit.resize_positions",
        reference=_resize(),
        inputs=_position_inputs,
        mistakes=(
            Mistake(
                "class token dropped",
                "The class token's position is gone. It has a place in no grid, and is kept as it is, in "
                "front of the others.",
                _resize(join=lambda first, rest: (rest,)),
            ),
            Mistake(
                "class token put last",
                "The class token's column stands last in your table. It comes first, as before.",
                _resize(join=lambda first, rest: (rest, first)),
            ),
            Mistake(
                "last column taken for the class token's",
                "You keep the last column as the class token's. It is the first.",
                _last_is_class,
            ),
            Mistake(
                "class token in the interpolation",
                "You stretch the whole table as one sequence, the class token in it. Its column has no "
                "neighbours in the plane, and the patches' have theirs above and below as well.",
                lambda P, old, new: _along(P, 1 + new[0] * new[1]),
            ),
            Mistake(
                "along the sequence",
                "You keep the class token and interpolate the others along the sequence. So the end of one "
                "row is mixed with the beginning of the next: fold them into their grid first.",
                lambda P, old, new: torch.cat([P[:, :1], _along(P[:, 1:], new[0] * new[1])], dim=1),
            ),
            Mistake(
                "folded as if tokens were rows",
                "You fold P as if a token were a row. Here a token is a column, so the features are the "
                "first axis and the grid comes after it: D x rows x columns.",
                _resize(fold=lambda P, old: P.reshape(*old, -1).permute(2, 0, 1)),
            ),
            Mistake(
                "rows and columns of the grid exchanged",
                "You take the grids as (columns, rows). They are (rows, columns), and tokens are numbered "
                "row by row, which shows only where an image is not square.",
                lambda P, old, new: _resize()(P, old[::-1], new[::-1]),
            ),
            Mistake(
                "read out column by column",
                "Your grid is right, and you read it out column by column. Tokens are numbered row by row.",
                _resize(unfold=lambda grid: grid.mT.flatten(1)),
            ),
            Mistake(
                "corners aligned",
                "You align the corners, so that the outermost positions stay what they were. Then a step "
                "from patch to patch is not the same share of the image as its width: patches are areas, "
                "and it is the borders of the image that are aligned (`align_corners=False`).",
                _resize(_mode("bicubic", align_corners=True)),
            ),
            Mistake(
                "bilinear",
                "This is bilinear interpolation. Bicubic is wanted, which has no kinks.",
                _resize(_mode("bilinear", align_corners=False)),
            ),
            Mistake(
                "nearest",
                "You repeat the nearest position, so that several patches have the same. Interpolate "
                "between them.",
                _resize(_mode("nearest")),
            ),
            Mistake(
                "smoothed before it shrinks",
                "You smooth the grid where it shrinks (`antialias=True`), as one does with pictures. Some "
                "libraries do; here it is left out.",
                _resize(_mode("bicubic", align_corners=False, antialias=True)),
            ),
        ),
    )
)

# Shifts


def _shifted(
    wiped: bool = True,
    sign: int = 1,
    moves: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = lambda down, right: (down, right),
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Each image moved by its own numbers of pixels, zeros coming in, with something changed."""

    def shift(images: Tensor, down: Tensor, right: Tensor) -> Tensor:
        moved = []
        for image, d, r in zip(images, *(sign * m for m in moves(down, right)), strict=True):
            d, r = int(d), int(r)
            seen = torch.ones_like(image)
            if wiped:
                seen[:, :d] = 0 if d > 0 else 1
                seen[:, :, :r] = 0 if r > 0 else 1
                seen[:, d:] = 0 if d < 0 else seen[:, d:]
                seen[:, :, r:] = 0 if r < 0 else seen[:, :, r:]
            moved.append(image.roll((d, r), (1, 2)) * seen)
        return torch.stack(moved)

    return shift


def _edges_repeated(images: Tensor, down: Tensor, right: Tensor) -> Tensor:
    height, width = images.shape[2:]
    rows = (torch.arange(height) - down[:, None]).clamp(0, height - 1)
    columns = (torch.arange(width) - right[:, None]).clamp(0, width - 1)
    pairs = zip(images, rows, columns, strict=True)
    return torch.stack([image[:, y][:, :, x] for image, y, x in pairs])


def _shift_inputs(g: torch.Generator) -> list[tuple]:
    def draw(b: int, channels: int, height: int, width: int, most: int) -> tuple:
        images = torch.rand(b, channels, height, width, generator=g) + 0.1
        return images, *(torch.randint(-most, most + 1, (b,), generator=g) for _ in range(2))

    one = torch.rand(3, 1, 5, 4, generator=g) + 0.1
    return [
        (one, torch.tensor([2, -1, 0]), torch.tensor([1, 0, -2])),
        draw(4, 3, 6, 5, 3),
        draw(5, 1, 4, 7, 2),
        (one, torch.zeros(3, dtype=torch.long), torch.zeros(3, dtype=torch.long)),
    ]


register(
    Exercise(
        name="vit.shift",
        reference=_shifted(),
        inputs=_shift_inputs,
        mistakes=(
            Mistake(
                "wrapped around",
                "What leaves on one side comes in on the other, as `roll` has it. Zeros come in.",
                _shifted(wiped=False),
            ),
            Mistake(
                "edges repeated",
                "You repeat the outermost row or column where nothing comes in. Zeros come in.",
                _edges_repeated,
            ),
            Mistake(
                "the other direction",
                "Your images move up and to the left. With `down` positive, the pixel at row y comes from "
                "row y - down.",
                _shifted(sign=-1),
            ),
            Mistake(
                "down and right exchanged",
                "You move by `down` along the width. Rows are the third axis of (B, C, H, W), and columns "
                "the fourth.",
                _shifted(moves=lambda down, right: (right, down)),
            ),
            Mistake(
                "one shift for the whole batch",
                "All images move as the first does. Each has its own shift: a batch moved as one shows the "
                "model fewer places.",
                _shifted(moves=lambda down, right: (down[:1].expand_as(down), right[:1].expand_as(right))),
            ),
            Mistake(
                "down only",
                "Your images move down by the right number and do not move sideways.",
                _shifted(moves=lambda down, right: (down, torch.zeros_like(right))),
            ),
            Mistake(
                "right only",
                "Your images move sideways by the right number and do not move down.",
                _shifted(moves=lambda down, right: (torch.zeros_like(down), right)),
            ),
        ),
    )
)

# Attention rollout


def _through(A: Tensor) -> Tensor:
    return (torch.eye(A.shape[-1]) + A) / 2


def _rollout(
    heads: Callable[[Tensor], Tensor] = lambda A: A.mean(1),
    block: Callable[[Tensor], Tensor] = _through,
    compose: Callable[[Tensor, Tensor], Tensor] = torch.matmul,
) -> Callable[[Tensor], Tensor]:
    """The product of (I + A_m) / 2 from the first block to the last, with something changed."""

    def rollout(A: Tensor) -> Tensor:
        return reduce(compose, block(heads(A)))

    return rollout


def _rollout_inputs(g: torch.Generator) -> list[tuple]:
    sizes = ((2, 1, 3), (3, 2, 4), (1, 3, 5), (4, 2, 6))
    return [(torch.randn(m, h, n, n, generator=g).mul(2).softmax(2),) for m, h, n in sizes]


register(
    Exercise(
        name="vit.rollout",
        reference=_rollout(),
        inputs=_rollout_inputs,
        mistakes=(
            Mistake(
                "last block first",
                "Your product begins with the last block, which is right where tokens are rows. With tokens "
                "in columns a block multiplies from the right, so the first block's matrix stands leftmost.",
                _rollout(compose=lambda R, A: A @ R),
            ),
            Mistake(
                "skip forgotten",
                "You multiply the attention matrices alone. Beside each there is a skip connection, on which "
                "a token keeps what it was: that is the identity.",
                _rollout(block=lambda A: A),
            ),
            Mistake(
                "identity added and not shared",
                "You add the identity and do not halve. The columns of I + A sum to two, and those of the "
                "product to two to the power of the number of blocks.",
                _rollout(block=lambda A: torch.eye(A.shape[-1]) + A),
            ),
            Mistake(
                "heads summed",
                "You add up the heads. Their mean has columns that sum to one.",
                _rollout(lambda A: A.sum(1)),
            ),
            Mistake(
                "heads' greatest weights",
                "You take the greatest weight over the heads, as some variants do. Then columns no longer "
                "sum to one: take the mean.",
                _rollout(lambda A: A.amax(1)),
            ),
            Mistake(
                "each head by itself",
                "You roll out each head by itself and average at the end. A token's heads are joined after "
                "every block, so the second block reads what all heads of the first have brought.",
                lambda A: torch.stack([_rollout()(A[:, h : h + 1]) for h in range(A.shape[1])]).mean(0),
            ),
            Mistake(
                "blocks averaged",
                "You average over the blocks. They come one after the other: their matrices are multiplied.",
                lambda A: _through(A.mean(1)).mean(0),
            ),
            Mistake(
                "last block alone",
                "You show the last block alone. Its tokens are mixtures already, and not the patches whose "
                "places they stand at.",
                lambda A: _through(A.mean(1))[-1],
            ),
            Mistake(
                "entries multiplied",
                "You multiply entry by entry. A way through two blocks may pass through any token between "
                "them, and a matrix product sums over these.",
                _rollout(compose=torch.mul),
            ),
            Mistake(
                "transposed",
                "The numbers are right and stand transposed: patches that are read go down, and those who "
                "read go across, so that the columns sum to one.",
                lambda A: _rollout()(A).T,
            ),
        ),
    )
)

# Counting


def _count(
    channels_counted: bool = True,
    class_token: bool = True,
    positions: bool = True,
    biases: bool = True,
    norms: int = 2,
    final_norm: bool = True,
    head: bool = True,
    head_bias: bool = True,
) -> Callable[[int, int, int, int, int, int, int], int]:
    def count(image: int, patch: int, channels: int, d: int, f: int, blocks: int, classes: int) -> int:
        n = (image // patch) ** 2 + 1
        embed = (channels if channels_counted else 1) * patch**2 * d + d
        block = 4 * d * d + 2 * d * f + 2 * d * norms + (5 * d + f if biases else 0)
        last = 2 * d * final_norm + (d * classes + classes * head_bias if head else 0)
        return embed + d * class_token + (n * d if positions else 0) + blocks * block + last

    return count


register(
    Exercise(
        name="vit.count_parameters",
        reference=_count(),
        inputs=lambda g: [
            (224, 16, 3, 768, 3072, 12, 1000),
            (28, 4, 1, 64, 128, 3, 10),
            (8, 2, 2, 5, 7, 1, 3),
            (12, 12, 1, 6, 11, 2, 2),
        ],
        mistakes=(
            Mistake(
                "class token or its position forgotten",
                "You are D numbers short. Three things have this size and are easily forgotten: the class "
                "token, the position that it has of its own, and the bias of the patches' embedding.",
                _count(class_token=False),
            ),
            Mistake(
                "class token and its position, or the final norm, forgotten",
                "You are 2D numbers short. Either the class token is missing together with its position, or "
                "the norm after the last block, which has a gain and a bias.",
                _count(final_norm=False),
            ),
            Mistake(
                "positions forgotten",
                "The positions are missing: they are learned, a column of length D for each token.",
                _count(positions=False),
            ),
            Mistake(
                "one channel",
                "You embed patches of one channel. A patch is C p p numbers.",
                _count(channels_counted=False),
            ),
            Mistake(
                "biases of the blocks forgotten",
                "The biases of the blocks are missing: each linear map has one, as long as its output.",
                _count(biases=False),
            ),
            Mistake(
                "norms of the blocks forgotten",
                "Each block has two norms, and each of these a gain and a bias of length D.",
                _count(norms=0),
            ),
            Mistake(
                "head forgotten",
                "The head is missing: a matrix from D to the classes, and a bias.",
                _count(head=False),
            ),
            Mistake(
                "head's bias forgotten",
                "The head has a bias, one number for each class.",
                _count(head_bias=False),
            ),
        ),
    )
)
