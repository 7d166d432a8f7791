"""The chapter's card on the first page."""

from tformer_book.kit.drawings.cards import card, cells
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import QUERY


@card("Notation", "A matrix whose columns are tokens; one column is in full colour.")
def draw(scene: Scene) -> None:
    """Paints it."""
    cells(scene, 40, 18, 4, 5, 16, QUERY, column=2)
    scene.brace(40, 120, 88)
    scene.line((34, 18), (30, 18), (30, 82), (34, 82))
