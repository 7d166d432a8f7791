"""The chapter's card on the first page."""

from tformer_book.kit.drawings.cards import card
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import STREAM, VALUE, WEIGHTS


@card("The transformer", "A stack of equal blocks on one stream.")
def draw(scene: Scene) -> None:
    """Paints it."""
    scene.stream((80, 97), (80, 4), role=STREAM)
    for i in range(4):
        scene.box(46, 12 + 20 * i, 28, 15, role=WEIGHTS, strength="full", radius=4)
        scene.box(86, 12 + 20 * i, 28, 15, role=VALUE, strength="full", radius=4)
