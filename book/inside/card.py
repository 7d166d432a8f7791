"""The chapter's card on the first page."""

from tformer_book.kit.drawings.cards import card
from tformer_book.kit.drawings.primitives import Scene, Strength
from tformer_book.kit.drawings.roles import KEY, STREAM, VALUE, WEIGHTS


@card("Inside a transformer", "Six tokens that repeat; the last finds what followed its like.")
def draw(scene: Scene) -> None:
    """Paints it."""
    x = [8 + 25 * i for i in range(6)]
    roles = (KEY, VALUE, None, None, KEY, None)
    for i in range(6):
        strength: Strength = "plain" if i == 5 else "full" if roles[i] else "pale"
        scene.box(
            x[i], 52, 20, 20, role=roles[i] or (None if i == 5 else STREAM), strength=strength, radius=6
        )
    scene.arrow((x[0] + 10, 48), (x[0] + 10, 38), (x[1] + 6, 38), (x[1] + 6, 48))  # one back, written in
    scene.line((x[4] + 10, 48), (x[4] + 10, 22), (x[1] + 14, 22), (x[1] + 14, 48), role=WEIGHTS, width=5)
    scene.arrow((x[1] + 10, 76), (x[1] + 10, 90), (x[5] + 10, 90), (x[5] + 10, 76))
