"""Small drawings for the first page: one for each chapter, with no words in them.

Each is 160 by 100 and shows what its chapter is about in the book's colours. The title of the chapter stands
beside it on the page, so that it is an ornament there; its description is for whoever opens the file. A
chapter has its own in `card.py`, and `tools/draw_pictures.py` writes it to `card.svg`.
"""

from collections.abc import Callable
from typing import Any

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import Role

WIDTH, HEIGHT = 160, 100


def card(title: str, description: str) -> Callable[[Callable[[Scene], None]], Callable[[], Drawing]]:
    """Decorator: what paints a scene becomes a function that returns the chapter's card.

    Args:
        title: a name for the drawing.
        description: what is to be seen.
    """

    def made(paint: Callable[[Scene], None]) -> Callable[[], Drawing]:
        def draw() -> Drawing:
            scene = Scene(WIDTH, HEIGHT)
            paint(scene)
            return Drawing(title, description, scene)

        return draw

    return made


def cells(
    scene: Scene,
    x: int | float,
    y: int | float,
    rows: int,
    columns: int,
    cell: int | float,
    role: Role | None = None,
    **how: Any,
) -> None:
    """A grid of empty cells."""
    scene.matrix(x, y, [[""] * columns for _ in range(rows)], cell, role=role, **how)


def dot(scene: Scene, x: int | float, y: int | float, size: int | float, role: Role | None) -> None:
    """A small round token."""
    scene.box(x - size / 2, y - size / 2, size, size, role=role, strength="full", radius=size / 2)
