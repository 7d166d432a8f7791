"""The drawing of a step that adds up. Every number in it comes in as an argument or is computed from one."""

import math
from collections.abc import Sequence

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, listed, number
from tformer_book.kit.drawings.primitives import PHONE, Scene
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, WEIGHTS, Role


def coherent_step(
    x: Sequence[float],
    weights: Sequence[float],
    step: Sequence[float],
    *,
    title: str = "Why the step of a wide matrix moves its output so far",
) -> Drawing:
    """An input, one row of a matrix at the start and one row of its first step of Adam, and both products.

    Args:
        x: the entries of the input.
        weights: a row of the matrix at the start.
        step: the same row of the step.
        title: what it shows.

    Raises:
        ValueError: if the three differ in length, are empty, or have more than six entries.
    """
    x, weights, step = listed(x, "x"), listed(weights, "weights"), listed(step, "step")
    if not len(x) == len(weights) == len(step):
        raise ValueError(f"a row has an entry for each of the input's {len(x)}")
    if len(x) > 6:
        raise ValueError(f"a phone has room for six entries, got {len(x)}")
    parts = [
        ("At the start: signs by chance", "row of W", weights, QUERY),
        ("The step of Adam: one sign pattern", "row of ΔW", step, KEY),
    ]
    products = [[a * b for a, b in zip(row, x, strict=True)] for _, _, row, _ in parts]

    def said(values: Sequence[float]) -> str:
        return ", ".join(number(value, 2) for value in values)

    description = (
        f"An input x with the entries {said(x)}. A row of the matrix W at the start, {said(weights)}, gives "
        f"with it the products {said(products[0])}, of both signs, and their sum is "
        f"{number(math.fsum(products[0]), 2)}. The same row of the first step of Adam, {said(step)}, has "
        f"entries of one size with the signs of x, gives the products {said(products[1])}, all of one "
        f"sign, and their sum is {number(math.fsum(products[1]), 2)}."
    )

    def line(
        scene: Scene, left: Pixels, y: Pixels, cell: Pixels, values: Sequence[float], role: Role, tall: Pixels
    ) -> None:
        size = max((abs(value) for value in values), default=1.0) or 1.0
        scene.matrix(
            left, y, [values], cell, tall, role=role,
            shades=[[0.12 + 0.5 * abs(value) / size if value > 0 else 0.0 for value in values]],
        )  # fmt: skip

    def wide() -> Scene:
        label, cell, tall = 86.0, 66.0, 32.0
        right = label + cell * len(x) + 16
        scene = Scene(right + 84, size=15)
        y = 0.0
        for (heading, name, row, role), product in zip(parts, products, strict=True):
            scene.text(label, y + 10, heading, anchor="start", bold=True)
            for i, (word, values, colour) in enumerate(
                (("x", x, STREAM), (name, row, role), ("products", product, WEIGHTS))
            ):
                top = y + 28 + 38 * i
                scene.text(label - 10, top + tall / 2, word, anchor="end")
                line(scene, label, top, cell, values, colour, tall)
            scene.text(right + 40, y + 28 + 38 + tall / 2, "sum")
            scene.box(right, y + 28 + 76, 80, tall, number(math.fsum(product), 2), role=role, strength="full")
            y += 28 + 38 * 3 + 18
        scene.height = y - 18
        return scene

    def narrow() -> Scene:
        tall, cell = 28.0, PHONE / len(x)
        scene = Scene(PHONE, size=13.5)
        y = 0.0
        for (heading, name, row, role), product in zip(parts, products, strict=True):
            scene.text(0, y + 9, heading, anchor="start", bold=True)
            top = y + 22
            for word, values, colour in (("x", x, STREAM), (name, row, role), ("products", product, WEIGHTS)):
                scene.text(0, top + 9, word, anchor="start")
                line(scene, 0, top + 20, cell, values, colour, tall)
                top += 54
            scene.text(PHONE - 92, top + tall / 2, "sum", anchor="end")
            scene.box(PHONE - 84, top, 84, tall, number(math.fsum(product), 2), role=role, strength="full")
            y = top + tall + 20
        scene.height = y - 20
        return scene

    return Drawing(title, description, wide(), narrow())
