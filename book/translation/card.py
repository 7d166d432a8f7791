"""The chapter's card on the first page."""

from tformer_book.kit.drawings.cards import card
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import KEY, QUERY, WEIGHTS


@card("Translation", "Two rows of tokens, joined by lines that cross.")
def draw(scene: Scene) -> None:
    """Paints it."""
    for i, j in enumerate((0, 2, 3, 1)):
        scene.line((28 + 35 * i, 28), (28 + 35 * j, 74), role=WEIGHTS, width=5)
    for i in range(4):
        scene.box(15 + 35 * i, 10, 26, 20, role=KEY, strength="full", radius=7)
        scene.box(15 + 35 * i, 70, 26, 20, role=QUERY, strength="full", radius=7)
