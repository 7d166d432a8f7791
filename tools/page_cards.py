"""The cards of pages that are no chapters, and of what one does on the first page beside reading."""

import math

from tformer_book.kit.drawings.cards import HEIGHT, WIDTH, card
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import KEY, QUERY, STREAM, VALUE, WEIGHTS

SURPRISE = ((0.9, 0.1, 0.2, 0.05, 0.5, 0.1), (0.7, 0.3, 0.05, 0.6))  # of letters, line by line


@card("Play", "A handle on a track, and bars that are high where it stands.")
def play(scene: Scene) -> None:
    """Paints it."""
    handle, base = 66, 66
    for i in range(8):
        place = 17 + 18 * i
        near = math.exp(-(((place - handle) / 28) ** 2))
        scene.bar(place, base, 11, 5 + 49 * near, WEIGHTS)
    scene.line((8, 84), (152, 84), width=3)
    scene.line((8, 84), (handle, 84), role=QUERY, width=3)
    scene.box(handle - 9, 75, 18, 18, role=QUERY, strength="full", radius=9)


@card("A model in the page", "Letters, some in a deeper colour, a cursor, and bars for what may come.")
def live_model(scene: Scene) -> None:
    """Paints it."""
    width, height, gap, top = 16, 22, 3, 22
    for line, shades in enumerate(SURPRISE):
        for i, shade in enumerate(shades):
            place = (12 + i * (width + gap), top + line * (height + 12))
            scene.box(*place, width, height, role=STREAM, shade=shade, radius=4)
    x, y = 12 + len(SURPRISE[1]) * (width + gap), top + height + 12
    scene.line((x + 2, y - 2), (x + 2, y + height + 2), width=2.5, opacity=0.9)
    for i, length in enumerate((46, 20, 9)):
        scene.box(x + 14, y + 2 + 13 * i, length, 8, role=VALUE, strength="full", radius=2)


@card("The speedrun", "A stopwatch whose hand has gone through a fifth of the dial.")
def speedrun(scene: Scene) -> None:
    """Paints it."""
    x, y, radius = WIDTH / 2, HEIGHT / 2 + 6, 38
    scene.box(x - 5, y - radius - 12, 10, 8, role=KEY, strength="full", radius=2)
    scene.sector(x, y, radius - 5, 0, 0.19 * 2 * math.pi, role=STREAM, shade=0.8)
    scene.box(x - radius, y - radius, 2 * radius, 2 * radius, strength="plain", radius=radius)
    for i in range(12):
        dx, dy = math.sin(i * math.pi / 6), -math.cos(i * math.pi / 6)
        inner = radius - (9 if i % 3 == 0 else 6)
        rim = radius - 3
        scene.line((x + inner * dx, y + inner * dy), (x + rim * dx, y + rim * dy))
    angle = 0.19 * 2 * math.pi
    tip = (x + (radius - 6) * math.sin(angle), y - (radius - 6) * math.cos(angle))
    scene.line((x, y), tip, role=QUERY, width=4)
    scene.box(x - 4, y - 4, 8, 8, role=QUERY, strength="full", radius=4)
