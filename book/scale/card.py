"""The chapter's card on the first page."""

from tformer_book.kit.drawings.cards import card
from tformer_book.kit.drawings.primitives import Scene, Strength
from tformer_book.kit.drawings.roles import KEY, STREAM


@card("Training at scale", "Four processes in a ring; each holds one quarter of the model.")
def draw(scene: Scene) -> None:
    """Paints it."""
    corners = ((14, 8), (90, 8), (90, 66), (14, 66))  # clockwise
    for mine, (x, y) in enumerate(corners):
        for i in range(4):
            strength: Strength = "full" if i == mine else "pale"
            scene.box(x + 14 * i, y, 14, 30, role=KEY if i == mine else STREAM, strength=strength, radius=2)
    scene.arrow((72, 23), (88, 23))
    scene.arrow((118, 41), (118, 63))
    scene.arrow((88, 81), (72, 81))
    scene.arrow((42, 63), (42, 41))
