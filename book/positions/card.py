"""The chapter's card on the first page."""

import math

from tformer_book.kit.drawings.cards import card
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, WEIGHTS


@card("Positions", "Waves of three lengths above a row of tokens.")
def draw(scene: Scene) -> None:
    """Paints it."""
    for wave, (role, length) in enumerate(((QUERY, 22.0), (WEIGHTS, 44.0), (STREAM, 120.0))):
        middle = 16 + 22 * wave
        points = [(x, middle - 8 * math.sin(2 * math.pi * (x - 10) / length)) for x in range(10, 151, 2)]
        scene.line(*points, role=role, width=2.5)
    for i in range(7):
        scene.box(10 + 20.5 * i, 80, 15, 13, role=KEY, radius=4)
