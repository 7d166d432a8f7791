"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

from tformer_book.skip_norm import drawings as skip_norm


def block(**changes):
    return skip_norm.block(**({"words": ["the", "cat", "sat"]} | changes))


def placements(**changes):
    return skip_norm.placements(**changes)


def input_left(**changes):
    return skip_norm.input_left(**({"variance": 0.5, "sublayers": 3} | changes))


def input_left_without_a_norm(**changes):
    return input_left(**({"places": {"no norm": "skips alone", "pre-norm": "both"}} | changes))


def norm_axes(**changes):
    sentences = [["the", "cat", "sat"], ["we", "go", "home"]]
    return skip_norm.norm_axes(**({"sentences": sentences, "features": 4, "entry": (0, 1, 2)} | changes))


def normed_in_space(**changes):
    tokens = [[1, 2, 3], [2, 4, 6], [101, 102, 103], [0, 0, 3]]
    return skip_norm.normed_in_space(**({"tokens": tokens} | changes))


def becoming_one(**changes):
    apart = [[1.0, 0.5], [-0.5, 1.2], [-1.0, -0.8], [0.6, -1.0]]
    one = [[0.7, 0.2]] * 4
    rows = {"alone": [(apart, 0.98), (one, 0.002)], "with a skip": [(apart, 0.98), (apart, 0.9)]}
    return skip_norm.becoming_one(**({"rows": rows} | changes))


def ways_back(**changes):
    return skip_norm.ways_back(**({"layers": 3, "share": 0.5} | changes))


EXAMPLES = (
    block,
    placements,
    input_left,
    input_left_without_a_norm,
    norm_axes,
    normed_in_space,
    becoming_one,
    ways_back,
)
