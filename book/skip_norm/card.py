"""The chapter's card on the first page."""

from tformer_book.kit.drawings.cards import card
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import STREAM


@card("Skip connections", "A thick stream with two sublayers that read and write.")
def draw(scene: Scene) -> None:
    """Paints it."""
    scene.stream((10, 74), (150, 74), role=STREAM)
    for x in (26, 88):
        scene.arrow((x, 70), (x, 45), (x + 8, 45))
        scene.box(x + 9, 30, 28, 28, role=None, strength="plain", radius=5)
        scene.arrow((x + 38, 45), (x + 46, 45), (x + 46, 68))
