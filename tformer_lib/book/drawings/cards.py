"""Small drawings for the first page: one for each chapter, with no words in them.

Each is 160 by 100 and shows what its chapter is about in the book's colours. The title of the chapter stands
beside it on the page, so that it is an ornament there; its description is for whoever opens the file.
"""

import math
from collections.abc import Callable
from typing import Any

from tformer_lib.book.drawings.drawing import Drawing
from tformer_lib.book.drawings.primitives import Scene, Strength
from tformer_lib.book.drawings.roles import KEY, QUERY, STREAM, VALUE, WEIGHTS, Role

WIDTH, HEIGHT = 160, 100
_CARDS: dict[str, Callable[[], Drawing]] = {}


def _card(chapter: str, title: str, description: str) -> Callable[[Callable[[Scene], None]], Callable]:
    """Registers what draws the card of a chapter, named by the stem of its file."""

    def register(paint: Callable[[Scene], None]) -> Callable:
        def draw() -> Drawing:
            scene = Scene(WIDTH, HEIGHT)
            paint(scene)
            return Drawing(title, description, scene)

        _CARDS[chapter] = draw
        return paint

    return register


def chapters() -> list[str]:
    """The chapters that have a card."""
    return list(_CARDS)


def card(chapter: str) -> Drawing:
    """The card of a chapter, named by the stem of its file, such as "02_attention".

    Raises:
        ValueError: if it has none.
    """
    if chapter not in _CARDS:
        raise ValueError(f"there is no card for {chapter!r}; there is one for each of {chapters()}")
    return _CARDS[chapter]()


def _cells(
    scene: Scene,
    x: int | float,
    y: int | float,
    rows: int,
    columns: int,
    cell: int | float,
    role: Role | None = None,
    **how: Any,
) -> None:
    """A grid of empty cells."""
    scene.matrix(x, y, [[""] * columns for _ in range(rows)], cell, role=role, **how)


def _dot(scene: Scene, x: int | float, y: int | float, size: int | float, role: Role | None) -> None:
    """A small round token."""
    scene.box(x - size / 2, y - size / 2, size, size, role=role, strength="full", radius=size / 2)


@_card("00_notation", "Notation", "A matrix whose columns are tokens; one column is in full colour.")
def _notation(scene: Scene) -> None:
    _cells(scene, 40, 18, 4, 5, 16, QUERY, column=2)
    scene.brace(40, 120, 88)
    scene.line((34, 18), (30, 18), (30, 82), (34, 82))


@_card("01_sequence_modelling", "Sequence modelling", "Four tokens in a row; the fifth is open.")
def _sequences(scene: Scene) -> None:
    for i in range(4):
        scene.box(8 + 30 * i, 42, 24, 24, role=KEY, strength="full" if i == 3 else "pale", radius=7)
        scene.arrow((26 + 30 * i, 38), (30 + 30 * i, 26), (46 + 30 * i, 26), (50 + 30 * i, 38))
    scene.box(128, 42, 24, 24, strength="plain", radius=7)


@_card("02_attention", "Attention", "One query reads from five keys, from two of them most.")
def _attention(scene: Scene) -> None:
    weights = (0.06, 0.55, 0.29, 0.07, 0.03)
    for i, weight in enumerate(weights):
        scene.line((24 + 28 * i, 24), (80, 80), role=WEIGHTS, width=1 + 12 * weight)
    for i in range(5):
        scene.box(14 + 28 * i, 10, 20, 20, role=KEY, strength="full", radius=6)
    scene.box(66, 70, 28, 22, role=QUERY, strength="full", radius=7)


@_card("03_multi_head_self_attention", "Multi-head self-attention", "Three maps of attention side by side.")
def _heads(scene: Scene) -> None:
    patterns = (
        lambda i, j: 0.95 if j == i - 1 or i == j == 0 else 0.05,
        lambda i, j: 0.95 if j == 0 else 0.05,
        lambda i, j: 0.4 if j <= i else 0.05,
    )
    for head, pattern in enumerate(patterns):
        for i in range(4):
            for j in range(4):
                strong = pattern(i, j) > 0.9
                scene.box(
                    9 + 50 * head + 10.5 * j, 14 + 10.5 * i, 10.5, 10.5,
                    role=WEIGHTS, strength="full" if strong else "pale", shade=2 * pattern(i, j),
                )  # fmt: skip
        scene.line((30 + 50 * head, 58), (30 + 50 * head, 68), (80, 78))
    scene.box(50, 76, 60, 14, role=VALUE, strength="full", radius=5)


