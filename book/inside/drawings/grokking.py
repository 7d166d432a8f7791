"""The drawing of addition on clocks. Every number in it comes in as an argument or is computed from one."""

import math
from collections.abc import Sequence

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, listed, number
from tformer_book.kit.drawings.primitives import PHONE, Scene
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, WEIGHTS

TURN = 2 * math.pi


def clock_addition(
    p: int, a: int, b: int, frequencies: Sequence[int], *, title: str = "Clocks that add, and what they say"
) -> Drawing:
    """Clocks whose hands are turned by a and then by b, and the cosine that each gives to every answer.

    Args:
        p: the modulus; the numbers 0, ..., p - 1 stand on each clock.
        a: the first number.
        b: the second.
        frequencies: of each clock: how often its hand goes round while n goes from 0 to p.
        title: what it shows.

    Raises:
        ValueError: if there is no clock, or a or b is no number of the clock.
    """
    frequencies = listed(frequencies, "frequencies")
    if not (0 <= a < p and 0 <= b < p):
        raise ValueError(f"the clock has the numbers 0 to {p - 1}, got {a} and {b}")
    answer = (a + b) % p
    cosines = [[math.cos(TURN * k * (a + b - c) / p) for k in frequencies] for c in range(p)]
    sums = [math.fsum(row) for row in cosines]
    heads = [f"k = {k}" for k in frequencies] + ["sum"]
    said = "; ".join(
        f"answer {c}: {', '.join(number(x, 2) for x in row)}, sum {number(total, 2)}"
        for c, (row, total) in enumerate(zip(cosines, sums, strict=True))
    )
    description = (
        f"{len(frequencies)} clock faces with the numbers 0 to {p - 1}, for the frequencies "
        f"{', '.join(map(str, frequencies))}. On each the hand is turned by {a}, then by {b}, and ends at "
        f"{answer}. A table gives, for each answer, the cosine of its angle to each hand: {said}. The sum is "
        f"largest at {answer}."
    )

    def face(scene: Scene, x: Pixels, y: Pixels, radius: Pixels, k: int) -> None:
        scene.text(x, y - radius - 34, f"k = {k}", bold=True)
        scene.face(x, y, radius)
        first = TURN * (k * a % p) / p
        both = first + TURN * (k * b % p) / p
        scene.sector(x, y, 0.62 * radius, 0, first, role=QUERY, shade=0.9)
        scene.sector(x, y, 0.40 * radius, first, both, role=KEY, shade=1.0)
        scene.arrow(
            (x, y),
            (x + 0.95 * radius * math.sin(both), y - 0.95 * radius * math.cos(both)),
            role=STREAM,
            width=3,
        )
        for n in range(p):
            angle = TURN * k * n / p
            scene.text(
                x + (radius + 13) * math.sin(angle),
                y - (radius + 13) * math.cos(angle),
                str(n),
                bold=n == answer,
            )

    def words(scene: Scene, x: Pixels, y: Pixels, cell: Pixels, label: Pixels) -> Pixels:
        for j, head in enumerate(heads):
            scene.text(x + label + (j + 0.5) * cell, y + 8, head, bold=j == len(frequencies))
        for c in range(p):
            top = y + 24 + 30 * c
            scene.text(x + label - 10, top + 15, f"c = {c}", anchor="end", bold=c == answer)
            scene.matrix(x + label, top, [cosines[c]], cell, 30, role=WEIGHTS)
            scene.box(x + label + len(frequencies) * cell, top, cell, 30, number(sums[c], 2), role=STREAM,
                      strength="full" if c == answer else "pale")  # fmt: skip
        return y + 24 + 30 * p

    def legend(scene: Scene, x: Pixels, y: Pixels) -> None:
        for i, (role, text) in enumerate(((QUERY, f"turned by a = {a}"), (KEY, f"then by b = {b}"))):
            scene.box(x + i * 150, y, 16, 16, role=role, shade=1.0)
            scene.text(x + i * 150 + 23, y + 8, text, anchor="start")

    def wide() -> Scene:
        radius, step, cell = 62.0, 190.0, 66.0
        left = len(frequencies) * step
        scene = Scene(left + 50 + cell * len(heads) + 4, size=15)
        for i, k in enumerate(frequencies):
            face(scene, (i + 0.5) * step - 6, 106, radius, k)
        legend(scene, 12, 208)
        scene.height = max(words(scene, left, 0, cell, 50), 230)
        return scene

    def narrow() -> Scene:
        step = PHONE / len(frequencies)
        radius = min(0.5 * step - 30, 56)
        scene = Scene(PHONE, size=13.5)
        for i, k in enumerate(frequencies):
            face(scene, (i + 0.5) * step, radius + 44, radius, k)
        legend(scene, 20, 2 * radius + 82)
        scene.height = words(scene, 0, 2 * radius + 114, (PHONE - 56) / len(heads), 52)
        return scene

    return Drawing(title, description, wide(), narrow())
