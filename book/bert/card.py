"""The chapter's card on the first page."""

from tformer_book.kit.drawings.cards import card
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import KEY


@card("BERT", "A row of tokens with a hole; all the others point to it.")
def draw(scene: Scene) -> None:
    """Paints it."""
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