@_card(
    "04_skip_and_normalisation", "Skip connections", "A thick stream with two sublayers that read and write."
)
def _skip(scene: Scene) -> None:
    scene.stream((10, 74), (150, 74), role=STREAM)
    for x in (26, 88):
        scene.arrow((x, 70), (x, 45), (x + 8, 45))
        scene.box(x + 9, 30, 28, 28, role=None, strength="plain", radius=5)
        scene.arrow((x + 38, 45), (x + 46, 45), (x + 46, 68))


@_card("05_positional_embeddings", "Positions", "Waves of three lengths above a row of tokens.")
def _positions(scene: Scene) -> None:
    for wave, (role, length) in enumerate(((QUERY, 22.0), (WEIGHTS, 44.0), (STREAM, 120.0))):
        middle = 16 + 22 * wave
        points = [(x, middle - 8 * math.sin(2 * math.pi * (x - 10) / length)) for x in range(10, 151, 2)]
        scene.line(*points, role=role, width=2.5)
    for i in range(7):
        scene.box(10 + 20.5 * i, 80, 15, 13, role=KEY, radius=4)


@_card("06_transformer", "The transformer", "A stack of equal blocks on one stream.")
def _transformer(scene: Scene) -> None:
    scene.stream((80, 97), (80, 4), role=STREAM)
    for i in range(4):
        scene.box(46, 12 + 20 * i, 28, 15, role=WEIGHTS, strength="full", radius=4)
        scene.box(86, 12 + 20 * i, 28, 15, role=VALUE, strength="full", radius=4)


@_card("07_bert", "BERT", "A row of tokens with a hole; all the others point to it.")
def _bert(scene: Scene) -> None:
    for i in (0, 1, 3, 4):
        place = 22 + 29 * i
        height = 18 + 9 * abs(i - 2)
        scene.arrow(
            (place, 58), (place, 58 - height), (80 + 4 * (i - 2), 58 - height), (80 + 4 * (i - 2), 56)
        )
    for i in range(5):
        masked = i == 2
        scene.box(
            10 + 29 * i, 60, 24, 24, role=None if masked else KEY, strength="plain" if masked else "full",
            radius=7, masked=masked,
        )  # fmt: skip


@_card("08_gpt", "GPT", "A causal mask: a triangle of cells, hatched above the diagonal.")
def _gpt(scene: Scene) -> None:
    n, cell = 5, 17
    masked = [[s > i for s in range(n)] for i in range(n)]
    shades = [[0.0 if hatched else 0.8 for hatched in row] for row in masked]
    x = WIDTH / 2 - n * cell / 2
    _cells(scene, x, 8, n, n, cell, WEIGHTS, row=n - 1, shades=shades, masked=masked)


