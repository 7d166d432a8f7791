"""The chapter's card on the first page."""

from tformer_book.kit.drawings.cards import card
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import KEY


@card("Sequence modelling", "Four tokens in a row; the fifth is open.")
def draw(scene: Scene) -> None:
    """Paints it."""
    for i in range(4):
        scene.box(8 + 30 * i, 42, 24, 24, role=KEY, strength="full" if i == 3 else "pale", radius=7)
        scene.arrow((26 + 30 * i, 38), (30 + 30 * i, 26), (46 + 30 * i, 26), (50 + 30 * i, 38))
    scene.box(128, 42, 24, 24, strength="plain", radius=7)
