"""The chapter's card on the first page."""

from tformer_book.kit.drawings.cards import card
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import QUERY, STREAM, VALUE


@card("Vision transformer", "A picture cut into squares, which become a row of tokens.")
def draw(scene: Scene) -> None:
    """Paints it."""
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
