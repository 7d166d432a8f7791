"""The chapter's card on the first page."""

from tformer_book.kit.drawings.cards import card, dot
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import KEY, QUERY, VALUE


@card("The modern decoder", "Four heads of queries share two of keys and values.")
def draw(scene: Scene) -> None:
    """Paints it."""
    for i in range(4):
        shared = 48 + 64 * (i // 2)
        scene.line((32 + 32 * i, 28), (shared, 74), role=QUERY, width=2)
    for i in range(4):
        dot(scene, 32 + 32 * i, 22, 22, QUERY)
    for i in range(2):
        scene.box(36 + 64 * i, 66, 12, 24, role=KEY, strength="full")
        scene.box(48 + 64 * i, 66, 12, 24, role=VALUE, strength="full")
