"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

import math

from tformer_book.inside.drawings import features as inside_features
from tformer_book.inside.drawings import grokking as inside_grokking
from tformer_book.inside.drawings import induction as inside_induction


def induction_circuit(**changes):
    arguments = {"tokens": ["the", "grey", "cat", "sat", "the", "grey"]}
    return inside_induction.induction_circuit(**(arguments | changes))


def stream_bus(**changes):
    return inside_induction.stream_bus(**({"tokens": ("grey", "cat")} | changes))


def found_circuit(**changes):
    head = inside_induction.FoundHead
    arguments = {
        "tokens": ("57", "3"),
        "heads": {
            "copy": head("1.2", 0.934, 0.058),
            "K": head("0.0", 0.812, 2.19),
            "Q": head("0.1", 0.994, 2.44),
            "V": head("0.2", 0.941, 0.7),
        },
        "needs": {"K": 9.43, "Q": 3.03, "V": 2.35},
    }
    return inside_induction.found_circuit(**(arguments | changes))


def patched_runs(**changes):
    arguments = {
        "clean": list("ABCDA"),
        "corrupted": list("CBADA"),
        "place": 1,
        "differences": (12.3, 0.4, -12.1),
    }
    return inside_induction.patched_runs(**(arguments | changes))


def patched_paths(**changes):
    arguments = {
        "outcomes": {"Q": "12.3", "K": "−12.1", "V": "12.2", "logits": "12.3"},
        "measured": "logit of B minus D",
    }
    return inside_induction.patched_paths(**(arguments | changes))


def features_in_a_plane(**changes):
    pentagon = [
        [math.cos(0.3 + 1.2566 * k) for k in range(5)],
        [math.sin(0.3 + 1.2566 * k) for k in range(5)],
    ]
    pair = [[1.0, -1.0, 0.02, 0.0, 0.0], [0.0, 0.0, 0.99, -1.01, 0.03]]
    weights = {"density 1": [[0.0, 1.0, 0, 0, 0], [0.0, 0.0, 0, 0, 1.0]], "0.2": pair, "0.02": pentagon}
    return inside_features.features_in_a_plane(**({"weights": weights} | changes))


def clock_addition(**changes):
    return inside_grokking.clock_addition(**({"p": 5, "a": 3, "b": 4, "frequencies": [1, 2]} | changes))


EXAMPLES = (
    induction_circuit,
    stream_bus,
    found_circuit,
    patched_runs,
    patched_paths,
    features_in_a_plane,
    clock_addition,
)
