"""Drawings of the chapter A walking chapter. Every word and number in them comes in as an argument."""

from collections.abc import Sequence

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels
from tformer_book.kit.drawings.primitives import PHONE, Scene
from tformer_book.kit.drawings.roles import QUERY


def row_of_tokens(tokens: Sequence[str], *, title: str = "A walking chapter: a row of tokens") -> Drawing:
    """Tokens in a row.

    Args:
        tokens: the words in the boxes.
        title: what it shows.

    Raises:
        ValueError: if there are none.
    """
    if not tokens:
        raise ValueError("expected at least one token, got none")

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene, column = Scene(room, size=size), room / len(tokens)
        xs = [column * (i + 0.5) for i in range(len(tokens))]
        scene.token_row(xs, 10, list(tokens), column - 8, 32, role=QUERY, strength="full")
        return scene

    description = f"{len(tokens)} tokens in a row: {', '.join(tokens)}."
    return Drawing(title, description, layout(420, 15), layout(PHONE, 13.5))
