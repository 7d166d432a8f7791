"""The chapter's card on the first page."""

from tformer_book.kit.drawings.cards import WIDTH, card
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import WEIGHTS


@card("Long sequences", "A large square of attention of which only a band is computed.")
def draw(scene: Scene) -> None:
    """Paints it."""
    n, cell = 11, 8
    left, top = WIDTH / 2 - n * cell / 2, 6
    scene.box(left, top, n * cell, n * cell, strength="plain")
    for i in range(n):
        for j in range(max(0, i - 2), i + 1):
            scene.box(left + cell * j, top + cell * i, cell, cell, role=WEIGHTS, strength="full")
