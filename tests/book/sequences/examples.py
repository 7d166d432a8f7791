"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

from tformer_book.sequences import drawings as sequences


def shifted_guesses(**changes):
    arguments = {"tokens": "the cat", "probabilities": [0.9, 0.8, 0.5, 0.02, 0.4, 0.25]}
    return sequences.shifted_guesses(**(arguments | changes))


def merge_rows(**changes):
    merges = [("r", "a"), ("i", "n"), ("ra", "in"), ("t", "rain"), ("train", "s")]
    return sequences.merge_rows(**({"words": ["trains", "strains"], "merges": merges} | changes))


def picked_columns(**changes):
    arguments = {"E": [[1, 0, -1], [0, 2, 1]], "X": [[1, 0, 0], [0, 0, 1], [0, 1, 0]], "names": "abc"}
    return sequences.picked_columns(**(arguments | changes))


def ways_to_the_past(**changes):
    return sequences.ways_to_the_past(**({"n": 10, "distance": 8, "window": 5} | changes))


def two_tasks(**changes):
    return sequences.two_tasks(**({"symbols": "bdacb", "distance": 2} | changes))


def unrolled(**changes):
    return sequences.unrolled(**({"read": "cabr", "guessed": "abra"} | changes))


def gated_state(**changes):
    arguments = {"old": [0.9, -0.4], "gate": [1.0, 0.5], "candidate": [-0.6, 0.8]}
    return sequences.gated_state(**(arguments | changes))


def one_vector(**changes):
    return sequences.one_vector(**({"source": "abcd", "target": "dcba"} | changes))


EXAMPLES = (
    shifted_guesses,
    merge_rows,
    picked_columns,
    ways_to_the_past,
    two_tasks,
    unrolled,
    gated_state,
    one_vector,
)
