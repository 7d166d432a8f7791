"""The chapter's card on the first page."""

import math

from tformer_book.kit.drawings.cards import card
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import KEY, QUERY


@card("Image GPT", "A picture written row by row, above the wave of a sound.")
def draw(scene: Scene) -> None:
    """Paints it."""
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
