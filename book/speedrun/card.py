"""The chapter's card on the first page."""

from tformer_book.kit.drawings.cards import card
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM


@card("The speedrun", "Two lines fall to the same level; the steep one is there long before the other.")
def draw(scene: Scene) -> None:
    """Paints it."""
    scene.line((10, 84), (150, 84), role=None)
    scene.line((12, 12), (22, 48), (34, 68), (50, 84), role=STREAM, width=5)
    scene.line((12, 12), (50, 40), (95, 64), (146, 84), role=QUERY, width=3)
    for x in (50, 146):
        scene.box(x - 5, 79, 10, 10, role=KEY, strength="full", radius=5)
