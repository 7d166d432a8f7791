"""The chapter's card on the first page."""

from tformer_book.kit.drawings.cards import card, dot
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import QUERY


@card("A walking chapter", "A token, and room for what the chapter shows.")
def draw(scene: Scene) -> None:
    """Paints it."""
    dot(scene, 80, 50, 30, QUERY)
