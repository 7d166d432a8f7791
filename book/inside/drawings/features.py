"""Drawings of features in superposition. The weights in them come in as arguments."""

import math
from collections.abc import Mapping
from typing import Any

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, table
from tformer_book.kit.drawings.primitives import PHONE, Scene
from tformer_book.kit.drawings.roles import STREAM

HELD = 0.3  # a shorter arrow is no feature that is held


def features_in_a_plane(
    weights: Mapping[str, Any], *, title: str = "Five features in two dimensions"
) -> Drawing:
    """The directions of features, the columns of W, beside each other for several models.

    Args:
        weights: from what is said of a model to its W (2, n); columns that are nearly zero are not held.
        title: what it shows.

    Raises:
        ValueError: if there is no model, or a W has not two rows.
    """
    models = {name: table(W.tolist() if hasattr(W, "tolist") else W, name) for name, W in weights.items()}
    if not models or any(len(W) != 2 for W in models.values()):
        raise ValueError("each model has a W of two rows, one for each dimension")
    arrows = {
        name: [(x, y) for x, y in zip(*W, strict=True) if math.hypot(x, y) > HELD]
        for name, W in models.items()
    }
    longest = max((math.hypot(x, y) for found in arrows.values() for x, y in found), default=1.0)
    counts = {name: f"holds {len(arrows[name])} of {len(W[0])}" for name, W in models.items()}
    said = []
    for name, found in arrows.items():
        turns = sorted(math.degrees(math.atan2(y, x)) % 360 for x, y in found)
        gaps = [round((b - a) % 360) for a, b in zip(turns, turns[1:] + turns[:1], strict=True)]
        said.append(
            f"{name}: {counts[name]}, the angles between neighbours {', '.join(map(str, gaps))} degrees"
        )
    description = "Each arrow is the direction that a model has given to a feature. " + "; ".join(said) + "."

    def panel(scene: Scene, x: Pixels, y: Pixels, side: Pixels, name: str) -> None:
        scene.text(x + side / 2, y + 9, name, bold=True)
        middle, radius = (x + side / 2, y + 26 + side / 2), side / 2 - 8
        for dx, dy in ((1, 0), (0, 1)):
            ends = [(middle[0] + s * radius * dx, middle[1] + s * radius * dy) for s in (-1, 1)]
            scene.line(*ends, opacity=0.25, width=1)
        for a, b in arrows[name]:
            tip = (middle[0] + radius * a / longest, middle[1] - radius * b / longest)
            scene.arrow(middle, tip, role=STREAM, width=3)
        scene.text(x + side / 2, y + side + 40, counts[name], muted=True)

    def layout(room: Pixels, columns: int, side: Pixels, size: Pixels) -> Scene:
        scene, step = Scene(room, size=size), room / columns
        for i, name in enumerate(models):
            x = (i % columns) * step + (step - side) / 2
            panel(scene, x, (i // columns) * (side + 68), side, name)
        scene.height = math.ceil(len(models) / columns) * (side + 68) - 14
        return scene

    return Drawing(title, description, layout(700, len(models), 190, 15), layout(PHONE, 1, 180, 15))