@_card("08b_modern_decoder", "The modern decoder", "Four heads of queries share two of keys and values.")
def _modern(scene: Scene) -> None:
    for i in range(4):
        shared = 48 + 64 * (i // 2)
        scene.line((32 + 32 * i, 28), (shared, 74), role=QUERY, width=2)
    for i in range(4):
        _dot(scene, 32 + 32 * i, 22, 22, QUERY)
    for i in range(2):
        scene.box(36 + 64 * i, 66, 12, 24, role=KEY, strength="full")
        scene.box(48 + 64 * i, 66, 12, 24, role=VALUE, strength="full")


@_card("09_translation", "Translation", "Two rows of tokens, joined by lines that cross.")
def _translation(scene: Scene) -> None:
    for i, j in enumerate((0, 2, 3, 1)):
        scene.line((28 + 35 * i, 28), (28 + 35 * j, 74), role=WEIGHTS, width=5)
    for i in range(4):
        scene.box(15 + 35 * i, 10, 26, 20, role=KEY, strength="full", radius=7)
        scene.box(15 + 35 * i, 70, 26, 20, role=QUERY, strength="full", radius=7)


@_card("10_vit", "Vision transformer", "A picture cut into squares, which become a row of tokens.")
def _vit(scene: Scene) -> None:
    tints = ((0.15, 0.15, 0.9), (0.15, 0.6, 0.3), (0.9, 0.6, 0.9))
    for i in range(3):
        for j in range(3):
            scene.box(
                12 + 21 * j, 20 + 21 * i, 19, 19,
                role=VALUE if i == 2 else STREAM if (i, j) == (0, 2) else QUERY,
                strength="full" if tints[i][j] > 0.8 else "pale", shade=tints[i][j],
            )  # fmt: skip
    scene.arrow((80, 50), (94, 50))
    for i in range(4):
        role = (QUERY, QUERY, STREAM, VALUE)[i]
        scene.box(
            100 + 14 * i, 38, 11, 24, role=role, strength="pale" if i < 2 else "full", shade=0.4, radius=3
        )


@_card(
    "11_image_gpt_and_sound",
    "Image GPT and sound",
    "A picture written row by row, above the wave of a sound.",
)
def _image_gpt(scene: Scene) -> None:
    for i in range(3):
        for j in range(7):
            n = 7 * i + j
            if n <= 16:
                scene.box(31 + 14 * j, 8 + 14 * i, 14, 14, role=KEY, strength="full" if n == 16 else "pale")
            else:
                scene.box(31 + 14 * j, 8 + 14 * i, 14, 14, strength="faint")
    for i in range(25):
        x = 12 + 5.7 * i
        tall = 2 + 15 * abs(math.sin(0.9 * i)) * math.exp(-(((i - 12) / 7) ** 2))
        scene.line((x, 76 - tall), (x, 76 + tall), role=QUERY, width=3)


@_card("12_long_sequences", "Long sequences", "A large square of attention of which only a band is computed.")
def _long(scene: Scene) -> None:
    n, cell = 11, 8
    left, top = WIDTH / 2 - n * cell / 2, 6
    scene.box(left, top, n * cell, n * cell, strength="plain")
    for i in range(n):
        for j in range(max(0, i - 2), i + 1):
            scene.box(left + cell * j, top + cell * i, cell, cell, role=WEIGHTS, strength="full")


@_card("13_inside", "Inside a transformer", "Six tokens that repeat; the last finds what followed its like.")
def _inside(scene: Scene) -> None:
    x = [8 + 25 * i for i in range(6)]
    roles = (KEY, VALUE, None, None, KEY, None)
    for i in range(6):
        strength: Strength = "plain" if i == 5 else "full" if roles[i] else "pale"
        scene.box(
            x[i], 52, 20, 20, role=roles[i] or (None if i == 5 else STREAM), strength=strength, radius=6
        )
    scene.arrow((x[0] + 10, 48), (x[0] + 10, 38), (x[1] + 6, 38), (x[1] + 6, 48))  # one back, written in
    scene.line((x[4] + 10, 48), (x[4] + 10, 22), (x[1] + 14, 22), (x[1] + 14, 48), role=WEIGHTS, width=5)
    scene.arrow((x[1] + 10, 76), (x[1] + 10, 90), (x[5] + 10, 90), (x[5] + 10, 76))


@_card("14_scale", "Training at scale", "Four processes in a ring; each holds one quarter of the model.")
def _scale(scene: Scene) -> None:
    corners = ((14, 8), (90, 8), (90, 66), (14, 66))  # clockwise
    for mine, (x, y) in enumerate(corners):
        for i in range(4):
            strength: Strength = "full" if i == mine else "pale"
            scene.box(x + 14 * i, y, 14, 30, role=KEY if i == mine else STREAM, strength=strength, radius=2)
    scene.arrow((72, 23), (88, 23))
    scene.arrow((118, 41), (118, 63))
    scene.arrow((88, 81), (72, 81))
    scene.arrow((42, 63), (42, 41))
