"""The package's floors, as the contract in pyproject.toml has them."""

from collections.abc import Sequence

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import QUERY, VALUE


def layers(floors: Sequence[str], *, title: str = "The floors of tformer_lib") -> Drawing:
    """One row for each floor, the highest first; imports go down, and not between neighbours.

    Args:
        floors: as import-linter writes them, "data | efficient" for two rooms on one floor.
        title: what it shows.

    Raises:
        ValueError: if there is no floor, or one without a room.
    """
    rooms = [[room.strip() for room in floor.split("|")] for floor in floors]
    if not rooms or not all(room for row in rooms for room in row):
        raise ValueError(f"each floor needs at least one room, got {list(floors)}")
    below = "; below it, ".join(" and ".join(row) for row in rooms)
    description = f"From the top down: {below}. A room imports what lies on the floors below it."

    def layout(room: Pixels, size: Pixels) -> Scene:
        scene = Scene(room, size=size)
        width, height, gap = room - 28, 34.0, 8.0
        for i, row in enumerate(rooms):
            each = (width - gap * (len(row) - 1)) / len(row)
            for j, name in enumerate(row):
                role = VALUE if name == "book" else QUERY
                place = (j * (each + gap), i * (height + gap), each, height)
                scene.box(*place, name, role=role, radius=6)
        bottom = len(rooms) * (height + gap) - gap
        scene.arrow((room - 10, 2), (room - 10, bottom))
        scene.text(room - 2, bottom + 16, "imports", anchor="end", muted=True)
        scene.height = bottom + 28
        return scene

    return Drawing(title, description, layout(600, 15), layout(328, 13.5))
