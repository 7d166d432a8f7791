"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

import math

from tests.book.kit.drawings.strokes import stroke
from tformer_book.image_gpt import drawings as image_gpt


def fold(**changes):
    return image_gpt.fold(**({"image": stroke(14), "row": 6, "column": 5} | changes))


def off_by_one(**changes):
    return image_gpt.off_by_one(**({"tokens": list("003003100"), "width": 4} | changes))


def moved_map(**changes):
    moved = {(0, -1): 1.16, (-1, 0): 0.51, (-1, 1): 0.37, (-1, -1): 0.16, (0, -2): 0.15}
    back = {n: 1.16 / n if n < 4 else 0.4 if 12 < n < 16 else 0.03 for n in range(1, 31)}
    return image_gpt.moved_map(**({"moved": moved, "back": back} | changes))


def noise_and_back(**changes):
    arguments = {"images": [stroke(), *[[[0.5] * 8] * 8] * 4], "times": [0, 0.25, 0.5, 0.75, 1]}
    return image_gpt.noise_and_back(**(arguments | changes))


def dit_block():
    return image_gpt.dit_block()


def sound_to_columns(**changes):
    arguments = {"signal": [math.sin(n / 9) for n in range(1000)], "start": 300}
    arguments["powers"] = [1 / (1 + k) for k in range(65)]
    arguments["bands"] = [[(i + j) / 48 for j in range(32)] for i in range(16)]
    return image_gpt.sound_to_columns(**(arguments | changes))


EXAMPLES = (
    fold,
    off_by_one,
    moved_map,
    noise_and_back,
    dit_block,
    sound_to_columns,
)
