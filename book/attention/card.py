"""The chapter's card on the first page."""

from tformer_book.kit.drawings.cards import card
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import KEY, QUERY, WEIGHTS


@card("Attention", "One query reads from five keys, from two of them most.")
def draw(scene: Scene) -> None:
    """Paints it."""
    weights = (0.06, 0.55, 0.29, 0.07, 0.03)
    for i, weight in enumerate(weights):
        scene.line((24 + 28 * i, 24), (80, 80), role=WEIGHTS, width=1 + 12 * weight)
    for i in range(5):
        scene.box(14 + 28 * i, 10, 20, 20, role=KEY, strength="full", radius=6)
    scene.box(66, 70, 28, 22, role=QUERY, strength="full", radius=7)
