"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

from tformer_book.notation import drawings as notation


def tokens_both_ways(**changes):
    X = [[0.5, -1.2, 0.3, 0.9], [1.1, 0.4, -0.6, 0.2], [-0.3, 0.8, 0.7, -1.0]]
    return notation.tokens_both_ways(**({"words": ["the", "cat", "sat", "down"], "X": X} | changes))


def linear_both_ways(**changes):
    return notation.linear_both_ways(**({"D": 3, "E": 5, "N": 4, "token": 1} | changes))


def sizes(**changes):
    return notation.sizes(**({"words": ["the", "cat", "sat", "down"], "heads": 2} | changes))


def by_pencil(**changes):
    told = {"weight": [[1, 0, 2], [0, 1, 1]], "x": [[1, 2, 0], [0, 1, 3]], "token": 1}
    return notation.by_pencil(**(told | changes))


EXAMPLES = (
    tokens_both_ways,
    linear_both_ways,
    by_pencil,
    sizes,
)
