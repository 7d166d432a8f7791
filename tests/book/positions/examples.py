"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

import math

from tformer_book.positions import drawings as positions


def three_places(**changes):
    return positions.three_places(**({"tokens": ["dog", "bites", "man"]} | changes))


def clock_faces(**changes):
    arguments = {"places": [0, 1, 2, 3, 20], "speeds": [1.0, 0.1, 0.01, 0.001]}
    return positions.clock_faces(**(arguments | changes))


def turning_pair(**changes):
    arguments = {"query": 0.5, "key": -0.2, "speed": 0.7, "pairs": [(1, 0), (5, 4), (5, 2)]}
    return positions.turning_pair(**(arguments | changes))


def turned_by_hand(**changes):
    arguments = {"query": [1, 1, 2, 0], "key": [0, 1, 1, 0], "turns": [math.pi, math.pi / 3]}
    return positions.turned_by_hand(**(arguments | changes))


def offsets_and_biases(**changes):
    rows = [
        ["0", 0.0, "b₀"],
        ["1", -0.25, "b₁"],
        ["2", -0.5, "b₂"],
        ["3", -0.75, "b₃"],
        ["500", -125.0, "b₃₁"],
    ]
    heads = ["offset\nn − s", "ALiBi\nslope 1/4", "T5\nbucket"]
    arguments = {"words": ["the", "dog", "bites", "me"], "rows": rows, "heads": heads}
    return positions.offsets_and_biases(**(arguments | changes))


def swept_angles(**changes):
    speeds = [10 ** (-i / 2) for i in range(8)]
    arguments = {"speeds": speeds, "trained": 64, "read": 256, "marked": 3}
    return positions.swept_angles(**(arguments | changes))


def what_changed(**changes):
    rows = {"1 block": [0.41, 0.52, 0.0, 0.0], "2 blocks": [0.33, 0.6, 0.12, 0.08]}
    arguments = {"words": ["the", "dog", "bit", "me"], "swapped": [1, 0, 2, 3], "change": rows}
    return positions.what_changed(**(arguments | changes))


EXAMPLES = (
    three_places,
    clock_faces,
    turning_pair,
    turned_by_hand,
    offsets_and_biases,
    swept_angles,
    what_changed,
)
